# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steps: every cell as often as asked, at its time, and nothing twice."""

from __future__ import annotations

import collections
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.pauses import DRAIN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import UNLIMITED, make_plan, mark_done

SUITES = {
    "two": {
        "description": "two cells",
        "cells": [
            {"name": "a", "job": {"rw": "read", "runtime": 10, "ramp_time": "2s", "time_based": 1}, "repeats": 2},
            {"name": "b", "job": {"rw": "randwrite", "runtime": "1m", "time_based": 1}, "repeats": 3},
        ],
    }
}
DISK = {"device": "/dev/disk/by-id/ata-A"}
OTHER = {"device": "/dev/disk/by-id/ata-B"}
TIMED = {"rw": "randwrite", "runtime": 10, "time_based": 1}
FILL = {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m", "runtime": 3600}}


def plan_of(suite, targets=(DISK,), **options):
    return make_plan("mine", {"mine": suite}, list(targets), **options)


def names(plan):
    return [(run.name, run.repeat) for run in plan.runs]


def test_repeats_are_interleaved_with_alternating_order():
    assert names(make_plan("two", SUITES, [DISK])) == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("b", 3)]


def test_step_for_the_runner():
    plan = make_plan("two", SUITES, [{**DISK, "name": "fast", "identity": "S1", "write_rate": "1g"}], repeats=1)
    assert plan.steps[1].to_dict() == {
        "number": 1,
        "kind": "cells",
        "barrier": False,
        "offset": 14.0,
        "pause": None,
        "cells": [
            {
                "name": "b.fast",
                "repeat": 1,
                "target": {**DISK, "identity": "S1"},
                "job": {"rw": "randwrite", "runtime": "1m", "time_based": 1},
                "done_as": None,
                "measures_garbage_collection": False,
            }
        ],
    }
    json.dumps([step.to_dict() for step in plan.steps])


def test_sequential_targets():
    assert names(make_plan("two", SUITES, [DISK, OTHER], repeats=1)) == [("a.ata-A", 1), ("b.ata-A", 1), ("a.ata-B", 1), ("b.ata-B", 1)]


def test_parallel_targets():
    plan = plan_of({**SUITES["two"], "targets": "together"}, [DISK, OTHER], repeats=1)
    assert [[run.name for run in step.runs] for step in plan.steps] == [["a.ata-A", "a.ata-B"], ["b.ata-A", "b.ata-B"]]
    assert [step.offset for step in plan.steps] == [0.0, 14.0]
    assert plan.seconds == 12 + 60 + 2


def test_searches_and_rounds_run_on_one_target_at_a_time():
    suite = {"targets": "together", "cells": [{"name": "s", "job": TIMED, "search": {"limit": "1ms"}}]}
    assert [[run.name for run in step.runs] for step in plan_of(suite, [DISK, OTHER]).steps] == [["s.ata-A"], ["s.ata-B"]]


def test_hosts_synchronise_after_every_step_of_unknown_length():
    cells = [FILL, {"name": "a", "job": TIMED}, {"name": "s", "job": TIMED, "search": {"limit": "1ms"}}, {"name": "b", "job": TIMED}]
    rounds = {"name": "r", "job": TIMED, "rounds": {}}
    plan = plan_of({"cells": [*cells, rounds, {"name": "c", "job": TIMED}, {"name": "d", "job": TIMED}]})
    assert [(step.kind, step.barrier, step.offset) for step in plan.steps] == [
        ("cells", True, 0.0),
        ("cells", True, 0.0),
        ("search", False, 12.0),
        ("cells", True, 0.0),
        ("rounds", False, 12.0),
        ("cells", True, 0.0),
        ("cells", False, 12.0),
    ]
    assert plan.segments == 4


def test_unsynchronised_hosts_have_no_timetable():
    plan = plan_of({"cells": [FILL, {"name": "a", "job": TIMED}]}, synchronise=False)
    assert [(step.barrier, step.offset) for step in plan.steps] == [(False, None), (False, None)]
    assert plan.segments == 0


