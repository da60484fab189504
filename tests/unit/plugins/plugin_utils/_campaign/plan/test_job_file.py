# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.job_file import job_of, read_job_file
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite

TWO = """\
# a comment
[global]
ioengine=libaio ; the engine
direct=1
filename=/dev/sdb
name=bench

[reader]
rw=randread
iodepth=32
directory=/mnt

[writer]
stonewall
rw=write
bs = 64k
write_bw_log=out
"""


def test_sections_are_jobs_and_files_are_left_out_with_one_note():
    job = job_of(TWO, "cell")
    assert job["global"] == {"ioengine": "libaio", "direct": "1"}
    assert job["jobs"] == [
        {"rw": "randread", "iodepth": "32", "name": "reader"},
        {"stonewall": True, "rw": "write", "bs": "64k", "write_bw_log": "out", "name": "writer"},
    ]
    assert job["notes"] == ["directory, filename of the job file was left out: all of its sections use the target of the cell."]
    checked = read_job(job, "cell")
    assert [section.name for section in checked.sections] == ["reader", "writer"]
    assert checked.notes == (job["notes"][0], "write_bw_log of the job was left out: the collection records the logs of which it makes its series itself.")


def test_global_section_counts_for_the_sections_behind_it():
    job = job_of("[global]\nbs=4k\n[a]\nrw=read\n[global]\nbs=8k\ndirect=1\n[b]\nrw=read\n[c]\nrw=read\nbs=16k\n", "cell")
    options = {section.name: (section.value("bs"), section.value("direct")) for section in read_job(job, "cell").sections}
    assert options == {"a": ("4k", None), "b": ("8k", "1"), "c": ("16k", "1")}


def test_last_of_two_equal_options_counts_however_it_is_spelled():
    assert job_of("[a]\nrw=read\nreadwrite=write\nbs=4k\nblocksize=8k\n", "cell")["jobs"] == [{"readwrite": "write", "blocksize": "8k", "name": "a"}]


def test_sections_of_one_name_and_of_unusual_names_get_names_of_their_own():
    job = job_of("[load]\nrw=read\n[load]\nrw=write\n[4k/rand read]\nrw=randread\nname=named\n[x(y)]\nrw=read\n", "cell")
    assert job["notes"] == ["Sections were renamed, because of characters that a name must not have: x(y) in line 8 is x_y_."]
    checked = read_job(job, "cell")
    assert [section.name for section in checked.sections] == ["load", "load_2", "named", "x_y_"]
    assert checked.notes[1] == "Sections of the same name were renamed, so that each has figures of its own: load in place 2 is load_2."


def test_every_refusal_is_listed_at_once_with_its_lines():
    text = "[global]\nioengine=net\nport=9000\n[a]\nexec_prerun=date\nrw=read\nruntime=2sec\n[b]\nrw=read\nexec_prerun=date\neta-newline=1\n"
    with pytest.raises(BadInput) as refused:
        job_of(text, "cell: x.fio")
    message = refused.value.message
    assert message.startswith("cell: x.fio: ") and message.count("cell: x.fio") == 1
    for part in (
        "line 2: ioengine=net is refused: it measures a network, not storage",
        "line 3: port is refused: it belongs to an engine that is not supported",
        "lines 5, 10: exec_prerun is refused: it runs a command on the host",
        "line 11: eta-newline is refused: it belongs to the command line of fio",
        "line 7: runtime: '2sec' is not a time: use seconds, or a number with us, ms, s, m, h or d; fio takes any other unit for microseconds",
    ):
        assert part in message


def test_refusal_of_a_value_names_the_lines_that_have_it():
    with pytest.raises(BadInput) as refused:
        job_of("[a]\nioengine=libaio\n[b]\nioengine=net\n[c]\nioengine=exec\n[d]\nioengine=net\ndirect\n", "cell")
    assert refused.value.message == (
        "cell: lines 4, 8: ioengine=net is refused: it measures a network, not storage; line 6: ioengine=exec is refused: "
        "it runs a command on the host; line 9: the option direct has no value, which fio requires."
    )


def test_option_of_a_profile_is_left_out_with_a_note():
    # examples/steadystate.fio and waitfor.fio of fio: it accepts threads, and does nothing with it.
    job = job_of("[global]\nthreads=1\n[a]\nrw=read\n", "cell")
    assert job["global"] == {} and job["notes"] == [
        "threads of the job file was left out: it belongs to a profile of fio (tiobench) and has no effect in a job."
    ]
    with pytest.raises(BadInput, match="threads is refused in a job: it belongs to a profile of fio"):
        read_job({"rw": "read", "threads": 1}, "cell")


def test_later_global_section_and_a_section_that_spells_its_option_otherwise():
    job = job_of("[global]\nbs=4k\n[a]\nrw=read\n[global]\nbs=8k\ntime_based\nruntime=5\n[b]\nblocksize=16k\ntime_based=0\n", "cell")
    (_a, b) = read_job(job, "cell").sections
    assert (b.value("bs"), b.asked_runtime) == ("16k", None)


def test_options_of_a_refused_engine_are_not_refused_once_more():
    with pytest.raises(BadInput) as refused:
        job_of("[a]\nioengine=io_uring_cmd\nrw=read\nsqthread_poll=1\n", "cell")
    assert "sqthread_poll" not in refused.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rw=read\n", "line 1 is before the first section: rw=read"),
        ("[a]\nrw=read\n[b\n", r"line 3 is no section: \[b"),
        ("[a]\nrw=read\n= 4k\n", "line 3 is no option of fio: = 4k"),
        ("[a]\ninclude other.fio\n", "line 2 includes another file: copy its options to this place"),
        ("[global]\nrw=read\n", "it has no section with a job"),
        ("", "it has no section with a job"),
        ("[a]\nrw=${RW}\n", r"line 2: the value of rw must not contain line breaks, control characters, ';', '#' or '\$'"),
    ],
)
def test_wrong_file_is_one_sentence_with_line_and_text(text, said):
    with pytest.raises(BadInput, match=said):
        job_of(text, "cell")


def test_file_that_cannot_be_read(tmp_path):
    with pytest.raises(BadInput, match=r"cell: the job file .*none.fio cannot be read on the controller: No such file or directory\."):
        read_job_file(str(tmp_path / "none.fio"), "cell")
    (tmp_path / "binary.fio").write_bytes(b"[a]\nrw=\xff\n")
    with pytest.raises(BadInput, match="is not UTF-8 text"):
        read_job_file(str(tmp_path / "binary.fio"), "cell")
    (tmp_path / "large.fio").write_bytes(b";" * 300_000)
    with pytest.raises(BadInput, match="is larger than 256 KiB"):
        read_job_file(str(tmp_path / "large.fio"), "cell")


def test_cell_of_a_suite_takes_a_job_file_and_the_options_of_its_suite(tmp_path, monkeypatch):
    (tmp_path / "two.fio").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    suites = {"own": {"options": {"runtime": 5, "time_based": True, "direct": 0}, "cells": [{"name": "two", "job_file": "two.fio"}]}}
    (cell,) = read_suite("own", suites).cells
    sections = cell.checked_job().sections
    assert [(section.name, section.asked_runtime, section.value("direct")) for section in sections] == [("reader", 5.0, "1"), ("writer", 5.0, "1")]
    both = {"own": {"cells": [{"name": "two", "job_file": "two.fio", "job": {"rw": "read"}}]}}
    with pytest.raises(BadInput, match="a cell has either 'job', a dictionary, or 'job_file'"):
        read_suite("own", both)
