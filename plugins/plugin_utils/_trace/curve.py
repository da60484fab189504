# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What caches of several types and sizes would serve of a recorded load, with the interval that the sample allows."""

from __future__ import annotations

import dataclasses
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import bcache, smq, writecache
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load, load_of, scale_error, share_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome, Reuse

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace

#: The modes of each type.
MODES: t.Mapping[str, tuple[str, ...]] = {
    "lru": ("writeback", "writethrough"),
    "bcache": ("writeback", "writethrough", "writearound"),
    "dm_cache": ("writeback", "writethrough"),
    "writecache": ("writeback",),
}
#: By so much a simulation may differ from the cache itself, as a share of the requests: assumed.
MARGINS: t.Mapping[str, float] = {"lru": 0.0, "bcache": 0.03, "dm_cache": 0.03, "writecache": 0.02}
#: Simulations go through the accesses one by one: of a trace with more, fewer regions are used.
MOST_ACCESSES = 2_000_000

Settings = bcache.BcacheSettings | smq.SmqSettings | writecache.WritecacheSettings


@dataclasses.dataclass(frozen=True)
class Kind:
    """A cache whose curve is computed.

    :param type: ``lru`` (an ideal cache of the least recently used blocks), ``bcache``, ``dm_cache`` or ``writecache``.
    :param mode: one of :data:`MODES`.
    :param block: bytes of a block of the cache.
    :param settings: of this type; its defaults if there are none.
    """

    type: str
    mode: str = "writeback"
    block: int = 4 * KIB
    settings: Settings | None = None


@dataclasses.dataclass(frozen=True)
class CurvePoint:
    """What one cache would serve, from empty.

    :param size: bytes.
    :param read_hits: share of the reads that it serves whole.
    :param write_hits: share of the writes that it absorbs (write-back), or whose blocks it holds.
    :param hits: share of both together; ``low`` and ``high`` are its interval of 95 %, from the sample and what is assumed of the simulation.
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


KINDS = (Kind("lru"), Kind("bcache"), Kind("dm_cache", block=64 * KIB), Kind("writecache"))


def curves(trace: Trace, sizes: t.Sequence[int], kinds: t.Sequence[Kind] = KINDS, devices: t.Collection[int] = (), warm: float = 0.0) -> tuple[CurvePoint, ...]:
    """A point for each kind and size, in their order.

    :param sizes: bytes.
    :param devices: indexes of the devices that share the cache; all if empty.
    :param warm: seconds at the beginning of the trace that only fill the caches.
    :raises BadInput: if a size or a kind is invalid.
    :raises TraceError: if the trace has no reads and writes.
    """
    for kind in kinds:
        if kind.mode not in MODES.get(kind.type, ()) or kind.block % 512 or not 512 <= kind.block <= trace_format.REGION:
            raise BadInput(f"There is no curve of {kind.type} in mode {kind.mode} with blocks of {kind.block} bytes.")
    if not all(size > 0 for size in sizes):
        raise BadInput("The size of a cache must be above 0 bytes.")
    points: dict[Kind, list[CurvePoint]] = {}
    for block in dict.fromkeys(kind.block for kind in kinds):
        load = load_of(trace, block, devices, warm)
        reuse, error = Reuse(load), scale_error(load)
        simulated = load
        if len(load.blocks) > MOST_ACCESSES and any(kind.type != "lru" for kind in kinds):
            simulated = load_of(dataclasses.replace(trace, rate=trace.rate * MOST_ACCESSES / len(load.blocks)), block, devices, warm)
        for kind in kinds:
            if kind.block == block:
                used = load if kind.type == "lru" else simulated
                points[kind] = [_point(kind, size, used, outcome_of(kind, size, used, trace, reuse), _slope(load, reuse, size, error)) for size in sizes]
    return tuple(point for kind in kinds for point in points[kind])


def outcome_of(kind: Kind, size: int, load: Load, trace: Trace, reuse: Reuse) -> Outcome:
    """What a cache of this kind does with the load."""
    if kind.type == "bcache":
        return bcache.simulate(load, size, kind.mode, t.cast("bcache.BcacheSettings", kind.settings or bcache.BcacheSettings()))
    if kind.type == "dm_cache":
        default = smq.SmqSettings(origin=max((device.bytes for device in trace.devices), default=0))
        return smq.simulate(load, size, kind.mode, t.cast("smq.SmqSettings", kind.settings or default))
    if kind.type == "writecache":
        return writecache.simulate(load, size, kind.mode, t.cast("writecache.WritecacheSettings", kind.settings or writecache.WritecacheSettings()))
    return reuse.outcome(size, kind.mode)


def _slope(load: Load, reuse: Reuse, size: int, error: float) -> float:
    """Half of what the hits of an ideal cache change by the uncertainty of its scale."""
    weights = load.weights.sum()
    low, high = ((load.whole(reuse.served(size * scale)) * load.weights).sum() / weights for scale in (1 - error, 1 + error)) if error else (0.0, 0.0)
    return float(high - low) / 2


def _point(kind: Kind, size: int, load: Load, outcome: Outcome, slope: float) -> CurvePoint:
    served, reads = load.whole(outcome.served), load.request_reads
    shares = [share_of(load, served, which, total) for which, total in zip((reads, ~reads, reads | True), (*load.total, sum(load.total)), strict=True)]
    half = math.hypot(shares[2].margin, slope, MARGINS[kind.type])
    settings = kind.settings or bcache.BcacheSettings()
    congested = settings.congested * shares[2].value if kind.type == "bcache" and isinstance(settings, bcache.BcacheSettings) else 0.0
    written = float(load.accesses["bytes"][~load.reads].sum())
    saved = 1 - outcome.to_origin / written if written else 0.0
    return CurvePoint(
        type=kind.type,
        mode=kind.mode,
        block=kind.block,
        size=size,
        read_hits=shares[0].value,
        write_hits=shares[1].value,
        hits=shares[2].value,
        saved_writes=max(saved, 0.0),
        cache_writes=outcome.to_cache / load.rate / load.seconds,
        low=max(shares[2].value - half - congested, 0.0),
        high=min(shares[2].value + half, 1.0),
    )
