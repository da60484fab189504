# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The structure of what arcconf prints: sections, the objects in them, their labels and values; pure, and never raises.

The text is made for display: a section is a line between two lines of dashes, an object begins with a line like
``Logical device number 0`` or ``Device #3``, everything else is ``label : value``. A label means nothing without its section
(``Status`` occurs in five), so a line keeps the section, the part of the section and the object it was found in. An unknown value of a
known label is kept, with its line.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.words import VERDICTS
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN

#: Sections with a meaning, by their heading in lower case.
SECTIONS = {
    "controller information": "controller",
    "array information": "array",
    "logical device information": "volume",
    "logical drive information": "volume",
    "physical device information": "drive",
    "maxcache 3.0 information": "maxcache3",
    "maxcache information": "maxcache",
    "maxcache array information": "maxcache",
    "maxcache device information": "maxcache",
    "maxcache logical device information": "maxcache",
    "connector information": "connector",
    "controller battery information": "battery",
    "controller zmm information": "zmm",
    "controller cache backup unit information": "backup",
    "green backup information": "green",
    "cache properties": "cache",
    "physical drive write cache policy information": "policy",
    "raid properties": "raid",
    "controller version information": "version",
    "supercap information": "backup",
    "logical device segment information": "segments",
    "logical drive segment information": "segments",
    "array physical device information": "segments",
    "maxcache device segment information": "segments",
    "maxcache array physical device information": "segments",
    "maxcache properties": "raid",
}
_TOP = frozenset({"controller", "array", "volume", "drive", "maxcache3", "maxcache", "connector"})

_DASHES = re.compile(r"-{10,}|={10,}")
#: The first colon with a blank or nothing after it: ``Reported Channel,Device(T:L) : 0,8(8:0)`` has one within its label.
_LABEL = re.compile(r"(.*?\S)\s*:(?:\s+(.*))?")
_OBJECTS = (
    ("volume", re.compile(r"logical (?:device|drive) number ([0-9]{1,6})", re.IGNORECASE)),
    ("array", re.compile(r"(?:maxcache )?array number ([0-9]{1,6})", re.IGNORECASE)),
    ("drive", re.compile(r"device #([0-9]{1,6})", re.IGNORECASE)),
    ("maxcache", re.compile(r"maxcache (?:logical )?(?:device|drive|ld) number ([0-9]{1,6})", re.IGNORECASE)),
    ("channel", re.compile(r"channel #([0-9]{1,6}):?", re.IGNORECASE)),
    ("controller", re.compile(r"controller #([0-9]{1,6})", re.IGNORECASE)),
)
_FOUND = re.compile(r"controllers found\s*:\s*([0-9]{1,6})", re.IGNORECASE)
_MENU = re.compile(r"\|?\s*\|\s*(?:ARCCONF|UCLI)\s*\||usage:\s|\s*(?:arcconf\s+)?[A-Z]{4,}\s+<controller#>", re.IGNORECASE)
_LOG = re.compile(r"status: .*, returncode: 0x", re.IGNORECASE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffd]")
#: Lines without a label that are part of the format.
_FREE = re.compile(
    r"(?:no |device is |status of |initiator |lane #|phy #|connector #|channel #|life-time |segment |group |device [0-9]|warning|note|task"
    r"|(?:logical|physical) (?:device|drive) task|\(min/max\)|sensor |slot |raw )",
    re.IGNORECASE,
)


#: Kinds of devices that have no settings.
NO_DRIVE = re.compile(r"enclosure|expander|tape|cd.?rom|dvd|processor|storage processor|backplane|controller|scanner|changer", re.IGNORECASE)
_KIND = re.compile(r"device is an? ", re.IGNORECASE)
#: Labels that every object of a kind has, and once.
_TELLING = {
    "volume": frozenset({"raid level", "status of logical device", "status of logical drive"}),
    "drive": frozenset({"reported channel,device(t:l)", "reported channel,device", "channel,device(t:l)"}),
}
_TELLING["channel"] = _TELLING["drive"]


@frozen
class Line:
    """One ``label : value``. ``label`` is in lower case."""

    number: int
    text: str
    part: str
    label: str
    value: str


