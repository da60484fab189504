# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The SSD caches of a host as ``block_cache_caches``, each proven by the layer of its type."""

from __future__ import annotations

import contextlib
import functools
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import READERS
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.description import Candidate, Entry, Objection, Values, Variable, objection_of, prove
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._host.cache_types import code_of, layer_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

VARIABLE = "block_cache_caches"


@frozen
class Described:
    """How caches of one type are described and proven.

    :param candidates: from the caches, the devices, the runner, the root and whether every setting is wanted.
    :param read_items: reads entries, as the module of the type does.
    :param make_layer: the layer of that specification; what it reads is read once.
    """

    candidates: t.Callable[[t.Sequence[CacheState], Devices, Runner, Path, bool], t.Sequence[Candidate]]
    read_items: t.Callable[[t.Sequence[t.Any]], t.Sequence[t.Any]]
    make_layer: t.Callable[[t.Any, t.Sequence[t.Any], Path], Layer[t.Any, t.Any]]


def described(name: str) -> Described:
    """How caches of a type are described and proven."""
    code = code_of(name)
    return Described(code.candidates, code.spec.read_items, functools.partial(layer_of, name))


def describe(runner: Runner, devices: Devices, root: Path = Path("/"), *, every: bool = False, types: t.Optional[t.Mapping[str, Described]] = None) -> Variable:
    """Every SSD cache of the host; a type that cannot be read is a note, and the others are described all the same."""
    entries: list[Entry] = []
    notes: list[str] = []
    for name in TYPES if types is None else types:
        try:
            kind = described(name) if types is None else types[name]
            found, left_out = describe_type(kind, READERS[name](devices, runner, root), devices, runner, root, every=every)
        except StorageError as error:
            found, left_out = (), (f"The caches of type {name} could not be read: {error.message}",)
        entries += found
        notes += left_out
    return Variable(VARIABLE, tuple(entries), notes=tuple(notes))


def describe_type(
    kind: Described, caches: t.Sequence[CacheState], devices: Devices, runner: Runner, root: Path, *, every: bool = False
) -> tuple[tuple[Entry, ...], tuple[str, ...]]:
    """The entries of one type, and a sentence for each cache that is not described."""
    broken = [f"The {cache.type} {cache.name} is not described: {cache.problem}" for cache in caches if cache.state not in ("ok", "inactive")]
    candidates = kind.candidates([cache for cache in caches if cache.state in ("ok", "inactive")], devices, runner, root, every)
    if not candidates:
        return (), tuple(broken)
    entries, notes = prove(candidates, _checker(kind, candidates, runner, root))
    return entries, (*broken, *notes)


def _checker(kind: Described, candidates: t.Sequence[Candidate], runner: Runner, root: Path) -> t.Callable[[t.Sequence[Values]], Objection | None]:
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
