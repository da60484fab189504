# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import two_variants as tv

DISTINCT = st.lists(st.floats(0.5, 2.0), min_size=8, max_size=11, unique=True)


def deals(values, count):
    """Every way to deal values to two sides."""
    for chosen in itertools.combinations(range(len(values)), count):
        yield [values[i] for i in chosen], [values[i] for i in range(len(values)) if i not in chosen]


def larger(one, other):
    return sum((b > a) + 0.5 * (b == a) for a in one for b in other)


@settings(deadline=None)
@given(DISTINCT)
def test_p_is_exact_over_all_permutations(values):
    one, other = values[:4], values[4:]
    middle = len(one) * len(other) / 2
    distances = [abs(larger(*deal) - middle) for deal in deals(values, 4)]
    ranks = sum(distance >= abs(larger(one, other) - middle) for distance in distances) / len(distances)
    assert tv.compare(one, other).p == pytest.approx(ranks)


@settings(deadline=None)
@given(st.lists(st.integers(1, 4), min_size=8, max_size=9))
def test_p_is_exact_over_all_permutations_with_ties(values):
    values = [float(value) for value in values]
    one, other = values[:4], values[4:]
    middle = len(one) * len(other) / 2
    sides = [larger(*deal) - middle for deal in deals(values, 4)]
    observed = larger(one, other) - middle
    ranks = min(1.0, 2 * min(sum(side >= observed for side in sides), sum(side <= observed for side in sides)) / len(sides))
    assert tv.compare(one, other).p == pytest.approx(ranks)


@settings(deadline=None)
@given(DISTINCT)
def test_p_matches_scipy(values):
    found = tv.compare(values[:4], values[4:])
    assert found.p == pytest.approx(scipy.stats.mannwhitneyu(values[:4], values[4:], method="exact").pvalue)


@settings(deadline=None)
@given(DISTINCT)
def test_interval_contains_exactly_the_ratios_not_rejected(values):
    one, other = np.array(values[:4]), np.array(values[4:])
    found = tv.compare(one, other)
    if found.interval is None:
        return
    for ratio in np.unique(np.concatenate([np.geomspace(0.2, 5, 40), [found.ratio]])):
        if np.isclose(tv.pairwise_ratios([(one, other)]), ratio, rtol=1e-9).any():
            continue
        p = tv.interval_and_p([(one, other / ratio)], 0.95)[1]
        assert (p > 0.05 + 1e-12) == (found.interval.low < ratio < found.interval.high)


@settings(deadline=None)
@given(DISTINCT)
def test_estimate_is_the_median_ratio_and_is_symmetric(values):
    one, other = values[:4], values[4:]
    found, turned = tv.compare(one, other), tv.compare(other, one)
    assert found.ratio == pytest.approx(math.exp(np.median([math.log(b / a) for a in one for b in other])))
    assert found.ratio_of_medians == pytest.approx(np.median(other) / np.median(one))
    assert (found.ratio * turned.ratio, found.p) == (pytest.approx(1), pytest.approx(turned.p))


@pytest.mark.parametrize(("repeats", "smallest"), [(3, 0.1), (4, 0.0286), (5, 0.0079), (6, 0.0022)])
def test_smallest_possible_p(repeats, smallest):
    one = np.linspace(1, 1.1, repeats)
    _interval, p = tv.interval_and_p([(one, one + 5)], 0.95)
    assert p == pytest.approx(smallest, abs=5e-5)


def test_three_repeats_give_no_verdict():
    found = tv.compare([100, 101, 102], [500, 501, 502, 503])
    assert (found.verdict, found.p, found.interval) == ("not_enough_repeats", None, None)
    assert found.ratio_of_medians == pytest.approx(501.5 / 101)
    assert "3 on a side" in found.reason