@dataclass
class Block:
    """One object (a volume, a drive, …), or the lines of a section before its first object.

    :param kind: the section it is in: ``controller``, ``array``, ``volume``, ``drive``, ``maxcache``, ``maxcache3``, ``connector``, ``other``.
    :param number: the number in its heading; ``None`` for the section itself.
    :param free: lines without a label, with their numbers, in lower case.
    :param headings: its parts, the empty ones too.
    """

    kind: str
    number: str | None
    line: int
    lines: list[Line] = dataclasses.field(default_factory=list)
    free: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    headings: set[str] = dataclasses.field(default_factory=set)
    #: Of lines after a damaged one: the labels of the object before it, and whether it was reported that they are of another one.
    before: frozenset[str] = frozenset()
    reported: bool = False
    _first: str | None = None
    _by_label: dict[tuple[str, str], Line] = dataclasses.field(default_factory=dict)

    def find(self, *labels: str, part: str | tuple[str, ...] = "") -> Line | None:
        """The first line with one of these labels, in the order of the labels.

        :param part: where it is; several in their order for a line that builds print in one place or in another.
        """
        parts = (part,) if isinstance(part, str) else part
        return next((line for label in labels for one in parts for line in [self._by_label.get((one, label))] if line is not None), None)

    @property
    def first_label(self) -> str | None:
        return self._first

    def add(self, line: Line) -> None:
        """One more line."""
        if line.part == "" and self._first is None:
            self._first = line.label
        self._by_label.setdefault((line.part, line.label), line)
        self.lines.append(line)

    def value(self, *labels: str, part: str | tuple[str, ...] = "") -> str | None:
        """The value of :meth:`find`; ``None`` if there is no such line or it is empty."""
        line = self.find(*labels, part=part)
        return line.value if line is not None and line.value else None


@dataclass
class Structure:
    """What one output consists of.

    :param found: the number of controllers the tool reports as found.
    :param known: whether anything in the text is arcconf's.
    :param verdict: the last line in lower case if it is one of the tool's verdicts.
    :param menu: whether this is a list of commands, a usage text or the tool's own log: no verdict is to be expected.
    :param problems: lines that cannot be part of such an output.
    :param lost: objects whose heading cannot be read.
    """

    blocks: list[Block] = dataclasses.field(default_factory=list)
    found: int | None = None
    known: bool = False
    verdict: str | None = None
    menu: bool = False
    problems: list[str] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)
    sections: set[str] = dataclasses.field(default_factory=set)


def problem(number: int, text: str) -> str:
    """How a line that was not understood is named."""
    return f"line {number}: {text.strip()[:120]!r}"


def structure(text: str) -> Structure:
    """Take an output apart."""
    return _Reader(text).result


