# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""bcache devices as entries of ``block_cache_caches``."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import read_registered
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.settings import VOCABULARY
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.description import candidate_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, exact_size

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


def candidates_of(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, root: Path, every: bool) -> list[Candidate]:
    """One candidate for each cached device; its name is the label in its superblock, or the UUID there.

    What make-bcache made has no label, and the name of the kernel is another one after the next boot. The UUID also names what has a label that is not
    a name of this collection, or that another one has too.
    """
    # It has labels and the sizes of buckets, which the type-independent state does not have.
    registered = read_registered(Sysfs(root))
    found = []
    for cache in caches:
        backing = registered.backings.get(cache.origin_name or "")
        cset = registered.sets.get((backing.set if backing is not None else "") or "")
        names = [name for name in ((backing.label, backing.uuid) if backing is not None else ()) if name] or [cache.name]
        fields: dict[str, t.Any] = {"name": names[0], "origin": cache.origin or f"/dev/{cache.origin_name}"}
        sizes = {"bucket_size": cset.bucket_size, "block_size": cset.block_size} if cset is not None else {}
        fields.update({key: exact_size(size) for key, size in sizes.items() if size is not None})
        found.append(candidate_of(cache, devices, fields, VOCABULARY, alternatives=[{"name": name} for name in names], every=every))
    return found
