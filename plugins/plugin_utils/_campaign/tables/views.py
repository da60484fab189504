# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables as views in DuckDB: of one campaign, or of everything below a pattern."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import duckdb
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import STACKS_COLUMNS, TABLES, TABLES_FOLDER, literal

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


#: Memory of DuckDB in 10^6 bytes for two threads: at least, and for each host.
_LEAST_MEMORY, _MEMORY_OF_A_HOST = 128, 0.128

#: More of them need more memory: each has buffers of its own.
_MOST_THREADS = 8

_Value = t.TypeVar("_Value")


def read_tables(folder: Path | str, read: t.Callable[[DuckDBPyConnection], _Value], *, campaign: str = "") -> _Value:
    """What a function reads of tables: with little memory if that suffices, because DuckDB keeps as much of the files as it may, otherwise with all it can get.

    :param read: called with the connection; a second time if the memory did not suffice.
    :raises ResultsError: as :func:`open_tables`, and if the controller has too little memory.
    """
    for sparing in (True, False):
        with open_tables(folder, campaign=campaign, sparing=sparing) as database, contextlib.suppress(duckdb.OutOfMemoryException):
            return read(database)
    raise ResultsError(f"The controller has too little free memory to read the tables in {folder}: read them on a machine with more.")


def open_tables(folder: Path | str, *, campaign: str = "", threads: int | None = None, sparing: bool = True) -> DuckDBPyConnection:
    """A connection to a database in memory with a view for each table, and ``stacks``.

    :param folder: of a campaign or of tables, or a pattern for several of either (``results/*``).
    :param campaign: only this one of a folder that several share.
    :param threads: at most 8 by default.
    :param sparing: whether DuckDB has only the memory that usual results need; see :func:`read_tables`.
    :raises ResultsError: if there are no tables.
    :raises LibraryMissing: without duckdb.
    """
    pattern = _tables_pattern(folder)
    # Nothing is fetched from anywhere: what DuckDB needs here is in its package. What does not fit waits on disk, and not in the current folder.
    waiting = Path(tempfile.gettempdir()) / f"cachefleet-{secrets.token_hex(16)}"
    threads = threads or min(len(os.sched_getaffinity(0)), _MOST_THREADS)
    config: dict[str, t.Any] = {"autoinstall_known_extensions": False, "temp_directory": str(waiting), "threads": threads}
    database = duckdb.connect(config=config)
    # Many small files: their footers are read once. Results are ordered where the order matters.
    database.execute("SET parquet_metadata_cache = true")
    database.execute("SET preserve_insertion_order = false")
    if sparing:
        _spare_memory(database, pattern, threads)
    for table in TABLES:
        files = f"{pattern}/{table.name}/campaign={quoted_glob(campaign) or '*'}/host=*/part-*.parquet"
        there = database.execute("SELECT 1 FROM glob(?) LIMIT 1", [files]).fetchall()
        if there:
            columns = ", ".join(column.name for column in table.columns)
            database.execute(f"CREATE VIEW {table.name} AS SELECT {columns} FROM read_parquet({literal(files)}, hive_partitioning = false)")
        elif table.name == "cells":
            database.close()
            raise ResultsError(f"There are no tables in {folder}: make them with 'ansible-playbook cachefleet.storage.results -e results_campaign=FOLDER'.")
        else:
            nothing = ", ".join(f"NULL::{column.type} AS {column.name}" for column in table.columns)
            database.execute(f"CREATE VIEW {table.name} AS SELECT {nothing} WHERE false")
    database.execute(f"CREATE VIEW stacks AS {STACKS}")
    return database


def _spare_memory(database: DuckDBPyConnection, pattern: str, threads: int) -> None:
    hosts = database.execute("SELECT count(*) FROM glob(?)", [f"{pattern}/cells/campaign=*/host=*/part-*.parquet"]).fetchall()[0][0]
    megabytes = max(_LEAST_MEMORY, hosts * _MEMORY_OF_A_HOST) * max(1.0, threads / 2)
    database.execute(f"SET memory_limit = '{int(megabytes)}MB'")


def _tables_pattern(folder: Path | str) -> str:
    """The folder of tables, as DuckDB takes it in ``glob``."""
    path = Path(folder)
    if not path.exists():
        text = str(path)
        return text if text.rstrip("/").endswith(f"/{TABLES_FOLDER}") else f"{text.rstrip('/')}/{TABLES_FOLDER}"
    return quoted_glob(path if (path / "cells").is_dir() and not (path / TABLES_FOLDER).is_dir() else path / TABLES_FOLDER)


def quoted_glob(path: Path | str) -> str:
    """A path in which nothing stands for anything else."""
    return re.sub(r"([*?[])", r"[\1]", str(path))


#: ``layers`` at every measurement, before and after.
STACKS = (
    f"SELECT {', '.join(column.name for column in STACKS_COLUMNS)} FROM ("
    "SELECT DISTINCT campaign, host, variant, cell, repeat, unnest(['before', 'after']) AS side, unnest([stack_before, stack_after]) AS stack FROM cells"
    ") JOIN (SELECT DISTINCT * FROM layers) USING (campaign, host, stack)"
)
