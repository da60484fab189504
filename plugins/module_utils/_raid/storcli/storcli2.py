# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""storcli2 and perccli2 (SAS4 controllers: MegaRAID 96xx, PERC 12, Cisco tri-mode 24G): reading and setting.

Its JSON has the frame of storcli's and other labels in it: the policy of a volume is two columns (``CurrentCache``,
``DefaultCache``), volumes and drives are lists, the protection is an energy pack, and there is no I/O policy. It takes one
property per ``set``; anything else is a syntax error in plain text. Success exits with 6 at times.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    ADAPTIVE,
    MISSING,
    NONE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITETHROUGH,
    Controller,
    Drive,
    Policy,
    Protection,
    Reading,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.output import Data, Output, folded, read_output, rows, section, word
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.provider import DRIVE_CACHE_WORDS, READ_WORDS, WRITE_WORDS, SettingWords, StorCli
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.reader import (
    Generation,
    Reader,
    interpreted,
    join,
    major_version,
    members_of_rows,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli.words import (
    CONTROLLER_STATES,
    DRIVE_LIST,
    DRIVE_WRITE_CACHE,
    PERSONALITIES,
    USAGES,
    VOLUME_KEY,
    VOLUME_LIST,
    announced,
    configured_and_effective,
    first,
    flag,
    flags,
    identifier,
    is_drive_key,
    is_spare,
    learn_cycle_of,
    pci_address,
    squeezed,
    whole,
)

__all__ = ["PercCli2", "StorCli2", "join", "parse"]

READ_COLUMN = {"nr": NONE, "nora": NONE, "r": READ_AHEAD, "ra": READ_AHEAD, "adra": ADAPTIVE}
WRITE_COLUMN = {"wt": WRITETHROUGH, "wb": WRITEBACK, "awb": WRITEBACK_ALWAYS, "fwb": WRITEBACK_ALWAYS}
KINDS = {"supercap": "capacitor", "capacitor": "capacitor", "battery": "battery", "bbu": "battery"}

VOLUME_FLAGS = {
    "can_set_read": "Support Changing Read Policy",
    "can_set_write": "Support Changing Write Policy",
    "can_set_drive_cache": "Support Changing Disk Cache Policy",
}
SSD_DRIVE_CACHE = "Support SSD Ld Disk Cache Change"


def parse(text: str, provider: str = "storcli2") -> Reading:
    """Any output of storcli2 or perccli2: JSON or plain text, of any of its commands."""
    return interpret(read_output(text), provider)


def interpret(output: Output, provider: str) -> Reading:
    """The contents of an output of storcli2 or perccli2."""
    if output.version and major_version(output.version) < 8:
        return Reading((), (f"CLI version {output.version} is of storcli or perccli, not of storcli2 or perccli2",), complete=False)
    return interpreted(Reader(output, provider), _Generation8)


class _Generation8(Generation):
    """One answer of storcli2 or perccli2."""

    def controllers(self) -> t.Iterator[Controller]:
        if "System Overview" in self.data:
            for row in rows(self.data.get("System Overview")):
                yield self._overview(row)
        elif self.data and "Number of Controllers" not in self.data and not self._only_empty_lists():
            yield self._controller()

    def _only_empty_lists(self) -> bool:
        return all(value == [] for value in self.data.values())

    def _overview(self, row: Data) -> Controller:
        pack = word(row.get("EPack"))
        return Controller(
            provider=self.reader.provider,
            id=first(row.get("Ctrl"), row.get("Ctl")) or UNKNOWN,
            model=word(row.get("Product Name")) or None,
            serial=word(row.get("SerialNumber")) or None,
            mode=self.reader.known(PERSONALITIES, "Personality", row.get("Personality")),
            status=self.reader.known(CONTROLLER_STATES, "Status", row.get("Status")),
            protection=Protection(health=self.reader.health(pack), raw=pack),
        )

    def _controller(self) -> Controller:
        host = section(self.data.get("HostInterface"))
        memory = whole(self.hardware.get("DDR Memory Size(MiB)"))
        return Controller(
            provider=self.reader.provider,
            id=word(self.answer.status.get("Controller")) or UNKNOWN,
            model=self.told(self.basics, "Product Name") or None,
            serial=self.told(self.basics, "Serial Number") or None,
            firmware=self.told(self.version, "Package Version", "Firmware Version") or None,
            driver=self.told(self.version, "Driver Name") or None,
            pci_address=pci_address(self.told(host, "PCI Address")),
            mode=self.reader.known(PERSONALITIES, "Controller Personality", self.told(self.state, "Controller Personality")),
            status=self.status(),
            cache=self.cache(None if memory is None else memory * 1024**2),
            protection=self._protection(),
            volumes=self._volumes(),
            drives=self._drives(),
            traits=self._traits(),
        )

    # Volumes

    def _volumes(self) -> tuple[Volume, ...]:
        found: dict[str, Volume] = {}
        # The plain text of ``vall show all`` and ``sall show all`` has the layout of storcli, their JSON has lists of objects.
        texts = [(found["volume"], row) for key, value in self.data.items() for found in [VOLUME_KEY.match(key)] if found for row in rows(value)]
        summary = [row for key in self.data if VOLUME_LIST.match(key) for row in rows(self.data[key])]
        self.reader.count(self.data, "Virtual Drives", summary)
        self.reader.count(self.data, "Physical Drives", self._listed_drives())
        self.reader.unique(summary, "DG/VD")
        self.reader.unique(self._listed_drives(), "EID:Slt")
        self.reader.unique((row for _number, row in texts), "DG/VD")
        self.reader.unique((section(entry.get("VD Info")) for entry in rows(self.data.get("Virtual Drives"))), "DG/VD")
        self.reader.unique((section(entry.get("Drive Information")) for entry in rows(self.data.get("Drives List"))), "EID:Slt")
        for row in summary:
            self._add(found, row, {}, ())
        for number, row in texts:
            self._add(found, row, section(self.data.get(f"VD{number} Properties")), rows(self.data.get(f"PDs for VD {number}")))
        for entry in rows(self.data.get("Virtual Drives")):
            described = section(entry.get("VD Info"))
            self._add(found, described or entry, section(entry.get("VD Properties")), rows(entry.get("PDs")))
        return tuple(self.with_topology([*found.values()], "Span"))

    def _add(self, found: dict[str, Volume], row: Data, properties: Data, drives: t.Sequence[Data]) -> None:
        volume = self.reader.volume(row)
        if volume is None:
            return
        read, write = self._column("CurrentCache", row)
        default_read, default_write = self._column("DefaultCache", row)
        members, untold = members_of_rows(drives)
        found[volume.id] = dataclasses.replace(
            self.reader.with_properties(volume, properties, "Drive Write Cache Policy"),
            read=Policy(default_read, read),
            write=configured_and_effective(default_write, write),
            members=members,
            members_untold=untold,
        )

    def _column(self, label: str, row: Data) -> tuple[str, str]:
        """Read and write policy of a column such as ``NR,WB``."""
        raw = word(row.get(label))
        if raw in ("", "-"):
            return UNKNOWN, UNKNOWN
        read, comma, write = (part.strip().lower() for part in raw.partition(","))
        if not comma or read not in READ_COLUMN or write not in WRITE_COLUMN:
            self.reader.not_understood(label, raw)
            return READ_COLUMN.get(read, UNKNOWN), WRITE_COLUMN.get(write, UNKNOWN)
        return READ_COLUMN[read], WRITE_COLUMN[write]

    # Drives

    def _listed_drives(self) -> list[Data]:
        return [row for key in self.data if DRIVE_LIST.match(key) for row in rows(self.data[key]) if "EID:Slt" in row or "Drive Information" not in row]

    def _drives(self) -> tuple[Drive, ...]:
        found: dict[str, Drive] = {}
        listed: list[tuple[Data, Data]] = [(row, {}) for row in self._listed_drives()]
        for key, value in self.data.items():
            if folded(key).startswith("pdsforvd") or is_drive_key(key):
                listed.extend((row, {}) for row in rows(value))
        for volume in rows(self.data.get("Virtual Drives")):
            listed.extend((row, {}) for row in rows(volume.get("PDs")))
        for entry in rows(self.data.get("Drives List")):
            described = section(entry.get("Drive Information"))
            listed.append((described or entry, section(entry.get("Drive Detailed Information"))))
        for row, details in listed:
            drive = self._drive(row, details)
            if drive is not None and (details or drive.address not in found):
                found[drive.address] = drive
        return tuple(found.values())

    def _drive(self, row: Data, details: Data) -> Drive | None:
        status = word(row.get("Status"))
        drive = self.reader.drive(row, "spare" if is_spare(row) else self.reader.known(USAGES, "State", row.get("State")))
        if drive is None:
            return None
        cache = section(details.get("LU/NS Properties"))
        if not cache:
            cache = next((section(unit) for unit in rows(details.get("LU/NS Properties"))), {})
        self.reader.unread_caches(cache)
        return dataclasses.replace(
            drive,
            state=status.lower() if status not in ("", "-") else drive.state,
            write_cache=self.reader.known(DRIVE_WRITE_CACHE, "Current Write Cache", cache.get("Current Write Cache")),
            serial=word(details.get("Serial Number")) or None,
            firmware=word(details.get("Firmware Revision Level")) or None,
            wwn=identifier(details.get("WWN")),
        )

    # Protection and what can be set

    def _protection(self) -> Protection:
        for row in rows(self.data.get("Energy Pack Info")):
            kind = KINDS.get(squeezed(word(row.get("Type"))), UNKNOWN)
            state = first(row.get("Status"), row.get("State"))
            raw = " ".join(part for part in (word(row.get("SubType")) or word(row.get("Type")), state) if part)
            health = self.reader.health(state)
            return Protection(kind=kind, health=health, learn_cycle=learn_cycle_of(health), raw=raw)
        pack = word(self.hardware.get("Energy Pack"))
        if pack.lower() == "absent":
            supported = flag(section(self.data.get("Supported Controller operations")).get("Support Energy Pack"))
            return Protection(kind=NONE if supported is False else UNKNOWN, health=UNKNOWN if supported is False else MISSING, raw=f"Energy Pack: {pack}")
        return Protection()

    def _traits(self) -> dict[str, t.Any]:
        changeable = flag(section(self.data.get("Supported Controller operations")).get(SSD_DRIVE_CACHE))
        blocked = {} if changeable is None else {"ssd_drive_cache_blocked": not changeable}
        return {**announced(self.data), **flags(section(self.data.get("Supported VD operations")), VOLUME_FLAGS), **blocked}


class StorCli2(StorCli):
    """storcli2 8.x.

    Not confirmed: ``pdcache``, with which the drive cache of a volume is set, is taken over from storcli 7. It is in nothing public
    that was at hand of the grammar of storcli2, so a controller may answer with a syntax error; ``rdcache`` and ``wrcache`` were seen
    to succeed. A refusal ends the run with the tool's own words.
    """

    name = "storcli2"
    order = ("read", "write", "drive_cache")

    settings: t.ClassVar[SettingWords] = {
        "read": ("rdcache", READ_WORDS),
        "write": ("wrcache", WRITE_WORDS),
        "drive_cache": ("pdcache", DRIVE_CACHE_WORDS),
    }
    labels: t.ClassVar[t.Mapping[str, str]] = {**VOLUME_FLAGS, "ssd_drive_cache_blocked": SSD_DRIVE_CACHE}
    jbod_property: t.ClassVar[t.Optional[str]] = None
    memory_label: t.ClassVar[str] = "DDR Memory Size(MiB)"
    blocked_word: t.ClassVar[str] = "No"
    asks_for_units: t.ClassVar[bool] = False

    @classmethod
    def interpret(cls, output: Output) -> Reading:
        return interpret(output, cls.name)

    def _volume_objection(self, controller: Controller, volume: Volume, attribute: str, value: t.Any) -> str | None:
        if attribute == "io":
            return f"{self.name} and its controllers have no I/O policy"
        return super()._volume_objection(controller, volume, attribute, value)


class PercCli2(StorCli2):
    """perccli2: storcli2 under Dell's name."""

    name = "perccli2"
