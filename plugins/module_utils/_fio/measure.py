# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Measure a list of cells on this host, one after the other, and leave each in the spool.

Everything that can be refused is refused before the first cell runs: half a campaign on wrong devices helps nobody. Each cell
is guarded again right before it runs, for the host may have changed since.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import guard
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.guard import Target, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import Job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision, Run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import COLLECTION_VERSION, SCHEMA, CellKey, Spool, component

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

#: Bytes per second at which fio is expected at least to lay out a new file; the watchdog allows for it.
_LAYOUT_RATE = 4 * 1024**2

StackReader = t.Callable[[], t.Any]


@dataclass(frozen=True)
class Cell:
    """One measurement that is asked for."""

    key: CellKey
    target: Target
    job: Job


@dataclass(frozen=True)
class Host:
    """What a measurement needs of the host; tests put something else in its place.

    :param read_stack: gives an object whose ``describe(kernel name)`` is plain data: the layers with their effective state.
    """

    runner: Runner
    read_stack: StackReader
    root: Path = Path("/")
    read_devices: t.Callable[..., Devices] = read_devices
    clock: t.Callable[[], float] = time.time

    def devices(self) -> Devices:
        return self.read_devices(self.runner, self.root)


@dataclass(frozen=True)
class Settings:
    """How a list of cells is measured. Times in seconds.

    :param slack: how much longer than asked a cell may take before it is stopped.
    :param timeout: of a cell whose job has no time limit.
    :param series: also write one-second averages.
    :param replace: measure again what is ``ok`` in the spool.
    :param keep_going: measure the rest when a cell is not ``ok``.
    """

    host_name: str
    slack: float = 120.0
    timeout: float = 21600.0
    series: bool = False
    replace: bool = False
    keep_going: bool = True


def read_cells(variant: str, rows: t.Sequence[t.Mapping[str, t.Any]]) -> tuple[Cell, ...]:
    """Check what a user asked for.

    :raises BadInput: naming the cell and what is wrong with it.
    """
    component(variant, "variant")
    cells: dict[CellKey, Cell] = {}
    for row in rows:
        key = CellKey(variant, component(row["name"], "cell"), row.get("repeat") or 1)
        if not 1 <= key.repeat <= 9999:
            raise BadInput(f"{key.cell}: repeat is a number from 1 to 9999, not {key.repeat}.", item=key.cell)
        if key in cells:
            raise BadInput(f"The cell {key.cell}, repeat {key.repeat}, is asked for twice.", item=key.cell)
        cells[key] = Cell(key, _read_target(row["target"], key.cell), fio_job.read_job(row["job"], key.cell))
        fio_job.check_target(cells[key].job, cells[key].target.kind, cells[key].target.size, key.cell)
    return tuple(cells.values())


def _read_target(row: t.Mapping[str, t.Any], cell: str) -> Target:
    if bool(row.get("device")) == bool(row.get("file")):
        raise BadInput(f"{cell}: a target has either device (a block device) or file (a plain file).", item=cell)
    return Target(
        path=row.get("device") or row["file"],
        kind="device" if row.get("device") else "file",
        allow_data_loss=bool(row.get("allow_data_loss")),
        identity=row.get("identity") or None,
        size=row.get("size"),
    )


def measure(cells: t.Sequence[Cell], spool: Spool, host: Host, settings: Settings, *, check_mode: bool) -> dict[str, t.Any]:
    """Measure all cells.

    :returns: the result of the module.
    :raises StorageError: before anything has run, if anything is refused; later only if the spool cannot be written.
    """
    if not cells:
        return {"changed": False, "cells": [], "actions": [], "archive": {}, "fio_version": None}
    version = _check_fio(cells, host)
    facts = _guard_all(cells, host)
    for cell in cells:
        fio_run.check_job_file(host.runner, fio_job.render(cell.job, facts[cell.key]), cell.key.cell)
    kept = {} if settings.replace else _kept(cells, facts, spool, version)
    due = [cell for cell in cells if cell.key not in kept]
    actions = [f"measure {cell.key} on {cell.target.path} ({'writing' if cell.job.writes else 'reading'})" for cell in due]
    result: dict[str, t.Any] = {"changed": bool(due), "actions": actions, "fio_version": version.text, "archive": {}}
    if check_mode:
        return {**result, "cells": [_outcome(cell.key, kept[cell.key], kept=True) for cell in cells if cell.key in kept]}
    with spool.opened():
        metas = _Campaign(spool, host, settings, version).run(due, kept)
        archive = spool.pack()
    rows = [_outcome(cell.key, metas.get(cell.key), kept=cell.key in kept) for cell in cells]
    return {**result, "cells": rows, "archive": archive}


def _outcome(key: CellKey, meta: t.Mapping[str, t.Any] | None, *, kept: bool) -> dict[str, t.Any]:
    if meta is None:
        meta = {"state": "missing", "reason": "An earlier cell was not ok and keep_going is false.", "summary": None}
    return {"name": key.cell, "repeat": key.repeat, "state": meta["state"], "reason": meta["reason"], "summary": meta["summary"], "kept": kept}


