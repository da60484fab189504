# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The health of a host as metrics. Pure.

A device has one label in all its series, its persistent path; what describes it (model, serial, firmware) is in its ``_info`` metric only,
so that a firmware update starts no new series.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import STATES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._health.prometheus import Family, Labels, family, render, states
from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import zfs_families
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller import model as raid
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import WORST_FIRST

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.zfs import ZfsHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller

#: What the state of a protection unit can be; ``none``: there is no unit.
_PROTECTION = (raid.HEALTHY, raid.CHARGING, raid.LEARNING, raid.DEGRADED, raid.FAILED, raid.MISSING, raid.NONE, raid.UNKNOWN)


@frozen
class Measured:
    """What is exported of one host.

    :param verdicts: by device; empty if they were not read.
    :param unread: how many items could not be read.
    :param time: seconds since 1970.
    """

    caches: t.Sequence[CacheState] = ()
    drives: t.Sequence[DriveHealth] = ()
    reserves: t.Sequence[Reserve] = ()
    controllers: t.Sequence[Controller] = ()
    findings: t.Sequence[Finding] = ()
    verdicts: t.Mapping[str, str] | None = None
    zfs: ZfsHealth | None = None
    unread: int = 0
    time: float = 0.0


def exposition(host: Measured) -> str:
    """The whole file. A value that is not known has no sample."""
    families = [*_of_caches(host.caches), *_of_drives(host.drives, host.reserves), *_of_controllers(host.controllers)]
    families += zfs_families(host.zfs) if host.zfs is not None else []
    families.append(_of_verdicts(host.verdicts or {}))
    families.append(_of_findings(host.findings))
    families.append(family("cachefleet_health_unread", "gauge", "Items that could not be read.", [((), host.unread)]))
    families.append(family("cachefleet_health_last_run_timestamp_seconds", "gauge", "Time of the last health check of this host.", [((), host.time)]))
    return render(families)


def _of_caches(caches: t.Sequence[CacheState]) -> t.Iterator[Family]:
    for name, attribute, about in (
        ("size", "size", "Size of the cache."),
        ("used", "used", "Used part of the cache."),
        ("dirty", "dirty", "Data in the cache that is not yet on the origin."),
        ("metadata_size", "metadata_size", "Capacity for the metadata of the cache."),
        ("metadata_used", "metadata_used", "Used part of the metadata of the cache."),
    ):
        yield family(f"cachefleet_cache_{name}_bytes", "gauge", about, [(_cache(cache), getattr(cache, attribute)) for cache in caches])
    for direction in ("read", "write"):
        names = {"hit": f"{direction}_hits", "miss": f"{direction}_misses", "bypass": f"bypassed_{direction}s"}
        samples = [((*_cache(cache), ("result", result)), cache.counters.get(counter)) for cache in caches for result, counter in names.items()]
        about = f"{direction.capitalize()} requests by result, since the kernel counts for this cache."
        yield family(f"cachefleet_cache_{direction}s_total", "counter", about, samples)
    errors = [((*_cache(cache), ("side", side)), cache.counters.get(f"{side}_errors")) for cache in caches for side in ("cache", "origin")]
    yield family("cachefleet_cache_errors_total", "counter", "Errors of the cache device or of the origin.", errors)
    present = [sample for cache in caches for sample in states(_cache(cache), "state", cache.state, STATES)]
    yield family("cachefleet_cache_state", "gauge", "1 for the present state of the cache.", present)
    info = [((*_cache(cache), ("mode", cache.mode or raid.UNKNOWN), ("redundancy", cache.redundancy)), 1.0) for cache in caches]
    yield family("cachefleet_cache_info", "gauge", "Mode of the cache, and redundancy of its dirty blocks.", info)


