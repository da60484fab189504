# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variants as data: named partial configurations, and the product of axes without what is excluded. Pure.

Lists of a variant are joined by the identity of their entries, so that each axis sets only its own options of a drive, volume or cache.
"""

from __future__ import annotations

import itertools
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component

Values = t.Mapping[str, t.Any]

DRIVES, CONTROLLERS, CACHES, QUEUES = "drive_write_cache_drives", "raid_cache_controllers", "block_cache_caches", "block_queue_devices"
LINKS = "storage_network_links"
#: The variables of cache layers that a variant may set.
LAYER_VARIABLES = (DRIVES, CONTROLLERS, CACHES, QUEUES, LINKS)
#: What a variant measures instead of the targets of the host; a list that is replaced as a whole.
TARGETS = "fio_benchmark_targets"
VARIABLES = (*LAYER_VARIABLES, TARGETS)
#: What identifies an entry of a list, as the user wrote it; the first that is given.
IDENTITIES: t.Mapping[str, tuple[str, ...]] = {
    DRIVES: ("device",),
    CONTROLLERS: ("serial", "id"),
    CACHES: ("name",),
    QUEUES: ("device",),
    LINKS: ("interface",),
    "volumes": ("wwn", "name", "id"),
    "drives": ("address",),
}
#: Options that are read here, whatever their layer makes of them: those that identify an item, and dictionaries that are joined.
_IDENTIFYING = frozenset({"device", "serial", "id", "name", "wwn", "address", "type", "origin", "interface", "mtu"})
_DICTIONARIES: t.Mapping[str, tuple[str, ...]] = {CONTROLLERS: ("maxcache", "drive_cache"), "volumes": ("maxcache",), CACHES: ("settings",)}
#: More cannot be meant: each is measured several times.
_MOST = 1000


@dataclass(frozen=True)
class Variant:
    """A name and the variables that it sets; everything else is as it was found."""

    name: str
    variables: Values


def read_variants(variants: t.Any, axes: t.Any = None, exclude: t.Any = None, *, baseline: str = "") -> list[Variant]:
    """The variants of a host, in their order: those that are listed, then the product of the axes.

    :param variants: a list of dictionaries with ``name`` and variables.
    :param axes: axis → value → variables.
    :param exclude: dictionaries of axis → a value or a list of values; a member of the product that matches all of one is left out.
    :param baseline: the name that is reserved for the configuration that was found.
    :raises BadInput: in one sentence.
    """
    if baseline:
        component(baseline, "variant (sweep_baseline)")
    found = [*_listed(variants or []), *_product(axes or {}, exclude or [])]
    if not found:
        raise BadInput("There is no variant: set sweep_variants or sweep_axes.")
    names = [baseline, *(one.name for one in found)]
    for place, name in enumerate(names):
        if name in names[:place]:
            taken = "the configuration that was found (sweep_baseline)" if name == baseline else "another variant"
            raise BadInput(f"The variant {name} has the same name as {taken}: give each variant a name of its own.", item=name)
    return found


def _listed(variants: t.Any) -> t.Iterator[Variant]:
    if not isinstance(variants, (list, tuple)):
        raise BadInput("sweep_variants must be a list of dictionaries, each with a name and variables.")
    for entry in variants:
        if not isinstance(entry, t.Mapping) or entry.get("name") in (None, ""):
            raise BadInput("sweep_variants: each variant must be a dictionary with a name.")
        name = component(_word(entry["name"]), "variant")
        yield Variant(name, checked_variables({key: value for key, value in entry.items() if key != "name"}, f"sweep_variants: {name}"))


def _product(axes: t.Any, exclude: t.Any) -> list[Variant]:
    values = _axes(axes)
    exclusions = _exclusions(exclude, values)
    if not values:
        return []
    members = list(itertools.islice(itertools.product(*(named.items() for named in values.values())), _MOST + 1))
    if len(members) > _MOST:
        raise BadInput(f"sweep_axes: the product has more than {_MOST} variants: remove values or axes.")
    found = []
    for member in members:
        chosen = {axis: value for axis, (value, _variables) in zip(values, member, strict=True)}
        if any(all(chosen[axis] in excluded for axis, excluded in one.items()) for one in exclusions):
            continue
        name = component("-".join(f"{axis}_{value}" for axis, value in chosen.items()), "variant")
        variables: dict[str, t.Any] = {}
        for _value, part in member:
            variables = join(variables, part, name)
        found.append(Variant(name, variables))
    if not found:
        raise BadInput("sweep_exclude leaves no variant of sweep_axes: remove an exclusion.")
    return found


def _axes(axes: t.Any) -> dict[str, dict[str, Values]]:
    if not isinstance(axes, t.Mapping):
        raise BadInput("sweep_axes must be a dictionary of axes, each a dictionary of values with their variables.")
    found: dict[str, dict[str, Values]] = {}
    for key, values in axes.items():
        axis = component(_word(key), "axis")
        if not isinstance(values, t.Mapping) or not values:
            raise BadInput(f"sweep_axes: the axis {axis} has no values: give it a dictionary of values with their variables.", item=axis)
        _require_distinct(axes, "sweep_axes: there are two axes")
        _require_distinct(values, f"sweep_axes: the axis {axis} has two values")
        found[axis] = {component(_word(value), "value"): checked_variables(part or {}, f"sweep_axes: {axis}: {_word(value)}") for value, part in values.items()}
    return found


def _require_distinct(keys: t.Iterable[t.Any], what: str) -> None:
    """:raises BadInput: for keys that are different to YAML, as on and 'on' are, and have one name."""
    words = [_word(key) for key in keys]
    for place, word in enumerate(words):
        if word in words[:place]:
            raise BadInput(f"{what} {word}: give each a name of its own.", item=word)


def _exclusions(exclude: t.Any, axes: t.Mapping[str, t.Mapping[str, t.Any]]) -> list[dict[str, list[str]]]:
    if not isinstance(exclude, (list, tuple)) or not all(isinstance(one, t.Mapping) and one for one in exclude):
        raise BadInput("sweep_exclude must be a list of dictionaries of axes and their values.")
    found = []
    for one in exclude:
        entry = {_word(axis): [_word(value) for value in (values if isinstance(values, (list, tuple)) else [values])] for axis, values in one.items()}
        for axis, values in entry.items():
            if axis not in axes:
                raise BadInput(f"sweep_exclude: there is no axis {axis}; the axes are {', '.join(axes) or 'none'}.", item=axis)
            for value in values:
                if value not in axes[axis]:
                    raise BadInput(f"sweep_exclude: the axis {axis} has no value {value}; its values are {', '.join(axes[axis])}.", item=axis)
        found.append(entry)
    return found


def _word(value: t.Any) -> str:
    """YAML reads on, off, yes and no as booleans, and they are what people call the values of an axis."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def checked_variables(variables: t.Any, where: str) -> dict[str, t.Any]:
    """:raises BadInput: for what is no variable of a cache layer, and for entries that cannot be identified."""
    if not isinstance(variables, t.Mapping):
        raise BadInput(f"{where}: it must be a dictionary of variables.")
    for name, entries in variables.items():
        if name not in VARIABLES:
            raise BadInput(f"{where}: {name} cannot be varied; a variant may set {', '.join(VARIABLES)}.", item=str(name))
        require_options(str(name), entries, f"{where}: {name}")
        if name in LAYER_VARIABLES:
            _check_entries(name, entries, f"{where}: {name}")
    return dict(variables)


