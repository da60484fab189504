# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The LVM caches of a host, in the words of every type of cache."""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device, dm
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import UNMIRRORED
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE, MIGRATION_THRESHOLD
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import health as lvm_health
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import metadata as lvm_metadata
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import report as lvm_report
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import CLEANER, GONE, INTEGRITY, LAYER, LvmState, kind_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, NotUnderstood, TimedOut

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_SIGNATURE = "LVM2_member"
#: Seconds to wait for LVM's lock before a report is read without it.
_PATIENCE = 20.0
_COUNTERS = ("read_hits", "read_misses", "write_hits", "write_misses")

#: LVM 2.03.16 was seen to refuse the last step ("invalid on LV with properties: lv_is_raid_with_integrity"), and 2.03.31 to do it with every kind of cache.
_CACHES_INTEGRITY = (2, 3, 31)


def read_caches(devices: Devices, runner: Runner, root: Path = Path("/")) -> tuple[CacheState, ...]:
    """The LVM caches of the host, running or not; with none, one report of LVM, and nothing where no device belongs to LVM.

    A cached volume that is not active is unknown to device-mapper, so that only LVM can report that there is none.
    """
    if not any(_of_lvm(device) for device in devices) or not runner.has("lvm"):
        return ()
    report = _read_report_of_busy(runner)
    if not any(volume.cached for volume in report.volumes):
        return ()
    kernel, tables = read_kernel(runner, report.volumes)
    redundant, degraded = read_arrays(devices, root)
    state = LvmState(
        with_block_sizes(report.volumes, tables),
        report.physical,
        devices,
        pv_devices(report, devices),
        kernel=kernel,
        tables=tables,
        redundant=redundant,
        degraded=degraded,
    )
    state = replace(state, unused=lvm_metadata.unused(state, None, root))
    return tuple(describe(state, volume) for volume in state.volumes if volume.cached)


def describe(state: LvmState, cached: LogicalVolume) -> CacheState:
    pool = state.pool_of(cached)
    kernel = state.kernel.get(cached.full_name)
    condition, reason = lvm_health.diagnose(state, cached)
    under = state.devices_under(pool) if pool is not None else set()
    fast = [device for device in (state.devices.get(name) for name in sorted(under - {GONE})) if device is not None]
    device, origin = device_of(state.devices, cached.vg, cached.name), device_of(state.devices, cached.vg, next(iter(cached.devices), ""))
    figures = kernel if kernel is not None and not kernel.failed else dm.CacheStatus()
    block = cached.chunk_size or figures.block_size
    return CacheState(
        type=LAYER,
        name=cached.full_name,
        kind=kind_of(cached, pool),
        device=(f"/dev/mapper/{device.dm_name}" if cached.hidden else f"/dev/{cached.full_name}") if device is not None else None,
        device_name=device.name if device is not None else None,
        origin=_path(origin),
        origin_name=origin.name if origin is not None else None,
        cache_devices=tuple(_path(one) or one.path for one in fast),
        cache_device_names=tuple(one.name for one in fast),
        mode=_mode(state, cached, figures),
        policy=None if cached.writecache else figures.policy or cached.kernel_policy or cached.policy,
        block_size=block,
        size=pool.size if pool is not None else None,
        used=_bytes(figures.used, block),
        dirty=_bytes(figures.dirty, block),
        metadata_size=figures.metadata_size,
        metadata_used=figures.metadata_used,
        redundancy=state.redundancy(under, pool) if pool is not None and condition != "cache_missing" else UNMIRRORED,
        layout=_layout(state, pool, under) if pool is not None else "",
        state=condition,
        problem=f"{cached.full_name} {reason}." if reason else "",
        settings=_settings(cached),
        counters={name: value for name in _COUNTERS for value in [getattr(figures, name)] if value is not None},
    )


def _layout(state: LvmState, pool: LogicalVolume, under: t.AbstractSet[str]) -> str:
    """Of a fast volume on several devices that is no mirror of two."""
    data = state.volume(pool.vg, f"{pool.name}_cdata") or pool
    if len(under) < 2 or (len(under) == 2 and data.segtype == "raid1" and state.mirrors(pool)):
        return ""
    if data.segtype == "striped":
        return f"is striped over {len(under)} devices"
    return f"is a {data.segtype} of {len(under)} devices" if data.segtype.startswith("raid") else f"lies on {len(under)} devices, one after the other"


def read_report(runner: Runner, *options: str, timeout: float | None = None) -> lvm_report.Report:
    """Everything that LVM reports, in one command.

    :param options: further options of LVM.
    :param timeout: seconds to wait for LVM's lock; those of the runner if None.
    :raises TimedOut: if another process held the lock all the time.
    :raises CommandFailed: if LVM printed no report and failed.
    :raises NotUnderstood: if it printed something else.
    """
    completed = _run_report(runner, options, timeout)
    try:
        return lvm_report.parse_report(completed.stdout)
    except NotUnderstood as error:
        if completed.rc:
            raise completed.failure() from None
        error.completed = completed
        raise


