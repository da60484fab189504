# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O: what is accepted of one, what fio gets instead of it, and what the fio of this machine does with that."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import struct
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import extent, replay
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost, read_cell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover import checks
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.checks import discards
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cautions import compare_pace
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground import measure, order_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.versions import check_version
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.estimate import estimate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import CampaignTarget
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import _requested
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import Stack

needs_fio = pytest.mark.skipif(shutil.which("fio") is None, reason="needs fio")
KIB = 1024
#: As fio 3.33 records it.
TIMED = """fio version 3 iolog
20 /dev/sdq add
202 /dev/sdq open
1000 /dev/sdq write 8192 4096
3000 /dev/sdq read 65536 8192
2000 /dev/sdq sync 65536 0
9000 /dev/sdq write 0 4096
9100 /dev/sdq close
"""
#: As fio before 3.31 records it.
UNTIMED = "fio version 2 iolog\n/dev/sdq add\n/dev/sdq open\n/dev/sdq write 8192 4096\n/dev/sdq datasync 8192 0\n/dev/sdq close\n"
DEVICE = TargetFacts(target=GuardTarget("/dev/vg0/scratch"), path="/dev/dm-3", size=10**9)


def read(log, **options):
    return fio_job.read_job({"read_iolog": log, **options}, "c")


def replayed(log, **options):
    (found,) = read(log, **options).replays.values()
    return found


def test_fio_gets_a_log_of_the_target_only():
    log = replayed(TIMED)
    assert log.text == (
        "fio version 3 iolog\n1 target add\n1 target open\n981 target write 8192 4096\n2981 target read 65536 8192\n2981 target sync 0 0\n"
        "8981 target write 0 4096\n8981 target close\n"
    )
    assert (log.directions, log.end, log.ios, log.seconds, log.block_size) == ({"read", "write"}, 73728, 3, 0.00898, None)
    assert log.moved == {"read": 8192, "write": 8192, "trim": 0}
    text = fio_job.render(read(TIMED), DEVICE)
    assert f"\nread_iolog={log.sha256}.iolog\n" in text
    assert "\nreplay_redirect=/dev/dm-3\n" in text
    assert "sdq" not in text + log.text
    # Without it fio 3.33 counts pauses as latency: of 300 I/Os, one every 10 ms at a depth of 64, p50 was 690 ms, and 0.09 ms with it.
    assert "\niodepth_batch_complete_min=0\n" in text and "\nclocksource=clock_gettime\n" in text
    assert not {"iodepth_batch_complete_min=0", "clocksource=clock_gettime"} & set(fio_job.render(read(UNTIMED), DEVICE).splitlines())
    # fio 2 does not redirect what a log of version 2 or 3 names.
    assert {line.split()[1] for line in replay.on_target(log.text.encode(), "/dev/dm-3").splitlines()[1:]} == {b"/dev/dm-3"}
    for path in ("/dev/a b", "/dev/" + "x" * 256, "/dev/a\n/dev/b", ""):
        with pytest.raises(BadInput, match="contains blanks or is too long for a log of I/O"):
            replay.on_target(log.text.encode(), path)


def test_log_without_times_is_one_that_every_fio_reads():
    log = replayed(UNTIMED)
    assert log.text == "fio version 2 iolog\ntarget add\ntarget open\ntarget write 8192 4096\ntarget datasync 0 0\ntarget close\n"
    assert (log.seconds, log.block_size) == (None, 4096)
    assert replayed(TIMED, replay_no_stall=True).text.startswith("fio version 2 iolog\n")
    check_version(Version(3, 28), [read(UNTIMED), read(TIMED, replay_no_stall=1)])
    with pytest.raises(StorageError, match=r"too old for the times in the log .* 3\.31 or newer is needed, or replay_no_stall"):
        check_version(Version(3, 28), [read(TIMED)])


def test_offsets_and_times_are_changed_before_fio_reads_the_log():
    log = replayed(TIMED, replay_scale=16, replay_align="4k", replay_skip="sync", replay_time_scale=200)
    assert log.text.splitlines()[3:-1] == ["491 target write 0 4096", "1491 target read 4096 8192", "4491 target write 0 4096"]
    assert log.end == 12288
    assert set(read(TIMED, replay_scale=16).sections[0].options) == {"read_iolog"}, "fio would do it a second time"


