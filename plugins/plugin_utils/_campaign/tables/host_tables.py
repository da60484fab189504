# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of one host, written from its folder of results.

What a host sampled while fio ran: rows for ``device_intervals``, ``cache_intervals``, ``flows`` and ``cache_flows``.
Rows for ``layers`` and ``devices``, from ``stack.json`` and from the drives in ``meta.json``.

Rows on their way into one file of Parquet.

They go to DuckDB as JSON of known structure, a series as one list for each of its columns: many times faster than row by row. No value
becomes part of SQL, except the names of a series, as far as they have no character that means anything in SQL: they are an enumeration, whose
dictionary DuckDB writes as it is. Of texts it would compute one from each row of the series, which took half of the time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.groups import group_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import DEVICE_STATS_FILE, META_FILE, PLAN_FILE, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import LARGEST_JSON, explained, read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import read_limited, unpacked
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import duckdb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import flag, mapping, number, optional_integer, optional_text, text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import StoredCell, read_cell
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Column, Measurement, noted, row_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import NOT_OF_THE_STACK, SIDES, drives_of, objects
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.targets_at_once import shared_names
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.cell_flows import (
    CACHE_COLUMNS,
    DEVICE_COLUMNS,
    Caches,
    CacheSamples,
    Window,
    cache_flows,
    cache_rates,
    cache_samples,
    caches_of,
    counting,
    device_flows,
    device_rates,
    notes_of,
    request_sizes,
    windows_of,
    without_uncounted,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import (
    CACHE_INTERVALS,
    DEVICES,
    LAYERS,
    TABLES,
    TABLES_SCHEMA,
    Table,
    literal,
    part_path,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_logs import Samples, merged, read_samples

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import Histograms

_REALS = frozenset({"temperature_c", "wear_used_percent", "spare_percent"})
_WEAR = tuple(column.name for column in DEVICES.columns[-10:])
_LAYER_COLUMNS = tuple(column.name for column in LAYERS.series)
#: Without the time itself.
_CACHE_INTERVALS = tuple(column.name for column in CACHE_INTERVALS.series)[1:]


class Stacks:
    """The different stacks of one host, each once."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[t.Any, ...]]] = {}

    def add(self, name: str | None, side: t.Any) -> None:
        """:param name: what one side of a ``stack.json`` is called; ``None`` if it is empty."""
        if name is not None and name not in self._rows:
            self._rows[name] = list(_rows(mapping(side)))

    def rows(self, key: dict[str, t.Any]) -> t.Iterator[dict[str, t.Any]]:
        """One series for each stack."""
        for name, rows in self._rows.items():
            yield {**key, "stack": name, **{column: [row[place] for row in rows] for place, column in enumerate(_LAYER_COLUMNS)}}


def _rows(raw: t.Mapping[str, t.Any]) -> t.Iterator[tuple[t.Any, ...]]:
    for name, value in raw.items():
        if name != "layers" and name not in NOT_OF_THE_STACK:
            yield None, None, None, "verdict", text(name), _value(value)
    for level, layer in enumerate(objects(raw.get("layers"))):
        device, kind = text(layer.get("name")), text(layer.get("kind"))
        for name, value in layer.items():
            if name == "queue":
                for setting, set_to in mapping(value).items():
                    yield level, device, kind, "queue", text(setting), _value(set_to)
            elif name == "caches":
                for cache in objects(value):
                    which = text(cache.get("layer")) or "cache"
                    for setting, set_to in cache.items():
                        if setting != "layer":
                            yield level, device, kind, which, text(setting), _value(set_to)
            elif name not in ("name", "kind"):
                yield level, device, kind, "device", text(name), _value(value)


def _value(value: t.Any) -> str | None:
    if value is None or isinstance(value, str):
        return text(value)
    return json.dumps(value, sort_keys=True)


def device_rows(key: dict[str, t.Any], stack: t.Mapping[str, t.Any], drives: t.Any) -> t.Iterator[dict[str, t.Any]]:
    """The drives of one measurement, before and after.

    :param drives: ``{side: {kernel name: {temperature_c, wear_used_percent…}}}``, as ``meta.json`` has it.
    """
    for side in SIDES:
        below = {str(layer.get("name")): layer for layer in drives_of(stack.get(side))}
        worn = {str(name): mapping(raw) for name, raw in mapping(mapping(drives).get(side)).items()}
        for name in sorted({*below, *worn}):
            layer, wear = below.get(name, {}), worn.get(name, {})
            yield {
                **key,
                "side": side,
                "device": text(name),
                **{column: optional_text(layer.get(column)) for column in ("model", "serial", "firmware", "transport")},
                "size": optional_integer(layer.get("size")),
                "rotational": flag(layer.get("rotational")),
                **{column: _wear(column, wear.get(column)) for column in _WEAR},
            }


def _wear(column: str, value: t.Any) -> t.Any:
    if column == "passed":
        return flag(value)
    return number(value) if column in _REALS else optional_integer(value)


class Sampled(t.NamedTuple):
    """What the host sampled while fio ran, of one measurement.

    :param key: its columns; ``start``: of what its seconds count.
    :param layers: of its stack before; ``sizes``: see :func:`request_sizes`.
    :param window: not-a-number where it is not known when I/O began and ended, and ``around`` likewise: see :mod:`cell_flows`.
    """

    key: dict[str, t.Any]
    layers: list[dict[str, t.Any]]
    caches: Caches
    counting: set[str | None]
    samples: dict[str, Samples]
    sizes: dict[str, str]
    start: float
    window: Window
    around: Window


def sampled_rows(cells: t.Sequence[Sampled]) -> tuple[dict[str, list[dict[str, t.Any]]], list[list[str]]]:
    """The rows of what was sampled in some measurements, and what was wrong with it in each, as sentences."""
    rows: dict[str, list[dict[str, t.Any]]] = {}
    notes: list[list[str]] = [[] for _cell in cells]
    device_figures, cache_figures, caches = {}, {}, None
    windows, around = ([getattr(one, what) for one in cells] for what in ("window", "around"))
    # What is divided by nothing is not known.
    with np.errstate(all="ignore"):
        if (devices := _merged(cells, "device")) is not None:
            without_uncounted(devices, [one.counting for one in cells])
            rows["device_intervals"] = interval_rows(cells, "device", devices, dict(zip(DEVICE_COLUMNS, devices.values)))
            device_figures = device_rates(devices, windows_of(devices, windows), windows_of(devices, around))
        if (read := _merged(cells, "cache")) is not None:
            caches = cache_samples(read, [one.caches for one in cells])
            values = (caches.times - caches.began, *caches.amounts, *caches.rates)
            rows["cache_intervals"] = interval_rows(cells, "cache", caches, dict(zip(_CACHE_INTERVALS, values)))
            cache_figures = cache_rates(caches, windows_of(caches, windows), windows_of(caches, around))
            notes = notes_of(caches, windows)
        measured = [(number, one) for number, one in enumerate(cells) if one.samples and not math.isnan(one.window[0])]
        rows["flows"] = [{**one.key, **row} for number, one in measured for row in device_flows(number, one.layers, device_figures)]
        rows["cache_flows"] = [
            {**one.key, **row, "request_sizes": one.sizes.get(row["device"])}
            for number, one in measured
            for row in cache_flows(number, one.layers, one.caches, caches, cache_figures, one.window)
        ]
    return rows, notes


def _merged(cells: t.Sequence[Sampled], subject: str) -> Samples | None:
    found = {number: one.samples[subject] for number, one in enumerate(cells) if subject in one.samples}
    return merged(found) if found else None


def interval_rows(cells: t.Sequence[Sampled], subject: str, samples: Samples | CacheSamples, columns: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """One series for each device or cache. The values are arrays, with not-a-number for what is not known.

    :param columns: arrays of all samples.
    """
    zero, _end = windows_of(samples, [(one.start, one.start) for one in cells])
    columns = {"second": np.round(samples.times - zero, 3), **columns}
    return [
        {**cells[number].key, subject: name, **{column: values[place] for column, values in columns.items()}}
        for (number, name), place in samples.places.items()
    ]


#: Values that are in memory as objects of Python; what is more waits in a table of the database.
_MOST = 500_000

#: Rows of a series from which on an enumeration saves more than it costs.
_LONG = 100

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+-]{1,200}\Z")


#: Columns of series that DuckDB reads as arrays.
_ARRAYS = {"DOUBLE": "float64", "BIGINT": "int64", "INTEGER": "int32"}

#: The view of arrays, and its column with the number of a series.
_SAMPLES, _NUMBER = "samples_of_series", "number_of_series"


class Batch:
    """The rows of one table of one host."""

    def __init__(self, database: DuckDBPyConnection, table: Table) -> None:
        self.database = database
        self.table = table
        self._rows: list[dict[str, t.Any]] = []
        self._values = 0
        self._waiting = False
        self._first = table.series[0].name if table.series else ""
        self._arrays = bool(table.series) and all(column.type in _ARRAYS for column in table.series)

    def __bool__(self) -> bool:
        return bool(self._rows) or self._waiting

    def add(self, rows: t.Iterable[dict[str, t.Any]]) -> None:
        """:param rows: of a table with series, one for each series, with lists or arrays of one length in the columns of the series."""
        for row in rows:
            length = len(row[self._first]) if self._first else 0
            if self._first and not length:
                continue
            self._rows.append(self.table.row(row))
            self._values += length * len(self.table.series) or len(row)
            if self._values > _MOST:
                self._wait()

    def copy_to(self, path: Path, options: str) -> None:
        """Write all rows, in the order in which they were added.

        :param options: of COPY.
        :raises duckdb.Error: if the file cannot be written.
        """
        if self._waiting:
            self._wait()
            self.database.execute(f"COPY {self.table.name} TO {literal(str(path))} ({options})")
        else:
            self._execute(f"COPY ({self._select(self._enumerations())}) TO {literal(str(path))} ({options})")

    def _wait(self) -> None:
        if not self._waiting:
            columns = ", ".join(f"{column.name} {column.type}" for column in self.table.columns)
            self.database.execute(f"CREATE OR REPLACE TABLE {self.table.name} ({columns})")
        self._waiting = True
        if self._rows:
            self._execute(f"INSERT INTO {self.table.name} {self._select({})}")
        self._rows = []
        self._values = 0

    def _enumerations(self) -> dict[str, str]:
        """The types of columns whose value is repeated in each row of a series."""
        length = self._values / len(self.table.series) / len(self._rows) if self.table.series else 0
        names = [column.name for column in self.table.key if column.type == "VARCHAR"] if length >= _LONG else []
        values = {name: sorted({row[name] for row in self._rows if row[name] is not None}) for name in names}
        return {name: f"ENUM({', '.join(map(literal, found))})" for name, found in values.items() if found and all(map(_PLAIN.match, found))}

    def _select(self, enumerations: t.Mapping[str, str]) -> str:
        return _select_arrays(self.table, enumerations) if self._arrays else _select(self.table, enumerations)

    def _execute(self, statement: str) -> None:
        if not self._arrays:
            self.database.execute(statement, [json.dumps(self._rows)])
            return
        # What is None becomes not-a-number.
        series = {one.name: np.concatenate([np.asarray(row[one.name], dtype=_ARRAYS[one.type]) for row in self._rows]) for one in self.table.series}
        lengths = [len(row[self._first]) for row in self._rows]
        self.database.register(_SAMPLES, {_NUMBER: np.repeat(np.arange(len(lengths)), lengths), **series})
        try:
            keys = [{_NUMBER: number, **{column.name: row[column.name] for column in self.table.key}} for number, row in enumerate(self._rows)]
            self.database.execute(statement, [json.dumps(keys)])
        finally:
            self.database.unregister(_SAMPLES)


def _select_arrays(table: Table, enumerations: t.Mapping[str, str]) -> str:
    """The same where the series are arrays. What is not a number in them becomes NULL."""
    keys = _select(Table("", "", (Column(_NUMBER, "BIGINT", ""), *table.key)), enumerations)
    series = [f"nullif(s.{one.name}, 'NaN'::DOUBLE) AS {one.name}" if one.type == "DOUBLE" else f"s.{one.name}" for one in table.series]
    names = [f"k.{column.name}" for column in table.key]
    return f"SELECT {', '.join([*names, *series])} FROM {_SAMPLES} s JOIN ({keys}) k USING ({_NUMBER})"


def _select(table: Table, enumerations: t.Mapping[str, str]) -> str:
    """:param enumerations: types of columns of the key instead of text."""
    structure: dict[str, t.Any] = {column.name: ["VARCHAR"] if column.type == "VARCHAR[]" else column.type for column in table.key}
    structure.update({column.name: [column.type] for column in table.series})
    keys = [f"r.{one.name}::{enumerations[one.name]} AS {one.name}" if one.name in enumerations else f"r.{one.name} AS {one.name}" for one in table.key]
    rows = f"SELECT {', '.join([*keys, *(f'r.{column.name} AS {column.name}' for column in table.series)])}"
    series = [f"unnest({column.name}) AS {column.name}" for column in table.series]
    read = f"{rows} FROM (SELECT unnest(from_json(?, {literal(json.dumps([structure]))})) AS r)"
    return f"SELECT {', '.join([*(column.name for column in table.key), *series])} FROM ({read})" if series else read


#: The metadata of the file of ``cells``: from which files of results its host's tables were made.
DIGEST_KEY = "cachefleet_digest"

#: Likewise, which tables the host has rows in.
TABLES_KEY = "cachefleet_tables"

_DEVICE_SERIES, _CACHE_SERIES = "device_series.log.gz", "cache_series.log.gz"

_DRAFT = ".draft"


class Written(t.NamedTuple):
    """What became of one host.

    :param cells: its measurements, of whatever state.
    :param problems: what of its folder was left out, and why, as sentences.
    """

    host: str
    cells: int
    problems: tuple[str, ...]


def host_digest(host: Path, version: int = TABLES_SCHEMA) -> str:
    """Changes whenever a result or a plan of the host does: ``meta.json`` has the hashes of the other files.

    :param version: of what is made of them, so that another version is another digest.
    """
    found = hashlib.sha256(f"{version}\n".encode())
    for name in _described(host):
        # As it is read later: what is a link, a pipe or too large is none of its files.
        with contextlib.suppress(ResultsError):
            content = read_limited(f"{host}/{name}", LARGEST_JSON)
            found.update(f"{name}\n".encode(errors="replace"))
            found.update(hashlib.sha256(content).digest())
    return found.hexdigest()


def _described(host: Path) -> t.Iterator[str]:
    """Where the plan of each variant and the ``meta.json`` of each measurement can be, in the folder of a host.

    The folders of the measurements, with nearly all files of a campaign, are not listed: of a thousand hosts that took longer than reading.
    """
    for variant in _folders_in(f"{host}"):
        yield f"{variant}/{PLAN_FILE}"
        for cell in _folders_in(f"{host}/{variant}"):
            for repeat in _folders_in(f"{host}/{variant}/{cell}"):
                yield f"{variant}/{cell}/{repeat}/{META_FILE}"


def _folders_in(folder: str) -> list[str]:
    """Their names; links are not followed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


class HostWriter:
    """Writes the tables of one host after the other.

    :param campaign: name of the campaign.
    :param root: the folder of tables.
    :param writer: names the files of this writer: see :func:`ingest.writer_of`.
    """

    def __init__(self, campaign: str, root: Path, writer: str) -> None:
        self.campaign = campaign
        self.root = root
        self.writer = writer
        self.database = duckdb.connect(config={"threads": 1, "memory_limit": "256MB"})
        # A statement that unpacks some rows is done sooner than it is optimised, and there is nothing in it to optimise.
        self.database.execute("PRAGMA disable_optimizer")

    def close(self) -> None:
        self.database.close()

    def write(self, host: Path) -> Written:
        """Write what a host has. A concurrent reader gets the old file of a table or the new one.

        :param host: its folder of results.
        :raises ResultsError: if the tables cannot be written.
        """
        problems: list[str] = []
        # Before anything else is read: what changes meanwhile is seen the next time.
        digest = host_digest(host)
        records = store.load_host(host, {}, problems, stacks=True)
        batches = self._batches(host, records, problems)
        with explained(self.root, f"writing the tables of host {host.name}"):
            metadata = {DIGEST_KEY: digest, TABLES_KEY: " ".join(name for name, batch in batches.items() if batch)}
            for name, batch in batches.items():
                path = part_path(self.root, name, self.campaign, host.name, self.writer)
                if batch:
                    self._write_table(batch, path, metadata)
                else:
                    path.unlink(missing_ok=True)
        return Written(host.name, len(records), tuple(problems))

    def _batches(self, folder: Path, records: t.Sequence[CellRecord], problems: list[str]) -> dict[str, Batch]:
        """The rows of each table; what was of another host is gone."""
        host = folder.name
        batches = {table.name: Batch(self.database, table) for table in TABLES}
        stacks = Stacks()
        groups: dict[str, str | None] = {}
        waiting: list[_Cell] = []
        for record in records:
            variant = record.key.variant
            if variant not in groups:
                groups[variant] = _group(folder / variant, problems)
            cell = read_cell(record, groups[variant], lambda cell: _read_all(cell, self.campaign, stacks))
            for name, found in cell.rows.items():
                batches[name].add(found)
            waiting.append(cell)
            if sum(one.values for one in waiting) > _MOST:
                _add_sampled(batches, waiting, self.campaign)
                waiting = []
        _add_sampled(batches, waiting, self.campaign)
        batches["layers"].add(stacks.rows({"campaign": self.campaign, "host": host}))
        batches["targets_at_once"].add(
            {"campaign": self.campaign, "host": host, "variant": variant, "cell": cell, "common": common}
            for (_host, variant, cell), common in sorted(shared_names(records).items())
        )
        return batches

    def _write_table(self, batch: Batch, path: Path, metadata: t.Mapping[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.stem}.{os.getpid()}{_DRAFT}")
        try:
            words = ", ".join(f"{key}: {literal(value)}" for key, value in metadata.items())
            # Snappy takes a twentieth less time for all tables than zstd, and a third more space.
            # A file is of one host, and read whole or not at all: an eighth of it would be Bloom filters.
            options = f"FORMAT parquet, COMPRESSION snappy, WRITE_BLOOM_FILTER false, KV_METADATA {{{words}}}"
            batch.copy_to(draft, options)
            os.replace(draft, path)
        except duckdb.Error as error:
            raise OSError(0, plain(error, 200)) from None
        finally:
            draft.unlink(missing_ok=True)


def _group(variant: Path, problems: list[str]) -> str | None:
    """The array that a host shares with others, according to its plan."""
    try:
        return group_of(variant)
    except StorageError as error:
        problems.append(error.message)
        return None


class _Cell(t.NamedTuple):
    """What one measurement adds to the tables.

    :param notes: of its series, for its rows in ``cells``.
    """

    rows: dict[str, t.Iterable[dict[str, t.Any]]]
    measurements: list[Measurement]
    notes: list[str]
    sampled: Sampled

    @property
    def values(self) -> int:
        return sum(one.values.size for one in self.sampled.samples.values())


def _add_sampled(batches: t.Mapping[str, Batch], cells: t.Sequence[_Cell], campaign: str) -> None:
    """What was sampled in some measurements, and their rows in ``cells``, which have the notes of that."""
    rows, notes = sampled_rows([one.sampled for one in cells])
    rows["cells"] = [{"campaign": campaign, **row_of(noted(one, cell.notes + more))} for cell, more in zip(cells, notes) for one in cell.measurements]
    for name, found in rows.items():
        batches[name].add(found)


def _read_all(cell: StoredCell, campaign: str, stacks: Stacks) -> _Cell:
    record = cell.record
    key = {"campaign": campaign, "host": record.host, "variant": record.key.variant, "cell": record.key.cell, "repeat": record.key.repeat}
    series, without = cell.series()
    rows: dict[str, t.Iterable[dict[str, t.Any]]] = {
        # Lists: what cannot be computed is to be found out before anything of the measurement is in a table.
        "histograms": list(_histogram_rows(key, cell.histograms)),
        "intervals": [{**key, "direction": direction, **seconds} for direction, seconds in series.items()],
    }
    sampled, notes = _sampled(cell, key)
    if record.path is not None and record.meta:
        for side, name in cell.stack_names.items():
            stacks.add(name, cell.stack.get(side))
        rows["devices"] = list(device_rows(key, cell.stack, record.meta.get("drives")))
    return _Cell(rows, cell.measurements, without + notes, sampled)


def _sampled(cell: StoredCell, key: dict[str, t.Any]) -> tuple[Sampled, list[str]]:
    record, first = cell.record, cell.measurements[0]
    is_stored = record.path is not None and bool(record.meta)
    layers = objects(mapping(cell.stack.get("before")).get("layers")) if is_stored else []
    logs = (("device", _DEVICE_SERIES, DEVICE_COLUMNS), ("cache", _CACHE_SERIES, CACHE_COLUMNS)) if is_stored else ()
    samples = {subject: found for subject, name, columns in logs if (found := _read(cell, name, subject, columns)) is not None}
    window = around = (math.nan, math.nan)
    if first.io_start is not None and first.io_end is not None:
        window = (first.io_start, first.io_end)
        # A ramp does I/O before the measurement; earlier versions did not record it.
        began = first.started if first.started is not None and record.meta.get("ramp") == 0 else first.io_start
        around = (began, first.io_end if first.finished is None else first.finished)
    start = first.io_start
    if start is None:
        start = next((time for one in samples.values() for time in one.times.tolist() if not math.isnan(time)), 0.0)
    caches = caches_of(layers)
    sizes: dict[str, str] = {}
    notes: list[str] = []
    if DEVICE_STATS_FILE in cell.files and any(type_of(str(cache.get("type"))).counts_sizes for _level, cache in caches.values()):
        with contextlib.suppress(ResultsError):
            sizes, notes = request_sizes(read_json(f"{record.path}/{DEVICE_STATS_FILE}"))
    return Sampled(key, layers, caches, counting(layers, record.meta.get("kernel")), samples, sizes, start, window, around), notes


def _read(cell: StoredCell, name: str, subject: str, columns: t.Sequence[str]) -> Samples | None:
    if name not in cell.files:
        return None
    return read_samples(unpacked(f"{cell.record.path}/{name}"), subject, columns, number(cell.record.meta.get("started")))


def _histogram_rows(key: dict[str, t.Any], histograms: Histograms) -> t.Iterator[dict[str, t.Any]]:
    """One series for each direction, shortest latency first."""
    for direction, (kind, bins) in histograms.items():
        values = sorted(bins)
        yield {**key, "direction": direction, "latency_kind": kind, "bin_ns": values, "count": [bins[value] for value in values]}
