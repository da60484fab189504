# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a block device is empty, read from the device itself: data need no signature.

A device up to 256 MiB is read whole. Of a larger one are read the first and the last MiB, and one block of 4 KiB at a random place in each of 256
equal slices in between. Data that fill one slice (1/256 of the device) are found for certain if they cover a slice whole, and data that are scattered
over 2 % of the device are missed in less than 1 of 100 readings (0.98 to the power of 256 is 0.006).
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import mmap
import os
import random
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB

if t.TYPE_CHECKING:
    from pathlib import Path

#: Bytes that are read whole at either end.
EDGE = MIB
#: Devices up to this size are read whole: a sample of a fraction of a second's reading would miss 4 KiB in an otherwise empty one.
WHOLE = 256 * MIB
#: Slices between the ends, and the bytes that are read in each.
SLICES, BLOCK = 256, 4096
#: Seconds after which a device counts as one that cannot be read.
_LONGEST = 300.0
_ZEROS = bytes(EDGE)

_DIRECT = getattr(os, "O_DIRECT", 0)


@frozen
class Extent:
    """A part of a device, in bytes."""

    offset: int
    length: int


def places_of(size: int, chance: random.Random | None = None) -> tuple[Extent, ...]:
    """Where a device of ``size`` bytes is read, in ascending order; all of it if it is small."""
    if size <= WHOLE:
        return tuple(Extent(offset, min(EDGE, size - offset)) for offset in range(0, size, EDGE))
    chance = chance or random.SystemRandom()
    last = size - EDGE
    # Direct I/O requires aligned places: of the last, odd part of the device the edge has more than enough.
    last -= last % BLOCK
    blocks = (last - EDGE) // BLOCK
    edges = [blocks * number // SLICES for number in range(SLICES + 1)]
    between = [Extent(EDGE + chance.randrange(low, high) * BLOCK, BLOCK) for low, high in zip(edges, edges[1:])]
    return (Extent(0, EDGE), *between, Extent(last, size - last))


def are_all(places: t.Iterable[Extent], size: int) -> bool:
    """Whether places are enough to know a device by: of one that is read whole, all of it."""
    return size > WHOLE or sum(place.length for place in places) >= size


def size_of(node: Path) -> int:
    """The bytes of a device or file.

    :raises OSError: if it cannot be opened.
    """
    descriptor = os.open(node, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def first_data(node: Path, places: t.Iterable[Extent]) -> int | None:
    """The offset of the first byte other than zero; ``None`` if all places have zeros.

    :raises OSError: if a place cannot be read.
    """
    with _Reader(node) as reader:
        for place in places:
            block = reader.read(place)
            # Comparing is fifty times faster than stripping.
            if block != (_ZEROS if len(block) == EDGE else bytes(len(block))):
                return place.offset + len(block) - len(block.lstrip(b"\0"))
    return None


def digests(node: Path, places: t.Iterable[Extent]) -> dict[Extent, str]:
    """The SHA-256 of what each place has.

    :raises OSError: if a place cannot be read.
    """
    with _Reader(node) as reader:
        return {place: hashlib.sha256(reader.read(place)).hexdigest() for place in places}


def read(node: Path, place: Extent) -> bytes:
    """What one place has.

    :raises OSError: if it cannot be read.
    """
    with _Reader(node) as reader:
        return reader.read(place)


@frozen
class Sample:
    """What one place has: its SHA-256, and the one byte that it consists of, ``None`` if there are several."""

    sha256: str
    byte: int | None


def samples(node: Path, places: t.Iterable[Extent]) -> dict[Extent, Sample]:
    """What each place has.

    :raises OSError: if a place cannot be read.
    """
    found = {}
    with _Reader(node) as reader:
        for place in places:
            block = reader.read(place)
            found[place] = Sample(hashlib.sha256(block).hexdigest(), block[0] if block and block == block[:1] * len(block) else None)
    return found


class _Reader:
    """Reads past the page cache where the device allows it: another host of a shared disk may have written since.

    :raises OSError: if the device cannot be opened, or if reading takes too long: what is not read is not known to be empty.
    """

    def __init__(self, node: Path) -> None:
        self._ends = time.monotonic() + _LONGEST
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self._descriptor = os.open(node, flags | _DIRECT)
            self._is_direct = True
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._descriptor = os.open(node, flags)
            self._is_direct = False
        # Page aligned, as direct I/O requires.
        self._buffer = mmap.mmap(-1, EDGE + 2 * BLOCK)

    def __enter__(self) -> _Reader:
        return self

    def __exit__(self, *ignored: object) -> None:
        self._buffer.close()
        os.close(self._descriptor)

    def read(self, place: Extent) -> bytes:
        done = 0
        if time.monotonic() > self._ends:
            raise OSError(errno.ETIMEDOUT, f"reading did not end within {_LONGEST:g} seconds, at byte {place.offset}")
        with memoryview(self._buffer) as view:
            while done < place.length:
                # Released at once: the traceback of an error would keep the slice, and the buffer could not be closed.
                with view[done : place.length] as part:
                    count = self._read_into(part, place.offset + done)
                if count == 0:
                    raise OSError(errno.ENODATA, f"the device ends at {place.offset + done} bytes")
                done += count
            return bytes(view[: place.length])

    def _read_into(self, view: memoryview, offset: int) -> int:
        try:
            return os.preadv(self._descriptor, [view], offset)
        except OSError as error:
            if error.errno != errno.EINVAL or not self._is_direct:
                raise
        self._leave_direct()
        return os.preadv(self._descriptor, [view], offset)

    def _leave_direct(self) -> None:
        """For a file system, or a part of a device, that direct I/O cannot read."""
        self._is_direct = False
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
        again = os.open(f"/proc/self/fd/{self._descriptor}", flags)
        os.close(self._descriptor)
        self._descriptor = again
        with contextlib.suppress(OSError):
            os.posix_fadvise(again, 0, 0, os.POSIX_FADV_DONTNEED)
