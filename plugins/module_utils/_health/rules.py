# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings about the SSD caches, drives, arrays and controllers of a host, and whether a flushed write survives a power failure.

What keeps data twice on a host besides its caches: MD arrays and volume groups, and the protection units of RAID controllers.

Sources: Documentation/admin-guide/md.rst (``level``, ``raid_disks``, ``degraded``, ``sync_action``); vgs(8), ``vg_missing_pv_count``.
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, UNMIRRORED
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import dirty_share
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import TEMPERATURE_WARNING
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import HEALTHY, NONE, UNKNOWN, writes_back
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS_OF_DRIVER
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import AT_RISK, DURABLE, read_stack

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.diagnosis import Diagnosis
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import CacheActivity
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Volume
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import RaidProvider
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import Verdict

#: Of a unit that will be well again by itself.
_PASSING = frozenset({"charging", "learning"})
#: What becomes well by itself, if nothing else happens.
_REBUILDING = frozenset({"rebuilding"})
_NOT_WHOLE = frozenset({"failed", "offline", "degraded", "partially_degraded"})


def array_findings(devices: Devices, root: Path = Path("/")) -> t.Iterator[Finding]:
    """MD arrays that lack members."""
    for device in devices:
        if device.kind != "md":
            continue
        folder = root / "sys/class/block" / device.name / "md"
        lacking, members = read_number(folder / "degraded"), (read_attribute(folder / "raid_disks") or "").split(" ", 1)[0]
        if not lacking:
            continue
        name = device.stable_path or device.path
        rebuilding = read_attribute(folder / "sync_action") in ("recover", "resync", "reshape")
        now = "it is being rebuilt" if rebuilding else "add a drive in place of the one that failed"
        words = f"{name} ({read_attribute(folder / 'level') or ''}, /dev/{device.name}) lacks {lacking} of {members} members: {now}."
        yield Finding("warning" if rebuilding else "critical", name, "array_degraded", words, lacking, 0)


def volume_group_findings(devices: Devices, runner: Runner) -> tuple[list[Finding], list[str]]:
    """Volume groups that lack physical volumes, and what could not be read; no command where there is no LVM."""
    if not any(_is_lvm(device) for device in devices) or not runner.has("vgs"):
        return [], []
    try:
        completed = runner.run(["vgs", "--reportformat", "json", "-o", "vg_name,vg_missing_pv_count"], item="vgs")
        return [_partial(name, missing) for name, missing in parse_missing(completed.stdout) if missing], []
    except StorageError as error:
        return [], [error.message]


def parse_missing(text: str) -> list[tuple[str, int]]:
    """Volume groups and how many physical volumes each lacks.

    :raises NotUnderstood: if it is no report of vgs.
    """
    try:
        return [(row["vg_name"], int(row["vg_missing_pv_count"])) for row in json.loads(text)["report"][0]["vg"]]
    except (ValueError, KeyError, IndexError, TypeError):
        raise NotUnderstood("The report of vgs could not be parsed.", item="vgs") from None


def _is_lvm(device: BlockDevice) -> bool:
    return device.kind == "lvm" or (device.signature is not None and device.signature.type == "LVM2_member")


def _partial(name: str, missing: int) -> Finding:
    words = f"The volume group {name} lacks {missing} of its physical volumes: reconnect them, or replace them with the data from a copy."
    return Finding("critical", name, "volume_group_partial", words, missing, 0)


def read_controllers(devices: Devices, runner: Runner, find_tools: t.Callable[[Runner], t.Sequence[RaidProvider]]) -> tuple[list[Controller], list[str]]:
    """The RAID controllers of a host; no tool is run if no disk is behind one."""
    drivers = {device.driver for device in devices if device.transport == "raid" and device.kind == "disk" and device.size}
    if not drivers:
        return [], []
    tools = registry.tools_for(drivers, find_tools(runner))
    if not tools:
        reported = sorted(str(driver) for driver in drivers)
        install = {driver: TOOLS_OF_DRIVER.get(driver, "the tool of its vendor") for driver in reported}
        return [], [f"The protection of the RAID controller ({driver}) is not known: install {tool}." for driver, tool in install.items()]
    host = registry.read_host(tools, tolerant=True)
    return [seen.controller for seen in host.controllers], list(host.problems)


def controller_findings(controllers: t.Iterable[Controller]) -> t.Iterator[Finding]:
    """Findings about RAID controllers."""
    for controller in controllers:
        yield from _protection(controller)
        yield from _module(controller)
        for volume in controller.volumes:
            yield from _volume(controller, volume)


