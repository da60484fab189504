# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runners that really run: processes, signals and a fio that only takes its time."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive, started_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import spool as fio_spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control, measuring
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.measuring import Measuring
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import RequestedCell
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import JOB, RunnerRig, await_gone, is_running, step


@pytest.fixture
def rig(tmp_path, monkeypatch):
    rig = RunnerRig(tmp_path, monkeypatch)
    yield rig
    rig.end()


def states(rows):
    return [(row["name"], row["repeat"], row["state"], row["kept"]) for row in rows]


def test_order_is_run_by_a_separate_process(rig):
    result = rig.start(step(), step(repeat=2), step("r", job={**JOB, "rw": "randread"}))
    assert (result["changed"], result["attached"], result["fio_version"]) == (True, False, "fio-3.33")
    assert result["actions"][2] == "measure v/r/1 on /dev/sdb (reading)"
    assert result["runner"]["alive"] and result["runner"]["pid"] != os.getpid()
    status = rig.await_end()
    assert (status["state"], status["done"], status["failed"], status["message"]) == ("finished", 3, 0, "")
    packed = rig.packed()
    assert states(packed["cells"]) == [("w", 1, "ok", False), ("w", 2, "ok", False), ("r", 1, "ok", False)]
    assert packed["archive"]["size"] > 0 and packed["runner"]["alive"] is False
    # The runner has packed the same already, so that a controller that polls needs no call for it.
    assert status["archive"] == packed["archive"]
    assert packed["cells"][0]["summary"]["write"]["iops"] == 1000.0


def test_process_is_detached_from_the_task(rig):
    rig.behave(seconds=30)
    rig.start(step())
    rig.await_run(1)
    pid = rig.status["pid"]
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert int(fields[3]) != os.getsid(0), "a session of its own"
    assert int(fields[1]) != os.getpid(), "not a child of this process"
    opened = [os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")]
    assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)} == {"/dev/null"}
    assert not [name for name in opened if name.startswith("/dev/pts") or name == os.readlink("/proc/self/fd/0") != "/dev/null"]


def test_cell_metadata(rig):
    rig.finish(step())
    meta = rig.meta()
    assert (meta["state"], meta["step"], meta["segment"], meta["synchronised"], meta["asked_start"], meta["replaces"]) == ("ok", 0, 0, False, None, None)
    assert len(meta["measurement_sha256"]) == len(meta["stack_sha256"]) == 64
    assert meta["cpu"]["fio_usr"] == 10.0 and meta["behaviour_class"] == "libaio_sync_blocking"
    assert meta["io_start"] < meta["io_end"] and meta["order_sha256"] == rig.status["order_sha256"]
    stack = json.loads((rig.spool.place(CellKey("v", "w", 1)) / "stack.json").read_text())
    assert stack["before"]["read_at"] <= stack["after"]["read_at"] and stack["after"]["layers"]
    assert "device_series.log.gz" in meta["files"] and "device-stats.json" in meta["files"]


def test_missed_latency_target_is_noted_in_its_cell(rig):
    rig.finish(step(job={**JOB, "latency_target": "10us", "latency_window": "100ms"}))
    meta = rig.meta()
    assert meta["state"] == "ok"
    assert any("without a queue depth that meets its latency_target" in note for note in meta["notes"])


def test_same_order_attaches_and_another_order_is_refused(rig):
    rig.behave(seconds=30)
    rig.start(step(), step(repeat=2))
    rig.await_run(1)
    pid = rig.status["pid"]
    again = rig.start(step(done_as="0" * 64), step(repeat=2))
    assert (again["changed"], again["attached"], again["runner"]["pid"]) == (False, True, pid), "what is done does not make it another order"
    assert rig.start(step(), step(repeat=2), check_mode=True)["attached"]
    with pytest.raises(control.Busy, match=r"busy with another order of the campaign c1 \(measuring w, step 1 of 2\)"):
        rig.start(step())
    other = Spool(rig.spool.folder, "c2")
    order = dataclasses.replace(rig.order(step()), campaign="c2")
    with pytest.raises(control.Busy, match="busy with the campaign c1"):
        control.start(order, other, rig.host, check_mode=False)
    assert len(rig.runs) == 1


