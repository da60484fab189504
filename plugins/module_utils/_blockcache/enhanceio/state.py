# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EnhanceIO as it is on a host: what the plan starts from, and warnings about it."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, STALE_MEMBER
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import LAYER, AtBoot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.facts import SWALLOWS, Cache, find
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import EnhanceIOSuperblock
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.origin import Starter
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.spec import EnhanceIOSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import Expected
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import Origin
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


@frozen
class EnhanceIOState:
    """EnhanceIO as it is.

    :param caches: those that run, by name.
    :param superblocks: what lies on devices that are named and that no cache runs on, by kernel name.
    :param boot: the files of each cache that is named.
    :param tools: absolute paths of :data:`boot.TOOLS`, as far as they are installed.
    :param module: the kernel module, ``module_there`` whether it is loaded or can be.
    :param kernel: the release of the kernel.
    :param found: what the origins of items that need not have a cache belong to, by the name of the item.
    :param volatile: what may lose acknowledged writes under a path in a power cut, sentences; only paths that it matters for.
    :param starters: what a boot starts from the origins of items although a rule hides them.
    """

    caches: t.Mapping[str, Cache]
    devices: Devices
    ground: HostDevices
    superblocks: t.Mapping[str, EnhanceIOSuperblock] = field(default_factory=dict)
    boot: t.Mapping[str, AtBoot] = field(default_factory=dict)
    tools: t.Mapping[str, str] = field(default_factory=dict)
    module: str = "enhanceio"
    module_there: bool = True
    kernel: str = ""
    volatile: t.Mapping[str, t.Sequence[str]] = field(default_factory=dict)
    found: t.Mapping[str, Origin] = field(default_factory=dict)
    starters: tuple[Starter, ...] = ()

    def without(self, leaving: Expected) -> EnhanceIOState:
        """The same once caches are removed."""
        return replace(
            self,
            caches=leaving.rest(LAYER, self.caches),
            devices=leaving.without(self.devices),
            ground=self.ground.without(leaving),
            superblocks={name: superblock for name, superblock in self.superblocks.items() if name not in leaving.emptied},
        )

    def users(self) -> dict[str, str]:
        """The name of the cache by the kernel name of the device that it lies on or caches."""
        named = [(cache.name, find(self.devices, path)) for cache in self.caches.values() for path in (cache.config.fast, cache.config.source)]
        return {device.name: name for name, device in named if device is not None}


def problems(state: EnhanceIOState) -> list[str]:
    """Warnings about caches that are left as they are, one sentence each."""
    found = []
    for cache in state.caches.values():
        fast = find(state.devices, cache.config.fast)
        if cache.config.mode in SWALLOWS and fast is not None and state.ground.redundancy([fast.name]) == DEGRADED:
            found.append(
                f"{cache.name} is a write-back cache on a mirror that is degraded: its newest data is only on what is left of the mirror."
                f" Replace the member that failed, or change to mode writethrough, which flushes. {STALE_MEMBER}"
            )
        if cache.config.state == "degraded":
            found.append(f"{cache.name} has lost its cache device {cache.config.fast}, and {cache.config.source} works without it.")
    return found


def half_flushed(state: EnhanceIOState, specs: t.Iterable[EnhanceIOSpec]) -> list[str]:
    """Warnings about caches that write through and are dirty: mode and dirty blocks are two facts, and an interrupted change leaves both."""
    found = [state.caches[spec.name] for spec in specs if spec.present and spec.name in state.caches]
    return [
        f"{cache.name}: mode {cache.config.mode} and still {format_size(cache.dirty)} dirty, which only the cache device has:"
        " change it to mode writeback and back again, which flushes it."
        for cache in found
        if cache.config.mode != "writeback" and cache.dirty
    ]
