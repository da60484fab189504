# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What caches of several types and sizes would serve of a recorded load, with the interval that the sample allows."""

from __future__ import annotations

import dataclasses
import itertools
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load, load_of, scale_error, share_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome, Reuse
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.types import IDEAL, MODELS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace

#: Simulations go through the accesses one by one: of a trace with more, fewer regions are used.
MOST_ACCESSES = 1_000_000


@dataclasses.dataclass(frozen=True)
class Kind:
    """A cache whose curve is computed.

    :param type: ``lru`` for an ideal cache, or one of ``types.MODELS``.
    :param mode: of the type.
    :param block: bytes of a block of the cache.
    :param settings: of the type; its defaults if there are none.
    """

    type: str
    mode: str = "writeback"
    block: int = 4 * KIB
    settings: t.Any = None


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


KINDS = (Kind(IDEAL), *(Kind(name, block=model.block) for name, model in MODELS.items()))


def curves(trace: Trace, sizes: t.Sequence[int], kinds: t.Sequence[Kind] = KINDS, devices: t.Collection[int] = (), warm: float = 0.0) -> tuple[CurvePoint, ...]:
    """A point for each kind and size, in their order.

    :param sizes: bytes.
    :param devices: indexes of the devices that share the cache; all if empty.
    :param warm: seconds at the beginning of the trace that only fill the caches.
    :raises BadInput: if a size or a kind is invalid.
    :raises TraceError: if the trace has no reads and writes.
    """
    for kind in kinds:
        modes = MODELS[kind.type].modes if kind.type in MODELS else ("writeback", "writethrough") if kind.type == IDEAL else ()
        if kind.mode not in modes or kind.block % 512 or not 512 <= kind.block <= trace_format.REGION:
            raise BadInput(f"There is no curve of {kind.type} in mode {kind.mode} with blocks of {kind.block} bytes.")
    if not all(size > 0 for size in sizes):
        raise BadInput("The size of a cache must be above 0 bytes.")
    points = {}
    for block in dict.fromkeys(kind.block for kind in kinds):
        load = load_of(trace, block, devices, warm)
        reuse, error = Reuse(load), scale_error(load)
        fewer = min(MOST_ACCESSES / len(load.blocks), 1.0)
        simulated = load_of(dataclasses.replace(trace, rate=trace.rate * fewer), block, devices, warm) if fewer < 1 else load
        for kind, size in itertools.product((kind for kind in kinds if kind.block == block), sizes):
            if kind.type == IDEAL:
                used, outcomes, settings = load, [reuse.outcome(size, kind.mode)], None
            else:
                model, used = MODELS[kind.type], simulated
                settings = kind.settings or model.settings()
                outcomes = [model.simulate(used, size, kind.mode, one) for one in (settings, *model.others(settings))]
            points[kind, size] = _point(kind, size, used, outcomes, _slope(load, reuse, size, error), getattr(settings, "congested", 0.0))
    return tuple(points[kind, size] for kind in kinds for size in sizes)


def _slope(load: Load, reuse: Reuse, size: int, error: float) -> float:
    """Half of what the hits of an ideal cache change by the uncertainty of its scale."""
    low, high = (load.whole(reuse.served(size * scale)) @ load.weights for scale in (1 - error, 1 + error)) if error else (0.0, 0.0)
    return float(high - low) / 2 / float(load.weights.sum())


def _point(kind: Kind, size: int, load: Load, outcomes: t.Sequence[Outcome], slope: float, congested: float) -> CurvePoint:
    outcome, reads = outcomes[0], load.request_reads
    of_reads, of_writes = (share_of(load, load.whole(outcome.served), *one) for one in zip((reads, ~reads), load.total, strict=True))
    of_all, *others = (share_of(load, load.whole(one.served), reads | True, sum(load.total)) for one in outcomes)
    hits = [of_all.value, *(one.value for one in others)]
    half = math.hypot(of_all.margin, slope, MODELS[kind.type].margin if kind.type in MODELS else 0)
    written = float(load.accesses["bytes"][~load.reads].sum())
    return CurvePoint(
        type=kind.type,
        mode=kind.mode,
        block=kind.block,
        size=size,
        read_hits=of_reads.value,
        write_hits=of_writes.value,
        hits=of_all.value,
        saved_writes=max(1 - outcome.to_origin / written, 0.0) if written else 0.0,
        cache_writes=outcome.to_cache / load.rate / load.seconds,
        low=max(min(hits) * (1 - congested) - half, 0.0),
        high=min(max(hits) + half, 1.0),
    )