class _Reader:
    def __init__(self, text: str) -> None:
        self.result = Structure()
        self.block: Block | None = None
        self.part = ""
        self.unplaced: tuple[int, str] | None = None
        self.lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        self.dashed = [bool(_DASHES.fullmatch(line.strip())) for line in self.lines]
        self.has_end = any(_strip_indent(line) in VERDICTS or _MENU.match(line) or _LOG.search(line) for line in self.lines)
        for index, line in enumerate(self.lines):
            if line.strip() and not self.dashed[index]:
                self._take(index, line)
        self._end()

    def _take(self, index: int, line: str) -> None:
        text = line.strip()
        if self._is_frame(index, text):
            return
        if _CONTROL.search(text):
            self._lose(index + 1, text)
            return
        if self._is_heading(index, text):
            self._open_section(index, text)
            return
        for kind, pattern in _OBJECTS if ": " not in text else ():
            match = pattern.fullmatch(text)
            if match:
                self._open_object(kind, match.group(1), index)
                return
        match = _LABEL.fullmatch(text)
        if match is None:
            self._free(index, line)
        elif self.block is not None:
            self._label(Line(index + 1, text, self.part, match.group(1).lower(), (match.group(2) or "").strip()))
        else:
            self._outside(index, text)

    def _label(self, line: Line) -> None:
        block = self.block
        if block is None:
            return
        begins = block.first_label == line.label and (line.part == "" or block.kind == "volume")
        if block.number is not None and begins:
            # An object begins again without a heading: it must not lend its lines to the one before.
            self._lose(line.number, line.text, f"begins something whose heading is damaged, after {block.kind} {block.number}", lost=True)
            return
        if not block.reported and self._is_of_another(block, line):
            self._lose(line.number, line.text, f"belongs to a {'volume' if block.kind == 'volume' else 'drive'} whose heading is damaged", lost=True)
        block.add(line)

    @staticmethod
    def _is_of_another(block: Block, line: Line) -> bool:
        """Whether a line outside of every object is of one whose heading could not be read."""
        if line.label not in _TELLING.get(block.kind, ()):
            return False
        return block.kind == "channel" or (block.number is None and (not block.before or line.label in block.before))

    def _lose(self, number: int, text: str, why: str = "", *, lost: bool = False) -> None:
        """A line that cannot be part of the format: what follows it belongs to nothing until the next heading.

        :param lost: whether an object is certain to be there and cannot be identified.
        """
        message = f"{problem(number, text)}{' ' if why else ''}{why}"
        self.result.problems.append(message)
        if lost:
            self.result.lost.append(message)
        block = self.block
        if block is not None and block.number is not None and block.kind != "channel":
            self.block = Block(block.kind, None, number, before=frozenset(line.label for line in block.lines if line.part == ""))
            self.part = ""
        if self.block is not None:
            self.block.reported = self.block.reported or lost

    def _is_frame(self, index: int, text: str) -> bool:
        """What stands around the content: the count of controllers, verdicts, menus, a pasted command line above."""
        lower = _strip_indent(text)
        match = _FOUND.fullmatch(text)
        if match:
            self.result.known = True
            if self.result.found is not None:
                self.result.problems.append(f"{problem(index + 1, text)}, a second output in the same text")
            self.result.found = int(match.group(1))
            self.block, self.part = None, ""
            return True
        if lower in VERDICTS:
            self.result.known = True
            self.result.verdict = lower
            self.block, self.part = None, ""
            return True
        if _MENU.match(text) or _LOG.search(text):
            self.result.known = self.result.menu = True
            self.block = None
            return True
        return text.startswith("#")

    def _is_heading(self, index: int, text: str) -> bool:
        if text.lower() in SECTIONS:
            return True
        if not (self._beside(index, -1) and self._beside(index, 1)):
            return False
        return _LABEL.fullmatch(text) is None and not any(pattern.fullmatch(text) for unused, pattern in _OBJECTS)

    def _beside(self, index: int, step: int) -> bool:
        """Whether the next line that is not empty is a line of dashes."""
        index += step
        while 0 <= index < len(self.lines) and not self.lines[index].strip():
            index += step
        return 0 <= index < len(self.lines) and self.dashed[index]

    def _open_section(self, index: int, text: str) -> None:
        name = SECTIONS.get(text.lower(), text.lower())
        if self.block is not None and self.block.kind == "controller" and self.lines[index][:1].isspace() and name in _TOP:
            # Indented: a part of the controller's lines.
            name = {"connector": "connector part"}.get(name, "raid")
        if name in _TOP:
            self.result.known = True
            self.result.sections.add(name)
            self.block = Block(name, None, index + 1)
            self.result.blocks.append(self.block)
            self.part = ""
            return
        if self.block is None:
            self.block = Block("other", None, index + 1)
            self.result.blocks.append(self.block)
            self.result.problems.append(f"{problem(index + 1, text)} is not a section of this tool")
        self.part = name
        self.block.headings.add(name)

    def _open_object(self, kind: str, number: str, index: int) -> None:
        within = self.block.kind if self.block is not None else kind
        if kind == "maxcache" and within == "maxcache3":
            kind = "maxcache3"
        self.result.known = True
        self.block = Block(kind, number, index + 1)
        self.result.blocks.append(self.block)
        self.part = ""

    def _free(self, index: int, line: str) -> None:
        text = line.strip()
        if self.block is not None:
            kind = _KIND.match(text)
            headless = self.block.kind == "channel" or (self.block.kind == "drive" and self.block.number is None)
            if kind and (headless or (self.block.kind == "drive" and any(_KIND.match(one) for unused, one in self.block.free))):
                after = f", after {self.block.kind} {self.block.number}" if self.block.number is not None else ""
                # Enclosures and connectors are listed among the drives, and have no settings.
                self._lose(index + 1, text, f"begins a device whose heading is damaged{after}", lost=NO_DRIVE.search(text) is None)
                self.block.reported = True
                return
            self.block.free.append((index + 1, text.lower()))
            indented = line[:1] in (" ", "\t")
            if not (indented and _looks_like_words(text)) and not _FREE.match(text):
                self._lose(index + 1, text)
        else:
            self._outside(index, text)

    def _outside(self, index: int, text: str) -> None:
        """A line before the first section, or after the end."""
        if self._is_answer():
            self.unplaced = self.unplaced or (index + 1, text)
        else:
            self.result.problems.append(problem(index + 1, text))

    def _is_answer(self) -> bool:
        """Whether the text is the answer to a command that prints no sections: sentences of any kind, and at the end a verdict."""
        return self.result.menu or (not self.result.blocks and self.has_end)

    def _end(self) -> None:
        """Whether the last line is a verdict, and whether there was only an answer where sections came after it."""
        if self.unplaced is not None and self.result.blocks and not self.result.menu:
            self.result.problems.append(f"{problem(*self.unplaced)} is in no section")
        last = [_strip_indent(line) for index, line in enumerate(self.lines) if line.strip() and not self.dashed[index]][-1:]
        if last and last[0] not in VERDICTS:
            self.result.verdict = None


