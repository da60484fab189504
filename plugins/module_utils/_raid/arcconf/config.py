# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""GETCONFIG of arcconf, the whole of it or any of its parts, read into a controller with its volumes, drives and maxCache; pure.

Which generation a controller is follows from the labels and the name of the driver, never from a version: one arcconf manages
both, and prints different labels for each.

A drive is addressed by the pair in ``Reported Channel,Device(T:L) : 0,31(31:0)``, never by the number in ``Device #13``. Members are
listed by serial number, by the place of the drive or (old builds) by the pair, depending on the build. The labels of maxCache begin
with its name, in three spellings, and in the oldest builds with MaxIQ.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.lines import (
    NO_DRIVE,
    Block,
    Line,
    Values,
    hexadecimal,
    number_in,
    problem,
    raid_level,
    state_word,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CHARGING,
    DEGRADED,
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
    Volume,
    VolumeMaxCache,
)

#: A place as both the list of drives and the list of members contain it: ``(("enclosure", "0"), ("slot", "22"))``.
Place = t.Tuple[t.Tuple[str, str], ...]

_PLACES = (("enclosure", "slot"), ("backplane", "slot"), ("connector", "device"))


_PAIR = re.compile(r"([0-9]{1,6}) ?, ?([0-9]{1,6})")
_SEGMENT = re.compile(r"([A-Za-z](?:[A-Za-z -]*[A-Za-z-])?) *\(([^()]*)\) *(\S+)?")
_SEGMENT_LABEL = re.compile(r"(?:group [0-9]{1,6}, ?)?(?:segment|device) ([0-9]{1,6})")
#: The legend above the segments.
_HEADS_OF_SEGMENTS = frozenset({"device id", "segment"})


@frozen
class Located:
    """A drive, its number in the list, and its place."""

    drive: Drive
    number: str
    place: Place


@frozen
class Segment:
    """A member as a volume lists it; what the build does not print is ``None``."""

    serial: str | None
    place: Place
    address: str | None
    number: str | None


#: A member that is missing, or whose line is damaged.
_NOBODY = Segment(None, (), None, None)


def drive_of(block: Block, mode: str, values: Values) -> Located | None:
    """A drive of its block; ``None`` for enclosures and the like, and for a drive that cannot be addressed.

    :param mode: of the controller: raw drives of one in HBA mode are passed to the system.
    """
    kind = next((text for unused, text in block.free if text.startswith("device is ")), "")
    if NO_DRIVE.search(kind):
        return None
    reported = block.find("reported channel,device(t:l)", "reported channel,device", "channel,device(t:l)")
    match = re.match(r"([0-9]{1,6}) ?, ?([0-9]{1,6})(?:\(|$)", reported.value) if reported is not None else None
    if match is None:
        where = (reported.number, reported.text) if reported is not None else (block.line, f"Device #{block.number}")
        values.lose(f"{problem(*where)}: a drive without its channel and device")
        return None
    solid = block.find("ssd")
    firmware, serial = block.value("firmware"), block.value("serial number")
    drive = Drive(
        address=f"{int(match.group(1))},{int(match.group(2))}",
        write_cache=values.word(block.find("write cache"), words.DRIVE_WRITE_CACHE),
        model=block.value("model"),
        serial=serial,
        firmware=firmware,
        wwn=hexadecimal(block.value("world-wide name", "world wide name")),
        size=values.size(block.find("total size", "size")),
        media=values.translate(solid, {"yes": "ssd", "no": "hdd"}) or UNKNOWN,
        interface=_interface(block.value("transfer speed", "interface type")),
        usage=_usage(block, mode, values),
        state=(block.value("state") or UNKNOWN).lower(),
        maxcache_capable=values.translate(block.find("maxcache capable", "maxiq cache capable"), {"yes": True, "no": False}),
    )
    return Located(drive, block.number or UNKNOWN, _place(block.value("reported location") or ""))


def _interface(text: str | None) -> str:
    lower = (text or "").lower()
    for word, interface in (("nvme", "nvme"), ("pcie", "nvme"), ("sata", "sata"), ("serial ata", "sata"), ("sas", "sas"), ("ultra", "scsi"), ("scsi", "scsi")):
        if lower.startswith(word):
            return interface
    return UNKNOWN


