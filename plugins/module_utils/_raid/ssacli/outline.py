# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tree that ssacli prints: what is indented below a line belongs to it.

Steps are of three blanks, mostly. Warnings and errors stand in column 0 in the middle of the tree and do not end a section; the
warnings are known from public reports (check_raid issues 211 and 212, libstoragemgmt issue 344).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_CONTROLLER = re.compile(r"^(?P<model>\S.*?) in Slot (?P<slot>[0-9]{1,6}[A-Za-z]?)(?=$|[ (])(?P<rest>.*)$")
_ARRAY = re.compile(r"^array:?\s+([A-Z]{1,2})(?:\s+\(.*\))?$", re.IGNORECASE)
_VOLUME = re.compile(r"^(?:logical drive:\s*([0-9]{1,6})|logicaldrive ([0-9]{1,6})(?:\s+\((.*)\))?)$", re.IGNORECASE)
_DRIVE = re.compile(r"^physicaldrive ([0-9A-Za-z]+:[0-9]{1,4}(?::[0-9]{1,4})?)(?:\s+\((.*)\))?$", re.IGNORECASE)
#: A label may hold a colon in brackets: ``PCI Address (Domain:Bus:Device.Function): 0000:5C:00.0``.
FIELD = re.compile(r"^((?:[^:(]|\([^()]*\))+?)\s*:(?:\s+(.*)|(\S.*))?$")
#: Some versions put two labels on one line: ``Array Type: Data       HPE SSD Smart Path: disable``.
_SECOND_FIELD = re.compile(r"^(.*?)\s{2,}([A-Z][^:]*):\s*(.*)$")
_TWO_FIELDS = frozenset({"array type", "disk name"})
#: What may stand in column 0 without belonging to the tree: the shell's or the tool's own prompt and greeting.
_ASIDE = re.compile(r"^(?:[#$]|=>|Detecting Controllers|Type \"|HP Array Configuration Utility|Smart Storage Administrator)")
#: Words of both kinds of notices: an error ends the command, a warning does not.
_NOTICE = re.compile(r"^\s*(Error|Warning):\s*(.*)$")
_OBJECTS = ("physicaldrive ", "logicaldrive ", "logical drive:")
#: Labels that only logical drives have, and those that only physical drives have.
_OF_VOLUMES = frozenset({"caching", "array accelerator", "fault tolerance", "ld acceleration method"})
_OF_DRIVES = frozenset({"firmware revision", "phy transfer rate", "drive configuration type"})
_DEEPEST = 40
_LONGEST = 2000


@dataclass
class Block:
    """A line with what is indented below it.

    :param kind: ``controller``, ``array``, ``volume``, ``drive``, ``listed_drive``, ``unassigned``, ``hba`` or ``other``.
    :param key: slot, array letter, number or address; :param rest: the rest of the line.
    :param fields: ``{label in lower case: (value, line number)}`` of the lines directly below.
    """

    kind: str
    key: str
    line: int
    indent: int
    text: str
    rest: str = ""
    parent: Block | None = None
    fields: dict[str, tuple[str, int]] = field(default_factory=dict)
    #: Labels that came again, and kept their first value.
    repeated: set[str] = field(default_factory=set)

    def within(self, kind: str) -> Block | None:
        """The nearest block of that kind around this one."""
        found = self.parent
        while found is not None and found.kind != kind:
            found = found.parent
        return found

    def value(self, label: str) -> str | None:
        """The value of a line directly below; ``None`` if there is no such line or it has none."""
        return self.fields.get(label, ("", 0))[0] or None


@dataclass
class Outline:
    """An output as blocks in their order, and what does not belong to any."""

    blocks: list[Block] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    _by_owner: dict[tuple[int, str], list[Block]] = field(default_factory=dict)

    def add(self, block: Block) -> None:
        """One more block; its controller is the one around it."""
        owner = block.within("controller")
        self.blocks.append(block)
        self._by_owner.setdefault((owner.line if owner is not None else 0, block.kind), []).append(block)

    def of(self, kind: str, owner: Block) -> list[Block]:
        """All blocks of a kind in one controller."""
        return self._by_owner.get((owner.line, kind), [])

    def heads(self) -> list[Block]:
        """The headings of controllers."""
        return self._by_owner.get((0, "controller"), [])

    def lost(self) -> dict[int, str]:
        """What cannot be named since its heading is damaged or gone, by its line: ``volume``, ``drive`` or ``controller``."""
        found = {}
        parents = {id(block.parent) for block in self.blocks if block.parent is not None}
        for block in self.blocks:
            kind = _lost_kind(block)
            if kind is None and block.kind == "other" and block.parent is None and block.indent == 0 and id(block) in parents:
                kind = "controller"
            if kind is not None:
                found[block.line] = kind
        return found

    @property
    def ownerless(self) -> bool:
        """Whether there is something that belongs to no controller."""
        return any(owner == 0 and kind != "controller" for owner, kind in self._by_owner)


