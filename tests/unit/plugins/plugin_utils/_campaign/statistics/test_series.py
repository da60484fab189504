# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import time

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import FEWEST, KINDS, UNSETTLED, classify
from ansible_collections.cachefleet.storage.tests.unit.support.series import CASES, decaying, fall, noisy, square_wave, stalled, swinging


@pytest.fixture
def generator():
    return np.random.default_rng(20261122)


def share(generator, kind, levels, runs, *, variation, rho):
    return sum(classify(noisy(generator, levels, variation=variation, rho=rho)).kind == kind for _run in range(runs)) / runs


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variation", [0.0, 0.03])
def test_published_device_behaviour_is_classified(generator, name, variation):
    levels, kind = CASES[name]
    assert classify(noisy(generator, levels, variation=variation)).kind == kind


@pytest.mark.parametrize("count", [60, 180, 300])
@pytest.mark.parametrize(("variation", "rho", "least"), [(0.1, 0.0, 1.0), (0.05, 0.5, 0.97), (0.1, 0.5, 0.97), (0.1, 0.9, 0.85)])
def test_autocorrelated_noise_is_steady(generator, count, variation, rho, least):
    assert share(generator, "steady", np.full(count, 10_000.0), 60, variation=variation, rho=rho) >= least


@pytest.mark.parametrize(
    ("name", "rho"),
    [("intel_545s", 0.0), ("intel_545s_180s", 0.0), ("intel_545s", 0.5), ("intel_320", 0.0), ("all_flash_array", 0.5), ("all_flash_array", 0.9)],
)
def test_cases_are_classified_with_ten_percent_noise(generator, name, rho):
    levels, kind = CASES[name]
    assert share(generator, kind, levels, 15, variation=0.1, rho=rho) >= 0.9


def test_cliff_has_time_levels_and_bytes(generator):
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


def test_no_bytes_without_a_bandwidth_series():
    change = classify(fall(300, 100, 20_000, 14_000)).change
    assert (change.bytes_before, change.bandwidth_after) == (None, None)


def test_times_are_scaled_by_the_interval(generator):
    change = classify(noisy(generator, fall(300, 120, 20_000, 14_000), variation=0.03), interval=5.0).change
    assert change.at == pytest.approx(600, abs=5)


def test_series_of_eighteen_hours(generator):
    iops = noisy(generator, fall(64_800, 32_400, 90_000, 28_000), variation=0.1)
    found = classify(iops, bandwidth=iops * 4096)
    assert (found.kind, found.count) == ("cliff", 64_800)
    assert found.change.at == pytest.approx(32_400, abs=72)
    assert found.change.bytes_before == pytest.approx(32_400 * 90_000 * 4096, rel=0.01)


@pytest.mark.parametrize("variation", [0.0, 0.03, 0.05])
def test_gradual_drop_reports_its_width(generator, variation):
    change = classify(noisy(generator, CASES["fall_over_a_minute"][0], variation=variation)).change
    assert change.width == pytest.approx(48, abs=8)
    assert change.at == pytest.approx(206, abs=8)


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_oscillation_has_period_levels_and_duty_cycle(generator, rho):
    found = classify(noisy(generator, swinging(300, 25, 2600, 8, 800), variation=0.05, rho=rho))
    swing = found.swing
    assert swing.period == 33
    assert (swing.high, swing.low) == (pytest.approx(2600, rel=0.05), pytest.approx(800, rel=0.1))
    assert swing.duty == pytest.approx(0.76, abs=0.03)
    assert found.change is None
    # Nine whole swings and a bit: the plot can show each.
    assert len(found.levels) >= 18


@pytest.mark.parametrize("count", [3600, 7200, 64_800, 172_800])
@pytest.mark.parametrize(("variation", "rho"), [(0.03, 0.0), (0.1, 0.9)])
def test_period_is_independent_of_series_length(generator, count, variation, rho):
    swing = classify(noisy(generator, swinging(count, 25, 2600, 8, 800), variation=variation, rho=rho)).swing
    assert swing.period == pytest.approx(33, rel=0.01)
    assert (swing.high, swing.low) == (pytest.approx(2600, rel=0.05), pytest.approx(800, rel=0.05))
    assert swing.duty == pytest.approx(0.76, abs=0.02)


@pytest.mark.parametrize(("period", "count"), [(4.5, 1800), (7.3, 300), (7.3, 7200), (33.4, 172_800), (1000, 7200), (7200, 172_800), (20_000, 172_800)])
def test_fractional_and_long_periods_are_detected(generator, period, count):
    found = classify(noisy(generator, square_wave(count, period, 2600, 1300), variation=0.05, rho=0.5))
    assert found.kind == "oscillating"
    assert found.swing.period == pytest.approx(period, rel=0.01)


def test_period_in_part_of_a_long_series_is_not_global(generator):
    levels = np.full(14_400, 2600.0)
    levels[:3600] = swinging(3600, 25, 2600, 8, 800)
    assert classify(noisy(generator, levels, variation=0.03)).kind != "oscillating"


