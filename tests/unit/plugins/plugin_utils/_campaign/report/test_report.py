# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a report says: the answer, what is found, what it cost, and that nothing a host said becomes markup."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import pathlib
import random
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import pytest

np = pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")
pytest.importorskip("ruptures", reason="series need ruptures: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import answer_charts, charts, headings, hosts, page, twins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis, costs, problems
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import Distribution
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import NamedSeries
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band, Rows, Series
from ansible_collections.cachefleet.storage.tests.unit.support import report_rows
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement
from ansible_collections.cachefleet.storage.tests.unit.support.series import decaying, stalled


def analysed(rows, series=(), bands=(), folder="nowhere", sums=(), **options):
    rows = dataclasses.replace(rows, aggregates=list(sums))
    return analysis.analyse(rows, list(series), len(series), list(bands), pathlib.Path(folder), analysis.Options(**options))


@pytest.fixture(scope="module")
def six():
    rows, series, bands = report_rows.campaign(6)
    prices = costs.read_prices([{"variant": "write*", "price": 2000, "capacity_tb": 4}, {"price": 1000}])
    return analysed(rows, series, bands, sums=report_rows.sums(rows), prices=prices, currency="USD")


def one_variant(*rates, variant="none", host="node1", **changes):
    return [measurement(host, variant, repeat=repeat, iops=rate, **changes) for repeat, rate in enumerate(rates, 1)]


# --- the answer; what it says is in test_answer.py


def test_variant_that_can_lose_data_is_named_and_not_recommended(six):
    assert {one.recommended for one in six.answer.workloads} == {"writethrough"}
    summary, first, *_others = six.answer.sentences
    assert summary.startswith("writethrough is shown to be better in 16 of 16 workloads: 1.29 to 1.31 times as fast as none.")
    assert "writeback is 2.2" in first and first.count("it is not recommended") == 1


def test_cell_with_decaying_series_does_not_decide(six):
    assert ("randwrite-4k-16", "write", "iops") not in six.answer.deciding
    assert ("randwrite-4k-1", "write", "iops") in six.answer.deciding
    assert ("randwrite-4k-16", "write", "its mean depends on how long was measured") in six.answer.excluded


def test_campaign_without_figures_has_a_report():
    rows = Rows("c", [measurement(direction=None, state="missing", reason="no result came from this host", iops=None)])
    found = analysed(rows)
    assert found.answer.sentences[0].startswith("No variant can be recommended")
    assert "missing" in twins.markdown(found)
    assert page.render(found, "c")


def test_invalid_baseline_is_rejected():
    with pytest.raises(BadInput, match="no variant 'other'"):
        analysed(Rows("c", one_variant(100)), baseline="other")


# --- what is found


def test_problems_are_listed_with_their_figures(six):
    message = {kind: [one.text for one in six.problems if one.kind == kind] for kind in ("data", "missing", "series", "host", "cpu")}
    assert [one.partition(":")[0] for one in message["data"]] == ["at_risk on 6 hosts"]
    assert message["missing"][0].startswith("1 measurement failed: fio ended with")
    cliff, swing = message["series"]
    assert re.match(r"cliff: falls from (90,0|89,9)00 to (28,0|27,9)00 IOPS at (899|900) s, after 33\d GB; 11\d MB/s from then on", cliff)
    assert "every 33 s" in swing
    assert "firmware F0, the others F1" in message["host"][0]
    assert [one.where for one in six.problems if one.kind == "host"] == ["node003"]
    assert message["cpu"]


def a_series(iops, variant="none"):
    return Series("node1", variant, "randwrite-4k", 1, "write", list(iops), [4096 * value for value in iops])


def series_problems(*series):
    return [one.text for one in analysed(Rows("c", [measurement(variant=name) for name in ("none", "writethrough")]), series).problems if one.kind == "series"]


def test_decay_reports_the_required_additional_runtime():
    [message] = series_problems(a_series(decaying(1200, 60_000, 20_000, 400)))
    assert re.match(r"decaying: falls from 60,0\d\d towards (20,0|19,9)\d\d IOPS with a time constant of 40\d s, 8\d.\d MB/s; run it 2[78]\d s longer", message)
    [message] = series_problems(a_series(decaying(7200, 5000, 20_000, 400)))
    assert re.match(r"decaying: rises from .*; settled within 5 % after 1,[01]\d\d s: leave these out \(ramp_time\)", message)


def test_decaying_cell_does_not_decide():
    rows = Rows("c", [measurement(variant=name, repeat=repeat) for name in ("none", "writethrough") for repeat in (1, 2, 3, 4)])
    assert analysed(rows, [a_series([20_000.0] * 1200)]).answer.deciding == (("randwrite-4k", "write", "iops"),)
    assert analysed(rows, [a_series(decaying(1200, 60_000, 20_000, 400))]).answer.deciding == ()


def test_stalls_of_a_steady_series_are_named_and_it_decides():
    steady = stalled(np.full(600, 20_000.0), {100: 5})
    assert series_problems(a_series(steady)) == ["steady at 19,800 IOPS, with a stall of 5 s at 100 s: write in none on node1."]
    [message] = series_problems(a_series(stalled(steady, {300: 30})))
    assert message.startswith("steady at 18,800 IOPS, with 2 stalls of 35 s together, the longest of 30 s at 300 s")
    rows = Rows("c", [measurement(variant=name) for name in ("none", "writethrough")])
    found = analysed(rows, [a_series(steady)])
    assert found.answer.deciding
    assert headings.titles_of(found)["series"] == "Along the run: 1 with stalls"


def test_garbage_collection_rates_are_listed_per_block_size():
    shown = {"collection_rate": 640e6, "collection_shown_by": "fall"}
    rows = [measurement(host=host, cell="gc-4k", **{**shown, "collection_rate": rate}) for host, rate in (("node1", 600e6), ("node2", 700e6))]
    rows += [measurement(cell="gc-64k", bs="64k", collection_rate=1200e6, collection_shown_by="fill"), measurement(cell="gc-16k", bs="16k")]
    found = analysed(Rows("c", rows))
    assert [(one.block, one.hosts, one.rate, one.low, one.high, one.shown_by) for one in found.collection] == [
        ("4k", 2, 650e6, 600e6, 700e6, ("fall",)),
        ("64k", 1, 1200e6, 1200e6, 1200e6, ("fill",)),
    ]
    assert "| gc-4k | 4k | none | SSD A | 2 | 650 MB/s | 600 MB | 700 MB | fall |" in twins.markdown(found)
    shown = page.render(found, "c")
    shown = shown.replace("\n", "")
    assert (
        "<h3>Garbage collection</h3>" in shown
        and '<th>gc-64k</th><td>64k</td><td>none</td><td>SSD A</td><td class="n">1</td><td class="n">1.2 GB/s</td>' in shown
    )


def test_changed_verdict_is_the_first_problem():
    rows = Rows("c", one_variant(100, verdict_before="durable", verdict_after="at_risk", cpu_bound=True))
    first = analysed(rows).problems[0]
    assert first.text == "The verdict changed from durable to at_risk while it was measured: node1 randwrite-4k."


def test_table_has_a_line_per_model():
    rows = Rows("c", one_variant(100) + one_variant(700, host="node2", model="SSD B"))
    assert [(line.model, line.cells[0].iops) for line in analysed(rows).table] == [("SSD A", 100), ("SSD B", 700)]


def test_ssd_cache_keeps_a_variant_in_the_line_of_its_drive():
    """It adds a drive to what is measured: the line is of the drives that all variants have."""
    rows = Rows("c", one_variant(100, 101, 99, 100, model="HDD B") + one_variant(300, 301, 299, 300, variant="writethrough", model="HDD B, SSD A"))
    [line] = analysed(rows).table
    assert line.model == "HDD B"
    assert [cell.is_better for cell in line.cells] == [False, True]
    assert line.cells[1].ratio == pytest.approx(3, rel=0.02)


@pytest.mark.parametrize("rates", [(300,), (90, 130, 100, 95)])
def test_star_requires_a_significant_comparison(rates):
    rows = Rows("c", one_variant(100, 101, 99, 100) + one_variant(*rates, variant="writethrough"))
    [line] = analysed(rows).table
    assert not any(cell.is_better or cell.is_risky for cell in line.cells)
    assert headings.titles_of(analysed(rows))["comparison"] == "No variant is shown to be better than none"


def test_missing_value_is_not_zero():
    rows = Rows("c", [*one_variant(100), measurement(cell="other", variant="writethrough")])
    table = analysed(rows).table
    assert [[cell and cell.iops for cell in line.cells] for line in table] == [[None, 1000], [100, None]]


def test_curves_have_a_limit_and_a_finding(six):
    curve = next(one for one in six.curves if one.workload.startswith("randread 4k"))
    assert (curve.load, curve.latency_name, curve.limit) == ("jobs", "p99", None), "3 ms separates the loads of this workload, and not those of others"
    assert [value.jobs for value in curve.curves[0].values] == [1, 4, 16]
    assert curve.title == "randread 4k, libaio (read): writeback has the most IOPS at every load"


def test_given_limit_is_drawn():
    rows, _series, _bands = report_rows.campaign(1)
    assert {one.limit for one in analysed(rows, limit=5e6).curves} == {5e6}


def test_heat_map_covers_every_block_size_and_load(six):
    heat = six.heat_maps[0]
    assert (heat.blocks, heat.loads) == ((4096, 16384, 131072), (1, 4, 16))
    assert all(value for row in heat.iops for value in row)


def over_loads(rate, **changes):
    blocks = {"4k": 4096, "16k": 16384, "1m": 1 << 20}
    return [
        measurement(
            cell=f"{bs}-{jobs}.{changes.get('target', '')[-3:]}", bs=bs, bs_bytes=count, numjobs=jobs, iodepth=1, iops=rate * jobs * 4096 / count, **changes
        )
        for bs, count in blocks.items()
        for jobs in (1, 4)
    ]


@pytest.mark.parametrize("differs", ["target", "model"])
def test_different_targets_have_separate_curves_and_heat_maps(differs):
    """A median over them would be the figure of neither."""
    values = {"target": ("/dev/sda", "/dev/sdb"), "model": ("SSD A", "SSD B")}[differs]
    rows = [one for value, rate in zip(values, (100, 9000)) for one in over_loads(rate, **{differs: value, "host": "node1" if differs == "target" else value})]
    found = analysed(Rows("c", rows))
    assert sorted({max(value.iops for value in curve.values) for one in found.curves for curve in one.curves if one.workload.startswith("randwrite 4k")}) == [
        400,
        36000,
    ]
    assert {one.iops[0][1] for one in found.heat_maps} == {400, 36000}
    assert all(any(one.workload.endswith(value) for value in values) for one in found.heat_maps)


def test_jobs_are_not_multiplied_with_the_queue_depth_where_only_they_were_varied():
    rates = {1: 1000.0, 2: 2000.0, 4: 4000.0, 8: 4010.0}
    measured = [
        measurement(cell=f"{block}-{jobs}", bs=block, bs_bytes=size, numjobs=jobs, iodepth=16, iops=rate * 4096 / size, p99_ns=jobs * 1e6)
        for block, size in (("4k", 4096), ("8k", 8192))
        for jobs, rate in rates.items()
    ]
    found = analysed(Rows("c", measured))
    assert [one.title.rpartition("; ")[2] for one in found.curves] == ["none is saturated at jobs 4"] * 2
    [group] = found.heat_groups
    assert (group.load, group.loads) == ("jobs x queue depth", (16, 32, 64, 128))


def test_bandwidth_beyond_the_largest_block_is_not_claimed():
    [flat] = analysed(Rows("c", over_loads(100))).heat_maps
    assert "most bandwidth from 4 KiB on at jobs 4" in flat.title
    growing = [dataclasses.replace(one, iops=50.0 * one.numjobs) for one in over_loads(100)]
    [largest] = analysed(Rows("c", growing)).heat_maps
    assert "most bandwidth with 1 MiB at jobs 4 (210 MB/s)" in largest.title


def test_stacks_of_equal_hosts_are_merged(six):
    assert [(one.variant, len(one.hosts), one.verdict_after) for one in six.stacks[:2]] == [("none", 5, "durable"), ("none", 1, "durable")]


# --- cost and wear


def test_different_settings_are_one_table_with_a_line_per_variant():
    common = [("sda", "queue", "scheduler", "none"), ("sda", "block_cache", "counters", "7"), ("sda", "device", "model", "HDD B")]
    settings = {
        ("node1", "none"): [*common, ("sda", "drive", "drive", "enabled")],
        ("node1", "writethrough"): [*common[:1], ("sda", "block_cache", "counters", "9"), common[2], ("sda", "drive", "drive", "disabled"),
                                    ("dm-0", "block_cache", "type", "lvm_cache"), ("dm-0", "block_cache", "mode", "writethrough")],
    }  # fmt: skip
    rows = [dataclasses.replace(one, stack_before=one.variant, stack_after=one.variant) for one in one_variant(1) + one_variant(2, variant="writethrough")]
    found = analysed(Rows("c", rows, settings=settings))
    assert [(one.label, one.values) for one in found.differences] == [
        ("SSD cache", ("-", "lvm_cache")),
        ("SSD cache mode", ("-", "writethrough")),
        ("drive write cache", ("enabled", "disabled")),
    ], "neither counters nor what is the same"
    text = page.render(found, "c")
    assert "<b>writethrough</b>: SSD cache lvm_cache, SSD cache mode writethrough, drive write cache disabled" in text
    assert "| drive write cache | enabled | disabled |" in twins.markdown(found)


SAME, OTHER = ("SSD A", "SSD A"), ("HDD B", "SSD A")


@pytest.mark.parametrize(
    ("models", "caches", "line"),
    [
        (OTHER, ("disabled", "enabled"), "drive write cache disabled (HDD B), enabled (SSD A)"),
        (OTHER, ("disabled", "disabled"), "drive write cache disabled"),
        # Of one model the device makes the difference, and without a model too.
        (SAME, ("disabled", "enabled"), "drive write cache disabled (SSD A sda), enabled (SSD A sdb)"),
        ((None, None), ("disabled", "enabled"), "drive write cache disabled (sda), enabled (sdb)"),
    ],
)
def test_a_setting_that_drives_have_differently_names_them(models, caches, line):
    def of(*words):
        drives = [
            [("dm-0", "queue", "scheduler", "none")],
            *(
                [*([(name, "device", "model", model)] if model else []), (name, "drive", "drive", word)]
                for name, model, word in zip(("sda", "sdb"), models, words)
            ),
        ]
        return [one for of in drives for one in of]

    settings = {("node1", "none"): of("enabled", "enabled"), ("node1", "writethrough"): of(*caches)}
    rows = [dataclasses.replace(one, stack_before=one.variant, stack_after=one.variant) for one in one_variant(1) + one_variant(2, variant="writethrough")]
    assert f"<b>writethrough</b>: {line}</li>" in page.render(analysed(Rows("c", rows, settings=settings)), "c")


def test_what_the_kernel_sees_is_named_only_where_the_drive_says_nothing_else():
    def of(drive, kernel):
        return [("sda", "drive", "drive", drive), ("sda", "drive", "kernel", kernel)]

    rows = [dataclasses.replace(one, stack_before=one.variant, stack_after=one.variant) for one in one_variant(1) + one_variant(2, variant="writethrough")]
    both = {("node1", "none"): of("enabled", "write back"), ("node1", "writethrough"): of("disabled", "write through")}
    assert "<b>writethrough</b>: drive write cache disabled</li>" in page.render(analysed(Rows("c", rows, settings=both)), "c")
    kernel = {("node1", "none"): of("enabled", "write back"), ("node1", "writethrough"): of("enabled", "write through")}
    assert "drive write cache as the kernel sees it write through</li>" in page.render(analysed(Rows("c", rows, settings=kernel)), "c")


def test_prices_give_cost_per_tb_and_per_iops():
    rows = Rows("c", one_variant(500))
    (cost,) = analysed(rows, prices=costs.read_prices([{"price": 44806, "capacity_tb": 1}])).costs
    assert (cost.prices, cost.per_tb, cost.per_iops) == ((44806,), 44806, {("node1", "randwrite-4k", "write"): 44806 / 500})
    (cost,) = analysed(rows, prices=costs.read_prices([{"price": 41100}])).costs
    assert cost.per_tb == 41100 / 4


@pytest.mark.parametrize("message", [{}, "5", [5], [{"host": "a"}], [{"price": 0}], [{"price": "x"}], [{"price": True}], [{"price": 1, "other": 2}]])
def test_invalid_price_is_rejected(message):
    with pytest.raises(BadInput, match="report_prices"):
        costs.read_prices(message)


def test_wear_is_the_difference_of_counters(six):
    (wear,) = six.wear
    assert (wear.drives, wear.written, wear.used, wear.hottest) == (6, 3 * 10**11, 1.0, 38.0)


# --- the page


class Reader(HTMLParser):
    """Every element, and the text beside scripts."""

    def __init__(self):
        super().__init__()
        self.elements, self.text, self._in = [], [], []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._in.append(tag)

    def handle_endtag(self, tag):
        if tag in self._in:
            while self._in.pop() != tag:
                pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self._in):
            self.text.append(data)