def test_run_beside_another_spool_user_is_refused(rig, monkeypatch):
    monkeypatch.setattr(fio_spool, "UNLOCKING", 0.0)
    with rig.spool.opened(), pytest.raises(StorageError, match="Another run is measuring on this host") as caught:
        rig.start(step())
    assert caught.value.kind == "spool" and not rig.runs


def test_check_mode_examines_and_starts_nothing(rig):
    result = rig.start(step(), check_mode=True)
    assert (result["changed"], result["runner"], result["actions"]) == (True, {}, ["measure v/w/1 on /dev/sdb (writing)"])
    assert not rig.spool.folder.exists()


@pytest.mark.parametrize("check_mode", [False, True])
def test_refusals_precede_the_process_start(rig, check_mode):
    rig.disks[1] = dataclasses.replace(rig.disks[1], mountpoints=("/srv",))
    with pytest.raises(Refused, match="/dev/sdc is mounted on /srv"):
        rig.start(step(), step("x", "/dev/sdc"), check_mode=check_mode)
    with pytest.raises(BadInput, match="option filename is refused"):
        rig.start(step(job={**JOB, "filename": "/dev/sda"}), check_mode=check_mode)
    assert not rig.runs and not rig.spool.folder.exists()


def test_device_used_since_examination_fails_the_task(rig, monkeypatch):
    def taken(*_arguments, **_options):
        raise Refused("/dev/sdb was free when it was examined and cannot be opened exclusively now: Device or resource busy.")

    monkeypatch.setattr("ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.runner.judge.claimed", taken)
    with pytest.raises(StorageError, match="cannot be opened exclusively now") as caught:
        rig.start(step())
    assert caught.value.kind == "refused" and not rig.runs


def test_stopped_runner_keeps_finished_cells(rig):
    rig.behave(seconds=30)
    rig.start(step(), step(repeat=2))
    run = rig.await_run(1)
    result = control.stop(rig.spool, check_mode=False)
    await_gone(run["pid"])
    assert result["changed"]
    assert states(result["cells"]) == [("w", 1, "interrupted", False), ("w", 2, "missing", False)]
    assert (result["runner"]["state"], result["runner"]["alive"]) == ("stopped", False)
    assert rig.meta()["reason"] == "The runner was stopped." and "fio.json.gz" in rig.meta()["files"], "what fio had is kept"
    assert control.stop(rig.spool, check_mode=False)["changed"] is False
    rig.behave()
    assert states(rig.finish(step(), step(repeat=2))) == [("w", 1, "ok", False), ("w", 2, "ok", False)]


def test_runner_that_does_not_stop_is_killed(rig):
    rig.behave(seconds=60, deaf=True)
    rig.start(step())
    run = rig.await_run(1)
    result = control.stop(rig.spool, check_mode=False, patience=0.3)
    await_gone(run["pid"])
    assert not is_alive(rig.status)
    assert (result["runner"]["state"], result["runner"]["message"]) == ("stopped", "The runner did not stop in time and was killed.")
    assert states(result["cells"]) == [("w", 1, "missing", False)]


def test_fio_of_a_killed_runner_ends_though_a_child_holds_its_lock_a_moment_longer(rig, monkeypatch):
    rig.behave(seconds=60, deaf=True)
    rig.start(step())
    run = rig.await_run(1)
    free, asked = Spool.is_free, []
    monkeypatch.setattr(Spool, "is_free", lambda spool: asked.append(spool) or (len(asked) > 3 and free(spool)))
    control.stop(rig.spool, check_mode=False, patience=0.3)
    assert not is_running(run["pid"]) and len(asked) == 4


def test_fio_ends_with_a_killed_runner_and_the_next_run_continues(rig):
    rig.start(step(), step(repeat=2), step(repeat=3))
    rig.await_status(lambda status: status["done"] >= 1)
    rig.behave(seconds=30)
    rig.await_state("measuring")
    number = len(rig.runs)
    rig.await_run(max(2, number))
    rig.kill()
    await_gone(rig.runs[-1]["pid"])
    kept = [row["repeat"] for row in rig.packed()["cells"] if row["state"] == "ok"]
    assert kept and len(kept) < 3
    rig.behave()
    rows = rig.finish(step(), step(repeat=2), step(repeat=3))
    assert [row["state"] for row in rows] == ["ok"] * 3
    assert [row["repeat"] for row in rows if row["kept"]] == kept
    assert not list(rig.spool.home.glob(".cell*"))


