# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much the repeats of a cell vary, and how many are enough.

Standard library only: the terminal shows it on controllers without numpy too.
"""

from __future__ import annotations

import math
import statistics
import typing as t

#: With three repeats on each side p cannot be under 0.10, with four it can be 0.029.
FEWEST_REPEATS = 4

#: Repeats whose standard deviation is above this share of their mean are noisy.
NOISE_GATE = 0.05

#: The difference that repeats are to show, and the most repeats that are proposed for it.
DIFFERENCE = 0.10
MOST_REPEATS = 20

#: Of the normal distribution, two-sided 5 % and one-sided 20 %; and what ranks need more than means of it (pi / 3).
_QUANTILES = 1.960 + 0.842
_RANKS = math.pi / 3


def is_noisy(noise: float | None) -> bool:
    """Whether repeats vary by more than the gate."""
    return noise is not None and noise > NOISE_GATE


def repeats_for(noise: float, difference: float = DIFFERENCE) -> int:
    """How many repeats of each of two variants on one host show a difference in four of five campaigns.

    :param noise: standard deviation of the repeats by their mean. :param difference: as a share.
    """
    spread = noise / math.log1p(difference)
    return max(FEWEST_REPEATS, math.ceil(1 + 2 * _RANKS * (_QUANTILES * spread) ** 2))


def coefficient_of_variation(values: t.Sequence[float]) -> float | None:
    """Standard deviation of the sample by its mean; ``None`` of fewer than two values, or with a mean of 0."""
    mean = math.fsum(values) / len(values) if len(values) > 1 else 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean if mean else None


def pooled_noise(sides: t.Iterable[t.Sequence[float]]) -> float | None:
    """That of repeats; of several hosts the median, since one noisy host is not a noisy fleet. ``None`` where nothing was repeated."""
    known = [noise for noise in map(coefficient_of_variation, sides) if noise is not None]
    return statistics.median(known) if known else None
