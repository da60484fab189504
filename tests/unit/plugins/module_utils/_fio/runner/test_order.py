# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import order as fio_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order, seconds_left

JOB = {"rw": "randwrite", "bs": "4k", "time_based": True, "runtime": 10}


def cell(name="w", **values):
    return {"name": name, "target": {"device": "/dev/sdb", "size": "1G"}, "job": JOB, **values}


def read(*steps, **settings):
    return read_order({"campaign": "c", "variant": "v", "host": "h", "steps": list(steps), **settings})


def test_steps_and_segments():
    order = read(
        {"cells": [cell("a")], "barrier": True},
        {"cells": [cell("b", repeat=2)], "offset": 12.5},
        {"cells": [cell("c")], "barrier": True, "pause": {"seconds": 5}},
    )
    assert [step.segment for step in order.steps] == [0, 0, 1] and order.segments == 2
    assert order.requested[1].cell.key.repeat == 2 and order.requested[0].cell.target.size == 2**30
    assert seconds_left(order) == pytest.approx([12.5 + 11 + 16, 11 + 16, 16]), "the second step waits for its offset"


def test_a_fill_takes_what_is_expected_and_not_what_it_may_take():
    fill = cell("fill", job={"rw": "write", "bs": "1m", "runtime": 3600})
    assert seconds_left(read({"cells": [{**fill, "expected": 4.5}]})) == pytest.approx([5.5])
    assert seconds_left(read({"cells": [fill]})) == pytest.approx([3601])
    assert read({"cells": [fill]}).sha256 != "" and seconds_left(read({"cells": [cell(expected=99)]})) == pytest.approx([11])


@pytest.mark.parametrize("value", [True, -1, "4", float("inf"), float("nan")])
def test_an_expected_time_is_a_number_of_seconds(value):
    with pytest.raises(BadInput, match="expected must be a number of seconds from 0"):
        read({"cells": [cell(expected=value)]})


def test_order_hash_is_independent_of_results():
    order = read({"cells": [cell("a")], "number": None, "pause": None})
    assert order.sha256 == read({"cells": [cell("a", done_as="5" * 64)]}).sha256
    assert order.sha256 == read_order({**json.loads(json.dumps(order.raw)), "slack": 1}).sha256
    others = [
        read({"cells": [cell("b")]}),
        read({"cells": [cell("a", job={**JOB, "bs": "8k"})]}),
        read({"cells": [cell("a")], "offset": 1.0}),
        read({"cells": [cell("a")]}, series=False),
    ]
    assert order.sha256 not in [one.sha256 for one in others]


def test_flag_without_value_is_kept():
    first, second = read({"cells": [cell(job={**JOB, "group_reporting": None})]}), read({"cells": [cell()]})
    assert first.sha256 != second.sha256 and "group_reporting" in first.requested[0].cell.job.sections[0].options


def search_step(**values):
    return {"kind": "search", "cell": cell("s", **values), "search": {"limit": 10, "over": "iodepth", "last": 64}, "done": {"s.iodepth-4": "5" * 64}}


def test_search_cells():
    (step,) = read(search_step()).steps
    probe = fio_order.probe(step, 4)
    assert (probe.cell.key.cell, probe.done_as, probe.cell.job.sections[0].value("iodepth")) == ("s.iodepth-4", "5" * 64, "4")
    assert fio_order.probe(step, 8).done_as is None
    assert [one.cell.key.cell for one in fio_order.edges(step)] == ["s.iodepth-1", "s.iodepth-64"]


def test_iodepth_varies_in_every_section_of_a_job():
    job = {"global": {"bs": "4k", "iodepth": 9}, "jobs": [{"name": "a", "rw": "read", "iodepth": 3}, {"name": "b", "rw": "write"}]}
    (step,) = read(search_step(job=job)).steps
    assert [section.value("iodepth") for section in fio_order.probe(step, 4).cell.job.sections] == ["4", "4"]
    assert job["jobs"][0]["iodepth"] == 3, "what was requested stays as it is"


def test_round_cells():
    (step,) = read({"kind": "rounds", "cell": cell("p"), "rounds": {"most": 120}}).steps
    assert [fio_order.round_of(step, number, step.cells[0]).cell.key.cell for number in (1, 99, 120)] == ["p.round-01", "p.round-99", "p.round-120"]


