# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process between QEMU and the files: requests and settings meet one state, and a power cut takes what such hardware would lose."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from media import rows
from media.rows import BLOCK, I545S, S3500, X25_M

from ansible_collections.cachefleet.storage.tests.unit.support.nbd_client import NbdClient

READ, WRITE, FLUSH, FUA = 0, 1, 3, 1
SIZE = 256 * BLOCK
SERVER = str(Path(rows.__file__).parents[1] / "media_server.py")


class Machine:
    """A controller with volumes, whose power can be cut."""

    def __init__(self, folder, drives, **volumes):
        self.folder, self.clients, self.process = folder, {}, 0
        self.description = {
            "controller": "Adaptec 6805", "drives": drives, "control": str(folder / "control"), "module": str(folder / "module"),
            "settings": str(folder / "settings.json"), "volumes": {}, "slower": 4, "smaller": 1024,
        }  # fmt: skip
        for name, volume in volumes.items():
            (folder / name).write_bytes(b"o" * SIZE)
            self.description["volumes"][name] = {"file": str(folder / name), "socket": str(folder / f"{name}.sock"), **volume}

    def start(self, only=None):
        path = self.folder / "description.json"
        path.write_text(json.dumps(self.description))
        started = subprocess.run([sys.executable, SERVER, path], capture_output=True, text=True, check=True, timeout=60)
        self.process = int(started.stdout)
        self.clients = {name: NbdClient(_connected(volume["socket"])) for name, volume in self.description["volumes"].items() if not only or name in only}
        self.control = _connected(self.description["control"])
        self.answers = self.control.makefile()
        return self

    def write(self, name, number, letter=b"n", flags=0):
        assert self.clients[name].request(WRITE, number * BLOCK, BLOCK, letter * BLOCK, flags) == (0, b"")

    def on_file(self, name, numbers, letter=b"n"):
        data = (self.folder / name).read_bytes()
        return [number for number in numbers if data[number * BLOCK : (number + 1) * BLOCK] == letter * BLOCK]

    def command(self, **words):
        self.control.sendall(json.dumps(words).encode() + b"\n")
        return json.loads(self.answers.readline())

    def end(self, orderly):
        for client in self.clients.values():
            client.end(orderly)
        self.clients = {}
        wait_for(lambda: not _alive(self.process))


def _connected(path):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(60)
    connection.connect(path)
    return connection


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(condition):
    for _turn in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("it has not come")


@pytest.fixture
def machine(tmp_path):
    made = []

    def machine(model, *, write_cache=False, **volumes):
        drives = {f"d{number}": {"model": model.name, "write_cache": write_cache} for number in range(len(volumes) or 1)}
        for number, volume in enumerate(volumes.values()):
            volume.setdefault("drives", [f"d{number}"])
        made.append(Machine(tmp_path, drives, **volumes).start())
        return made[-1]

    yield machine
    for one in made:
        if one.clients:
            one.end(orderly=False)


@pytest.mark.parametrize(
    ("model", "write_cache", "volume", "kept"),
    [
        (X25_M, True, {"level": "0"}, False),
        (X25_M, False, {"level": "0"}, True),
        (X25_M, True, {"level": "0", "write": "writeback"}, False),
        (X25_M, False, {"level": "0", "write": "writeback"}, True),
        (X25_M, True, {"level": "jbod"}, True),
        (S3500, True, {"level": "0"}, True),
    ],
)
def test_power_cut_keeps_flushed_blocks_unless_the_controller_hides_the_flush(machine, model, write_cache, volume, kept):
    one = machine(model, write_cache=write_cache, v0=dict(volume))
    numbers = range(3, 30, 3)
    for number in numbers:
        one.write("v0", number)
        assert one.clients["v0"].request(FLUSH) == (0, b"")
    assert one.clients["v0"].request(READ, 3 * BLOCK, 512, answer=512) == (0, b"n" * 512)
    one.end(orderly=False)
    one.start()
    wait_for(lambda: not one.command(get=True)["dirty_blocks"])
    assert (len(one.on_file("v0", numbers)) == len(numbers)) is kept


def test_orderly_end_writes_everything_out(machine):
    one = machine(X25_M, write_cache=True, v0={"level": "0"}, v1={"level": "jbod"})
    one.write("v0", 1)
    one.write("v1", 2)
    assert one.on_file("v0", [1]) == one.on_file("v1", [2]) == []
    one.end(orderly=True)
    assert (one.on_file("v0", [1]), one.on_file("v1", [2])) == ([1], [2])


