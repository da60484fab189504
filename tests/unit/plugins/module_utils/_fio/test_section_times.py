# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""When the sections of a job ran, what they did together, and in which seconds of the measurement each direction has a series."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import sections
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation import activity
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.summary import summarize


def job_of(*sections, **common):
    jobs = [{"name": name, "rw": "randread", **options} for name, options in zip("abc", sections)]
    return read_job({"global": {"bs": "4k", **common}, "jobs": jobs}, "cell")


def report_of(job, seconds, *, groups=None, rate=200, merged=False):
    """Each section did 200 I/Os per second in its own time."""
    entries = []
    for number, (section, length) in enumerate(zip(job.sections, seconds)):
        (direction,) = section.directions
        row = {"io_bytes": rate * length * 4096, "total_ios": rate * length, "iops": rate, "bw_bytes": rate * 4096, "runtime": length * 1000}
        entries.append({"jobname": section.name, "groupid": (groups or [0] * 9)[number], "error": 0, "elapsed": 99, direction: row})
    if merged:
        total = rate * sum(seconds)
        row = {"io_bytes": total * 4096, "total_ios": total, "iops": total / max(seconds), "bw_bytes": 1, "runtime": max(seconds) * 1000}
        entries = [{**entries[0], "read": row}]
    return parse(json.dumps({"fio version": "fio-3.33", "jobs": entries}))


TIMED = {"time_based": True, "runtime": 6}


@pytest.mark.parametrize(
    ("sections", "seconds", "iops", "milliseconds"),
    [
        # The right values are counted: I/Os by the time from the first start to the last end, where they did not run together.
        ([{}, {}], (6, 6), 400, 6000),
        ([{}, {"startdelay": "200ms"}], (6, 6), 400, 6200),
        ([{}, {"wait_for": "a"}], (6, 6), 200, 12_000),
        ([{}, {"startdelay": 4}], (6, 6), 240, 10_000),
        ([{"time_based": 0, "runtime": 0, "io_size": "1m"}, {}], (2, 6), 1600 / 6, 6000),
        ([{}, {"ramp_time": 2, "wait_for": "a"}], (6, 6), 2400 / 14, 14_000),
    ],
)
def test_rates_are_added_only_of_what_ran_together(sections, seconds, iops, milliseconds):
    job = job_of(*sections, **TIMED)
    found = summarize(report_of(job, seconds), job)["read"]
    assert (found["iops"], found["total_ios"], found["runtime_ms"]) == (pytest.approx(iops), 200 * sum(seconds), milliseconds)
    assert found["bw_bytes"] == pytest.approx(iops * 4096, abs=1)


def test_group_reporting_divides_by_the_time_of_all_its_sections():
    # fio 3.33 itself prints 400 for these: all I/Os by the longest of the two.
    job = job_of({}, {"wait_for": "a"}, group_reporting=True, **TIMED)
    assert summarize(report_of(job, (6, 6), merged=True), job)["read"]["iops"] == pytest.approx(200)
    together = job_of({}, {}, group_reporting=True, **TIMED)
    assert summarize(report_of(together, (6, 6), merged=True), together)["read"]["iops"] == pytest.approx(400)


def test_groups_that_run_at_the_same_time_are_added():
    # new_group makes another group of the same time.
    job = job_of({}, {"new_group": True}, **TIMED)
    found = summarize(report_of(job, (6, 6), groups=[0, 1]), job)["read"]
    assert (found["iops"], found["at_once"]) == (400, True)
    unequal = summarize(report_of(job, (2, 6), groups=[0, 1]), job)["read"]
    assert (unequal["iops"], unequal["at_once"]) == (pytest.approx(1600 / 6), False)


