# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading outputs of storcli, perccli, storcli2 or perccli2: what all four print alike, what was not understood, and several outputs as one reading."""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import ADAPTER_DRIVERS
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CHARGING,
    DEGRADED,
    HEALTHY,
    NONE,
    UNKNOWN,
    CacheModule,
    Controller,
    Drive,
    Protection,
    Reading,
    Volume,
    filled,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import Data, Output, Reply, at_line, folded, rows, section, word
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.words import (
    BINARY_UNITS,
    CONTROLLER_STATES,
    DRIVE_CACHE,
    HEALTH,
    INTERFACES,
    MEDIA,
    POWERS,
    SIZE,
    TOPOLOGY_DRIVE_CACHE,
    VOLUME_STATES,
    WHOLE,
    address_of,
    first,
    identifier,
    is_spare,
    squeezed,
    volume_name,
    whole,
)

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


#: Properties of volumes and drives about write caches, and those of them whose meaning is known; labels as :func:`folded`.
_ABOUT_CACHES = re.compile(r"(?:write|disk|drive)cache|cache(?:policy|status|mode|setting)")
_KNOWN_CACHES = frozenset(
    {
        *("writecache(initialsetting)", "diskcachepolicy", "drivewritecachepolicy"),
        *("writecache", "currentwritecache", "defaultwritecache", "writecachechangeable"),
    }
)


class Reader:
    """One output while it is being read: collects what was not understood.

    :param provider: the name of the tool.
    """

    def __init__(self, output: Output, provider: str) -> None:
        self.output = output
        self.provider = provider
        self.problems: list[str] = list(output.not_understood)
        #: Volumes and drives that are there and cannot be identified; in outputs of several controllers each clause begins with its owner.
        self.lost: list[str] = []
        self.owner = ""
        #: Builds that print GiB mean powers of ten by GB; all others mean powers of two.
        self.decimal_gb = bool(BINARY_UNITS.search(output.text))

    def lose(self, raw: str) -> None:
        """A volume or drive that cannot be identified."""
        self.lost.append(f"{self.owner}{raw}")
        self.problems.append(self.lost[-1])

    def count(self, data: Data, label: str, listed: t.Sequence[Data]) -> None:
        """Whether a list is as long as the number that is printed above it; if there is no list, another output may have it."""
        raw = whole(data.get(label))
        if raw is not None and 0 < len(listed) < raw:
            self.lose(f"{label}: {raw}, and {len(listed)} are listed")

    def unique(self, listed: t.Iterable[Data], label: str) -> None:
        """Whether each name comes once in a list; of two that are alike, one may be another one whose name is damaged."""
        seen: set[str] = set()
        for row in listed:
            raw = volume_name(row) if label == "DG/VD" else word(row.get(label))
            name = squeezed(raw)
            name = name.rpartition("/")[2] if label == "DG/VD" else name
            if name in seen and name not in ("", "-"):
                self.lose(f"{label}: {raw}, twice in one list")
            seen.add(name)

    def not_understood(self, label: str, value: str) -> None:
        """A known label with an unknown value."""
        self.problems.append(self._at(label, value))

    def _at(self, label: str, value: str) -> str:
        found = re.search(re.escape(label) + r".{0,6}?" + re.escape(value), self.output.text) or re.search(re.escape(value), self.output.text)
        raw = f"{label}: {value}"
        return f"{raw} ({at_line(self.output.text, found.start())})" if found else raw

    def known(self, words: t.Mapping[str, str], label: str, value: t.Any, default: str = UNKNOWN) -> str:
        """Our word for the tool's; a word that is not in the table is recorded."""
        raw = word(value)
        if not raw or raw in ("-", "N/A", "NA"):
            return default
        key = squeezed(raw)
        if key in words:
            return words[key]
        self.not_understood(label, raw)
        return default

    def size(self, value: t.Any, decimal: t.Optional[bool] = None) -> t.Optional[int]:
        """Bytes."""
        found = SIZE.match(word(value))
        if not found:
            return None
        unit = found["unit"].lower()
        base = 1000 if (self.decimal_gb if decimal is None else decimal) and "i" not in unit else 1024
        return int(float(found["amount"]) * base ** POWERS[unit[0] if unit[0] in "kmgtp" else ""])

    def health(self, value: t.Any) -> str:
        """Health of a battery or a capacitor. ``Degraded(Need Attention)`` comes in several spellings."""
        raw = squeezed(word(value))
        if raw.startswith("degraded"):
            return CHARGING if "charging" in raw else DEGRADED
        plain, _bracket, addition = word(value).partition("(")
        if addition and HEALTH.get(squeezed(plain)) == HEALTHY:
            # Healthy with a reservation.
            if "charging" in raw:
                return CHARGING
            self.not_understood("State", word(value))
            return UNKNOWN
        return self.known(HEALTH, "State", plain)

    # Parts that all four tools print alike

    def drive(self, row: Data, usage: str) -> t.Optional[Drive]:
        """A row of a list of drives."""
        address = address_of(row.get("EID:Slt"))
        if address is None:
            self._lose_row(row, "EID:Slt", word(row.get("EID:Slt")))
            return None
        state = word(row.get("State"))
        return Drive(
            address=address,
            model=word(row.get("Model")) or None,
            size=self.size(row.get("Size")),
            media=self.known(MEDIA, "Med", row.get("Med")),
            interface=self.known(INTERFACES, "Intf", row.get("Intf")),
            usage=usage,
            state=UNKNOWN if state in ("", "-") else state.lower(),
        )

    def volume(self, row: Data) -> t.Optional[Volume]:
        """The contents of the row of a volume besides its cache policy."""
        group, slash, number = volume_name(row).rpartition("/")
        if not WHOLE.match(number) or not (slash or "DG/VD" not in row):
            self._lose_row(row, "DG/VD", volume_name(row))
            return None
        level = word(row.get("TYPE"))
        state = word(row.get("State"))
        return Volume(
            id=str(int(number)),
            name=word(row.get("Name")) or None,
            raid_level=level[4:] if level.upper().startswith("RAID") and level[4:] else UNKNOWN,
            status=VOLUME_STATES.get(squeezed(state), state.lower() or UNKNOWN),
            size=self.size(row.get("Size")),
            array=group if WHOLE.match(group) else None,
        )

    def _lose_row(self, row: Data, label: str, raw: str) -> None:
        """A row without what it is named by."""
        if raw == "-":
            self.not_understood(label, raw)
        elif raw:
            self.lose(self._at(label, raw))
        elif any(word(value) for value in row.values()):
            self.lose(f"a row without {label}: {', '.join(f'{name}: {word(value)}' for name, value in row.items() if word(value))}"[:200])

    def unread_caches(self, properties: Data) -> None:
        """Properties about write caches under labels that are not known: they may say the contrary of those that are."""
        for label, value in properties.items():
            if _ABOUT_CACHES.search(folded(label)) and folded(label) not in _KNOWN_CACHES and word(value) not in ("", "-", "N/A", "NA"):
                self.not_understood(label, word(value))

    def with_properties(self, volume: Volume, properties: Data, drive_cache_label: str) -> Volume:
        """The volume with its properties besides its write policy."""
        self.unread_caches(properties)
        os_device = word(properties.get("OS Drive Name"))
        return dataclasses.replace(
            volume,
            wwn=identifier(properties.get("SCSI NAA Id")),
            drive_cache=self.known(DRIVE_CACHE, drive_cache_label, properties.get(drive_cache_label)),
            os_device=os_device if os_device.startswith("/") else None,
        )

    def topology(self, data: Data, span: str) -> tuple[dict[str, str], dict[str, Members]]:
        """The drive cache policy of each drive group, and its drives without those that only wait for one of them to fail.

        :param span: the label of the column that is empty in the line of the whole group.
        """
        policies: dict[str, str] = {}
        members: dict[str, Members] = {}
        for row in rows(data.get("TOPOLOGY")):
            group = word(row.get("DG"))
            address = address_of(row.get("EID:Slot"))
            if is_spare(row):
                continue
            if word(row.get("Type")) == "DRIVE" or address is not None:
                reported, untold = members.get(group, ((), 0))
                members[group] = (reported, untold + 1) if address is None else ((*reported, address), untold)
            elif word(row.get(span)) == "-":
                policies[group] = self.known(TOPOLOGY_DRIVE_CACHE, "PDC", row.get("PDC"))
        return policies, members


