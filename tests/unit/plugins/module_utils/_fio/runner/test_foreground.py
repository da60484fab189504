# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of cells that the runner measures while the caller waits: real processes and a fake fio."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import spool as fio_spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost, read_cells
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground import measure, order_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import JOB, RunnerRig, Stack, is_running, step

READ = {**JOB, "rw": "randread"}


class Rig(RunnerRig):
    """An empty disk sdb and a mounted sdc."""

    def __init__(self, root, monkeypatch):
        super().__init__(root, monkeypatch)
        self.disks[1] = dataclasses.replace(self.disks[1], mountpoints=("/srv",))
        self.stacks = lambda: Stack(self.mode)
        for disk in self.disks:
            stat = root / f"sys/class/block/{disk.name}/stat"
            stat.parent.mkdir(parents=True)
            stat.write_text("1 2 3 4 5 6 7 8 9 10 11\n")

    @property
    def host(self):
        return dataclasses.replace(super().host, read_stack=lambda _devices: self.stacks())  # pylint: disable=unnecessary-lambda # a test replaces it later

    def measure(self, *rows, check_mode=False, campaign="c1", **settings):
        order = order_of({"campaign": campaign, "variant": "as_found", "host": "node1", "cells": list(rows), **settings})
        return measure(order, Spool(self.spool.folder, campaign), self.host, check_mode=check_mode)

    def file(self, name, cell="w", repeat=1):
        return self.spool.place(CellKey("as_found", cell, repeat)) / name

    def load(self, name, **where):
        return json.loads(self.file(name, **where).read_text())


@pytest.fixture
def rig(tmp_path, monkeypatch):
    rig = Rig(tmp_path, monkeypatch)
    yield rig
    rig.end()


def cell(**values):
    return {"name": "w", "repeat": 1, "target": {"device": "/dev/sdb"}, "job": JOB, **values}


def signal_runner(rig, number):
    """A shell command that sends a signal to the runner."""
    return f"kill -{number} $(sed 's/.*\"pid\": \\([0-9]*\\),.*/\\1/' {rig.spool.home}/runner.json)"


def test_met_latency_target_is_ok_and_noted_in_the_cell(rig):
    latency = {"max": 900_000, "min": 1, "mean": 5.0, "stddev": 1.0, "N": 10}
    figures = {"io_bytes": 40960, "total_ios": 10, "runtime": 501, "iops": 3.3, "bw_bytes": 13653, "lat_ns": latency}
    rig.behave(seconds=0.1, entry={"latency_depth": 4, "write": figures})
    job = {**JOB, "runtime": 3}
    requested = {**job, "latency_target": "1ms", "latency_window": "500ms", "latency_percentile": 99}
    (row,) = rig.measure(cell(job=requested))["cells"]
    assert (row["state"], row["reason"], row["summary"]["write"]["runtime_ms"]) == ("ok", "", 501)
    assert any("met its latency_target with a queue depth of 4" in note for note in rig.load("meta.json")["notes"])
    # The same report without the option is of a run that something ended.
    (row,) = rig.measure(cell(repeat=2, job=job))["cells"]
    assert (row["state"], row["summary"]) == ("interrupted", None)


def test_one_cell_is_measured_stored_and_packed(rig):
    result = rig.measure(cell())
    assert (result["changed"], result["fio_version"]) == (True, "fio-3.33")
    assert result["actions"] == ["measure as_found/w/1 on /dev/sdb (writing)"]
    (row,) = result["cells"]
    assert set(row) == {"name", "repeat", "state", "reason", "kept", "summary"}
    assert (row["name"], row["repeat"], row["state"], row["reason"], row["kept"]) == ("w", 1, "ok", "", False)
    assert row["summary"]["write"]["iops"] == 1000.0
    assert row["summary"]["read"] is None, "what was not done is no 0"
    assert result["archive"]["path"].endswith("/c1.tar")
    meta = rig.load("meta.json")
    assert (meta["schema"], meta["state"], meta["host"], meta["campaign"], meta["variant"]) == (1, "ok", "node1", "c1", "as_found")
    assert (meta["target"]["path"], meta["target"]["serial"], meta["target"]["identity"]) == ("/dev/sdb", "S-b", "S-b")
    assert (meta["fio_version"], meta["behaviour_class"], meta["asked_runtime"]) == ("fio-3.33", "libaio_sync_blocking", 0.1)
    assert sorted(meta["files"]) == ["device-stats.json", "device_series.log.gz", "fio.json.gz", "job.fio", "stack.json"]
    assert rig.file("job.fio").read_text() == rig.runs[0]["job"], "what was sent is kept byte for byte"
    assert not is_alive(rig.status) and not list(rig.spool.home.glob(".cell*"))


