# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A campaign of many hosts in a terminal: what all of them did, from the tables. A line for each host would be read by nobody.

Files are not read again: their hashes were checked when the tables were made, and a table is made again when a result changes.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, median, read_rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.sums import Sum, Sums, notes_of_sums, read_sums, rows_of_sums
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, times
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Ratio, Row, worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.fleet import compare_fleet
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Point

#: With more hosts than this there are lines of all hosts only.
MANY = 20

_Key = t.Tuple[str, str, str]


@dataclass(frozen=True)
class Fleet:
    """All that the terminal shows. ``read``, ``points`` and ``sums``: what it was made of, for the report."""

    campaign: Campaign
    rows: list[Row]
    ratios: list[Ratio]
    sums: Sums
    shown: list[Sum]
    notes: list[str]
    read: Rows
    points: list[Point]


def read_fleet(folder: Path, name: str, baseline: str = "", problems: t.Sequence[str] = ()) -> Fleet:
    """A campaign from its tables.

    :param problems: what was left out when the tables were made.
    :raises ResultsError: if there are no tables.
    """
    database = open_tables(folder)
    try:
        read = read_rows(database, folder.name)
        sums = read_sums(database, read)
    finally:
        database.close()
    every = read.points()
    points = [one for one in every if one.direction != "sync"]
    variants = read.variants
    once = {(one.host, one.variant, one.cell, one.repeat): one for one in read.measurements}
    records = tuple(CellRecord(one.host, CellKey(one.variant, one.cell, one.repeat), one.state, one.reason or "") for one in once.values())
    shown = Sums([one for one in sums.every if not one.host], sums.latency)
    rows = [*rows_of_sums(shown, read), *_median_rows(points)]
    rows.sort(key=lambda row: (variants.index(row.variant), row.cell, row.direction))
    ratios = _ratios(points, baseline or (variants[0] if variants else ""))
    return Fleet(Campaign(name, folder, tuple(variants), records, tuple(problems)), rows, ratios, sums, shown.every, _notes(shown.every, read), read, every)


# ---------------------------------------------------------------------------------------------------------------------
# Hosts


def _by_cell(points: t.Iterable[Point]) -> dict[_Key, list[Point]]:
    found: dict[_Key, list[Point]] = {}
    for one in points:
        if one.iops is not None and not is_probe(one.cell):
            found.setdefault((one.variant, one.cell, one.direction), []).append(one)
    return found


def _median_rows(points: t.Sequence[Point]) -> t.Iterator[Row]:
    """One for each cell: the host in the middle, and how far the others are from it."""
    for (variant, cell, direction), here in _by_cell(points).items():
        iops = [one.iops for one in here if one.iops is not None]
        middle = median(iops)
        verdicts = {verdict or "unknown" for one in here for run in one.runs for verdict in (run.verdict_before, run.verdict_after)}
        yield Row(
            host=f"median of {len(here)}",
            variant=variant,
            cell=cell,
            direction=direction,
            iops=middle,
            bandwidth=median(one.bandwidth for one in here),
            latency={one.name: None for one in SHOWN},
            synced=False,
            spread=(max(iops) - min(iops)) / middle if middle and len(iops) > 1 else None,
            runs=min(len(one.runs) for one in here),
            planned=max(len(one.runs) for one in here),
            state=worst(one.state for one in here),
            verdict=next((one for one in ("at_risk", "unknown", "durable") if one in verdicts), None),
        )


def _ratios(points: t.Sequence[Point], base: str) -> list[Ratio]:
    """Each variant against the baseline over the fleet, hosts paired with themselves."""
    cells = _by_cell(points)
    sides = {key: {one.host: [run.iops for run in one.runs if run.iops] for one in here} for key, here in cells.items()}
    found = []
    for variant, cell, direction in cells:
        first = sides.get((base, cell, direction), {})
        own = sides[variant, cell, direction]
        both = {host: (first[host], values) for host, values in own.items() if first.get(host) and values}
        if variant == base or not both:
            continue
        overall = compare_fleet(both).overall
        ratio = overall.ratio if overall.ratio is not None else overall.ratio_of_medians
        found.append(Ratio(f"{len(both)} hosts", cell, direction, base, variant, ratio, _note(overall)))
    return found


def _note(overall: t.Any) -> str:
    said = overall.verdict.replace("_", " ")
    between = f", {overall.interval.confidence:.1%} between {times(overall.interval.low)} and {times(overall.interval.high)}" if overall.interval else ""
    return said + between


def _notes(sums: t.Sequence[Sum], read: Rows) -> list[str]:
    hosts = counted(len(read.hosts), "host")
    return [f"{hosts}: lines are of all of them. Each host is in the report and in its CSV; SPREAD is over hosts, or repeats of a sum.", *notes_of_sums(sums)]
