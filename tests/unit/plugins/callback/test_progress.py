# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The progress lines of hosts that measure, from existing notes."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
import types

import pytest

from ansible_collections.cachefleet.storage.plugins.callback import progress
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner import watch
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner.runner_status import RunnerStatus, Watched, forget, keep, watched_hosts

NOW = 1_800_000_000.0


def host(name="db1", state="measuring", note="", seen=NOW, ended=False, **more):
    message = {"step": 2, "steps": 12, "cell": "randread-4k", "iops": 12000.0, "latency_ms": 1.3, "time": NOW + 5, "all_until": NOW + 305, **more}
    return Watched(name, RunnerStatus(state, **message), seen, note, ended)


class Display:
    def __init__(self):
        self.lines, self.warnings, self._lock = [], [], threading.RLock()

    def display(self, text):
        self.lines.append(text)

    def warning(self, text):
        self.warnings.append(text)

    vv = display


@pytest.fixture
def callback(monkeypatch):
    made = progress.CallbackModule()
    made._display = Display()
    made.options = {"mode": "auto"}
    monkeypatch.setattr(progress.CallbackModule, "get_option", lambda self, name: self.options[name])
    made._since = 0.0
    monkeypatch.setattr(progress, "_REDRAW", 0.01)
    yield made
    made._stop()


def opened(path):
    return types.SimpleNamespace(task=types.SimpleNamespace(action="cachefleet.storage.campaign"), result={"path": str(path)})


def task(action):
    return types.SimpleNamespace(action=action)


def until(condition):
    for _attempt in range(500):
        if condition():
            return True
        time.sleep(0.01)
    return False


def test_line_reports_the_progress_of_a_host():
    assert watch.line_of(host(), NOW) == "db1: 3/12 randread-4k: device 12,000 IOPS, 1.3 ms, about 5 min left"


def test_remaining_time_decreases_between_two_readings():
    assert "about 60 s left" in watch.line_of(host(), NOW + 240)


def test_unknown_values_are_omitted():
    assert watch.line_of(host(iops=None, latency_ms=None, all_until=None), NOW) == "db1: 3/12 randread-4k"
    assert watch.line_of(Watched("db1", None, NOW, "not reachable"), NOW) == "db1: not reachable"


def test_problems_are_reported():
    assert watch.line_of(host(note="not reachable", failed=2), NOW).endswith("left, not reachable, 2 not ok")
    assert watch.line_of(host(), NOW + 200).endswith("seen 3 min ago")
    assert watch.line_of(host(state="waiting"), NOW) == "db1: 3/12: about 5 min left, waiting"


def test_hosts_with_problems_come_first_and_ended_ones_last():
    hosts = [host("a", ended=True, state="finished"), host("b"), host("c", all_until=NOW + 900), host("d", note="not reachable")]
    assert [one.host for one in watch.ordered(hosts, NOW)] == ["d", "c", "b", "a"]


def test_fleet_summary():
    hosts = [host(f"n{number}", done=2) for number in range(180)] + [
        host(f"m{number}", state="finished", ended=True, done=12, failed=1) for number in range(20)
    ]
    assert watch.sum_of(hosts, NOW) == ("200 hosts: 180 measuring, 20 finished; devices 2,160,000 IOPS; 600 cells done, 20 of them not ok; about 5 min left")


def test_table_fits_the_screen_and_what_hosts_send_stays_text():
    hosts = [host(f"n{number:03}", cell="[red]x\x1b[2J") for number in range(200)]
    lines = progress.table_of(hosts, NOW, 10)
    assert len(lines) == 12
    assert "[red]x" in lines[1] and "\x1b" not in "".join(lines)
    assert lines[-1].startswith("and 190 more. 200 hosts: 200 measuring;")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_names_are_abbreviated_before_figures(width):
    hosts = [
        host(f"storage-node-{number:03}.rack.example.com", cell=f"mix70-64k-async-j128-d64.ata-INTEL_SSDSC2BB080G4_BTWL{number}", iops=1234567.0)
        for number in range(1, 12)
    ]
    hosts[4] = Watched(hosts[4].host, hosts[4].status, hosts[4].seen, "not reachable")
    lines = progress.table_of(hosts, NOW, 8, width)
    assert max(map(len, lines)) <= width and len(lines) == 10
    assert all("3/12" in line and "1,230,000" in line and "5 min" in line for line in lines[1:9])
    assert all(line.split()[0].startswith("sto") and line.split()[0].endswith("com") for line in lines[1:9])
    assert sum("not re" in line for line in lines[1:9]) == 1


