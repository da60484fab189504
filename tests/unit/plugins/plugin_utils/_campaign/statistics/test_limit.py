# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.limit import LoadPoint, best_block_size, iops_under_limit, saturation

MS = 1_000_000.0


def ladder(*points):
    """(load, IOPS, latency in ms) of each."""
    return [LoadPoint(load, iops, latency * MS) for load, iops, latency in points]


CURVE = ladder((1, 1000, 0.5), (2, 1900, 0.6), (4, 3500, 0.8), (8, 5000, 1.4), (16, 5100, 3.2), (32, 5050, 6.5))


def test_maximum_iops_under_a_limit():
    found = iops_under_limit(CURVE, 1 * MS)
    assert (found.state, found.load, found.iops, found.over) == ("found", 4, 3500, 8)
    assert 3500 < found.estimate < 5000
    assert found.latency == pytest.approx(0.8 * MS)


def test_latency_equal_to_the_limit_is_accepted():
    assert iops_under_limit(CURVE, 1.4 * MS).load == 8


def test_results_beyond_the_measured_loads_are_states():
    high = iops_under_limit(CURVE, 100 * MS)
    assert (high.state, high.iops, high.load, high.over, high.estimate) == ("at_least", 5100, 16, None, None)
    low = iops_under_limit(CURVE, 0.1 * MS)
    assert (low.state, low.iops, low.load, low.over) == ("not_reachable", None, None, 1)


def test_latency_decreasing_with_load_is_smoothed():
    noisy = ladder((1, 1000, 0.5), (2, 1900, 1.1), (4, 3500, 0.85), (8, 5000, 2))
    # Together the two are at sqrt(1.1 x 0.85) = 0.967 ms.
    found = iops_under_limit(noisy, 1 * MS)
    assert (found.load, found.latency) == (4, pytest.approx(math.sqrt(1.1 * 0.85) * MS))


def test_repeats_of_a_load_use_median_and_weight():
    repeated = ladder((1, 1000, 0.5), (2, 1900, 0.9), (2, 2100, 1.0), (2, 2000, 5.0), (4, 3000, 3))
    found = iops_under_limit(repeated, 1 * MS)
    assert (found.load, found.iops, found.latency) == (2, 2000, pytest.approx(MS))


def test_load_with_more_repeats_has_more_weight_in_smoothing():
    thrice = ladder((1, 1000, 0.5), (2, 2000, 1.2), (4, 3000, 0.9), (4, 3000, 0.9), (4, 3000, 0.9))
    # Three of 0.9 and one of 1.2 are 0.967 together; one of each would be 1.04.
    assert iops_under_limit(thrice, 1 * MS).load == 4


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 64), st.floats(1, 1e6), st.floats(0.01, 100)), min_size=1, max_size=12), st.floats(0.01, 100))
def test_result_was_measured_and_is_monotonic_in_the_limit(points, limit):
    curve = ladder(*points)
    found, higher = iops_under_limit(curve, limit * MS), iops_under_limit(curve, 2 * limit * MS)
    assert (found.iops is None) == (found.state == "not_reachable")
    if found.iops is not None:
        assert found.latency <= limit * MS * (1 + 1e-9)
        assert found.load in {point.load for point in curve}
        assert higher.iops >= found.iops


def test_saturation_point_is_the_lowest_load_at_maximum_iops():
    found = saturation(CURVE)
    assert (found.state, found.at, found.most, found.falls_to) == ("found", 8, 5100, None)


def test_rising_curve_has_no_saturation_point():
    assert saturation(ladder((1, 1000, 1), (2, 2000, 1), (4, 4000, 1))).state == "at_least"
    assert saturation(ladder((1, 1000, 1), (2, 1001, 1))).state == "too_few"


def test_decrease_beyond_the_peak_is_reported():
    found = saturation(ladder((1, 1000, 1), (2, 2000, 1), (4, 3000, 1), (8, 3010, 1), (16, 2100, 1)))
    assert (found.at, found.falls_to) == (4, pytest.approx(2100 / 3010))


def test_noise_before_the_peak_is_smoothed():
    found = saturation(ladder((1, 1000, 1), (2, 2960, 1), (4, 2500, 1), (8, 3000, 1), (16, 2990, 1)))
    # 2960 and 2500 are 2730 together, which is 9 % less than 3000.
    assert found.at == 8


def test_best_block_size_is_the_smallest_at_maximum_bandwidth():
    kib = 1024
    # An array that collects garbage at 640 MB/s of 4 KiB blocks and at 1200 MB/s of all larger ones.
    written = [(4 * kib, 640e6 / (4 * kib)), (8 * kib, 1200e6 / (8 * kib)), (16 * kib, 1210e6 / (16 * kib)), (64 * kib, 1205e6 / (64 * kib))]
    found = best_block_size(written)
    assert (found.state, found.at, found.reached) == ("found", 8 * kib, pytest.approx(1200e6))


def test_invalid_options_are_rejected():
    with pytest.raises(BadInput, match="no points"):
        saturation([])
    with pytest.raises(BadInput, match="latency over load: number 1 is 0"):
        iops_under_limit(ladder((1, 100, 0)), MS)
    with pytest.raises(BadInput, match="latency limit"):
        iops_under_limit(CURVE, 0)
