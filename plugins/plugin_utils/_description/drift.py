# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The inventory of a host beside what is there."""

from __future__ import annotations

import difflib
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.read import VARIABLES, Description
from ansible_collections.cachefleet.storage.plugins.plugin_utils._description.variables_text import dump

#: What is compared: proposals for measurements say nothing of the host.
COMPARED = tuple(name for name in VARIABLES if name != "fio_benchmark_targets")
#: What names an entry of a list; entries may stand in any order.
_IDENTITIES = ("device", "interface", "mac", "name", "origin", "wwn", "address", "module", "shelf", "slot", "provider", "serial", "id")


def drift(inventory: t.Mapping[str, t.Any], description: Description) -> list[str]:
    """The variables that the host would be described by in another way than by its inventory."""
    found = description.contents()
    return [name for name in _described(description) if _comparable(inventory.get(name)) != _comparable(found.get(name))]


def _described(description: Description) -> list[str]:
    """What can be compared: a layer that was not asked for says nothing."""
    return [variable.name for variable in description.variables if variable.name in COMPARED]


def texts(inventory: t.Mapping[str, t.Any], description: Description) -> tuple[str, str]:
    """The variables of the inventory and those of the host as YAML; of each only those that one of the two has."""
    names = _described(description)
    return _text(inventory, names), _text(description.contents(), names)


def _text(contents: t.Mapping[str, t.Any], names: t.Iterable[str]) -> str:
    return "".join(dump({name: _sorted(contents[name])}) for name in names if contents.get(name))


def unified(before: str, after: str, headers: t.Sequence[str]) -> str:
    """Both texts as one difference, empty if they are the same."""
    return "".join(difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), *headers))


def _sorted(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _sorted(one) for key, one in value.items()}
    if not isinstance(value, list):
        return value
    return sorted((_sorted(one) for one in value), key=_place) if all(isinstance(one, dict) for one in value) else value


def _place(entry: t.Mapping[str, t.Any]) -> str:
    return repr([str(entry.get(key, "")) for key in _IDENTITIES])


def _comparable(value: t.Any) -> t.Any:
    """A list that is empty, a variable that is not set, and 0 for what is not set are the same."""
    return _keys_sorted(_sorted(value)) or None


def _keys_sorted(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: _keys_sorted(value[key]) for key in sorted(value, key=str)}
    return [_keys_sorted(one) for one in value] if isinstance(value, list) else value