@pytest.mark.parametrize("count", [1800, 3600, 7200, 14_400, 64_800])
@pytest.mark.parametrize(("after", "variation", "kind"), [(8500, 0.05, "step"), (7000, 0.1, "cliff"), (10_000, 0.1, "steady")])
def test_averaging_keeps_changes_in_autocorrelated_noise(generator, count, after, variation, kind):
    assert share(generator, kind, fall(count, count // 2, 10_000, after), 8, variation=variation, rho=0.9) == 1.0


@pytest.mark.parametrize(("variation", "rho"), [(0.0, 0.0), (0.03, 0.0), (0.05, 0.5), (0.1, 0.5)])
@pytest.mark.parametrize(("count", "time_constant"), [(1200, 400), (300, 50), (7200, 400), (172_800, 20_000)])
def test_fresh_drive_decays_to_a_level(generator, count, time_constant, variation, rho):
    iops = noisy(generator, decaying(count, 60_000, 20_000, time_constant), variation=variation, rho=rho)
    found = classify(iops, bandwidth=iops * 4096)
    assert (found.kind, found.change) == ("decaying", None)
    assert found.approach.time_constant == pytest.approx(time_constant, rel=0.25)
    assert found.approach.level == pytest.approx(20_000, rel=0.08)
    assert found.approach.start == pytest.approx(60_000, rel=0.12)
    # A twentieth of 20,000 is left of 40,000 after ln 40 time constants.
    assert found.approach.settled == pytest.approx(time_constant * np.log(40), rel=0.25)
    assert found.approach.bandwidth == pytest.approx(found.approach.level * 4096)


@pytest.mark.parametrize("variation", [0.0, 0.03])
def test_decay_within_one_minute_is_not_noise(generator, variation):
    assert share(generator, "decaying", decaying(60, 60_000, 20_000, 15), 20, variation=variation, rho=0.0) >= 0.95


def test_filling_cache_rises_to_a_level(generator):
    found = classify(noisy(generator, decaying(1200, 5000, 20_000, 200), variation=0.03))
    assert (found.kind, found.approach.level) == ("decaying", pytest.approx(20_000, rel=0.02))


def test_change_without_a_final_level_is_drifting(generator):
    assert share(generator, "drifting", decaying(600, 60_000, 20_000, 1500), 10, variation=0.03, rho=0.0) == 1.0


def test_three_periodic_stalls_are_not_an_oscillation(generator):
    found = classify(stalled(noisy(generator, np.full(600, 20_000.0), variation=0.03), {100: 8, 280: 8, 460: 8}))
    assert (found.kind, len(found.stalls)) == ("steady", 3)


@pytest.mark.parametrize("within", [0.2, 0.5, 0.8])
def test_drop_within_an_averaged_block_has_both_levels(generator, within):
    at = round(95 * (800 + within))
    change = classify(noisy(generator, fall(171_000, at, 10_000, 4450), variation=0.02)).change
    assert (change.before, change.after) == (pytest.approx(10_000, rel=0.01), pytest.approx(4450, rel=0.01))
    assert (change.at, change.width) == (pytest.approx(at, abs=96), 0)


def test_unsettled_kinds():
    assert {"decaying", "cliff", "oscillating", "drifting"} == UNSETTLED


@pytest.mark.parametrize("length", [1, 2, 5, 10, 30])
def test_stall_in_a_steady_series_is_recorded_and_keeps_it_steady(generator, length):
    found = classify(stalled(noisy(generator, np.full(600, 20_000.0), variation=0.03), {100: length}))
    assert (found.kind, len(found.levels), found.change) == ("steady", 1, None)
    assert [(stall.at, stall.length) for stall in found.stalls] == [(100, length)]
    assert found.levels[0].mean == pytest.approx(20_000, rel=0.01)
    assert found.mean == pytest.approx(20_000 * (600 - length) / 600, rel=0.01)


def test_total_and_longest_stall(generator):
    found = classify(stalled(noisy(generator, np.full(1200, 20_000.0), variation=0.03), {100: 5, 400: 30, 900: 2}), interval=2.0)
    assert (len(found.stalls), found.stalled, found.longest_stall.at, found.longest_stall.length) == (3, 74, 800, 60)


def test_one_second_stall_is_found_in_two_days(generator):
    found = classify(stalled(noisy(generator, np.full(172_800, 20_000.0), variation=0.1), {86_000: 1}))
    assert (found.kind, [(stall.at, stall.length) for stall in found.stalls]) == ("steady", [(86_000, 1)])


def test_stall_does_not_hide_a_cliff_and_permanent_zero_is_not_a_stall(generator):
    found = classify(stalled(noisy(generator, fall(600, 300, 20_000, 10_000), variation=0.03), {100: 10}))
    assert (found.kind, found.change.at, len(found.stalls)) == ("cliff", pytest.approx(300, abs=2), 1)
    ended = classify(noisy(generator, fall(600, 300, 20_000, 0), variation=0.03))
    assert (ended.kind, ended.stalls) == ("cliff", ())
    low = classify(noisy(generator, fall(600, 300, 100_000, 4000), variation=0.03))
    assert (low.kind, low.stalls) == ("cliff", ())


def test_zero_rate_for_a_third_of_the_run_is_not_a_stall(generator):
    found = classify(stalled(noisy(generator, np.full(600, 20_000.0), variation=0.03), {100: 200}))
    assert (found.kind, found.stalls) == ("step", ())


def test_low_phase_of_an_oscillation_is_not_a_stall():
    found = classify(CASES["stall_every_30_s"][0])
    assert (found.kind, found.swing.period, found.stalls) == ("oscillating", 30, ())


@pytest.mark.parametrize("levels", [np.full(172_800, 2600.0), swinging(172_800, 25, 2600, 8, 800), decaying(172_800, 60_000, 20_000, 20_000)])
def test_two_days_of_seconds_are_classified_in_two_seconds(generator, levels):
    series = noisy(generator, levels, variation=0.1, rho=0.9)
    # Of processor time: what else the machine does is not its fault.
    began = time.process_time()
    classify(series)
    assert time.process_time() - began < 2


def test_single_spikes_are_counted_and_ignored(generator):
    series = noisy(generator, np.full(300, 10_000.0), variation=0.03)
    series[[40, 111, 250]] = [0, 40_000, 0]
    found = classify(series)
    assert (found.kind, found.spikes) == ("steady", 3)


def test_recovering_drop_is_not_a_cliff(generator):
    levels = fall(300, 100, 10_000, 5_000)
    levels[130:] = 9_500
    assert classify(noisy(generator, levels, variation=0.03)).kind == "step"


def test_rise_is_always_a_step(generator):
    found = classify(noisy(generator, fall(300, 50, 10_000, 15_000), variation=0.03))
    assert found.kind == "step"
    assert found.change.share == pytest.approx(0.5, abs=0.02)


def test_larger_of_two_separate_drops_is_reported(generator):
    levels = fall(300, 80, 20_000, 17_000)
    levels[200:] = 9_000
    change = classify(noisy(generator, levels, variation=0.02)).change
    assert change.at == pytest.approx(200, abs=2)
    assert change.before == pytest.approx(17_000, rel=0.02)


def test_mean_and_median_are_of_all_values():
    levels = np.full(100, 1000.0)
    levels[30:40] = 100
    found = classify(levels)
    assert (found.mean, found.median) == (910, 1000)


def test_noise_is_measured_around_the_levels(generator):
    found = classify(noisy(generator, fall(1000, 500, 20_000, 10_000), variation=0.05))
    assert found.variation == pytest.approx(0.05, rel=0.25)
    remembering = classify(noisy(generator, np.full(1800, 10_000.0), variation=0.05, rho=0.5))
    assert remembering.memory == pytest.approx(0.5, abs=0.12)
    assert remembering.variation == pytest.approx(0.05, rel=0.1)


def test_short_and_idle_series_are_unknown():
    assert (classify([1.0] * (FEWEST - 1)).kind, classify([1.0] * FEWEST).kind) == ("unknown", "steady")
    assert classify([]).kind == "unknown"
    assert classify([0.0] * 100).reason == "no I/O in any interval"


@pytest.mark.parametrize("values", [[float("nan")] * 20, [1.0] * 19 + [float("inf")], [-1.0] * 20, [1e300] * 20, [[1.0] * 20], ["x"] * 20, [None] * 20])
def test_invalid_rates_are_rejected_with_one_sentence(values):
    with pytest.raises(BadInput, match="series: "):
        classify(values)


def test_bandwidth_and_interval_are_validated():
    with pytest.raises(BadInput, match="20 values and 19 of the bandwidth"):
        classify([1.0] * 20, bandwidth=[1.0] * 19)
    with pytest.raises(BadInput, match="interval"):
        classify([1.0] * 20, interval=0)


@pytest.mark.parametrize("count", [10, 11, 19, 31, 1799, 1801, 3601])
def test_any_length_and_values_are_classified(generator, count):
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


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("shape", ["uniform", "exponential", "few values", "random walk", "heavy tails", "rare", "one value"])
def test_series_of_any_shape_has_a_kind(shape):
    for seed in range(12):
        generator = np.random.default_rng(seed)
        count = int(generator.integers(10, 4000))
        values = {
            "uniform": lambda n, draw: draw.random(n),
            "exponential": lambda n, draw: draw.exponential(1, n),
            "few values": lambda n, draw: np.round(draw.random(n) * 3),
            "random walk": lambda n, draw: np.abs(np.cumsum(draw.normal(0, 1, n))),
            "heavy tails": lambda n, draw: draw.pareto(1.2, n),
            "rare": lambda n, draw: (draw.random(n) < 0.02) * 1.0,
            "one value": lambda n, draw: np.arange(n) == n // 2,
        }[shape](count, generator)
        found = classify(values * 1e4, bandwidth=values * 4e7)
        assert found.kind in KINDS
        assert found.levels or found.kind == "unknown"
        assert np.isfinite([found.mean, found.variation, found.drift]).all()
