# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Traces on a host made of files: what is started, refused, stopped, packed and removed."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import process_identity
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import control
from ansible_collections.cachefleet.storage.tests.unit.support import planted_traces as planted
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

OPTIONS: dict[str, t.Any] = {"devices": ["/dev/sda"], "seconds": 3600.0, "bytes": "64M", "host": "db1"}


class Host:
    """A host that can record: systemd, tracefs, a disk with a partition, and a device of device-mapper on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fake = FakeHost(root)
        disk = self.fake.disk("sda", serial="A")
        (disk / "mq").mkdir()
        self.fake.partition("sda", 1)
        (disk / "sda1/start").write_text("2048\n")
        self.fake.disk("dm-0", "virtual", dm_name="vg0-data", slaves=["sda"])
        (root / "run/systemd/system").mkdir(parents=True)
        planted.PlantedTracefs(root)
        self.runner = ScriptedRunner({("udevadm",): self.fake.udev_reply, ("systemd-run",): self.started, ("systemctl",): Reply()})
        self.fails = False

    def run(self, name: str = "monday") -> control.TraceRun:
        return control.TraceRun(control.FOLDER, name, self.runner, self.root)

    @property
    def home(self) -> Path:
        return self.root / control.FOLDER.lstrip("/") / "monday"

    def report(self, **changed: t.Any) -> None:
        status = {"schema": 1, "state": "measuring", "message": "", **process_identity(), **changed}
        (self.home / "runner.json").write_text(json.dumps(status))

    def started(self, _words: t.Any) -> Reply:
        """What a recorder does as a service of systemd."""
        if self.fails:
            self.report(state="failed", message="The kernel of this host does not record requests.", pid_started=1)
            return Reply(rc=1, stderr="Job for cachefleet-trace-monday.service failed.")
        self.report()
        return Reply()

    def files(self) -> set[str]:
        return {str(path.relative_to(self.root)) for path in (self.root / "var").rglob("*")} if (self.root / "var").exists() else set()

    def words(self) -> list[str]:
        return next(list(words) for words in self.runner.calls if words[0] == "systemd-run")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def refusal(host: Host, **changed: t.Any) -> str:
    before = host.files()
    with pytest.raises(StorageError) as caught:
        host.run().start({**OPTIONS, **changed}, check_mode=False)
    # Nothing was changed on the host.
    assert host.files() - before <= {"var", "var/lib", "var/lib/cachefleet", "var/lib/cachefleet/traces"}
    assert caught.value.message.count(". ") <= 1
    return caught.value.message


def test_a_recording_is_a_service_with_limits_that_cleans_up(host: Host) -> None:
    result = host.run().start({**OPTIONS, "devices": ["/dev/sda", "/dev/sda1", "/dev/dm-0"]}, check_mode=False)
    assert (result["changed"], result["running"], result["state"]) == (True, True, "measuring")
    words = host.words()
    properties = [word.partition("=")[2] for word in words if word.startswith("--property=")]
    instance = host.root / "sys/kernel/tracing/instances/cachefleet-monday"
    assert {"Type=notify", "RuntimeMaxSec=3720", "MemoryMax=44M", "CPUQuota=50%", "Nice=10"} <= set(properties)
    assert f"ExecStopPost=-rmdir {instance}" in properties
    assert f"ExecStopPost=-find {host.home} -maxdepth 1 -type f -name .* -delete" in properties
    assert "--unit=cachefleet-trace-monday.service" in words and "--collect" in words
    assert words[-2:] == [str(host.home / ".recorder.zip"), str(host.home)]
    order = json.loads((host.home / "order.json").read_text())
    assert (order["name"], order["host"], order["seconds"], order["bytes"]) == ("monday", "db1", 3600.0, 64 << 20)
    dev = int(order["devices"][0]["number"].split(":")[0]) << 20
    assert [(one["dev"], one["is_disk"]) for one in order["devices"]] == [(dev, True), (dev, True), (dev + (1 << 20), False)]
    assert order["devices"][1]["start"] > 0 == order["devices"][0]["start"]


def test_the_code_of_the_recorder_runs_from_its_archive(host: Host, tmp_path: Path) -> None:
    """Without this collection around it, as on a host whose task has ended: it begins, and reports what it does not find."""
    host.run().start(OPTIONS, check_mode=False)
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    order = {"name": "monday", "host": "db1", "seconds": 1.0, "bytes": 1 << 20, "devices": [], "tracefs": str(tmp_path / "nothing")}
    (folder / "order.json").write_text(json.dumps(order))
    words = [sys.executable, "-I", "-S", "-B", str(host.home / ".recorder.zip"), str(folder)]
    completed = subprocess.run(words, capture_output=True, text=True, cwd="/", env={}, check=False)
    assert (completed.returncode, completed.stderr) == (1, "")
    assert "its kernel cannot record requests" in json.loads((folder / "runner.json").read_text())["message"]


def test_no_change_on_second_run(host: Host) -> None:
    host.run().start(OPTIONS, check_mode=False)
    assert host.run().start(OPTIONS, check_mode=False)["changed"] is False
    host.report(state="finished", pid_started=1)
    # It waits to be fetched.
    assert host.run().start(OPTIONS, check_mode=False) == {
        "changed": False, "running": False, "state": "finished", "message": "", "folder": str(host.home),
    }  # fmt: skip
    assert "with other options" in refusal(host, seconds=60.0)
    assert len([words for words in host.runner.calls if words[0] == "systemd-run"]) == 1


def test_a_start_that_was_interrupted_is_done_again(host: Host) -> None:
    host.run().start(OPTIONS, check_mode=False)
    (host.home / "runner.json").unlink()
    assert host.run().start({**OPTIONS, "seconds": 60.0}, check_mode=False)["changed"] is True


def test_an_empty_list_records_nothing(host: Host) -> None:
    assert host.run().start({**OPTIONS, "devices": []}, check_mode=False)["changed"] is False
    assert host.files() == set() and host.runner.calls == []


def test_check_mode_predicts_run(host: Host) -> None:
    assert host.run().start(OPTIONS, check_mode=True)["changed"] is True
    assert host.files() == set()
    host.run().start(OPTIONS, check_mode=False)
    before = host.files()
    assert host.run().stop(check_mode=True)["changed"] is True
    assert host.run().remove(check_mode=True)["changed"] is True
    assert host.run().pack(check_mode=True)["files"] == {}
    assert host.files() == before and not any(words[0] == "systemctl" for words in host.runner.calls)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"devices": ["/dev/nothing"]}, "/dev/nothing does not exist on this host"),
        ({"devices": ["/dev/sda", "/dev/../dev/sda"]}, "only once"),
        ({"seconds": 0.5}, "seconds must be between 1 and 604800"),
        ({"seconds": float("nan")}, "seconds must be between 1 and 604800"),
        ({"seconds": 604801.0}, "seconds must be between 1 and 604800"),
        ({"bytes": "much"}, "bytes 'much' is not a size"),
        ({"bytes": "1k"}, "bytes must be between 1 MiB and 1 GiB"),
        ({"devices": ["/dev/sda", "/dev/sda1", "/dev/dm-0"], "seconds": 604800.0}, "30,000 minutes of all devices together"),
    ],
)
def test_invalid_options_are_rejected(host: Host, changed: dict[str, t.Any], message: str) -> None:
    assert message in refusal(host, **changed)


def test_a_name_that_is_no_folder_is_rejected(host: Host) -> None:
    with pytest.raises(StorageError, match="cannot be the name of a trace"):
        host.run("../../etc")


def test_a_host_without_systemd_is_refused(host: Host) -> None:
    (host.root / "run/systemd/system").rmdir()
    assert "not run by systemd" in refusal(host)
    (host.root / "run/systemd/system").mkdir()
    host.runner.missing = {"systemd-run"}
    assert "systemd-run is missing" in refusal(host)


def test_a_host_without_tracefs_is_refused(host: Host) -> None:
    (host.root / "sys/kernel/tracing").rename(host.root / "sys/kernel/elsewhere")
    assert "tracefs is not mounted" in refusal(host)


def test_an_instance_of_another_recording_is_refused(host: Host) -> None:
    (host.root / "sys/kernel/tracing/instances/cachefleet-monday").mkdir()
    assert "another trace of that name is recorded" in refusal(host)


def test_too_little_space_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _path: type("Found", (), {"f_bavail": 100 << 20, "f_frsize": 1}))
    assert "has 100 MiB free, and 192 MiB are needed" in refusal(host)


def test_a_recorder_that_does_not_begin_is_the_error(host: Host) -> None:
    host.fails = True
    assert refusal(host) == "The kernel of this host does not record requests."
    host.runner.replies["systemd-run",] = Reply(rc=1, stderr="Unknown assignment: Type=notify")
    assert "The recorder did not start on this host" in refusal(host)
    # What may have been started nevertheless is stopped.
    assert host.runner.calls[-1] == ("systemctl", "stop", "cachefleet-trace-monday.service")


def test_a_recorder_that_was_killed_is_a_failure(host: Host) -> None:
    host.run().start(OPTIONS, check_mode=False)
    host.report(pid_started=1)
    found = host.run().stop(check_mode=False)
    assert (found["changed"], found["running"], found["state"]) == (False, False, "failed")
    assert "ended unexpectedly" in found["message"]


def test_a_running_recorder_is_stopped(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.run().start(OPTIONS, check_mode=False)
    host.runner.replies["systemctl",] = lambda _words: host.report(state="stopped", pid_started=1) or Reply()
    monkeypatch.setattr(control, "wait_for_end", lambda _status, _seconds: True)
    assert host.run().stop(check_mode=False) == {"changed": True, "running": False, "state": "stopped", "message": "", "folder": str(host.home)}
    assert host.run().remove(check_mode=False) == {"changed": True, "running": False, "state": "", "message": "", "folder": str(host.home)}
    assert not host.home.exists() and host.run().remove(check_mode=False)["changed"] is False


def test_a_recorder_that_does_not_end_is_an_error(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.run().start(OPTIONS, check_mode=False)
    monkeypatch.setattr(control, "wait_for_end", lambda _status, _seconds: False)
    with pytest.raises(StorageError, match="does not end"):
        host.run().remove(check_mode=False)
    assert host.home.exists()


def test_only_a_recording_that_has_ended_is_packed(host: Host) -> None:
    host.run().start(OPTIONS, check_mode=False)
    with pytest.raises(StorageError, match="is still being recorded"):
        host.run().pack(check_mode=False)
    host.report(state="finished", pid_started=1)
    assert host.run().pack(check_mode=False)["files"] == {}
    contents = {"trace.json": b"{}", "requests.bin": bytes(64)}
    for name, content in contents.items():
        (host.home / name).write_bytes(content)
        (host.home / name).chmod(0o600)
    assert host.run().pack(check_mode=True)["files"] == {}
    found = host.run().pack(check_mode=False)
    assert found["files"] == {name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in contents.items()}
    # The user of the connection fetches them.
    assert {(host.home / name).stat().st_mode & 0o777 for name in contents} == {0o644}


def test_the_folder_of_another_user_is_refused(host: Host) -> None:
    host.run().start(OPTIONS, check_mode=False)
    host.home.chmod(0o777)
    for call in (host.run().stop, host.run().pack, host.run().remove):
        with pytest.raises(StorageError, match="may write to the spool"):
            call(check_mode=False)
