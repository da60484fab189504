# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Whether a series goes up and down again and again, as a drive does that fills a fast region and empties it.

A period is the highest peak of the autocorrelation after its first fall below zero. It is believed if the levels of the series
go up and down often enough, or if the periodogram has a line that red noise (an autoregressive process of first order with the
same memory) would show once in a thousand series; the latter finds what is too fast or too smooth to have levels.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import inflation
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.segments import SAME_LEVEL, Segment, levels_along, segments_of

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import Noise

#: Fewest whole periods in a series.
_PERIODS = 3

#: Fewest changes of the level in each direction.
_CHANGES = 3

#: Least autocorrelation at the period.
_PEAK = 0.3

#: How often red noise alone may look like a line.
_FALSE_LINES = 0.001

#: Shortest series in which a line is looked for.
_SHORTEST = 30


@dataclass(frozen=True)
class Oscillation:
    """An oscillation.

    :param period: in values.
    :param high: mean of the high phases, ``low`` of the low ones, in the unit of the series.
    :param duty: share of the time that is high.
    :param segments: the levels in which it was looked for; one if it is too fast or too smooth for them.
    """

    period: int
    high: float
    low: float
    duty: float
    segments: tuple[Segment, ...] = ()


def oscillation_of(series: NDArray[t.Any], smooth: NDArray[t.Any], noise: Noise) -> Oscillation | None:
    """The oscillation of a series, if it has one.

    :param series: shape (n,), spikes included: a stall every half minute is one.
    :param smooth: the same without them, in which levels are looked for.
    """
    period = _period(series)
    if period is None:
        return None
    # Averages of five take a fast swing for noise, so it is neighbours alone that say what noise is here.
    segments = segments_of(smooth, replace(noise, long_run=noise.sigma * inflation(noise.rho)))
    levels = [segment.level for segment in segments]
    rises = sum(one < other for one, other in zip(levels, levels[1:]))
    shapes = []
    if min(rises, len(levels) - 1 - rises) >= _CHANGES:
        shapes.append(levels_along(segments))
    if shapes or _has_line(series):
        shapes.append(_folded(series, period))
    # Levels follow an oscillation whose period wanders, folding finds one that is fast: whichever tells high from low better.
    found = [_phases(series, shape, period) for shape in shapes]
    best = max(found, key=lambda swing: swing.high - swing.low, default=None)
    return replace(best, segments=segments) if best and best.high - best.low >= SAME_LEVEL * best.high else None


def _phases(series: NDArray[t.Any], shape: NDArray[t.Any], period: int) -> Oscillation:
    """High and low of a series where a smooth shape of it is high and low."""
    is_high = shape > _threshold(shape)
    if not is_high.any():
        return Oscillation(period, float(series.mean()), float(series.mean()), 0.0)
    return Oscillation(period, float(series[is_high].mean()), float(series[~is_high].mean()), float(is_high.mean()))


def autocorrelation(series: NDArray[t.Any], lags: int) -> NDArray[t.Any]:
    """Correlation of a series with itself, shifted by 0 to ``lags`` values; shape (lags + 1,), zeros if it never changes."""
    centred = series - series.mean()
    power = np.abs(np.fft.rfft(centred, 2 * series.size)) ** 2
    covariance = np.fft.irfft(power)[: lags + 1]
    return covariance / covariance[0] if covariance[0] > 0 else np.zeros(lags + 1)


def _period(series: NDArray[t.Any]) -> int | None:
    correlation = autocorrelation(_without_trend(series), series.size // _PERIODS)
    fallen = np.flatnonzero(correlation < 0)
    if not fallen.size:
        return None
    period = int(fallen[0] + np.argmax(correlation[fallen[0] :]))
    # At the end of what is looked at it may still be rising.
    return period if correlation[period] > _PEAK and period < correlation.size - 1 else None


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


def _folded(series: NDArray[t.Any], period: int) -> NDArray[t.Any]:
    """For each value the mean of all that lie whole periods away from it."""
    phase = np.arange(series.size) % period
    return (np.bincount(phase, series, period) / np.bincount(phase, minlength=period))[phase]


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
