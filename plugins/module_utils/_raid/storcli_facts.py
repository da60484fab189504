# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What the labels and words of storcli and perccli 7.x mean, and what they share with storcli2 and perccli2.

Labels were taken from captured outputs of many builds; where a word was never seen, the table says so.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.model import (
    ADAPTIVE,
    CACHED,
    CHARGING,
    DEFAULT,
    DEGRADED,
    DIRECT,
    DISABLED,
    ENABLED,
    FAILED,
    HEALTHY,
    LEARNING,
    MISSING,
    NONE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITES_BACK,
    WRITETHROUGH,
    CacheModule,
    CacheVolume,
    Controller,
    Drive,
    MaxCache,
    Policy,
    Protection,
    Reading,
    Volume,
    VolumeMaxCache,
    policy,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.storcli_output import (
    Answer,
    Data,
    Output,
    at_line,
    read_output,
    rows,
    section,
    word,
)

# Words of the tools and ours. Keys are compared in lower case without blanks.

READ_COLUMN = {"NR": NONE, "R": READ_AHEAD, "Ra": ADAPTIVE, "A": ADAPTIVE}
WRITE_COLUMN = {"WT": WRITETHROUGH, "WB": WRITEBACK, "AWB": WRITEBACK_ALWAYS, "FWB": WRITEBACK_ALWAYS}
IO_COLUMN = {"D": DIRECT, "C": CACHED}
#: ``Write Cache(initial setting)``. The word for always was never seen in a capture.
INITIAL_WRITE = {
    "writeback": WRITEBACK,
    "writethrough": WRITETHROUGH,
    "alwayswriteback": WRITEBACK_ALWAYS,
    "writebackalways": WRITEBACK_ALWAYS,
    "forcewriteback": WRITEBACK_ALWAYS,
    "forcedwriteback": WRITEBACK_ALWAYS,
}
DRIVE_CACHE = {"disk'sdefault": DEFAULT, "default": DEFAULT, "enabled": ENABLED, "disabled": DISABLED, "on": ENABLED, "off": DISABLED}
TOPOLOGY_DRIVE_CACHE = {"dflt": DEFAULT, "enbl": ENABLED, "dsbl": DISABLED}
DRIVE_WRITE_CACHE = {"enabled": ENABLED, "disabled": DISABLED, "on": ENABLED, "off": DISABLED}
VOLUME_STATES = {
    "optl": "optimal",
    "dgrd": "degraded",
    "pdgd": "partially_degraded",
    "ofln": "offline",
    "rec": "recovery",
    "rbld": "rebuilding",
    "msng": "missing",
    "fail": "failed",
    "failed": "failed",
}
CONTROLLER_STATES = {
    "optimal": "optimal",
    "opt": "optimal",
    "ok": "optimal",
    "needsattention": "needs_attention",
    "needattention": "needs_attention",
    "ndatn": "needs_attention",
    "degraded": "degraded",
    "dgd": "degraded",
    "failed": "failed",
    "fail": "failed",
    "unknown": UNKNOWN,
    "unkwn": UNKNOWN,
}
PERSONALITIES = {"raid": "raid", "raid-mode": "raid", "hba": "hba", "hba-mode": "hba", "jbod": "jbod", "jbod-mode": "jbod"}
HEALTH = {
    "optimal": HEALTHY,
    "opt": HEALTHY,
    "dgd": DEGRADED,
    "ndatn": DEGRADED,
    "needattention": DEGRADED,
    "needsattention": DEGRADED,
    "failed": FAILED,
    "fail": FAILED,
    "missing": MISSING,
    "msng": MISSING,
    "absent": MISSING,
    "notpresent": MISSING,
    "learning": LEARNING,
    "charging": CHARGING,
    "discharging": DEGRADED,
    "unknown": UNKNOWN,
    "unkwn": UNKNOWN,
    "n/a": UNKNOWN,
    "na": UNKNOWN,
    "-": UNKNOWN,
}
USAGES = {
    "onln": "configured",
    "ofln": "configured",
    "offln": "configured",
    "rbld": "configured",
    "cpybck": "configured",
    "cfshld": "configured",
    "cbshld": "configured",
    "fail": "configured",
    "failed": "configured",
    "msng": "configured",
    "missing": "configured",
    "conf": "configured",
    "ugood": "unconfigured",
    "ubad": "unconfigured",
    "ugunsp": "unconfigured",
    "ubunsp": "unconfigured",
    "ugshld": "unconfigured",
    "ubshld": "unconfigured",
    "frgn": "unconfigured",
    "uconf": "unconfigured",
    "ghs": "spare",
    "dhs": "spare",
    "hspshld": "spare",
    "jbod": "jbod",
    "non-raid": "jbod",
    "nonraid": "jbod",
    "systempd": "jbod",
    "syspd": "jbod",
}
MEDIA = {"hdd": "hdd", "ssd": "ssd"}
INTERFACES = {"sata": "sata", "sas": "sas", "scsi": "scsi", "nvme": "nvme", "nvme-of": "nvme"}
#: Answers that mean: there is none of it.
NOTHING_THERE = re.compile(r"No Controller|Controller \S+ not found|un-?supported command|No VD|No (?:PD|drive)|No Enclosure", re.IGNORECASE)

#: Bits of ``BBU Status`` (MFI firmware), used only where the unit has no row of its own.
BBU_BITS: t.Sequence[tuple[int, str]] = (
    (0x001, MISSING),
    (0x080 | 0x100 | 0x200 | 0x400, FAILED),
    (0x040, LEARNING),
    (0x002 | 0x004 | 0x010 | 0x020 | 0x800, DEGRADED),
    (0x008, CHARGING),
)
BBU_LEARN_REQUESTED = 0x020
BBU_LEARN_ACTIVE = 0x040

_COLUMN = re.compile(r"(?P<read>NR|Ra|R|A)(?P<write>AWB|FWB|WB|WT)(?P<io>[DC])?\Z")
_VOLUME_KEY = re.compile(r"/c(?P<controller>[0-9]+)/v(?P<volume>[0-9]+)\Z")
_DRIVE_KEY = re.compile(
    r"Drive /c(?P<controller>[0-9]+)(?:/e(?P<enclosure>[0-9]+))?/s(?P<slot>[0-9]+)(?P<part>\Z| Device attributes\Z| - Detailed Information\Z)"
)
_SIZE = re.compile(r"(?P<amount>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>[KMGTP]?i?B)\b", re.IGNORECASE)
_BINARY_UNITS = re.compile(r"[0-9] ?[KMGTP]iB\b")
_HEX = re.compile(r"(?:0x)?(?P<digits>[0-9a-f]{8,})\Z", re.IGNORECASE)
_PCI = re.compile(r"(?P<domain>[0-9a-f]{1,4}):(?P<bus>[0-9a-f]{1,2}):(?P<device>[0-9a-f]{1,2}):(?P<function>[0-9a-f]{1,2})\Z", re.IGNORECASE)
_PERCENT = re.compile(r"(?P<number>[0-9]{1,3}) ?%?\Z")
_WHOLE = re.compile(r"[0-9]{1,18}\Z")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}


