# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting that ends at once when a child ends or somebody asks the process to stop; only the main thread may wait so."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import typing as t

#: Asked to stop by any of these, the runner keeps what it has.
_STOPPING = (signal.SIGTERM, signal.SIGINT)


class Waiter:
    """Signals as something that can be waited for: each writes a byte into a pipe (signal.set_wakeup_fd)."""

    def __init__(self) -> None:
        self.stopping = False
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)

    def listen(self) -> None:
        """From now on the signals of this process are heard here."""
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        # The default is to ignore it, and what is ignored wakes nobody.
        signal.signal(signal.SIGCHLD, _nothing)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        for number in _STOPPING:
            signal.signal(number, self._stop)

    def _stop(self, _number: int, _frame: t.Any) -> None:
        self.stopping = True

    def wait(self, seconds: float) -> None:
        """At most so long."""
        with contextlib.suppress(InterruptedError):
            if select.select([self._reader], [], [], max(0.0, seconds))[0]:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._reader, 4096)

    def until(self, instant: float, clock: t.Callable[[], float] = time.time) -> bool:
        """Wait for an instant of a clock; ``False`` if asked to stop before it came."""
        while not self.stopping:
            left = instant - clock()
            if left <= 0:
                return True
            # The clock may be set meanwhile.
            self.wait(min(left, 1.0))
        return False

    def for_seconds(self, seconds: float) -> bool:
        """Wait so long, whatever the clock says; ``False`` if asked to stop before."""
        return self.until(time.monotonic() + seconds, time.monotonic)


def _nothing(_number: int, _frame: t.Any) -> None:
    """The byte in the pipe is all that is wanted."""
