# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision, Run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.process import FioProcess
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


def a_run(report, rc=0, stderr="", stdout="", stopped_after=None):
    return Run(Completed(("fio",), rc, stdout, stderr), report.encode(), 1.0, 2.0, stopped_after)


def decide(job, run):
    return fio_run.decide(read_job(job, "t1"), run, fio_run.read_output(run))


@pytest.fixture
def of_sample(shared_samples):
    """The decision on a captured run: its report, both streams and its exit status."""

    def of(name, job, version="v3.33"):
        base = shared_samples / "fio" / version / name
        texts = {end: base.with_name(f"{base.name}.{end}") for end in ("json", "stdout", "stderr", "rc")}
        read = {end: path.read_text(errors="replace") if path.exists() else "" for end, path in texts.items()}
        rc = int(read["rc"].split("=")[-1])
        return decide(job, a_run(read["json"], rc if rc < 129 else 128 - rc, read["stderr"], read["stdout"]))

    return of


WRITE = {"rw": "randwrite", "time_based": True, "runtime": 3}
READ = {"rw": "randread", "time_based": True, "runtime": 3}


def named(name, job):
    return {"jobs": [{"name": name, **job}]}


@pytest.mark.parametrize("version", ["v3.16", "v3.33", "v3.42"])
@pytest.mark.parametrize(
    ("name", "job", "state", "words"),
    [
        ("01-single-json", WRITE, "ok", ""),
        ("02-single-jsonplus", WRITE, "ok", ""),
        ("04-nogroup-numjobs4", READ, "ok", ""),
        ("05-randrw70", named("mix", {**READ, "rw": "randrw"}), "ok", ""),
        ("06-fdatasync1", named("sync1", WRITE), "ok", ""),
        ("11-status-interval", named("si", READ), "ok", ""),
        ("14-ramp", named("rp", READ), "ok", ""),
        ("01-single-json", {**WRITE, "runtime": 30}, "interrupted", "ran 3.00"),
        ("01-single-json", READ, "failed", "did no read"),
        ("05-randrw70", named("mix", {**READ, "rw": "randtrim"}), "failed", "did no trim"),
        ("01-single-json", named("other", WRITE), "failed", "other is not in fio's report"),
        ("08-steadystate", named("ss", {**READ, "runtime": 30}), "ok", ""),
        ("08b-steadystate-miss", named("ss", {**READ, "runtime": 6}), "not_steady", "steady state was not reached"),
        ("10c-max-latency-abort", named("lt", READ), "failed", "exit status 1: lt: error 110"),
        ("21-missing-dev", named("e", READ), "failed", "error 22"),
        ("22-enospc", named("e", {"rw": "write"}), "failed", "No space left on device"),
        ("23-eperm", named("e", READ), "failed", "exit status 1"),
        ("24-bad-option", named("e", READ), "failed", "unrecognized option '--nosuchopt=1'"),
        ("25-bad-engine", named("e", READ), "failed", "engine nope not loadable"),
        ("30-sigint", READ, "interrupted", "stopped by a signal"),
        ("31-sigterm", READ, "interrupted", "stopped by a signal"),
        ("32-sigkill", READ, "interrupted", "signal 9"),
        ("33-sigkill-status", READ, "interrupted", "signal 9"),
        ("41-verify-fail", named("v", {"rw": "randread"}), "failed", "error 84"),
    ],
)
def test_decisions_on_captured_runs(of_sample, version, name, job, state, words):
    found = of_sample(name, job, version)
    assert found.state == state, found
    assert words in found.reason


TARGET = {"rw": "randread", "iodepth": 32, "latency_target": "5ms", "latency_window": "500ms", "latency_percentile": 99, "time_based": True, "runtime": 6}


@pytest.mark.parametrize("version", ["v3.33", "v3.42"])
def test_captured_run_ended_early_by_met_latency_target_is_ok(of_sample, version):
    found = of_sample("10-latency-target", named("lt", TARGET), version)
    assert (found.state, found.reason) == ("ok", "")
    (note,) = found.notes
    assert "met its latency_target with a queue depth of 32" in note
    assert "after 0.501 of 6 seconds" in note


