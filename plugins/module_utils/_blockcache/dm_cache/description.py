# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches of device-mapper without LVM as entries of ``block_cache_caches``."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.description import candidate_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import KINDS
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import CACHE, KIND_WRITECACHE, WRITECACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, exact_size

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


def candidates_of(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, _root: Path, every: bool) -> list[Candidate]:
    """One candidate for each cache. Its size is written where it is that of the data of the cache; of a writecache the kernel shows less."""
    found = []
    for cache in caches:
        writecache = cache.kind == KIND_WRITECACHE
        fields: dict[str, t.Any] = {"name": cache.name, "origin": cache.origin}
        if cache.kind != KINDS[0]:
            fields["kind"] = cache.kind
        if not writecache and cache.block_size is not None:
            fields["chunk_size"] = exact_size(cache.block_size)
        alternatives = [{"size": exact_size(cache.size)}, {}] if cache.size else [{}]
        found.append(candidate_of(cache, devices, fields, WRITECACHE if writecache else CACHE, alternatives=alternatives, every=every))
    return found
