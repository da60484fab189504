# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A runner on a host seen from the controller: barriers, ends, deaths, lost connections, lies, and the clock of its host."""

from __future__ import annotations

import json
import shlex
import types

import pytest
from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.action import ActionBase

from ansible_collections.cachefleet.storage.plugins.action import release_runner, wait_for_runner
from ansible_collections.cachefleet.storage.plugins.plugin_utils import _raw_shell
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.runner import runner_status
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action

BOOT = "0f9d2f6e-5f0e-4a1c-9a53-5c1b8a3f6a11"
EPOCH = 1_800_000_000.0


def status(state, **more):
    reported = {"schema": 1, "state": state, "segment": 0, "step": 0, "steps": 4, "pid": 77, "pid_started": 1234, "boot_id": BOOT, "time": EPOCH, **more}
    return json.dumps(reported)


class Clock:
    """Time that passes only during a sleep."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def time(self):
        return EPOCH + self.now

    def sleep(self, seconds):
        self.now += seconds


class Host:
    """Answers looks at runner.json from a script; each answer but the last is given once."""

    def __init__(self, monkeypatch, looks, *, alive=True, become=None, boot=BOOT, started=1234):
        self.clock, self.looks, self.alive, self.boot, self.started = Clock(), list(looks), alive, boot, started
        self.commands, self.printed, self.resets, self.play = [], [], 0, ["db1"]
        self.state, self.threads = "S", 1
        self.connection = types.SimpleNamespace(become=become, reset=self._reset)
        for module in (wait_for_runner, release_runner):
            monkeypatch.setattr(module, "time", self.clock)
            monkeypatch.setattr(module.ActionModule, "_low_level_execute_command", self._command)

    def _reset(self):
        self.resets += 1

    def _command(self, command, sudoable, executable):
        self.commands.append((command, sudoable))
        if "boot_id" in command:
            stat = f"77 (python3 (x) y) {self.state} {' '.join('0' * 16)} {self.threads} 0 {self.started} 0\n" if self.alive else ""
            return {"rc": 0, "stdout": f"{self.boot}\n{stat}", "stderr": ""}
        assert command.startswith("head -c 65537 -- ")
        answer = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if isinstance(answer, Exception):
            raise answer
        if answer is None or (answer == "secret" and not sudoable):
            return {"rc": 1, "stdout": "", "stderr": "cat: no"}
        return {"rc": 0, "stdout": status("finished") if answer == "secret" else answer, "stderr": ""}

    def run(self, module=wait_for_runner, *, check_mode=False, name="db1", **args):
        action = made_action(module, {"campaign": "c1", **args}, self.printed, check_mode=check_mode, _connection=self.connection)
        return action.run(task_vars={"inventory_hostname": name, "ansible_play_hosts_all": self.play})


@pytest.fixture(autouse=True)
def _no_connection(monkeypatch):
    monkeypatch.setattr(ActionBase, "run", lambda *_args, **_words: {})


# ---------------------------------------------------------------------------------------------------------------------
# wait_for_runner


def test_wait_returns_when_the_runner_waits_at_the_barrier(monkeypatch):
    host = Host(monkeypatch, [status("starting"), status("waiting", segment=0)])
    result = host.run(segment=0)
    assert (result["state"], result["waiting"], result["ended"]) == ("waiting", True, False)
    assert result["status"]["steps"] == 4
    assert host.commands[0] == ("head -c 65537 -- /var/lib/cachefleet/spool/c1/runner.json", False)


@pytest.mark.parametrize(
    ("archive", "found"),
    [
        ({"path": "/s/c1.tar", "sha256": "a" * 64, "size": 10, "more": 1}, {"path": "/s/c1.tar", "sha256": "a" * 64, "size": 10}),
        ({"path": "/s/c1.tar", "sha256": "a" * 64, "size": -1}, {}),
        ({"path": 7, "sha256": "a" * 64, "size": 10}, {}),
        (["/s/c1.tar"], {}),
        (None, {}),
    ],
)
def test_packed_results_of_a_finished_runner_are_returned(monkeypatch, archive, found):
    host = Host(monkeypatch, [status("finished", archive=archive)])
    assert host.run()["status"]["archive"] == found


def test_paths_are_quoted(monkeypatch):
    host = Host(monkeypatch, [status("finished")])
    host.run(spool="/srv/a b;rm")
    assert host.commands[0][0] == "head -c 65537 -- '/srv/a b;rm/c1/runner.json'"


@pytest.mark.parametrize("name", ["../x", "a b", ""])
def test_invalid_folder_names_are_rejected(monkeypatch, name):
    host = Host(monkeypatch, [status("finished")])
    assert "cannot be the name of a campaign" in host.run(campaign=name)["msg"]
    assert not host.commands


@pytest.mark.parametrize("reported", [status("measuring", segment=1), status("waiting", segment=2), status("pausing", segment=1)])
def test_runner_past_the_barrier_is_not_awaited(monkeypatch, reported):
    result = Host(monkeypatch, [reported]).run(segment=1)
    assert not result["ended"]
    assert not result["waiting"]


@pytest.mark.parametrize(("before", "awaited"), [([0, 0], 1), ([None, None], 0)])
def test_runner_before_the_barrier_is_awaited(monkeypatch, before, awaited):
    first, second = before
    host = Host(monkeypatch, [status("measuring", segment=first), status("measuring", segment=second, time=EPOCH + 9), status("waiting", segment=awaited)])
    assert host.run(segment=awaited)["waiting"]
    assert host.clock.now > 1000


@pytest.mark.parametrize("state", ["finished", "stopped", "failed"])
def test_ended_runner_ends_the_wait_without_failing_the_task(monkeypatch, state):
    result = Host(monkeypatch, [status("measuring"), status(state, message="\x1b[31mdisk full\n")]).run()
    assert (result["state"], result["ended"], result["message"]) == (state, True, "disk full")
    assert not result.get("failed")


def test_polling_interval_increases_up_to_the_requested_interval(monkeypatch):
    host = Host(monkeypatch, [status("measuring", time=EPOCH + n) for n in range(400)])
    pauses = []
    monkeypatch.setattr(host.clock, "sleep", lambda seconds: (pauses.append(seconds), setattr(host.clock, "now", host.clock.now + seconds)))
    host.looks += [status("finished")]
    host.run(interval=15)
    assert pauses[0] == 0.5
    assert max(pauses) == 15.0
    assert pauses == sorted(pauses)


def test_dead_runner_is_detected_by_its_process(monkeypatch):
    result = Host(monkeypatch, [status("measuring")], alive=False).run()
    assert (result["state"], result["ended"]) == ("dead", True)
    assert "without reporting a reason" in result["message"]


def test_host_restart_is_detected_by_its_boot_id(monkeypatch):
    assert Host(monkeypatch, [status("measuring")], boot="11111111-5f0e-4a1c-9a53-5c1b8a3f6a11").run()["state"] == "dead"


def test_other_process_with_the_same_pid_is_not_the_runner(monkeypatch):
    assert Host(monkeypatch, [status("measuring")], started=99).run()["state"] == "dead"


def test_runner_ending_between_two_polls_is_not_dead(monkeypatch):
    host = Host(monkeypatch, [status("measuring"), status("finished")], alive=False)
    assert host.run()["state"] == "finished"


def test_silent_running_runner_is_awaited(monkeypatch):
    host = Host(monkeypatch, [status("measuring")] * 30 + [status("finished")])
    assert host.run()["state"] == "finished"
    assert any("boot_id" in command for command, _root in host.commands)


@pytest.mark.parametrize(("threads", "state"), [(1, "dead"), (3, "finished")])
def test_runner_whose_first_thread_has_ended_is_dead_only_without_others(monkeypatch, threads, state):
    host = Host(monkeypatch, [status("measuring"), status("measuring"), status("finished")] if threads > 1 else [status("measuring")])
    host.state, host.threads = "Z", threads
    assert host.run()["state"] == state


def test_temporary_connection_loss_does_not_end_the_wait(monkeypatch):
    host = Host(monkeypatch, [status("measuring"), AnsibleConnectionFailure("ssh: \x1b[31mno route"), AnsibleConnectionFailure("x"), status("finished")])
    assert host.run()["state"] == "finished"
    assert host.printed == ["db1: 1/4", "db1: not reachable at the moment, the measurement continues (ssh: no route)", "db1: reachable again"]
    assert host.resets == 2


def test_progress_is_printed_by_default_where_a_cell_begins_at_most_every_half_minute(monkeypatch):
    looks = [status("measuring", step=step, cell=f"cell-{step}") for step in (0, 0, 1, 2, 3) for _time in range(8)]
    host = Host(monkeypatch, [*looks, status("finished")])
    assert host.run(interval=5.0)["state"] == "finished"
    assert host.printed == ["db1: 1/4 cell-0", "db1: 2/4 cell-1", "db1: 3/4 cell-2", "db1: 4/4 cell-3"]


@pytest.mark.parametrize("case", ["quiet", "callback", "turns", "fleet"])
def test_progress_is_not_printed_twice_nor_for_a_fleet(monkeypatch, case):
    if case == "quiet":
        monkeypatch.setenv("CACHEFLEET_PROGRESS", "quiet")
    if case == "callback":
        monkeypatch.setattr(wait_for_runner.C, "CALLBACKS_ENABLED", ["cachefleet.storage.progress"])
    host = Host(monkeypatch, [status("measuring", cell="a")] * 3 + [status("finished")])
    host.play = [f"db{number}" for number in range(21 if case == "fleet" else 1)]
    host.run(turn=3600.0 if case == "turns" else 0.0)
    assert host.printed == []


def test_permanent_connection_loss_ends_the_wait(monkeypatch):
    host = Host(monkeypatch, [AnsibleConnectionFailure("no route")])
    with pytest.raises(AnsibleConnectionFailure, match=r"db1 was not reachable for \d+ s while it measured: no route. Its runner continues"):
        host.run(patience=60)
    assert host.clock.now < 1100


def test_hanging_connection_is_closed_and_retried(monkeypatch):
    import time as real

    host = Host(monkeypatch, [status("finished")])
    answer, hanging = host._command, [True]

    def command(text, sudoable, executable):
        if hanging.pop() if hanging else False:
            real.sleep(30)
        return answer(text, sudoable, executable)

    monkeypatch.setattr(wait_for_runner.ActionModule, "_low_level_execute_command", lambda _self, *args, **words: command(*args, **words))
    monkeypatch.setattr(wait_for_runner, "RawShell", lambda action, host, limit: _raw_shell.RawShell(action, host, 0.05))
    assert host.run()["state"] == "finished"
    assert "no answer within 0.05 seconds" in host.printed[0]


def test_become_is_used_if_the_status_is_not_readable(monkeypatch):
    host = Host(monkeypatch, ["secret"], become=object())
    assert host.run()["state"] == "finished"
    assert [root for _command, root in host.commands] == [False, True]


@pytest.mark.parametrize("reported", [None, "not json", "[]", json.dumps({"schema": 1, "state": "hungry"}), json.dumps({"schema": 2, "state": "finished"})])
def test_runner_with_permanently_invalid_status_is_dead(monkeypatch, reported):
    result = Host(monkeypatch, [reported]).run()
    assert result["state"] == "dead"


def test_status_values_from_host_are_validated():
    found = runner_status.read_status(
        status("measuring", iops="many", bandwidth=float("inf"), latency_ms=-1, cell="a\x1b]0;x\x07b", step=True, until=5, repeat=1e400)
    )
    assert (found.iops, found.bandwidth, found.latency_ms, found.cell, found.step, found.until, found.repeat) == (None, None, None, "ab", 0, None, None)


def test_wait_ends_after_the_turn(monkeypatch):
    result = Host(monkeypatch, [status("measuring")]).run(turn=30)
    assert (result["ended"], result["waiting"], result["state"]) == (False, False, "measuring")


def test_every_poll_is_recorded_for_the_progress_display(monkeypatch, tmp_path):
    host = Host(monkeypatch, [status("measuring", iops=100.0, cell="a", all_until=EPOCH + 50), status("finished", done=4)])
    host.run(path=str(tmp_path))
    [watched] = runner_status.watched_hosts(tmp_path)
    assert (watched.host, watched.ended, watched.status.state, watched.status.done) == ("db1", True, "finished", 4)


def test_remaining_time_decreases_between_two_readings():
    found = runner_status.read_status(status("measuring", all_until=EPOCH + 50))
    assert runner_status.Watched("db1", found, 5000.0).left(5020.0) == 30.0


def test_foreign_progress_files_are_ignored(tmp_path):
    folder = tmp_path / runner_status.PROGRESS_FOLDER
    folder.mkdir()
    for name, text in (("a", "{"), ("b", "[]"), ("c", '{"seen": "now"}'), ("d", json.dumps({"seen": EPOCH, "status": {"schema": 1, "state": "x"}}))):
        (folder / f"{name}.json").write_text(text)
    assert runner_status.watched_hosts(tmp_path) == []


def test_check_mode_waits_for_nothing(monkeypatch):
    host = Host(monkeypatch, [status("measuring")])
    assert host.run(check_mode=True)["state"] == "not_started"
    assert not host.commands


# ---------------------------------------------------------------------------------------------------------------------
# release_runner


class Clocked(Host):
    """A host whose clock is ahead, that takes its time to begin a command, and keeps what is written."""

    def __init__(self, monkeypatch, *, ahead=2.0, before=0.3, after=0.02, plain_date=None, rc=0):
        super().__init__(monkeypatch, [status("waiting")])
        self.ahead, self.before, self.after, self.plain_date, self.rc, self.written, self.answer = ahead, before, after, plain_date, rc, [], ""

    def _command(self, command, sudoable, executable):
        if command.startswith("exec sh -c"):
            assert not sudoable
            self.clock.now += 0.01
            forked = self.clock.time() + self.ahead
            self.clock.now += self.before
            now = self.clock.time() + self.ahead
            self.clock.now += self.after
            uptime = 5000.0
            ticks = int((uptime - (now - forked)) * 100)
            return {"rc": 0, "stdout": self.plain_date or f"CLOCK {uptime:.2f} {ticks}\n{now:.9f}\n", "stderr": ""}
        self.written.append((command, sudoable))
        return {"rc": self.rc, "stdout": self.answer, "stderr": "sh: Read-only file system\n"}

    def release(self, **args):
        return self.run(release_runner, **{"segment": 1, "start": EPOCH + self.clock.now + 10, **args})

    def reported(self):
        words = shlex.split(self.written[-1][0])
        return json.loads(words[words.index("printf") + 2])


def test_start_time_is_reported_in_host_time(monkeypatch):
    host = Clocked(monkeypatch, ahead=2.0)
    start = EPOCH + host.clock.now + 10
    result = host.release(start=start)
    # 0.3 s until the command begins would spoil the middle; what the kernel knows of its beginning does not.
    assert abs(result["clock"]["offset"] - 2.0) < 0.02
    assert abs(result["clock"]["offset"] - 2.0) <= result["clock"]["error"]
    assert abs(result["start"] - start - 2.0) < 0.02
    assert (result["late"], result["changed"]) == (0, True)
    assert host.reported()["clock"] == result["clock"]
    assert host.reported()["start"] == result["start"]


def test_release_file_is_written_atomically(monkeypatch):
    host = Clocked(monkeypatch)
    host.release(spool="/srv/x y")
    command, root = host.written[0]
    assert root
    words = shlex.split(command)
    assert words[:4] == ["if", "test", "-e", "/srv/x y/c1/release-1.json;"]
    assert words[-6:] == ["mv", "-f", "--", "/srv/x y/c1/.release-1.json.new", "/srv/x y/c1/release-1.json;", "fi"]
    assert "umask" in words


def test_release_by_a_real_shell_is_one_file_and_keeps_an_open_barrier(monkeypatch, tmp_path):
    import subprocess

    host = Clocked(monkeypatch)
    (tmp_path / "c1").mkdir()
    host.release(spool=str(tmp_path))
    command = host.written[-1][0]
    for reported in ("", "released\n"):
        assert subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout == reported
    assert [path.name for path in (tmp_path / "c1").iterdir()] == ["release-1.json"]
    assert json.loads((tmp_path / "c1/release-1.json").read_text()) == host.reported()
    assert (tmp_path / "c1/release-1.json").stat().st_mode & 0o777 == 0o644


def test_open_barrier_is_no_change(monkeypatch):
    host = Clocked(monkeypatch)
    host.answer = "released\n"
    assert host.release()["changed"] is False


def test_past_start_time_is_replaced_and_reported(monkeypatch):
    host = Clocked(monkeypatch, ahead=0.0)
    result = host.release(start=EPOCH + host.clock.now - 60)
    assert result["late"] > 60
    assert abs(result["start"] - (host.clock.time() + 3)) < 0.05
    assert host.reported()["late"] == result["late"]
    assert "after the others" in host.printed[0]


def test_synchronised_clocks_are_trusted_unless_measurement_contradicts(monkeypatch):
    assert Clocked(monkeypatch, ahead=0.002).release(synchronised=True)["clock"]["offset"] == 0.0
    assert abs(Clocked(monkeypatch, ahead=1.0).release(synchronised=True)["clock"]["offset"] - 1.0) < 0.02


def test_clock_without_fractions_of_a_second_has_a_larger_error(monkeypatch):
    host = Clocked(monkeypatch)
    host.plain_date = f"{int(host.clock.time())}.%N\n"
    clock = host.release(exchanges=1)["clock"]
    assert clock["error"] >= 0.5


@pytest.mark.parametrize("reported", ["", "date: no", "CLOCK x y", "99999999999999999999.5"])
def test_host_without_a_readable_time_is_reported(monkeypatch, reported):
    host = Clocked(monkeypatch, plain_date=reported or " ")
    result = host.release()
    assert result["failed"]
    assert "could not report its time" in result["msg"]
    assert "fio_benchmark_synchronise" in result["msg"]
    assert not host.written


def test_unwritable_release_fails_with_the_reason(monkeypatch):
    result = Clocked(monkeypatch, rc=1).release()
    assert result["failed"]
    assert "Read-only file system" in result["msg"]


@pytest.mark.parametrize("wrong", [{"start": 5}, {"start": float("nan")}, {"segment": -1}, {"exchanges": 0}, {"campaign": "../x"}])
def test_invalid_options_are_rejected(monkeypatch, wrong):
    host = Clocked(monkeypatch)
    assert host.release(**wrong)["failed"]
    assert not host.written


def test_check_mode_releases_nothing(monkeypatch):
    host = Clocked(monkeypatch)
    assert host.release(check_mode=True)["changed"]
    assert not host.written


def looks_until(monkeypatch, reported, **options):
    """How often a host is looked at within an hour in which it says always the same."""
    host = Host(monkeypatch, [reported])
    host.run(turn=3600, interval=15, **options)
    return sum(command.startswith("head -c 65537 -- ") for command, _sudoable in host.commands)


def test_near_barrier_is_polled_more_often_than_the_end(monkeypatch):
    near = status("measuring", until=EPOCH + 2, all_until=EPOCH + 86400)
    far = status("measuring", until=EPOCH + 3000, all_until=EPOCH + 86400)
    assert looks_until(monkeypatch, near) == looks_until(monkeypatch, far) == looks_until(monkeypatch, far, segment=1)
    assert 2 * looks_until(monkeypatch, far) < looks_until(monkeypatch, near, segment=1) <= 5 * looks_until(monkeypatch, far)


def test_overdue_runner_is_not_polled_every_second(monkeypatch):
    soon = status("measuring", all_until=EPOCH + 1)
    overdue = status("measuring", all_until=EPOCH - 3600)
    assert looks_until(monkeypatch, soon) > 2000
    assert looks_until(monkeypatch, overdue) < 300
