# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a user requests for one flashcache device, checked as far as it can be without the host.

Sources: doc/flashcache-sa-guide.txt, the checks of ``flashcache_ctr`` (flashcache_conf.c).
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.settings import read_numbers
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import (
    COMMON_OPTIONS,
    CacheSpec,
    mode_of_settings,
    read_common,
    read_mode,
    require_unique,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, SECTOR, format_size, parse_size

MODES = ("writethrough", "writeback", "writearound")
DEFAULT_BLOCK = 4 * KIB
DEFAULT_METADATA_BLOCK = 4 * KIB
DEFAULT_ASSOCIATIVITY = 512
#: Bytes of a path in the superblock (``DEV_PATHLEN``), one of which ends it.
PATH_LENGTH = 127
#: Bytes of one block's place in the metadata on the SSD (``struct flash_cacheblock``).
METADATA_SLOT = 16

#: The tools put paths into a command line of a shell.
_PATH = re.compile(r"^/dev/[A-Za-z0-9_./:+@=,-]+$")
#: Options of one cache, as a module takes them.
CACHE_OPTIONS: t.Mapping[str, t.Any] = {
    **COMMON_OPTIONS,
    "mode": {"type": "str", "choices": ["writethrough", "writeback", "writearound"], "default": "writethrough"},
    "write_only": {"type": "bool", "default": False},
    "metadata_block_size": {"type": "str"},
    "associativity": {"type": "int", "default": 512},
    "disk_associativity": {"type": "str"},
    "allow_ignored_flushes": {"type": "bool", "default": False},
}


@frozen
class FlashcacheSpec(CacheSpec):
    """One cache. ``settings`` are as the user wrote them, ``numbers`` the same by sysctl, with ``cache_all`` always among them.

    :param block_size: bytes; ``chunk_size``, or the default.
    :param write_only: read requests are not cached.
    :param metadata_block_size: bytes; of write-back only.
    :param disk_associativity: bytes, 0 for none.
    :param allow_ignored_flushes: whether drives below may keep their volatile write cache on.
    """

    block_size: int = DEFAULT_BLOCK
    write_only: bool = False
    metadata_block_size: int = DEFAULT_METADATA_BLOCK
    associativity: int = DEFAULT_ASSOCIATIVITY
    disk_associativity: int = 0
    allow_ignored_flushes: bool = False
    numbers: t.Mapping[str, int] = field(default_factory=dict)


def read_items(items: t.Iterable[t.Mapping[str, t.Any]]) -> list[FlashcacheSpec]:
    """The caches of a module's parameters.

    :raises BadInput: naming the item and what to write instead.
    """
    specs = [_read_item(item) for item in items]
    require_unique(specs)
    folders: dict[str, str] = {}
    for cache in specs:
        for path in cache.cache_devices if cache.present and not cache.mirror else ():
            folder = folder_of(path, cache.origin)
            if folder in folders:
                raise BadInput(
                    f"{cache.name}: flashcache would show it below /proc as {folder}, like {folders[folder]}: name one of the devices by a link with"
                    " another ending.",
                    item=cache.name,
                )
            folders[folder] = cache.name
    return specs


def _read_item(item: t.Mapping[str, t.Any]) -> FlashcacheSpec:
    common = read_common(item)
    name = common["name"]
    mode = read_mode(item, MODES, "flashcache")
    if not common["origin"].startswith("/"):
        common["origin"] = f"/dev/{common['origin']}"
    for path in (common["origin"], *common["cache_devices"]):
        _require_path(path, name)
    write_only = bool(item.get("write_only"))
    if write_only and mode != "writeback":
        raise BadInput(f"{name}: write_only caches writes alone, and in mode {mode} no write stays in the cache: use mode writeback.", item=name)
    block = _power(common["chunk_size"] if common["chunk_size"] is not None else DEFAULT_BLOCK, "chunk_size", name, KIB, MIB)
    associativity = item.get("associativity") or DEFAULT_ASSOCIATIVITY
    if associativity & (associativity - 1) or not 256 <= associativity <= 8192:
        raise BadInput(f"{name}: associativity is {associativity}: use a power of two from 256 to 8192.", item=name)
    return FlashcacheSpec(
        **common,
        mode=mode,
        settings=dict(item.get("settings") or {}),
        block_size=block,
        write_only=write_only,
        metadata_block_size=_metadata_block(item, associativity, name),
        associativity=associativity,
        disk_associativity=_disk_associativity(item, associativity, block, name),
        allow_ignored_flushes=bool(item.get("allow_ignored_flushes")),
        numbers=read_numbers(item.get("settings") or {}, mode_of_settings(common["state"], mode), name, write_only=write_only),
    )


def _require_path(path: str, item: str) -> None:
    if not _PATH.match(path):
        raise BadInput(f"{item}: {path} has a character that the tools of flashcache would give to a shell: name the device by another link.", item=item)
    if len(path) > PATH_LENGTH:
        raise BadInput(
            f"{item}: {path} has {len(path)} characters, and flashcache keeps {PATH_LENGTH} in its superblock: name the device by a shorter link,"
            " for example /dev/disk/by-id/wwn-….",
            item=item,
        )


def _power(size: int, option: str, item: str, low: int, high: int) -> int:
    if size & (size - 1) or not low <= size <= high:
        raise BadInput(f"{item}: {option} is {format_size(size)}: use a power of two from {format_size(low)} to {format_size(high)}.", item=item)
    return size


def _metadata_block(item: t.Mapping[str, t.Any], associativity: int, name: str) -> int:
    given = item.get("metadata_block_size")
    if given is None:
        return DEFAULT_METADATA_BLOCK
    size = _power(parse_size(given, name, "metadata_block_size"), "metadata_block_size", name, SECTOR, 64 * KIB)
    if size // METADATA_SLOT > associativity:
        raise BadInput(
            f"{name}: a metadata block of {format_size(size)} describes {size // METADATA_SLOT} blocks, more than a set has with associativity {associativity}:"
            f" use at most {format_size(associativity * METADATA_SLOT)}.",
            item=name,
        )
    return size


def _disk_associativity(item: t.Mapping[str, t.Any], associativity: int, block: int, name: str) -> int:
    given = item.get("disk_associativity")
    size = parse_size(given, name, "disk_associativity") if given is not None else 0
    if not size:
        return 0
    _power(size, "disk_associativity", name, 128 * KIB, MIB)
    sectors = size // SECTOR
    # flashcache_create compares with the first, the kernel with the second.
    if sectors > associativity or sectors > associativity * ((block // SECTOR).bit_length() - 1):
        raise BadInput(f"{name}: a disk_associativity of {format_size(size)} needs an associativity of {sectors} or more.", item=name)
    return size
