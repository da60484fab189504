# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits and reasons in everything that a report writes, and their absence where no flows were recorded."""

from __future__ import annotations

import csv
import io
import pathlib

import pytest

pytest.importorskip("plotly", reason="the page needs plotly: pip install -r requirements.txt")
pytest.importorskip("ruptures", reason="series need ruptures: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page, tables, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis
from ansible_collections.cachefleet.storage.tests.unit.support import planted_flows

WHY = "because no flush reaches the slow disk sda (bare-disk_on sends it 92.5 per second; in writeback-disk_on, with its write cache on,"
LIMIT = "the slow disk sda: 92 flushes per second of 5 ms"


def analysed(rows):
    return analysis.analyse(rows, [], 0, [], pathlib.Path("nowhere"), analysis.Options())


@pytest.fixture(scope="module")
def demo():
    return analysed(planted_flows.demo())


@pytest.fixture(scope="module")
def without():
    return analysed(planted_flows.demo(with_flows=False))


def test_the_reason_is_in_every_text(demo):
    for text in (page.render(demo, "x"), twins.markdown(demo).replace("\\", ""), demo.answer.sentences[0]):
        assert WHY in text and "This is a burst" in text


def test_the_limit_of_each_variant_is_in_the_table_of_the_answer(demo):
    assert f"<b>flushes</b><small>{LIMIT}</small>" in page.render(demo, "x")
    [line] = [line for line in twins.markdown(demo).splitlines() if line.startswith("| randwrite") and "| 1 x |" in line]
    assert f"| flushes; {LIMIT} |" in line


def test_both_are_in_the_csv(demo):
    rows = {row["variant"]: row for row in csv.DictReader(io.StringIO(twins.csv_text(demo)))}
    assert rows["bare-disk_on"]["limit"] == f"flushes: {LIMIT}"
    assert rows["writeback-disk_off"]["because"].startswith("no flush reaches the slow disk sda")
    assert {name for name, row in rows.items() if row["because"]} == {"writeback-disk_off"}


def test_without_flows_nothing_is_said_of_causes(without):
    assert "limit" not in [column.title for column in tables.tables_of(without)["answer"].columns]
    assert not any(word in twins.markdown(without) for word in ("because", "burst", "not known"))
    assert {(row["limit"], row["because"]) for row in csv.DictReader(io.StringIO(twins.csv_text(without)))} == {("", "")}