def test_order_does_not_attach_to_a_runner_that_was_killed_and_is_not_gone_yet(rig, monkeypatch):
    rig.behave(seconds=60)
    rig.start(step())
    rig.await_run(1)
    rig.kill()
    rig.await_end()
    looks = iter([True])
    monkeypatch.setattr(control, "is_alive", lambda status: next(looks, False) or is_alive(status))
    monkeypatch.setattr(control, "is_ending", lambda status: True)
    rig.behave()
    assert rig.start(step())["attached"] is False
    rig.await_end()
    assert states(rig.packed()["cells"]) == [("w", 1, "ok", False)]


def test_fio_of_a_killed_runner_is_ended_by_the_next_runner(rig):
    rig.behave(seconds=60, deaf=True)
    rig.start(step())
    run = rig.await_run(1)
    rig.kill()
    rig.await_end()
    assert is_running(run["pid"]), "it does not listen"
    rig.behave()
    assert states(rig.finish(step())) == [("w", 1, "ok", False)]
    await_gone(run["pid"])


def test_killed_fio_is_interrupted_and_measured_again(rig):
    rig.behave(seconds=30)
    rig.start(step(), step(repeat=2))
    run = rig.await_run(1)
    rig.behave()
    os.kill(run["pid"], signal.SIGKILL)
    rig.await_end()
    assert [row["state"] for row in rig.packed()["cells"]] == ["interrupted", "ok"]
    assert rig.meta()["reason"] == "fio was ended by signal 9."
    assert states(rig.finish(step(), step(repeat=2))) == [("w", 1, "ok", False), ("w", 2, "ok", True)]


def test_status_of_another_boot_is_not_alive(rig):
    rig.behave(seconds=30)
    rig.start(step())
    status = rig.await_state("measuring")
    assert is_alive(status)
    assert not is_alive({**status, "boot_id": "another"}) and not is_alive({**status, "pid_started": status["pid_started"] + 1})
    assert not is_alive({}) and started_of(0) is None


def test_fio_exceeding_timeout_is_stopped(rig):
    rig.behave(seconds=60)
    rows = rig.finish(step(), slack=0.2)
    assert states(rows) == [("w", 1, "interrupted", False)] and "had not ended after 0.3 seconds" in rows[0]["reason"]


def test_failed_cell_does_not_stop_the_others(rig):
    rig.behave(fails=["w"])
    assert [row["state"] for row in rig.finish(step(), step("x"))] == ["failed", "ok"]
    assert rig.status["failed"] == 1
    assert [row["state"] for row in rig.finish(step(), step("x", job={**JOB, "bs": "8k"}), keep_going=False)] == ["failed", "ok"]
    assert len(rig.runs) == 3, "the second order ended with the first cell; the other result is that of before"


# -- what is measured again


def test_finished_cell_is_not_measured_again(rig):
    assert states(rig.finish(step())) == [("w", 1, "ok", False)]
    assert states(rig.finish(step())) == [("w", 1, "ok", True)]
    assert len(rig.runs) == 1


@pytest.mark.parametrize("what", ["job", "stack", "version", "size"])
def test_changed_cell_is_measured_again_with_reference_to_replaced_result(rig, what):
    rig.finish(step())
    old = rig.meta()["measurement_sha256"]
    job = JOB
    if what == "job":
        job = {**JOB, "bs": "8k"}
    elif what == "stack":
        rig.mode = "writethrough"
    elif what == "version":
        rig.behave(version="fio-3.41")
    else:
        rig.disks[0] = dataclasses.replace(rig.disks[0], size=2**31)
        os.truncate(rig.root / "dev/sdb", 2**31)
    assert states(rig.finish(step(job=job, done_as=old))) == [("w", 1, "ok", False)]
    assert rig.meta()["replaces"] == old != rig.meta()["measurement_sha256"]
    assert len(rig.runs) == 2


