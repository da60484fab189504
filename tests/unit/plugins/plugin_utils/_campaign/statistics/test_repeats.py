# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import random

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import repeats, two_variants


def test_repeats_above_the_noise_gate_are_noisy():
    assert [repeats.is_noisy(noise) for noise in (None, 0.0, 0.05, 0.0501)] == [False, False, False, True]


def test_repeats_for_a_difference_grow_with_the_noise():
    assert [repeats.repeats_for(noise) for noise in (0.0, 0.02, 0.05, 0.06, 0.1, 0.16, 0.54)] == [4, 4, 6, 8, 20, 48, 529]
    assert repeats.repeats_for(0.1, difference=0.2) < repeats.repeats_for(0.1)


@pytest.mark.parametrize("noise", [0.05, 0.08])
def test_so_many_repeats_show_the_difference_in_four_of_five_campaigns(noise):
    chance = random.Random(3)
    count = repeats.repeats_for(noise)

    def side(middle):
        return [middle * chance.gauss(1, noise) for _repeat in range(count)]

    found = sum(two_variants.compare(side(1.0), side(1 + repeats.DIFFERENCE)).verdict == "better" for _trial in range(200))
    assert 140 <= found <= 190


def test_noise_of_a_fleet_is_the_median_of_its_hosts():
    assert repeats.pooled_noise([[100, 100], [100, 200], [7], [100, 101]]) == pytest.approx(repeats.coefficient_of_variation([100, 101]))
    assert repeats.pooled_noise([[1], []]) is None
    assert repeats.coefficient_of_variation([0, 0]) is None
