# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulated RAID tools in front of the model of a controller: what they set is what it does, and what they print is what it does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import typing as t
from pathlib import Path

import pytest
from media.rows import I545S, S3500, X25_M

from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators import model_port, simulator
from ansible_collections.cachefleet.storage.tests.unit.rack_media.test_server import FLUSH, WRITE, Machine, wait_for


class Tool(t.NamedTuple):
    """A tool, its model of a controller, and its words."""

    name: str
    model: str
    write: t.Sequence[str]
    drive: t.Sequence[str]
    shows: str
    shows_drives: str
    back: str
    through: str
    enabled: str
    disabled: str
    lost: t.Any
    busy: t.Any
    unprotected: str

    def add(self, port, **options):
        simulators.add(self.name, self.model, {"volumes": 1, "drives": 1, **options}, {"port": str(port)} if port else {})

    def run(self, words):
        with simulator.opened(self.name) as state:
            return simulator.answered(simulators.KINDS[self.name], state, words.split(), "")

    def shown(self, words=None):
        answer = self.run(words or self.shows)
        assert answer.rc == 0
        return answer.stdout

    def succeeds(self, words):
        answer = self.run(words)
        assert answer.rc == 0, answer.stdout


TOOLS = [
    Tool(
        "arcconf", "Adaptec ASR-6805", write=("setcache 1 logicaldrive 0 wbb", "setcache 1 logicaldrive 0 wt"),
        drive=("setcache 1 device 0 0 wb", "setcache 1 device 0 0 wt"), shows="getconfig 1 ld", shows_drives="getconfig 1 pd",
        back="Write-cache mode                         : Enabled (write-back)", through="Write-cache mode                         : Disabled (write-through)",
        enabled="Write Cache                        : Enabled (write-back)", disabled="Write Cache                        : Disabled (write-through)",
        lost=(6, "Invalid controller number."), busy=(1, "Command failed."), unprotected="ZMM Failed",
    ),
    Tool(
        "storcli", "MegaRAID 9560-8i", write=("/c0/v239 set wrcache=wb J", "/c0/v239 set wrcache=wt J"),
        drive=("/c0/v239 set pdcache=on J", "/c0/v239 set pdcache=off J"), shows="/c0/vall show J", shows_drives="/c0/eall/sall show all J",
        back="RWBD", through="RWTD", enabled='"Write Cache" : "Enabled"', disabled='"Write Cache" : "Disabled"',
        lost=(1, "Controller 0 not found"), busy=(50, "device state doesn't support requested command"), unprotected='"State" : "Failed"',
    ),
    Tool(
        "storcli2", next(iter(simulators.KINDS["storcli2"].models)), write=("/c0/v1 set wrcache=wb J", "/c0/v1 set wrcache=wt J"),
        drive=("/c0/v1 set pdcache=on J", "/c0/v1 set pdcache=off J"), shows="/c0/vall show all J", shows_drives="/c0/eall/sall show all J",
        back='"CurrentCache" : "RA,WB"', through='"CurrentCache" : "RA,WT"', enabled='"Current Write Cache" : "On"', disabled='"Current Write Cache" : "Off"',
        lost=(0, "Controller 0 not found"), busy=(1, "Device state does not support"), unprotected='"Status" : "Critical"',
    ),
    Tool(
        "ssacli", "Smart Array P440ar", write=("ctrl slot=0 ld 1 modify caching=enable", "ctrl slot=0 ld 1 modify caching=disable"),
        drive=("ctrl slot=0 modify dwc=enable forced", "ctrl slot=0 modify dwc=disable"), shows="ctrl slot=0 ld all show detail",
        shows_drives="ctrl slot=0 show detail",
        back="Caching:  Enabled", through="Caching:  Disabled", enabled="Drive Write Cache: Enabled", disabled="Drive Write Cache: Disabled",
        lost=(1, "No controllers detected"), busy=(1, "Controller is busy"), unprotected="Failed (Replace Batteries",
    ),
]  # fmt: skip
EVERY_TOOL = pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])
ARCCONF = TOOLS[0]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv(simulator.FOLDER_VARIABLE, str(tmp_path / "states"))


