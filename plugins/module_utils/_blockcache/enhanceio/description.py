# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EnhanceIO caches as entries of ``block_cache_caches``."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.description import IGNORED_FLUSHES, candidate_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import AtBoot, read_units
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.settings import VOCABULARY
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, exact_size

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


def candidates_of(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, root: Path, every: bool) -> list[Candidate]:
    """One candidate for each cache, with the settings that its unit makes at boot."""
    units = read_units(root)
    found = []
    for cache in caches:
        fields: dict[str, t.Any] = {"name": cache.name, "origin": cache.origin, "policy": cache.policy}
        if cache.block_size is not None:
            fields["chunk_size"] = exact_size(cache.block_size)
        found.append(
            candidate_of(cache, devices, fields, VOCABULARY, permissions=(IGNORED_FLUSHES,), kept=AtBoot(units.get(cache.name, "")).settings, every=every)
        )
    return found
