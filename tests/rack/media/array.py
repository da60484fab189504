# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives as one volume: which drive does what for a read or a write, by RAID level.

Mirrors and parity cost time; what a block contains is kept once, with the drive that has its data.
"""

from __future__ import annotations

import typing as t

from .clock import Clock, Process
from .drive import Commit, Drive

#: Blocks of a stripe unit: 256 KiB.
UNIT = 64
LEVELS = ("jbod", "0", "1", "10", "5", "6")


class Array:
    """A RAID level over drives.

    :param command: what the controller does for each command to a drive.
    """

    def __init__(self, clock: Clock, level: str, drives: t.Sequence[Drive], command: t.Callable[[Drive, int], Process]) -> None:
        if level not in LEVELS:
            raise ValueError(f"'{level}' is not one of {', '.join(LEVELS)}")
        least = {"jbod": 1, "0": 1, "1": 2, "10": 4, "5": 3, "6": 4}[level]
        if len(drives) < least or (level == "jbod" and len(drives) > 1) or (level in ("1", "10") and len(drives) % 2):
            raise ValueError(f"RAID {level} is not possible with {len(drives)} drives")
        self.drives = tuple(drives)
        self._clock, self._command = clock, command
        self._parity = {"5": 1, "6": 2}.get(level, 0)
        self._copies = 2 if level in ("1", "10") else 1
        self._columns = (len(drives) - self._parity) // self._copies
        #: Blocks that are written without reading anything first, if they begin at a multiple of it.
        self.row_blocks = self._columns * UNIT
        self._turn = 0

    def pieces(self, block: int, count: int) -> t.Iterator[tuple[int, int, int]]:
        """Parts that lie on one drive: the first block, the number of blocks, the column."""
        while count:
            length = min(count, UNIT - block % UNIT)
            yield block, length, block // UNIT % self._columns
            block, count = block + length, count - length

    def read(self, block: int, count: int) -> Process:
        yield from self._clock.together([self._read(first, length, column) for first, length, column in self.pieces(block, count)])

    def write(self, block: int, commits: t.Sequence[Commit], *, forced: bool = False, cache_off: bool = False) -> Process:
        """Write blocks, with their mirrors or parity."""
        options = {"forced": forced, "cache_off": cache_off}
        whole = not self._parity or (block % self.row_blocks == 0 and len(commits) == self.row_blocks)
        writes = []
        for first, length, column in self.pieces(block, len(commits)):
            part = commits[first - block : first - block + length]
            writes.append(self._write(first, part, column, options, read_first=not whole))
        if self._parity and whole:
            writes += [self._one(drive, self._place(block), [None] * UNIT, options) for drive in self._parity_drives(block)]
        yield from self._clock.together(writes)

    def flush(self) -> Process:
        yield from self._clock.together([drive.flush() for drive in self.drives])

    def _place(self, block: int) -> int:
        return block // self.row_blocks * UNIT + block % UNIT

    def _data_drive(self, block: int, column: int) -> int:
        """The index of the drive; of parity, which moves from row to row, the drives come after those with data."""
        return (column * self._copies + block // self.row_blocks * bool(self._parity)) % len(self.drives)

    def _parity_drives(self, block: int) -> list[Drive]:
        row = block // self.row_blocks
        return [self.drives[(self._columns + number + row) % len(self.drives)] for number in range(self._parity)]

    def _read(self, block: int, length: int, column: int) -> Process:
        self._turn += 1
        drive = self.drives[self._data_drive(block, column) + self._turn % self._copies]
        yield from self._command(drive, length)
        yield from drive.read(self._place(block), length)

    def _one(self, drive: Drive, place: int, commits: t.Sequence[Commit], options: t.Mapping[str, bool]) -> Process:
        yield from self._command(drive, len(commits))
        yield from drive.write(place, commits, **options)

    def _write(self, block: int, commits: t.Sequence[Commit], column: int, options: t.Mapping[str, bool], *, read_first: bool) -> Process:
        place, index = self._place(block), self._data_drive(block, column)
        drives = [self.drives[index], *(self._parity_drives(block) if read_first else self.drives[index + 1 : index + self._copies])]
        if read_first:
            yield from self._clock.together([self._old(drive, place, len(commits)) for drive in drives])
        # Drive and contents: one has the data, the others their mirror or parity.
        contents = [commits, *([None] * len(commits) for _drive in drives[1:])]
        yield from self._clock.together([self._one(drive, place, part, options) for drive, part in zip(drives, contents)])

    def _old(self, drive: Drive, place: int, count: int) -> Process:
        yield from self._command(drive, count)
        yield from drive.read(place, count)