def _of_drives(drives: t.Sequence[DriveHealth], reserves: t.Sequence[Reserve]) -> t.Iterator[Family]:
    for name, attribute, factor, kind, about in (
        ("wear_used_ratio", "wear_used_percent", 0.01, "gauge", "Used part of the rated endurance; may exceed 1."),
        ("spare_ratio", "spare_percent", 0.01, "gauge", "Remaining part of the spare blocks."),
        ("reallocated_sectors", "reallocated", 1, "gauge", "Reallocated sectors or blocks."),
        ("pending_sectors", "pending", 1, "gauge", "Sectors that are pending reallocation."),
        ("media_errors_total", "media_errors", 1, "counter", "Uncorrectable read errors."),
        ("unsafe_shutdowns_total", "unsafe_shutdowns", 1, "counter", "Power losses without a preceding shutdown command."),
        ("written_bytes_total", "written_bytes", 1, "counter", "Data written to the drive by hosts."),
        ("power_on_seconds_total", "power_on_hours", 3600, "counter", "Time the drive was on."),
        ("temperature_celsius", "temperature", 1, "gauge", "Temperature of the drive."),
    ):
        rows = [(_device(drive.path), getattr(drive, attribute)) for drive in drives]
        yield family(f"cachefleet_drive_{name}", kind, about, [(labels, None if value is None else value * factor) for labels, value in rows])
    passed = [(_device(drive.path), None if drive.passed is None else float(drive.passed)) for drive in drives]
    yield family("cachefleet_drive_passed", "gauge", "1 if the drive passes its own health assessment, 0 if it is failing.", passed)
    kept = [(_device(reserve.path), reserve.reserved) for reserve in reserves]
    yield family("cachefleet_drive_reserved_bytes", "gauge", "Over-provisioning: capacity of an SSD that is kept free of data.", kept)
    info = [((*_device(drive.path), *_described(drive, "model", "serial", "firmware", "protocol", "media")), 1.0) for drive in drives]
    yield family("cachefleet_drive_info", "gauge", "Model, serial number and firmware of the drive.", info)


def _of_controllers(controllers: t.Sequence[Controller]) -> t.Iterator[Family]:
    units = [
        sample
        for one in controllers
        # A controller without a unit has no health, and an unknown one is not the same as none.
        for sample in states(_controller(one), "state", raid.NONE if one.protection.kind == raid.NONE else one.protection.health, _PROTECTION)
    ]
    yield family("cachefleet_controller_protection_state", "gauge", "1 for the present state of the battery or capacitor of the controller.", units)
    back = [(_controller(one), sum(raid.writes_back(volume.write.effective) is True for volume in one.volumes)) for one in controllers]
    yield family("cachefleet_controller_writeback_volumes", "gauge", "Volumes for which the controller uses write-back now.", back)
    info = [((*_controller(one), *_described(one, "model", "serial", "firmware"), ("protection", one.protection.kind)), 1.0) for one in controllers]
    yield family("cachefleet_controller_info", "gauge", "Model, serial number and firmware of the controller, and what protects its cache.", info)


def _of_verdicts(verdicts: t.Mapping[str, str]) -> Family:
    samples = [sample for device, verdict in verdicts.items() for sample in states(_device(device), "verdict", verdict, WORST_FIRST)]
    return family("cachefleet_device_verdict", "gauge", "1 for the verdict: whether an acknowledged, flushed write survives a power failure.", samples)


def _of_findings(findings: t.Sequence[Finding]) -> Family:
    # Several lines of one check about one subject are one series, and a series may not come twice.
    problems = [finding for finding in findings if finding.severity != "info"]
    labels = {(("check", finding.check), ("severity", finding.severity), ("subject", finding.subject)) for finding in problems}
    return family("cachefleet_problem", "gauge", "1 for each problem that was found.", [(one, 1.0) for one in labels])


def _cache(cache: CacheState) -> Labels:
    return (("cache", cache.name), ("type", cache.type))


def _device(path: str) -> Labels:
    return (("device", path),)


def _controller(controller: Controller) -> Labels:
    return (("controller", controller.id), ("provider", controller.provider))


def _described(item: t.Any, *names: str) -> Labels:
    return tuple((name, getattr(item, name) or "") for name in names)
