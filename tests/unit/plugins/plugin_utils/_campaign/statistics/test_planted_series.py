# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Series of a minute to three days with a known kind in them: 80 of them, and 1,000 with CACHEFLEET_LONG in the environment."""

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import classify
from ansible_collections.cachefleet.storage.tests.unit.support.series import planted

COUNT = 1000 if os.environ.get("CACHEFLEET_LONG") else 80

#: Standard errors from which a change, or 5 % of a level, must be found: a change is one from 6.7 of them on (a penalty of 6 ln 1800),
#: and the noise of a short series that remembers itself is known to a factor of two only.
ALLOWS = 15


@pytest.fixture(scope="module")
def found():
    series = [planted(number) for number in range(COUNT)]
    return [(one, classify(one.values)) for one in series]


def near(value, true):
    return abs(value / true - 1) <= 0.05


def share(cases):
    assert len(cases) >= COUNT // 50
    return sum(map(bool, cases)) / len(cases)


def of_kind(found, *kinds):
    return [(one, finding) for one, finding in found if one.kind in kinds and (one.kind == "steady" or one.certainty >= ALLOWS)]


def test_false_detections_in_steady_series_are_at_most_one_percent(found):
    assert share([finding.kind != "steady" for _one, finding in of_kind(found, "steady")]) <= 0.01


def test_detectable_changes_are_found_in_90_percent(found):
    assert share([finding.kind == one.kind for one, finding in of_kind(found, "step")]) >= 0.9
    assert share([finding.kind == one.kind for one, finding in of_kind(found, "cliff")]) >= 0.9


def test_change_levels_are_within_5_percent_and_position_within_1_percent(found):
    changes = [(one, finding) for one, finding in of_kind(found, "step", "cliff") if finding.change]
    assert share([near(finding.change.before, one.high) and near(finding.change.after, one.low) for one, finding in changes]) >= 0.99
    assert share([abs(finding.change.at - one.place) <= max(0.01 * one.values.size, 3) for one, finding in changes]) >= 0.95


def test_oscillations_are_found_in_90_percent_with_period_and_levels(found):
    swings = of_kind(found, "oscillating")
    assert share([finding.kind == "oscillating" and near(finding.swing.period, one.place) for one, finding in swings]) >= 0.9
    named = [(one, finding) for one, finding in swings if finding.swing]
    assert share([near(finding.swing.period, one.place) for one, finding in named]) >= 0.99
    assert share([near(finding.swing.high, one.high) and near(finding.swing.low, one.low) for one, finding in named]) >= 0.95


def test_decays_are_found_in_90_percent_with_final_level(found):
    decays = of_kind(found, "decaying")
    assert share([finding.kind == "decaying" for _one, finding in decays]) >= 0.9
    assert share([near(finding.approach.level, one.low) for one, finding in decays if finding.approach]) >= 0.95


def test_every_stall_is_found_without_false_detections(found):
    for one, finding in found:
        if one.kind == "steady":
            assert {stall.at: stall.length for stall in finding.stalls} == one.stalls
