# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sections of one cell on several targets of a host."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.endurance import wear_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.host_plan import describe_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import make_plan

SOURCE = {"device": "/dev/disk/by-id/ata-S", "name": "source", "write_rate": "100m", "write_iops": 1000000}
SINK = {"device": "/dev/disk/by-id/ata-T", "name": "sink", "write_rate": "200m", "write_iops": 1000000, "allow_data_loss": True, "identity": "T1"}
THIRD = {"device": "/dev/disk/by-id/ata-U", "name": "third"}
READER = {"name": "reader", "rw": "read", "bs": "1m", "target": "source"}
WRITER = {"name": "writer", "rw": "write", "bs": "1m"}
COPY = {"global": {"direct": 1, "runtime": 10, "time_based": 1}, "jobs": [READER, WRITER]}


def plan_of(targets, job=None, **cell):
    return make_plan("mine", {"mine": {"cells": [{"name": "copy", "job": job or COPY, **cell}]}}, targets)


def with_sections(*rows):
    return {**COPY, "jobs": list(rows)}


def test_cell_runs_once_on_each_target_that_no_section_names():
    plan = plan_of([SOURCE, SINK, THIRD])
    assert [(run.name, [target.label for target in run.targets]) for run in plan.runs] == [
        ("copy.sink", ["sink", "source"]),
        ("copy.third", ["third", "source"]),
    ]
    (row,) = plan.steps[0].to_dict()["cells"]
    assert row["target"] == {"device": SINK["device"], "allow_data_loss": True, "identity": "T1"}
    assert row["targets"] == {"source": {"device": SOURCE["device"]}}


def test_host_reads_the_step_of_such_a_cell():
    steps = [step.to_dict() for step in plan_of([SOURCE, SINK]).steps]
    (requested,) = read_order({"campaign": "c", "variant": "v", "host": "h", "steps": steps}).requested
    writing, reading = requested.cell.parts
    assert (writing.target.path, writing.target.allow_data_loss, writing.job.writes) == (SINK["device"], True, True)
    assert (reading.target.path, reading.target.allow_data_loss, reading.job.writes) == (SOURCE["device"], False, False)
    assert [section.name for section in (*writing.job.sections, *reading.job.sections)] == ["writer", "reader"]


def test_cell_of_which_all_sections_name_a_target_runs_once():
    plan = plan_of([THIRD, SOURCE, SINK], with_sections(READER, {**WRITER, "target": "sink"}))
    (run,) = plan.runs
    assert (run.name, [target.label for target in run.targets]) == ("copy.source", ["source", "sink"])
    (same,) = plan_of([SOURCE, SINK], with_sections(READER, {**WRITER, "target": "source"})).runs
    assert (same.name, same.others) == ("copy.source", ())


@pytest.mark.parametrize(
    ("targets", "job", "words"),
    [
        (
            [SOURCE, SINK],
            with_sections({**READER, "target": "sorce"}, WRITER),
            r"copy: its section reader runs on the target 'sorce', .* \(fio_benchmark_targets: source, sink\)",
        ),
        ([{"device": "/dev/disk/by-id/ata-T"}], COPY, r"no target of this host is named so \(fio_benchmark_targets: one without a name\)"),
        ([SOURCE], COPY, "none is left for its section writer: give it a 'target' too"),
        ([SOURCE, SINK], {"rw": "read", "target": "source"}, "the option target is refused in a job: it belongs to one of the sections in jobs"),
        ([SOURCE, SINK], {**COPY, "global": {"target": "source"}}, "the option target is refused"),
        ([SOURCE, SINK], with_sections({**READER, "target": "../x"}, WRITER), r"'../x' cannot be the name of a target"),
        ([SOURCE, SINK], with_sections({**READER, "target": ["source"]}, WRITER), "cannot be the name of a target"),
        ([SOURCE, {**SINK, "size": "1m"}], with_sections(READER, {**WRITER, "size": "2m"}), "the target has a size of 1048576 bytes"),
        ([{**SOURCE, "size": "1m"}, SINK], with_sections({**READER, "size": "2m"}, WRITER), "the target has a size of 1048576 bytes"),
    ],
)
def test_wrong_targets_of_sections_are_one_sentence(targets, job, words):
    with pytest.raises(BadInput, match=words) as caught:
        plan_of(targets, job)
    assert caught.value.message.count("\n") == 0


