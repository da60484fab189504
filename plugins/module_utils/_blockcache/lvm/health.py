# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with a cache, and what can be done about it.

What LVM allows of a volume that misses a device was seen with 2.03.16: lvchange refuses everything; ``lvconvert --uncache``
takes a write-through cache away without ``--force``, and refuses a write-back one.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, STALE_MEMBER
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm import CacheStatus
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import names as lvm_names
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import kind_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState

#: Bytes of kernel memory for each block of a writecache: about 2 GiB for 100 GiB in blocks of 4096 bytes (lvmcache(7)).
WRITECACHE_BLOCK_MEMORY = 82
#: The share of the memory above which a warning is given.
MEMORY_SHARE = 0.25


def diagnose(state: LvmState, cached: LogicalVolume) -> tuple[str, str]:
    """One of ``model.STATES``, and if it is not ``ok`` what is wrong and what can be done, as the rest of a sentence about the volume."""
    pool = state.pool_of(cached)
    kernel = state.kernel.get(cached.full_name, CacheStatus())
    if any(state.lost(part) for part in _origin_of(state, cached)):
        return "failed", missing_device_advice(state, cached.vg)
    if pool is None or state.lost(pool):
        return "cache_missing", hidden_device(state, cached.vg) or _missing_advice(state, cached)
    if kernel.failed or kernel.errors:
        return "failed", _failed_advice(state, cached, kernel)
    if cached.check_needed == "check needed" or kernel.needs_check or kernel.read_only:
        how = (
            f"lvconvert --repair {pool.full_name}"
            if kind_of(cached, pool) == "cachepool"
            else "a restore from backup (a cachevol cannot be repaired); what the cache holds alone is lost with it"
        )
        condition = "read_only" if kernel.read_only and not kernel.needs_check else "needs_check"
        return condition, f"has cache metadata that the kernel marked as needing a check: deactivate it, then run {how}"
    if not cached.active:
        return "inactive", inactive_advice(state, cached)
    if cached.full_name not in state.kernel and _is_running(state, cached):
        return "unknown", (
            "is active, and device-mapper reports no cache of it, so that what is dirty in it is not known: compare lvs -a with dmsetup status, and run"
            f" lvchange --refresh {lvm_names.visible_name(cached, state.volumes)} if a command was interrupted"
        )
    return "ok", ""


def missing_device_advice(state: LvmState, vg: str) -> str:
    """What can be done about a volume that lies on a device which LVM does not find, as the rest of a sentence about it."""
    return hidden_device(state, vg) or "is on a device that is missing: reconnect it, or repair the volume group manually"


def hidden_device(state: LvmState, vg: str, *, certain: bool = False) -> str:
    """That what a volume group misses is only hidden from LVM, as the rest of a sentence about a volume; empty if nothing shows that.

    :param certain: whether only what is in use counts, and not that some device with a label is hidden too.
    """
    if not (state.missing(vg) or state.missing_and_needed(vg)):
        return ""
    sentence, in_use = lvm_names.hidden_devices(vg, set(state.pv_devices.values()), state.devices)
    return sentence if in_use or not certain else ""


def inactive_advice(state: LvmState, volume: LogicalVolume) -> str:
    """What can be done about a volume whose cache cannot be read back. The caller decides which it is."""
    if volume.suspended:
        return (
            "is suspended, because a command was killed in the middle of a change or the kernel refused a table, and everything that is written to it"
            " waits: a run with its cache in the list resumes it"
        )
    if volume.full_name in state.unused:
        return (
            "is not active: the host went down while LVM attached its cache, which holds nothing yet, and LVM's check rejects its metadata:"
            " a run with its cache in the list activates it"
        )
    return f"is not active, so that its cache cannot be read: activate it with lvchange -ay {volume.full_name} first"


def writes_through(state: LvmState, cached: LogicalVolume) -> bool:
    """Whether a cache certainly holds nothing that the origin does not have, even if it cannot be read any more.

    LVM writes another mode than write-back down only after its flush has ended; the kernel must do the same as is written.
    """
    if cached.mode == "writeback":
        return False
    kernel = state.kernel.get(cached.full_name)
    table = state.tables.get(cached.full_name)
    if kernel is None:
        return not cached.active
    mode = kernel.mode if not kernel.failed else table.mode if table is not None else None
    return mode in ("writethrough", "passthrough")


def droppable(state: LvmState, cached: LogicalVolume) -> bool:
    """Whether the cache is out of order and LVM can take it away without ``--force`` and without a loss."""
    condition, _reason = diagnose(state, cached)
    pool = state.pool_of(cached)
    gone = condition == "cache_missing" or (condition == "failed" and state.kernel.get(cached.full_name, CacheStatus()).failed)
    origin_whole = not any(state.lost(part) for part in _origin_of(state, cached))
    return gone and origin_whole and pool is not None and writes_through(state, cached) and not hidden_device(state, cached.vg, certain=True)


