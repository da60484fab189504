# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Starting, stopping and querying the runner of a campaign on this host."""

from __future__ import annotations

import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import (
    BackgroundProcess,
    end_process,
    is_alive,
    is_ending,
    wait_for_end,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import require_path
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import supplied_logs
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.checks import refusals_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import (
    ENDED,
    STATUS_FILE,
    RunnerLog,
    Status,
    read_status,
    status_journal,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import PATIENCE, end_leftovers
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import outcomes
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.barriers import forget_releases
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import ORDER_FILE, Order, edges, read_order, seconds_left
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.preparation import Prepared, prepare
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.runner import HostRun
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool, SpoolError
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.registry import find_tools

#: Seconds that a runner has to stop: fio may finish its I/O, and then the results are stored.
STOPPING = PATIENCE + 30.0
_UNLOCKING = 5.0

#: Seconds between a runner's last status and its end: it holds the spool for a moment longer, also after it was killed.
ENDING = 10.0

RUNNER = BackgroundProcess("The runner", "cachefleet-fio")


class Busy(StorageError):
    """Something else is being measured on this host."""

    kind = "busy"


def start(order: Order, spool: Spool, host: MeasuredHost, *, check_mode: bool) -> dict[str, t.Any]:
    """Start a runner for this order, unless one carries it out already.

    :returns: the result of the module.
    :raises StorageError: if anything of the order is refused, or if something else is being measured; nothing was started then.
    """
    if not order.steps:
        return {"changed": False, "attached": False, "actions": [], "runner": {}, "fio_version": None, "order_sha256": order.sha256}
    current = _current_runner(order.sha256, spool)
    if current is not None:
        return {"changed": False, "attached": True, "actions": [], "runner": current, "fio_version": None, "order_sha256": order.sha256}
    prepared = validated(order, spool, host, check_mode=check_mode)
    result = {"changed": True, "attached": False, "actions": _actions(order), "fio_version": prepared.fio.version.text, "order_sha256": order.sha256}
    if check_mode:
        return {**result, "runner": {}}
    launch(prepared, spool, host)
    return {**result, "runner": _described(spool)}


def validated(order: Order, spool: Spool, host: MeasuredHost, *, check_mode: bool) -> Prepared:
    """The order, if it can be carried out on this host.

    :raises StorageError: the first refusal; those of all targets together.
    """
    if not check_mode:
        # A fio whose runner was killed may go on for a while, and would keep its target busy.
        end_leftover_fio(spool)
        supplied_logs.require([requested.cell.job for requested in order.requested], spool, host.root)
    return prepare(order, host, MadeFiles(spool, host.root), LeftDevices(spool.folder, spool.campaign))


def examine(order: Order, spool: Spool, host: MeasuredHost, caches: t.Sequence[str]) -> dict[str, t.Any]:
    """What the guard refuses of the targets of an order: nothing is started.

    :param caches: of :func:`refusals_of`.
    :returns: the result of the module.
    """
    cells = [requested.cell for step in order.steps for requested in (*step.cells, *edges(step))]
    made, left = MadeFiles(spool, host.root), LeftDevices(spool.folder, spool.campaign)
    return {"changed": False, "actions": [], "runner": {}, "refusals": refusals_of(cells, host, made.paths(), left, caches)}


def launch(prepared: Prepared, spool: Spool, host: MeasuredHost, starter: int | None = None) -> None:
    """Start the runner.

    :param starter: the descriptor of :class:`Waiter`, if the runner stops when this process ends.
    :raises StorageError: if it could not begin.
    """
    spool.make()
    # The code for a RAID tool is imported where the tool is: now, because the runner outlives the archive that it would be imported from.
    find_tools(host.runner)
    keep = () if starter is None else (starter,)
    RUNNER.start(lambda under_way: _runner_main(prepared, spool, host, Waiter(starter), under_way), host.runner, keep)


def require_idle(spool: Spool) -> None:
    """:raises Busy: if a runner measures with this spool."""
    _current_runner(None, spool)


def _current_runner(sha256: str | None, spool: Spool) -> dict[str, t.Any] | None:
    """The runner that carries out the order with a hash, if there is one.

    :raises Busy: if one carries out another order, of this campaign or of another one.
    """
    for place in sorted(spool.folder.glob(f"*/{STATUS_FILE}")):
        status = read_status(place.parent)
        if status.get("state") in ENDED or is_ending(status):
            wait_for_end(status, ENDING)
            continue
        if not is_alive(status):
            continue
        if place.parent == spool.home and sha256 is not None and status.get("order_sha256") == sha256:
            return {**status, "alive": True}
        which = f"{'an' if sha256 is None else 'another'} order of the campaign" if place.parent == spool.home else "the campaign"
        doing = f"{status.get('state')} {status.get('cell') or ''}".strip()
        raise Busy(
            f"This host is busy with {which} {place.parent.name} ({doing}, step {(status.get('step') or 0) + 1} of {status.get('steps')}): "
            "wait for its end, or stop it with cachefleet.storage.fio_runner and state: stopped.",
            item=place.parent.name,
        )
    return None


def _actions(order: Order) -> list[str]:
    words = {"search": "search", "rounds": "measure rounds of"}
    return [describe_action(requested.cell, words.get(step.kind, "measure")) for step in order.steps for requested in step.cells]


def describe_action(cell: Cell, verb: str = "measure") -> str:
    """What is done for a cell, or would be."""
    places = [f"{part.target.path} ({'writing' if part.job.writes else 'reading'})" for part in cell.parts]
    return f"{verb} {cell.key} on {' and '.join(places)}"


def _runner_main(prepared: Prepared, spool: Spool, host: MeasuredHost, waiter: Waiter, under_way: t.Callable[[], None]) -> None:
    """The runner from beginning to end, in its own process."""
    order = prepared.order
    log = RunnerLog(spool.home)
    with spool.opened():
        forget_releases(spool.home)
        order_journal(spool).write({**order.raw, "order_sha256": order.sha256})
        status = Status(spool.home, host.clock, order_sha256=order.sha256, steps=len(order.steps), all_until=host.clock() + seconds_left(order)[0])
        made = MadeFiles(spool, host.root)
        run = HostRun(prepared, spool, host, status, waiter, log, made, LeftDevices(spool.folder, spool.campaign))
        with run.claims():
            waiter.listen()
            status.update()
            log.write(f"started with {len(order.steps)} steps as process {os.getpid()}")
            under_way()
            run.run()


def _described(spool: Spool) -> dict[str, t.Any]:
    status = read_status(spool.home)
    return {**status, "alive": is_alive(status)} if status else {}


def stop(spool: Spool, *, check_mode: bool, patience: float = STOPPING) -> dict[str, t.Any]:
    """Stop the runner of a campaign and wait for its end; what it measured stays.

    :returns: the result of the module.
    :raises SpoolError: if another user could have written which process that is.
    """
    spool.require_own()
    status = read_status(spool.home)
    running = is_alive(status)
    result: dict[str, t.Any] = {"changed": running, "actions": [f"stop the runner of {spool.campaign}"] if running else []}
    if check_mode:
        return {**result, "cells": [], "archive": {}, "runner": _described(spool)}
    end_runner(spool, patience)
    return {**result, **_packed(spool)}


def end_runner(spool: Spool, patience: float = STOPPING) -> None:
    """Stop the runner of a campaign, if there is one, and every fio that it left."""
    status = read_status(spool.home)
    running = is_alive(status)
    if running:
        end_process(status, patience)
    # A process that the runner was just starting has the lock for a moment longer than the runner.
    end_leftover_fio(spool, _UNLOCKING if running else 0.0)
    if running and read_status(spool.home).get("state") not in ENDED:
        # It was killed, and did not write its last status.
        status_journal(spool.home).write({**status, "state": "stopped", "message": "The runner did not stop in time and was killed."})


def end_leftover_fio(spool: Spool, patience: float = 0.0) -> None:
    """End every fio whose runner is gone.

    :param patience: seconds to wait for the lock of a runner that has just been ended.
    """
    ends = time.monotonic() + patience
    while not (free := spool.is_free()) and time.monotonic() < ends:
        time.sleep(0.05)
    if free:
        end_leftovers(f"--output={spool.home}/.cell.", beginning=True)


def pack(spool: Spool, *, check_mode: bool) -> dict[str, t.Any]:
    """Pack what is finished and return the state of each cell; a running runner is not disturbed.

    :returns: the result of the module.
    :raises SpoolError: if another user could have written what would be packed.
    """
    spool.require_own()
    if check_mode:
        return {"changed": False, "actions": [], "cells": _cells(spool), "archive": {}, "runner": _described(spool)}
    return {"changed": False, "actions": [], **_packed(spool)}


def _packed(spool: Spool) -> dict[str, t.Any]:
    # Read before packing: what ends afterwards is returned by the next call.
    runner = _described(spool)
    archive = spool.pack() if spool.home.is_dir() else {}
    return {"cells": _cells(spool), "archive": archive, "runner": runner}


def _cells(spool: Spool) -> list[dict[str, t.Any]]:
    """Every cell of the last order; none without an order.

    :raises SpoolError: if the order cannot be read.
    """
    order = order_journal(spool).read()
    return [] if order is None else outcomes.describe(order, spool)


def order_journal(spool: Spool) -> Journal[Order]:
    """The order of the last runner of a campaign."""
    path = spool.home / ORDER_FILE

    def unusable(error: StorageError) -> t.NoReturn:
        reason = error.message if isinstance(error, BadInput) else "It is damaged."
        raise SpoolError(f"{path} on this host is not what fio_runner writes ({reason}): start the runner again with its order.", item=str(spool.home))

    return Journal(path, read_order, unusable, limits=json_text.FIO)


def spool_of(folder: str, campaign: str) -> Spool:
    """:raises BadInput: if the campaign or the spool cannot be a folder."""
    require_path(Path(folder), "spool")
    return Spool(Path(folder), campaign)