def test_host_order_is_independent_of_remaining_time():
    def names(*left):
        hosts = [host(f"n{number}", all_until=NOW + seconds) for number, seconds in zip((2, 10, 1), left, strict=True)]
        return [line.split()[0] for line in progress.table_of(hosts, NOW, 10)[1:-1]]

    assert names(10, 20, 30) == names(30, 10, 20) == ["n1", "n2", "n10"]


def test_short_wait_before_a_cell_prints_no_line_and_a_long_one_does(tmp_path):
    lines = []
    view = progress._Lines(tmp_path, 0.0, types.SimpleNamespace(display=lines.append), {})
    view.show([host(state="waiting")], NOW)
    view.show([host(state="measuring")], NOW + 2)
    assert len(lines) == 1 and "IOPS" in lines[0]
    view.show([host(state="waiting", step=4, seen=NOW + 99)], NOW + 100)
    assert len(lines) == 1
    view.show([host(state="waiting", step=4, seen=NOW + 130)], NOW + 131)
    assert len(lines) == 2 and lines[1].endswith("waiting")


def test_notes_are_written_and_read_back(tmp_path):
    keep(tmp_path, host())
    assert watched_hosts(tmp_path) == [host()]
    forget(tmp_path, "db1")
    assert watched_hosts(tmp_path) == []


def test_host_name_with_path_writes_no_note(tmp_path):
    keep(tmp_path / "c", host("../../x"))
    assert list(tmp_path.rglob("*.json")) == []


def test_lines_are_printed_while_the_play_waits_only_on_changes(callback, tmp_path, monkeypatch):
    keep(tmp_path, host())
    callback.v2_runner_on_ok(opened(tmp_path))
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    assert until(lambda: callback._display.lines)
    keep(tmp_path, host(step=3, cell="other"))
    time.sleep(0.1)
    callback.v2_playbook_on_task_start(task("ansible.builtin.debug"), False)
    # The second cell began within 30 seconds of the first line.
    assert len(callback._display.lines) == 1
    assert callback._view is None
    for last, _mark in list(callback._printed.values()):
        callback._printed["db1"] = (last - 60, ())
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    assert until(lambda: len(callback._display.lines) == 2)
    callback.v2_playbook_on_stats(None)
    assert callback._display.lines[1].startswith("db1: 4/12 other: ")


def test_notes_of_an_earlier_run_are_ignored(callback, tmp_path):
    keep(tmp_path, host(seen=NOW))
    callback._since = NOW + 1
    callback.v2_runner_on_ok(opened(tmp_path))
    callback.v2_playbook_on_task_start(task("wait_for_runner"), False)
    time.sleep(0.1)
    callback.v2_playbook_on_play_start(None)
    assert callback._display.lines == []


def test_poll_interval_of_ansible_is_raised_only_during_the_wait(callback, monkeypatch):
    monkeypatch.setattr(progress.constants, "DEFAULT_INTERNAL_POLL_INTERVAL", 0.001)
    paces = []
    waiting = ("cachefleet.storage.wait_for_runner", "wait_for_runner", "cachefleet.storage.await_runner")
    for action in ("ansible.builtin.debug", *waiting[:2], "ansible.builtin.debug", waiting[2]):
        callback.v2_playbook_on_task_start(task(action), False)
        paces.append(progress.constants.DEFAULT_INTERNAL_POLL_INTERVAL)
    callback.v2_playbook_on_play_start(None)
    assert [*paces, progress.constants.DEFAULT_INTERNAL_POLL_INTERVAL] == [0.001, 0.05, 0.05, 0.001, 0.05, 0.001]


