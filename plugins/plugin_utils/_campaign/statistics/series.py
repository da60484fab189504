# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one series of a measurement did, in a word and the numbers that belong to it.

=============  =====================================================================================================
steady         one level
step           a change of at least 5 % between two levels, up or down
cliff          a fall of at least 20 % within a quarter of the run that stays: a fast region is full
oscillating    up and down at least three times, with a period
decaying       nearer and nearer to a level, fast at first: a fresh drive, a cache that fills
drifting       ever more or ever less, without a place at which it happens
unknown        too short, or nothing was transferred
=============  =====================================================================================================

Stalls (intervals with nearly no I/O, after which it goes on as before) are kept beside the kind and change it as little as spikes do.
It is what an engineer reads in the plot, in the same form every time; the segments are kept so that the plot can show them.

Where a device stood still for a while: nearly no I/O between two stretches in which there was some.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.changes import Ramp, greatest_change
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.decay import Decay, decay_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import Noise, block_means, noise_around_trend, noise_of
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

#: At most this share of what the series does around it is a stall.
IDLE = 0.05

#: More of the run than this share is a level of its own (one stretch), or what the series is (all of them).
_RARE = 0.1

#: Values on each side that define the series around it.
_AROUND = 15


def stalls_of(series: NDArray[t.Any]) -> tuple[tuple[int, int], ...]:
    """First position and the one after the last of each stall, in order. What begins or ends the series is none: nothing was there before,
    or nothing came back.

    :param series: rates of equal intervals, shape (n,).
    """
    positive = series[series > 0]
    if not positive.size:
        return ()
    idle = np.concatenate(([0], series <= IDLE * np.median(positive), [0])).astype(np.int8)
    turns = np.diff(idle)
    found = [
        (int(first), int(end))
        for first, end in zip(np.flatnonzero(turns == 1), np.flatnonzero(turns == -1))
        if first > 0 and end < series.size and _stands_out(series, int(first), int(end))
    ]
    return tuple(found) if sum(end - first for first, end in found) <= _RARE * series.size else ()


def _stands_out(series: NDArray[t.Any], first: int, end: int) -> bool:
    """Whether a stretch is nearly nothing beside both of its sides: after a cliff a low level is no stall."""
    before, after = series[max(first - _AROUND, 0) : first], series[end : end + _AROUND]
    return float(series[first:end].max()) <= IDLE * min(float(np.median(before)), float(np.median(after)))


def without_stalls(series: NDArray[t.Any], stalls: t.Sequence[tuple[int, int]]) -> NDArray[t.Any]:
    """The series with the values before each stall, mirrored, in its place: their level and their noise. Shape (n,)."""
    if not stalls:
        return series
    filled = series.copy()
    for first, end in stalls:
        length = min(end - first, first)
        # np.resize repeats them where the stall is longer than all that was before it.
        filled[first:end] = np.resize(filled[first - length : first][::-1], end - first)
    return filled


KINDS = ("steady", "step", "cliff", "oscillating", "decaying", "drifting", "unknown")

#: Kinds whose mean does not represent the device in the long run: they decide no comparison unless requested.
UNSETTLED = frozenset({"cliff", "oscillating", "decaying", "drifting"})

#: The order in which kinds are shown; ``unknown`` is not.
WORST_FIRST = ("cliff", "oscillating", "decaying", "drifting", "step", "steady")

#: Minimum number of values of a series.
FEWEST = 10

#: A fall of this share that stays is a cliff.
CLIFF = 0.2

#: A change that takes more of the run than this share is a drift.
_NARROW = 0.25

#: Minimum noise, as a share of the median.
_QUIETEST = 0.005

#: Standard deviation of how many I/Os an interval has, if they come evenly, in I/Os.
_COUNTED = 0.5

#: More values than this are averaged before changes (but not before periods and stalls) are searched: 18 hours become points of 36 s.
_MOST = 1800


#: Fewer stalls than this are no oscillation, however evenly they come.
_REPEATED = 5


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
class Approach:
    """A decay, or a rise that slows down in the same way.

    :param time_constant: seconds after which 37 % of the distance are left.
    :param start: where it begins, ``level``: where it goes to, both in the unit of the series.
    :param settled: seconds from the start until it is within 5 % of the level; it may lie after the end of the series.
    :param bandwidth: bytes per second at that level; ``None`` without a bandwidth.
    """

    time_constant: float
    start: float
    level: float
    settled: float
    bandwidth: float | None = None


