# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What a report is made of: plain rows, read from the tables of a campaign, whatever wrote those."""

from __future__ import annotations

import statistics
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, STATES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN, Percentile

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLUMNS = (
    "host", "variant", "cell", "repeat", "direction", "state", "reason", "iops", "bw_bytes", "lat_n", "lat_mean_ns", "p50_ns", "p99_ns", "p999_ns",
    "rw", "bs", "bs_bytes", "ioengine", "iodepth", "numjobs", "rwmixread", "fdatasync", "fsync", "direct", "target", "target_size", "model", "firmware",
    "fio_version", "behaviour_class", "kernel", "started", "verdict_before", "verdict_after", "stack_before", "stack_after", "stack_sha256", "bytes_written",
    "bytes_read", "cpu_bound", "host_busy", "synchronised", "notes", "search", "rounds", "path",
    "collection_rate", "collection_shown_by",
)  # fmt: skip


@dataclass(slots=True)
class Measurement:
    """One direction of one measurement: a row of the table ``cells`` (units there); ``direction`` is ``None`` without numbers."""

    host: str
    variant: str
    cell: str
    repeat: int
    direction: str | None = None
    state: str = "ok"
    reason: str | None = None
    iops: float | None = None
    bw_bytes: float | None = None
    lat_n: int | None = None
    lat_mean_ns: float | None = None
    p50_ns: float | None = None
    p99_ns: float | None = None
    p999_ns: float | None = None
    rw: str | None = None
    bs: str | None = None
    bs_bytes: int | None = None
    ioengine: str | None = None
    iodepth: int | None = None
    numjobs: int | None = None
    rwmixread: int | None = None
    fdatasync: int | None = None
    fsync: int | None = None
    direct: bool | None = None
    target: str | None = None
    target_size: int | None = None
    model: str | None = None
    firmware: str | None = None
    fio_version: str | None = None
    behaviour_class: str | None = None
    kernel: str | None = None
    started: float | None = None
    verdict_before: str | None = None
    verdict_after: str | None = None
    stack_before: str | None = None
    stack_after: str | None = None
    stack_sha256: str | None = None
    bytes_written: int | None = None
    bytes_read: int | None = None
    cpu_bound: bool | None = None
    host_busy: float | None = None
    synchronised: bool | None = None
    notes: list[str] | None = None
    search: str | None = None
    rounds: str | None = None
    path: str | None = None
    collection_rate: float | None = None
    collection_shown_by: str | None = None

    @property
    def measured(self) -> bool:
        return self.direction is not None and self.state in MEASURED

    @property
    def synced(self) -> bool:
        """Whether each write of it was made durable before the next."""
        return bool(self.fdatasync or self.fsync)


@dataclass(slots=True)
class Point:
    """One direction of one cell on one host in one variant, over its repeats. Numbers are medians of repeats, ``None`` where nobody measured.

    :param samples: fewest I/Os of a repeat, of which the latency is known.
    :param hidden: percentiles that are ``None`` only because a repeat had too few I/Os for them.
    """

    host: str
    variant: str
    cell: str
    direction: str
    runs: list[Measurement]
    state: str
    iops: float | None
    bandwidth: float | None
    latency: dict[str, float | None]
    samples: int | None = None
    hidden: tuple[str, ...] = ()

    @property
    def first(self) -> Measurement:
        return self.runs[0]


@dataclass
class Drive:
    """What the campaign did to one drive of one host: counters at its first and last measurement."""

    host: str
    device: str
    model: str | None
    serial: str | None
    firmware: str | None
    wear_before: float | None
    wear_after: float | None
    written_before: int | None
    written_after: int | None
    hottest: float | None
    media_errors: int | None
    passed: bool | None


@dataclass
class Series:
    """IOPS and bytes per second of one direction of one measurement, by the second."""

    host: str
    variant: str
    cell: str
    repeat: int
    direction: str
    iops: list[float | None]
    bandwidth: list[float | None]


