# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What became of each cell of an order, one line of JSON each as soon as it is known, and what is returned of it when results are packed."""

from __future__ import annotations

import contextlib
import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import read_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import Order

_FILE = "outcomes.log"
#: Bytes of it: a hundred thousand cells.
_LARGEST = 64 * MIB
_GOOD = ("ok", "not_steady")


class Outcomes:
    """The outcomes of one runner; a new one begins anew."""

    def __init__(self, spool: Spool, order_sha256: str) -> None:
        self.path = spool.home / _FILE
        self._found: dict[CellKey, tuple[str, bool]] = {}
        with contextlib.suppress(OSError):
            self.path.write_text(json.dumps({"order_sha256": order_sha256}) + "\n")

    def note(self, key: CellKey, state: str, *, kept: bool, reason: str, where: str) -> None:
        self._found[key] = (state, kept)
        row = {"cell": key.cell, "repeat": key.repeat, "state": state, "kept": kept, "reason": reason, "where": where}
        # Only a convenience: the spool is the source of truth.
        with contextlib.suppress(OSError), open(self.path, "a") as file:
            file.write(json.dumps(row) + "\n")

    def kept(self, key: CellKey) -> bool | None:
        """Whether a cell was kept; ``None`` if nothing is known of it yet."""
        return self._found[key][1] if key in self._found else None

    @property
    def done(self) -> int:
        return sum(state in _GOOD for state, kept in self._found.values())

    @property
    def failed(self) -> int:
        return len(self._found) - self.done


def read_outcomes(home: Path, order_sha256: str) -> dict[tuple[str, int], dict[str, t.Any]]:
    """The last outcome of each cell of the last runner of an order."""
    try:
        lines = read_file(home / _FILE, _LARGEST).splitlines()
    except CommandFailed:
        return {}
    rows = []
    for line in lines:
        # A line that a killed runner did not finish is ignored.
        with contextlib.suppress(NotUnderstood):
            rows.append(json_text.loads(line))
    if not rows or not isinstance(rows[0], dict) or rows[0].get("order_sha256") != order_sha256:
        return {}
    return {(row["cell"], row["repeat"]): row for row in rows[1:] if _is_outcome(row)}


def _is_outcome(row: t.Any) -> bool:
    return isinstance(row, dict) and isinstance(row.get("cell"), str) and isinstance(row.get("repeat"), int)


def describe(order: Order, spool: Spool) -> list[dict[str, t.Any]]:
    """Every cell of an order as it stands now, in the order of the steps, each search and its probes together."""
    noted = read_outcomes(spool.home, order.sha256)
    rows = []
    for step in order.steps:
        for requested in step.cells:
            key = requested.cell.key
            if step.kind != "cells":
                names = sorted({name for name, repeat in noted if repeat == key.repeat and name.startswith(f"{key.cell}.")}, key=_place)
                rows += [_row(CellKey(key.variant, name, key.repeat), spool, noted, step.number) for name in names]
            rows.append(_row(key, spool, noted, step.number))
    return rows


def _place(name: str) -> tuple[int, str]:
    number = name.rsplit("-", 1)[-1]
    return (int(number) if number.isdigit() else 0, name)


def _row(key: CellKey, spool: Spool, noted: t.Mapping[tuple[str, int], t.Mapping[str, t.Any]], step: int) -> dict[str, t.Any]:
    known = noted.get((key.cell, key.repeat), {})
    row = {"name": key.cell, "repeat": key.repeat, "step": step, "kept": bool(known.get("kept"))}
    meta = spool.read_meta(key)
    if meta is not None:
        return {**row, "state": meta.get("state"), "reason": meta.get("reason", ""), "summary": meta.get("summary")}
    if known.get("where") == "controller":
        return {**row, "state": "ok", "reason": "", "summary": None}
    return {**row, "state": "missing", "reason": "It was not measured.", "summary": None}
