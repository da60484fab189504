# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import statistics

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import repeats


def test_noise_gate():
    assert repeats.noise_gate([100, 101, 99, 100]).state == "quiet"
    few = repeats.noise_gate([100, 101])
    assert (few.state, few.more) == ("repeat", 2)
    loud = repeats.noise_gate([100, 130, 80, 100])
    assert (loud.state, loud.more, loud.gate) == ("repeat", 1, 0.05)
    assert loud.noise == pytest.approx(statistics.stdev([100, 130, 80, 100]) / 102.5)
    assert repeats.noise_gate([100, 130, 80] * 3).state == "noisy"
    assert repeats.noise_gate([100, 130, 80, 100], extra=0).state == "noisy"
    assert repeats.noise_gate([100], planned=1, extra=0).state == "too_few"
    assert repeats.noise_gate([]).more == 4


def test_noise_of_a_fleet_is_the_median_of_its_hosts():
    assert repeats.pooled_noise([[100, 100], [100, 200], [7], [100, 101]]) == pytest.approx(repeats.coefficient_of_variation([100, 101]))
    assert repeats.pooled_noise([[1], []]) is None
    assert repeats.coefficient_of_variation([0, 0]) is None
