# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import FEWEST, classify
from ansible_collections.cachefleet.storage.tests.unit.support.series import CASES, fall, noisy, swinging


@pytest.fixture
def generator():
    return np.random.default_rng(20261122)


def share(generator, kind, levels, runs, *, variation, rho):
    return sum(classify(noisy(generator, levels, variation=variation, rho=rho)).kind == kind for _run in range(runs)) / runs


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variation", [0.0, 0.03])
def test_what_was_published_of_devices_is_recognised(generator, name, variation):
    levels, kind = CASES[name]
    assert classify(noisy(generator, levels, variation=variation)).kind == kind


@pytest.mark.parametrize("count", [60, 180, 300])
@pytest.mark.parametrize(("variation", "rho", "least"), [(0.1, 0.0, 1.0), (0.05, 0.5, 0.97), (0.1, 0.5, 0.97), (0.1, 0.9, 0.85)])
def test_noise_is_steady_even_if_it_remembers_itself(generator, count, variation, rho, least):
    assert share(generator, "steady", np.full(count, 10_000.0), 60, variation=variation, rho=rho) >= least


@pytest.mark.parametrize(
    ("name", "rho"),
    [("intel_545s", 0.0), ("intel_545s_180s", 0.0), ("intel_545s", 0.5), ("intel_320", 0.0), ("all_flash_array", 0.5), ("all_flash_array", 0.9)],
)
def test_cases_are_recognised_through_noise_of_a_tenth(generator, name, rho):
    levels, kind = CASES[name]
    assert share(generator, kind, levels, 15, variation=0.1, rho=rho) >= 0.9


def test_a_cliff_has_its_time_its_levels_and_its_bytes(generator):
    iops = noisy(generator, fall(1800, 900, 90_000, 28_000), variation=0.03)
    found = classify(iops, bandwidth=iops * 4096)
    assert found.kind == "cliff"
    change = found.change
    assert change.at == pytest.approx(900, abs=2)
    assert change.width <= 2
    assert (change.before, change.after) == (pytest.approx(90_000, rel=0.01), pytest.approx(28_000, rel=0.01))
    assert change.share == pytest.approx(-0.69, abs=0.01)
    assert change.bytes_before == pytest.approx(900 * 90_000 * 4096, rel=0.01)
    assert change.bandwidth_after == pytest.approx(28_000 * 4096, rel=0.01)
    assert [(level.start, level.end) for level in found.levels] == [(0, change.at), (change.at, 1800)]


def test_without_a_bandwidth_no_bytes_are_made_up():
    change = classify(fall(300, 100, 20_000, 14_000)).change
    assert (change.bytes_before, change.bandwidth_after) == (None, None)


def test_seconds_follow_the_interval(generator):
    change = classify(noisy(generator, fall(300, 120, 20_000, 14_000), variation=0.03), interval=5.0).change
    assert change.at == pytest.approx(600, abs=5)


def test_eighteen_hours_of_seconds(generator):
    iops = noisy(generator, fall(64_800, 32_400, 90_000, 28_000), variation=0.1)
    found = classify(iops, bandwidth=iops * 4096)
    assert (found.kind, found.count) == ("cliff", 64_800)
    assert found.change.at == pytest.approx(32_400, abs=72)
    assert found.change.bytes_before == pytest.approx(32_400 * 90_000 * 4096, rel=0.01)


@pytest.mark.parametrize("variation", [0.0, 0.03, 0.05])
def test_a_fall_that_takes_a_minute_is_as_wide(generator, variation):
    change = classify(noisy(generator, CASES["fall_over_a_minute"][0], variation=variation)).change
    assert change.width == pytest.approx(48, abs=8)
    assert change.at == pytest.approx(206, abs=8)


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_an_oscillation_has_period_high_low_and_duty(generator, rho):
    found = classify(noisy(generator, swinging(300, 25, 2600, 8, 800), variation=0.05, rho=rho))
    swing = found.swing
    assert swing.period == 33
    assert (swing.high, swing.low) == (pytest.approx(2600, rel=0.05), pytest.approx(800, rel=0.1))
    assert swing.duty == pytest.approx(0.76, abs=0.03)
    assert found.change is None
    # Nine whole swings and a bit: the plot can show each.
    assert len(found.levels) >= 18


def test_single_spikes_are_counted_and_change_nothing(generator):
    series = noisy(generator, np.full(300, 10_000.0), variation=0.03)
    series[[40, 111, 250]] = [0, 40_000, 0]
    found = classify(series)
    assert (found.kind, found.spikes) == ("steady", 3)


def test_what_recovers_is_no_cliff(generator):
    levels = fall(300, 100, 10_000, 5_000)
    levels[130:] = 9_500
    assert classify(noisy(generator, levels, variation=0.03)).kind == "step"


def test_a_rise_is_a_step_however_high(generator):
    found = classify(noisy(generator, fall(300, 50, 10_000, 15_000), variation=0.03))
    assert found.kind == "step"
    assert found.change.share == pytest.approx(0.5, abs=0.02)


def test_of_two_falls_with_rest_between_them_the_greater_is_named(generator):
    levels = fall(300, 80, 20_000, 17_000)
    levels[200:] = 9_000
    change = classify(noisy(generator, levels, variation=0.02)).change
    assert change.at == pytest.approx(200, abs=2)
    assert change.before == pytest.approx(17_000, rel=0.02)


def test_the_worst_window_is_a_tenth_of_the_run():
    levels = np.full(100, 1000.0)
    levels[30:40] = 100
    found = classify(levels)
    assert (found.worst_window, found.mean, found.median) == (100, 910, 1000)


def test_the_noise_is_measured_around_the_levels(generator):
    found = classify(noisy(generator, fall(1000, 500, 20_000, 10_000), variation=0.05))
    assert found.variation == pytest.approx(0.05, rel=0.25)
    remembering = classify(noisy(generator, np.full(1800, 10_000.0), variation=0.05, rho=0.5))
    assert remembering.memory == pytest.approx(0.5, abs=0.12)
    assert remembering.variation == pytest.approx(0.05, rel=0.1)


def test_too_short_is_unknown_and_so_is_nothing_at_all():
    assert (classify([1.0] * (FEWEST - 1)).kind, classify([1.0] * FEWEST).kind) == ("unknown", "steady")
    assert classify([]).kind == "unknown"
    assert classify([0.0] * 100).reason == "no I/O in any interval"


@pytest.mark.parametrize("values", [[float("nan")] * 20, [1.0] * 19 + [float("inf")], [-1.0] * 20, [1e300] * 20, [[1.0] * 20], ["x"] * 20, [None] * 20])
def test_what_are_no_rates_is_said_in_one_sentence(values):
    with pytest.raises(BadInput, match="series: "):
        classify(values)


def test_bandwidth_and_interval_must_fit():
    with pytest.raises(BadInput, match="20 values and 19 of the bandwidth"):
        classify([1.0] * 20, bandwidth=[1.0] * 19)
    with pytest.raises(BadInput, match="interval"):
        classify([1.0] * 20, interval=0)


@pytest.mark.parametrize("count", [10, 11, 19, 31, 1799, 1801, 3601])
def test_any_length_and_any_numbers_have_an_answer(generator, count):
    for series in (
        np.zeros(count),
        np.arange(count),
        generator.exponential(size=count),
        generator.integers(0, 2, count),
        np.full(count, 1e18),
        np.full(count, 1e-200),
    ):
        found = classify(series)
        assert found.count == count
        assert not found.levels or (found.levels[0].start, found.levels[-1].end) == (0, pytest.approx(count, rel=0.01))