class Reader:
    """One output while it is being read: collects what was not understood.

    :param provider: the name of the tool.
    """

    def __init__(self, output: Output, provider: str) -> None:
        self.output = output
        self.provider = provider
        self.problems: list[str] = list(output.not_understood)
        #: Builds that print GiB mean powers of ten by GB; all others mean powers of two.
        self.decimal_gb = bool(_BINARY_UNITS.search(output.text))

    def not_understood(self, label: str, value: str) -> None:
        """A known label with an unknown value."""
        patterns = (re.escape(label) + r".{0,6}?" + re.escape(value), re.escape(value))
        found = None
        for pattern in patterns:
            found = found or re.search(pattern, self.output.text)
        said = f"{label}: {value}"
        self.problems.append(f"{said} ({at_line(self.output.text, found.start())})" if found else said)

    def known(self, words: t.Mapping[str, str], label: str, value: t.Any, default: str = UNKNOWN) -> str:
        """Our word for the tool's; a word that is not in the table is remembered."""
        said = word(value)
        if not said or said in ("-", "N/A", "NA"):
            return default
        key = squeezed(said)
        if key in words:
            return words[key]
        self.not_understood(label, said)
        return default

    def size(self, value: t.Any, decimal: t.Optional[bool] = None) -> t.Optional[int]:
        """Bytes."""
        found = _SIZE.match(word(value))
        if not found:
            return None
        unit = found["unit"].lower()
        base = 1000 if (self.decimal_gb if decimal is None else decimal) and "i" not in unit else 1024
        return int(float(found["amount"]) * base ** _POWERS[unit[0] if unit[0] in "kmgtp" else ""])

    def health(self, value: t.Any) -> str:
        """Health of a battery or a capacitor. ``Degraded(Need Attention)`` comes in several spellings."""
        said = squeezed(word(value))
        if said.startswith("degraded"):
            return CHARGING if "charging" in said else DEGRADED
        return self.known(HEALTH, "State", word(value).split("(")[0])

    # Parts that all four tools print alike

    def drive(self, row: Data, decide: t.Optional[t.Callable[[str], str]] = None) -> t.Optional[Drive]:
        """A row of a list of drives."""
        address = address_of(row.get("EID:Slt"))
        if address is None:
            if word(row.get("EID:Slt")):
                self.not_understood("EID:Slt", word(row.get("EID:Slt")))
            return None
        state = word(row.get("State"))
        return Drive(
            address=address,
            model=word(row.get("Model")) or None,
            size=self.size(row.get("Size")),
            media=self.known(MEDIA, "Med", row.get("Med")),
            interface=self.known(INTERFACES, "Intf", row.get("Intf")),
            usage=decide(state) if decide else self.known(USAGES, "State", state),
            state=UNKNOWN if state in ("", "-") else state.lower(),
        )

    def volume(self, row: Data) -> t.Optional[Volume]:
        """What the row of a volume tells besides its cache policy."""
        group, slash, number = word(row.get("DG/VD")).partition("/")
        if not slash or not _WHOLE.match(number):
            if word(row.get("DG/VD")):
                self.not_understood("DG/VD", word(row.get("DG/VD")))
            return None
        level = word(row.get("TYPE"))
        state = word(row.get("State"))
        return Volume(
            id=str(int(number)),
            name=word(row.get("Name")) or None,
            raid_level=level[4:] if level.upper().startswith("RAID") and level[4:] else UNKNOWN,
            status=VOLUME_STATES.get(squeezed(state), state.lower() or UNKNOWN),
            size=self.size(row.get("Size")),
            array=group if _WHOLE.match(group) else None,
        )

    def with_properties(self, volume: Volume, properties: Data, drive_cache_label: str) -> Volume:
        """The volume with what its properties tell besides its write policy."""
        os_device = word(properties.get("OS Drive Name"))
        return dataclasses.replace(
            volume,
            wwn=identifier(properties.get("SCSI NAA Id")),
            drive_cache=self.known(DRIVE_CACHE, drive_cache_label, properties.get(drive_cache_label)),
            os_device=os_device if os_device.startswith("/") else None,
        )

    def topology(self, data: Data, span: str) -> tuple[dict[str, str], dict[str, list[str]]]:
        """The drive cache policy of each drive group and the addresses of its drives.

        :param span: the label of the column that is empty in the line of the whole group.
        """
        policies: dict[str, str] = {}
        members: dict[str, list[str]] = {}
        for row in rows(data.get("TOPOLOGY")):
            group = word(row.get("DG"))
            if word(row.get("Type")) == "DRIVE":
                address = address_of(row.get("EID:Slot"))
                if address is not None:
                    members.setdefault(group, []).append(address)
            elif word(row.get(span)) == "-":
                policies[group] = self.known(TOPOLOGY_DRIVE_CACHE, "PDC", row.get("PDC"))
        return policies, members


