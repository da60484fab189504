# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The row that everything is made of: one direction of one measurement, with the type and the meaning of each of its columns.

The table ``cells``, both loaders, the report and the exports take the columns from here: they are spelled once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import operator
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import PERCENTILES

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class Column(t.NamedTuple):
    """One column: its name, its type in DuckDB, and its meaning, with its unit."""

    name: str
    type: str
    meaning: str


def _key(kind: str, meaning: str) -> t.Any:
    return dataclasses.field(metadata={"type": kind, "meaning": meaning, "detail": False})  # pylint: disable=invalid-field-call


def _column(kind: str, meaning: str = "", default: t.Any = None, *, detail: bool = False) -> t.Any:
    """:param detail: for other programs; nothing here reads it back from a table, where a fleet has it a hundred thousand times."""
    return dataclasses.field(default=default, metadata={"type": kind, "meaning": meaning, "detail": detail})  # pylint: disable=invalid-field-call


@dataclass(slots=True)
class Measurement:
    """One direction of one measurement. ``None`` is what was not measured, or what a host did not report; then ``direction`` too."""

    host: str = _key("VARCHAR", "name of the host in the inventory")
    variant: str = _key("VARCHAR", "cache configuration")
    cell: str = _key("VARCHAR", "measurement")
    repeat: int = _key("INTEGER", "number of the repeat, from 1")
    direction: str | None = _column("VARCHAR", "`read`, `write`, `trim`, `mixed` (one figure over all of them) or `sync` (`fsync`, `fdatasync`)")
    state: str = _column("VARCHAR", "`ok`, `not_steady`, `noisy`, `interrupted`, `failed`, `refused` or `missing`", "ok")
    reason: str | None = _column("VARCHAR", "why it is not `ok`")
    iops: float | None = _column("DOUBLE", "I/Os per second; of `sync`, syncs per second")
    bw_bytes: float | None = _column("DOUBLE", "bytes per second")
    total_ios: int | None = _column("BIGINT", "I/Os")
    began_ms: int | None = _column("BIGINT", "ms from `io_start` to the first I/O of this direction; NULL in results of old versions")
    runtime_ms: int | None = _column("BIGINT", "ms from the first I/O of this direction to the last one, without the ramp")
    latency_kind: str | None = _column(
        "VARCHAR", "`lat` (what the application waits), `clat` (from submission to completion) or `sync`: which the next columns are", detail=True
    )
    lat_n: int | None = _column("BIGINT", "I/Os of which the latency is known")
    lat_mean_ns: float | None = _column("DOUBLE", "ns")
    lat_min_ns: float | None = _column("DOUBLE", "ns", detail=True)
    lat_max_ns: float | None = _column("DOUBLE", "ns", detail=True)
    p50_ns: float | None = _column("BIGINT", "ns; percentiles are NULL where there are too few I/Os for them")
    p90_ns: float | None = _column("BIGINT", "ns", detail=True)
    p95_ns: float | None = _column("BIGINT", "ns", detail=True)
    p99_ns: float | None = _column("BIGINT", "ns")
    p999_ns: float | None = _column("BIGINT", "ns")
    p9999_ns: float | None = _column("BIGINT", "ns", detail=True)
    rw: str | None = _column("VARCHAR", "option of the job, as the following ones; fio's default where the job does not set it")
    bs: str | None = _column("VARCHAR", "as in the job")
    bs_bytes: int | None = _column("BIGINT", "the same in bytes; NULL if it is not one size")
    ioengine: str | None = _column("VARCHAR")
    iodepth: int | None = _column("INTEGER")
    numjobs: int | None = _column("INTEGER")
    rwmixread: int | None = _column("INTEGER", "% of reads; NULL if the job does not mix")
    fdatasync: int | None = _column("INTEGER", "writes per `fdatasync`, 0 for none")
    fsync: int | None = _column("INTEGER", "writes per `fsync`, 0 for none")
    direct: bool | None = _column("BOOLEAN", "past the page cache")
    target: str | None = _column("VARCHAR", "path of the device or file, as it was requested")
    target_identity: str | None = _column("VARCHAR", "by which the device is identified permanently", detail=True)
    target_size: int | None = _column("BIGINT", "bytes that were used")
    model: str | None = _column("VARCHAR", "of the target, else of the drives below it, separated by commas")
    firmware: str | None = _column("VARCHAR", "likewise")
    attachment: str | None = _column(
        "VARCHAR", "how the drives below it are reached: `SATA`, `JBOD`, `RAID volume`, `AoE`..., `unknown`, separated by commas; NULL without a stack"
    )
    drive: str | None = _column("VARCHAR", "serial number of the drive below it, also of the only one of a RAID volume; NULL of several")
    fio_version: str | None = _column("VARCHAR")
    behaviour_class: str | None = _column("VARCHAR", "versions of fio that may be compared")
    kernel: str | None = _column("VARCHAR")
    started: float | None = _column("DOUBLE", "s since 1970, clock of the host, as all times")
    finished: float | None = _column("DOUBLE", "s since 1970", detail=True)
    io_start: float | None = _column("DOUBLE", "s since 1970: when the ramp was over")
    io_end: float | None = _column("DOUBLE", "s since 1970")
    asked_runtime: float | None = _column("DOUBLE", "s", detail=True)
    verdict_before: str | None = _column("VARCHAR", "`durable`, `at_risk` or `unknown`")
    verdict_after: str | None = _column("VARCHAR", "likewise")
    stack_before: str | None = _column("VARCHAR", "the stack in the table `layers`")
    stack_after: str | None = _column("VARCHAR", "likewise")
    stack_sha256: str | None = _column("VARCHAR", "of what does not change by itself in the stack")
    measurement_sha256: str | None = _column("VARCHAR", "of job, target, version of fio and stack", detail=True)
    bytes_written: int | None = _column("BIGINT", "bytes that the device counted")
    bytes_read: int | None = _column("BIGINT", "likewise")
    collection_rate: float | None = _column(
        "DOUBLE", "bytes per second at which garbage was collected at `bs`; NULL if the cell was not to measure it, or did not show it"
    )
    collection_shown_by: str | None = _column(
        "VARCHAR", "`fall` if the rate of writing fell and stayed low, `fill` if as much as the device holds had been written before"
    )
    cpu_usr: float | None = _column("DOUBLE", "% of one CPU, of fio")
    cpu_sys: float | None = _column("DOUBLE", "likewise")
    host_busy: float | None = _column("DOUBLE", "% of all CPUs of the host")
    cpu_bound: bool | None = _column("BOOLEAN", "the CPUs may have been the limit")
    synchronised: bool | None = _column("BOOLEAN", "whether it started together with other hosts")
    clock_offset: float | None = _column("DOUBLE", "s: clock of the host - clock of the controller")
    clock_error: float | None = _column("DOUBLE", "s: how wrong `clock_offset` may be")
    host_group: str | None = _column("VARCHAR", "hosts that share an array")
    notes: list[str] | None = _column("VARCHAR[]", "what else is to be known, as sentences")  # noqa: RUF009 - it is a field
    search: str | None = _column("VARCHAR", "JSON: what a search has found")
    rounds: str | None = _column("VARCHAR", "JSON: what rounds have found")
    workload_sha256: str | None = _column("VARCHAR", "of the job, whatever it runs on")
    rate_limit: str | None = _column("VARCHAR", "options of the job that limit its rate, as `rate_iops=5000`, separated by blanks; NULL without any")
    decides: str | None = _column(
        "VARCHAR", "metrics by which it answers the question of its suite, separated by blanks; empty for none, NULL where the suite does not set it"
    )
    not_deciding: str | None = _column("VARCHAR", "why it does not decide although its suite has it decide, as a clause; NULL if nothing speaks against it")
    path: str | None = _column("VARCHAR", "folder of the measurement in the folder of the campaign")

    @property
    def measured(self) -> bool:
        return self.direction is not None and self.state in MEASURED

    @property
    def synced(self) -> bool:
        """Whether each write of it was made durable before the next."""
        return bool(self.fdatasync or self.fsync)

    @property
    def is_sequential(self) -> bool:
        """Whether its I/O is in order, so that bytes count and not I/Os."""
        return self.rw in ("read", "write", "rw", "readwrite", "trim")

    @property
    def has_percentiles(self) -> bool:
        """Whether fio gave any, even if there are too few I/Os to show one."""
        return self.p50_ns is not None or (self.lat_n is not None and self.lat_n < PERCENTILES[0].needed)