@pytest.mark.parametrize("version", ["v3.33", "v3.42"])
@pytest.mark.parametrize(
    "changes",
    [
        # Nothing in the job ends it early.
        {"latency_target": None, "latency_window": None, "latency_percentile": None},
        {"latency_run": 1},
        # The report does not show what was asked for: too slow, or not a whole window.
        {"latency_target": "300us"},
        {"latency_window": "2s"},
        {"latency_target": "1us"},
    ],
)
def test_early_end_without_met_target_is_an_interruption(of_sample, version, changes):
    job = {name: value for name, value in {**TARGET, **changes}.items() if value is not None}
    found = of_sample("10-latency-target", named("lt", job), version)
    assert found.state == "interrupted"
    assert "ran 0.501 of 6 seconds" in found.reason


@pytest.mark.parametrize("version", ["v3.16", "v3.33", "v3.42"])
def test_missed_latency_target_is_ok_with_a_note(of_sample, version):
    found = of_sample("10b-latency-target-miss", named("lt", {**TARGET, "latency_target": "1us", "runtime": 4}), version)
    assert (found.state, found.reason) == ("ok", "")
    assert "without a queue depth that meets its latency_target" in found.notes[0]
    # 3.16 never left depth 1, although every I/O was fast enough.
    assert of_sample("10-latency-target", named("lt", TARGET), "v3.16").notes


def ended_early(latency, *, window="500ms", runtime=501, percentile=99, **options):
    """A job that was to run 6 seconds and ended after one window, with these latencies of 1,000 I/Os."""
    job = {**TARGET, "latency_window": window, "latency_percentile": percentile, **options}
    entry = {"jobname": "lt", "error": 0, "elapsed": 4, "latency_depth": 8, "read": {"io_bytes": 4096000, "total_ios": 1000, "runtime": runtime, **latency}}
    return decide(named("lt", job), a_run(json.dumps({"fio version": "fio-3.33", "jobs": [entry]})))


def bins(**counts):
    return {"max": 9_000_000, "min": 1, "mean": 5.0, "stddev": 1.0, "N": 1000, "bins": {name[1:]: count for name, count in counts.items()}}


@pytest.mark.parametrize(
    ("latency", "options", "state"),
    [
        ({"clat_ns": bins(n300000=990, n9000000=10)}, {}, "ok"),
        ({"clat_ns": bins(n300000=989, n9000000=11)}, {}, "interrupted"),
        ({"clat_ns": bins(n300000=989, n9000000=11)}, {"percentile": "95.5"}, "ok"),
        # What the application waits counts where fio gives its distribution.
        ({"lat_ns": bins(n300000=900, n9000000=100), "clat_ns": bins(n300000=1000)}, {}, "interrupted"),
        # Without bins: percentiles, or the longest of all.
        ({"clat_ns": {**bins(), "percentile": {"50.000000": 1, "99.000000": 4_900_000, "99.900000": 9_000_000}}}, {}, "ok"),
        ({"clat_ns": {**bins(), "percentile": {"50.000000": 1, "99.000000": 5_900_000}}}, {}, "interrupted"),
        ({"clat_ns": {**bins(), "percentile": {"50.000000": 1}}}, {}, "interrupted"),
        ({"lat_ns": {**bins(), "max": 4_999_999}}, {"percentile": 100}, "ok"),
        ({"lat_ns": {**bins(), "max": 5_000_001}, "clat_ns": {**bins(), "max": 4_999_999}}, {"percentile": 100}, "interrupted"),
        ({"lat_ns": bins(), "clat_ns": {**bins(), "max": 4_999_999}}, {"percentile": 99}, "ok"),
        ({}, {}, "interrupted"),
        ({"clat_ns": bins(n300000=1000)}, {"window": "2s"}, "interrupted"),
        ({"clat_ns": bins(n300000=1000)}, {"window": "500000"}, "ok"),
        ({"clat_ns": bins(n300000=1000)}, {"latency_target": "5000"}, "ok"),
        ({"clat_ns": bins(n300000=1000)}, {"latency_target": "5msec"}, "ok"),
        ({"clat_ns": bins(n300000=1000)}, {"latency_target": "200"}, "interrupted"),
        ({"clat_ns": bins(n300000=1000)}, {"latency_run": 0}, "ok"),
        ({"clat_ns": bins(n300000=1000)}, {"latency_run": 1}, "interrupted"),
    ],
)
def test_measured_latency_decides_whether_the_target_was_met(latency, options, state):
    found = ended_early(latency, **options)
    assert found.state == state, found
    assert bool(found.notes) is (state == "ok")