def outline(text: str) -> Outline:
    """The tree of an output; never raises."""
    result = Outline()
    open_blocks: list[Block] = []
    notice: list[str] | None = None
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw[:_LONGEST].rstrip().expandtabs()
        stripped = line.strip()
        indent = min(len(line) - len(line.lstrip()), _DEEPEST)
        if not stripped:
            notice = None
            continue
        match = _NOTICE.match(line)
        if match:
            notice = result.errors if match.group(1) == "Error" else result.warnings
            notice.append(match.group(2).strip())
            continue
        if notice is not None:
            if notice is result.errors or indent not in (3, 6):
                notice[-1] = f"{notice[-1]} {stripped}".strip()
                continue
            notice = None
        if indent == 0 and _ASIDE.match(stripped):
            continue
        while open_blocks and open_blocks[-1].indent >= indent:
            open_blocks.pop()
        block = _block(stripped, number, indent, open_blocks[-1] if open_blocks else None)
        if block.parent is None and block.kind != "controller":
            result.strange.append(quote(number, stripped))
        if block.kind == "other" and stripped.lower().startswith(_OBJECTS):
            result.strange.append(quote(number, stripped))
        open_blocks.append(block)
        result.add(block)
    return result


def _lost_kind(block: Block) -> str | None:
    """The properties of a block that are not printed."""
    labels = block.fields.keys()
    if block.kind == "other":
        lower = block.text.lower()
        if lower.startswith(_OBJECTS):
            return "drive" if lower.startswith("physicaldrive ") else "volume"
        return "volume" if labels & _OF_VOLUMES else "drive" if labels & _OF_DRIVES else None
    if block.kind in ("volume", "array", "controller") and labels & _OF_DRIVES:
        return "drive"
    if block.kind in ("array", "controller", "drive") and labels & _OF_VOLUMES:
        return "volume"
    if block.kind == "volume" and block.repeated & _OF_VOLUMES:
        return "volume"
    return "drive" if block.kind == "drive" and block.repeated & _OF_DRIVES else None


def quote(number: int, line: str) -> str:
    """How a line is named that was not understood."""
    return f"line {number}: '{line.strip()[:120]}'"


def _block(stripped: str, number: int, indent: int, parent: Block | None) -> Block:
    if indent == 0:
        match = _CONTROLLER.match(stripped)
        if match:
            return Block("controller", match.group("slot"), number, indent, match.group("model").strip(), match.group("rest"), parent)
    match = _ARRAY.match(stripped)
    if match:
        return Block("array", match.group(1).upper(), number, indent, stripped, "", parent)
    match = _VOLUME.match(stripped)
    if match:
        return Block("volume", match.group(1) or match.group(2), number, indent, stripped, match.group(3) or "", parent)
    match = _DRIVE.match(stripped)
    if match:
        kind = "drive" if match.group(2) is None else "listed_drive"
        return Block(kind, match.group(1), number, indent, stripped, match.group(2) or "", parent)
    if stripped.lower() in ("unassigned", "hba drives"):
        return Block("unassigned" if stripped.lower() == "unassigned" else "hba", "", number, indent, stripped, "", parent)
    block = Block("other", "", number, indent, stripped, "", parent)
    match = FIELD.match(stripped)
    if match and parent is not None:
        _keep(parent, match.group(1), (match.group(2) or match.group(3) or "").strip(), number)
    return block


def _keep(parent: Block, label: str, value: str, number: int) -> None:
    label = " ".join(label.lower().split())
    second = _SECOND_FIELD.match(value) if label in _TWO_FIELDS else None
    if second:
        _keep(parent, second.group(2), second.group(3).strip(), number)
        value = second.group(1).strip()
    if label in parent.fields:
        parent.repeated.add(label)
    else:
        parent.fields[label] = (value, number)
