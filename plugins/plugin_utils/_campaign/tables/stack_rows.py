# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows for ``layers`` and ``devices``, from ``stack.json`` and from the drives in ``meta.json``."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import flag, mapping, number, optional_integer, optional_text, text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import NOT_OF_THE_STACK, SIDES, drives_of, objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import DEVICES, LAYERS

_REALS = frozenset({"temperature_c", "wear_used_percent", "spare_percent"})
_WEAR = tuple(column.name for column in DEVICES.columns[-10:])
_LAYER_COLUMNS = tuple(column.name for column in LAYERS.series)


class Stacks:
    """The different stacks of one host, each once."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[t.Any, ...]]] = {}

    def add(self, name: str | None, side: t.Any) -> None:
        """:param name: what one side of a ``stack.json`` is called; ``None`` if it is empty."""
        if name is not None and name not in self._rows:
            self._rows[name] = list(_rows(mapping(side)))

    def rows(self, key: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
        """One series for each stack."""
        for name, rows in self._rows.items():
            yield {**key, "stack": name, **{column: [row[place] for row in rows] for place, column in enumerate(_LAYER_COLUMNS)}}


def _rows(raw: t.Mapping[str, t.Any]) -> t.Iterator[tuple[t.Any, ...]]:
    for name, value in raw.items():
        if name != "layers" and name not in NOT_OF_THE_STACK:
            yield None, None, None, "verdict", text(name), _value(value)
    for level, layer in enumerate(objects(raw.get("layers"))):
        device, kind = text(layer.get("name")), text(layer.get("kind"))
        for name, value in layer.items():
            if name == "queue":
                for setting, set_to in mapping(value).items():
                    yield level, device, kind, "queue", text(setting), _value(set_to)
            elif name == "caches":
                for cache in objects(value):
                    which = text(cache.get("layer")) or "cache"
                    for setting, set_to in cache.items():
                        if setting != "layer":
                            yield level, device, kind, which, text(setting), _value(set_to)
            elif name not in ("name", "kind"):
                yield level, device, kind, "device", text(name), _value(value)


def _value(value: t.Any) -> str | None:
    if value is None or isinstance(value, str):
        return text(value)
    return json.dumps(value, sort_keys=True)


def device_rows(key: dict[str, t.Any], stack: t.Mapping[str, t.Any], drives: t.Any) -> t.Iterator[dict[str, t.Any]]:
    """The drives of one measurement, before and after.

    :param drives: ``{side: {kernel name: {temperature_c, wear_used_percent…}}}``, as ``meta.json`` has it.
    """
    for side in SIDES:
        below = {str(layer.get("name")): layer for layer in drives_of(stack.get(side))}
        worn = {str(name): mapping(raw) for name, raw in mapping(mapping(drives).get(side)).items()}
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