def test_results_on_the_controller_are_not_measured_again(rig):
    rig.finish(step())
    done = rig.meta()["measurement_sha256"]
    place = rig.spool.place(CellKey("v", "w", 1))
    for file in place.iterdir():
        file.unlink()
    place.rmdir()
    assert states(rig.finish(step(done_as=done))) == [("w", 1, "ok", True)]
    assert len(rig.runs) == 1
    assert states(rig.finish(step(done_as=done), replace=True)) == [("w", 1, "ok", False)]
    assert rig.meta()["replaces"] == done
    assert states(rig.finish(step(done_as=done), replace=True)) == [("w", 1, "ok", True)], "it was replaced already"
    assert len(rig.runs) == 2


def test_damaged_result_is_measured_again(rig):
    rig.finish(step())
    (rig.spool.place(CellKey("v", "w", 1)) / "job.fio").write_text("something else")
    assert states(rig.finish(step())) == [("w", 1, "ok", False)]


# -- several at once, and by the clock


def test_cells_of_a_step_run_in_parallel(rig):
    rig.behave(seconds=0.5)
    both = {"cells": [*step("a")["cells"], *step("b", "/dev/sdc")["cells"]]}
    assert states(rig.finish(both)) == [("a", 1, "ok", False), ("b", 1, "ok", False)]
    first, second = (rig.meta(name) for name in "ab")
    assert first["started"] < second["finished"] and second["started"] < first["finished"]


def test_kept_cell_does_not_prevent_the_other_of_its_step(rig):
    both = {"cells": [*step("a")["cells"], *step("b", "/dev/sdc")["cells"]]}
    rig.finish(step("a"))
    assert states(rig.finish(both)) == [("a", 1, "ok", True), ("b", 1, "ok", False)]


def test_two_cells_cannot_write_to_one_target_in_parallel(rig):
    with pytest.raises(BadInput, match="a and b would run on /dev/sdb at once"):
        rig.order({"cells": [*step("a")["cells"], *step("b")["cells"]]})


def release(rig, segment, start, **more):
    (rig.spool.home / f"release-{segment}.json").write_text(json.dumps({"start": start, "clock": {"offset": 0.001, "error": 0.002}, **more}))


def test_hosts_start_at_the_released_time(rig):
    rig.start(step(barrier=True, offset=0.0), step(repeat=2, offset=2.0), step(repeat=3, barrier=True))
    rig.await_status(lambda status: status["state"] == "waiting" and status["segment"] == 0)
    assert not rig.runs
    start = time.time() + 2.0
    release(rig, 0, start)
    rig.await_status(lambda status: status["state"] == "waiting" and status["segment"] == 1)
    release(rig, 1, time.time() - 5)
    rig.await_end()
    first, second, third = (rig.meta(repeat=number) for number in (1, 2, 3))
    assert first["started"] < start <= first["io_start"] and first["asked_start"] == start and first["synchronised"]
    assert first["clock"] == {"offset": 0.001, "error": 0.002}
    assert second["started"] < start + 2.0 <= second["io_start"] and second["asked_start"] == start + 2.0
    assert third["segment"] == 1 and any("later than requested" in note for note in third["notes"])


def test_fio_without_gate_support_starts_at_the_released_time(rig):
    rig.behave(version="fio-2.2.10", unknown=["exec_prerun"])
    rig.start(step(barrier=True))
    rig.await_state("waiting")
    start = time.time() + 1.5
    release(rig, 0, start)
    rig.await_end()
    assert "exec_prerun" not in rig.runs[0]["job"] and rig.runs[0]["time"] >= start


def test_stop_while_fio_waits_at_the_gate(rig):
    rig.start(step(barrier=True))
    rig.await_state("waiting")
    release(rig, 0, time.time() + 1.4)
    waiting = rig.await_run(1)
    rig.kill(signal.SIGTERM)
    assert rig.await_end()["state"] == "stopped"
    await_gone(waiting["pid"])
    assert rig.meta()["state"] == "interrupted" and rig.meta()["io_start"] is None


