# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter that divides what users write about RAID controllers among the modules that set it."""

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleFilterError

PARTS = ("policies", "ssd_cache", "removed_ssd_cache")
_WHO = ("provider", "tool_path", "id", "serial")
#: What names a volume. Its allow_unprotected is about power cuts and is no permission to lose data with an SSD: maxcache has its own.
_WHICH = ("id", "name", "wwn")


def raid_settings(controllers: t.Any, part: str) -> list[dict[str, t.Any]]:
    """See ``raid_settings.yml``."""
    if part not in PARTS:
        raise AnsibleFilterError(f"raid_settings: there is no part {part}: use {', '.join(PARTS)}.")
    if not isinstance(controllers, t.Sequence) or isinstance(controllers, (str, bytes)) or not all(isinstance(one, t.Mapping) for one in controllers):
        raise AnsibleFilterError("raid_settings: the controllers must be a list of dictionaries.")
    if part == "policies":
        return [_policies(one) for one in controllers]
    take = _kept if part == "ssd_cache" else _removed
    with_ssd_cache = [entry for one in controllers for entry in [_ssd_cache(one)] if entry]
    return [entry for one in with_ssd_cache for entry in [take(one)] if entry]


def _policies(controller: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    volumes = [{name: value for name, value in volume.items() if name != "maxcache"} for volume in controller.get("volumes") or []]
    return {**{name: value for name, value in controller.items() if name != "maxcache"}, **({"volumes": volumes} if volumes else {})}


def _ssd_cache(controller: t.Mapping[str, t.Any]) -> dict[str, t.Any] | None:
    """The entry for ``raid_maxcache``; ``None`` if the entry has no SSD cache."""
    volumes = [
        {**{name: volume[name] for name in _WHICH if name in volume}, **volume["maxcache"]}
        for volume in controller.get("volumes") or []
        if volume.get("maxcache")
    ]
    own = dict(controller.get("maxcache") or {})
    if not volumes and not own:
        return None
    return {**{name: controller[name] for name in _WHO if controller.get(name) is not None}, **own, "volumes": volumes}


def _removed(entry: t.Mapping[str, t.Any]) -> dict[str, t.Any] | None:
    """Only what takes an SSD cache away: that has to come before controller caching can be switched on for its volumes."""
    absent = [one for one in entry.get("cache_volumes") or [] if one.get("state") == "absent"]
    if not absent:
        return None
    kept = {str(one.get("data_volume") or "") for one in entry["cache_volumes"] if one.get("state") != "absent"}
    if kept & {str(one.get("data_volume") or "") for one in absent}:
        # Split between two calls, this would be deleted and made anew in every run.
        raise AnsibleFilterError("raid_settings: cache_volumes has one cache volume twice, once with state: absent: list it once.")
    # The pool that should have SSDs cannot be absent: the module reports that if it is given both.
    return {**{name: entry[name] for name in (*_WHO, "flush_timeout", "pool_drives") if entry.get(name)}, "cache_volumes": absent}


def _kept(entry: t.Mapping[str, t.Any]) -> dict[str, t.Any] | None:
    """The rest: what should go was taken away before, and would be reported twice in check mode."""
    kept_volumes = [one for one in entry.get("cache_volumes") or [] if one.get("state") != "absent"]
    kept = {**{name: value for name, value in entry.items() if name != "cache_volumes"}, **({"cache_volumes": kept_volumes} if kept_volumes else {})}
    return kept if kept["volumes"] or set(kept) - {*_WHO, "volumes", "flush_timeout", "allow_unprotected"} else None


class FilterModule:
    """Filters of this collection."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {"raid_settings": raid_settings}
