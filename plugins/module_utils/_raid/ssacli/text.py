# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reader of what ssacli, hpssacli and hpacucli print.

The format is a tree made by indentation, in steps of three blanks: a controller's heading in column 0, its properties, enclosures
and arrays below it, logical drives and physical drives below the array. A label means nothing without its place: ``Status`` and
``Serial Number`` occur in every section. Sources: captures of ``ctrl all show config detail``, ``ctrl slot=0 show detail`` and
``ctrl slot=0 ld all show detail`` of hpacucli 8 to ssacli 6 (P400 to P816i-a), and public reports of error texts and of warnings,
which stand in column 0 in the middle of the tree.

Sizes of logical drives and of the cache are in powers of 1024, sizes of physical drives in powers of 1000; newer versions print the
size of the cache without a unit, in GiB (libstoragemgmt issue 340).
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CHARGING,
    DEFAULT,
    DEGRADED,
    DISABLED,
    ENABLED,
    FAILED,
    HEALTHY,
    MISSING,
    NONE,
    READ_AHEAD,
    UNKNOWN,
    WRITEBACK,
    WRITEBACK_ALWAYS,
    WRITETHROUGH,
    CacheModule,
    Controller,
    Drive,
    Policy,
    Protection,
    Reading,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.ssacli.outline import FIELD, Block, Outline, outline, quote

SWITCHES: t.Mapping[str, str] = {"enabled": ENABLED, "disabled": DISABLED}
#: ``Configured Drive Write Cache Policy`` and its siblings; the older ``Drive Write Cache`` uses :data:`SWITCHES`.
#: ``Unchanged`` is a word of the same core in arcconf, not seen here: the firmware leaves what the drive has, as with Default.
DRIVE_POLICIES: t.Mapping[str, str] = {
    "enable": ENABLED,
    "disable": DISABLED,
    "default": DEFAULT,
    "enabled": ENABLED,
    "disabled": DISABLED,
    "unchanged": DEFAULT,
}
DRIVE_POLICY_LABELS: t.Mapping[str, str] = {
    "configured drive write cache policy": "configured",
    "unconfigured drive write cache policy": "unconfigured",
    "hba drive write cache policy": "hba",
}
CACHE_STATUS: t.Mapping[str, str] = {
    "ok": "ok",
    "not configured": "not_configured",
    "temporarily disabled": "temporarily_disabled",
    "permanently disabled": "permanently_disabled",
}
#: ``Battery/Capacitor Status``. OK, Recharging and Failed were seen; the others are words of the same core in arcconf.
BATTERY_STATUS: t.Mapping[str, str] = {
    "ok": HEALTHY,
    "recharging": CHARGING,
    "charging": CHARGING,
    "not fully charged": CHARGING,
    "degraded": DEGRADED,
    "failed": FAILED,
    "not present": MISSING,
    "not installed": MISSING,
    "missing": MISSING,
    "hot removed": MISSING,
    "no battery connected": MISSING,
}
BACKUP_SOURCES: t.Mapping[str, str] = {"batteries": "battery", "battery": "battery", "capacitors": "capacitor", "capacitor": "capacitor"}
#: ``LD Acceleration Method``. The words for SSD caches come from other tools of the same core.
ACCELERATIONS: t.Mapping[str, str] = {
    "controller cache": "controller_cache",
    "smart path": "io_bypass",
    "ssd smart path": "io_bypass",
    "hp ssd smart path": "io_bypass",
    "hpe ssd smart path": "io_bypass",
    "i/o bypass": "io_bypass",
    "ssd i/o bypass": "io_bypass",
    "smart cache": "maxcache",
    "smartcache": "maxcache",
    "ssd smart cache": "maxcache",
    "maxcache": "maxcache",
    "all disabled": "none",
    "none": "none",
}
MODES: t.Mapping[str, str] = {"raid": "raid", "mixed": "mixed", "hba": "hba", "jbod": "jbod"}
CONTROLLER_STATUS: t.Mapping[str, str] = {"ok": "optimal", "failed": "failed"}
VOLUME_STATUS: t.Mapping[str, str] = {
    "ok": "optimal",
    "failed": "failed",
    "offline": "offline",
    "interim recovery mode": "degraded",
    "ready for rebuild": "degraded",
    "ready for recovery": "degraded",
    "recovering": "rebuilding",
    "rebuilding": "rebuilding",
}
DRIVE_USAGES: t.Mapping[str, str] = {
    "data drive": "configured",
    "unassigned drive": "unconfigured",
    "spare drive": "spare",
    "hba mode drive": "hba",
    "hba drive": "hba",
}
INTERFACES = (("nvme", "nvme"), ("sata", "sata"), ("sas", "sas"), ("scsi", "scsi"))