def test_share_of_several_targets_is_rejected():
    with pytest.raises(BadInput, match="'share' is not supported for a cell whose sections run on several targets"):
        plan_of([SOURCE, SINK], share=50)


def test_time_and_wear_are_those_of_each_target():
    job = {"global": {"direct": 1, "runtime": 10, "time_based": 1}, "jobs": [{**WRITER, "name": "a", "target": "source"}, {**WRITER, "name": "b"}, READER]}
    plan = plan_of([SOURCE, SINK], job)
    assert {wear.path: wear.written for wear in wear_of(plan)} == {SOURCE["device"]: 10 * 100 * 2**20, SINK["device"]: 10 * 200 * 2**20}
    assert plan.runs[0].estimate.written == 10 * 300 * 2**20
    reading = plan_of([SOURCE, SINK])
    assert {wear.path: wear.written for wear in wear_of(reading)} == {SOURCE["device"]: 0, SINK["device"]: 10 * 200 * 2**20}
    assert "/dev/disk/by-id/ata-T +1  " in describe_plan(reading)


def test_targets_are_part_of_the_workload():
    plain = read_job(with_sections({**READER, "target": None}, WRITER), "c")
    assert (
        len({read_job(COPY, "c").workload_sha256, plain.workload_sha256, read_job(with_sections(READER, {**WRITER, "target": "x"}), "c").workload_sha256}) == 3
    )
    assert read_job(COPY, "c").on(None).threads_elsewhere == 1


def test_sections_of_a_job_file_get_their_targets_beside_it(tmp_path):
    path = tmp_path / "copy.fio"
    path.write_text("[global]\nruntime=10\ntime_based\n[load]\nrw=read\nfilename=/dev/sda\n[load]\nrw=write\nfilename=/dev/sdb\n")
    cell = {"name": "copy", "job_file": str(path), "section_targets": {"load": "source", "load_2": "sink"}}
    (run,) = make_plan("mine", {"mine": {"cells": [cell]}}, [SOURCE, SINK]).runs
    assert [target.label for target in run.targets] == ["source", "sink"]
    for wrong, words in (
        ({"section_targets": {"laod": "source"}}, "names the section 'laod', and the job file has load, load_2"),
        ({"section_targets": ["load"]}, "must be a dictionary"),
        ({"section_targets": {"load": 1}}, "must be a dictionary"),
    ):
        with pytest.raises(BadInput, match=words):
            make_plan("mine", {"mine": {"cells": [{**cell, **wrong}]}}, [SOURCE, SINK])
    with pytest.raises(BadInput, match="in 'job' a section has its own 'target'"):
        plan_of([SOURCE, SINK], section_targets={"reader": "source"})


SMALL = {"rw": "randwrite", "bs": "4k", "nrfiles": 100, "filesize": "16k", "numjobs": 2}
FOLDER = {"directory": "/srv/files"}


def test_files_in_a_directory_are_counted_and_limited():
    plan = plan_of([FOLDER], SMALL)
    assert plan.runs[0].as_step()["target"] == FOLDER
    assert plan.runs[0].estimate.written == 2 * 100 * 16 * 1024
    with pytest.raises(BadInput, match="the target has a size of 1048576 bytes"):
        plan_of([{**FOLDER, "size": "1m"}], SMALL)
    # The size of a suite is that of files and devices.
    assert "size" not in make_plan("mine", {"mine": {"size": "1m", "cells": [{"name": "copy", "job": SMALL}]}}, [FOLDER]).runs[0].target.given


