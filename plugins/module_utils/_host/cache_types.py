# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The code of each type of SSD caches, imported when a host has one."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

if t.TYPE_CHECKING:
    from types import ModuleType

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer

    AnyLayer = Layer[t.Any, t.Any]


@frozen
class Code:
    """What configures caches of one type.

    :param spec: has ``CACHE_OPTIONS``, and ``read_items`` for entries that were checked with them.
    :param layer: the class of their layer.
    :param candidates: how present caches may be written as entries, see ``_host/describe_block_caches.py``.
    """

    spec: ModuleType
    layer: t.Callable[..., AnyLayer]
    candidates: t.Callable[..., t.Sequence[t.Any]]


# Imported by name: Ansible sends to a host only what it finds in import statements.


def _lvm_cache() -> Code:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import description, layer, spec

    return Code(spec, layer.LvmCacheLayer, description.candidates_of)


def _dm_cache() -> Code:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import description, layer, spec

    return Code(spec, layer.DmCacheLayer, description.candidates_of)


def _bcache() -> Code:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import description, layer, spec

    return Code(spec, layer.BcacheLayer, description.candidates_of)


def _flashcache() -> Code:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import description, layer, spec

    return Code(spec, layer.FlashcacheLayer, description.candidates_of)


def _enhanceio() -> Code:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import description, layer, spec

    return Code(spec, layer.EnhanceIOLayer, description.candidates_of)


_CODE: t.Mapping[str, t.Callable[[], Code]] = {
    "lvm_cache": _lvm_cache,
    "dm_cache": _dm_cache,
    "bcache": _bcache,
    "flashcache": _flashcache,
    "enhanceio": _enhanceio,
}


def code_of(kind: str) -> Code:
    """What configures caches of one type."""
    return _CODE[kind]()


def layer_of(
    kind: str, runner: t.Any, specs: t.Sequence[t.Any], root: Path, *, kernel_module: str = "", declared: t.Mapping[str, t.Sequence[str]] | None = None
) -> AnyLayer:
    """The layer of caches of one type.

    :param specs: as ``read_items`` of the type returns them.
    :param kernel_module: of a type with its own tools, if it is not called like the type.
    :param declared: ``protected`` and ``flushed`` of :class:`VolatileBelow`, for such a type: what is volatile below its caches is read.
    """
    layer = code_of(kind).layer
    if not CACHE_TYPES[kind].has_tools:
        return layer(runner, specs, root)
    from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import VolatileBelow

    below = VolatileBelow(runner, root=root, **(declared or {}))
    return layer(runner, specs, root, volatile_below=below, kernel_module=kernel_module or kind)
