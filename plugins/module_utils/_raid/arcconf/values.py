# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values of arcconf's lines in our words; an unknown value of a known label is kept, with its line."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf import words
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.lines import Line, problem
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN

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
