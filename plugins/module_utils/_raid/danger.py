# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Settings that keep acknowledged writes where a power cut loses them: refused unless their item allows it."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.protected_drives import declares
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CACHED,
    DEFAULT,
    DISABLED,
    ENABLED,
    PER_DRIVE,
    WRITEBACK_ALWAYS,
    Controller,
    Drive,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.provider import configured
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.stack_facts import holding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.target import RaidTarget


def check(target: RaidTarget) -> None:
    """
    :raises Refused: if a setting for this target, or what its command sets besides, is dangerous, and its own entry does not allow that.
    """
    found = _danger(target)
    if found is not None and not target.allowed:
        raise Refused(f"{target.label}: {found}. Set allow_unprotected: true on this entry only if its data may be lost.", item=target.item)


def _danger(target: RaidTarget) -> str | None:
    for attribute, value in target.settings.items():
        found = _of_setting(target, attribute, value) or _of_command(target, attribute, value)
        if found is not None:
            return found
    return None


def _of_setting(target: RaidTarget, attribute: str, value: t.Any) -> str | None:
    """A setting that is dangerous whether or not it is in effect already: the permission belongs to the inventory."""
    if attribute == "write" and value == WRITEBACK_ALWAYS:
        return (
            f"write: {WRITEBACK_ALWAYS} continues to acknowledge writes from the controller's memory when its protection has failed,"
            " and a power failure loses them"
        )
    if attribute == "io" and value == CACHED:
        return f"io: {CACHED} caches writes whatever the write policy is, and continues when the protection has failed"
    if attribute == "no_battery_write_cache" and value == ENABLED:
        return "no_battery_write_cache: enabled acknowledges writes from the controller's memory without any protection, and a power failure loses them"
    if not _is_drive_cache(attribute) or _are_protected(target):
        return None
    label = attribute.replace(".", " ")
    if value == ENABLED:
        return (
            f"{label}: enabled keeps writes in the memory of drives, the controller answers flushes itself, and a power failure loses them "
            "unless the drives protect their own cache, which the controller does not report (storage_protected_drives declares it)"
        )
    if value == DEFAULT and configured(target.subject, attribute) != DEFAULT:
        return f"{label}: default leaves the caches of drives, now {configured(target.subject, attribute)}, to the drives, and most have them on"
    if value == PER_DRIVE and configured(target.subject, attribute) == DISABLED and not _all_drives_off(target):
        return (
            f"{label}: {PER_DRIVE} makes each drive use its own setting, which cannot be read while {DISABLED} applies to all; "
            "with drives: [{address: all, write_cache: disabled}] beside it, none of them stays on"
        )
    return None


def _are_protected(target: RaidTarget) -> bool:
    """Whether all drives that the setting is for are declared to keep their cache."""
    if not target.spec.protected_drives:
        return False
    subject = target.subject
    if isinstance(subject, Drive):
        drives: t.Sequence[t.Optional[Drive]] = [subject]
    elif isinstance(subject, Volume):
        drives = [] if subject.members_untold else holding(target.controller, subject)
    else:
        drives = target.controller.drives
    declared = target.spec.protected_drives
    return bool(drives) and all(drive is not None and declares(declared, (drive.serial, drive.wwn, drive.model)) for drive in drives)


def _all_drives_off(target: RaidTarget) -> bool:
    """Whether the same run switches the caches of all drives off one by one."""
    return any(one.for_all and one.settings.get("write_cache") == DISABLED for one in target.spec.drives)


def _of_command(target: RaidTarget, attribute: str, value: t.Any) -> str | None:
    """A change that is dangerous for what comes with it."""
    if target.provider.agrees(target.controller, target.subject, attribute, value):
        return None
    if target.follows(attribute, value).get("write") == WRITEBACK_ALWAYS:
        return (
            f"{attribute}: {value} switches write-back on with it (one switch is for both), and with no_battery_write_cache enabled that is without "
            "any protection"
        )
    unprotected = (target.spec.settings.get("no_battery_write_cache") or target.controller.no_battery_write_cache) == ENABLED
    if isinstance(target.subject, Controller) and attribute == "cache_ratio" and value < 100 and unprotected:
        return f"cache_ratio: {value} gives a share of the cache to writes, and with no_battery_write_cache enabled that is without any protection"
    return None


def _is_drive_cache(attribute: str) -> bool:
    return attribute.split(".")[0] in ("drive_cache", "write_cache")