def test_killed_runner_opens_no_gate(rig):
    rig.start(step(barrier=True))
    rig.await_state("waiting")
    release(rig, 0, time.time() + 1.4)
    waiting = rig.await_run(1)
    rig.kill()
    await_gone(waiting["pid"])
    assert not list(rig.spool.home.glob(".cell.work/fio.json")), "it has measured something"


def test_job_with_shell_unsafe_name_starts_without_a_gate(rig):
    rig.start(step(barrier=True, job={"jobs": [{"name": "two words", **JOB}]}))
    rig.await_state("waiting")
    start = time.time() + 0.3
    release(rig, 0, start)
    rig.await_end()
    assert rig.meta()["state"] == "ok" and rig.meta()["started"] >= start
    assert "exec_prerun" not in rig.runs[0]["job"]


def test_unreleased_barrier_times_out(rig):
    assert states(rig.finish(step(barrier=True), barrier_timeout=0.3)) == [("w", 1, "ok", False)]
    meta = rig.meta()
    assert meta["synchronised"] is False and any("The barrier 0 was not released within 0.3 seconds" in note for note in meta["notes"])


def test_release_far_in_the_future_is_noted_as_clock_error(rig):
    rig.start(step(barrier=True), barrier_timeout=100)
    rig.await_state("waiting")
    release(rig, 0, time.time() + 86400)
    rig.await_end()
    assert any("check its clock" in note for note in rig.meta()["notes"])


def test_releases_of_an_earlier_runner_are_removed(rig):
    rig.spool.make()
    release(rig, 0, time.time() - 100)
    rig.start(step(barrier=True), barrier_timeout=30)
    rig.await_state("waiting")
    assert not (rig.spool.home / "release-0.json").exists() and not rig.runs
    control.stop(rig.spool, check_mode=False)
    assert rig.status["state"] == "stopped" and not rig.runs


def test_barrier_without_due_cells_is_skipped(rig):
    rig.finish(step())
    assert states(rig.finish(step(barrier=True), barrier_timeout=900)) == [("w", 1, "ok", True)]


def test_pause_length_depends_on_written_bytes(rig):
    (rig.root / "proc").mkdir()
    rows = rig.finish(step(), step(repeat=2, pause={"garbage_collection": "measured", "most": 0.2}))
    assert [row["state"] for row in rows] == ["ok", "ok"]
    assert any("No cell has shown how fast garbage is collected" in note for note in rig.meta(repeat=2)["notes"])
    assert not rig.meta()["notes"]


def test_missing_garbage_collection_rate_has_a_reason(rig):
    (rig.root / "proc").mkdir()
    rows = rig.finish(step(measures_garbage_collection=True), step(repeat=2, pause={"garbage_collection": "measured", "most": 0.2}))
    assert [row["state"] for row in rows] == ["ok", "ok"]
    meta = rig.meta()
    assert (meta["garbage_collection"]["rate"], meta["garbage_collection"]["shown_by"]) == (None, "")
    assert meta["garbage_collection"]["reason"] in meta["notes"] and "shows no rate of garbage collection" in meta["garbage_collection"]["reason"]
    assert any("the pause had its maximum length" in note for note in rig.meta(repeat=2)["notes"])
    assert "garbage_collection" not in rig.meta(repeat=2)


def test_written_bytes_are_counted_per_target_and_reset_by_discard():
    measuring = Measuring(*[None] * 8)

    def wrote(amount, rw="write", path="/dev/sdb", limit=None, **options):
        cell = Cell(CellKey("v", "w", 1), GuardTarget(path, size=limit), read_job({"rw": rw, "bs": "4k", **options}, "w"))
        measuring.note_written(RequestedCell(cell, {}), {"bytes_written": amount})

    wrote(10)
    wrote(20)
    wrote(None)
    wrote(5, path="/dev/sdc", size="100%")
    # However often a part is written, the rest stays empty.
    wrote(1000, size="1g")
    wrote(1000, offset="1g")
    wrote(1000, limit=2**30)
    assert measuring.written == {"/dev/sdb": 30, "/dev/sdc": 5}
    wrote(7, rw="trim")
    assert measuring.written == {"/dev/sdb": 0, "/dev/sdc": 5}


