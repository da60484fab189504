# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits and reasons in everything that a report writes, and their absence where no flows were recorded."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pathlib
import re

import pytest

pytest.importorskip("plotly", reason="the page needs plotly: pip install -r requirements.txt")
pytest.importorskip("ruptures", reason="series need ruptures: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import answer_charts, flow_pictures, page, tables, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CellFlows
from ansible_collections.cachefleet.storage.tests.unit.support import planted_flows
from ansible_collections.cachefleet.storage.tests.unit.support.planted_flows import disk, planted, rows_of

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


def test_the_title_of_the_chart_names_the_burst(demo, without):
    title = "writeback-disk_off is better in 1 of 1 workload, 5.37 times as fast as bare-disk_on"
    assert [one.title for found in (demo, without) for one in answer_charts.pictures(found)] == [f"{title} (a burst)", title]


# --- the picture


def drawn(*devices, caches=()):
    [picture] = flow_pictures.pictures(analysed(rows_of(planted("bare", *[(150, CellFlows(devices, caches))] * 4))))
    return picture


def test_each_variant_is_drawn_from_the_application_to_the_media(demo):
    found = {one.title: one for one in flow_pictures.pictures(demo)}
    assert list(found) == list(demo.variants)
    application, target, slow, fast = found["writeback-disk_off"].boxes
    assert application.lines == ("application", "835 IOPS")
    assert (target.lines, target.busy) == (("dm-0 (lvm)", "writeback, 100 % hits", "0 B → 24 MB dirty"), None)
    assert slow.arrow == ("60 writes/s", "0 flushes/s", "0.246 MB/s") and slow.lines == ("sda", "30 % busy", "queue 0.3")
    assert fast.arrow[1] == "580 flushes/s" and fast.busy == pytest.approx(0.375, abs=0.01)
    # Beside each other, below the target, within the picture.
    assert slow.top == fast.top > target.top + target.height and slow.x + slow.width <= fast.x and fast.x + fast.width <= flow_pictures.WIDTH


def test_what_was_not_counted_is_not_0():
    _application, one = drawn(disk(reads=None, writes=(150, 6), flushes=None, use=None, read_bytes=None, level=0)).boxes
    assert one.arrow == ("- reads/s", "150 writes/s", "- flushes/s", "- MB/s") and one.lines == ("sda",) and one.busy is None


def test_disks_of_an_array_are_one_box_and_those_behind_the_network_are_below_it():
    def lines(*devices):
        return [(one.lines[0], one.arrow[0]) for one in drawn(*devices).boxes[1:]]

    assert lines(*(disk(name, writes=(50, 6)) for name in ("sda", "sdb", "sdc"))) == [("sda and 2 more", "150 writes/s")]
    [*_above, shortened] = drawn(disk("a" * 99, writes=(150, 6))).boxes
    assert shortened.lines[0].endswith("a...") and len(shortened.lines[0]) < 40
    aoe = disk("etherd!e1.1", kind="aoe", writes=(150, 6), level=0)
    assert lines(aoe, disk("sda", writes=(140, 6))) == [("etherd!e1.1 (aoe)", "150 writes/s"), ("sda", "140 writes/s")]
    assert lines(aoe) == [("etherd!e1.1 (aoe)", "150 writes/s")]


def test_the_page_has_the_picture_and_names_of_hosts_do_not_become_markup():
    named = dataclasses.replace(disk(writes=(150, 6)), device="<b>sda</b>")
    text = page.render(analysed(rows_of(planted("bare", *[(150, CellFlows((named,), ()))] * 4))), "x")
    assert "&lt;b&gt;sda&lt;/b&gt;" in text and "<b>sda</b>" not in text
    assert len(re.findall(r"<svg viewBox", text)) == 1 and "style=" not in text.partition("<svg")[2].partition("</svg>")[0]


def sized(sizes):
    return disk(writes=(150, 6)), (planted_flows.cache(type="flashcache", request_sizes=sizes and json.dumps(sizes)),)


def test_requests_by_size_are_drawn_for_each_variant():
    variants = [planted(name, *[(150, CellFlows((device,), caches))] * 4) for name, (device, caches) in (
        ("frames", sized({4096: 25, 512: 25, 1024: 50})), ("aligned", sized({4096: 100})), ("bare", sized(None)),
    )]  # fmt: skip
    found = analysed(rows_of(*variants))
    bars = {one.title: [(each.label, each.width, each.share) for each in one.bars] for one in flow_pictures.pictures(found)}
    full = flow_pictures.BAR
    assert bars == {
        "frames": [("512 B", round(full / 4), "25 %"), ("1 KiB", round(full / 2), "50 %"), ("4 KiB", round(full / 4), "25 %")],
        "aligned": [("4 KiB", full, "100 %")],
        "bare": [],
    }
    text = page.render(found, "x")
    assert text.count("requests by size at dm-0</text>") == 2 and text.count('class="size"') == 4 and "flashcache cuts requests" in text
    # Text right of the longest bar is within the picture.
    assert 75 + full + 45 <= flow_pictures.WIDTH


def test_rare_sizes_are_one_bar():
    device, caches = sized({512 * place: place for place in range(1, 33)})
    bars = drawn(device, caches=caches).bars
    assert len(bars) == 11 and (bars[0].label, bars[-2].label, bars[-1].label) == ("11.5 KiB", "16 KiB", "others")
    assert bars[-1].share == "48 %", "253 of 528"


def test_without_flows_nothing_is_drawn(without):
    assert flow_pictures.pictures(without) == [] and "<svg viewBox" not in page.render(without, "x").partition("<main>")[2].partition("<script")[0]
