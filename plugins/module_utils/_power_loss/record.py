# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is written in a power-loss test: blocks of which every sector says which write of which run it belongs to.

A sector of 512 bytes is what a drive writes as a whole. So each has a header and a checksum of its own, and a block of which only some
sectors were written is recognised.

Layout of a sector, little endian: magic (8 bytes), number of the sector in the block (4), sectors of the block (4), fill, run id (16),
sequence (8), offset of the block (8), host time in ns of its monotonic clock (8), CRC-32 of all of that (4). What differs from write to
write comes last, so that the checksum of the rest is calculated once.
"""

from __future__ import annotations

import mmap
import random
import struct
import typing as t
import zlib

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

SECTOR = 512

_MAGIC = b"CFPWRLS1"
_PLACE = struct.Struct("<8sII")
_WRITE = struct.Struct("<16sQQQ")
_CHECKSUM = struct.Struct("<I")
_END = struct.Struct(f"<{_WRITE.size}sI")
_FILL = SECTOR - _PLACE.size - _WRITE.size - _CHECKSUM.size
#: Different fills.
_VARIANTS = 4
_NO_WRITE = bytes(_WRITE.size)


class Record(t.NamedTuple):
    """One write. ``offset`` in bytes; ``time`` in ns of the monotonic clock of the host when it was begun."""

    sequence: int
    offset: int
    time: int


@frozen
class BlockContents:
    """What was found in a block.

    :param records: the writes of this run that its sectors belong to, each once.
    :param whole: whether all sectors belong to one write, each in its place.
    """

    records: tuple[Record, ...]
    whole: bool

    @property
    def record(self) -> Record | None:
        """The one write that the whole block belongs to."""
        return self.records[0] if self.whole else None


def is_test_sector(sector: bytes) -> bool:
    """Whether a sector was written by a power-loss test, in whichever run, block and place: nothing of value is lost with it."""
    return len(sector) == SECTOR and sector.startswith(_MAGIC) and _CHECKSUM.unpack(sector[-4:])[0] == zlib.crc32(sector[:-4])


class Blocks:
    """Makes and recognises the blocks of one run.

    :param run: 16 bytes.
    :param size: of a block, in bytes.
    """

    def __init__(self, run: bytes, size: int) -> None:
        if len(run) != 16 or size < SECTOR or size % SECTOR:
            raise ValueError("a run id has 16 bytes and a block a multiple of 512")
        self.run = run
        self.size = size
        # Random: a device that compresses or deduplicates gains nothing.
        source = random.Random(run)
        self._beginnings = [[self._beginning(number, source) for number in range(size // SECTOR)] for _variant in range(_VARIANTS)]

    def _beginning(self, number: int, source: random.Random) -> tuple[bytes, int]:
        """What a sector has in every write, and the checksum of that."""
        data = _PLACE.pack(_MAGIC, number, self.size // SECTOR) + source.getrandbits(8 * _FILL).to_bytes(_FILL, "little")
        return data, zlib.crc32(data)

    def make(self, record: Record) -> bytes:
        """The contents of a block."""
        return bytes(self.buffers().fill(record))

    def buffers(self) -> BlockBuffers:
        """Buffers for one process that writes one block at a time."""
        return BlockBuffers(self.run, self._beginnings)

    def read(self, data: bytes) -> BlockContents:
        """What a block contains; sectors that are not of this run, or damaged, count as none."""
        count = self.size // SECTOR
        found = [self._sector(data[start : start + SECTOR], number, count) for number, start in enumerate(range(0, count * SECTOR, SECTOR))]
        records = tuple(dict.fromkeys(record for record in found if record is not None))
        return BlockContents(records, len(records) == 1 and None not in found)

    def _sector(self, data: bytes, number: int, count: int) -> t.Optional[Record]:
        if not is_test_sector(data):
            return None
        _magic, own_number, own_count = _PLACE.unpack_from(data)
        run, sequence, offset, time = _WRITE.unpack_from(data, SECTOR - _CHECKSUM.size - _WRITE.size)
        return Record(sequence, offset, time) if (run, own_number, own_count) == (self.run, number, count) else None


class BlockBuffers:
    """Blocks of which only what differs from write to write is written anew; they are aligned to pages.

    :param beginnings: of the sectors, with their checksums, for each of several fills.
    """

    def __init__(self, run: bytes, beginnings: t.Sequence[t.Sequence[tuple[bytes, int]]]) -> None:
        self._run = run
        self._buffers = [mmap.mmap(-1, SECTOR * len(sectors)) for sectors in beginnings]
        # CRCs are linear: that of a beginning adds the same to the one of whatever follows, so that only one is calculated for a write.
        self._ends = [
            [
                (number * SECTOR + len(beginning), zlib.crc32(_NO_WRITE, checksum) ^ zlib.crc32(_NO_WRITE))
                for number, (beginning, checksum) in enumerate(sectors)
            ]
            for sectors in beginnings
        ]
        for buffer, sectors in zip(self._buffers, beginnings):
            for number, (beginning, _checksum) in enumerate(sectors):
                buffer[number * SECTOR : number * SECTOR + len(beginning)] = beginning

    def fill(self, record: Record) -> mmap.mmap:
        """The contents of a block, until the next call."""
        # Higher bits of a product: also a writer with every n-th sequence changes its fill.
        variant = (record.sequence * 0x9E3779B1 >> 20) % _VARIANTS
        buffer = self._buffers[variant]
        write = _WRITE.pack(self._run, *record)
        checksum = zlib.crc32(write)
        for position, addition in self._ends[variant]:
            _END.pack_into(buffer, position, write, checksum ^ addition)
        return buffer
