# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""flashcache devices as entries of ``block_cache_caches``."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.description import IGNORED_FLUSHES, candidate_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import read_running
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.settings import VOCABULARY
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.sizes import size_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import (
    DEFAULT_ASSOCIATIVITY,
    DEFAULT_BLOCK,
    DEFAULT_METADATA_BLOCK,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, exact_size

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.output import Table
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


def candidates_of(caches: t.Sequence[CacheState], devices: Devices, runner: Runner, root: Path, every: bool) -> list[Candidate]:
    # What a cache was made with, by name; a cache that only lies on its SSD is in no such table.
    running = read_running(devices, runner, root)
    found = []
    for cache in caches:
        fields: dict[str, t.Any] = {"name": cache.name, "origin": cache.origin}
        # Without a size the cache has all of its device, and flashcache does not keep which size was asked for.
        alternatives: list[dict[str, t.Any]] = [{}]
        if cache.name in running:
            table = running[cache.name].table
            fields.update(_geometry(table))
            metadata = table.metadata_block_size or DEFAULT_METADATA_BLOCK if table.mode == "writeback" else None
            alternatives.append({"size": exact_size(size_of(table.total, table.block_size, table.associativity, metadata))})
        found.append(candidate_of(cache, devices, fields, VOCABULARY, alternatives=alternatives, permissions=(IGNORED_FLUSHES,), every=every))
    return found


def _geometry(table: Table) -> dict[str, t.Any]:
    """What a cache was made with, without what every cache is made with."""
    found: dict[str, t.Any] = {"write_only": True} if table.write_only else {}
    if table.associativity != DEFAULT_ASSOCIATIVITY:
        found["associativity"] = table.associativity
    usual = {"chunk_size": DEFAULT_BLOCK, "metadata_block_size": DEFAULT_METADATA_BLOCK, "disk_associativity": 0}
    sizes = {"chunk_size": table.block_size, "metadata_block_size": table.metadata_block_size, "disk_associativity": table.disk_associativity}
    found.update({key: exact_size(size) for key, size in sizes.items() if size is not None and size != usual[key]})
    return found