def test_user_defined_poll_interval_is_kept(callback, monkeypatch):
    monkeypatch.setattr(progress.constants, "DEFAULT_INTERNAL_POLL_INTERVAL", 0.01)
    for action in ("cachefleet.storage.wait_for_runner", "ansible.builtin.debug"):
        callback.v2_playbook_on_task_start(task(action), False)
        assert progress.constants.DEFAULT_INTERNAL_POLL_INTERVAL == 0.01


def test_quiet_mode_shows_nothing(callback, tmp_path):
    callback.options["mode"] = "quiet"
    callback.v2_runner_on_ok(opened(tmp_path))
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    assert callback._view is None


def test_nothing_is_shown_without_a_campaign(callback):
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    assert callback._view is None


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_terminal_display_is_drawn_and_terminal_is_restored(callback, tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    keep(tmp_path, host())
    callback.v2_runner_on_ok(opened(tmp_path))
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    assert until(lambda: "1 host: 1 measuring" in terminal.getvalue())
    print("a line of the play")
    callback.v2_playbook_on_stats(None)
    assert sys.stdout is terminal
    assert "a line of the play" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", terminal.getvalue())
    assert terminal.getvalue().rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in terminal.getvalue()


def test_output_of_the_play_is_above_the_table(tmp_path, monkeypatch):
    """As a terminal shows it: the table is erased before another line, and drawn again below it."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    view = progress._Drawing(tmp_path, 0.0, Display())
    monkeypatch.setattr(view.thread, "start", lambda: None)
    monkeypatch.setattr(view.thread, "join", lambda timeout: None)
    view.begin()
    view.show([host()], NOW)
    print("ok: [db1]")
    sys.stdout.write("a prompt: ")
    view.show([host("db2"), host("db3")], NOW)
    view.show([host("db4")], NOW)
    total = "1 host: 1 measuring; devices 12,000 IOPS; 0 cells done; about 5 min left"
    assert [line.split("  ", maxsplit=1)[0] for line in screen(terminal.getvalue())] == ["ok: [db1]", "a prompt: ", "HOST", "db4", total, ""]
    view.end()
    assert screen(terminal.getvalue()) == ["ok: [db1]", "a prompt: ", ""]
    assert sys.stdout is terminal


def screen(written):
    """The lines of a terminal that knows what is written here: up, return, erase below, and modes."""
    lines, row = [""], 0
    for part in re.split(r"(\x1b\[[0-9;?]*[A-Za-z]|[\n\r])", written):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.startswith("\x1b") and part.endswith("A"):
            row -= int(part[2:-1])
            assert row >= 0
        elif part == "\x1b[J":
            lines = [*lines[:row], ""]
        elif part and part[0] not in "\x1b\r":
            lines[row] += part
    return lines


def test_display_error_does_not_fail_the_play(callback, tmp_path, monkeypatch):
    def broken(*_args):
        raise RuntimeError("no picture")

    monkeypatch.setattr(progress, "_Lines", broken)
    callback.v2_runner_on_ok(opened(tmp_path))
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    callback.v2_runner_on_ok(None)
    assert "no picture" in callback._display.lines[0]


def test_unreadable_notes_end_the_thread_without_a_traceback(callback, tmp_path, monkeypatch, capsys):
    def broken(_campaign):
        raise OSError("gone")

    monkeypatch.setattr(progress, "watched_hosts", broken)
    callback.v2_runner_on_ok(opened(tmp_path))
    callback.v2_playbook_on_task_start(task("cachefleet.storage.wait_for_runner"), False)
    assert until(lambda: not callback._view.thread.is_alive())
    assert "Traceback" not in capsys.readouterr().err
