# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""maxCache: SSDs in front of an array, inside of the controller. Its dirty blocks are on the SSDs, so that a power cut does not lose them."""

from __future__ import annotations

import typing as t
from collections import OrderedDict

from .array import Array
from .clock import Busy, Clock, Process
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
        #: By line: its place on the SSDs. Clean lines, least recently used first, and dirty ones with their blocks, oldest first.
        self._places: dict[int, int] = {}
        self._clean: OrderedDict[int, None] = OrderedDict()
        self._dirty: OrderedDict[int, set[int]] = OrderedDict()
        self._free = list(range(self._lines - 1, -1, -1))
        self._moving = 0

    @property
    def dirty_blocks(self) -> int:
        return sum(len(blocks) for blocks in self._dirty.values())

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

    def read(self, block: int, count: int) -> Process:
        lines = _lines(block, count)
        if self._has(lines):
            for line in lines:
                if line in self._clean:
                    self._clean.move_to_end(line)
            yield from self._ssds.read(self._place(block), count)
            return
        yield from self._write_out(lines)
        yield from self._array.read(block, count)
        for line in lines if self.read_enabled else ():
            self._move(self._fetch(line))

    def write(self, block: int, commits: t.Sequence[Commit], *, forced: bool = False, cache_off: bool = False) -> Process:
        lines, policy = _lines(block, len(commits)), self.write_policy
        if policy in ("instant_writeback", "writethrough"):
            yield from self._allocate(lines, dirty=policy != "writethrough")
        if policy in WRITES[2:] and self._has(lines):
            for number in range(block, block + len(commits)):
                self._clean.pop(number // LINE, None)
                self._dirty.setdefault(number // LINE, set()).add(number)
            yield from self._ssds.write(self._place(block), commits, forced=forced, cache_off=cache_off)
            if len(self._dirty) * 2 > self._lines:
                self._move(self._write_out(self._oldest()))
            return
        writes = [self._array.write(block, commits, forced=forced, cache_off=cache_off)]
        if policy == "writethrough" and self._has(lines):
            writes.append(self._ssds.write(self._place(block), [None] * len(commits)))
        else:
            yield from self._write_out(lines)
            for line in lines:
                self._evict(line)
        yield from self._clock.together(writes)
        for line in lines if policy == "writeback" else ():
            self._move(self._fetch(line))

    def write_out(self) -> Process:
        """Write all dirty lines to the array."""
        yield from self._write_out(list(self._dirty))

    def _has(self, lines: t.Iterable[int]) -> bool:
        return all(line in self._places for line in lines)

    def _place(self, block: int) -> int:
        return self._places[block // LINE] * LINE + block % LINE

    def _evict(self, line: int) -> None:
        if line in self._clean:
            del self._clean[line]
            self._free.append(self._places.pop(line))

    def _unused(self) -> int:
        """The clean line that was used longest ago."""
        return next(iter(self._clean))

    def _allocate(self, lines: t.Iterable[int], *, dirty: bool = False) -> Process:
        """Room for lines: that of clean ones used longest ago, or of dirty ones when they are on the array."""
        for line in lines:
            while line not in self._places:
                if self._free:
                    self._places[line] = self._free.pop()
                    if dirty:
                        self._dirty[line] = set()
                    else:
                        self._clean[line] = None
                elif self._clean:
                    self._evict(self._unused())
                else:
                    yield from self._write_out(self._oldest())

    def _move(self, process: Process) -> None:
        """Fetch or flush in the background, as many lines at a time as the rate allows."""
        if self._moving < max(1, self.rate // 50):
            self._moving += 1
            self._clock.start(self._moved(process))

    def _moved(self, process: Process) -> Process:
        yield from process
        self._moving -= 1

    def _fetch(self, line: int) -> Process:
        yield from self._array.read(line * LINE, LINE)
        yield from self._allocate([line])
        yield from self._ssds.write(self._place(line * LINE), [None] * LINE)

    def _oldest(self) -> range:
        """The lines in the row of stripes of the line that has been dirty for longest."""
        first = next(iter(self._dirty)) * LINE // self._array.row_blocks * self._array.row_blocks
        return _lines(first, self._array.row_blocks)

    def _write_out(self, lines: t.Iterable[int]) -> Process:
        blocks: set[int] = set()
        for line in lines:
            if line in self._dirty:
                blocks |= self._dirty.pop(line)
                self._clean[line] = None
        for first, count in _runs(blocks):
            if self._has(_lines(first, count)):
                yield from self._ssds.read(self._place(first), count)
            # Durable already: it was when the SSDs had it.
            yield from self._array.write(first, [None] * count)


def _lines(block: int, count: int) -> range:
    return range(block // LINE, (block + count - 1) // LINE + 1)


def _runs(blocks: t.Iterable[int]) -> list[tuple[int, int]]:
    """Blocks as runs: the first one and the number."""
    runs: list[tuple[int, int]] = []
    for block in sorted(blocks):
        if runs and sum(runs[-1]) == block:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((block, 1))
    return runs