def test_log_decides_whether_the_job_writes_and_discards():
    reads = "fio version 2 iolog\nx open\nx read 0 4096\nx sync 0 0\n"
    trims = "fio version 2 iolog\nx trim 0 4096\n"
    assert (read(reads).writes, read(trims).writes, read(UNTIMED).writes) == (False, True, True)
    assert (discards(read(trims)), discards(read(UNTIMED)), discards(read(trims + "x read 0 512\n", replay_skip="trim"))) == (True, False, False)
    assert read(UNTIMED).block_size == 4096
    mixed = fio_job.read_job({"jobs": [{"name": "a", "rw": "read", "bs": "4k"}, {"name": "b", "read_iolog": UNTIMED}]}, "c")
    assert mixed.writes
    assert [section.replay is None for section in mixed.sections] == [True, False]


def test_another_log_is_another_workload():
    assert read(UNTIMED).workload_sha256 != read(UNTIMED.replace("8192", "4096")).workload_sha256
    assert read(UNTIMED).workload_sha256 == read(UNTIMED.replace("/dev/sdq", "/dev/sdr")).workload_sha256, "where it was recorded does not matter"
    requested = _requested({"read_iolog": replayed(UNTIMED).file_name, "iodepth": "4"})
    assert requested["rw"] == f"replay {replayed(UNTIMED).sha256[:12]}"
    assert (requested["bs"], requested["bs_bytes"], requested["iodepth"]) == ("recorded", None, 4)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("x open\n/dev/sda open\nx write 0 512", "line 3 of the log is of another file"),
        ("x write 0 512\nx wait 5000 0", "line 3 of the log .* is a wait"),
        ("x unlink", "action 'unlink'"),
        ("x write 0", "is not 'FILE ACTION OFFSET LENGTH'"),
        ("x write 0 512 1", "is not 'FILE ACTION"),
        ("x y write 0 512", "is not 'FILE ACTION"),
        ("x write", "action 'write'"),
        ("x open 0 512", "action 'open'"),
        ("x write -512 512", "offset or a length that is not a whole number"),
        ("x write 0x200 512", "offset or a length that is not a whole number"),
        ("x write 0 99999999999999999999", "offset or a length that is not a whole number"),
        ("x write 0 0", "has a length of 0"),
        ("x write 0 4294967808", "has a length of 4294967808"),
        ("x write 9223372036854775807 512", "larger than any device"),
        ("x open\nx sync 0 0", "the log has no I/O"),
        ("", "the log has no I/O"),
    ],
)
def test_lines_that_fio_would_interpret_in_another_way_are_rejected(lines, words):
    with pytest.raises(BadInput, match=words):
        read(f"fio version 2 iolog\n{lines}\n")


@pytest.mark.parametrize("log", ["/tmp/oltp.log", "", "fio version 4 iolog\n", "fio iolog\n", 5, None, ["fio version 2 iolog"], {"a": 1}, "x write 0 512\n"])
def test_anything_but_the_content_of_a_log_is_rejected(log):
    with pytest.raises(BadInput, match=r"must be the content of a log that fio recorded .* use .*lookup"):
        read(log)


def test_binary_blktrace_is_rejected():
    trace = struct.pack("<IIQQIIIIIHH", 0x65617407, 1, 0, 8, 4096, (2 << 16) | 1, 1, 8 << 20, 0, 0, 0)
    with pytest.raises(BadInput, match="binary trace of blktrace is not supported"):
        read(trace.decode(errors="replace"))


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("replay_redirect", "/dev/sda", "the target defines the file"),
        ("merge_blktrace_file", "x", "takes one log"),
        ("read_iolog_chunked", 1, "takes one log"),
        ("replay_scale", 0, "whole number from 1"),
        ("replay_scale", "2 4", "whole number from 1"),
        ("replay_align", 3000, "power of two"),
        ("replay_align", "lots", "is not a size"),
        ("replay_skip", "read,wait", "it has 'wait'"),
        ("replay_skip", "read,write", "no I/O that is left"),
        ("replay_no_stall", "perhaps", "true or false"),
        ("replay_time_scale", 0, "whole number from 1"),
        ("rw", "randwrite", "rw is not supported together with read_iolog"),
        ("trim_percentage", 50, "trim_percentage is not supported together"),
        ("numjobs", 2, "numjobs is not supported together"),
        ("loops", 2, "loops is not supported together"),
        ("offset", "1g", "offset is not supported together"),
        ("verify", "crc32c", "verify is not supported together"),
        ("ioengine", "mmap", "ioengine=mmap is not supported together"),
        ("ioengine", "sg", "ioengine=sg is not supported together"),
    ],
)
def test_options_that_would_change_what_was_checked_are_rejected(option, value, words):
    with pytest.raises(BadInput, match=words):
        read(TIMED, **{option: value})