def test_reads_between_writes_have_no_rate():
    # fio 3.33: 1024 reads in 5 ms, although they were spread over 3.4 s of writing.
    job = read_job({"rw": "write", "verify": "pattern", "verify_pattern": "0xaa", "verify_backlog": 64}, "a")
    rows = {name: {"io_bytes": 4 << 20, "total_ios": 1024, "runtime": ms, "iops": 1024e3 / ms} for name, ms in (("read", 5), ("write", 3413))}
    found = summarize(parse(json.dumps({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "groupid": 0, "error": 0, "elapsed": 4, **rows}]})), job)
    assert (found["read"]["iops"], found["read"]["bw_bytes"], found["read"]["total_ios"]) == (None, None, 1024)
    assert found["write"]["iops"] == pytest.approx(300, rel=0.01)


def test_stonewall_separates_rates():
    job = job_of({}, {"stonewall": True}, **TIMED)
    found = summarize(report_of(job, (6, 6), groups=[0, 1]), job)["read"]
    assert (found["iops"], found["total_ios"], found["runtime_ms"]) == (None, 2400, 12_000)


@pytest.mark.parametrize("wait", [{"stonewall": True}, {"wait_for": "a"}])
def test_each_direction_begins_with_its_first_job(wait):
    job = job_of({"rw": "write"}, wait, time_based=True, runtime=11)
    found = summarize(report_of(job, (11, 11), groups=[0, int("stonewall" in wait)]), job)
    assert [(found[name]["iops"], found[name]["began_ms"], found[name]["runtime_ms"]) for name in ("write", "read")] == [
        (200, 0, 11_000),
        (200, 11_000, 11_000),
    ]


def test_window_covers_everything_that_one_waits_for():
    job = job_of({}, {"wait_for": "a"}, **TIMED)
    output = report_of(job, (6, 6))
    # The last of its threads was seen to begin after 6 s.
    assert activity.window(output, 1020.0, 1006.0, job) == (1000.0, 1012.0)
    assert activity.window(output, 1020.0, None, job) == (1008.0, 1020.0)
    ramped = job_of({"ramp_time": 2}, {"ramp_time": 2}, **TIMED)
    assert activity.window(report_of(ramped, (6, 6)), 1020.0, 1000.0, ramped) == (1002.0, 1008.0)


def test_sections_are_reported_under_the_first_of_their_group():
    job = job_of({}, {}, {"stonewall": True}, group_reporting=True)
    assert sections.reported_as(job.sections) == {"a": "a", "b": "a", "c": "c"}
    assert sections.reported_as(job_of({}, {"new_group": True}, group_reporting=True).sections) == {"a": "a", "b": "b"}
    assert sections.reported_as(job_of({}, {}).sections) == {"a": "a", "b": "b"}


def test_options_that_shape_logs_are_left_out_with_a_note():
    plain = job_of({}, **TIMED)
    job = job_of({"log_avg_msec": 100, "log_compression": "64k"}, bwavgtime=2000, **TIMED)
    assert (job.section_lines, job.global_lines, job.workload_sha256) == (plain.section_lines, plain.global_lines, plain.workload_sha256)
    assert job.notes == (
        "bwavgtime, log_avg_msec, log_compression of the job was left out: the collection records the logs of which it makes its series itself.",
    )
    assert plain.notes == ()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
@pytest.mark.parametrize(("sections", "iops"), [("[a]\n[b]\nwait_for=a\n", 100), ("[a]\n[b]\nstartdelay=1\n", 400 / 3), ("[a]\n[b]\n", 200)])
def test_real_rates(tmp_path, sections, iops):
    (tmp_path / "data").write_bytes(b"\0" * 2**20)
    common = {"rw": "randread", "bs": "4k", "ioengine": "psync", "rate_iops": 100, "time_based": True, "runtime": 2}
    text = "[global]\nfilename=data\nsize=1m\n" + "\n".join(name if value is True else f"{name}={value}" for name, value in common.items())
    (tmp_path / "job.fio").write_text(f"{text}\n{sections}")
    argv = ["fio", "--output-format=json+", "--output=fio.json", "job.fio"]
    subprocess.run(argv, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    own = {"b": dict(line.split("=") for line in sections.splitlines() if "=" in line)}
    job = job_of({}, own["b"], **common)
    found = summarize(parse((tmp_path / "fio.json").read_text()), job)["read"]
    assert found["iops"] == pytest.approx(iops, rel=0.1)