BINARY = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3, "TB": 1024**4, "PB": 1024**5}
DECIMAL = {"B": 1, "KB": 1000, "MB": 1000**2, "GB": 1000**3, "TB": 1000**4, "PB": 1000**5}

SIZE = re.compile(r"^([0-9]{1,9}(?:\.[0-9]{1,4})?)(?:\s+([KMGTP]?B))?$")
RATIO = re.compile(r"^([0-9]{1,3})% Read / ([0-9]{1,3})% Write$")
PCI = re.compile(r"^[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]$")
WWN = re.compile(r"^[0-9A-Fa-f]{16,32}$")
RAID_LEVEL = re.compile(r"^(?:RAID )?(?:([0-9])\+0|(ADG)|([0-9]{1,2}))(?: ?\(.*\)| ?ADM)?$")

#: The switch of a volume's cache; the second is the older label.
CACHING = ("caching", "array accelerator")


PROVIDER = "ssacli"
_SERIAL = re.compile(r"\(sn: *([^)]+)\)")


class ControllerReader:
    """One controller of a tree; what is known by its label and has a strange value goes to ``doubts``."""

    def __init__(self, tree: Outline, head: Block, doubts: list[str], lost: list[str]) -> None:
        self.head = head
        self.doubts = doubts
        self.lost = lost
        self.arrays = tree.of("array", head)
        self.volumes = tree.of("volume", head)
        self.drives = tree.of("drive", head)
        self.listed = tree.of("listed_drive", head)
        self.listed_in: dict[int, list[str]] = {}
        for block in self.listed:
            volume = block.within("volume")
            if volume is not None:
                self.listed_in.setdefault(volume.line, []).append(block.key)
        unnamed = tree.lost()
        self.unnamed = [block for block in tree.of("other", head) if unnamed.get(block.line) == "drive"]
        self.data_drives: dict[int, list[str]] = {}
        for block in self.drives:
            array = block.within("array")
            if array is not None and (block.value("drive type") or "Data Drive").lower() == "data drive":
                self.data_drives.setdefault(array.line, []).append(block.key)

    def read(self) -> Controller:
        head = self.head
        mode = self._mode()
        cache = self._cache()
        drive_cache = self._drive_cache()
        no_battery = self._word(head, "no-battery write cache", SWITCHES)
        drives = self._drives()
        serial = _SERIAL.search(head.rest)
        controller = Controller(
            provider=PROVIDER,
            id=head.key,
            model=head.text,
            serial=head.value("serial number") or (serial.group(1).strip() if serial else None),
            firmware=head.value("firmware version"),
            driver=head.value("driver name"),
            pci_address=self._pci_address(),
            mode=mode,
            status=self._status(head, "controller status", CONTROLLER_STATUS),
            cache=cache,
            protection=self._protection(cache),
            drive_cache=drive_cache,
            cache_ratio=self._ratio(),
            no_battery_write_cache=no_battery,
            drives=drives,
            traits=self._traits(),
        )
        return dataclasses.replace(controller, volumes=self._volumes(controller))

    def _word(self, block: Block, label: str, table: t.Mapping[str, str]) -> str:
        """The value of a label in our words; ``unknown`` if there is no such line."""
        if label not in block.fields:
            return UNKNOWN
        value, number = block.fields[label]
        found = table.get(value.lower().strip())
        if found is None:
            self.doubts.append(quote(number, f"{label}: {value}"))
        return found or UNKNOWN

    def _status(self, block: Block, label: str, table: t.Mapping[str, str]) -> str:
        """A state with the tool's own word where the table has none: ``Recovering, 15% complete`` is in it by its first word."""
        value = (block.value(label) or "").lower()
        return table.get(value) or table.get(value.split(",")[0].split("(")[0].strip()) or value or UNKNOWN

    def _mode(self) -> str:
        if "(hba mode)" in self.head.rest.lower() or (self.head.value("hba mode enabled") or "").lower() == "true":
            return "hba"
        if "controller mode" not in self.head.fields:
            return "raid" if "(raid mode)" in self.head.rest.lower() else UNKNOWN
        value, number = self.head.fields["controller mode"]
        words = value.lower().split()
        found = MODES.get(words[0]) if words else None
        if found is None:
            self.doubts.append(quote(number, f"controller mode: {value}"))
        return found or UNKNOWN

    def _cache(self) -> CacheModule:
        memory = self._size(self.head, "total cache size", BINARY, "GB")
        if (self.head.value("cache board present") or "").lower() == "false":
            return CacheModule("absent", "there is no cache board", 0 if memory is None else memory)
        details = (self.head.value("cache status details"), self.head.value("cache disable reason"))
        words = " ".join(words for words in details if words)
        status = self._word(self.head, "cache status", CACHE_STATUS)
        # Details of a cache that works are no reason for anything that is not in effect.
        return CacheModule(status, memory=memory, note=words) if status in ("ok", UNKNOWN) else CacheModule(status, words, memory)

    def _protection(self, cache: CacheModule) -> Protection:
        """The battery or capacitor. Its line disappears when its cable is broken, so no line is no health."""
        source = self._word(self.head, "cache backup power source", BACKUP_SOURCES)
        raw = self.head.value("battery/capacitor status")
        if raw is None:
            none = self.head.value("battery/capacitor count") == "0"
            words = "Battery/Capacitor Count: 0" if none else cache.reason if cache.status != "absent" else ""
            return Protection(kind=source, health=MISSING if none else UNKNOWN, raw=words)
        plain, _bracket, addition = raw.lower().partition("(")
        health = BATTERY_STATUS.get(plain.strip())
        if health == HEALTHY and addition:
            # Healthy with a reservation.
            health = BATTERY_STATUS.get(addition.rstrip(") "))
            health = None if health == HEALTHY else health
        if health is None:
            self.doubts.append(quote(self.head.fields["battery/capacitor status"][1], f"battery/capacitor status: {raw}"))
        return Protection(kind=source, health=health or UNKNOWN, raw=f"Battery/Capacitor Status: {raw}")

    def _drive_cache(self) -> dict[str, str]:
        found = {}
        if "drive write cache" in self.head.fields:
            found["all"] = self._word(self.head, "drive write cache", SWITCHES)
        for label, name in DRIVE_POLICY_LABELS.items():
            if label in self.head.fields:
                found[name] = self._word(self.head, label, DRIVE_POLICIES)
        return found

    def _ratio(self) -> int | None:
        for label in ("cache ratio", "accelerator ratio"):
            if label in self.head.fields:
                value, number = self.head.fields[label]
                match = RATIO.match(" ".join(value.split()))
                if match and int(match.group(1)) + int(match.group(2)) == 100:
                    return int(match.group(1))
                self.doubts.append(quote(number, f"{label}: {value}"))
        return None

    def _pci_address(self) -> str | None:
        label = "pci address (domain:bus:device.function)"
        if label not in self.head.fields:
            return None
        value, number = self.head.fields[label]
        if PCI.match(value):
            return value.lower()
        self.doubts.append(quote(number, f"{label}: {value}"))
        return None

    def _size(self, block: Block, label: str, units: t.Mapping[str, int], without: str | None = None) -> int | None:
        if not block.value(label):
            return None
        value, number = block.fields[label]
        match = SIZE.match(value)
        unit = (match.group(2) or without) if match else None
        if match is None or unit is None:
            self.doubts.append(quote(number, f"{label}: {value}"))
            return None
        return int(float(match.group(1)) * units[unit])

    def _traits(self) -> dict[str, t.Any]:
        """What the provider needs again: which word switches the cache of a volume, where Smart Path is on, what the kernel calls drives."""
        old = any("array accelerator" in block.fields for block in self.volumes)
        smart_path = {}
        for array in self.arrays:
            value = next((words for label, (words, _line) in array.fields.items() if label.endswith("smart path") and words), None)
            if value is not None:
                smart_path[array.key] = value.lower().startswith("enable")
        devices = {block.key: block.fields["disk name"][0] for block in self.drives if "disk name" in block.fields}
        return {
            "volume_switch": "arrayaccelerator" if old else "caching",
            "smart_path": smart_path,
            "drive_devices": {address: path for address, path in devices.items() if path.startswith("/dev/")},
        }

    def _lose(self, raw: str) -> None:
        """Something that may be another one whose name is damaged."""
        self.doubts.append(raw)
        self.lost.append(raw)

    def _volumes(self, controller: Controller) -> tuple[Volume, ...]:
        volumes: dict[str, Volume] = {}
        for block in self.volumes:
            if block.key in volumes:
                self._lose(f"{quote(block.line, block.text)} reports logical drive {block.key} again")
            else:
                volumes[block.key] = self._volume(block, controller)
        return tuple(volumes.values())

    def _volume(self, block: Block, controller: Controller) -> Volume:
        array = block.within("array")
        if array is None:
            self.doubts.append(f"{quote(block.line, block.text)} belongs to no array")
        size, level, status = self._summary_of_volume(block)
        read, write = self._caching(block, controller)
        members, untold = self._members(block, array)
        path = (block.value("disk name") or "").split()
        wwn = block.value("unique identifier") or ""
        return Volume(
            id=block.key,
            name=block.value("logical drive label"),
            wwn=wwn.lower() if WWN.match(wwn) else None,
            raid_level=level,
            status=status,
            size=size,
            read=read,
            write=write,
            drive_cache=controller.drive_cache.get("all", controller.drive_cache.get("configured", UNKNOWN)),
            members=members,
            members_untold=untold,
            os_device=path[0] if path and path[0].startswith("/dev/") else None,
            array=array.key if array is not None else None,
            acceleration=self._word(block, "ld acceleration method", ACCELERATIONS),
        )

    def _summary_of_volume(self, block: Block) -> tuple[int | None, str, str]:
        """Size, level and status, from the details or from ``logicaldrive 1 (447.10 GB, RAID 1, OK)``."""
        words = [word.strip() for word in block.rest.split(",")]
        if block.rest and len(words) >= 3:
            short = Block("volume", block.key, block.line, 0, block.text)
            short.fields = {label: (word, block.line) for label, word in zip(("size", "fault tolerance", "status"), words)}
            block = short
        level = UNKNOWN
        if block.value("fault tolerance"):
            value, number = block.fields["fault tolerance"]
            match = RAID_LEVEL.match(value)
            if match:
                level = f"{match.group(1)}0" if match.group(1) else "6" if match.group(2) else match.group(3)
            else:
                self.doubts.append(quote(number, f"fault tolerance: {value}"))
        return self._size(block, "size", BINARY), level, self._status(block, "status", VOLUME_STATUS)

    def _caching(self, block: Block, controller: Controller) -> tuple[Policy, Policy]:
        """Read and write policy: one switch for both, in effect only as far as the controller reports that its cache works.

        A ratio of 100 percent for reading leaves no room to write back (its own firmware sets it so when no volume is cached).
        """
        switch = next((self._word(block, label, SWITCHES) for label in CACHING if label in block.fields), UNKNOWN)
        if switch == UNKNOWN:
            return Policy(), Policy()
        if switch == DISABLED:
            return Policy(NONE, NONE), Policy(WRITETHROUGH, WRITETHROUGH)
        word = WRITEBACK_ALWAYS if controller.no_battery_write_cache == ENABLED else WRITEBACK
        if controller.cache.status == "ok":
            return Policy(READ_AHEAD, READ_AHEAD), Policy(word, WRITETHROUGH if controller.cache_ratio == 100 else word)
        if controller.cache.status == UNKNOWN:
            return Policy(READ_AHEAD, UNKNOWN), Policy(word, UNKNOWN)
        return Policy(READ_AHEAD, NONE), Policy(word, WRITETHROUGH)

    def _members(self, block: Block, array: Block | None) -> tuple[tuple[str, ...], int]:
        """The drives of its mirror or parity groups, else all data drives of its array; and how many more cannot be named."""
        grouped = self.listed_in.get(block.line, [])
        unnamed = sum(one.within("volume") is block for one in self.unnamed)
        if grouped or unnamed:
            return tuple(dict.fromkeys(grouped)), unnamed
        if array is None:
            # Its array, and with it every drive, is not known.
            return (), 1
        unnamed = sum(one.within("array") is array and one.within("volume") is None for one in self.unnamed)
        return tuple(dict.fromkeys(self.data_drives.get(array.line, []))), unnamed

    def _drives(self) -> tuple[Drive, ...]:
        drives: dict[str, Drive] = {}
        listed: dict[str, Block] = {}
        for block in self.listed:
            listed.setdefault(block.key, block)
        for block in self.drives:
            if block.key in drives:
                self._lose(f"{quote(block.line, block.text)} reports drive {block.key} again")
            else:
                drives[block.key] = self._drive(block, listed.get(block.key))
        for address, block in listed.items():
            if address not in drives:
                drives[address] = self._listed_drive(block)
        return tuple(drives.values())

    def _drive(self, block: Block, listed: Block | None) -> Drive:
        kind = (block.value("interface type") or "").lower()
        short = listed.rest.lower() if listed is not None else ""
        wwn = block.value("wwid") or ""
        solid = "solid state" in kind or " ssd" in short or "nvme" in kind
        spins = " hdd" in short or bool(block.value("rotational speed"))
        return Drive(
            address=block.key,
            model=" ".join((block.value("model") or "").split()) or None,
            serial=block.value("serial number"),
            firmware=block.value("firmware revision"),
            wwn=wwn.lower() if WWN.match(wwn) else None,
            size=self._size(block, "size", DECIMAL),
            media="ssd" if solid else "hdd" if spins else UNKNOWN,
            interface=next((ours for word, ours in INTERFACES if word in kind), UNKNOWN),
            usage=self._usage(block),
            state=(block.value("status") or UNKNOWN).lower(),
        )

    def _listed_drive(self, block: Block) -> Drive:
        """``physicaldrive 1I:1:1 (port 1I:box 1:bay 1, SATA HDD, 250 GB, OK, spare)``."""
        words = [word.strip().lower() for word in block.rest.split(",")]
        kind = words[1] if len(words) > 1 else ""
        size = SIZE.match(words[2].upper()) if len(words) > 2 else None
        return Drive(
            address=block.key,
            size=int(float(size.group(1)) * DECIMAL[size.group(2)]) if size and size.group(2) else None,
            media="ssd" if kind.endswith("ssd") else "hdd" if kind.endswith("hdd") else UNKNOWN,
            interface=next((ours for word, ours in INTERFACES if word in kind), UNKNOWN),
            usage="spare" if "spare" in words[4:] else self._usage(block),
            state=words[3] if len(words) > 3 else UNKNOWN,
        )

    def _usage(self, block: Block) -> str:
        """How a drive is used, by its type and else by its place."""
        kind = (block.value("drive type") or "").lower()
        if kind:
            known = DRIVE_USAGES.get(kind.split("(")[0].strip())
            return known or ("cache" if "cache" in kind or "caching" in kind else UNKNOWN)
        for place, usage in (("volume", "configured"), ("array", "configured"), ("unassigned", "unconfigured"), ("hba", "hba")):
            if block.within(place) is not None:
                return usage
        return UNKNOWN


