# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""maxCache: SSDs in front of an array, inside of the controller. Its dirty blocks are on the SSDs, so that a power cut does not lose them."""

from __future__ import annotations

import typing as t
from collections import OrderedDict

from .array import Array
from .clock import Busy, Clock, Process, Signal
from .drive import Commit

WRITES = ("disabled", "writethrough", "writeback", "instant_writeback")
#: Blocks of a line: 64 KiB.
LINE = 16
#: Lines that may move at a time for each unit of 50 of the rate: low is 50, medium 100, high 200.
RATES = (1, 1000)


class MaxCache:
    """A cache of lines.

    ``writeback`` takes writes to lines that are cached already, ``instant_writeback`` takes all of them.
    """

    def __init__(self, clock: Clock, array: Array, ssds: Array, size: int, *, read: bool = True, write: str = "disabled", rate: int = 100) -> None:
        self._clock, self._array, self._ssds = clock, array, ssds
        self.read_enabled, self.write_policy, self.rate = read, "disabled", rate
        self.changing = False
        self._check(write, rate)
        self.write_policy = write
        self._lines = max(1, size // (LINE * 4096))
        #: Lines by number, least recently used first: the place on the SSDs, and which blocks are newer than the array.
        self._cached: OrderedDict[int, tuple[int, set[int]]] = OrderedDict()
        self._free = list(range(self._lines - 1, -1, -1))
        self._fetching: set[int] = set()
        self._flushing, self._flushed = 0, Signal()

    def change(self, *, read: bool | None = None, write: str | None = None, rate: int | None = None) -> Process:
        """Change settings; it ends when dirty lines are on the array, if nothing may be dirty any longer.

        :raises Busy: if another change is going on.
        """
        if self.changing:
            raise Busy
        self._check(write or self.write_policy, rate or self.rate)
        self.changing = True
        self.read_enabled = self.read_enabled if read is None else read
        self.write_policy, self.rate = write or self.write_policy, rate or self.rate
        return self._complete()

    def _complete(self) -> Process:
        if self.write_policy not in WRITES[2:]:
            yield from self.write_out()
        self.changing = False

    def _check(self, write: str, rate: int) -> None:
        if write not in WRITES:
            raise ValueError(f"write must be one of {', '.join(WRITES)}")
        if write in WRITES[2:] and len(self._ssds.drives) < 2:
            raise ValueError("write caching needs a redundant maxCache")
        if not RATES[0] <= rate <= RATES[1]:
            raise ValueError(f"rate must be between {RATES[0]} and {RATES[1]}")

    @property
    def dirty_blocks(self) -> int:
        return sum(len(dirty) for _place, dirty in self._cached.values())

    def read(self, block: int, count: int) -> Process:
        lines = range(block // LINE, (block + count - 1) // LINE + 1)
        if all(line in self._cached for line in lines):
            for line in lines:
                self._cached.move_to_end(line)
            yield from self._ssds.read(self._place(block), count)
            return
        if any(self._cached[line][1] for line in lines if line in self._cached):
            yield from self._clean(lines)
        yield from self._array.read(block, count)
        if self.read_enabled:
            for line in lines:
                self._fetch(line)

    def write(self, block: int, commits: t.Sequence[Commit], *, forced: bool = False, cache_off: bool = False) -> Process:
        lines = range(block // LINE, (block + len(commits) - 1) // LINE + 1)
        hit = all(line in self._cached for line in lines)
        if self.write_policy == "instant_writeback" and not hit:
            hit = yield from self._allocate(lines)
        if hit and self.write_policy in WRITES[2:]:
            for number in range(block, block + len(commits)):
                self._cached[number // LINE][1].add(number)
            yield from self._ssds.write(self._place(block), commits, forced=forced, cache_off=cache_off)
            self._flush_behind()
            return
        writes = [self._array.write(block, commits, forced=forced, cache_off=cache_off)]
        if self.write_policy == "writethrough":
            if not hit:
                hit = yield from self._allocate(lines)
            if hit:
                writes.append(self._ssds.write(self._place(block), [None] * len(commits)))
        else:
            yield from self._clean(lines)
            for line in lines:
                self._evict(line)
        yield from self._clock.together(writes)

    def flush(self) -> Process:
        yield from self._clock.together([self._array.flush(), self._ssds.flush()])

    def write_out(self) -> Process:
        """Write all dirty lines to the array."""
        yield from self._clean(list(self._cached))

    def _place(self, block: int) -> int:
        return self._cached[block // LINE][0] * LINE + block % LINE

    def _moves(self) -> int:
        return max(1, self.rate // 50)

    def _evict(self, line: int) -> None:
        if line in self._cached and not self._cached[line][1]:
            self._free.append(self._cached.pop(line)[0])

    def _allocate(self, lines: t.Iterable[int]) -> t.Generator[t.Any, t.Any, bool]:
        """Room for lines, of the clean ones used longest ago; whether there was some."""
        for line in lines:
            if line in self._cached:
                continue
            if not self._free:
                clean = next((number for number, (_place, dirty) in self._cached.items() if not dirty), None)
                if clean is None:
                    yield from self._clean([next(iter(self._cached))])
                    clean = next((number for number, (_place, dirty) in self._cached.items() if not dirty), None)
                if clean is None:
                    return False
                self._evict(clean)
            if line not in self._cached and self._free:
                self._cached[line] = (self._free.pop(), set())
        return all(line in self._cached for line in lines)

    def _fetch(self, line: int) -> None:
        if line not in self._cached and line not in self._fetching and len(self._fetching) < self._moves():
            self._fetching.add(line)
            self._clock.start(self._fetch_line(line))

    def _fetch_line(self, line: int) -> Process:
        yield from self._array.read(line * LINE, LINE)
        if (yield from self._allocate([line])):
            yield from self._ssds.write(self._place(line * LINE), [None] * LINE)
        self._fetching.discard(line)

    def _flush_behind(self) -> None:
        """Lines are flushed in the background, as many at a time as the rate allows, once half of the cache is dirty."""
        if self._flushing < self._moves() and sum(1 for _place, dirty in self._cached.values() if dirty) * 2 > self._lines:
            self._flushing += 1
            self._clock.start(self._flush_oldest())

    def _flush_oldest(self) -> Process:
        line = next((number for number, (_place, dirty) in self._cached.items() if dirty), None)
        if line is not None:
            yield from self._clean([line])
        self._flushing -= 1

    def _clean(self, lines: t.Iterable[int]) -> Process:
        for line in lines:
            _place, dirty = self._cached.get(line, (0, set()))
            for first, count in _runs(dirty):
                dirty.difference_update(range(first, first + count))
                yield from self._ssds.read(self._place(first), count)
                # Durable already: it was when the SSDs had it.
                yield from self._array.write(first, [None] * count)


def _runs(blocks: t.Iterable[int]) -> list[tuple[int, int]]:
    """Blocks as runs: the first one and the number."""
    runs: list[tuple[int, int]] = []
    for block in sorted(blocks):
        if runs and sum(runs[-1]) == block:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((block, 1))
    return runs
