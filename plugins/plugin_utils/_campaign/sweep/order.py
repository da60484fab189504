# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The order of a sweep, and how much of it fits into a budget. Pure.

Each pass measures one repeat of every variant, and every second pass is in reverse order (A B B A): a drift of the host then affects all variants
alike, and whatever is stopped early has as many repeats of one variant as of another.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

#: Seconds for which a step is busy with other things than measuring: changing, reading back, collecting results.
OVERHEAD = 10.0


@dataclass(frozen=True)
class SweepStep:
    """One repeat of one variant.

    :param seconds: expected, with settling; cells of unknown length count nothing.
    :param written: bytes, at most.
    :param assumed: of these, what only an assumed rate bounds.
    :param worn: percent of the rated endurance of the target that wears most, where it is given.
    :param refills: the fills of the suite are part of it.
    """

    variant: str
    repeat: int
    seconds: float = 0.0
    written: int = 0
    assumed: int = 0
    worn: float = 0.0
    refills: bool = False

    @property
    def key(self) -> str:
        return f"{self.variant}/{self.repeat}"


def in_order(variants: t.Sequence[str], repeats: int) -> list[tuple[str, int]]:
    """Variant and repeat of each step."""
    return [(variant, number) for number in range(1, repeats + 1) for variant in (variants if number % 2 else variants[::-1])]


def within(steps: t.Sequence[SweepStep], seconds: float | None) -> tuple[list[SweepStep], list[SweepStep]]:
    """The steps that fit into a time, and the others: whole passes, or of the first pass its beginning.

    :param seconds: ``None`` for no limit.
    """
    if seconds is None:
        return list(steps), []
    kept: list[SweepStep] = []
    passes: dict[int, list[SweepStep]] = {}
    for step in steps:
        passes.setdefault(step.repeat, []).append(step)
    left = seconds
    for members in passes.values():
        if sum(one.seconds for one in members) > left:
            break
        kept += members
        left -= sum(one.seconds for one in members)
    if not kept:
        for step in next(iter(passes.values()), []):
            if step.seconds > left:
                break
            kept.append(step)
            left -= step.seconds
    fitting = set(kept)
    return kept, [step for step in steps if step not in fitting]