def squeezed(text: str) -> str:
    return "".join(text.lower().split())


def address_of(value: t.Any) -> t.Optional[str]:
    """``252:3``; ``:25`` for a drive without enclosure."""
    enclosure, colon, slot = word(value).partition(":")
    enclosure, slot = enclosure.strip(), slot.strip()
    if not colon or not _WHOLE.match(slot) or (enclosure and not _WHOLE.match(enclosure)):
        return None
    return f"{enclosure}:{slot}"


def identifier(value: t.Any) -> t.Optional[str]:
    """A world wide name in lower case without ``0x``; ``None`` for what is none (``N/A``, redacted)."""
    found = _HEX.match(word(value))
    return found["digits"].lower() if found else None


def pci_address(value: t.Any) -> t.Optional[str]:
    """``00:c1:00:00`` (domain, bus, device, function) as sysfs writes it."""
    found = _PCI.match(word(value))
    if not found:
        return None
    domain, bus, device, function = (int(found[part], 16) for part in ("domain", "bus", "device", "function"))
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"


def whole(value: t.Any) -> t.Optional[int]:
    found = _WHOLE.match(word(value))
    return int(found.group()) if found else None


def percent(value: t.Any) -> t.Optional[int]:
    found = _PERCENT.match(word(value))
    return int(found["number"]) if found else None


