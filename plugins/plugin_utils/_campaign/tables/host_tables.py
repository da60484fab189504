# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The tables of one host, written from its folder of results."""

from __future__ import annotations

import contextlib
import hashlib
import os
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, META_FILE, OUTPUT_FILE, PLAN_FILE, STACK_FILE, plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import explained, read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import CELL_TROUBLE, fio_result, logs, trouble, unpacked
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import duckdb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.targets_at_once import shared_names
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.batch import Batch
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.cell_rows import (
    cell_rows,
    histogram_rows,
    histograms_of,
    mapping,
    optional_text,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import TABLES, TABLES_SCHEMA, literal, part_path
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_rows import Log, device_interval_rows, interval_rows, read_log
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.stack_rows import SIDES, Stacks, common_text, device_rows, drives_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord

#: What the file of ``cells`` says of itself: from which files of results its host's tables were made.
DIGEST_KEY = "cachefleet_digest"

#: Likewise, which tables the host has rows in.
TABLES_KEY = "cachefleet_tables"

_DEVICE_SERIES = "device_series.log.gz"

_DRAFT = ".draft"


class Written(t.NamedTuple):
    """What became of one host.

    :param cells: its measurements, of whatever state.
    :param problems: what of its folder was left out, and why, as sentences.
    """

    host: str
    cells: int
    problems: tuple[str, ...]


def host_digest(host: Path) -> str:
    """Changes whenever a result or a plan of the host does: ``meta.json`` has the hashes of the other files."""
    found = hashlib.sha256(f"{TABLES_SCHEMA}\n".encode())
    for folder, folders, files in os.walk(host):
        folders.sort()
        for name in (META_FILE, PLAN_FILE):
            if name in files:
                with contextlib.suppress(OSError), open(os.path.join(folder, name), "rb") as file:
                    found.update(f"{os.path.relpath(folder, host)}/{name}\n".encode(errors="replace"))
                    found.update(hashlib.sha256(file.read()).digest())
    return found.hexdigest()


class HostWriter:
    """Writes the tables of one host after the other.

    :param campaign: name of the campaign.
    :param root: the folder of tables.
    :param writer: names the files of whoever writes here: see :func:`ingest.writer_of`.
    """

    def __init__(self, campaign: str, root: Path, writer: str) -> None:
        self.campaign = campaign
        self.root = root
        self.writer = writer
        self.database = duckdb.connect(config={"threads": 1, "memory_limit": "256MB"})

    def close(self) -> None:
        self.database.close()

    def write(self, host: Path) -> Written:
        """Write what a host has. Whoever reads meanwhile sees the old file of a table or the new one.

        :param host: its folder of results.
        :raises ResultsError: if the tables cannot be written.
        """
        problems: list[str] = []
        # Before anything else is read: what changes meanwhile is seen the next time.
        digest = host_digest(host)
        records = store.load_host(host, {}, problems)
        batches = self._batches(host.name, records, problems)
        with explained(self.root, f"writing the tables of host {host.name}"):
            said = {DIGEST_KEY: digest, TABLES_KEY: " ".join(name for name, batch in batches.items() if batch)}
            for name, batch in batches.items():
                path = part_path(self.root, name, self.campaign, host.name, self.writer)
                if batch:
                    self._write_table(batch, path, said)
                else:
                    path.unlink(missing_ok=True)
        return Written(host.name, len(records), tuple(problems))

    def _batches(self, host: str, records: t.Sequence[CellRecord], problems: list[str]) -> dict[str, Batch]:
        """The rows of each table; what was of another host is gone."""
        batches = {table.name: Batch(self.database, table) for table in TABLES}
        stacks = Stacks()
        groups: dict[str, str | None] = {}
        for record in records:
            variant = record.key.variant
            if variant not in groups:
                groups[variant] = _group(record, problems)
            for name, found in _checked_rows(record, {"campaign": self.campaign, "host": host}, stacks, groups[variant]).items():
                batches[name].add(found)
        batches["layers"].add(stacks.rows({"campaign": self.campaign, "host": host}))
        batches["targets_at_once"].add(
            {"campaign": self.campaign, "host": host, "variant": variant, "cell": cell, "common": common}
            for (_host, variant, cell), common in sorted(shared_names(records).items())
        )
        return batches

    def _write_table(self, batch: Batch, path: Path, said: t.Mapping[str, str]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.stem}.{os.getpid()}{_DRAFT}")
        try:
            words = ", ".join(f"{key}: {literal(value)}" for key, value in said.items())
            options = f"FORMAT parquet, COMPRESSION zstd, KV_METADATA {{{words}}}"
            batch.copy_to(draft, options)
            os.replace(draft, path)
        except duckdb.Error as error:
            raise OSError(0, plain(error, 200)) from None
        finally:
            draft.unlink(missing_ok=True)


def _group(record: CellRecord, problems: list[str]) -> str | None:
    """The array that a host shares with others, as its plan says."""
    if record.path is None:
        return None
    plan = record.path.parent.parent / PLAN_FILE
    try:
        return optional_text(read_json(plan).get("group")) or None if plan.is_file() else None
    except StorageError as error:
        problems.append(error.message)
        return None


def _checked_rows(record: CellRecord, host: dict[str, t.Any], stacks: Stacks, group: str | None) -> dict[str, t.Iterable[dict[str, t.Any]]]:
    """What one measurement adds to each table; a measurement whose files cannot be read is failed, and the others go on."""
    try:
        return _rows_of(record, host, stacks, group)
    except CELL_TROUBLE as error:
        reason = f"the stored result could not be read: {trouble(error)}"
        return _rows_of(replace(record, state="failed", reason=reason, meta={}, job={}, verdicts=(None, None)), host, stacks, group)


def _rows_of(record: CellRecord, host: dict[str, t.Any], stacks: Stacks, group: str | None) -> dict[str, t.Iterable[dict[str, t.Any]]]:
    """What one measurement adds to each table."""
    key = {**host, "variant": record.key.variant, "cell": record.key.cell, "repeat": record.key.repeat}
    folder, meta = record.path, record.meta
    if folder is None or not meta:
        return {"cells": cell_rows(record, key, {"host_group": group, "path": _place(record, host)}, {})}
    stack = _stack(folder)
    drives = drives_of(stack.get("before"))
    target = mapping(meta.get("target"))
    common = {
        "host_group": group,
        "path": _place(record, host),
        **{name: optional_text(target.get(name)) or common_text(drives, name) for name in ("model", "firmware")},
        **{f"stack_{side}": stacks.add(stack.get(side)) for side in SIDES},
    }
    measured = record.state in MEASURED
    said = mapping(meta.get("files"))
    histograms = histograms_of(record, fio_result(folder)) if measured and meta.get("summary") and OUTPUT_FILE in said else {}
    cells = cell_rows(record, key, common, histograms)
    start, end = cells[0].get("io_start"), cells[0].get("io_end")
    directions = {row["direction"] for row in cells if row.get("direction")}
    rows: dict[str, t.Iterable[dict[str, t.Any]]] = {
        "cells": cells,
        # Lists: what cannot be computed is to be found out before anything of the measurement is in a table.
        "histograms": list(histogram_rows(key, histograms)),
        "devices": list(device_rows(key, stack, meta.get("drives"))),
    }
    if directions:
        rows["intervals"] = list(interval_rows(key, _logs(folder, said), start, end, directions))
    if _DEVICE_SERIES in said:
        rows["device_intervals"] = device_interval_rows(key, unpacked(folder / _DEVICE_SERIES), start)
    return rows


def _place(record: CellRecord, host: t.Mapping[str, t.Any]) -> str | None:
    return None if record.path is None else f"{host['host']}/{record.key}"


def _stack(folder: Path) -> dict[str, t.Any]:
    return read_json(folder / STACK_FILE) if (folder / STACK_FILE).exists() else {}


def _logs(folder: Path, names: t.Iterable[str]) -> dict[str, list[Log]]:
    """The logs of each quantity, of each thread one.

    :raises ResultsError: if they cannot be read, or are too long together.
    """
    chosen = {what: _log_names(names, what) for what in ("iops", "bw", "lat")}
    chosen["lat"] = chosen["lat"] or _log_names(names, "clat")
    texts = logs(folder / name for some in chosen.values() for name in some)
    return {what: [read_log(next(texts)) for _name in some] for what, some in chosen.items()}


def _log_names(names: t.Iterable[str], what: str) -> list[str]:
    return sorted(name for name in names if name.startswith((f"series_{what}.", f"series_{what}_")) and name.endswith(".log.gz"))