#: All columns, in the order of the fields.
COLUMNS = tuple(Column(field.name, field.metadata["type"], field.metadata["meaning"]) for field in dataclasses.fields(Measurement))

#: The names of those that are read back from tables.
READ_BACK = tuple(field.name for field in dataclasses.fields(Measurement) if not field.metadata["detail"])

#: The columns that stand for one row.
KEY = COLUMNS[: [column.name for column in COLUMNS].index("direction") + 1]


def noted(one: Measurement, notes: t.Sequence[str]) -> Measurement:
    """With further notes, each once."""
    more = [note for note in notes if note not in (one.notes or ())]
    return dataclasses.replace(one, notes=[*(one.notes or ()), *more]) if more else one


def row_of(one: Measurement) -> dict[str, t.Any]:
    """Its values by column."""
    return {column.name: getattr(one, column.name) for column in COLUMNS}


#: New objects after which those that refer to each other are searched, where there are hundreds of thousands, and hardly any that do.
_OBJECTS = 100_000


@contextlib.contextmanager
def rare_garbage_collection() -> t.Iterator[None]:
    """Around what makes measurements of a fleet: otherwise a tenth of the time is spent on searching them for garbage."""
    usual = gc.get_threshold()
    gc.set_threshold(_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*usual)


#: Rows that are in memory as they come, beside the measurements.
_ROWS_AT_ONCE = 10_000


def read_measurements(database: DuckDBPyConnection, columns: t.Sequence[str] = READ_BACK, campaign: str | None = None) -> list[Measurement]:
    """The table ``cells``.

    :param columns: what is read of it; the key must be among them.
    :param campaign: only of this one.
    """
    where = "" if campaign is None else " WHERE campaign = $campaign"
    query = f"SELECT {', '.join(columns)} FROM cells{where} ORDER BY host, variant, cell, repeat, direction"
    database.execute(query, {} if campaign is None else {"campaign": campaign})
    # Names and versions are the same in thousands of rows, and every row brings its own copies.
    known: dict[str, str] = {}
    places = {name: place for place, name in enumerate(columns)}
    defaults = [field.default for field in dataclasses.fields(Measurement)]
    # All fields in their order, those that are not read with their default: by name they would take twice the time.
    values_of = operator.itemgetter(*(places.get(column.name, len(columns) + number) for number, column in enumerate(COLUMNS)))
    found = []
    while rows := database.fetchmany(_ROWS_AT_ONCE):
        for row in rows:
            values = [known.setdefault(value, value) if isinstance(value, str) else value for value in row]
            found.append(Measurement(*values_of([*values, *defaults])))
    return found