@pytest.fixture
def machine(tmp_path):
    made = []

    def machine(model, *, write_cache=False, slower=4, **volume):
        one = Machine(tmp_path, {"d0": {"model": model.name, "write_cache": write_cache}}, v0={"level": "0", "drives": ["d0"], **volume})
        one.description["slower"] = slower
        made.append(one.start())
        return one

    yield machine
    for one in made:
        if one.clients:
            one.end(orderly=False)


@EVERY_TOOL
def test_policy_decides_where_written_blocks_are_and_is_what_the_tool_prints(machine, tool):
    one = machine(X25_M, slower=60)
    tool.add(one.description["control"])
    one.command(volume="v0", read_ahead=True)
    assert tool.through in tool.shown()
    tool.succeeds(tool.write[0])
    assert one.command(get=True)["volumes"]["v0"]["mode"] == "write_back"
    assert tool.back in tool.shown()
    for number in range(20, 60, 2):
        one.write("v0", number)
    assert one.command(get=True)["dirty_blocks"] > 0
    tool.succeeds(tool.write[1])
    assert len(one.on_file("v0", range(20, 60, 2))) == 20
    one.write("v0", 70)
    assert one.on_file("v0", [70]) == [70]
    one.command(volume="v0", write="writeback")
    assert tool.back in tool.shown()


@EVERY_TOOL
def test_drive_cache_decides_what_a_power_cut_takes_and_is_what_the_tool_prints(machine, tool):
    one = machine(X25_M)
    tool.add(one.description["control"])
    one.command(drive="d0", write_cache=True)
    tool.succeeds(tool.drive[1])
    assert tool.disabled in tool.shown(tool.shows_drives)
    one.write("v0", 3)
    tool.succeeds(tool.drive[0])
    assert tool.enabled in tool.shown(tool.shows_drives)
    one.write("v0", 4)
    one.end(orderly=False)
    one.start()
    assert one.on_file("v0", [3, 4]) == [3]
    assert tool.enabled in tool.shown(tool.shows_drives)
    # Set past the tool: what it prints is what the drive does.
    one.command(drive="d0", write_cache=False)
    assert tool.enabled not in tool.shown(tool.shows_drives)


@EVERY_TOOL
def test_battery_is_one_state(machine, tool):
    one = machine(S3500, write="writeback")
    tool.add(one.description["control"])
    everything = {"arcconf": "getconfig 1", "ssacli": "ctrl slot=0 show detail"}.get(tool.name, "/c0 show J")
    one.command(battery="failed")
    assert tool.unprotected in tool.shown(everything)
    assert one.command(get=True)["volumes"]["v0"] == {**one.command(get=True)["volumes"]["v0"], "policy": "writeback", "mode": "write_through"}
    assert simulators.main(["fault", tool.name, "battery_failed", "--end"]) == 0
    assert one.command(get=True)["battery"] == "healthy"
    assert tool.unprotected not in tool.shown(everything)
    assert simulators.main(["fault", tool.name, "capacitor_charging"]) == 0
    assert one.command(get=True)["battery"] == "charging"
    assert "harging" in tool.shown(everything)


@EVERY_TOOL
def test_tool_fails_when_its_port_is_lost(machine, tool):
    one = machine(X25_M)
    tool.add(one.description["control"])
    tool.shown()
    os.kill(one.process, 9)
    one.end(orderly=False)
    for words in (tool.shows, tool.write[0]):
        answer = tool.run(words)
        assert tool.lost[1] in answer.stdout
        assert answer.rc == tool.lost[0]
    one.start()
    assert tool.through in tool.shown() or tool.name in ("storcli", "storcli2")
    assert one.command(get=True)["volumes"]["v0"]["policy"] == "writethrough"


