# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Open a campaign and write the plan of a host; on the controller only."""

from __future__ import annotations

import datetime
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey, component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.modules.campaign import argument_spec
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import Verb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.finished import (
    ExpectedMeasurement,
    finished,
    measured_as,
    measured_note,
    unexplained,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.groups import note_group
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import results_folder
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Pattern
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import jobs_of, mark_done


class ActionModule(Verb):
    _requires_connection = False

    argument_spec = staticmethod(argument_spec)

    def answer(self, options: dict[str, t.Any]) -> dict[str, t.Any]:
        host = self._host
        now = datetime.datetime.now(datetime.timezone.utc)
        dry_run = bool(self._task.check_mode)
        variant = options["variant"]
        cells = {_key(cell, variant, host): cell for cell in options["cells"]}
        if options["group"]:
            component(options["group"], "group")
        patterns = [Pattern.from_dict(row) for row in options["patterns"]]
        results = results_folder(options["results"])
        if not dry_run:
            _require_kept(results)
        folder, changed = store.open_campaign(results, options["name"], options["label"], now=now, dry_run=dry_run)
        done: set[CellKey] = set()
        steps: list[dict[str, t.Any]] = options["steps"]
        note = ""
        if cells:
            # Of a cell with a job of its own the controller determines whether it is done; for steps the runner on the host does.
            jobs = {key: _expected(cell, key.cell) for key, cell in cells.items() if cell.get("job") is not None}
            if not options["replace"]:
                done = finished(folder, host, jobs)
                if steps:
                    stored = measured_as(folder, host, variant)
                    steps = mark_done(steps, stored)
                    note = measured_note(folder, host, variant, [(key.cell, key.repeat) for key in cells])
                    # In check mode it is printed with the plan, before this.
                    if note and not dry_run:
                        self._display.display(note)
                    self._warn_of_old(folder, host, cells)
            requested = [(key.cell, key.repeat) for key in cells]
            planned = {key.cell: cell["job"] for key, cell in cells.items() if isinstance(cell.get("job"), dict)} | jobs_of(steps)
            changed |= store.write_plan(folder, host, variant, requested, patterns=patterns, jobs=planned, now=now, dry_run=dry_run)
            if not dry_run:
                changed |= note_group(folder, host, variant, options["group"])
        if done:
            self._display.display(f"{host}: {len(done)} of {len(cells)} cells are ok in {folder} already.")
        due = [cell for key, cell in cells.items() if key not in done]
        return {"changed": changed, "name": folder.name, "path": str(folder), "due": due, "steps": steps, "measured": bool(note)}

    def _warn_of_old(self, folder: Path, host: str, cells: t.Iterable[CellKey]) -> None:
        """Warn before hours are spent on results that will be rejected."""
        old = unexplained(folder, host, cells)
        if old:
            self._display.warning(
                f"{host}: {len(old)} ok results in {folder} are of an earlier version of the collection ({old[0]}), which did not note what exactly it"
                " measured, so these cells are measured again: set fio_benchmark_replace to true to put the new results in their place, or name another"
                " campaign or variant to have both."
            )


def _require_kept(results: Path) -> None:
    """AWX and automation controllers run a job in a folder of its own, which they name in its environment.

    :raises BadInput: if the results would be lost with it.
    """
    job = os.environ.get("AWX_PRIVATE_DATA_DIR", "")
    if job and Path(job).resolve() in (results.resolve(), *results.resolve().parents):
        raise BadInput(
            f"The results folder {results} is in the folder of this job, {job}, which is removed when the job has ended: set fio_benchmark_results to a"
            " folder that is kept, for example one that is mounted into the execution environment."
        )


def _key(cell: t.Mapping[str, t.Any], variant: str, host: str) -> CellKey:
    if not variant:
        raise BadInput("The cells have no variant: set it to the name of the measured cache configuration.")
    component(host, "host")
    return CellKey.checked(variant, cell.get("name"), cell.get("repeat"))


def _expected(cell: t.Mapping[str, t.Any], name: str) -> ExpectedMeasurement:
    target = cell.get("target")
    target = target if isinstance(target, dict) else {}
    size = target.get("size")
    job = read_job(cell.get("job"), name)
    path = str(target.get("device") or target.get("file") or target.get("directory"))
    return ExpectedMeasurement(job.workload_sha256, path, None if size is None else parse_size(size, item=name))
