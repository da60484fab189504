# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a suite may say, and what is said of one that is none."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan import suites
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import Pause

TIMED = {"rw": "randread", "runtime": 10, "time_based": 1}


def read(suite, **others):
    return suites.read_suite("mine", {"mine": suite, **others})


def cell(**keys):
    return {"cells": [{"name": "a", "job": TIMED, **keys}]}


def job(**options):
    return {"cells": [{"name": "a", "job": {"rw": "read", **options}}]}


def test_suite_options_apply_to_every_job_and_job_options_override():
    suite = read({"options": {"direct": 1, "bs": "4k"}, "cells": [{"name": "a", "job": {"rw": "read", "bs": "1m"}}]})
    assert dict(suite.cells[0].job) == {"direct": 1, "bs": "1m", "rw": "read"}


def test_suite_options_are_global_options_of_a_job_with_sections():
    nested = {"global": {"bs": "8k"}, "jobs": [{"name": "x", "rw": "read"}]}
    assert read({"options": {"direct": 1, "bs": "4k"}, "cells": [{"name": "a", "job": nested}]}).cells[0].job == {
        "global": {"direct": 1, "bs": "8k"},
        "jobs": [{"name": "x", "rw": "read"}],
    }


def test_listed_cells_precede_matrix_cells():
    matrices = [{"name": "m{bs}", "axes": {"bs": ["4k"]}}, {"name": "n{bs}", "axes": {"bs": ["8k"]}}]
    assert [one.name for one in read({"matrix": matrices, "cells": [{"name": "z", "job": {"rw": "read"}}]}).cells] == ["z", "m4k", "n8k"]


def test_cell_without_values_uses_those_of_the_suite():
    suite = {"repeats": 4, "pause": 30, "cells": [{"name": "a", "job": TIMED}, {"name": "b", "job": TIMED, "repeats": 1, "pause": None}]}
    first, second = read(suite).cells
    assert (first.repeats, first.pause, second.repeats, second.pause) == (4, Pause(seconds=30.0), 1, None)


def test_extending_suite_inherits_unset_values():
    base = {
        "description": "b",
        "options": {"direct": 1},
        "repeats": 3,
        "matrix": {"axes": {"bs": ["4k", "8k"], "rw": ["read"]}, "runtime": 60, "name": "{rw}-{bs}"},
    }
    suite = read({"extends": "base", "targets": "together", "options": {"thread": 1}, "matrix": {"axes": {"bs": ["1m"]}, "runtime": 5}}, base=base)
    assert suite.together
    assert [(one.name, one.repeats, dict(one.job)) for one in suite.cells] == [
        ("read-1m", 3, {"direct": 1, "thread": 1, "time_based": 1, "runtime": 5, "bs": "1m", "rw": "read"})
    ]
    assert base["matrix"]["axes"]["bs"] == ["4k", "8k"]


def test_extends_is_transitive():
    base = {"cells": [{"name": "a", "job": TIMED}]}
    suite = suites.read_suite("c", {"a": base, "b": {"extends": "a", "repeats": 2}, "c": {"extends": "b", "size": "1g"}})
    assert (suite.size, suite.cells[0].repeats) == (1 << 30, 2)


def test_cell_selection_by_pattern():
    suite = {"cells": [{"name": name, "job": TIMED} for name in ("read-4k", "read-1m", "write-4k")]}
    assert [one.name for one in suites.read_suite("mine", {"mine": suite}, only=["*-4k", "x"]).cells] == ["read-4k", "write-4k"]
    with pytest.raises(BadInput, match=r"none of its cells is called x\*, y\."):
        suites.read_suite("mine", {"mine": suite}, only=["y", "x*"])