def test_fixed_pause_is_part_of_the_timetable():
    plan = plan_of({"pause": 30, "cells": [{"name": name, "job": TIMED} for name in "ab"]}, gap=1)
    assert [(step.pause, step.offset) for step in plan.steps] == [(None, 0.0), ({"seconds": 30.0}, 41.0)]
    assert plan.seconds == 10 + 1 + 30 + 10


def test_hosts_synchronise_after_a_pause_of_unknown_length():
    plan = plan_of({"pause": {"until": "clean", "most": 60}, "cells": [{"name": name, "job": TIMED} for name in "ab"]})
    assert [(step.pause, step.barrier, step.offset) for step in plan.steps] == [({"until": "clean", "most": 60.0}, True, 0.0)] * 2
    assert (plan.open_pauses, plan.seconds) == (120, 22)


def test_garbage_collection_pause_requires_written_data_and_a_known_rate():
    suite = {
        "pause": {"garbage_collection": "measured", "most": 60},
        "cells": [
            {"name": "w1", "job": TIMED},
            {"name": "gc", "job": TIMED, "measures_garbage_collection": True},
            {"name": "w2", "job": TIMED},
            {"name": "r1", "job": {**TIMED, "rw": "randread"}},
            {"name": "r2", "job": {**TIMED, "rw": "randread"}},
        ],
    }
    assert [bool(step.pause) for step in plan_of(suite).steps] == [False, False, True, True, False]
    assert [bool(step.pause) for step in plan_of({**suite, "pause": {"garbage_collection": "640m"}}).steps] == [False, True, True, True, False]


def test_fill_runs_once_at_the_beginning_without_runtime():
    plan = plan_of({"cells": [FILL, *SUITES["two"]["cells"]]}, runtime=5, repeats=2)
    assert names(plan) == [("fill", 1), ("a", 1), ("b", 1), ("b", 2), ("a", 2)]
    assert plan.runs[0].job == FILL["job"]


def test_refilled_repeats_have_each_fill_before_the_cells_that_follow_it():
    cells = [FILL, *SUITES["two"]["cells"], {**FILL, "name": "again"}, {"name": "c", "job": TIMED}]
    assert names(plan_of({"cells": cells}, repeats=2, repeat=2)) == [("c", 2), ("b", 2), ("a", 2)]
    assert names(plan_of({"cells": cells}, repeats=2, repeat=2, refill=True)) == [("again", 2), ("c", 2), ("fill", 2), ("b", 2), ("a", 2)]
    assert names(plan_of({"cells": cells}, repeats=3, repeat=3, refill=True)) == [("fill", 3), ("a", 3), ("b", 3), ("again", 3), ("c", 3)]
    assert names(plan_of({"cells": [FILL]}, repeats=3, refill=True)) == [("fill", 1)]


def test_runtime_override_makes_the_job_time_based():
    suite = {"cells": [{"name": "a", "job": {"rw": "read", "runtime": 10}}, {"name": "n", "job": {"jobs": [{"name": "x", "rw": "read"}]}}]}
    short, nested = (run.job for run in plan_of(suite, runtime=5).runs)
    assert short == {"rw": "read", "runtime": 5, "time_based": 1}
    assert nested == {"jobs": [{"name": "x", "rw": "read", "runtime": 5, "time_based": 1}]}
    assert suite["cells"][0]["job"] == {"rw": "read", "runtime": 10}


def test_part_of_a_device_is_set_in_job_or_target():
    suite = {"cells": [{"name": "a", "job": TIMED, "share": 70}]}
    assert plan_of(suite).runs[0].job == {**TIMED, "size": "70%"}
    sized = plan_of(suite, [{**DISK, "size": "100m"}]).runs[0]
    assert (sized.job, sized.target.given["size"]) == (TIMED, 70 * 1024**2)