@dataclass(frozen=True)
class Stall:
    """Intervals with at most 5 % of the I/O around them: seconds from the start of the series, and how many."""

    at: float
    length: float


@dataclass(frozen=True)
class SeriesFinding:
    """What a series did.

    :param kind: one of :data:`KINDS`.
    :param reason: why it is ``unknown``, else empty.
    :param mean: of all values; ``median`` too.
    :param variation: standard deviation of the noise around the levels by the mean.
    :param memory: correlation of neighbours in that noise, 0 to 0.95.
    :param spikes: single values far from those around them, stalls of one interval among them.
    :param drift: what a straight line gains or loses over the run, by the mean.
    :param levels: without gaps, in order; those of a long oscillation are of averages.
    :param seconds: the length of the series.
    :param stalls: in order; none where they are the low side of an oscillation, or more than a tenth of the run.
    """

    kind: str
    reason: str
    count: int
    mean: float
    median: float
    variation: float
    memory: float
    spikes: int
    drift: float
    levels: tuple[Level, ...]
    change: Change | None = None
    swing: Swing | None = None
    approach: Approach | None = None
    stalls: tuple[Stall, ...] = ()
    seconds: float = 0.0

    @property
    def stalled(self) -> float:
        """Seconds of all stalls together."""
        return sum(stall.length for stall in self.stalls)

    @property
    def longest_stall(self) -> Stall | None:
        """The first of the longest ones."""
        return max(self.stalls, key=lambda stall: stall.length, default=None)


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
        raise BadInput(f"series: the interval must be greater than 0, not {interval} s.")
    if rate is not None and rate.shape != series.shape:
        raise BadInput(f"series: {series.size} values and {rate.size} of the bandwidth; one for each interval is needed.")
    if series.size < FEWEST:
        return _unknown(series, f"{series.size} intervals are too few: {FEWEST} are needed")
    if not series.any():
        return _unknown(series, "no I/O in any interval")
    finding = replace(_named(series, interval), seconds=series.size * interval)
    return finding if rate is None else _with_bandwidth(finding, series, rate, interval)


def _unknown(series: NDArray[t.Any], reason: str) -> SeriesFinding:
    mean, median = (float(series.mean()), float(np.median(series))) if series.size else (0.0, 0.0)
    return SeriesFinding("unknown", reason, series.size, mean, median, 0.0, 0.0, 0, 0.0, ())


@dataclass(frozen=True)
class _Shape:
    """What a series is called, in the values in which changes are searched."""

    kind: str
    segments: tuple[Segment, ...]
    ramp: Ramp | None = None
    decay: Decay | None = None


