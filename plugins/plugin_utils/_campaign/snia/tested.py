# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tables of a campaign have for the report page of SNIA's Performance Test Specification: one row for each direction of a measurement.

Machine, purge and job files are not in the tables: they are read from the files of one measurement, where those are still there.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import parse_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COLUMNS = (
    "host", "variant", "cell", "repeat", "direction", "state", "reason", "iops", "bw_bytes", "total_ios", "runtime_ms", "latency_kind", "lat_n",
    "lat_mean_ns", "lat_max_ns",
    "rw", "bs_bytes", "ioengine", "iodepth", "numjobs", "rwmixread", "direct", "asked_runtime", "target", "target_identity", "target_size", "model",
    "firmware", "fio_version", "kernel", "started", "finished", "bytes_written", "rounds", "stack_before", "path",
)  # fmt: skip
_LONGEST_JOB = 8192

#: Settings of layers that the page names, by layer and key.
_SETTINGS = {
    ("drive", "drive"): "Write cache of the drive",
    ("drive", "kernel"): "Write cache as the kernel sees it",
    ("queue", "write_cache"): "Write cache of the block queue",
    ("queue", "scheduler"): "Scheduler",
    ("device", "driver"): "Driver",
    ("controller", "name"): "Controller",
    ("controller", "model"): "Controller",
    ("controller", "firmware"): "Firmware of the controller",
}


@dataclass(frozen=True)
class Row:
    """One direction of one measurement, as the table ``cells`` has it; ``None`` is what was not recorded."""

    host: str
    variant: str
    cell: str
    repeat: int
    direction: str | None
    state: str
    reason: str | None
    iops: float | None
    bw_bytes: float | None
    total_ios: int | None
    runtime_ms: int | None
    latency_kind: str | None
    lat_n: int | None
    lat_mean_ns: float | None
    lat_max_ns: float | None
    rw: str | None
    bs_bytes: int | None
    ioengine: str | None
    iodepth: int | None
    numjobs: int | None
    rwmixread: int | None
    direct: bool | None
    asked_runtime: float | None
    target: str | None
    target_identity: str | None
    target_size: int | None
    model: str | None
    firmware: str | None
    fio_version: str | None
    kernel: str | None
    started: float | None
    finished: float | None
    bytes_written: int | None
    rounds: str | None
    stack_before: str | None
    path: str | None

    @property
    def found(self) -> dict[str, t.Any]:
        """What rounds have found; empty for an ordinary cell, and where it is damaged."""
        if not self.rounds:
            return {}
        try:
            return dict(mapping(parse_json(self.rounds)))
        except ResultsError:
            return {}

    @property
    def reads(self) -> int | None:
        """% of reads in its job."""
        rw = (self.rw or "").removeprefix("rand")
        return {"read": 100, "write": 0}.get(rw, self.rwmixread if rw in ("rw", "readwrite") else None)


@dataclass(frozen=True)
class Drive:
    """One drive below a target."""

    model: str | None
    serial: str | None
    firmware: str | None
    size: int | None
    transport: str | None


@dataclass
class Tested:
    """Everything of one target of one host in one variant.

    :param meta: of its first measurement with files; ``job``: the text of that of its last one.
    :param minutes: of cells without rounds by the minute: its number, average IOPS and bytes per second, and the bytes of all its seconds.
    :param bins: added latencies of reads and writes, by cell.
    """

    host: str
    variant: str
    target: str
    rows: list[Row] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    minutes: dict[str, list[tuple[int, float, float, float]]] = field(default_factory=dict)
    bins: dict[str, dict[int, int]] = field(default_factory=dict)
    meta: t.Mapping[str, t.Any] = field(default_factory=dict)
    job: str = ""


