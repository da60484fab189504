# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The types of caches that have a model, as data: another one is a file with its simulation, and a line here."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import bcache, smq, writecache

#: An ideal cache of the least recently used blocks, which fills with reads and writes.
IDEAL = "lru"


@dataclasses.dataclass(frozen=True)
class Model:
    """One type.

    :param simulate: load, bytes, mode and settings to an outcome.
    :param settings: makes the default ones.
    :param entry: what the type is in ``block_cache_caches``.
    :param modes: that are modelled; ``block`` is the usual block in bytes.
    :param margin: by so much the simulation may differ from the cache itself, as a share of the requests, by what scripts/curves-test has counted.
    :param size: whether it may have a size, and its blocks: the others use the whole device and any block.
    :param others: settings to those that they may be as well, because a trace does not show it; the interval reaches over the hits of all.
    """

    simulate: t.Callable[..., t.Any]
    settings: t.Callable[[], t.Any]
    entry: t.Mapping[str, t.Any]
    modes: tuple[str, ...] = ("writeback", "writethrough")
    block: int = 4 * KIB
    margin: float = 0.02
    size: bool = True
    others: t.Callable[[t.Any], t.Sequence[t.Any]] = lambda _settings: ()


MODELS: t.Mapping[str, Model] = {
    "bcache": Model(bcache.simulate, bcache.BcacheSettings, {"type": "bcache"}, ("writeback", "writethrough", "writearound"), size=False),
    "dm_cache": Model(smq.simulate, smq.SmqSettings, {"type": "dm_cache"}, block=64 * KIB, margin=0.05),
    "writecache": Model(
        writecache.simulate, writecache.WritecacheSettings, {"type": "dm_cache", "kind": "writecache"}, ("writeback",), others=writecache.others
    ),
}