def _named(series: NDArray[t.Any], interval: float) -> SeriesFinding:
    mean, median = float(series.mean()), float(np.median(series))
    # Of a few I/Os one more or less falls into an interval by chance, however evenly they come.
    one = 1.0 / interval
    quietest = _QUIETEST * (median or mean)
    floor = max(quietest, _COUNTED * one)
    stalls = stalls_of(series)
    calm = without_stalls(series, stalls)
    noise = noise_of(calm, floor)
    smooth, spikes = without_spikes(calm, noise)
    size = -(-series.size // _MOST)
    points = block_means(smooth, size)
    swing = oscillation_of(series, floor)
    if swing is not None and stalls and len(stalls) < _REPEATED and swing.low <= IDLE * swing.high:
        swing = None
    if swing is not None and swing.high - swing.low <= one * (1 + _QUIETEST):
        swing = None
    floor = max(quietest, floor / math.sqrt(size))
    shape = _shape(points, noise.of_means(size, floor), swing, floor)
    if shape.kind == "steady":
        shape = _shape_of_trend(points, noise.of_means(size, floor), floor) or shape
    if swing is not None and swing.low <= IDLE * swing.high:
        stalls = ()
    line, step = _line(points), interval * size
    return SeriesFinding(
        kind=shape.kind,
        reason="",
        count=series.size,
        mean=mean,
        median=median,
        variation=noise.sigma / mean,
        memory=noise.rho,
        spikes=without_spikes(series, noise)[1] if stalls else spikes,
        drift=float(line[-1] - line[0]) / mean,
        levels=tuple(Level(segment.first * step, segment.end * step, segment.level) for segment in shape.segments),
        change=None if shape.ramp is None else _in_seconds(shape.ramp, step),
        swing=None if swing is None else Swing(swing.period * interval, swing.high, swing.low, swing.duty),
        approach=None if shape.decay is None else _approach(shape.decay, step),
        stalls=tuple(Stall(first * interval, (end - first) * interval) for first, end in stalls),
    )


def _shape(points: NDArray[t.Any], noise: Noise, swing: Oscillation | None, floor: float) -> _Shape:
    """What is left to name once it is known whether the series oscillates.

    :param points: shape (n,), without spikes and stalls.
    """
    if swing is not None and swing.segments:
        return _Shape("oscillating", swing.segments)
    segments = segments_of(points, noise)
    if swing is not None:
        return _Shape("oscillating", segments)
    line = _line(points)
    decay = decay_of(points, segments, line, noise, floor)
    if decay is not None:
        return _Shape("decaying", segments, decay=decay)
    ramp = greatest_change(points, segments, noise)
    if _is_drift(points, segments, line, noise):
        return _Shape("drifting", segments)
    kind = "steady" if ramp is None else _kind_of_change(segments, ramp, points.size)
    return _Shape(kind, segments, None if kind == "drifting" else ramp)


def _shape_of_trend(points: NDArray[t.Any], noise: Noise, floor: float) -> _Shape | None:
    """What a series without levels is once its noise is known without its trend; ``None`` if it has none."""
    around = noise_around_trend(points, floor)
    if around is None or around.long_run >= noise.long_run:
        return None
    found = _shape(points, around, None, floor)
    line = _line(points)
    if found.kind == "steady" and abs(float(line[-1] - line[0])) >= SAME_LEVEL * float(points.mean()):
        return replace(found, kind="drifting", ramp=None)
    return found


def _approach(found: Decay, interval: float) -> Approach:
    return Approach(found.time_constant * interval, found.start, found.level, found.settled * interval)


def _line(series: NDArray[t.Any]) -> NDArray[t.Any]:
    position = np.arange(series.size) - (series.size - 1) / 2
    return series.mean() + position * (position @ series) / (position @ position)


def _is_drift(series: NDArray[t.Any], segments: t.Sequence[Segment], line: NDArray[t.Any], noise: Noise) -> bool:
    """Whether a straight line describes the series better than its levels do; it costs as much as one change."""
    drift = abs(float(line[-1] - line[0]))
    return (
        drift > 0
        and drift >= SAME_LEVEL * float(series.mean())
        and misfit(series, line, noise, 1) < misfit(series, levels_along(segments), noise, len(segments) - 1)
    )


def _kind_of_change(segments: t.Sequence[Segment], ramp: Ramp, count: int) -> str:
    if ramp.end - ramp.begin > _NARROW * count:
        return "drifting"
    # What recovers was no region that is full: every later level stays below, not only their mean.
    later = [segment.level for segment in segments if segment.end > ramp.end and segment.first >= ramp.begin]
    return "cliff" if max([*later, ramp.after]) <= (1 - CLIFF) * ramp.before else "step"


def _in_seconds(ramp: Ramp, interval: float) -> Change:
    return Change(ramp.begin * interval, (ramp.end - ramp.begin) * interval, max(ramp.before, 0.0), max(ramp.after, 0.0))


def _with_bandwidth(finding: SeriesFinding, series: NDArray[t.Any], bandwidth: NDArray[t.Any], interval: float) -> SeriesFinding:
    change, approach = finding.change, finding.approach
    if change is not None:
        begin, end = round(change.at / interval), round((change.at + change.width) / interval)
        change = replace(change, bytes_before=float(bandwidth[:begin].sum() * interval), bandwidth_after=float(bandwidth[end:].mean()))
    if approach is not None:
        approach = replace(approach, bandwidth=approach.level * float(bandwidth.sum()) / float(series.sum()))
    return replace(finding, change=change, approach=approach)
