# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import json
import os
import signal
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_verifier, host_witness, host_writer
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.background import BackgroundRun, make_private_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec

RUN, OTHER = "5a" * 16, "5b" * 16
SECRET = b"s" * 32
BLOCK = 4096


def no_devices():
    return Devices([])


@pytest.fixture
def host(tmp_path):
    """Folders of a witness and of a writer; whatever a test leaves running is ended."""
    yield tmp_path
    for folder in (tmp_path / "witness", tmp_path / "writer"):
        for run in (RUN, OTHER):
            BackgroundRun(folder, run).stop()


def start_witness(host, secret=SECRET, run=RUN, hosts=("127.0.0.1",)):
    return host_witness.start(host / "witness", run, secret, host_witness.WitnessSpec("127.0.0.1", 0, hosts, 300.0))[1]


def start_writer(host, port, *, run=RUN, secret=SECRET, name="file", **more):
    spec = RunSpec(str(host / name), "file", None, 64 * BLOCK, direct=False, **more)
    facts = TargetFacts(GuardTarget(spec.path, kind="file", size=spec.extent), spec.path, exists=False)
    host_writer.start(spec, facts, run, host_writer.WitnessAddress("127.0.0.1", port, secret), Runner(), host / "writer")
    return spec


def cut(host, writes=20):
    """The writer is killed where the power would be cut."""
    host_witness.wait_for_writes(host / "witness", RUN, writes, 20.0)
    host_witness.announce_cut(host / "witness", RUN, 20.0)
    os.kill(BackgroundRun(host / "writer", RUN).read()["pid"], signal.SIGKILL)
    wait_for(lambda: not BackgroundRun(host / "writer", RUN).is_alive())
    host_witness.stop(host / "witness", RUN, forget=False)
    return host / "witness" / f"{RUN}.log"