def require_options(kind: str, entries: t.Any, where: str) -> None:
    """:raises BadInput: for what is no list of dictionaries, or has an option of another kind than is read here."""
    if not isinstance(entries, (list, tuple)) or not all(isinstance(entry, t.Mapping) for entry in entries):
        raise BadInput(f"{where} must be a list of dictionaries.")
    for key, value in ((key, value) for entry in entries for key, value in entry.items()):
        if key in _IDENTIFYING and isinstance(value, (t.Mapping, list, tuple)):
            raise BadInput(f"{where}: {key} must be a text or a number.")
        if key in _DICTIONARIES.get(kind, ()) and value is not None and not isinstance(value, t.Mapping):
            raise BadInput(f"{where}: {key} must be a dictionary.")


def _check_entries(kind: str, entries: t.Sequence[Values], where: str) -> None:
    seen = set()
    for entry in entries:
        if "match" in entry and kind in (QUEUES, DRIVES, "drives"):
            raise BadInput(f"{where}: an entry of a variant must name its {IDENTITIES[kind][0]}; match is not supported.")
        identity = identity_of(kind, entry)
        if identity is None and kind != CONTROLLERS:
            raise BadInput(f"{where}: an entry has no {' or '.join(IDENTITIES[kind])}.")
        if kind == LINKS and (set(entry) != {"interface", "mtu"} or not str(entry["mtu"]).isdigit()):
            raise BadInput(f"{where}: an entry of a variant consists of interface and mtu, a number.", item=str(identity))
        if identity in seen:
            raise BadInput(f"{where}: {identity} is listed twice.", item=str(identity))
        seen.add(identity)
        for nested in ("volumes", "drives") if kind == CONTROLLERS else ():
            require_options(nested, entry.get(nested) or [], f"{where}: {nested}")
            _check_entries(nested, entry.get(nested) or [], f"{where}: {nested}")


def identity_of(kind: str, entry: Values) -> str | None:
    """What identifies an entry, as the user wrote it."""
    return next((str(entry[key]) for key in IDENTITIES[kind] if entry.get(key) not in (None, "")), None)


def join(one: Values, other: Values, name: str) -> dict[str, t.Any]:
    """Two parts of one variant.

    :raises BadInput: if both set an option of an item to different values.
    """
    joined = dict(one)
    for variable, entries in other.items():
        if variable in joined and variable in LAYER_VARIABLES:
            joined[variable] = _join_lists(variable, joined[variable], entries, f"{name}: {variable}")
        elif variable in joined and joined[variable] != entries:
            raise BadInput(f"{name}: two axes set {variable}: set it in one of them.", item=name)
        else:
            joined[variable] = entries
    return joined


def _join_lists(kind: str, one: t.Sequence[Values], other: t.Sequence[Values], where: str) -> list[dict[str, t.Any]]:
    places = {identity_of(kind, entry): dict(entry) for entry in one}
    for entry in other:
        identity = identity_of(kind, entry)
        places[identity] = _join_entries(places.get(identity, {}), entry, f"{where}: {identity or 'the controller'}")
    return list(places.values())


def _join_entries(one: Values, other: Values, where: str) -> dict[str, t.Any]:
    joined = dict(one)
    for key, value in other.items():
        before = joined.get(key)
        if before is None or before == value:
            joined[key] = value
        elif key in ("volumes", "drives"):
            joined[key] = _join_lists(key, before, value, where)
        elif isinstance(before, t.Mapping) and isinstance(value, t.Mapping):
            joined[key] = _join_entries(before, value, f"{where}: {key}")
        else:
            raise BadInput(f"{where}: two axes set {key}, to {before} and {value}: set it in one of them.", item=where)
    return joined
