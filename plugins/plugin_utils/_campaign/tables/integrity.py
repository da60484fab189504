# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a campaign is whole: every file is what it was, every planned cell is there, and the tables match what is there now."""

from __future__ import annotations

import typing as t
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import STATES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import TABLES_FOLDER
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables


@dataclass(frozen=True)
class Trouble:
    """One cell that is not as it should be: ``host/variant/cell/repeat``, and what is wrong, as a sentence."""

    cell: str
    problem: str


@dataclass(frozen=True)
class Checked:
    """What was found.

    :param states: how many cells are in which state.
    :param damaged: cells whose files are not those that were measured; ``missing``: those that were planned and are not there.
    :param stale: hosts whose tables are not of the files that are there now; empty if there are no tables.
    :param doubled: hosts with rows that are in the tables twice, because two writers have written them.
    :param left_out: what lies in the folder and belongs to no campaign, as sentences.
    """

    states: t.Mapping[str, int]
    damaged: tuple[Trouble, ...]
    missing: tuple[Trouble, ...]
    stale: tuple[str, ...]
    doubled: tuple[str, ...]
    left_out: tuple[str, ...]


def check(campaign: Path, tables: Path | None = None) -> Checked:
    """Compare every file of a campaign with its hash, and the tables with the files.

    :param tables: where they lie, if not in the campaign's folder.
    :raises ResultsError: if it is not the folder of a campaign.
    """
    found = store.load_campaign(campaign, contents=True)
    counted = Counter(record.state for record in found.cells)
    stale, doubled = _of_tables(campaign, tables)
    return Checked(
        states={state: counted[state] for state in STATES if state in counted},
        damaged=tuple(_trouble(record, plain("; ".join(record.problems), 500)) for record in found.cells if record.problems),
        missing=tuple(_trouble(record, record.reason) for record in found.cells if record.state == "missing"),
        stale=stale,
        doubled=doubled,
        left_out=found.problems,
    )


def _trouble(record: store.CellRecord, problem: str) -> Trouble:
    return Trouble(f"{record.host}/{record.key}", problem)


def _of_tables(campaign: Path, tables: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    root = tables if tables is not None else campaign / TABLES_FOLDER
    if not (root / "cells").is_dir():
        return (), ()
    now = ingest(campaign, tables, dry_run=True)
    stale = tuple(sorted({*now.written, *now.removed}))
    if stale:
        # What has to be written anew need not be read.
        return stale, ()
    twice = "SELECT host FROM cells GROUP BY campaign, host, variant, cell, repeat, direction HAVING count(*) > 1"
    query = f"SELECT DISTINCT host FROM ({twice}) ORDER BY host"
    rows = read_tables(root, lambda database: database.execute(query).fetchall(), campaign=now.campaign)
    return (), tuple(plain(host) for (host,) in rows)
