# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import foreground as fio_measure
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.foreground import MeasuredHost, Settings, measure, read_cells
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

WRITE = {"rw": "randwrite", "bs": "4k", "time_based": True, "runtime": 3}
GOOD = {"jobname": "w", "groupid": 0, "error": 0, "elapsed": 4, "write": {"io_bytes": 40960, "total_ios": 10, "runtime": 3000, "iops": 3.3, "bw_bytes": 13653}}


class Stack:
    def __init__(self, number):
        self.number = number

    def describe(self, name):
        return {"name": name, "reading": self.number}


class Rig:
    """A host of files with an empty disk sdb and a mounted sdc; its fio writes what it is told to."""

    def __init__(self, root):
        self.root = root
        self.jobs = [GOOD]
        self.rc = 0
        self.stderr = ""
        self.sent = []
        self.before_fio = lambda: None
        self.signatures = {}
        self.disks = [
            BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=2**30, serial="S-B", model="M", firmware="F"),
            BlockDevice(name="sdc", path="/dev/sdc", number="8:32", size=2**30, serial="S-C", mountpoints=("/srv",)),
        ]
        for disk in self.disks:
            node = root / disk.path.lstrip("/")
            node.parent.mkdir(exist_ok=True)
            with open(node, "wb") as file:
                file.truncate(disk.size)
            stat = root / f"sys/class/block/{disk.name}/stat"
            stat.parent.mkdir(parents=True)
            stat.write_text("1 2 3 4 5 6 7 8 9 10 11\n")
        self.stacks = 0
        self.runner = ScriptedRunner(
            {
                ("fio", "--version"): Reply("fio-3.33\n"),
                ("fio", "--enghelp=psync"): Reply("IO engine psync has no options\n", rc=1),
                ("fio", "--parse-only", "-"): Reply(),
                ("fio", "--eta=never"): self.fio,
                ("wipefs",): lambda words: Reply(json.dumps({"signatures": self.signatures.get(words[-1], [])})),
            },
            missing={"setpriv"},
        )
        self.spool = Spool(root / "spool", "c1")
        self.host = MeasuredHost(self.runner, self.read_stack, root, lambda runner, root: Devices(self.disks, root))

    def read_stack(self):
        self.stacks += 1
        return Stack(self.stacks)

    def fio(self, words):
        self.before_fio()
        report = next(word.split("=", 1)[1] for word in words if word.startswith("--output="))
        with open(words[-1]) as file:
            self.sent.append((words, file.read()))
        if self.jobs is not None:
            with open(report, "w") as file:
                json.dump({"fio version": "fio-3.33", "jobs": self.jobs}, file)
        return Reply(rc=self.rc, stderr=self.stderr)

    def measure(self, *rows, check_mode=False, **settings):
        return measure(read_cells("as_found", rows), self.spool, self.host, Settings("node1", **settings), check_mode=check_mode)

    def file(self, name, cell="w", repeat=1):
        return self.spool.place(CellKey("as_found", cell, repeat)) / name

    def load(self, name, **where):
        return json.loads(self.file(name, **where).read_text())


@pytest.fixture
def rig(tmp_path):
    return Rig(tmp_path)


def cell(**values):
    return {"name": "w", "repeat": 1, "target": {"device": "/dev/sdb"}, "job": WRITE, **values}


def test_a_latency_target_that_was_met_is_ok_and_noted_in_the_cell(rig):
    latency = {"max": 900_000, "min": 1, "mean": 5.0, "stddev": 1.0, "N": 10}
    rig.jobs = [{**GOOD, "latency_depth": 4, "write": {**GOOD["write"], "runtime": 501, "lat_ns": latency}}]
    asked = {**WRITE, "latency_target": "1ms", "latency_window": "500ms", "latency_percentile": 99}
    (row,) = rig.measure(cell(job=asked))["cells"]
    assert (row["state"], row["reason"], row["summary"]["write"]["runtime_ms"]) == ("ok", "", 501)
    assert any("met its latency_target with a queue depth of 4" in note for note in rig.load("meta.json")["notes"])
    # The same report without the option is of a run that something ended.
    (row,) = rig.measure(cell(repeat=2))["cells"]
    assert (row["state"], row["summary"]) == ("interrupted", None)


