# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign loaded from its tables: series and histograms of a thousand hosts are reduced in DuckDB, before they come here."""

from __future__ import annotations

import json
import typing as t
from collections import Counter
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement, read_measurements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.sets import HostVariantCell, Pooled, RunSet, SetFigures, directions_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import Histogram, histogram, merged, percentile_values

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Variant, cell, repeat and direction.
_Cell = t.Tuple[str, str, int, str]

_MEMBER = {"number": "BIGINT", "place": "BIGINT", "host": "VARCHAR", "variant": "VARCHAR", "cell": "VARCHAR", "repeat": "INTEGER"}
_WINDOW = {"began": "DOUBLE", "opens": "DOUBLE", "closes": "DOUBLE"}


@dataclass(frozen=True)
class AddedHistogram:
    """The latencies of all I/Os of several measurements.

    :param members: host and cell of each of them; ``kinds``: which latencies they are.
    """

    bins: Histogram
    members: frozenset[tuple[str, str]]
    kinds: frozenset[str]

    @property
    def pooled(self) -> Pooled:
        """Its percentiles, however few I/Os there are."""
        values = percentile_values(self.bins, [one.percent for one in SHOWN])
        known: dict[str, float | None] = {one.name: float(value) for one, value in zip(SHOWN, values)}
        return Pooled(len(self.members), len(self.kinds), self.bins.total, known)


class CampaignTables:
    """A campaign from the views of :func:`tables.views.open_tables`: see :class:`sets.Results`.

    :param database: open for as long as :meth:`figures` is called.
    :param measurements: of the table ``cells``, where they were read already.
    :param classes: hosts whose histograms are wanted by themselves too; all of them, each in one.
    """

    def __init__(self, database: DuckDBPyConnection, measurements: t.Sequence[Measurement] | None = None, classes: t.Sequence[t.Collection[str]] = ()) -> None:
        self._database = database
        self.measurements: list[Measurement] = read_measurements(database) if measurements is None else list(measurements)
        rows = database.execute("SELECT host, variant, cell, common FROM targets_at_once").fetchall()
        self.common_names: dict[HostVariantCell, str] = {(host, variant, cell): common for host, variant, cell, common in rows}
        self._measured = Counter((one.variant, one.cell, one.repeat, one.direction) for one in self.measurements)
        #: By class, and then as the histograms are: what is of all hosts is made of these, and nothing is read twice.
        self.added = class_histograms(database, classes)
        cells: dict[_Cell, list[AddedHistogram]] = {}
        for (_class, variant, cell, repeat, direction), found in self.added.items():
            cells.setdefault((variant, cell, repeat, direction), []).append(found)
        self._pooled = {cell: merge_histograms(parts).pooled for cell, parts in cells.items()}

    def figures(self, sets: t.Sequence[RunSet]) -> list[SetFigures]:
        rates = self._rates(sets)
        pooled = [self._pooled_of(one) for one in sets]
        more = self._pooled_anew([number for number, one in enumerate(pooled) if one is None], sets)
        return [SetFigures(rates.get(number, {}), more.get(number, {}) if one is None else one) for number, one in enumerate(pooled)]

    def _pooled_of(self, of: RunSet) -> dict[str, Pooled] | None:
        """What was added already, if all measurements of a cell are in the set."""
        found = {}
        for direction in (*directions_of(of.runs), "sync"):
            key = (of.variant, of.cell, of.repeat, direction)
            runs = sum(direction in run.rows for run in of.runs)
            if of.targets or runs != self._measured[key]:
                return None
            if key in self._pooled:
                found[direction] = self._pooled[key]
        return found

    def _pooled_anew(self, numbers: t.Sequence[int], sets: t.Sequence[RunSet]) -> dict[int, dict[str, Pooled]]:
        members = [member for number in numbers for member in _members(number, sets[number])]
        if not members:
            return {}
        source = f"(SELECT m.number, h.* FROM histograms h JOIN ({_unnested(_MEMBER)}) m USING (host, variant, cell, repeat))"
        found: dict[int, dict[str, Pooled]] = {}
        for (number, direction), added in added_histograms(self._database, source, ("number", "direction"), [json.dumps(members)]).items():
            found.setdefault(number, {})[direction] = added.pooled
        return found

    def _rates(self, sets: t.Sequence[RunSet]) -> dict[int, dict[tuple[int, str], tuple[float | None, float | None]]]:
        """As :func:`window.mean_within`, of each run in the window of its set."""
        members = [
            {**member, "began": run.span.start, "opens": one.window.start, "closes": one.window.end}
            for number, one in enumerate(sets)
            if one.window.overlaps
            for member, run in zip(_members(number, one), one.runs)
        ]
        if not members:
            return {}
        query = f"""
            SELECT number, place, direction,
                sum(iops * part) / sum(part) FILTER (iops IS NOT NULL), sum(bw_bytes * part) / sum(part) FILTER (bw_bytes IS NOT NULL)
            FROM (SELECT m.number, m.place, direction, iops, bw_bytes, least(began + second + 1, closes) - greatest(began + second, opens) AS part
                FROM intervals JOIN ({_unnested({**_MEMBER, **_WINDOW})}) m USING (host, variant, cell, repeat)
                WHERE direction <> 'sync' AND began + second + 1 > opens AND began + second < closes)
            GROUP BY ALL"""
        found: dict[int, dict[tuple[int, str], tuple[float | None, float | None]]] = {}
        for number, place, direction, iops, bandwidth in self._database.execute(query, [json.dumps(members)]).fetchall():
            found.setdefault(number, {})[place, direction] = (iops, bandwidth)
        return found


