# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pauses, searches and rounds as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import Search, read_pause, read_rounds, read_search

JOB = {"rw": "randwrite", "runtime": 30, "time_based": 1}


def job(**options):
    return read_job({**JOB, **options}, "a")


@pytest.mark.parametrize(
    ("reported", "step"),
    [
        (30, {"seconds": 30.0}),
        ("2h", {"seconds": 7200.0}),
        ({"seconds": "90s"}, {"seconds": 90.0}),
        ({"until": "clean"}, {"until": "clean", "most": 3600}),
        ({"until": "clean", "most": "10m"}, {"until": "clean", "most": 600.0}),
        ({"garbage_collection": "measured", "most": 60}, {"garbage_collection": "measured", "most": 60.0}),
        ({"garbage_collection": "640m"}, {"garbage_collection": 640 * 1024**2, "most": 3600}),
    ],
)
def test_pause_step_for_the_runner(reported, step):
    assert read_pause(reported, "here").as_step() == step


@pytest.mark.parametrize("reported", [None, False, 0, {"seconds": 0}])
def test_no_pause(reported):
    assert read_pause(reported, "here") is None


@pytest.mark.parametrize(
    ("reported", "sentence"),
    [
        ("soon", "'seconds' must be a time"),
        (True, "'seconds' must be a time"),
        ({}, "exactly one of"),
        ({"seconds": 1, "until": "clean"}, "exactly one of"),
        ({"seconds": 1, "most": 5}, "'most' limits a pause of unknown length"),
        ({"until": "cold"}, "'until' can only be clean"),
        ({"until": "clean", "most": "x"}, "'most' must be a time"),
        ({"garbage_collection": "fast"}, "must be measured or a rate"),
        ({"garbage_collection": 0}, "must be measured or a rate"),
        ({"garbage_collection": True}, "must be measured or a rate"),
        ({"for": 3}, "'for' is not supported"),
    ],
)
def test_invalid_pause_is_rejected_in_one_sentence(reported, sentence):
    with pytest.raises(BadInput, match=r"^here, pause") as caught:
        read_pause(reported, "here")
    assert sentence in caught.value.message


def test_search_step_for_the_runner():
    assert read_search({"limit": "1ms"}, job(), "here").as_step() == {
        "metric": "p99",
        "limit": 1_000_000,
        "direction": "write",
        "over": "iodepth",
        "first": 1,
        "last": 256,
        "factor": 2.0,
        "bracket": 0.1,
    }


def test_mixed_job_uses_both_directions_unless_one_is_given():
    assert read_search({"limit": "1ms"}, job(rw="randrw"), "here").direction is None
    assert read_search({"limit": "1ms", "direction": "read"}, job(rw="randrw"), "here").direction == "read"


@pytest.mark.parametrize(
    ("reported", "options", "sentence"),
    [
        ({}, {}, "'limit' is missing"),
        ({"limit": 1}, {}, "a latency with its unit"),
        ({"limit": "1"}, {}, "a latency with its unit"),
        ({"limit": "fasts"}, {}, "'limit' must be a time"),
        ({"limit": "1ms", "metric": "p42"}, {}, "'metric' must be one of"),
        ({"limit": "1ms", "over": "bs"}, {}, "'over' must be"),
        ({"limit": "1ms"}, {"iodepth": 4}, "the job sets iodepth"),
        ({"limit": "1ms", "first": 8, "last": 8}, {}, "'first' and 'last'"),
        ({"limit": "1ms", "first": 0}, {}, "'first' and 'last'"),
        ({"limit": "1ms", "factor": 1}, {}, "'factor' must be a number from 1.1 to 16"),
        ({"limit": "1ms", "bracket": "x"}, {}, "'bracket' must be a number"),
        ({"limit": "1ms", "direction": "read"}, {}, "'direction' must be one"),
        ({"limit": "1ms"}, {"time_based": 0}, "must set 'runtime' and 'time_based'"),
        ({"limit": "1ms", "depth": 3}, {}, "'depth' is not supported"),
    ],
)
def test_invalid_search_is_rejected_in_one_sentence(reported, options, sentence):
    with pytest.raises(BadInput, match=r"^here, search") as caught:
        read_search(reported, job(**options), "here")
    assert sentence in caught.value.message


def test_search_with_two_sections_is_rejected():
    with pytest.raises(BadInput, match="one section"):
        read_search({"limit": "1ms"}, read_job({"global": JOB, "jobs": [{"name": "x"}, {"name": "y"}]}, "a"), "here")


def probes_of(search, is_good):
    """The search as the runner does it, counted."""
    good, bad, count = None, None, 0
    for rung in search.ladder:
        count += 1
        if not is_good(rung):
            bad = rung
            break
        good = rung
    while good is not None and bad is not None and bad - good > 1 and (bad - good) / good > search.bracket:
        middle = (good + bad) // 2
        good, bad, count = (middle, bad, count + 1) if is_good(middle) else (good, middle, count + 1)
    return count


@given(first=st.integers(1, 64), more=st.integers(1, 2000), factor=st.floats(1.1, 8), bracket=st.floats(0.01, 1), edge=st.integers(0, 2100))
def test_probe_count_never_exceeds_the_maximum(first, more, factor, bracket, edge):
    search = Search("p99", 1000, "write", "iodepth", first, first + more, factor, bracket)
    assert search.ladder[0] == first
    assert search.ladder[-1] == first + more
    assert probes_of(search, lambda value: value <= edge) <= search.most_probes


def test_default_rounds_follow_snia():
    assert read_rounds({}, job(), "here").as_step() == {"most": 25, "window": 5, "range": 0.20, "slope": 0.10, "track": "write", "what": "iops"}
    assert read_rounds({}, job(rw="randread"), "here").track == "read"


def test_cells_that_follow_need_not_have_the_direction_that_decides():
    assert read_rounds({"decided_by": "w"}, job(rw="randread"), "here", "r").track == "write"
    assert read_rounds({"decided_by": "w"}, job(), "here", "w").as_step("w.disk")["decided_by"] == "w.disk"
    with pytest.raises(BadInput, match="a direction in which the job does I/O"):
        read_rounds({"decided_by": "r", "track": "write"}, job(rw="randread"), "here", "r")


@pytest.mark.parametrize(
    ("reported", "options", "sentence"),
    [
        ({"track": "read"}, {}, "'track' must be read or write"),
        ({"what": "mood"}, {}, "'what' must be"),
        ({"window": 1}, {}, "'window' and 'most'"),
        ({"window": 6, "most": 5}, {}, "'window' and 'most'"),
        ({"most": 100}, {}, "'window' and 'most'"),
        ({"range": 2}, {}, "'range' must be a number from"),
        ({"slope": 0}, {}, "'slope' must be a number from"),
        ({"rounds": 3}, {}, "'rounds' is not supported"),
        ({"decided_by": 3}, {}, "'decided_by' must be the name of the cell"),
        ({}, {"runtime": 0, "number_ios": 5}, "must set 'runtime'"),
        ([], {}, "must be a dictionary"),
    ],
)
def test_invalid_rounds_are_rejected_in_one_sentence(reported, options, sentence):
    with pytest.raises(BadInput, match=r"^here, rounds") as caught:
        read_rounds(reported, job(**options), "here")
    assert sentence in caught.value.message
