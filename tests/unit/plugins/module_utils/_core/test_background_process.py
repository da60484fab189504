# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that outlives what started it: the scope of systemd that it asks for, and what comes back when it cannot begin."""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import background_process
from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import BackgroundProcess
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.control import RUNNER
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import host_witness, host_writer
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

PROCESS = BackgroundProcess("The process of this test", "cachefleet-test")


@pytest.fixture
def systemd(monkeypatch):
    monkeypatch.setattr(background_process.os.path, "isdir", lambda path: path == "/run/systemd/system")


def test_systemd_scope_contains_this_process(systemd):
    runner = ScriptedRunner({("busctl",): Reply('o "/org/freedesktop/systemd1/job/17"\n')})
    PROCESS.leave_session_scope(runner)
    [words] = runner.calls
    assert words[:6] == (
        "busctl",
        "call",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
    )
    # name, mode, one property: PIDs, an array of one number; and no further units.
    assert words[6:] == ("ssa(sv)a(sa(sv))", f"cachefleet-test-{os.getpid()}.scope", "fail", "1", "PIDs", "au", "1", str(os.getpid()), "0")


def test_rejection_by_systemd_is_ignored(systemd):
    PROCESS.leave_session_scope(ScriptedRunner({("busctl",): Reply(rc=1, stderr="Call failed: Access denied\n")}))


def test_hanging_busctl_is_ignored(systemd):
    class Hanging(ScriptedRunner):
        def run(self, argv, **how):
            assert how["timeout"] <= 10
            raise CommandFailed("busctl did not answer")

    PROCESS.leave_session_scope(Hanging({}))


def test_systemd_is_not_called_without_busctl(systemd):
    runner = ScriptedRunner({}, missing={"busctl"})
    PROCESS.leave_session_scope(runner)
    assert runner.calls == []


def test_busctl_is_not_called_without_systemd(monkeypatch):
    monkeypatch.setattr(background_process.os.path, "isdir", lambda path: False)
    runner = ScriptedRunner({("busctl",): Reply()})
    PROCESS.leave_session_scope(runner)
    assert runner.calls == []


def test_real_systemd_puts_the_process_into_its_own_scope():
    if os.geteuid() != 0 or not os.path.isdir("/run/systemd/system") or not shutil.which("busctl"):
        pytest.skip("a scope needs root, systemd as the first process, and busctl")
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner\n"
            "from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import BackgroundProcess\n"
            "import time\nBackgroundProcess('A', 'cachefleet-test').leave_session_scope(Runner())\ntime.sleep(0.5)\nprint(open('/proc/self/cgroup').read())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cachefleet-test-" in process.stdout and ".scope" in process.stdout


