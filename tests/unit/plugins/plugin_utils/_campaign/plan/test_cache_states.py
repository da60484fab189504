# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a suite can say of caches: their state before a cell, and sizes that are multiples of theirs."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.pauses import DRAIN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import host_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite

JOB = {"rw": "randread", "bs": "4k", "runtime": 60, "time_based": 1, "randrepeat": 0}
FILL = {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m"}}
GIB = 1024**3


def cells_of(*cells, cache_size=None, **suite):
    return {cell.name: cell for cell in read_suite("s", {"s": {"cells": list(cells), **suite}}, (), cache_size).cells}


def test_states_of_a_suite_are_those_of_its_cells_except_fills_searches_and_rounds():
    search, rounds = {"name": "search", "job": JOB, "search": {"limit": "1ms"}}, {"name": "rounds", "job": JOB, "rounds": {}}
    found = cells_of(FILL, {"name": "a", "job": JOB}, {"name": "b", "warm": "none", "drain": 5, "job": JOB}, search, rounds, warm="until_steady", drain="1h")
    assert {name: (cell.warm, cell.drain) for name, cell in found.items()} == {
        "fill": ("none", 3600.0),
        "a": ("until_steady", 3600.0),
        "b": ("none", 5.0),
        "search": ("none", 3600.0),
        "rounds": ("none", 3600.0),
    }
    assert found["fill"].longest_drain == 0 and found["a"].longest_drain == 3600


def test_only_cells_that_may_decide_wait_for_clean_caches():
    found = cells_of({"name": "a", "job": JOB}, {"name": "b", "job": JOB}, {"name": "c", "drain": False, "job": JOB}, decides=["a", "c"])
    assert [cell.longest_drain for cell in found.values()] == [DRAIN, 0.0, 0.0]


def test_states_can_be_those_of_a_matrix():
    suite = {"matrix": {"axes": {"bs": ["4k", "8k"]}, "options": {**JOB}, "warm": "until_steady", "drain": "2m"}}
    assert [(cell.warm, cell.drain) for cell in read_suite("s", {"s": suite}).cells] == [("until_steady", 120.0)] * 2


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ({"warm": "hot"}, "cell a: warm must be one of none, until_steady, empty, not"),
        ({"warm": True}, "cell a: warm must be one of"),
        ({"warm": "until_steady", "fill": True}, "cell a: a cell with 'fill' has no 'warm'"),
        ({"warm": "empty", "rounds": {"most": 5}}, "cell a: a cell with 'rounds' has no 'warm'"),
        ({"warm": "until_steady", "search": {"limit": "1ms"}}, "cell a: a cell with 'search' has no 'warm'"),
        ({"drain": "soon"}, "cell a: 'drain' must be a time"),
        ({"drain": -1}, "cell a: 'drain' must be a time"),
        ({"drain": True}, "cell a: 'drain' must be a time"),
    ],
)
def test_invalid_states_are_rejected(cell, message):
    with pytest.raises(BadInput, match=message):
        cells_of({"name": "a", "job": JOB, **cell})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"randrepeat": 1}, "'warm' needs randrepeat: 0 and no randseed"),
        ({"randseed": 7}, "'warm' needs randrepeat: 0 and no randseed"),
        ({"random_distribution": "zipf:1.2"}, "'warm' needs a centre of the distribution, as in zipf:1.2:0.5"),
        ({"random_distribution": "pareto:0.3"}, "as in pareto:0.3:0.5"),
    ],
)
def test_jobs_whose_rounds_do_not_warm_the_next_one_are_rejected(options, message):
    cell = {"name": "a", "job": {**JOB, **options}}
    with pytest.raises(BadInput, match=message):
        cells_of({**cell, "warm": "until_steady"})
    assert cells_of({**cell, "warm": "empty"}) and cells_of(cell)


