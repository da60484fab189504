# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a volume contains: blocks in its file, which a power cut leaves, and newer ones in memory; and the module that keeps the cache of a controller."""

from __future__ import annotations

import os
import struct
import typing as t

from .rows import BLOCK

_HEADER = struct.Struct(">32sQ")
_SLOT = _HEADER.size + BLOCK


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
    """The memory of a controller with its capacitor or battery: a file with a slot for each block, written when the block is acknowledged."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._slots: dict[tuple[str, int], int] = {}
        self._free: list[int] = []
        self._end = 0

    def kept(self) -> t.Iterator[tuple[str, int, bytes]]:
        """What a power cut left: volume, number and contents of blocks."""
        self._end = os.fstat(self._descriptor).st_size // _SLOT
        for slot in range(self._end):
            record = os.pread(self._descriptor, _SLOT, slot * _SLOT)
            name, number = _HEADER.unpack_from(record)
            if number:
                self._slots[name.rstrip(b"\0").decode(), number - 1] = slot
                yield name.rstrip(b"\0").decode(), number - 1, record[_HEADER.size :]
            else:
                self._free.append(slot)

    def keep(self, volume: str, block: int, data: bytes) -> None:
        slot = self._slots.get((volume, block))
        if slot is None:
            slot = self._free.pop() if self._free else self._end
            self._end = max(self._end, slot + 1)
            self._slots[volume, block] = slot
        os.pwrite(self._descriptor, _HEADER.pack(volume.encode(), block + 1) + data, slot * _SLOT)

    def release(self, volume: str, block: int) -> None:
        slot = self._slots.pop((volume, block), None)
        if slot is not None:
            os.pwrite(self._descriptor, bytes(_HEADER.size), slot * _SLOT)
            self._free.append(slot)

    def lose(self) -> None:
        """Nothing keeps it any longer."""
        os.ftruncate(self._descriptor, 0)
        self._slots, self._free, self._end = {}, [], 0
