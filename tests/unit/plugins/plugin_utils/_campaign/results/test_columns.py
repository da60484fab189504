# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A column is defined once, and every renderer prints it."""

from __future__ import annotations

import csv
import io
import pathlib

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")
pytest.importorskip("plotly", reason="the page needs plotly: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import columns, table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import rows_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import figure
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement


@pytest.fixture
def rendered(tmp_path):
    measured = [measurement(variant=variant, repeat=repeat, iops=12_346.0) for variant in ("none", "other") for repeat in (1, 2)]

    def every():
        found = analysis.analyse(Rows("c", measured), [], 0, [], pathlib.Path("nowhere"), analysis.Options())
        campaign = store.Campaign("c", tmp_path, ("none", "other"), (), ())
        return {
            "terminal": table.render(campaign, rows_of(measured), []),
            "markdown": twins.markdown(found),
            "html": page.render(found, "c").partition("<script")[0],
            "csv": twins.csv_text(found),
        }

    return every


def test_a_column_of_the_model_is_in_all_four_renderers(rendered, monkeypatch):
    assert not any("IOPS/2" in said or "half_iops" in said for said in rendered().values())
    half = columns.Column("IOPS/2", lambda row: row.iops / 2, figure, field="half_iops", is_brief=True, style="n")
    monkeypatch.setattr(columns, "MEASURED", (*columns.MEASURED, half))
    found = rendered()
    assert "IOPS/2" in found["terminal"] and "6,170" in found["terminal"]
    assert "IOPS/2 6,170" in found["markdown"]
    assert "IOPS/2 6,170</small>" in found["html"]
    lines = list(csv.DictReader(io.StringIO(found["csv"])))
    assert [line["half_iops"] for line in lines] == ["6173.0", "6173.0"]


def test_one_figure_reads_the_same_everywhere_and_is_exact_for_programs(rendered):
    found = rendered()
    assert all("12,300" in found[name] for name in ("terminal", "markdown", "html"))
    assert not any("12346" in found[name] for name in ("terminal", "markdown", "html"))
    assert "12346.0" in found["csv"]
