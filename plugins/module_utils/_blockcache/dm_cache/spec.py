# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user asks of one raw device-mapper cache, checked as far as it can be without looking at the host."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.sizes import CHUNK_STEP, LARGEST_CHUNK
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import CacheSpec, read_common, require_unique
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

KINDS = (tables.CACHE, tables.WRITECACHE)
MODES = (tables.WRITETHROUGH, tables.WRITEBACK, tables.PASSTHROUGH)
WRITECACHE_BLOCKS = (512, 4096)

#: 127 characters are what device-mapper keeps of a name, and ours are longer by what is put around them.
_LONGEST_NAME = 100
#: device-mapper's own entry in /dev/mapper, and what no folder can hold.
_RESERVED = frozenset({"control", ".", ".."})


@dataclass(frozen=True)
class DmCacheSpec(CacheSpec):
    """One cache; a setting of None shall be the kernel's own choice. ``name`` is the device-mapper name."""

    @property
    def path(self) -> str:
        """What is mounted."""
        return f"/dev/mapper/{self.name}"


def read_items(items: t.Sequence[t.Mapping[str, t.Any]]) -> list[DmCacheSpec]:
    """The list a user wrote.

    :raises BadInput: naming the item and what to write instead.
    """
    wanted = [_read_item(item) for item in items]
    require_unique(wanted)
    return wanted


def _read_item(item: t.Mapping[str, t.Any]) -> DmCacheSpec:
    common = read_common(item)
    name = common["name"]
    _require_usable_name(name)
    if not common["origin"].startswith("/dev/"):
        raise BadInput(f"{name}: origin is '{common['origin']}': write the path of a device below /dev, for example /dev/disk/by-id/ata-SERIAL.", item=name)
    if common["origin"] in common["cache_devices"]:
        raise BadInput(f"{name}: {common['origin']} is origin and cache device at once: name another cache device.", item=name)
    kind = item.get("kind") or tables.CACHE
    _require_block(kind, common["chunk_size"], name)
    return DmCacheSpec(**common, kind=kind, mode=_mode(kind, item.get("mode"), name), settings=_settings(kind, item.get("settings") or {}, name))


def _require_usable_name(name: str) -> None:
    if name in _RESERVED or name.startswith(tables.PREFIX):
        raise BadInput(f"{name}: this name is taken by device-mapper or by what lies under caches: write another.", item=name)
    if len(name) > _LONGEST_NAME:
        raise BadInput(f"{name}: the name of a cache may have {_LONGEST_NAME} characters, and this has {len(name)}.", item=name)


def _mode(kind: str, mode: str | None, item: str) -> str:
    if kind == tables.WRITECACHE:
        if mode not in (None, tables.WRITEBACK):
            raise BadInput(f"{item}: a writecache can only write back, and mode is {mode}: leave mode out, or write kind: cache.", item=item)
        return tables.WRITEBACK
    return mode or tables.WRITETHROUGH


def _require_block(kind: str, size: int | None, item: str) -> None:
    if size is None:
        return
    if kind == tables.WRITECACHE:
        if size not in WRITECACHE_BLOCKS:
            raise BadInput(f"{item}: chunk_size is {format_size(size)}, and a writecache has blocks of 512 or 4096 bytes.", item=item)
    elif size % CHUNK_STEP or not CHUNK_STEP <= size <= LARGEST_CHUNK:
        raise BadInput(f"{item}: chunk_size is {format_size(size)}, and dm-cache takes only multiples of 32 KiB from 32 KiB to 1 GiB.", item=item)


def _settings(kind: str, settings: t.Mapping[str, t.Any], item: str) -> dict[str, int | bool | None]:
    """``default`` becomes None: the setting is taken away."""
    read = {key: _setting(kind, key, value, item) for key, value in settings.items()}
    high, low = (read.get(key) for key in ("high_watermark", "low_watermark"))
    high = tables.DEFAULT_HIGH_WATERMARK if high is None else high
    low = tables.DEFAULT_LOW_WATERMARK if low is None else low
    if low > high:
        raise BadInput(f"{item}: low_watermark is {low} and high_watermark is {high}: the low one is not above the high one.", item=item)
    return read


def _setting(kind: str, key: str, value: t.Any, item: str) -> int | bool | None:
    if kind == tables.CACHE and key != tables.MIGRATION_THRESHOLD:
        raise BadInput(
            f"{item}: dm-cache has no setting {key} that does anything: the only one is {tables.MIGRATION_THRESHOLD} (sectors of 512 bytes).", item=item
        )
    if kind == tables.WRITECACHE and key in ("fua", "nofua"):
        raise BadInput(f"{item}: the kernel takes {key} for persistent memory only, and a cache on a drive has no use for it: leave it out.", item=item)
    known = [*tables.WRITECACHE_NUMBERS, tables.METADATA_ONLY]
    if kind == tables.WRITECACHE and key not in known:
        raise BadInput(f"{item}: dm-writecache has no setting {key}: it has {', '.join(known)}.", item=item)
    if str(value) == "default":
        return None
    if key == tables.METADATA_ONLY:
        if not isinstance(value, bool):
            raise BadInput(f"{item}: {key} is '{value}': write true, or default to take the setting away.", item=item)
        return True if value else None
    least, most = tables.WRITECACHE_NUMBERS.get(key, (1, 2**31 - 1))
    if isinstance(value, bool) or not str(value).isdigit() or not least <= int(value) <= most:
        raise BadInput(f"{item}: {key} is '{value}': write a number from {least} to {most}, or default to take the setting away.", item=item)
    return int(value)
