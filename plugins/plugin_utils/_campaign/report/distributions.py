# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Latencies of every I/O of a cell, from the added bins of hosts of one class: never from averages of percentiles."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import samples_needed

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.host_classes import HostClass
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows

#: What is drawn, as far as there are I/Os enough.
PERCENTS = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.995, 99.999)


@dataclass(frozen=True)
class Distribution:
    """One variant of one cell on the hosts of one class.

    :param label: of the class.
    :param direction: ``sync`` for the syncs of writes.
    :param hosts: how many were added; ``total``: I/Os.
    :param values: (percent, ns), ascending, only what is known well enough.
    """

    label: str
    hosts: int
    variant: str
    cell: str
    direction: str
    total: int
    values: tuple[tuple[float, float], ...]

    def at(self, percent: float) -> float | None:
        """ns."""
        return dict(self.values).get(percent)


def read_distributions(database: DuckDBPyConnection, rows: Rows, classes: t.Sequence[HostClass]) -> list[Distribution]:
    """From the table ``histograms``; a cell whose hosts ran different jobs, or whose latencies are of different kinds, has none."""
    members = [{"class": place, "host": host} for place, one in enumerate(classes) for host in one.hosts]
    structure = json.dumps([{"class": "BIGINT", "host": "VARCHAR"}])
    ranks = ", ".join(f"min(CASE WHEN reached >= total * {percent / 100!r} - 1e-9 THEN bin_ns END)" for percent in PERCENTS)
    key = "class, variant, cell, direction"
    found = database.execute(
        f"WITH classes AS (SELECT unnest(from_json(?, '{structure}'), recursive := true)), "
        f"source AS (SELECT {key}, host, latency_kind, bin_ns, count FROM histograms JOIN classes USING (host)), "
        f"parts AS (SELECT {key}, count(DISTINCT host) AS hosts, count(DISTINCT latency_kind) AS kinds FROM source GROUP BY ALL), "
        f"added AS (SELECT {key}, bin_ns, sum(count) AS count FROM source GROUP BY ALL), "
        f"summed AS (SELECT *, sum(count) OVER (PARTITION BY {key} ORDER BY bin_ns) AS reached, sum(count) OVER (PARTITION BY {key}) AS total FROM added) "
        f"SELECT {key}, any_value(hosts), max(total), {ranks} FROM summed JOIN parts USING ({key}) WHERE kinds = 1 GROUP BY {key}",
        [json.dumps(members)],
    ).fetchall()
    jobs = _jobs(rows)
    order = {name: place for place, name in enumerate(rows.variants)}
    kept = [row for row in found if not is_probe(row[2]) and len(jobs.get((row[1], row[2]), ())) <= 1 and row[1] in order]
    kept.sort(key=lambda row: (row[0], natural(row[2]), row[3], order[row[1]]))
    return [Distribution(classes[place].label, hosts, variant, cell, direction, int(total), _known(values, int(total)))
            for place, variant, cell, direction, hosts, total, *values in kept]  # fmt: skip


def _jobs(rows: Rows) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for one in rows.measurements:
        if one.workload_sha256 is not None:
            found.setdefault((one.variant, one.cell), set()).add(one.workload_sha256)
    return found


def _known(values: t.Sequence[float | None], total: int) -> tuple[tuple[float, float], ...]:
    return tuple((percent, float(value)) for percent, value in zip(PERCENTS, values) if value is not None and total >= samples_needed(percent))
