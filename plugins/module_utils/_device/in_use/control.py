# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The positive control of a search for users: a process that has the target open for this purpose only, and that the search has to find.

A search without a result is conclusive only if it finds a process that is known to have the target open. The control is a child of this process: it
inherits one descriptor and waits to be ended, or for the end of its parent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of_status


@frozen
class Control:
    """A process that has a target open.

    :param pid: 0 if there is none, below another root.
    :param unit: what it has open; ``None`` if nothing.
    :param problem: why it could not open the target, as a sentence; empty if it could.
    """

    pid: int = 0
    unit: Unit | None = None
    problem: str = ""


@contextlib.contextmanager
def running(root: Path, path: str | None, unit: Unit | None) -> t.Iterator[Control]:
    """A control for one target; below another root, where no process of this host is to be found, there is none.

    :param path: of the device or file; ``None`` for a control that has nothing open.
    :param unit: what the path must lead to.
    """
    if root != Path("/"):
        yield Control()
        return
    descriptor, problem = _opened(path, unit)
    try:
        try:
            pid, writer = _start()
        except OSError as error:
            yield Control(problem=f"no process could be started as the control of the search for its users ({error.strerror}): free memory or processes")
            return
    finally:
        if descriptor is not None:
            os.close(descriptor)
    try:
        yield Control(pid, unit if descriptor is not None else None, problem)
    finally:
        os.close(writer)
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored the kernel has removed it
            os.waitpid(pid, 0)


def _opened(path: str | None, unit: Unit | None) -> tuple[int | None, str]:
    if path is None:
        return None, ""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None, f"{path} cannot be opened as the control of the search for its users ({error.strerror}): check it, and run as root (become: true)"
    if unit_of_status(os.fstat(descriptor)) == unit:
        return descriptor, ""
    os.close(descriptor)
    return None, f"{path} leads to something else than what is examined: check its device node"


def _start() -> tuple[int, int]:
    """Start the process, and what it waits for to be closed. It gets no signal but SIGKILL: the handlers here are not meant for it."""
    reader, writer = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            try:
                os.close(writer)
                # The end of its parent ends it too.
                os.read(reader, 1)
            finally:
                os._exit(0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reader)
    return pid, writer