def test_series_are_written_only_if_requested(rig):
    rig.measure(cell())
    rig.measure(cell(repeat=2), series=True)
    assert ["write_iops_log" in run["job"] for run in rig.runs] == [False, True]


def test_stack_and_counters_are_recorded_before_and_after(rig):
    rig.behave(does=f"echo 100 2 3 4 5 6 7 8 9 10 11 > {rig.root}/sys/class/block/sdb/stat")
    rig.measure(cell())
    stack, stats = rig.load("stack.json"), rig.load("device-stats.json")
    assert stack["before"]["layers"] and stack["after"]["layers"] and stack["before"]["read_at"] < stack["after"]["read_at"]
    assert (stats["before"]["devices"]["sdb"]["read_ios"], stats["after"]["devices"]["sdb"]["read_ios"]) == (1, 100)


def test_unreadable_stack_is_reported_without_stopping(rig):
    def broken():
        raise StorageError("The tool said nothing.")

    rig.stacks = broken
    assert rig.measure(cell())["cells"][0]["state"] == "ok"
    assert rig.load("stack.json")["before"]["error"] == "The tool said nothing."


def test_check_mode_predicts_and_runs_nothing(rig):
    result = rig.measure(cell(), check_mode=True)
    assert (result["changed"], result["cells"], result["archive"], result["fio_version"]) == (True, [], {}, "fio-3.33")
    assert result["actions"] == ["measure as_found/w/1 on /dev/sdb (writing)"]
    assert not rig.runs and not rig.spool.folder.exists()
    with pytest.raises(Refused):
        rig.measure(cell(target={"device": "/dev/sdc"}), check_mode=True)


def test_empty_list_requires_no_fio(rig):
    (rig.root / "bin/fio").unlink()
    assert rig.measure() == {"changed": False, "cells": [], "actions": [], "archive": {}, "fio_version": None}
    assert not rig.spool.folder.exists()


def test_one_refused_target_prevents_every_run(rig):
    rows = [cell(), cell(name="x", target={"device": "/dev/sdc"}), cell(name="y", target={"device": "/dev/nvme9n9"})]
    with pytest.raises(Refused) as caught:
        rig.measure(*rows)
    assert "/dev/sdc is mounted on /srv" in caught.value.message and "/dev/nvme9n9 does not exist" in caught.value.message
    assert [one["target"] for one in caught.value.facts["refusals"]] == ["/dev/nvme9n9"]
    assert not rig.runs and not rig.spool.folder.exists() and not (rig.root / "dev/nvme9n9").exists()


def test_missing_device_is_reported(rig):
    with pytest.raises(DeviceMissing, match="does not exist on this host"):
        rig.measure(cell(target={"device": "/dev/nvme9n9"}))


@pytest.mark.parametrize(
    ("attribute", "word"), [("size", "the size was unknown and is 1024 sectors"), ("serial", "the serial number was unknown and is 1024 now")]
)
def test_target_changed_between_cells_is_refused_and_others_are_measured(rig, attribute, word):
    rig.behave(does=f"echo 1024 > {rig.root}/sys/class/block/sdb/{attribute}")
    rows = [cell(), cell(repeat=2), cell(name="r", target={"device": "/dev/sdc"}, job=READ)]
    states = [(row["name"], row["repeat"], row["state"]) for row in rig.measure(*rows)["cells"]]
    assert states == [("w", 1, "ok"), ("w", 2, "refused"), ("r", 1, "ok")]
    meta = rig.load("meta.json", repeat=2)
    assert f"is not the device any more that was examined: {word}" in meta["reason"] and meta["summary"] is None and meta["files"] == {}


