# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import dataclasses
import json
import pathlib
import signal
import subprocess
import sys

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood, Refused, StorageError, TimedOut, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import operations, places, requirements, ssh
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.noted_process import note_process
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.rack import make_layer
from ansible_collections.cachefleet.storage.tests.unit.plugins.module_utils._rack.test_monitor import Qemu
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host on which ``qemu`` starts a sleeping process and ssh always answers while that one lives."""
    image = {"digest": "one", **{key: str(tmp_path / key) for key in ("base", "kernel", "initrd", "host_key")}}
    for key in ("base", "kernel", "initrd"):
        (tmp_path / key).write_text(key)
    (tmp_path / "host_key").write_text("ssh-ed25519 HOSTKEY root@image\n")
    monkeypatch.setattr(ssh, "greets", lambda *_: True)
    monkeypatch.setattr(places, "free_bytes", lambda _path: 1024**4)
    monkeypatch.setattr(requirements, "free_bytes", lambda _path: 1024**4)
    monkeypatch.setattr(requirements, "available_memory", lambda _root: 64 * 1024**3)
    host = Host(tmp_path, image)
    yield host
    host.close()


class Host:
    def __init__(self, folder, image):
        self.folder = folder
        self.image = image
        self.started = []
        self.replies = {
            ("ssh-keygen",): self.make_key,
            ("qemu-img", "create"): self.make_root,
            ("qemu-system-x86_64",): self.start,
            ("ssh",): self.ssh,
            (sys.executable,): self.serve_disk,
        }
        self.disk_processes = []
        self.missing = ()

    def make_key(self, words):
        path = pathlib.Path(words[-1])
        path.write_text("private")
        path.with_suffix(".pub").write_text("ssh-ed25519 PUBLIC demo\n")
        return Reply()

    def make_root(self, words):
        pathlib.Path(words[-1]).write_text("overlay")
        return Reply()

    def start(self, words):
        process = subprocess.Popen(["sleep", "300"])
        self.started.append(process)
        pathlib.Path(words[words.index("-pidfile") + 1]).write_text(f"{process.pid}\n")
        return Reply()

    def serve_disk(self, words):
        self.disk_processes.append(subprocess.Popen(["sleep", "300"]))
        return Reply(f"{self.disk_processes[-1].pid}\n")

    def ssh(self, words):
        if words[-1] == "poweroff":
            port = words[words.index("-p") + 1]
            notes = json.loads((self.folder / "rack/rack.json").read_text())["machines"].values()
            (pid,) = [note["process"]["pid"] for note in notes if str(note["ssh_port"]) == port]
            next(process for process in self.started if process.pid == pid).terminate()
        return Reply()

    def run(self, state, *machines, check_mode=False, **more):
        options = {
            "name": "demo",
            "directory": str(self.folder / "rack"),
            "cache_dir": str(self.folder / "cache"),
            "image": self.image if state == "started" else None,
            "machines": list(machines),
            "only": [],
            "state": state,
            "how": "shutdown",
            "recreate": False,
            "accelerator": "tcg",
            "ssh_timeout": 5.0,
            **more,
        }
        self.runner = ScriptedRunner(self.replies, missing=self.missing)
        with contextlib.ExitStack() as lock:
            layer = make_layer(self.runner, options, lock, check_mode=check_mode)
            outcome = converge(layer, check_mode=check_mode)
        return {**layer.facts(outcome.state), **outcome.to_dict()}

    def alive(self):
        return [process for process in self.started if process.poll() is None]

    def close(self):
        for process in (*self.started, *self.disk_processes):
            process.kill()
            process.wait()


FORGETFUL = {"name": "f", "disks": [{"name": "d0", "kind": "sata_hdd", "size": "1M", "volatile_cache": "honest"}]}
SERVED = {"name": "s", "processes": [[sys.executable, "serve"]]}
A = {"name": "a", "disks": [{"name": "d0", "kind": "sata_hdd", "size": "1G"}]}
B = {"name": "b"}


def test_rack_lifecycle_from_start_to_removal(host):
    first = host.run("started", A, B)
    assert first["actions"] == ["Create a", "Create b", "Start a", "Start b"]
    assert [machine["state"] for machine in first["machines"]] == ["started", "started"]
    assert len({machine["ssh_port"] for machine in first["machines"]}) == 2
    assert all(machine["boot_seconds"] is not None for machine in first["machines"])
    assert (host.folder / "rack/a/d0.raw").stat().st_size == 1024**3

    second = host.run("started", A, B)
    assert (second["changed"], len(host.alive())) == (False, 2)

    stopped = host.run("stopped")
    assert (stopped["changed"], host.alive()) == (True, [])
    assert host.run("stopped")["changed"] is False

    again = host.run("started", A, B)
    assert again["actions"] == ["Start a", "Start b"]
    assert [machine["ssh_port"] for machine in again["machines"]] == [machine["ssh_port"] for machine in first["machines"]]

    gone = host.run("absent")
    assert (gone["machines"], host.alive()) == ([], [])
    assert not (host.folder / "rack").exists()
    assert host.run("absent")["changed"] is False
    assert not (host.folder / "rack").exists()


def test_machine_that_booted_slowly_gets_more_time_to_answer(host, monkeypatch):
    host.run("started", A)
    path = host.folder / "rack/rack.json"
    path.write_text(path.read_text().replace('"boot_seconds": ', '"boot_seconds": 9'))
    patience = []
    monkeypatch.setattr(ssh, "logs_in", lambda *arguments: patience.append(arguments[-1]) or True)
    host.run("started", A)
    assert patience[0] >= 90


def test_check_mode_predicts_run_and_changes_nothing(host):
    predicted = host.run("started", A, check_mode=True)
    assert not (host.folder / "rack").exists()
    done = host.run("started", A)
    assert (predicted["actions"], predicted["diff"]) == (done["actions"], done["diff"])
    for state in ("stopped", "restarted", "absent"):
        assert host.run(state, check_mode=True)["changed"]
    assert len(host.alive()) == 1


def test_disk_is_unplugged_and_plugged_while_running(host, monkeypatch):
    class Unused:
        def __init__(self, *arguments):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *problem):
            return None

    done = []
    monkeypatch.setattr(operations, "Monitor", Unused)
    monkeypatch.setattr(operations, "plug", lambda _monitor, disk, path: done.append(f"plug {path.name}"))
    monkeypatch.setattr(operations, "unplug", lambda _monitor, disk: done.append(f"unplug {disk.name}"))
    one = {"name": "a", "disks": [{"name": "n0", "kind": "nvme", "size": "1G"}]}
    none = {"name": "a", "disks": [{"name": "n0", "kind": "nvme", "size": "1G", "attached": False}]}
    host.run("started", one)
    assert host.run("started", none)["actions"] == ["Detach the disk n0 from a"]
    assert host.run("started", none)["changed"] is False
    assert host.run("started", one)["actions"] == ["Attach the disk n0 to a"]
    assert done == ["unplug n0", "plug n0.raw"]
    assert len(host.started) == 1


def test_restart_starts_a_new_process(host):
    host.run("started", A)
    host.run("restarted", how="power_cut")
    (process,) = host.alive()
    assert process is host.started[1]


def test_only_the_named_machine_is_changed(host):
    host.run("started", A, B)
    host.run("absent", only=["a"])
    assert not (host.folder / "rack/a").exists()
    assert len(host.alive()) == 1
    assert "a" not in json.loads((host.folder / "rack/rack.json").read_text())["machines"]


def test_resized_disk_is_recreated_only_with_permission(host):
    host.run("started", A)
    larger = {"name": "a", "disks": [{"name": "d0", "kind": "sata_hdd", "size": "2G"}]}
    with pytest.raises(Refused, match="set recreate"):
        host.run("started", larger)
    host.run("started", larger, recreate=True)
    assert (host.folder / "rack/a/d0.raw").stat().st_size == 2 * 1024**3
    assert host.run("started", larger, recreate=True)["changed"] is False


def test_ended_machine_is_started_and_process_reusing_its_id_survives(host):
    host.run("started", A)
    host.close()
    notes = json.loads((host.folder / "rack/rack.json").read_text())
    with subprocess.Popen(["sleep", "60"]) as stranger:
        process = dataclasses.asdict(note_process(stranger.pid))
        notes["machines"]["a"]["process"] = {**process, "start": process["start"] - 1}
        (host.folder / "rack/rack.json").write_text(json.dumps(notes))
        assert host.run("started", A)["actions"] == ["Start a"]
        host.run("absent")
        assert stranger.poll() is None
        stranger.kill()


def test_port_taken_by_another_process_is_replaced(host):
    tries = []

    def start(words):
        tries.append(words)
        if len(tries) == 1:
            return Reply(rc=1, stderr="qemu-system-x86_64: -netdev user: Could not set up host forwarding rule 'tcp:127.0.0.1:22345-:22'\n")
        return host.start(words)

    host.replies[("qemu-system-x86_64",)] = start
    result = host.run("started", A)
    assert len(tries) == 2
    assert f":{result['machines'][0]['ssh_port']}-:22" in " ".join(tries[1])


def test_fixed_port_in_use_is_refused_before_any_change(host, monkeypatch):
    monkeypatch.setattr(ssh, "port_is_free", lambda port: False)
    with pytest.raises(Refused, match="demo/a: port 22345 is used by another process"):
        host.run("started", {**A, "ssh_port": 22345})
    assert not (host.folder / "rack/a").exists()


def test_fixed_port_held_by_the_machine_itself_is_accepted(host, monkeypatch):
    monkeypatch.setattr(ssh, "choose_port", lambda requested, *_rest: requested if not host.alive() else pytest.fail("asked while the machine held it"))
    host.run("started", {**A, "ssh_port": 22345})
    assert host.run("started", {**A, "ssh_port": 22345, "memory": "1G"})["actions"] == ["Shut down a", "Change memory of a", "Start a"]


def test_qemu_start_failure_reports_the_reason(host):
    host.replies[("qemu-system-x86_64",)] = Reply(rc=1, stderr="qemu-system-x86_64: -device nvme: no serial\n")
    with pytest.raises(CommandFailed, match="a: QEMU did not start: qemu-system-x86_64: -device nvme: no serial") as caught:
        host.run("started", A)
    assert caught.value.facts["actions"] == ["Create a"]


def test_unresponsive_machine_is_reported_with_its_last_console_lines(host, monkeypatch):
    monkeypatch.setattr(ssh, "greets", lambda *_: False)

    def start(words):
        (host.folder / "rack/a/console.log").write_text("booting\nrack: the root disk is missing\n")
        return host.start(words)

    host.replies[("qemu-system-x86_64",)] = start
    with pytest.raises(TimedOut, match=r"a did not answer ssh on 127.0.0.1:.* within 0.3 seconds") as caught:
        host.run("started", A, ssh_timeout=0.3)
    assert "rack: the root disk is missing" in caught.value.message
    assert host.run("absent")["changed"]
    assert host.alive() == []


@pytest.mark.parametrize("state", ["started", "stopped"])
def test_machine_paused_for_lack_of_space_is_reported_and_continues(host, monkeypatch, state):
    host.run("started", A)
    qemu = Qemu(host.folder / "rack/a/qmp.sock", status="io-error")
    monkeypatch.setattr(ssh, "greets", lambda *_: qemu.status == "running")
    monkeypatch.setattr(places, "free_bytes", lambda _path: 0)
    with pytest.raises(Refused, match="a is paused, because the disk of the host was full"):
        host.run(state, A)
    monkeypatch.setattr(places, "free_bytes", lambda _path: 1024**4)
    predicted = host.run(state, A, check_mode=True)["actions"]
    assert qemu.status == "io-error"
    assert host.run(state, A)["actions"] == predicted
    assert predicted == ["Continue a, paused because the disk of the host was full" if state == "started" else "Shut down a"]
    assert qemu.status == "running"
    qemu.server.close()


def test_machine_ending_during_start_is_not_awaited(host, monkeypatch):
    monkeypatch.setattr(ssh, "greets", lambda *_: host.started[0].kill() or False)
    with pytest.raises(StorageError, match="The machine a ended while it was starting"):
        host.run("started", A, ssh_timeout=60)


def test_failed_shutdown_error_suggests_the_alternative(host, monkeypatch):
    monkeypatch.setattr(operations, "SHUTDOWN_SECONDS", 0.2)
    host.run("started", A)
    host.replies[("ssh",)] = Reply()
    with pytest.raises(TimedOut, match=r"a did not shut down within 0.2 seconds: stop it with how: power_cut"):
        host.run("stopped")
    host.run("stopped", how="power_cut")
    assert host.alive() == []


def test_missing_image_is_reported_before_any_change(host):
    (host.folder / "kernel").unlink()
    with pytest.raises(StorageError, match=r"The kernel of the machine image is missing .*: build it with the module virtual_rack_image"):
        host.run("started", A)
    assert not (host.folder / "rack/a").exists()


def test_missing_commands_are_reported_in_one_sentence(host):
    host.missing = ("qemu-system-x86_64", "qemu-img")
    with pytest.raises(ToolMissing, match="apt-get install qemu-system-x86 qemu-utils"):
        host.run("started", A)


def test_insufficient_memory_error_reports_required_and_available(host, monkeypatch):
    monkeypatch.setattr(requirements, "available_memory", lambda _root: 1024**3)
    with pytest.raises(Refused, match=r"Not enough memory: starting a, b needs 2 GiB, and 1 GiB are available"):
        host.run("started", A, B)


def test_insufficient_disk_space_error_reports_required_and_free(host, monkeypatch):
    monkeypatch.setattr(places, "free_bytes", lambda _path: 1024**3)
    with pytest.raises(Refused, match=r"creating 2 machines needs 2 GiB in .*rack, and 1 GiB are free"):
        host.run("started", A, B)


def test_metadata_of_another_version_is_rejected(host):
    host.run("started", A)
    (host.folder / "rack/rack.json").write_text('{"schema": 0, "machines": {}}')
    with pytest.raises(StorageError, match="was written by another version"):
        host.run("absent")


@pytest.mark.parametrize("machine", [FORGETFUL, SERVED])
def test_power_cut_ends_the_process_with_the_cache_of_a_disk(host, machine):
    host.run("started", machine)
    (process,) = host.disk_processes
    assert process.poll() is None
    host.run("stopped", how="power_cut")
    assert process.wait(5) == -signal.SIGKILL
    host.run("started", machine)
    assert host.disk_processes[1].poll() is None
    host.run("absent")
    assert host.disk_processes[1].wait(5) == -signal.SIGKILL


def test_process_that_ends_at_once_is_an_error_and_no_machine_is_started(host):
    host.replies[(sys.executable,)] = Reply("")
    with pytest.raises(NotUnderstood, match=f"The process {sys.executable} of s ended at once"):
        host.run("started", SERVED)
    assert host.started == []


def test_power_is_cut_without_logging_in(host, monkeypatch):
    """A machine under load takes a minute for a login, and nothing depends on it."""
    host.run("started", A)
    monkeypatch.setattr(ssh, "greets", lambda *_: pytest.fail("the machine was asked"))
    assert host.run("stopped", how="power_cut", only=["a"])["actions"] == ["Cut the power of a"]
    assert host.alive() == []


def test_restarted_machine_is_asked_only_after_its_start(host, monkeypatch):
    host.run("started", A)
    asked = []
    monkeypatch.setattr(ssh, "greets", lambda *_: asked.append(len(host.started)) or True)
    host.run("restarted", how="power_cut")
    assert asked
    assert set(asked) == {2}


def test_failed_start_leaves_no_process_of_a_disk(host):
    host.replies["qemu-system-x86_64",] = Reply(rc=1, stderr="qemu: no")
    with pytest.raises(CommandFailed, match="QEMU did not start"):
        host.run("started", FORGETFUL)
    assert host.disk_processes[0].wait(5) == -signal.SIGKILL
