# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign import suites

SUITES = {
    "two": {
        "description": "two cells",
        "cells": [
            {"name": "a", "job": {"rw": "read", "runtime": 10, "ramp_time": "2s"}, "repeats": 2},
            {"name": "b", "job": {"rw": "randwrite", "runtime": "1m"}, "repeats": 3},
        ],
    }
}
DISK = {"device": "/dev/disk/by-id/ata-A"}


def names(expansion):
    return [(cell["name"], cell["repeat"]) for cell in expansion.cells]


def test_repeats_are_interleaved_and_every_second_pass_runs_backwards():
    assert names(suites.expand("two", SUITES, [DISK])) == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("b", 3)]


def test_the_target_travels_with_the_cell_and_its_name_does_not():
    target = {**DISK, "name": "fast", "allow_data_loss": True, "identity": "S1", "size": None}
    cells = suites.expand("two", SUITES, [target], repeats=1).cells
    assert [cell["name"] for cell in cells] == ["a.fast", "b.fast"]
    assert cells[0]["target"] == {"device": DISK["device"], "allow_data_loss": True, "identity": "S1"}


def test_several_targets_are_told_apart_by_the_end_of_their_path():
    expansion = suites.expand("two", SUITES, [{"device": "/dev/vg0/scratch"}, {"file": "/srv/x y.bin"}], repeats=1)
    assert names(expansion) == [("a.scratch", 1), ("b.scratch", 1), ("a.x-y-bin", 1), ("b.x-y-bin", 1)]


def test_the_time_is_what_the_jobs_ask_for():
    assert suites.expand("two", SUITES, [DISK]).seconds == 2 * 12 + 3 * 60
    assert suites.expand("two", SUITES, [DISK, {**DISK, "name": "x"}], runtime=5, repeats=1).seconds == 2 * (7 + 5)
    assert suites.expand("two", SUITES, [DISK], runtime=5).limit > suites.expand("two", SUITES, [DISK], runtime=5).seconds


def test_another_runtime_makes_the_job_time_based():
    job = suites.expand("two", SUITES, [DISK], runtime=5, repeats=1).cells[0]["job"]
    assert (job["runtime"], job["time_based"], job["rw"]) == (5, 1, "read")
    assert SUITES["two"]["cells"][0]["job"] == {"rw": "read", "runtime": 10, "ramp_time": "2s"}


def test_a_fill_runs_once_before_everything_and_takes_the_time_it_takes():
    fill = {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m", "runtime": 3600}}
    expansion = suites.expand("f", {"f": {"cells": [fill, *SUITES["two"]["cells"]]}}, [DISK], runtime=5, repeats=2)
    assert names(expansion) == [("fill", 1), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert expansion.cells[0]["job"] == fill["job"]
    with pytest.raises(BadInput, match="cell fill: 'fill' must be true or false"):
        suites.check_suite("f", {"cells": [{**fill, "fill": "yes"}]})


def test_no_target_is_nothing_to_do():
    assert suites.expand("two", SUITES, []) == suites.Expansion([], 0, 0)


def test_sections_that_run_together_count_once_and_a_job_without_a_runtime_counts_long():
    nested = {"global": {"rw": "read", "runtime": 10}, "jobs": [{"name": "a"}, {"name": "b", "runtime": 20}]}
    assert suites.expand("n", {"n": {"cells": [{"name": "a", "job": nested}]}}, [DISK]).seconds == 20
    assert suites.expand("n", {"n": {"cells": [{"name": "a", "job": nested}]}}, [DISK], runtime=5).seconds == 5
    assert suites.expand("n", {"n": {"cells": [{"name": "a", "job": {"rw": "read"}}]}}, [DISK]).limit > suites.UNLIMITED


def test_a_file_that_must_be_made_first_has_more_time():
    disk, file = (suites.expand("two", SUITES, [target]).limit for target in (DISK, {"file": "/x", "size": "10g"}))
    assert file == disk + 1024


def job(**options):
    return {"cells": [{"name": "a", "job": {"rw": "read", **options}}]}


@pytest.mark.parametrize(
    ("suite", "sentence"),
    [
        ([], "must be a dictionary"),
        ({"cells": []}, "at least one cell"),
        ({"cells": "a"}, "at least one cell"),
        ({"cell": []}, "'cell' is not known"),
        ({"cells": ["a"]}, "cell 1 must be a dictionary"),
        ({"cells": [{"job": {"rw": "read"}}]}, "cell 1: 'name' is missing"),
        ({"cells": [{"name": "../a", "job": {"rw": "read"}}]}, "cannot be the name of a cell"),
        ({"cells": [{"name": "a", "job": {"rw": "read"}}] * 2}, "two cells are named a"),
        ({"cells": [{"name": "a"}]}, "the job must be a dictionary of fio options"),
        (job(rw="randomwrite"), "rw=randomwrite is none of"),
        (job(filename="/dev/sda"), "the option filename is refused"),
        (job(exec_prerun="reboot"), "the option exec_prerun is refused"),
        (job(bs=["4k"]), "bs needs a text or a number"),
        (job(bs="4k\n[other]"), "must not contain line breaks"),
        (job(**{"bs\n[x]": 1}), "is not the name of a fio option"),
        (job(runtime="soon"), "'soon' is not a time"),
        ({"cells": [{"name": "a", "job": {"rw": "read"}, "repeats": 0}]}, "'repeats' must be a whole number"),
        ({"cells": [{"name": "a", "job": {"rw": "read"}, "repeats": True}]}, "'repeats' must be a whole number"),
        ({"cells": [{"name": "a", "job": {"rw": "read"}, "repeat": 2}]}, "'repeat' is not known"),
    ],
)
def test_a_bad_suite_is_one_sentence_that_names_the_place(suite, sentence):
    with pytest.raises(BadInput, match="suite mine") as caught:
        suites.expand("mine", {"mine": suite}, [DISK])
    assert sentence in caught.value.message
    assert caught.value.message.endswith(".")


def test_an_unknown_suite_names_the_known_ones():
    with pytest.raises(BadInput, match=r"no suite named 'three'.*one of two"):
        suites.expand("three", SUITES, [DISK])


@pytest.mark.parametrize(
    ("targets", "sentence"),
    [
        ([{}], "exactly one of 'device' and 'file'"),
        ([{"device": "/dev/a", "file": "/b"}], "exactly one of 'device' and 'file'"),
        ([{"device": "/dev/a", "serial": "x"}], "'serial' is not known"),
        (["/dev/a"], "target 1 must be a dictionary"),
        ([{"device": "/dev/a/x"}, {"device": "/dev/b/x"}], "a 'name' of its own"),
        ([{"device": "/dev/a", "name": "a/b"}], "cannot be the name of a target"),
    ],
)
def test_a_bad_target_is_one_sentence(targets, sentence):
    with pytest.raises(BadInput, match=sentence):
        suites.expand("two", SUITES, targets)


@pytest.mark.parametrize("numbers", [{"runtime": -1}, {"repeats": -1}])
def test_negative_numbers_are_refused(numbers):
    with pytest.raises(BadInput, match="from 0 on"):
        suites.expand("two", SUITES, [DISK], **numbers)
