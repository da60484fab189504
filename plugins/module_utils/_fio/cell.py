# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One measurement: what is requested, what it needs of the host, and how it is described in its ``meta.json``."""

from __future__ import annotations

import json
import os
import platform
import re
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import extent
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision, Run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import COLLECTION_VERSION, SCHEMA, CellKey, component
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import mounted_pool

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Bytes per second at which fio is expected at least to lay out a new file, or to read one before it begins; the watchdog allows for it.
_LAYOUT_RATE = 4 * 1024**2

#: Seconds in which a file is made at the latest.
_MAKING = 0.01

#: Control characters, halves of characters and the sign that fio escapes with.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\]")
_LONGEST_PATH = 2048

StackReader = t.Callable[["Devices | None"], t.Any]


@frozen
class Cell:
    """One requested measurement.

    :param others: targets that sections of the job name, by these names; the other sections run on ``target``.
    """

    key: CellKey
    target: GuardTarget
    job: Job
    others: t.Mapping[str, GuardTarget] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[Cell, ...]:
        """The cell on each of its targets, with the sections that run there; on its own target first."""
        if not self.others:
            return (self,)
        places = [(None, self.target), *self.others.items()]
        return tuple(Cell(self.key, target, self.job.on(name)) for name, target in places)


@frozen
class MeasuredHost:
    """What a measurement needs of the host; tests put something else in its place.

    :param read_stack: gives an object whose ``describe(kernel name)`` is plain data: the layers with their effective state. It is called with the block
        devices if they were read just now, otherwise with ``None``.
    """

    runner: Runner
    read_stack: StackReader
    root: Path = Path("/")
    read_devices: t.Callable[..., Devices] = read_devices
    clock: t.Callable[[], float] = time.time

    def devices(self) -> Devices:
        return self.read_devices(self.runner, self.root)


def read_cell(variant: str, row: t.Mapping[str, t.Any]) -> Cell:
    """Check one cell that a user requested.

    :raises BadInput: naming the cell and what is wrong with it.
    """
    if not isinstance(row, dict) or not isinstance(row.get("name"), (str, int)) or isinstance(row["name"], bool):
        raise BadInput(f"A cell must be a dictionary with a name, a target and a job, not {abbreviated(row)}.")
    key = CellKey(_component(variant, "variant"), _component(str(row["name"]), "cell"), _repeat(row))
    job = fio_job.read_job(row.get("job"), key.cell)
    cell = Cell(key, read_target(row.get("target"), key.cell), job, _read_others(row.get("targets"), job, key.cell))
    for part in cell.parts:
        fio_job.check_target(part.job, part.target.kind, part.target.size, key.cell)
    return cell


def _read_others(rows: t.Any, job: Job, cell: str) -> dict[str, GuardTarget]:
    """The targets that sections of a job name, and no others."""
    if rows is not None and not isinstance(rows, dict):
        raise BadInput(f"{cell}: targets must be a dictionary of targets by the names that sections use, not {abbreviated(rows)}.", item=cell)
    given = {str(name): target for name, target in (rows or {}).items()}
    for name in job.target_names:
        if name not in given:
            raise BadInput(f"{cell}: a section runs on the target {name}, which the cell does not have.", item=cell)
    unused = sorted(set(given) - set(job.target_names))
    if unused:
        raise BadInput(f"{cell}: no section runs on the target {abbreviated(unused[0])}.", item=cell)
    if given and all(section.target is not None for section in job.sections):
        raise BadInput(f"{cell}: no section runs on the target of the cell: leave out the target name of the sections that do.", item=cell)
    logs = [log for name in (None, *job.target_names) for log in job.on(name).replays] if given else []
    if len(set(logs)) < len(logs):
        # One file for each log, which names the target.
        raise BadInput(
            f"{cell}: one and the same log (read_iolog) is replayed on several targets: give each target a log of its own.", item=cell, option="read_iolog"
        )
    return {name: read_target(given[name], cell) for name in job.target_names}


def _component(text: t.Any, what: str) -> str:
    if not isinstance(text, str):
        raise BadInput(f"The name of a {what} must be a text, not {abbreviated(text)}.")
    return component(text, what)


