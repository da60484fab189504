# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the simulation of a cache has in common: its input is a load, its size is scaled by the rate of the sample, its result an outcome."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import distances

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load

np = Library("numpy", "Reading traces")


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a cache did with the sampled accesses.

    :param served: for each, 1 if a read was served or a write absorbed (write-back) or found (write-through), else 0.
    :param to_cache: bytes written to the cache device; ``to_origin`` bytes written to the origin, what is dirty at the end included.
    """

    served: t.Any
    to_cache: float
    to_origin: float


def scaled(load: Load, size: float) -> int:
    """Blocks of a cache that stands for one of ``size`` bytes."""
    return max(round(size / load.block * load.rate), 1)


def chunks(load: Load, seconds: float) -> t.Iterator[tuple[int, int, float]]:
    """Positions of the accesses of each period that has some: the first, the one after the last, and when the period begins, in seconds."""
    periods = (load.accesses["time"] // round(seconds * 1e9)).astype(np.int64)
    begins = np.flatnonzero(np.r_[True, periods[1:] != periods[:-1]]).tolist()
    for begin, end in zip(begins, [*begins[1:], len(periods)], strict=True):
        yield begin, end, float(periods[begin] * seconds)


class Reuse:
    """The reuse distances of a load, which give the outcome of an ideal LRU cache of any size."""

    def __init__(self, load: Load) -> None:
        self._load = load
        last, order = distances.last_accesses(load.blocks)
        self._distances = distances.reuse_distances(last, load.block_weights if load.rate < 1 else None)
        self._reads = load.reads
        self._bytes = load.accesses["bytes"].astype(np.int64)
        # A write saves the one before if the block was never evicted in between: if the longest of the distances since then is short enough.
        writes = ~load.reads[order]
        begins = np.flatnonzero(np.r_[True, writes[:-1] | (last[order[1:]] < 0)])
        longest = np.maximum.reduceat(self._distances[order], begins)
        ends = np.r_[begins[1:], len(order)] - 1
        self._rewrites, self._longest = order[ends][writes[ends]], longest[writes[ends]]

    def served(self, size: float) -> t.Any:
        """Of each access, whether it hits in a cache of this size, in bytes."""
        return (self._distances < size / self._load.block).astype(np.uint8)

    def outcome(self, size: float, mode: str) -> Outcome:
        """That of a cache of this size, in bytes, which fills with reads and writes."""
        served = self.served(size)
        written = int(self._bytes[~self._reads].sum())
        saved = 0
        if mode == "writeback":
            saved = int(self._bytes[self._rewrites[self._longest < size / self._load.block]].sum())
        filled = int((self._reads & (served == 0)).sum()) * self._load.block
        return Outcome(served, written + filled, written - saved)
