# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the SSD cache of a controller can be and cannot be, and when it holds nothing that the disks lack; pure.

Every rule answers with a clause that can follow the name of the controller, or ``None`` if there is no objection.

Sources of the rules: messages and usage texts of arcconf; "maxCache Limitations" and "Enabling Cache Optimizations" of the SmartRAID
user guide; for one container of at most 1 TB that must be redundant for write caching, the field notes of the series 7 and 8.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import CONTAINER, POOL, REDUNDANT_LEVELS, SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import (
    CLEAN,
    DIRTY,
    DISABLED,
    ENABLED,
    HEALTHY,
    NONE,
    UNKNOWN,
    WRITETHROUGH,
    CacheVolume,
    Controller,
    Drive,
    Policy,
    Volume,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import SIMPLE
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.spec import plain_address

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import CacheVolumeSpec

GENERATIONS = (POOL, CONTAINER, SMART)
#: Their common names.
GENERATION_NAMES: t.Mapping[str, str] = {POOL: "maxCache 1 or 2", CONTAINER: "maxCache 3.0", SMART: "maxCache 4"}

SMALLEST_SMART = 16 * GIB
LARGEST_CONTAINER = 1024 * GIB
#: All cache volumes of one controller together, by size of the cache line in KiB.
LARGEST_SMART: t.Mapping[int, int] = {64: int(1.7 * 1024) * GIB, 256: int(6.8 * 1024) * GIB}
#: What tools print is rounded, and controllers round to whole stripes.
SIZE_TOLERANCE = 0.01

_NOT_REDUNDANT_NOW = frozenset({"degraded", "partially_degraded", "suboptimal", "failed", "offline", "impacted"})


def no_maxcache(controller: Controller) -> str | None:
    """Why there is no usable maxCache, in the controller's own words as far as it has some."""
    if controller.mode == "hba":
        return "is in HBA mode, in which it has neither volumes nor maxCache"
    maxcache = controller.maxcache
    version = str(controller.traits.get("maxcache_version", ""))
    if version.lower() in ("not applicable", "not supported"):
        return f"has no maxCache (it reports: maxCache Version: {version})"
    if maxcache is None:
        return f"has no maxCache ({controller.provider} reports no pool, no maxCache device and no maxCache version)"
    if maxcache.limit == 0:
        return "has no maxCache (it allows 0 SSDs in it)"
    if maxcache.generation not in GENERATIONS:
        return f"does not report which maxCache it has, so that {controller.provider} cannot manage it"
    return None


def plain_level(generation: str, level: str) -> str:
    """One word for one RAID level, as users write it: tools and generations name a single SSD in several ways."""
    word = level.strip().lower().replace(" ", "_").replace("raid", "").strip("_-")
    if word in (SIMPLE, "simple_volume", "volume"):
        return "0" if generation == SMART else SIMPLE
    return word.upper() if word != UNKNOWN else UNKNOWN


def tool_level(generation: str, level: str) -> str:
    """The word of the tool for a RAID level."""
    word = plain_level(generation, level)
    return "simple_volume" if word == SIMPLE else word


def is_redundant(level: str) -> bool:
    """Whether a cache of this level survives the loss of one SSD; an unknown level does not count as one that does."""
    return level in REDUNDANT_LEVELS


def is_degraded(cache: CacheVolume) -> bool:
    return cache.status in _NOT_REDUNDANT_NOW


def same_size(one: int, other: int) -> bool:
    return abs(one - other) <= SIZE_TOLERANCE * max(one, other)


def needs_protection(policy: str | None) -> bool:
    """Whether a write policy leaves the newest data on the SSDs alone; an unknown policy may."""
    return policy not in (None, WRITETHROUGH, DISABLED)


# -- what a volume does now


def reads_cached(volume: Volume) -> t.Any:
    """``True``, ``False`` or ``unknown``: whether reads of a volume are to go through the SSDs."""
    word = volume.maxcache.read.configured if volume.maxcache is not None else UNKNOWN
    return {ENABLED: True, DISABLED: False}.get(word, UNKNOWN)


def write_policy(generation: str, volume: Volume) -> str:
    """``disabled``, a write policy, or ``unknown``: how writes of a volume are to go through the SSDs."""
    cached = volume.maxcache
    if cached is None:
        return UNKNOWN
    if generation != SMART and cached.write.configured == DISABLED:
        return DISABLED
    if generation != SMART and cached.write.configured != ENABLED:
        return UNKNOWN
    return cached.write_policy


def off_word(generation: str) -> str:
    """The value of ``write`` that sends no new data to the SSDs alone."""
    return WRITETHROUGH if generation == SMART else DISABLED


def is_off(generation: str, volume: Volume) -> bool:
    """Whether a volume sends no new data to the SSDs alone, by the controller's own words."""
    cached = volume.maxcache
    if cached is None:
        return False
    if generation == SMART:
        return cached.write_policy == WRITETHROUGH
    return cached.write.configured == DISABLED and cached.write.effective != ENABLED


def dirtiness(generation: str, cache: CacheVolume | None, volumes: t.Iterable[Volume]) -> str:
    """``clean`` only if the controller reports it for everything that is concerned; ``unknown`` is not clean.

    :param cache: the cache volume; ``None`` for a pool, whose state only its volumes report.
    :param volumes: those that it caches or may have cached; one that reports nothing may have.
    """
    requested = list(volumes)
    words = [_dirty_word(volume) for volume in requested]
    ending = [volume for volume in requested if volume.maxcache is not None and volume.maxcache.write == Policy(DISABLED, ENABLED)]
    if ending or DIRTY in words or (cache is not None and cache.dirty == DIRTY):
        return DIRTY
    if cache is not None and cache.dirty == CLEAN:
        # A volume that never cached writes has no line of its own: the cache volume reports for it.
        silent = [volume for volume, word in zip(requested, words) if word != CLEAN and not is_off(generation, volume)]
        return UNKNOWN if silent else CLEAN
    return CLEAN if words and all(word == CLEAN for word in words) else UNKNOWN


def _dirty_word(volume: Volume) -> str:
    return volume.maxcache.dirty if volume.maxcache is not None else UNKNOWN


def tells_dirtiness(cache: CacheVolume | None, volumes: t.Sequence[Volume]) -> bool:
    """Whether the controller would report that the cache is clean."""
    if cache is not None and cache.dirty != UNKNOWN:
        return True
    words = [_dirty_word(volume) for volume in volumes]
    return bool(words) and UNKNOWN not in words


# -- what can be made


def objection_to_drives(controller: Controller, addresses: t.Sequence[str], free: t.Container[str]) -> str | None:
    """Why these SSDs cannot be used.

    :param free: addresses of drives that the same plan takes out of a cache before, or that are in this one already.
    """
    maxcache = controller.maxcache
    limit = maxcache.limit if maxcache is not None else None
    if limit is not None and len(addresses) > limit:
        return f"allows {limit} SSDs in its maxCache, and {len(addresses)} are wanted"
    drives = {plain_address(drive.address): drive for drive in controller.drives}
    for address in addresses:
        drive = drives.get(address)
        if drive is None:
            return f"has no drive {address}; it has: {', '.join(drives) or 'none'}"
        reason = _objection_to_drive(controller, drive, free)
        if reason is not None:
            return f"cannot use drive {address} for maxCache: it {reason}"
    return None


_USAGE = {
    "configured": "is part of a volume",
    "spare": "is a hot spare",
    "hba": "is given to the host as it is",
    "jbod": "is given to the host as it is",
    "cache": "is in an SSD cache already",
}


def _objection_to_drive(controller: Controller, drive: Drive, free: t.Container[str]) -> str | None:
    if drive.media != "ssd":
        return "is not an SSD" if drive.media == "hdd" else f"does not show that it is an SSD ({controller.provider} prints nothing of it)"
    if drive.maxcache_capable is False:
        return "is not maxCache capable, according to the controller"
    if plain_address(drive.address) in free:
        return None
    for volume in controller.volumes:
        if drive.address in volume.members:
            return f"is part of volume {volume.name or volume.id}"
    if drive.usage == "unconfigured":
        return None
    state = f" (state: {drive.state})" if drive.state != UNKNOWN else ""
    return _USAGE.get(drive.usage, "is in a state that does not show it free") + state


def objection_to_container(controller: Controller, spec: CacheVolumeSpec) -> str | None:
    """Why maxCache 3.0 cannot have such a cache volume."""
    for name, value in (("data_volume", spec.data_volume), ("line_size", spec.line_size), ("write", spec.write)):
        if value is not None:
            return f"has {GENERATION_NAMES[CONTAINER]}, whose one cache volume has no {name} of its own: it serves every volume as set in volumes"
    if spec.size is not None and spec.size > LARGEST_CONTAINER:
        return f"supports a maxCache volume of at most {format_size(LARGEST_CONTAINER)}, and size is {format_size(spec.size)}"
    return _too_large(controller, spec)


def _too_large(controller: Controller, spec: CacheVolumeSpec) -> str | None:
    high = usable_size(controller, spec)
    if spec.size is not None and high is not None and spec.size > high:
        return f"cannot create a maxCache volume of {format_size(spec.size)}: these SSDs give {format_size(high)} as raid_level {spec.raid_level}"
    return None


def objection_to_smart(controller: Controller, volume: Volume, spec: CacheVolumeSpec, replaces: bool, others: int) -> str | None:
    """Why maxCache 4 cannot have such a cache volume now.

    :param replaces: whether the volume has a cache volume already, which is deleted before.
    :param others: bytes of the cache volumes that this controller keeps for other volumes.
    """
    label = volume.name or volume.id
    if not replaces:
        reason = _accelerated(volume)
        if reason is not None:
            return f"cannot give volume {label} a maxCache: {reason}"
    reason = _unprotected(controller)
    if reason is not None:
        return f"creates a maxCache only with a healthy cache module and a full capacitor, and {reason}"
    return _objection_to_smart_size(volume, label, spec, others) or _too_large(controller, spec)


def _accelerated(volume: Volume) -> str | None:
    if volume.acceleration == "controller_cache":
        return "it uses the cache of the controller, and a volume has one of the two; set its caching off with the module raid_cache first"
    if volume.acceleration == "io_bypass":
        return "SSD I/O bypass is enabled for its array; disable it first"
    if volume.acceleration in (NONE, "maxcache"):
        return None
    if volume.write.configured == WRITETHROUGH:
        return None
    return "the controller does not report what accelerates it now, and a volume has the cache of the controller or a maxCache, not both"


def _unprotected(controller: Controller) -> str | None:
    cache = controller.cache
    if cache.status not in ("ok", "not_configured"):
        raw = f" ({cache.reason})" if cache.reason else ""
        return f"its Cache Status is {cache.status.replace('_', ' ')}{raw}"
    protection = controller.protection
    if protection.health != HEALTHY:
        raw = f" ({protection.raw})" if protection.raw else ""
        return f"its capacitor is {protection.health}{raw}" if protection.kind != NONE else "it has no capacitor"
    return None


def _objection_to_smart_size(volume: Volume, label: str, spec: CacheVolumeSpec, others: int) -> str | None:
    if spec.size is None:
        return f"needs a size for the maxCache of volume {label}: the tool has no word for all of the SSDs with maxCache 4"
    if spec.size < SMALLEST_SMART:
        return f"supports a maxCache of at least {format_size(SMALLEST_SMART)}, and size is {format_size(spec.size)}"
    if volume.size is not None and spec.size > volume.size:
        return f"supports no maxCache larger than its volume: volume {label} has {format_size(volume.size)}, and size is {format_size(spec.size)}"
    line = spec.line_size or 64
    if others + spec.size > LARGEST_SMART[line]:
        total = format_size(others + spec.size)
        return f"supports at most {format_size(LARGEST_SMART[line])} of maxCache with cache lines of {line} KiB, and with this one it would be {total}"
    return None


def usable_size(controller: Controller, spec: CacheVolumeSpec) -> int | None:
    """Bytes that these SSDs give at this level; ``None`` if the size of one is not known. Drives lose a little to metadata."""
    addresses = set(spec.drives)
    sizes = [drive.size for drive in controller.drives if plain_address(drive.address) in addresses]
    known = [size for size in sizes if size]
    if len(known) != len(addresses) or not known:
        return None
    count = len(known)
    data = {"1": 1.0, "1E": count / 2, "10": count / 2, "5": count - 1.0}.get(spec.raid_level or "", float(count))
    return int(min(known) * data)
