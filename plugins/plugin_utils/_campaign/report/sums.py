# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What hosts, and targets of one host, did together, from the tables: the same sums that ``aggregate`` makes of the files.

Rates are added over the time in which everything in a sum was measured; percentiles are of the added histograms.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, median, merged_percentiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, listed
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Row, worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import literal

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: A common window shorter than this part of the shortest run says nothing of all hosts together (window.py).
_ENOUGH_IN_COMMON = 0.5

#: Hosts that share an array, one host alone, variant, cell, direction.
_Place = t.Tuple[str, str, str, str, str]

_Latency = t.Dict[str, t.Optional[float]]


@dataclass(frozen=True)
class Sum:
    """One measurement of several hosts, or of several targets, at once, in one direction.

    :param group: hosts that share an array; empty for all hosts.
    :param host: the one whose targets these are; empty for several hosts.
    :param cell: its name, or what the measurements of several targets of a host have in common.
    :param hosts: those with numbers; ``planned``: those that should.
    :param targets: how many targets these should have measured together, where they have several at once; else 0.
    :param added: how many results are in the sum.
    :param iops: I/Os per second, and ``bandwidth`` bytes per second; ``None`` where they did not measure at the same time.
    :param pro_rata: results whose average was taken, for want of a series.
    :param skew: seconds from the first start to the last, ``tail`` from the first end to the last.
    """

    group: str
    host: str
    variant: str
    cell: str
    repeat: int
    direction: str
    hosts: int
    planned: int
    targets: int
    added: int
    iops: float | None
    bandwidth: float | None
    pro_rata: int
    skew: float
    tail: float

    @property
    def label(self) -> str:
        """What stands where a row has its host. No host has a blank in its name."""
        if self.targets and not (self.group or self.host):
            return f"all {self.targets} targets"
        who = f"group {self.group}" if self.group else self.host or f"all {self.planned} hosts"
        return f"{who}, {self.targets} targets" if self.targets else who

    @property
    def is_partial(self) -> bool:
        """Whether something that was planned is not in it."""
        return self.added < (self.targets or self.planned)

    def as_result(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        return dict(vars(self))


@dataclass(frozen=True)
class Sums:
    """All sums of a campaign, and their percentiles in ns by (group, host, variant, cell, direction) and name."""

    every: list[Sum]
    latency: dict[_Place, _Latency]


def read_sums(database: DuckDBPyConnection, rows: Rows) -> Sums:
    """Every sum there is: of all hosts, of those that share an array; and of several targets at once, of one host too.

    :param rows: of the same tables: what these have added already is not added again.
    """
    said = [row[0] for row in database.execute("SELECT DISTINCT coalesce(host_group, '') FROM cells ORDER BY 1").fetchall()]
    # Where all hosts are one group, the line of all hosts has its name.
    everybody = said[0] if len(said) == 1 else ""
    several = bool(database.execute("SELECT 1 FROM targets_at_once LIMIT 1").fetchall())
    every = _sums(database, _placed(literal(everybody), "''", "cell", "cells"))
    latency: dict[_Place, _Latency] = {(everybody, "", *key): found for key, found in rows.merged.items()}
    more = [_placed("host_group", "''", "cell", "cells")] if len(said) > 1 else []
    if several:
        together = "cells JOIN targets_at_once USING (campaign, host, variant, cell)"
        more += [_placed(literal(everybody), "''", "common", together), _placed("''", "host", "common", together)]
        more += [_placed("host_group", "''", "common", together)] if len(said) > 1 else []
    for placed in more:
        every += _sums(database, placed)
        latency |= _latencies(database, placed)
    return Sums(every, latency)


def _placed(group: str, host: str, name: str, source: str) -> str:
    """A query for which sum each measurement belongs to: ``its_group``, ``alone`` (its host, if only that), ``common`` (its name there)."""
    columns = f"campaign, host, variant, cell, {group} AS its_group, {host} AS alone, {name} AS common"
    return f"SELECT DISTINCT {columns} FROM {source}" + (" WHERE host_group <> ''" if group == "host_group" else "")


def _sums(database: DuckDBPyConnection, placed: str) -> list[Sum]:
    key = "its_group, alone, variant, common, repeat"
    states = ", ".join(f"'{state}'" for state in sorted(MEASURED))
    query = f"""
        WITH told AS (SELECT cells.*, its_group, alone, common FROM cells JOIN ({placed}) USING (campaign, host, variant, cell)),
        planned AS (
            SELECT {key}, count(DISTINCT host) AS planned, count(DISTINCT (host, cell)) AS results FROM told GROUP BY ALL),
        numbers AS (
            SELECT {key}, host, cell, direction, iops, bw_bytes, synchronised,
                io_start - coalesce(clock_offset, 0) AS began, io_end - coalesce(clock_offset, 0) AS ended
            FROM told WHERE direction <> 'sync' AND state IN ({states}) AND io_end > io_start),
        windows AS (
            SELECT {key}, max(began) AS opens, min(ended) AS closes, max(began) - min(began) AS skew, max(ended) - min(ended) AS tail,
                min(ended) - max(began) >= {_ENOUGH_IN_COMMON} * min(ended - began) AS together, bool_or(synchronised) AS wanted
            FROM numbers GROUP BY ALL HAVING count(DISTINCT (host, CASE WHEN alone = '' THEN '' ELSE cell END)) > 1),
        seconds AS (
            SELECT {key}, host, cell, direction, intervals.iops, intervals.bw_bytes,
                least(began + second + 1, closes) - greatest(began + second, opens) AS part
            FROM intervals JOIN numbers USING (host, variant, cell, repeat, direction) JOIN windows USING ({key})
            WHERE began + second + 1 > opens AND began + second < closes),
        rates AS (
            SELECT {key}, host, cell, direction, sum(iops * part) / sum(part) FILTER (iops IS NOT NULL) AS iops,
                sum(bw_bytes * part) / sum(part) FILTER (bw_bytes IS NOT NULL) AS bandwidth
            FROM seconds GROUP BY ALL)
        SELECT its_group, alone, variant, common, repeat, numbers.direction, count(DISTINCT host), any_value(planned),
            CASE WHEN any_value(results) > any_value(planned) THEN any_value(results) ELSE 0 END, count(*),
            CASE WHEN any_value(together) THEN sum(coalesce(rates.iops, numbers.iops)) END,
            CASE WHEN any_value(together) THEN sum(coalesce(rates.bandwidth, numbers.bw_bytes)) END,
            count(*) FILTER (rates.iops IS NULL), any_value(skew), any_value(tail)
        FROM numbers JOIN windows USING ({key}) JOIN planned USING ({key}) LEFT JOIN rates USING ({key}, host, cell, direction)
        WHERE together OR wanted OR alone <> '' GROUP BY {key}, numbers.direction ORDER BY ALL"""
    return [Sum(*row) for row in database.execute(query).fetchall()]


def _latencies(database: DuckDBPyConnection, placed: str) -> dict[_Place, _Latency]:
    histograms = f"SELECT histograms.*, its_group, alone, common FROM histograms JOIN ({placed}) USING (campaign, host, variant, cell)"
    return t.cast("dict[_Place, _Latency]", merged_percentiles(database, f"({histograms})", ("its_group", "alone", "variant", "common", "direction")))


def rows_of_sums(sums: Sums, read: Rows) -> list[Row]:
    """One row for each sum, over its repeats."""
    states: dict[tuple[str, str], set[str]] = {}
    for one in read.measurements:
        for name in (one.cell, read.together.get((one.host, one.variant, one.cell), one.cell)):
            states.setdefault((one.variant, name), set()).add(one.state)
    runs: dict[_Place, list[Sum]] = {}
    for one in sums.every:
        runs.setdefault((one.group, one.host, one.variant, one.cell, one.direction), []).append(one)
    rows = []
    for (group, host, variant, cell, direction), of in runs.items():
        iops = [one.iops for one in of if one.iops is not None]
        middle = median(iops)
        # What an application waits for is the sync that makes a write durable.
        is_synced = direction in ("write", "mixed") and (group, host, variant, cell, "sync") in sums.latency
        latency = sums.latency.get((group, host, variant, cell, "sync" if is_synced else direction), {})
        rows.append(
            Row(
                host=max(of, key=lambda one: (one.planned, one.targets)).label,
                variant=variant,
                cell=cell,
                direction=direction,
                iops=middle,
                bandwidth=median(one.bandwidth for one in of),
                latency={one.name: latency.get(one.name) for one in SHOWN},
                synced=is_synced,
                spread=(max(iops) - min(iops)) / middle if middle and len(iops) > 1 else None,
                runs=len(iops),
                planned=len(of),
                state=worst(states[variant, cell]),
                verdict=None,
                iops_of_runs=tuple(iops),
            )
        )
    return rows


def notes_of_sums(sums: t.Sequence[Sum]) -> list[str]:
    """What has to be known of the sums."""
    running = [one for one in sums if one.iops is not None]
    notes = []
    if running:
        skew, tail = max(one.skew for one in running), max(one.tail for one in running)
        notes.append(
            f"Sums are over the seconds in which everything in them was measured. The starts were at most {skew * 1000:.0f} ms apart, the ends {tail:.1f} s."
        )
    estimated = max((one.pro_rata for one in running), default=0)
    if estimated:
        notes.append(f"Without a series by the second, the average of the whole run was taken for up to {counted(estimated, 'result')} of a sum.")
    partial = sorted({f"{one.cell} ({one.added} of {one.targets or one.planned})" for one in running if one.is_partial})
    if partial:
        notes.append(f"Not every host or target is in the sum of: {listed(partial, 4)}.")
    apart = sorted({f"{one.cell}/{one.repeat}" for one in sums if one.iops is None})
    if apart:
        notes.append(f"Not added up, for the hosts did not measure at the same time: {listed(apart, 4)}.")
    return notes
