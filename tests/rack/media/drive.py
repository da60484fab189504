# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A drive that takes as long as its row says, and keeps apart what a power cut would lose."""

from __future__ import annotations

import bisect
import math
import typing as t

from .clock import Busy, Clock, Process, Serial, Signal
from .rows import BLOCK, DriveRow

#: What makes a block durable, if there is more behind the model than its time.
Commit = t.Optional[t.Callable[[], None]]
_SECOND = 1e-6

#: An SSD that has had nothing to do for so long begins to empty its fast area; seconds, before scaling by size and time.
IDLE = 0.1

#: Blocks that pass under the head sooner than the arm would move past them, about a track.
TRACK = 256


class Drive:
    """One drive.

    :param row: scaled already.
    :param size: bytes, for what was never written.
    :param idle: seconds without work after which it tidies up.
    """

    def __init__(self, clock: Clock, row: DriveRow, size: int = 0, idle: float = IDLE) -> None:
        self.row = row
        self.write_cache, self.changing = True, False
        self._clock, self._size, self._idle = clock, size, idle
        self._processor, self._medium = Serial(clock), Serial(clock)
        #: By place: what makes the block durable. The order is that of the writes.
        self._dirty: dict[int, Commit] = {}
        self._sorted: list[int] = []
        self._capacity = max(1, int(row.cache_bytes) // BLOCK)
        self._active, self._drained, self._opened, self._flushing = 0, Signal(), Signal(), False
        self._head, self._draining, self._room = 0, False, Signal()
        self._written: set[int] = set()
        self._fast_used, self._fast_until = 0.0, 0.0
        self._reclaimed, self._erased = 0.0, self._most_erased()

    @property
    def volatile_blocks(self) -> int:
        """How many acknowledged blocks a power cut would lose now."""
        return 0 if self.row.capacitors else len(self._dirty)

    def read(self, place: int, count: int = 1) -> Process:
        """Read blocks."""
        yield from self._enter()
        row = self.row
        start = max(self._processor.free, self._clock.now)
        self._processor.use(max(row.command_us * _SECOND, count * BLOCK / row.read_rate))
        if row.kind == "hdd" and not all(place + number in self._dirty for number in range(count)):
            yield self._medium.use(self._access(place, count, self._active))
        else:
            yield start + row.read_us * _SECOND + (count - 1) * BLOCK / row.read_rate - self._clock.now
        self._leave()

    def write(self, place: int, commits: t.Sequence[Commit] = (None,), *, forced: bool = False, cache_off: bool = False) -> Process:
        """Write blocks; each is durable when its function has been called.

        :param forced: to the medium before it is acknowledged.
        :param cache_off: as if the write cache were disabled.
        """
        yield from self._enter()
        row = self.row
        start = max(self._processor.free, self._clock.now)
        self._processor.use(max(row.command_us * _SECOND, len(commits) * BLOCK / row.rate if row.kind == "hdd" else 0))
        cached = row.capacitors or (self.write_cache and not cache_off)
        if not cached:
            yield self._medium.use(self._access(place, len(commits), self._active) if row.kind == "hdd" else self._program(len(commits), fast=False))
            for number, commit in enumerate(commits):
                self._forget(place + number)
                _call(commit)
        else:
            yield start + row.write_us * _SECOND - self._clock.now
            for number, commit in enumerate(commits):
                while len(self._dirty) >= self._capacity and place + number not in self._dirty:
                    yield self._room
                self._remember(place + number, commit)
            if forced and row.honours_fua and self.write_cache and not cache_off:
                yield from self._force(place, len(commits))
        self._written.update(range(place, place + len(commits)))
        self._leave()

    def flush(self) -> Process:
        """Write everything out. A flush is not queued: what was sent before ends first, and what comes later waits."""
        while self._flushing:
            yield self._opened
        self._flushing = True
        while self._active:
            yield self._drained
        if self.write_cache:
            yield from self._write_out()
        self._flushing = False
        self._clock.wake(self._opened)

    def change(self, *, write_cache: bool) -> Process:
        """Enable the write cache, or disable it when its contents are written out.

        :raises Busy: if another change is going on.
        """
        if self.changing:
            raise Busy
        self.changing = True
        return self._change(write_cache)

    def _change(self, write_cache: bool) -> Process:
        if not write_cache:
            yield from self.flush()
        self.write_cache, self.changing = write_cache, False

    def _enter(self) -> Process:
        while self._flushing:
            yield self._opened
        self._active += 1

    def _leave(self) -> None:
        self._active -= 1
        if not self._active:
            self._clock.wake(self._drained)

    def _remember(self, place: int, commit: Commit) -> None:
        if place not in self._dirty and self.row.kind == "hdd":
            bisect.insort(self._sorted, place)
        self._dirty.pop(place, None)
        if self.row.capacitors:
            # The memory is as durable as the medium; that the block still has to go there is only a matter of time.
            _call(commit)
            commit = None
        self._dirty[place] = commit
        if len(self._dirty) * 2 > self._capacity and not self._draining:
            self._draining = True
            self._clock.start(self._drain())

    def _forget(self, place: int) -> Commit:
        if place in self._dirty and self.row.kind == "hdd":
            del self._sorted[bisect.bisect_left(self._sorted, place)]
        return self._dirty.pop(place, None)

    def _drain(self) -> Process:
        """Write out in the background what is more than half of the memory."""
        while len(self._dirty) * 2 > self._capacity:
            yield from self._make_room()
        self._draining = False

    def _oldest(self) -> int:
        return next(iter(self._dirty))

    def _make_room(self) -> Process:
        """Write one block out: a disk chooses the next on the way of its arm, an SSD the oldest."""
        if self.row.kind == "hdd":
            number = bisect.bisect_left(self._sorted, self._head)
            place = self._sorted[number % len(self._sorted)]
            seconds = self._access(place, 1, len(self._dirty))
        else:
            place = self._oldest()
            seconds = self._stream()
        commit = self._dirty[place]
        yield self._medium.use(seconds)
        # What was written meanwhile is newer, and remains.
        if self._dirty.get(place, self) is commit:
            self._forget(place)
        _call(commit)
        self._clock.wake(self._room)

    def _write_out(self) -> Process:
        least = self.row.flush_us * _SECOND
        if self.row.capacitors or not self._dirty:
            yield self._medium.use(least)
        elif self.row.kind == "hdd":
            while self._dirty:
                yield from self._make_room()
        else:
            commits = list(self._dirty.values())
            yield self._medium.use(max(least, self._program(len(commits), fast=True)))
            self._dirty.clear()
            for commit in commits:
                _call(commit)

    def _force(self, place: int, count: int) -> Process:
        """A forced write is a write and a flush of its blocks, one at a time."""
        row = self.row
        if row.capacitors:
            yield self._medium.use((row.write_us + row.flush_us) * _SECOND)
            return
        commits = [self._forget(place + number) for number in range(count)]
        seconds = self._access(place, count, self._active) if row.kind == "hdd" else self._program(count, fast=True)
        yield self._medium.use(max(row.flush_us * _SECOND, seconds))
        for commit in commits:
            _call(commit)

    def _access(self, place: int, count: int, waiting: int) -> float:
        """The arm, the platter and the transfer. The more requests are known, the shorter are the ways: half of the time at a depth of about 32."""
        skipped = place - self._head
        seconds = count * BLOCK / self.row.rate
        if 0 <= skipped <= TRACK:
            seconds += skipped * BLOCK / self.row.rate
        else:
            seconds += (self.row.seek_us + self.row.turn_us / 2) * _SECOND * (0.4 + 0.6 / math.sqrt(max(1, waiting)))
        self._head = place + count
        return seconds

    def _stream(self, blocks: int = 1) -> float:
        """Blocks that go to the medium with others: as fast as it streams, or as there are erased blocks."""
        row = self.row
        seconds = blocks * BLOCK / row.rate
        if row.reclaim_rate:
            most = self._most_erased()
            passed = max(self._medium.free, self._clock.now) - self._reclaimed
            self._erased = min(most, self._erased + row.reclaim_rate * passed)
            seconds = max(seconds, (blocks * BLOCK - self._erased) / row.reclaim_rate)
            self._erased = max(0.0, min(most, self._erased + row.reclaim_rate * seconds) - blocks * BLOCK)
            self._reclaimed = max(self._medium.free, self._clock.now) + seconds
        return seconds

    def _most_erased(self) -> float:
        return self.row.reserve + self.row.unwritten_share * max(0, self._size - len(self._written) * BLOCK)

    def _program(self, blocks: int, *, fast: bool) -> float:
        """Blocks that cannot wait for others."""
        row = self.row
        start = max(self._medium.free, self._clock.now)
        seconds = row.program_us * _SECOND
        # With its cache disabled, a drive puts each write where it stays.
        if fast and row.fast_bytes and start >= self._fast_until:
            gap = start - self._medium.free
            if gap > self._idle:
                self._fast_used = max(0.0, self._fast_used - gap * row.fast_recovery)
            self._fast_used += math.ceil(blocks * BLOCK / row.fast_page) * row.fast_page
            seconds = row.fast_us * _SECOND
            if self._fast_used >= row.fast_bytes:
                self._fast_used, self._fast_until = 0.0, start + row.fast_bytes / row.fast_recovery
        return max(seconds, self._stream(blocks))


def _call(commit: Commit) -> None:
    if commit is not None:
        commit()