def test_job_possibly_ended_by_another_is_interrupted():
    good = {"clat_ns": bins(n300000=1000)}
    assert ended_early(good, numjobs=4).state == "ok"
    assert ended_early(good, exitall=True).state == "ok"
    assert ended_early(good, exitall=True, numjobs=4).state == "interrupted"


def test_both_directions_count_for_latency_target():
    def direction(late):
        return {"io_bytes": 4096000, "total_ios": 1000, "runtime": 501, "clat_ns": bins(n300000=1000 - late, n9000000=late)}

    def mixed(reads, writes):
        entry = {"jobname": "lt", "error": 0, "latency_depth": 8, "read": direction(reads), "write": direction(writes)}
        return decide(named("lt", {**TARGET, "rw": "randrw"}), a_run(json.dumps({"fio version": "fio-3.33", "jobs": [entry]}))).state

    assert mixed(10, 10) == mixed(20, 0) == "ok"
    assert mixed(21, 0) == mixed(0, 21) == "interrupted"


@pytest.mark.parametrize("version", ["v3.33", "v3.42"])
def test_mounted_target_with_exit_status_0_is_failed(of_sample, version):
    found = of_sample("72-mounted", named("mw", {"rw": "randwrite"}), version)
    assert found.state == "failed"
    assert "appears mounted" in found.reason


def test_failure_of_one_of_two_jobs_is_reported(of_sample):
    both = {"jobs": [{"name": "good", **READ}, {"name": "bad", "rw": "randread"}]}
    assert "bad: error 20" in of_sample("26b-one-of-two-fails", both).reason


REPORT = """{"fio version": "fio-3.33", "jobs": [{"jobname": "t1", "groupid": 0, "error": 0, "elapsed": 3,
"write": {"io_bytes": 4096, "total_ios": 1, "runtime": 3000, "iops": 1, "bw_bytes": 1}}]}
"""


def test_successful_run_is_ok():
    assert decide(WRITE, a_run(REPORT)) == Decision("ok")


@pytest.mark.parametrize("runtime", ["-3000", "1e999", "18446744073709551615"])
def test_run_with_a_damaged_run_time_lasted_as_long_as_its_process(runtime):
    assert decide(WRITE, a_run(REPORT.replace('"runtime": 3000', f'"runtime": {runtime}'))) == Decision("ok")
    harmless = "note: both iodepth >= 1 and synchronous I/O engine are selected, queue depth will be capped at 1\n"
    assert decide(WRITE, a_run(harmless + REPORT)).state == "ok"
    assert decide(WRITE, a_run(REPORT, stdout="t1: Laying out IO file (1 file / 64MiB)\n")).state == "ok"


@pytest.mark.parametrize(
    ("run", "state", "words"),
    [
        (a_run(REPORT, stderr="fio: io_u error on file /dev/x: Input/output error: write offset=0, buflen=4096\n"), "failed", "io_u error on file /dev/x"),
        (a_run("verify: bad magic header 0, wanted acca at file /dev/x offset 0, length 4096\n" + REPORT), "failed", "bad magic header"),
        (a_run(REPORT, stderr="fio: pid=77, got signal=11\n"), "failed", "got signal=11"),
        (a_run(REPORT, stderr="fio: job 't1' hasn't exited in 300 seconds, it appears to be stuck. Doing forceful exit of this job.\n"), "failed", "stuck"),
        (a_run(REPORT, stderr="fio: /dev/x appears mounted, and 'allow_mounted_write' isn't set. Aborting.\n"), "failed", "appears mounted"),
        (a_run(REPORT, rc=1), "failed", "exit status 1"),
        (a_run(REPORT, rc=-11), "failed", "signal 11"),
        (a_run(REPORT, rc=-9), "interrupted", "signal 9"),
        (a_run(REPORT, rc=128), "interrupted", "stopped by a signal"),
        (a_run(REPORT, rc=128, stopped_after=9.0), "interrupted", "had not ended after 9 seconds"),
        (a_run(""), "failed", "wrote no report"),
        (a_run(REPORT[:80]), "failed", "breaks off"),
        (a_run(REPORT + REPORT[:80]), "failed", "breaks off"),
        (a_run('{"a": 1}\n'), "failed", "not one of fio's"),
        (a_run('{"fio version": "fio-3.33", "jobs": 3}\n'), "failed", "not one of fio's"),
        (a_run('{"fio version": "fio-3.33", "jobs": []}\n'), "failed", "not in fio's report"),
        (a_run('{"fio version": "fio-3.33", "jobs": [{"jobname": "t1"}]}\n'), "failed", "did no write"),
        (a_run(REPORT.replace('"runtime": 3000', '"runtime": 2600')), "interrupted", "ran 2.6 of 3 seconds"),
        (a_run(REPORT.replace('"runtime": 3000, ', "").replace('"elapsed": 3', '"elapsed": 2')), "interrupted", "ran 2 of 3 seconds"),
        (a_run(REPORT.replace('"runtime": 3000, ', "").replace('"elapsed": 3,', "")), "interrupted", "does not show how long the job t1 ran"),
        (a_run(REPORT.replace('"total_ios": 1', '"total_ios": 0')), "failed", "did no write"),
    ],
)
def test_other_runs_are_not_ok(run, state, words):
    found = decide(WRITE, run)
    assert found.state == state
    assert words in found.reason