def _repeat(row: t.Mapping[str, t.Any]) -> int:
    repeat = row.get("repeat") or 1
    if isinstance(repeat, bool) or not isinstance(repeat, int) or not 1 <= repeat <= 9999:
        raise BadInput(f"{row['name']}: repeat must be a number from 1 to 9999, not {abbreviated(repeat)}.", item=str(row["name"]))
    return repeat


def read_cells(variant: str, rows: t.Sequence[t.Mapping[str, t.Any]]) -> tuple[Cell, ...]:
    """Check what a user requested.

    :raises BadInput: naming the cell and what is wrong with it.
    """
    _component(variant, "variant")
    if not isinstance(rows, (list, tuple)):
        raise BadInput(f"cells must be a list of cells, not {abbreviated(rows)}.")
    cells: dict[CellKey, Cell] = {}
    for row in rows:
        cell = read_cell(variant, row)
        if cell.key in cells:
            raise BadInput(f"The cell {cell.key.cell}, repeat {cell.key.repeat}, is listed twice.", item=cell.key.cell)
        cells[cell.key] = cell
    return tuple(cells.values())


def read_target(row: t.Any, cell: str) -> GuardTarget:
    """Where a cell runs; ``size`` is in bytes.

    :raises BadInput: if it is both a device and a file, or neither, or if one of its values is not what it must be.
    """
    if not isinstance(row, dict):
        raise BadInput(f"{cell}: the target must be a dictionary with device or file, not {abbreviated(row)}.", item=cell)
    permission = row.get("allow_data_loss")
    if permission is not None and not isinstance(permission, bool):
        # The text "no" would be a permission.
        raise BadInput(f"{cell}: allow_data_loss of a target must be true or false, not {abbreviated(permission)}.", item=cell)
    kinds = [kind for kind in ("device", "file", "directory") if row.get(kind)]
    if len(kinds) != 1:
        raise BadInput(f"{cell}: a target must have either device (a block device) or file (a plain file), or directory (a folder for files).", item=cell)
    kind = kinds[0]
    if kind == "directory" and permission:
        raise BadInput(f"{cell}: allow_data_loss is not supported for a directory: the collection only uses one that it has made.", item=cell)
    return GuardTarget(
        path=_checked_path(row[kind], kind, cell), kind=kind, allow_data_loss=bool(permission), identity=_identity(row, cell), size=_target_size(row, cell)
    )


def _checked_path(path: t.Any, kind: str, cell: str) -> str:
    """A path that fio, the kernel and the guard read in the same way."""
    if not isinstance(path, str):
        raise BadInput(f"{cell}: {kind} of a target must be a path, not {abbreviated(path)}.", item=cell)
    if _UNSAFE.search(path) or path != path.strip() or len(path.encode()) > _LONGEST_PATH:
        raise BadInput(
            f"{cell}: the path {abbreviated(path)} of a target must not begin or end with a blank, contain control characters or backslashes, "
            f"or be longer than {_LONGEST_PATH} bytes: fio would use another file.",
            item=cell,
        )
    if not path.startswith("/") or ".." in path.split("/"):
        raise BadInput(f"{cell}: the path {abbreviated(path)} of a target must be absolute and must not contain '..'.", item=cell)
    return path


def _identity(row: t.Mapping[str, t.Any], cell: str) -> str | None:
    identity = row.get("identity")
    if identity is None or identity == "":
        return None
    if isinstance(identity, bool) or not isinstance(identity, (str, int)):
        raise BadInput(f"{cell}: identity of a target must be a text, not {abbreviated(identity)}.", item=cell)
    # A serial of digits only is a number in YAML.
    return str(identity)


def _target_size(row: t.Mapping[str, t.Any], cell: str) -> int | None:
    size = row.get("size")
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or not 0 < size < 2**63):
        # fio takes a size of 0 for the whole device.
        raise BadInput(f"{cell}: size of a target must be a number of bytes greater than 0, not {abbreviated(size)}.", item=cell)
    return size


def is_read_only(cell: Cell, facts: TargetFacts) -> bool:
    """Whether fio itself is forbidden to write."""
    # A plain file that is not there yet must be written before it can be read.
    return not cell.job.writes and (facts.target.kind != "file" or facts.exists)


