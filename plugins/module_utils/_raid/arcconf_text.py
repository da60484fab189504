# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What arcconf prints, read into the model; pure, and never raises.

Both generations: aacraid (series 2 to 8, IBM ServeRAID, Sun STK) and SmartRAID (SmartHBA, HBA 1000 and later, Cisco). Which of the
two a controller is follows from the labels and the name of the driver, never from a version: one arcconf speaks to both.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid import arcconf_json
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import arcconf_words as words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf_drives import Located, drive_of, members_of, segments_of
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf_lines import Block, Line, Structure, problem, structure
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf_values import Values, hexadecimal, number_in, raid_level, state_word
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.model import (
    DISABLED,
    ENABLED,
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
    MaxCache,
    Policy,
    Protection,
    Reading,
    Volume,
    VolumeMaxCache,
)

PROVIDER = "arcconf"

_CONFIG = ("controller", "array", "volume", "drive", "maxcache", "maxcache3")
#: Ends of the labels of maxCache, which was called MaxIQ at first.
_MAXCACHE = re.compile(r"(?:maxcache|maxiq) (.*)")


def parse(text: str) -> Reading:
    """Read any one output of arcconf.

    Outputs without a controller (set answers, GETSTATUS, GETLOGS, usage texts) give an empty reading. A controller has the
    id ``unknown`` unless the output tells it (LIST and GETVERSION do, GETCONFIG does not).
    """
    payload = arcconf_json.payload_of(text)
    if payload is not None:
        return arcconf_json.parse_payload(payload)
    found = structure(text)
    if not found.known:
        first = next(((number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()), None)
        said = "the output is empty" if first is None else f"{problem(*first)}: this is no output of arcconf"
        return Reading(not_understood=(said,), complete=False)
    problems = list(found.problems)
    controllers = _listed(found, problems)
    if any(block.kind in _CONFIG and not _is_list(block) for block in found.blocks):
        controllers.append(_Config(found, problems).controller())
    if found.found is not None and controllers and _is_listing(found) and found.found != len(controllers):
        problems.append(f"the tool found {found.found} controllers and tells of {len(controllers)}")
    complete = found.verdict is not None or found.menu
    if not complete:
        problems.append("the output has no end: the last line is not the tool's verdict")
    return Reading(tuple(controllers), tuple(problems), complete)


def join(listed: Reading, configs: t.Mapping[str, Reading]) -> Reading:
    """One reading of a LIST (or GETVERSION) and of one GETCONFIG per controller.

    :param configs: by the number of the controller.
    """
    controllers: list[Controller] = []
    problems = list(listed.not_understood)
    for number, config in configs.items():
        problems += [f"controller {number}: {text}" for text in config.not_understood]
        short = next((one for one in listed.controllers if one.id == number), Controller(PROVIDER, id=number))
        if config.controllers:
            controllers.append(_enrich(config.controllers[0], short))
        else:
            problems.append(f"controller {number}: GETCONFIG tells nothing of it")
            controllers.append(short)
    return Reading(tuple(controllers), tuple(problems), listed.complete and all(config.complete for config in configs.values()))


def _enrich(full: Controller, short: Controller) -> Controller:
    """A controller of GETCONFIG with what only LIST tells of it."""
    changes: dict[str, t.Any] = {"id": short.id}
    for name in ("model", "serial", "firmware", "driver"):
        if getattr(full, name) is None:
            changes[name] = getattr(short, name)
    for name in ("mode", "status"):
        if getattr(full, name) == UNKNOWN:
            changes[name] = getattr(short, name)
    return dataclasses.replace(full, **changes)


def _is_listing(found: Structure) -> bool:
    return all(block.kind == "controller" and (block.number is not None or _is_list(block)) for block in found.blocks)


def _is_list(block: Block) -> bool:
    """Whether a controller section is the table of LIST, or one of GETVERSION's."""
    return block.kind == "controller" and (block.number is not None or any(_list_number(line) or line.label == "controller id" for line in block.lines))


def _list_number(line: Line) -> str | None:
    match = re.fullmatch(r"controller (\d+):?", line.label)
    return match.group(1) if match and line.part == "" else None


def _listed(found: Structure, problems: list[str]) -> list[Controller]:
    controllers = []
    for block in found.blocks:
        if block.kind == "controller" and block.number is not None:
            controllers.append(Controller(PROVIDER, id=block.number, firmware=block.value("firmware")))
        elif _is_list(block):
            controllers += [_of_list(line, number, problems) for line in block.lines for number in [_list_number(line)] if number]
    return controllers


def _of_list(line: Line, number: str, problems: list[str]) -> Controller:
    """``: Optimal, Slot 8, HBA, MSCC Adaptec HBA 1100-16i, 8A246320899, 50000D1704B53280``; a name may have commas."""
    pieces = [piece.strip() for piece in line.value.lstrip(": ").split(",")]
    if len(pieces) < 6:
        problems.append(problem(line.number, line.text))
        return Controller(PROVIDER, id=number)
    mode = words.MODES.get(pieces[2].lower())
    if mode is None:
        problems.append(problem(line.number, line.text))
    return Controller(
        PROVIDER,
        id=number,
        model=", ".join(pieces[3:-2]) or None,
        serial=pieces[-2] or None,
        mode=mode or UNKNOWN,
        status=state_word(pieces[0]),
        traits={"mode_word": pieces[2]},
    )


class _Config:
    """GETCONFIG, the whole of it or any of its parts, of one controller."""

    def __init__(self, found: Structure, problems: list[str]) -> None:
        self.found = found
        self.values = Values(problems)
        self.problems = problems
        main = [block for block in found.blocks if block.kind == "controller" and not _is_list(block)]
        self.main = main[0] if main else Block("controller", None, 0)
        self.problems += [f"{problem(block.line, 'Controller information')}, twice in one output" for block in main[1:]]
        self.volumes = self._numbered("volume")
        self.generation = self._generation()

    def _numbered(self, kind: str) -> list[Block]:
        """The objects of a kind; one that occurs twice counts once."""
        blocks: list[Block] = []
        for block in self.found.blocks:
            if block.kind != kind or block.number is None:
                continue
            if any(block.number == other.number for other in blocks) and kind != "drive":
                self.problems.append(f"{problem(block.line, f'{kind} {block.number}')}, twice in one output")
                continue
            blocks.append(block)
        return blocks

    def _generation(self) -> str:
        driver = (self.main.value("driver name") or "").lower()
        if driver:
            return {"smartpqi": words.SMART, "hpsa": words.SMART, "aacraid": words.AACRAID}.get(driver, UNKNOWN)
        parts = self.main.headings
        labels = {line.label for block in self.found.blocks for line in block.lines}
        if parts & {"battery", "zmm", "backup"} or labels & _AACRAID_LABELS:
            return words.AACRAID
        if parts & {"green", "cache", "policy"} or labels & _SMART_LABELS or "array" in self.found.sections:
            return words.SMART
        if re.fullmatch(r"\d+\.\d+-\d+ \(\d+\)", self.main.value("firmware", part="version") or ""):
            return words.AACRAID
        return UNKNOWN

    def controller(self) -> Controller:
        main = self.main
        mode = self.values.word(main.find("controller mode"), words.MODES)
        pci = main.find("pci address (domain:bus:device:function)", "pci address (bus:device:function)", "pci address")
        located = self._drives(mode)
        cache_volumes = self._cache_volumes(located)
        ssds = {address for volume in cache_volumes for address in volume.members}
        drives = tuple(dataclasses.replace(one.drive, usage="cache") if one.drive.address in ssds else one.drive for one in located)
        cache = self._cache()
        classes = self._drive_policies()
        no_battery = self.values.switch(main.find("no-battery write cache", part="cache"))
        ratio = number_in(main.value("read cache percentage", part="cache"))
        volumes = tuple(self._volume(block, located, cache, no_battery, ratio, cache_volumes) for block in self.volumes)
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
            maxcache=self._maxcache(tuple(cache_volumes), drives),
            traits=self._traits(),
        )

    def _drives(self, mode: str) -> list[Located]:
        found: list[Located] = []
        for block in self._numbered("drive"):
            one = drive_of(block, mode, self.values)
            if one is not None and any(one.drive.address == other.drive.address for other in found):
                self.problems.append(f"{problem(block.line, f'Device #{block.number}')}: a second drive {one.drive.address}")
            if one is not None:
                found.append(one)
        return found

    def _traits(self) -> dict[str, t.Any]:
        """What the provider needs to say what is possible, in the controller's own words."""
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
        said = main.find("cache status", part="cache")
        details = main.value("cache state details", "cache state", "cache status details", part="cache") or ""
        status = self.values.word(said, words.CACHE_STATUS, beginnings=True)
        reason = re.search(r"\(reason: *(.*?)\)?$", said.value if said else "", re.IGNORECASE) or re.search(r"\(reason: *(.*)\)$", details, re.IGNORECASE)
        memory = main.find("cache memory", part="cache") or main.find("installed memory")
        told = reason.group(1) if reason else details if status not in ("ok", UNKNOWN) else ""
        return CacheModule(status=status, reason=told, memory=self.values.size(memory))

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
            return dataclasses.replace(unit, health="degraded", said=f"{unit.said}, over temperature")
        return unit

    def _zmm(self) -> Protection | None:
        return self._unit(self.main.find("status", part="zmm"), "capacitor", words.ZMM, None)

    def _backup_unit(self) -> Protection | None:
        line = self.main.find("overall backup unit status", part="backup")
        return self._unit(line, "capacitor", words.BACKUP_UNIT, self.main.value("charge level", part="backup"))

    def _green(self) -> Protection | None:
        line = self.main.find("backup power status", part="green") or self.main.find("overall backup unit status", part="green")
        kind = "battery" if "batter" in (self.main.value("power type", part="green") or "").lower() else "capacitor"
        return self._unit(line, kind, words.GREEN_BACKUP, self.main.value("relative charge", "charge level", part="green"))

    def _drive_policies(self) -> dict[str, str]:
        policies = {}
        line = self.main.find("global physical device write cache policy", "global physical devices write cache policy")
        if line is not None and line.value.lower() not in words.NO_VALUE:
            policies["all"] = self.values.word(line, words.GLOBAL_POLICY)
        for label, name in words.CLASS_LABELS.items():
            line = self.main.find(label, part="policy")
            if line is not None and line.value.lower() not in words.NO_VALUE:
                policies[name] = self.values.word(line, words.CLASS_POLICY)
        return policies

    def _volume(
        self, block: Block, located: t.Sequence[Located], cache: CacheModule, no_battery: str, ratio: int | None, cache_volumes: t.Sequence[CacheVolume]
    ) -> Volume:
        number = block.number or UNKNOWN
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
            members=members_of(segments_of(block), located),
            os_device=disk.split()[0] if disk.startswith("/dev/") else None,
            scsi=_scsi(disk) or ((0, int(number), 0) if self.generation == words.AACRAID else None),
            array=block.value("array"),
            acceleration=acceleration,
            maxcache=self._volume_maxcache(block, acceleration, cache_volumes),
        )

    def _acceleration(self, line: Line | None) -> str:
        if line is not None and re.search(r"bypass|smart ?path", line.value, re.IGNORECASE):
            return "io_bypass"
        return self.values.word(line, words.ACCELERATION, beginnings=True)

    def _switched(self, block: Block, cache: CacheModule, acceleration: str, no_battery: str, ratio: int | None) -> tuple[Policy, Policy]:
        """SmartRAID: one switch for both. It is in force if the cache is in order and accelerates this volume."""
        on = self.values.look(block.find("caching"), words.CACHING)
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
        back = self.values.look(status, words.WRITE_STATUS)
        if back is None:
            return Policy(configured, UNKNOWN)
        return Policy(configured, (configured if configured in WRITES_BACK else WRITEBACK) if back else WRITETHROUGH)

    def _volume_maxcache(self, block: Block, acceleration: str, cache_volumes: t.Sequence[CacheVolume]) -> VolumeMaxCache | None:
        lines = _maxcache_lines(block.lines)
        own = next((volume for volume in cache_volumes if volume.data_volume == block.number and block.number is not None), None)
        if own is not None:
            return VolumeMaxCache(
                read=Policy(ENABLED, ENABLED if acceleration == "maxcache" else UNKNOWN),
                write=own.write,
                write_policy=self._smart_policies.get(own.id, UNKNOWN),
                dirty=own.dirty,
                cache_volume=own.id,
            )
        if not lines:
            return None
        switch = self.values.switch
        preferred, setting = (
            lines.get("preferred read cache setting", lines.get("preferred cache setting")),
            lines.get("read cache setting", lines.get("cache setting")),
        )
        status = lines.get("read cache status")
        # Where there is no status, the older builds print what was asked for as preferred, and what is as setting.
        read = Policy(switch(setting), switch(status)) if status is not None or preferred is None else Policy(switch(preferred), switch(setting))
        return VolumeMaxCache(
            read=read,
            write=Policy(switch(lines.get("write cache setting")), switch(lines.get("write cache status"))),
            write_policy=self.values.word(lines.get("write cache policy"), words.MAXCACHE_POLICY),
            dirty=self.values.word(lines.get("status", lines.get("dirty status")), words.DIRTINESS),
        )

    def _cache_volumes(self, located: t.Sequence[Located]) -> list[CacheVolume]:
        self._smart_policies: dict[str, str] = {}
        volumes = []
        for block in [*self._numbered("maxcache3"), *self._numbered("maxcache")]:
            lines = _maxcache_lines(block.lines)
            data = block.value("associated logical device id", "associated logical device", "data logical device id")
            number = block.number or UNKNOWN
            policy_line = lines.get("write policy status", lines.get("write policy", lines.get("write cache policy")))
            policy = self.values.word(policy_line, words.MAXCACHE_POLICY)
            self._smart_policies[number] = policy
            status = self.values.switch(lines.get("write cache status"))
            write = Policy(self.values.switch(lines.get("write cache setting")), status)
            if data is not None and policy != UNKNOWN:
                caches_writes = DISABLED if policy == "writethrough" else ENABLED
                write = Policy(caches_writes, status if status != UNKNOWN else caches_writes)
            volumes.append(
                CacheVolume(
                    id=number,
                    name=block.value("maxcache device name", "maxcache logical device name", "logical device name", "device name"),
                    raid_level=raid_level(block.value("raid level")),
                    status=state_word(block.value("status of maxcache", "status of logical device", "maxcache state", "status of maxcache device")),
                    size=self.values.size(block.find("size")),
                    dirty=self.values.word(lines.get("dirty status"), words.DIRTINESS),
                    write=write,
                    members=members_of(segments_of(block), located),
                    data_volume=_number_text(data),
                )
            )
        return volumes

    def _maxcache(self, volumes: tuple[CacheVolume, ...], drives: t.Sequence[t.Any]) -> MaxCache | None:
        lines = _maxcache_lines(line for line in self.main.lines if line.part in ("", "raid"))
        counts = {line.label: line for line in self.main.lines if line.part in ("", "raid") and re.search(r"max(cache|iq).* pool$", line.label)}
        assigned = next((line for label, line in counts.items() if label.startswith("ssds assigned")), None)
        limit = next((line for label, line in counts.items() if label.startswith("maximum ssds")), None)
        generation = self._maxcache_generation(lines, volumes, limit)
        if generation is None:
            return None
        rate = lines.get("flush and fetch rate", lines.get("fetch rate", lines.get("cache fetch rate")))
        return MaxCache(
            generation=generation,
            volumes=volumes,
            pool=tuple(one.address for one in drives if one.usage == "cache") if generation == "pool" else (),
            assigned=self.values.number(assigned),
            limit=self.values.number(limit),
            flush_and_fetch_rate=self.values.number(rate),
            dirty_page_threshold=self.values.number(lines.get("dirty page threshold")),
            read_write_balance=self.values.pair(lines.get("read, write balance factor", lines.get("cache read, write balance factor"))),
        )

    def _maxcache_generation(self, lines: t.Mapping[str, Line], volumes: t.Sequence[CacheVolume], limit: Line | None) -> str | None:
        version = lines.get("version")
        if "maxcache3" in self.found.sections or any(block.kind == "maxcache3" for block in self.found.blocks):
            return "container"
        if self.generation == words.SMART:
            told = version is not None and version.value.lower() not in words.NO_VALUE
            return "smart" if told or volumes or "maxcache" in self.found.sections else None
        if limit is not None:
            return "pool"
        if "maxcache" in self.found.sections or volumes or lines.keys() & {"flush and fetch rate", "dirty page threshold"}:
            return "container"
        return None


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


def _maxcache_lines(lines: t.Iterable[Line]) -> dict[str, Line]:
    """The lines of maxCache by what follows its name, which had three spellings and was MaxIQ once."""
    found: dict[str, Line] = {}
    for line in lines:
        match = _MAXCACHE.fullmatch(line.label)
        if match and line.part in ("", "raid"):
            found.setdefault(match.group(1), line)
    return found


def _number_text(text: str | None) -> str | None:
    number = number_in(text)
    return None if number is None else str(number)


def _scsi(disk: str) -> tuple[int, int, int] | None:
    match = re.search(r"\(Bus: *(\d+), *Target: *(\d+), *Lun: *(\d+)\)", disk, re.IGNORECASE)
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
