# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The levels of a series, and where it changes from one to the next.

PELT (Killick, Fearnhead and Eckley 2012) with quadratic cost and a penalty of 6 ln n times the noise, from ruptures. The noise
is that of a mean, so autocorrelated noise does not appear as a step (see ``noise.py``).
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import ruptures

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import Noise

#: Fewest values of one level.
SHORTEST = 5

#: Neighbouring levels nearer than this share of the higher one are one level.
SAME_LEVEL = 0.05

#: A value this many standard deviations off the median of the five around it is a spike.
_SPIKE = 5.0
_AROUND = 5

#: More of them than this share of the values are what the series is, not spikes.
_RARE = 0.05


@dataclass(frozen=True)
class Segment:
    """A stretch of a series that has one level.

    :param first: its first value; ``end``: the first one after it.
    :param level: mean of its values without spikes, in the unit of the series.
    """

    first: int
    end: int
    level: float

    @property
    def length(self) -> int:
        """How many values it has."""
        return self.end - self.first


def change_penalty(count: int) -> float:
    """What one more change must explain, in squares of the noise of a mean, for a series of ``count`` values."""
    return 6 * math.log(count)


def without_spikes(series: NDArray[t.Any], noise: Noise) -> tuple[NDArray[t.Any], int]:
    """The series with the median of the five around it in the place of every spike, and how many there were."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(series, _AROUND // 2, mode="reflect"), _AROUND)
    middle = np.median(around, axis=1)
    spikes = np.abs(series - middle) > _SPIKE * noise.sigma
    if spikes.mean() > _RARE:
        return series, 0
    return np.where(spikes, middle, series), int(spikes.sum())


def segments_of(series: NDArray[t.Any], noise: Noise) -> tuple[Segment, ...]:
    """The levels of a series, in order and without gaps.

    :param series: shape (n,), n >= 2 x 5, without spikes.
    """
    if _surely_one_level(series, noise):
        return (Segment(0, series.size, float(series.mean())),)
    search = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST).fit((series / noise.long_run).reshape(-1, 1))
    ends = [int(end) for end in search.predict(pen=change_penalty(series.size))]
    found = [Segment(first, end, float(series[first:end].mean())) for first, end in zip([0, *ends], ends)]
    return _merged(found)


def levels_along(segments: t.Sequence[Segment]) -> NDArray[t.Any]:
    """The level that holds at each value, shape (n,)."""
    return np.repeat([segment.level for segment in segments], [segment.length for segment in segments])


def misfit(series: NDArray[t.Any], fitted: NDArray[t.Any], noise: Noise, changes: int) -> float:
    """How badly a model describes a series: squares of what it leaves, and the penalty of each of its changes."""
    return float(np.sum(((series - fitted) / noise.long_run) ** 2)) + change_penalty(series.size) * changes


def _surely_one_level(series: NDArray[t.Any], noise: Noise) -> bool:
    """Whether even all of the scatter explained would not pay for one change: then there is nothing to search."""
    return misfit(series, series.mean(), noise, 0) <= change_penalty(series.size)


def _merged(found: list[Segment]) -> tuple[Segment, ...]:
    while len(found) > 1:
        apart = [abs(one.level - other.level) / (max(one.level, other.level) or 1.0) for one, other in zip(found, found[1:])]
        nearest = min(range(len(apart)), key=apart.__getitem__)
        if apart[nearest] >= SAME_LEVEL:
            break
        one, other = found[nearest : nearest + 2]
        level = (one.level * one.length + other.level * other.length) / (one.length + other.length)
        found[nearest : nearest + 2] = [Segment(one.first, other.end, level)]
    return tuple(found)