@pytest.mark.parametrize("target", [DISK, {"file": "/srv/f"}])
def test_size_of_the_job_must_fit_into_that_of_the_target(target):
    suite = {"cells": [{"name": "a", "job": {**TIMED, "size": "1g"}}]}
    assert plan_of(suite, [{**target, "size": "2g"}]).runs[0].target.given["size"] == "2g"
    with pytest.raises(BadInput, match="a: with size the job ends at byte 1073741824, but the target has a size of 536870912 bytes"):
        plan_of(suite, [{**target, "size": "512m"}])


def test_file_without_a_size_is_as_large_as_the_job_needs_it():
    sections = {"jobs": [{"name": "x", "rw": "read", "size": "4m", "offset": "1m"}, {"name": "y", "rw": "write", "size": "2m"}]}
    suite = {"cells": [{"name": "a", "job": sections}, {"name": "b", "job": {"rw": "read"}}]}
    assert [run.target.given.get("size") for run in plan_of(suite, [{"file": "/srv/f"}]).runs] == [5 * 1024**2, None]
    only = make_plan("s", {"s": suite}, [], file="/srv/f")
    assert [run.target.given.get("size") for run in only.runs] == [5 * 1024**2, "1g"]
    # What a suite sets is meant for all of its cells.
    with pytest.raises(BadInput, match=r"a larger size"):
        make_plan("s", {"s": {**suite, "size": "3m"}}, [], file="/srv/f")


def test_no_targets_give_an_empty_plan():
    plan = make_plan("two", SUITES, [])
    assert (plan.steps, plan.seconds, plan.limit, plan.segments, plan.patterns) == ((), 0, 0, 0, [])


def test_estimated_time_and_host_timeout():
    plan = make_plan("two", SUITES, [DISK])
    assert plan.seconds == 2 * 12 + 3 * 60 + 4 * 2
    assert plan.limit == 300 + 2 * (30 + 2 + 1.5 * 12 + DRAIN) + 3 * (30 + 2 + 1.5 * 60 + DRAIN)
    assert plan_of({"cells": [{"name": "a", "job": {"rw": "read"}}]}).limit > UNLIMITED


def test_timeout_of_unlimited_job_depends_on_its_size():
    fill = {"cells": [{"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m"}}]}
    small, large = (plan_of(fill, [{**DISK, "capacity": capacity, "write_rate": "100m"}]) for capacity in ("1g", "4t"))
    assert small.timeout == UNLIMITED
    assert large.timeout == round(10 * 4 * 1024**4 / (100 * 1024**2))
    assert large.limit > large.timeout


def test_barrier_timeout_covers_slower_hosts():
    assert make_plan("two", SUITES, [DISK]).barrier_timeout == 900 + DRAIN, "one host may have a cache to write back"
    assert plan_of({"cells": [{"name": "a", "job": TIMED, "drain": 60}]}).barrier_timeout == 900 + 60
    assert plan_of({"cells": [FILL, {"name": "a", "job": TIMED}]}).barrier_timeout > 900 + 3600
    clean = {"pause": {"until": "clean", "most": 5000}, "cells": [{"name": "a", "job": TIMED}]}
    assert plan_of(clean).barrier_timeout == 900 + 5000


def test_file_to_be_created_gets_more_time():
    disk, file = (make_plan("two", SUITES, [target]).limit for target in (DISK, {"file": "/x", "size": "10g"}))
    assert file == disk + 1024