def _usage(block: Block, mode: str, values: Values) -> str:
    assigned = block.find("maxcache assigned", "maxiq cache assigned")
    if assigned is not None and assigned.value.lower() == "yes":
        return "cache"
    configuration = block.find("drive configuration type")
    if configuration is not None:
        if "spare" in configuration.value.lower():
            return "spare"
        return values.word(configuration, words.CONFIGURATION)
    state = (block.value("state") or "").lower()
    if "jbod" in state:
        return "jbod"
    if "spare" in state:
        return "spare"
    if state.startswith(("online", "rebuilding", "optimal")):
        return "configured"
    if state.startswith("raw"):
        # In the modes that expose raw drives, they are visible to the system as they are.
        return "hba"
    if state.startswith(("ready", "available")):
        return "unconfigured"
    return "hba" if mode == "hba" and state.startswith("ok") else UNKNOWN


def _place(text: str) -> Place:
    """``Enclosure 0, Slot 22``, ``Connector 0, Device 3``, ``Enclosure 1, Slot 0(Connector 0:CN0)``."""
    found = {
        name.lower(): value.strip()
        for name, value in re.findall(r"(enclosure|backplane|slot|connector|device)[ :]+([^,(:]+)", text.split("(")[0], re.IGNORECASE)
    }
    return _ordered(found)


def _ordered(found: t.Mapping[str, str]) -> Place:
    for first, second in _PLACES:
        if first in found and second in found:
            return ((first, found[first].lower()), (second, found[second].lower()))
    return ()


def segments_of(block: Block) -> list[Segment]:
    """The members that a volume lists, each once; of those that are missing or whose line is damaged, nothing is known."""
    listed = (block.value("drive(s) (channel,device)") or "").split()
    pairs = [_PAIR.fullmatch(pair) for pair in listed]
    segments = [Segment(None, (), f"{pair.group(1)},{pair.group(2)}", None) if pair else _NOBODY for pair in pairs]
    # Some builds print the list twice.
    seen: list[t.Union[Segment, tuple[str, str]]] = []
    for line in block.lines:
        if line.part != "segments" or line.label in _HEADS_OF_SEGMENTS:
            continue
        segment = _segment(line)
        key = (line.label, line.value) if segment == _NOBODY else segment
        if key not in seen:
            seen.append(key)
            segments.append(segment)
    return segments


def _segment(line: Line) -> Segment:
    match = _SEGMENT.match(line.value)
    if match is None or match.group(1).lower() == "missing" or not _SEGMENT_LABEL.fullmatch(line.label):
        return _NOBODY
    inside = match.group(2)
    pair = _PAIR.fullmatch(inside.strip())
    named = {piece.split(":", 1)[0].strip().lower(): piece.split(":", 1)[1].strip() for piece in inside.split(",") if ":" in piece}
    number = line.label.split()[1] if line.label.startswith("device") else None
    return Segment(match.group(3), _ordered(named), f"{pair.group(1)},{pair.group(2)}" if pair else None, number)


class Places:
    """The drives of a controller by what volumes call them.

    :param listed: whether the output lists drives at all: an address that is not among them is of a drive that could not be read.
    """

    def __init__(self, drives: t.Sequence[Located], *, listed: bool) -> None:
        self._addresses = {one.drive.address for one in drives} if listed else None
        self._found: dict[t.Any, list[str]] = {}
        for one in drives:
            for key in (("serial", one.drive.serial), ("place", one.place), ("number", one.number)):
                if key[1]:
                    self._found.setdefault(key, []).append(one.drive.address)

    def address(self, segment: Segment) -> str | None:
        """Which drive a segment is, if that is certain."""
        if segment.address is not None:
            return segment.address if self._addresses is None or segment.address in self._addresses else None
        chosen = (self._found.get(key, []) for key in (("serial", segment.serial), ("place", segment.place), ("number", segment.number)))
        return next((found[0] for found in chosen if len(found) == 1), None)


def members_of(segments: t.Sequence[Segment], places: Places) -> tuple[tuple[str, ...], int]:
    """The addresses of the members, and how many more there are that cannot be identified."""
    addresses = [places.address(segment) for segment in segments]
    return tuple(dict.fromkeys(address for address in addresses if address is not None)), addresses.count(None)


#: Ends of the labels.
_LABEL = re.compile(r"(?:maxcache|maxiq) (.*)")
#: What stands in place of the cache volumes if there is none, as the texts inside the builds have it.
_NONE = re.compile(r"no (?:maxcache|maxiq)\b.* (?:found|created)")
#: Where they are among the lines about a controller: builds moved them below the headings of its RAID and its cache.
_OF_CONTROLLER = ("", "raid", "cache")


