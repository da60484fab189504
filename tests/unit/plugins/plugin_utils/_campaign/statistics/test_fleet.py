# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import fleet


def hosts(*ratios, repeats=2):
    """Hosts of very different speed whose candidate is that much faster."""
    return {f"node{number}": ([1000.0 * 3**number] * repeats, [1000.0 * 3**number * ratio] * repeats) for number, ratio in enumerate(ratios, 1)}


def test_hosts_are_the_unit_from_six_hosts():
    found = fleet.compare_fleet(hosts(1.10, 1.12, 1.08, 1.11, 1.13, 1.09))
    assert (found.unit, found.overall.verdict, found.higher, found.lower) == ("hosts", "better", 6, 0)
    assert found.overall.p == pytest.approx(2 / 64)
    assert (found.overall.interval.low, found.overall.interval.high) == (pytest.approx(1.08), pytest.approx(1.13))
    assert found.overall.ratio == pytest.approx(1.105, abs=0.001)
    assert found.overall.repeats == (12, 12)


def test_fewer_hosts_are_compared_by_their_repeats():
    few = fleet.compare_fleet(hosts(1.10, 1.11, 1.12))
    assert (few.unit, few.overall.verdict) == ("repeats", "not_enough_repeats")
    generator = np.random.default_rng(4)
    enough = {f"node{n}": (10.0**n * generator.normal(1, 0.01, 4), 1.1 * 10.0**n * generator.normal(1, 0.01, 4)) for n in range(3)}
    assert fleet.compare_fleet(enough).overall.verdict == "better"


def test_host_with_many_repeats_is_weighted_once():
    ratios = hosts(1.10, 1.12, 1.08, 1.11, 1.13, 1.09)
    ratios["node1"] = (ratios["node1"][0] * 100, ratios["node1"][1] * 100)
    assert fleet.compare_fleet(ratios).overall.interval == fleet.compare_fleet(hosts(1.10, 1.12, 1.08, 1.11, 1.13, 1.09)).overall.interval


def test_hosts_contradicting_the_overall_result_are_named():
    found = fleet.compare_fleet(hosts(1.20, 1.22, 1.25, 1.21, 0.80, 1.19, 1.23, 1.24, 0.99))
    assert [(one.host, one.ratio) for one in found.against] == [("node5", pytest.approx(0.8))]
    assert found.hosts[0].host == "node5"
    assert (found.higher, found.lower) == (7, 2)


def test_host_without_figures_is_omitted_and_named():
    some = hosts(1.10, 1.12, 1.08, 1.11, 1.13, 1.09)
    some |= {"dead": ([], [100.0]), "stalled": ([100.0], [0.0])}
    found = fleet.compare_fleet(some)
    assert found.left_out == ("dead", "stalled")
    assert len(found.hosts) == 6
    nothing = fleet.compare_fleet({})
    assert (nothing.overall.verdict, nothing.hosts) == ("not_comparable", ())


def test_lower_latency_is_better():
    assert fleet.compare_fleet(hosts(0.8, 0.81, 0.79, 0.82, 0.78, 0.83), higher_is_better=False).overall.verdict == "better"


def test_one_host_that_differs_among_equal_ones_proves_nothing():
    found = fleet.compare_fleet(hosts(1, 1, 1, 1, 1, 1.2))
    assert (found.overall.verdict, found.overall.p) == ("undecided", 1.0)


def test_identical_hosts_are_the_same():
    found = fleet.compare_fleet(hosts(*[1.0] * 7))
    assert (found.overall.verdict, found.overall.p, found.against) == ("same", 1.0, ())


def test_comparison_of_400_hosts():
    generator = np.random.default_rng(5)
    found = fleet.compare_fleet({f"node{n}": ([float(n + 1)], [(n + 1) * float(ratio)]) for n, ratio in enumerate(generator.lognormal(np.log(1.1), 0.1, 400))})
    assert found.overall.verdict == "better"
    assert found.overall.interval.low < 1.1 < found.overall.interval.high
    assert found.overall.interval.confidence == pytest.approx(0.95, abs=0.001)


def test_host_with_invalid_figures_is_named():
    with pytest.raises(BadInput, match="node7, candidate: number 1 is nan"):
        fleet.compare_fleet({"node7": ([1.0], [float("nan")])})


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0.5, 2.0).filter(lambda ratio: abs(ratio - 1) > 1e-6), min_size=6, max_size=9, unique_by=lambda ratio: round(abs(np.log(ratio)), 9)))
def test_p_is_exact_over_all_sign_permutations(ratios):
    ranks = scipy.stats.rankdata(np.abs(np.log(ratios)))
    sums = [sum(rank for rank, sign in zip(ranks, signs) if sign) for signs in itertools.product((0, 1), repeat=len(ratios))]
    observed = sum(rank for rank, ratio in zip(ranks, ratios) if ratio > 1)
    requested = min(1.0, 2 * min(sum(s >= observed for s in sums), sum(s <= observed for s in sums)) / len(sums))
    assert fleet.compare_fleet({f"node{n}": ([1.0], [ratio]) for n, ratio in enumerate(ratios)}).overall.p == pytest.approx(requested)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.floats(-1, 1), min_size=6, max_size=8, unique=True))
def test_interval_confidence_is_exact_over_all_sign_permutations(values):
    """Of all choices of signs the centre 0 is outside of the interval in the share that is not the confidence."""
    sizes = np.abs(values) + np.arange(1, len(values) + 1) * 0.001
    out = [fleet.signed_rank_interval(sizes * signs, 0.95)[1] for signs in itertools.product((-1, 1), repeat=len(values))]
    outside = sum(one.low > 0 or one.high < 0 for one in out) / len(out)
    assert outside <= 1 - out[0].confidence + 1e-9
    assert out[0].confidence >= 0.95


def test_interval_coverage_over_hosts_is_as_stated():
    generator = np.random.default_rng(6)
    out = 0
    for _run in range(400):
        interval = fleet.signed_rank_interval(generator.normal(0.07, 0.1, 8), 0.95)[1]
        out += not interval.low <= 0.07 <= interval.high
    # 96.1 %: 16 expected.
    assert interval.confidence == pytest.approx(0.961, abs=0.001)
    assert 2 <= out <= 35