@pytest.mark.parametrize(
    ("targets", "suite", "words"),
    [
        ([{**FOLDER, "allow_data_loss": True}], {}, "'allow_data_loss' is not supported for a 'directory'"),
        ([{**FOLDER, "file": "/srv/f"}], {}, "exactly one of 'device', 'file' and 'directory'"),
        ([FOLDER], {"requires": "file"}, "give the target a 'file' instead of a 'directory'"),
        ([FOLDER], {"requires": "device"}, "give the target a 'device' instead of a 'directory'"),
        ([FOLDER], {"cells": [{"name": "a", "job": SMALL, "share": 50}]}, "the target /srv/files is a directory"),
        ([FOLDER], {"cells": [{"name": "a", "job": {"rw": "read"}}]}, "does not set how large its files are: set filesize"),
        ([FOLDER], {"cells": [{"name": "a", "job": {**SMALL, "nrfiles": 1000000}}]}, "at most 65536 files are made"),
        ([{"file": "/srv/f", "size": "1m"}], {}, "nrfiles needs a target that is a 'directory': a file is one file for fio"),
    ],
)
def test_wrong_directories_are_one_sentence(targets, suite, words):
    with pytest.raises(BadInput, match=words):
        make_plan("mine", {"mine": {"cells": [{"name": "copy", "job": SMALL}], **suite}}, targets)


def test_several_files_of_a_job_file_count_in_a_directory_only(tmp_path):
    path = tmp_path / "small.fio"
    path.write_text("[global]\ndirectory=/mnt\nnrfiles=50\nopenfiles=5\nruntime=5\ntime_based\n[a]\nrw=read\nsize=1m\n[b]\nrw=write\nsize=2m\n")
    suites = {"mine": {"cells": [{"name": "small", "job_file": str(path)}]}}
    (inside,) = make_plan("mine", suites, [FOLDER]).runs
    assert [section.value("nrfiles") for section in read_job(inside.job, "c").sections] == ["50", "50"]
    assert not any("nrfiles" in note for note in inside.job["notes"])
    (single,) = make_plan("mine", suites, [{"file": "/srv/f"}]).runs
    assert [section.value("nrfiles") for section in read_job(single.job, "c").sections] == [None, None]
    assert single.job["notes"][1] == "nrfiles, openfiles of the job file was left out: a target that is no directory is one file for fio."
    assert single.target.given["size"] == 2 * 1024**2
    suites["mine"]["cells"][0]["section_targets"] = {"b": "files"}
    (both,) = make_plan("mine", suites, [{"file": "/srv/f", "name": "f"}, {**FOLDER, "name": "files"}]).runs
    assert [section.value("nrfiles") for section in read_job(both.job, "c").sections] == [None, "50"]


def test_targets_at_once_keep_to_the_targets_of_their_sections():
    reading = with_sections(READER, {**WRITER, "rw": "read"})
    for targets, steps in (("together", [["copy.sink", "copy.third"]]), ("one_after_another", [["copy.sink"], ["copy.third"]])):
        suite = {"targets": targets, "cells": [{"name": "copy", "job": reading}]}
        assert [[run.name for run in step.runs] for step in make_plan("mine", {"mine": suite}, [SOURCE, SINK, THIRD]).steps] == steps
    assert make_plan("mine", {"mine": {"cells": [{"name": "copy", "job": COPY}]}}, []).steps == ()


@pytest.mark.parametrize("targets", ["together", "one_after_another"])
def test_rounds_of_a_section_that_names_its_target_run_there_only(targets):
    rounds = {"most": 6, "window": 5, "decided_by": "a"}
    cells = [{"name": name, "job": with_sections({**READER, "name": name}), "rounds": rounds} for name in "ab"]
    plan = make_plan("mine", {"mine": {"targets": targets, "cells": cells}}, [SOURCE, SINK])
    assert [[run.name for run in step.runs] for step in plan.steps] == [["a.source", "b.source"]]
    cells[1]["job"]["jobs"][0]["target"] = "sink"
    with pytest.raises(BadInput, match="b: its sections name other targets than those of a"):
        make_plan("mine", {"mine": {"targets": targets, "cells": cells}}, [SOURCE, SINK])
