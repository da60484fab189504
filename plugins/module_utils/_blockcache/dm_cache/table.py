# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables of the device-mapper targets ``cache``, ``writecache`` and ``linear``, read and written; nothing here reads a host.

Sources: Documentation/admin-guide/device-mapper/{cache,writecache,linear}.rst, and the status functions of
drivers/md/dm-cache-target.c and dm-writecache.c, which print tables. Sizes in bytes, whatever a table counts in.
"""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import (
    DEFAULT_MIGRATION_THRESHOLD,
    KIND_WRITECACHE,
    METADATA_ONLY,
    MIGRATION_THRESHOLD,
    WRITECACHE_NUMBERS,
    effective_migration_threshold,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, SECTOR, round_up

CACHE, WRITECACHE, LINEAR = "cache", KIND_WRITECACHE, "linear"
WRITETHROUGH, WRITEBACK, PASSTHROUGH = "writethrough", "writeback", "passthrough"
SMQ, CLEANER = "smq", "cleaner"
#: mq was replaced by smq in Linux 4.6 and is its other name since.
_SMQ_NAMES = ("smq", "mq", "default")

#: Where everything of the cache device behind the metadata begins, and what the metadata is rounded to.
_ALIGNMENT = MIB

Settings = t.Mapping[str, t.Union[int, bool]]


@frozen
class CacheTable:
    """One cached device. ``length`` and ``block_size`` in bytes; devices as paths or as ``major:minor``.

    :param kind: :data:`CACHE` or :data:`WRITECACHE`.
    :param metadata: the device of the metadata; empty for a writecache, which keeps it with the data.
    :param cleaner: whether it only empties itself.
    :param settings: those that are not the kernel's own choice.
    """

    kind: str
    length: int
    metadata: str
    data: str
    origin: str
    block_size: int
    mode: str
    cleaner: bool = False
    settings: Settings = field(default_factory=dict)

    @property
    def settled(self) -> bool:
        """Whether nothing can become dirty in it."""
        return self.cleaner if self.kind == WRITECACHE else self.mode != WRITEBACK

    def settle(self) -> CacheTable:
        """The same cache as one in which nothing can become dirty: what is attached, flushed and detached."""
        return replace(self, cleaner=True) if self.kind == WRITECACHE else replace(self, mode=WRITETHROUGH, cleaner=False)

    def clean(self) -> CacheTable:
        """The same cache while it empties itself."""
        return replace(self, cleaner=True) if self.kind == WRITECACHE else replace(self, mode=WRITETHROUGH, cleaner=True)

    def render(self) -> str:
        """The line for ``dmsetup``."""
        return _render_writecache(self) if self.kind == WRITECACHE else _render_cache(self)


@frozen
class LinearTable:
    """A part of a device, in bytes."""

    length: int
    device: str
    offset: int = 0

    def render(self) -> str:
        """The line for ``dmsetup``."""
        return f"0 {self.length // SECTOR} linear {self.device} {self.offset // SECTOR}"


def _render_cache(table: CacheTable) -> str:
    policy = [CLEANER, "0"] if table.cleaner else [SMQ, *_pairs(_with_threshold(table))]
    words = [table.metadata, table.data, table.origin, str(table.block_size // SECTOR), "2", "metadata2", table.mode, *policy]
    return f"0 {table.length // SECTOR} cache {' '.join(words)}"


def _with_threshold(table: CacheTable) -> dict[str, int]:
    """The settings that have to be passed to the kernel."""
    value = effective_migration_threshold(t.cast("int | None", table.settings.get(MIGRATION_THRESHOLD)), table.block_size)
    return {} if value == DEFAULT_MIGRATION_THRESHOLD else {MIGRATION_THRESHOLD: value}


def _pairs(settings: t.Mapping[str, int]) -> list[str]:
    words = [word for key, value in settings.items() for word in (key, str(value))]
    return [str(len(words)), *words]


def _render_writecache(table: CacheTable) -> str:
    options: list[str] = []
    for key in WRITECACHE_NUMBERS:
        if key in table.settings:
            options += [key, str(table.settings[key])]
    if table.settings.get(METADATA_ONLY):
        options.append(METADATA_ONLY)
    if table.cleaner:
        options.append(CLEANER)
    return f"0 {table.length // SECTOR} writecache s {table.origin} {table.data} {table.block_size} {' '.join([str(len(options)), *options])}"


def parse_table(row: t.Sequence[str]) -> CacheTable | LinearTable | None:
    """One row of :func:`discovery.parse_dm_table`; None if it is of another target.

    :raises NotUnderstood: quoting the line.
    """
    parsers: dict[str, t.Callable[[int, t.Sequence[str]], CacheTable | LinearTable | None]] = {
        CACHE: _parse_cache,
        WRITECACHE: _parse_writecache,
        LINEAR: lambda length, words: LinearTable(length, words[0], int(words[1]) * SECTOR),
    }
    if len(row) < 3 or row[2] not in parsers:
        return None
    try:
        return parsers[row[2]](int(row[1]) * SECTOR, row[3:])
    except (IndexError, ValueError):
        raise NotUnderstood(f"dmsetup printed a table that could not be parsed: '{' '.join(row)[:300]}'.") from None


def _parse_cache(length: int, words: t.Sequence[str]) -> CacheTable:
    metadata, data, origin, block = words[:4]
    count = int(words[4])
    features, rest = words[5 : 5 + count], words[5 + count :]
    policy, arguments = rest[0], rest[2 : 2 + int(rest[1])]
    numbers = {key: int(value) for key, value in zip(arguments[::2], arguments[1::2]) if key == MIGRATION_THRESHOLD}
    block_size = int(block) * SECTOR
    mode = next((feature for feature in features if feature in (WRITEBACK, PASSTHROUGH)), WRITETHROUGH)
    # Without a feature the kernel writes back.
    mode = mode if any(feature in (WRITETHROUGH, WRITEBACK, PASSTHROUGH) for feature in features) else WRITEBACK
    return CacheTable(CACHE, length, metadata, data, origin, block_size, mode, policy not in _SMQ_NAMES, numbers)


def _parse_writecache(length: int, words: t.Sequence[str]) -> CacheTable | None:
    if words[0] != "s":
        return None
    origin, data, block = words[1], words[2], int(words[3])
    options = list(words[5 : 5 + int(words[4])])
    settings: dict[str, int | bool] = {}
    cleaner = False
    while options:
        key = options.pop(0)
        if key == CLEANER:
            cleaner = True
        elif key in ("fua", "nofua", METADATA_ONLY):
            settings[key] = True
        else:
            settings[key] = int(options.pop(0))
    return CacheTable(WRITECACHE, length, "", data, origin, block, WRITEBACK, cleaner, settings)


def metadata_size(data: int, block_size: int) -> int:
    """Room for the metadata of so much cached data: 4 MiB and 16 bytes a block according to the authors of dm-cache, and a half more is taken.

    Documentation of dm-cache before 4.x; on Linux 6.1 a mapping, its hint and its dirty bit were seen to take 13 bytes a block.
    """
    return round_up(4 * MIB + 24 * -(-data // block_size), _ALIGNMENT)


@frozen
class Layout:
    """Where on the cache device what lies, in bytes. ``metadata`` is 0 for a writecache."""

    metadata: int
    data: int
    block_size: int

    @property
    def footprint(self) -> int:
        """What it takes of the device."""
        return self.metadata + self.data


#: Less than this is no cache.
SMALLEST = 8 * MIB


def lay_out(kind: str, room: int, block_size: t.Callable[[int], int], size: int | None, share: float = 1.0) -> Layout | None:
    """The layout of a new cache on a device with so much room; None if it does not fit.

    :param block_size: the size of blocks for so much data.
    :param size: of the cached data, or None for a share of all there is.
    """
    if kind == WRITECACHE:
        data = size if size is not None else int(room * share)
        data -= data % (4 * KIB)
        return Layout(0, data, block_size(data)) if SMALLEST <= data <= room else None
    available = int(room * share) if size is None else size
    block = block_size(available)
    metadata = metadata_size(available, block)
    data = available if size is not None else available - metadata
    data -= data % block
    return Layout(metadata, data, block) if data >= SMALLEST and metadata + data <= room else None


def writecache_memory(data: int, block_size: int) -> int:
    """Bytes of memory that a writecache takes: 16 for each block as on the device, and an entry of 64 beside it (dm-writecache.c)."""
    return 80 * (data // block_size)


# -- names

#: A user's cache cannot have it: its own mappings begin with it.
PREFIX = "cachefleet-"
_UUID = "CACHEFLEET-"
_ROLES = {"top": "TOP", "meta": "META", "data": "DATA"}


def helper_name(role: str, name: str) -> str:
    """The device-mapper name of the metadata (``meta``) or the data (``data``) of a cache."""
    return f"{PREFIX}{name}-{role}"


def uuid_of(role: str, name: str) -> str:
    """The device-mapper UUID of a mapping of a cache: ``top`` is what users mount."""
    return f"{_UUID}{_ROLES[role]}-{name}"


def parse_uuid(uuid: str | None) -> tuple[str, str] | None:
    """Role and cache behind a UUID; None if it is none of ours."""
    for role, word in _ROLES.items():
        beginning = f"{_UUID}{word}-"
        if uuid is not None and uuid.startswith(beginning) and len(uuid) > len(beginning):
            return role, uuid[len(beginning) :]
    return None
