# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A gate before which a fio that is ready waits, so that the first I/O of every host comes at the agreed instant.

From its start to its first I/O fio needs as long as the host is slow, and that differs from host to host and from run to run. So it is
started ahead of the instant, with ``exec_prerun`` (fio HOWTO): that command runs in every thread of a job after everything else is prepared,
and right before the job begins to count its time. Here it waits for a lock that the runner holds (flock(1)), and writes a word when it
got it. No program is started after that: on an emulated machine each is tens of milliseconds.

A gate fails closed: if the runner ends its lock is gone, but so is the record that the gate was opened, and fio ends without any I/O.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job

#: How long before the instant fio is started, in seconds. Emulated machines with one processor were seen to need 2.3.
LEAD = 5.0

#: The option that makes fio wait.
OPTION = "exec_prerun=/bin/sh ./gate.sh"

_LOCK, _OPEN, _SCRIPT = "gate.lock", "gate.open", "gate.sh"
_WORD = "through"
_WAIT = f"exec 9<{_LOCK} && flock -s 9 && test -e {_OPEN} && echo {_WORD}\n"
#: How coarse the times of files are: they come from the clock's last tick, of which there are 100 a second at least (CONFIG_HZ).
_TICK = 0.01

#: fio sends what the command prints into a file with the name of the section, and does not quote it.
_PLAIN = re.compile(r"^[A-Za-z0-9._+-]+$")


def fits(job: Job) -> bool:
    """Whether a job can wait at a gate: every section that begins with the first. A delay would be over before the gate is opened."""
    return all(_PLAIN.match(section.name) and not section.has_flag("wait_for_previous") and not section.delay for section in job.sections)


class Gate:
    """The gate of one cell, in the folder in which its fio works. It is closed from the beginning.

    :raises OSError: if the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: float | None = None
        (folder / _SCRIPT).write_text(_WAIT)
        # Not inherited by fio, or it could never be opened.
        self._lock: int | None = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def open(self, clock: t.Callable[[], float]) -> None:
        """Let fio go."""
        if self._lock is None:
            return
        (self.folder / _OPEN).touch()
        self.opened = clock()
        self.shut()

    def shut(self) -> None:
        """Give the lock back. If the gate was not opened before, fio exits."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def passed(self, finished: float) -> float | None:
        """When the last thread went through, in seconds of the host's clock since the epoch; ``None`` if it was not reported.

        :param finished: when fio had ended: it cannot have passed later.
        """
        if self.opened is None:
            return None
        found = []
        for path in self.folder.glob("*.prerun.txt"):
            with contextlib.suppress(OSError):
                found.append(path.stat().st_mtime if path.read_text(errors="replace").strip() == _WORD else 0.0)
        good = [max(instant, self.opened) for instant in found if self.opened - _TICK <= instant <= finished]
        return max(good) if good and len(good) == len(found) else None
