# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Rows for ``layers`` and ``devices``, from ``stack.json`` and from what ``meta.json`` says of drives."""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.cell_rows import flag, mapping, optional_integer, optional_text, text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import DEVICES, LAYERS

SIDES = ("before", "after")

#: What is different at every look, and would make every stack one of its own.
_OF_THE_LOOK = frozenset({"read_at"})

_REALS = frozenset({"temperature_c", "wear_used_percent", "spare_percent"})
_WEAR = tuple(column.name for column in DEVICES.columns[-10:])
_LAYER_COLUMNS = tuple(column.name for column in LAYERS.series)


class Stacks:
    """The different stacks of one host, each once."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[t.Any, ...]]] = {}
        self._names: dict[str, str] = {}

    def add(self, side: t.Any) -> str | None:
        """What one side of a ``stack.json`` is called; ``None`` if it says nothing."""
        said = mapping(side)
        if not said:
            return None
        content = json.dumps({name: value for name, value in said.items() if name not in _OF_THE_LOOK}, sort_keys=True)
        if content not in self._names:
            name = hashlib.sha256(content.encode()).hexdigest()[:16]
            self._names[content] = name
            self._rows[name] = list(_rows(said))
        return self._names[content]

    def rows(self, key: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
        """One series for each stack."""
        for name, rows in self._rows.items():
            yield {**key, "stack": name, **{column: [row[place] for row in rows] for place, column in enumerate(_LAYER_COLUMNS)}}


def _rows(said: t.Mapping[str, t.Any]) -> t.Iterator[tuple[t.Any, ...]]:
    for name, value in said.items():
        if name != "layers" and name not in _OF_THE_LOOK:
            yield None, None, None, "verdict", text(name), _value(value)
    for level, layer in enumerate(_list(said.get("layers"))):
        device, kind = text(layer.get("name")), text(layer.get("kind"))
        for name, value in layer.items():
            if name == "queue":
                for setting, set_to in mapping(value).items():
                    yield level, device, kind, "queue", text(setting), _value(set_to)
            elif name == "caches":
                for cache in _list(value):
                    which = text(cache.get("layer")) or "cache"
                    for setting, set_to in cache.items():
                        if setting != "layer":
                            yield level, device, kind, which, text(setting), _value(set_to)
            elif name not in ("name", "kind"):
                yield level, device, kind, "device", text(name), _value(value)


def _list(value: t.Any) -> list[t.Mapping[str, t.Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _value(value: t.Any) -> str | None:
    if value is None or isinstance(value, str):
        return text(value)
    return json.dumps(value, sort_keys=True)


def is_drive(layer: t.Mapping[str, t.Any]) -> bool:
    """Whether nothing is below it, so that it is what keeps the data."""
    return not layer.get("below")


def drives_of(side: t.Any) -> list[t.Mapping[str, t.Any]]:
    """The layers at the bottom of one side of a ``stack.json``."""
    return [layer for layer in _list(mapping(side).get("layers")) if is_drive(layer)]


def common_text(drives: t.Iterable[t.Mapping[str, t.Any]], name: str) -> str | None:
    """What the drives below a target are, each answer once."""
    found = sorted({said for drive in drives if (said := optional_text(drive.get(name)))})
    return ", ".join(found) or None


def device_rows(key: dict[str, t.Any], stack: t.Mapping[str, t.Any], drives: t.Any) -> t.Iterator[dict[str, t.Any]]:
    """The drives of one measurement, before and after.

    :param drives: ``{side: {kernel name: {temperature_c, wear_used_percent…}}}``, as ``meta.json`` has it.
    """
    for side in SIDES:
        below = {str(layer.get("name")): layer for layer in drives_of(stack.get(side))}
        worn = {str(name): mapping(said) for name, said in mapping(mapping(drives).get(side)).items()}
        for name in sorted({*below, *worn}):
            layer, wear = below.get(name, {}), worn.get(name, {})
            yield {
                **key,
                "side": side,
                "device": text(name),
                **{column: optional_text(layer.get(column)) for column in ("model", "serial", "firmware", "transport")},
                "size": optional_integer(layer.get("size")),
                "rotational": flag(layer.get("rotational")),
                **{column: _wear(column, wear.get(column)) for column in _WEAR},
            }


def _wear(column: str, value: t.Any) -> t.Any:
    if column == "passed":
        return flag(value)
    return number(value) if column in _REALS else optional_integer(value)
