# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may be read off a curve over load: IOPS under a latency limit, the saturation point, the best block size.

Latency can only rise with load, and throughput can only rise until the device is saturated; what deviates from that
is noise, and isotonic regression takes it out. Beyond the tested loads there is no result: those are states, not numbers.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_optimize
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import finite

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

#: Throughput within this share of the most is the most.
SAME_THROUGHPUT = 0.05


@dataclass(frozen=True)
class LoadPoint:
    """One measurement. Several of one load are its repeats.

    :param load: what was raised: jobs, depth, jobs x depth, or a rate.
    :param latency: ns, of one kind throughout: a mean, or a percentile of merged bins.
    """

    load: float
    iops: float
    latency: float


@dataclass(frozen=True)
class UnderLimit:
    """The most IOPS with the latency under a limit.

    :param state: ``found``; ``at_least``: the highest load tested is still under the limit; ``not_reachable``: the lowest is over it.
    :param load: the load with the most IOPS that keeps the limit; ``None`` if none does.
    :param iops: median of what was measured there.
    :param latency: ns, there, smoothed; of the lowest load if none keeps the limit.
    :param over: the lowest load that does not keep the limit.
    :param estimate: IOPS between the last load under and the first over the limit, interpolated; only when ``found``.
    """

    limit: float
    state: str
    load: float | None
    iops: float | None
    latency: float
    over: float | None
    estimate: float | None = None


@dataclass(frozen=True)
class Knee:
    """The lowest load (or smallest block) from which more brings less than 5 %.

    :param state: ``found``; ``at_least``: it still rises at the highest one tested; ``too_few``: fewer than three were tested.
    :param at: that load or block size; ``reached``: smoothed throughput there.
    :param most: the most throughput there is, smoothed.
    :param falls_to: throughput at the highest load tested by the most, where that is more than 5 % less; else ``None``.
    """

    state: str
    at: float
    reached: float
    most: float
    falls_to: float | None


def iops_under_limit(points: t.Iterable[LoadPoint], limit: float) -> UnderLimit:
    """The most IOPS with the latency at or under ``limit`` ns.

    :raises BadInput: without points, for values that are not positive, for a limit that is not positive.
    """
    if limit <= 0 or not math.isfinite(limit):
        raise BadInput(f"latency limit: must be greater than 0, not {limit}.")
    load, iops, latency, weights = _curve(points)
    # Latencies scatter by shares, so it is their logarithms that are smoothed.
    smooth = np.exp(scipy_optimize.isotonic_regression(np.log(latency), weights=weights).x)
    kept = int(np.searchsorted(smooth, limit * (1 + 1e-12), side="right"))
    if kept == 0:
        return UnderLimit(limit, "not_reachable", None, None, float(smooth[0]), float(load[0]))
    best = int(np.argmax(iops[:kept]))
    found = float(load[best]), float(iops[best]), float(smooth[best])
    if kept == load.size:
        return UnderLimit(limit, "at_least", *found, None)
    under, over = kept - 1, kept
    share = math.log(limit / smooth[under]) / math.log(smooth[over] / smooth[under])
    between = float(iops[under] + share * (iops[over] - iops[under]))
    return UnderLimit(limit, "found", *found, float(load[over]), max(between, found[1]))


def saturation(points: t.Iterable[LoadPoint]) -> Knee:
    """The lowest load with all the IOPS there are.

    :raises BadInput: without points, or for values that are not positive.
    """
    load, iops, _latency, weights = _curve(points)
    return _knee(load, iops, weights)


def best_block_size(points: t.Iterable[tuple[int, float]]) -> Knee:
    """The smallest block with all the bandwidth there is: larger ones only cost IOPS and latency.

    :param points: block size in bytes and IOPS of each measurement; ``reached`` and ``most`` of the answer are bytes per second.
    :raises BadInput: without points, or for values that are not positive.
    """
    size, bandwidth, _latency, weights = _curve(LoadPoint(block, block * iops, 1.0) for block, iops in points)
    return _knee(size, bandwidth, weights)


def _curve(points: t.Iterable[LoadPoint]) -> tuple[NDArray[t.Any], NDArray[t.Any], NDArray[t.Any], NDArray[t.Any]]:
    """Loads ascending, medians of IOPS and latency, and how many repeats each has; all of shape (loads,)."""
    known = sorted(points, key=lambda point: point.load)
    if not known:
        raise BadInput("curve over load: there are no points.")
    load = finite([point.load for point in known], "load", positive=True)
    iops = finite([point.iops for point in known], "IOPS over load", positive=True)
    latency = finite([point.latency for point in known], "latency over load", positive=True)
    unique, first, repeats = np.unique(load, return_index=True, return_counts=True)
    parts = [slice(at, at + count) for at, count in zip(first, repeats)]
    return unique, np.array([np.median(iops[part]) for part in parts]), np.array([np.median(latency[part]) for part in parts]), repeats.astype(float)


def _knee(load: NDArray[t.Any], throughput: NDArray[t.Any], weights: NDArray[t.Any]) -> Knee:
    top = int(np.argmax(throughput))
    # What falls after the peak does not show how it was reached.
    smooth = scipy_optimize.isotonic_regression(throughput[: top + 1], weights=weights[: top + 1]).x
    at = int(np.argmax(smooth >= (1 - SAME_THROUGHPUT) * smooth[-1]))
    last = load.size - 1
    state = "too_few" if load.size < 3 else "at_least" if at == last else "found"
    falls_to = float(throughput[last] / smooth[-1])
    return Knee(state, float(load[at]), float(smooth[at]), float(smooth[-1]), falls_to if falls_to < 1 - SAME_THROUGHPUT else None)
