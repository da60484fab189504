# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSD cache inside a controller as the options of ``raid_maxcache``."""

from __future__ import annotations

import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import (
    Candidate,
    Entry,
    Permission,
    Values,
    exact_size,
    prove,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.arcconf.maxcache_output import POOL, SMART
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import UNKNOWN, CacheVolume, Controller, MaxCache, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.description import RaidHost, volume_identities
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import rules
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.layer import RaidMaxCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache.spec import parse_controllers
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import MAXCACHE_TOOL

_UNPROTECTED = Permission("allow_unprotected", "It keeps the newest data on SSDs without redundancy.")


def describe_maxcache(host: RaidHost, controller: Controller, who: Values) -> tuple[Entry | None, list[str]]:
    """The options without those that name the controller; None for a controller without maxCache.

    :param who: what names the controller.
    """
    maxcache = controller.maxcache
    if controller.provider != MAXCACHE_TOOL or maxcache is None or rules.no_maxcache(controller) is not None:
        return None, []
    check = functools.partial(host.check, layer=RaidMaxCacheLayer, parse=parse_controllers)
    volumes, notes = prove(_volumes(controller), lambda entries: check([{**who, "volumes": list(entries)}]))
    extras = {**_caches(controller, maxcache), **_settings(maxcache)}
    whole = {**who, **({"volumes": [dict(entry.values) for entry in volumes]} if volumes else {})}
    entries, left_out = prove([Candidate(f"The maxCache of {controller.label}", (whole,), (extras,), permissions=(_UNPROTECTED,))], check)
    remarks = tuple(note for entry in (*volumes, *entries) for note in entry.notes)
    found = {key: value for entry in entries for key, value in entry.values.items() if key not in who}
    return (Entry(found, remarks) if found else None), [*notes, *left_out]


def _volumes(controller: Controller) -> list[Candidate]:
    generation = controller.maxcache.generation if controller.maxcache is not None else UNKNOWN
    found = []
    for volume in controller.volumes:
        read, write = rules.reads_cached(volume), rules.write_policy(generation, volume)
        modes = {("read",): read, ("write",): write}
        extras = {path: value for path, value in modes.items() if value != UNKNOWN}
        # A volume that does not use the SSDs is as every other; with maxCache 4 it has no policy of its own then.
        if extras and (read is True or rules.needs_protection(write)):
            item = f"The maxCache of volume {volume.name or volume.id}"
            found.append(Candidate(item, volume_identities(volume), (extras,), permissions=(_UNPROTECTED,)))
    return found


def _caches(controller: Controller, maxcache: MaxCache) -> dict[tuple[str, ...], t.Any]:
    if maxcache.generation == POOL:
        return {("pool_drives",): list(maxcache.pool)} if maxcache.pool else {}
    caches = [_cache_volume(controller, maxcache, cache) for cache in maxcache.volumes]
    return {("cache_volumes",): caches} if caches else {}


def _cache_volume(controller: Controller, maxcache: MaxCache, cache: CacheVolume) -> dict[str, t.Any]:
    found: dict[str, t.Any] = {"drives": list(cache.members), "raid_level": rules.plain_level(maxcache.generation, cache.raid_level)}
    if cache.size is not None:
        found["size"] = str(exact_size(cache.size))
    data = _data_volume(controller, cache)
    if maxcache.generation == SMART and data is not None:
        found["data_volume"] = data.name or data.id
    return found


def _data_volume(controller: Controller, cache: CacheVolume) -> Volume | None:
    return next((volume for volume in controller.volumes if volume.id == cache.data_volume), None)


def _settings(maxcache: MaxCache) -> dict[tuple[str, ...], t.Any]:
    balance = maxcache.read_write_balance
    known = {"flush_and_fetch_rate": maxcache.flush_and_fetch_rate, "dirty_page_threshold": maxcache.dirty_page_threshold}
    found: dict[tuple[str, ...], t.Any] = {(name,): value for name, value in known.items() if value is not None}
    return {**found, ("read_write_balance",): {"read": balance[0], "write": balance[1]}} if balance is not None else found