def time_limit(job: Job, facts: TargetFacts, timeout: float, slack: float) -> float:
    """Seconds after which the watchdog stops a cell.

    :param timeout: of a job without a limit of its own.
    """
    return (job.longest if job.longest is not None else timeout) + time_before(job, facts) + slack


def time_before(job: Job, facts: TargetFacts) -> float:
    """Seconds that a target takes at most until its sections can begin."""
    if facts.target.kind == "directory":
        files = extent.files_of(job)
        return sum(files.values()) / _LAYOUT_RATE + len(files) * _MAKING
    layout = (facts.target.size or 0) / _LAYOUT_RATE if facts.target.kind == "file" else 0.0
    before = sum((facts.target.size or facts.size or 0) / _LAYOUT_RATE for section in job.sections if section.value("pre_read") not in (None, "0"))
    return layout + before


def describe_cell(
    campaign: str, host_name: str, version: Version, cell: Cell, facts: TargetFacts | None, decision: Decision, started: float, finished: float
) -> dict[str, t.Any]:
    """What every ``meta.json`` contains. Times are seconds since the epoch."""
    return {
        "schema": SCHEMA,
        "state": decision.state,
        "reason": decision.reason,
        "campaign": campaign,
        "host": host_name,
        "variant": cell.key.variant,
        "cell": cell.key.cell,
        "repeat": cell.key.repeat,
        "target": describe_target(cell.target, facts),
        "targets": None,
        "fio_version": version.text,
        "behaviour_class": fio_output.behaviour_class(version),
        "engines": list(cell.job.engines),
        "kernel": platform.release(),
        "started": started,
        "finished": finished,
        "elapsed": round(finished - started, 3),
        "asked_runtime": max((section.asked_runtime or 0 for section in cell.job.sections), default=0) or None,
        "ramp": max((section.ramp for section in cell.job.sections), default=0),
        "summary": None,
        "job_sha256": None,
        "workload_sha256": cell.job.workload_sha256,
        "collection_version": COLLECTION_VERSION,
    }


def describe_target(target: GuardTarget, facts: TargetFacts | None) -> dict[str, t.Any]:
    device = facts.device if facts else None
    return {
        "kind": target.kind,
        "path": target.path,
        "kernel_path": facts.path if facts else None,
        "kernel_name": device.name if device else None,
        "stable_path": device.stable_path if device else None,
        "identity": facts.identity if facts else None,
        "serial": device.serial if device else None,
        "wwn": device.wwn if device else None,
        "model": device.model if device else None,
        "firmware": device.firmware if device else None,
        "size": facts.size if facts and target.kind != "directory" else None,
        "used_size": target.size,
    }


def what_was_measured(target: t.Mapping[str, t.Any]) -> tuple[t.Any, ...]:
    """What of a described target makes its figures those of another one: see :func:`describe_target`."""
    identity, used = target.get("identity"), target.get("used_size")
    # A file is laid out by fio as large as requested, so its previous size does not matter.
    size = None if target.get("kind") == "directory" or (target.get("kind") == "file" and used is not None) else target.get("size")
    return (target.get("kind"), identity, target.get("path") if identity is None else None, used, size)


def devices_below(devices: Devices, facts: TargetFacts, root: Path) -> list[BlockDevice]:
    """The target's device and everything under it, the target's first; for a file, those of its file system, or its ZFS pool."""
    device = facts.device
    if device is None:
        folder = (root / facts.path.lstrip("/")).parent
        status = os.stat(folder).st_dev
        number = f"{os.major(status)}:{os.minor(status)}"
        device = next((one for one in devices if one.number == number), None) or mounted_pool(number, root)
    return [] if device is None else [device, *devices.parents(device)]


def files_of(run: Run, text: str, folder: Path) -> dict[str, bytes]:
    """What a run leaves behind, by the names of the spool. An empty output leaves no file."""
    files = {"job.fio": text.encode()}
    if run.report:
        files["fio.json.gz"] = run.report
    if run.other_output.strip():
        files["fio.stderr.gz"] = run.other_output.encode()
    for pattern in ("series_*.log", "*_series.log"):
        for log in sorted(folder.glob(pattern)):
            files[f"{log.name}.gz"] = log.read_bytes()
    return files


def to_json(content: t.Any) -> bytes:
    """Plain data as a file of a cell."""
    return (json.dumps(content, indent=1) + "\n").encode()
