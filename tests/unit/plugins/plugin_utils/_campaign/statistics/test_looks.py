# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The errors of the looks at a comparison."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import looks
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import compare


@pytest.mark.parametrize("comparisons", [1, 2, 4, 7, 30])
def test_all_looks_together_spend_no_more_than_the_whole_error(comparisons):
    planned = looks.planned_looks(4, 12, comparisons)
    assert [one.repeats for one in planned] == list(range(4, 13))
    assert 0 < sum(one.error for one in planned) <= min(0.025, 0.05 / comparisons)


def test_a_look_spends_the_probability_of_complete_separation_at_least():
    # Of the deals of five and five repeats, one has all of one side above the other.
    [four, five, *_others] = looks.planned_looks(4, 12, 4)
    assert four.error == 0
    assert five.error == pytest.approx(1 / math.comb(10, 5))


def test_a_separated_pair_is_decided_at_the_first_look_that_can():
    slow, fast = [100.0, 101, 102, 103, 104], [150.0, 151, 152, 153, 154]
    levels = looks.levels_of(looks.planned_looks(4, 12, 4))
    assert compare(slow[:4], fast[:4], confidence=levels[4]).verdict == "not_enough_repeats"
    assert compare(slow, fast, confidence=levels[5]).verdict == "better"
    # One value of one side among those of the other is two deals too many for this look.
    assert compare(slow, [101.5, *fast[1:]], confidence=levels[5]).verdict == "undecided"


@pytest.mark.parametrize(("comparisons", "last", "first"), [(1, 12, 5), (7, 12, 6), (30, 12, 7), (1, 4, 4), (4, 4, None), (1000, 8, None)])
def test_the_fewest_repeats_that_decide(comparisons, last, first):
    assert looks.first_decision(looks.planned_looks(4, last, comparisons)) == first
