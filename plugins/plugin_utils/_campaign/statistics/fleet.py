# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two variants over a fleet: every host is paired with itself, and the host is the unit.

From six hosts on the ratios of hosts are tested (Wilcoxon's signed ranks, Hodges-Lehmann with its exact interval, and the sign
test beside it), which applies to hosts like these. Fewer hosts can show nothing that way, so their repeats are compared host by
host; that applies to these hosts only.
"""

from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_stats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import finite_list
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import pooled_noise
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import (
    CONFIDENCE,
    PRACTICAL,
    Comparison,
    Interval,
    check_shares,
    compare_in_blocks,
    verdict_of,
)

if t.TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: With five hosts p cannot be under 0.06, with six it can be 0.03.
FEWEST_HOSTS = 6

#: Above it the normal distribution is as accurate as the exact one.
_MOST_EXACT = 50

#: Signs of so few hosts are all dealt out where ratios are equal.
_MOST_DEALT = 12


@dataclass(frozen=True)
class HostRatio:
    """Candidate by baseline on one host, each the median of its repeats."""

    host: str
    ratio: float


@dataclass(frozen=True)
class FleetComparison:
    """A candidate against a baseline over hosts.

    :param unit: what was tested: ``hosts``, or ``repeats`` where they are too few.
    :param overall: verdict, ratio, interval and p; its ``repeats`` and ``noise`` are over all hosts.
    :param hosts: the ratio of each host, lowest first.
    :param left_out: hosts without a number on a side.
    :param higher: hosts with a ratio above 1, ``lower``: below.
    :param against: hosts on the other side of 1 than the whole, by at least the practical threshold.
    """

    unit: str
    overall: Comparison
    hosts: tuple[HostRatio, ...]
    left_out: tuple[str, ...]
    higher: int
    lower: int
    against: tuple[HostRatio, ...]


def compare_fleet(
    by_host: t.Mapping[str, tuple[ArrayLike, ArrayLike]], *, higher_is_better: bool = True, practical: float = PRACTICAL, confidence: float = CONFIDENCE
) -> FleetComparison:
    """Two variants over a fleet.

    :param by_host: for each host the repeats of the baseline, shape (m,), and of the candidate, shape (n,); empty: not measured.
    :raises BadInput: for values that are no numbers, or negative, and for shares that are none.
    """
    check_shares(practical, confidence)
    sides = {host: (finite_list(one, f"{host}, baseline"), finite_list(other, f"{host}, candidate")) for host, (one, other) in by_host.items()}
    usable = {host: side for host, side in sides.items() if all(part and min(part) > 0 for part in side)}
    ratios = {host: statistics.median(other) / statistics.median(one) for host, (one, other) in usable.items()}
    # With a higher confidence than usual six hosts may be too few; their repeats then are not.
    unit = "hosts" if len(ratios) >= FEWEST_HOSTS and 0.5 ** len(ratios) <= (1 - confidence) / 2 else "repeats"
    if unit == "hosts":
        overall = _over_hosts(np.array(list(ratios.values())), list(usable.values()), higher_is_better, practical, confidence)
    else:
        overall = compare_in_blocks(usable.values(), higher_is_better=higher_is_better, practical=practical, confidence=confidence)
    ordered = tuple(sorted((HostRatio(host, ratio) for host, ratio in ratios.items()), key=lambda one: (one.ratio, one.host)))
    return FleetComparison(
        unit=unit,
        overall=overall,
        hosts=ordered,
        left_out=tuple(host for host in sides if host not in usable),
        higher=sum(one.ratio > 1 for one in ordered),
        lower=sum(one.ratio < 1 for one in ordered),
        against=_against(ordered, overall.ratio, practical),
    )


def signed_rank_interval(values: NDArray[t.Any], confidence: float) -> tuple[float, Interval]:
    """The Hodges-Lehmann estimate of the centre of symmetric values, and its interval.

    The estimate is the median of the means of all pairs, each value with itself too; the interval is the k-th of those from
    both ends, with k from the null distribution of Wilcoxon's signed ranks: exact up to 50 values, else normal.

    :param values: shape (n,), n large enough for the confidence: 6 for 95 %.
    """
    first, second = np.triu_indices(values.size)
    means = (values[first] + values[second]) / 2
    k, real = _rank_and_confidence(values.size, confidence)
    middle = (means.size - 1) // 2, means.size // 2
    # Only four of them have to be in their places, of half a million with a thousand hosts.
    means.partition(sorted({k - 1, means.size - k, *middle}))
    return float(means[list(middle)].mean()), Interval(float(means[k - 1]), float(means[-k]), real)


def _over_hosts(
    ratios: NDArray[t.Any], sides: t.Sequence[tuple[t.Sequence[float], t.Sequence[float]]], higher_is_better: bool, practical: float, confidence: float
) -> Comparison:
    logs = np.log(ratios)
    medians = math.exp(float(np.median(logs)))
    repeats = sum(len(one) for one, _other in sides), sum(len(other) for _one, other in sides)
    noise = pooled_noise([one for one, _other in sides]), pooled_noise([other for _one, other in sides])
    centre, interval = signed_rank_interval(logs, confidence)
    ratio, interval = math.exp(centre), Interval(math.exp(interval.low), math.exp(interval.high), interval.confidence)
    verdict, sentence = verdict_of(ratio, interval, higher_is_better=higher_is_better, practical=practical)
    return Comparison(verdict, f"{ratios.size} hosts: {sentence}", medians, ratio, interval, _p(logs), repeats, noise)


def _p(logs: NDArray[t.Any]) -> float:
    moved = logs[logs != 0]
    if moved.size < 2:
        # Of one host both signs are as likely; scipy does not permute a single value.
        return 1.0
    has_ties = np.unique(np.abs(moved)).size < moved.size or moved.size < logs.size
    method: t.Any = "exact" if moved.size <= _MOST_EXACT else "approx"
    if has_ties:
        # Every choice of signs, where that is few.
        method = scipy_stats.PermutationMethod(n_resamples=2**_MOST_DEALT) if moved.size <= _MOST_DEALT else "approx"
    return float(scipy_stats.wilcoxon(moved, method=method).pvalue)


def _rank_and_confidence(count: int, confidence: float) -> tuple[int, float]:
    tail = (1 - confidence) / 2
    rank_sum = count * (count + 1) // 2
    if count > _MOST_EXACT:
        centre, width = rank_sum / 2, math.sqrt(count * (count + 1) * (2 * count + 1) / 24)
        k = max(math.floor(centre + 0.5 + width * float(scipy_stats.norm.ppf(tail))), 1)
        return k, float(1 - 2 * scipy_stats.norm.cdf((k - 0.5 - centre) / width))
    null = np.ones(1)
    for rank in range(1, count + 1):
        null = np.concatenate((null, np.zeros(rank))) / 2
        null[rank:] += null[: null.size - rank].copy() if rank else 0.0
    tails = np.cumsum(null)
    k = max(int(np.searchsorted(tails, tail * (1 + 1e-12), side="right")), 1)
    return k, float(1 - 2 * tails[k - 1])


def _against(ordered: t.Sequence[HostRatio], whole: float | None, practical: float) -> tuple[HostRatio, ...]:
    if whole is None or whole == 1:
        return ()
    return tuple(one for one in ordered if (one.ratio <= 1 - practical if whole > 1 else one.ratio >= 1 + practical))
