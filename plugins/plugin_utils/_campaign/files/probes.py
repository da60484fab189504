# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Probes of a search and rounds: cells whose names are known before they run only by a pattern. Pure.

A search over ``iodepth`` measures ``<cell>.iodepth-16``, rounds measure ``<cell>.round-03``; both leave ``<cell>`` with the answer.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey, component, repeat_number

_OVER = re.compile(r"[a-z_]{1,20}\Z")
_VALUE = re.compile(r"[1-9][0-9]{0,11}\Z")
_ROUND = re.compile(r"[0-9]{2}\Z")


@dataclass(frozen=True)
class Pattern:
    """The cells that one search or one series of rounds may leave in addition to its own.

    :param cell: the cell that has the answer.
    :param over: what is varied, from ``first`` to ``last``; empty for rounds, of which ``last`` is the most.
    """

    cell: str
    repeats: tuple[int, ...]
    over: str
    first: int
    last: int

    def matches(self, name: str) -> bool:
        """Whether a cell of this name belongs to it."""
        start, _dot, end = name.rpartition(".")
        if start != self.cell:
            return False
        word, _dash, number = end.rpartition("-")
        if word != (self.over or "round") or not (_VALUE if self.over else _ROUND).match(number):
            return False
        return self.first <= int(number) <= self.last

    def to_dict(self) -> dict[str, t.Any]:
        return {**asdict(self), "repeats": list(self.repeats)}

    @classmethod
    def from_dict(cls, row: t.Any) -> Pattern:
        """:raises BadInput: if it is none; it may come from a copied folder."""
        try:
            numbers = (row["first"], row["last"])
            repeats = tuple(repeat_number(one) for one in row["repeats"])
            over = row["over"]
            if not all(isinstance(one, int) and not isinstance(one, bool) for one in numbers) or not isinstance(over, str) or (over and not _OVER.match(over)):
                raise TypeError
            return cls(component(row["cell"], "cell"), repeats, over, *numbers)
        except (TypeError, KeyError):
            raise BadInput("what is planned of a search or of rounds is not written as it should be.") from None


@dataclass(frozen=True)
class Expected:
    """Every cell that a host may send: those that were planned by name, and those of searches and rounds."""

    keys: frozenset[CellKey] = frozenset()
    patterns: frozenset[tuple[str, Pattern]] = frozenset()

    def __contains__(self, key: object) -> bool:
        if key in self.keys:
            return True
        if not isinstance(key, CellKey):
            return False
        return any(key.variant == variant and key.repeat in pattern.repeats and pattern.matches(key.cell) for variant, pattern in self.patterns)