def _run_report(runner: Runner, options: t.Sequence[str], timeout: float | None) -> Completed:
    """The report, without the newer fields that this LVM does not have.

    :raises CommandFailed: if it does not have another field.
    """
    without: frozenset[str] = frozenset()
    while True:
        # LVM reports what it can and ends with 5 when something about another volume group is wrong: the report counts.
        completed = runner.run([*lvm_report.report_command(without), *options], ok=(0, 5), timeout=timeout)
        lacking = lvm_report.fields_not_recognised(completed.stderr) if completed.rc else frozenset()
        if not lacking:
            return completed
        if not lacking <= frozenset(lvm_report.NEWER_FIELDS) - without:
            raise completed.failure()
        without |= lacking


def _read_report_of_busy(runner: Runner) -> lvm_report.Report:
    """The same while LVM may be at work: it holds its lock for as long as it flushes a cache, which can be hours.

    Without the lock a report may show a volume group in the middle of a change. That is sufficient for reports only.
    """
    try:
        return read_report(runner, timeout=_PATIENCE)
    except TimedOut:
        return read_report(runner, "--nolocking")


def caches_integrity(runner: Runner, volumes: t.Iterable[LogicalVolume]) -> bool:
    """Whether this LVM attaches a cache to a RAID volume with integrity; it is only asked where there is one."""
    if not any(volume.segtype == INTEGRITY for volume in volumes):
        return False
    version = re.search(r"LVM version:\s+(\d+)\.(\d+)\.(\d+)", runner.run(["lvm", "version"], ok=None).stdout)
    return version is not None and tuple(map(int, version.groups())) >= _CACHES_INTEGRITY


def read_kernel(runner: Runner, volumes: t.Iterable[LogicalVolume]) -> tuple[dict[str, dm.CacheStatus], dict[str, dm.CacheTable]]:
    """The kernel's status of each cached volume, and its table where the status is not sufficient."""
    cached = {volume.full_name: dm.device_name(volume.vg, volume.name) for volume in volumes if volume.cached}
    if not cached:
        return {}, {}
    status = dm.read_status(runner)
    layers = {full_name: dm.layer_of(status, name) for full_name, name in cached.items()}
    kernel = {full_name: status[name] for full_name, name in layers.items() if name in status}
    # A failed cache shows no mode, and a writecache not that it only writes back.
    if not any(one.failed or one.target == "writecache" for one in kernel.values()):
        return kernel, {}
    tables = dm.read_tables(runner)
    return kernel, {full_name: tables[name] for full_name, name in layers.items() if name in tables}


def with_block_sizes(volumes: t.Iterable[LogicalVolume], tables: t.Mapping[str, dm.CacheTable]) -> tuple[LogicalVolume, ...]:
    """The same volumes with the block size of each active writecache, which LVM 2.03.11 does not report."""

    def known(volume: LogicalVolume) -> LogicalVolume:
        table = tables.get(volume.full_name)
        return replace(volume, chunk_size=table.block_size) if volume.writecache and not volume.chunk_size and table is not None else volume

    return tuple(map(known, volumes))


def read_arrays(devices: Devices, root: Path) -> tuple[frozenset[str], frozenset[str]]:
    """The MD arrays that survive the loss of a member, and those that would, if they had all of them."""
    arrays = {device.name: cache_device.md_redundancy(root, device.name) for device in devices if device.kind == "md"}
    redundant = frozenset(name for name, survives in arrays.items() if survives)
    return redundant, frozenset(name for name, survives in arrays.items() if survives is False)


def pv_devices(report: lvm_report.Report, devices: Devices) -> dict[str, str]:
    """The kernel name behind every physical volume that is there, by the path that LVM reports."""
    names = {}
    for pv in report.physical:
        if pv.missing:
            continue
        try:
            names[pv.path] = devices.resolve(pv.path).name
        except DeviceMissing:
            continue
    return names


def _of_lvm(device: BlockDevice) -> bool:
    return device.kind == "lvm" or (device.signature is not None and device.signature.type == _SIGNATURE)


def device_of(devices: Devices, vg: str, name: str) -> BlockDevice | None:
    """The device of a volume that is active, hidden or not."""
    dm_name_of_lv = dm.device_name(vg, name)
    return next((device for device in devices if device.dm_name == dm_name_of_lv), None)


def _path(device: BlockDevice | None) -> str | None:
    return (device.stable_path or device.path) if device is not None else None


def _mode(state: LvmState, cached: LogicalVolume, figures: dm.CacheStatus) -> str:
    """What the kernel does; of a failed cache its table, and of one that does not run what LVM has stored."""
    table = state.tables.get(cached.full_name)
    return figures.mode or (table.mode if table is not None else cached.mode)


def _settings(cached: LogicalVolume) -> dict[str, t.Any]:
    """The settings by the names that a user writes; the kernel shows others, which the policy takes and ignores."""
    if not cached.writecache:
        stored = {**(cached.settings or {}), **(cached.kernel_settings or {})}
        return {key: int(value) for key, value in stored.items() if key == MIGRATION_THRESHOLD and value.isdigit()}
    settings = {key: int(value) for key, value in (cached.settings or {}).items() if key != CLEANER and value.isdigit()}
    return {**settings, BLOCK_SIZE: cached.chunk_size} if cached.chunk_size else settings


def _bytes(blocks: int | None, block: int | None) -> int | None:
    return blocks * block if blocks is not None and block else None