class Generation:
    """One answer, in the layout of a generation of the tools."""

    def __init__(self, reader: Reader, answer: Reply) -> None:
        self.reader = reader
        self.answer = answer
        self.data = answer.data
        self.hardware, self.basics, self.version, self.state = (section(self.data.get(name)) for name in ("HwCfg", "Basics", "Version", "Status"))

    def told(self, where: Data, *labels: str) -> str:
        """A value from a section of ``show all``, or from the top, where ``show`` prints it."""
        return first(*(place.get(label) for label in labels for place in (where, self.data)))

    def cache(self, memory: int | None) -> CacheModule:
        return CacheModule(status="absent" if memory == 0 else UNKNOWN, memory=memory)

    def status(self) -> str:
        raw = self.told(self.state, "Controller Status")
        return CONTROLLER_STATES.get(squeezed(raw), raw.lower()) or UNKNOWN

    def with_topology(self, volumes: t.Sequence[Volume], span: str) -> t.Iterator[Volume]:
        """The volumes with the policies and the members that the topology has of their groups."""
        policies, members = self.reader.topology(self.data, span)
        groups = [volume.array for volume in volumes]
        for volume in volumes:
            group = volume.array or ""
            if volume.drive_cache == UNKNOWN and groups.count(volume.array) == 1:
                volume = dataclasses.replace(volume, drive_cache=policies.get(group, UNKNOWN))
            yield with_members(volume, *members.get(group, ((), 0)))


def major_version(version: str) -> int:
    number = whole(version.split(".")[0])
    return 0 if number is None else number


def interpreted(reader: Reader, generation: type[t.Any]) -> Reading:
    """The reading of an output whose layout a generation of the tools has."""
    parts, lost_of = [], {}
    for answer in reader.output.answers:
        number = word(answer.status.get("Controller"))
        if number and not WHOLE.match(number):
            reader.lose(f"Controller: {number}")
        reader.owner = f"controller {number}: " if number and len(reader.output.answers) > 1 else ""
        before = len(reader.lost)
        controllers = list(generation(reader, answer).controllers())
        parts += [Reading((controller,)) for controller in controllers]
        if number and {controller.id for controller in controllers} <= {number}:
            lost_of[number] = (*lost_of.get(number, ()), *reader.lost[before:])
    return dataclasses.replace(
        join(parts),
        not_understood=tuple(dict.fromkeys(reader.problems)),
        lost=tuple(dict.fromkeys(reader.lost)),
        lost_of={number: clauses for number, clauses in lost_of.items() if clauses},
        complete=reader.output.complete,
    )