def test_runner_pausing_before_a_barrier_has_not_passed_it(rig):
    (rig.root / "proc").mkdir()
    rig.start(step(barrier=True), step(repeat=2, barrier=True, pause={"seconds": 2}), barrier_timeout=0.1)
    status = rig.await_state("pausing")
    assert (status["step"], status["segment"]) == (1, 0)
    rig.await_end()
    assert rig.meta(repeat=2)["segment"] == 1


@pytest.mark.parametrize("permission", ["no", "false", 2])
def test_permission_must_be_boolean(rig, permission):
    with pytest.raises(BadInput, match="allow_data_loss of a target must be true or false"):
        rig.start({**step(), "cells": [{**step()["cells"][0], "target": {"device": "/dev/sdb", "allow_data_loss": permission}}]})


def test_pause_until_caches_are_clean(rig):
    assert [row["state"] for row in rig.finish(step(pause={"until": "clean", "most": 30}))] == ["ok"], "a host without a cache is clean"


def test_cell_waits_until_its_cache_is_clean(rig):
    rig.cache(dirty=7)
    rig.start(step(pause={"until": "clean", "most": 60}))
    rig.await_state("pausing")
    assert not rig.runs
    rig.cache(dirty=0)
    rig.await_end()
    assert rig.meta()["state"] == "ok" and not rig.meta()["notes"]
    assert "cache_series.log.gz" in rig.meta()["files"]


def test_pause_for_clean_cache_is_limited(rig):
    rig.cache(dirty=7)
    rig.finish(step(pause={"until": "clean", "most": 0.2}))
    assert rig.meta()["notes"] == ["The caches below the target were not clean after 0.2 seconds: 458752 bytes were dirty."]


def test_buffered_job_starts_with_empty_page_cache(rig):
    drop = rig.root / "proc/sys/vm/drop_caches"
    drop.parent.mkdir(parents=True)
    drop.write_text("")
    rig.finish(step())
    assert drop.read_text() == ""
    rig.finish(step("b", job={**JOB, "direct": 0}))
    assert drop.read_text() == "3\n"


def test_hanging_sync_times_out(tmp_path, monkeypatch):
    """With a suspended device a sync never comes back."""
    stuck = tmp_path / "sync"
    stuck.write_text("#!/bin/sh\nexec sleep 60\n")
    stuck.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(measuring, "_LONGEST_SYNC", 0.2)
    with pytest.raises(TimedOut, match="sync"):
        measuring.drop_page_cache(Runner(), tmp_path)


# -- searches and rounds


def search_step(limit, **more):
    search = {"metric": "p99", "limit": limit, "over": "iodepth", "first": 1, "last": 8, **more}
    return {"kind": "search", "cell": {"name": "s", "target": {"device": "/dev/sdb"}, "job": JOB}, "search": search}


def test_search_finds_the_maximum_under_a_limit(rig):
    rig.behave(latency_per_depth=100_000)
    rows = rig.finish(search_step(650_000))
    assert states(rows) == [(f"s.iodepth-{depth}", 1, "ok", False) for depth in (1, 2, 4, 6, 7, 8)] + [("s", 1, "ok", False)]
    found = rig.meta("s")["search"]
    assert (found["answer"], found["value"], found["bad"]["value"], found["iops"]) == ("found", 6, 7, 1000.0)
    assert [one["value"] for one in found["probes"]] == [1, 2, 4, 8, 6, 7]
    assert "fio.json.gz" not in rig.meta("s")["files"]


@pytest.mark.parametrize(("limit", "answer", "value", "runs"), [(10**9, "at_least", 8, 4), (50_000, "not_reachable", None, 1)])
def test_search_without_a_limit_in_range_is_reported(rig, limit, answer, value, runs):
    rig.finish(search_step(limit))
    found = rig.meta("s")["search"]
    assert (found["answer"], found["value"], len(rig.runs)) == (answer, value, runs)