def test_tool_fails_when_nothing_answers(tmp_path, monkeypatch):
    monkeypatch.setattr(model_port, "PATIENCE", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent"))
        silent.listen()
        ARCCONF.add(tmp_path / "silent")
        assert ARCCONF.run(ARCCONF.shows).rc == 6
    assert simulators.main(["fault", "arcconf", "battery_failed"]) == 2


@EVERY_TOOL
def test_change_of_what_is_being_changed_is_refused(machine, tool):
    one = machine(I545S, slower=400, write="writeback")
    tool.add(one.description["control"])
    for number in range(0, 100, 2):
        one.clients["v0"].send(WRITE, number * 4096, 4096, b"n" * 4096, cookie=number)
    for _number in range(0, 100, 2):
        one.clients["v0"].answer()
    one.control.sendall(b'{"volume": "v0", "write": "writethrough"}\n')
    answer = tool.run(tool.write[0])
    assert tool.busy[1] in answer.stdout
    assert answer.rc == tool.busy[0]
    assert one.command(get=True)["volumes"]["v0"]["policy"] == "writethrough"


def test_lost_port_of_one_controller_leaves_the_other(machine, tmp_path):
    one = machine(X25_M)
    storcli = TOOLS[1]
    storcli.add(one.description["control"])
    storcli.add(tmp_path / "nothing", index=1)
    assert storcli.run("/c1 show J").stdout.count("Controller 1 not found") == 1
    assert storcli.shown("/c0 show J")


def test_port_of_the_machine_is_used_when_it_is_there_and_missed_when_it_has_gone(machine, tmp_path, monkeypatch):
    monkeypatch.setattr(simulator, "PORTS", str(tmp_path / "port."))
    ARCCONF.add(None)
    ARCCONF.succeeds(ARCCONF.write[1])
    one = machine(X25_M)
    one.command(volume="v0", write="writeback_always")
    (tmp_path / "port.0").symlink_to(one.description["control"])
    assert "Write-cache setting                      : Enabled (write-back)\n" in ARCCONF.shown()
    (tmp_path / "port.0").unlink()
    assert ARCCONF.run(ARCCONF.shows).rc == 6


def test_tool_with_other_drives_than_the_model_is_a_mistake_of_the_test(machine):
    one = machine(X25_M)
    ARCCONF.add(one.description["control"], drives=2)
    with pytest.raises(ValueError, match="has 1 drives, the one of the tool 2"):
        ARCCONF.run(ARCCONF.shows)


def test_answer_to_a_tool_that_was_killed_is_not_taken_for_another_one(tmp_path):
    def answer():
        guest, _peer = listener.accept()
        with guest:
            guest.sendall(b'{"ok": true, "id": "0-0"}\n{"error": "busy"}\n')
            name = json.loads(guest.recv(65536))["id"]
            guest.sendall(b'{"error": "no", ')
            guest.sendall(f'"id": "{name}"}}\n'.encode())

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "stale"))
        listener.listen()
        thread = threading.Thread(target=answer)
        thread.start()
        with model_port.Port(str(tmp_path / "stale")) as port, pytest.raises(ValueError, match="no"):
            port.ask(get=True)
        thread.join()


def test_global_policy_gives_way_to_what_the_drives_do(machine):
    one = machine(X25_M, write_cache=True)
    simulators.add("arcconf", "Adaptec ASR-8805", {"volumes": 1, "drives": 1}, {"port": one.description["control"], "global_drive_cache": "enable"})
    assert "Write Cache Policy: Enabled" in ARCCONF.shown("getconfig 1 ad")
    ARCCONF.succeeds("setcache 1 deviceall disable noprompt")
    assert not one.command(get=True)["drives"]["d0"]["write_cache"]
    one.command(drive="d0", write_cache=True)
    assert "Write Cache Policy: Drive Specific" in ARCCONF.shown("getconfig 1 ad")