def test_one_cell(rig):
    result = rig.measure(cell())
    assert (result["changed"], result["fio_version"]) == (True, "fio-3.33")
    assert result["actions"] == ["measure as_found/w/1 on /dev/sdb (writing)"]
    (row,) = result["cells"]
    assert (row["name"], row["repeat"], row["state"], row["kept"], row["summary"]["write"]["total_ios"]) == ("w", 1, "ok", False, 10)
    assert row["summary"]["read"] is None, "what was not done is no 0"
    assert result["archive"]["path"].endswith("/c1.tar")
    meta = rig.load("meta.json")
    assert (meta["schema"], meta["state"], meta["host"], meta["campaign"], meta["variant"]) == (1, "ok", "node1", "c1", "as_found")
    assert (meta["target"]["path"], meta["target"]["serial"], meta["target"]["identity"]) == ("/dev/sdb", "S-B", "S-B")
    assert (meta["fio_version"], meta["behaviour_class"], meta["asked_runtime"]) == ("fio-3.33", "libaio_sync_blocking", 3.0)
    assert sorted(meta["files"]) == ["device-stats.json", "fio.json.gz", "job.fio", "stack.json"]
    assert rig.file("job.fio").read_text() == rig.sent[0][1], "what was sent is kept byte for byte"


def test_the_stack_and_the_counters_are_recorded_before_and_after(rig):
    stat = rig.root / "sys/class/block/sdb/stat"
    rig.before_fio = lambda: stat.write_text("100 2 3 4 5 6 7 8 9 10 11\n")
    rig.measure(cell())
    stack, stats = rig.load("stack.json"), rig.load("device-stats.json")
    assert stack["before"] == {"name": "sdb", "reading": 1} and stack["after"] == {"name": "sdb", "reading": 2}
    assert (stats["before"]["devices"]["sdb"]["read_ios"], stats["after"]["devices"]["sdb"]["read_ios"]) == (1, 100)


def test_a_stack_that_cannot_be_read_is_said(rig):
    def broken():
        raise StorageError("The tool said nothing.")

    rig.host = MeasuredHost(rig.runner, broken, rig.root, rig.host.read_devices)
    assert rig.measure(cell())["cells"][0]["state"] == "ok"
    assert rig.load("stack.json")["before"] == {"error": "The tool said nothing."}


def test_check_mode_looks_and_runs_nothing(rig):
    result = rig.measure(cell(), check_mode=True)
    assert (result["changed"], result["cells"], result["archive"]) == (True, [], {})
    assert result["actions"] == ["measure as_found/w/1 on /dev/sdb (writing)"]
    assert not rig.sent and not rig.spool.folder.exists()
    with pytest.raises(Refused):
        rig.measure(cell(target={"device": "/dev/sdc"}), check_mode=True)


def test_an_empty_list_needs_no_fio(rig):
    rig.runner.missing = {"fio"}
    assert rig.measure() == {"changed": False, "cells": [], "actions": [], "archive": {}, "fio_version": None}


def test_one_refused_target_stops_all_before_the_first(rig):
    rows = [cell(), cell(name="x", target={"device": "/dev/sdc"}), cell(name="y", target={"device": "/dev/nvme9n9"})]
    with pytest.raises(Refused) as caught:
        rig.measure(*rows)
    assert "/dev/sdc is mounted on /srv" in caught.value.message and "/dev/nvme9n9 does not exist" in caught.value.message
    assert [one["target"] for one in caught.value.facts["refusals"]] == ["/dev/nvme9n9"]
    assert not rig.sent and not rig.spool.folder.exists() and not (rig.root / "dev/nvme9n9").exists()


def test_a_missing_device_alone(rig):
    with pytest.raises(DeviceMissing, match="does not exist on this host"):
        rig.measure(cell(target={"device": "/dev/nvme9n9"}))


def test_a_target_that_changes_meanwhile_is_refused_and_the_others_go_on(rig):
    rows = [cell(), cell(repeat=2), cell(name="r", job={"rw": "read"})]
    rig.before_fio = lambda: rig.signatures.update({"/dev/sdb": [{"type": "ext4"}]})
    rig.jobs = [GOOD, {**GOOD, "jobname": "r", "read": GOOD["write"]}]
    states = [(row["name"], row["repeat"], row["state"]) for row in rig.measure(*rows)["cells"]]
    assert states == [("w", 1, "ok"), ("w", 2, "refused"), ("r", 1, "ok")]
    meta = rig.load("meta.json", repeat=2)
    assert "contains ext4" in meta["reason"] and meta["summary"] is None and meta["files"] == {}