def test_replay_options_without_a_log_in_the_same_section_are_rejected():
    with pytest.raises(BadInput, match="belongs next to read_iolog in the same section"):
        fio_job.read_job({"rw": "read", "replay_scale": 2}, "c")
    with pytest.raises(BadInput, match="belongs next to read_iolog in the same section"):
        fio_job.read_job({"global": {"read_iolog": TIMED}, "jobs": [{"name": "a", "replay_scale": 2}]}, "c")


def test_logs_without_end_are_rejected():
    with pytest.raises(BadInput, match="more than 100000 I/Os"):
        read("fio version 2 iolog\n" + "x read 0 512\n" * 100_001)
    with pytest.raises(BadInput, match="more than 7 days: set replay_no_stall"):
        read(f"fio version 3 iolog\n1 x read 0 512\n{8 * 86400 * 10**6} x read 0 512\n")
    bomb = replay.packed({"read_iolog": "fio version 2 iolog\n" + " " * (replay.MOST_TEXT + 1)})
    assert len(bomb["read_iolog"]) < 100 * KIB
    with pytest.raises(BadInput, match="larger than 16 MiB"):
        fio_job.read_job(bomb, "c")


def test_replay_that_falls_behind_is_noted():
    job = read(TIMED.replace("9000 ", "20000000 "))
    assert compare_pace(job, 22) == [] == compare_pace(read(UNTIMED), 22)
    assert compare_pace(job, 23)[0].startswith("The log took 23 seconds instead of 20: the target or fio fell behind")


def test_packed_log_is_the_same_job():
    jobs = ({"read_iolog": TIMED}, {"global": {"read_iolog": TIMED}, "jobs": [{"name": "a"}]}, {"jobs": [{"name": "a", "read_iolog": TIMED}]})
    for job in jobs:
        packed = replay.packed(job)
        assert "write 8192" not in str(packed)
        assert fio_job.read_job(packed, "c") == fio_job.read_job(job, "c")
        assert replay.packed(packed) == packed
    assert replay.packed("rw=read") == "rw=read", "what is no job is refused elsewhere"
    with pytest.raises(BadInput, match="packed log is damaged"):
        read(replay.packed({"read_iolog": TIMED})["read_iolog"][:-9])


def test_log_behind_the_size_of_its_target_is_rejected():
    fio_job.check_target(read(TIMED), "file", 73728, "c")
    with pytest.raises(BadInput, match="with read_iolog the job ends at byte 73728, but the target has a size of 73727"):
        fio_job.check_target(read(TIMED), "device", 73727, "c")
    assert extent.end_of_io(read(TIMED), size=None, device_size=4096) == 73728, "fio does not drop such an I/O"
    assert not extent.covers_target(read(TIMED), None)
    for kind in ("device", "file"):
        cell = read_cell("v", {"name": "c", "target": {kind: "/dev/sdb"}, "job": {"read_iolog": TIMED}})
        checks.require_log_fits(TargetFacts(target=cell.target, path="/dev/sdb", size=73728), [cell])
        with pytest.raises(Refused, match=r"will not replay the log of c on /dev/sdb: it ends at byte 73728, and the target at byte 73727"):
            checks.require_log_fits(TargetFacts(target=cell.target, path="/dev/sdb", size=73727), [cell])


def test_suite_and_estimate_of_a_replay():
    suite = read_suite("s", {"s": {"options": {"ioengine": "libaio", "direct": 1}, "cells": [{"name": "oltp", "job": {"read_iolog": TIMED}}]}})
    (cell,) = suite.cells
    assert cell.job["read_iolog"].startswith("packed:")
    assert not cell.discards
    found = estimate(cell.checked_job(), CampaignTarget("", "/dev/sdb", "device", {}, None, write_rate=1e9, write_iops=1e6), "oltp")
    assert (found.written, found.exact, found.seconds) == (8192, True, 0.00898)
    slow = estimate(cell.checked_job(), CampaignTarget("", "/dev/sdb", "device", {}, None, write_rate=1e9, write_iops=3), "oltp")
    assert slow.seconds == pytest.approx(1.0)
    with pytest.raises(BadInput, match="must set 'runtime' and 'time_based'"):
        read_suite("s", {"s": {"cells": [{"name": "oltp", "job": {"read_iolog": TIMED}, "rounds": {}}]}})


# ---------------------------------------------------------------------------------------------------------------------
# The fio of this machine


def run_order(tmp_path, target, job):
    row = {"name": "oltp", "repeat": 1, "target": target, "job": job}
    order = order_of({"campaign": "c1", "variant": "v", "host": "here", "cells": [row], "series": False})
    (found,) = measure(order, Spool(tmp_path / "spool", "c1"), MeasuredHost(Runner(), lambda _devices: Stack("writeback")), check_mode=False)["cells"]
    return found, tmp_path / "spool/c1/v/oltp/1"


