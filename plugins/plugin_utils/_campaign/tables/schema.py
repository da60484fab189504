# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables that are made of a results folder: their columns, types and units, and where their files lie.

A folder of tables is ``<table>/campaign=<campaign>/host=<host>/part-<writer>.parquet``. The values in the path are in the files too, as
text: a reader that takes nothing from paths misses nothing, and no reader takes the host ``007`` for a number.
"""

from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import COLUMNS, KEY, Column

#: The version of the tables. A host whose tables have another one is written anew; the files of results are the truth.
TABLES_SCHEMA = 9

#: Where the tables of a campaign lie in its folder, unless another folder is given.
TABLES_FOLDER = "tables"


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
        return dict(values) if values.keys() == self._names else {name: values.get(name) for name in self._names}

    @functools.cached_property
    def _names(self) -> t.KeysView[str]:
        return dict.fromkeys(column.name for column in self.columns).keys()


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


_CAMPAIGN = _columns(("campaign", "VARCHAR", "name of the campaign"))
_SERIES = _CAMPAIGN + KEY
_CELL = _SERIES[:-1]
_HOST = _CELL[:2]

CELLS = Table(
    "cells",
    "One row for each direction of a measurement. One without numbers (`failed`, `missing`...) has one row, with `direction` NULL.",
    _CAMPAIGN + COLUMNS,
)

INTERVALS = Table(
    "intervals",
    "One row for each second of a measurement that has logs, from the first job of a direction to its last. A second without I/O is there, with 0.",
    _SERIES,
    _columns(
        ("second", "INTEGER", "from `io_start`"),
        ("iops", "DOUBLE", "I/Os per second; NULL without this log, and for a second that fio did not log between two jobs"),
        ("bw_bytes", "DOUBLE", "bytes per second; NULL likewise"),
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
        ("level", "INTEGER", "0 is the target; NULL for values of the whole stack"),
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
    ("written_bytes", "BIGINT", "bytes over the whole lifetime"),
    ("power_on_hours", "BIGINT", "h"),
    ("unsafe_shutdowns", "BIGINT", ""),
    ("passed", "BOOLEAN", "the drive's own health assessment"),
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
    "The counters of the devices while fio runs, as `iostat -x` does.",
    (*_CELL, Column("device", "VARCHAR", "kernel name")),
    _columns(
        ("second", "DOUBLE", "end of the interval, s from `io_start`; before it the job ramps up"),
        ("r_s", "DOUBLE", "reads per second"),
        ("w_s", "DOUBLE", "writes per second"),
        ("rkb_s", "DOUBLE", "KiB per second"),
        ("wkb_s", "DOUBLE", "KiB per second"),
        ("rrqm_s", "DOUBLE", "merged reads per second"),
        ("wrqm_s", "DOUBLE", "merged writes per second"),
        ("r_await_ms", "DOUBLE", "ms; NULL if there was no read, as the others"),
        ("w_await_ms", "DOUBLE", "ms"),
        ("f_s", "DOUBLE", "flushes per second; NULL where the kernel counts none"),
        ("f_await_ms", "DOUBLE", "ms"),
        ("aqu_sz", "DOUBLE", "mean length of the queue"),
        ("util_pct", "DOUBLE", "%"),
        ("in_flight", "DOUBLE", "at the end of the interval"),
    ),
)

CACHE_INTERVALS = Table(
    "cache_intervals",
    "The counters of SSD caches while fio runs: what they held at the end of an interval, and what they counted in it.",
    (*_CELL, Column("cache", "VARCHAR", "kernel name of the cached device")),
    _columns(
        ("second", "DOUBLE", "end of the interval, s from `io_start`"),
        ("seconds", "DOUBLE", "length of the interval; NULL for the first sample, which has no rates"),
        ("dirty_bytes", "DOUBLE", "bytes that are not on the origin yet"),
        ("used_bytes", "DOUBLE", "bytes that are occupied"),
        ("size_bytes", "DOUBLE", "bytes that the cache can hold"),
        ("read_hits_s", "DOUBLE", "per second, as the following ones; NULL where a counter fell or another cache has the name"),
        ("read_misses_s", "DOUBLE", ""),
        ("write_hits_s", "DOUBLE", ""),
        ("write_misses_s", "DOUBLE", ""),
        ("bypassed_reads_s", "DOUBLE", "what was not looked up"),
        ("bypassed_writes_s", "DOUBLE", "likewise"),
        ("promoted_s", "DOUBLE", "blocks that were copied into the cache"),
        ("written_back_s", "DOUBLE", "bytes from the cache to its origin"),
    ),
)

FLOWS = Table(
    "flows",
    "What passed each device of a stack from `io_start` to `io_end`: one row for each device of each measurement, as means per second.",
    _CELL
    + _columns(
        ("level", "INTEGER", "0 is the target"),
        ("device", "VARCHAR", "kernel name"),
        ("kind", "VARCHAR", "what the device is: `disk`, `lvm`, `md`..."),
        ("model", "VARCHAR", ""),
        ("rotational", "BOOLEAN", ""),
        ("reads", "DOUBLE", "per second"),
        ("writes", "DOUBLE", "per second, with the flushes that came without data"),
        ("flushes", "DOUBLE", "per second, sent to it by the kernel; NULL where the kernel counts none"),
        ("read_bytes", "DOUBLE", "bytes per second"),
        ("write_bytes", "DOUBLE", "bytes per second"),
        ("request_bytes", "DOUBLE", "mean size of a request in bytes; NULL if there was none"),
        ("queue", "DOUBLE", "mean number of requests that waited or were worked on"),
        ("in_flight", "DOUBLE", "the same at the ends of the intervals"),
        ("use", "DOUBLE", "% of the time with a request, in whole jiffies"),
        ("read_wait", "DOUBLE", "mean ms of a read; NULL if there was none"),
        ("write_wait", "DOUBLE", "mean ms of a write; NULL if there was none"),
        ("flush_wait", "DOUBLE", "mean ms of a flush; NULL if there was none"),
    ),
)

CACHE_FLOWS = Table(
    "cache_flows",
    "What each cache of a stack did from `io_start` to `io_end`: one row for each cache of each measurement.",
    _CELL
    + _columns(
        ("level", "INTEGER", "of the cached device; NULL if it is not in the stack"),
        ("device", "VARCHAR", "kernel name of the cached device"),
        ("type", "VARCHAR", "as in `block_cache_caches`, or `maxcache`"),
        ("mode", "VARCHAR", "`writethrough`, `writeback`..."),
        ("size", "BIGINT", "bytes"),
        ("fast", "VARCHAR[]", "kernel names of its cache devices"),
        ("origin", "VARCHAR", "kernel name of what is cached"),
        ("read_hits", "DOUBLE", "per second, as the following ones"),
        ("read_misses", "DOUBLE", ""),
        ("write_hits", "DOUBLE", ""),
        ("write_misses", "DOUBLE", ""),
        ("bypassed_reads", "DOUBLE", "what was not looked up"),
        ("bypassed_writes", "DOUBLE", "likewise"),
        ("promoted", "DOUBLE", "blocks that were copied into the cache"),
        ("written_back", "DOUBLE", "bytes from the cache to its origin"),
        ("used_start", "BIGINT", "bytes that were occupied at the beginning"),
        ("used_end", "BIGINT", "at the end"),
        ("used_most", "BIGINT", "at most"),
        ("dirty_start", "BIGINT", "bytes that were not on the origin at the beginning"),
        ("dirty_end", "BIGINT", "at the end"),
        ("dirty_most", "BIGINT", "at most"),
        ("state", "VARCHAR", "`empty`, `warming`, `warm`, `full` or `writing back`; NULL where it is not known"),
    ),
)

TARGETS_AT_ONCE = Table(
    "targets_at_once",
    "The measurements that a host made on several targets at once: one row for each of them. There is none if a suite has one target at a time.",
    _HOST
    + _columns(
        ("variant", "VARCHAR", "cache configuration"),
        ("cell", "VARCHAR", "measurement, of one of the targets"),
        ("common", "VARCHAR", "the name that the measurements of all these targets have in common: that of their sum"),
    ),
)

#: ``cells`` is the last that is written: it describes the others.
TABLES = (INTERVALS, HISTOGRAMS, LAYERS, DEVICES, DEVICE_INTERVALS, CACHE_INTERVALS, FLOWS, CACHE_FLOWS, TARGETS_AT_ONCE, CELLS)

#: What :func:`views.open_tables` shows beside the tables: ``layers`` at every measurement.
STACKS_COLUMNS = (*_CELL, Column("side", "VARCHAR", "`before` or `after`"), *LAYERS.series)


def part_path(root: Path, table: str, campaign: str, host: str, writer: str) -> Path:
    """The file of one table of one host. Campaign and host are names that :func:`component` has passed."""
    return root / table / f"campaign={campaign}" / f"host={host}" / f"part-{writer}.parquet"


def literal(text: str) -> str:
    """Text in SQL."""
    return "'" + text.replace("'", "''") + "'"
