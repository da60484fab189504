# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cells of searches and rounds: which names belong, and how a plan keeps them."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Expected, Pattern

SEARCH = Pattern("a.scratch", (1, 2), "rate_iops", 100, 50_000)
ROUNDS = Pattern("a.scratch", (1,), "", 1, 25)


@pytest.mark.parametrize("name", ["a.scratch.rate_iops-100", "a.scratch.rate_iops-50000"])
def test_probes_match_their_search(name):
    assert SEARCH.matches(name)
    assert not ROUNDS.matches(name)


@pytest.mark.parametrize(
    "name", ["a.scratch.rate_iops-99", "a.scratch.rate_iops-0100", "a.scratch", "b.scratch.rate_iops-100", "a.scratch.rate_iops-1e3", "a.scratch.rate_iops-"]
)
def test_other_cells_do_not_match(name):
    assert not SEARCH.matches(name)


@pytest.mark.parametrize("pattern", [SEARCH, ROUNDS])
def test_pattern_survives_json_round_trip(pattern):
    assert Pattern.from_dict(pattern.to_dict()) == pattern


@pytest.mark.parametrize(
    "change", [{"cell": "../x"}, {"cell": 5}, {"repeats": [0]}, {"repeats": 3}, {"over": "x y"}, {"over": 1}, {"first": "1"}, {"last": True}, {"first": None}]
)
def test_invalid_patterns_are_rejected(change):
    with pytest.raises(BadInput):
        Pattern.from_dict({**SEARCH.to_dict(), **change})


@pytest.mark.parametrize("row", [None, [], {}, "x"])
def test_invalid_json_is_rejected(row):
    with pytest.raises(BadInput):
        Pattern.from_dict(row)


def test_cells_a_host_may_send():
    expected = Expected(frozenset({CellKey("v", "a", 1)}), frozenset({("v", SEARCH)}))
    sent = [
        CellKey("v", "a", 1),
        CellKey("v", "a.scratch.rate_iops-200", 2),
        CellKey("v", "a.scratch.rate_iops-200", 3),
        CellKey("w", "a.scratch.rate_iops-200", 1),
        "a",
    ]
    assert [key in expected for key in sent] == [True, True, False, False, False]
