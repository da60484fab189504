# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A process that outlives the module that started it, known by its id and the moment it was started.

An id alone is not enough: ids are used again, and an unrelated process must never be ended in place of a machine.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen


@frozen
class NotedProcess:
    """``start`` is the start time in clock ticks since boot; ``boot`` names the boot of the host in which both hold."""

    pid: int
    start: int
    boot: str

    def alive(self, root: pathlib.Path = pathlib.Path("/")) -> bool:
        """Whether this very process still runs; a zombie does not."""
        return note_process(self.pid, root) == self

    def end(self, number: int, patience: float) -> bool:
        """Send a signal and wait for the end.

        :returns: whether the process is gone within ``patience`` seconds.
        """
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
        return self.wait(patience)

    def kill(self) -> bool:
        return self.end(signal.SIGKILL, 10.0)

    def wait(self, patience: float) -> bool:
        """Wait for the process to end by itself; whether it did."""
        deadline = time.monotonic() + patience
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


def note_process(pid: int, root: pathlib.Path = pathlib.Path("/")) -> NotedProcess | None:
    """The record of a running process; ``None`` if there is none with this id.

    Source of the format: proc(5), /proc/pid/stat, fields 3 (state) and 22 (starttime).
    """
    try:
        text = (root / f"proc/{pid}/stat").read_text()
        boot = (root / "proc/sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command name stands in parentheses and may itself contain blanks and parentheses.
    fields = text[text.rindex(")") + 1 :].split()
    # A killed process whose first thread is gone already is not gone before its other threads are: they hold its ports.
    if fields[0] in ("Z", "X", "x") and _threads(root / f"proc/{pid}/task") < 2:
        return None
    return NotedProcess(pid, int(fields[19]), boot)


def _threads(tasks: pathlib.Path) -> int:
    try:
        return len(list(tasks.iterdir()))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def process_of(note: t.Mapping[str, t.Any]) -> NotedProcess | None:
    """The process that the note of a machine names; ``None`` for a machine that was never started."""
    process = note.get("process")
    return None if process is None else NotedProcess(**process)