def _members(number: int, of: RunSet) -> t.Iterator[dict[str, t.Any]]:
    for place, run in enumerate(of.runs):
        yield dict(zip(_MEMBER, (number, place, *run.key)))


def _unnested(columns: t.Mapping[str, str]) -> str:
    """A query for rows that are given as JSON. The values are names, and no part of the SQL."""
    return f"SELECT unnest(from_json(?, '{json.dumps([columns])}'), recursive := true)"


def class_histograms(database: DuckDBPyConnection, classes: t.Sequence[t.Collection[str]]) -> dict[tuple[t.Any, ...], AddedHistogram]:
    """By number of the class, variant, cell, repeat and direction.

    :param classes: the hosts of each; without any, all hosts are one.
    """
    key = ("class", "variant", "cell", "repeat", "direction")
    if len(classes) < 2:
        return added_histograms(database, "(SELECT 0 AS class, * FROM histograms)", key)
    members = [{"class": place, "host": host} for place, hosts in enumerate(classes) for host in hosts]
    source = f"(SELECT c.class, h.* FROM histograms h JOIN ({_unnested({'class': 'BIGINT', 'host': 'VARCHAR'})}) c USING (host))"
    return added_histograms(database, source, key, [json.dumps(members)])


def added_histograms(
    database: DuckDBPyConnection, histograms: str, key: t.Sequence[str], parameters: t.Sequence[t.Any] = ()
) -> dict[tuple[t.Any, ...], AddedHistogram]:
    """Bins added in DuckDB; of a thousand hosts as few remain as of one.

    :param histograms: the table, or a query in brackets with its columns, and those of ``key``.
    """
    columns = ", ".join(key)
    # A number instead of names: millions of bins are added in less time.
    bins: dict[int, dict[int, int]] = {}
    query = f"SELECT hash({columns}) AS id, bin_ns, sum(count)::BIGINT FROM {histograms} GROUP BY ALL"
    for number, duration, count in database.execute(query, list(parameters)).fetchall():
        bins.setdefault(number, {})[duration] = count
    names: dict[int, tuple[t.Any, ...]] = {}
    members: dict[int, set[tuple[str, str]]] = {}
    kinds: dict[int, set[str]] = {}
    # Distinct by a number too: the names of each are taken from any of its rows.
    wanted = (*key, "host", *(["cell"] if "cell" not in key else []), "latency_kind")
    any_of = ", ".join(f"any_value({name}) AS {name}" for name in wanted)
    query = f"SELECT hash({columns}), {columns}, host, cell, latency_kind FROM (SELECT {any_of} FROM {histograms} GROUP BY hash({', '.join(wanted)}))"
    for number, *of, host, cell, kind in database.execute(query, list(parameters)).fetchall():
        names[number] = tuple(of)
        members.setdefault(number, set()).add((host, cell))
        kinds.setdefault(number, set()).add(kind)
    return {names[number]: AddedHistogram(histogram(here), frozenset(members[number]), frozenset(kinds[number])) for number, here in bins.items()}


def merge_histograms(parts: t.Sequence[AddedHistogram]) -> AddedHistogram:
    """Several as one."""
    members = frozenset(member for part in parts for member in part.members)
    return AddedHistogram(merged(part.bins for part in parts), members, frozenset(kind for part in parts for kind in part.kinds))