@dataclass
class Rows:
    """A campaign as a report needs it.

    :param merged: percentiles in ns of the added bins of all hosts, by (variant, cell, direction) and name.
    :param settings: by (host, stack) what its layers were set to, as (device, layer, key, value).
    :param together: by (host, variant, cell) what it has in common with the cells of other targets that were measured at the same time.
    """

    campaign: str
    measurements: list[Measurement]
    drives: list[Drive] = field(default_factory=list)
    merged: dict[tuple[str, str, str], dict[str, float | None]] = field(default_factory=dict)
    settings: dict[tuple[str, str], list[tuple[str, str, str, str]]] = field(default_factory=dict)
    together: dict[tuple[str, str, str], str] = field(default_factory=dict)

    @property
    def hosts(self) -> list[str]:
        return sorted({one.host for one in self.measurements})

    @property
    def variants(self) -> list[str]:
        """In the order in which they were first measured."""
        began: dict[str, float] = {}
        for one in self.measurements:
            began[one.variant] = min(began.get(one.variant, float("inf")), one.started if one.started is not None else float("inf"))
        return sorted(began, key=lambda name: (began[name], name))

    def points(self) -> list[Point]:
        """Repeats put together."""
        groups: dict[tuple[str, str, str, str], list[Measurement]] = {}
        worst: dict[tuple[str, str, str], str] = {}
        for one in self.measurements:
            cell = (one.host, one.variant, one.cell)
            worst[cell] = max(worst.get(cell, "ok"), one.state, key=STATES.index)
            if one.measured and one.direction is not None:
                groups.setdefault((*cell, one.direction), []).append(one)
        found = [
            Point(
                *key,
                runs=runs,
                state=worst[key[:3]],
                iops=median(run.iops for run in runs),
                bandwidth=median(run.bw_bytes for run in runs),
                # A percentile counts only where every repeat had I/Os enough for it.
                latency={one.name: median_of_all([getattr(run, one.column) for run in runs]) for one in SHOWN},
                samples=min((run.lat_n for run in runs if run.lat_n is not None), default=None),
            )
            for key, runs in groups.items()
        ]
        for one in found:
            if None in one.latency.values():
                one.hidden = tuple(rank.name for rank in SHOWN if any(_too_few(run, rank) and getattr(run, rank.column) is None for run in one.runs))
        return found


def _too_few(run: Measurement, percentile: Percentile) -> bool:
    return run.lat_n is not None and run.lat_n < percentile.needed


def median(values: t.Iterable[float | None]) -> float | None:
    """Of what is known; ``None`` of nothing."""
    known = [value for value in values if value is not None]
    if len(known) == 1:
        return known[0]
    return statistics.median(known) if known else None


def median_of_all(values: t.Sequence[float | None]) -> float | None:
    """``None`` as soon as one is unknown."""
    return None if any(value is None for value in values) else median(values)


def read_rows(database: DuckDBPyConnection, campaign: str) -> Rows:
    """Everything but the series from the views of :func:`tables.views.open_tables`."""
    return Rows(
        campaign=campaign,
        measurements=read_measurements(database),
        drives=_drives(database),
        merged=_merged(database),
        settings=_settings(database),
        together={row[:3]: row[3] for row in database.execute("SELECT host, variant, cell, common FROM targets_at_once").fetchall()},
    )


def read_measurements(database: DuckDBPyConnection) -> list[Measurement]:
    """The table ``cells``."""
    cells = database.execute(f"SELECT {', '.join(_COLUMNS)} FROM cells ORDER BY host, variant, cell, repeat, direction").fetchall()
    return [Measurement(**dict(zip(_COLUMNS, row))) for row in cells]


def read_series(database: DuckDBPyConnection, most: int) -> tuple[list[Series], int]:
    """The series of the table ``intervals`` that vary most, and how many there are.

    :param most: series to return; which vary most is told by twelve averages of each, and by its values.
    """
    key = "host, variant, cell, repeat, direction"
    whole = f"SELECT {key}, second, iops, count(*) OVER (PARTITION BY {key}) AS length FROM intervals WHERE direction <> 'sync'"
    blocks = f"SELECT {key}, second * 12 // length AS block, avg(iops) AS level, stddev_pop(iops) AS noise FROM series GROUP BY ALL"
    ranked = f"SELECT {key}, greatest(2 * (max(level) - min(level)), avg(noise)) / nullif(avg(level), 0) AS swing FROM blocks GROUP BY {key}"
    total = database.execute(f"SELECT count(*) FROM (SELECT DISTINCT {key} FROM intervals WHERE direction <> 'sync')").fetchall()[0][0]
    choice = f"WITH series AS ({whole}), blocks AS ({blocks}), chosen AS ({ranked} ORDER BY swing DESC NULLS LAST, {key} LIMIT {int(most)}) "
    if total <= most:
        choice = f"WITH chosen AS (SELECT DISTINCT {key} FROM intervals) "
    found = database.execute(
        f"{choice} SELECT {key}, list(iops ORDER BY second), list(bw_bytes ORDER BY second) FROM intervals JOIN chosen USING ({key}) "
        f"WHERE direction <> 'sync' GROUP BY {key} ORDER BY {key}"
    ).fetchall()
    return [Series(*row) for row in found], total