def _strip_indent(line: str) -> str:
    """A line as verdicts are compared: lower case, without the full stop."""
    return line.strip().lower().rstrip(".! ")


def _looks_like_words(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ,.;()#/+*'&_\-]*", text)) and len(text) < 120


V = t.TypeVar("V")

_UNITS = {"b": 1, "bytes": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40, "pb": 2**50}


class Values:
    """Reads values, and records those it cannot.

    :param problems: gets one text per line that was not understood.
    :param lost: gets one text per object that is there and could not be read.
    """

    def __init__(self, problems: list[str], lost: list[str] | None = None) -> None:
        self.problems = problems
        self.lost: list[str] = [] if lost is None else lost

    def lose(self, message: str) -> None:
        """Record an object that is there and cannot be identified."""
        self.problems.append(message)
        self.lost.append(message)

    def translate(self, line: Line | None, table: t.Mapping[str, V], beginnings: bool = False) -> V | None:
        """A value by its table; ``None`` if there is no line, or no value now, or it is not understood.

        :param beginnings: a word of the table also stands for texts that begin with it and go on in parentheses.
        """
        if line is None:
            return None
        value = line.value.lower()
        if value in table:
            return table[value]
        if beginnings:
            value = re.split(r"\s*[(,]", value)[0]
            if value in table:
                return table[value]
        if value not in words.NO_VALUE:
            self.problems.append(problem(line.number, line.text))
        return None

    def word(self, line: Line | None, table: t.Mapping[str, str], beginnings: bool = False) -> str:
        """Like :meth:`look`, with ``unknown`` for what there is not."""
        return self.translate(line, table, beginnings) or UNKNOWN

    def switch(self, line: Line | None) -> str:
        """``enabled``, ``disabled`` or ``unknown``."""
        return self.word(line, words.SWITCH)

    def protection(self, line: Line, table: t.Mapping[str, str]) -> str:
        """The health of a protection unit."""
        value = line.value.lower()
        if value in table:
            return table[value]
        for beginning, health in words.PROTECTION_BEGINNINGS:
            if value.startswith(beginning):
                return health
        return self.word(line, table)

    def size(self, line: Line | None) -> int | None:
        """Bytes. The tool's MB are binary: 953869 MB are a disk of 1 TB."""
        if line is None or line.value.lower() in words.NO_VALUE:
            return None
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?([A-Za-z]+)", line.value)
        unit = _UNITS.get(match.group(2).lower()) if match else None
        if match is None or unit is None:
            self.problems.append(problem(line.number, line.text))
            return None
        return int(float(match.group(1)) * unit) if "." in match.group(1) else int(match.group(1)) * unit

    def number(self, line: Line | None) -> int | None:
        """A whole number."""
        if line is None or line.value.lower() in words.NO_VALUE:
            return None
        if not re.fullmatch(r"[0-9]{1,9}(?: percent| ?%)?", line.value):
            self.problems.append(problem(line.number, line.text))
            return None
        return number_in(line.value)

    def pair(self, line: Line | None) -> tuple[int, int] | None:
        """``3,1``."""
        if line is None or line.value.lower() in words.NO_VALUE:
            return None
        match = re.fullmatch(r"([0-9]{1,9}) ?, ?([0-9]{1,9})", line.value)
        if match is None:
            self.problems.append(problem(line.number, line.text))
            return None
        return int(match.group(1)), int(match.group(2))


def number_in(text: str | None) -> int | None:
    """The number with which a text begins: ``99 percent`` is 99."""
    match = re.match(r"([0-9]{1,9})(?![0-9])", text or "")
    return int(match.group(1)) if match else None


def state_word(text: str | None) -> str:
    """The state of a controller or volume: ours where there is one, else the tool's in lower case."""
    if not text:
        return UNKNOWN
    word = text.lower()
    if "rebuilding" in word:
        return "rebuilding"
    return words.STATUS.get(word, word)


def raid_level(text: str | None) -> str:
    """``6 Reed-Solomon`` is ``6``; words (``Simple_volume``) are in lower case."""
    if not text:
        return UNKNOWN
    first = text.split()[0]
    return first.upper() if first[:1].isdigit() else first.lower()


def hexadecimal(text: str | None) -> str | None:
    """A world-wide name or unique identifier in lower case; ``None`` for anything else."""
    return text.lower() if text and re.fullmatch(r"[0-9A-Fa-f]{8,32}", text) else None
