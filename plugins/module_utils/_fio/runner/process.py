# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fio that runs beside others, started and watched without waiting for it.

It is started by the main thread of the runner: the signal that ends it when the runner is killed is bound to the thread that made it
(prctl(2), PR_SET_PDEATHSIG). What it prints goes into files, so that nothing need be read while it runs.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import PATIENCE, Run, end_leftovers

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
