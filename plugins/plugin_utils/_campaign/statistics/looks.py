# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error that a comparison may spend each time it is looked at, where repeats are added until it is decided. Pure.

Whatever the looks depend on each other, the probability that any of them is wrong is at most the sum of their errors (Bonferroni). The sum after n
of at most N repeats is n/N of the whole (Lan and DeMets 1983, with a linear function). Each look takes the largest error of the exact distribution of
Mann and Whitney that is within it, and leaves the rest to later looks. Boundaries of Pocock or of O'Brien and Fleming assume normal increments,
which ranks of few repeats do not have.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import CONFIDENCE, null_of_one

#: How often any of several equal variants may be found better than the baseline.
FAMILY = 0.05

#: So that the error is found again in the distribution that it was taken from.
_ROUNDING = 1e-9

#: Stands for a look that cannot decide.
_CERTAIN = 1 - 1e-12


@dataclass(frozen=True)
class Look:
    """One look at the comparison of two variants.

    :param repeats: of each of them.
    :param error: probability of an error in one direction; 0 if this look cannot decide.
    """

    repeats: int
    error: float

    @property
    def confidence(self) -> float:
        """Of the interval, which has both directions."""
        return 1 - 2 * self.error * (1 + _ROUNDING) if self.error else _CERTAIN


def planned_looks(first: int, last: int, comparisons: int = 1) -> tuple[Look, ...]:
    """The looks after ``first`` to ``last`` repeats.

    :param comparisons: variants that are compared with one baseline.
    """
    whole = min((1 - CONFIDENCE) / 2, FAMILY / max(comparisons, 1))
    spent, found = 0.0, []
    for repeats in range(max(first, 1), last + 1):
        tails = np.cumsum(null_of_one(repeats, repeats))
        place = int(np.searchsorted(tails, whole * repeats / last - spent, side="right"))
        error = float(tails[place - 1]) if place else 0.0
        spent += error
        found.append(Look(repeats, error))
    return tuple(found)


def levels_of(looks: t.Iterable[Look]) -> dict[int, float]:
    """The confidence of each look, by the number of repeats."""
    return {one.repeats: one.confidence for one in looks}


def first_decision(looks: t.Iterable[Look]) -> int | None:
    """After how many repeats a comparison can be decided at all; ``None`` if never."""
    return next((one.repeats for one in looks if one.error), None)