def _protection(controller: Controller) -> t.Iterator[Finding]:
    """A unit that is not well: write-back without it loses data, and with it gone the controller mostly writes through."""
    unit = controller.protection
    if unit.health in (HEALTHY, UNKNOWN) and unit.kind != NONE:
        return
    back = [volume.name or volume.id for volume in controller.volumes if writes_back(volume.write.effective)]
    if unit.kind == NONE and not back:
        return
    subject = controller.label
    raw = f" ({unit.raw})" if unit.raw else ""
    what = "no battery and no capacitor" if unit.kind == NONE else f"a {'protection unit' if unit.kind == UNKNOWN else unit.kind} that is {unit.health}"
    if back:
        words = f"{subject} has {what}{raw} and still writes back on {', '.join(back)}: a power failure loses what is in its cache."
        yield Finding("warning" if unit.health in _PASSING else "critical", subject, "protection_unit", words, unit.health, HEALTHY)
    else:
        words = f"{subject} has {what}{raw}: it writes through until that is healthy again, which is slow."
        yield Finding("info" if unit.health in _PASSING else "warning", subject, "protection_unit", words, unit.health, HEALTHY)


def _module(controller: Controller) -> t.Iterator[Finding]:
    if controller.cache.status in ("temporarily_disabled", "permanently_disabled"):
        reason = f" ({controller.cache.reason})" if controller.cache.reason else ""
        words = f"{controller.label}: its cache is {controller.cache.status.replace('_', ' ')}{reason}."
        yield Finding("warning", controller.label, "controller_cache", words, controller.cache.status, "ok")
    if controller.cache.note:
        yield Finding(
            "info", controller.label, "controller_cache_note", f"{controller.label} reports of its cache: {controller.cache.note}", controller.cache.status
        )


def _volume(controller: Controller, volume: Volume) -> t.Iterator[Finding]:
    if volume.status not in _NOT_WHOLE | _REBUILDING:
        return
    subject = f"volume {volume.name or volume.id} of {controller.label}"
    words = f"The {subject} (RAID {volume.raid_level}) is {volume.status.replace('_', ' ')}."
    yield Finding("critical" if volume.status in _NOT_WHOLE else "warning", subject, "volume_status", words, volume.status, "optimal")


def read_verdicts(runner: Runner, root: Path, protected: t.Sequence[str], flushed: t.Sequence[str] = ()) -> tuple[dict[str, Verdict], tuple[str, ...]]:
    """The verdicts by device, and what could not be read.

    :param protected: drives whose cache is declared to survive a power cut; ``flushed``: virtual disks whose flushes are declared to reach media.
    """
    try:
        stack = read_stack(runner, root, protected, flushed=flushed)
    except StorageError as error:
        return {}, (error.message,)
    used = [device for device in stack.devices if device.mountpoints or device.kind == "zfs"]
    return {device.stable_path or device.path: stack.verdict(device) for device in used}, tuple(stack.problems)


def verdict_findings(verdicts: t.Mapping[str, Verdict]) -> t.Iterator[Finding]:
    """Devices on which a flushed write may be lost in a power cut."""
    for device, one in verdicts.items():
        if one.verdict == AT_RISK:
            words = f"A flushed write on {device} may be lost in a power failure: {one.reason}"
            yield Finding("warning", device, "verdict", words, AT_RISK, DURABLE)


def drive_findings(drives: t.Iterable[DriveHealth], limits: Limits, before: Readings | None = None) -> t.Iterator[Finding]:
    """The findings of all drives.

    :param before: an earlier reading, for what has grown since.
    """
    for drive in drives:
        yield from _own_verdict(drive)
        yield from _wear(drive, limits)
        yield from _spare(drive)
        yield from _replaced(drive, limits)
        yield from _unreadable(drive)
        yield from _grown(drive, before)


def reserve_findings(reserves: t.Iterable[Reserve]) -> t.Iterator[Finding]:
    """What is kept free of data, for information."""
    for reserve in reserves:
        if reserve.reserved:
            yield Finding(
                "info",
                reserve.path,
                "over_provisioning",
                f"{reserve.path}: {format_size(reserve.reserved)} ({reserve.percent:g}%) of {format_size(reserve.native)} are kept free of data.",
                reserve.percent,
            )


def _own_verdict(drive: DriveHealth) -> t.Iterator[Finding]:
    if drive.passed is False:
        yield Finding("critical", drive.path, "drive_status", f"{_drive_label(drive)} reports that it is failing: replace it.", "failed", "passed")
    for name in drive.failing:
        yield Finding("critical", drive.path, "drive_attribute", f"{_drive_label(drive)}: the attribute {name} is at its threshold: replace the drive.", name)
    for words in drive.warnings:
        severity = "warning" if words == TEMPERATURE_WARNING else "critical"
        advice = "check its cooling" if words == TEMPERATURE_WARNING else "replace it"
        yield Finding(severity, drive.path, "drive_warning", f"{_drive_label(drive)} warns: {words}: {advice}.", words)


