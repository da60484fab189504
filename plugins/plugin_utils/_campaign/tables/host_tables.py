# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of one host, written from its folder of results."""

from __future__ import annotations

import contextlib
import hashlib
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.groups import group_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import META_FILE, PLAN_FILE, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import LARGEST_JSON, explained
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import read_limited, unpacked
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import duckdb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import StoredCell, read_cell
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import noted, row_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.targets_at_once import shared_names
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.batch import Batch
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import TABLES, TABLES_SCHEMA, literal, part_path
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_rows import device_interval_rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.stack_rows import Stacks, device_rows

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import Histograms

#: The metadata of the file of ``cells``: from which files of results its host's tables were made.
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
        for record in records:
            variant = record.key.variant
            if variant not in groups:
                groups[variant] = _group(folder / variant, problems)
            for name, found in read_cell(record, groups[variant], lambda cell: _rows_of(cell, self.campaign, stacks)).items():
                batches[name].add(found)
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


def _rows_of(cell: StoredCell, campaign: str, stacks: Stacks) -> dict[str, t.Iterable[dict[str, t.Any]]]:
    """What one measurement adds to each table."""
    record = cell.record
    key = {"campaign": campaign, "host": record.host, "variant": record.key.variant, "cell": record.key.cell, "repeat": record.key.repeat}
    series, without = cell.series()
    rows: dict[str, t.Iterable[dict[str, t.Any]]] = {
        # Lists: what cannot be computed is to be found out before anything of the measurement is in a table.
        "histograms": list(_histogram_rows(key, cell.histograms)),
        "cells": [{"campaign": campaign, **row_of(noted(one, without))} for one in cell.measurements],
        "intervals": [{**key, "direction": direction, **seconds} for direction, seconds in series.items()],
    }
    if record.path is not None and record.meta:
        for side, name in cell.stack_names.items():
            stacks.add(name, cell.stack.get(side))
        rows["devices"] = list(device_rows(key, cell.stack, record.meta.get("drives")))
        if _DEVICE_SERIES in cell.files:
            rows["device_intervals"] = device_interval_rows(key, unpacked(f"{record.path}/{_DEVICE_SERIES}"), cell.measurements[0].io_start)
    return rows


def _histogram_rows(key: dict[str, t.Any], histograms: Histograms) -> t.Iterator[dict[str, t.Any]]:
    """One series for each direction, shortest latency first."""
    for direction, (kind, bins) in histograms.items():
        values = sorted(bins)
        yield {**key, "direction": direction, "latency_kind": kind, "bin_ns": values, "count": [bins[value] for value in values]}