def test_generated_cells_are_expected_by_pattern():
    suite = {"cells": [{"name": "s", "job": TIMED, "search": {"limit": "1ms", "last": 64}}, {"name": "r", "job": TIMED, "rounds": {"most": 7}}]}
    plan = plan_of(suite, repeats=2)
    assert [pattern.to_dict() for pattern in plan.patterns] == [
        {"cell": "s", "repeats": [1, 2], "over": "iodepth", "first": 1, "last": 64},
        {"cell": "r", "repeats": [1, 2], "over": "", "first": 1, "last": 7},
    ]
    known = ("s", "r", "s.iodepth-1", "s.iodepth-64", "r.round-01", "r.round-07")
    strange = ("x", "s.iodepth-65", "s.iodepth-0", "s.iodepth-01", "s.numjobs-1", "r.round-08", "r.round-1", "r.iodepth-1", "s.iodepth-1.x", "s.")
    assert [name for name in (*known, *strange) if plan.expected(name)] == list(known)


def test_existing_results_are_sent_to_the_runner():
    suite = {"cells": [{"name": "a", "job": TIMED}, {"name": "s", "job": TIMED, "search": {"limit": "1ms"}}, {"name": "r", "job": TIMED, "rounds": {}}]}
    steps = [step.to_dict() for step in plan_of(suite).steps]
    stored = {("a", 1): "1" * 64, ("s.iodepth-4", 1): "2" * 64, ("s.iodepth-8", 2): "3" * 64, ("r.round-02", 1): "4" * 64, ("s.other", 1): "5" * 64}
    marked = mark_done(steps, stored)
    assert marked[0]["cells"][0]["done_as"] == "1" * 64
    assert (marked[1]["cell"]["done_as"], marked[1]["done"]) == (None, {"s.iodepth-4": "2" * 64})
    assert marked[2]["done"] == {"r.round-02": "4" * 64}
    assert steps[0]["cells"][0]["done_as"] is None


@pytest.mark.parametrize("numbers", [{"runtime": -1}, {"repeats": -1}, {"gap": -0.5}])
def test_negative_numbers_are_rejected(numbers):
    with pytest.raises(BadInput, match="from 0 on"):
        make_plan("two", SUITES, [DISK], **numbers)


def test_too_long_names_are_rejected_before_any_run():
    with pytest.raises(BadInput, match="cannot be the name of a cell"):
        plan_of({"cells": [{"name": "s" * 120, "job": TIMED, "search": {"limit": "1ms"}}]})


CELLS = st.lists(
    st.fixed_dictionaries(
        {
            "runtime": st.integers(1, 3600),
            "rw": st.sampled_from(["randread", "randwrite", "randrw"]),
            "time_based": st.sampled_from([0, 1]),
            "ramp_time": st.sampled_from(["0", "500ms", "10"]),
        }
    ),
    min_size=1,
    max_size=6,
)
PAUSES = st.sampled_from([None, 5, {"until": "clean", "most": 9}, {"garbage_collection": "640m", "most": 9}])


@given(
    jobs=CELLS,
    pauses=st.lists(PAUSES, min_size=6, max_size=6),
    repeats=st.integers(1, 4),
    targets=st.integers(1, 3),
    together=st.booleans(),
    gap=st.integers(0, 5),
)
def test_every_cell_runs_the_requested_number_of_times_without_overlap(jobs, pauses, repeats, targets, together, gap):
    cells = [{"name": f"c{number}", "job": job, "pause": pause} for number, (job, pause) in enumerate(zip(jobs, pauses, strict=False))]
    suite = {"cells": cells, "targets": "together" if together else "one_after_another"}
    plan = plan_of(suite, [{"device": f"/dev/d{number}"} for number in range(targets)], repeats=repeats, gap=gap)
    counted = collections.Counter(names(plan))
    assert set(counted.values()) == {1}
    assert len(counted) == len(cells) * targets * repeats
    assert [step.number for step in plan.steps] == list(range(len(plan.steps)))
    assert plan.steps[0].barrier
    for last, step in zip(plan.steps, plan.steps[1:], strict=False):
        fixed = step.pause["seconds"] if step.pause and "seconds" in step.pause else 0
        if step.barrier:
            assert step.offset == 0
        else:
            assert last.known
            assert step.offset == pytest.approx(last.offset + last.seconds + gap + fixed)
        assert step.barrier == (not last.known or bool(step.pause and "most" in step.pause))


