# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fio that runs beside others, started and watched without waiting for it.

It is started by the main thread of the runner: the signal that ends it when the runner is killed is bound to the thread that made it
(prctl(2), PR_SET_PDEATHSIG). What it prints goes into files, so that nothing need be read while it runs.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import PATIENCE, Run, end_leftovers

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

    A fio that is ready waits before it, so that the first I/O of every host comes at the agreed instant. From its start to its first I/O fio needs
    as long as the host is slow, and that differs from host to host and from run to run. So it is started ahead of the instant, with ``exec_prerun``
    (fio HOWTO): that command runs in every thread of a job after everything else is prepared, and right before the job begins to count its time. Here
    it waits for a lock that the runner holds (flock(1)), and writes a word when it got it. No program is started after that: on an emulated machine
    each is tens of milliseconds.

    A gate fails closed: if the runner ends its lock is gone, but so is the record that the gate was opened, and fio ends without any I/O.

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


_STDOUT, _STDERR = "fio.stdout", "fio.stderr"
#: Bytes of either that are kept: a fio that reports an error for every I/O must not fill the memory.
_MOST_TEXT = 1 << 20


class FioProcess:
    """One run of fio.

    :param argv: absolute path first.
    :param report: the file that the command writes.
    :param limit: seconds after which it is stopped.
    :param patience: seconds between SIGTERM and SIGKILL.
    :param descriptors: open files that it inherits.
    """

    def __init__(
        self,
        argv: t.Sequence[str],
        report: Path,
        limit: float,
        clock: t.Callable[[], float] = time.time,
        patience: float = PATIENCE,
        descriptors: t.Sequence[int] = (),
    ) -> None:
        self.argv = tuple(argv)
        self.descriptors = tuple(descriptors)
        self.report = report
        self.folder = report.parent
        self.limit = limit
        self.clock = clock
        self.patience = patience
        self.started = 0.0
        self.finished = 0.0
        self.stopped_after: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._force_at: float | None = None

    def start(self) -> None:
        """:raises ToolMissing: if it cannot be started."""
        environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}
        self.started, self._began = self.clock(), time.monotonic()
        try:
            with open(self.folder / _STDOUT, "wb") as out, open(self.folder / _STDERR, "wb") as errors:
                self._process = subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
                    self.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    env=environment,
                    cwd=str(self.folder),
                    start_new_session=True,
                    pass_fds=self.descriptors,
                )
        except OSError as error:
            raise ToolMissing(f"{self.argv[0]} is installed and cannot be started ({error.strerror}).", item=self.argv[0]) from None

    def has_ended(self) -> bool:
        """Poll once; past its limit it gets SIGTERM, and after its patience SIGKILL."""
        if self._process is None or self.finished:
            return True
        if self._process.poll() is not None:
            self.finished = self.clock()
            if self.stopped_after is not None or self._process.returncode < 0:
                end_leftovers(f"--output={self.report}")
            return True
        now = time.monotonic()
        if self.stopped_after is None and now - self._began > self.limit:
            self.stopped_after = self.limit
            self.ask_to_end()
        if self._force_at is not None and now > self._force_at:
            self._signal(signal.SIGKILL)
            end_leftovers(f"--output={self.report}")
        return False

    def ask_to_end(self) -> None:
        """fio ends by itself then and writes what it has; if it does not, it is forced to."""
        if self._force_at is None and self._process is not None and not self.finished:
            self._force_at = time.monotonic() + self.patience
            self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """At once, with everything that it started."""
        if self._process is not None and not self.finished:
            self._signal(signal.SIGKILL)
            end_leftovers(f"--output={self.report}")

    @property
    def running_for(self) -> float:
        """Seconds since it was started; 0 if it is not running."""
        return time.monotonic() - self._began if self._process is not None and not self.finished else 0.0

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def seconds_left(self) -> float:
        """Until something is to be done about it."""
        if self._force_at is not None:
            return max(0.0, self._force_at - time.monotonic())
        return max(0.0, self._began + self.limit - time.monotonic())

    def run(self) -> Run:
        """What became of it, once it has ended."""
        code = self._process.returncode if self._process is not None else -int(signal.SIGKILL)
        completed = Completed(self.argv, code, self._text(_STDOUT), self._text(_STDERR), self.finished - self.started)
        report = self.report.read_bytes() if self.report.exists() else b""
        return Run(completed, report, self.started, self.finished, self.stopped_after)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _text(self, name: str) -> str:
        try:
            with open(self.folder / name, "rb") as file:
                return file.read(_MOST_TEXT).decode(errors="replace")
        except OSError:
            return ""
