# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import search
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.search import Probe, Search

WANTED = {"metric": "p99", "limit": 1000, "over": "iodepth", "first": 1, "last": 256}


def run(requested, latency, most=search.MOST_PROBES):
    probes = []
    while True:
        value = search.next_value(requested, probes)
        if value is None:
            return probes
        assert value not in [probe.value for probe in probes], "nothing is measured twice"
        probes.append(Probe(value, float(value), latency(value)))
        assert len(probes) <= most


def test_doubling_is_followed_by_bisection():
    requested = search.read_search(WANTED, "c")
    probes = run(requested, lambda depth: 100.0 * depth)
    assert [probe.value for probe in probes] == [1, 2, 4, 8, 16, 12, 10, 11]
    found = search.conclude(requested, probes)
    assert (found["answer"], found["value"], found["good"]["latency_ns"], found["bad"]["value"]) == ("found", 10, 1000.0, 11)


def test_bisection_ends_within_tolerance():
    probes = run(search.read_search({**WANTED, "last": 10**6, "first": 1000, "limit": 12_345_678, "bracket": 0.10}, "c"), lambda depth: 1000.0 * depth)
    good, bad = (search.conclude(Search("p99", 12_345_678, "iodepth", 1000, 10**6), probes)[side]["value"] for side in ("good", "bad"))
    assert good <= 12_345 < bad and (bad - good) / good <= 0.10


def test_last_value_is_always_tried():
    requested = search.read_search({**WANTED, "last": 100}, "c")
    probes = run(requested, lambda depth: 1.0)
    assert [probe.value for probe in probes] == [1, 2, 4, 8, 16, 32, 64, 100]
    assert search.conclude(requested, probes)["answer"] == "at_least"


def test_limit_exceeded_by_the_first_value_is_not_reachable():
    requested = search.read_search({**WANTED, "first": 4}, "c")
    probes = run(requested, lambda depth: 5000.0)
    found = search.conclude(requested, probes)
    assert (found["answer"], found["value"], found["iops"], found["good"], found["bad"]["value"]) == ("not_reachable", None, None, None, 4)


@given(st.integers(1, 1000), st.integers(0, 3000), st.floats(1.1, 8.0))
def test_every_search_finds_the_boundary(last, edge, factor):
    requested = Search("p99", 1000, "iodepth", 1, last, factor=factor, bracket=0.10)
    found = search.conclude(requested, run(requested, lambda depth: 1000.0 if depth <= edge else 1001.0))
    if edge < 1:
        assert found["answer"] == "not_reachable"
    elif edge >= last:
        assert (found["answer"], found["value"]) == ("at_least", last)
    else:
        assert found["answer"] == "found" and found["value"] <= edge < found["bad"]["value"]
        assert found["bad"]["value"] - found["value"] <= max(1, 0.10 * found["value"])


def test_probe_without_latency_ends_the_search():
    requested = search.read_search(WANTED, "c")
    probes = [Probe(1, 1.0, 10.0), Probe(2, None, None, "interrupted")]
    assert search.next_value(requested, probes) is None and search.has_failed(probes[-1])


def test_best_value_after_saturation_is_not_the_deepest():
    requested = search.read_search(WANTED, "c")
    found = search.conclude(requested, [Probe(1, 500.0, 10.0), Probe(2, 900.0, 20.0), Probe(4, 850.0, 900.0), Probe(8, 800.0, 2000.0)])
    assert (found["value"], found["iops"], found["best"]["value"]) == (4, 850.0, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metric": "p98"}, "metric of a search must be one of mean, p50"),
        ({"over": "bs"}, "over of a search"),
        ({"direction": "trim"}, "direction of a search"),
        ({"limit": 0}, "limit of a search must be a whole number above 0"),
        ({"last": "many"}, "last of a search"),
        ({"first": 300}, "first of a search must not exceed last"),
        ({"factor": 1}, "factor must be at least 1.1"),
        ({"factor": "x"}, "factor of a search must be a number"),
        ({"bracket": 0}, "bracket must be between 0 and 1"),
        ({"depth": 4}, "'depth' is not supported in search"),
    ],
)
def test_invalid_searches_are_rejected(change, words):
    with pytest.raises(BadInput, match=words):
        search.read_search({**WANTED, **change}, "c")
    with pytest.raises(BadInput, match="c: search must be a dictionary"):
        search.read_search(None, "c")


def direction(p99, mean=5.0, iops=10.0, kind="clat"):
    return {"iops": iops, kind: {"mean_ns": mean, "percentiles_ns": {"99": p99}}}


def test_latency_used_by_the_search():
    both = {"state": "ok", "summary": {"read": direction(10), "write": direction(30, iops=5.0)}}
    assert search.probe_of(search.read_search(WANTED, "c"), 4, both) == Probe(4, 15.0, 30, "ok"), "the worse of the two"
    assert search.probe_of(search.read_search({**WANTED, "direction": "read"}, "c"), 4, both) == Probe(4, 10.0, 10, "ok")
    assert search.probe_of(search.read_search({**WANTED, "metric": "mean"}, "c"), 4, both).latency_ns == 5.0
    total = {"read": {**direction(10), "lat": {"mean_ns": 7.0, "percentiles_ns": {"99": 12}}}}
    assert search.probe_of(search.read_search(WANTED, "c"), 4, {"state": "ok", "summary": total}).latency_ns == 12, "what the application sees, if it is known"
    assert search.probe_of(search.read_search({**WANTED, "metric": "p99.9"}, "c"), 4, both).latency_ns is None
    assert search.probe_of(search.read_search(WANTED, "c"), 4, {"state": "failed", "summary": None}) == Probe(4, None, None, "failed")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**400])
@pytest.mark.parametrize("name", ["factor", "bracket"])
def test_numbers_that_are_not_finite_are_rejected(name, value):
    with pytest.raises(BadInput, match=r"must be at least|must be a number"):
        search.read_search({"limit": 10, "last": 64, name: value}, "c")