def _wear(drive: DriveHealth, limits: Limits) -> t.Iterator[Finding]:
    used = drive.wear_used_percent
    if used is None:
        return
    source = drive.evidence.get("wear_used_percent", "")
    if used >= limits.wear_used:
        words = f"{_drive_label(drive)} has used {used}% of its rated endurance ({source}; the limit is {limits.wear_used}%): replace it."
        yield Finding("critical", drive.path, "drive_wear", words, used, limits.wear_used)
    elif used >= limits.wear_used_soon:
        words = f"{_drive_label(drive)} has used {used}% of its rated endurance ({source}): have a replacement ready before it reaches {limits.wear_used}%."
        yield Finding("warning", drive.path, "drive_wear", words, used, limits.wear_used_soon)


def _spare(drive: DriveHealth) -> t.Iterator[Finding]:
    left, limit = drive.spare_percent, drive.spare_threshold_percent
    if left is not None and limit is not None and left <= limit:
        words = f"{_drive_label(drive)} has {left}% of its spare blocks left, and its own limit is {limit}%: replace it."
        yield Finding("critical", drive.path, "drive_spare", words, left, limit)


def _replaced(drive: DriveHealth, limits: Limits) -> t.Iterator[Finding]:
    if drive.reallocated is not None and drive.reallocated >= limits.reallocated:
        words = f"{_drive_label(drive)} has replaced {drive.reallocated} sectors (the limit is {limits.reallocated}): replace it."
        yield Finding("critical", drive.path, "drive_reallocated", words, drive.reallocated, limits.reallocated)
    if drive.pending:
        words = f"{_drive_label(drive)} has {drive.pending} sectors that it cannot read and waits to replace: read it whole, and replace it if they stay."
        yield Finding("warning", drive.path, "drive_pending", words, drive.pending, 0)


def _unreadable(drive: DriveHealth) -> t.Iterator[Finding]:
    if drive.media_errors:
        words = f"{_drive_label(drive)} could not correct {drive.media_errors} errors of its medium so far: check what is on it."
        yield Finding("warning", drive.path, "drive_media_errors", words, drive.media_errors, 0)


def _grown(drive: DriveHealth, before: Readings | None) -> t.Iterator[Finding]:
    earlier = before.drives.get(drive.serial or drive.path, {}) if before is not None else {}
    for attribute, noun in (("reallocated", "replaced sectors"), ("media_errors", "errors of the medium")):
        now, then = getattr(drive, attribute), earlier.get(attribute)
        if now is not None and then is not None and now > then:
            words = f"{_drive_label(drive)}: {noun} went from {then} to {now} since the last reading: it is getting worse."
            yield Finding("warning", drive.path, f"drive_{attribute}_grown", words, now, then)


def _drive_label(drive: DriveHealth) -> str:
    return f"{drive.path} ({drive.model})" if drive.model else drive.path


#: A cache that is known and does not run serves nothing; every other state than ok may cost data.
_SEVERITY_OF_STATE = {"inactive": "warning"}
_ADVICE_OF_STATE = {
    "needs_check": "its metadata must be checked before it is used again",
    "read_only": "its metadata cannot be written, check its cache device",
    "failed": "the kernel serves nothing from it, check its cache device and dmesg",
    "cache_missing": "its cache device is not there: reconnect it, for the newest data may be only on it",
    "inactive": "it does not run",
    "unknown": "it should run, and the kernel reports no status of it: check dmesg and dmsetup status",
    "inconsistent": "its origin was used without it: check the data on it",
}


def cache_findings(cache: CacheState, passed: CacheActivity, diagnosis: Diagnosis, average: tuple[float | None, int], limits: Limits) -> t.Iterator[Finding]:
    """The findings of one cache.

    :param average: the mean of the dirty shares of the readings kept (0 to 1, None if unknown), and how many these are.
    """
    yield from _state(cache)
    yield from _redundancy(cache)
    yield from _dirty(cache, average, limits)
    yield from _metadata(cache, limits)
    yield from _errors(cache, passed)
    yield from _hits(cache, passed, limits)
    yield from _diagnosis(cache, diagnosis, limits)


def _state(cache: CacheState) -> t.Iterator[Finding]:
    if cache.state == "ok":
        return
    words = cache.problem or f"{_label(cache)} is {cache.state.replace('_', ' ')}: {_ADVICE_OF_STATE.get(cache.state, 'check it')}."
    if cache.name not in words:
        words = f"{_label(cache)}: {words}"
    yield Finding(_SEVERITY_OF_STATE.get(cache.state, "critical"), cache.name, "cache_state", words, cache.state, "ok")