@pytest.mark.parametrize(
    "line",
    [
        "fio: something never seen",
        # Of good runs with fio 3.33.
        "fio: any use of blockalign= turns off randommap",
        "fio: multiple writers may overwrite blocks that belong to other jobs. This can cause verification failures.",
        "fio: norandommap given for variable block sizes. Verify limited.",
        "fio: file /dev/sdx exceeds 32-bit tausworthe random generator.",
        "CPU mask cannot bind CPUs (e.g. 64, 191) that are in different processor groups",
    ],
)
def test_line_that_is_not_known_to_be_bad_is_a_note_of_an_ok_run(line):
    for run in (a_run(REPORT, stderr=f"{line}\n"), a_run(f"{line}\n{REPORT}")):
        assert decide(WRITE, run) == Decision("ok", notes=(f"fio printed: {line}",))


def test_many_lines_of_fio_are_three_notes_and_their_number():
    found = decide(WRITE, a_run(REPORT, stderr="".join(f"line {number}\n" for number in range(20))))
    assert [found.notes[0], found.notes[-1], len(found.notes)] == ["fio printed: line 0", "fio printed 17 more lines: see fio.stderr.gz.", 4]


def test_group_reporting_makes_one_entry_of_several_sections():
    # fio 3.33 reports only the first of them by its name.
    jobs = {"global": {**READ, "group_reporting": True}, "jobs": [{"name": "a"}, {"name": "b", "wait_for": "a"}]}
    assert decide(jobs, a_run(report_of(a=3))) == Decision("ok")
    apart = {"global": {**READ, "group_reporting": True}, "jobs": [{"name": "a"}, {"name": "b", "stonewall": True}]}
    assert "b is not in fio's report" in decide(apart, a_run(report_of(a=3))).reason


def report_of(**seconds):
    direction = {"io_bytes": 4096, "total_ios": 1, "iops": 1, "bw_bytes": 1}
    jobs = [{"jobname": name, "groupid": 0, "error": 0, "elapsed": 9, "read": {**direction, "runtime": 1000 * value}} for name, value in seconds.items()]
    return json.dumps({"fio version": "fio-3.33", "jobs": jobs})


@pytest.mark.parametrize(
    ("jobs", "seconds", "state", "words"),
    [
        # fg ends when it has read its size, and bg with it.
        ([{"name": "bg", **READ, "runtime": 8}, {"name": "fg", "rw": "read", "exitall": True}], {"bg": 0.8, "fg": 0.8}, "ok", "bg ran 0.8 of 8 seconds"),
        ([{"name": "s", **READ, "runtime": 1}, {"name": "l", **READ, "exitall": True}], {"s": 1, "l": 1}, "ok", "l ran 1 of 3 seconds"),
        ([{"name": "s", **READ}, {"name": "l", **READ, "exitall": True}], {"s": 1, "l": 1}, "interrupted", "s ran 1 of 3 seconds"),
        ([{"name": "s", **READ}, {"name": "l", "rw": "read"}], {"s": 1, "l": 1}, "interrupted", "s ran 1 of 3 seconds"),
    ],
)
def test_exitall_ends_the_other_jobs_deliberately(jobs, seconds, state, words):
    found = decide({"jobs": jobs}, a_run(report_of(**seconds)))
    assert (found.state, words in " ".join((found.reason, *found.notes))) == (state, True), found


def test_exitall_names_the_job_that_ended_with_the_others():
    # a ended by itself in its phase before; c ended b.
    jobs = [{"name": "a", **READ}, {"name": "b", **READ, "runtime": 6, "stonewall": True}, {"name": "c", "rw": "read", "exitall": True}]
    found = decide({"jobs": jobs}, a_run(report_of(a=3, b=2, c=2)))
    assert found == Decision("ok", notes=("The job b ran 2 of 6 seconds. exitall ended it together with the job c.",))


