# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A load as fio makes it, on volumes in simulated time."""

from __future__ import annotations

import random
import typing as t

from .clock import Clock, Process, Signal
from .controller import Volume
from .rows import BLOCK


class Load:
    """Random or sequential blocks of 4 KiB on one volume.

    :param count: requests in all.
    :param sync: ``fdatasync`` after each write. As fio did with libaio before 3.41, the write is sent, and its sync is waited for.
    """

    def __init__(self, clock: Clock, volume: Volume, count: int, *, depth: int = 16, sync: bool = False, reads: bool = False, blocks: int = 1, size: int = 0,
                 sequential: bool = False, seed: int = 1) -> None:  # fmt: skip
        self._clock, self._volume, self._left = clock, volume, count
        self._depth, self._sync, self._reads, self._blocks, self._sequential = depth, sync, reads, blocks, sequential
        self._size = size or count
        self._random, self._next = random.Random(seed), 0
        self._begun = clock.now
        #: When each request ended.
        self.ends: list[float] = []

    def start(self) -> None:
        for _number in range(1 if self._sync and self._volume.needs_flush else self._depth):
            self._clock.start(self._worker())

    def rate(self, first: float = 0.0, last: float = 1.0) -> float:
        """Requests per second, of the whole or between two shares of the requests."""
        ends = [self._begun, *self.ends]
        begin, end = int(first * (len(ends) - 1)), int(last * (len(ends) - 1))
        return (end - begin) / (ends[end] - ends[begin])

    def _worker(self) -> Process:
        while self._left > 0:
            self._left -= 1
            if self._reads:
                yield from self._volume.read(self._block(), self._blocks)
            elif self._sync and self._volume.needs_flush:
                written = Signal()
                done: list[bool] = []
                self._clock.start(self._one(written, done))
                yield from self._volume.flush()
                while not done:
                    yield written
            else:
                yield from self._volume.write(self._block(), [None] * self._blocks)
            self.ends.append(self._clock.now)

    def _one(self, written: Signal, done: list[bool]) -> Process:
        yield from self._volume.write(self._block())
        done.append(True)
        self._clock.wake(written)

    def _block(self) -> int:
        if self._sequential:
            self._next += self._blocks
            return (self._next - self._blocks) % self._size
        return self._random.randrange(self._size // self._blocks) * self._blocks


def measured(clock: Clock, loads: t.Sequence[Load]) -> list[Load]:
    """Run loads at the same time to their end."""
    for load in loads:
        load.start()
    clock.run()
    return list(loads)


def requests(gigabytes: float, smaller: float) -> int:
    """Requests of 4 KiB that a test of so many GB has when its sizes are divided."""
    return int(gigabytes * 1e9 / smaller / BLOCK)
