# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passed the devices of a stack while a cell was measured, and what its caches did. ``None`` is not known, and never 0."""

from __future__ import annotations

import dataclasses
import json
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


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


def hit_ratio(*pairs: tuple[float | None, float | None]) -> float | None:
    """Hits of all that asked, 0 to 1, of the pairs of hits and misses that are known."""
    known = [(hits, misses) for hits, misses in pairs if hits is not None and misses is not None]
    asked = sum(hits + misses for hits, misses in known)
    return sum(hits for hits, _misses in known) / asked if asked else None


#: What a cache may be while it is measured, from the design.
STATES = ("empty", "warming", "warm", "full", "writing back")


#: A change of the dirty amount that counts: bytes, and the share of what was dirty or of the cache.
_LEAST_FALL, _FALL, _FALL_OF_SIZE = 1 << 20, 0.2, 0.02
#: A rise that counts, of the occupancy by itself and of the hit ratio.
_RISE = 0.03
_FULL, _EMPTY = 0.99, 0.01


def state_of_cache(
    size: int | None, used: t.Sequence[float], dirty: t.Sequence[float], hit_ratios: t.Sequence[float | None], dirty_limit: float | None = None
) -> str | None:
    """What a cache was while it was measured; ``None`` where that is not known. The rule is in docs/results.md.

    :param used: bytes at each sample, from the beginning to the end of the measurement; empty if they are not known, as those of ``dirty``.
    :param hit_ratios: of the first half and of the second one, 0 to 1.
    :param dirty_limit: bytes from which on the cache writes back.
    """
    ratios = [one for one in hit_ratios if one is not None]
    fall = dirty[0] - dirty[-1] if dirty else 0.0
    if fall >= _LEAST_FALL and (fall >= _FALL * dirty[0] or (size and fall >= _FALL_OF_SIZE * size)):
        return "writing back"
    if (size and used and used[0] >= _FULL * size) or (dirty_limit and dirty and dirty[0] >= _FULL * dirty_limit):
        return "full"
    if len(used) < 2 and not ratios:
        return None
    rises = len(used) > 1 and _mean(used[(len(used) + 1) // 2 :]) - _mean(used[: len(used) // 2]) >= max(_RISE * max(used), _LEAST_FALL)
    if size and used and max(used) < _EMPTY * size and max(ratios, default=0.0) < _EMPTY:
        return "empty"
    if ratios and not any(ratios) and not rises:
        return "empty"
    if rises or (len(ratios) > 1 and ratios[-1] - ratios[0] > _RISE):
        return "warming"
    return "warm"


def _mean(values: t.Sequence[float]) -> float:
    return sum(values) / len(values)


@dataclass(frozen=True)
class CacheFlow:
    """One cache over the time of the measurement. Counts of I/Os per second, amounts in bytes.

    :param device: kernel name of the cached device, or the name of a cache that has none.
    :param type: as in ``block_cache_caches``, ``maxcache`` or ``zfs``.
    :param size: of the cache in bytes, where it is known.
    :param fast: kernel names of its cache devices; ``origin`` that of what is cached.
    :param promoted: blocks per second that were copied into the cache.
    :param written_back: bytes per second from the cache to its origin.
    :param state: one of :data:`STATES`, or ``None``.
    :param request_sizes: requests by size in bytes, JSON; ``None`` where they are not known.
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
    request_sizes: str | None = None

    @property
    def hit_ratio(self) -> float | None:
        """Hits of all I/Os that asked the cache, 0 to 1; ``None`` where none asked or it is not known. bcache counts reads only, and so does its ratio."""
        return hit_ratio((self.read_hits, self.read_misses), (self.write_hits, self.write_misses))


@dataclass(frozen=True)
class CellFlows:
    """All devices of the stack of one repeat, the target first, and its caches."""

    devices: tuple[Flow, ...]
    caches: tuple[CacheFlow, ...]


#: By host, variant, cell and repeat.
FlowKey = t.Tuple[str, str, str, int]

_KEY = "host, variant, cell, repeat"


class _Flows(Mapping[FlowKey, CellFlows]):
    """The flows of a campaign, made when they are asked for: of a fleet, few are.

    :param devices: the values of each device as JSON, by measurement; ``caches`` likewise.
    """

    def __init__(self, devices: t.Mapping[FlowKey, str], caches: t.Mapping[FlowKey, str]) -> None:
        self._devices = devices
        self._caches = caches

    def __getitem__(self, key: FlowKey) -> CellFlows:
        caches = [CacheFlow(*row) for row in json.loads(self._caches.get(key, "[]"))]
        devices = [Flow(*row) for row in json.loads(self._devices[key])]
        return CellFlows(tuple(devices), tuple(dataclasses.replace(one, fast=tuple(one.fast or ())) for one in caches))

    def __iter__(self) -> t.Iterator[FlowKey]:
        return iter(self._devices)

    def __len__(self) -> int:
        return len(self._devices)


def read_flows(database: DuckDBPyConnection) -> t.Mapping[FlowKey, CellFlows]:
    """The flows of every measurement that decides, or of which the suite does not say whether it does.

    :param database: with the views of :func:`tables.views.open_tables`.
    """
    return _Flows(_read(database, "flows", Flow), _read(database, "cache_flows", CacheFlow))


def _read(database: DuckDBPyConnection, table: str, kind: t.Any) -> dict[FlowKey, str]:
    values = ", ".join(field.name for field in dataclasses.fields(kind))
    # A number instead of names: what is only compared takes less time.
    deciding = f"SELECT hash({_KEY}) AS id FROM cells WHERE decides IS NULL OR decides <> ''"
    keys = ", ".join(f"any_value({name})" for name in _KEY.split(", "))
    rows = f"'[' || string_agg(json_array({values})::VARCHAR, ',' ORDER BY level) || ']'"
    source = f"(SELECT hash({_KEY}) AS id, * FROM {table}) SEMI JOIN ({deciding}) USING (id)"
    found = database.execute(f"SELECT {keys}, {rows} FROM {source} GROUP BY id").fetchall()
    return {(host, variant, cell, repeat): text for host, variant, cell, repeat, text in found}