def test_discard_on_a_file_is_rejected():
    with pytest.raises(BadInput, match=r"empty: it discards its target, and /srv/x is a file: give the target a 'device', or leave the cell out"):
        make_plan("mine", {"mine": {"cells": [{"name": "empty", "job": {"rw": "trim"}}]}}, [{"file": "/srv/x", "size": "1g"}])


def test_timed_trim_is_an_ordinary_cell():
    cells = [{"name": "t", "job": {"rw": "trim", "time_based": 1, "runtime": 9}}, {"name": "w", "job": {"rw": "write", "time_based": 1, "runtime": 9}}]
    plan = make_plan("mine", {"mine": {"cells": cells}}, [{"device": "/dev/disk/by-id/a"}], repeats=2, runtime=5)
    assert [run.name for run in plan.runs] == ["t", "w", "w", "t"]
    assert {run.job["runtime"] for run in plan.runs} == {5}


GARBAGE = [
    {"name": "w", "job": {"rw": "write", "bs": "1m", "runtime": 10, "time_based": 1}, "pause": {"garbage_collection": "1m"}, "repeats": 3},
]


@pytest.mark.parametrize(("hosts", "group", "barriers"), [("together", "", 3), ("apart", "", 0), ("apart", "array1", 3)])
def test_hosts_without_shared_storage_may_run_independently(hosts, group, barriers):
    plan = make_plan("mine", {"mine": {"hosts": hosts, "cells": GARBAGE}}, [{"device": "/dev/disk/by-id/a"}], group=group)
    assert plan.segments == barriers
    assert all((step.offset is None) == (not barriers) for step in plan.steps)
    assert [step.pause is not None for step in plan.steps] == [False, True, True]


def test_invalid_hosts_mode_is_rejected():
    with pytest.raises(BadInput, match="suite mine: 'hosts' must be together or apart"):
        make_plan("mine", {"mine": {"hosts": "alone", "cells": GARBAGE}}, [])


def test_one_repeat_has_the_order_of_its_pass():
    whole = plan_of({"cells": [{"name": "a", "job": TIMED, "repeats": 3}, {"name": "b", "job": TIMED, "repeats": 2}, FILL]})
    passes = [
        names(plan_of({"cells": [{"name": "a", "job": TIMED, "repeats": 3}, {"name": "b", "job": TIMED, "repeats": 2}, FILL]}, repeat=number))
        for number in (1, 2, 3)
    ]

    assert passes[1] == [("b", 2), ("a", 2)]
    assert [run for one in passes for run in one] == names(whole)


def test_stored_rounds_of_several_cells_are_marked():
    rounds = {"decided_by": "b", "most": 7}
    suite = {"cells": [{"name": name, "job": TIMED, "rounds": rounds} for name in ("a", "b")]}
    [step] = [one.to_dict() for one in plan_of(suite).steps]
    [marked] = mark_done(
        [step], {("a", 1): "1" * 64, ("a.round-07", 1): "2" * 64, ("b.round-01", 1): "3" * 64, ("b.round-08", 1): "4" * 64, ("a.round-01", 2): "5"}
    )
    assert [cell["done_as"] for cell in marked["cells"]] == ["1" * 64, None]
    assert marked["done"] == {"a.round-07": "2" * 64, "b.round-01": "3" * 64}


def test_rounds_that_reads_decide_are_those_of_all_cells():
    rounds = {"decided_by": "r"}
    suite = {"cells": [{"name": "w", "job": TIMED, "rounds": rounds}, {"name": "r", "job": {**TIMED, "rw": "randread"}, "rounds": rounds}]}
    [step] = [one.to_dict() for one in plan_of(suite).steps]
    assert [cell["name"] for cell in step["cells"]] == ["w", "r"] and step["rounds"]["track"] == "read"
