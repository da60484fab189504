# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The caches of flashcache in the type-independent model, and warnings about them."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, STALE_MEMBER, UNMIRRORED
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import Running, name_behind, read_running, read_superblock
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import UNSTABLE, FlashcacheSuperblock
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import past_sentence, users_past
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: Sysctls that start something; their value does not show the present state.
_ACTIONS = frozenset({"do_sync", "stop_sync", "zero_stats", "error_inject"})
_ERROR = re.compile(r"^(ssd|disk)_(read|write)_errors$")


def read_caches(devices: Devices, runner: Runner, root: Path = Path("/")) -> tuple[CacheState, ...]:
    """Every flashcache device of the host, and those that wait on an SSD to be loaded.

    Costs two commands where one runs, and else only a read of the beginning of the fast devices that nothing uses.

    :raises NotUnderstood: if flashcache prints what no release known here prints.
    """
    ground = HostDevices(devices, arrays=mirror.read_arrays(devices, root))
    running = read_running(devices, runner, root)
    states = [state_of(cache, ground) for cache in running.values()]
    taken = {cache.ssd_name for cache in running.values()}
    for device in devices:
        stored = read_superblock(root, device.path) if device.name not in taken and _may_wait(device) else None
        if stored is not None:
            states.append(stored_state(stored, device, ground))
    return tuple(states)


def state_of(cache: Running, ground: HostDevices) -> CacheState:
    """One cache that runs."""
    table, devices = cache.table, ground.devices
    redundancy = ground.redundancy([cache.ssd_name]) if cache.ssd_name else UNMIRRORED
    state, problem = condition_of(cache, devices)
    return CacheState(
        type="flashcache",
        name=cache.name,
        kind="flashcache",
        device=f"/dev/mapper/{cache.name}",
        device_name=cache.device.name if cache.device is not None else None,
        origin=_spelled(devices, cache.disk_name, table.disk),
        origin_name=cache.disk_name,
        cache_devices=(_spelled(devices, cache.ssd_name, table.ssd),),
        cache_device_names=(cache.ssd_name,) if cache.ssd_name else (),
        mode=table.mode,
        policy={0: "fifo", 1: "lru"}.get(cache.sysctls.get("reclaim_policy", -1)),
        block_size=table.block_size,
        size=table.total * table.block_size,
        used=table.cached * table.block_size,
        dirty=table.dirty * table.block_size,
        redundancy=redundancy,
        sends_flushes=False,
        state=state,
        problem=problem,
        settings={key: value for key, value in cache.sysctls.items() if key not in _ACTIONS},
        counters=counters_of(cache),
        histogram=dict(cache.histogram),
    )


def stored_state(stored: FlashcacheSuperblock, device: BlockDevice, ground: HostDevices) -> CacheState:
    """One cache that lies on its SSD and does not run."""
    path = device.stable_path or device.path
    if stored.state == UNSTABLE:
        state = "read_only"
        problem = f"The metadata of the cache on {path} could not be written when it was shut down, and the kernel no longer loads it: restore {stored.disk}."
    elif stored.clean:
        state, problem = "inactive", f"The cache {stored.name} on {path} is clean and not loaded: load it with state: present, or wipe {path}."
    else:
        state = "inactive"
        problem = f"The cache {stored.name} on {path} may hold what {stored.disk} does not have: do not use {stored.disk} before it is loaded."
    origin = name_behind(ground.devices, stored.disk)
    return CacheState(
        type="flashcache",
        name=stored.name,
        kind="flashcache",
        device=None,
        device_name=None,
        origin=_spelled(ground.devices, origin, stored.disk),
        origin_name=origin,
        cache_devices=(path,),
        cache_device_names=(device.name,),
        mode="writeback",
        block_size=stored.block_size,
        size=stored.blocks * stored.block_size,
        dirty=0 if stored.clean else None,
        redundancy=ground.redundancy([device.name]),
        sends_flushes=False,
        state=state,
        problem=problem,
    )