@needs_fio
@pytest.mark.parametrize("engine", ["psync", "libaio"])
def test_recorded_log_is_replayed_on_the_target_only(tmp_path, engine):
    recorded, log = tmp_path / "recorded", tmp_path / "oltp.log"
    options = ["--name=r", f"--filename={recorded}", "--size=256k", "--rw=randrw", "--bs=4k", "--fsync=8", f"--write_iolog={log}"]
    subprocess.run(["fio", *options], check=True, capture_output=True, cwd=tmp_path)
    before = recorded.stat().st_mtime_ns
    row, place = run_order(tmp_path, {"file": str(tmp_path / "target"), "size": 256 * KIB}, {"read_iolog": log.read_text(), "ioengine": engine, "iodepth": 4})
    assert row["state"] == "ok", row["reason"]
    assert row["summary"]["read"]["total_ios"] + row["summary"]["write"]["total_ios"] == 64
    assert recorded.stat().st_mtime_ns == before, "the file that the log names is not touched"
    assert (tmp_path / "target").stat().st_size == 256 * KIB
    assert (place / "job.fio").read_text().count(hashlib.sha256(gzip.decompress((place / "replay_1.log.gz").read_bytes())).hexdigest()) == 1
    sent = gzip.decompress((place / "replay_1.log.gz").read_bytes()).decode()
    assert sent.count(" target ") == len(log.read_text().splitlines()) - 1
    assert str(recorded) not in sent + (place / "job.fio").read_text()


@needs_fio
@pytest.mark.parametrize("redirects", [True, False])
def test_data_lands_where_the_log_says_and_nowhere_else(tmp_path, monkeypatch, redirects):
    """Also with a fio that does not redirect, as fio 2."""
    render = fio_job.render
    without = "replay_redirect=/proc"
    monkeypatch.setattr(
        fio_job, "render", lambda *these, **those: render(*these, **those) if redirects else render(*these, **those).replace(without, "; /proc")
    )
    log = "fio version 3 iolog\n5 /dev/sda open\n5 /dev/sda write 8192 4096\n150005 /dev/sda write 65536 8192\n"
    row, _place = run_order(tmp_path, {"file": str(tmp_path / "t"), "size": 128 * KIB}, {"read_iolog": log})
    assert row["state"] == "ok", row["reason"]
    content = (tmp_path / "t").read_bytes()
    written = [number for number in range(32) if content[number * 4096 : number * 4096 + 4096].strip(b"\0")]
    assert written == [2, 16, 17]
    assert row["summary"]["write"]["runtime_ms"] >= 140, "fio waits as recorded"


@needs_fio
@pytest.mark.parametrize(
    ("lines", "error", "words"),
    [
        ("x write 131072 4096", BadInput, "with read_iolog the job ends at byte 135168"),
        ("x write 0 512\nx trim 0 4096", Refused, "it is a file, and fio discards only on block devices"),
    ],
)
def test_logs_that_would_leave_the_target_run_nothing(tmp_path, lines, error, words):
    with pytest.raises(error, match=words):
        run_order(tmp_path, {"file": str(tmp_path / "t"), "size": 128 * KIB}, {"read_iolog": f"fio version 2 iolog\nx open\n{lines}\n"})
    assert not (tmp_path / "t").exists()


@needs_fio
def test_existing_file_is_not_made_longer(tmp_path):
    (tmp_path / "t").write_bytes(b"x" * 8192)
    with pytest.raises(Refused, match="it ends at byte 12288, and the target at byte 8192"):
        run_order(tmp_path, {"file": str(tmp_path / "t")}, {"read_iolog": "fio version 2 iolog\nx open\nx read 8192 4096\n"})
    assert (tmp_path / "t").read_bytes() == b"x" * 8192


@needs_fio
def test_log_exchanged_between_check_and_run_fails_the_cell(tmp_path, monkeypatch):
    """Only the measuring user can write there; what fio did is compared with what was checked all the same."""
    monkeypatch.setattr(replay, "on_target", lambda _lines, path: f"fio version 2 iolog\n{path} add\n{path} open\n{path} write 0 4096\n".encode())
    row, _place = run_order(tmp_path, {"file": str(tmp_path / "t"), "size": 128 * KIB}, {"read_iolog": TIMED, "replay_skip": "read"})
    assert (row["state"], row["summary"]) == ("failed", None)
    assert row["reason"] == "The job oltp did 1 of the 2 I/Os of its log."
