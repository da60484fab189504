# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/results.md: every column is there, and the statements in it work."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import duckdb
import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.schema import CELLS, TABLES, TABLES_SCHEMA
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

PAGE = (Path(__file__).resolve().parents[6] / "docs/results.md").read_text()
QUERIES = PAGE.partition("### Query the tables")[2].partition("\n### ")[0]
SCRIPTS = re.findall(r"```python\n(.*?)```", QUERIES, re.DOTALL)
STATEMENTS = re.findall(r"```sql\n(.*?)```", PAGE.partition("### Past one machine")[0], re.DOTALL)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_column_is_documented(table):
    part = PAGE.partition(f"### `{table.name}`\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    assert table.about in part
    rows = re.findall(r"^\| `(\w+)` \| (\S+) \| (.*?) ?\|$", part, re.MULTILINE)
    assert rows == [(column.name, column.type, column.meaning) for column in table.columns]


def test_version_of_the_tables_is_documented():
    assert f"the tables version {TABLES_SCHEMA};" in PAGE


def test_every_documented_statement_works(tmp_path, monkeypatch):
    ingest(write_campaign(tmp_path / "results/synthetic", 2, cells=4, seconds=3), workers=1)
    monkeypatch.chdir(tmp_path)
    assert len(STATEMENTS) == 5
    with duckdb.connect() as database:
        for statement in STATEMENTS[0].strip().split("\n"):
            database.execute(statement)
        for statement in STATEMENTS[1:]:
            assert database.execute(statement).fetchall(), statement


@pytest.fixture
def documented_campaign(tmp_path, monkeypatch):
    """Two hosts of which one looks like a number, in the folder that the page names."""
    name = re.search(r"results/([^*/]+)/tables", QUERIES)[1]
    folder = write_campaign(tmp_path / "results" / name, 2, cells=4, seconds=3, campaign=name)
    for path in (folder / "host0001").rglob("meta.json"):
        path.write_text(path.read_text().replace("host0001", "007"))
    (folder / "host0001").rename(folder / "007")
    ingest(folder, workers=1)
    monkeypatch.chdir(tmp_path)
    return folder


def cells_of(*scripts):
    """What some blocks of the page, one after the other, call cells."""
    file = Path("documented.py")
    file.write_text("\n".join(scripts))
    return runpy.run_path(str(file))["cells"]


def test_documented_python_reads_the_tables_in_duckdb(documented_campaign):
    [script] = [one for one in SCRIPTS if "duckdb" in one]
    assert sorted(cells_of(script).select("host").distinct().fetchall()) == [("007",), ("host0000",)]


def test_documented_python_reads_the_tables_in_pandas(documented_campaign):
    """As the page says it, in one session; a host stays text."""
    pytest.importorskip("pandas", reason="pip install pandas pyarrow")
    pytest.importorskip("pyarrow", reason="pip install pandas pyarrow")
    with duckdb.connect() as database:
        expected = database.read_parquet(f"{documented_campaign}/tables/cells/*/*/*.parquet", hive_partitioning=False)
        rows = sorted(expected.select("host, variant, cell, direction, iops").fetchall())
    scripts = [one for one in SCRIPTS if "duckdb" not in one]
    assert len(scripts) == 2
    for count in (1, 2):
        cells = cells_of(*scripts[:count])
        assert list(cells.columns) == [column.name for column in CELLS.columns]
        found = cells[["host", "variant", "cell", "direction", "iops"]].itertuples(index=False, name=None)
        assert sorted(found) == rows
    assert {row[0] for row in rows} == {"007", "host0000"}


def test_every_library_of_the_scripts_is_named_on_the_page():
    imported = set(re.findall(r"^import (\w+)$", "\n".join(SCRIPTS), re.MULTILINE)) - {"glob"}
    assert imported == {"duckdb", "pandas"}
    assert "`pip install pandas pyarrow`" in QUERIES