def test_search_after_a_kill_continues_with_its_probes(rig):
    rig.start(search_step(650_000))
    rig.await_run(3)
    rig.kill()
    rig.await_end()
    done = len([row for row in rig.packed()["cells"] if row["state"] == "ok"])
    before = len(rig.runs)
    rows = rig.finish(search_step(650_000))
    assert done >= 2 and sum(row["kept"] for row in rows) == done
    assert len(rig.runs) - before == 6 - done and rig.meta("s")["search"]["value"] == 6
    assert states(rig.finish(search_step(650_000))) == [("s", 1, "ok", True)], "an answer needs no probes"
    rig.finish(search_step(250_000))
    assert rig.meta("s")["search"]["value"] == 2, "another limit is another search"


def test_search_with_failed_probe_fails(rig):
    rig.behave(fails=["s.iodepth-2"])
    rows = rig.finish(search_step(650_000))
    assert states(rows)[-1] == ("s", 1, "failed", False)
    assert "The search ended early: iodepth 2 was failed" in rows[-1]["reason"]


def rounds_step(**more):
    return {"kind": "rounds", "cell": {"name": "p", "target": {"device": "/dev/sdb"}, "job": JOB}, "rounds": {"most": 8, **more}}


def test_rounds_run_until_steady(rig):
    rig.behave(rates=[5000, 3000, 1000, 1010, 990, 1000, 1005, 1, 1])
    rows = rig.finish(rounds_step())
    assert [row["name"] for row in rows] == [f"p.round-{number:02}" for number in range(1, 8)] + ["p"]
    found = rig.meta("p")["rounds"]
    assert (found["steady"], found["first_of_window"], found["window"]) == (True, 3, [1000.0, 1010.0, 990.0, 1000.0, 1005.0])


def test_rounds_that_never_become_steady(rig):
    rig.behave(rates=[1000, 2000] * 8)
    rows = rig.finish(rounds_step())
    assert (rows[-1]["state"], rows[-1]["reason"]) == ("not_steady", "The iops of write did not become steady in 8 rounds.")
    assert rig.meta("p")["rounds"]["steady"] is False and len(rig.runs) == 8


def test_rounds_over_several_cells(rig):
    # Round by round, the cell that follows before the one that decides.
    rig.behave(rates=[9, 5000, 10, 1000, 20, 1010, 30, 990, 40, 1000, 50, 1005, 1, 1])
    cells = [{"name": name, "target": {"device": "/dev/sdb"}, "job": JOB} for name in ("f", "d")]
    rows = rig.finish({"kind": "rounds", "cells": cells, "rounds": {"most": 8, "decided_by": "d"}})
    assert len(rig.runs) == 12 and states(rows)[-1] == ("d", 1, "ok", False)
    followed, decided = rig.meta("f"), rig.meta("d")
    assert (decided["rounds"]["first_of_window"], decided["rounds"]["average"]) == (2, 1001.0)
    assert (followed["state"], followed["rounds"]["first_of_window"], followed["rounds"]["average"]) == ("ok", 2, 30.0)


# -- files


def test_file_created_by_the_campaign_may_be_overwritten(rig):
    (rig.root / "srv").mkdir()
    rows = [{"cells": [{"name": "f", "repeat": number, "target": {"file": "/srv/data", "size": "1M"}, "job": JOB}]} for number in (1, 2)]
    rig.behave(seconds=30)
    rig.start(*rows)
    rig.await_run(1)
    (rig.root / "srv/data").write_bytes(b"laid out by fio")
    rig.kill()
    rig.await_end()
    rig.behave()
    assert [row["state"] for row in rig.finish(*rows)] == ["ok", "ok"]
    (rig.root / "srv/data").unlink()
    (rig.root / "srv/data").write_bytes(b"another file of that name")
    with pytest.raises(Refused, match="is a file of 25 B that the collection did not make, or that was changed since"):
        rig.start({"cells": [{"name": "g", "target": {"file": "/srv/data", "size": "1M"}, "job": JOB}]})


