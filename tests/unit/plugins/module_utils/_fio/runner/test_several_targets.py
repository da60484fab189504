# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One cell whose sections run on several targets: each of them is guarded, held and recorded like that of a cell of its own."""

from __future__ import annotations

import dataclasses
import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.snapshots import Snapshot
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.tests.unit.support.runner_rig import RunnerRig

COMMON = {"direct": 1, "time_based": True, "runtime": "100ms"}
READER = {"name": "reader", "rw": "read", "target": "source"}
WRITER = {"name": "writer", "rw": "write"}


@pytest.fixture
def rig(tmp_path, monkeypatch):
    rig = RunnerRig(tmp_path, monkeypatch)
    rig.behave(all_sections=True)
    yield rig
    rig.end()


def copy(*sections, target=None, **others):
    cell = {"name": "w", "target": target or {"device": "/dev/sdb"}, "targets": others, "job": {"global": COMMON, "jobs": list(sections)}}
    return {"cells": [cell]}


def test_both_targets_are_in_job_stack_and_hashes(rig):
    (row,) = rig.finish(copy(READER, WRITER, source={"device": "/dev/sdc", "size": 4096}))
    assert row["state"] == "ok", row
    meta = rig.meta()
    assert meta["target"]["path"] == "/dev/sdb"
    assert [(one["name"], one["path"], one["serial"], one["sections"], one["directions"]) for one in meta["targets"]] == [
        (None, "/dev/sdb", "S-b", ["writer"], ["write"]),
        ("source", "/dev/sdc", "S-c", ["reader"], ["read"]),
    ]
    assert "Its sections ran on 2 targets at once: writer on /dev/sdb; reader on /dev/sdc." in meta["notes"]
    folder = rig.spool.place(CellKey("v", "w", 1))
    common, reader, writer = (folder / "job.fio").read_text().split("\n\n")
    assert "filename" not in common and "size" not in common
    assert "filename=/dev/sdc" in reader and "size=4096" in reader and "allow_file_create=0" in reader
    assert "filename=/dev/sdb" in writer and "size=" not in writer
    assert len(json.loads((folder / "stack.json").read_text())["before"]["targets"]) == 2
    # The very same again is kept; with another source it is another measurement.
    (row,) = rig.finish(copy(READER, WRITER, source={"device": "/dev/sdc", "size": 4096}))
    assert row["kept"]
    (row,) = rig.finish(copy(READER, WRITER, source={"device": "/dev/sdc", "size": 8192}))
    assert not row["kept"]
    assert rig.meta()["measurement_sha256"] != meta["measurement_sha256"]
    assert rig.meta()["workload_sha256"] == meta["workload_sha256"]


def test_only_a_target_that_is_written_must_be_free(rig):
    rig.disks[1] = dataclasses.replace(rig.disks[1], mountpoints=("/srv",))
    (row,) = rig.finish(copy(READER, WRITER, source={"device": "/dev/sdc"}))
    assert row["state"] == "ok", row
    with pytest.raises(Refused, match=r"fio will not write to /dev/sdc: .*mounted on /srv"):
        rig.start(copy({**READER, "rw": "write"}, {**WRITER, "rw": "read"}, source={"device": "/dev/sdc"}))


def test_permission_of_one_target_is_none_for_the_other(rig):
    with open(rig.root / "dev/sdc", "r+b") as node:
        node.write(b"data of a user")
    permitted = {"device": "/dev/sdb", "allow_data_loss": True, "identity": "S-b"}
    with pytest.raises(Refused, match=r"fio will not write to /dev/sdc: .*data without a known signature.*identity: \"S-c\""):
        rig.start(copy({**READER, "rw": "write"}, WRITER, target=permitted, source={"device": "/dev/sdc"}))
    with pytest.raises(Refused, match="does not have the identity S-b"):
        rig.start(copy(READER, WRITER, source={"device": "/dev/sdc", "identity": "S-b"}))
    allowed = {"device": "/dev/sdc", "allow_data_loss": True, "identity": "S-c"}
    (row,) = rig.finish(copy({**READER, "rw": "write"}, WRITER, target=permitted, source=allowed))
    assert row["state"] == "ok", row


def test_two_names_of_one_device_are_refused(rig):
    (rig.root / "dev/disk").mkdir()
    os.symlink("../sdb", rig.root / "dev/disk/same")
    with pytest.raises(Refused, match=r"its targets /dev/sdb and /dev/disk/same are the same \(/dev/sdb\)"):
        rig.start(copy(READER, WRITER, source={"device": "/dev/disk/same"}))


