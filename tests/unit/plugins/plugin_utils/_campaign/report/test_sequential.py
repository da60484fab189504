# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sequential I/O is counted in MB/s: in sentences, tables, pictures and on the terminal."""

from __future__ import annotations

import pathlib

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")
pytest.importorskip("ruptures", reason="series need ruptures: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import headings, hosts, page, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.tables import tables_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band, Rows, Series
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Ratio
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import rows_of
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

MIB = 2**20


def repeats(variant, speed, host="node1"):
    """Reads of 1 MiB in order at two loads and with two block sizes, four times: 100 MiB/s at the lower load."""
    return [
        measurement(
            host, variant, f"seqread-{size}-{depth}", repeat, direction="read", rw="read", bs=str(size), bs_bytes=size, iodepth=depth,
            iops=100 * MIB / size * depth * speed, bw_bytes=100 * MIB * depth * speed,
        )
        for size in (MIB, 2 * MIB) for depth in (1, 4) for repeat in range(1, 5)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def measured():
    return [one for host in ("node1", "node2") for variant, speed in (("none", 1.0), ("writeback", 2.0)) for one in repeats(variant, speed, host)]


@pytest.fixture(scope="module")
def found(measured):
    cell = f"seqread-{MIB}-1"
    values = [40.0] * 100 + [20.0] * 100
    series = [Series("node1", "none", cell, 1, "read", values, [value * MIB for value in values])]
    bands = [Band("none", cell, "read", 2, [float(second) for second in range(200)], values, values, values)]
    return analysis.analyse(Rows("c", measured, [], {}), series, 1, bands, pathlib.Path("nowhere"), analysis.Options(baseline="none"))


def test_answer_is_in_megabytes_per_second(found):
    assert f"seqread-{MIB}-4: Use writeback: 839 MB/s of sequential 1 MiB reads, 2.00 times as much as none (419 MB/s)" in "\n".join(found.answer.sentences)
    assert {one.metric for one in found.answer.deciding} == {"bandwidth"} and "IOPS" not in "".join(found.answer.sentences)


def test_cells_of_the_comparison_lead_with_megabytes_per_second(found):
    line = list(tables_of(found)["comparison"].lines)[1]
    # The model is that of all lines, and a p99 that is not known is left out.
    assert [(cell.text, cell.notes[:2]) for cell in line[2:]] == [
        ("419 MB/s", ("419 to 419, 2 hosts", "noise 0.0 %")), ("839 MB/s", ("839 to 839, 2 hosts", "2.00 x (2.00 to 2.00)")),
    ]  # fmt: skip


def test_pictures_are_in_megabytes_per_second(found):
    drawn = page.drawn_of(found)
    [strip, *_others] = hosts.strips(found)
    titles = [one.title for one in (*drawn.series, *drawn.bands.choices)]
    axes = [chart.layout["yaxis"]["title"]["text"] for chart in (*drawn.series, *drawn.bands.choices)]
    assert axes == ["bandwidth (MB/s)"] * 2 and strip.rate.unit == "MB/s" and strip.values[0] == [104.9, 104.9]
    assert "from 41.9 to 21 MB/s" in titles[0] and "from 41.9 to 21 MB/s in none" in titles[1]
    assert drawn.series[0].data[0]["y"][0] == pytest.approx(41.94)
    [curve, *_more] = drawn.curves
    assert curve.main.layout["xaxis"]["title"]["text"] == "bandwidth (MB/s)" and curve.main.data[0]["x"] == [104.9, 419.4]
    assert "writeback has the most MB/s at every load" in curve.main.title
    assert [one.title.partition(" over ")[0] for one in curve.over] == ["bandwidth", "p99 latency"]


def test_block_sizes_are_in_megabytes_per_second(found):
    [group] = found.heat_groups
    assert group.title == "read, libaio (read): 105 to 839 MB/s" and group.rate.axis == "bandwidth (MB/s)"
    assert [one.title for one in group.ratios] == ["writeback by none: 2.00 x"]
    assert (
        headings.titles_of(found)["heat"].startswith("Block sizes: most safe MB/s with 1 MiB at jobs x queue depth 4")
        or "839" in headings.titles_of(found)["heat"]
    )


def test_report_has_no_rate_in_reads_per_second(found):
    text = twins.markdown(found)
    assert "MB/s" in text and not any(" IOPS" in line for line in text.splitlines() if "seqread" in line and not line.startswith("|"))


def test_terminal_keeps_the_megabytes_per_second_where_it_is_narrow(measured):
    rows = rows_of(measured)
    shown = Campaign("c", pathlib.Path("c"), ("none", "writeback"), (), ())
    ratios = [Ratio("node1", rows[0].cell, "read", "none", "writeback", 2.0, "better")]
    assert "MB/s against variant none" in table.render(shown, rows, ratios)
    assert "is_sequential" not in rows[0].to_dict()
    random = rows_of([measurement(cell=f"a-{number}") for number in range(3)])
    mixed = table.render(shown, [*rows, *random], [*ratios, Ratio("node1", "a-0", "write", "none", "writeback", 2.0, "better")])
    assert "IOPS, of sequential cells MB/s, against variant none" in mixed
    narrow = [
        table.render(shown, rows_of([measurement(cell=f"a-{number}", rw=rw, direction="read") for number in range(3)]), [], width=28).splitlines()[2]
        for rw in ("randread", "read")
    ]
    assert ["MB/s" in one for one in narrow] == [False, True]