def counted_dirty(state: LvmState, cached: LogicalVolume) -> str:
    """Of a cache that writes through and whose blocks count as dirty all the same: what that is and how it ends; else nothing.

    LVM has noted another mode than write-back only after a flush, so that the origin has everything.
    """
    kernel = state.kernel.get(cached.full_name, CacheStatus())
    if cached.writecache or not kernel.dirty or not writes_through(state, cached):
        return ""
    return (
        f"{cached.full_name} writes through, so that nothing depends on its cache, and the kernel counts {kernel.dirty} blocks of the cache as dirty all the"
        " same: its metadata was not closed cleanly when the host went down, or a flush was interrupted. It writes them back while nothing else is to do;"
        f" state: flushed does it at once, and lvchange -an and lvchange -ay {cached.full_name} end it permanently."
    )


def problems(state: LvmState) -> list[str]:
    """Warnings about the caches of the host as they are left, one sentence each."""
    found = []
    for cached in state.volumes:
        if not cached.cached:
            continue
        condition, reason = diagnose(state, cached)
        if condition not in ("ok", "inactive"):
            found.append(f"{cached.full_name} {reason}.")
        pool = state.pool_of(cached)
        if pool is None or state.redundancy(state.devices_under(pool), pool) != DEGRADED or condition == "cache_missing":
            continue
        if cached.mode == "writeback":
            found.append(
                f"{cached.full_name} has a write-back cache on a mirror that is degraded: its newest data is only on what is left of the mirror."
                f" {mend_advice(state, pool)}"
            )
        elif state.mirrors(pool):
            found.append(
                f"{cached.full_name} has a cache on a mirror that is degraded; it writes through, so that nothing depends on it. {mend_advice(state, pool)}"
            )
    return found


def mend_advice(state: LvmState, pool: LogicalVolume) -> str:
    """How a degraded mirror becomes whole again."""
    mirrors = [mirror for mirror in state.mirrors(pool) if state.out_of_step(mirror)]
    if not mirrors:
        return f"Replace the member that failed, or change to mode writethrough, which flushes. {STALE_MEMBER}"
    hidden = hidden_device(state, pool.vg, certain=True)
    if hidden:
        return f"Its other side {hidden}."
    if any(mirror.partial for mirror in mirrors):
        repairs = " and ".join(f"lvconvert --repair {mirror.full_name}" for mirror in mirrors)
        return (
            f"Reconnect the device and run lvchange --refresh; or add a new one to the volume group (vgextend) and run {repairs},"
            f" each with its path, then vgreduce --removemissing {pool.vg}. {STALE_MEMBER}"
        )
    if any(mirror.health for mirror in mirrors):
        return "Its device is there again: run lvchange --refresh on the cached volume, and replace the drive if it fails again."
    return "The mirror is synchronising; no action is needed."


def memory_of_writecache(size: int, block_size: int) -> int:
    """Bytes of memory that the kernel needs for a writecache of that size."""
    return size // block_size * WRITECACHE_BLOCK_MEMORY


def _is_running(state: LvmState, cached: LogicalVolume) -> bool:
    """Whether a volume was active when it was read; a plan also considers it as it will be."""
    read = state.volume(cached.vg, cached.name)
    return read is not None and read.active


def _origin_of(state: LvmState, cached: LogicalVolume) -> list[LogicalVolume]:
    inner = (state.volume(cached.vg, name) for name in cached.devices)
    return [volume for volume in inner if volume is not None]


def _missing_advice(state: LvmState, cached: LogicalVolume) -> str:
    if writes_through(state, cached):
        return (
            "has a cache whose device is missing; it wrote through, so that nothing is lost with it: state: absent removes it without --force,"
            " and a run that names cache devices that are there puts a new one in its place"
        )
    return (
        "has a cache whose device is missing, and with write-back its newest data may be only there: reconnect the device and reload the cache"
        f" with lvchange -an and lvchange -ay {cached.full_name}, which loses nothing;"
        " if it is permanently lost, decide manually about lvconvert --uncache --force, which drops what was dirty"
    )


def _failed_advice(state: LvmState, cached: LogicalVolume, kernel: CacheStatus) -> str:
    if kernel.errors:
        return f"has a writecache that the kernel reports as failed with error {kernel.errors}: check dmesg and decide manually"
    if writes_through(state, cached):
        return (
            "has a cache that the kernel reports as failed; it wrote through, so that nothing is lost with it:"
            " state: absent removes it without --force, and a run with state: present recreates it"
        )
    return (
        "has a cache that the kernel reports as failed, so that it cannot be flushed: check dmesg, reconnect its device, and reload it"
        f" with lvchange -an and lvchange -ay {cached.full_name}, which loses nothing; if that fails, decide manually"
    )
