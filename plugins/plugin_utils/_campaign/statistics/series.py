# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What one series of a measurement did, in a word and the numbers that belong to it.

=============  =====================================================================================================
steady         one level
step           a change of at least 5 % between two levels, up or down
cliff          a fall of at least 20 % within a quarter of the run that stays: a fast region is full
oscillating    up and down at least three times, with a period
drifting       ever more or ever less, without a place at which it happens
unknown        too short, or nothing was transferred
=============  =====================================================================================================

It is what an engineer reads in the plot, said the same way every time; the segments are kept so that the plot can show them.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.changes import Ramp, greatest_change
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import Noise, block_means, noise_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import finite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.oscillation import Oscillation, oscillation_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.segments import (
    SAME_LEVEL,
    Segment,
    levels_along,
    misfit,
    segments_of,
    without_spikes,
)

if t.TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

KINDS = ("steady", "step", "cliff", "oscillating", "drifting", "unknown")

#: Kinds whose mean says little of what the device does in the long run: they decide no comparison unless asked.
UNSETTLED = frozenset({"cliff", "oscillating", "drifting"})

#: Fewest values of a series that are looked at.
FEWEST = 10

#: A fall of this share that stays is a cliff.
CLIFF = 0.2

#: A change that takes more of the run than this share is a drift.
_NARROW = 0.25

#: Least noise believed, as a share of the median.
_QUIETEST = 0.005

#: More values than this are averaged before changes are looked for: 18 hours become points of 36 s.
_MOST = 1800

#: The worst window is this share of a run, and at least so many values.
_WINDOW, _SHORTEST_WINDOW = 0.1, 5


@dataclass(frozen=True)
class Level:
    """A stretch of the run with one level. Seconds from its start; ``mean`` in the unit of the series, without spikes."""

    start: float
    end: float
    mean: float


@dataclass(frozen=True)
class Change:
    """The greatest change of the level.

    :param at: seconds from the start of the series at which it begins.
    :param width: seconds from a tenth to nine tenths of it; 0 if it lies between two values.
    :param before: level before, ``after``: level after, both in the unit of the series.
    :param bytes_before: bytes transferred until it began; ``None`` without a bandwidth.
    :param bandwidth_after: mean bytes per second from its end to that of the run (after a cliff the rate at which the device makes
        room); ``None`` without a bandwidth.
    """

    at: float
    width: float
    before: float
    after: float
    bytes_before: float | None = None
    bandwidth_after: float | None = None

    @property
    def share(self) -> float:
        """After by before, less one: -0.3 where 30 % are lost."""
        return self.after / self.before - 1 if self.before else float("inf")


@dataclass(frozen=True)
class Swing:
    """An oscillation: ``period`` in seconds, ``high`` and ``low`` in the unit of the series, ``duty`` the share of the time that is high."""

    period: float
    high: float
    low: float
    duty: float


@dataclass(frozen=True)
class SeriesFinding:
    """What a series did.

    :param kind: one of :data:`KINDS`.
    :param reason: why it is ``unknown``, else empty.
    :param mean: of all values; ``median`` too.
    :param worst_window: the lowest mean of any window of a tenth of the run.
    :param variation: standard deviation of the noise around the levels by the mean.
    :param memory: correlation of neighbours in that noise, 0 to 0.95.
    :param spikes: single values far from those around them.
    :param drift: what a straight line gains or loses over the run, by the mean.
    :param levels: without gaps, in order.
    """

    kind: str
    reason: str
    count: int
    mean: float
    median: float
    worst_window: float
    variation: float
    memory: float
    spikes: int
    drift: float
    levels: tuple[Level, ...]
    change: Change | None = None
    swing: Swing | None = None


