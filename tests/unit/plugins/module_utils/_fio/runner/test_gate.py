# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import process as gate


def begin(folder, *more):
    """What fio does before a section, in a process that waits."""
    command = gate.OPTION.split("=", 1)[1]
    return subprocess.Popen([*more, "/bin/sh", "-c", f"{command} > cell.prerun.txt 2>&1"], cwd=folder)


def still_waits(process, seconds=0.3):
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(seconds)
    return True


def test_early_fio_waits_until_the_gate_is_opened(tmp_path):
    closed = gate.Gate(tmp_path)
    with begin(tmp_path) as process:
        assert still_waits(process)
        assert closed.passed(time.time()) is None
        closed.open(time.time)
        assert process.wait(30) == 0
    assert closed.opened <= closed.passed(time.time()) <= time.time()


def test_late_fio_passes_immediately_and_its_time_is_recorded(tmp_path):
    opened = gate.Gate(tmp_path)
    opened.open(time.time)
    time.sleep(0.2)
    with begin(tmp_path) as process:
        assert process.wait(30) == 0
    assert opened.passed(time.time()) >= opened.opened + 0.1


def test_unopened_gate_stays_closed(tmp_path):
    closed = gate.Gate(tmp_path)
    with begin(tmp_path) as process:
        assert still_waits(process)
        closed.shut()
        assert process.wait(30) != 0
    assert closed.passed(time.time()) is None
    closed.open(time.time)
    assert not (tmp_path / "gate.open").exists(), "it is shut for good"


@pytest.mark.parametrize(("message", "late"), [("", 0), ("sh: 1: flock: not found", 0), ("through", -1), ("through", 1000)])
def test_impossible_times_are_none(tmp_path, message, late):
    opened = gate.Gate(tmp_path)
    opened.open(time.time)
    note = tmp_path / "cell.prerun.txt"
    note.write_text(message)
    os.utime(note, (opened.opened + late, opened.opened + late))
    assert opened.passed(opened.opened + 500) is None


def test_last_of_several_sections_determines_the_time(tmp_path):
    opened = gate.Gate(tmp_path)
    opened.open(lambda: 100.0)
    for name, instant in (("a", 100.25), ("b", 100.5), ("c", 99.996)):
        note = tmp_path / f"{name}.prerun.txt"
        note.write_text("through\n")
        os.utime(note, (instant, instant))
    assert opened.passed(200.0) == 100.5
    for name in "ab":
        (tmp_path / f"{name}.prerun.txt").unlink()
    assert opened.passed(200.0) == 100.0, "the time of a file is that of the last tick, which was before"


def test_names_unsafe_for_a_shell_do_not_use_the_gate():
    option = {"rw": "read", "bs": "4k"}
    assert gate.fits(read_job(option, "randwrite-4k.d16"))
    assert not gate.fits(read_job({"jobs": [{"name": "a", **option}, {"name": "b c", **option}]}, "x"))
    assert gate.fits(read_job({"jobs": [{"name": "a", **option}, {"name": "b", "stonewall": True, **option}]}, "x"))
    assert not gate.fits(read_job({"jobs": [{"name": "a", **option}, {"name": "b", "wait_for_previous": True, **option}]}, "x"))
    assert not gate.fits(read_job({"startdelay": 4, **option}, "x"))


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
@pytest.mark.parametrize("how", ["thread=1", "thread=0"])
def test_real_fio_starts_its_clock_after_the_gate(tmp_path, how):
    closed = gate.Gate(tmp_path)
    job = f"[cell]\nfilename={tmp_path}/data\nsize=1m\nrw=randwrite\nbs=4k\ntime_based\nruntime=1\nnumjobs=3\n{how}\n{gate.OPTION}\n"
    (tmp_path / "job.fio").write_text(job)
    report = tmp_path / "fio.json"
    with subprocess.Popen(["fio", "--output-format=json", f"--output={report}", "job.fio"], cwd=tmp_path, stdout=subprocess.DEVNULL) as process:
        assert still_waits(process, 3)
        closed.open(time.time)
        assert process.wait(60) == 0
    text = report.read_text()
    found = json.loads(text[text.index("{") :])
    assert all(job["write"]["runtime"] < 2900 for job in found["jobs"]), "the time at the gate counts as time of the measurement"
    assert closed.opened <= closed.passed(time.time()) < found["timestamp_ms"] / 1000
