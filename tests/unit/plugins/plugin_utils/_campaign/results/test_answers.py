# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What searches and rounds have found, as people read it; from what runners write, and from what no runner would."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import rounds, search
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.answers import answers_of


def answers(**meta):
    record = CellRecord("node1", CellKey("v", "r-4k", 1), "ok", "", None, meta)
    return answers_of(Campaign("c", pathlib.Path("/r/c"), ("v",), (record,), ()))


def searched(*latencies, limit=1_000_000):
    requested = search.read_search({"metric": "p99", "limit": limit, "over": "iodepth", "first": 1, "last": 4}, "r")
    probes = [search.Probe(2**number, 1000.0 * 2**number, float(latency), "ok") for number, latency in enumerate(latencies)]
    return search.conclude(requested, probes)


@pytest.mark.parametrize(
    ("latencies", "text"),
    [
        ((400_000, 800_000, 1_600_000), "p99 <= 1 ms up to iodepth 2: 2,000 IOPS, 800 µs; 4 has 1.6 ms"),
        ((400_000, 800_000, 900_000), "p99 <= 1 ms at least up to iodepth 4, the last one tried: 4,000 IOPS, 900 µs"),
        ((1_958_000,), "p99 <= 1 ms is not reachable: iodepth 1 has 1.96 ms"),
    ],
)
def test_every_search_answer_is_a_sentence(latencies, text):
    lines, points = answers(search=searched(*latencies))
    assert lines == [f"node1 v r-4k/1: {text}"]
    assert points == {("node1", "v", "r-4k")}


@pytest.mark.parametrize(("values", "state"), [([100.0, 500.0, 510.0], "steady"), ([100.0, 500.0, 900.0], "not steady")])
def test_rounds_report_whether_they_became_steady(values, state):
    requested = rounds.read_rounds({"most": 3, "window": 2, "track": "write"}, "r")
    [line], _points = answers(rounds=rounds.conclude(values, requested))
    assert line.startswith(f"node1 v r-4k/1: iops of write {state} after 3 rounds: average of the last ")
    assert "range " in line and "slope " in line


@pytest.mark.parametrize(("what", "average", "text"), [
    ("iops", 505.0, "505 IOPS"), ("latency", 2_000_000.0, "2 ms"), ("bandwidth", 512e6, "512 MB/s"),
])  # fmt: skip
def test_average_of_rounds_has_its_unit(what, average, text):
    [line], _points = answers(rounds={"values": [average] * 5, "steady": True, "what": what, "track": "write", "average": average})
    assert f"average of the last window {text}, range " in line


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"search": "x"},
        {"search": {"answer": "found", "limit": "x"}},
        {"search": {"answer": ["found"], "limit": 5}},
        {"rounds": {"values": "x", "steady": True}},
        {"rounds": {"values": [], "steady": "yes"}},
    ],
)
def test_invalid_metadata_gives_no_answer(meta):
    assert answers(**meta) == ([], set())


def test_invalid_values_are_question_marks_without_control_characters():
    found = {"answer": "found", "limit": 1e6, "over": "\x1b[31m", "metric": "p99", "good": {"value": "x", "iops": [], "latency_ns": None}, "bad": 7}
    [line], _points = answers(search=found)
    assert "\x1b" not in line and "- IOPS" in line
    [line], _points = answers(rounds={"values": [1], "steady": True, "what": "iops", "track": "read", "average": None, "excursion": float("nan"), "slope": "x"})
    assert line.endswith("average of the last window - IOPS, range -, slope -")