def wait_for(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def verify(log, monkeypatch, run=RUN, *, rebooted=True):
    if rebooted:
        monkeypatch.setattr(host_verifier, "boot_id", lambda: "another boot")
    return host_verifier.verify(log, run, no_devices, Runner(), timeout=0)


@pytest.mark.parametrize(
    "load", [{"depth": 4}, {"layout": "rename"}, {"layout": "append", "sync": "fdatasync"}, {"bulk": True}], ids=["in_place", "rename", "append", "bulk"]
)
def test_run_is_written_verified_and_removed(host, monkeypatch, load):
    start_writer(host, start_witness(host), **load)
    if load.get("layout") == "append":
        # It ends with its file; nothing is in flight then.
        wait_for(lambda: BackgroundRun(host / "writer", RUN).read().get("state") == "ended")
        with pytest.raises(CommandFailed, match="nothing would be in flight"):
            host_witness.wait_for_writes(host / "witness", RUN, 20, 20.0)
        return
    found = verify(cut(host), monkeypatch)
    assert (found["verdict"], found["fence_damaged"], found["rebooted"]) == ("kept", 0, True), found
    assert host_writer.remove(RUN, no_devices, Runner(), host / "writer")
    assert not (host / "file").exists()
    assert not host_writer.remove(RUN, no_devices, Runner(), host / "writer")


def test_host_that_has_not_booted_proves_nothing(host, monkeypatch):
    start_writer(host, start_witness(host))
    assert verify(cut(host), monkeypatch, rebooted=False)["verdict"] == "proves_nothing"


def test_damaged_fence_is_a_loss(host, monkeypatch):
    spec = start_writer(host, start_witness(host))
    log = cut(host)
    with open(spec.path, "r+b") as handle:
        handle.seek((spec.places + 3) * BLOCK)
        handle.write(b"x")
    found = verify(log, monkeypatch)
    assert (found["verdict"], found["damaged"], found["fence_damaged"]) == ("lost", 0, 1)


@pytest.mark.parametrize("layout", ["in_place", "rename"])
def test_target_that_is_gone_is_lost(host, monkeypatch, layout):
    start_writer(host, start_witness(host), layout=layout)
    log = cut(host)
    os.rename(host / "file", host / "moved")
    found = verify(log, monkeypatch)
    assert found["verdict"] == "lost"
    assert found["damaged"] == found["places"] > 0


def test_log_of_another_run_is_refused(host, monkeypatch):
    start_writer(host, start_witness(host))
    with pytest.raises(Refused, match="is of the run"):
        verify(cut(host), monkeypatch, run=OTHER)


def test_log_without_options_is_refused(host, monkeypatch):
    log = host / "x.log"
    host_witness.note_event(log, "cut")
    with pytest.raises(NotUnderstood):
        verify(log, monkeypatch)


def test_wrong_secret_is_refused_and_leaves_no_file(host):
    with pytest.raises(StorageError, match="refused this writer"):
        start_writer(host, start_witness(host), secret=b"x" * 32)
    assert not (host / "file").exists()


def test_writer_from_another_host_is_refused(host):
    with pytest.raises(StorageError, match="accepts only the hosts of its play"):
        start_writer(host, start_witness(host, hosts=("192.0.2.1",)))


def test_missing_witness_is_one_sentence(host):
    with pytest.raises(StorageError, match="cannot be reached"):
        start_writer(host, 1)
    assert not (host / "file").exists()


def test_second_writer_on_the_same_file_is_refused(host):
    start_writer(host, start_witness(host))
    port = start_witness(host, run=OTHER)
    with pytest.raises(StorageError, match="cannot be made: File exists"):
        start_writer(host, port, run=OTHER)
    assert BackgroundRun(host / "writer", RUN).is_alive()
    assert (host / "file").exists(), "the file of the first run was removed"


def test_file_with_the_name_of_the_target_is_not_removed(host):
    start_writer(host, start_witness(host))
    BackgroundRun(host / "writer", RUN).stop()
    os.rename(host / "file", host / "moved")
    (host / "file").write_text("of another")
    with pytest.raises(Refused, match="not what the power-loss test made"):
        host_writer.remove(RUN, no_devices, Runner(), host / "writer")
    assert (host / "file").read_text() == "of another"


def test_run_cannot_be_started_twice(host):
    port = start_witness(host)
    start_writer(host, port)
    assert not start_again(host, port), "started a second process"
    BackgroundRun(host / "writer", RUN).stop()
    with pytest.raises(Refused, match="was started before"):
        start_again(host, port)


def start_again(host, port):
    spec = RunSpec(str(host / "file"), "file", None, 64 * BLOCK, direct=False)
    facts = TargetFacts(GuardTarget(spec.path, kind="file", size=spec.extent), spec.path, exists=False)
    return host_writer.start(spec, facts, RUN, host_writer.WitnessAddress("127.0.0.1", port, SECRET), Runner(), host / "writer")


def test_cut_is_refused_after_the_writer_was_killed(host):
    start_writer(host, start_witness(host))
    host_witness.wait_for_writes(host / "witness", RUN, 5, 20.0)
    os.kill(BackgroundRun(host / "writer", RUN).read()["pid"], signal.SIGKILL)
    wait_for(lambda: b"connection_lost" in (host / "witness" / f"{RUN}.log").read_bytes())
    with pytest.raises(CommandFailed, match="nothing would be in flight"):
        host_witness.announce_cut(host / "witness", RUN, 5.0)


def test_writer_ends_when_its_witness_is_killed(host):
    start_writer(host, start_witness(host))
    host_witness.wait_for_writes(host / "witness", RUN, 5, 20.0)
    os.kill(BackgroundRun(host / "witness", RUN).read()["pid"], signal.SIGKILL)
    wait_for(lambda: BackgroundRun(host / "writer", RUN).read()["state"] == "failed")
    assert "witness is gone" in BackgroundRun(host / "writer", RUN).read()["message"]
    with pytest.raises(Refused, match="heard nothing"):
        host_witness.announce_cut(host / "witness", RUN, 0.5)


def test_witness_that_was_killed_is_started_again_at_its_port(host):
    port = start_witness(host)
    os.kill(BackgroundRun(host / "witness", RUN).read()["pid"], signal.SIGKILL)
    wait_for(lambda: not BackgroundRun(host / "witness", RUN).is_alive())
    assert start_witness(host) == port


def test_secret_is_in_no_file(host):
    start_writer(host, start_witness(host))
    host_witness.wait_for_writes(host / "witness", RUN, 5, 20.0)
    for path in [*(host / "witness").iterdir(), *(host / "writer").iterdir()]:
        assert SECRET not in path.read_bytes(), path
        assert SECRET.hex().encode() not in path.read_bytes(), path


def test_too_few_writes_time_out(host):
    start_witness(host)
    with pytest.raises(StorageError, match="less than 5"):
        host_witness.wait_for_writes(host / "witness", RUN, 5, 0.1)


def test_folder_of_others_is_refused(host):
    (host / "witness").mkdir(mode=0o777)
    os.chmod(host / "witness", 0o777)
    with pytest.raises(CommandFailed, match="other users cannot write"):
        start_witness(host)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_folder_below_that_of_another_user_is_refused(tmp_path):
    (tmp_path / "home").mkdir()
    os.chown(tmp_path / "home", 65534, 65534)
    with pytest.raises(CommandFailed, match=r"belongs to the user with UID 65534.*or name another folder"):
        make_private_folder(tmp_path / "home/runs")
    assert not (tmp_path / "home/runs").exists()


def test_folder_without_permission_names_become(tmp_path, monkeypatch):
    def refused(*_args, **_options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(CommandFailed, match=r"cannot be made by user \d+: set become: true\.$"):
        make_private_folder(tmp_path / "runs")


def test_other_data_in_the_range_is_not_overwritten(host):
    spec = start_writer(host, start_witness(host))
    cut(host)
    with open(spec.path, "rb") as handle:
        host_writer._require_test_data(spec, handle.fileno())
    with open(spec.path, "r+b") as handle:
        handle.seek(5 * BLOCK + 600)
        handle.write(b"data of another")
    with open(spec.path, "rb") as handle, pytest.raises(Refused, match="at byte 20992"):
        host_writer._require_test_data(spec, handle.fileno())


@pytest.mark.parametrize(("path", "message"), [("/dev/shm/x", "no file may be made there"), ("/nowhere/x", "does not exist"), (__file__, "exists")])
def test_guard_examines_the_target(path, message):
    spec = RunSpec(path, "file", None, 64 * BLOCK)
    with pytest.raises(StorageError) as caught:
        host_writer.examine(GuardTarget(path, kind="file", allow_data_loss=True), spec, no_devices(), Runner())
    assert message in caught.value.message


def test_state_of_a_run_is_readable_json(host):
    start_writer(host, start_witness(host))
    note = json.loads((host / "writer" / f"{RUN}.json").read_text())
    assert note["state"] == "writing"
    assert RunSpec(**note["spec"]).places == 64
