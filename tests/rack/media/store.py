# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a volume contains: blocks in its file, which a power cut leaves, and newer ones in memory; and the module that keeps the cache of a controller."""

from __future__ import annotations

import os
import sqlite3

from .rows import BLOCK


class Block:
    """A block that was written. Called, it goes to the file, unless a newer version has come there before."""

    __slots__ = ("data", "number", "sequence", "store")

    def __init__(self, store: Store, number: int, data: bytes, sequence: int) -> None:
        self.store, self.number, self.data, self.sequence = store, number, data, sequence

    def __call__(self) -> None:
        self.store.commit(self)


class Store:
    """The blocks of one volume.

    :param path: of the file, whose size is that of the volume.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR)
        self.size = os.fstat(self._descriptor).st_size
        self._newer: dict[int, Block] = {}
        self._committed: dict[int, int] = {}
        self._sequence = 0

    def read(self, offset: int, length: int) -> bytes:
        """What was written last, wherever it is."""
        first, last = offset // BLOCK, (offset + length - 1) // BLOCK
        data = bytearray(os.pread(self._descriptor, (last - first + 1) * BLOCK, first * BLOCK).ljust((last - first + 1) * BLOCK, b"\0"))
        for number in range(first, last + 1) if self._newer else ():
            if number in self._newer:
                data[(number - first) * BLOCK : (number - first + 1) * BLOCK] = self._newer[number].data
        return bytes(data[offset - first * BLOCK :][:length])

    def write(self, offset: int, data: bytes) -> list[Block]:
        """Take data into memory; what makes each block durable, from the first on."""
        first, last = offset // BLOCK, (offset + len(data) - 1) // BLOCK
        whole = self.read(first * BLOCK, offset - first * BLOCK) + data
        whole += self.read(offset + len(data), (last + 1) * BLOCK - offset - len(data))
        return [self.take(number, whole[(number - first) * BLOCK : (number - first + 1) * BLOCK]) for number in range(first, last + 1)]

    def take(self, number: int, data: bytes) -> Block:
        self._sequence += 1
        self._newer[number] = block = Block(self, number, data, self._sequence)
        return block

    def commit(self, block: Block) -> None:
        if block.sequence < self._committed.get(block.number, 0):
            return
        self._committed[block.number] = block.sequence
        os.pwrite(self._descriptor, block.data[: self.size - block.number * BLOCK], block.number * BLOCK)
        if self._newer.get(block.number) is block:
            del self._newer[block.number]

    def commit_all(self) -> None:
        for block in list(self._newer.values()):
            self.commit(block)


class CacheModule:
    """The memory of a controller with its capacitor or battery: what is acknowledged is in a file, which outlives the process."""

    def __init__(self, path: str) -> None:
        self._rows = sqlite3.connect(path, isolation_level=None)
        # A killed process leaves what it has written; that the host itself may fail is not part of the model.
        self._rows.execute("PRAGMA journal_mode = WAL")
        self._rows.execute("PRAGMA synchronous = OFF")
        self._rows.execute("CREATE TABLE IF NOT EXISTS kept (volume TEXT, block INTEGER, data BLOB, PRIMARY KEY (volume, block))")

    def kept(self) -> list[tuple[str, int, bytes]]:
        """What a power cut left: volume, number and contents of blocks."""
        return self._rows.execute("SELECT volume, block, data FROM kept").fetchall()

    def keep(self, volume: str, block: int, data: bytes) -> None:
        self._rows.execute("REPLACE INTO kept VALUES (?, ?, ?)", (volume, block, data))

    def release(self, volume: str, block: int) -> None:
        self._rows.execute("DELETE FROM kept WHERE volume = ? AND block = ?", (volume, block))

    def lose(self) -> None:
        """Nothing keeps it any longer."""
        self._rows.execute("DELETE FROM kept")
