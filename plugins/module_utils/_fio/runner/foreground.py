# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Measure a list of cells on this host, one after the other, and leave each in the spool.

Everything that can be refused is refused before the first cell runs: half a campaign on wrong devices helps nobody. Each cell
is guarded again right before it runs, for the host may have changed since.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import hashlib
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import (
    Cell,
    MeasuredHost,
    as_json,
    describe_cell,
    describe_target,
    devices_below,
    files_of,
    is_read_only,
    read_cells,
    time_limit,
    what_was_measured,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import SCHEMA, CellKey, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target import examination, guard
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target.checks import Fio, check_fio, guard_all
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target.handover import handed_over
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target.left_devices import LeftDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.versions import notes_on

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Version
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target.handover import Handover
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target_facts import TargetFacts

__all__ = ["SCHEMA", "MeasuredHost", "Settings", "measure", "read_cells"]


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


def measure(cells: t.Sequence[Cell], spool: Spool, host: MeasuredHost, settings: Settings, *, check_mode: bool) -> dict[str, t.Any]:
    """Measure all cells.

    :returns: the result of the module.
    :raises StorageError: before anything has run, if anything is refused; later only if the spool cannot be written.
    """
    if not cells:
        return {"changed": False, "cells": [], "actions": [], "archive": {}, "fio_version": None}
    fio = check_fio(cells, host)
    version = fio.version
    facts = guard_all(cells, host, host.devices(), MadeFiles(spool, host.root).paths(), LeftDevices(spool))
    for cell in cells:
        fio_run.check_job_file(host.runner, fio_job.render(cell.job, facts[cell.key], without=fio.abilities.without), cell.key.cell)
    kept = {} if settings.replace else _kept(cells, facts, spool, version)
    due = [cell for cell in cells if cell.key not in kept]
    actions = [f"measure {cell.key} on {cell.target.path} ({'writing' if cell.job.writes else 'reading'})" for cell in due]
    result: dict[str, t.Any] = {"changed": bool(due), "actions": actions, "fio_version": version.text, "archive": {}}
    if check_mode:
        return {**result, "cells": [_outcome(cell.key, kept[cell.key], kept=True) for cell in cells if cell.key in kept]}
    with spool.opened():
        metas = _Campaign(spool, host, settings, fio).run(due, kept)
        archive = spool.pack()
    rows = [_outcome(cell.key, metas.get(cell.key), kept=cell.key in kept) for cell in cells]
    return {**result, "cells": rows, "archive": archive}


def _outcome(key: CellKey, meta: t.Mapping[str, t.Any] | None, *, kept: bool) -> dict[str, t.Any]:
    if meta is None:
        meta = {"state": "missing", "reason": "An earlier cell was not ok and keep_going is false.", "summary": None}
    return {"name": key.cell, "repeat": key.repeat, "state": meta["state"], "reason": meta["reason"], "summary": meta["summary"], "kept": kept}


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
        now = describe_target(cell.target, facts[cell.key])
        same = (meta.get("workload_sha256"), meta.get("fio_version")) == (cell.job.workload_sha256, version.text)
        if not same or not isinstance(said, dict) or what_was_measured(said) != what_was_measured(now):
            raise BadInput(
                f"The spool holds an ok result of {cell.key} in the campaign {spool.campaign} that was measured with another job, target or fio: "
                "collect it first, choose another campaign or variant, or set replace: true.",
                item=str(cell.key),
            )
        kept[cell.key] = meta
    return kept


class _Campaign:
    """Runs cells one after the other."""

    def __init__(self, spool: Spool, host: MeasuredHost, settings: Settings, fio: Fio) -> None:
        self.spool = spool
        self.host = host
        self.settings = settings
        self.fio = fio
        self.made = MadeFiles(spool, host.root)
        self.left = LeftDevices(spool)

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
            facts = examination.examine(
                devices, cell.target, self.host.runner, self.host.root, writing=cell.job.writes, created=self.made.paths(), left=self.left
            )
            guard.require(facts, writing=cell.job.writes)
        except StorageError as error:
            return self._store_unmeasured(cell, Decision("refused", error.message), started)
        below = devices_below(devices, facts, self.host.root)
        try:
            with self._claimed(cell, facts), handed_over(facts, cell.job, self.made, self.host.root) as given, self.spool.workplace() as folder:
                return self._run(cell, facts, given, below, folder)
        except StorageError as error:
            if error.kind == "spool":
                raise
            return self._store_unmeasured(cell, Decision("refused" if isinstance(error, Refused) else "failed", error.message), started)

    @contextlib.contextmanager
    def _claimed(self, cell: Cell, facts: TargetFacts) -> t.Iterator[None]:
        """Hold a device that is written, and note whose it is."""
        if not cell.job.writes or facts.device is None:
            yield
            return
        with guard.claimed(facts, self.host.root):
            guard.require_contents(examination.examined_again(facts, self.host.runner, self.host.root, self.left))
            self.left.begin(facts)
            try:
                yield
            finally:
                self.left.leave(facts, self.host.root)

    def _run(self, cell: Cell, facts: TargetFacts, given: Handover, below: t.Sequence[BlockDevice], folder: Path) -> dict[str, t.Any]:
        job_file = folder / "job.fio"
        series = "series" if self.settings.series else None
        text = fio_job.render(cell.job, given.facts, series=series, without=self.fio.abilities.without)
        job_file.write_text(text)
        if given.note:
            text = fio_job.render(cell.job, facts, series=series, without=self.fio.abilities.without) + given.note + "\n"
        names = [device.name for device in below]
        before = {"time": self.host.clock(), "devices": fio_run.read_device_stats(names, self.host.root)}
        stacks = {"before": self._stack(below)}
        limit = time_limit(cell.job, facts, self.settings.timeout, self.settings.slack)
        long = (cell.job.longest or self.settings.timeout) > fio_run.LONG_RUN
        run = fio_run.run_fio(
            self.host.runner,
            job_file,
            folder,
            limit=limit,
            long=long,
            read_only=is_read_only(cell, facts),
            clock=self.host.clock,
            output_format=self.fio.abilities.output_format,
            descriptors=given.descriptors,
        )
        self.made.leave([(facts.path, cell.job.writes)] if facts.device is None else [])
        after = {"time": self.host.clock(), "devices": fio_run.read_device_stats(names, self.host.root)}
        stacks["after"] = self._stack(below)
        output = fio_run.read_output(run, cell.job.block_size)
        decision = fio_run.decide(cell.job, run, output)
        meta = self._meta(cell, facts, decision, run.started, run.finished)
        meta["job_sha256"] = hashlib.sha256(text.encode()).hexdigest()
        # A run that was not whole has figures in its files, but none that could stand beside those of whole runs.
        if output is not None and decision.state in ("ok", "not_steady"):
            meta["summary"] = fio_output.summarize(output)
        files = files_of(run, text, folder)
        files["device-stats.json"] = as_json({"schema": SCHEMA, "before": before, "after": after})
        files["stack.json"] = as_json({"schema": SCHEMA, **stacks})
        self.spool.store(cell.key, files, meta)
        return meta

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
        meta = describe_cell(self.spool.campaign, self.settings.host_name, self.fio.version, cell, facts, decision, started, finished)
        return {**meta, "notes": [*notes_on(self.fio.version, self.fio.abilities), *decision.notes]}
