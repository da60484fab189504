# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matrices: every combination of the values of some axes becomes a cell. Pure."""

from __future__ import annotations

import itertools
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import SEARCH_KEYS, listed, mapping

#: What a cell can set beside its name, its job and ``fill``; a matrix sets it for all its cells.
CELL_KEYS_OF_A_MATRIX = {"description", "repeats", "share", "pause", "search", "rounds", "measures_garbage_collection"}
_MATRIX_KEYS = CELL_KEYS_OF_A_MATRIX | {"name", "axes", "exclude", "only", "options", "runtime", "ramp_time"}

#: A larger matrix is considered a mistake in an axis.
MOST_CELLS = 10000

#: What stands before a bare number in the names of cells.
_PREFIXES = {"numjobs": "j", "iodepth": "d"}
#: Beside options of fio, what an axis can set of a cell.
_CELL_AXES = ("share",)
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

#: One value of an axis: its label in names, and what it sets.
_Value = tuple[str, t.Mapping[str, t.Any]]


def matrix_rows(matrix: t.Any, where: str) -> list[dict[str, t.Any]]:
    """The cells of a matrix as a user would have written them out; the first axis changes slowest.

    :raises BadInput: naming the axis and what is wrong.
    """
    mapping(matrix, where, _MATRIX_KEYS)
    axes = _axes(matrix.get("axes"), where)
    excluded = _selection(matrix, "exclude", axes, where)
    only = _selection(matrix, "only", axes, where)
    name = _name_pattern(matrix.get("name"), axes, where)
    common = _common(matrix, where)
    rest = {key: matrix[key] for key in CELL_KEYS_OF_A_MATRIX if key in matrix}
    rows = []
    for values in itertools.product(*axes.values()):
        labels = {axis: label for axis, (label, _sets) in zip(axes, values, strict=True)}
        if any(_matches(labels, one) for one in excluded) or (only and not any(_matches(labels, one) for one in only)):
            continue
        settings = {key: value for _label, sets in values for key, value in sets.items()}
        rows.append({"name": _PLACEHOLDER.sub(lambda found, labels=labels: labels[found[1]], name), **_cell(settings, common, rest, where)})
    if not rows:
        raise BadInput(f"{where}: 'exclude' and 'only' leave no combination.")
    return rows


def _axes(given: t.Any, where: str) -> dict[str, list[_Value]]:
    if not isinstance(given, t.Mapping) or not given:
        raise BadInput(f"{where}: 'axes' must be a dictionary with at least one axis, a list of values or a dictionary of named options for each.")
    axes = {str(axis): _values(str(axis), values, where) for axis, values in given.items()}
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > MOST_CELLS:
        raise BadInput(f"{where}: its axes have {count} combinations, and at most {MOST_CELLS} are supported: shorten an axis.")
    return axes


def _values(axis: str, values: t.Any, where: str) -> list[_Value]:
    place = f"{where}, axis {axis}"
    if isinstance(values, t.Mapping):
        found = [(str(label), sets) for label, sets in values.items()]
        if any(not isinstance(sets, t.Mapping) for _label, sets in found):
            raise BadInput(f"{place}: each of its names must have a dictionary of fio options.")
    elif isinstance(values, list):
        if any(isinstance(value, (t.Mapping, list)) or value is None for value in values):
            raise BadInput(f"{place}: its values must be texts or numbers; write a dictionary of named options for anything else.")
        found = [(_label(axis, value), {axis: value}) for value in values]
    else:
        raise BadInput(f"{place} must be a list of values or a dictionary of named options.")
    if not found:
        raise BadInput(f"{place}: it has no value.")
    labels = [label for label, _sets in found]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice:
        raise BadInput(f"{place}: it has '{twice[0]}' twice.")
    return found


def _label(axis: str, value: t.Any) -> str:
    text = str(int(value)) if isinstance(value, bool) else str(value)
    return re.sub(r"[^A-Za-z0-9._]+", "-", text).strip("-") or axis


def _name_pattern(given: t.Any, axes: t.Mapping[str, list[_Value]], where: str) -> str:
    """The name of a cell with ``{axis}`` in it; every axis with several values must appear, or names would not differ."""
    if given is None:
        return "-".join(f"{_PREFIXES.get(axis, '')}{{{axis}}}" for axis in axes)
    if not isinstance(given, str):
        raise BadInput(f"{where}: 'name' must be a text with the names of axes in braces, for example '{{workload}}-{{bs}}'.")
    used = set(_PLACEHOLDER.findall(given))
    unknown = sorted(used - set(axes))
    if unknown:
        raise BadInput(f"{where}: 'name' uses '{{{unknown[0]}}}', and there is no such axis; there are {listed(axes)}.")
    missing = [axis for axis, values in axes.items() if len(values) > 1 and axis not in used]
    if missing:
        raise BadInput(f"{where}: 'name' must contain {{{missing[0]}}}, or cells of different {missing[0]} would have one name.")
    return given


def _selection(matrix: t.Mapping[str, t.Any], key: str, axes: t.Mapping[str, list[_Value]], where: str) -> list[dict[str, set[str]]]:
    """Entries of ``exclude`` or ``only``: labels by axis."""
    entries = matrix.get(key, [])
    if not isinstance(entries, list) or any(not isinstance(entry, t.Mapping) or not entry for entry in entries):
        raise BadInput(f"{where}: '{key}' must be a list of dictionaries, in each the values of one or more axes.")
    selection = []
    for entry in entries:
        selected: dict[str, set[str]] = {}
        for axis, values in entry.items():
            if axis not in axes:
                raise BadInput(f"{where}, {key}: there is no axis '{axis}'; there are {listed(axes)}.")
            selected[axis] = {_label(axis, value) for value in (values if isinstance(values, list) else [values])}
            unknown = sorted(selected[axis] - {label for label, _sets in axes[axis]})
            if unknown:
                raise BadInput(f"{where}, {key}: the axis {axis} has no value '{unknown[0]}'; it has {', '.join(label for label, _sets in axes[axis])}.")
        selection.append(selected)
    return selection


def _matches(labels: t.Mapping[str, str], selected: t.Mapping[str, set[str]]) -> bool:
    return all(labels[axis] in values for axis, values in selected.items())


def _common(matrix: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    options = matrix.get("options", {})
    if not isinstance(options, t.Mapping):
        raise BadInput(f"{where}: 'options' must be a dictionary of fio options.")
    timed = {"time_based": 1, "runtime": matrix["runtime"]} if "runtime" in matrix else {}
    ramp = {"ramp_time": matrix["ramp_time"]} if "ramp_time" in matrix else {}
    return {**options, **timed, **ramp}


def _cell(settings: t.Mapping[str, t.Any], common: t.Mapping[str, t.Any], rest: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    """One combination: what its axes set goes to the cell, to its search, or to its job."""
    own = {key: settings[key] for key in _CELL_AXES if key in settings}
    search = {key: settings[key] for key in SEARCH_KEYS if key in settings}
    if search:
        if not isinstance(rest.get("search", {}), t.Mapping):
            raise BadInput(f"{where}: 'search' must be a dictionary.")
        own["search"] = {**rest.get("search", {}), **search}
    job = {key: value for key, value in settings.items() if key not in _CELL_AXES and key not in SEARCH_KEYS}
    return {**rest, **own, "job": {**common, **job}}
