# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user requests for one raw device-mapper cache, checked as far as it can be without reading the host."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import BLOCK_SIZE, METADATA_ONLY, WRITECACHE_MODES, read_options
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import COMMON_OPTIONS, CacheSpec, read_common, read_mode, require_unique
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

KINDS = (tables.CACHE, tables.WRITECACHE)
MODES = (tables.WRITETHROUGH, tables.WRITEBACK, tables.PASSTHROUGH)

#: 127 characters are what device-mapper keeps of a name, and ours are longer by what is put around them.
_LONGEST_NAME = 100
#: device-mapper's own entry in /dev/mapper, and what no folder can hold.
_RESERVED = frozenset({"control", ".", ".."})
#: Options of one cache, as a module takes them.
CACHE_OPTIONS: t.Mapping[str, t.Any] = {
    **COMMON_OPTIONS,
    "kind": {"type": "str", "choices": ["cache", "writecache"], "default": "cache"},
    "mode": {"type": "str", "choices": ["writethrough", "writeback", "passthrough"]},
}


@frozen
class DmCacheSpec(CacheSpec):
    """One cache; a setting of None is the kernel's own choice. ``name`` is the device-mapper name.

    ``chunk_size`` of a writecache is its block size.
    """

    @property
    def path(self) -> str:
        """What is mounted."""
        return f"/dev/mapper/{self.name}"


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[DmCacheSpec]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    specs = [_read_item(item) for item in items]
    require_unique(specs)
    return specs


def _read_item(item: t.Mapping[str, t.Any]) -> DmCacheSpec:
    common = read_common(item)
    name = common["name"]
    _require_usable_name(name)
    if not common["origin"].startswith("/dev/"):
        raise BadInput(f"{name}: origin is '{common['origin']}': use the path of a device below /dev, for example /dev/disk/by-id/ata-SERIAL.", item=name)
    if common["origin"] in common["cache_devices"]:
        raise BadInput(f"{name}: {common['origin']} is origin and cache device at once: name another cache device.", item=name)
    kind = item.get("kind") or tables.CACHE
    modes = WRITECACHE_MODES if kind == tables.WRITECACHE else MODES
    mode = read_mode(item, modes, f"kind {kind}")
    return DmCacheSpec(**_as_in_table(read_options(kind, item.get("settings") or {}, common)), kind=kind, mode=mode)


def _as_in_table(fields: dict[str, t.Any]) -> dict[str, t.Any]:
    """The block size of a writecache is the ``chunk_size`` of a plan, and a flag is written without a number."""
    settings = dict(fields["settings"])
    block = settings.pop(BLOCK_SIZE, None)
    if settings.get(METADATA_ONLY):
        settings[METADATA_ONLY] = True
    return {**fields, "settings": settings, "chunk_size": block or fields["chunk_size"]}


def _require_usable_name(name: str) -> None:
    if name in _RESERVED or name.startswith(tables.PREFIX):
        raise BadInput(f"{name}: this name is reserved for device-mapper or for the devices below caches: use another.", item=name)
    if len(name) > _LONGEST_NAME:
        raise BadInput(f"{name}: the name of a cache may have {_LONGEST_NAME} characters, and this has {len(name)}.", item=name)
