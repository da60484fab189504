# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that outlives the task that started it, and the ssh session with it.

It is forked, not started anew: the collection's code is in an archive that Ansible removes when the task ends, and a fork has loaded it
already. What could be refused has been refused by then; what can still go wrong comes back over a pipe before the task ends.

Its status is a journal with :func:`process_identity`: a process number alone does not identify a process after a reboot or a while, so the boot
and the start of the process belong to it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

_MOST_OPEN = 4096
#: Seconds between two looks at a process that is ending.
_LOOK = 0.05
#: States of a thread that has ended.
_ENDED = ("Z", "X")
#: Seconds after which a process that was killed is given up.
_KILLED = 5.0

Work = t.Callable[[t.Callable[[], None]], None]


@frozen
class BackgroundProcess:
    """A kind of process.

    :param name: as messages begin with it.
    :param scope: its scope of systemd begins with it.
    """

    name: str
    scope: str

    def start(self, work: Work, runner: Runner, keep: t.Collection[int] = ()) -> None:
        """Run something in a process of its own that has nothing to do with this one any more.

        :param work: called there with a function that it calls once it is safely under way; what it raises before that is raised here.
        :param runner: for the call of systemd.
        :param keep: descriptors that stay open there; everything else is closed.
        :raises StorageError: what the work raised, or that the process could not be started.
        """
        reader, writer = os.pipe()
        first = os.fork()
        if not first:
            self._second_fork(work, runner, reader, writer, keep)
        os.close(writer)
        os.waitpid(first, 0)
        with os.fdopen(reader, "rb") as stream:
            message = stream.read().decode(errors="replace")
        if message != "under way":
            raise self._error_from(message)

    def _error_from(self, message: str) -> StorageError:
        try:
            found = json.loads(message)
            error = CommandFailed(found["msg"])
            error.kind = found["error"]
        except (ValueError, KeyError, TypeError):
            return CommandFailed(f"{self.name} ended before it was under way: see the kernel messages on this host (dmesg).")
        return error

    def _second_fork(self, work: Work, runner: Runner, reader: int, writer: int, keep: t.Collection[int]) -> t.NoReturn:
        """In the first child: the grandchild is reparented and has no terminal (daemon(7))."""
        try:
            os.close(reader)
            os.setsid()
            if os.fork():
                os._exit(0)
            os.chdir("/")
            # What others may read is given a mode of its own.
            os.umask(0o077)
            _cut_off({writer, *keep})
            self._work(work, runner, writer)
        finally:
            os._exit(1)

    def _work(self, work: Work, runner: Runner, writer: int) -> None:
        reported = []

        def under_way() -> None:
            reported.append(True)
            os.write(writer, b"under way")
            os.close(writer)
            self.leave_session_scope(runner)

        try:
            work(under_way)
        except StorageError as error:
            if not reported:
                os.write(writer, json.dumps({"msg": error.message, "error": error.kind}).encode())
            os._exit(1)
        os._exit(0)

    def leave_session_scope(self, runner: Runner) -> None:
        """Request a separate scope from systemd: where ``KillUserProcesses`` is set, all that a user's session started ends with it.

        Without systemd, or if it refuses, everything works as long as the session's end kills no processes.
        Source: org.freedesktop.systemd1(5), StartTransientUnit; the property PIDs of a scope.
        """
        if not os.path.isdir("/run/systemd/system") or not runner.has("busctl"):
            return
        unit = f"{self.scope}-{os.getpid()}.scope"
        argv = ["busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StartTransientUnit"]
        with contextlib.suppress(StorageError):
            runner.run([*argv, "ssa(sv)a(sa(sv))", unit, "fail", "1", "PIDs", "au", "1", str(os.getpid()), "0"], ok=None, timeout=10)


def _cut_off(kept: t.Collection[int]) -> None:
    """Nothing of the task that started this may stay open: ssh waits for its end."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    first = 3
    for number in sorted(kept):
        os.closerange(first, number)
        first = number + 1
    os.closerange(first, _MOST_OPEN)


def process_identity() -> dict[str, t.Any]:
    """What distinguishes this process from every other one that ever had its number."""
    return {"pid": os.getpid(), "boot_id": boot_id(), "pid_started": started_of(os.getpid())}


def boot_id() -> str:
    """What distinguishes this boot of the host from every other one. Source: random(4)."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def started_of(pid: int) -> int | None:
    """When a process started, in clock ticks since the boot; ``None`` if it is gone or has ended and waits for its parent.

    A process whose first thread has ended keeps its files open as long as it has others: it is not gone.
    Source: proc(5), ``/proc/pid/stat``: the name may contain blanks and parentheses, field 3 is the state, field 20 the number of threads, field
    22 the start.
    """
    try:
        fields = _stat_of(pid)
        return None if fields[0] in _ENDED and int(fields[17]) <= 1 else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def _stat_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def is_alive(status: t.Mapping[str, t.Any]) -> bool:
    """Whether the process that wrote a status still runs."""
    pid, started = status.get("pid"), status.get("pid_started")
    if not isinstance(pid, int) or started is None or status.get("boot_id") != boot_id():
        return False
    return started_of(pid) == started


def is_ending(status: t.Mapping[str, t.Any]) -> bool:
    """Whether the process that wrote a status is alive with its first thread ended: it was killed, and its other threads are not gone yet."""
    with contextlib.suppress(OSError, IndexError):
        return is_alive(status) and _stat_of(status["pid"])[0] in _ENDED
    return False


def wait_for_end(status: t.Mapping[str, t.Any], seconds: float) -> bool:
    """Wait for the end of a process.

    :returns: whether it has ended.
    """
    deadline = time.monotonic() + seconds
    while is_alive(status):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK)
    return True


def end_process(status: t.Mapping[str, t.Any], patience: float) -> bool:
    """End the process that wrote a status, if it runs, and wait for its end.

    :param patience: seconds until it is killed.
    :returns: whether it has ended.
    """
    for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, _KILLED)):
        if not is_alive(status):
            return True
        with contextlib.suppress(ProcessLookupError):
            os.kill(status["pid"], number)
        if wait_for_end(status, seconds):
            return True
    return False
