# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings about the drives of a host. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import TEMPERATURE_WARNING
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings


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
        yield Finding("critical", drive.path, "drive_status", f"{_label(drive)} reports that it is failing: replace it.", "failed", "passed")
    for name in drive.failing:
        yield Finding("critical", drive.path, "drive_attribute", f"{_label(drive)}: the attribute {name} is at its threshold: replace the drive.", name)
    for words in drive.warnings:
        severity = "warning" if words == TEMPERATURE_WARNING else "critical"
        advice = "check its cooling" if words == TEMPERATURE_WARNING else "replace it"
        yield Finding(severity, drive.path, "drive_warning", f"{_label(drive)} warns: {words}: {advice}.", words)


def _wear(drive: DriveHealth, limits: Limits) -> t.Iterator[Finding]:
    used = drive.wear_used_percent
    if used is None:
        return
    source = drive.evidence.get("wear_used_percent", "")
    if used >= limits.wear_used:
        words = f"{_label(drive)} has used {used}% of its rated endurance ({source}; the limit is {limits.wear_used}%): replace it."
        yield Finding("critical", drive.path, "drive_wear", words, used, limits.wear_used)
    elif used >= limits.wear_used_soon:
        words = f"{_label(drive)} has used {used}% of its rated endurance ({source}): have a replacement ready before it reaches {limits.wear_used}%."
        yield Finding("warning", drive.path, "drive_wear", words, used, limits.wear_used_soon)


def _spare(drive: DriveHealth) -> t.Iterator[Finding]:
    left, limit = drive.spare_percent, drive.spare_threshold_percent
    if left is not None and limit is not None and left <= limit:
        words = f"{_label(drive)} has {left}% of its spare blocks left, and its own limit is {limit}%: replace it."
        yield Finding("critical", drive.path, "drive_spare", words, left, limit)


def _replaced(drive: DriveHealth, limits: Limits) -> t.Iterator[Finding]:
    if drive.reallocated is not None and drive.reallocated >= limits.reallocated:
        words = f"{_label(drive)} has replaced {drive.reallocated} sectors (the limit is {limits.reallocated}): replace it."
        yield Finding("critical", drive.path, "drive_reallocated", words, drive.reallocated, limits.reallocated)
    if drive.pending:
        words = f"{_label(drive)} has {drive.pending} sectors that it cannot read and waits to replace: read it whole, and replace it if they stay."
        yield Finding("warning", drive.path, "drive_pending", words, drive.pending, 0)


def _unreadable(drive: DriveHealth) -> t.Iterator[Finding]:
    if drive.media_errors:
        words = f"{_label(drive)} could not correct {drive.media_errors} errors of its medium so far: check what is on it."
        yield Finding("warning", drive.path, "drive_media_errors", words, drive.media_errors, 0)


def _grown(drive: DriveHealth, before: Readings | None) -> t.Iterator[Finding]:
    earlier = before.drives.get(drive.serial or drive.path, {}) if before is not None else {}
    for attribute, noun in (("reallocated", "replaced sectors"), ("media_errors", "errors of the medium")):
        now, then = getattr(drive, attribute), earlier.get(attribute)
        if now is not None and then is not None and now > then:
            words = f"{_label(drive)}: {noun} went from {then} to {now} since the last reading: it is getting worse."
            yield Finding("warning", drive.path, f"drive_{attribute}_grown", words, now, then)


def _label(drive: DriveHealth) -> str:
    return f"{drive.path} ({drive.model})" if drive.model else drive.path