def test_ninety_percent_of_runtime_is_sufficient():
    assert decide(WRITE, a_run(REPORT.replace('"runtime": 3000', '"runtime": 2700'))).state == "ok"


def test_missing_engine_is_reported():
    there = ScriptedRunner({("fio",): Reply(rc=1, stdout="IO engine psync has no options\n")})
    fio_run.check_engine(there, "psync")
    missing = ScriptedRunner({("fio",): Reply(rc=1, stdout="IO engine io_uring not found\n", stderr="fio: engine io_uring not loadable\n")})
    with pytest.raises(fio_run.EngineMissing, match="no ioengine io_uring"):
        fio_run.check_engine(missing, "io_uring")


def test_job_rejected_by_host_fio_is_reported():
    runner = ScriptedRunner({("fio", "--parse-only", "-"): Reply(rc=1, stderr="Bad option <iodeph=3>\nfio: job k dropped\n")})
    with pytest.raises(BadInput, match="k: fio on this host does not accept the job: Bad option <iodeph=3>"):
        fio_run.check_job_file(runner, "[k]\niodeph=3\n", "k")


def test_device_counters_are_read(tmp_path):
    place = tmp_path / "sys/class/block/sda"
    place.mkdir(parents=True)
    (place / "stat").write_text("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n")
    found = fio_run.read_device_stats(["sda", "gone"], tmp_path)
    assert list(found) == ["sda"]
    # Without requests the kernel counts no flushes, and prints them all the same.
    assert (found["sda"]["read_ios"], found["sda"]["write_sectors"], "flush_ios" in found["sda"]) == (1, 7, False)
    (place / "mq").mkdir()
    assert fio_run.read_device_stats(["sda"], tmp_path)["sda"]["flush_ios"] == 16


def test_only_leftover_processes_of_a_killed_run_are_ended():
    code = "import time; print('up', flush=True); time.sleep(60)"
    arguments = ([sys.executable, "-c", code, f"--output={name}"] for name in ("/run-1", "/run-11"))
    ours, other = (subprocess.Popen(one, start_new_session=True, stdout=subprocess.PIPE) for one in arguments)
    try:
        # Until a program runs, the kernel may have no arguments of it yet.
        assert {ours.stdout.readline(), other.stdout.readline()} == {b"up\n"}
        fio_run.end_leftovers("--output=/run-1", patience=0.5)
        assert ours.wait(timeout=10) == -9
        assert other.poll() is None
    finally:
        for process in (ours, other):
            process.kill()
            process.communicate()


# --- with the fio of this machine -------------------------------------------------------------------------------------

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")


@pytest.fixture
def real(tmp_path):
    (tmp_path / "data").write_bytes(b"\0" * 1024**2)

    def run(job, limit=60.0, read_only=False):
        job_file = tmp_path / "job.fio"
        job_file.write_text(f"[global]\nfilename={tmp_path / 'data'}\nsize=1m\n[t1]\n{job}")
        report = tmp_path / "fio.json"
        argv = fio_run.arguments(report, long=False, read_only=read_only, output_format="json+")
        process = FioProcess([Runner().find("fio"), *argv[1:], str(job_file)], report, limit)
        process.start()
        while not process.has_ended():
            time.sleep(0.02)
        return process.run(), fio_run.read_output(process.run())

    return run


@needs_fio
def test_real_run(real):
    run, output = real("rw=randwrite\nnumber_ios=100\n")
    assert fio_run.decide(read_job({"rw": "randwrite", "number_ios": 100}, "t1"), run, output) == Decision("ok")
    assert output.jobs[0].directions["write"].total_ios == 100
    assert parse(run.text).objects == 1


@needs_fio
def test_watchdog_stops_fio(real):
    run, output = real("rw=randread\ntime_based\nruntime=60\n", limit=1.0)
    assert run.stopped_after == 1.0
    assert fio_run.decide(read_job({"rw": "randread", "time_based": True, "runtime": 60}, "t1"), run, output).state == "interrupted"


@needs_fio
def test_fio_runs_read_only_for_reading_jobs(real):
    run, output = real("rw=randwrite\n", read_only=True)
    assert fio_run.decide(read_job({"rw": "randwrite"}, "t1"), run, output).state == "failed"