class SsdCache:
    """Reads what one GETCONFIG reports about maxCache.

    :param main: the section about the controller.
    :param sections: names of the sections of the output.
    """

    def __init__(self, main: Block, blocks: t.Sequence[Block], sections: t.Container[str], generation: str, values: Values) -> None:
        self.main = main
        self.blocks = blocks
        self.sections = sections
        self.generation = generation
        self.values = values
        self._policies: dict[str, str] = {}

    def volumes(self, blocks: t.Sequence[Block], places: Places) -> list[CacheVolume]:
        """The cache volumes (maxCache 3.0: the one of the controller; maxCache 4: one per cached volume)."""
        return [self._cache_volume(block, places) for block in blocks]

    def _cache_volume(self, block: Block, places: Places) -> CacheVolume:
        lines = _lines(block.lines)
        values = self.values
        number = block.number or UNKNOWN
        status_line = lines.get("write policy status")
        reported = status_line is not None and status_line.value.lower() in words.MAXCACHE_POLICY
        policy = values.word(lines.get("write cache policy", lines.get("write policy", status_line if reported else None)), words.MAXCACHE_POLICY)
        self._policies[number] = policy
        status = values.switch(lines.get("write cache status", None if reported else status_line))
        write = Policy(values.switch(lines.get("write cache setting")), status)
        data = number_in(block.value("associated logical device id", "associated logical device", "data logical device id"))
        if data is not None and policy != UNKNOWN:
            # maxCache 4 has no other switch for writes than the policy.
            requested = DISABLED if policy == "writethrough" else ENABLED
            write = Policy(requested, requested if status == UNKNOWN else status)
        state = block.value("maxcache state") or ""
        dirty = words.DIRTINESS.get(state.lower()) or values.word(lines.get("dirty status"), words.DIRTINESS)
        # The same label reports dirty blocks or the state, depending on its value.
        other = None if dirty != UNKNOWN else state
        return CacheVolume(
            id=number,
            name=block.value("maxcache device name", "maxcache logical device name", "logical device name", "device name"),
            raid_level=raid_level(block.value("raid level")),
            status=state_word(block.value("status of maxcache", "status of maxcache device", "status of logical device") or other),
            size=values.size(block.find("size")),
            dirty=dirty,
            write=write,
            members=members_of(segments_of(block), places)[0],
            data_volume=None if data is None else str(data),
        )

    def of_volume(self, block: Block, acceleration: str, cache_volumes: t.Sequence[CacheVolume]) -> VolumeMaxCache | None:
        """How one volume uses it; ``None`` if not reported."""
        own = next((volume for volume in cache_volumes if volume.data_volume is not None and volume.data_volume == block.number), None)
        if own is not None:
            return VolumeMaxCache(
                read=Policy(ENABLED, ENABLED if acceleration == "maxcache" else UNKNOWN),
                write=own.write,
                write_policy=self._policies.get(own.id, UNKNOWN),
                dirty=own.dirty,
                cache_volume=own.id,
            )
        lines = _lines(block.lines)
        if not lines:
            return None
        switch = self.values.switch
        preferred = lines.get("preferred read cache setting", lines.get("preferred cache setting"))
        setting = lines.get("read cache setting", lines.get("cache setting"))
        status = lines.get("read cache status")
        # Where there is no status, the older builds print what was requested as preferred, and what is as setting.
        read = Policy(switch(setting), switch(status)) if status is not None or preferred is None else Policy(switch(preferred), switch(setting))
        return VolumeMaxCache(
            read=read,
            write=Policy(switch(lines.get("write cache setting")), switch(lines.get("write cache status"))),
            write_policy=self.values.word(lines.get("write cache policy"), words.MAXCACHE_POLICY),
            dirty=self.values.word(lines.get("status", lines.get("dirty status")), words.DIRTINESS),
        )

    def whole(self, cache_volumes: t.Sequence[CacheVolume], drives: t.Sequence[Drive]) -> MaxCache | None:
        """The maxCache of the controller; ``None`` if it reports none."""
        own = [line for line in self.main.lines if line.part in _OF_CONTROLLER]
        lines = _lines(own)
        pool = [line for line in own if re.search(r"max(?:cache|iq).* pool$", line.label)]
        assigned = next((line for line in pool if line.label.startswith("ssds assigned")), None)
        limit = next((line for line in pool if line.label.startswith("maximum ssds")), None)
        generation = self._generation(lines, cache_volumes, limit)
        if generation is None:
            return None
        number = self.values.number
        count = 0 if assigned is None and not cache_volumes and self._says_none() else number(assigned)
        return MaxCache(
            generation=generation,
            volumes=tuple(cache_volumes),
            pool=tuple(drive.address for drive in drives if drive.usage == "cache") if generation == "pool" else (),
            assigned=count,
            limit=number(limit),
            flush_and_fetch_rate=number(lines.get("flush and fetch rate", lines.get("fetch rate", lines.get("cache fetch rate")))),
            dirty_page_threshold=number(lines.get("dirty page threshold")),
            read_write_balance=self.values.pair(lines.get("read, write balance factor", lines.get("cache read, write balance factor"))),
        )

    def _says_none(self) -> bool:
        """Whether the section about the container reports that there is none (``No maxCache 3.0 found``)."""
        free = (text for block in self.blocks if block.kind in ("maxcache", "maxcache3") for unused, text in block.free)
        return any(_NONE.match(text) for text in free)

    def _generation(self, lines: t.Mapping[str, Line], cache_volumes: t.Sequence[CacheVolume], limit: Line | None) -> str | None:
        version = lines.get("version")
        if "maxcache3" in self.sections or any(block.kind == "maxcache3" for block in self.blocks):
            return "container"
        if self.generation == words.SMART:
            reported = version is not None and version.value.lower() not in words.NO_VALUE
            return "smart" if reported or cache_volumes or "maxcache" in self.sections else None
        if limit is not None:
            return "pool"
        if "maxcache" in self.sections or cache_volumes or lines.keys() & {"flush and fetch rate", "dirty page threshold"}:
            return "container"
        return None