def test_device_that_a_section_writes_is_held_for_the_whole_order(rig):
    (row,) = rig.finish(copy({**READER, "rw": "write"}, WRITER, source={"device": "/dev/sdc"}))
    assert row["state"] == "ok", row
    assert len(json.loads((rig.spool.folder / ".left_devices.json").read_text())) == 2


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (copy(READER, WRITER), "a section runs on the target source, which the cell does not have"),
        (copy(WRITER, source={"device": "/dev/sdc"}), "no section runs on the target 'source'"),
        (copy(READER, source={"device": "/dev/sdc"}), "no section runs on the target of the cell"),
        (copy(READER, WRITER, source={"device": "/dev/sdb"}), "two targets of w are /dev/sdb"),
        (copy(READER, WRITER, source={"device": "/dev/sdc", "folder": 1}), "'folder' is not supported in the cell w"),
        (copy(READER, WRITER, source="/dev/sdc"), "must be a dictionary of targets"),
        (copy(READER, WRITER, source={"device": "/dev/sdc", "file": "/f"}), "either device .* or file"),
        (copy(READER, WRITER, source={"device": "/dev/sdc", "allow_data_loss": "no"}), "must be true or false"),
    ],
)
def test_wrong_targets_are_one_sentence(step, words):
    with pytest.raises(BadInput, match=words) as caught:
        read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [step]})
    assert "\n" not in caught.value.message


LOG = "fio version 2 iolog\nx add\nx open\nx read 0 4096\nx close\n"


def replaying(log, other=LOG, **target):
    step = copy(READER, WRITER, **target, source={"device": "/dev/sdc"})
    step["cells"][0]["job"] = {"jobs": [{"name": "reader", "target": "source", "read_iolog": log}, {"name": "writer", "read_iolog": other}]}
    return step


def test_one_log_on_several_targets_is_rejected():
    with pytest.raises(BadInput, match=r"one and the same log .* is replayed on several targets"):
        read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [replaying(LOG, LOG.replace("x", "y"))]})


def test_each_target_has_the_log_of_its_sections(rig):
    steps = [replaying(LOG, LOG.replace("read 0", "write 4096"))]
    assert rig.start(*steps, check_mode=True)["changed"]
    prepared = rig.order(*steps)
    (cell,) = [one.cell for one in prepared.requested]
    assert [(part.target.path, part.job.writes, [log.end for log in part.job.replays.values()]) for part in cell.parts] == [
        ("/dev/sdb", True, [8192]),
        ("/dev/sdc", False, [4096]),
    ]
    text = fio_job.render(cell.job, facts("/dev/sdb"), others={"source": facts("/dev/sdc")})
    _common, reader, writer = text.split("\n\n")
    assert "replay_redirect=/dev/sdc" in reader and "replay_redirect=/dev/sdb" in writer
    with pytest.raises(Refused, match=r"will not replay the log of w on /dev/sdc: it ends at byte 1099511631872"):
        rig.start(replaying(LOG.replace("read 0", "read 1099511627776"), LOG))


def facts(path):
    return TargetFacts(target=GuardTarget(path), path=path, size=10**9)


def test_cells_at_once_may_share_what_they_only_read():
    one, other = (copy(READER, WRITER, target={"device": path}, source={"device": "/dev/sdc"})["cells"][0] for path in ("/dev/sdb", "/dev/sdd"))
    steps = [{"cells": [one, {**other, "name": "x"}]}]
    read_order({"campaign": "c", "variant": "v", "host": "h", "steps": steps})
    with pytest.raises(BadInput, match="w and x would run on /dev/sdc at once, and one of them writes"):
        read_order(
            {"campaign": "c", "variant": "v", "host": "h", "steps": [{"cells": [one, {"name": "x", "target": {"device": "/dev/sdc"}, "job": {"rw": "write"}}]}]}
        )


def test_file_in_a_directory_that_is_used_at_once_is_rejected():
    small = {"name": "reader", "rw": "read", "target": "source", "nrfiles": 2, "filesize": "4k"}
    inside = copy(small, WRITER, target={"file": "/srv/files/s0.0.0", "size": 4096}, source={"directory": "/srv/files"})
    with pytest.raises(BadInput, match=r"/srv/files/s0\.0\.0 and /srv/files would be used at once, and one is in the other"):
        read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [inside]})
    beside = copy(small, WRITER, target={"file": "/srv/files2", "size": 4096}, source={"directory": "/srv/files"})
    read_order({"campaign": "c", "variant": "v", "host": "h", "steps": [beside]})


def test_verdict_is_the_worst_of_what_is_written():
    stacks = {
        "sda": {"verdict": "at_risk", "layers": [{"name": "sda"}]},
        "sdb": {"verdict": "durable", "layers": [{"name": "sdb", "kind": "disk"}]},
        "sdc": {"error": "gone"},
    }
    snapshot = Snapshot(0.0, stacks, {}, "")
    both = snapshot.stack_of_all({"sdb": True, "sda": False})
    assert (both["verdict"], [layer["name"] for layer in both["layers"]]) == ("durable", ["sdb", "sda"])
    assert snapshot.stack_of_all({"sdb": True, "sda": True})["verdict"] == "at_risk"
    assert "verdict" not in snapshot.stack_of_all({"sdb": True, "sdc": True})
    assert snapshot.stack_of_all({"sda": True}) == snapshot.stack("sda")
    assert snapshot.sha256_of_all(["sda"]) == snapshot.sha256("sda")
    assert len({snapshot.sha256_of_all(names) for names in (["sda"], ["sdb"], ["sda", "sdb"], ["sdb", "sda"])}) == 4
