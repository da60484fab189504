# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The tables that are made of a results folder: their columns, types and units, and where their files lie.

A folder of tables is ``<table>/campaign=<campaign>/host=<host>/part-<writer>.parquet``. The values in the path are in the files too, as
text: a reader that takes nothing from paths misses nothing, and no reader takes the host ``007`` for a number.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import PERCENTILES

#: The version of the tables. A host whose tables have another one is written anew; the files of results are the truth.
TABLES_SCHEMA = 3

#: Where the tables of a campaign lie in its folder, unless another folder is given.
TABLES_FOLDER = "tables"


class Column(t.NamedTuple):
    """One column: its name, its type in DuckDB, and what it says, with its unit."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table.

    :param key: columns that stand for one row, or for one series of rows where ``series`` is not empty.
    :param series: columns with a value for each row of a series; empty where a row is a row.
    """

    name: str
    about: str
    key: tuple[Column, ...]
    series: tuple[Column, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.key + self.series

    def row(self, values: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Exactly the columns of this table; what is not there is NULL."""
        return {column.name: values.get(column.name) for column in self.columns}


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


_HOST = _columns(("campaign", "VARCHAR", "name of the campaign"), ("host", "VARCHAR", "name of the host in the inventory"))
_CELL = _HOST + _columns(
    ("variant", "VARCHAR", "cache configuration"),
    ("cell", "VARCHAR", "measurement"),
    ("repeat", "INTEGER", "number of the repeat, from 1"),
)
_SERIES = (*_CELL, Column("direction", "VARCHAR", "`read`, `write`, `trim`, `mixed` (one figure over all of them) or `sync` (`fsync`, `fdatasync`)"))

CELLS = Table(
    "cells",
    "One row for each direction of a measurement. One without numbers (`failed`, `missing`...) has one row, with `direction` NULL.",
    _SERIES
    + _columns(
        ("state", "VARCHAR", "`ok`, `not_steady`, `noisy`, `interrupted`, `failed`, `refused` or `missing`"),
        ("reason", "VARCHAR", "why it is not `ok`"),
        ("iops", "DOUBLE", "I/Os per second; of `sync`, syncs per second"),
        ("bw_bytes", "DOUBLE", "bytes per second"),
        ("total_ios", "BIGINT", "I/Os"),
        ("runtime_ms", "BIGINT", "ms of the longest thread, without the ramp"),
        ("latency_kind", "VARCHAR", "`lat` (what the application waits), `clat` (from submission to completion) or `sync`: which the next columns are"),
        ("lat_n", "BIGINT", "I/Os of which the latency is known"),
        ("lat_mean_ns", "DOUBLE", "ns"),
        ("lat_min_ns", "DOUBLE", "ns"),
        ("lat_max_ns", "DOUBLE", "ns"),
        *((one.column, "BIGINT", "ns; percentiles are NULL where there are too few I/Os for them" if one is PERCENTILES[0] else "ns") for one in PERCENTILES),
        ("rw", "VARCHAR", "option of the job, as the following ones; fio's default where the job does not say"),
        ("bs", "VARCHAR", "as in the job"),
        ("bs_bytes", "BIGINT", "the same in bytes; NULL if it is not one size"),
        ("ioengine", "VARCHAR", ""),
        ("iodepth", "INTEGER", ""),
        ("numjobs", "INTEGER", ""),
        ("rwmixread", "INTEGER", "% of reads; NULL if the job does not mix"),
        ("fdatasync", "INTEGER", "writes per `fdatasync`, 0 for none"),
        ("fsync", "INTEGER", "writes per `fsync`, 0 for none"),
        ("direct", "BOOLEAN", "past the page cache"),
        ("target", "VARCHAR", "path of the device or file, as it was asked for"),
        ("target_identity", "VARCHAR", "by which the device is known for good"),
        ("target_size", "BIGINT", "bytes that were used"),
        ("model", "VARCHAR", "of the target, else of the drives below it, separated by commas"),
        ("firmware", "VARCHAR", "likewise"),
        ("fio_version", "VARCHAR", ""),
        ("behaviour_class", "VARCHAR", "versions of fio that may be compared"),
        ("kernel", "VARCHAR", ""),
        ("started", "DOUBLE", "s since 1970, clock of the host, as all times"),
        ("finished", "DOUBLE", "s since 1970"),
        ("io_start", "DOUBLE", "s since 1970: when the ramp was over"),
        ("io_end", "DOUBLE", "s since 1970"),
        ("asked_runtime", "DOUBLE", "s"),
        ("verdict_before", "VARCHAR", "`durable`, `at_risk` or `unknown`"),
        ("verdict_after", "VARCHAR", "likewise"),
        ("stack_before", "VARCHAR", "the stack in the table `layers`"),
        ("stack_after", "VARCHAR", "likewise"),
        ("stack_sha256", "VARCHAR", "of what does not change by itself in the stack"),
        ("measurement_sha256", "VARCHAR", "of job, target, version of fio and stack"),
        ("bytes_written", "BIGINT", "bytes that the device counted"),
        ("bytes_read", "BIGINT", "likewise"),
        ("collection_rate", "DOUBLE", "bytes per second at which garbage was collected at `bs`; NULL if the cell was not to measure it, or did not show it"),
        ("collection_shown_by", "VARCHAR", "`fall` if the rate of writing fell and stayed low, `fill` if as much as the device holds had been written before"),
        ("cpu_usr", "DOUBLE", "% of one CPU, of fio"),
        ("cpu_sys", "DOUBLE", "likewise"),
        ("host_busy", "DOUBLE", "% of all CPUs of the host"),
        ("cpu_bound", "BOOLEAN", "the CPUs may have been the limit"),
        ("synchronised", "BOOLEAN", "whether it started together with other hosts"),
        ("clock_offset", "DOUBLE", "s: clock of the host - clock of the controller"),
        ("host_group", "VARCHAR", "hosts that share an array"),
        ("notes", "VARCHAR[]", "what else is to be known, as sentences"),
        ("search", "VARCHAR", "JSON: what a search has found"),
        ("rounds", "VARCHAR", "JSON: what rounds have found"),
        ("path", "VARCHAR", "folder of the measurement in the folder of the campaign"),
    ),
)

INTERVALS = Table(
    "intervals",
    "One row for each second of a measurement that has logs. A second in which nothing was done is there, with 0.",
    _SERIES,
    _columns(
        ("second", "INTEGER", "from `io_start`"),
        ("iops", "DOUBLE", "I/Os per second; NULL without this log"),
        ("bw_bytes", "DOUBLE", "bytes per second; NULL without this log"),
        ("lat_ns", "DOUBLE", "mean latency in ns; NULL if no I/O ended"),
    ),
)

HISTOGRAMS = Table(
    "histograms",
    "The latencies of every I/O, in fio's bins. Add `count` over any rows of one direction, then take percentiles.",
    (*_SERIES, Column("latency_kind", "VARCHAR", "as in `cells`")),
    _columns(("bin_ns", "BIGINT", "midpoint of the bin in ns, known to 1/128"), ("count", "BIGINT", "I/Os")),
)

LAYERS = Table(
    "layers",
    "What the layers under a target were set to: one row for each value, once for each different state of a host. See `stacks`.",
    (*_HOST, Column("stack", "VARCHAR", "as in `cells`: `stack_before`, `stack_after`")),
    _columns(
        ("level", "INTEGER", "0 is the target; NULL for what is said of the whole stack"),
        ("device", "VARCHAR", "kernel name"),
        ("kind", "VARCHAR", "what the device is: `disk`, `lvm`, `md`..."),
        ("layer", "VARCHAR", "`verdict`, `device`, `queue`, or the cache: `drive`, `controller`..."),
        ("key", "VARCHAR", ""),
        ("value", "VARCHAR", "text; lists and objects as JSON"),
    ),
)

_WEAR = _columns(
    ("temperature_c", "DOUBLE", "°C"),
    ("wear_used_percent", "DOUBLE", "% of the rated endurance"),
    ("spare_percent", "DOUBLE", "% of the spare blocks that are left"),
    ("media_errors", "BIGINT", ""),
    ("reallocated", "BIGINT", "sectors"),
    ("pending", "BIGINT", "sectors"),
    ("written_bytes", "BIGINT", "bytes over the whole life"),
    ("power_on_hours", "BIGINT", "h"),
    ("unsafe_shutdowns", "BIGINT", ""),
    ("passed", "BOOLEAN", "what the drive says of its own health"),
)

DEVICES = Table(
    "devices",
    "The drives under a target, before and after each measurement.",
    _CELL
    + _columns(
        ("side", "VARCHAR", "`before` or `after`"),
        ("device", "VARCHAR", "kernel name; of drives behind a controller what `smartctl -d` calls them"),
        ("model", "VARCHAR", ""),
        ("serial", "VARCHAR", ""),
        ("firmware", "VARCHAR", ""),
        ("size", "BIGINT", "bytes"),
        ("rotational", "BOOLEAN", ""),
        ("transport", "VARCHAR", ""),
    )
    + _WEAR,
)

DEVICE_INTERVALS = Table(
    "device_intervals",
    "What the devices' own counters say while fio runs, as `iostat -x` does.",
    (*_CELL, Column("device", "VARCHAR", "kernel name")),
    _columns(
        ("second", "DOUBLE", "end of the interval, s from `io_start`; before it the job ramps up"),
        ("r_s", "DOUBLE", "reads per second"),
        ("w_s", "DOUBLE", "writes per second"),
        ("rkb_s", "DOUBLE", "KiB per second"),
        ("wkb_s", "DOUBLE", "KiB per second"),
        ("rrqm_s", "DOUBLE", "merged reads per second"),
        ("wrqm_s", "DOUBLE", "merged writes per second"),
        ("r_await_ms", "DOUBLE", "ms"),
        ("w_await_ms", "DOUBLE", "ms"),
        ("f_s", "DOUBLE", "flushes per second"),
        ("f_await_ms", "DOUBLE", "ms"),
        ("aqu_sz", "DOUBLE", "mean length of the queue"),
        ("util_pct", "DOUBLE", "%"),
        ("in_flight", "DOUBLE", "at the end of the interval"),
    ),
)

TARGETS_AT_ONCE = Table(
    "targets_at_once",
    "The measurements that a host made on several targets at once: one row for each of them. There is none where a suite has one target at a time.",
    _HOST
    + _columns(
        ("variant", "VARCHAR", "cache configuration"),
        ("cell", "VARCHAR", "measurement, of one of the targets"),
        ("common", "VARCHAR", "the name that the measurements of all these targets have in common: that of their sum"),
    ),
)

#: ``cells`` is the last that is written: it says what the others hold.
TABLES = (INTERVALS, HISTOGRAMS, LAYERS, DEVICES, DEVICE_INTERVALS, TARGETS_AT_ONCE, CELLS)

#: What :func:`views.open_tables` shows beside the tables: ``layers`` at every measurement.
STACKS_COLUMNS = (*_CELL, Column("side", "VARCHAR", "`before` or `after`"), *LAYERS.series)


def part_path(root: Path, table: str, campaign: str, host: str, writer: str) -> Path:
    """The file of one table of one host. Campaign and host are names that :func:`layout.component` has passed."""
    return root / table / f"campaign={campaign}" / f"host={host}" / f"part-{writer}.parquet"


def literal(text: str) -> str:
    """Text in SQL."""
    return "'" + text.replace("'", "''") + "'"
