# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Until caches have written back what is dirty: with a limit, and not in vain where a cache keeps some of it.

bcache keeps ``writeback_percent`` dirty, dm-writecache what is below its watermarks. That is seen, not assumed: newer bcache writes all back when idle.
"""

from __future__ import annotations

import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import Status
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter

#: Seconds between two readings, and over which the pace is taken: an idle bcache begins after 30.
_LOOK, _PACE = 2.0, 60.0
#: A cache keeps again what it has kept once, or a little more.
_SAME = 1.05

#: Why a cell says little about its settings, as a clause.
NOT_CLEAN = "a cache still held what was written before it"
NOT_KNOWN = "it is not known whether a cache was clean before it"


@frozen
class Left:
    """What caches held after the wait.

    :param dirty: bytes; 0: they are clean, ``None``: not known.
    :param pace: bytes per second that were still written back.
    :param sentence: for the notes; empty if they are clean.
    """

    dirty: int | None = 0
    pace: float = 0.0
    sentence: str = ""


class Draining:
    """The waits of one runner."""

    def __init__(self, caches: CacheSamples, status: Status, waiter: Waiter) -> None:
        self.caches = caches
        self.status = status
        self.waiter = waiter
        #: What caches kept when they were waited for in vain.
        self._kept: dict[frozenset[str], int | None] = {}

    def wait(self, names: t.Collection[str], most: float) -> Left:
        """Wait until the caches among these kernel names are clean, and at most so many seconds."""
        key, began = frozenset(names), time.monotonic()
        readings: list[tuple[float, int | None]] = []
        while True:
            elapsed, dirty = time.monotonic() - began, self.caches.dirty(names)
            if dirty == 0 or self.waiter.stopping:
                return Left()
            readings = [*(one for one in readings if elapsed - one[0] <= _PACE + _LOOK), (elapsed, dirty)]
            pace = _pace(readings)
            if elapsed >= most:
                return Left(dirty, pace, _sentence(dirty, most, ""))
            if self._keeps(key, dirty):
                return Left(dirty, 0.0, _sentence(dirty, elapsed, " The cache keeps them, as it did before an earlier cell."))
            if elapsed - readings[0][0] >= _PACE and _is_in_vain(readings, pace * (most - elapsed)):
                if pace <= 0:
                    self._kept[key] = dirty
                return Left(dirty, pace, _sentence(dirty, elapsed, _why(pace, most)))
            self._report(dirty, pace, most - elapsed)
            self.waiter.for_seconds(min(_LOOK, most - elapsed))

    def _keeps(self, key: frozenset[str], dirty: int | None) -> bool:
        if key not in self._kept:
            return False
        kept = self._kept[key]
        return dirty is None if kept is None else dirty is not None and dirty <= kept * _SAME

    def _report(self, dirty: int | None, pace: float, left: float) -> None:
        seconds = left if dirty is None or pace <= 0 else min(left, dirty / pace)
        message = "" if dirty is None else f"{format_size(dirty)} dirty"
        self.status.update(state="pausing", cell=None, target=None, until=self.status.clock() + seconds, message=message)


def _pace(readings: t.Iterable[tuple[float, int | None]]) -> float:
    """Bytes per second by which the dirty data became less."""
    known = [(at, dirty) for at, dirty in readings if dirty is not None]
    return max(0.0, (known[0][1] - known[-1][1]) / (known[-1][0] - known[0][0])) if len(known) > 1 else 0.0


def _is_in_vain(readings: t.Sequence[tuple[float, int | None]], possible: float) -> bool:
    """:param possible: bytes that may still be written back."""
    dirty = readings[-1][1]
    # One reading may fail; a cache that is never read is not waited for.
    return all(one is None for _at, one in readings) if dirty is None else dirty > possible


def _why(pace: float, most: float) -> str:
    if pace > 0:
        return f" At {format_size(int(pace))}/s they would not be written back within the limit of {most:g} seconds: set 'drain' in the suite."
    return " None of them were written back in the last minute: the cache keeps them, as bcache keeps writeback_percent and dm-writecache its watermark."


def _sentence(dirty: int | None, seconds: float, why: str) -> str:
    amount = "an unknown number of" if dirty is None else dirty
    return f"The caches below the target were not clean after {round(seconds, 1):g} seconds: {amount} bytes were dirty.{why}"
