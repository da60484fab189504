# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, TimedOut, ToolMissing, TooMuchOutput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner


def test_output_exit_status_and_c_locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    completed = Runner().run([sys.executable, "-c", "import os, sys; print(os.environ['LC_ALL']); sys.exit(3)"], ok=(3,))
    assert (completed.stdout, completed.rc) == ("C\n", 3)


def test_arguments_are_not_interpreted_by_a_shell(tmp_path):
    Runner().run(["echo", f"; touch {tmp_path}/made", "$(id)"])
    assert list(tmp_path.iterdir()) == []


def test_unexpected_exit_status_raises_with_output():
    with pytest.raises(CommandFailed, match="failed with exit status 2: the reason") as caught:
        Runner().run(["sh", "-c", "echo some; echo the reason >&2; exit 2"], item="/dev/x")
    result = caught.value.to_dict()
    assert (result["rc"], result["stdout"], result["stderr"], result["item"]) == (2, "some\n", "the reason\n", "/dev/x")


@pytest.mark.parametrize(
    ("stderr", "stdout", "expected"),
    [
        ("", "", "it printed nothing"),
        ("WARNING: x\n  No.\n", "out\n", "No."),
        ("", "first\nlast\n", "last"),
        (
            '  /etc/lvm/archive/.lvm_h_1_2: write error failed: No space left on device\n  Volume group "vg" metadata archive failed.\n',
            "",
            'Volume group "vg" metadata archive failed. (/etc/lvm/archive/.lvm_h_1_2: write error failed: No space left on device)',
        ),
        (
            "  Cannot archive volume group metadata for vg to read-only filesystem.\n",
            "",
            "Cannot archive volume group metadata for vg to read-only filesystem.",
        ),
        ("failed\n", "mkdir: Read-only file system\n", "failed (mkdir: Read-only file system)"),
    ],
)
def test_last_words_include_the_reason_of_a_file_system(stderr, stdout, expected):
    assert Completed(("x",), 1, stdout, stderr).last_words == expected


def test_missing_command_error_names_the_package():
    with pytest.raises(ToolMissing, match="no-such-command is missing on this host: install the package no-such-command"):
        Runner().run(["no-such-command"])
    with pytest.raises(ToolMissing, match="does not exist or cannot be executed"):
        Runner().find("/etc/passwd")
    with pytest.raises(ToolMissing, match="does not exist or cannot be executed"):
        Runner().find("/bin/a\0b")


def test_path_takes_precedence_over_system_folders(tmp_path, monkeypatch):
    tool = tmp_path / "hdparm"
    tool.write_text("#!/bin/sh\necho ours\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Runner().run(["hdparm"]).stdout == "ours\n"


def test_vendor_folder_is_searched(tmp_path):
    tool = tmp_path / "storcli64"
    tool.write_text("#!/bin/sh\necho vendor\n")
    tool.chmod(0o755)
    assert Runner(vendor_dirs=[str(tmp_path)]).run(["storcli64"]).stdout == "vendor\n"


def test_timeout_stops_command_and_its_children(tmp_path):
    marker = tmp_path / "pid"
    with pytest.raises(TimedOut, match="did not end within 1 seconds and was stopped"):
        Runner().run(["sh", "-c", f"sleep 60 & echo $! > {marker}; wait"], timeout=1)
    status = Path("/proc") / marker.read_text().strip() / "stat"
    # An ended orphan may stay as a zombie where nothing reaps it.
    assert not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] == "Z"


def test_undecodable_output_is_kept_readable():
    assert "\ufffd" in Runner().run(["printf", "\\377"]).stdout


def test_command_history_is_recorded():
    runner = Runner()
    runner.run(["true"])
    runner.run(["false"], ok=None)
    assert [completed.rc for completed in runner.history] == [0, 1]


def test_command_that_cannot_be_started_is_reported(tmp_path):
    for name, content in (("wrong", b"\x7fELF no program"), ("nobody", b"#!/no/such/interpreter\n")):
        tool = tmp_path / name
        tool.write_bytes(content)
        tool.chmod(0o755)
        with pytest.raises(ToolMissing, match="is there and cannot be started") as caught:
            Runner().run([str(tool)])
        assert str(tool) in caught.value.message


#: A parent that waits in vfork is in uninterruptible sleep until its child ends; a signal would end it, and the tests withhold that.
_SLEEPS = """
import ctypes, os, pathlib, sys, time
marker = pathlib.Path(sys.argv[1])
marker.write_text(str(os.getpid()))
if ctypes.CDLL(None).vfork() == 0:
    time.sleep(300)
    os._exit(0)
"""