@pytest.mark.parametrize("options", [{"random_distribution": "zipf:1.2:0.5"}, {"random_distribution": "zoned:90/10:10/90"}, {"rw": "read", "randrepeat": 1}])
def test_jobs_whose_blocks_stay_where_they_are_can_be_warmed(options):
    assert cells_of({"name": "a", "warm": "until_steady", "job": {**JOB, **options}})["a"].warm == "until_steady"


def test_sizes_are_multiples_of_the_cache():
    sizes = {"half": {"size": "0.5 x cache"}, "double": {"size": "2x cache", "io_size": " 1.5 x cache "}}
    suite = {"options": {"size": "1 x cache"}, "cells": [{"name": "a", "job": JOB}], "matrix": {"axes": {"of": sizes}, "options": JOB}}
    found = {cell.name: cell.job for cell in read_suite("s", {"s": suite}, (), 10 * GIB).cells}
    assert [(name, job["size"], job.get("io_size")) for name, job in found.items()] == [
        ("a", 10 * GIB, None),
        ("half", 5 * GIB, None),
        ("double", 20 * GIB, 15 * GIB),
    ]


@pytest.mark.parametrize(
    ("cache_size", "message"),
    [
        (None, "suite s: its sizes are multiples of the cache: set fio_benchmark_cache_size"),
        (1000, "0.5 x cache is less than 1 MiB with fio_benchmark_cache_size 1000"),
    ],
)
def test_unusable_sizes_of_a_cache_are_rejected(cache_size, message):
    with pytest.raises(BadInput, match=message):
        cells_of({"name": "a", "job": {**JOB, "size": "0.5 x cache"}}, cache_size=cache_size)


def planned(cache_size, cells, **target):
    return host_plan([{"device": "/dev/x", **target}], "s", {"s": {"cells": cells}}, cache_size=cache_size)["text"]


def test_working_set_larger_than_the_capacity_is_rejected():
    cell = {"name": "a", "job": {**JOB, "size": "4 x cache", "offset": "1g"}}
    with pytest.raises(BadInput, match=r"a: its job ends at byte \d+ \(41 GiB\), but the target /dev/x has a capacity of \d+ bytes \(40 GiB\)"):
        planned("10g", [cell], capacity="40g")
    assert planned("10g", [cell], capacity="41g") and planned("10g", [cell])
    whole = [{"name": "a", "job": JOB}, {"name": "b", "job": {**JOB, "size": "100%"}}, {"name": "c", "share": 50, "job": {**JOB, "size": "80g"}}]
    assert planned("", whole, capacity="40g"), "fio takes what the device has"


def test_working_set_larger_than_another_target_of_its_sections_is_rejected():
    cell = {"name": "a", "job": {"jobs": [{**JOB, "name": "one"}, {**JOB, "name": "two", "size": "50g", "target": "b"}]}}
    targets = [{"device": "/dev/a", "name": "a", "capacity": "100g"}, {"device": "/dev/b", "name": "b", "capacity": "40g"}]
    with pytest.raises(BadInput, match="the target /dev/b has a capacity of"):
        host_plan(targets, "s", {"s": {"cells": [cell]}})


def test_dry_run_shows_warm_ups_and_what_caches_may_write_back():
    read = {"name": "read", "warm": "until_steady", "job": {**JOB, "size": "0.5 x cache"}}
    text = planned("10g", [FILL, read], capacity="100g")
    assert "warm, <= 23 min 20 s" in text and "and pauses of at most 23 min 20 s" in text
    assert "A cache with dirty data is written back before each cell that decides: at most 30 min" in text
    assert "written back" not in planned("10g", [read], capacity="100g"), "nothing is written"
    assert "written back" not in planned("10g", [FILL, {**read, "drain": False}], capacity="100g")


def test_size_of_a_cache_that_is_none_is_rejected():
    with pytest.raises(BadInput, match="is not a size"):
        planned("ten", [{"name": "a", "job": JOB}])


def test_a_size_that_is_none_names_its_variable():
    with pytest.raises(BadInput, match="s: fio_benchmark_cache_size 'big' is not a size"):
        planned("big", [{"name": "a", "job": JOB}])
