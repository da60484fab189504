# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import threading

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import places
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.monitor import Monitor, continue_with_room, is_out_of_space, plug, unplug

DISK = describe_machines("demo", [{"name": "a", "disks": [{"name": "nvme0", "kind": "nvme", "size": "1G"}]}])[0].disks[0]


class Qemu:
    """Enough of QEMU's control protocol, with an event before every answer; answers as QEMU 7.2 gives them."""

    def __init__(self, path, *, plugged=False, lets_go=True, drive_answer="OK\r\n", status="running"):
        self.status = status
        self.devices = {"disk-nvme0"} if plugged else set()
        self.lets_go = lets_go
        self.drive_answer = drive_answer
        self.seen = []
        self.server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.server.bind(str(path))
        self.server.listen()
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self.server.accept()
                with connection, connection.makefile("rw") as lines:
                    self.send(lines, {"QMP": {"version": {}, "capabilities": []}})
                    for line in lines:
                        request = json.loads(line)
                        self.send(lines, {"event": "RTC_CHANGE", "data": {"offset": 0}})
                        self.send(lines, self.answer(request["execute"], request["arguments"]))

    @staticmethod
    def send(lines, message):
        lines.write(json.dumps(message) + "\r\n")
        lines.flush()

    def answer(self, command, arguments):
        self.seen.append((command, arguments))
        if command == "qom-list":
            return {"return": [{"name": name, "type": "child<nvme>"} for name in sorted(self.devices)]}
        if command == "device_del" and self.lets_go:
            self.devices.remove(arguments["id"])
        if command == "device_add":
            self.devices.add(arguments["id"])
        if command == "human-monitor-command":
            return {"return": self.drive_answer if arguments["command-line"].startswith("drive_add") else "Error: Device 'drive-nvme0' not found\r\n"}
        if command == "query-status":
            return {"return": {"status": self.status, "singlestep": False, "running": self.status == "running"}}
        if command == "cont":
            self.status = "running"
        if command == "nonsense":
            return {"error": {"class": "CommandNotFound", "desc": "The command nonsense has not been found"}}
        return {"return": {}}

    def commands(self, name):
        return [arguments for command, arguments in self.seen if command == name]


@pytest.fixture
def qemu(tmp_path):
    made = []

    def make(**more):
        made.append(Qemu(tmp_path / "qmp.sock", **more))
        return made[0]

    yield make
    for one in made:
        one.server.close()


def test_disk_is_unplugged_after_the_guest_releases_it(qemu, tmp_path):
    machine = qemu(plugged=True)
    with Monitor(tmp_path / "qmp.sock", "a") as monitor:
        unplug(monitor, DISK)
        unplug(monitor, DISK)
    assert machine.commands("device_del") == [{"id": "disk-nvme0"}]


def test_guest_not_releasing_its_disk_is_an_error(qemu, tmp_path):
    qemu(plugged=True, lets_go=False)
    with Monitor(tmp_path / "qmp.sock", "a") as monitor, pytest.raises(TimedOut, match=r"a: the guest did not release the disk nvme0 within 0\.2 seconds"):
        unplug(monitor, DISK, patience=0.2)


def test_disk_is_hot_plugged_with_the_same_options_as_at_start(qemu, tmp_path):
    machine = qemu(plugged=False)
    with Monitor(tmp_path / "qmp.sock", "a") as monitor:
        plug(monitor, DISK, pathlib.Path("/r/a/nvme0.raw"))
        plug(monitor, DISK, pathlib.Path("/r/a/nvme0.raw"))
    assert machine.commands("device_add") == [{"driver": "nvme", "drive": "drive-nvme0", "id": "disk-nvme0", "serial": "A-NVME0", "bus": "slot-nvme0"}]
    assert [arguments["command-line"] for arguments in machine.commands("human-monitor-command")] == [
        "drive_del drive-nvme0",
        "drive_add 0 file=/r/a/nvme0.raw,format=raw,if=none,id=drive-nvme0,discard=unmap,cache=writeback",
    ]


def test_qemu_error_message_is_reported(qemu, tmp_path):
    qemu(plugged=False, drive_answer="Could not open '/r/a/nvme0.raw': No such file or directory\r\n")
    with Monitor(tmp_path / "qmp.sock", "a") as monitor:
        with pytest.raises(StorageError, match="a: QEMU refused the disk nvme0: Could not open"):
            plug(monitor, DISK, pathlib.Path("/r/a/nvme0.raw"))
        with pytest.raises(StorageError, match="a: QEMU refused nonsense: The command nonsense has not been found"):
            monitor.execute("nonsense")


def test_missing_control_socket_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(StorageError, match=r"a: the control socket .*qmp\.sock does not answer"):
        Monitor(tmp_path / "qmp.sock", "a")


@pytest.mark.parametrize(("status", "free", "continued"), [("io-error", 64 * 1024**2, True), ("running", 0, False), ("paused", 1024**4, False)])
def test_machine_paused_for_lack_of_space_continues_when_there_is_room(qemu, tmp_path, monkeypatch, status, free, continued):
    """One that somebody paused stays paused."""
    monkeypatch.setattr(places, "free_bytes", lambda _path: free)
    machine = qemu(status=status)
    continue_with_room(tmp_path / "qmp.sock", "a")
    assert machine.commands("cont") == [{}] * continued
    assert not is_out_of_space(tmp_path / "qmp.sock", "a")


def test_machine_paused_for_lack_of_space_is_reported_while_there_is_none(qemu, tmp_path, monkeypatch):
    monkeypatch.setattr(places, "free_bytes", lambda _path: 64 * 1024**2 - 1)
    machine = qemu(status="io-error")
    with pytest.raises(Refused, match=r"a is paused, because the disk of the host was full .* free in .*; free at least 64 MiB and run this again"):
        continue_with_room(tmp_path / "qmp.sock", "a")
    assert (machine.commands("cont"), machine.status) == ([], "io-error")


def test_machine_without_a_control_socket_is_not_paused(tmp_path):
    assert not is_out_of_space(tmp_path / "qmp.sock", "a")
