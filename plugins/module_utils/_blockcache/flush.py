# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for a cache to become clean: as long as it takes, and no longer than it makes progress."""

from __future__ import annotations

import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, StorageError, TimedOut

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: A flush whose dirty count has not fallen for so many seconds does not work: a broken disk, or writers that are faster.
STANDSTILL = 600.0
#: Seconds between two polls of a flush.
INTERVAL = 2.0
#: Seconds before the second poll: little may be dirty. Each further pause is twice as long, up to the interval.
_FIRST_PAUSE = 0.25


class FlushWatch:
    """Polls the dirty blocks of a cache while it is flushed.

    There is no deadline but the user's own: a flush may take hours. It ends when the count does not fall any more.

    :param item: the cache, as the user named it.
    :param target: the cached device, for messages.
    :param read_dirty: how many are dirty now; None if it cannot be read at this moment.
    :param unit: what ``read_dirty`` counts.
    :param limit: ``flush_timeout`` in seconds, or None.
    """

    def __init__(
        self,
        item: str,
        target: str,
        read_dirty: t.Callable[[], int | None],
        *,
        unit: str = "blocks",
        limit: int | None = None,
        clock: t.Callable[[], float] = time.monotonic,
    ) -> None:
        self.item = item
        self.target = target
        self.read_dirty = read_dirty
        self.unit = unit
        self.limit = limit
        self.clock = clock
        self.started = self.progressed = self.seen = clock()
        self.fewest: int | None = None

    def __call__(self) -> int | None:
        """One poll; what is dirty now.

        :raises TimedOut: after ``limit``.
        :raises NotEffective: if nothing has become clean, or what is dirty could not be read, for :data:`STANDSTILL`.
        """
        now = self.clock()
        dirty = self._read_dirty()
        if dirty is not None:
            self.seen = now
        if self.fewest is None or (dirty is not None and dirty < self.fewest):
            self.fewest, self.progressed = dirty, now
        kept = "the cache stays attached and nothing is lost"
        if self.limit and now - self.started > self.limit:
            raise TimedOut(
                f"{self.item}: the cache of {self.target} was not flushed within flush_timeout ({self.limit} seconds), {self.fewest} {self.unit} were"
                f" still dirty; {kept}: run again with more time.",
                item=self.item,
                dirty_blocks=self.fewest,
            )
        if self.fewest and now - self.progressed > STANDSTILL:
            raise NotEffective(
                f"{self.item}: flushing the cache of {self.target} has not come below {self.fewest} dirty {self.unit} for {STANDSTILL / 60:g} minutes;"
                f" {kept}: stop what writes to it, check dmesg for errors of the disk below, and run again.",
                item=self.item,
                dirty_blocks=self.fewest,
            )
        if now - self.seen > STANDSTILL:
            raise NotEffective(
                f"{self.item}: the number of dirty blocks in the cache of {self.target} could not be read for {STANDSTILL / 60:g} minutes; {kept}: check dmesg,"
                " and run again.",
                item=self.item,
            )
        return dirty

    def until_clean(self, sleep: t.Callable[[float], None] = time.sleep, interval: float = INTERVAL) -> None:
        """Poll until nothing is dirty."""
        pause = _FIRST_PAUSE
        while self() != 0:
            sleep(min(pause, interval))
            pause *= 2

    def _read_dirty(self) -> int | None:
        try:
            return self.read_dirty()
        except StorageError:
            # A table may be in the middle of being replaced: the next poll will read it.
            return None


def write_out(runner: Runner, item: str, path: str) -> None:
    """Have a device write out what it still keeps in volatile memory: an fsync of the device itself (sync(1), coreutils 8.24 of 2015).

    A cache calls a block clean as soon as the origin has taken it, without a flush (dm-cache-target.c, bcache/writeback.c). What was
    acknowledged long ago may so be in no other place than the memory of a disk once the copy on the cache device is gone.

    In a process of its own: of a device that answers nothing any more it never comes back.

    :raises CommandFailed: if that is not possible.
    :raises TimedOut: if the device does not answer.
    """
    completed = runner.run(["sync", path], ok=None, timeout=STANDSTILL, item=item)
    if completed.rc:
        raise CommandFailed(
            f"{item}: {path} could not write back what it keeps in memory ({completed.last_words}); its cache stays: check dmesg.",
            item=item,
            completed=completed,
        )
