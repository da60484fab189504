# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

r"""A campaign in the line protocol of InfluxDB: ``measurement,tag=value field=value time``, times in ns since 1970.

``fio_cell`` is one point for each direction of a measurement, at its end; ``fio_interval`` is one for each second. Times are those of the
controller's clock, so that points of different hosts stand beside each other as they happened. In tags a comma, an equals sign and a
blank are escaped with a backslash; a backslash in the end of a value would escape what follows, so it becomes a slash.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export.ndjson import rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import BY_NAME

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TAGS = ("campaign", "host", "variant", "cell", "repeat", "direction")
_WHOLE = tuple(BY_NAME[name].column for name in ("p50", "p95", "p99", "p99.9"))
_CELL_FIELDS = ("iops", "bw_bytes", "lat_mean_ns", *_WHOLE)
_INTERVAL_FIELDS = ("iops", "bw_bytes", "lat_ns")


def lines(database: DuckDBPyConnection) -> t.Iterator[str]:
    """All points, those of one series in the order of time. Of what has no time there is none."""
    tags = ", ".join(f"c.{tag}" for tag in _TAGS)
    cells = ", ".join(f"c.{field}" for field in _CELL_FIELDS)
    query = f"SELECT {tags}, coalesce(c.io_end, c.finished) - coalesce(c.clock_offset, 0), {cells} FROM cells c WHERE c.direction IS NOT NULL ORDER BY {tags}"
    for row in rows(database, query):
        yield from _point("fio_cell", row, _CELL_FIELDS)
    intervals = ", ".join(f"i.{field}" for field in _INTERVAL_FIELDS)
    # A point stands at the end of its second.
    query = (
        f"SELECT {tags}, c.io_start + i.second + 1 - coalesce(c.clock_offset, 0), {intervals} FROM intervals i"
        f" JOIN cells c USING ({', '.join(_TAGS)}) ORDER BY {tags}, i.second"
    )
    for row in rows(database, query):
        yield from _point("fio_interval", row, _INTERVAL_FIELDS)


def _point(measurement: str, row: t.Sequence[t.Any], names: t.Sequence[str]) -> t.Iterator[str]:
    tags, time, values = row[: len(_TAGS)], row[len(_TAGS)], row[len(_TAGS) + 1 :]
    fields = [f"{name}={value}i" if name in _WHOLE else f"{name}={float(value)!r}" for name, value in zip(names, values) if value is not None]
    if time is not None and fields:
        row_text = ",".join(f"{tag}={_escaped(str(value))}" for tag, value in zip(_TAGS, tags))
        yield f"{measurement},{row_text} {','.join(fields)} {round(time * 1000) * 1_000_000}\n"


def _escaped(text: str) -> str:
    if text.endswith("\\"):
        text = text[:-1] + "/"
    return text.replace(",", r"\,").replace("=", r"\=").replace(" ", r"\ ").replace("\n", r"\ ")