def test_failed_cell_keeps_its_folder_without_figures(rig):
    rig.behave(fails=["w"])
    result = rig.measure(cell())
    assert result["cells"][0]["state"] == "failed" and "Input/output error" in result["cells"][0]["reason"]
    meta = rig.load("meta.json")
    assert meta["summary"] is None
    assert sorted(meta["files"]) == ["device-stats.json", "device_series.log.gz", "fio.json.gz", "fio.stderr.gz", "job.fio", "stack.json"]


def test_killed_fio_leaves_no_report(rig):
    rig.behave(does="kill -KILL $PPID")
    assert rig.measure(cell())["cells"][0]["state"] == "interrupted"
    assert "fio.json.gz" not in rig.load("meta.json")["files"]


def test_keep_going_false_stops_after_a_failed_cell(rig):
    rig.behave(fails=["w"])
    result = rig.measure(cell(), cell(repeat=2), keep_going=False)
    assert [row["state"] for row in result["cells"]] == ["failed", "missing"]
    assert result["cells"][1]["reason"] == "An earlier cell was not ok and keep_going is false."
    assert len(rig.runs) == 1 and not rig.file("meta.json", repeat=2).exists()


def test_keep_going_false_returns_no_old_result_of_skipped_cell(rig):
    rig.behave(fails=["w"])
    rig.measure(cell(), cell(repeat=2))
    assert [row["state"] for row in rig.measure(cell(), cell(repeat=2), keep_going=False)["cells"]] == ["failed", "missing"]


@pytest.mark.parametrize(("keep_going", "states"), [(False, ["not_steady", "missing"]), (True, ["not_steady", "not_steady"])])
def test_keep_going_false_stops_after_a_cell_that_is_not_steady(rig, keep_going, states):
    rig.behave(entry={"steadystate": {"ss": "iops:10%", "attained": 0, "data": {}}})
    assert [row["state"] for row in rig.measure(cell(), cell(repeat=2), keep_going=keep_going)["cells"]] == states


def test_ok_result_in_spool_is_not_measured_again(rig):
    rig.measure(cell())
    again = rig.measure(cell())
    assert (again["changed"], again["actions"], len(rig.runs)) == (False, [], 1)
    assert again["cells"][0]["kept"] and again["cells"][0]["state"] == "ok" and again["archive"]["size"] > 0
    check = rig.measure(cell(), check_mode=True)
    assert (check["changed"], check["cells"][0]["kept"]) == (False, True)
    rig.mode = "writethrough"
    assert rig.measure(cell())["changed"] is False, "the cache layers do not count here"
    for number in (2, 3):
        result = rig.measure(cell(), replace=True)
        assert result["changed"] is True and result["cells"][0]["kept"] is False and len(rig.runs) == number


def test_only_missing_cells_are_measured(rig):
    rig.measure(cell(repeat=2))
    result = rig.measure(cell(), cell(repeat=2), cell(repeat=3))
    assert [(row["repeat"], row["state"], row["kept"]) for row in result["cells"]] == [(1, "ok", False), (2, "ok", True), (3, "ok", False)]
    assert result["actions"] == [f"measure as_found/w/{number} on /dev/sdb (writing)" for number in (1, 3)]
    assert len(rig.runs) == 3


def test_result_of_earlier_version_without_measurement_hash_is_kept(rig):
    rig.measure(cell())
    meta = rig.load("meta.json")
    rig.file("meta.json").write_text(json.dumps({key: value for key, value in meta.items() if key != "measurement_sha256"}))
    assert rig.measure(cell())["cells"][0]["kept"]


