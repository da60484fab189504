# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How simulators get onto a machine and how they are broken."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys

import pytest

from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators import simulator

TESTS = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.setenv(simulator.FOLDER_VARIABLE, str(tmp_path / "states"))


def test_every_tool_is_installed_at_its_vendor_path_and_identifies_itself(tmp_path):
    written = simulators.install(tmp_path)
    assert tmp_path / "opt/MegaRAID/storcli/storcli64" in written
    assert {path for kind in simulators.KINDS.values() for path in kind.paths} == {f"/{path.relative_to(tmp_path)}" for path in written}
    for path in written:
        assert "NOT the vendor's" in path.read_text()
        assert os.access(path, os.X_OK)
        assert "simulators of proprietary RAID tools" in (path.parent / "SIMULATORS.txt").read_text()
    assert simulators.install(tmp_path) == written


def test_real_tool_is_never_replaced(tmp_path):
    real = tmp_path / "opt/MegaRAID/storcli/storcli64"
    real.parent.mkdir(parents=True)
    real.write_bytes(b"\x7fELF")
    with pytest.raises(FileExistsError, match="is no simulator: nothing was replaced"):
        simulators.install(tmp_path)
    assert real.read_bytes() == b"\x7fELF"


def test_installed_tool_keeps_its_state_and_call_log(tmp_path):
    simulators.install(tmp_path)
    tool = tmp_path / "opt/MegaRAID/storcli/storcli64"
    simulators.add("storcli", "MegaRAID 9361-8i", {"volumes": 1, "drives": 2})
    sent = subprocess.run([tool, "/c0/v0", "set", "wrcache=WT", "J"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert json.loads(sent.stdout)["Controllers"][0]["Command Status"]["Status"] == "Success"
    shown = subprocess.run([tool, "/c0/vall", "show", "J"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=True)
    assert "WT" in shown.stdout
    assert simulator.calls("storcli") == [["/c0/v0", "set", "wrcache=WT", "J"], ["/c0/vall", "show", "J"]]
    simulators.clear("storcli")
    assert simulator.calls("storcli") == []


def test_faults_are_set_and_cleared_and_unknown_ones_rejected():
    simulators.main(["fault", "arcconf", "battery_failed"])
    with simulator.opened("arcconf") as state:
        assert state["faults"] == {"battery_failed": True}
    simulators.main(["fault", "arcconf", "battery_failed", "--end"])
    with simulator.opened("arcconf") as state:
        assert state["faults"] == {}
    with pytest.raises(KeyError):
        simulators.set_fault("arcconf", "flood", True)


@pytest.mark.parametrize(("fault", "output"), [("empty", b""), ("truncated", b"abcd"), ("garbage", b"abcd\x00\xff\xfe\x1b[31m\x07\x80\xc3\x28efgh")])
def test_process_faults_damage_the_output(fault, output):
    assert simulator.spoiled(b"abcdefgh", {fault: True}) == output


def test_hanging_tool_does_not_block_others(tmp_path):
    simulators.add("ssacli", "Smart Array P410i", {"volumes": 1, "drives": 2})
    simulators.set_fault("ssacli", "hang", True)
    command = [sys.executable, str(TESTS / "simulators" / "call.py"), simulators.called("ssacli"), "version"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, cwd=TESTS, stdin=subprocess.DEVNULL, timeout=2, check=False)
    simulators.set_fault("ssacli", "hang", False)
    assert subprocess.run(command, cwd=TESTS, stdin=subprocess.DEVNULL, timeout=60, check=False, capture_output=True).stdout


def test_list_names_tools_models_and_faults(capsys):
    simulators.main(["list"])
    output = capsys.readouterr().out
    assert "MegaRAID 9361-8i" in output
    assert "battery_failed" in output
    assert output.count("truncated") == len(simulators.KINDS)


@pytest.mark.parametrize(
    "words",
    [
        ["add", "storcli", "MegaRAID 1"],
        ["fault", "ssacli", "flood"],
        ["add", "storcli", "MegaRAID 9361-8i", "--option=volumes={"],
        ["add", "storcli", "MegaRAID 9361-8i", "--option=wheels=4"],
    ],
)
def test_invalid_arguments_are_rejected_in_one_sentence(words, capsys):
    assert simulators.main(words) == 2
    assert capsys.readouterr().err.count("\n") == 1