def _redundancy(cache: CacheState) -> t.Iterator[Finding]:
    """What it means for the newest data if the cache device fails."""
    if cache.mode != "writeback" or cache.state == "inactive":
        return
    at_stake = f" ({format_size(cache.dirty)} now)" if cache.dirty else ""
    device = " and ".join(cache.cache_devices) or "its cache device"
    if cache.redundancy == DEGRADED:
        words = f"{_label(cache)} writes back and its mirror has lost a member: the newest data{at_stake} is on one drive only. Replace the member that failed."
        yield Finding("critical", cache.name, "cache_redundancy", words, cache.redundancy, "mirrored")
    elif cache.redundancy == UNMIRRORED:
        words = f"{_label(cache)} writes back to {device}, which is not mirrored: when it fails, the newest data{at_stake} is lost."
        yield Finding("warning", cache.name, "cache_redundancy", words, cache.redundancy, "mirrored")


def _dirty(cache: CacheState, average: tuple[float | None, int], limits: Limits) -> t.Iterator[Finding]:
    share = dirty_share(cache)
    if share is None or not cache.dirty:
        return
    now = round(100 * share, 1)
    if now >= limits.dirty:
        words = (
            f"{_label(cache)} is {now:g}% dirty ({format_size(cache.dirty)}; the limit is {limits.dirty}%): its origin does not keep up with the writes,"
            " and flushing the cache will take long."
        )
        yield Finding("critical", cache.name, "cache_dirty", words, now, limits.dirty)
        return
    mean = round(100 * (share if average[0] is None else average[0]), 1)
    if mean >= limits.dirty_average:
        over = f" in the mean of {average[1]} readings" if average[1] > 1 else ""
        words = f"{_label(cache)} is {mean:g}% dirty{over} (the limit is {limits.dirty_average}%): its origin hardly keeps up with the writes."
        yield Finding("warning", cache.name, "cache_dirty", words, mean, limits.dirty_average)


def _metadata(cache: CacheState, limits: Limits) -> t.Iterator[Finding]:
    """A cache without room for its metadata becomes read-only."""
    if not cache.metadata_size or cache.metadata_used is None:
        return
    used = round(100 * cache.metadata_used / cache.metadata_size, 1)
    if used >= limits.metadata:
        words = (
            f"{_label(cache)} uses {used:g}% of the {format_size(cache.metadata_size)} for its metadata (the limit is {limits.metadata}%): when it is"
            " full, the cache becomes read-only. Create the cache anew with more metadata or larger blocks."
        )
        yield Finding("warning", cache.name, "cache_metadata", words, used, limits.metadata)


def _errors(cache: CacheState, passed: CacheActivity) -> t.Iterator[Finding]:
    for name, device in (("cache_errors", "cache device"), ("origin_errors", "origin")):
        total, new = cache.counters.get(name, 0), passed.counters.get(name, 0)
        if new:
            words = f"{_label(cache)}: {new} errors of its {device} since the last reading: replace that drive."
            yield Finding("critical", cache.name, name, words, new, 0)
        elif total:
            words = f"{_label(cache)}: {total} errors of its {device} since it was loaded: check the health of that drive."
            yield Finding("warning", cache.name, name, words, total, 0)


def _hits(cache: CacheState, passed: CacheActivity, limits: Limits) -> t.Iterator[Finding]:
    reads = passed.reads
    # Such caches are not there for reads.
    if cache.kind == "writecache" or cache.mode in ("passthrough", "none"):
        return
    if passed.state != "measured" or reads.requests < limits.requests or reads.of_all is None or reads.of_all >= limits.read_hits:
        return
    words = (
        f"{_label(cache)} served {reads.of_all:g}% of {reads.requests} reads in {_span(passed.seconds)} (the limit is {limits.read_hits}%):"
        f" {reads.misses} missed and {reads.bypassed} bypassed it."
    )
    yield Finding("warning", cache.name, "cache_hits", words, reads.of_all, limits.read_hits)


def _diagnosis(cache: CacheState, diagnosis: Diagnosis, limits: Limits) -> t.Iterator[Finding]:
    share = diagnosis.uncacheable_percent
    if share is None or diagnosis.requests < limits.requests or share < limits.uncacheable:
        return
    since = " since the cache was loaded" if diagnosis.since == "load" else ""
    words = f"{_label(cache)}: {' '.join(diagnosis.sentences)}" if diagnosis.sentences else f"{_label(cache)}: {share:g}% of the requests cannot be cached."
    yield Finding("warning", cache.name, "cache_uncacheable", words.rstrip(".") + f"{since}.", share, limits.uncacheable)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _label(cache: CacheState) -> str:
    return f"{cache.type} {cache.name}"
