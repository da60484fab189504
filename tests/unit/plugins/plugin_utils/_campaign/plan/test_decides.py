# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which cells of a suite decide, and that it reaches the result on the host."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import make_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite

JOB = {"rw": "randwrite", "bs": "4k", "runtime": 5, "time_based": 1}
CELLS = [{"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m"}}, {"name": "log", "job": JOB}, {"name": "bound", "job": JOB}]


def decided(decides, **more):
    suite = {"cells": CELLS, **({} if decides is None else {"decides": decides})}
    return {cell.name: cell.decides for cell in read_suite("s", {"s": suite, **more}).cells}


@pytest.mark.parametrize(
    ("decides", "found"),
    [
        (None, {"fill": (), "log": None, "bound": None}),
        (["log"], {"fill": (), "log": ("iops",), "bound": ()}),
        (["*"], {"fill": (), "log": ("iops",), "bound": ("iops",)}),
        ([{"cells": "l*", "metrics": ["p99", "iops"]}, "bound"], {"fill": (), "log": ("p99", "iops"), "bound": ("iops",)}),
    ],
)
def test_named_cells_decide_and_a_fill_never_does(decides, found):
    assert decided(decides) == found


@pytest.mark.parametrize(
    ("decides", "message"),
    [
        ("log", "'decides' must be a list of patterns"),
        ([], "'decides' must be a list of patterns"),
        (["nothing-*"], "'decides' names nothing-\\*, which matches no cell that could decide"),
        (["fill"], "'decides' names fill, which matches no cell that could decide"),
        ([{"cells": "log", "metrics": ["speed"]}], "'decides' has the metric speed: use iops, bandwidth"),
        ([{"cells": "log", "metrics": "iops"}], "needs 'cells', a pattern, and 'metrics', a list"),
        ([{"metrics": ["iops"]}], "needs 'cells', a pattern"),
        ([{"cell": "log"}], "cell"),
    ],
)
def test_invalid_decides_is_rejected(decides, message):
    with pytest.raises(BadInput, match=message):
        decided(decides)


def test_inherited_decides_patterns_may_match_nothing():
    suites = {"s": {"cells": CELLS, "decides": ["log"]}, "mine": {"extends": "s", "cells": [{"name": "other", "job": JOB}]}}
    assert [cell.decides for cell in read_suite("mine", suites).cells] == [None]


def test_decides_is_sent_to_the_host_without_changing_the_order_hash():
    """Orders are the same if they measure the same, whatever the report makes of it."""
    orders = []
    for decides in (["log"], ["bound"]):
        plan = make_plan("s", {"s": {"cells": CELLS, "decides": decides}}, [{"device": "/dev/sdx", "size": "1g", "allow_data_loss": True}])
        orders.append(read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [step.to_dict() for step in plan.steps]}))
    assert [[one.decides for one in order.requested] for order in orders] == [[(), ("iops",), ()], [(), (), ("iops",)]]
    assert orders[0].sha256 == orders[1].sha256


def test_included_suites_define_deciding_cells():
    folder = pathlib.Path(__file__).parents[6] / "roles/fio_benchmark/files/suites"
    suites = {}
    for path in sorted(folder.glob("*.yml")):
        suites.update(yaml.safe_load(path.read_text()))
    said = {name: any(cell.decides for cell in read_suite(name, suites, cache_size=1024**3).cells) for name in suites}
    # A precondition prepares, and what a search finds is not a cell with a rate.
    assert {name for name, decides in said.items() if not decides} == {"precondition", "latency_limit", "snia_iops", "snia_latency", "snia_throughput"}
