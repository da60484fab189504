# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Suites: lists of fio measurements as data, checked and spread over targets and repeats. Pure.

What a job may be is decided in one place, ``module_utils/_fio/job.py``: a suite is refused here, before any host is touched,
for what the fio module would refuse there.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.layout import component

_SUITE_KEYS = {"description", "cells"}
_CELL_KEYS = {"name", "job", "repeats", "description", "fill"}
_TARGET_KEYS = {"name", "device", "file", "allow_data_loss", "identity", "size"}
#: Seconds that a job without a time limit may take: what the fio module allows it.
UNLIMITED = 21600

#: Seconds that the controller grants a host beside what the jobs ask for: at all, and for each cell.
GRACE, GRACE_OF_A_CELL = 300, 30

#: Bytes per second at which a plain file is surely laid out before it is measured.
_LAYOUT_RATE = 10 * MIB


@dataclass(frozen=True)
class Expansion:
    """What one host shall measure.

    :param cells: the entries for the ``cells`` option of the fio module, in the order in which they run.
    :param seconds: what the jobs ask for together, ramps included.
    :param limit: seconds after which something must be wrong.
    """

    cells: list[dict[str, t.Any]]
    seconds: int
    limit: int


def check_suite(name: str, suite: t.Any) -> None:
    """Whether a suite is one.

    :raises BadInput: one sentence that names the suite, the cell and what is wrong.
    """
    where = f"fio_benchmark_suites: suite {name}"
    _mapping(suite, where, _SUITE_KEYS)
    component(name, "suite")
    cells = suite.get("cells")
    if not isinstance(cells, list) or not cells:
        raise BadInput(f"{where}: 'cells' must be a list with at least one cell.")
    seen: set[str] = set()
    for number, cell in enumerate(cells, start=1):
        place = f"{where}, cell {number}"
        _mapping(cell, place, _CELL_KEYS)
        if not cell.get("name"):
            raise BadInput(f"{place}: 'name' is missing.")
        try:
            label = component(cell["name"], "cell")
        except BadInput as error:
            raise BadInput(f"{place}: {error.message}") from None
        if label in seen:
            raise BadInput(f"{where}: two cells are named {label}; each needs a name of its own.")
        seen.add(label)
        _check_job(cell.get("job"), f"{where}, cell {label}")
        _repeats(cell.get("repeats", 1), f"{where}, cell {label}")
        if not isinstance(cell.get("fill", False), bool):
            raise BadInput(f"{where}, cell {label}: 'fill' must be true or false.")


def expand(
    suite_name: str,
    suites: t.Mapping[str, t.Any],
    targets: t.Sequence[t.Mapping[str, t.Any]],
    *,
    runtime: int = 0,
    repeats: int = 0,
) -> Expansion:
    """Every measurement of one host: the cells of a suite on each target, each as often as it shall be repeated.

    Repeats are interleaved and every second pass runs backwards (A B B A): a drift of the host then falls on all cells alike.

    :param runtime: seconds for every cell instead of the suite's; 0 keeps the suite's.
    :param repeats: repeats of every cell instead of the suite's; 0 keeps the suite's.
    :raises BadInput: if the suite, a target or a number is not usable.
    """
    if suite_name not in suites:
        raise BadInput(f"There is no suite named '{suite_name}': set fio_benchmark_suite to one of {_listed(suites)}, or describe it in fio_benchmark_suites.")
    suite = suites[suite_name]
    check_suite(suite_name, suite)
    if runtime < 0 or repeats < 0:
        raise BadInput("fio_benchmark_runtime and fio_benchmark_repeats are numbers from 0 on; 0 keeps what the suite says.")
    points = [
        (_cell_name(cell["name"], label), _target(target), *_job_and_repeats(cell, runtime, repeats))
        for label, target in _labelled(targets)
        for cell in suite["cells"]
    ]
    cells = []
    for number in range(1, max((count for *_ignored, count in points), default=0) + 1):
        due = [{"name": name, "repeat": number, "target": target, "job": job} for name, target, job, count in points if number <= count]
        cells += due if number % 2 else due[::-1]
    seconds = sum(_seconds(cell) or 0.0 for cell in cells)
    return Expansion(cells, round(seconds), _limit(cells) if cells else 0)


