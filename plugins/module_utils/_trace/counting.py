# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is counted over all requests of a device, in bounded memory."""

from __future__ import annotations

import array
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import bin_index, bin_midpoint
from ansible_collections.cachefleet.storage.plugins.module_utils._trace.format import AHEAD, DISCARD, FUA, META, OPERATIONS, READ, SYNC, WRITE

#: Sectors of 4 KiB, less one.
_ALIGNED = 7
#: Streams of a device that are followed at the same time; bcache follows as many.
_STREAMS = 128
#: Sizes of one operation that are told apart; others count as the next power of two.
_SIZES = 1024
#: Requests of a device that a disk may have at the same time; NVMe has queues of 1024 for each processor.
_IN_FLIGHT = 65536
_MINUTE, _SECOND = 60 * 10**9, 10**9
#: Of one minute: its number, requests and bytes of each operation, and the requests of its busiest second.
_COLUMNS = 2 + 2 * len(OPERATIONS)
_BY_LETTER = {"R": READ, "W": WRITE, "D": DISCARD, "N": DISCARD}
_FLAGS = {"F": FUA, "S": SYNC, "M": META, "A": AHEAD}


@frozen
class TracedDevice:
    """A device that is recorded.

    :param name: as the user wrote it; ``number``: of the device (``8:1``); ``dev``: of the disk of a partition, otherwise its own, as the kernel has it
        in events, whose sectors are those of the disk.
    :param start: of a partition on its disk, in sectors; ``sectors``: its size.
    :param is_disk: whether its requests have a latency that the kernel records.
    """

    name: str
    number: str
    dev: int
    start: int
    sectors: int
    is_disk: bool


def operations_of(rwbs: bytes) -> tuple[int | None, bool, int]:
    """What the letters of a request stand for: its operation (``None``: none that is counted), whether the cache of the device is flushed first, flags.

    Source: ``blk_fill_rwbs`` in kernel/trace/blktrace.c: F before the operation is a flush, after it FUA. N is a write of zeros.
    """
    letters = rwbs.split(b"\0", 1)[0].decode("ascii", "replace")
    flushes = letters.startswith("F")
    rest = letters[1:] if flushes else letters
    operation = _BY_LETTER.get(rest[:1])
    flags = 0
    for letter in rest[1:]:
        flags |= _FLAGS.get(letter, 0)
    return operation, flushes, flags


class DeviceCounts:
    """The figures of one device, as ``trace.json`` has them."""

    def __init__(self, device: TracedDevice) -> None:
        self.device = device
        #: Of each operation: requests, bytes, continued streams, not aligned to 4 KiB.
        self.counts = [[0, 0, 0, 0] for _operation in OPERATIONS]
        self.sizes: list[dict[int, int]] = [{} for _operation in OPERATIONS]
        self.latencies: list[dict[int, int]] = [{} for _operation in OPERATIONS]
        self._streams: dict[int, int] = {}
        self._in_flight: dict[tuple[int, int], int] = {}
        self._minutes = array.array("Q")
        self._minute = [0] * _COLUMNS
        self._second = self._in_second = 0

    def add(self, time: int, operation: int, sector: int, sectors: int) -> int:
        """Count a request.

        :param time: ns since the start; ``sector``: of the disk, so that what is counted as not aligned is what the disk does twice.
        :returns: the sectors of the sequential stream that ends with it.
        """
        size = sectors * 512
        counts = self.counts[operation]
        counts[0] += 1
        counts[1] += size
        stream = sectors
        if operation <= WRITE:
            if (sector | sectors) & _ALIGNED:
                counts[3] += 1
            streams = self._streams
            before = streams.pop(sector, 0)
            if before:
                counts[2] += 1
                stream += before
            elif len(streams) >= _STREAMS:
                del streams[next(iter(streams))]
            streams[sector + sectors] = stream
        sizes = self.sizes[operation]
        if size not in sizes and len(sizes) >= _SIZES:
            size = 1 << size.bit_length()
        sizes[size] = sizes.get(size, 0) + 1
        second = time // _SECOND
        if second != self._second:
            self._end_second(second)
        self._in_second += 1
        minute = self._minute
        minute[1 + 2 * operation] += 1
        minute[2 + 2 * operation] += sectors * 512
        return stream

    def _end_second(self, second: int) -> None:
        minute = self._minute
        minute[-1] = max(minute[-1], self._in_second)
        self._second, self._in_second = second, 0
        if second // 60 != minute[0]:
            self._minutes.extend(minute if minute[-1] else ())
            self._minute = [second // 60, *[0] * (_COLUMNS - 1)]

    def issued(self, time: int, operation: int, sector: int) -> None:
        """A request was sent to the drive."""
        in_flight = self._in_flight
        in_flight[operation, sector] = time
        if len(in_flight) > _IN_FLIGHT:
            # Its completion was lost.
            del in_flight[next(iter(in_flight))]

    def completed(self, time: int, operation: int, sector: int) -> None:
        """The drive has completed a request; what was issued before the start is not counted."""
        issued = self._in_flight.pop((operation, sector), None)
        if issued is not None and time >= issued:
            bins, index = self.latencies[operation], bin_index(time - issued)
            bins[index] = bins.get(index, 0) + 1

    def to_dict(self) -> dict[str, t.Any]:
        """What ``trace.json`` has of the device; what was not counted is missing."""
        counted = [number for number, counts in enumerate(self.counts) if counts[0]]
        found: dict[str, t.Any] = {
            "name": self.device.name,
            "number": self.device.number,
            "bytes": self.device.sectors * 512,
            "source": "block_bio_queue",
            "counts": {OPERATIONS[number]: dict(zip(("requests", "bytes", "sequential", "unaligned"), self.counts[number])) for number in counted},
            "sizes": {OPERATIONS[number]: dict(sorted(self.sizes[number].items())) for number in counted},
            "minutes": [*self._all_minutes()],
        }
        latencies = {OPERATIONS[number]: bins for number, bins in enumerate(self.latencies) if bins}
        if latencies:
            found["latency"] = {name: {bin_midpoint(index): count for index, count in sorted(bins.items())} for name, bins in latencies.items()}
        return found

    def _all_minutes(self) -> t.Iterator[dict[str, t.Any]]:
        last = [*self._minute[:-1], max(self._minute[-1], self._in_second)]
        for start in range(0, len(self._minutes) + _COLUMNS, _COLUMNS):
            values = self._minutes[start : start + _COLUMNS] or last
            found: dict[str, t.Any] = {"minute": values[0]}
            found.update({name: list(values[1 + 2 * one : 3 + 2 * one]) for one, name in enumerate(OPERATIONS) if values[1 + 2 * one]})
            if values[-1]:
                yield {**found, "busiest": values[-1]}
