# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The greatest change of a series: when it began, how long it took, from where to where.

Levels alone show where a fall is; a fall that takes a minute becomes a stair of levels, or one step in its middle if there is
noise. So a ramp is fitted to the stretch, and a step is kept unless the ramp is clearly better.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import block_means
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.segments import SHORTEST, Segment, change_penalty, levels_along

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import Noise

#: Share of a change that lies outside its width on each side.
EDGE = 0.1

#: A ramp replaces a step if it explains so many squares of the noise more: three standard deviations.
_CLEARLY = 9.0

#: A ramp between two levels may go beyond them by this share of the change: each of them is a mean over a part of the ramp too.
_BEYOND = 0.25

#: Places and lengths of ramps that are tried, in each of two rounds.
_TRIED = 24

#: A longer stretch is averaged to so many values for it.
_MOST = 400


@dataclass(frozen=True)
class Ramp:
    """One change.

    :param begin: position of the value at which a tenth of it is done; ``end``: nine tenths.
    :param before: level before, ``after``: level after.
    """

    begin: int
    end: int
    before: float
    after: float


def greatest_change(series: NDArray[t.Any], segments: t.Sequence[Segment], noise: Noise) -> Ramp | None:
    """The greatest change between levels, if there are two.

    :param series: shape (n,), without spikes.
    :param segments: its levels.
    """
    runs = _monotone_runs(segments)
    if not runs:
        return None
    run = max(runs, key=lambda found: abs(found[-1].level - found[0].level))
    ramp, misfit, stairs = _fitted(series, run, noise)
    if len(run) > 2 and stairs + change_penalty(series.size) * (len(run) - 3) < misfit:
        # Several changes with rest between them: the greatest of them.
        run = max(_pairs(run), key=lambda pair: abs(pair[1].level - pair[0].level))
        if run[1].first > run[0].end:
            return _step(series, run)
        ramp, misfit, stairs = _fitted(series, run, noise)
    if len(run) == 2 and (stairs - misfit < _CLEARLY or not _within(ramp, run)):
        return Ramp(run[1].first, run[1].first, run[0].level, run[1].level)
    return ramp


def _pairs(run: t.Sequence[Segment]) -> list[tuple[Segment, Segment]]:
    """Neighbours in a run of levels. One that is as short as a level can be is no rest: a change within an average makes one."""
    rests = [segment for number, segment in enumerate(run) if segment.length > SHORTEST or number in (0, len(run) - 1)]
    return list(zip(rests, rests[1:]))


def _step(series: NDArray[t.Any], pair: tuple[Segment, Segment]) -> Ramp:
    """The one step between two levels that lie apart which leaves the least squares."""
    one, other = pair
    between = series[one.end : other.first]
    gain = np.cumsum((between - other.level) ** 2 - (between - one.level) ** 2)
    at = one.end + (int(np.argmax(gain)) + 1 if gain.max() > 0 else 0)
    return Ramp(at, at, one.level, other.level)


def _within(ramp: Ramp, run: t.Sequence[Segment]) -> bool:
    """Whether a ramp goes no further than its levels: one that ends with the stretch may have any end."""
    low, high = sorted((run[0].level, run[-1].level))
    beyond = _BEYOND * (high - low)
    return low - beyond <= min(ramp.before, ramp.after) and max(ramp.before, ramp.after) <= high + beyond


def _monotone_runs(segments: t.Sequence[Segment]) -> list[t.Sequence[Segment]]:
    """Neighbouring segments of which each is higher, or each lower, than the one before; at least two."""
    runs = []
    first = 0
    for last in range(1, len(segments)):
        rises = segments[last].level > segments[last - 1].level
        if last + 1 == len(segments) or (segments[last + 1].level > segments[last].level) != rises:
            runs.append(segments[first : last + 1])
            first = last
    return runs


def _fitted(series: NDArray[t.Any], run: t.Sequence[Segment], noise: Noise) -> tuple[Ramp, float, float]:
    """The ramp with the least squares in the stretch of a run of levels; its squares, and those of the levels, in squares of the noise."""
    first, end = run[0].first, run[-1].end
    size = -(-(end - first) // _MOST)
    # The squares of averages of ``size`` values stand for as many.
    scale = math.sqrt(size) / noise.long_run
    stretch, levels = block_means(series[first:end], size), block_means(levels_along(run), size)
    starts, lengths = np.linspace(0, stretch.size, _TRIED), np.linspace(0, stretch.size, _TRIED)
    near = 1.5 * stretch.size / _TRIED
    for _round in range(2):
        start, length, squares, before, after = _best(stretch * scale, starts, lengths)
        starts = np.linspace(max(start - near, 0), start + near, _TRIED)
        lengths = np.linspace(max(length - near, 0), length + near, _TRIED)
    begin, done = (min(first + round((start + share * length) * size), end - 1) for share in (EDGE, 1 - EDGE))
    return Ramp(begin, done, before / scale, after / scale), squares, float(np.sum(((stretch - levels) * scale) ** 2))


def _best(stretch: NDArray[t.Any], starts: NDArray[t.Any], lengths: NDArray[t.Any]) -> tuple[float, float, float, float, float]:
    """Start, length, squares, level before and level after of the best of all these ramps."""
    start, length = (grid.ravel() for grid in np.meshgrid(starts, lengths))
    inside = start + length <= stretch.size
    start, length = start[inside], length[inside]
    position = np.arange(stretch.size)
    # How far each ramp has come at each value, shape (ramps, n): 0 before it, 1 after it.
    done = np.clip((position - start[:, None] + 0.5) / np.maximum(length, 1.0)[:, None], 0.0, 1.0)
    centred = done - done.mean(axis=1, keepdims=True)
    weight = np.einsum("ij,ij->i", centred, centred)
    slope = np.where(weight > 0, centred @ stretch / np.where(weight > 0, weight, 1.0), 0.0)
    deviation = stretch - stretch.mean()
    squares = deviation @ deviation - slope**2 * weight
    best = int(np.argmin(squares))
    before = float(stretch.mean() - slope[best] * done[best].mean())
    return float(start[best]), float(length[best]), float(squares[best]), before, before + float(slope[best])