def test_a_failed_cell_leaves_its_folder_and_no_figures(rig):
    rig.rc, rig.stderr = 1, "fio: io_u error on file /dev/sdb: Input/output error\n"
    result = rig.measure(cell())
    assert result["cells"][0]["state"] == "failed" and "Input/output error" in result["cells"][0]["reason"]
    meta = rig.load("meta.json")
    assert meta["summary"] is None and sorted(meta["files"]) == ["device-stats.json", "fio.json.gz", "fio.stderr.gz", "job.fio", "stack.json"]


def test_fio_that_leaves_no_report(rig):
    rig.jobs, rig.rc = None, -9
    assert rig.measure(cell())["cells"][0]["state"] == "interrupted"
    assert "fio.json.gz" not in rig.load("meta.json")["files"]


def test_stopping_at_the_first_that_is_not_ok(rig):
    rig.jobs, rig.rc = None, -9
    result = rig.measure(cell(), cell(repeat=2), keep_going=False)
    assert [row["state"] for row in result["cells"]] == ["interrupted", "missing"]
    assert len(rig.sent) == 1 and not rig.file("meta.json", repeat=2).exists()


def test_what_is_ok_in_the_spool_is_not_measured_again(rig):
    rig.measure(cell())
    again = rig.measure(cell())
    assert (again["changed"], again["actions"], len(rig.sent)) == (False, [], 1)
    assert again["cells"][0]["kept"] and again["cells"][0]["state"] == "ok" and again["archive"]["size"] > 0
    assert rig.measure(cell(), check_mode=True)["changed"] is False
    assert rig.measure(cell(), replace=True)["changed"] is True and len(rig.sent) == 2


def test_what_is_not_ok_in_the_spool_is_measured_again(rig):
    rig.rc = 1
    rig.measure(cell())
    rig.rc = 0
    assert rig.measure(cell())["cells"][0]["state"] == "ok"


def test_another_job_under_the_same_name_is_no_repetition(rig):
    rig.measure(cell())
    with pytest.raises(BadInput, match="collect it first, choose another campaign or variant"):
        rig.measure(cell(job={**WRITE, "bs": "8k"}))


@pytest.mark.parametrize(
    "change",
    [
        lambda rig: cell(target={"device": "/dev/sdb", "size": 2**20}),
        lambda rig: grown(rig, size=2**31) or cell(),
        lambda rig: grown(rig, serial="S-X") or cell(),
        lambda rig: (rig.root / "data").mkdir() or cell(target={"file": "/data/f", "size": 2**30}),
    ],
    ids=["used size", "size", "identity", "kind"],
)
def test_another_target_under_the_same_name_is_no_repetition(rig, change):
    rig.measure(cell())
    row = change(rig)
    with pytest.raises(BadInput, match="measured with another job, target or fio"):
        rig.measure(row)
    assert len(rig.sent) == 1
    assert rig.measure(row, replace=True)["cells"][0]["state"] == "ok"


def grown(rig, **values):
    rig.disks[0] = dataclasses.replace(rig.disks[0], **values)
    os.truncate(rig.root / "dev/sdb", rig.disks[0].size)


def test_a_device_without_a_name_is_the_same_only_under_the_same_path(rig):
    grown(rig, serial=None)
    rig.disks[1] = dataclasses.replace(rig.disks[1], serial=None, mountpoints=())
    rig.measure(cell())
    assert rig.measure(cell())["changed"] is False
    with pytest.raises(BadInput, match="another job, target or fio"):
        rig.measure(cell(target={"device": "/dev/sdc"}))


def test_a_named_device_may_be_found_by_another_path(rig):
    rig.measure(cell())
    (rig.root / "dev/link").symlink_to(rig.root / "dev/sdb")
    assert rig.measure(cell(target={"device": "/dev/link"}))["changed"] is False


def test_a_file_that_fio_has_made_is_the_same_target_afterwards(rig):
    (rig.root / "data").mkdir()
    rig.before_fio = lambda: (rig.root / "data/f").write_bytes(b"x" * 8192)
    row = cell(target={"file": "/data/f", "size": 8192, "allow_data_loss": True})
    rig.measure(row)
    assert rig.measure(row)["changed"] is False


def test_a_device_is_held_while_it_is_written_and_not_while_it_is_read(rig):
    held = []
    node = str(rig.root / "dev/sdb")
    rig.before_fio = lambda: held.append(any(os.path.realpath(f"/proc/self/fd/{name}") == node for name in os.listdir("/proc/self/fd")))
    rig.jobs = [GOOD, {**GOOD, "jobname": "r", "read": GOOD["write"]}]
    rig.measure(cell(), cell(name="r", job={"rw": "read"}))
    assert held == [True, False]