def _check_fio(cells: t.Sequence[Cell], host: Host) -> Version:
    version = fio_run.read_version(host.runner)
    fio_job.check_version(version, [cell.job for cell in cells])
    for engine in sorted({engine for cell in cells for engine in cell.job.engines}):
        fio_run.check_engine(host.runner, engine)
    return version


def _guard_all(cells: t.Sequence[Cell], host: Host) -> dict[CellKey, TargetFacts]:
    """Facts of every target; all refusals of a host are told at once.

    :raises StorageError: the refusal of the first target, with the others behind it.
    """
    devices = host.devices()
    known: dict[tuple[Target, bool], TargetFacts] = {}
    refusals: list[StorageError] = []
    for target, writing in dict.fromkeys((cell.target, cell.job.writes) for cell in cells):
        try:
            facts = guard.examine(devices, target, host.runner, host.root, writing=writing)
            guard.require(facts, writing=writing)
        except StorageError as error:
            refusals.append(error)
        else:
            known[target, writing] = facts
    if refusals:
        first = refusals[0]
        first.message = " ".join(dict.fromkeys(error.message for error in refusals))
        first.facts["refusals"] = [{"target": error.item, "msg": error.message} for error in refusals[1:]]
        raise first
    return {cell.key: known[cell.target, cell.job.writes] for cell in cells}


def _kept(cells: t.Sequence[Cell], facts: t.Mapping[CellKey, TargetFacts], spool: Spool, version: Version) -> dict[CellKey, dict[str, t.Any]]:
    """Cells that are ``ok`` in the spool already, of the same job, target and fio.

    :raises BadInput: if the spool has an ``ok`` result of something else under the same name.
    """
    kept = {}
    for cell in cells:
        meta = spool.read_meta(cell.key)
        if meta is None or meta.get("state") != "ok":
            continue
        said = meta.get("target")
        now = _describe_target(cell.target, facts[cell.key])
        same = (meta.get("workload_sha256"), meta.get("fio_version")) == (cell.job.workload_sha256, version.text)
        if not same or not isinstance(said, dict) or _what_was_measured(said) != _what_was_measured(now):
            raise BadInput(
                f"The spool holds an ok result of {cell.key} in the campaign {spool.campaign} that was measured with another job, target or fio: "
                "collect it first, choose another campaign or variant, or set replace: true.",
                item=str(cell.key),
            )
        kept[cell.key] = meta
    return kept


def _what_was_measured(target: t.Mapping[str, t.Any]) -> tuple[t.Any, ...]:
    """What of a described target makes its figures those of another one: see :func:`_describe_target`."""
    identity, used = target.get("identity"), target.get("used_size")
    # A file is laid out by fio as large as asked for, so what it had before says nothing.
    size = None if target.get("kind") == "file" and used is not None else target.get("size")
    return (target.get("kind"), identity, target.get("path") if identity is None else None, used, size)


