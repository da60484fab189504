# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every SSD cache of a host, of whatever type, in one vocabulary; and how fast dirty blocks are written back."""

from __future__ import annotations

import dataclasses
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import facts as bcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import facts as dm_cache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import facts as enhanceio_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import facts as flashcache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import facts as lvm_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import describe_suspended

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

Reader = t.Callable[["Devices", "Runner", Path], t.Tuple[CacheState, ...]]


#: Who reads the caches of each type. Imported by name: Ansible sends to a host only what it finds in import statements.
READERS: t.Mapping[str, Reader] = {
    "lvm_cache": lvm_facts.read_caches,
    "dm_cache": dm_cache_facts.read_caches,
    "bcache": bcache_facts.read_caches,
    "flashcache": flashcache_facts.read_caches,
    "enhanceio": enhanceio_facts.read_caches,
}

_DIGITS = re.compile(r"(\d+)")


@frozen
class Survey:
    """The caches of a host by the name of their device, and what could not be read, one sentence each."""

    caches: tuple[CacheState, ...] = ()
    problems: tuple[str, ...] = ()


@frozen
class Drain:
    """How fast a cache becomes clean. Amounts in bytes, of the second reading; None is "not known".

    :param bytes_per_second: by how much ``dirty`` fell; below zero if it grew.
    :param seconds_until_clean: at that pace; 0 if nothing is dirty, None if it does not fall.
    """

    name: str
    type: str
    dirty: int | None
    bytes_per_second: float | None
    seconds_until_clean: float | None

    def to_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def read_caches(devices: Devices, runner: Runner, root: Path = Path("/"), types: t.Collection[str] = TYPES) -> Survey:
    """Every SSD cache of the host; a type that cannot be read is a problem, and the others are reported all the same."""
    caches: list[CacheState] = []
    problems = [describe_suspended(device) for device in devices if device.suspended]
    for name, reader in READERS.items():
        if name not in types:
            continue
        try:
            caches += reader(devices, runner, root)
        except StorageError as error:
            problems.append(f"The caches of type {name} could not be read: {error.message}")
    return Survey(tuple(sorted(caches, key=_place)), tuple(problems))


def select(survey: Survey, names: t.Sequence[str], devices: Devices) -> Survey:
    """The caches that match any of these words; all of them without a word.

    :param names: the name of a cache, or any path or kernel name of its device or origin, as a user writes them.
        One that means no cache is a problem.
    """
    if not names:
        return survey
    meant = {name: [cache for cache in survey.caches if is_meant(cache, name, devices)] for name in names}
    chosen = [cache for cache in survey.caches if any(cache in found for found in meant.values())]
    missing = [f"No SSD cache of this host has the name, the device or the origin {name}." for name, found in meant.items() if not found]
    return Survey(tuple(chosen), (*survey.problems, *missing))


def drain_of(before: Survey, after: Survey, seconds: float) -> tuple[Drain, ...]:
    """The rates from the dirty amounts of two readings, in the order of the second; a cache that was not there before has no pace.

    :param seconds: what passed between the two, above zero.
    """
    earlier = {(cache.type, cache.name): cache.dirty for cache in before.caches}
    drains = []
    for cache in after.caches:
        was = earlier.get((cache.type, cache.name))
        pace = None if was is None or cache.dirty is None else (was - cache.dirty) / seconds
        left = None
        if cache.dirty == 0:
            left = 0.0
        elif cache.dirty is not None and pace is not None and pace > 0:
            left = cache.dirty / pace
        drains.append(Drain(cache.name, cache.type, cache.dirty, pace, left))
    return tuple(drains)


def sample(
    read_survey: t.Callable[[], Survey], seconds: float, clock: t.Callable[[], float], sleep: t.Callable[[float], None]
) -> tuple[Survey, tuple[Drain, ...]]:
    """One reading, or with ``seconds`` above zero two and what lies between them.

    The pace is that of the time that really passed: a reading of a busy host can take seconds itself. Where nothing is dirty, nothing can fall, and
    the first reading is both.
    """
    before, began = read_survey(), clock()
    if seconds <= 0:
        return before, ()
    if all(cache.dirty == 0 for cache in before.caches) and not before.problems:
        return before, drain_of(before, before, seconds)
    sleep(seconds)
    after, ended = read_survey(), clock()
    return after, drain_of(before, after, max(ended - began, 1e-6))


def cache_to_dict(cache: CacheState) -> dict[str, t.Any]:
    """A cache for a module's return values, with what is computed from it."""
    return {**cache.to_dict(), "dirty_share": dirty_share(cache), "hit_ratio": hit_ratio(cache)}


def dirty_share(cache: CacheState) -> float | None:
    """The part of a cache that is dirty, from 0 to 1; None if it cannot be determined."""
    return None if cache.dirty is None or not cache.size else cache.dirty / cache.size


def hit_ratio(cache: CacheState) -> float | None:
    """The part of what was looked up that was found, from 0 to 1, since the kernel counts; None if it cannot be determined."""
    counters = cache.counters
    pairs = [(f"{kind}_hits", f"{kind}_misses") for kind in ("read", "write")]
    reported = [(counters[hits], counters[misses]) for hits, misses in pairs if hits in counters and misses in counters]
    hits, misses = (sum(column) for column in zip(*reported)) if reported else (0, 0)
    return hits / (hits + misses) if hits + misses > 0 else None


def _place(cache: CacheState) -> tuple[list[t.Any], str, str]:
    """bcache2 before bcache10; caches without a device last."""
    device = cache.device_name or "\x7f"
    parts = [(int(part), "") if part.isdigit() else (-1, part) for part in _DIGITS.split(device)]
    return parts, cache.type, cache.name


def is_meant(cache: CacheState, word: str, devices: Devices) -> bool:
    """Whether a user who writes this word means this cache; ``vg/lv`` is the origin of a cache of any type."""
    names = {cache.device_name, cache.origin_name} - {None}
    if word in {cache.name, cache.device, cache.origin} | names:
        return True
    try:
        return devices.resolve(word if word.startswith("/") else f"/dev/{word}").name in names
    except DeviceMissing:
        return False
