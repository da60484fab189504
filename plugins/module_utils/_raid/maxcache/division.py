# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of RAID controllers with the SSD caches inside of them, divided into policies, SSD caches that are removed, and the others.

SSD caches are removed before policies are set and created after it: many controllers cache a volume either in their own memory or on SSDs.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

Entry = t.Dict[str, t.Any]

_WHO = ("provider", "tool_path", "id", "serial")
#: What names a volume. Its allow_unprotected is about power cuts and is no permission to lose data with an SSD: maxcache has its own.
_WHICH = ("id", "name", "wwn")


def policies(controllers: t.Sequence[t.Mapping[str, t.Any]]) -> list[Entry]:
    """What ``raid_cache`` gets: every controller, without SSD caches."""
    return [policies_of(one) for one in controllers]


def ssd_caches(controllers: t.Sequence[t.Mapping[str, t.Any]], *, removed: bool) -> list[Entry]:
    """What ``raid_maxcache`` gets.

    :param removed: what is removed before policies are set, or what is created and set afterwards.
    :raises BadInput: for a cache volume that is in both.
    """
    take = removed_of if removed else kept_of
    entries = [entry for one in controllers for entry in [ssd_cache_of(one)] if entry]
    return [entry for one in entries for entry in [take(one)] if entry]


def policies_of(controller: t.Mapping[str, t.Any]) -> Entry:
    """The entry for ``raid_cache``.

    :raises BadInput: for volumes that are no list of dictionaries.
    """
    volumes = [{name: value for name, value in volume.items() if name != "maxcache"} for volume in _entries(controller, "volumes")]
    return {**{name: value for name, value in controller.items() if name != "maxcache"}, **({"volumes": volumes} if volumes else {})}


def ssd_cache_of(controller: t.Mapping[str, t.Any]) -> Entry | None:
    """The entry for ``raid_maxcache``; ``None`` if the entry has no SSD cache.

    :raises BadInput: for volumes that are no list of dictionaries, and for a ``maxcache`` that is no dictionary.
    """
    volumes = [
        {**{name: volume[name] for name in _WHICH if name in volume}, **_maxcache_of(volume)}
        for volume in _entries(controller, "volumes")
        if volume.get("maxcache")
    ]
    own = _maxcache_of(controller)
    if not volumes and not own:
        return None
    return {**{name: controller[name] for name in _WHO if controller.get(name) is not None}, **own, "volumes": volumes}


def removed_of(entry: t.Mapping[str, t.Any]) -> Entry | None:
    """Only what takes an SSD cache away: that has to come before controller caching can be switched on for its volumes."""
    absent = [one for one in _entries(entry, "cache_volumes") if one.get("state") == "absent"]
    if not absent:
        return None
    kept = {str(one.get("data_volume") or "") for one in entry["cache_volumes"] if one.get("state") != "absent"}
    if kept & {str(one.get("data_volume") or "") for one in absent}:
        # Split between two calls, this would be deleted and made anew in every run.
        raise BadInput("cache_volumes has one cache volume twice, once with state: absent: list it once.")
    # The pool that should have SSDs cannot be absent: the module reports that if it is given both.
    return {**{name: entry[name] for name in (*_WHO, "flush_timeout", "pool_drives") if entry.get(name)}, "cache_volumes": absent}


def kept_of(entry: t.Mapping[str, t.Any]) -> Entry | None:
    """The rest: what should go was taken away before, and would be reported twice in check mode."""
    kept_volumes = [one for one in _entries(entry, "cache_volumes") if one.get("state") != "absent"]
    kept = {**{name: value for name, value in entry.items() if name != "cache_volumes"}, **({"cache_volumes": kept_volumes} if kept_volumes else {})}
    return kept if kept["volumes"] or set(kept) - {*_WHO, "volumes", "flush_timeout", "allow_unprotected"} else None


def _entries(entry: t.Mapping[str, t.Any], name: str) -> t.Sequence[t.Mapping[str, t.Any]]:
    """A list of what is divided; the modules check it only afterwards."""
    entries = entry.get(name) or []
    if not isinstance(entries, (list, tuple)) or not all(isinstance(one, t.Mapping) for one in entries):
        raise BadInput(f"controllers: {name} must be a list of dictionaries, not {entries!r}.", item=name)
    return entries


def _maxcache_of(entry: t.Mapping[str, t.Any]) -> Entry:
    found = entry.get("maxcache") or {}
    if not isinstance(found, t.Mapping):
        raise BadInput(f"controllers: maxcache must be a dictionary, not {found!r}.", item="maxcache")
    return dict(found)
