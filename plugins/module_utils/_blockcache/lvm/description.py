# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""LVM caches as entries of ``block_cache_caches``."""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.description import candidate_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import CACHE, KIND_WRITECACHE, WRITECACHE
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import KINDS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, exact_size

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


#: LVM ends the names of the hidden data volumes of pools so, and no other volume may have such a name.
_DATA_OF_POOL = re.compile(r"_[tv]data$")


def candidates_of(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, _root: Path, every: bool) -> list[Candidate]:
    """One candidate for each cache, named after its volume, or the pool whose data that is: LVM keeps no other name."""
    origins = [_DATA_OF_POOL.sub("", cache.name) for cache in caches]
    volumes = [origin.rpartition("/")[2] for origin in origins]
    names = [volume if volumes.count(volume) == 1 else origin.replace("/", "-") for origin, volume in zip(origins, volumes)]
    return [_candidate(cache, origin, name, devices, every) for cache, origin, name in zip(caches, origins, names)]


def _candidate(cache: CacheState, origin: str, name: str, devices: Devices, every: bool) -> Candidate:
    fields: dict[str, t.Any] = {"name": name, "origin": origin}
    if cache.kind != KINDS[0]:
        fields["kind"] = cache.kind
    if cache.size is not None:
        fields["size"] = exact_size(cache.size)
    if cache.kind != KIND_WRITECACHE and cache.block_size is not None:
        fields["chunk_size"] = exact_size(cache.block_size)
    return candidate_of(cache, devices, fields, WRITECACHE if cache.kind == KIND_WRITECACHE else CACHE, every=every)