def test_drive_that_the_host_has_reports_what_the_tool_has_set(machine, tmp_path, monkeypatch):
    one = machine(X25_M)
    (tmp_path / "hdparm").write_text(f"#!/bin/sh\necho $* >> {tmp_path}/called\n")
    (tmp_path / "hdparm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    simulators.add("arcconf", "Adaptec ASR-6805", {"volumes": 1, "drives": 1}, {"port": one.description["control"], "passed": {"d0": "/dev/sdx"}})
    ARCCONF.succeeds(ARCCONF.drive[0])
    ARCCONF.succeeds(ARCCONF.write[0])
    ARCCONF.succeeds(ARCCONF.drive[1])
    assert (tmp_path / "called").read_text() == "-W1 /dev/sdx\n-W0 /dev/sdx\n"


def test_smart_card_with_its_words(machine):
    one = machine(X25_M)
    simulators.add("arcconf", "Adaptec SmartRAID 3204-8i", {"volumes": 1, "drives": 1, "backup": True}, {"port": one.description["control"]})
    one.command(drive="d0", write_cache=True)
    assert "Configured Drives                          : Unchanged" in ARCCONF.shown("getconfig 1 ad")
    ARCCONF.succeeds("setcache 1 logicaldrive 0 con noprompt")
    assert one.command(get=True)["volumes"]["v0"]["policy"] == "writeback"
    ARCCONF.succeeds("setcache 1 nobatterywritecache enable noprompt")
    assert one.command(get=True)["volumes"]["v0"]["policy"] == "writeback_always"


def test_max_cache_is_controlled_and_shown(tmp_path):
    drives = {name: {"model": X25_M.name, "write_cache": False} for name in ("d0", "s0", "s1")}
    one = Machine(tmp_path, drives, v0={"level": "0", "drives": ["d0"]})
    one.description.update(controller="Adaptec ASR-81605ZQ", max_cache={"drives": ["s0", "s1"], "volume": "v0", "size": 1 << 20})
    one.start()
    try:
        simulators.add("arcconf", "Adaptec ASR-81605ZQ", {"volumes": 1, "drives": 1, "ssds": 2}, {"port": one.description["control"]})
        ARCCONF.succeeds("setmaxcache 1 logicaldrive 0 writecache enable maxcachewritepolicy instwb")
        ARCCONF.succeeds("setmaxcache 1 flushandfetchrate 200")
        ARCCONF.succeeds("setmaxcache 1 logicaldrive 0 readcache disable")
        found = one.command(get=True)["max_cache"]["v0"]
        assert (found["write_policy"], found["rate"], found["read_enabled"]) == ("instant_writeback", 200, False)
        one.write("v0", 3)
        one.clients["v0"].request(FLUSH)
        assert one.command(get=True)["max_cache"]["v0"]["dirty_blocks"] == 1
        one.command(max_cache={"write": "disabled", "read": True})
        shown = ARCCONF.shown("getconfig 1 ld")
        assert "maxCache write cache setting             : Disabled" in shown
        assert "maxCache read cache setting              : Enabled" in shown
    finally:
        one.end(orderly=False)


def test_process_of_a_tool_reaches_the_model(machine):
    one = machine(X25_M)
    ARCCONF.add(one.description["control"])
    call = [sys.executable, "-S", str(Path(simulator.__file__).parent / "call.py"), simulators.called("arcconf"), *ARCCONF.write[0].split()]
    assert subprocess.run(call, capture_output=True, text=True, check=True, timeout=60).stdout.endswith("Command completed successfully.\n")
    wait_for(lambda: one.command(get=True)["volumes"]["v0"]["policy"] == "writeback")
    with open(simulator.place("arcconf.json"), encoding="utf-8") as file:
        assert json.load(file)["controllers"][0]["port"] == one.description["control"]
