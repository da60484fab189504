# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two variants compared with the repeat as the unit: neither the second nor the I/O, which are correlated.

Ratios are shifts of logarithms. The estimate is that of Hodges and Lehmann, the median of all ratios between a repeat of one
and a repeat of the other; its interval and p come from the exact null distribution of the Mann-Whitney statistic. Repeats in
blocks (hosts) are only compared within their block; the distribution is then that of the sum over blocks.
"""

from __future__ import annotations

import itertools
import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_stats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import finite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS, pooled_noise

if t.TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: A difference smaller than this share is irrelevant, however certain it is.
PRACTICAL = 0.05

CONFIDENCE = 0.95

#: Above so many repeats on a side the null distribution is the normal one, from which it no longer differs.
_MOST_EXACT = 50

#: The most ways to deal repeats to two sides that are all evaluated where values are equal.
_MOST_DEALS = 20_000

VERDICTS = ("better", "worse", "same", "undecided", "not_enough_repeats", "not_comparable")


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio. ``confidence`` is what it really has: steps of an exact distribution are coarse."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Comparison:
    """A candidate against a baseline.

    :param verdict: one of :data:`VERDICTS`.
    :param reason: a sentence for the verdict.
    :param ratio_of_medians: candidate by baseline; ``None`` if there is none.
    :param ratio: the Hodges-Lehmann estimate of it; ``None`` too.
    :param interval: of ``ratio``; ``None`` with too few repeats.
    :param p: two-sided, exact; ``None`` with too few repeats.
    :param repeats: of baseline and candidate.
    :param noise: standard deviation by mean of both; ``None`` with fewer than two repeats.
    """

    verdict: str
    reason: str
    ratio_of_medians: float | None
    ratio: float | None
    interval: Interval | None
    p: float | None
    repeats: tuple[int, int]
    noise: tuple[float | None, float | None]


def compare(
    baseline: ArrayLike, candidate: ArrayLike, *, higher_is_better: bool = True, practical: float = PRACTICAL, confidence: float = CONFIDENCE
) -> Comparison:
    """Two variants on one host.

    :param baseline: one value (IOPS, bytes per second, ns) for each repeat, shape (m,); ``candidate``: shape (n,).
    :param practical: share below which a difference does not matter.
    :raises BadInput: for values that are no numbers, or negative, and for shares that are none.
    """
    return compare_in_blocks([(baseline, candidate)], higher_is_better=higher_is_better, practical=practical, confidence=confidence)


def compare_in_blocks(
    blocks: t.Iterable[tuple[ArrayLike, ArrayLike]], *, higher_is_better: bool = True, practical: float = PRACTICAL, confidence: float = CONFIDENCE
) -> Comparison:
    """Two variants on several hosts, each compared with itself only: what hosts differ in cancels out.

    It applies to these hosts, not of others like them, and assumes that the ratio is the same on all.

    :param blocks: baseline and candidate of each host.
    :raises BadInput: for values that are no numbers, or negative.
    """
    check_shares(practical, confidence)
    return _compared([(finite(one, "baseline"), finite(other, "candidate")) for one, other in blocks], higher_is_better, practical, confidence)


def interval_and_p(blocks: t.Sequence[tuple[NDArray[t.Any], NDArray[t.Any]]], confidence: float) -> tuple[Interval | None, float]:
    """Exact interval of the ratio, and exact p of its being 1; no interval if no interval has that confidence.

    :param blocks: values above 0, baseline and candidate of each block.
    """
    null = _null([(one.size, other.size) for one, other in blocks])
    ratios = pairwise_ratios(blocks)
    return _interval(ratios, null, confidence), _p(blocks, ratios, null)


def pairwise_ratios(blocks: t.Iterable[tuple[NDArray[t.Any], NDArray[t.Any]]]) -> NDArray[t.Any]:
    """Every repeat of the candidate by every one of the baseline of the same block, ascending."""
    return np.sort(np.concatenate([np.divide.outer(other, one).ravel() for one, other in blocks]))


def verdict_of(ratio: float, interval: Interval, *, higher_is_better: bool, practical: float) -> tuple[str, str]:
    """The verdict of a ratio with an interval, and why: certain and large enough, or certainly small, or neither."""
    sentence = f"ratio {text.factor(ratio)}, {text.span(interval.low, interval.high)}, {text.confidence(interval.confidence)}"
    differs = interval.low > 1 or interval.high < 1
    if differs and (ratio >= 1 + practical or ratio <= 1 - practical):
        return ("better" if (ratio > 1) == higher_is_better else "worse"), sentence
    if interval.low > 1 - practical and interval.high < 1 + practical:
        return "same", f"{sentence}: less than {text.share(practical)} apart"
    why = f"a difference of at least {text.share(practical)} is neither shown nor excluded" if differs else "no difference is shown, and none excluded"
    return "undecided", f"{sentence}: {why}"


def _compared(blocks: list[tuple[NDArray[t.Any], NDArray[t.Any]]], higher_is_better: bool, practical: float, confidence: float) -> Comparison:
    used = [(one, other) for one, other in blocks if one.size and other.size]
    repeats = sum(one.size for one, _other in used), sum(other.size for _one, other in used)
    noise = pooled_noise([one.tolist() for one, _other in used]), pooled_noise([other.tolist() for _one, other in used])
    if not used:
        return Comparison("not_comparable", "one side has no measurement", None, None, None, None, repeats, noise)
    if any((one == 0).any() or (other == 0).any() for one, other in used):
        return Comparison("not_comparable", "a repeat measured 0, of which there is no ratio", None, None, None, None, repeats, noise)
    ratios = pairwise_ratios(used)
    ratio = math.exp(float(np.median(np.log(ratios))))
    medians = math.exp(float(np.median([math.log(np.median(other) / np.median(one)) for one, other in used])))
    fewest = min(min(one.size, other.size) for one, other in used)
    if fewest < FEWEST_REPEATS:
        reason = f"not enough repeats: {fewest} on a side, at least {FEWEST_REPEATS} are needed to claim anything"
        return Comparison("not_enough_repeats", reason, medians, ratio, None, None, repeats, noise)
    interval, p = interval_and_p(used, confidence)
    if interval is None:
        reason = f"not enough repeats for an interval of {text.share(confidence, 1)}"
        return Comparison("not_enough_repeats", reason, medians, ratio, None, p, repeats, noise)
    verdict, reason = verdict_of(ratio, interval, higher_is_better=higher_is_better, practical=practical)
    return Comparison(verdict, reason, medians, ratio, interval, p, repeats, noise)


def _null(sizes: t.Sequence[tuple[int, int]]) -> NDArray[t.Any]:
    """Probability of each value 0, 1, … of the Mann-Whitney statistic, summed over blocks, if the variants do not differ."""
    null = np.ones(1)
    for one, other in sizes:
        null = np.convolve(null, null_of_one(one, other))
    return null


def null_of_one(one: int, other: int) -> NDArray[t.Any]:
    """The same for one block. The generating function is the Gaussian binomial coefficient, here as a product of (1 - q^(other + i)) / (1 - q^i), i = 1…one
    (Mann and Whitney 1947), divided by the number of deals as it grows so that nothing overflows."""
    if max(one, other) > _MOST_EXACT:
        return _normal_null(one, other)
    counts = np.zeros(one * other + 1)
    counts[0] = 1.0
    for i in range(1, one + 1):
        if other + i < counts.size:
            counts[other + i :] -= counts[: -(other + i)].copy()
        # Dividing by 1 - q^i adds to each coefficient the one i places before it.
        for rest in range(i):
            counts[rest::i] = np.cumsum(counts[rest::i])
        counts *= i / (other + i)
    return counts


def _normal_null(one: int, other: int) -> NDArray[t.Any]:
    width = math.sqrt(one * other * (one + other + 1) / 12)
    edges = np.arange(one * other + 2) - 0.5 - one * other / 2
    null = np.diff(scipy_stats.norm.cdf(edges / width))
    return null / null.sum()


def _interval(ratios: NDArray[t.Any], null: NDArray[t.Any], confidence: float) -> Interval | None:
    """The k-th ratio from both ends, with the largest k at which the tails are small enough (Lehmann 1963)."""
    tails = np.cumsum(null)
    k = place_of_limit(tails, confidence)
    if k == 0:
        return None
    return Interval(float(ratios[k - 1]), float(ratios[-k]), float(1 - 2 * tails[k - 1]))


def place_of_limit(tails: NDArray[t.Any], confidence: float) -> int:
    """Which ratio from each end limits the interval, counted from 1; 0 if there is no such interval.

    :param tails: of the null distribution, summed up.
    """
    return int(np.searchsorted(tails, (1 - confidence) / 2 * (1 + 1e-12), side="right"))


def _p(blocks: t.Sequence[tuple[NDArray[t.Any], NDArray[t.Any]]], ratios: NDArray[t.Any], null: NDArray[t.Any]) -> float:
    if _has_ties(blocks):
        return _p_with_ties(blocks)
    larger = int((ratios > 1).sum())
    tail = float(null[: min(larger, ratios.size - larger) + 1].sum())
    return min(1.0, 2 * tail)


def _has_ties(blocks: t.Sequence[tuple[NDArray[t.Any], NDArray[t.Any]]]) -> bool:
    return any(np.unique(np.concatenate(block)).size < block[0].size + block[1].size for block in blocks)


def _p_with_ties(blocks: t.Sequence[tuple[NDArray[t.Any], NDArray[t.Any]]]) -> float:
    """Every deal of the values is evaluated as long as they are few, else many are drawn; several blocks: the normal approximation."""
    if len(blocks) == 1:
        one, other = blocks[0]
        if math.comb(one.size + other.size, one.size) <= _MOST_DEALS:
            return _p_of_every_deal(one, other)
        method = scipy_stats.PermutationMethod(n_resamples=_MOST_DEALS, rng=np.random.default_rng(0))
        return float(scipy_stats.mannwhitneyu(one, other, method=method).pvalue)
    shift = variance = 0.0
    for one, other in blocks:
        ranks = scipy_stats.rankdata(np.concatenate((one, other)))
        total = ranks.size
        shift += float(ranks[one.size :].sum()) - other.size * (total + 1) / 2
        variance += one.size * other.size * float(np.var(ranks)) / (total - 1)
    return float(2 * scipy_stats.norm.sf(max(abs(shift) - 0.5, 0.0) / math.sqrt(variance))) if variance else 1.0


def _p_of_every_deal(one: NDArray[t.Any], other: NDArray[t.Any]) -> float:
    """Two-sided p of the rank sum among those of all deals of the values. Importing ``scipy.stats`` for it takes longer than the report of a few hosts."""
    _values, places, counts = np.unique(np.concatenate((one, other)), return_inverse=True, return_counts=True)
    # Equal values share the mean of their ranks; twice that is a whole number.
    ranks = (2 * np.cumsum(counts) - counts + 1)[places]
    deals = np.fromiter(itertools.chain.from_iterable(itertools.combinations(range(ranks.size), one.size)), dtype=np.intp).reshape(-1, one.size)
    sums = ranks[deals].sum(axis=1)
    found = ranks[: one.size].sum()
    return float(min(1.0, 2 * min((sums <= found).mean(), (sums >= found).mean())))


def check_shares(practical: float, confidence: float) -> None:
    """Whether thresholds are valid.

    :raises BadInput: naming the one that cannot.
    """
    if not 0 <= practical < 1:
        raise BadInput(f"A practical threshold must be between 0 and 1, not {practical}.")
    if not 0.5 <= confidence < 1:
        raise BadInput(f"A confidence must be between 0.5 and 1, not {confidence}.")
