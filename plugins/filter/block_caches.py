# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Filters that divide what users write about SSD caches among the modules that make them, and follow a cache device through it."""

from __future__ import annotations

import re
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.division import divide, migrates
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES, type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

PARTS = ("removed", "rest")
_PARTITION = re.compile(r"-part\d+\Z")

Items = t.List[t.Dict[str, t.Any]]


def block_caches(caches: t.Any, part: str) -> Items:
    items = _checked(caches, "block_caches")
    if part not in PARTS:
        raise AnsibleFilterError(f"block_caches: there is no part {part}: use {', '.join(PARTS)}.")
    unknown = next((str(item.get("type")) for item in items if item.get("type") not in CACHE_TYPES), None)
    if unknown is not None:
        raise AnsibleFilterError(f"block_caches: there is no type {unknown}: use {', '.join(CACHE_TYPES)}.")
    found = [(kind, divide(items, kind.name)[PARTS.index(part)]) for kind in CACHE_TYPES.values()]
    return [{"type": kind.name, "has_tools": kind.has_tools, "caches": mine} for kind, mine in found if mine]


def caches_to_migrate(caches: t.Any, found: t.Any) -> Items:
    try:
        requested = {str(item["origin"]): item for item in _checked(caches, "caches_to_migrate") if migrates(item)}
    except BadInput as error:
        raise AnsibleFilterError(f"caches_to_migrate: {error.message}") from None
    leaving: Items = []
    for cache in _checked(found, "caches_to_migrate"):
        item = next((requested[str(name)] for name in cache.get("matched") or [] if str(name) in requested), None)
        if item is None or cache["type"] == item["type"]:
            continue
        hiding = next((kind for kind in (cache["type"], item["type"]) if type_of(kind).hides_data), None)
        if hiding:
            raise AnsibleFilterError(
                f"{item['name']}: {hiding} keeps the data of {item['origin']} behind a header of its own, so that no other cache can take its place and"
                f" none can become a {hiding}: copy the data to a new device instead."
            )
        mirrored, by_volume = bool(item.get("mirror")), type_of(cache["type"]).named_by_volume
        leaving.append(
            {
                "type": cache["type"],
                "name": item["name"] if by_volume else cache["name"],
                "origin": cache["name"] if by_volume else cache["origin"],
                "cache_devices": list(item["cache_devices"] if mirrored else cache["cache_devices"]),
                "mirror": mirrored,
                "state": "absent",
                "release_devices": True,
            }
        )
    return leaving


def caches_on_device(caches: t.Any, device: str) -> Items:
    return [item for item in _checked(caches, "caches_on_device") if item.get("state") != "absent" and device in (item.get("cache_devices") or [])]


def replace_cache_device(caches: t.Any, old: str, new: str) -> Items:
    return [
        {**item, "cache_devices": [new if path == old else path for path in item.get("cache_devices") or []]}
        for item in _checked(caches, "replace_cache_device")
    ]


def caches_have_moved(found: t.Any, requested: t.Any, old: str, new: str) -> bool:
    caches = _checked(found, "caches_have_moved")
    if not new or new == old or len(caches) < len(_checked(requested, "caches_have_moved")):
        return False

    def moved(cache: t.Mapping[str, t.Any]) -> bool:
        paths = [str(path) for path in cache.get("cache_devices") or []]
        # The caches are on a partition of the new drive if a part of it is reserved.
        drives = [*paths, *(_PARTITION.sub("", path) for path in paths)]
        there = any(path == new or (not new.startswith("/") and path.endswith(new)) for path in drives)
        return there and old not in paths and cache.get("state") == "ok"

    return all(moved(cache) for cache in caches)


def _checked(items: t.Any, name: str) -> Items:
    if not isinstance(items, t.Sequence) or isinstance(items, (str, bytes)) or not all(isinstance(one, t.Mapping) for one in items):
        raise AnsibleFilterError(f"{name}: the caches must be a list of dictionaries.")
    return [dict(item) for item in items]


class FilterModule:
    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        return {
            "block_caches": block_caches,
            "caches_have_moved": caches_have_moved,
            "caches_on_device": caches_on_device,
            "caches_to_migrate": caches_to_migrate,
            "replace_cache_device": replace_cache_device,
        }
