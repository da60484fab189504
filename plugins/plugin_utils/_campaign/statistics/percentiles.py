# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Percentiles of many hosts together, from added histogram bins, and none where there are too few samples for it.

Bins are those of ``module_utils/_fio/histogram.py``: ``{nanoseconds: count}``. Percentiles are never averaged: of ten hosts with
one slow one the mean of the ten p99 shows a tenth of what one I/O in ten took. Beside the merged value is the range over hosts.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.summary import PERCENTILES as PERCENTS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import Bins


#: 97.5th percentile of the normal distribution: 95 % confidence.
_Z = 1.959963984540054

#: The rank of a percentile should be known to half its distance from the nearer end, and at least to this.
_COARSEST_RANK = 0.1

#: Fewer samples than this make no percentile at all.
_FEWEST = 100


@dataclass(frozen=True, eq=False)
class Histogram:
    """A latency histogram as arrays, both of shape (bins,).

    :param durations: int64, ns, midpoints of fio's bins, ascending, each once.
    :param counts: int64, I/Os, above 0.
    """

    durations: NDArray[t.Any]
    counts: NDArray[t.Any]

    @property
    def total(self) -> int:
        """How many I/Os it holds."""
        return int(self.counts.sum())


@dataclass(frozen=True)
class Percentile:
    """A percentile of a latency.

    :param value: ns; ``None`` where there are fewer than ``needed`` samples: then it is unknown.
    """

    percent: float
    value: int | None
    samples: int
    needed: int


@dataclass(frozen=True)
class Moments:
    """Count, extremes, mean and standard deviation (with n - 1, as fio prints it) of a latency in ns."""

    count: int
    low: float
    high: float
    mean: float
    deviation: float


def histogram(bins: Bins) -> Histogram:
    """The arrays of one histogram.

    :raises BadInput: for a negative count or duration.
    """
    return _histogram(np.fromiter(bins.keys(), np.int64, len(bins)), np.fromiter(bins.values(), np.int64, len(bins)))


def merged(histograms: t.Iterable[Histogram]) -> Histogram:
    """The histogram of all I/Os together. Only cells that ran the same job at the same time, and one direction, may be merged."""
    parts = list(histograms)
    empty = np.zeros(0, np.int64)
    return _histogram(np.concatenate([empty, *(part.durations for part in parts)]), np.concatenate([empty, *(part.counts for part in parts)]))


def percentile_values(of: Histogram, percents: t.Sequence[float]) -> tuple[int, ...]:
    """Percentiles by the rule of fio, in ns, however few samples there are: the first bin whose cumulative count reaches the share.

    :raises BadInput: for an empty histogram, and for percents that are not in 0 to 100.
    """
    if not of.counts.size:
        raise BadInput("percentiles: the histogram is empty.")
    wrong = [percent for percent in percents if not 0 <= percent <= 100]
    if wrong:
        raise BadInput(f"percentiles: {wrong[0]} is not from 0 to 100.")
    cumulative = np.cumsum(of.counts)
    # fio compares with percent / 100 x N in floating point: rounding is left as it is there.
    ranks = [percent / 100.0 * int(cumulative[-1]) for percent in percents]
    at = np.minimum(np.searchsorted(cumulative, ranks, side="left"), cumulative.size - 1)
    return tuple(int(value) for value in of.durations[at])


def percentiles(of: Histogram, percents: t.Sequence[float] = PERCENTS) -> tuple[Percentile, ...]:
    """Percentiles, without value where there are too few samples. See :func:`samples_needed`."""
    total = of.total
    values: t.Sequence[int | None] = percentile_values(of, percents) if total else (None,) * len(percents)
    needed = [samples_needed(percent) for percent in percents]
    return tuple(Percentile(percent, value if total >= least else None, total, least) for percent, value, least in zip(percents, values, needed))


def samples_needed(percent: float) -> int:
    """Fewest samples with which the rank of a percentile is known well enough with 95 % confidence.

    Well enough is half the distance to the nearer end, at most 10 %: ±10 % for p50, ±0.5 % for p99 (1522 samples), ±0.05 % for
    p99.9 (15351), by 1.96² p (1 - p) / d². I/Os that wait for each other are worth less: it is a lower limit.
    """
    tail = min(percent, 100 - percent) / 100
    if tail <= 0:
        return 1
    distance = min(tail / 2, _COARSEST_RANK)
    return max(math.ceil(_Z**2 * tail * (1 - tail) / distance**2 - 1e-6), _FEWEST)


def pooled(parts: t.Iterable[Moments]) -> Moments | None:
    """Exact moments of all samples together; ``None`` without any."""
    known = [part for part in parts if part.count]
    count = sum(part.count for part in known)
    if not count:
        return None
    mean = sum(part.count * part.mean for part in known) / count
    squares = sum((part.count - 1) * part.deviation**2 + part.count * (part.mean - mean) ** 2 for part in known)
    deviation = math.sqrt(squares / (count - 1)) if count > 1 else 0.0
    return Moments(count, min(part.low for part in known), max(part.high for part in known), mean, deviation)


def _histogram(durations: NDArray[t.Any], counts: NDArray[t.Any]) -> Histogram:
    if (durations < 0).any() or (counts < 0).any():
        raise BadInput("percentiles: a bin has a negative duration or count.")
    unique, place = np.unique(durations[counts > 0], return_inverse=True)
    added = np.zeros(unique.size, np.int64)
    np.add.at(added, place, counts[counts > 0])
    for array in (unique, added):
        array.flags.writeable = False
    return Histogram(unique, added)
