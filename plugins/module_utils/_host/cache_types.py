# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The five types of SSD caches: the specification and the layer of each, imported when a host has one."""

from __future__ import annotations

import typing as t
from pathlib import Path

if t.TYPE_CHECKING:
    from types import ModuleType

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer

    AnyLayer = Layer[t.Any, t.Any]


def specification_of(kind: str) -> ModuleType:
    """What has ``CACHE_OPTIONS``, and ``read_items`` for entries that were checked with them."""
    # Imported by name: Ansible sends to a host only what it finds in import statements.
    if kind == "lvm_cache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import spec as lvm

        return lvm
    if kind == "dm_cache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import spec as dm_cache

        return dm_cache
    if kind == "bcache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import spec as bcache

        return bcache
    if kind == "flashcache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import spec as flashcache

        return flashcache
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import spec as enhanceio

    return enhanceio


def layer_of(
    kind: str, runner: t.Any, specs: t.Sequence[t.Any], root: Path, *, kernel_module: str = "", declared: t.Mapping[str, t.Sequence[str]] | None = None
) -> AnyLayer:
    """The layer of caches of one type.

    :param specs: as ``read_items`` of the type returns them.
    :param kernel_module: of flashcache and EnhanceIO, if it is not called like the type.
    :param declared: ``protected`` and ``flushed`` of :class:`VolatileBelow`, for the types that pass no flushes down.
    """
    if kind == "lvm_cache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer

        return LvmCacheLayer(runner, specs, root)
    if kind == "dm_cache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.layer import DmCacheLayer

        return DmCacheLayer(runner, specs, root)
    if kind == "bcache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.layer import BcacheLayer

        return BcacheLayer(runner, specs, root)
    return _layer_without_flushes(kind, runner, specs, root, kernel_module or kind, declared or {})


def _layer_without_flushes(
    kind: str, runner: t.Any, specs: t.Sequence[t.Any], root: Path, kernel_module: str, declared: t.Mapping[str, t.Sequence[str]]
) -> AnyLayer:
    """A layer that passes no flushes down: what is volatile below it is read."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import VolatileBelow

    below = VolatileBelow(runner, root=root, **declared)
    if kind == "flashcache":
        from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.layer import FlashcacheLayer

        return FlashcacheLayer(runner, specs, root, volatile_below=below, kernel_module=kernel_module)
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.layer import EnhanceIOLayer

    return EnhanceIOLayer(runner, specs, root, module=kernel_module, volatile_below=below)