_HELP = re.compile(
    r"\b(?:hp)?ssacli\b|\bhpacucli\b|^CLI Syntax|<target>|^[ \t]*Available options are|\bSOULAPI Version|^[ \t]*(?:logical|physical)drive \S+ \(.*\): ",
    re.IGNORECASE | re.MULTILINE,
)
#: Labels that are at or near the end of a section in every version that has them.
_LAST_LABELS = ("drive type", "ld acceleration method", "phy count", "phy transfer rate")

_CALLED = {"volume": "logical drive", "drive": "physical drive", "controller": "controller"}


def parse(text: str) -> Reading:
    """Any output of the tool; never raises. Errors, help and the answers of ``modify`` (which are empty) describe no controller."""
    return _parse(text, whole=False)


def parse_configuration(text: str) -> Reading:
    """``ctrl all show config detail``: as :func:`parse`, and a controller must have its properties and something below them."""
    return _parse(text, whole=True)


def _parse(text: str, *, whole: bool) -> Reading:
    if not text.strip():
        return Reading()
    tree = outline(text)
    heads = tree.heads()
    if not heads:
        if not tree.blocks or _HELP.search(text):
            return Reading()
        return Reading(not_understood=tuple(tree.strange[:1]), complete=False)
    doubts = [*tree.strange, *(f"the tool reports: {error}" for error in tree.errors)]
    cut = [] if text.endswith("\n") else [f"{quote(text.count(chr(10)) + 1, text[text.rfind(chr(10)) + 1 :])} is the last and does not end"]
    controllers: dict[str, Controller] = {}
    blocks = {block.line: block for block in tree.blocks}
    lost, lost_of = [], {head.key: [] for head in heads}
    for line, kind in tree.lost().items():
        lost.append(f"{quote(line, blocks[line].text)}: a {_CALLED[kind]} that is not named here")
        owner = blocks[line].within("controller") or blocks[line]
        lost_of.get(owner.key if owner.kind == "controller" else "", []).append(lost[-1])
    doubts += lost
    for head in heads:
        if head.key in controllers:
            # One of them may be another one whose slot is damaged.
            lost.append(f"{quote(head.line, head.text)} reports slot {head.key} again")
            doubts.append(lost[-1])
            continue
        cut += _missing(tree, head, whole=whole)
        controllers[head.key] = ControllerReader(tree, head, doubts, lost_of[head.key]).read()
    lost += [clause for clauses in lost_of.values() for clause in clauses if clause not in lost]
    owned = {key: tuple(clauses) for key, clauses in lost_of.items()}
    return Reading(tuple(controllers.values()), (*doubts, *cut), complete=not cut and not tree.ownerless, lost=tuple(lost), lost_of=owned)


