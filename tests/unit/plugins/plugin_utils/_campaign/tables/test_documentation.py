# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/results.md: every column is there, and the statements in it work."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import TABLES
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

PAGE = (Path(__file__).resolve().parents[6] / "docs/results.md").read_text()
STATEMENTS = re.findall(r"```sql\n(.*?)```", PAGE.partition("### Past one machine")[0], re.DOTALL)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_documented(table):
    part = PAGE.partition(f"### `{table.name}`\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    assert table.about in part
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*?) ?\|$", part, re.MULTILINE)
    assert rows == [(column.name, column.type, column.meaning) for column in table.columns]


def test_every_documented_statement_works(tmp_path, monkeypatch):
    ingest(write_campaign(tmp_path / "results/synthetic", 2, cells=4, seconds=3), workers=1)
    monkeypatch.chdir(tmp_path)
    assert len(STATEMENTS) == 5
    with duckdb.connect() as database:
        for statement in STATEMENTS[0].strip().split("\n"):
            database.execute(statement)
        for statement in STATEMENTS[1:]:
            assert database.execute(statement).fetchall(), statement