def test_part_of_a_block_is_merged_and_forced_write_of_a_jbod_drive_is_on_the_medium(machine):
    one = machine(X25_M, write_cache=True, v0={"level": "jbod"})
    assert one.clients["v0"].request(WRITE, 5 * BLOCK - 512, 1024, b"n" * 1024)[0] == 0
    assert one.clients["v0"].request(READ, 5 * BLOCK - 1024, 2048, answer=2048)[1] == b"o" * 512 + b"n" * 1024 + b"o" * 512
    assert one.clients["v0"].request(READ, SIZE, BLOCK)[0] == 22
    assert one.clients["v0"].request(6, 0, BLOCK)[0] == 22
    one.write("v0", 7, flags=FUA)
    assert one.on_file("v0", range(10)) == [7]


def test_settings_and_requests_see_one_state(machine):
    one = machine(X25_M, v0={"level": "0"}, v1={"level": "jbod"})
    one.end(orderly=True)
    # So slow that the cache is not empty before a busy host asks.
    one.description["slower"] = 60
    one.start()
    assert one.command(get=True)["volumes"]["v0"]["mode"] == "write_through"
    assert one.command(volume="v0", write="writeback") == {"ok": True}
    for number in range(20, 60, 2):
        one.write("v0", number)
    assert one.command(get=True)["dirty_blocks"] > 0
    assert one.command(battery="failed") == {"ok": True}
    volume = one.command(get=True)["volumes"]["v0"]
    assert (volume["policy"], volume["mode"]) == ("writeback", "write_through")
    wait_for(lambda: not one.command(get=True)["dirty_blocks"])
    assert len(one.on_file("v0", range(20, 60, 2))) == 20
    one.end(orderly=False)
    one.start()
    assert one.command(get=True)["battery"] == "failed"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"volume": "v0", "write": "sometimes"}, "write must be one of"),
        ({"volume": "v1", "write": "writeback"}, "is a drive without a volume"),
        ({"volume": "v7", "write": "writeback"}, "v7"),
        ({"battery": "tired"}, "battery must be one of"),
        ({}, "battery"),
        ({"max_cache": {"rate": 1}}, "not enough values"),
    ],
)
def test_invalid_commands_are_refused(machine, words, message):
    one = machine(X25_M, v0={"level": "0"}, v1={"level": "jbod"})
    assert message in one.command(**words)["error"]


def test_change_of_a_policy_is_busy_until_the_cache_is_written_out_and_a_cut_in_between_keeps_cache_and_policy(machine):
    one = machine(I545S, v0={"level": "0", "write": "writeback"})
    one.description["slower"] = 400
    one.end(orderly=True)
    one.start()
    numbers = range(0, 200, 2)
    for number in numbers:
        one.clients["v0"].send(WRITE, number * BLOCK, BLOCK, b"n" * BLOCK, cookie=number)
    assert sorted(one.clients["v0"].answer()[1] for _number in numbers) == list(numbers)
    one.control.sendall(b'{"volume": "v0", "write": "writethrough"}\n{"volume": "v0", "write": "writeback"}\n{"get": true}\n')
    assert json.loads(one.answers.readline()) == {"error": "busy"}
    state = json.loads(one.answers.readline())
    assert state["volumes"]["v0"]["changing"]
    assert state["dirty_blocks"] > 0
    one.end(orderly=False)
    assert len(one.on_file("v0", numbers)) < len(numbers)
    one.description["slower"] = 1
    one.start()
    assert one.command(get=True)["volumes"]["v0"]["policy"] == "writeback"
    wait_for(lambda: not one.command(get=True)["dirty_blocks"])
    assert len(one.on_file("v0", numbers)) == len(numbers)


def test_drive_cache_is_written_out_before_it_is_disabled(machine):
    one = machine(X25_M, write_cache=True, v0={"level": "0"})
    one.write("v0", 4)
    assert one.command(get=True)["drives"]["d0"]["volatile_blocks"] == 1
    assert one.command(drive="d0", write_cache=False) == {"ok": True}
    assert one.on_file("v0", [4]) == [4]
    one.write("v0", 5)
    assert one.on_file("v0", [5]) == [5]
    assert not one.command(get=True)["drives"]["d0"]["write_cache"]


def test_process_ends_when_it_is_killed_and_loses_no_more_than_a_power_cut(machine):
    one = machine(S3500, v0={"level": "0", "write": "writeback"})
    one.write("v0", 9)
    os.kill(one.process, 9)
    one.end(orderly=False)
    one.start()
    wait_for(lambda: one.on_file("v0", [9]))


def test_process_ends_with_its_last_client_though_a_volume_was_never_opened(machine):
    one = machine(S3500, v0={"level": "0"})
    one.end(orderly=True)
    (one.folder / "v1").write_bytes(b"o" * SIZE)
    one.description["volumes"]["v1"] = {**one.description["volumes"]["v0"], "file": str(one.folder / "v1"), "socket": str(one.folder / "v1.sock")}
    one.start(only=["v0"])
    one.write("v0", 9)
    one.end(orderly=True)
    assert one.on_file("v0", [9])
