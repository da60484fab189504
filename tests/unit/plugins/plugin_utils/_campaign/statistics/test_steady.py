# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.steady import steady_state


def test_first_steady_window_is_used():
    found = steady_state([200, 150, 130, 110, 105, 102, 100, 101, 99, 100, 50])
    assert (found.state, found.first, found.last, found.is_steady) == ("steady", 4, 8, True)
    assert found.average == pytest.approx(103.6)
    assert found.excursion == pytest.approx(10 / 103.6)


def test_excursion_limit_of_20_percent_is_inclusive():
    assert steady_state([100, 110, 90, 110, 90]).is_steady
    assert not steady_state([100, 110, 89.99, 110, 90]).is_steady


def test_excessive_slope_is_not_steady_despite_small_excursion():
    found = steady_state([106, 103, 100, 97, 94])
    assert (found.excursion, found.slope, found.state) == (pytest.approx(0.12), pytest.approx(0.12), "running")
    assert steady_state([105, 102.5, 100, 97.5, 95]).is_steady


def test_last_five_of_25_rounds_are_not_steady():
    found = steady_state([100, 200] * 20)
    assert (found.state, found.first, found.last) == ("not_steady", 21, 25)


def test_fewer_rounds_than_a_window_are_running():
    assert steady_state([100, 100, 100, 100]).state == "running"
    assert steady_state([]).state == "running"
    assert steady_state([100, 100], most=2).state == "not_steady"


def test_zero_rate_is_not_steady():
    assert steady_state([0] * 10).state == "running"


def test_invalid_round_is_rejected():
    with pytest.raises(BadInput, match="rounds: number 2"):
        steady_state([100, float("nan"), 100, 100, 100])


@settings(deadline=None)
@given(st.lists(st.floats(1, 1e6), min_size=5, max_size=30))
def test_steady_state_matches_the_snia_rule(rounds):
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