def says_no_controller(text: str) -> bool:
    """Whether the tool reports that it found none. It does so too when the kernel's ``sg`` driver is not loaded."""
    return any("no controllers detected" in error.lower() for error in outline(text).errors)


def errors(text: str) -> list[str]:
    """The tool's errors, each as one line, with its reason."""
    return outline(text).errors


def _missing(tree: Outline, head: Block, *, whole: bool) -> list[str]:
    """What an uncut output would have: details of each drive it lists, and each drive and logical drive to its last labels."""
    found = []
    volumes = [block for block in tree.of("volume", head) if not block.rest]
    drives = tree.of("drive", head)
    if drives:
        detailed = {block.key for block in drives}
        absent = [block for block in tree.of("listed_drive", head) if block.key not in detailed]
        found += [f"{quote(block.line, block.text)} lists a drive of which nothing more is reported" for block in absent[:1]]
    found += [f"{quote(block.line, block.text)} is not reported completely" for block in (*volumes, *drives) if "status" not in block.fields]
    found += [f"{quote(block.line, block.text)} reports nothing about its caching" for block in volumes if not any(label in block.fields for label in CACHING)]
    for blocks in (volumes, drives):
        if len(blocks) > 1 and not _ends_like(blocks[-1], blocks[0]):
            found.append(f"{quote(blocks[-1].line, blocks[-1].text)} is not reported completely")
    if whole and not (head.fields and (volumes or drives or any(block.parent is head and not FIELD.match(block.text) for block in tree.of("other", head)))):
        found.append(f"{quote(head.line, head.text)} is a controller of which nothing more is reported")
    return found


def _ends_like(last: Block, first: Block) -> bool:
    """Whether a section has the last labels that another of its kind has; drives of another sort or in trouble may have fewer."""
    alike = last.value("interface type") == first.value("interface type") and last.value("status") == first.value("status")
    labels = _LAST_LABELS if alike else _LAST_LABELS[:1]
    return all(label in last.fields for label in labels if label in first.fields)
