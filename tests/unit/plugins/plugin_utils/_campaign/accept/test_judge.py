# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Judging repeats against a limit. benchmarks/accept has the figures of many fleets."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.special import ndtri

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.judge import Noise, errors, judge, noise_of, surplus
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.spending import nominal_errors
from ansible_collections.cachefleet.storage.tests.unit.support.planted_fleet import REQUIREMENT, fleet, judged

QUIET = Noise(0.0, 0.01**2, 200.0)
LATENCY = dataclasses.replace(REQUIREMENT, metric="p99", direction="sync", limit=10.0, unit="ms", at_least=False)


@pytest.mark.parametrize(
    ("values", "state"),
    [
        ((1250, 1260), "pass"),
        ((800, 790), "fail"),
        ((1020, 1030, 1040, 1030, 1030), "undecided"),
        ((990, 1000, 1010, 1000), "undecided"),
        ((1250,), "undecided"),
        ((), "not measured"),
        ((0, 0, 0), "fail"),
    ],
)
def test_repeats_of_a_quiet_class_are_judged_against_a_lower_limit(values, state):
    assert judge(REQUIREMENT, values, 12, noise=QUIET).state == state


@pytest.mark.parametrize(("values", "state"), [((7.0, 7.1), "pass"), ((13.0, 12.8), "fail"), ((9.8, 9.7, 9.8), "undecided")])
def test_latencies_are_judged_against_an_upper_limit(values, state):
    assert judge(LATENCY, values, 12, noise=QUIET).state == state


def test_interval_contains_the_value_and_excludes_the_limit_of_a_pass():
    found = judge(LATENCY, (7.0, 7.1, 7.2), 12, noise=QUIET)
    assert found.low < found.value < found.high < 10.0
    assert found.value == pytest.approx(7.1, rel=0.01)


def test_reason_has_figure_limit_confidence_and_repeats():
    found = judge(LATENCY, (13.0, 12.8), 12, noise=QUIET)
    assert found.reason.startswith("p99 of sync 12.9 ms, required at most 10 ms (12.5 ms to ")
    assert found.reason.endswith(" with 99.9 %, 2 repeats)")


def test_what_is_far_from_the_limit_is_shown_as_it_was_measured():
    far = judge(REQUIREMENT, (200_000, 210_000), 12, noise=QUIET)
    assert (far.state, far.value, far.low, far.high) == ("pass", 205_000, None, None)
    assert "iops of" in far.reason and "205,000/s" in far.reason and "(98.5 %, 2 repeats)" in far.reason
    assert judge(REQUIREMENT, (0, 0), 12, noise=QUIET).value == 0


def test_interval_of_two_repeats_that_differ_has_ends():
    found = judge(REQUIREMENT, (20, 50_000), 12)
    assert found.state == "undecided" and 0 < found.low < found.value < found.high < 1e10


def test_reason_of_an_undecided_host_has_the_repeats_that_are_needed():
    near = judge(REQUIREMENT, (1100, 1300, 1150, 1350), 12, noise=Noise(0.0, 0.1**2, 200.0))
    assert near.state == "undecided" and "repeats differ by 10 %, so that about 6 repeats are needed" in near.reason
    assert judge(REQUIREMENT, (1020, 1030), 12, noise=QUIET).reason.endswith("it is within 5 % of the limit")


def test_two_repeats_of_one_host_without_a_class_decide_nothing():
    assert judge(REQUIREMENT, (1500, 1510), 12).state == "undecided"
    assert judge(REQUIREMENT, (1500, 1510, 1490, 1505, 1495, 1500), 12).state == "pass"


def test_repeats_far_beyond_the_limit_keep_their_noise():
    assert surplus(REQUIREMENT, (400_000, 500_000)) == pytest.approx([5.9915, 6.2146], abs=1e-3)
    assert surplus(LATENCY, (0.02, 0.01)) == pytest.approx([6.2146, 6.9078], abs=1e-3)
    assert list(surplus(REQUIREMENT, (0, 1))) == [-np.log(100)] * 2


def test_host_that_is_noisier_than_its_class_is_judged_by_its_own_noise_where_hosts_differ():
    generator = np.random.default_rng(3)
    rows = [scale * generator.standard_normal(8) for scale in generator.choice((0.01, 0.2), 40)]
    noise = noise_of(rows)
    assert noise.freedom < 8
    assert judge(REQUIREMENT, 1300 * np.exp(0.2 * generator.standard_normal(4)), 12, noise=noise).state == "undecided"


def test_false_fails_are_divided_among_the_checks_of_a_host():
    assert errors(REQUIREMENT) == (0.015, 0.001)
    assert errors(REQUIREMENT, checks=4) == (0.015, 0.00025)
    assert errors(dataclasses.replace(REQUIREMENT, confidence=0.999)) == pytest.approx((0.0005, 0.0005))


@pytest.mark.parametrize("memory", [0.0, 0.5])
def test_noise_and_memory_of_a_class_are_found(memory):
    planted = fleet(np.random.default_rng(5), 200, noise=0.1, memory=memory)
    noise = noise_of(planted.over)
    assert noise.memory == pytest.approx(memory, abs=0.1)
    assert noise.variance**0.5 == pytest.approx(0.1, rel=0.1)


def test_memory_is_assumed_while_the_repeats_cannot_tell():
    planted = fleet(np.random.default_rng(5), 200, noise=0.1)
    assert noise_of(planted.over[:, :2]).memory == 0.5


def test_looks_spend_the_error_that_is_allowed():
    information, error = tuple(map(float, range(1, 13))), 0.015
    found = nominal_errors(information, error, 2)
    scores = np.cumsum(np.random.default_rng(7).standard_normal((100_000, 12)), axis=1) / np.sqrt(np.arange(1, 13))
    limits = np.array([np.inf if one == 0 else -ndtri(one) for one in found])
    assert (scores > limits).any(axis=1).mean() == pytest.approx(error, rel=0.12)


@pytest.mark.parametrize(("noise", "memory", "undecided"), [(0.02, 0.5, 0.0), (0.1, 0.25, 0.05)])
def test_planted_fleet_is_judged_right(noise, memory, undecided):
    planted = fleet(np.random.default_rng(11), 1000, good=(1.3, 1.3), bad=0.1, by=(0.2, 0.5), noise=noise, memory=memory)
    states, looks = judged(planted)
    assert (states[planted.truth >= 1] == -1).sum() <= 1
    assert (states[planted.truth <= 0.8] == 1).mean() <= 0.01
    assert (states == 0).mean() <= undecided
    assert looks.mean() <= 6


def test_hosts_near_the_limit_do_not_pass():
    planted = fleet(np.random.default_rng(13), 1000, good=(1.02, 1.02), noise=0.05, memory=0.25)
    states, _looks = judged(planted)
    assert (states[abs(planted.truth - 1) <= 0.05] == 1).mean() <= 0.002
    assert (states[planted.truth >= 1] == -1).mean() <= 0.002


def test_values_that_are_no_measurements_are_refused():
    with pytest.raises(BadInput, match="rate: number 2 is -1"):
        judge(REQUIREMENT, (1000, -1), 12)
    with pytest.raises(BadInput, match="a limit of 0 cannot be judged"):
        judge(dataclasses.replace(REQUIREMENT, limit=0.0), (1000, 1000), 12)
