# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many blocks flashcache makes of a device, and what they cost in memory.

Sources: ``flashcache_writeback_create`` and ``flashcache_writethrough_create`` of flashcache_conf.c; ``struct cacheblock`` of
flashcache.h and the estimate of flashcache_create.c.
"""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import METADATA_SLOT
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

#: Bytes of memory for every block of a cache that runs.
MEMORY_PER_BLOCK = 22
#: The part of the main memory beyond which flashcache_create prompts for confirmation.
MEMORY_SHARE = 0.25


def blocks_of(size: int, block_size: int, associativity: int, metadata_block_size: int | None) -> int:
    """The blocks of a cache on ``size`` bytes; a cache in write-back keeps its metadata there too, the others pass None."""
    sectors, block = size // SECTOR, block_size // SECTOR
    if metadata_block_size is not None:
        # The header and one block more than is needed, as flashcache counts.
        metadata_blocks = sectors // block // (metadata_block_size // METADATA_SLOT) + 2
        sectors -= metadata_blocks * (metadata_block_size // SECTOR)
    return max(sectors, 0) // block // associativity * associativity


def memory_of(size: int, block_size: int) -> int:
    """Bytes of main memory that flashcache_create expects of a cache on ``size`` bytes."""
    return size // block_size * MEMORY_PER_BLOCK


def size_of(blocks: int, block_size: int, associativity: int, metadata_block_size: int | None) -> int:
    """A size on which flashcache makes so many blocks: what :func:`blocks_of` counts, the other way around."""
    size = blocks * block_size
    while blocks_of(size, block_size, associativity, metadata_block_size) < blocks:
        size += max(block_size, metadata_block_size or 0)
    return size
