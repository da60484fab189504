# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A list of cells, measured by the runner while the module waits for it; the runner stops when the module ends."""

from __future__ import annotations

import contextlib
import dataclasses
import select
import socket
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import wait_for_end
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import describe_target, read_cells, what_was_measured
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import read_status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import Order, read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.outcomes import read_outcomes
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import component

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.preparation import Prepared
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool

#: Seconds between two updates of progress.json.
_PROGRESS_INTERVAL = 0.5

Metas = t.Dict["CellKey", t.Dict[str, t.Any]]


class MeasurementEnded(StorageError):
    """The runner ended before everything was measured."""


def order_of(options: t.Mapping[str, t.Any]) -> Order:
    """The options of the module ``fio`` as an order with one step for each cell.

    :raises BadInput: naming the cell and what is wrong with it.
    """
    host = component(options["host"], "host")
    rows = [_with_size_in_bytes(row) for row in options["cells"]]
    read_cells(options["variant"], rows)
    pace = {name: options[name] for name in ("slack", "timeout", "replace", "keep_going") if name in options}
    pace.update(series=options.get("series", False), accept_not_steady=False)
    return read_order({"campaign": options["campaign"], "variant": options["variant"], "host": host, "steps": [{"cells": [row]} for row in rows], **pace})


def _with_size_in_bytes(row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    size = row["target"].get("size")
    return {**row, "target": {**row["target"], "size": None if size is None else parse_size(size, item=row["name"])}}


def measure(order: Order, spool: Spool, host: MeasuredHost, *, check_mode: bool) -> dict[str, t.Any]:
    """Measure all cells of an order and wait for the end.

    :returns: the result of the module.
    :raises StorageError: before anything has run, if anything is refused or something else is being measured; later if the spool cannot
        be written, or if the runner is stopped or killed.
    """
    if not order.steps:
        return {"changed": False, "cells": [], "actions": [], "archive": {}, "fio_version": None}
    control.require_idle(spool)
    prepared = control.validated(order, spool, host, check_mode=check_mode)
    cells = [requested.cell for requested in order.requested]
    kept = {} if order.pace.replace else _kept(cells, prepared, spool)
    due = [cell for cell in cells if cell.key not in kept]
    actions = [control.describe_action(cell) for cell in due]
    result: dict[str, t.Any] = {"changed": bool(due), "actions": actions, "fio_version": prepared.fio.version.text, "archive": {}}
    if check_mode:
        return {**result, "cells": [_row(cell.key, kept[cell.key], kept=True) for cell in cells if cell.key in kept]}
    metas = dict(kept)
    if due:
        _run(dataclasses.replace(prepared, kept=frozenset(kept)), due, spool, host)
        metas.update(_measured(order, due, spool))
    with spool.opened():
        archive = spool.pack()
    return {**result, "cells": [_row(cell.key, metas.get(cell.key), kept=cell.key in kept) for cell in cells], "archive": archive}


def _row(key: CellKey, meta: t.Mapping[str, t.Any] | None, *, kept: bool) -> dict[str, t.Any]:
    if meta is None:
        meta = {"state": "missing", "reason": "An earlier cell was not ok and keep_going is false.", "summary": None}
    return {"name": key.cell, "repeat": key.repeat, "state": meta["state"], "reason": meta["reason"], "summary": meta["summary"], "kept": kept}


def _kept(cells: t.Iterable[Cell], prepared: Prepared, spool: Spool) -> Metas:
    """Cells that are ``ok`` in the spool already, of the same job, target and fio.

    :raises BadInput: if the spool has an ``ok`` result of something else under the same name.
    """
    kept = {}
    for cell in cells:
        meta = spool.read_meta(cell.key)
        if meta is None or meta.get("state") != "ok":
            continue
        before = meta.get("target")
        now = describe_target(cell.target, prepared.facts_of(cell))
        same = (meta.get("workload_sha256"), meta.get("fio_version")) == (cell.job.workload_sha256, prepared.fio.version.text)
        if not same or not isinstance(before, dict) or what_was_measured(before) != what_was_measured(now):
            raise BadInput(
                f"The spool holds an ok result of {cell.key} in the campaign {spool.campaign} that was measured with another job, target or fio: "
                "collect it first, choose another campaign or variant, or set replace: true.",
                item=str(cell.key),
            )
        kept[cell.key] = meta
    return kept


def _measured(order: Order, due: t.Iterable[Cell], spool: Spool) -> Metas:
    """What the runner has stored; older results of cells that it did not reach are left out."""
    outcomes = read_outcomes(spool.home, order.sha256)
    found = {cell.key: spool.read_meta(cell.key) for cell in due if (cell.key.cell, cell.key.repeat) in outcomes}
    return {key: meta for key, meta in found.items() if meta is not None}


def _run(prepared: Prepared, due: t.Sequence[Cell], spool: Spool, host: MeasuredHost) -> None:
    """Start the runner and wait until it has ended.

    :raises StorageError: if it could not begin, or ended before everything was measured.
    """
    progress = _Progress(spool, due, host.clock)
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                control.launch(prepared, spool, host, starter=theirs.fileno())
            while not _has_ended(ours, _PROGRESS_INTERVAL):
                progress.note()
        except BaseException:
            _stop(ours, spool)
            raise
    # Its files are closed before the process is gone.
    wait_for_end(read_status(spool.home), control.ENDING)
    progress.finish(_measured(prepared.order, due, spool))
    _require_finished(spool)


def _has_ended(runner: socket.socket, seconds: float) -> bool:
    """Wait at most so long for the end of the runner. Its end of the socket closes with it, and nothing is ever sent."""
    return bool(select.select([runner], [], [], seconds)[0])


def _stop(runner: socket.socket, spool: Spool) -> None:
    """Stop the runner, also one that has just been started, and end it if it does not."""
    with contextlib.suppress(OSError):
        runner.shutdown(socket.SHUT_WR)
    if _has_ended(runner, control.STOPPING):
        wait_for_end(read_status(spool.home), control.ENDING)
    else:
        control.end_runner(spool)


def _require_finished(spool: Spool) -> None:
    """:raises MeasurementEnded: if the runner was stopped or killed, or has failed."""
    status = read_status(spool.home)
    state = status.get("state")
    if state == "finished":
        return
    if state == "failed":
        error = MeasurementEnded(status.get("message") or "The runner failed.")
        error.kind = status.get("error") or error.kind
        raise error
    control.end_leftover_fio(spool)
    what = "stopped" if state == "stopped" else "killed"
    error = MeasurementEnded(f"The runner on this host was {what}: fio was stopped, and finished cells are in the spool.", item=str(spool.home))
    error.kind = "stopped"
    raise error


class _Progress:
    """``progress.json``: which cell is being measured, counted among those that are due."""

    def __init__(self, spool: Spool, due: t.Sequence[Cell], clock: t.Callable[[], float]) -> None:
        self.spool = spool
        self.keys = [cell.key for cell in due]
        self.clock = clock
        self._noted: CellKey | None = None

    def note(self) -> None:
        """:raises SpoolError: if it cannot be written."""
        status = read_status(self.spool.home)
        for key in self.keys:
            if status.get("state") == "measuring" and (status.get("cell"), status.get("repeat")) == (key.cell, key.repeat) and key != self._noted:
                self._write(key, "running")

    def finish(self, metas: Metas) -> None:
        """Write the state of the cell that was measured last, if there is one.

        :raises SpoolError: if it cannot be written.
        """
        for key in [key for key in self.keys if key in metas][-1:]:
            self._write(key, metas[key]["state"])

    def _write(self, key: CellKey, state: str) -> None:
        self._noted = key
        place = {"cell": self.keys.index(key) + 1, "cells": len(self.keys)}
        self.spool.note_progress({**place, "name": key.cell, "repeat": key.repeat, "variant": key.variant, "state": state, "time": self.clock()})
