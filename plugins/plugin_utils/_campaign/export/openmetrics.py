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
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import PERCENTILES

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LABELS = ("campaign", "host", "variant", "cell", "direction")

#: Quantiles, with the column that has them in ns.
_QUANTILES = {f"{one.percent / 100:g}": one.column for one in PERCENTILES}

_FAMILIES = (
    ("cachefleet_fio_iops", "", "median(iops)", "I/Os per second, the median of the repeats."),
    ("cachefleet_fio_bandwidth_bytes_per_second", "", "median(bw_bytes)", "Bytes per second, the median of the repeats."),
    ("cachefleet_fio_latency_mean_seconds", "seconds", "median(lat_mean_ns) / 1e9", "Mean latency, the median of the repeats."),
)


def lines(database: DuckDBPyConnection) -> t.Iterator[str]:
    """The whole file. A value that is not known has no sample."""
    labels = ", ".join(_LABELS)
    of_measured = f"FROM cells WHERE direction IS NOT NULL GROUP BY {labels} ORDER BY {labels}"
    for name, unit, value, about in _FAMILIES:
        yield from _head(name, "gauge", unit, about)
        for row in rows(database, f"SELECT {labels}, {value} {of_measured}"):
            yield from _sample(name, dict(zip(_LABELS, row)), row[-1])
    name = "cachefleet_fio_latency_seconds"
    yield from _head(name, "summary", "seconds", "Percentiles of the latency, the median of the repeats.")
    # A percentile counts only where every repeat has I/Os enough for it.
    values = ", ".join(f"CASE WHEN count({column}) = count(*) THEN median({column}) / 1e9 END" for column in _QUANTILES.values())
    for row in rows(database, f"SELECT {labels}, {values} {of_measured}"):
        for quantile, seconds in zip(_QUANTILES, row[len(_LABELS) :]):
            yield from _sample(name, {**dict(zip(_LABELS, row)), "quantile": quantile}, seconds)
    name = "cachefleet_campaign_cells"
    yield from _head(name, "gauge", "", "Measurements of a host, by state.")
    count = "SELECT campaign, host, variant, state, count(DISTINCT (cell, repeat)) FROM cells GROUP BY ALL ORDER BY ALL"
    for campaign, host, variant, state, cells in rows(database, count):
        yield from _sample(name, {"campaign": campaign, "host": host, "variant": variant, "state": state}, cells)
    yield "# EOF\n"


def _head(name: str, kind: str, unit: str, about: str) -> t.Iterator[str]:
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {about}\n"


def _sample(name: str, labels: t.Mapping[str, str], value: float | None) -> t.Iterator[str]:
    if value is not None:
        said = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{said}}} {value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