def test_failed_result_in_spool_is_measured_again(rig):
    rig.behave(fails=["w"])
    rig.measure(cell())
    rig.behave()
    assert rig.measure(cell())["cells"][0]["state"] == "ok"


def test_another_job_under_the_same_name_is_rejected(rig):
    rig.measure(cell())
    with pytest.raises(BadInput, match="collect it first, choose another campaign or variant"):
        rig.measure(cell(job={**JOB, "bs": "8k"}))


@pytest.mark.parametrize(
    "change",
    [
        lambda rig: cell(target={"device": "/dev/sdb", "size": 2**20}),
        lambda rig: grown(rig, size=2**31) or cell(),
        lambda rig: grown(rig, serial="S-X") or cell(),
        lambda rig: (rig.root / "data").mkdir() or cell(target={"file": "/data/f", "size": 2**20}),
    ],
    ids=["used size", "size", "identity", "kind"],
)
def test_another_target_under_the_same_name_is_rejected(rig, change):
    rig.measure(cell())
    row = change(rig)
    with pytest.raises(BadInput, match="measured with another job, target or fio"):
        rig.measure(row)
    assert len(rig.runs) == 1
    assert rig.measure(row, replace=True)["cells"][0]["state"] == "ok"


def grown(rig, **values):
    rig.disks[0] = dataclasses.replace(rig.disks[0], **values)
    os.truncate(rig.root / "dev/sdb", rig.disks[0].size)


def test_device_without_identity_is_matched_by_path(rig):
    grown(rig, serial=None)
    rig.disks[1] = dataclasses.replace(rig.disks[1], serial=None, mountpoints=())
    rig.measure(cell())
    assert rig.measure(cell())["changed"] is False
    with pytest.raises(BadInput, match="another job, target or fio"):
        rig.measure(cell(target={"device": "/dev/sdc"}))


def test_device_with_identity_may_have_another_path(rig):
    rig.measure(cell())
    (rig.root / "dev/link").symlink_to(rig.root / "dev/sdb")
    assert rig.measure(cell(target={"device": "/dev/link"}))["changed"] is False


def test_file_created_for_a_cell_is_the_same_target_afterwards(rig):
    (rig.root / "data").mkdir()
    row = cell(target={"file": "/data/f", "size": 8192, "allow_data_loss": True})
    assert rig.measure(row)["cells"][0]["state"] == "ok"
    assert rig.measure(row)["changed"] is False


def test_device_is_held_exclusively_only_for_writing_cells(rig):
    opened = f"ls -l /proc/$(cut -d' ' -f4 /proc/$PPID/stat)/fd | grep -c '{rig.root}/dev/sdb$' >> {rig.root}/held"
    rig.behave(does=opened)
    measured = [*rig.measure(cell(name="r", job=READ))["cells"], *rig.measure(cell())["cells"]]
    assert [(row["state"], row["reason"]) for row in measured] == [("ok", "")] * 2
    assert (rig.root / "held").read_text().split() == ["0", "1"]


def test_device_in_use_since_examination_is_refused(rig, monkeypatch):
    def taken(*_arguments, **_options):
        raise Refused("/dev/sdb was free when it was examined and cannot be opened exclusively now: Device or resource busy.")

    monkeypatch.setattr("ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.runner.judge.claimed", taken)
    with pytest.raises(StorageError, match="was free when it was examined") as caught:
        rig.measure(cell())
    assert caught.value.kind == "refused" and not rig.runs


def test_fio_that_opens_another_file_for_writing_is_killed(rig):
    rig.behave(seconds=600, opens=[f"{rig.root}/other"])
    (row,) = rig.measure(cell())["cells"]
    assert (row["state"], row["reason"]) == ("failed", f"fio had {rig.root}/other open for writing, which is not its target, and was killed.")


