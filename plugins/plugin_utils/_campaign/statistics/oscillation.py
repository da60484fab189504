# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a series goes up and down again and again, as a drive does that fills a fast region and empties it.

A period is the highest peak of the autocorrelation after its first fall below zero. It is accepted if the levels of the series
go up and down often enough, or if the periodogram has a line that red noise (an autoregressive process of first order with the
same memory) would show once in a thousand series; the latter finds what is too fast or too smooth to have levels.

Averages longer than a period show a beat between the two that no device has, so no period is searched in averages before the
values themselves were. Of a long series several stretches are examined, and most of them must have the same period; only then
averages of 8, of 64... values are, for periods that are longer than such a stretch can show.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import block_means, inflation, noise_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.segments import (
    SAME_LEVEL,
    Segment,
    levels_along,
    segments_of,
    without_spikes,
)

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

#: Fewest whole periods in a series.
_PERIODS = 3

#: Fewest changes of the level in each direction.
_CHANGES = 3

#: Least autocorrelation at the period.
_PEAK = 0.3

#: How often red noise alone may appear as a line.
_FALSE_LINES = 0.001

#: Shortest series in which a line is searched.
_SHORTEST = 30

#: Values of a stretch that is examined, how many stretches, and what share of a value as two of them may differ in a period that is the same.
STRETCH, _STRETCHES, _ALIKE = 1800, 7, 0.1

#: Averages of so many values, and of so many of those, are examined next.
_COARSER = 8

#: The shortest lag that correlates nearly so well as the best one is the period, the others are multiples of it: this share of the best,
#: less two values by the lag, as a period is no whole number of values and has two edges.
_FIRST, _EDGES = 0.9, 2.0

#: A multiple of the period makes it more exact as long as it correlates so well as this share of the first.
_COHERENT = 0.7

#: A peak between two values is accepted if it is at least so far from the nearer one.
_BETWEEN = 0.2

#: Values of each part of a period that is not a whole number of them, and parts of one value at most.
_OF_A_PART, _PARTS = 20, 4


@dataclass(frozen=True)
class Oscillation:
    """An oscillation.

    :param period: in values, not always a whole number.
    :param high: median of the high phases, ``low`` of the low ones, in the unit of the series.
    :param duty: share of the time that is high.
    :param segments: the levels in which it was searched; one if it is too fast or too smooth for them, none of a long series.
    """

    period: float
    high: float
    low: float
    duty: float
    segments: tuple[Segment, ...] = ()


