# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several outputs of one tool about one host as one reading."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import ADAPTER_DRIVERS
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    DEGRADED,
    HEALTHY,
    NONE,
    UNKNOWN,
    Controller,
    Policy,
    Protection,
    Reading,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.words import address_of, is_spare, whole

#: Addresses of the drives of a volume, and how many more it has.
Members = t.Tuple[t.Tuple[str, ...], int]


def join(readings: t.Sequence[Reading]) -> Reading:
    """Several outputs of one tool about the same host as one; what is reported earlier wins, what is unknown is filled in."""
    controllers: dict[t.Any, Controller] = {}
    for part, reading in enumerate(readings):
        for number, controller in enumerate(reading.controllers):
            key = controller.id if controller.id != UNKNOWN else (part, number)
            known = controllers.get(key)
            controllers[key] = controller if known is None else merged(known, controller)
    problems = dict.fromkeys(problem for reading in readings for problem in reading.not_understood)
    owners = dict.fromkeys(number for reading in readings for number in reading.lost_of)
    return Reading(
        tuple(finished(controller) for controller in controllers.values()),
        tuple(problems),
        all(reading.complete for reading in readings),
        tuple(dict.fromkeys(clause for reading in readings for clause in reading.lost)),
        {number: tuple(clause for reading in readings for clause in reading.lost_of.get(number, ())) for number in owners},
    )


def merged(one: Controller, other: Controller) -> Controller:
    """One controller from two outputs; nothing known is overwritten."""
    return dataclasses.replace(
        filled(one, other),
        protection=_merged_protection(one.protection, other.protection),
        cache=filled(one.cache, other.cache),
        drive_cache={**other.drive_cache, **{name: value for name, value in one.drive_cache.items() if value != UNKNOWN or name not in other.drive_cache}},
        traits={**other.traits, **one.traits},
        volumes=tuple(_with_members_of(volume, other.volumes) for volume in _merged_by("id", one.volumes, other.volumes)),
        drives=_merged_by("address", one.drives, other.drives),
    )


def _merged_protection(summary: Protection, own: Protection) -> Protection:
    """The state of a unit in the summary of a controller and in the unit's own output."""
    if summary.kind == NONE:
        return summary
    # Without a row of the unit, the summary has bits of which some (a learn cycle is requested, it is warm) do not say that it fails.
    bits = summary.kind == UNKNOWN and summary.health == DEGRADED
    if summary.health == UNKNOWN or (summary.health != HEALTHY and own.health not in (UNKNOWN, HEALTHY)) or (bits and own.health == HEALTHY):
        # Its own output contains a learn cycle, a charge or a refusal that the summary does not.
        return filled(own, summary)
    merged = filled(summary, own)
    # What it is, is known where it is shown: a battery is named in the summary of cards that have a CacheVault.
    return dataclasses.replace(merged, kind=own.kind) if own.kind not in (UNKNOWN, NONE) else merged


def members_of_rows(drives: t.Sequence[t.Mapping[str, t.Any]]) -> Members:
    """The contents of a list of the drives of a volume; a missing drive has no address, a spare that is dedicated to it holds nothing of it."""
    addresses = [address_of(drive.get("EID:Slt")) for drive in drives if not is_spare(drive)]
    return tuple(address for address in addresses if address is not None), addresses.count(None)


def with_members(volume: Volume, members: t.Sequence[str], untold: int) -> Volume:
    """The volume with its drives from another list: it has as many as the longer list."""
    known = tuple(dict.fromkeys((*volume.members, *members)))
    total = max(len(volume.members) + volume.members_untold, len(members) + untold)
    return dataclasses.replace(volume, members=known, members_untold=max(total - len(known), 0))


def _with_members_of(volume: Volume, others: t.Sequence[Volume]) -> Volume:
    other = next((other for other in others if other.id == volume.id), None)
    return volume if other is None else with_members(volume, other.members, other.members_untold)


def finished(controller: Controller) -> Controller:
    """With what only the whole shows: SCSI addresses need the driver, the mode of old firmware the volumes and the drives."""
    if controller.driver != "megaraid_sas" and controller.driver not in ADAPTER_DRIVERS:
        return controller
    volumes = tuple(_placed(controller, volume) for volume in controller.volumes)
    # Adapters report no personality, and one output of them alone can look as if they passed everything through.
    open_question = controller.mode == UNKNOWN or controller.driver in ADAPTER_DRIVERS
    return dataclasses.replace(controller, volumes=volumes, mode=_shown_mode(controller) if open_question else controller.mode)


def _placed(controller: Controller, volume: Volume) -> Volume:
    """A volume with its SCSI address; IR firmware has no groups that would name its drives, so all that are in use can be some of them."""
    if controller.driver == "megaraid_sas":
        return dataclasses.replace(volume, scsi=volume.scsi or scsi_address(volume.id))
    used = sum(drive.usage == "configured" for drive in controller.drives)
    return volume if volume.members else dataclasses.replace(volume, members_untold=max(used, 1))


def _shown_mode(controller: Controller) -> str:
    """Older firmware does not name its personality; the volumes and the drives show what it does. A drive in use is in a volume, listed or not."""
    exposed = any(drive.usage in ("jbod", "unconfigured") for drive in controller.drives if controller.driver in ADAPTER_DRIVERS or drive.usage == "jbod")
    used = any(drive.usage in ("configured", "cache") for drive in controller.drives)
    if controller.volumes or used or controller.traits.get("announced", {}).get("volumes"):
        return "mixed" if exposed else "raid"
    if controller.driver in ADAPTER_DRIVERS:
        return "hba"
    return "jbod" if exposed else UNKNOWN


def scsi_address(number: str) -> t.Optional[tuple[int, int, int]]:
    """Where megaraid_sas puts a volume: two channels of 128 targets each follow the two channels of drives."""
    value = whole(number)
    return None if value is None else (2 + value // 128, value % 128, 0)


def _merged_by(key: str, ones: t.Sequence[t.Any], others: t.Sequence[t.Any]) -> tuple[t.Any, ...]:
    found = {getattr(one, key): one for one in ones}
    for other in others:
        name = getattr(other, key)
        found[name] = filled(found[name], other) if name in found else other
    return tuple(found.values())


def filled(one: t.Any, other: t.Any) -> t.Any:
    """A record whose unknown fields are taken from another record of the same thing."""
    changes = {}
    for entry in dataclasses.fields(one):
        mine, theirs = getattr(one, entry.name), getattr(other, entry.name)
        if isinstance(mine, Policy) and isinstance(theirs, Policy):
            if UNKNOWN in (mine.configured, mine.effective):
                changes[entry.name] = Policy(
                    mine.configured if mine.configured != UNKNOWN else theirs.configured, mine.effective if mine.effective != UNKNOWN else theirs.effective
                )
        elif _says_nothing(mine) and not _says_nothing(theirs):
            changes[entry.name] = theirs
    return dataclasses.replace(one, **changes) if changes else one


def _says_nothing(value: t.Any) -> bool:
    return value is None or value == UNKNOWN or value in ("", ())
