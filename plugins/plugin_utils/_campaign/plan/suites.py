# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Suites: lists of fio measurements as data, read and checked. Pure.

What a job may be is decided in one place, ``module_utils/_fio/job.py``: a suite is refused here, before any host is touched,
for what would be refused there. ``docs/suites.md`` describes the schema, ``matrix.py`` makes cells of a matrix, ``conditions.py``
reads what else a cell can request, and ``plan.py`` spreads a suite over targets and repeats.

Matrices: every combination of the values of some axes becomes a cell.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import itertools
import math
import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.replay import packed
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.pauses import DRAIN
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.warming import NONE
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import (
    SEARCH_KEYS,
    Pause,
    Rounds,
    Search,
    listed,
    mapping,
    read_drain,
    read_pause,
    read_rounds,
    read_search,
    read_warm,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.job_file import read_job_file
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.log_file import located
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS

#: What a cell can set beside its name, its job and ``fill``; a matrix sets it for all its cells.
CELL_KEYS_OF_A_MATRIX = {"description", "repeats", "share", "pause", "search", "rounds", "measures_garbage_collection", "warm", "drain"}
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
        rows.append({"name": _PLACEHOLDER.sub(lambda found, labels=labels: labels[found[1]], name), **_matrix_cell(settings, common, rest, where)})
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


def _matrix_cell(settings: t.Mapping[str, t.Any], common: t.Mapping[str, t.Any], rest: t.Mapping[str, t.Any], where: str) -> dict[str, t.Any]:
    """One combination: what its axes set goes to the cell, to its search, or to its job."""
    own = {key: settings[key] for key in _CELL_AXES if key in settings}
    search = {key: settings[key] for key in SEARCH_KEYS if key in settings}
    if search:
        if not isinstance(rest.get("search", {}), t.Mapping):
            raise BadInput(f"{where}: 'search' must be a dictionary.")
        own["search"] = {**rest.get("search", {}), **search}
    job = {key: value for key, value in settings.items() if key not in _CELL_AXES and key not in SEARCH_KEYS}
    return {**rest, **own, "job": {**common, **job}}


_SUITE_KEYS = {
    *("description", "extends", "options", "hosts", "targets", "requires", "size", "repeats", "pause", "warm", "drain", "cells", "matrix", "decides", "purge"),
}
_CELL_KEYS = {"name", "job", "job_file", "section_targets", "fill"} | CELL_KEYS_OF_A_MATRIX

#: A size in an option of fio as a multiple of the cache.
_OF_CACHE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*x\s*cache\s*\Z")

#: How the targets of a host take turns.
TOGETHER, ONE_AFTER_ANOTHER = "together", "one_after_another"
#: Hosts that do not wait for one another, unless they share something.
APART = "apart"


@dataclass(frozen=True)
class SuiteCell:
    """One measurement of a suite, on whatever target.

    :param job: the fio options as a user writes them, with those that are common to the suite.
    :param fill: it goes over its target once, before the others.
    :param share: percent of the target that it uses.
    :param pause: before it; ``None`` for none.
    :param warm: the state that it needs its caches in, one of ``warming.WARM``.
    :param drain: seconds that caches may take before it to write back; ``None`` for the usual ones.
    :param from_file: whether the job is that of a job file.
    :param decides: names of the metrics by which it answers the question of the suite; ``None`` where the suite does not set it.
    """

    name: str
    job: t.Mapping[str, t.Any]
    repeats: int = 1
    fill: bool = False
    share: int = 100
    pause: Pause | None = None
    search: Search | None = None
    rounds: Rounds | None = None
    measures_garbage_collection: bool = False
    decides: tuple[str, ...] | None = None
    warm: str = NONE
    drain: float | None = None
    from_file: bool = False

    def checked_job(self) -> Job:
        return read_job(dict(self.job), self.name)

    @property
    def longest_drain(self) -> float:
        """Seconds that caches may take before it to write back; 0 if it does not decide."""
        return 0.0 if self.fill or self.decides == () else DRAIN if self.drain is None else self.drain

    @property
    def discards(self) -> bool:
        """Whether it discards its target, from its beginning to its end."""
        return all(
            (section.value("rw", "readwrite") or "").split(":")[0] == "trim" and section.asked_runtime is None for section in self.checked_job().sections
        )


@dataclass(frozen=True)
class Suite:
    """A checked suite.

    :param together: several targets of a host at once, and not one after another.
    :param apart: every host at its own pace; only hosts that were declared to share an array start their cells together.
    :param requires: ``file`` or ``device`` if every target must be one.
    :param size: bytes of a target that are used where the target does not set it.
    :param purge: whether it is meant for drives that were purged; only targets that allow it are.
    """

    name: str
    description: str
    cells: tuple[SuiteCell, ...]
    together: bool = False
    apart: bool = False
    requires: str | None = None
    size: int | None = None
    purge: bool = False


def read_suite(name: str, suites: t.Mapping[str, t.Any], only: t.Sequence[str] = (), cache_size: int | None = None) -> Suite:
    """A suite by its name.

    :param only: patterns as of a shell, each with ``@`` and a pattern of targets or not; cells that match none are left out.
    :param cache_size: bytes of the cache, for suites whose sizes are multiples of it.
    :raises BadInput: one sentence that names the suite, the cell and what is wrong.
    """
    if name not in suites:
        raise BadInput(f"There is no suite named '{name}': set fio_benchmark_suite to one of {listed(suites)}, or describe it in fio_benchmark_suites.")
    component(name, "suite")
    where = f"fio_benchmark_suites: suite {name}"
    given = _in_bytes(_extended(name, suites, ()), cache_size, where)
    targets = given.get("targets", ONE_AFTER_ANOTHER)
    if targets not in (TOGETHER, ONE_AFTER_ANOTHER):
        raise BadInput(f"{where}: 'targets' must be {TOGETHER} or {ONE_AFTER_ANOTHER}.")
    if given.get("hosts", TOGETHER) not in (TOGETHER, APART):
        raise BadInput(f"{where}: 'hosts' must be {TOGETHER} or {APART}.")
    if given.get("requires") not in (None, "file", "device"):
        raise BadInput(f"{where}: 'requires' must be file or device.")
    if not isinstance(given.get("purge", False), bool):
        raise BadInput(f"{where}: 'purge' must be true or false.")
    size = given.get("size")
    cells = _deciding(_cells(given, where), given.get("decides"), where, inherited="decides" not in suites[name])
    if not any(cell.measures_garbage_collection for cell in cells) and any(cell.pause and cell.pause.measured for cell in cells):
        raise BadInput(
            f"{where}: a pause waits for a garbage collection that no cell measures: mark one with 'measures_garbage_collection: true', "
            "or give the pause a rate in bytes per second, for example 640m."
        )
    if only:
        cells = [cell for cell in cells if any(fnmatch.fnmatchcase(cell.name, str(pattern).partition("@")[0]) for pattern in only)]
        if not cells:
            raise BadInput(f"{where}: none of its cells is called {listed(only)}.")
    _check_rounds(cells, where)
    return Suite(
        name=name,
        description=str(given.get("description") or ""),
        cells=tuple(cells),
        together=targets == TOGETHER,
        apart=given.get("hosts") == APART,
        requires=given.get("requires"),
        size=None if size is None else parse_size(size, item=where, option="size"),
        purge=given.get("purge", False),
    )


def in_rounds(cells: t.Sequence[SuiteCell]) -> list[tuple[SuiteCell, ...]]:
    """The cells in their order, those together that are measured in the same rounds."""
    found: list[tuple[SuiteCell, ...]] = []
    for cell in cells:
        if found and _is_same_series(found[-1][0].rounds, cell.rounds):
            found[-1] = (*found[-1], cell)
        else:
            found.append((cell,))
    return found


def _is_same_series(one: Rounds | None, other: Rounds | None) -> bool:
    # What is tracked is that of the cell that decides; by default it depends on the job.
    return bool(one and other and other.decided_by and dataclasses.replace(one, track=other.track) == other)


def _check_rounds(cells: t.Sequence[SuiteCell], where: str) -> None:
    """Rounds over several cells have the one that decides among them, once."""
    for group in in_rounds(cells):
        rounds = group[0].rounds
        if rounds is None or not rounds.decided_by:
            continue
        if rounds.decided_by not in [cell.name for cell in group]:
            raise BadInput(
                f"{where}, cell {group[0].name}: its rounds are decided by {rounds.decided_by}, which is not among the cells of these rounds: they must follow "
                "one another with equal 'rounds', and fio_benchmark_only must not leave it out."
            )
        if len({cell.repeats for cell in group}) > 1:
            raise BadInput(f"{where}, cell {group[0].name}: all cells of the same rounds must have the same 'repeats'.")


def _deciding(cells: t.Sequence[SuiteCell], decides: t.Any, where: str, *, inherited: bool) -> list[SuiteCell]:
    """The cells, each with the metrics by which it answers the question of the suite. A fill and a discard never do.

    :param inherited: whether the patterns are those of another suite, whose cells this one may not have.
    """
    rules = [
        (pattern, names) for pattern, names in _read_decides(decides, where) if not inherited or any(fnmatch.fnmatchcase(cell.name, pattern) for cell in cells)
    ]
    found = []
    for cell in cells:
        metrics = () if cell.fill or cell.discards else None
        if rules and metrics is None:
            metrics = tuple(dict.fromkeys(name for pattern, names in rules for name in names if fnmatch.fnmatchcase(cell.name, pattern)))
        found.append(dataclasses.replace(cell, decides=metrics))
    for pattern, _names in rules:
        if not any(cell.decides and fnmatch.fnmatchcase(cell.name, pattern) for cell in found):
            raise BadInput(f"{where}: 'decides' names {pattern}, which matches no cell that could decide.")
    return found


def _read_decides(decides: t.Any, where: str) -> list[tuple[str, tuple[str, ...]]]:
    """Patterns of cells with the names of metrics."""
    if decides is None:
        return []
    if not isinstance(decides, list) or not decides:
        raise BadInput(f"{where}: 'decides' must be a list of patterns of cells, or of dictionaries with 'cells' and 'metrics'.")
    rules = []
    for row in decides:
        given = {"cells": row} if isinstance(row, str) else row
        mapping(given, f"{where}, decides", {"cells", "metrics"})
        metrics = given.get("metrics", ["iops"])
        if not isinstance(given.get("cells"), str) or not isinstance(metrics, list) or not metrics:
            raise BadInput(f"{where}: each entry of 'decides' needs 'cells', a pattern, and 'metrics', a list, or no metrics for iops.")
        unknown = [name for name in metrics if not isinstance(name, str) or name not in METRICS]
        if unknown:
            raise BadInput(f"{where}: 'decides' has the metric {unknown[0]}: use {', '.join(METRICS)}.")
        rules.append((given["cells"], tuple(metrics)))
    return rules


def _extended(name: str, suites: t.Mapping[str, t.Any], seen: tuple[str, ...]) -> dict[str, t.Any]:
    """A suite with what it takes over from the one that it extends. Its own keys win; options, matrix and axes are joined."""
    where = f"fio_benchmark_suites: suite {name}"
    suite = suites[name]
    mapping(suite, where, _SUITE_KEYS)
    parent = suite.get("extends")
    own = {key: value for key, value in suite.items() if key != "extends"}
    if parent is None:
        return own
    if not isinstance(parent, str) or parent not in suites:
        raise BadInput(f"{where}: it extends '{parent}', and there is no such suite; there are {listed(suites)}.")
    if parent in (*seen, name):
        raise BadInput(f"{where}: it extends itself, by way of {listed((*seen, name))}.")
    return _joined(_extended(parent, suites, (*seen, name)), own, depth=3)


def _joined(base: t.Mapping[str, t.Any], own: t.Mapping[str, t.Any], depth: int) -> dict[str, t.Any]:
    joined = dict(base)
    for key, value in own.items():
        both = isinstance(value, t.Mapping) and isinstance(joined.get(key), t.Mapping)
        deeper = both and depth > 1 and key in ("options", "matrix", "axes")
        joined[key] = _joined(joined[key], value, depth - 1) if deeper else value
    return joined


def needs_cache_size(name: str, suites: t.Mapping[str, t.Any]) -> bool:
    """Whether sizes of a suite are multiples of the cache.

    :raises BadInput: see :func:`read_suite`.
    """
    return name in suites and _has_multiples(_extended(name, suites, ()))


def _has_multiples(value: t.Any) -> bool:
    if isinstance(value, (t.Mapping, list)):
        return any(map(_has_multiples, value.values() if isinstance(value, t.Mapping) else value))
    return isinstance(value, str) and _OF_CACHE.match(value) is not None


def _in_bytes(value: t.Any, cache_size: int | None, where: str) -> t.Any:
    """A suite without multiples of the cache.

    :raises BadInput: if it has one, and the size of the cache is not known.
    """
    if isinstance(value, t.Mapping):
        return {key: _in_bytes(one, cache_size, where) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_bytes(one, cache_size, where) for one in value]
    found = _OF_CACHE.match(value) if isinstance(value, str) else None
    if found is None:
        return value
    if not cache_size:
        raise BadInput(f"{where}: its sizes are multiples of the cache: set fio_benchmark_cache_size to the size of this host's cache, for example 10g.")
    size = int(float(found[1]) * cache_size) // MIB * MIB
    if not size:
        raise BadInput(f"{where}: {value.strip()} is less than 1 MiB with fio_benchmark_cache_size {cache_size}: set the size of the cache, for example 10g.")
    return size


def _cells(suite: t.Mapping[str, t.Any], where: str) -> list[SuiteCell]:
    """Those that are written out, then those of the matrix or the matrices."""
    written = suite.get("cells", [])
    if not isinstance(written, list):
        raise BadInput(f"{where}: 'cells' must be a list.")
    options = suite.get("options", {})
    if not isinstance(options, t.Mapping):
        raise BadInput(f"{where}: 'options' must be a dictionary of fio options.")
    rows = [(f"{where}, cell {number}", row, _CELL_KEYS) for number, row in enumerate(written, start=1)]
    matrices = suite.get("matrix", [])
    for number, matrix in enumerate(matrices if isinstance(matrices, list) else [matrices], start=1):
        place = f"{where}, matrix {number}" if isinstance(matrices, list) else f"{where}, matrix"
        rows += [(place, row, _CELL_KEYS) for row in matrix_rows(matrix, place)]
    if not rows:
        raise BadInput(f"{where}: it needs at least one cell, in 'cells' or by a 'matrix'.")
    cells: dict[str, SuiteCell] = {}
    for place, row, keys in rows:
        mapping(row, place, keys)
        cell = _cell(row, place, where, suite, options)
        if cell.name in cells:
            raise BadInput(f"{where}: two cells are named {cell.name}; each needs a name of its own.")
        cells[cell.name] = cell
    return list(cells.values())


def _cell(row: t.Mapping[str, t.Any], place: str, suite_place: str, suite: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> SuiteCell:
    if not row.get("name"):
        raise BadInput(f"{place}: 'name' is missing.")
    try:
        name = component(row["name"], "cell")
    except BadInput as error:
        raise BadInput(f"{place}: {error.message}") from None
    where = f"{suite_place}, cell {name}"
    for key in ("fill", "measures_garbage_collection"):
        if not isinstance(row.get(key, False), bool):
            raise BadInput(f"{where}: '{key}' must be true or false.")
    job = packed(located(_with_options(_given_job(row, where), options), where))
    checked = _checked_job(job, where)
    if row.get("search") is not None and row.get("rounds") is not None:
        raise BadInput(f"{where}: it has both 'search' and 'rounds'; a cell does one of them.")
    if row.get("fill") and (row.get("search") is not None or row.get("rounds") is not None):
        raise BadInput(f"{where}: a cell with 'fill' has neither 'search' nor 'rounds'.")
    cannot_warm = next((key for key in ("fill", "search", "rounds") if row.get(key) not in (None, False)), "")
    if row.get("warm", NONE) != NONE and cannot_warm:
        raise BadInput(f"{where}: a cell with '{cannot_warm}' has no 'warm'.")
    return SuiteCell(
        name=name,
        job=job,
        repeats=_repeats(row.get("repeats", suite.get("repeats", 1)), where),
        fill=row.get("fill", False),
        share=_share(row.get("share", 100), where),
        pause=read_pause(row["pause"] if "pause" in row else suite.get("pause"), where),
        search=None if row.get("search") is None else read_search(row["search"], checked, where),
        rounds=None if row.get("rounds") is None else read_rounds(row["rounds"], checked, where, name),
        measures_garbage_collection=row.get("measures_garbage_collection", False),
        warm=NONE if cannot_warm else read_warm(row.get("warm", suite.get("warm")), checked, where),
        drain=read_drain(row.get("drain", suite.get("drain")), where),
        from_file=row.get("job_file") is not None,
    )


def _given_job(row: t.Mapping[str, t.Any], where: str) -> t.Any:
    """The job of a cell: written out, or that of a job file."""
    path = row.get("job_file")
    if path is None:
        if row.get("section_targets") is not None:
            raise BadInput(f"{where}: 'section_targets' belongs to 'job_file'; in 'job' a section has its own 'target'.")
        return row.get("job")
    if "job" in row or not isinstance(path, str) or not path:
        raise BadInput(f"{where}: a cell has either 'job', a dictionary, or 'job_file', the path of a job file of fio on the controller.")
    return _on_targets(read_job_file(path, where), row.get("section_targets"), where)


def _on_targets(job: dict[str, t.Any], places: t.Any, where: str) -> dict[str, t.Any]:
    """The job of a file with the targets of its sections, which such a file cannot name."""
    if places is None:
        return job
    names = [section.name for section in read_job(job, where).sections]
    if not isinstance(places, t.Mapping) or not all(isinstance(one, str) for one in places.values()):
        raise BadInput(f"{where}: 'section_targets' must be a dictionary of the names of targets by the names of sections.")
    unknown = sorted(map(str, set(places) - set(names)))
    if unknown:
        raise BadInput(f"{where}: 'section_targets' names the section '{unknown[0]}', and the job file has {listed(names)}.")
    rows = [{**row, **({"target": places[name]} if name in places else {})} for name, row in zip(names, job["jobs"], strict=True)]
    return {**job, "jobs": rows}


def _with_options(job: t.Any, options: t.Mapping[str, t.Any]) -> t.Any:
    """A job with the options of its suite; the job's own options win."""
    if not isinstance(job, t.Mapping) or not job or not options:
        return job
    if "jobs" in job or "global" in job:
        common = job.get("global") or {}
        return {**job, "global": {**options, **common} if isinstance(common, t.Mapping) else common}
    return {**options, **job}


def _checked_job(job: t.Any, where: str) -> Job:
    try:
        checked = read_job(job, where)
    except BadInput as error:
        raise BadInput(error.message if error.message.startswith(where) else f"{where}: {error.message}") from None
    for section in (job, job.get("global") or {}, *job.get("jobs", [])):
        for option, value in section.items():
            if isinstance(value, float) and not math.isfinite(value):
                # YAML can write it, and JSON cannot carry it to the host.
                raise BadInput(f"{where}: the option {option} is {value}, which fio does not accept as a number.")
    return checked


def _repeats(value: t.Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 9999:
        raise BadInput(f"{where}: 'repeats' must be a whole number from 1 to 9999.")
    return value


def _share(value: t.Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 100:
        raise BadInput(f"{where}: 'share' is the percentage of the target that is used, a whole number from 1 to 100.")
    return value
