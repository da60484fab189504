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

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.compare import ENOUGH, Ratio, Row, worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.layout import MEASURED, CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, median, read_rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, listed, times
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.fleet import compare_fleet
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.store import Campaign, CellRecord
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Point

#: With more hosts than this there are lines of all hosts only.
MANY = 20

#: A common window shorter than this part of the shortest run says nothing of all hosts together (window.py).
_ENOUGH_IN_COMMON = 0.5

_Key = t.Tuple[str, str, str]


@dataclass(frozen=True)
class Sum:
    """One measurement of several hosts at once: rates added over the whole seconds in which all of them measured.

    :param group: hosts that share an array; empty for all hosts.
    :param iops: I/Os per second, and ``bandwidth`` bytes per second; ``None`` where they did not measure at the same time.
    :param hosts: those with numbers; ``planned``: those that should.
    :param pro_rata: hosts whose average was taken, for want of a series.
    :param skew: seconds from the first start to the last, ``tail`` from the first end to the last.
    """

    group: str
    variant: str
    cell: str
    repeat: int
    direction: str
    hosts: int
    planned: int
    iops: float | None
    bandwidth: float | None
    pro_rata: int
    skew: float
    tail: float

    def as_result(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        return dict(vars(self))


@dataclass(frozen=True)
class Fleet:
    """All that the terminal shows. ``read`` and ``points``: what it was made of, for the report."""

    campaign: Campaign
    rows: list[Row]
    ratios: list[Ratio]
    sums: list[Sum]
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
        sums = read_sums(database)
    finally:
        database.close()
    every = read.points()
    points = [one for one in every if one.direction != "sync"]
    variants = read.variants
    once = {(one.host, one.variant, one.cell, one.repeat): one for one in read.measurements}
    records = tuple(CellRecord(one.host, CellKey(one.variant, one.cell, one.repeat), one.state, one.reason or "") for one in once.values())
    rows = [*_sum_rows(sums, read), *_median_rows(points)]
    rows.sort(key=lambda row: (variants.index(row.variant), row.cell, row.direction))
    ratios = _ratios(points, baseline or (variants[0] if variants else ""))
    return Fleet(Campaign(name, folder, tuple(variants), records, tuple(problems)), rows, ratios, sums, _notes(sums, read), read, every)


# ---------------------------------------------------------------------------------------------------------------------
# Sums


def read_sums(database: DuckDBPyConnection) -> list[Sum]:
    """Every measurement that several hosts made at once: of all hosts, and of those that share an array."""
    groups = [row[0] for row in database.execute("SELECT DISTINCT coalesce(host_group, '') FROM cells ORDER BY 1").fetchall()]
    found = _sums(database, "''")
    if len(groups) == 1 and groups[0]:
        return [Sum(groups[0], *list(vars(one).values())[1:]) for one in found]
    return found + ([one for one in _sums(database, "coalesce(host_group, '')") if one.group] if len(groups) > 1 else [])


def _sums(database: DuckDBPyConnection, group: str) -> list[Sum]:
    key = "grp, variant, cell, repeat"
    states = ", ".join(f"'{state}'" for state in sorted(MEASURED))
    query = f"""
        WITH told AS (SELECT *, {group} AS grp FROM cells),
        planned AS (SELECT {key}, count(DISTINCT host) AS planned FROM told GROUP BY ALL),
        numbers AS (
            SELECT {key}, host, direction, iops, bw_bytes, synchronised,
                io_start - coalesce(clock_offset, 0) AS began, io_end - coalesce(clock_offset, 0) AS ended
            FROM told WHERE direction <> 'sync' AND state IN ({states}) AND io_end > io_start),
        windows AS (
            SELECT {key}, max(began) AS opens, min(ended) AS closes, max(began) - min(began) AS skew, max(ended) - min(ended) AS tail,
                min(ended) - max(began) >= {_ENOUGH_IN_COMMON} * min(ended - began) AS together, bool_or(synchronised) AS wanted
            FROM numbers GROUP BY ALL HAVING count(DISTINCT host) > 1),
        rates AS (
            SELECT {key}, host, direction, avg(intervals.iops) AS iops, avg(intervals.bw_bytes) AS bandwidth
            FROM intervals JOIN numbers USING (host, variant, cell, repeat, direction) JOIN windows USING ({key})
            WHERE began + second >= opens AND began + second + 1 <= closes GROUP BY ALL)
        SELECT {key}, numbers.direction, count(*), any_value(planned),
            CASE WHEN any_value(together) THEN sum(coalesce(rates.iops, numbers.iops)) END,
            CASE WHEN any_value(together) THEN sum(coalesce(rates.bandwidth, numbers.bw_bytes)) END,
            count(*) FILTER (rates.iops IS NULL), any_value(skew), any_value(tail)
        FROM numbers JOIN windows USING ({key}) JOIN planned USING ({key}) LEFT JOIN rates USING ({key}, host, direction)
        WHERE together OR wanted GROUP BY {key}, numbers.direction ORDER BY ALL"""
    return [Sum(*row) for row in database.execute(query).fetchall()]


def _sum_rows(sums: t.Sequence[Sum], read: Rows) -> t.Iterator[Row]:
    """One for each cell, over its repeats."""
    states: dict[tuple[str, str], set[str]] = {}
    synced = set()
    for one in read.measurements:
        states.setdefault((one.variant, one.cell), set()).add(one.state)
        if one.direction == "sync":
            synced.add((one.variant, one.cell))
    runs: dict[tuple[str, ...], list[Sum]] = {}
    for one in sums:
        runs.setdefault((one.group, one.variant, one.cell, one.direction), []).append(one)
    for (group, variant, cell, direction), of in runs.items():
        iops = [one.iops for one in of if one.iops is not None]
        middle = median(iops)
        # What an application waits for is the sync that makes a write durable.
        is_synced = direction in ("write", "mixed") and (variant, cell) in synced
        latency = {} if group else read.merged.get((variant, cell, "sync" if is_synced else direction), {})
        yield Row(
            host=f"group {group}" if group else f"all {max(one.planned for one in of)} hosts",
            variant=variant,
            cell=cell,
            direction=direction,
            iops=middle,
            bandwidth=median(one.bandwidth for one in of),
            latency={name: latency.get(name) for name in ENOUGH},
            synced=is_synced,
            spread=(max(iops) - min(iops)) / middle if middle and len(iops) > 1 else None,
            runs=len(iops),
            planned=len(of),
            state=worst(states[variant, cell]),
            verdict=None,
            iops_of_runs=tuple(iops),
        )


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
            latency=dict.fromkeys(ENOUGH),
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
    """What has to be known of the sums."""
    running = [one for one in sums if one.iops is not None]
    notes = [
        f"{counted(len(read.hosts), 'host')}: lines are of all of them. Each host is in the report and in its CSV; SPREAD is over hosts, or repeats of a sum."
    ]
    if running:
        notes.append(
            f"Sums are over the whole seconds in which every host measured. The starts were at most {max(one.skew for one in running) * 1000:.0f} ms apart, "
            f"the ends {max(one.tail for one in running):.1f} s."
        )
    estimated = max((one.pro_rata for one in running), default=0)
    if estimated:
        notes.append(f"Without a series by the second, the average of the whole run was taken for up to {counted(estimated, 'host')}.")
    partial = sorted({f"{one.cell} ({one.hosts} of {one.planned})" for one in running if one.hosts < one.planned})
    if partial:
        notes.append(f"Not every host is in the sum of: {listed(partial, 4)}.")
    apart = sorted({f"{one.cell}/{one.repeat}" for one in sums if one.iops is None})
    if apart:
        notes.append(f"Not added up, for the hosts did not measure at the same time: {listed(apart, 4)}.")
    return notes