def test_file_replaced_while_fio_waits_is_not_written(rig):
    (rig.root / "srv").mkdir()
    row = {"cells": [{"name": "f", "target": {"file": "/srv/data", "size": "1M"}, "job": JOB}], "barrier": True}
    rig.start(row)
    rig.await_state("waiting")
    release(rig, 0, time.time() + 5)
    job = rig.await_run(1)["job"]
    (rig.root / "srv/data").unlink()
    (rig.root / "srv/data").write_bytes(b"somebody's")
    rig.kill()
    rig.await_end()
    assert "filename=/proc/self/fd/" in job, "fio got the file and not its name"
    with pytest.raises(Refused, match="is a file of 10 B that the collection did not make"):
        rig.start(row, check_mode=True)
    assert (rig.root / "srv/data").read_bytes() == b"somebody's"


def test_stored_job_file_names_the_target_file(rig):
    (rig.root / "srv").mkdir()
    rig.finish({"cells": [{"name": "f", "target": {"file": "/srv/data", "size": "1M"}, "job": JOB}]})
    text = (rig.spool.place(CellKey("v", "f", 1)) / "job.fio").read_text()
    assert "filename=/srv/data\n" in text
    assert "; fio got the open file as filename=/proc/self/fd/" in text
    assert (rig.root / "srv/data").stat().st_size == 1024**2, "it has its size before fio sees it"


def test_file_of_another_campaign_is_writable_until_changed(rig):
    (rig.root / "srv").mkdir()
    row = {"cells": [{"name": "f", "target": {"file": "/srv/data", "size": "1M"}, "job": JOB}]}
    rig.finish(row)
    order, other = dataclasses.replace(rig.order(row), campaign="c2"), Spool(rig.spool.folder, "c2")
    assert control.start(order, other, rig.host, check_mode=True)["changed"]
    time.sleep(0.05)
    (rig.root / "srv/data").write_bytes(b"somebody's")
    with pytest.raises(Refused, match="is a file of 10 B that the collection did not make, or that was changed since"):
        control.start(order, other, rig.host, check_mode=True)


def test_file_that_is_only_read_is_not_taken_over(rig):
    (rig.root / "srv").mkdir()
    target = {"file": "/srv/data", "size": "1M"}
    rig.finish({"cells": [{"name": "f", "target": target, "job": JOB}]})
    first, rig.spool = rig.spool, Spool(rig.spool.folder, "c2")
    order = dataclasses.replace(rig.order({"cells": [{"name": "r", "target": target, "job": {**JOB, "rw": "read"}}]}), campaign="c2")
    control.start(order, rig.spool, rig.host, check_mode=False)
    assert rig.await_end()["done"] == 1
    time.sleep(0.05)
    (rig.root / "srv/data").write_bytes(b"somebody's")
    for spool, name in ((rig.spool, "c2"), (Spool(first.folder, "c3"), "c3")):
        order = dataclasses.replace(rig.order({"cells": [{"name": "w", "target": target, "job": JOB}]}), campaign=name)
        with pytest.raises(Refused, match="that the collection did not make, or that was changed since"):
            control.start(order, spool, rig.host, check_mode=True)


def test_empty_order_changes_nothing(rig):
    assert rig.start()["changed"] is False
    assert not rig.spool.folder.exists() and rig.packed()["cells"] == []
    assert control.stop(rig.spool, check_mode=False)["changed"] is False


def test_unreadable_order_is_reported(rig):
    rig.finish(step())
    (rig.spool.home / "order.json").write_text('{"steps": 5}')
    with pytest.raises(StorageError, match="is not what fio_runner writes"):
        rig.packed()


def test_code_for_a_raid_tool_is_imported_before_the_runner_is_on_its_own(rig, monkeypatch):
    """Ansible removes the archive that it could be imported from as soon as the module has ended."""
    imported = []
    monkeypatch.setattr(registry, "_places", lambda _runner, tool: ["/opt/tool"] if tool.name == "arcconf" else [])
    tools = {name: dataclasses.replace(tool, provider=lambda name=name: lambda *_given: imported.append(name)) for name, tool in registry.TOOLS.items()}
    monkeypatch.setattr(registry, "TOOLS", tools)
    monkeypatch.setattr(control.BackgroundProcess, "start", lambda *_given, **_kept: imported.append("the runner starts"))
    control.launch(None, rig.spool, rig.host)
    assert imported == ["arcconf", "the runner starts"]
