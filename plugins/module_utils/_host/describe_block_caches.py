# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSD caches of a host as ``block_cache_caches``, each proven by the layer of its type."""

from __future__ import annotations

import contextlib
import functools
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import description as bcache_description
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import read_registered
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import description as dm_cache_description
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import description as enhanceio_description
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio.boot import read_units
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import description as flashcache_description
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.host import read_running
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import description as lvm_description
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import READERS
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Entry, Objection, Values, Variable, objection_of, prove
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._host.cache_types import layer_of, specification_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

VARIABLE = "block_cache_caches"

Make = t.Callable[[t.Any, t.Sequence[t.Any], Path], "Layer[t.Any, t.Any]"]


@frozen
class CacheType:
    """How caches of one type are described and proven.

    :param candidates: from the caches, the devices, the runner, the root and whether every setting is wanted.
    :param read_items: reads entries, as the module of the type does.
    :param make_layer: the layer of that specification; what it reads is read once.
    """

    candidates: t.Callable[[t.Sequence[CacheState], Devices, Runner, Path, bool], t.Sequence[Candidate]]
    read_items: t.Callable[[t.Sequence[t.Any]], t.Sequence[t.Any]]
    make_layer: Make


# Each with the same arguments, of which not every type needs all.


def _lvm_cache(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, _root: Path, every: bool) -> list[Candidate]:
    return lvm_description.candidates_of(caches, devices, every=every)


def _dm_cache(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, _root: Path, every: bool) -> list[Candidate]:
    return dm_cache_description.candidates_of(caches, devices, every=every)


def _bcache(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, root: Path, every: bool) -> list[Candidate]:
    return bcache_description.candidates_of(caches, devices, read_registered(Sysfs(root)), every=every)


def _flashcache(caches: t.Sequence[CacheState], devices: Devices, runner: Runner, root: Path, every: bool) -> list[Candidate]:
    return flashcache_description.candidates_of(caches, devices, read_running(devices, runner, root), every=every)


def _enhanceio(caches: t.Sequence[CacheState], devices: Devices, _runner: Runner, root: Path, every: bool) -> list[Candidate]:
    return enhanceio_description.candidates_of(caches, devices, read_units(root), every=every)


def _cache_type(kind: str, candidates: t.Any) -> CacheType:
    return CacheType(candidates, lambda entries: specification_of(kind).read_items(entries), functools.partial(layer_of, kind))


CACHE_TYPES: t.Mapping[str, CacheType] = {
    name: _cache_type(name, candidates)
    for name, candidates in (
        ("lvm_cache", _lvm_cache),
        ("dm_cache", _dm_cache),
        ("bcache", _bcache),
        ("flashcache", _flashcache),
        ("enhanceio", _enhanceio),
    )
}


def describe(runner: Runner, devices: Devices, root: Path = Path("/"), *, every: bool = False, types: t.Optional[t.Mapping[str, CacheType]] = None) -> Variable:
    """Every SSD cache of the host; a type that cannot be read is a note, and the others are described all the same."""
    entries: list[Entry] = []
    notes: list[str] = []
    for name, kind in (CACHE_TYPES if types is None else types).items():
        try:
            found, left_out = describe_type(kind, READERS[name](devices, runner, root), devices, runner, root, every=every)
        except StorageError as error:
            found, left_out = (), (f"The caches of type {name} could not be read: {error.message}",)
        entries += found
        notes += left_out
    return Variable(VARIABLE, tuple(entries), notes=tuple(notes))


def describe_type(
    kind: CacheType, caches: t.Sequence[CacheState], devices: Devices, runner: Runner, root: Path, *, every: bool = False
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """The entries of one type, and a sentence for each cache that is not described."""
    broken = [f"The {cache.type} {cache.name} is not described: {cache.problem}" for cache in caches if cache.state not in ("ok", "inactive")]
    candidates = kind.candidates([cache for cache in caches if cache.state in ("ok", "inactive")], devices, runner, root, every)
    if not candidates:
        return (), tuple(broken)
    entries, notes = prove(candidates, _checker(kind, candidates, runner, root))
    return entries, (*broken, *notes)


def _checker(kind: CacheType, candidates: t.Sequence[Candidate], runner: Runner, root: Path) -> t.Callable[[t.Sequence[Values]], Objection | None]:
    """The host is read once for all entries that may be written, by the layer that would make them."""
    readable: list[t.Any] = []
    for candidate in candidates:
        for form in candidate.forms:
            for entry in (_whole(candidate, form), form):
                # What cannot be read as an entry is refused by the check of the form, which says why.
                with contextlib.suppress(StorageError):
                    readable += kind.read_items([entry])
    state = kind.make_layer(runner, readable, root).read()
    return lambda entries: objection_of(lambda: kind.make_layer(runner, kind.read_items(entries), root), state)


def _whole(candidate: Candidate, form: Values) -> Values:
    """A form with every permission and setting, so that the layer reads whatever one of its entries needs."""
    allowed = {one.option: True for one in (*candidate.required, *candidate.permissions)}
    settings = {path[-1]: value for path, value in candidate.extras[0].items() if path[0] == "settings"}
    return {**form, **allowed, **({"settings": settings} if settings else {})}
