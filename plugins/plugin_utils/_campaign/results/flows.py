# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passed the devices of a stack while a cell was measured, and what its caches did. ``None`` is not known, and never 0."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass


@dataclass(frozen=True)
class Flow:
    """One device over the time of the measurement, without the ramp. Rates per second.

    :param level: its place in the stack, 0 is the target.
    :param kind: what it is, as in a stack: ``disk``, ``lvm``, ``dm``, ``md``, ``bcache``...
    :param flushes: that the kernel sent to it; ``None`` where the kernel counts none.
    :param read_bytes: bytes per second, as ``write_bytes``.
    :param request_bytes: mean size of a request in bytes, reads and writes together; ``None`` if there was none.
    :param queue: mean number of requests that waited or were worked on (``aqu-sz`` of iostat); ``in_flight`` is that at the end of the intervals.
    :param use: share of the time in % in which there was a request; whole jiffies, so never the only evidence for busy.
    :param read_wait: mean time of a read in ms, as ``write_wait`` and ``flush_wait``; ``None`` where there was none.
    """

    level: int
    device: str
    kind: str
    model: str | None
    rotational: bool | None
    reads: float | None
    writes: float | None
    flushes: float | None
    read_bytes: float | None
    write_bytes: float | None
    request_bytes: float | None
    queue: float | None
    in_flight: float | None
    use: float | None
    read_wait: float | None
    write_wait: float | None
    flush_wait: float | None


#: What a cache may be while it is measured, from the design.
STATES = ("empty", "warming", "warm", "full", "writing back")


@dataclass(frozen=True)
class CacheFlow:
    """One cache over the time of the measurement. Counts of I/Os per second, amounts in bytes.

    :param device: kernel name of the cached device, or the name of a cache that has none.
    :param type: as in ``block_cache_caches``, ``maxcache`` or ``zfs``.
    :param size: of the cache in bytes, where it is known.
    :param fast: kernel names of its cache devices; ``origin`` that of what is cached.
    :param written_back: bytes per second from the cache to its origin.
    :param state: one of :data:`STATES`, or ``None``.
    """

    level: int | None
    device: str
    type: str | None
    mode: str | None
    size: int | None
    fast: tuple[str, ...]
    origin: str | None
    read_hits: float | None
    read_misses: float | None
    write_hits: float | None
    write_misses: float | None
    bypassed_reads: float | None
    bypassed_writes: float | None
    promoted: float | None
    written_back: float | None
    used_start: int | None
    used_end: int | None
    used_most: int | None
    dirty_start: int | None
    dirty_end: int | None
    dirty_most: int | None
    state: str | None

    @property
    def hit_ratio(self) -> float | None:
        """Hits of all I/Os that asked the cache, 0 to 1; ``None`` where a counter of them is not known, or none asked."""
        counts = (self.read_hits, self.read_misses, self.write_hits, self.write_misses)
        known = [one for one in counts if one is not None]
        asked = sum(known)
        if len(known) < len(counts) or not asked:
            return None
        return ((self.read_hits or 0.0) + (self.write_hits or 0.0)) / asked


@dataclass(frozen=True)
class CellFlows:
    """All devices of the stack of one repeat, the target first, and its caches."""

    devices: tuple[Flow, ...]
    caches: tuple[CacheFlow, ...]


#: By host, variant, cell and repeat.
FlowKey = t.Tuple[str, str, str, int]