def flag(value: t.Any) -> t.Optional[bool]:
    """``Yes`` or ``No`` (``NA``: the controller has no such thing); ``None`` if it is not told."""
    said = word(value).lower().split(",")[0]
    return {"yes": True, "on": True, "no": False, "off": False, "na": False, "n/a": False}.get(said)


def flags(where: Data, labels: t.Mapping[str, str]) -> dict[str, bool]:
    """Only the flags that are told."""
    found = {name: flag(where.get(label)) for name, label in labels.items()}
    return {name: value for name, value in found.items() if value is not None}


def first(*values: t.Any) -> str:
    """The first value that is printed."""
    for value in values:
        if word(value):
            return word(value)
    return ""


def configured_and_effective(configured: str, effective: str) -> Policy:
    """Both as the tool tells them; write-back in force is named as it is configured, if that writes back.

    Always write-back cannot be in force unless it was asked for, although some builds print only ``WriteBack`` as the
    initial setting.
    """
    if effective == WRITEBACK_ALWAYS and configured in WRITES_BACK:
        return policy(WRITEBACK_ALWAYS)
    if effective == WRITEBACK and configured in WRITES_BACK:
        return policy(configured)
    return Policy(configured, effective)


def join(readings: t.Sequence[Reading]) -> Reading:
    """Several outputs of one tool about the same host as one; what is told earlier wins, what is unknown is filled in."""
    controllers: dict[t.Any, Controller] = {}
    for reading in readings:
        for number, controller in enumerate(reading.controllers):
            key = controller.id if controller.id != UNKNOWN else (id(reading), number)
            known = controllers.get(key)
            controllers[key] = controller if known is None else merged(known, controller)
    problems = dict.fromkeys(problem for reading in readings for problem in reading.not_understood)
    return Reading(tuple(finished(controller) for controller in controllers.values()), tuple(problems), all(reading.complete for reading in readings))


def merged(one: Controller, other: Controller) -> Controller:
    """One controller from two outputs; nothing known is overwritten."""
    protection = one.protection if one.protection.health != UNKNOWN or one.protection.kind != UNKNOWN else other.protection
    if protection is one.protection and other.protection.health not in (UNKNOWN, HEALTHY):
        # The show all of the unit itself knows a learn cycle or a charge that the row in the summary does not.
        protection = _filled(other.protection, one.protection) if one.protection.health != HEALTHY else protection
    protection = _filled(protection, other.protection)
    return dataclasses.replace(
        _filled(one, other),
        protection=protection,
        cache=_filled(one.cache, other.cache),
        drive_cache={**other.drive_cache, **{name: value for name, value in one.drive_cache.items() if value != UNKNOWN or name not in other.drive_cache}},
        traits={**other.traits, **one.traits},
        volumes=_merged_by("id", one.volumes, other.volumes),
        drives=_merged_by("address", one.drives, other.drives),
    )