@pytest.fixture
def without_signals(monkeypatch):
    """No signal has an effect, as for a process that waits for a device."""
    groups = []
    send = os.killpg
    monkeypatch.setattr(os, "killpg", lambda group, _number: groups.append(group))
    yield
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            send(group, signal.SIGKILL)


def test_unkillable_process_is_abandoned_and_reported(tmp_path, without_signals):
    marker = tmp_path / "pid"
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"did not end within 1 seconds and could not be stopped: process [0-9]+ .* is in uninterruptible sleep") as caught:
        Runner().run([sys.executable, "-c", _SLEEPS, str(marker)], timeout=1, patience=0.5)
    # The limit, the patience and five seconds; a machine that is busy may take some more.
    assert time.monotonic() - began < 30
    assert int(marker.read_text()) in caught.value.to_dict()["left_running"]


def test_failing_watch_does_not_wait_for_unkillable_process(tmp_path, without_signals):
    def watch():
        raise CommandFailed("enough")

    began = time.monotonic()
    with pytest.raises(CommandFailed, match="enough"):
        Runner().run([sys.executable, "-c", _SLEEPS, str(tmp_path / "pid")], timeout=60, patience=0.5, watch=watch, interval=0.5)
    assert time.monotonic() - began < 30


def test_command_ignoring_sigterm_is_killed_after_grace_period():
    with pytest.raises(TimedOut, match=r"did not end within 0\.5 seconds and was stopped") as caught:
        Runner().run(["sh", "-c", "trap '' TERM; echo began; while :; do sleep 0.1; done"], timeout=0.5, patience=0.5)
    assert (caught.value.completed.rc, caught.value.completed.stdout) == (-signal.SIGKILL, "began\n")


def test_output_after_sigterm_is_kept():
    script = "trap 'seq 30000; exit 0' TERM; while :; do sleep 0.1; done"
    with pytest.raises(TimedOut) as caught:
        Runner().run(["sh", "-c", script], timeout=0.5, patience=20)
    assert (caught.value.completed.rc, caught.value.completed.stdout.splitlines()[-1]) == (0, "30000")


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_excessive_output_stops_the_command(stream):
    redirection = ">&2" if stream == "stderr" else ""
    with pytest.raises(TooMuchOutput, match="printed more than 1 MiB and was stopped") as caught:
        Runner().run(["sh", "-c", f"yes {redirection}"], timeout=60, max_output=1 << 20)
    assert len(getattr(caught.value.completed, stream)) == 1 << 20


def test_output_up_to_the_limit_is_accepted():
    assert len(Runner().run(["head", "-c", "65536", "/dev/zero"], max_output=65536).stdout) == 65536


def test_detached_child_holding_output_open_does_not_exceed_timeout(tmp_path):
    marker = tmp_path / "pid"
    began = time.monotonic()
    with pytest.raises(TimedOut, match="ended, but a process that it started kept its output open for more than 1 seconds") as caught:
        Runner().run(["sh", "-c", f"setsid sleep 120 & echo $! > {marker}; echo done"], timeout=1, patience=0.5)
    assert time.monotonic() - began < 30
    assert caught.value.completed.stdout == "done\n"
    os.kill(int(marker.read_text()), signal.SIGKILL)


def test_open_file_descriptors_are_inherited(tmp_path):
    (tmp_path / "data").write_text("content")
    handle = os.open(tmp_path / "data", os.O_RDONLY)
    try:
        assert Runner().run(["cat", f"/proc/self/fd/{handle}"], pass_fds=[handle]).stdout == "content"
        assert Runner().run(["test", "-e", f"/proc/self/fd/{handle}"], ok=None).rc == 1
    finally:
        os.close(handle)


def test_input_and_output_are_exchanged_concurrently():
    text = "x" * 99 + "\n"
    assert Runner().run(["cat"], stdin=text * 20000).stdout == text * 20000


def test_unread_input_is_not_a_failure():
    assert Runner().run(["true"], stdin="x" * 1000000).rc == 0


def test_command_history_is_bounded():
    runner = Runner()
    for _number in range(70):
        runner.run(["true"])
    assert len(runner.history) == 64


def test_command_the_user_may_not_stop_is_reported_in_one_sentence(monkeypatch):
    send = os.killpg
    groups = []

    def killpg(group, _number):
        groups.append(group)
        raise PermissionError

    monkeypatch.setattr(os, "killpg", killpg)
    with pytest.raises(TimedOut, match=r"could not be stopped: process [0-9]+ [(]sleep[)] did not end on SIGKILL"):
        Runner().run(["sleep", "300"], timeout=0.2, patience=0.2)
    send(groups[0], signal.SIGKILL)
