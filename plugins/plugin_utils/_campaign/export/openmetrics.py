# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign as metrics in the OpenMetrics text format 1.0, for the textfile collector of Prometheus' node exporter.

One sample for each host, variant, cell and direction: the median of the repeats that have numbers. No serial number, path or other word
without end becomes a label, and what describes a measurement is in its ``_info`` metric only. There are no times in it: a textfile collector
refuses them, and the campaign is in the labels. The collector reads the older text format, which has no type ``info``: that is a gauge.

The latency is a histogram, so that percentiles over hosts can be computed from added buckets. Its bounds are edges of fio's bins (64 per
octave), two per octave: each bin is in one bucket as a whole, and counts are exact.
"""

from __future__ import annotations

import bisect
import itertools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._stack.model import UNKNOWN, WORST_FIRST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export.ndjson import rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import KEY, read_measurements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point, points_of

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_LABELS = ("campaign", "host", "variant", "cell", "direction")

#: What describes a measurement, and is not in its key.
_DESCRIPTION = ("model", "firmware", "kernel", "fio_version")

#: What is read of the measurements.
_COLUMNS = (*(column.name for column in KEY), "state", "iops", "bw_bytes", "lat_mean_ns", *_DESCRIPTION, "verdict_before", "verdict_after")

_FAMILIES: tuple[tuple[str, str, t.Callable[[Point], float | None], str], ...] = (
    ("cachefleet_fio_ios_per_second", "", lambda point: point.iops, "I/Os per second, the median of the repeats."),
    ("cachefleet_fio_bandwidth_bytes_per_second", "", lambda point: point.bandwidth, "Bytes per second, the median of the repeats."),
    ("cachefleet_fio_latency_mean_seconds", "seconds", lambda point: _seconds(point.mean_latency), "Mean latency, the median of the repeats."),
)

#: Upper bounds of the buckets in ns, from 1 µs to 34 s.
_BOUNDS = [*(half << octave for octave in range(9, 34) for half in (2, 3)), 1 << 35]


def lines(database: DuckDBPyConnection) -> t.Iterator[str]:
    """The whole file. A value that is not known has no sample."""
    points = _points(database)
    for name, unit, value, about in _FAMILIES:
        yield from head(name, "gauge", unit, about)
        for labels, point in points:
            yield from sample(name, labels, value(point))
    name = "cachefleet_fio_latency_seconds"
    yield from head(name, "histogram", "seconds", "Latency of all I/Os of the repeats.")
    bins = f"SELECT {', '.join(_LABELS)}, bin_ns, sum(count) FROM histograms GROUP BY ALL ORDER BY ALL"
    for key, found in itertools.groupby(rows(database, bins), key=lambda row: row[: len(_LABELS)]):
        yield from _histogram(name, dict(zip(_LABELS, key)), [(int(row[-2]), int(row[-1])) for row in found])
    name = "cachefleet_fio_cell_info"
    yield from head(name, "gauge", "", "What was measured, and whether a flushed write survives a power failure there.")
    for key, group in itertools.groupby(points, key=lambda one: [one[0][label] for label in _LABELS[:-1]]):
        first, *_others = group
        yield from sample(name, {**dict(zip(_LABELS, key)), **_described(first[1])}, 1)
    name = "cachefleet_campaign_cells"
    yield from head(name, "gauge", "", "Measurements of a host, by state.")
    count = "SELECT campaign, host, variant, state, count(DISTINCT (cell, repeat)) FROM cells GROUP BY ALL ORDER BY ALL"
    for campaign, host, variant, state, cells in rows(database, count):
        yield from sample(name, {"campaign": campaign, "host": host, "variant": variant, "state": state}, cells)
    yield "# EOF\n"


def _histogram(name: str, labels: t.Mapping[str, str], bins: t.Sequence[tuple[int, int]]) -> t.Iterator[str]:
    """One histogram of pairs of the midpoint of a bin in ns and the number of its I/Os."""
    counts = [0] * (len(_BOUNDS) + 1)
    for midpoint, count in bins:
        counts[bisect.bisect_right(_BOUNDS, midpoint)] += count
    for bound, reached in zip([*(repr(bound / 1e9) for bound in _BOUNDS), "+Inf"], itertools.accumulate(counts)):
        yield from sample(f"{name}_bucket", {**labels, "le": bound}, reached)
    yield from sample(f"{name}_sum", labels, sum(midpoint * count for midpoint, count in bins) / 1e9)
    yield from sample(f"{name}_count", labels, sum(counts))


def _described(point: Point) -> dict[str, str]:
    verdicts = {verdict for run in point.runs for verdict in (run.verdict_before, run.verdict_after)}
    description = {name: getattr(point.first, name) or "" for name in _DESCRIPTION}
    return {**description, "verdict": next((verdict for verdict in WORST_FIRST if verdict in verdicts), UNKNOWN)}


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


def head(name: str, kind: str, unit: str, about: str) -> t.Iterator[str]:
    """What precedes the samples of a metric."""
    yield f"# TYPE {name} {kind}\n"
    if unit:
        yield f"# UNIT {name} {unit}\n"
    yield f"# HELP {name} {about}\n"


def sample(name: str, labels: t.Mapping[str, str], value: float | None) -> t.Iterator[str]:
    """One sample; none of a value that is not known."""
    if value is not None:
        row_text = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        yield f"{name}{{{row_text}}} {value!r}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
