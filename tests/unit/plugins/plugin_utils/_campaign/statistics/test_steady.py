# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.steady import steady_state


def test_the_first_steady_window_counts():
    found = steady_state([200, 150, 130, 110, 105, 102, 100, 101, 99, 100, 50])
    assert (found.state, found.first, found.last, found.is_steady) == ("steady", 4, 8, True)
    assert found.average == pytest.approx(103.6)
    assert found.excursion == pytest.approx(10 / 103.6)


def test_exactly_a_fifth_of_the_average_is_steady_and_a_little_more_is_not():
    assert steady_state([100, 110, 90, 110, 90]).is_steady
    assert not steady_state([100, 110, 89.99, 110, 90]).is_steady


def test_a_slope_of_more_than_a_tenth_is_not_steady_though_the_excursion_is_small():
    found = steady_state([106, 103, 100, 97, 94])
    assert (found.excursion, found.slope, found.state) == (pytest.approx(0.12), pytest.approx(0.12), "running")
    assert steady_state([105, 102.5, 100, 97.5, 95]).is_steady


def test_after_25_rounds_the_last_five_are_not_steady():
    found = steady_state([100, 200] * 20)
    assert (found.state, found.first, found.last) == ("not_steady", 21, 25)


def test_fewer_rounds_than_a_window_are_still_running():
    assert steady_state([100, 100, 100, 100]).state == "running"
    assert steady_state([]).state == "running"
    assert steady_state([100, 100], most=2).state == "not_steady"


def test_doing_nothing_at_all_is_not_steady():
    assert steady_state([0] * 10).state == "running"


def test_a_round_that_was_not_measured_is_refused():
    with pytest.raises(BadInput, match="rounds: number 2"):
        steady_state([100, float("nan"), 100, 100, 100])


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=30))
def test_the_rule_word_for_word(rounds):
    steady = []
    for end in range(5, min(len(rounds), 25) + 1):
        window = np.array(rounds[end - 5 : end])
        fit = np.polyval(np.polyfit(np.arange(5), window, 1), np.arange(5))
        measures = np.ptp(window) / window.mean() - 0.2, np.ptp(fit) / window.mean() - 0.1
        # Where rounding decides, nothing is claimed.
        if any(abs(measure) < 1e-6 for measure in measures):
            return
        if max(measures) < 0:
            steady.append(end)
    found = steady_state(rounds)
    assert (found.is_steady, found.last) == (bool(steady), steady[0] if steady else min(len(rounds), 25))