def test_work_continues_in_a_reparented_process(tmp_path):
    message = tmp_path / "said"

    def work(under_way):
        under_way()
        time.sleep(0.2)
        message.write_text(f"{os.getpid()} {os.getsid(0)} {os.getcwd()}")

    PROCESS.start(work, Runner())
    assert not message.exists(), "the start does not wait for the work"
    deadline = time.monotonic() + 20
    while not (message.exists() and message.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    pid, session, folder = message.read_text().split()
    assert pid != str(os.getpid()) and session != str(os.getsid(0)) and folder == "/"
    with pytest.raises(ChildProcessError):
        os.waitpid(int(pid), 0)


def test_error_before_the_start_is_raised_in_the_caller():
    def work(under_way):
        raise BadInput("This is invalid.")

    with pytest.raises(StorageError, match=r"This is invalid\.") as error:
        PROCESS.start(work, Runner())
    assert error.value.kind == BadInput.kind


@pytest.mark.parametrize(
    ("process", "name"),
    [
        (RUNNER, "The runner"),
        (host_writer.PROCESS, "The writer of the power-loss test"),
        (host_witness.PROCESS, "The witness of the power-loss test"),
    ],
)
def test_process_ending_without_a_message_is_reported_by_its_own_name(process, name):
    with pytest.raises(CommandFailed, match=f"^{name} ended before it was under way"):
        process.start(lambda under_way: os._exit(3), Runner())


def test_each_kind_of_process_has_its_own_scope():
    assert len({process.scope for process in (RUNNER, host_writer.PROCESS, host_witness.PROCESS)}) == 3


def test_scope_is_left_once_the_work_is_under_way(monkeypatch, tmp_path):
    monkeypatch.setattr(BackgroundProcess, "leave_session_scope", lambda process, _runner: (tmp_path / "left").write_text(process.scope))

    def work(under_way):
        assert not (tmp_path / "left").exists()
        under_way()
        (tmp_path / "done").write_text((tmp_path / "left").read_text())

    PROCESS.start(work, Runner())
    assert until((tmp_path / "done").exists)
    assert (tmp_path / "done").read_text() == "cachefleet-test"


@pytest.mark.parametrize("ignored", [(), (signal.SIGTERM,)], ids=["ends when asked", "has to be killed"])
def test_process_is_ended_with_its_status(tmp_path, ignored):
    def work(under_way):
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        (tmp_path / "status").write_text(json.dumps(background_process.process_identity()))
        under_way()
        time.sleep(60)

    PROCESS.start(work, Runner())
    status = json.loads((tmp_path / "status").read_text())
    assert background_process.is_alive(status)
    assert not background_process.wait_for_end(status, 0)
    assert background_process.end_process(status, 0.2 if ignored else 20)
    assert not background_process.is_alive(status)
    assert background_process.end_process(status, 0), "one that has ended is not signalled"


def test_process_with_the_number_of_another_one_is_not_ended():
    status = background_process.process_identity()
    assert background_process.is_alive(status)
    for other in ({"boot_id": "another"}, {"pid_started": status["pid_started"] + 1}, {"pid": "1"}):
        # It would end this very process.
        assert background_process.end_process({**status, **other}, 0)


def test_process_is_alive_as_long_as_one_of_its_threads_holds_its_files(tmp_path):
    def work(under_way):
        (tmp_path / "status").write_text(json.dumps(background_process.process_identity()))
        threading.Thread(target=time.sleep, args=(60,)).start()
        under_way()
        # The first thread ends alone (pthread_exit(3)), which Python never does.
        ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)

    PROCESS.start(work, Runner())
    status = json.loads((tmp_path / "status").read_text())
    assert until(lambda: ") Z " in Path(f"/proc/{status['pid']}/stat").read_text())
    assert background_process.is_alive(status) and background_process.is_ending(status)
    assert background_process.end_process(status, 0) and not background_process.is_ending(status)
    assert not background_process.is_ending(background_process.process_identity())


def until(condition):
    deadline = time.monotonic() + 20
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_process_stops_if_its_inherited_descriptor_is_closed():
    ours, theirs = socket.socketpair()

    def work(under_way):
        waiter = Waiter(theirs.fileno())
        under_way()
        waiter.wait(20)
        os._exit(0 if waiter.stopping else 1)

    with ours:
        with theirs:
            PROCESS.start(work, Runner(), keep=(theirs.fileno(),))
        assert select.select([ours], [], [], 0.2)[0] == [], "the process waits"
        ours.shutdown(socket.SHUT_WR)
        assert select.select([ours], [], [], 20)[0] == [ours], "the process has ended"


def test_descriptors_of_the_task_are_closed(tmp_path):
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    held = tmp_path / "held"

    def work(under_way):
        under_way()
        held.write_text(" ".join(os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{number}")))
        time.sleep(0.5)

    PROCESS.start(work, Runner())
    os.close(writer)
    # It would block until the process ends if that held the other end; the file is written while it lives.
    assert os.read(reader, 1) == b""
    os.close(reader)
    deadline = time.monotonic() + 20
    while not (held.exists() and held.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "pipe:" not in held.read_text()
