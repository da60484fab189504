# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Suites: lists of fio measurements as data, checked and spread over targets and repeats. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.layout import component

#: What fio calls the kinds of load (fio HOWTO, ``readwrite``).
LOADS = ("read", "write", "trim", "randread", "randwrite", "randtrim", "rw", "readwrite", "randrw", "trimwrite", "randtrimwrite")

#: What a suite must leave to the target and to the module: it decides where fio writes and what comes back.
RESERVED_OPTIONS = {
    "filename": "the target of a cell says where it is measured (fio_benchmark_targets)",
    "directory": "the target of a cell says where it is measured (fio_benchmark_targets)",
    "name": "the cell has a name of its own",
    "output": "the collection keeps every output",
    "output-format": "the collection keeps every output",
    "client": "fio is run by Ansible on every host",
    "exec_prerun": "a suite runs no commands",
    "exec_postrun": "a suite runs no commands",
}

_SUITE_KEYS = {"description", "cells"}
_CELL_KEYS = {"name", "job", "repeats", "description"}
_TARGET_KEYS = {"name", "device", "file", "allow_data_loss", "identity", "size"}
_OPTION = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_DURATION = re.compile(r"\s*(\d+)\s*(us|ms|s|m|h|d)?\s*\Z", re.IGNORECASE)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Seconds assumed for a job that says no runtime: it ends when its size is done.
UNKNOWN_RUNTIME = 900.0


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


def duration(value: t.Any) -> float:
    """A time of a fio job (``60``, ``"90s"``, ``"2m"``) in seconds.

    :raises BadInput: if it is none.
    """
    match = _DURATION.match(str(value)) if not isinstance(value, bool) else None
    if not match:
        raise BadInput(f"'{value}' is not a time of a fio job: write seconds, or a whole number with s, m, h or d.")
    return int(match.group(1)) * _SECONDS[(match.group(2) or "s").lower()]


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
        (_cell_name(cell["name"], label), _target(target), _job(cell["job"], runtime), repeats or int(cell.get("repeats", 1)))
        for label, target in _labelled(targets)
        for cell in suite["cells"]
    ]
    cells = []
    for number in range(1, max((count for *_ignored, count in points), default=0) + 1):
        due = [{"name": name, "repeat": number, "target": target, "job": job} for name, target, job, count in points if number <= count]
        cells += due if number % 2 else due[::-1]
    seconds = sum(_seconds(cell["job"]) for cell in cells)
    return Expansion(cells, round(seconds), round(2 * seconds + 60 * len(cells) + 300) if cells else 0)


def _mapping(value: t.Any, where: str, keys: set[str]) -> None:
    if not isinstance(value, t.Mapping):
        raise BadInput(f"{where} must be a dictionary with {_listed(keys)}.")
    unknown = sorted(str(key) for key in value if key not in keys)
    if unknown:
        raise BadInput(f"{where}: '{unknown[0]}' is not known there; there can be {_listed(keys)}.")


def _listed(keys: t.Iterable[str]) -> str:
    return ", ".join(sorted(keys))


def _check_job(job: t.Any, where: str) -> None:
    if not isinstance(job, t.Mapping) or not job:
        raise BadInput(f"{where}: 'job' must be a dictionary of fio options.")
    for option, value in job.items():
        if not isinstance(option, str) or not _OPTION.match(option):
            raise BadInput(f"{where}: '{option}' is not the name of a fio option.")
        if option in RESERVED_OPTIONS:
            raise BadInput(f"{where}: the option {option} cannot be set here: {RESERVED_OPTIONS[option]}.")
        if value is not None and not isinstance(value, (str, int, float)):
            raise BadInput(f"{where}: the option {option} must be a text, a number or a boolean.")
        if isinstance(value, str) and not value.isprintable():
            raise BadInput(f"{where}: the option {option} must be one line of text.")
    load = job.get("rw", job.get("readwrite"))
    if load is None:
        raise BadInput(f"{where}: the option rw is missing: without it fio reads. Write one of {', '.join(LOADS)}.")
    if str(load).split(":")[0] not in LOADS:
        raise BadInput(f"{where}: rw={load} is not a load that fio knows: write one of {', '.join(LOADS)}.")
    for option in ("runtime", "ramp_time"):
        if option in job:
            try:
                duration(job[option])
            except BadInput as error:
                raise BadInput(f"{where}: {option}: {error.message}") from None


def _repeats(value: t.Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 9999:
        raise BadInput(f"{where}: 'repeats' must be a whole number from 1 to 9999.")


def _job(job: t.Mapping[str, t.Any], runtime: int) -> dict[str, t.Any]:
    if not runtime:
        return dict(job)
    # Without time_based a short job ends when its size is done, however long it was asked to run.
    return {**job, "runtime": runtime, "time_based": 1}


def _seconds(job: t.Mapping[str, t.Any]) -> float:
    run = duration(job["runtime"]) if "runtime" in job else UNKNOWN_RUNTIME
    return run + (duration(job["ramp_time"]) if "ramp_time" in job else 0.0)


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