@pytest.fixture(scope="module")
def html(six):
    pytest.importorskip("plotly", reason="the page needs plotly: pip install -r requirements.txt")
    return page.render(six, "results/it's <here>")


@pytest.fixture(scope="module")
def read(html):
    reader = Reader()
    reader.feed(html)
    return reader


def test_host_names_are_escaped(read):
    assert sum(tag == "script" for tag, _attrs in read.elements) == 3
    assert not any(tag in ("b", "i") and attrs for tag, attrs in read.elements)
    whole = "".join(read.text)
    assert report_rows.SCRIPT in whole
    assert report_rows.MARKUP in whole
    assert "<i>night</i>" in whole


def test_page_has_no_external_resources_inline_styles_or_handlers(read):
    for tag, attrs in read.elements:
        assert not {"src", "srcset", "style", "action"} & set(attrs), tag
        assert not [name for name in attrs if name.startswith("on")], tag
        assert attrs.get("href", "#").startswith("#")


def test_content_security_policy_allows_only_hashes(read):
    policy = next(attrs["content"] for _tag, attrs in read.elements if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_embedded_data_cannot_end_its_element():
    message = page.embedded({"a": "</script><!--\u2028&"})
    assert not set("<>&\u2028") & set(message)
    assert json.loads(message) == {"a": "</script><!--\u2028&"}


def test_chart_text_is_escaped():
    assert charts.chart_text("<b>&") == "&lt;b&gt;&amp;"


# --- the twins


def test_markdown_starts_with_the_answer_and_is_escaped(six):
    said = twins.markdown(six)
    assert said.splitlines()[2].startswith("writethrough is shown to be better in 16 of 16 workloads")
    assert "<script>" not in said
    assert "\\<script\\>" in said


def test_csv_has_a_line_per_point_and_no_zero_for_missing_values(six):
    rows = list(csv.DictReader(io.StringIO(twins.csv_text(six))))
    assert len(rows) == len(six.points) == 6 * 3 * 18
    assert {row["host"] for row in rows if row["outlier"] == "yes"} == {"node003"}
    for row in rows:
        assert float(row["iops_min"]) <= float(row["iops"]) <= float(row["iops_max"])
        assert 0 < float(row["iops_spread"]) < 0.2
    assert {row["iops_ratio"] for row in rows if row["variant"] == "none"} == {"1.0"}
    assert all(1.2 < float(row["iops_ratio"]) < 1.4 for row in rows if row["variant"] == "writethrough")
    assert {row["power_failure"] for row in rows if row["variant"] == "writeback"} == {"loses"}
    few = analysed(Rows("=c", one_variant(100, p999_ns=None, host="@x")))
    (row,) = csv.DictReader(io.StringIO(twins.csv_text(few)))
    assert (row["p99.9_ns"], row["host"], row["campaign"]) == ("", "'@x", "'=c")


@pytest.mark.parametrize(("ignore", "ratio"), [((), ""), (("kernel",), "2.0")])
def test_the_csv_has_no_ratio_of_what_is_not_comparable(ignore, ratio):
    measured = one_variant(100, 100, kernel="6.1.0") + one_variant(200, 200, variant="other", kernel="6.12.0")
    lines = list(csv.DictReader(io.StringIO(twins.csv_text(analysed(Rows("c", measured), ignore=ignore)))))
    assert [(line["variant"], line["iops_ratio"]) for line in lines] == [("none", "1.0"), ("other", ratio)]


def test_verdict_of_every_repeat_is_in_the_csv_and_in_the_list_of_hosts():
    measured = one_variant(100, 101, 99, 100) + one_variant(100, 101, host="node2", verdict_before=None)
    measured[2] = dataclasses.replace(measured[2], verdict_after="at_risk")
    found = analysed(Rows("c", measured))
    lines = list(csv.DictReader(io.StringIO(twins.csv_text(found))))
    assert [(line["host"], line["verdict"]) for line in lines] == [("node1", "durable>at_risk"), ("node2", "durable")]
    assert [row[:3] for row in hosts.host_rows(found)] == [["node1", "SSD A", "at_risk"], ["node2", "SSD A", "unknown"]]


def test_cells_without_numbers_are_counted_as_not_ok_in_the_list_of_hosts():
    failed = {"state": "failed", "direction": None, "iops": None}
    measured = one_variant(100, 101) + [measurement(cell=f"cell-{number}", **failed) for number in range(2)] + [measurement("node2", cell="gone", **failed)]
    assert [(row[0], *row[5:]) for row in hosts.host_rows(analysed(Rows("c", measured)))] == [("node1", 1, 2), ("node2", 0, 1)]


def test_every_column_of_the_csv_is_documented_in_its_order(six):
    page = (pathlib.Path(__file__).resolve().parents[6] / "docs/report.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \|", page.partition("## Columns of report.csv")[2].partition("\n## ")[0], re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`(\S+?)`", row)]
    assert documented == twins.csv_text(six).splitlines()[0].split(",")


# --- sums


def test_aggregates_are_ordered_by_all_groups_and_targets(six):
    assert list(dict.fromkeys(line.who for line in six.sums)) == ["all 6 hosts", f"group {report_rows.MARKUP}", f"{report_rows.SCRIPT}, 2 targets"]
    assert [line.cell for line in six.sums if line.who == "all 6 hosts"][:4] == ["randwrite-4k-1", "randwrite-4k-4", "randwrite-4k-16", "randwrite-16k-1"]
    assert headings.titles_of(six)["together"].startswith("Together: all 6 hosts reach ")
    assert headings.titles_of(six)["together"].endswith("IOPS in randwrite-4k-16 (write), writethrough")
    assert six.sum_notes == ("Sums are over the seconds in which everything in them was measured. The starts were at most 12 ms apart, the ends 0.4 s.",)


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", " =1", '"=1', "a;=cmd|' /C calc'!A0", "a;  @x", "a\t-1", "\uff1dcmd", "a\n=1"])
def test_csv_fields_cannot_be_formulas(text):
    message = twins._field(text)
    assert "'" in message and not re.search(r"(?:^|[;\t\n])[\s\"]*[=+\-@\uff1d]", message)


def test_valid_csv_fields_are_unchanged():
    assert [twins._field(text) for text in ("INTEL SSD-4 a=b", "x+y; z")] == ["INTEL SSD-4 a=b", "x+y; z"]


def test_host_verdict_is_escaped_in_markdown(six):
    stack = dataclasses.replace(six.stacks[0], verdict_before="[a](http://b)")
    assert "[a](" not in twins.markdown(dataclasses.replace(six, stacks=[stack]))


def test_aggregates_are_in_page_and_markdown(six, read):
    assert {"id": "together"} in [attrs for tag, attrs in read.elements if tag == "section"]
    assert f"group {report_rows.MARKUP}" in "".join(read.text)
    part = twins.markdown(six).partition("## Together\n")[2].partition("\n## ")[0]
    assert "| all 6 hosts | randwrite-4k-1 | write | " in part
    assert "12 ms apart" in part


def test_no_section_without_a_common_measurement():
    alone = analysed(Rows("c", one_variant(100)))
    assert "## Together" not in twins.markdown(alone)
    assert 'id="together"' not in page.render(alone, "results/c")


def test_aggregates_without_a_safe_variant_are_marked():
    rows = Rows("c", [one for number in (1, 2) for one in one_variant(100, 101, host=f"node{number}", verdict_after="at_risk")])
    message = headings.titles_of(analysed(rows, sums=report_rows.sums(rows)))["together"]
    assert message == "Together: all 2 hosts reach 201 IOPS in randwrite-4k (write), none (at_risk)"


# --- percentiles with too few samples


def few(count, variant="none", jobs=1):
    known = {"p50_ns": 8e5 if count >= 100 else None, "p99_ns": 2e6 if count >= 1522 else None, "p999_ns": None}
    return one_variant(100 * jobs, variant=variant, cell=f"randwrite-{jobs}", numjobs=jobs, lat_n=count, **known)


def test_percentile_with_too_few_samples_has_a_footnote():
    found = analysed(Rows("c", few(1521) + few(1522, "writethrough")))
    assert [cell.hidden for cell in found.table[0].cells] == [("p99", "p99.9"), ("p99.9",)]
    html, markdown = page.render(found, "c"), twins.markdown(found)
    for message in (html, markdown):
        assert "p99 -†" in message
        assert "p99 2 ms†" not in message
        assert "† p99 is not shown of 1 value: with fewer than 1,522 I/Os" in message
    lines = list(csv.DictReader(io.StringIO(twins.csv_text(found))))
    assert [(one["p99_ns"], one["latency_samples"], one["percentiles_hidden"]) for one in lines] == [
        ("", "1521", "p99 p99.9"),
        ("2000000.0", "1522", "p99.9"),
    ]


def test_no_footnote_without_a_hidden_percentile():
    found = analysed(Rows("c", few(20000)))
    assert "†" not in page.render(found, "c").partition("<script")[0] + twins.markdown(found)


def test_unmeasured_latency_is_not_reported_as_hidden():
    found = analysed(Rows("c", one_variant(100, lat_n=None, p50_ns=None, p99_ns=None, p999_ns=None)))
    assert found.table[0].cells[0].hidden == ()


@pytest.mark.parametrize(
    ("count", "message"), [(1521, "The median (p50) is drawn, not p99: 2 of 2 measurements"), (99, "The mean is drawn, not p99"), (1522, "")]
)
def test_curve_without_p99_reports_the_reason(count, message):
    curve = analysed(Rows("c", few(count) + few(count, jobs=4))).curves[0]
    assert curve.note.startswith(message)
    assert bool(curve.note) == bool(message)


def test_facts_have_common_names():
    settings = {("node1", "s"): [("sda", "queue", "scheduler", "none"), ("sda", "drive", "drive", "enabled"), ("e7.1", "network", "mtu", "8700")]}
    rows = Rows("c", one_variant(100, stack_before="s", stack_after="s"), settings=settings)
    facts = problems.host_facts(rows)["node1"]
    assert (facts["scheduler"], facts["drive write cache"], facts["MTU"]) == ("none", "enabled", "8700")


# --- titles say the finding


def test_fast_but_unsafe_variant_is_not_better(six):
    for line in six.table:
        if line.direction == "write" and len([cell for cell in line.cells if cell]) == 3:
            is_settled = (line.cell, line.direction) not in {(one.cell, one.direction) for one in six.answer.excluded}
            assert [cell.is_better for cell in line.cells] == [False, is_settled, False]
            assert [cell.is_risky for cell in line.cells] == [False, False, is_settled]
    titles = headings.titles_of(six)
    assert (
        titles["comparison"]
        == "writethrough is shown to be better than none in 16 of 18 lines; writeback is shown to be better in 16 of 18 lines, but can lose what none keeps"
    )
    assert titles["heat"].startswith("Block sizes: most safe IOPS with 4 KiB at jobs 16: 8,")
    assert (page.render(six, "c").count('"n ratio best"'), page.render(six, "c").count('"n ratio risky"')) == (16, 16)


def test_a_cell_whose_mean_depends_on_the_time_is_not_claimed_to_be_better(six):
    reasons = {(line.cell, line.direction): {cell.reason for cell in line.cells if cell} for line in six.table}
    for one in six.answer.excluded:
        assert reasons[one.cell, one.direction] == {"", one.reason} and one.reason == "its mean depends on how long was measured"
    assert six.answer.excluded


def test_title_of_the_answer_matches_the_answer(six):
    assert headings.titles_of(six)["answer"] == (
        "A variant is shown to be better in 16 of 16 workloads; flushed writes survive a power failure with none and writethrough"
    )
    alone = analysed(Rows("c", one_variant(100)))
    assert headings.titles_of(alone)["answer"] == "1 workload, one variant: there is nothing to compare it with"


def test_titles_do_not_deny_a_faster_variant_that_loses_data():
    rows = Rows("c", one_variant(100, 101, 99, 100) + one_variant(300, 301, 299, 302, variant="writeback", verdict_after="at_risk"))
    found = analysed(rows)
    assert headings.titles_of(found)["answer"].startswith("No variant that keeps what none keeps is shown to be better;")
    [chart] = answer_charts.pictures(found)
    assert chart.title == "no variant that keeps what none keeps is shown to be better than none in this workload"


def test_load_chart_titles_describe_the_result(six):
    titles = [chart.title for chart in charts.over_load(six.curves[0], six.variants, "x")]
    assert re.match(r"IOPS over jobs: most is 1[34],\d00 at 16 in writeback", titles[0])
    assert re.match(r"bandwidth over jobs: most is \d\d\.\d MB/s at 16 in writeback", titles[1])
    assert re.match(r"p99 latency over jobs: least is 3\.\d\d ms at 16 in writeback", titles[2])


def test_constant_level_is_not_reported_as_changing(six):
    assert "no variant ends more than 5 % from where it began" in page._bands(six).first.title


def test_search_reports_its_limit_and_varied_option():
    message = {"metric": "p99", "limit": 3000000, "over": "iodepth", "answer": "found", "value": 12, "iops": 7800}
    found = analysed(Rows("c", one_variant(7800, search=json.dumps(message)) + one_variant(10, cell="other", search='{"answer": "not_reachable"}')))
    assert [(one.limit, one.over, one.value, one.answers) for one in found.searches] == [
        ("latency -", "load", None, (("not_reachable", 1),)),
        ("p99 3 ms", "iodepth", 12, (("found", 1),)),
    ]
    assert "iodepth 12" in page.render(found, "c")


def noisy_loads(variant, speed, chance):
    """Five repeats at each of three loads, whose noise is 10 %."""
    values = [(jobs, repeat, abs(chance.gauss(1, 0.1))) for jobs in (1, 4, 16) for repeat in range(1, 6)]
    return [
        measurement(variant=variant, cell=f"c-{jobs}", repeat=repeat, numjobs=jobs, iodepth=1, iops=900 * jobs * speed * one, p99_ns=2e6 / one / speed)
        for jobs, repeat, one in values
    ]


def headings_of(speed):
    """The headings of two variants, the second so many times as fast; what is drawn always differs by 5 %."""
    chance = random.Random(5)
    rows = Rows("c", noisy_loads("before", 1.0, chance) + noisy_loads("after", speed, chance))
    two = [
        Distribution("node1", 1, variant, f"c-{jobs}", "write", 10**6, ((99.0, 2e6 * part),))
        for jobs in (1, 4, 16) for variant, part in (("before", 1.0), ("after", 0.95))
    ]  # fmt: skip
    found = analysed(rows, prices=costs.read_prices([{"price": 1000}]), baseline="before")
    titles = headings.titles_of(dataclasses.replace(found, distributions=tuple(two)))
    over = [chart.title for chart in charts.over_load(found.curves[0], found.variants, "x")]
    return [titles[name] for name in ("latency", "curves", "costs", "comparison")], found.curves[0].title, over


def test_no_heading_names_a_winner_where_nothing_is_shown():
    titles, curve, over = headings_of(1.0)
    assert titles == [
        "Latency of every I/O: 3 distributions",
        "What more load brings: 1 workload",
        "Cost: every variant costs 250 per TB",
        "No variant is shown to be better than before in any of 3 lines",
    ]
    assert "no variant is shown to have more IOPS than the others at any load" in curve
    assert not any("after" in one or "before" in one for one in over)


def test_headings_name_the_winner_that_is_shown():
    titles, curve, over = headings_of(2.0)
    assert titles == [
        "Latency: after has the lowest p99 in 3 of 3 distributions", "after has the most IOPS at every load in 1 of 1 workload",
        "Cost: every variant costs 250 per TB; after costs least for its IOPS in 3 of 3 rows", "after is shown to be better than before in 3 of 3 lines",
    ]  # fmt: skip
    assert "after has the most IOPS at every load" in curve
    assert all(one.endswith(" in after") for one in over)


def test_heading_of_steady_series_states_how_far_apart_their_seconds_are():
    values = [42000.0] * 20 + [21000.0] * 20 + [38000.0] * 20
    one = NamedSeries(Series("node1", "none", "c", 1, "write", values, values), SimpleNamespace(kind="steady", stalls=()))
    found = dataclasses.replace(analysed(Rows("c", one_variant(100))), series=(one,), series_looked_at=1, kinds=(("steady", 1),))
    assert headings.titles_of(found)["series"] == "Along the run: 1 series steady, with seconds from 21,000 to 42,000 IOPS in one of them"


def test_title_of_a_run_states_what_its_ends_do_not_show():
    values = [42000.0] * 20 + [21000.0] * 20 + [41000.0] * 20
    band = Band("none", "c", "write", 1, [float(second) for second in range(60)], values, values, values)
    assert charts.bands([band], ["none"], "c").title == (
        "c (write): none does not end more than 5 % from where it began, tenths of a run from 21,000 to 42,000 IOPS"
    )


def test_single_host_of_a_variant_is_not_compared_with_itself():
    found = analysed(Rows("c", one_variant(100) + one_variant(110, host="node2", variant="writeback")))
    assert [one.title for one in hosts.strips(found)] == ["randwrite-4k (write)"]