@pytest.mark.parametrize(
    ("baseline", "candidate", "higher_is_better", "verdict"),
    [
        ([100, 101, 99, 100.5, 99.5], [110, 111, 109, 110.5, 112], True, "better"),
        ([100, 101, 99, 100.5, 99.5], [110, 111, 109, 110.5, 112], False, "worse"),
        ([110, 111, 109, 110.5, 112], [100, 101, 99, 100.5, 99.5], True, "worse"),
        # Certain, and too small to matter, above and below 1.
        ([100, 101, 99, 100.5, 99.5], [98, 97, 97.5, 98.1, 97.8], True, "same"),
        ([100, 101, 99, 100.5, 99.5], [102, 103, 102.5, 101.9, 102.2], True, "same"),
        ([100, 101, 99, 100.5, 99.5], [100.1, 101.1, 99.1, 100.4, 99.6], True, "same"),
        ([100, 130, 80, 110, 95], [120, 90, 140, 105, 99], True, "undecided"),
        # Certain, and whether it matters is not.
        ([100, 101, 99, 100.5, 99.5], [104, 107, 103.5, 106, 104.5], True, "undecided"),
    ],
)
def test_verdict_requires_significance_and_effect_size(baseline, candidate, higher_is_better, verdict):
    assert tv.compare(baseline, candidate, higher_is_better=higher_is_better).verdict == verdict


def test_practical_threshold_is_configurable():
    baseline, candidate = [100, 101, 99, 100.5, 99.5], [102, 103, 102.5, 101.9, 102.2]
    assert tv.compare(baseline, candidate, practical=0.01).verdict == "better"


def test_zero_value_has_no_ratio():
    found = tv.compare([100, 101, 0, 100], [100, 101, 99, 100])
    assert (found.verdict, found.ratio, found.p) == ("not_comparable", None, None)
    assert tv.compare([], [1.0] * 5).verdict == "not_comparable"


def test_many_repeats():
    generator = np.random.default_rng(1)
    found = tv.compare(generator.normal(100, 5, 300), generator.normal(108, 5, 51))
    assert found.verdict == "better"
    assert found.interval.confidence == pytest.approx(0.95, abs=0.001)
    assert found.interval.low < 1.08 < found.interval.high


def test_confidence_beyond_the_repeats_gives_no_interval():
    found = tv.compare([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], confidence=0.999)
    assert (found.verdict, found.interval) == ("not_enough_repeats", None)


def test_blocks_cancel_host_differences():
    generator = np.random.default_rng(2)
    blocks = [(host * generator.normal(1, 0.01, 4), 1.1 * host * generator.normal(1, 0.01, 4)) for host in (100, 1000, 10_000)]
    found = tv.compare_in_blocks(blocks)
    assert found.verdict == "better"
    assert found.interval.low < 1.1 < found.interval.high
    assert tv.compare(*(np.concatenate(side) for side in zip(*blocks))).verdict == "undecided"


def test_exact_p_of_blocks_covers_all_permutations_in_each():
    blocks = [([1.0, 4.0], [2.0, 5.0]), ([10.0, 30.0], [20.0, 40.0])]
    arrays = [(np.array(one), np.array(other)) for one, other in blocks]
    both = [[larger(*deal) for deal in deals(one + other, 2)] for one, other in blocks]
    sums = [a + b for a, b in itertools.product(*both)]
    observed = sum(larger(*block) for block in blocks)
    ranks = min(1.0, 2 * min(sum(s >= observed for s in sums), sum(s <= observed for s in sums)) / len(sums))
    assert tv.interval_and_p(arrays, 0.5)[1] == pytest.approx(ranks)


def test_invalid_shares_are_rejected():
    for wrong in ({"practical": 5}, {"confidence": 95}, {"confidence": 1.0}):
        with pytest.raises(BadInput, match="must be between"):
            tv.compare([1.0] * 5, [1.0] * 5, **wrong)


@pytest.mark.parametrize(("one", "other"), [(1, 1), (4, 4), (3, 7), (10, 10), (50, 50), (300, 20)])
def test_null_distribution_is_normalized_and_symmetric(one, other):
    null = tv.null_of_one(one, other)
    assert (null.size, null.sum()) == (one * other + 1, pytest.approx(1))
    assert null == pytest.approx(null[::-1])


def test_interval_coverage_is_as_stated():
    """Short; benchmarks/statistics-coverage is the long one. 400 of 96.8 %: 13 out expected, 30 would be five sigma."""
    generator = np.random.default_rng(3)
    out = 0
    for _run in range(400):
        interval = tv.compare(generator.lognormal(0, 0.1, 5), 1.07 * generator.lognormal(0, 0.1, 5)).interval
        out += not interval.low <= 1.07 <= interval.high
    assert interval.confidence == pytest.approx(0.968, abs=0.001)
    assert 1 <= out <= 30
