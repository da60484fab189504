# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""An SSD cache that is there, in the one vocabulary of every type."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

#: What :attr:`CacheState.state` can be.
#: ``ok``; ``needs_check``: the metadata is marked as damaged; ``read_only``: its metadata cannot be written;
#: ``failed``: the kernel serves nothing from it any more; ``cache_missing``: its fast device is gone;
#: ``inactive``: known to the host and not running; ``inconsistent``: its origin was used without it, data was lost;
#: ``unknown``: it should run and the kernel reports no status of it.
STATES = ("ok", "needs_check", "read_only", "failed", "cache_missing", "inactive", "inconsistent", "unknown")

#: Names of :attr:`CacheState.counters`: requests since the cache was loaded, or as far as the kernel counts.
#: ``bypassed``: what was never looked up, for its size, because it was sequential, or because the cache was congested.
#: ``written_back_bytes``: from the cache to its origin.
COUNTERS = (
    "read_hits",
    "read_misses",
    "write_hits",
    "write_misses",
    "bypassed_reads",
    "bypassed_writes",
    "cache_errors",
    "origin_errors",
    "written_back_bytes",
)


@frozen
class CacheState:
    """One cache of a host. Sizes and amounts in bytes; None is "not known" or "does not apply", never 0.

    :param type: one of ``types.TYPES``, the name of the module that makes it.
    :param name: what the host calls it: ``vg/lv``, the device-mapper name, ``bcache0``, the name of an EnhanceIO cache.
    :param kind: the construction: ``cachepool``, ``cachevol``, ``writecache``, ``cache``, ``bcache``, ``flashcache``, ``enhanceio``.
    :param device: stable path of the cached device, what is mounted; None if it is not there.
    :param device_name: its kernel name.
    :param origin: stable path of the slow device; origin_name: its kernel name.
    :param cache_devices: stable paths of what the cache lies on (a drive, a partition, an MD array), as a user would write them.
    :param cache_device_names: their kernel names.
    :param mode: ``writethrough``, ``writeback``, ``writearound``, ``passthrough`` or ``none``.
    :param metadata_size: what the metadata of the cache may take; ``metadata_used``: what they take. A cache whose metadata are full becomes read-only.
    :param redundancy: of what holds dirty blocks: ``mirrored``, ``degraded`` or ``none``.
    :param layout: how it lies on several cache devices that are no mirror of two, as the rest of a sentence about it; empty if it does not.
    :param sends_flushes: whether a flush of the cached device reaches the devices below it.
    :param state: one of :data:`STATES`.
    :param problem: if the state is not ``ok``: what is wrong and what can be done, as a sentence.
    :param settings: the settings in effect, by the names a user writes.
    :param counters: by the names of :data:`COUNTERS`; those that the type does not count are left out.
    :param histogram: requests by size in bytes, where the type counts them (flashcache).
    """

    type: str
    name: str
    kind: str
    device: str | None
    device_name: str | None
    origin: str | None
    origin_name: str | None
    cache_devices: tuple[str, ...] = ()
    cache_device_names: tuple[str, ...] = ()
    mode: str | None = None
    policy: str | None = None
    block_size: int | None = None
    size: int | None = None
    used: int | None = None
    dirty: int | None = None
    metadata_size: int | None = None
    metadata_used: int | None = None
    redundancy: str = "none"
    layout: str = ""
    sends_flushes: bool = True
    state: str = "ok"
    problem: str = ""
    settings: t.Mapping[str, t.Any] = field(default_factory=dict)
    counters: t.Mapping[str, int] = field(default_factory=dict)
    histogram: t.Mapping[int, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, t.Any]:
        plain = dataclasses.asdict(self)
        # JSON has no integer keys: noted here because the other side gets text.
        plain["histogram"] = {str(size): count for size, count in sorted(self.histogram.items())}
        plain["cache_devices"] = list(self.cache_devices)
        plain["cache_device_names"] = list(self.cache_device_names)
        return plain


@frozen
class FoundCache:
    """A cache that a device belongs to: as its origin, as its cache device, as the cached device, or by what it is made of or what is built on it."""

    type: str
    name: str
    running: bool = True

    def __str__(self) -> str:
        return f"the {self.type} {self.name}" if self.running else f"the {self.type} {self.name}, which does not run"


@frozen
class Origin:
    """What a path leads to.

    :param missing: why there is no such device, as a sentence; empty if there is one.
    :param caches: what it belongs to.
    """

    missing: str = ""
    caches: tuple[FoundCache, ...] = ()