def test_a_device_that_is_taken_after_it_was_examined_is_refused(rig, monkeypatch):
    def taken(facts, root):
        raise Refused("/dev/sdb was free when it was examined and cannot be opened exclusively now: Device or resource busy.")

    monkeypatch.setattr(fio_measure.guard, "claimed", taken)
    (row,) = rig.measure(cell())["cells"]
    assert (row["state"], row["summary"], rig.sent) == ("refused", None, [])
    assert "was free when it was examined" in row["reason"]


def test_a_job_that_reads_forbids_fio_to_write(rig):
    rig.jobs = [{**GOOD, "read": GOOD["write"]}]
    rig.measure(cell(target={"device": "/dev/sdc"}, job={"rw": "randread"}))
    assert "--readonly" in rig.sent[0][0]
    rig.measure(cell(name="v"))
    assert "--readonly" not in rig.sent[1][0]


def test_long_cells_are_dumped_every_minute(rig):
    rig.measure(cell(job={**WRITE, "runtime": 301}), cell(repeat=2))
    assert [("--status-interval=60" in words) for words, _text in rig.sent] == [True, False]


def test_progress_is_written_for_every_cell(rig):
    seen = []
    rig.before_fio = lambda: seen.append(json.loads((rig.spool.home / "progress.json").read_text()))
    rig.measure(cell(), cell(repeat=2))
    assert [(one["cell"], one["cells"], one["repeat"], one["state"]) for one in seen] == [(1, 2, 1, "running"), (2, 2, 2, "running")]
    assert json.loads((rig.spool.home / "progress.json").read_text())["state"] == "ok"


def test_a_file_made_by_one_cell_may_be_used_by_the_next(rig):
    (rig.root / "data").mkdir()
    rig.before_fio = lambda: (rig.root / "data/f").write_bytes(b"x" * 8192)
    row = cell(target={"file": "/data/f", "size": 8192})
    assert [one["state"] for one in rig.measure(row, {**row, "repeat": 2})["cells"]] == ["ok", "ok"]
    assert [one["state"] for one in rig.measure({**row, "repeat": 3})["cells"]] == ["ok"], "it is the campaign's own"
    (rig.root / "data/f").unlink()
    (rig.root / "data/f").write_bytes(b"y" * 8192)
    with pytest.raises(Refused, match="that the collection did not make, or that was changed since"):
        rig.measure({**row, "repeat": 4})


def test_a_fio_that_is_missing_or_too_old(rig):
    rig.runner.replies["fio", "--version"] = Reply("fio-2.0.15\n")
    with pytest.raises(StorageError, match=r"fio 2\.0\.15 on this host is too old") as caught:
        rig.measure(cell())
    assert caught.value.kind == "too_old"
    rig.runner.missing = {"fio"}
    with pytest.raises(StorageError, match="The command fio is missing on this host"):
        rig.measure(cell())


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (cell(name="../x"), "cannot be the name of a cell"),
        (cell(repeat=0) | {"repeat": -1}, "repeat is a number from 1"),
        (cell(target={}), "either device"),
        (cell(target={"device": "/dev/sdb", "file": "/f"}), "either device"),
        (cell(job={"rw": "read", "filename": "/dev/sdc"}), "option filename is refused"),
    ],
)
def test_cells_that_cannot_be_meant(row, words):
    with pytest.raises(BadInput, match=words):
        read_cells("as_found", [row])


def test_a_cell_asked_for_twice():
    with pytest.raises(BadInput, match="asked for twice"):
        read_cells("as_found", [cell(), cell()])


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
def test_a_real_file_with_the_real_fio(tmp_path):
    runner = Runner()
    host = MeasuredHost(runner, lambda: Stack(0))
    row = cell(target={"file": str(tmp_path / "f"), "size": 2**20}, job={"rw": "randrw", "bs": "4k", "number_ios": 200})
    result = measure(read_cells("as_found", [row]), Spool(tmp_path / "spool", "c1"), host, Settings("here", series=True), check_mode=False)
    assert result["cells"][0]["state"] == "ok", result["cells"][0]["reason"]
    summary = result["cells"][0]["summary"]
    assert summary["read"]["total_ios"] + summary["write"]["total_ios"] >= 200
    assert not list((tmp_path / "spool/c1").glob(".cell*"))
    assert fio_measure.SCHEMA == 1