def test_reading_job_runs_fio_read_only(rig):
    rig.behave(does=f"tr '\\0' ' ' < /proc/$PPID/cmdline >> {rig.root}/words; echo >> {rig.root}/words")
    measured = rig.measure(cell(name="r", target={"device": "/dev/sdc"}, job=READ), cell(name="v", job={**JOB, "runtime": "200ms"}))
    assert [(row["state"], row["reason"]) for row in measured["cells"]] == [("ok", "")] * 2
    assert [("--readonly" in words) for words in (rig.root / "words").read_text().splitlines()] == [True, False]


def test_long_cells_report_status_every_minute(rig):
    rig.behave(seconds=0.1, does=f"tr '\\0' ' ' < /proc/$PPID/cmdline >> {rig.root}/words; echo >> {rig.root}/words")
    rig.measure(cell(job={**JOB, "runtime": 301}), cell(repeat=2))
    assert [("--status-interval=60" in words) for words in (rig.root / "words").read_text().splitlines()] == [True, False]


def test_progress_is_written_for_every_due_cell(rig):
    rig.measure(cell(repeat=3))
    place, seen = rig.spool.home / "progress.json", rig.root / "seen"
    waits = f"while cp {place} {seen}.now && cmp -s {seen}.now {seen}; do sleep 0.05; done"
    rig.behave(does=f"{waits}; mv {seen}.now {seen}; tr -d '\\n' < {seen} >> {seen}.all; echo >> {seen}.all")
    shutil.copy(place, seen)
    rig.measure(cell(), cell(repeat=3), cell(repeat=2))
    rows = [json.loads(line) for line in (rig.root / "seen.all").read_text().splitlines()]
    assert [(one["cell"], one["cells"], one["repeat"], one["state"]) for one in rows] == [(1, 2, 1, "running"), (2, 2, 2, "running")]
    assert json.loads(place.read_text())["state"] == "ok"


def test_file_created_by_one_cell_is_usable_by_the_next(rig):
    (rig.root / "data").mkdir()
    row = cell(target={"file": "/data/f", "size": 8192})
    assert [one["state"] for one in rig.measure(row, {**row, "repeat": 2})["cells"]] == ["ok", "ok"]
    assert [one["state"] for one in rig.measure({**row, "repeat": 3})["cells"]] == ["ok"], "it is the campaign's own"
    (rig.root / "data/f").unlink()
    (rig.root / "data/f").write_bytes(b"y" * 8192)
    with pytest.raises(Refused, match="that the collection did not make, or that was changed since"):
        rig.measure({**row, "repeat": 4})


def test_missing_or_too_old_fio_is_reported(rig, monkeypatch):
    rig.behave(version="fio-2.0.15")
    with pytest.raises(StorageError, match=r"fio 2\.0\.15 on this host is too old") as caught:
        rig.measure(cell())
    assert caught.value.kind == "too_old"
    (rig.root / "bin/fio").unlink()
    monkeypatch.setenv("PATH", str(rig.root / "bin"))
    with pytest.raises(StorageError, match="The command fio is missing on this host"):
        rig.measure(cell())


# -- the runner and who waits for it


def test_measurement_beside_a_runner_is_refused(rig):
    rig.behave(seconds=30)
    rig.start(step())
    rig.await_run(1)
    with pytest.raises(control.Busy, match=r"busy with an order of the campaign c1 \(measuring w, step 1 of 1\)"):
        rig.measure(cell())
    with pytest.raises(control.Busy, match="busy with the campaign c1"):
        rig.measure(cell(), check_mode=True, campaign="c2")
    assert is_alive(rig.status) and len(rig.runs) == 1


def test_measurement_beside_another_spool_user_is_refused(rig, monkeypatch):
    monkeypatch.setattr(fio_spool, "UNLOCKING", 0.0)
    with rig.spool.opened(), pytest.raises(StorageError, match="Another run is measuring on this host") as caught:
        rig.measure(cell())
    assert caught.value.kind == "spool" and not rig.runs


