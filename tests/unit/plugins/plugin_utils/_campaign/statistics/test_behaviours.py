# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Series of one to thirty minutes that do one thing each: 390 of them, and 2,000 with CACHEFLEET_LONG in the environment."""

from __future__ import annotations

import os

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import classify
from ansible_collections.cachefleet.storage.tests.unit.support.series import BEHAVIOURS, behaviour, fall, noisy

COUNT = 2000 if os.environ.get("CACHEFLEET_LONG") else 390


@pytest.fixture(scope="module")
def found():
    series = [behaviour(number) for number in range(COUNT)]
    return [(one, classify(one.values).kind) for one in series]


def test_wrong_classes_are_at_most_five_percent(found):
    wrong = [(one.name, kind) for one, kind in found if kind not in one.kinds]
    assert len(wrong) <= 0.05 * COUNT, wrong


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_no_behaviour_is_usually_called_something_else(found, name):
    kinds = [kind in one.kinds for one, kind in found if one.name == name]
    assert sum(kinds) >= 0.9 * len(kinds)


def test_falls_are_called_steady_in_at_most_two_percent(found):
    falls = [kind for one, kind in found if one.falls]
    assert len(falls) >= COUNT / 3
    assert falls.count("steady") <= 0.02 * len(falls)


@pytest.mark.parametrize("end", [10_000, 9_500])
@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_recovered_fall_is_a_step_or_an_oscillation(end, rho):
    for seed in range(40):
        levels = fall(250, 100, 10_000, 5_000)
        levels[200:] = end
        assert classify(noisy(np.random.default_rng(seed), levels, variation=0.03, rho=rho)).kind in ("step", "oscillating")


@pytest.mark.parametrize("seconds", [60, 90, 120])
@pytest.mark.parametrize("lost", [0.12, 0.2, 0.4])
@pytest.mark.parametrize("rho", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("shape", ["straight", "bent", "in the middle"])
def test_trend_in_noise_that_remembers_is_not_steady(seconds, lost, rho, shape):
    place = np.arange(seconds) / seconds
    done = {"straight": place, "bent": place**2, "in the middle": np.interp(place, [0.25, 0.75], [0, 1])}[shape]
    kinds = [classify(noisy(np.random.default_rng(seed), 10_000 * (1 - lost * done), variation=0.01, rho=rho)).kind for seed in range(20)]
    assert kinds.count("steady") <= 2, kinds


@pytest.mark.parametrize("rate", [0.77, 1.0, 1.3, 2.5, 3.0])
@pytest.mark.parametrize("evenly", [True, False])
def test_few_ios_per_second_are_steady(rate, evenly):
    for seed in range(10):
        generator = np.random.default_rng(seed)
        ios = np.floor(np.arange(301) * rate + generator.random()) if evenly else np.cumsum(generator.poisson(rate, 301))
        assert classify(np.diff(ios)).kind == "steady"


def test_stairs_are_no_oscillation():
    for seed in range(20):
        levels = np.repeat([10_000.0, 8_800.0, 7_600.0, 6_400.0], 60)
        assert classify(noisy(np.random.default_rng(seed), levels, variation=0.01)).kind != "oscillating"


def test_low_rate_that_falls_is_still_found():
    for seed in range(10):
        generator = np.random.default_rng(seed)
        values = np.concatenate((generator.poisson(12, 200), generator.poisson(3, 200)))
        assert classify(values).kind == "cliff"