@dataclass
class Band:
    """IOPS of all hosts along one cell: a tenth of them is under ``low``, a tenth above ``high``. ``second``: middle of each interval."""

    variant: str
    cell: str
    direction: str
    hosts: int
    second: list[float]
    low: list[float]
    middle: list[float]
    high: list[float]


def read_bands(database: DuckDBPyConnection, most: int = 240) -> list[Band]:
    """What all hosts did together, at no more than ``most`` points of each cell."""
    key = "variant, cell, direction"
    found = database.execute(
        f"WITH lengths AS (SELECT {key}, greatest(1, ceil((max(second) + 1) / {int(most)}))::INTEGER AS width, count(DISTINCT host) AS hosts "
        f"FROM intervals WHERE direction <> 'sync' GROUP BY {key}), "
        f"means AS (SELECT {key}, hosts, width, host, repeat, second // width AS place, "
        f"avg(iops) AS level FROM intervals JOIN lengths USING ({key}) GROUP BY ALL), "
        f"shares AS (SELECT {key}, hosts, (place + 0.5) * width AS middle, quantile_cont(level, [0.1, 0.5, 0.9]) AS share "
        "FROM means WHERE level IS NOT NULL GROUP BY ALL) "
        f"SELECT {key}, any_value(hosts), list(middle ORDER BY middle), {', '.join(f'list(share[{place}] ORDER BY middle)' for place in (1, 2, 3))} "
        f"FROM shares GROUP BY {key} ORDER BY {key}"
    ).fetchall()
    return [Band(*row) for row in found]


def _drives(database: DuckDBPyConnection) -> list[Drive]:
    when = "DISTINCT campaign, host, variant, cell, repeat, started"
    found = database.execute(
        "SELECT host, device, any_value(model), any_value(serial), any_value(firmware), "
        "arg_min(wear_used_percent, moment), arg_max(wear_used_percent, moment), min(written_bytes), max(written_bytes), max(temperature_c), "
        "max(media_errors), bool_and(passed) "
        f"FROM (SELECT devices.*, started + CASE WHEN side = 'after' THEN 0.5 ELSE 0 END AS moment FROM devices "
        f"LEFT JOIN (SELECT {when} FROM cells) USING (campaign, host, variant, cell, repeat)) GROUP BY host, device ORDER BY host, device"
    ).fetchall()
    return [Drive(*row) for row in found]


def _merged(database: DuckDBPyConnection) -> dict[tuple[str, str, str], dict[str, float | None]]:
    found = merged_percentiles(database, "histograms", ("variant", "cell", "direction"))
    return {(variant, cell, direction): values for (variant, cell, direction), values in found.items()}


def merged_percentiles(database: DuckDBPyConnection, histograms: str, key: t.Sequence[str]) -> dict[tuple[str, ...], dict[str, float | None]]:
    """fio's rule on the added bins of each repeat, and the median of the repeats: ns by ``key`` and the name of the percentile.

    :param histograms: the table, or a query in brackets with its columns ``repeat``, ``bin_ns`` and ``count``, and those of ``key``.
    """
    columns = ", ".join((*key, "repeat"))
    ranks = ", ".join(f"min(CASE WHEN reached >= total * {one.percent / 100!r} - 1e-9 THEN bin_ns END)" for one in SHOWN)
    found = database.execute(
        f"WITH added AS (SELECT {columns}, bin_ns, sum(count) AS count FROM {histograms} GROUP BY ALL), "
        f"summed AS (SELECT *, sum(count) OVER (PARTITION BY {columns} ORDER BY bin_ns) AS reached, sum(count) OVER (PARTITION BY {columns}) AS total "
        "FROM added) "
        f"SELECT {columns}, max(total), {ranks} FROM summed GROUP BY {columns}"
    ).fetchall()
    repeats: dict[tuple[str, ...], list[dict[str, float | None]]] = {}
    for row in found:
        total, *values = row[len(key) + 1 :]
        known = {one.name: float(value) if value is not None and total >= one.needed else None for one, value in zip(SHOWN, values)}
        repeats.setdefault(row[: len(key)], []).append(known)
    return {which: {one.name: median_of_all([repeat[one.name] for repeat in known]) for one in SHOWN} for which, known in repeats.items()}


def _settings(database: DuckDBPyConnection) -> dict[tuple[str, str], list[tuple[str, str, str, str]]]:
    found: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {}
    query = "SELECT DISTINCT host, stack, level, coalesce(device, ''), layer, key, coalesce(value, '') FROM layers ORDER BY ALL"
    for host, stack, _level, *setting in database.execute(query).fetchall():
        found.setdefault((host, stack), []).append(tuple(setting))
    return found