class _Campaign:
    """Runs cells one after the other."""

    def __init__(self, spool: Spool, host: Host, settings: Settings, version: Version) -> None:
        self.spool = spool
        self.host = host
        self.settings = settings
        self.version = version
        self.created: set[str] = set()

    def run(self, due: t.Sequence[Cell], kept: t.Mapping[CellKey, dict[str, t.Any]]) -> dict[CellKey, dict[str, t.Any]]:
        metas = dict(kept)
        for number, cell in enumerate(due, start=1):
            self.spool.require_space()
            self._note(number, len(due), cell, "running")
            metas[cell.key] = self._measure(cell)
            self._note(number, len(due), cell, metas[cell.key]["state"])
            if metas[cell.key]["state"] != "ok" and not self.settings.keep_going:
                break
        return metas

    def _note(self, number: int, count: int, cell: Cell, state: str) -> None:
        progress = {"cell": number, "cells": count, "name": cell.key.cell, "repeat": cell.key.repeat, "variant": cell.key.variant, "state": state}
        self.spool.note_progress({**progress, "time": self.host.clock()})

    def _measure(self, cell: Cell) -> dict[str, t.Any]:
        """One cell: guard, stack, counters, fio, counters, stack. Whatever happens, it leaves a folder with its state."""
        started = self.host.clock()
        try:
            devices = self.host.devices()
            facts = guard.examine(devices, cell.target, self.host.runner, self.host.root, writing=cell.job.writes, created=self.created)
            guard.require(facts, writing=cell.job.writes)
        except StorageError as error:
            return self._store_unmeasured(cell, Decision("refused", error.message), started)
        below = _devices_below(devices, facts, self.host.root)
        try:
            text = fio_job.render(cell.job, facts, series="series" if self.settings.series else None)
            with self.spool.workplace() as folder:
                return self._run(cell, facts, below, text, folder)
        except StorageError as error:
            if error.kind == "spool":
                raise
            return self._store_unmeasured(cell, Decision("refused" if isinstance(error, Refused) else "failed", error.message), started)

    def _run(self, cell: Cell, facts: TargetFacts, below: t.Sequence[BlockDevice], text: str, folder: Path) -> dict[str, t.Any]:
        job_file = folder / "job.fio"
        job_file.write_text(text)
        names = [device.name for device in below]
        before = {"time": self.host.clock(), "devices": fio_run.read_device_stats(names, self.host.root)}
        stacks = {"before": self._stack(below)}
        limit = self._limit(cell.job, facts)
        long = (cell.job.longest or self.settings.timeout) > fio_run.LONG_RUN
        if facts.target.kind == "file" and not facts.exists:
            self.created.add(facts.path)
        with guard.claimed(facts, self.host.root) if cell.job.writes else contextlib.nullcontext():
            run = fio_run.run_fio(self.host.runner, job_file, folder, limit=limit, long=long, read_only=self._read_only(cell, facts), clock=self.host.clock)
        after = {"time": self.host.clock(), "devices": fio_run.read_device_stats(names, self.host.root)}
        stacks["after"] = self._stack(below)
        output = fio_run.read_output(run)
        decision = fio_run.decide(cell.job, run, output)
        meta = self._meta(cell, facts, decision, run.started, run.finished)
        meta["job_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        # A run that was not whole has figures in its files, but none that could stand beside those of whole runs.
        if output is not None and decision.state in ("ok", "not_steady"):
            meta["summary"] = fio_output.summarize(output)
        files = _files(run, text, folder)
        files["device-stats.json"] = _json({"schema": SCHEMA, "before": before, "after": after})
        files["stack.json"] = _json({"schema": SCHEMA, **stacks})
        self.spool.store(cell.key, files, meta)
        return meta

    @staticmethod
    def _read_only(cell: Cell, facts: TargetFacts) -> bool:
        # A plain file that is not there yet must be written before it can be read.
        return not cell.job.writes and (facts.target.kind == "device" or facts.exists)

    def _limit(self, job: Job, facts: TargetFacts) -> float:
        layout = (facts.target.size or 0) / _LAYOUT_RATE if facts.target.kind == "file" else 0.0
        return (job.longest if job.longest is not None else self.settings.timeout) + layout + self.settings.slack

    def _stack(self, below: t.Sequence[BlockDevice]) -> dict[str, t.Any]:
        """The target's layers as they are now. A stack that cannot be read is said, and stops nothing."""
        if not below:
            return {"error": "The target is on no block device that is known."}
        try:
            return self.host.read_stack().describe(below[0].name)
        except StorageError as error:
            return {"error": error.message}

    def _store_unmeasured(self, cell: Cell, decision: Decision, started: float) -> dict[str, t.Any]:
        meta = self._meta(cell, None, decision, started, self.host.clock())
        self.spool.store(cell.key, {}, meta)
        return meta

    def _meta(self, cell: Cell, facts: TargetFacts | None, decision: Decision, started: float, finished: float) -> dict[str, t.Any]:
        return {
            "schema": SCHEMA,
            "state": decision.state,
            "reason": decision.reason,
            "campaign": self.spool.campaign,
            "host": self.settings.host_name,
            "variant": cell.key.variant,
            "cell": cell.key.cell,
            "repeat": cell.key.repeat,
            "target": _describe_target(cell.target, facts),
            "fio_version": self.version.text,
            "behaviour_class": fio_output.behaviour_class(self.version),
            "engines": list(cell.job.engines),
            "kernel": platform.release(),
            "started": started,
            "finished": finished,
            "elapsed": round(finished - started, 3),
            "asked_runtime": max((section.asked_runtime or 0 for section in cell.job.sections), default=0) or None,
            "summary": None,
            "job_sha256": None,
            "workload_sha256": cell.job.workload_sha256,
            "collection_version": COLLECTION_VERSION,
        }


def _describe_target(target: Target, facts: TargetFacts | None) -> dict[str, t.Any]:
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
        "size": facts.size if facts else None,
        "used_size": target.size,
    }


def _devices_below(devices: Devices, facts: TargetFacts, root: Path) -> list[BlockDevice]:
    """The target's device and everything under it, the target's first; for a file, those of its file system."""
    device = facts.device
    if device is None:
        folder = (root / facts.path.lstrip("/")).parent
        number = os.stat(folder).st_dev
        device = next((one for one in devices if one.number == f"{os.major(number)}:{os.minor(number)}"), None)
    return [] if device is None else [device, *devices.parents(device)]


def _files(run: Run, text: str, folder: Path) -> dict[str, bytes]:
    """What a run leaves behind, by the names of the spool. An empty output leaves no file."""
    files = {"job.fio": text.encode()}
    if run.report:
        files["fio.json.gz"] = run.report
    if run.other_output.strip():
        files["fio.stderr.gz"] = run.other_output.encode()
    for log in sorted(folder.glob("series_*.log")):
        files[f"{log.name}.gz"] = log.read_bytes()
    return files


def _json(content: t.Any) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()
