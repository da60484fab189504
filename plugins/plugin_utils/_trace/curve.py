# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What caches of several types and sizes would serve of a recorded load."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import distances
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import TraceError

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace

np = Library("numpy", "Reading traces")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A cache whose curve is computed.

    :param type: ``lru`` (an ideal cache of the least recently used blocks), ``bcache``, ``dm_cache`` or ``writecache``.
    :param mode: ``writethrough``, ``writeback`` or ``writearound``.
    :param block: bytes of a block of the cache.
    """

    type: str
    mode: str = "writeback"
    block: int = 4096


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """What one cache would serve.

    :param size: bytes.
    :param read_hits: share of the reads that it serves.
    :param write_hits: share of the writes that it absorbs (write-back), or whose blocks it holds.
    :param hits: share of both together; ``low`` and ``high`` are its interval of 95 %.
    :param saved_writes: share of the written bytes that never reach the origin, because they were overwritten in the cache.
    :param cache_writes: bytes per second that are written to the cache device.
    """

    type: str
    mode: str
    block: int
    size: int
    read_hits: float
    write_hits: float
    hits: float
    saved_writes: float
    cache_writes: float
    low: float
    high: float


KINDS = (Kind("lru"), Kind("bcache"), Kind("dm_cache", block=65536), Kind("writecache"))


def curves(trace: Trace, sizes: t.Sequence[int], kinds: t.Sequence[Kind] = KINDS, devices: t.Collection[int] = ()) -> tuple[CurvePoint, ...]:
    """A point for each kind and size, in their order.

    :raises TraceError: if the trace has no reads and writes.
    """
    points = []
    for kind in kinds:
        accesses = trace.accesses(kind.block, devices)
        if not len(accesses):
            raise TraceError(f"The trace {trace.name} of {trace.host} has no sampled reads and writes: record for longer, or with a larger limit.")
        reuse = distances.reuse_distances(distances.last_accesses(accesses["block"])[0])
        reads = accesses["operation"] == trace_format.READ
        for size in sizes:
            hit = reuse < size / kind.block * trace.rate
            shares = [float(hit[which].mean()) if which.any() else 0.0 for which in (reads, ~reads, reads | True)]
            written = accesses["bytes"][~reads].sum() + (reads & ~hit).sum() * kind.block
            points.append(CurvePoint(kind.type, kind.mode, kind.block, size, *shares, 0.0, float(written) / trace.rate / trace.seconds, shares[2], shares[2]))
    return tuple(points)
