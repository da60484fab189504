# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The harness of interrupted lives sees what it is there to see: a lost block, a change, and the process that dies at it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "rack"))

from lives import trap
from lives.pattern import BLOCK, Application, Ledger


@pytest.fixture
def device(tmp_path):
    place = tmp_path / "device"
    place.write_bytes(bytes(64 * BLOCK))
    try:
        os.close(os.open(place, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        pytest.skip("this file system cannot be read past the page cache")
    return place


@pytest.fixture
def ledger(device):
    made = Ledger(32, 7)
    made.fill(str(device))
    return made


def test_written_blocks_are_correct(device, ledger):
    ledger.write(str(device), [3, 17, 3])
    assert ledger.wrong(str(device)) == []


def test_offset_is_the_position_of_the_first_block(device, ledger):
    device.write_bytes(bytes(8192) + device.read_bytes()[: 32 * BLOCK])
    assert ledger.wrong(str(device), 8192) == []
    assert len(ledger.wrong(str(device))) == 32


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data, old: old, "should be '7 5 2' and is '7 5 1'"),
        (lambda data, old: data[:5 * BLOCK] + data[6 * BLOCK : 7 * BLOCK] + data[6 * BLOCK :], "should be '7 5 2' and is '7 6 1'"),
        (lambda data, old: data[: 5 * BLOCK + 640] + bytes(64) + data[5 * BLOCK + 704 :], "block 5 at byte 640"),
        (lambda data, old: data[: 20 * BLOCK], "ends before block 32"),
    ],
    ids=["lost", "misplaced", "torn", "cut off"],
)  # fmt: skip
def test_outdated_block_is_reported(device, ledger, spoil, said):
    old = device.read_bytes()
    ledger.write(str(device), [5])
    device.write_bytes(spoil(device.read_bytes(), old))
    (message,) = ledger.wrong(str(device))
    assert said in message


def test_unacknowledged_write_may_be_present(device, ledger):
    before = device.read_bytes()
    ledger.write(str(device), [9])
    after = device.read_bytes()
    ledger.versions[9] -= 1
    ledger._shared[-1] = 10
    assert ledger.wrong(str(device)) == []
    device.write_bytes(before)
    assert len(ledger.wrong(str(device))) == 1
    device.write_bytes(after)
    assert ledger.wrong(str(device)) == []


def test_application_writes_match_the_ledger(device, ledger):
    application = Application(str(device), ledger)
    while sum(ledger.versions) < 64:
        pass
    assert application.stop() == ""
    assert ledger.wrong(str(device)) == []
    assert max(ledger.versions) > 1


def test_application_that_cannot_write_reports_an_error(device, ledger):
    os.truncate(device, 0)
    device.chmod(0o400)
    device.rename(device.with_suffix(".gone"))
    complaint = Application(str(device), ledger).stop()
    assert "No such file" in complaint


@pytest.mark.parametrize(
    ("argv", "changes"),
    [
        (["/usr/sbin/lvs", "--all"], False),
        (["lvm", "fullreport", "--reportformat", "json"], False),
        (["dmsetup", "table"], False),
        (["dmsetup", "resume", "lives"], True),
        (["wipefs", "--no-act", "--json", "/dev/sdb"], False),
        (["wipefs", "--all", "/dev/sdb"], True),
        (["systemctl", "is-active", "x"], False),
        (["systemctl", "enable", "x"], True),
        (["mdadm", "--detail", "/dev/md0"], False),
        (["mdadm", "--stop", "/dev/md0"], True),
        (["lvconvert", "--yes", "--uncache", "vg/lv"], True),
        (["a-tool-that-nobody-knows"], True),
    ],
)
def test_changing_commands_are_recognized(argv, changes):
    assert trap.changes_something(argv) is changes


def test_module_without_interruption_returns_its_result():
    ending = trap.call("lvm_cache", [], None, 60)
    assert ending.kill is None
    assert (ending.result["changed"], ending.changes) == (False, [])


def test_failed_module_reports_the_reason():
    ending = trap.call("lvm_cache", [{"name": "x", "origin": "nowhere", "cache_devices": ["/dev/disk/by-id/none"]}], None, 60)
    assert "origin is 'nowhere'" in ending.result["msg"]


class _Stub:
    """What :func:`trap.imported` gives: a module that writes two files and runs a command between them."""

    def __init__(self, folder):
        self.folder = folder

    def imported(self, module):
        basic, process, _main = trap_imported(module)

        def main():
            runner = process.Runner()
            (self.folder / "first").write_text("x")
            runner.run(["touch", str(self.folder / "second")])
            (self.folder / "third").write_text("x")
            print('{"changed": true}')
            sys.exit(0)

        return basic, process, main


trap_imported = trap.imported


@pytest.mark.parametrize(
    ("kind", "change", "left"),
    [
        (trap.BEFORE, "first", []),
        (trap.AFTER, "first", ["first"]),
        (trap.BEFORE, "touch", ["first"]),
        (trap.AFTER, "touch", ["first", "second"]),
        (trap.BEFORE, "third", ["first", "second"]),
        (trap.AFTER, "nothing", ["first", "second", "third"]),
    ],
)
def test_module_is_interrupted_at_the_requested_point(tmp_path, monkeypatch, kind, change, left):
    monkeypatch.setattr(trap, "imported", _Stub(tmp_path).imported)
    monkeypatch.setattr(trap, "_WATCHED_FILES", (str(tmp_path),))
    kill_spec = trap.KillSpec(lambda before, text: [kind] if change in text else [])
    ending = trap.call("lvm_cache", [], kill_spec, 60)
    assert sorted(path.name for path in tmp_path.iterdir()) == left
    assert (ending.kill is None) is (change == "nothing")
    assert (ending.result is None) is (change != "nothing")
    if ending.kill:
        assert ending.kill[0] == kind
        assert change in ending.kill[2]


@pytest.mark.parametrize(("kind", "goes_on"), [(trap.INSIDE, False), (trap.ORPHAN, True)])
def test_command_ends_with_its_module_or_continues_alone(tmp_path, monkeypatch, kind, goes_on):
    done = tmp_path / "done"

    class Sleeping(_Stub):
        def imported(self, module):
            basic, process, _main = trap_imported(module)

            def main():
                process.Runner().run(["sh", "-c", f"sleep 1; touch {done}"])

            return basic, process, main

    monkeypatch.setattr(trap, "imported", Sleeping(tmp_path).imported)
    ending = trap.call("lvm_cache", [], trap.KillSpec(lambda before, text: [kind], expected={"sh": 0.3}), 60)
    assert ending.kill[0] == kind
    assert not done.exists()
    deadline = os.times().elapsed + (20 if goes_on else 2)
    while os.times().elapsed < deadline and not done.exists():
        pass
    assert done.exists() is goes_on