def read_tested(database: DuckDBPyConnection, campaign: Path) -> list[Tested]:
    """All devices under test, the first repeat of each measurement.

    :param campaign: its folder, for what the tables do not have.
    """
    found: dict[tuple[str, str, str], Tested] = {}
    query = f"SELECT {', '.join(_COLUMNS)} FROM cells WHERE repeat = 1 AND target IS NOT NULL ORDER BY started, host, cell, direction"
    for values in database.execute(query).fetchall():
        row = Row(*values)
        key = (row.host, row.variant, row.target or "")
        found.setdefault(key, Tested(*key)).rows.append(row)
    tested = sorted(found.values(), key=lambda one: (one.host, one.variant, one.target))
    for one in tested:
        _add_drives(database, one)
        _add_settings(database, one)
        _add_figures(database, one)
        _add_files(campaign, one)
    return tested


def _add_drives(database: DuckDBPyConnection, one: Tested) -> None:
    query = (
        "SELECT DISTINCT model, serial, firmware, size, transport FROM devices WHERE host = ? AND variant = ? AND cell = ? AND side = 'before' "
        "AND (model IS NOT NULL OR serial IS NOT NULL OR size IS NOT NULL) ORDER BY serial, model"
    )
    for cell in dict.fromkeys(row.cell for row in one.rows if row.direction):
        one.drives = [Drive(*values) for values in database.execute(query, [one.host, one.variant, cell]).fetchall()]
        if one.drives:
            return


def _add_settings(database: DuckDBPyConnection, one: Tested) -> None:
    stack = next((row.stack_before for row in one.rows if row.stack_before), None)
    query = "SELECT DISTINCT level, layer, key, value FROM layers WHERE host = ? AND stack = ? AND value IS NOT NULL ORDER BY level, layer, key, value"
    for _level, layer, key, value in database.execute(query, [one.host, stack]).fetchall():
        label = _SETTINGS.get((layer, key))
        if label and (label, value) not in one.settings:
            one.settings.append((label, value))


def _add_figures(database: DuckDBPyConnection, one: Tested) -> None:
    """Series of cells that are not rounds, and the histograms of rounds."""
    names = {row.cell for row in one.rows}
    series = (
        "SELECT cell, second // 60 AS minute, avg(iops), avg(bw_bytes), sum(bw_bytes) FROM (SELECT cell, second, sum(iops) AS iops, sum(bw_bytes) AS bw_bytes "
        "FROM intervals WHERE host = ? AND variant = ? AND repeat = 1 AND direction IN ('read', 'write') AND NOT contains(cell, '.round-') "
        "GROUP BY cell, second) GROUP BY cell, minute ORDER BY cell, minute"
    )
    for cell, minute, iops, bandwidth, moved in database.execute(series, [one.host, one.variant]).fetchall():
        if cell in names and iops is not None:
            one.minutes.setdefault(cell, []).append((minute, iops, bandwidth or 0.0, moved or 0.0))
    bins = (
        "SELECT cell, bin_ns, sum(count) FROM histograms WHERE host = ? AND variant = ? AND repeat = 1 AND direction IN ('read', 'write') "
        "GROUP BY cell, bin_ns ORDER BY cell, bin_ns"
    )
    for cell, bin_ns, count in database.execute(bins, [one.host, one.variant]).fetchall():
        if cell in names:
            one.bins.setdefault(cell, {})[int(bin_ns)] = int(count)


def _add_files(campaign: Path, one: Tested) -> None:
    root = campaign.resolve()
    places = []
    for row in one.rows:
        place = (campaign / (row.path or "")).resolve()
        # A copied table may name any path: only what lies in the campaign is read.
        if row.path and row.direction and place != root and place.is_relative_to(root):
            places.append(place)
    for place in places:
        try:
            one.meta = read_json(place / "meta.json")
        except ResultsError:
            continue
        break
    if places and (places[-1] / "job.fio").is_file():
        with (places[-1] / "job.fio").open("rb") as file:
            one.job = file.read(_LONGEST_JOB).decode(errors="replace")
