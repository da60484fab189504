# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cache did between two readings: which share of its requests it served.

Counters are never subtracted blindly. Those of dm-cache have 32 bits and start again when a table is loaded; those of bcache are
carried over every 13.6 seconds only (drivers/md/bcache/stats.c), so that nothing counted may mean nothing counted yet.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import CacheReading, Readings, Traffic, key_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState

#: ``measured``; ``idle``: no requests; ``not_known_yet``: requests came and the counters have not moved;
#: ``counters_fell``: they were reset or wrapped around; ``first_reading``: there is nothing to compare with.
STATES = ("measured", "idle", "not_known_yet", "counters_fell", "first_reading")


@frozen
class Share:
    """Requests of one direction. ``percent`` is of what was looked up, ``of_all`` also counts what bypassed the cache; None without requests."""

    hits: int = 0
    misses: int = 0
    bypassed: int = 0

    @property
    def requests(self) -> int:
        return self.hits + self.misses + self.bypassed

    @property
    def percent(self) -> float | None:
        return _percent(self.hits, self.hits + self.misses)

    @property
    def of_all(self) -> float | None:
        return _percent(self.hits, self.requests)

    @property
    def bypassed_percent(self) -> float | None:
        return _percent(self.bypassed, self.requests)

    def to_dict(self) -> dict[str, t.Any]:
        return {
            **dataclasses.asdict(self),
            "requests": self.requests,
            "percent": self.percent,
            "of_all": self.of_all,
            "bypassed_percent": self.bypassed_percent,
        }


@frozen
class CacheActivity:
    """What one cache did between two readings.

    :param state: one of :data:`STATES`; without ``measured`` all counters are empty.
    :param seconds: between the two; None without an earlier one.
    :param counters: what was counted; ``histogram``: None if there is nothing to compare with.
    :param traffic: by kernel name; devices whose counters fell are left out.
    """

    state: str = "first_reading"
    seconds: float | None = None
    counters: t.Mapping[str, int] = field(default_factory=dict)
    earlier_histogram: t.Mapping[int, int] | None = None
    traffic: t.Mapping[str, Traffic] = field(default_factory=dict)

    @property
    def reads(self) -> Share:
        return _share(self.counters, "read")

    @property
    def writes(self) -> Share:
        return _share(self.counters, "write")

    def to_dict(self) -> dict[str, t.Any]:
        """For a module's return values: no figures unless they were measured."""
        plain: dict[str, t.Any] = {"state": self.state, "seconds": None if self.seconds is None else round(self.seconds, 1)}
        for name, share in (("reads", self.reads), ("writes", self.writes)):
            plain[name] = share.to_dict() if self.state == "measured" and share.requests else None
        return plain


def passed(cache: CacheState, before: Readings | None, after: Readings) -> CacheActivity:
    """What happened to a cache between two readings of its host."""
    now = after.caches.get(key_of(cache), CacheReading())
    earlier = before.caches.get(key_of(cache)) if before is not None else None
    if before is None or earlier is None or after.time <= before.time:
        return CacheActivity()
    same_boot = before.boot == after.boot
    traffic: dict[str, Traffic] = {}
    for name, current in now.traffic.items():
        grown = current.minus(earlier.traffic[name]) if same_boot and name in earlier.traffic else None
        if grown is not None:
            traffic[name] = grown
    counters = {name: value - earlier.counters[name] for name, value in now.counters.items() if name in earlier.counters}
    seconds = after.time - before.time
    histogram = earlier.histogram if same_boot else {}
    if any(value < 0 for value in counters.values()):
        return CacheActivity("counters_fell", seconds, {}, histogram, traffic)
    if any(counters.values()):
        return CacheActivity("measured", seconds, counters, histogram, traffic)
    top = traffic.get(cache.device_name or "")
    if not counters or (top is None and not same_boot):
        return CacheActivity("first_reading", seconds, {}, histogram, traffic)
    late = type_of(cache.type).counts_late and top is not None and top.requests > 0
    return CacheActivity("not_known_yet" if late else "idle", seconds, {}, histogram, traffic)


def _share(counters: t.Mapping[str, int], direction: str) -> Share:
    return Share(counters.get(f"{direction}_hits", 0), counters.get(f"{direction}_misses", 0), counters.get(f"bypassed_{direction}s", 0))


def _percent(part: int, whole: int) -> float | None:
    return round(100 * part / whole, 1) if whole else None
