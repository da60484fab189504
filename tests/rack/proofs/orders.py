# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Orders that are carried out as the module fio_runner carries them out: checked, prepared, and run by a runner of their own."""

from __future__ import annotations

import itertools
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

_CAMPAIGNS = itertools.count(1)
_PATIENCE = 120.0


@dataclass(frozen=True)
class Outcome:
    """What became of an order.

    :param refused: before anything of it ran.
    :param states: of its cells.
    """

    refused: bool
    states: tuple[str, ...]
    text: str


class _Stack:
    """In the place of the layers below a target: to read them is most of the time of an order, and decides nothing about what is written."""

    def describe(self, name: str) -> dict[str, t.Any]:
        return {"name": name, "layers": []}


def carry_out(spool: Path, *cells: t.Mapping[str, t.Any], check_mode: bool = False, together: bool = True) -> Outcome:
    """Carry out an order with these cells in a campaign of its own and wait for its end.

    :param cells: ``target`` and ``job`` of each.
    :param together: all in one step.
    """
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order

    campaign = f"attack-{next(_CAMPAIGNS)}-{time.time_ns()}"
    rows = [{"name": f"cell{number}", **cell} for number, cell in enumerate(cells)]
    steps = [{"cells": rows}] if together else [{"cells": [row]} for row in rows]
    raw = {"campaign": campaign, "variant": "attack", "host": "host", "steps": steps, "series": False, "slack": 30.0}
    runner = Runner()
    try:
        place = control.spool_of(str(spool), campaign)
        control.start(read_order(raw), place, MeasuredHost(runner, lambda _devices: _Stack()), check_mode=check_mode)
        if check_mode:
            return Outcome(False, (), "accepted")
        rows = _finished(control, place)
    except StorageError as error:
        return Outcome(True, (), error.message)
    states = tuple(row["state"] for row in rows)
    return Outcome(False, states, "; ".join(f"{row['state']}{': ' if row.get('reason') else ''}{row.get('reason') or ''}" for row in rows))


def _finished(control: t.Any, place: t.Any) -> list[dict[str, t.Any]]:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import read_status

    ends = time.monotonic() + _PATIENCE
    # Only its status: the machine has one processor, and the runner needs it.
    while is_alive(read_status(place.home)):
        if time.monotonic() > ends:
            control.stop(place, check_mode=False, patience=5.0)
            raise RuntimeError("the runner did not end in time and was stopped")
        time.sleep(0.5)
    return control.pack(place, check_mode=True)["cells"]
