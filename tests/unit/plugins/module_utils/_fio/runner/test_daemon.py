# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that outlives what started it: the scope of systemd that it asks for, and what comes back when it cannot begin."""

from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import sys
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import daemon
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


@pytest.fixture
def systemd(monkeypatch):
    monkeypatch.setattr(daemon.os.path, "isdir", lambda path: path == "/run/systemd/system")


def test_systemd_scope_contains_this_process(systemd):
    runner = ScriptedRunner({("busctl",): Reply('o "/org/freedesktop/systemd1/job/17"\n')})
    daemon.leave_session_scope(runner)
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
    assert words[6:] == ("ssa(sv)a(sa(sv))", f"cachefleet-fio-{os.getpid()}.scope", "fail", "1", "PIDs", "au", "1", str(os.getpid()), "0")


def test_rejection_by_systemd_is_ignored(systemd):
    daemon.leave_session_scope(ScriptedRunner({("busctl",): Reply(rc=1, stderr="Call failed: Access denied\n")}))


def test_hanging_busctl_is_ignored(systemd):
    class Hanging(ScriptedRunner):
        def run(self, argv, **how):
            assert how["timeout"] <= 10
            raise CommandFailed("busctl did not answer")

    daemon.leave_session_scope(Hanging({}))


def test_systemd_is_not_called_without_busctl(systemd):
    runner = ScriptedRunner({}, missing={"busctl"})
    daemon.leave_session_scope(runner)
    assert runner.calls == []


def test_busctl_is_not_called_without_systemd(monkeypatch):
    monkeypatch.setattr(daemon.os.path, "isdir", lambda path: False)
    runner = ScriptedRunner({("busctl",): Reply()})
    daemon.leave_session_scope(runner)
    assert runner.calls == []


def test_real_systemd_puts_the_process_into_its_own_scope():
    if os.geteuid() != 0 or not os.path.isdir("/run/systemd/system") or not shutil.which("busctl"):
        pytest.skip("a scope needs root, systemd as the first process, and busctl")
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner\n"
            "from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.daemon import leave_session_scope\n"
            "import time\nleave_session_scope(Runner())\ntime.sleep(0.5)\nprint(open('/proc/self/cgroup').read())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "cachefleet-fio-" in process.stdout and ".scope" in process.stdout


def test_work_continues_in_a_reparented_process(tmp_path):
    message = tmp_path / "said"

    def work(under_way):
        under_way()
        time.sleep(0.2)
        message.write_text(f"{os.getpid()} {os.getsid(0)} {os.getcwd()}")

    daemon.start(work)
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
        daemon.start(work)
    assert error.value.kind == BadInput.kind


def test_process_ending_without_a_message_is_reported():
    with pytest.raises(CommandFailed, match="ended before it was under way"):
        daemon.start(lambda under_way: os._exit(3))


def test_process_stops_if_its_inherited_descriptor_is_closed():
    ours, theirs = socket.socketpair()

    def work(under_way):
        waiter = Waiter(theirs.fileno())
        under_way()
        waiter.wait(20)
        os._exit(0 if waiter.stopping else 1)

    with ours:
        with theirs:
            daemon.start(work, keep=(theirs.fileno(),))
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

    daemon.start(work)
    os.close(writer)
    # It would block until the process ends if that held the other end; the file is written while it lives.
    assert os.read(reader, 1) == b""
    os.close(reader)
    deadline = time.monotonic() + 20
    while not (held.exists() and held.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert "pipe:" not in held.read_text()
