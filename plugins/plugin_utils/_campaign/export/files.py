# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign as one file for other systems."""

from __future__ import annotations

import filecmp
import os
import tempfile
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.export import influx, ndjson, openmetrics
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError

if t.TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMATS = ("ndjson", "openmetrics", "influx")


def export(database: DuckDBPyConnection, kind: str, file: Path, tables: t.Sequence[str] = ("cells",)) -> tuple[bool, int]:
    """Write a file, whole or not at all.

    :param database: see :func:`views.open_tables`.
    :param kind: one of :data:`FORMATS`.
    :param tables: for ``ndjson``: which tables.
    :returns: whether it is different from what was there, and its lines.
    :raises BadInput: for a format or table that does not exist.
    :raises ResultsError: if the file cannot be written.
    """
    if kind not in FORMATS:
        raise BadInput(f"'{kind}' is not a format of an export: give one of {', '.join(FORMATS)}.")
    unknown = [table for table in tables if table not in ndjson.COLUMNS]
    if unknown:
        raise BadInput(f"'{unknown[0]}' is not a table: give some of {', '.join(ndjson.COLUMNS)}.")
    content = {"ndjson": lambda: ndjson.lines(database, tables), "openmetrics": lambda: openmetrics.lines(database), "influx": lambda: influx.lines(database)}
    count = 0
    try:
        descriptor, draft = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as target:
                for line in content[kind]():
                    target.write(line)
                    count += 1
            if file.is_file() and filecmp.cmp(draft, file, shallow=False):
                os.unlink(draft)
                return False, count
            # A collector of metrics runs as another user.
            os.chmod(draft, 0o644)
            os.replace(draft, file)
        except BaseException:
            os.unlink(draft)
            raise
    except OSError as error:
        raise ResultsError(f"The export {file} cannot be written ({error.strerror}): give a file in a folder that can be.") from None
    return True, count
