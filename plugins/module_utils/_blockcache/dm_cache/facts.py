# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The raw device-mapper caches of a host: those of this collection and those that were created manually.

Sources: dmsetup(8) (``info -c``, ``table``, ``status``); the names and UUIDs of our own mappings are in ``dm_cache_table.py``.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import record as dm_cache_record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable, LinearTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import past_sentence, users_past
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import DmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_INFO = ("dmsetup", "info", "-c", "--noheadings", "--separator", "|", "-o", "name,uuid,major,minor,open,suspended,tables_loaded")


@frozen
class Mapping:
    """One device of device-mapper.

    :param number: ``major:minor``.
    :param opens: how many have it open: mounts, mappings on it, programs.
    :param waiting: whether another table is loaded and not in effect.
    :param rows: the table in effect; none if there is none.
    """

    name: str
    uuid: str
    number: str
    opens: int = 0
    suspended: bool = False
    waiting: bool = False
    rows: tuple[tuple[str, ...], ...] = ()

    @property
    def table(self) -> CacheTable | LinearTable | None:
        """The table, if it is one of those that this layer makes."""
        return tables.parse_table(self.rows[0]) if len(self.rows) == 1 else None


@frozen
class Kernel:
    """What device-mapper reports."""

    mappings: t.Mapping[str, Mapping] = field(default_factory=dict)
    status: t.Mapping[str, dm.CacheStatus] = field(default_factory=dict)

    def by_number(self, number: str) -> Mapping | None:
        """The mapping of that ``major:minor``."""
        return next((mapping for mapping in self.mappings.values() if mapping.number == number), None)


def parse_info(text: str) -> dict[str, tuple[str, str, int, bool, bool]]:
    """``dmsetup info -c`` with the columns of :data:`_INFO`, as ``{name: (uuid, number, opens, suspended, waiting)}``.

    :raises NotUnderstood: quoting the line.
    """
    found = {}
    for line in text.splitlines():
        words = [word.strip() for word in line.split("|")]
        if len(words) != 7 or not words[4].isdigit():
            # Without any device it prints a message.
            if "|" not in line:
                continue
            raise NotUnderstood(f"dmsetup info printed a line that could not be parsed: '{line[:200]}'.")
        name, uuid, major, minor, opens, suspended, loaded = words
        found[name] = (uuid, f"{major}:{minor}", int(opens), suspended == "Suspended", loaded in ("Inactive", "Both"))
    return found


def read_kernel(runner: Runner, root: Path = Path("/")) -> Kernel:
    """Three commands, and none where there is no device-mapper device."""
    if not any((root / "sys/class/block").glob("dm-*")) or not runner.has("dmsetup"):
        return Kernel()
    return _read_kernel(runner)


def _read_kernel(runner: Runner) -> Kernel:
    info = parse_info(runner.run(_INFO).stdout)
    rows = parse_dm_table(runner.run(["dmsetup", "table"]).stdout)
    mappings = {name: Mapping(name, *words[:2], *words[2:], rows.get(name, ())) for name, words in info.items()}
    caches = [mapping for mapping in mappings.values() if any(row[2] in (tables.CACHE, tables.WRITECACHE) for row in mapping.rows)]
    return Kernel(mappings, dm.read_status(runner) if caches else {})


@frozen
class Attached:
    """A cache as it is loaded. Names are the kernel's; None if the device is gone.

    :param cache_name: what the cache lies on.
    :param layout: where on it; None if it is not one of ours.
    :param past: what uses the origin past the cache, each as the rest of a sentence about it.
    """

    table: CacheTable
    origin_name: str | None
    cache_name: str | None
    layout: tables.Layout | None
    past: tuple[str, ...] = ()


def attached_of(mapping: Mapping, kernel: Kernel, devices: Devices) -> Attached | None:
    """The cache behind a mapping; None if it is none."""
    table = mapping.table
    if not isinstance(table, CacheTable):
        return None
    origin = _name(_by_number(devices, table.origin))
    top = _name(_by_number(devices, mapping.number))
    past = users_past(devices, origin, {top or ""}) if top is not None else ()
    parts = {role: kernel.by_number(number) for role, number in (("meta", table.metadata), ("data", table.data)) if number}
    linear = {role: part.table for role, part in parts.items() if part is not None and isinstance(part.table, LinearTable)}
    data = linear.get("data")
    below = _by_number(devices, data.device) if isinstance(data, LinearTable) else None
    if not isinstance(data, LinearTable):
        # Made by hand, straight on a device.
        direct = _by_number(devices, table.data)
        return Attached(table, origin, _name(direct), None, past)
    metadata = linear.get("meta")
    layout = tables.Layout(metadata.length if isinstance(metadata, LinearTable) else 0, data.length, table.block_size)
    return Attached(table, origin, _name(below), layout, past)


def with_own_origin(spec: DmCacheSpec, kernel: Kernel, devices: Devices) -> DmCacheSpec:
    """An item that names its own mapping as origin, which is what is mounted, with the device below it; any other item as it is."""
    top = kernel.mappings.get(spec.name)
    named = _at(devices, spec.origin)
    if spec.present or top is None or named is None or named.number != top.number:
        return spec
    table = top.table
    number = table.origin if isinstance(table, CacheTable) else table.device if isinstance(table, LinearTable) else ""
    origin = _by_number(devices, number)
    return replace(spec, origin=origin.stable_path or origin.path) if origin is not None else spec


def _by_number(devices: Devices, number: str) -> BlockDevice | None:
    return next((device for device in devices if device.number == number), None)


def _name(device: BlockDevice | None) -> str | None:
    return device.name if device is not None else None


