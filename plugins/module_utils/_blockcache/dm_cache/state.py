# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The host as the plans of raw caches see it, and warnings about it."""

from __future__ import annotations

import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.boot_unit import unit_name
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, STALE_MEMBER
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import facts as dm_cache_facts
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.facts import Kernel
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.record import LAYER, Record, Tools
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import LinearTable
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import Starter
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import Expected
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin

#: What a cache of ours leaves on its device, in the words of ``signatures.py``.
OUR_METADATA = frozenset({"dm-cache metadata", "dm-writecache metadata"})


@frozen
class DmCacheState:
    """The host as it is.

    :param records: what was requested before, by name; ``units`` the texts of those that are brought up at boot.
    :param heads: what is on the cache devices of the records, by path, in the words of ``signatures.py``; None if the device is not there.
    :param origins: what wanted origins without a cache are used by, and the block size of what they carry (None: nothing), by path.
    :param caches: every raw cache, as a result of the module.
    :param found: what the origins of items that need not have a cache belong to, by the name of the item.
    :param starters: what a boot starts from the origins of the items.
    """

    kernel: Kernel
    devices: Devices
    ground: HostDevices
    tools: Tools
    records: t.Mapping[str, Record] = field(default_factory=dict)
    units: t.Mapping[str, str] = field(default_factory=dict)
    heads: t.Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    origins: t.Mapping[str, OriginContent] = field(default_factory=dict)
    caches: tuple[CacheState, ...] = ()
    found: t.Mapping[str, Origin] = field(default_factory=dict)
    starters: tuple[Starter, ...] = ()
    root: Path = Path("/")

    def without(self, leaving: Expected) -> DmCacheState:
        """The same once caches are removed."""
        return replace(
            self,
            kernel=replace(self.kernel, mappings=leaving.rest(LAYER, self.kernel.mappings)),
            devices=leaving.without(self.devices),
            ground=self.ground.without(leaving),
            records=leaving.rest(LAYER, self.records),
            units=leaving.rest(LAYER, self.units),
        )


@frozen
class OriginContent:
    """What an origin is used by, and the smallest block that its content counts on.

    :param users: each as the rest of a sentence about it.
    :param block_size: bytes; 0 if nothing is known to be on it.
    """

    users: tuple[str, ...] = ()
    block_size: int = 0


def counted_dirty(state: DmCacheState, name: str) -> str:
    """Of a cache that writes through and whose blocks count as dirty all the same: what that is and how it ends; else nothing.

    The record of a cache contains writethrough only after a flush, so that the origin has everything.
    """
    mapping, record, status = state.kernel.mappings.get(name), state.records.get(name), state.kernel.status.get(name)
    table = mapping.table if mapping is not None else None
    if not isinstance(table, tables.CacheTable) or table.kind != tables.CACHE or not table.settled or status is None or not status.dirty:
        return ""
    if record is None or record.may_be_dirty:
        return ""
    unit = unit_name(LAYER, name)
    return (
        f"/dev/mapper/{name} writes through, so that nothing depends on its cache, and the kernel counts {status.dirty} blocks of the cache as dirty all the"
        " same: its metadata was not closed cleanly when the host went down, or a flush was interrupted. It writes them back while nothing else is to do;"
        f" state: flushed does it at once, and systemctl stop {unit} and systemctl start {unit} end it permanently."
    )


def problems(state: DmCacheState) -> list[str]:
    """Warnings about caches that are left as they are."""
    found = []
    for name, mapping in state.kernel.mappings.items():
        if tables.parse_uuid(mapping.uuid) != ("top", name):
            continue
        attached = dm_cache_facts.attached_of(mapping, state.kernel, state.devices)
        if isinstance(mapping.table, LinearTable):
            found.append(
                f"/dev/mapper/{name} has no cache any more and remains as a linear mapping of its origin, because it is in use: unmount it, mount the origin"
                " instead, and run again with state: absent to remove the name; or attach a cache again."
            )
        elif attached is not None and not attached.table.settled and state.ground.redundancy([attached.cache_name or ""]) == DEGRADED:
            found.append(
                f"/dev/mapper/{name} has a write-back cache on a mirror that is degraded: its newest data is only on what is left of the mirror."
                f" Replace the member that failed, or change to mode writethrough, which flushes. {STALE_MEMBER}"
            )
    found += [cache.problem for cache in state.caches if cache.problem]
    return found