def _mapping(value: t.Any, where: str, keys: set[str]) -> None:
    if not isinstance(value, t.Mapping):
        raise BadInput(f"{where} must be a dictionary with {_listed(keys)}.")
    unknown = sorted(str(key) for key in value if key not in keys)
    if unknown:
        raise BadInput(f"{where}: '{unknown[0]}' is not known there; there can be {_listed(keys)}.")


def _listed(keys: t.Iterable[str]) -> str:
    return ", ".join(sorted(keys))


def _check_job(job: t.Any, where: str) -> None:
    try:
        read_job(job, where)
    except BadInput as error:
        raise BadInput(error.message if error.message.startswith(where) else f"{where}: {error.message}") from None


def _repeats(value: t.Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 9999:
        raise BadInput(f"{where}: 'repeats' must be a whole number from 1 to 9999.")


def _job_and_repeats(cell: t.Mapping[str, t.Any], runtime: int, repeats: int) -> tuple[dict[str, t.Any], int]:
    """What a cell of the suite runs and how often. A fill goes over its target once, at the beginning, and takes the time it takes."""
    if cell.get("fill"):
        return dict(cell["job"]), 1
    return _job(cell["job"], runtime), repeats or int(cell.get("repeats", 1))


def _job(job: t.Mapping[str, t.Any], runtime: int) -> dict[str, t.Any]:
    """The job, with another runtime if one is asked for."""
    if not runtime:
        return dict(job)
    # Without time_based a short job ends when its size is done, however long it was asked to run.
    timed = {"runtime": runtime, "time_based": 1}
    if "jobs" in job:
        return {**job, "jobs": [{**section, **timed} for section in job["jobs"]]}
    return {**job, **timed}


def _seconds(cell: t.Mapping[str, t.Any]) -> float | None:
    """What a job asks for, ramps included; ``None`` if nothing limits it."""
    return read_job(cell["job"], cell["name"]).longest


def _limit(cells: t.Sequence[t.Mapping[str, t.Any]]) -> int:
    """Seconds after which a host is surely lost, and not merely slow."""
    limit = float(GRACE)
    for cell in cells:
        seconds = _seconds(cell)
        limit += GRACE_OF_A_CELL + (UNLIMITED if seconds is None else 1.5 * seconds)
    files = {cell["target"]["file"]: parse_size(cell["target"].get("size", 0)) for cell in cells if "file" in cell["target"]}
    return round(limit + sum(files.values()) / _LAYOUT_RATE)


def _target(target: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What the module needs of a target; its name is for cells only."""
    return {key: value for key, value in target.items() if key != "name" and value is not None}


def _labelled(targets: t.Sequence[t.Mapping[str, t.Any]]) -> list[tuple[str, t.Mapping[str, t.Any]]]:
    """Each target with the name that its cells carry: empty when there is only one and it has no name."""
    labelled: list[tuple[str, t.Mapping[str, t.Any]]] = []
    for number, target in enumerate(targets, start=1):
        where = f"fio_benchmark_targets: target {number}"
        _mapping(target, where, _TARGET_KEYS)
        place = target.get("device") or target.get("file")
        if not place or (target.get("device") and target.get("file")):
            raise BadInput(f"{where} must have exactly one of 'device' and 'file'.")
        if target.get("name"):
            label = component(target["name"], "target")
        elif len(targets) == 1:
            label = ""
        else:
            label = re.sub(r"[^A-Za-z0-9_-]+", "-", PurePosixPath(str(place)).name).strip("-_") or str(number)
        if any(label == other for other, _ignored in labelled):
            raise BadInput(f"{where} ({place}) would carry the name '{label}' of another target: give it a 'name' of its own.")
        labelled.append((label, target))
    return labelled


def _cell_name(cell: str, label: str) -> str:
    # '@' is not allowed in the names of folders that hosts can choose, so the target follows a dot.
    return component(f"{cell}.{label}" if label else cell, "cell")