def finished(controller: Controller) -> Controller:
    """With what only the whole tells: SCSI addresses need the driver, drives of an SSD cache its volume."""
    volumes = tuple(
        dataclasses.replace(volume, scsi=scsi_address(volume.id)) if controller.driver == "megaraid_sas" and volume.scsi is None else volume
        for volume in controller.volumes
    )
    return dataclasses.replace(controller, volumes=volumes)


def scsi_address(number: str) -> t.Optional[tuple[int, int, int]]:
    """Where megaraid_sas puts a volume: two channels of 128 targets each follow the two channels of drives."""
    value = whole(number)
    return None if value is None else (2 + value // 128, value % 128, 0)


def _merged_by(key: str, ones: t.Sequence[t.Any], others: t.Sequence[t.Any]) -> tuple[t.Any, ...]:
    found = {getattr(one, key): one for one in ones}
    for other in others:
        name = getattr(other, key)
        found[name] = _filled(found[name], other) if name in found else other
    return tuple(found.values())


def _filled(one: t.Any, other: t.Any) -> t.Any:
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


# storcli and perccli 7.x


def parse(text: str, provider: str = "storcli") -> Reading:
    """Any output of storcli or perccli 7.x (or older): JSON or plain text, of any of its commands."""
    output = read_output(text)
    if major_version(output.version) >= 8:
        return Reading((), (f"CLI version {output.version} is of storcli2 or perccli2, not of storcli or perccli",), False)
    return interpreted(Reader(output, provider), _Generation7)


def major_version(version: str) -> int:
    number = whole(version.split(".")[0])
    return 0 if number is None else number


def interpreted(reader: Reader, generation: t.Callable[[Reader, Answer], t.Any]) -> Reading:
    """The reading of an output whose layout a generation of the tools has."""
    parts = []
    for answer in reader.output.answers:
        for controller in generation(reader, answer).controllers():
            parts.append(Reading((controller,)))
    return dataclasses.replace(join(parts), not_understood=tuple(dict.fromkeys(reader.problems)), complete=reader.output.complete)


class _Generation7:
    """One answer of storcli or perccli 7.x."""

    def __init__(self, reader: Reader, answer: Answer) -> None:
        self.reader = reader
        self.answer = answer
        self.data = answer.data
        self.hardware = section(self.data.get("HwCfg"))
        self.basics = section(self.data.get("Basics"))
        self.version = section(self.data.get("Version"))
        self.state = section(self.data.get("Status"))
        self.adapter = section(self.data.get("Supported Adapter Operations"))

    def controllers(self) -> t.Iterator[Controller]:
        if "System Overview" in self.data or "IT System Overview" in self.data:
            for row in rows(self.data.get("System Overview")):
                yield self._overview(row)
            for row in rows(self.data.get("IT System Overview")):
                yield dataclasses.replace(self._overview(row), mode="hba", pci_address=pci_address(row.get("PCI Address")))
        elif "Number of Controllers" in self.data:
            return
        elif self.data:
            yield self._controller()
        else:
            unit = self._unit_of_failure()
            if unit is not None:
                yield Controller(provider=self.reader.provider, id=self._id(), protection=unit)

    def _overview(self, row: Data) -> Controller:
        unit = word(row.get("BBU"))
        health = self.reader.health(unit)
        return Controller(
            provider=self.reader.provider,
            id=first(row.get("Ctl"), row.get("Ctrl")) or UNKNOWN,
            model=first(row.get("Model"), row.get("Product Name")) or None,
            status=self.reader.known(CONTROLLER_STATES, "Hlth", row.get("Hlth")),
            protection=Protection(health=health, said=unit),
        )

    def _id(self) -> str:
        told = first(self.answer.status.get("Controller"), self.basics.get("Controller"))
        if told:
            return told
        for key in self.data:
            found = _VOLUME_KEY.match(key) or _DRIVE_KEY.match(key)
            if found:
                return found["controller"]
        return UNKNOWN

    def _controller(self) -> Controller:
        driver = first(self.version.get("Driver Name"), self.data.get("Driver Name")) or None
        volumes = self._volumes()
        caches = [volume for volume, row in volumes if _is_cache_volume(row)]
        data_volumes = tuple(volume for volume, row in volumes if not _is_cache_volume(row))
        drives = self._drives({volume.array for volume in caches})
        package = first(self.version.get("Firmware Package Build"), self.data.get("FW Package Build"))
        status = first(self.state.get("Controller Status"), self.data.get("Controller Status"))
        memory = self.reader.size(self.hardware.get("On Board Memory Size"), decimal=False)
        return Controller(
            provider=self.reader.provider,
            id=self._id(),
            model=first(self.basics.get("Model"), self.data.get("Product Name"), self.data.get("Model")) or None,
            serial=first(self.basics.get("Serial Number"), self.data.get("Serial Number")) or None,
            firmware=(package if package.strip("0.") else first(self.version.get("Firmware Version"), self.data.get("FW Version"), package)) or None,
            driver=driver,
            pci_address=pci_address(first(self.basics.get("PCI Address"), self.data.get("PCI Address"))),
            mode=self._mode(driver, data_volumes, drives),
            status=CONTROLLER_STATES.get(squeezed(status), status.lower()) or UNKNOWN,
            cache=CacheModule(status="absent" if memory == 0 else UNKNOWN, memory=memory),
            protection=self._protection(),
            drive_cache=self._jbod_drive_cache(),
            volumes=data_volumes,
            drives=drives,
            maxcache=self._maxcache(caches),
            traits=self._traits(),
        )

    def _mode(self, driver: t.Optional[str], volumes: t.Sequence[Volume], drives: t.Sequence[Drive]) -> str:
        told = first(self.state.get("Current Personality"), self.data.get("Current Personality"))
        if told:
            return self.reader.known(PERSONALITIES, "Current Personality", told)
        if driver in ("mpt3sas", "mpt2sas"):
            return "hba"
        if driver is None:
            return UNKNOWN
        # Older firmware does not name its personality; the lists of the summary show what it does.
        exposed = any(drive.usage == "jbod" for drive in drives)
        if volumes:
            return "mixed" if exposed else "raid"
        return "jbod" if exposed else UNKNOWN

    # Volumes

    def _volumes(self) -> list[tuple[Volume, Data]]:
        found: dict[str, tuple[Volume, Data]] = {}
        policies, members = self.reader.topology(self.data, "Arr")
        listed = list(rows(self.data.get("VD LIST"))) + list(rows(self.data.get("Virtual Drives")))
        for key, value in self.data.items():
            if _VOLUME_KEY.match(key):
                listed.extend(rows(value))
        for row in listed:
            volume = self.reader.volume(row)
            if volume is not None:
                found[volume.id] = (self._volume(volume, row), row)
        groups = [volume.array for volume, _row in found.values()]
        for name, (volume, row) in found.items():
            group = volume.array or ""
            if volume.drive_cache == UNKNOWN and groups.count(volume.array) == 1:
                volume = dataclasses.replace(volume, drive_cache=policies.get(group, UNKNOWN))
            if not volume.members:
                volume = dataclasses.replace(volume, members=tuple(members.get(group, ())))
            found[name] = (volume, row)
        return list(found.values())

    def _volume(self, volume: Volume, row: Data) -> Volume:
        properties = section(self.data.get(f"VD{volume.id} Properties"))
        read, write, io = self._column(row.get("Cache"))
        initial = self.reader.known(INITIAL_WRITE, "Write Cache(initial setting)", properties.get("Write Cache(initial setting)"))
        if io == CACHED and write == WRITETHROUGH:
            # Cached I/O puts writes into the cache whatever the write policy says.
            write = WRITEBACK
        members = [address_of(drive.get("EID:Slt")) for drive in rows(self.data.get(f"PDs for VD {volume.id}"))]
        association = word(row.get("Cac"))
        return dataclasses.replace(
            self.reader.with_properties(volume, properties, "Disk Cache Policy"),
            read=policy(read),
            write=configured_and_effective(initial, write),
            io=policy(io),
            members=tuple(address for address in members if address is not None),
            maxcache=None if association in ("", "-") else VolumeMaxCache(read=policy(ENABLED), cache_volume=association),
        )

    def _column(self, value: t.Any) -> tuple[str, str, str]:
        """Read, write and I/O policy. ``AWB`` ends like ``WB`` and begins like an adaptive read, so the whole must match."""
        said = word(value)
        if said in ("", "-"):
            return UNKNOWN, UNKNOWN, UNKNOWN
        found = _COLUMN.match(said)
        if not found or said.startswith("AWB"):
            self.reader.not_understood("Cache", said)
            return UNKNOWN, UNKNOWN, UNKNOWN
        return READ_COLUMN[found["read"]], WRITE_COLUMN[found["write"]], IO_COLUMN[found["io"]] if found["io"] else UNKNOWN

    def _maxcache(self, caches: t.Sequence[Volume]) -> t.Optional[MaxCache]:
        if not caches:
            return None
        return MaxCache(
            volumes=tuple(
                CacheVolume(id=cache.id, name=cache.name, status=cache.status, size=cache.size, write=cache.write, members=cache.members) for cache in caches
            )
        )

    # Drives

    def _drives(self, cache_groups: t.Container[t.Optional[str]]) -> tuple[Drive, ...]:
        found: dict[str, Drive] = {}
        inside = section(self.data.get("Physical Device Information"))
        for place in (self.data, inside):
            for key, value in place.items():
                listed = rows(value) if key in ("PD LIST", "JBOD LIST", "Drive Information") or key.startswith("PDs for VD") or _is_drive_key(key) else ()
                for row in listed:
                    drive = self.reader.drive(row)
                    if drive is None:
                        continue
                    if word(row.get("DG")) and word(row.get("DG")) in _texts(cache_groups):
                        drive = dataclasses.replace(drive, usage="cache")
                    found[drive.address] = _filled(found[drive.address], drive) if drive.address in found else drive
        for place in (self.data, inside):
            for address, attributes in _attributes(place):
                drive = found.get(address, Drive(address=address))
                found[address] = self._with_attributes(drive, attributes)
        return tuple(found.values())

    def _with_attributes(self, drive: Drive, attributes: Data) -> Drive:
        return dataclasses.replace(
            drive,
            write_cache=self.reader.known(DRIVE_WRITE_CACHE, "Write Cache", attributes.get("Write Cache")),
            serial=first(attributes.get("SN"), attributes.get("Serial Number")) or None,
            firmware=word(attributes.get("Firmware Revision")) or None,
            wwn=identifier(attributes.get("WWN")),
            model=drive.model or word(attributes.get("Model Number")) or None,
        )

    # Protection

    def _protection(self) -> Protection:
        for name, kind in (("Cachevault_Info", "capacitor"), ("BBU_Info", "battery"), ("Energy Pack Info", UNKNOWN), ("EnergyPack_Info", UNKNOWN)):
            if name in self.data:
                unit = self._unit(self.data[name], kind)
                if unit is not None:
                    return unit
        return self._unit_without_row()

    def _unit(self, value: t.Any, kind: str) -> t.Optional[Protection]:
        properties = section(value)
        for row in rows(value):
            if "State" in row:
                said = " ".join(part for part in (word(row.get("Model")), word(row.get("State"))) if part)
                return Protection(kind=kind, health=self.reader.health(row.get("State")), said=said)
        state = first(properties.get("State"), properties.get("Battery State"))
        if not state:
            return None
        health = self.reader.health(state)
        firmware = section(self.data.get("BBU_Firmware_Status")) or section(self.data.get("Firmware_Status"))
        learning = flag(firmware.get("Learn Cycle Active"))
        requested = flag(firmware.get("Learn Cycle Requested"))
        if learning and health not in (FAILED, MISSING):
            health = LEARNING
        elif health in (DEGRADED, UNKNOWN) and squeezed(word(firmware.get("Charging Status"))) == "charging":
            health = CHARGING
        elif flag(firmware.get("Battery Pack Missing")):
            health = MISSING
        capacity = section(self.data.get("BBU_Capacity_Info"))
        return Protection(
            kind=kind,
            health=health,
            charge=percent(capacity.get("Relative State of Charge")),
            learn_cycle="active" if learning else "requested" if requested else "idle" if learning is False else UNKNOWN,
            said=" ".join(part for part in (word(properties.get("Type")), state) if part),
        )

    def _unit_without_row(self) -> Protection:
        present = squeezed(first(self.hardware.get("BBU"), self.hardware.get("Energy Pack")))
        label = "BBU" if word(self.hardware.get("BBU")) else "Energy Pack"
        supported = flag(first(self.adapter.get("BBU"), self.adapter.get("Energy Pack")))
        bits = whole(first(self.state.get("BBU Status"), self.state.get("Energy Pack Status")))
        if present == "absent":
            said = f"{label}: Absent"
            return Protection(kind=NONE, said=said) if supported is False else Protection(health=MISSING, said=said)
        if bits is None:
            return Protection()
        health = next((state for mask, state in BBU_BITS if bits & mask), HEALTHY if present == "present" else UNKNOWN)
        learn = "active" if bits & BBU_LEARN_ACTIVE else "requested" if bits & BBU_LEARN_REQUESTED else UNKNOWN
        return Protection(health=health, learn_cycle=learn, said=f"{label} Status: {bits}")

    def _unit_of_failure(self) -> t.Optional[Protection]:
        for reason in self.answer.reasons:
            said = reason.lower()
            if "battery is absent" in said:
                return Protection(kind="battery", health=MISSING, said=reason)
            if "cachevault" in said.replace(" ", "") and "absent" in said:
                return Protection(kind="capacitor", health=MISSING, said=reason)
            if "use /cx/cv" in said:
                return Protection(kind="capacitor", said=reason)
            if "use /cx/bbu" in said:
                return Protection(kind="battery", said=reason)
        return None

    # Settings of the controller

    def _jbod_drive_cache(self) -> dict[str, str]:
        for label, value in section(self.data.get("Controller Properties")).items():
            if "jbod" in label.lower() and "cache" in label.lower():
                return {"jbod": self.reader.known(DRIVE_CACHE, label, value)}
        return {"jbod": UNKNOWN} if flag(self.adapter.get("Support JBOD Write cache")) else {}

    def _traits(self) -> dict[str, t.Any]:
        operations = section(self.data.get("Supported VD Operations"))
        return {
            **flags(self.adapter, ADAPTER_FLAGS),
            **flags(operations, VOLUME_FLAGS),
            **flags(section(self.data.get("Defaults")), {"cache_when_bbu_bad": "Cache When BBU Bad"}),
        }


#: Flags of the controller that say what can be set, and their labels.
ADAPTER_FLAGS = {"ssd_drive_cache_blocked": "Block SSD Write Disk Cache Change", "jbod_write_cache": "Support JBOD Write cache"}
VOLUME_FLAGS = {
    "can_set_read": "Read Policy",
    "can_set_write": "Write Policy",
    "can_set_io": "IO Policy",
    "can_set_drive_cache": "Disk Cache Policy",
    "ssd_cache_association": "Support SSC Association",
}


def _is_cache_volume(row: Data) -> bool:
    return word(row.get("TYPE")).lower().startswith("cac")


def _is_drive_key(key: str) -> bool:
    found = _DRIVE_KEY.match(key)
    return bool(found) and not found["part"] if found else False


def _texts(values: t.Any) -> set[str]:
    return {str(value) for value in values if value is not None}


def _attributes(place: Data) -> t.Iterator[tuple[str, Data]]:
    """Address and attributes of each drive that has a detailed description; plain text does not nest it."""
    for key, value in place.items():
        found = _DRIVE_KEY.match(key)
        if not found:
            continue
        address = f"{found['enclosure'] or ''}:{found['slot']}"
        if found["part"] == " Device attributes" and isinstance(value, dict):
            yield address, section(value)
        elif found["part"] == " - Detailed Information":
            yield from _attributes(section(value))
