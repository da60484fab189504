# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting that ends at once when a child ends or the process receives a stop signal; only the main thread may wait so."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import typing as t

#: On any of these, the runner keeps what it has.
_STOPPING = (signal.SIGTERM, signal.SIGINT)


class Waiter:
    """Signals as something that can be waited for: each writes a byte into a pipe (signal.set_wakeup_fd).

    :param starter: descriptor of a socket whose other end is held by the process that waits for this one: when that process ends, this
        one is stopped. Nothing is ever sent through it.
    """

    def __init__(self, starter: int | None = None) -> None:
        self._starter = starter
        self._stopping = False
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)

    def listen(self) -> None:
        """From now on the signals of this process end a wait."""
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # The default is to ignore it, and an ignored signal does not end the wait.
        signal.signal(signal.SIGCHLD, _nothing)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in _STOPPING:
            signal.signal(number, self._stop)

    @property
    def stopping(self) -> bool:
        """Whether this process was stopped, by a signal or by the end of the process that waits for it."""
        if self._starter is not None and select.select([self._starter], [], [], 0)[0]:
            # Its end stays readable, and would end every wait at once. It stays open: the other side waits for the end of this one.
            self._starter, self._stopping = None, True
        return self._stopping

    def _stop(self, _number: int, _frame: t.Any) -> None:
        self._stopping = True

    def wait(self, seconds: float) -> None:
        """At most so long."""
        sources = [self._reader] if self._starter is None else [self._reader, self._starter]
        with contextlib.suppress(InterruptedError):
            if self._reader in select.select(sources, [], [], max(0.0, seconds))[0]:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._reader, 4096)

    def until(self, instant: float, clock: t.Callable[[], float] = time.time) -> bool:
        """Wait for an instant of a clock; ``False`` if stopped before."""
        while not self.stopping:
            left = instant - clock()
            if left <= 0:
                return True
            # The clock may be set meanwhile.
            self.wait(min(left, 1.0))
        return False

    def for_seconds(self, seconds: float) -> bool:
        """Wait so long, independent of the clock; ``False`` if stopped before."""
        return self.until(time.monotonic() + seconds, time.monotonic)


def _nothing(_number: int, _frame: t.Any) -> None:
    """The byte in the pipe is all that is needed."""
