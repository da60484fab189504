# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The settings of dm-cache and dm-writecache, described once for LVM and for device-mapper.

Sources: lvmcache(7); Documentation/admin-guide/device-mapper/{cache,cache-policies,writecache}.rst; ``writecache_ctr`` of
drivers/md/dm-writecache.c.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.settings import SIZE, Setting, Vocabulary, flag, read_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, KIB, SECTOR, format_size

#: The kind of both modules that is dm-writecache.
KIND_WRITECACHE = "writecache"
#: A writecache holds nothing but what the origin does not have yet.
WRITECACHE_MODES = ("writeback",)
#: Where a setting is stored: in the table of the cache, or in its superblock, which is written when the cache is made.
TABLE, SUPERBLOCK = "table", "superblock"

#: The one setting of dm-cache that does something.
MIGRATION_THRESHOLD = "migration_threshold"
#: What the kernel moves at once before it lets others through, unless configured otherwise, in sectors.
DEFAULT_MIGRATION_THRESHOLD = 2048
#: Chunks of a dm-cache: multiples of the step, up to the largest.
CHUNK_STEP, LARGEST_CHUNK = 32 * KIB, GIB

BLOCK_SIZE = "block_size"
METADATA_ONLY = "metadata_only"
PAUSE_WRITEBACK = "pause_writeback"
_UNSIGNED = 2**32 - 1

#: The arguments of the policy mq, which smq took the place of.
_IGNORED = ("random_threshold", "sequential_threshold", "discard_promote_adjustment", "read_promote_adjustment", "write_promote_adjustment")

CACHE = Vocabulary(
    "dm-cache",
    {MIGRATION_THRESHOLD: Setting(low=1, high=2**63 - 1, default=DEFAULT_MIGRATION_THRESHOLD, unit="sectors of 512 bytes", place=TABLE)},
    refused=dict.fromkeys(_IGNORED, f"the kernel accepts and ignores it: dm-cache has no setting that does anything but {MIGRATION_THRESHOLD}"),
)

#: The numbers in the order in which they stand in a table.
WRITECACHE_NUMBERS: t.Mapping[str, Setting] = {
    "high_watermark": Setting(high=100, default=50, unit="percent", place=TABLE),
    "low_watermark": Setting(high=100, default=45, unit="percent", place=TABLE),
    "writeback_jobs": Setting(high=_UNSIGNED, default=0, unit="blocks, 0 for no limit", place=TABLE),
    "autocommit_blocks": Setting(low=1, high=_UNSIGNED, default=65536, unit="blocks", place=TABLE),
    "autocommit_time": Setting(low=1, high=3_600_000, default=1000, unit="milliseconds", place=TABLE),
    "max_age": Setting(low=1, high=86_400_000, unit="milliseconds", place=TABLE),
    PAUSE_WRITEBACK: Setting(high=60_000, default=3000, unit="milliseconds", place=TABLE),
}
_PERSISTENT_MEMORY = "the kernel accepts it for persistent memory only, and a cache on a drive does not need it"
WRITECACHE = Vocabulary(
    f"kind {KIND_WRITECACHE}",
    {
        **WRITECACHE_NUMBERS,
        METADATA_ONLY: flag(place=TABLE),
        BLOCK_SIZE: Setting(SIZE, choices=(512, 4096), unit="bytes", place=SUPERBLOCK, stored=True),
    },
    refused={"fua": _PERSISTENT_MEMORY, "nofua": _PERSISTENT_MEMORY, "cleaner": "set state: flushed, which also proves that nothing is left in the cache"},
    pairs=(("low_watermark", "high_watermark"),),
)


def read_options(kind: str, requested: t.Mapping[str, t.Any], fields: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """``fields`` with the settings of a dm-cache or a dm-writecache.

    ``default`` becomes None, as does a flag that is off: both leave it out of the table.

    :param fields: what :func:`spec.read_common` has read.
    :raises BadInput: naming the setting and what is accepted.
    """
    name, chunk_size = fields["name"], fields["chunk_size"]
    read = read_settings(WRITECACHE if kind == KIND_WRITECACHE else CACHE, requested, name)
    settings = {key: None if key == METADATA_ONLY and not value else value for key, value in read.items()}
    if chunk_size is not None:
        if kind == KIND_WRITECACHE:
            raise BadInput(f"{name}: chunk_size is not supported for kind {kind}; set settings.{BLOCK_SIZE} (512 or 4096).", item=name)
        require_chunk_size(chunk_size, name)
    return {**fields, "settings": settings}


def require_chunk_size(size: int, item: str | None) -> None:
    """Refuse what dm-cache does not take.

    :raises BadInput: naming the bounds.
    """
    if size % CHUNK_STEP or not CHUNK_STEP <= size <= LARGEST_CHUNK:
        raise BadInput(f"{item}: chunk_size is {format_size(size)}, and dm-cache accepts only multiples of 32 KiB from 32 KiB to 1 GiB.", item=item)


def effective_migration_threshold(requested: int | None, block_size: int) -> int:
    """Sectors of 512 bytes that really apply: never less than eight blocks, below which the kernel comes to a standstill."""
    return max(requested if requested is not None else DEFAULT_MIGRATION_THRESHOLD, 8 * block_size // SECTOR)
