# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that outlives the task that started it, and the ssh session with it.

It is forked, not started anew: the collection's code is in an archive that Ansible removes when the task ends, and a fork has loaded it
already. What could be refused has been refused by then; what can still go wrong comes back over a pipe before the task ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

_MOST_OPEN = 4096


def start(work: t.Callable[[t.Callable[[], None]], None], keep: t.Collection[int] = ()) -> None:
    """Run something in a process of its own that has nothing to do with this one any more.

    :param work: called there with a function that it calls once it is safely under way; what it raises before that is raised here.
    :param keep: descriptors that stay open there; everything else is closed.
    :raises StorageError: what the work raised, or that the process could not be started.
    """
    reader, writer = os.pipe()
    first = os.fork()
    if not first:
        _second_fork(work, reader, writer, keep)
    os.close(writer)
    os.waitpid(first, 0)
    with os.fdopen(reader, "rb") as stream:
        message = stream.read().decode(errors="replace")
    if message != "under way":
        raise _error_from(message)


def _error_from(message: str) -> StorageError:
    try:
        found = json.loads(message)
        error = CommandFailed(found["msg"])
        error.kind = found["error"]
    except (ValueError, KeyError, TypeError):
        return CommandFailed("The runner ended before it was under way: see the kernel messages on this host (dmesg).")
    return error


def _second_fork(work: t.Callable[[t.Callable[[], None]], None], reader: int, writer: int, keep: t.Collection[int]) -> t.NoReturn:
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
        _work(work, writer)
    finally:
        os._exit(1)


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


def _work(work: t.Callable[[t.Callable[[], None]], None], writer: int) -> None:
    reported = []

    def under_way() -> None:
        reported.append(True)
        os.write(writer, b"under way")
        os.close(writer)

    try:
        work(under_way)
    except StorageError as error:
        if not reported:
            os.write(writer, json.dumps({"msg": error.message, "error": error.kind}).encode())
        os._exit(1)
    os._exit(0)


def leave_session_scope(runner: Runner) -> None:
    """Request a separate scope from systemd: where ``KillUserProcesses`` is set, all that a user's session started ends with it.

    Without systemd, or if it refuses, everything works as long as the session's end kills no processes.
    Source: org.freedesktop.systemd1(5), StartTransientUnit; the property PIDs of a scope.
    """
    if not os.path.isdir("/run/systemd/system") or not runner.has("busctl"):
        return
    unit = f"cachefleet-fio-{os.getpid()}.scope"
    argv = ["busctl", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "StartTransientUnit"]
    with contextlib.suppress(StorageError):
        runner.run([*argv, "ssa(sv)a(sa(sv))", unit, "fail", "1", "PIDs", "au", "1", str(os.getpid()), "0"], ok=None, timeout=10)
