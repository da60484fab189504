# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import rounds
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.rounds import Rounds


@pytest.mark.parametrize(
    ("window", "steady"),
    [
        ([100, 100, 100, 100, 100], True),
        ([90, 110, 100, 90, 110], True),
        ([110, 90, 100, 110, 90], True),
        ([89, 111, 100, 90, 110], False),
        ([96, 98, 100, 102, 104], True),
        ([94, 97, 100, 103, 106], False),
        ([106, 103, 100, 97, 94], False),
        ([95, 97.5, 100, 102.5, 105], True),
        ([0, 0, 0, 0, 0], False),
    ],
    ids=[
        "flat",
        "range at its limit",
        "the same downwards",
        "range beyond it",
        "rising within it",
        "rising",
        "falling",
        "slope at its limit",
        "nothing at all",
    ],
)
def test_both_steady_state_conditions_apply(window, steady):
    assert rounds.judge(window, Rounds()).steady is steady


def test_figures_of_a_window():
    found = rounds.judge([94, 97, 100, 103, 106], Rounds())
    assert (found.average, round(found.excursion, 6), round(found.slope, 6)) == (100, 0.12, 0.12), "3 a round over 4 intervals is 12 of 100"


def test_rounds_before_the_window_are_ignored():
    values = [1000, 500, 100, 101, 99, 100, 100]
    assert not rounds.is_over(values[:4], Rounds()) and not rounds.is_over(values[:6], Rounds()) and rounds.is_over(values, Rounds())
    found = rounds.conclude(values, Rounds())
    assert (found["steady"], found["first_of_window"], found["window"]) == (True, 3, [100, 101, 99, 100, 100])


def test_rounds_end_at_the_limit_without_steady_state():
    values = [100 + 100 * (number % 2) for number in range(25)]
    assert not rounds.is_over(values[:24], Rounds()) and rounds.is_over(values, Rounds())
    assert rounds.conclude(values, Rounds())["steady"] is False
    assert rounds.conclude(values[:3], Rounds())["average"] is None and rounds.conclude([], Rounds())["first_of_window"] is None


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"window": 1}, "window of rounds must be at least 2"),
        ({"window": 6, "most": 5}, "must not exceed most"),
        ({"most": "many"}, "whole numbers"),
        ({"slope": 0}, "above 0"),
        ({"track": "trim"}, "track of rounds must be one of read, write"),
        ({"what": "depth"}, "iops, bandwidth, latency"),
        ({"often": 3}, "'often' is not supported"),
        ([], "rounds must be a dictionary"),
    ],
)
def test_invalid_rounds_are_rejected(row, words):
    with pytest.raises(BadInput, match=words):
        rounds.read_rounds(row, "c")


def test_tracked_values():
    meta = {"summary": {"write": {"iops": 5.0, "bw_bytes": 4096, "lat": {"mean_ns": None}, "clat": {"mean_ns": 9.0}}, "read": None}}
    assert [rounds.value_of(meta, Rounds(what=what)) for what in rounds.FIGURES] == [5.0, 4096, 9.0]
    assert rounds.value_of(meta, Rounds(track="read")) is None and rounds.value_of({"summary": None}, Rounds()) is None


# -- several cells in each round


def test_cells_that_follow_have_the_window_of_the_one_that_decides():
    wanted = Rounds(decided_by="w")
    decided = rounds.conclude([500, 100, 101, 99, 100, 100], wanted)
    followed = rounds.follow([9, 10, 20, 30, 40, 50], wanted, decided)
    assert (followed["steady"], followed["first_of_window"], followed["window"], followed["average"]) == (True, 2, [10, 20, 30, 40, 50], 30)
    assert (followed["excursion"], followed["slope"], followed["decided_by"]) == (None, None, "w")
    assert rounds.follow([9, 10, None, 30, 40, 50], wanted, decided)["average"] is None, "a missing round is not 0"
    assert rounds.follow([9, None, 20], wanted, rounds.conclude([1, 2, 3], wanted))["average"] is None, "no window"


def test_a_single_cell_is_described_as_before_there_were_several():
    assert "decided_by" not in Rounds().to_dict() and Rounds(decided_by="w").to_dict()["decided_by"] == "w"


@pytest.mark.parametrize(("what", "total"), [("iops", 400.0), ("bandwidth", 4000.0), ("latency", 175.0)])
def test_totals_of_reads_and_writes(what, total):
    read = {"iops": 100.0, "bw_bytes": 1000.0, "lat": {"n": 10, "mean_ns": 100.0}}
    write = {"iops": 300.0, "bw_bytes": 3000.0, "lat": {"n": 30, "mean_ns": 200.0}}
    assert rounds.total_of({"summary": {"read": read, "write": write}}, what) == total
    assert rounds.total_of({"summary": None}, what) is None
    assert rounds.total_of({"summary": {"read": {"iops": None, "bw_bytes": None, "lat": None}}}, what) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "inf", 10**400])
@pytest.mark.parametrize("name", ["most", "window", "range", "slope"])
def test_numbers_that_are_not_finite_are_rejected(name, value):
    with pytest.raises(BadInput, match=r"must be whole numbers|must be finite"):
        rounds.read_rounds({name: value}, "c")