def test_rounds_over_several_cells():
    (step,) = read({"kind": "rounds", "cells": [cell("a"), cell("b")], "rounds": {"most": 7, "decided_by": "b"}}).steps
    assert [fio_order.round_of(step, 2, one).cell.key.cell for one in step.cells] == ["a.round-02", "b.round-02"]
    assert [one.cell.key.cell for one in fio_order.edges(step)] == ["a.round-07", "b.round-07"]
    (single,) = read({"kind": "rounds", "cell": cell("a"), "rounds": {"most": 7}}).steps
    assert fio_order.seconds_of(step) == 2 * fio_order.seconds_of(single), "one after another"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([{"kind": "rounds", "cells": [cell("a"), cell("b")]}], "a: decided_by of rounds must be one of the cells"),
        ([{"kind": "rounds", "cell": cell("a"), "rounds": {"decided_by": "c"}}], "decided_by of rounds must be one of the cells .* not 'c'"),
        (["x"], "Step 0 must be a dictionary with"),
        ([{"cells": [cell()], "when": 5}], "and 'when' is not supported"),
        ([{"kind": "loop"}], "kind must be one of"),
        ([{}], "Step 0 must have cells"),
        ([{"kind": "search"}], "Step 0 must have cell"),
        ([{"kind": "search", "cell": cell()}], "w: search must be a dictionary"),
        ([{"cells": [{"name": "x"}]}], "a cell must be a dictionary with name, target and job"),
        ([{"cells": [cell(size=5)]}], "'size' is not supported in the cell w"),
        ([{"cells": [cell(target={"device": "/dev/sdb", "serial": "S"})]}], "'serial' is not supported"),
        ([{"cells": [cell(target={"device": "/dev/sdb", "size": "big"})]}], "'big' is not a size"),
        ([{"cells": [cell(repeat="often")]}], "repeat of the cell w must be a whole number"),
        ([{"cells": [cell()]}, {"cells": [cell()]}], "The cell w, repeat 1, is listed twice"),
        ([{"cells": [cell()], "offset": -1}], "offset must be a number of seconds"),
        ([{"cells": [cell()], "done": []}, {"cells": [cell()], "done": ["x"]}], "listed twice|done must be a dictionary"),
        ([{"cells": [cell("x" * 120)], "kind": "cells"}, {"kind": "rounds", "cell": cell("y" * 125)}], "cannot be the name of a cell"),
        ([{"cells": [cell("../x")]}], "cannot be the name of a cell"),
    ],
)
def test_invalid_orders_are_rejected(steps, words):
    with pytest.raises(BadInput, match=words):
        read(*steps)


def test_invalid_sample_interval_is_rejected():
    with pytest.raises(BadInput, match="sample_interval must be at least"):
        read({"cells": [cell()]}, sample_interval=0.1)


@pytest.mark.parametrize("name", ["slack", "timeout", "sample_interval", "barrier_timeout"])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_times_that_are_not_finite_are_rejected(name, value):
    with pytest.raises(BadInput, match="all must be finite"):
        read({"cells": [cell()]}, **{name: value})
    with pytest.raises(BadInput, match="offset must be a number of seconds from 0, not"):
        read({"cells": [cell()], "offset": value})


@pytest.mark.parametrize("steps", [None, "x", 1, {"cells": []}])
def test_steps_that_are_no_list_are_rejected(steps):
    with pytest.raises(BadInput, match=r"^steps must be a list of steps, not"):
        read_order({"campaign": "c", "variant": "v", "host": "h", "steps": steps})


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"cells": [cell()], "cell": {"a": 1}}, "cell is not supported in a step of kind cells"),
        ({**search_step(), "cells": [1]}, "cells is not supported in a step of kind search"),
        ({"kind": "rounds", "cell": cell(), "cells": [{"a": 1}]}, "cells is not supported in a step of kind rounds that has cell"),
        ({"cells": [cell(repeat="9" * 5000)]}, "repeat of the cell w must be a whole number"),
        ({"cells": [cell(repeat="\u00b2")]}, "repeat of the cell w must be a whole number"),
    ],
    ids=["cell", "search", "rounds", "repeat", "digit"],
)
def test_odd_steps_are_rejected(step, words):
    with pytest.raises(BadInput, match=words):
        read(step)


HALF = "\ud800"


@pytest.mark.parametrize(
    "step",
    [
        {"kind": HALF, "cells": [cell()]},
        {HALF: 1, "cells": [cell()]},
        {"cells": [cell(**{HALF: 1})]},
        {"cells": [cell(HALF, x=1)]},
        {"cells": [cell(target={"device": "/dev/sdb", "size": HALF})]},
        {"cells": [cell()], "pause": {"until": HALF}},
        {"kind": "rounds", "cell": cell(), "rounds": {"decided_by": HALF}},
        {"kind": "rounds", "cell": cell(), "rounds": {HALF: 1, 1: 1}},
        {**search_step(), "search": {"limit": 10, "last": 4, "over": HALF}},
        {**search_step(), "search": {"limit": 10, "last": 4, HALF: 1, 1: 1}},
    ],
)
def test_messages_can_be_encoded(step):
    with pytest.raises(BadInput) as caught:
        read(step)
    assert caught.value.message.encode()