def _lines(lines: t.Iterable[Line]) -> dict[str, Line]:
    """The lines of maxCache by what follows its name."""
    found: dict[str, Line] = {}
    for line in lines:
        match = _LABEL.fullmatch(line.label)
        if match and line.part in _OF_CONTROLLER:
            found.setdefault(match.group(1), line)
    return found


PROVIDER = "arcconf"

#: What arcconf 1.x prints among the first lines about a controller, arcconf 2.x and 3.x print below these headings.
_IN_CACHE_PROPERTIES = ("", "cache")
_IN_RAID_PROPERTIES = ("", "raid")


class Config:
    """GETCONFIG, the whole of it or any of its parts, of one controller."""

    def __init__(self, blocks: t.Sequence[Block], sections: t.Container[str], problems: list[str], lost: list[str]) -> None:
        self.blocks = blocks
        self.sections = sections
        self.values = Values(problems, lost)
        self.problems = problems
        main = [block for block in blocks if block.kind == "controller"]
        self.main = main[0] if main else Block("controller", None, 0)
        self.problems += [f"{problem(block.line, 'Controller information')}, twice in one output" for block in main[1:]]
        self.volumes = self._numbered("volume")
        self.generation = self._generation()

    def _numbered(self, kind: str) -> list[Block]:
        """The objects of a kind; one that occurs twice counts once."""
        blocks: list[Block] = []
        numbers: set[str] = set()
        for block in self.blocks:
            if block.kind != kind or block.number is None:
                continue
            if block.number in numbers and kind != "drive":
                # One of them may be another one whose number is damaged.
                self.values.lose(f"{problem(block.line, f'{kind} {block.number}')}, twice in one output")
                continue
            numbers.add(block.number)
            blocks.append(block)
        return blocks

    def _generation(self) -> str:
        driver = (self.main.value("driver name") or "").lower()
        if driver:
            return {"smartpqi": words.SMART, "hpsa": words.SMART, "aacraid": words.AACRAID}.get(driver, UNKNOWN)
        parts = self.main.headings
        labels = {line.label for block in self.blocks for line in block.lines}
        if parts & {"battery", "zmm", "backup"} or labels & _AACRAID_LABELS:
            return words.AACRAID
        if parts & {"green", "cache", "policy"} or labels & _SMART_LABELS or "array" in self.sections:
            return words.SMART
        if re.fullmatch(r"[0-9]+\.[0-9]+-[0-9]+ \([0-9]+\)", self.main.value("firmware", part="version") or ""):
            return words.AACRAID
        return UNKNOWN

    def controller(self) -> Controller:
        main = self.main
        mode = self.values.word(main.find("controller mode"), words.MODES)
        pci = main.find("pci address (domain:bus:device:function)", "pci address (bus:device:function)", "pci address")
        located = self._drives(mode)
        places = Places(located, listed="drive" in self.sections or bool(self._numbered("drive")))
        self._count_volumes()
        ssd_cache = SsdCache(self.main, self.blocks, self.sections, self.generation, self.values)
        cache_volumes = ssd_cache.volumes(self._numbered("maxcache3") + self._numbered("maxcache"), places)
        ssds = {address for volume in cache_volumes for address in volume.members}
        drives = tuple(dataclasses.replace(one.drive, usage="cache") if one.drive.address in ssds else one.drive for one in located)
        cache = self._cache()
        classes = self._drive_policies()
        no_battery = self.values.switch(main.find("no-battery write cache", part="cache"))
        ratio = number_in(main.value("read cache percentage", part="cache"))
        volumes = tuple(
            dataclasses.replace(volume, maxcache=ssd_cache.of_volume(block, volume.acceleration, cache_volumes))
            for block in self.volumes
            for volume in [self._volume(block, places, cache, no_battery, ratio)]
        )
        driver = main.value("driver name") or ("aacraid" if self.generation == words.AACRAID else None)
        return Controller(
            PROVIDER,
            model=main.value("controller model"),
            serial=main.value("controller serial number"),
            firmware=main.value("firmware", part="version"),
            driver=driver.lower() if driver else None,
            pci_address=_pci_address(pci, self.problems),
            mode=mode,
            status=state_word(main.value("controller status")),
            cache=cache,
            protection=self._protection(),
            drive_cache=classes,
            cache_ratio=ratio,
            no_battery_write_cache=no_battery,
            volumes=volumes,
            drives=drives,
            maxcache=ssd_cache.whole(cache_volumes, drives),
            traits=self._traits(),
        )

    def _drives(self, mode: str) -> list[Located]:
        found: list[Located] = []
        addresses: set[str] = set()
        for block in self._numbered("drive"):
            one = drive_of(block, mode, self.values)
            if one is None:
                continue
            if one.drive.address in addresses:
                self.values.lose(f"{problem(block.line, f'Device #{block.number}')}: a second drive {one.drive.address}")
            addresses.add(one.drive.address)
            found.append(one)
        return found

    def _count_volumes(self) -> None:
        """Whether as many volumes are reported as the controller counts."""
        line = self.main.find("logical devices/failed/degraded", "logical drives/offline/critical", part=_IN_RAID_PROPERTIES)
        raw = number_in(line.value) if line is not None else None
        if line is not None and raw is not None and ("volume" in self.sections or self.volumes) and len(self.volumes) < raw:
            self.values.lose(f"{problem(line.number, line.text)}: volumes, and {len(self.volumes)} are reported")

    def _traits(self) -> dict[str, t.Any]:
        """What the provider needs to determine what is possible, in the controller's own words."""
        bypass = {
            block.number: value
            for block in self._numbered("array")
            for value in [block.value("ssd i/o bypass", "ssd i/o bypass status")]
            if value and block.number is not None
        }
        return {
            "generation": self.generation,
            "mode_word": self.main.value("controller mode") or "",
            "cache_status": self.main.value("cache status", part="cache") or "",
            "io_bypass": bypass,
            "volumes": {block.number: self._volume_words(block) for block in self.volumes},
        }

    @staticmethod
    def _volume_words(block: Block) -> dict[str, str]:
        named = {
            "acceleration": ("ld acceleration method",),
            "caching": ("caching",),
            "read": ("read-cache setting", "read-cache mode"),
            "write": ("write-cache setting", "write-cache mode"),
        }
        return {name: value for name, labels in named.items() for value in [block.value(*labels)] if value is not None}

    def _cache(self) -> CacheModule:
        main = self.main
        raw = main.find("cache status", part="cache")
        details = main.value("cache state details", "cache state", "cache status details", part="cache") or ""
        status = self.values.word(raw, words.CACHE_STATUS, beginnings=True)
        reason = re.search(r"\(reason: *(.*?)\)?$", raw.value if raw else "", re.IGNORECASE) or re.search(r"\(reason: *(.*)\)$", details, re.IGNORECASE)
        memory = main.find("cache memory", part="cache") or main.find("installed memory")
        reported = reason.group(1) if reason else details
        if status == "ok" and ("disabled" in details.lower() or (raw is not None and raw.value.lower() != "ok")):
            # Both cannot be true.
            status = UNKNOWN
        # Details of a cache that works are no reason for anything that is not in effect.
        return CacheModule(status=status, reason=reported if status not in ("ok", UNKNOWN) else "", memory=self.values.size(memory))

    def _protection(self) -> Protection:
        """The unit that is there; of two places, the one that is not empty."""
        seen = [unit for unit in (self._battery(), self._zmm(), self._backup_unit(), self._green()) if unit is not None]
        return next((unit for unit in seen if unit.health != MISSING), seen[0] if seen else Protection())

    def _unit(self, line: Line | None, kind: str, table: t.Mapping[str, str], charge: str | None) -> Protection | None:
        if line is None:
            return None
        health = self.values.protection(line, table)
        return Protection(kind, health, number_in(charge), "active" if health == LEARNING else UNKNOWN, line.value)

    def _battery(self) -> Protection | None:
        unit = self._unit(self.main.find("status", part="battery"), "battery", words.BATTERY, self.main.value("capacity remaining", part="battery"))
        if unit is not None and unit.health == HEALTHY and (self.main.value("over temperature", part="battery") or "").lower() == "yes":
            return dataclasses.replace(unit, health="degraded", raw=f"{unit.raw}, over temperature")
        return unit

    def _zmm(self) -> Protection | None:
        return self._unit(self.main.find("status", part="zmm"), "capacitor", words.ZMM, None)

    def _backup_unit(self) -> Protection | None:
        main = self.main
        unit = self._unit(main.find("overall backup unit status", part="backup"), "capacitor", words.BACKUP_UNIT, main.value("charge level", part="backup"))
        if unit is None:
            return None
        learning = (main.value("learn status", part="backup") or "").lower()
        if learning in ("active", "idle"):
            unit = dataclasses.replace(unit, learn_cycle=learning)
        part = self.values.word(main.find("supercap status", part="backup"), words.BACKUP_UNIT, beginnings=True)
        if unit.health == HEALTHY and part in (FAILED, MISSING, CHARGING):
            return dataclasses.replace(unit, health=part, raw=f"{unit.raw} (supercap: {main.value('supercap status', part='backup')})")
        if unit.health == DEGRADED:
            # Not ready: its parts show why.
            health = LEARNING if learning == "active" else part if part in (FAILED, CHARGING) else DEGRADED
            raw = main.value("supercap status", part="backup")
            return dataclasses.replace(unit, health=health, raw=f"{unit.raw} (supercap: {raw})" if raw else unit.raw)
        return unit

    def _green(self) -> Protection | None:
        line = self.main.find("backup power status", "overall backup unit status", part="green")
        kind = "battery" if "batter" in (self.main.value("power type", part="green") or "").lower() else "capacitor"
        return self._unit(line, kind, {**words.BACKUP_UNIT, **words.GREEN_BACKUP}, self.main.value("relative charge", "charge level", part="green"))

    def _drive_policies(self) -> dict[str, str]:
        policies = {}
        labels = ("global physical device write cache policy", "global physical devices write cache policy")
        line = self.main.find(*labels, part=_IN_CACHE_PROPERTIES)
        if line is not None and line.value.lower() not in words.NO_VALUE:
            policies["all"] = self.values.word(line, words.GLOBAL_POLICY)
        for label, name in words.CLASS_LABELS.items():
            line = self.main.find(label, part="policy")
            if line is not None and line.value.lower() not in words.NO_VALUE:
                policies[name] = self.values.word(line, words.CLASS_POLICY)
        return policies

    def _volume(self, block: Block, places: Places, cache: CacheModule, no_battery: str, ratio: int | None) -> Volume:
        number = block.number or UNKNOWN
        members, untold = members_of(segments_of(block), places)
        disk = block.value("disk name") or ""
        acceleration = self._acceleration(block.find("ld acceleration method"))
        if block.find("caching") is not None:
            read, write = self._switched(block, cache, acceleration, no_battery, ratio)
        else:
            read, write = self._read_policy(block), self._write_policy(block)
        return Volume(
            id=number,
            name=block.value("logical device name", "logical drive name"),
            wwn=hexadecimal(block.value("volume unique identifier", "unique identifier")),
            raid_level=raid_level(block.value("raid level")),
            status=state_word(block.value("status of logical device", "status of logical drive")),
            size=self.values.size(block.find("size")),
            read=read,
            write=write,
            members=members,
            members_untold=untold,
            os_device=disk.split()[0] if disk.startswith("/dev/") else None,
            scsi=_scsi(disk) or ((0, int(number), 0) if self.generation == words.AACRAID else None),
            array=block.value("array"),
            acceleration=acceleration,
        )

    def _acceleration(self, line: Line | None) -> str:
        if line is not None and re.search(r"bypass|smart ?path", line.value, re.IGNORECASE):
            return "io_bypass"
        return self.values.word(line, words.ACCELERATION, beginnings=True)

    def _switched(self, block: Block, cache: CacheModule, acceleration: str, no_battery: str, ratio: int | None) -> tuple[Policy, Policy]:
        """SmartRAID: one switch for both. It is in effect if the cache is in order and accelerates this volume."""
        on = self.values.translate(block.find("caching"), words.CACHING)
        if on is None:
            return Policy(), Policy()
        if not on:
            return Policy(NONE, NONE), Policy(WRITETHROUGH, WRITETHROUGH)
        written = WRITEBACK_ALWAYS if no_battery == ENABLED else WRITEBACK
        if cache.status == UNKNOWN and acceleration in (UNKNOWN, "controller_cache"):
            return Policy(READ_AHEAD), Policy(written)
        works = cache.status == "ok" and acceleration in (UNKNOWN, "controller_cache")
        # A cache that is divided 100:0 or 0:100 does only one of the two.
        reads, writes = works and ratio != 0, works and ratio != 100
        return Policy(READ_AHEAD, READ_AHEAD if reads else NONE), Policy(written, written if writes else WRITETHROUGH)

    def _read_policy(self, block: Block) -> Policy:
        """``mode`` alone is both; beside ``setting``, it is the old name of ``status``."""
        setting, status = block.find("read-cache setting"), block.find("read-cache status")
        mode = block.find("read-cache mode")
        configured = self.values.word(setting or mode, words.READ_SETTING)
        if setting is None:
            return Policy(configured, configured)
        return Policy(configured, self.values.word(status or mode, words.READ_SETTING))

    def _write_policy(self, block: Block) -> Policy:
        setting = block.find("write-cache setting")
        status = block.find("write-cache status") or block.find("write-cache mode")
        if any(line is not None and line.value.lower() == words.NOT_SUPPORTED for line in (setting, status)):
            # The card has no memory to write back from, by its own words: every write goes through.
            return Policy(WRITETHROUGH, WRITETHROUGH)
        configured = self.values.word(setting, words.WRITE_SETTING)
        back = self.values.translate(status, words.WRITE_STATUS)
        if back is None:
            return Policy(configured, UNKNOWN)
        return Policy(configured, (configured if configured in WRITES_BACK else WRITEBACK) if back else WRITETHROUGH)