@pytest.mark.parametrize(("number", "what"), [("TERM", "stopped"), ("KILL", "killed")])
def test_runner_ending_before_its_cells_are_done_is_a_failure(rig, number, what):
    rig.behave(does=signal_runner(rig, number) + "; sleep 0.3")
    with pytest.raises(StorageError, match=f"The runner on this host was {what}: fio was stopped, and finished cells are in the spool") as caught:
        rig.measure(cell(), cell(repeat=2))
    assert caught.value.kind == "stopped" and len(rig.runs) == 1
    rig.behave()
    assert [row["state"] for row in rig.measure(cell(), cell(repeat=2))["cells"]] == ["ok", "ok"]


def test_unwritable_spool_is_a_failure(rig, monkeypatch):
    monkeypatch.setattr(Spool, "store", lambda *_arguments: (one for one in ()).throw(control.SpoolError("The spool is full.")))
    with pytest.raises(StorageError, match=r"The spool is full\.") as caught:
        rig.measure(cell())
    assert caught.value.kind == "spool"


def test_internal_error_in_runner_is_a_failure(rig, monkeypatch):
    monkeypatch.setattr(Spool, "store", lambda *_arguments: {}["x"])
    with pytest.raises(StorageError, match=r"Internal error in the runner \(KeyError: 'x'\): see runner\.log in .*/spool/c1 on this host") as caught:
        rig.measure(cell())
    assert caught.value.kind == "error"
    assert "Traceback" in (rig.spool.home / "runner.log").read_text()


def test_interrupt_stops_the_runner_and_keeps_finished_cells(rig, monkeypatch):
    def interrupted(_progress):
        if len(rig.runs) > 1:
            raise KeyboardInterrupt

    rig.behave(does=f"[ $(wc -l < {rig.behaviour}.runs) = 1 ] || sleep 30")
    monkeypatch.setattr("ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground._Progress.note", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rig.measure(cell(), cell(repeat=2), cell(repeat=3))
    assert not is_alive(rig.status) and not is_running(rig.runs[1]["pid"])
    assert (rig.load("meta.json")["state"], rig.status["state"]) == ("ok", "stopped")
    assert not rig.file("meta.json", repeat=3).exists()


# -- what is asked for


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (cell(name="../x"), "cannot be the name of a cell"),
        ({**cell(repeat=0), "repeat": -1}, "repeat must be a number from 1"),
        (cell(target={}), "either device"),
        (cell(target={"device": "/dev/sdb", "file": "/f"}), "either device"),
        (cell(job={"rw": "read", "filename": "/dev/sdc"}), "option filename is refused"),
    ],
)
def test_invalid_cells_are_rejected(row, words):
    with pytest.raises(BadInput, match=words):
        read_cells("as_found", [row])
    with pytest.raises(BadInput, match=words):
        order_of({"campaign": "c1", "variant": "as_found", "host": "node1", "cells": [row]})


def test_cell_listed_twice_is_rejected():
    with pytest.raises(BadInput, match="listed twice"):
        read_cells("as_found", [cell(), cell()])


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
def test_real_file_with_real_fio(tmp_path):
    host = MeasuredHost(Runner(), lambda _devices: Stack("writeback"))
    row = cell(target={"file": str(tmp_path / "f"), "size": 2**20}, job={"rw": "randrw", "bs": "4k", "number_ios": 200})
    order = order_of({"campaign": "c1", "variant": "as_found", "host": "here", "cells": [row], "series": True})
    result = measure(order, Spool(tmp_path / "spool", "c1"), host, check_mode=False)
    assert result["cells"][0]["state"] == "ok", result["cells"][0]["reason"]
    summary = result["cells"][0]["summary"]
    assert summary["read"]["total_ios"] + summary["write"]["total_ios"] >= 200
    assert not list((tmp_path / "spool/c1").glob(".cell*"))


@pytest.mark.parametrize("spool", ["/a\0b", "/\ud800", "/" + "x" * 3000])
def test_spool_that_cannot_be_a_path_is_rejected(spool):
    with pytest.raises(BadInput, match=r"^spool '.*is not a path"):
        control.spool_of(spool, "c")