def classify(values: ArrayLike, *, interval: float = 1.0, bandwidth: ArrayLike | None = None) -> SeriesFinding:
    """Name what a series did.

    :param values: IOPS (or any rate) of equal intervals, shape (n,); an interval without an I/O is 0, never left out.
    :param interval: seconds of one value.
    :param bandwidth: bytes per second of the same intervals, shape (n,).
    :raises BadInput: for values that are no numbers, negative ones, an interval that is not positive, lengths that differ.
    """
    series = finite(values, "series")
    rate = None if bandwidth is None else finite(bandwidth, "bandwidth of the series")
    if interval <= 0 or not math.isfinite(interval):
        raise BadInput(f"series: an interval of {interval} s is none.")
    if rate is not None and rate.shape != series.shape:
        raise BadInput(f"series: {series.size} values and {rate.size} of the bandwidth; one for each interval is needed.")
    if series.size < FEWEST:
        return _unknown(series, f"{series.size} intervals are too few to tell: {FEWEST} are needed")
    if not series.any():
        return _unknown(series, "no I/O in any interval")
    coarse, step = series, interval
    size = -(-series.size // _MOST)
    if size > 1:
        coarse, step = block_means(series, size), interval * size
    finding = _named(coarse, step)
    finding = replace(finding, count=series.size, mean=float(series.mean()), median=float(np.median(series)), worst_window=_worst_window(series))
    return finding if rate is None or finding.change is None else replace(finding, change=_with_bytes(finding.change, rate, interval))


def _unknown(series: NDArray[t.Any], reason: str) -> SeriesFinding:
    mean, median = (float(series.mean()), float(np.median(series))) if series.size else (0.0, 0.0)
    return SeriesFinding("unknown", reason, series.size, mean, median, mean, 0.0, 0.0, 0, 0.0, ())


def _named(series: NDArray[t.Any], interval: float) -> SeriesFinding:
    mean = float(series.mean())
    noise = noise_of(series, _QUIETEST * float(np.median(series) or mean))
    smooth, spikes = without_spikes(series, noise)
    segments = segments_of(smooth, noise)
    line = _line(smooth)
    drift = float(line[-1] - line[0]) / mean
    change = greatest_change(smooth, segments, noise)
    kind, swing = "steady", oscillation_of(series, smooth, noise)
    if swing is not None:
        kind, change, segments = "oscillating", None, swing.segments
    elif _is_drift(smooth, segments, line, drift, noise):
        kind, change = "drifting", None
    elif change is not None:
        kind = _kind_of_change(segments, change, series.size)
        change = None if kind == "drifting" else change
    return SeriesFinding(
        kind=kind,
        reason="",
        count=series.size,
        mean=mean,
        median=float(np.median(series)),
        worst_window=mean,
        variation=noise.sigma / mean,
        memory=noise.rho,
        spikes=spikes,
        drift=drift,
        levels=tuple(Level(segment.first * interval, segment.end * interval, segment.level) for segment in segments),
        change=None if change is None else _in_seconds(change, interval),
        swing=None if swing is None else _swing(swing, interval),
    )


def _swing(found: Oscillation, interval: float) -> Swing:
    return Swing(found.period * interval, found.high, found.low, found.duty)


def _line(series: NDArray[t.Any]) -> NDArray[t.Any]:
    position = np.arange(series.size) - (series.size - 1) / 2
    return series.mean() + position * (position @ series) / (position @ position)


def _is_drift(series: NDArray[t.Any], segments: t.Sequence[Segment], line: NDArray[t.Any], drift: float, noise: Noise) -> bool:
    """Whether a straight line describes the series better than its levels do; it costs as much as one change."""
    return abs(drift) >= SAME_LEVEL and misfit(series, line, noise, 1) < misfit(series, levels_along(segments), noise, len(segments) - 1)


def _kind_of_change(segments: t.Sequence[Segment], ramp: Ramp, count: int) -> str:
    if ramp.end - ramp.begin > _NARROW * count:
        return "drifting"
    rest = levels_along(segments)[ramp.end :]
    # What recovers was no region that is full.
    return "cliff" if max(float(rest.mean()), ramp.after) <= (1 - CLIFF) * ramp.before else "step"


def _in_seconds(ramp: Ramp, interval: float) -> Change:
    return Change(ramp.begin * interval, (ramp.end - ramp.begin) * interval, max(ramp.before, 0.0), max(ramp.after, 0.0))


def _with_bytes(change: Change, bandwidth: NDArray[t.Any], interval: float) -> Change:
    begin, end = round(change.at / interval), round((change.at + change.width) / interval)
    return replace(change, bytes_before=float(bandwidth[:begin].sum() * interval), bandwidth_after=float(bandwidth[end:].mean()))


def _worst_window(series: NDArray[t.Any]) -> float:
    window = min(max(int(series.size * _WINDOW), _SHORTEST_WINDOW), series.size)
    sums = np.concatenate(([0.0], np.cumsum(series)))
    return float((sums[window:] - sums[:-window]).min() / window)