def oscillation_of(series: NDArray[t.Any], floor: float) -> Oscillation | None:
    """The oscillation of a series, if it has one.

    :param series: shape (n,), spikes included: a stall every half minute is one.
    :param floor: the minimum standard deviation, in the unit of the series.
    """
    if series.size <= STRETCH:
        return _of_stretch(series, floor)
    coarsest = -(-series.size // STRETCH)
    size = 1
    while size < coarsest:
        found = _of_stretches(block_means(series, size), floor)
        if found is not None:
            return replace(found, period=found.period * size)
        size *= _COARSER
    found = _of_stretch(block_means(series, coarsest), floor)
    return replace(found, period=found.period * coarsest, segments=()) if found is not None else None


def _of_stretches(series: NDArray[t.Any], floor: float) -> Oscillation | None:
    """The oscillation that more than half of some stretches of a series agree on; without segments."""
    count = min(_STRETCHES, -(-series.size // STRETCH))
    firsts = [round(first) for first in np.linspace(0, max(series.size - STRETCH, 0), count)]
    found: list[Oscillation] = []
    for number, first in enumerate(firsts):
        # As soon as the rest cannot make a majority any more, nothing is to be found.
        if 2 * (len(found) + count - number) <= count:
            return None
        one = _of_stretch(series[first : first + STRETCH], floor)
        found += [one] if one is not None else []
    if 2 * len(found) <= count:
        return None
    period = float(np.median([one.period for one in found]))
    alike = [one for one in found if abs(one.period - period) <= _ALIKE * period]
    if 2 * len(alike) <= count:
        return None
    period, high, low, duty = (float(np.median([getattr(one, name) for one in alike])) for name in ("period", "high", "low", "duty"))
    return Oscillation(period, high, low, duty)


def _of_stretch(series: NDArray[t.Any], floor: float) -> Oscillation | None:
    period = _period(series)
    if period is None:
        return None
    noise = noise_of(series, floor)
    smooth, _spikes = without_spikes(series, noise)
    # Averages of five take a fast swing for noise, so only neighbours define noise here.
    segments = segments_of(smooth, replace(noise, long_run=noise.sigma * inflation(noise.rho)))
    levels = [segment.level for segment in segments]
    rises = sum(one < other for one, other in zip(levels, levels[1:]))
    if len(levels) > 2 and rises in (0, len(levels) - 1) and not _has_line(smooth - levels_along(segments)):
        # Stairs of equal steps are periodic beside a straight line, and go in one direction only.
        return None
    shapes = []
    if min(rises, len(levels) - 1 - rises) >= _CHANGES:
        shapes.append(levels_along(segments))
    if shapes or _has_line(series):
        shapes.append(_folded(series, period))
    # Levels follow an oscillation whose period wanders, folding finds one that is fast: whichever separates high from low better.
    found = [_phases(series, shape, period) for shape in shapes]
    best = max(found, key=lambda swing: swing.high - swing.low, default=None)
    return replace(best, segments=segments) if best and best.high - best.low >= SAME_LEVEL * best.high else None


def _phases(series: NDArray[t.Any], shape: NDArray[t.Any], period: float) -> Oscillation:
    """High and low of a series where a smooth shape of it is high and low."""
    is_high = shape > _threshold(shape)
    if not is_high.any():
        return Oscillation(period, float(series.mean()), float(series.mean()), 0.0)
    # An interval in which it changes is neither: medians leave it out.
    return Oscillation(period, float(np.median(series[is_high])), float(np.median(series[~is_high])), float(is_high.mean()))


def autocorrelation(series: NDArray[t.Any], lags: int) -> NDArray[t.Any]:
    """Correlation of a series with itself, shifted by 0 to ``lags`` values; shape (lags + 1,), zeros if it never changes."""
    centred = series - series.mean()
    power = np.abs(np.fft.rfft(centred, 2 * series.size)) ** 2
    covariance = np.fft.irfft(power)[: lags + 1]
    return covariance / covariance[0] if covariance[0] > 0 else np.zeros(lags + 1)


def _period(series: NDArray[t.Any]) -> float | None:
    correlation = autocorrelation(_without_trend(series), series.size // _PERIODS)
    fallen = np.flatnonzero(correlation < 0)
    if not fallen.size:
        return None
    first = int(fallen[0])
    best = float(correlation[first:].max())
    if best <= _PEAK:
        return None
    # In noise a multiple of the period correlates as well as the period.
    lags = np.arange(first, correlation.size)
    peak = (correlation[first:] >= correlation[first - 1 : -1]) & (correlation[first:] >= np.append(correlation[first + 1 :], -1.0))
    first += int(np.argmax(peak & (correlation[first:] >= np.maximum((_FIRST - _EDGES / lags) * best, _PEAK))))
    period = first + int(np.argmax(correlation[first : first + max(first // 4, 1) + 1]))
    # At the end of the searched range it may still be rising.
    return _by_multiples(correlation, period) if period < correlation.size - 1 else None


def _by_multiples(correlation: NDArray[t.Any], period: int) -> float:
    """A period that is no whole number of values, from the lags at which 2, 3... of it correlate best."""
    exact, furthest, times = float(period), period, 1
    for count in range(2, (correlation.size - 1) // period + 1):
        middle = round(count * exact)
        around = max(period // 4, 1)
        if middle + around >= correlation.size:
            break
        lag = middle - around + int(np.argmax(correlation[middle - around : middle + around + 1]))
        if correlation[lag] < _COHERENT * correlation[period]:
            break
        exact, furthest, times = lag / count, lag, count
    before, here, after = (float(correlation[furthest + shift]) for shift in (-1, 0, 1))
    curvature = before - 2 * here + after
    between = (before - after) / (2 * curvature) if curvature < 0 else 0.0
    return (furthest + between) / times if _BETWEEN <= abs(between) <= 1 else exact


def _has_line(series: NDArray[t.Any]) -> bool:
    if series.size < _SHORTEST:
        return False
    centred = _without_trend(series)
    memory = float(np.clip(autocorrelation(centred, 1)[1], -0.95, 0.99))
    power = np.abs(np.fft.rfft(centred)) ** 2
    angle = 2 * math.pi * np.arange(power.size) / series.size
    whitened = (power * (1 + memory**2 - 2 * memory * np.cos(angle)))[_PERIODS : (series.size + 1) // 2]
    # Ordinates of noise are exponential: their median is ln 2 of their mean, and a line does not move it.
    typical = float(np.median(whitened)) / math.log(2)
    if typical <= 0:
        return bool(whitened.max() > 0)
    chance = -math.expm1(whitened.size * math.log1p(-math.exp(-min(float(whitened.max()) / typical, 700.0))))
    return chance < _FALSE_LINES


def _folded(series: NDArray[t.Any], period: float) -> NDArray[t.Any]:
    """For each value the mean of all that lie whole periods away from it."""
    bins = max(round(period), 2)
    if period != bins:
        bins = max(bins, min(series.size // _OF_A_PART, round(_PARTS * period)))
    phase = np.minimum((np.arange(series.size) % period * (bins / period)).astype(int), bins - 1)
    return (np.bincount(phase, series, bins) / np.maximum(np.bincount(phase, minlength=bins), 1))[phase]


def _threshold(values: NDArray[t.Any]) -> float:
    """What separates high from low best: the largest variance between the two (Otsu 1979)."""
    ordered = np.sort(values)
    below = np.arange(1, ordered.size)
    sums = np.cumsum(ordered)
    means = sums[:-1] / below, (sums[-1] - sums[:-1]) / (ordered.size - below)
    split = int(np.argmax(below * (ordered.size - below) * (means[1] - means[0]) ** 2))
    return float(ordered[split] + ordered[split + 1]) / 2


def _without_trend(series: NDArray[t.Any]) -> NDArray[t.Any]:
    position = np.arange(series.size) - (series.size - 1) / 2
    return series - series.mean() - position * (position @ series) / (position @ position)