def redundancy_of(devices: Devices, name: str | None, root: Path) -> str:
    """What protects a cache on this device."""
    device = devices.get(name) if name is not None else None
    redundant = cache_device.md_redundancy(root, device.name) if device is not None and device.kind == "md" else None
    if redundant is None:
        return cache_device.UNMIRRORED
    return cache_device.MIRRORED if redundant else cache_device.DEGRADED


def describe(kernel: Kernel, records: t.Mapping[str, Record], devices: Devices, root: Path = Path("/")) -> tuple[CacheState, ...]:
    """Every cache that LVM did not make, and those of ours that are known and not loaded."""
    states = []
    for mapping in kernel.mappings.values():
        found = attached_of(mapping, kernel, devices) if not mapping.uuid.startswith("LVM-") else None
        if found is not None:
            states.append(_loaded(mapping, found, kernel.status.get(mapping.name), devices, root))
    states += [_unloaded(record, devices) for name, record in records.items() if name not in kernel.mappings and record.table is not None]
    return tuple(states)


def _loaded(mapping: Mapping, found: Attached, status: dm.CacheStatus | None, devices: Devices, root: Path) -> CacheState:
    table = found.table
    status = status or dm.CacheStatus(table.kind)
    block = table.block_size
    state, problem = judge(mapping.name, found, status)
    top = _by_number(devices, mapping.number)
    counters = {"read_hits": status.read_hits, "read_misses": status.read_misses, "write_hits": status.write_hits, "write_misses": status.write_misses}
    counters["cache_errors"] = status.errors
    return CacheState(
        type=LAYER,
        name=mapping.name,
        kind=table.kind,
        device=f"/dev/mapper/{mapping.name}",
        device_name=_name(top),
        origin=_path(devices, found.origin_name),
        origin_name=found.origin_name,
        cache_devices=tuple(path for path in (_path(devices, found.cache_name),) if path),
        cache_device_names=(found.cache_name,) if found.cache_name else (),
        mode=table.mode,
        policy=tables.CLEANER if table.cleaner else status.policy,
        block_size=block,
        size=status.total * block if status.total is not None else None,
        used=status.used * block if status.used is not None else None,
        dirty=status.dirty * block if status.dirty is not None else None,
        metadata_size=status.metadata_size,
        metadata_used=status.metadata_used,
        redundancy=redundancy_of(devices, found.cache_name, root),
        state=state,
        problem=problem,
        settings=_settings(table),
        counters={name: count for name, count in counters.items() if count is not None},
    )


def judge(name: str, found: Attached, status: dm.CacheStatus) -> tuple[str, str]:
    """The state of a loaded cache in the words of the model, and what is wrong as a sentence."""
    origin = f"/dev/mapper/{name}"
    lost = "what it had not written back is only there" if not found.table.settled else "the origin has everything"
    if found.past:
        return "inconsistent", past_sentence(name, origin, node_of(found.origin_name or ""), found.past) + "."
    if found.cache_name is None:
        return "cache_missing", f"The cache device of {origin} is gone, and {lost}: reconnect it."
    if status.failed:
        return "failed", f"The kernel serves nothing from the cache of {origin} any more, and {lost}: check dmesg."
    if status.needs_check:
        return "needs_check", f"The kernel marked the metadata of the cache of {origin} as needing a check, and {lost}: check dmesg and run cache_check."
    if status.read_only:
        return "read_only", f"The metadata of the cache of {origin} cannot be written, and {lost}: check dmesg for errors of the cache device."
    if status.errors:
        return "failed", f"The writecache of {origin} has met {status.errors} errors, and {lost}: check dmesg for errors of its devices."
    return "ok", ""


def _unloaded(record: Record, devices: Devices) -> CacheState:
    table = record.table
    origin, fast = _at(devices, record.origin), _at(devices, record.cache_device)
    mode = table.mode if table is not None else None
    what = "it may hold what its origin does not have" if record.may_be_dirty else "its origin has everything"
    problem = f"The cache {record.name} is known to this host and is not running, and {what}: check the unit {LAYER} of it with systemctl and journalctl."
    return CacheState(
        type=LAYER,
        name=record.name,
        kind=table.kind if table is not None else tables.CACHE,
        device=None,
        device_name=None,
        origin=record.origin,
        origin_name=_name(origin),
        cache_devices=(record.cache_device,) if record.cache_device else (),
        cache_device_names=(fast.name,) if fast is not None else (),
        mode=mode,
        block_size=table.block_size if table is not None else None,
        state="inactive" if fast is not None else "cache_missing",
        problem=problem,
        settings=_settings(table) if table is not None else {},
    )


def _settings(table: CacheTable) -> dict[str, t.Any]:
    """The settings by the names that a user writes, as those of an LVM cache."""
    return {**table.settings, BLOCK_SIZE: table.block_size} if table.kind == tables.WRITECACHE else dict(table.settings)


def _at(devices: Devices, path: str) -> BlockDevice | None:
    try:
        return devices.resolve(path)
    except DeviceMissing:
        return None


def _path(devices: Devices, name: str | None) -> str | None:
    device = devices.get(name) if name is not None else None
    return (device.stable_path or device.path) if device is not None else None


def read_caches(devices: Devices, runner: Runner, root: Path = Path("/")) -> tuple[CacheState, ...]:
    """The raw caches of the host. Costs no command where there is no device-mapper device and no unit of ours."""
    records, _units = dm_cache_record.read_records(root)
    caches = any(set(device.dm_targets) & {tables.CACHE, tables.WRITECACHE} and not (device.dm_uuid or "").startswith("LVM-") for device in devices)
    if not caches and not records:
        return ()
    return describe(read_kernel(runner, root), records, devices, root)
