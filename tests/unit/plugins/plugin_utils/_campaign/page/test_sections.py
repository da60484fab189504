# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sections of the page and of report.md: their order, and that pictures, titles and commands say what the data says."""

from __future__ import annotations

import dataclasses
import json
import math
import pathlib
import re
import shlex

import pytest

np = pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")
pytest.importorskip("ruptures", reason="series need ruptures: pip install -r requirements.txt")
pytest.importorskip("plotly", reason="the page needs plotly: pip install -r requirements.txt")
yaml = pytest.importorskip("yaml")

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import (
    answer_charts,
    charts,
    commands,
    headings,
    hosts,
    page,
    twins,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.tables import noise_of, noise_sentence
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis, costs, rounds
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.conditions import Job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band, Rows, Series
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult
from ansible_collections.cachefleet.storage.tests.unit.support import report_rows
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement


def analysed(rows, series=(), bands=(), distributions=(), **options):
    return analysis.analyse(rows, list(series), len(series), list(bands), pathlib.Path("nowhere"), analysis.Options(**options), distributions=distributions)


@pytest.fixture(scope="module")
def six():
    rows, series, bands = report_rows.campaign(6)
    rows.aggregates = report_rows.sums(rows)
    rows.measurements.append(report_rows.rounds(rows.hosts[-1]))
    prices = costs.read_prices([{"variant": "write*", "price": 2000.55, "capacity_tb": 4}, {"price": 1000}])
    return analysed(rows, series, bands, report_rows.distributions(rows), prices=prices, currency="USD", power_loss=(lost_on(rows.hosts[0]), lost_on("other")))


def lost_on(host):
    said = ("at_risk", "1 of 1 cuts lost acknowledged writes.", "Contradiction: <b>flushed</b> writes are kept, and the test lost some.")
    return PowerLossResult("t1", host, "/dev/disk/by-id/ata-<X>", "sync fsync, in_place, depth 1", *said, (("ST4000", "SN05"),))


@pytest.fixture(scope="module")
def html(six):
    return page.render(six, "results/x").partition('<script type="application/json"')[0]


def repeated(rate, variant="none", host="node1", count=4, **changes):
    return [measurement(host, variant, repeat=repeat, iops=rate * (1 + repeat / 1000), **changes) for repeat in range(1, count + 1)]


# --- order, and one place for each


def test_the_sections_of_the_page_are_in_the_order_of_the_answer_first(html):
    names = re.findall(r'<section id="(\w+)">', html)
    assert names == ["answer", "comparison", "together", "curves", "heat", "series", "latency", "rounds", "cpu", "hosts", "costs", "wear", "problems", "stacks",
                     "power_loss", "environment", "commands"]  # fmt: skip


def test_no_name_is_given_twice(html):
    """A chart is drawn in the element of its name."""
    names = re.findall(r' id="([^"]+)"', html)
    assert len(names) == len(set(names))


def test_markdown_has_the_sections_of_the_page(six, html):
    labels = re.findall(r'<a href="#\w+">([^<]+)</a>', html)
    assert re.findall(r"^## (.+)$", twins.markdown(six), re.MULTILINE) == labels


@pytest.fixture(scope="module")
def everything(six):
    """With garbage collection, a search, differing settings and job files, so that no section is left out."""
    search = json.dumps({"limit": "p99 <= 2 ms", "answer": "found", "over": "jobs", "value": 8, "iops": 900})
    measured = [measurement(cell="gc-4k", collection_rate=6.5e8, collection_shown_by="fall", search=search)]
    collected = analysed(Rows("c", measured))
    return dataclasses.replace(six, collection=collected.collection, searches=collected.searches, jobs=(Job("randwrite-4k", "node1", JOB),))


def test_markdown_has_the_headings_of_the_page_below_its_sections(everything):
    """Titles of charts are left out: Markdown has them as items of lists, and tables in place of the charts."""
    html = page.render(everything, "results/x").partition('<script type="application/json"')[0]
    charts_of = r"<section><h3>.*?</h3>|<h3 id=.*?</h3>|<figure.*?</figure>"
    headings_of_page = {
        name: [
            re.sub(r"&#39;", "'", one)
            for one in re.findall(r"<(?:h3|details><summary)>(?=All hosts<|[^<]+</h3>)(.+?)</(?:h3|summary)>", re.sub(charts_of, "", part, flags=re.DOTALL))
        ]
        for name, part in re.findall(r'<section id="(\w+)">\n(.*?)(?=<section id="\w+">|</main>)', html, re.DOTALL)
        if name != "heat"
    }
    labels = dict(page.SECTIONS)
    said = twins.markdown(everything, "results/x")
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", said, re.DOTALL | re.MULTILINE))
    for name, expected in headings_of_page.items():
        found = [one.replace("\\", "") for one in re.findall(r"^### (.+)$", parts[labels[name]], re.MULTILINE)]
        assert name == "curves" or found == expected, name
    assert [one for name in ("comparison", "series") for one in headings_of_page[name]] == ["Most load under a latency limit", "Garbage collection"]
    assert "report_campaign=results/x" in said and "        rw=randwrite" in said


def test_markdown_has_the_figures_of_the_answer_of_the_page(six):
    """The p-value, hosts and repeats of each variant."""
    part = twins.markdown(six).partition("## Answer\n")[2].partition("\n## ")[0]
    rows = [[cell.strip().replace("\\", "") for cell in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("|")]
    lines = [dict(zip(rows[0], row)) for row in rows[2:]]
    results = [result for one in six.answer.workloads for result in one.results]
    assert [line["p"] for line in lines] == [text.chance(one.comparison.p if one.comparison else None) for one in results]
    assert {line["variant"].split("; ")[1] for line in lines} == {"6 hosts, 4 repeats"}


def test_power_loss_tests_of_the_hosts_are_shown_and_a_contradiction_comes_first(six, html):
    assert [one.host for one in six.power_loss] == [six.hosts[0]]
    part = html.partition('<section id="power_loss">')[2].partition("</section>")[0]
    assert "Power-loss tests: 1 lost acknowledged writes" in part and '<span class="badge at_risk">at_risk</span>' in part
    assert "ata-&lt;X&gt;" in part and "<b>flushed" not in html
    assert any(one.startswith(f"{six.hosts[0]}: Contradiction: ") and one.endswith("(ST4000 SN05)") for one in page.warnings_of(six))
    said = twins.markdown(six)
    assert said.index("Contradiction") < said.index("## Answer") and "ST4000 SN05" in said.partition("## Power loss")[2]


def test_without_power_loss_tests_there_is_no_section(six):
    assert 'id="power_loss"' not in page.render(dataclasses.replace(six, power_loss=()), "results/x")


# --- the picture of the answer


def test_the_picture_has_the_ratios_of_the_answer_with_their_intervals(six):
    drawn = answer_charts.pictures(six)
    assert len(drawn) == 2 and drawn[0].title.startswith("writethrough is better in 12 of these 12 workloads")
    results = [one.result("writethrough") for one in six.answer.workloads]
    marks = [trace for chart in drawn for trace in chart.data if trace.get("error_x") and trace["name"] == "writethrough"]
    values = [value for trace in marks for value in trace["x"]]
    assert values == [pytest.approx(one.ratio, rel=1e-3) for one in results]
    highs = [value + more for trace in marks for value, more in zip(trace["x"], trace["error_x"]["array"])]
    assert highs == [pytest.approx(one.comparison.interval.high, rel=1e-3) for one in results]


def test_bars_are_solid_where_acknowledged_writes_survive(six):
    for chart in answer_charts.pictures(six):
        for trace in (trace for trace in chart.data if trace["type"] == "bar"):
            shapes = trace["marker"]["pattern"]["shape"]
            kept = [
                six.answer.workloads[0].result(trace["name"]).safety.flushed == "keeps" and name.startswith("randread")
                for name in chart.layout["yaxis"]["ticktext"]
            ]
            assert shapes == ["" if solid else "/" for solid in kept]


def test_the_bar_of_a_latency_is_of_its_inverse():
    rows = [one for variant, wait in (("none", 4e6), ("writethrough", 2e6)) for one in repeated(100, variant, decides="latency")]
    rows = [dataclasses.replace(one, lat_mean_ns=(4e6 if one.variant == "none" else 2e6) * (1 + one.repeat / 1000)) for one in rows]
    [workload] = analysed(Rows("c", rows)).answer.workloads
    drawn = answer_charts.bar_of(workload, workload.result("writethrough"))
    assert drawn.value == pytest.approx(2, rel=0.01)
    assert drawn.low <= drawn.value <= drawn.high


def test_a_noisy_variant_is_marked_in_the_picture_and_in_the_tables():
    loud = [measurement(variant="writethrough", repeat=repeat, iops=rate) for repeat, rate in enumerate((500, 700, 900, 1100), 1)]
    found = analysed(Rows("c", repeated(100) + loud))
    [picture] = answer_charts.pictures(found)
    labels = {trace["name"]: trace["text"] for trace in picture.data if trace.get("mode") == "text"}
    assert labels["writethrough"][0].endswith("noisy") and "noisy" not in labels["none"][0]
    assert page.render(found, "c").partition("<script")[0].count(">noisy</span>") == 2
    assert "noise 32.3 %; noisy" in twins.markdown(found)
    assert "at most 32.3 % (randwrite-4k in writethrough); 1 of 2 values is noisy" in noise_sentence(found, noise_of(found.points))


# --- axes and curves


@given(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=20))
def test_ticks_are_1_2_5_and_around_all_values(values):
    marks = charts.ticks(values)
    assert marks == sorted(set(marks)) and marks[0] <= min(values) * 1.001 * 10 and marks[-1] * 10 >= max(values)
    assert all(f"{mark:e}"[:8] in ("1.000000", "2.000000", "5.000000") for mark in marks)


def loads_of(rates, variant, wait=2e6):
    """Four repeats that show every difference."""
    return [
        measurement(variant=variant, cell=f"randwrite-{jobs}", repeat=repeat, numjobs=jobs, iodepth=1, iops=rate, p99_ns=wait * jobs)
        for jobs, rate in rates.items()
        for repeat in range(1, 5)
    ]


@pytest.mark.parametrize(
    ("other", "title"),
    [
        ({1: 200, 4: 500, 16: 900}, "writethrough has the most IOPS at every load"),
        ({1: 90, 4: 500, 16: 900}, "none has the most IOPS below jobs 4, writethrough from there on"),
        ({1: 101, 4: 301, 16: 601}, "no variant is shown to have more IOPS than the others at any load"),
        ({1: 200, 4: 250, 16: 900}, "which has the most IOPS depends on the load: writethrough and none"),
    ],
)
def test_the_title_of_a_curve_holds_along_all_of_it(other, title):
    [curve] = analysed(Rows("c", loads_of({1: 100, 4: 300, 16: 600}, "none") + loads_of(other, "writethrough"))).curves
    assert title in curve.title


def test_one_limit_is_drawn_in_all_charts_or_none():
    rows = loads_of({1: 100, 4: 300}, "none")
    slow = [dataclasses.replace(one, cell=f"slow-{one.numjobs}", rw="randread", direction="read", p99_ns=one.p99_ns * 100) for one in rows]
    assert {one.limit for one in analysed(Rows("c", rows)).curves} == {3e6}
    found = analysed(Rows("c", rows + slow))
    assert [one.limit for one in found.curves] == [None, None]
    assert not any("shapes" in charts.latency_over_iops(one, found.variants, "x").layout for one in found.curves)


def test_variants_have_marks_of_their_own():
    variants = [f"v{number}" for number in range(10)]
    assert len({charts.mark_of(variants, one)["symbol"] for one in variants}) == 10


# --- block sizes


def test_maps_of_a_workload_have_one_scale_and_a_ratio(six):
    group = six.heat_groups[0]
    known = [value for grid in group.maps for row in grid for value in row]
    assert (group.low, group.high, group.variants) == (min(known), max(known), ("none", "writethrough", "writeback"))
    assert page._shade(group, group.low) == "h0" and page._shade(group, group.high) == "h9"
    for number, ratio in enumerate(group.ratios, 1):
        for row, old, new in zip(ratio.ratios, group.maps[0], group.maps[number]):
            assert row == tuple(after / before for before, after in zip(old, new))
    flat = [value for row in group.ratios[0].ratios for value in row]
    assert group.ratios[0].title == f"writethrough by none: {min(flat):.2f} to {max(flat):.2f} x"


@pytest.mark.parametrize(("ratio", "shade"), [(None, "none"), (1.01, "none"), (1.1, "more1"), (2.0, "more4"), (50, "more4"), (0.9, "less1"), (0.1, "less4")])
def test_shades_of_ratios(ratio, shade):
    assert page._ratio_shade(ratio) == shade


# --- along the run, rounds


def seconds(count, cell="randwrite-4k"):
    series = Series("node1", "none", cell, 1, "write", [100.0] * count, [1e6] * count)
    return series, Band("none", cell, "write", 1, [second + 0.5 for second in range(count)], *([100.0] * count for _edge in range(3)))


@pytest.mark.parametrize("count", [1, 9])
def test_what_is_too_short_to_say_anything_is_not_there(count):
    short, band = seconds(count)
    found = analysed(Rows("c", [measurement()]), [short], [band])
    drawn = page.drawn_of(found)
    assert (drawn.bands, drawn.series, found.kinds, found.series_looked_at, found.series_total) == (None, [], (), 0, 0)
    html, markdown = page.render(found, "c"), twins.markdown(found)
    assert "too short" not in html + markdown and 'id="series"' not in html and "## Over time" not in markdown
    assert "against none" not in html and "against none" not in markdown and "what is claimed" not in html


def test_only_what_is_long_enough_is_drawn_and_counted():
    (short, short_band), (whole, whole_band) = seconds(9), seconds(10, "randread-4k")
    found = analysed(Rows("c", [measurement()]), [short, whole], [short_band, whole_band])
    drawn = page.drawn_of(found)
    assert [one.cell for one in (one.series for one in found.series)] == ["randread-4k"]
    assert [one.name for one in drawn.bands.choices] == ["randread-4k (write)"]
    assert "1 series was analysed one by one:" in page.render(found, "c") and "Series that were analysed one by one: 1:" in twins.markdown(found)


def test_sections_without_anything_to_say_are_absent():
    found = analysed(Rows("c", [measurement()]))
    html, markdown = page.render(found, "c"), twins.markdown(found)
    for name, label in page.SECTIONS:
        is_there = name in ("answer", "comparison", "environment", "commands") or {"problems": found.problems, "stacks": found.stacks}.get(name)
        assert (f'<section id="{name}">' in html) == (f'href="#{name}"' in html) == (f"## {label}\n" in markdown) == bool(is_there), name
    assert "outlier host" not in html and "<b>0</b>" not in html


def test_runs_that_end_one_after_the_other_are_no_fall():
    """Four flat hosts of unlike speed, of which the fast ones have filled their targets first."""
    ends, rates = (30, 60, 90, 125), (1200, 900, 600, 300)
    middle = [float(sorted(rate for rate, end in zip(rates, ends) if second < end)[0]) for second in range(125)]
    band = Band("none", "fill", "write", 4, [second + 0.5 for second in range(125)], middle, middle, middle, 30.0)
    drawn = page.drawn_of(analysed(Rows("c", [measurement()]), bands=[band]))
    assert drawn.bands.first.title.startswith("fill (write): does not end") or "none does not end more than 5 % from where it began" in drawn.bands.first.title
    assert "in the first 30 s, when the first run ends" in drawn.bands.first.title


def test_a_steady_series_has_its_range_and_levels_in_ink(six):
    chart = next(one for one in page.drawn_of(six).series if one.title.startswith("steady"))
    series = next(one.series for one in six.series if one.finding.kind == "steady")
    low, high = (float(part.replace(",", "")) for part in re.search(r"\(seconds from ([\d,]+) to ([\d,]+)\)", chart.title).groups())
    assert low == pytest.approx(min(series.iops), rel=0.005) and high == pytest.approx(max(series.iops), rel=0.005)
    assert [trace["line"]["color"] for trace in chart.data if trace["name"] == "levels found"] == ["#000000"]


def test_rounds_have_their_window(six):
    [one] = six.rounds
    assert one.sentence == "steady after 7 rounds: average of rounds 3 to 7 40,300 IOPS, range 3.0 % (at most 20 %), slope -1.4 % (at most 10 %)"
    [chart] = page.drawn_of(six).rounds
    [window] = chart.layout["shapes"]
    assert (window["x0"], window["x1"], window["y0"], window["y1"]) == (2.6, 7.4, 36270, 44330)
    assert "precondition in none: steady after 7 rounds" in chart.title
    assert headings.titles_of(six)["rounds"] == "Precondition: steady in 1 of 1 run"


@pytest.mark.parametrize("said", [{"values": "x"}, {"values": [1, None]}, {"values": []}, {"steady": "yes"}, {"values": [math.inf]}])
def test_rounds_that_are_none_are_left_out(said):
    assert rounds.rounds_of(Rows("c", [report_rows.rounds(**said)])) == []


def test_a_window_that_does_not_end_with_the_rounds_is_none():
    [one] = rounds.rounds_of(Rows("c", [report_rows.rounds(first_of_window=2, steady=False)]))
    assert one.sentence == "not steady: 7 rounds, fewer than a window of 5"


# --- latency


def test_latencies_are_drawn_as_far_as_they_are_known(six):
    chart = page.drawn_of(six).latency.first
    lengths = {trace["name"]: len(trace["x"]) for trace in chart.data}
    assert lengths["none"] < lengths["writethrough"]
    assert "p50 200 µs in none, 154 µs in writethrough and 90.9 µs in writeback" in chart.title and "p99 10 ms in none" in chart.title
    assert headings.titles_of(six)["latency"] == "Latency: writeback (at_risk) has the lowest p99 in 1 of 1 distribution"


# --- CPU


def test_a_cpu_that_may_have_been_the_limit_is_said_beside_the_answer():
    rows = [one for variant in ("none", "writethrough") for one in repeated(100, variant, cpu_bound=True, cpu_usr=30.0, cpu_sys=65.0, host_busy=12.0)]
    found = analysed(Rows("c", rows))
    assert found.cpu_note.startswith(
        "The CPU may have been the limit, not the storage, in 1 deciding cell: none in randwrite-4k; writethrough in randwrite-4k."
    )
    assert (found.cpu[0].fio, found.cpu[0].busy, found.cpu[0].hosts, found.cpu[0].of) == (95.0, 12.0, ("node1",), 1)
    for said in (page.render(found, "c"), twins.markdown(found).replace("\\", "")):
        assert said.index(found.cpu_note) < said.index("randwrite-4k", said.index(found.cpu_note) + len(found.cpu_note))
    alone = [one for one in rows if one.variant == "none"]
    assert found.cpu_note.endswith("The storage may be faster there, and the differences may be other than those that were measured.")
    assert analysed(Rows("c", alone)).cpu_note.endswith("The storage may be faster there.")
    assert analysed(Rows("c", repeated(100))).cpu_note == ""


# --- order


@pytest.mark.parametrize(
    ("start_of", "is_interleaved"),
    [
        pytest.param(lambda place, repeat: 1e9 + 1000 * place + repeat, False, id="one after the other"),
        pytest.param(lambda place, repeat: 1e9 - 1000 * place + repeat, False, id="the baseline last"),
        pytest.param(lambda place, repeat: 1e9 + 10 * repeat + place * (-1) ** repeat, True, id="interleaved"),
        pytest.param(lambda place, repeat: None, True, id="times that nobody knows"),
    ],
)
def test_variants_that_were_not_interleaved_are_named_beside_the_answer(start_of, is_interleaved):
    rows = [
        measurement("node1", variant, repeat=repeat, iops=iops + repeat, started=start_of(place, repeat))
        for place, (variant, iops) in enumerate([("none", 100.0), ("writethrough", 200.0)])
        for repeat in range(1, 6)
    ]
    found = analysed(Rows("c", rows), baseline="none")
    assert found.answer.workloads[0].recommended == "writethrough"
    if is_interleaved:
        assert found.order_note == ""
        return
    assert found.order_note.startswith("none and writethrough were measured one after the other, not interleaved: ")
    assert found.order_note in page.render(found, "c") and found.order_note in twins.markdown(found).replace("\\", "")


def test_variants_of_which_none_is_shown_to_differ_need_no_caveat():
    rows = [
        measurement("node1", variant, repeat=repeat, iops=100.0 + repeat, started=1e9 + 1000 * place + repeat)
        for place, variant in enumerate(["none", "writethrough"])
        for repeat in range(1, 6)
    ]
    assert analysed(Rows("c", rows), baseline="none").order_note == ""


def test_a_job_that_limits_its_rate_is_said_beside_the_answer():
    rows = [one for variant in ("none", "writethrough") for one in repeated(5000, variant, rate_limit="rate_iops=5000")]
    found = analysed(Rows("c", rows))
    assert found.rate_note.startswith("The job limits its own rate in 1 deciding cell: rate_iops=5000 in randwrite-4k. As many IOPS there only mean")
    assert found.rate_note in page.render(found, "c") and found.rate_note in found.caveats
    alone = analysed(Rows("c", repeated(5000, rate_limit="rate_iops=5000"))).rate_note
    assert alone == "The job limits its own rate in 1 deciding cell: rate_iops=5000 in randwrite-4k. The storage may be faster there."
    assert analysed(Rows("c", [*repeated(5000), *repeated(5000, "writethrough")])).rate_note == ""


def test_notes_on_the_figures_of_deciding_cells_stand_with_the_answer_once():
    reached = [f"read reached {rate} of the 500 IOPS that rate_iops of the job requests." for rate in (99, 101)]
    noted = [dataclasses.replace(one, notes=[reached[place % 2], "filename of the job file was left out: unused."]) for place, one in enumerate(repeated(5000))]
    many = [dataclasses.replace(one, notes=[f"{word} is withheld." for word in "abcdefg"]) for one in repeated(5000, "writethrough")]
    found = analysed(Rows("c", [*noted, *many]))
    assert found.figure_notes == (
        "randwrite-4k: read reached 99 of the 500 IOPS that rate_iops of the job requests.",
        *(f"randwrite-4k: {word} is withheld." for word in "abcd"),
        "3 more notes on the figures of deciding cells: see the report.",
    )
    assert set(found.figure_notes) <= set(found.caveats)
    bound = [dataclasses.replace(one, cpu_bound=True, notes=["fio used 99 % of a CPU: the device may be faster than this."]) for one in repeated(5000)]
    assert analysed(Rows("c", bound)).figure_notes == (), "the CPU has a sentence of its own"


def test_many_comparisons_have_a_word_about_chance():
    variants = [f"v{number:02}" for number in range(24)]
    rows = [measurement("node1", name, repeat=repeat, iops=1000.0 + repeat, started=1e9 + repeat) for name in variants for repeat in range(1, 5)]
    one_is_better = [dataclasses.replace(one, iops=one.iops * 1.1) if one.variant == "v07" else one for one in rows]
    found = analysed(Rows("c", one_is_better), baseline="v00")
    assert found.chance_note.startswith("1 of 23 comparisons shows a better variant. If no variant differed from v00, one would still be shown to be better")
    assert re.search(r"better in up to (2[0-9]|3[0-9]) % of such campaigns: measure it again\.", found.chance_note)
    assert found.chance_note in page.render(found, "c")
    half_are = [dataclasses.replace(one, iops=one.iops * 1.1) if int(one.variant[1:]) % 2 else one for one in rows]
    few = [one for one in one_is_better if one.variant in (*variants[:5], "v07")]
    for without in (rows, half_are, few):
        assert analysed(Rows("c", without), baseline="v00").chance_note == ""


# --- hosts


def test_variants_on_different_hosts_are_not_paired_anywhere():
    rows = [*repeated(100, host="a"), *repeated(150, "writethrough", host="b")]
    found = analysed(Rows("c", rows), baseline="none")
    [line] = found.table
    assert [(cell.same_hosts, cell.is_better) for cell in line.cells] == [(True, False), (False, False)]
    html, markdown = page.render(found, "c"), twins.markdown(found).replace("\\", "")
    assert html.count("better, on different hosts") == 2 and markdown.count("better, on different hosts") == 2
    assert answer_charts.pictures(found) == []


def test_a_line_is_as_safe_as_its_own_hosts():
    rows = [*repeated(100, host="a"), *repeated(150, "writethrough", host="a")]
    rows += [
        one
        for variant, verdict in (("none", "durable"), ("writethrough", "at_risk"))
        for one in repeated(100 if variant == "none" else 150, variant, host="b", model="SSD B", verdict_before=verdict, verdict_after=verdict)
    ]
    found = analysed(Rows("c", rows), baseline="none")
    assert {line.model: [cell.is_better for cell in line.cells] for line in found.table} == {"SSD A": [False, True], "SSD B": [False, False]}
    assert headings.titles_of(found)["answer"] == (
        "A variant is shown to be better in 1 of 2 combinations of hosts and workload; flushed writes survive a power failure with none on all hosts"
    )


def test_without_enough_equal_hosts_none_is_called_like_the_others():
    rows = [one for number in range(6) for one in repeated(100, host=f"node{number}", model=f"SSD {number // 2}")]
    assert headings.titles_of(analysed(Rows("c", rows)))["hosts"] == "6 hosts: too few with equal drives to call one unlike the others"
    assert not any("outlier" in strip.title for strip in hosts.strips(analysed(Rows("c", rows))))


# --- cost


def test_prices_are_not_rounded_and_every_figure_has_a_currency(six, html):
    part = html.partition('<section id="costs">')[2].partition("</section>")[0]
    assert part.count("USD 2,000.55") == 2 and "USD 1,000<" in part
    figures = re.findall(r'<td class="n">([^<]+)</td>', part)
    assert all(one.startswith("USD ") or one.endswith(" TB") for one in figures)
    assert len(re.findall("<tr><th>per IOPS", part)) == len({(one.question.cell, one.question.direction) for one in six.answer.workloads})


# --- commands


JOB = (
    "[global]\n; added by cachefleet.storage\nfilename=/dev/sda\nallow_file_create=0\nexitall_on_error\n\n"
    "[randwrite-4k]\nrw=randwrite\nbs=4k\ntime_based\nruntime=60\n"
)


PLANNED = {"rw": "randwrite", "bs": "4k", "time_based": 1, "runtime": 60}


def with_jobs(*jobs, rows=None):
    return dataclasses.replace(analysed(Rows("c d", rows or repeated(100) + repeated(200, "write back"))), jobs=jobs)


def test_the_commands_repeat_the_measurement():
    found = with_jobs(Job("randwrite-4k", "node1", JOB, PLANNED))
    variables = yaml.safe_load(commands.suite_text(found))
    suite = read_suite("repeat", variables["fio_benchmark_suites"])
    [cell] = suite.cells
    asked = read_job({"rw": "randwrite", "bs": "4k", "time_based": True, "runtime": 60}, "randwrite-4k")
    assert (cell.name, read_job(cell.job, cell.name).workload_sha256, cell.repeats) == ("randwrite-4k", asked.workload_sha256, 4)
    assert [name for name, _command in commands.measuring_commands(found)] == ["none", "write back"]
    assert "-e fio_benchmark_campaign='c d-repeat' -e fio_benchmark_variant='write back'" in commands.measuring_commands(found)[1][1]


def test_the_command_of_the_report_has_the_options_that_it_was_made_with():
    rows = Rows("c d", repeated(100) + repeated(200, "write back"))
    wanted = {"report_files": ["html", "markdown", "csv"], "report_decide_by": ["randwrite*"], "report_ignore": ["kernel"], "report_host_class": ["fio"]}
    wanted |= {"report_latency_limit_ms": 1.5, "report_prices": [{"host": "*", "variant": "none", "price": 100.0, "capacity_tb": 4.0}], "report_currency": "€"}
    options = {"decide_by": ("randwrite*",), "ignore": ("kernel",), "host_class": ("fio",), "limit": 1.5e6, "currency": "€"}
    found = analysed(rows, prices=costs.read_prices(wanted["report_prices"]), **options)
    words = shlex.split(commands.report_command("results/c d", found))
    assert words[:4] == ["ansible-playbook", "cachefleet.storage.report", "-e", "report_campaign=results/c d"]
    assert json.loads(words[-1]) == wanted
    assert json.loads(shlex.split(commands.report_command("results/c d", analysed(rows)))[-1]) == {"report_files": wanted["report_files"]}


@pytest.mark.parametrize("line", ["exec_prerun=reboot", "description=#jinja2:variable_start_string:'[['", "description={{ 7 * 7 }}"])
def test_a_job_that_came_back_from_a_host_is_not_repeated(line):
    changed = JOB.replace("runtime=60", f"runtime=60\n{line}")
    text = commands.suite_text(with_jobs(Job("randwrite-4k", "node1", changed, PLANNED), Job("other", "node1", changed)))
    assert line not in text and "# Left out, because the plans of the campaign do not have their jobs: other" in text
    assert yaml.safe_load(text)["fio_benchmark_suites"]["repeat"]["cells"] == [{"name": "randwrite-4k", "repeats": 4, "job": PLANNED}]
    without = with_jobs(Job("other", "node1", JOB))
    assert commands.suite_text(without) == "" and "repeat.yml" not in commands.measuring_commands(without)[0][1]
    text = twins.markdown(without, "results/c d")
    assert "The plans of the campaign have no jobs: measure with the suite that it was measured with (fio_benchmark_suite)." in text.replace("\\", "")
    assert "    ansible-playbook -i INVENTORY cachefleet.storage.benchmark -e fio_benchmark_campaign='c d-repeat' -e fio_benchmark_variant=none" in text
    assert "    ansible-playbook cachefleet.storage.compare -e compare_baseline='results/c d' -e compare_candidate='results/c d-repeat'" in text


def test_a_planned_job_is_not_evaluated_when_it_is_repeated():
    text = commands.suite_text(with_jobs(Job("randwrite-4k", "node1", JOB, {**PLANNED, "description": "{{ lookup('pipe', 'id') }}"})))
    assert "!unsafe" in text


def test_a_job_with_several_sections_is_the_same_again():
    planned = {"global": {"bs": "4k"}, "jobs": [{"name": "reader", "rw": "randread"}, {"name": "writer", "rw": "randwrite"}]}
    found = with_jobs(Job("randwrite-4k", "node1", JOB, planned))
    [cell] = yaml.safe_load(commands.suite_text(found))["fio_benchmark_suites"]["repeat"]["cells"]
    assert cell["job"] == planned


def test_a_name_that_is_no_name_of_a_cell_is_not_repeated():
    found = with_jobs(Job("a\n# heading", "node1", JOB, PLANNED))
    assert "\n# heading" not in twins.markdown(found)
    assert commands.suite_text(found) == ""


def test_a_limit_of_the_cpu_is_one_problem():
    notes = ["fio used 98 % of a CPU for each of its 1 threads: the device may be faster than this.", "The clock was set."]
    found = analysed(Rows("c", repeated(100, cpu_bound=True, notes=notes)))
    assert [(one.kind, one.text) for one in found.problems if one.kind in ("cpu", "note")] == [
        ("cpu", "The CPU may have been the limit, not the storage, on node1."),
        ("note", "The clock was set."),
    ]
