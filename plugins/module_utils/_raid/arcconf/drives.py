# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Physical devices of arcconf, and which of them are the members of a volume.

A drive is addressed by the pair in ``Reported Channel,Device(T:L) : 0,31(31:0)``, never by the number in ``Device #13``. Members are
listed by serial number, by the place of the drive or (old builds) by the pair, depending on the build.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.lines import NO_DRIVE, Block, Line, problem
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.values import Values, hexadecimal
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, Drive

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