@pytest.mark.parametrize(
    ("suite", "sentence"),
    [
        ([], "must be a dictionary"),
        ({"cells": []}, "at least one cell"),
        ({"description": "x"}, "at least one cell"),
        ({"cells": "a"}, "'cells' must be a list"),
        ({"cell": []}, "'cell' is not supported"),
        ({"cells": ["a"]}, "cell 1 must be a dictionary"),
        ({"cells": [{"job": {"rw": "read"}}]}, "cell 1: 'name' is missing"),
        ({"cells": [{"name": "../a", "job": {"rw": "read"}}]}, "cannot be the name of a cell"),
        ({"cells": [{"name": "a", "job": {"rw": "read"}}] * 2}, "two cells are named a"),
        ({"cells": [{"name": "a"}]}, "the job must be a dictionary of fio options"),
        ({"options": [], **job()}, "'options' must be a dictionary"),
        ({"options": {"filename": "/dev/sda"}, **job()}, "the option filename is refused"),
        ({"targets": "both", **job()}, "'targets' must be together or one_after_another"),
        ({"requires": "tape", **job()}, "'requires' must be file or device"),
        ({"size": "much", **job()}, "'much' is not a size"),
        ({"extends": "other", **job()}, "it extends 'other', and there is no such suite"),
        ({"extends": "mine", **job()}, "it extends itself"),
        ({"extends": ["mine"]}, "there is no such suite"),
        ({"repeats": 0, **job()}, "'repeats' must be a whole number"),
        ({"matrix": "x"}, "matrix must be a dictionary"),
        ({"matrix": [{}]}, "matrix 1: 'axes' must be a dictionary"),
        (job(rw="randomwrite"), "rw=randomwrite must be one of"),
        (job(filename="/dev/sda"), "the option filename is refused"),
        (job(exec_prerun="reboot"), "the option exec_prerun is refused"),
        (job(iodepth=float("inf")), "the option iodepth is inf"),
        ({"options": {"rate": float("nan")}, "cells": [{"name": "a", "job": {"jobs": [{"name": "x", "rw": "read"}]}}]}, "the option rate is nan"),
        (job(bs=["4k"]), "bs needs a text or a number"),
        (job(bs="4k\n[other]"), "must not contain line breaks"),
        (job(**{"bs\n[x]": 1}), "is not the name of a fio option"),
        (job(runtime="soon"), "'soon' is not a time"),
        (cell(repeats=0), "'repeats' must be a whole number"),
        (cell(repeats=True), "'repeats' must be a whole number"),
        (cell(repeat=2), "'repeat' is not supported"),
        (cell(fill="yes"), "'fill' must be true or false"),
        (cell(measures_garbage_collection=1), "'measures_garbage_collection' must be true or false"),
        (cell(share=0), "'share' is the percentage"),
        (cell(share="70%"), "'share' is the percentage"),
        (cell(search={"limit": "1ms"}, rounds={}), "both 'search' and 'rounds'"),
        (cell(fill=True, rounds={}), "neither 'search' nor 'rounds'"),
        ({"purge": "yes", **job()}, "'purge' must be true or false"),
        (cell(rounds={"decided_by": "other"}), "decided by other, which is not among the cells of these rounds"),
        (
            {
                "cells": [
                    {**cell(rounds={"decided_by": "a"})["cells"][0], "name": "a", "repeats": 2},
                    {**cell(rounds={"decided_by": "a"})["cells"][0], "name": "b"},
                ]
            },
            "must have the same 'repeats'",
        ),
        (cell(pause={"garbage_collection": "measured"}), "a garbage collection that no cell measures"),
    ],
)
def test_invalid_suite_is_rejected_with_its_location(suite, sentence):
    with pytest.raises(BadInput, match="suite mine") as caught:
        suites.read_suite("mine", {"mine": suite})
    assert sentence in caught.value.message
    assert caught.value.message.endswith(".")


def test_circular_extends_is_rejected():
    with pytest.raises(BadInput, match="it extends itself, by way of a, b"):
        suites.read_suite("a", {"a": {"extends": "b"}, "b": {"extends": "a"}})


def test_unknown_suite_error_lists_known_ones():
    with pytest.raises(BadInput, match=r"no suite named 'three'.*one of two"):
        suites.read_suite("three", {"two": job()})
