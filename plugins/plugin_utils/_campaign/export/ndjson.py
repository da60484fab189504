# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Tables as lines of JSON: one object for each row, with the name of its table under ``table``; what is NULL is left out."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import STACKS_COLUMNS, TABLES

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: Columns by table; ``stacks`` is the view of the settings at every measurement.
COLUMNS = {**{table.name: [column.name for column in table.columns] for table in TABLES}, "stacks": [column.name for column in STACKS_COLUMNS]}

#: Rows that are in memory at a time.
_ROWS = 2000


def lines(database: DuckDBPyConnection, tables: t.Sequence[str] = ("cells",)) -> t.Iterator[str]:
    """The rows of some tables, in the order of their keys.

    :param tables: names in :data:`COLUMNS`.
    """
    for table in tables:
        columns = COLUMNS[table]
        for row in rows(database, f"SELECT {', '.join(columns)} FROM {table} ORDER BY ALL"):
            row_text = {name: value for name, value in zip(columns, row) if value is not None}
            yield json.dumps({"table": table, **row_text}) + "\n"


def rows(database: DuckDBPyConnection, query: str) -> t.Iterator[tuple[t.Any, ...]]:
    """The rows of a query, some at a time."""
    found = database.execute(query)
    while True:
        some = found.fetchmany(_ROWS)
        if not some:
            return
        yield from some
