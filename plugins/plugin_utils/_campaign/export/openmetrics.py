# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A campaign as metrics in the OpenMetrics text format 1.0, for the textfile collector of Prometheus' node exporter.

One sample for each host, variant, cell and direction: the median of the repeats that have numbers. No serial number, path or other word
without end becomes a label. There are no times in it: a textfile collector refuses them, and the campaign is in the labels.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export.ndjson import rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import KEY, read_measurements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import PERCENTILES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point, percentile_of, points_of

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LABELS = ("campaign", "host", "variant", "cell", "direction")

#: What is read of the measurements.
_COLUMNS = (*(column.name for column in KEY), "state", "iops", "bw_bytes", "lat_n", "lat_mean_ns", *(one.column for one in PERCENTILES))

_FAMILIES: tuple[tuple[str, str, t.Callable[[Point], float | None], str], ...] = (
    ("cachefleet_fio_iops", "", lambda point: point.iops, "I/Os per second, the median of the repeats."),
    ("cachefleet_fio_bandwidth_bytes_per_second", "", lambda point: point.bandwidth, "Bytes per second, the median of the repeats."),
    ("cachefleet_fio_latency_mean_seconds", "seconds", lambda point: _seconds(point.mean_latency), "Mean latency, the median of the repeats."),
)


def lines(database: DuckDBPyConnection) -> t.Iterator[str]:
    """The whole file. A value that is not known has no sample."""
    points = _points(database)
    for name, unit, value, about in _FAMILIES:
        yield from _head(name, "gauge", unit, about)
        for labels, point in points:
            yield from _sample(name, labels, value(point))
    name = "cachefleet_fio_latency_seconds"
    yield from _head(name, "summary", "seconds", "Percentiles of the latency, the median of the repeats.")
    for labels, point in points:
        for one in PERCENTILES:
            yield from _sample(name, {**labels, "quantile": f"{one.percent / 100:g}"}, _seconds(percentile_of(point.runs, one)))
    name = "cachefleet_campaign_cells"
    yield from _head(name, "gauge", "", "Measurements of a host, by state.")
    count = "SELECT campaign, host, variant, state, count(DISTINCT (cell, repeat)) FROM cells GROUP BY ALL ORDER BY ALL"
    for campaign, host, variant, state, cells in rows(database, count):
        yield from _sample(name, {"campaign": campaign, "host": host, "variant": variant, "state": state}, cells)
    yield "# EOF\n"


def _points(database: DuckDBPyConnection) -> list[tuple[dict[str, str], Point]]:
    """Everything that was measured, with its labels, in their order."""
    found = []
    for (campaign,) in database.execute("SELECT DISTINCT campaign FROM cells ORDER BY campaign").fetchall():
        points = points_of(read_measurements(database, _COLUMNS, campaign))
        points.sort(key=lambda point: (point.host, point.variant, point.cell, point.direction))
        found += [(dict(zip(_LABELS, (campaign, point.host, point.variant, point.cell, point.direction))), point) for point in points]
    return found


def _seconds(nanoseconds: float | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9


def _head(name: str, kind: str, unit: str, about: str) -> t.Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {about}\n"


def _sample(name: str, labels: t.Mapping[str, str], value: float | None) -> t.Iterator[str]:
    if value is not None:
        row_text = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{row_text}}} {value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
