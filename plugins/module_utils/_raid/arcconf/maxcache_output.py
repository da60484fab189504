# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The commands of arcconf for maxCache; pure.

Every builder returns the words after the tool's name, or raises :class:`ValueError` naming what this generation of maxCache
does not have; :func:`objection` returns the same without raising, for plans. Nothing here decides whether a change is wise.

There are three generations (:attr:`MaxCache.generation`):

* ``pool``: maxCache 1 and 2 (series 2 to 6). SSDs are assigned to one pool; there is nothing to create or to delete. Per volume
  read caching and, from maxCache 2 on, write caching.
* ``container``: maxCache 3.0 (series 7 and 8). One RAID container of SSDs (number 100) caches all volumes that have it turned on.
* ``smart``: maxCache 4 (SmartRAID). One cache volume per data volume; a volume is cached because it has one. Only the write
  policy can be changed.

Sources: the usage texts in arcconf builds of 2011, 2016 and 2023.
"""

from __future__ import annotations

import itertools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller

POOL, CONTAINER, SMART = "pool", "container", "smart"

#: Our write policies and the words of MAXCACHEWRITEPOLICY, per generation.
WRITE_POLICIES: t.Mapping[str, t.Mapping[str, str]] = {
    POOL: {"writethrough": "WT", "writeback": "WB", "instant_writeback": "INSTWB"},
    CONTAINER: {"writethrough": "WT", "writeback": "WB", "instant_writeback": "INSTWB"},
    SMART: {"writethrough": "WT", "writeback": "WB"},
}
#: RAID levels of a cache volume; ``simple_volume`` is a single SSD. The tool does not list those of maxCache 4 itself: as its guide has them.
RAID_LEVELS: t.Mapping[str, tuple[str, ...]] = {CONTAINER: ("simple_volume", "0", "1", "1E", "5"), SMART: ("0", "1", "5", "10")}
#: RAID levels that survive the loss of one SSD: what write caching needs.
REDUNDANT_LEVELS = frozenset({"1", "1E", "5", "6", "10"})
#: Values of the other settings, and how a message lists them.
_VALUES: t.Mapping[str, tuple[t.Container[t.Any], str]] = {
    "flush_and_fetch_rate": (range(1, 1001), "1 to 1000"),
    "dirty_page_threshold": (range(1, 101), "1 to 100 percent"),
    "read_write_balance": (frozenset(itertools.product(range(1, 11), repeat=2)), "two weights from 1 to 10"),
    "cache_line_size": ((64, 256), "64 KiB or 256 KiB"),
}
#: The words of SETMAXCACHE for settings of the whole cache. The rate is the priority of flushing and fetching: 1 to 50 is low, 51 to 100
#: medium, 101 to 1000 high, not a time; the threshold is the share of dirty pages at which flushing begins.
_WORDS = {"flush_and_fetch_rate": "FLUSHANDFETCHRATE", "dirty_page_threshold": "DIRTYPAGETHRESHOLD", "read_write_balance": "RWBALANCE"}

#: What each setting needs, and why the other generations do not have it.
_SETTINGS: t.Mapping[str, tuple[tuple[str, ...], str]] = {
    "read_cache": ((POOL, CONTAINER), "a volume is cached for reading because it has a cache volume"),
    "write_cache": ((POOL, CONTAINER), "the write policy of the cache volume determines whether writes are cached"),
    "write_policy": ((POOL, CONTAINER, SMART), ""),
    "flush_and_fetch_rate": ((POOL, CONTAINER), "the firmware decides when to flush and to fetch"),
    "read_write_balance": ((POOL, CONTAINER), "the firmware divides the cache between reads and writes"),
    "dirty_page_threshold": ((POOL, CONTAINER), "the firmware decides when to flush"),
    "pool": ((POOL,), "SSDs are given when the cache volume is created"),
    "create": ((CONTAINER, SMART), "SSDs are assigned to the pool instead"),
    "delete": ((CONTAINER, SMART), "SSDs are removed from the pool instead"),
    "cache_line_size": ((SMART,), "the firmware chooses the size of a cache line"),
}


def generation(controller: Controller) -> str:
    """``pool``, ``container``, ``smart``, or ``unknown`` if the controller reports no maxCache."""
    return controller.maxcache.generation if controller.maxcache is not None else "unknown"


def objection(controller: Controller, setting: str, value: t.Any = None) -> str | None:
    """Why this controller's maxCache cannot have a setting (a key of the table above) or this value of it; ``None`` if it can.

    A clause that can follow the name of the controller or of a volume. Values: ``write_policy`` a word of ours,
    ``flush_and_fetch_rate`` and ``dirty_page_threshold`` a number, ``read_write_balance`` a pair, ``create`` a RAID level,
    ``cache_line_size`` KiB; none for the others.
    """
    kind = generation(controller)
    label = setting.replace("_", " ")
    if kind not in (POOL, CONTAINER, SMART):
        return "has no maxCache that arcconf reports"
    kinds, instead = _SETTINGS[setting]
    if kind not in kinds:
        return f"has no maxCache setting for {label}: with maxCache of this generation ({kind}) {instead}"
    values = _values(kind, setting)
    if value is not None and values is not None and value not in values[0]:
        return f"cannot have maxCache {label} {','.join(_plain(value))}, only {values[1]}"
    return None


def _values(kind: str, setting: str) -> tuple[t.Container[t.Any], str] | None:
    """The values of a setting; ``None`` if it has none."""
    if setting == "write_policy":
        return WRITE_POLICIES[kind], ", ".join(sorted(WRITE_POLICIES[kind]))
    if setting == "create":
        return RAID_LEVELS[kind], "RAID level " + ", ".join(RAID_LEVELS[kind])
    return _VALUES.get(setting)


def _plain(value: t.Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, tuple) else [str(value)]


def read_cache(controller: Controller, volumes: t.Sequence[str], enabled: bool) -> list[str]:
    """Turn caching of reads on or off for some volumes (their ids)."""
    _must(controller, "read_cache")
    return _set(controller, "LOGICALDRIVE", *volumes, "READCACHE", _switch(enabled))


def write_cache(controller: Controller, volumes: t.Sequence[str], enabled: bool, policy: str | None = None) -> list[str]:
    """Turn caching of writes on or off for some volumes; when on, optionally with their write policy in the same command."""
    _must(controller, "write_cache")
    words = ["LOGICALDRIVE", *volumes, "WRITECACHE", _switch(enabled)]
    if enabled and policy is not None:
        words += ["MAXCACHEWRITEPOLICY", _policy(controller, policy)]
    return _set(controller, *words)


def write_policy(controller: Controller, volumes: t.Sequence[str], policy: str) -> list[str]:
    """Set how writes are cached: ``writethrough``, ``writeback`` or (not maxCache 4) ``instant_writeback``.

    Builds of 2011 (maxCache 2) call the word WRITEPOLICY and support WB only; they are not supported here.

    :param volumes: ids of the volumes that are cached (maxCache 4: of the data volumes).
    """
    return _set(controller, "LOGICALDRIVE", *volumes, "MAXCACHEWRITEPOLICY", _policy(controller, policy))


def whole(controller: Controller, setting: str, value: t.Any) -> list[str]:
    """Set the rate, the threshold or the balance (two weights) of the whole cache."""
    _must(controller, setting, value)
    return _set(controller, _WORDS[setting], *_plain(value))


def pool(controller: Controller, drives: t.Sequence[str], *, add: bool) -> list[str]:
    """Assign SSDs (addresses, ``0,3``) to the pool of maxCache 1 or 2, or take them out."""
    _must(controller, "pool")
    return _set(controller, "ADDTOPOOL" if add else "REMOVEFROMPOOL", *_addresses(drives))


def create(
    controller: Controller,
    drives: t.Sequence[str],
    raid_level: str,
    *,
    size: int | None = None,
    data_volume: str | None = None,
    policy: str | None = None,
    cache_line_size: int | None = None,
) -> list[str]:
    """Create the cache volume (maxCache 3.0 and 4; for maxCache 1 and 2 see :func:`pool`).

    :param drives: addresses of the SSDs, ``0,3``.
    :param raid_level: a word of :data:`RAID_LEVELS`.
    :param size: bytes, rounded down to whole MiB; ``None`` takes all of the SSDs (maxCache 3.0: the word MAX; maxCache 4 has no such
        word: there the size is required).
    :param data_volume: the id of the volume that should be cached; maxCache 4 requires it, maxCache 3.0 has none here (its
        volumes are turned on with :func:`read_cache` and :func:`write_cache`).
    :param policy: the write policy, only maxCache 4 takes it here (its own default is ``writeback``).
    :param cache_line_size: KiB, 64 (default) or 256; only maxCache 4.
    """
    _must(controller, "create", raid_level)
    megabytes = "MAX" if size is None else str(size // 2**20)
    if generation(controller) == CONTAINER:
        if data_volume is not None or policy is not None or cache_line_size is not None:
            raise ValueError("the cache volume of maxCache 3.0 is created without a data volume, a write policy and a cache line size")
        return ["CREATE", controller.id, "MAXCACHE", megabytes, raid_level, *_addresses(drives), "noprompt"]
    if data_volume is None or size is None:
        raise ValueError("maxCache 4 requires the volume to cache and a size")
    options = [] if policy is None else ["Wcache", _policy(controller, policy)]
    if cache_line_size is not None:
        _must(controller, "cache_line_size", cache_line_size)
        options += ["CacheLineSize", str(cache_line_size)]
    return ["CREATE", controller.id, "MAXCACHE", *options, "DataLD", data_volume, megabytes, raid_level, *_addresses(drives), "noprompt"]


def delete(controller: Controller, cache_volume: str) -> list[str]:
    """Delete the cache volume. Dirty blocks have to be flushed before: wait until it is clean.

    :param cache_volume: its id; maxCache 3.0 has only one, and its command takes no number.
    """
    _must(controller, "delete")
    if generation(controller) == CONTAINER:
        # Its usage line lists no noprompt; the tool is run without an input, so that a question is a refusal.
        return ["DELETE", controller.id, "MAXCACHE"]
    return ["DELETE", controller.id, "MAXCACHE", cache_volume, "noprompt"]


def _must(controller: Controller, setting: str, value: t.Any = None) -> None:
    reason = objection(controller, setting, value)
    if reason is not None:
        raise ValueError(f"{controller.label} {reason}")


def _policy(controller: Controller, policy: str) -> str:
    _must(controller, "write_policy", policy)
    return WRITE_POLICIES[generation(controller)][policy]


def _set(controller: Controller, *words: str) -> list[str]:
    return ["SETMAXCACHE", controller.id, *words, *nologs(controller)]


def _switch(enabled: bool) -> str:
    return "ENABLE" if enabled else "DISABLE"


def _addresses(drives: t.Sequence[str]) -> list[str]:
    """``0,3`` becomes two words: the channel and the number that the tool reports, never the ``Device #`` of its list."""
    return [word for drive in drives for word in drive.split(",")]


def nologs(controller: Controller) -> list[str]:
    """The word that keeps arcconf from writing its log into the working folder, where this build supports it."""
    return ["nologs"] if controller.traits.get("nologs") else []
