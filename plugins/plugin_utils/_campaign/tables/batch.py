# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rows on their way into one file of Parquet.

They go to DuckDB as JSON of known structure, a series as one list for each of its columns: many times faster than row by row. No value
becomes part of SQL, except the names of a series, as far as they have no character that means anything in SQL: they are an enumeration, whose
dictionary DuckDB writes as it is. Of texts it would compute one from each row of the series, which took half of the time.
"""

from __future__ import annotations

import json
import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import Table, literal

if t.TYPE_CHECKING:
    from pathlib import Path

    from duckdb import DuckDBPyConnection

#: Values that are in memory as objects of Python; what is more waits in a table of the database.
_MOST = 500_000

#: Rows of a series from which on an enumeration saves more than it costs.
_LONG = 100

_PLAIN = re.compile(r"[A-Za-z0-9_.:/@+-]{1,200}\Z")


class Batch:
    """The rows of one table of one host."""

    def __init__(self, database: DuckDBPyConnection, table: Table) -> None:
        self.database = database
        self.table = table
        self._rows: list[dict[str, t.Any]] = []
        self._values = 0
        self._waiting = False
        self._first = table.series[0].name if table.series else ""

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
            self._execute(f"COPY ({_select(self.table, self._enumerations())}) TO {literal(str(path))} ({options})")

    def _wait(self) -> None:
        if not self._waiting:
            columns = ", ".join(f"{column.name} {column.type}" for column in self.table.columns)
            self.database.execute(f"CREATE OR REPLACE TABLE {self.table.name} ({columns})")
        self._waiting = True
        if self._rows:
            self._execute(f"INSERT INTO {self.table.name} {_select(self.table, {})}")
        self._rows = []
        self._values = 0

    def _enumerations(self) -> dict[str, str]:
        """The types of columns whose value is repeated in each row of a series."""
        length = self._values / len(self.table.series) / len(self._rows) if self.table.series else 0
        names = [column.name for column in self.table.key if column.type == "VARCHAR"] if length >= _LONG else []
        values = {name: sorted({row[name] for row in self._rows if row[name] is not None}) for name in names}
        return {name: f"ENUM({', '.join(map(literal, found))})" for name, found in values.items() if found and all(map(_PLAIN.match, found))}

    def _execute(self, statement: str) -> None:
        # What is not a number in an array becomes null here, and NULL in the table.
        self.database.execute(statement, [json.dumps(self._rows, default=_elements)])


def _elements(array: t.Any) -> list[t.Any]:
    """What JSON has of an array of numpy; what is not a number in it becomes ``null``."""
    return [None if isinstance(one, float) and math.isnan(one) else one for one in array.tolist()]


def _select(table: Table, enumerations: t.Mapping[str, str]) -> str:
    """:param enumerations: types of columns of the key instead of text."""
    structure: dict[str, t.Any] = {column.name: ["VARCHAR"] if column.type == "VARCHAR[]" else column.type for column in table.key}
    structure.update({column.name: [column.type] for column in table.series})
    keys = [f"r.{one.name}::{enumerations[one.name]} AS {one.name}" if one.name in enumerations else f"r.{one.name} AS {one.name}" for one in table.key]
    rows = f"SELECT {', '.join([*keys, *(f'r.{column.name} AS {column.name}' for column in table.series)])}"
    series = [f"unnest({column.name}) AS {column.name}" for column in table.series]
    read = f"{rows} FROM (SELECT unnest(from_json(?, {literal(json.dumps([structure]))})) AS r)"
    return f"SELECT {', '.join([*(column.name for column in table.key), *series])} FROM ({read})" if series else read
