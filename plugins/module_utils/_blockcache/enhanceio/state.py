# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""EnhanceIO as it is on a host: what the plan starts from."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import AtBoot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.facts import Cache, find
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.output import EnhanceIOSuperblock
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fast_device import HostDevices

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices


@dataclass(frozen=True)
class EnhanceIOState:
    """EnhanceIO as it is.

    :param caches: those that run, by name.
    :param superblocks: what lies on devices that are named and that no cache runs on, by kernel name.
    :param boot: the files of each cache that is named.
    :param tools: absolute paths of :data:`boot.TOOLS`, as far as they are installed.
    :param module: the kernel module, ``module_there`` whether it is loaded or can be.
    :param kernel: the release of the kernel.
    :param volatile: what may lose acknowledged writes under a path in a power cut, sentences; only paths that it matters for.
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

    def users(self) -> dict[str, str]:
        """The name of the cache by the kernel name of the device that it lies on or caches."""
        named = [(cache.name, find(self.devices, path)) for cache in self.caches.values() for path in (cache.config.fast, cache.config.source)]
        return {device.name: name for name, device in named if device is not None}
