# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host measures, or one sentence that names what is wrong."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.pauses import DRAIN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import host_plan

SUITES = {"one": {"cells": [{"name": "a", "job": {"rw": "write", "bs": "1m", "runtime": 10}}, {"name": "b", "job": {"rw": "read", "runtime": 10}}]}}
DISK = {"device": "/dev/x", "capacity": 10**12, "write_rate": 100_000_000, "endurance": 1}


def test_returned_plan():
    result = host_plan([DISK], "one", SUITES, runtime=5, repeats=2, gap=1.0, host="node1")
    steps, text = result.pop("steps"), result.pop("text")
    assert result == {
        "cells": [{"name": "a", "repeat": 1}, {"name": "b", "repeat": 1}, {"name": "b", "repeat": 2}, {"name": "a", "repeat": 2}],
        "patterns": [],
        "seconds": 23,
        "limit": 300 + 4 * (31 + DRAIN) + 30,
        "timeout": 21600,
        "barrier_timeout": 900 + DRAIN,
        "segments": 1,
        "bytes_written": 10**9,
        "wear": [{"target": "/dev/x", "bytes_written": 10**9, "endurance": 10**12, "percent": 0.1, "unknown": []}],
        "purge": [],
    }
    assert [(step["offset"], step["cells"][0]["name"]) for step in steps] == [(0.0, "a"), (6.0, "b"), (12.0, "b"), (18.0, "a")]
    assert text.startswith("node1: suite one\nCELL")


def test_part_of_a_suite():
    assert host_plan([DISK], "one", SUITES, only=["b*"])["cells"] == [{"name": "b", "repeat": 1}]


@pytest.mark.parametrize("together", ["together", "one_after_another"])
def test_part_of_a_suite_on_some_of_the_targets(together):
    suites = {"one": {**SUITES["one"], "targets": together}}
    targets = [{"device": f"/dev/{name}", "name": name, "size": "1g"} for name in ("x1", "x2", "y")]
    assert {one["name"] for one in host_plan(targets, "one", suites, only=["a@y", "b@x*"])["cells"]} == {"a.y", "b.x1", "b.x2"}
    assert [one["name"] for one in host_plan([DISK], "one", SUITES, only=["b@"])["cells"]] == ["b"]
    assert host_plan(targets, "one", suites, only=["a@z"])["cells"] == []


def test_excessive_wear_is_refused_and_reported_by_dry_run():
    with pytest.raises(StorageError, match="fio_benchmark_wear_budget"):
        host_plan([DISK], "one", SUITES, wear_budget=0.05)
    text = host_plan([DISK], "one", SUITES, wear_budget=0.05, dry_run=True)["text"]
    assert text.splitlines()[1].startswith("CELL")
    assert "A real run would be refused. /dev/x: this campaign would write" in text
    assert all(len(line) <= 120 for line in text.splitlines())


@pytest.mark.parametrize(
    ("suite", "options", "sentence"),
    [("two", {}, "no suite named 'two'"), ("one", {"gap": float("nan")}, "from 0 on")],
)
def test_errors_are_one_sentence(suite, options, sentence):
    with pytest.raises(StorageError, match=sentence):
        host_plan([DISK], suite, SUITES, **options)


RICH = {
    "options": {"direct": 1},
    "targets": "together",
    "size": "1g",
    "repeats": 2,
    "pause": {"garbage_collection": "measured", "most": "1h"},
    "cells": [
        {"name": "a", "fill": True, "job": {"rw": "write", "loops": 2, "numjobs": 2}},
        {"name": "b", "share": 50, "job": {"global": {"rate": "1m"}, "jobs": [{"name": "x", "rw": "randrw", "rwmixread": 70, "io_size": "1g", "bs": "8k"}]}},
        {"name": "c", "job": {"rw": "read", "runtime": 5, "time_based": 1}, "search": {"limit": "1ms", "first": 1, "last": 8, "over": "numjobs"}},
        {"name": "d", "job": {"rw": "read", "runtime": 5, "time_based": 1}, "rounds": {"most": 7, "track": "read"}, "measures_garbage_collection": True},
    ],
    "matrix": {"name": "{bs}-{w}", "axes": {"bs": ["4k", "8k"], "w": {"r": {"rw": "read"}}}, "exclude": [{"bs": "8k"}], "runtime": 5},
}
TARGETS = [{"device": "/dev/a", "size": "10g", "write_rate": "1g", "endurance": "1TB", "name": "x"}, {"device": "/dev/b", "allow_data_loss": True}]
STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 10**12),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["1%", "x%", "0", "1,", ",", "1-", "%", "{", "1e9", "-1"]),
).flatmap(lambda value: st.sampled_from([value, [value], {"name": value}, {str(value): value}, {}, []]))


def places(value, path=()):
    yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def test_unmodified_fuzzing_input_is_valid():
    assert host_plan(TARGETS, "rich", {"rich": RICH})["patterns"]


@settings(max_examples=200, deadline=None)
@given(place=st.sampled_from(sorted(filter(None, places([RICH, TARGETS])), key=str)), new=STRANGE)
def test_modified_input_fails_with_one_sentence(place, new):
    try:
        suite, targets = changed([RICH, TARGETS], place, new)
        # The argument specification of the action accepts nothing else.
        assume(isinstance(targets, list) and all(isinstance(one, dict) for one in targets))
        result = host_plan(targets, "rich", {"rich": suite}, wear_budget=1, dry_run=True)
    except StorageError as error:
        assert "Traceback" not in str(error)
    else:
        json.dumps(result, allow_nan=False)
        assert all(len(line) <= 120 for line in result["text"].splitlines())


def test_hosts_of_a_group_run_together_in_every_suite():
    suites = {"one": {**SUITES["one"], "hosts": "apart"}}
    assert [host_plan([DISK], "one", suites, runtime=5, group=group)["segments"] > 0 for group in ("", None, "array1")] == [False, False, True]