def counters_of(cache: Running) -> dict[str, int]:
    """The counters in the words of every type. ``uncached_*`` are those that were not looked up, whatever the reason."""
    found, errors = cache.statistics, cache.errors
    counters: dict[str, int] = {}
    for what in ("read", "write"):
        if f"{what}s" not in found:
            continue
        bypassed = found.get(f"uncached_{what}s", 0)
        counters[f"bypassed_{what}s"] = bypassed
        # Write-around counts no hits of writes: it does not look them up.
        if f"{what}_hits" in found:
            counters[f"{what}_hits"] = found[f"{what}_hits"]
            counters[f"{what}_misses"] = max(found[f"{what}s"] - found[f"{what}_hits"] - bypassed, 0)
    if "cleanings" in found:
        counters["written_back_bytes"] = found["cleanings"] * cache.table.block_size
    if errors:
        counters["cache_errors"] = errors.get("ssd_read_errors", 0) + errors.get("ssd_write_errors", 0)
        counters["origin_errors"] = errors.get("disk_read_errors", 0) + errors.get("disk_write_errors", 0)
    return counters


def warnings_of(cache: Running, ground: HostDevices) -> t.Iterator[str]:
    """Warnings about a cache that runs and is left as it is, one sentence each."""
    name, table = cache.name, cache.table
    state, problem = condition_of(cache, ground.devices)
    if state == "inconsistent":
        yield problem
    if table.mode == "writeback" and cache.ssd_name and ground.redundancy([cache.ssd_name]) == DEGRADED:
        yield (f"{name}: the mirror under the write-back cache of {table.disk} is degraded: replace the member that failed, or flush the cache. {STALE_MEMBER}")
    for path in (table.ssd, table.disk):
        if not is_stable(path):
            yield (
                f"{name}: the cache was made with the path {path}, which may be another device after the next reboot: remove it with state: absent and"
                " create it again."
            )
    failed = [f"{count} {_spoken(key)}" for key, count in sorted(cache.errors.items()) if count]
    if failed:
        yield f"{name}: flashcache has counted {' and '.join(failed)}: check dmesg and the health of {table.ssd} and {table.disk}."


def condition_of(cache: Running, devices: Devices) -> tuple[str, str]:
    """The state of a cache that runs in the words of the model, and what is wrong as a sentence."""
    own = {cache.device.name} if cache.device is not None else set()
    past = users_past(devices, cache.disk_name, own) if own else ()
    if past:
        return "inconsistent", past_sentence(cache.name, f"/dev/mapper/{cache.name}", cache.table.disk, past) + "."
    if cache.ssd_name is None:
        return "cache_missing", f"The SSD {cache.table.ssd} of the cache {cache.name} is missing: reconnect it, and do not use {cache.table.disk} before."
    failed = cache.errors.get("ssd_read_errors", 0) + cache.errors.get("ssd_write_errors", 0)
    if failed and cache.table.mode != "writeback":
        # bypass_cache of struct cache_c is set by the first error and cleared by nothing.
        return "failed", f"The SSD {cache.table.ssd} returned {failed} errors, and flashcache serves everything from the disk since: replace the SSD."
    return "ok", ""


def _may_wait(device: BlockDevice) -> bool:
    """Whether a cache may lie on a device: nothing uses it, udev reports nothing on it, and it is no spinning disk."""
    free = not (device.holders or device.mountpoints or device.swap or device.partitions or device.signature)
    return free and bool(device.size) and device.rotational is False and device.kind not in ("loop", "ram", "zram", "rom", "flashcache")


def _spelled(devices: Devices, name: str | None, recorded: str) -> str:
    device = devices.get(name) if name else None
    return recorded if device is None or is_stable(recorded) else device.stable_path or recorded


def _spoken(key: str) -> str:
    match = _ERROR.match(key)
    return f"{match.group(2)} errors of the {'SSD' if match.group(1) == 'ssd' else 'disk'}" if match else key.replace("_", " ")