_AACRAID_LABELS = frozenset(
    {
        "write-cache setting",
        "write-cache mode",
        "write-cache status",
        "read-cache setting",
        "read-cache mode",
        "global physical device write cache policy",
        "controller cache preservation",
        "global task priority",
        "failed stripes",
    }
)
_SMART_LABELS = frozenset(
    {"caching", "ld acceleration method", "volume unique identifier", "drive configuration type", "drive unique id", "no-battery write cache"}
)


def _scsi(disk: str) -> tuple[int, int, int] | None:
    match = re.search(r"\(Bus: *([0-9]{1,6}), *Target: *([0-9]{1,6}), *Lun: *([0-9]{1,6})\)", disk, re.IGNORECASE)
    return (int(match.group(1)), int(match.group(2)), int(match.group(3))) if match else None


def _pci_address(line: Line | None, problems: list[str]) -> str | None:
    """``0:3b:0:0`` (hexadecimal; some builds leave the domain out of the label and print it) as sysfs writes it."""
    if line is None or line.value.lower() in words.NO_VALUE:
        return None
    match = re.fullmatch(r"(?:([0-9A-Fa-f]{1,4}):)?([0-9A-Fa-f]{1,2}):([0-9A-Fa-f]{1,2}):([0-7])", line.value)
    if match is None:
        problems.append(problem(line.number, line.text))
        return None
    domain, bus, device, function = (int(piece or "0", 16) for piece in match.groups())
    return f"{domain:04x}:{bus:02x}:{device:02x}.{function:x}"
