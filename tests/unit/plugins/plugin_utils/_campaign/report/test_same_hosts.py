# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves, block sizes, distributions and costs: variants are compared on the same hosts and at the same loads, or no variant is named."""

from __future__ import annotations

import pathlib
import shutil

import pytest

for library in ("numpy", "scipy", "duckdb", "ruptures"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import charts, headings, page, twins, write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis, costs, places
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import distributions_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, host_classes
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_tables import AddedHistogram
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import histogram
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

PRICES = costs.read_prices([{"price": 1000, "capacity_tb": 1}])
FAST, SLOW = ("fast1", "fast2"), ("slow1", "slow2")


def analysed(measurements, *, added=None, **options):
    rows = Rows("c", measurements, added=added or {})
    rows.classes = places.parts_of([one.hosts for one in host_classes(rows)], measurements)
    found = distributions_of(rows, host_classes(rows))
    return analysis.analyse(rows, [], 0, [], pathlib.Path("nowhere"), analysis.Options(prices=PRICES, currency="USD", **options), distributions=found)


def at_loads(host, variant, rates, *, waits=None, blocks=(4096,), repeats=4, **changes):
    """Reads with these IOPS by queue depth, and p99 in ms; larger blocks are slower. So many repeats show every difference."""
    return [
        measurement(
            host,
            variant,
            f"rr-{block}-{depth}",
            repeat,
            direction="read",
            rw="randread",
            bs=str(block),
            bs_bytes=block,
            iodepth=depth,
            iops=rate * 4096 / block,
            p99_ns=(waits or {}).get(depth, depth) * 1e6,
            **changes,
        )
        for block in blocks
        for depth, rate in rates.items()
        for repeat in range(1, repeats + 1)
    ]


def bins_of(measurements, latency_of, parts):
    """By part, all I/Os of a host with one latency in ns."""
    number = {host: place for place, hosts in enumerate(parts) for host in hosts}
    groups = {}
    for one in measurements:
        groups.setdefault((number[one.host], one.variant, one.cell, one.repeat, one.direction), []).append(one)
    found = {}
    for key, members in groups.items():
        bins = {}
        for one in members:
            bins[latency_of(one)] = bins.get(latency_of(one), 0) + 100_000
        found[key] = AddedHistogram(histogram(bins), frozenset((one.host, one.cell) for one in members), frozenset({"clat"}))
    return found


@pytest.fixture
def unequal():
    """B, 15 % slower on every host, was only measured on the fast ones."""
    rates = {1: 4000, 16: 16000}
    measured = [one for host in FAST for one in at_loads(host, "base", rates, blocks=(4096, 65536))]
    measured += [
        one for host in FAST for one in at_loads(host, "B", {at: 0.85 * rate for at, rate in rates.items()}, waits={1: 1.2, 16: 19.2}, blocks=(4096, 65536))
    ]
    measured += [one for host in SLOW for one in at_loads(host, "base", {at: rate / 4 for at, rate in rates.items()}, blocks=(4096, 65536))]
    latency = {("base", True): 10**6, ("B", True): 1_200_000, ("base", False): 4 * 10**6}
    added = bins_of(measured, lambda one: latency[one.variant, one.host in FAST], (FAST, SLOW))
    return analysed(measured, added=added, baseline="base", limit=2e6)


def test_percentiles_of_a_curve_are_those_of_its_hosts():
    measured = [one for host in FAST for one in at_loads(host, "base", {1: 20000, 16: 80000}, model="FAST")]
    measured += [one for host in SLOW for one in at_loads(host, "base", {1: 500, 16: 2000}, model="SLOW")]
    added = bins_of(measured, lambda one: 300_000 if one.host in FAST else 20_000_000, (FAST, SLOW))
    found = analysed(measured, added=added)
    assert {one.workload.rpartition(" ")[2]: {value.latency for value in one.curves[0].values} for one in found.curves} == {
        "FAST": {300_000},
        "SLOW": {20_000_000},
    }
    assert [one.note for one in found.curves] == ["", ""]


def test_percentiles_whose_bins_cannot_be_added_are_medians_in_the_whole_chart():
    measured = [one for host in (*FAST, *SLOW) for variant in ("base", "B") for one in at_loads(host, variant, {1: 100, 4: 300})]
    measured = [one for one in measured if one.host != "slow2" or one.variant == "base"]
    added = bins_of(measured, lambda one: 7_000_000, ((*FAST, *SLOW),))
    [curve] = analysed(measured, added=added).curves
    assert [[value.latency for value in one.values] for one in curve.curves] == [[1e6, 4e6]] * 2
    assert curve.note == (
        "Only hosts that were measured in every variant are drawn: 3 of 4. The p99 of several hosts is the median of theirs: their histograms cannot be added."
    )


def test_variants_are_compared_on_the_hosts_that_have_both(unequal):
    titles = headings.titles_of(unequal)
    assert titles["curves"] == "base has the most IOPS at every load in 2 of 2 workloads"
    assert titles["latency"] == "Latency: base has the lowest p99 in 4 of 4 distributions"
    assert titles["costs"] == "Cost: every variant costs USD 1,000 per TB; base costs least for its IOPS in 4 of 4 rows"
    assert titles["heat"].startswith("Block sizes: most safe IOPS with 4 KiB at jobs x queue depth 16: 16,000")
    [group] = unequal.heat_groups
    assert [one.title for one in group.ratios] == ["B by base: 0.85 x"]
    assert group.titles[-1] == "Only hosts that were measured in every variant are drawn: 2 of 4."


def test_what_is_drawn_is_of_the_compared_hosts_and_the_others_are_stated(unequal):
    curve = unequal.curves[0]
    assert {one.variant: [(value.iops, value.hosts, value.latency) for value in one.values] for one in curve.curves} == {
        "base": [(4000, 2, 1e6), (16000, 2, 1e6)],
        "B": [(3400, 2, 1.2e6), (13600, 2, 1.2e6)],
    }
    assert curve.note == "Only hosts that were measured in every variant are drawn: 2 of 4."
    assert {(one.hosts, one.of, one.at(99.0)) for one in unequal.distributions} == {(2, 4, 1e6), (2, 4, 1.2e6)}
    assert all("only 2 of 4 hosts, which were measured in every variant" in one.title for one in page.drawn_of(unequal).pickers[-1].choices)
    key = costs.keys_of(unequal.answer)[0]
    assert {one.variant: (one.hosts, one.per_iops[key]) for one in unequal.costs} == {"base": (4, 1000 / 4000), "B": (2, 1000 / 3400)}
    assert "| 4 hosts: 2 of 4 | rr-4096-1 | read | B |" in twins.markdown(unequal) and costs.HOSTS_NOTE in page.render(unequal, "c")


def test_without_a_host_that_has_every_variant_none_is_named():
    measured = [one for host in FAST for one in at_loads(host, "base", {1: 4000, 16: 16000}, blocks=(4096, 65536))]
    measured += [one for host in SLOW for one in at_loads(host, "B", {1: 9000, 16: 36000}, blocks=(4096, 65536))]
    added = bins_of(measured, lambda one: 1_000_000 if one.host in FAST else 500_000, (FAST, SLOW))
    found = analysed(measured, added=added, baseline="base")
    titles = headings.titles_of(found)
    for name in ("curves", "latency", "costs", "heat"):
        assert titles[name].endswith("no host was measured in every variant"), name
    assert all("(read): no host was measured in every variant" in one.title and not one.leader for one in found.curves)
    assert found.curves[0].note == "No host was measured in every variant: each variant is drawn with the hosts that it was measured on."
    assert [one.title for one in found.heat_groups[0].ratios] == ["B by base: no block size and load was measured in both on the same hosts"]
    over = [one.title for one in charts.over_load(found.curves[0], found.variants, "x")]
    assert over[0] == "IOPS over queue depth: most is 36,000; no host was measured in every variant"
    assert over[2] == "p99 latency over queue depth: no host was measured in every variant"
    assert page.render(found, "c")


@pytest.fixture
def partly():
    """A is first at the only load that C was measured at, and last at the others."""
    rates = {"A": {1: 1200, 4: 2000, 16: 3000}, "B": {1: 1000, 4: 4000, 16: 9000}, "C": {1: 900}}
    waits = {"A": {1: 8.4, 4: 20, 16: 54}, "B": {1: 10, 4: 10, 16: 18}, "C": {1: 11.2}}
    measured = [one for variant, of in rates.items() for one in at_loads("node1", variant, of, waits=waits[variant])]
    return analysed(measured, added=bins_of(measured, lambda one: int(one.p99_ns), (("node1",),)))


def test_title_states_the_loads_that_were_compared_and_who_leads_at_the_others(partly):
    [curve] = partly.curves
    assert (
        "A has the most IOPS at queue depth 1, the only load measured in every variant; among those measured, B at 4 and 16; IOPS under 10 ms (p99): "
        "1,200 in A and 4,000 in B"
    ) in curve.title
    assert curve.leader == "" and headings.titles_of(partly)["curves"] == "What more load brings: 1 workload"


def test_lowest_percentile_is_also_that_of_cells_without_one_variant(partly):
    assert headings.titles_of(partly)["latency"] == "Latency: B has the lowest p99 in 2 of 3 distributions, of the variants that have one there"


def test_latency_over_load_is_compared_at_the_highest_load_of_every_variant(partly):
    *_others, latency = charts.over_load(partly.curves[0], partly.variants, "x")
    assert latency.title == "p99 latency over queue depth: least is 8.4 ms at 1, the highest load of every variant, in A"


def test_some_of_the_loads_are_named_as_such():
    measured = at_loads("node1", "none", {1: 100, 4: 300, 16: 600}) + at_loads("node1", "writeback", {1: 200, 4: 500})
    [curve] = analysed(measured).curves
    assert "writeback has the most IOPS at the 2 of 3 loads measured in every variant" in curve.title and not curve.leader


def test_equal_variants_are_all_named_or_none():
    waits = {1: 1, 16: 4}
    measured = at_loads("node1", "none", {1: 100, 16: 600}, waits=waits) + at_loads("node1", "writeback", {1: 100, 16: 601}, waits={1: 1, 16: 4.05})
    found = analysed(measured, added=bins_of(measured, lambda one: int(one.p99_ns), (("node1",),)))
    titles = [one.title for one in charts.over_load(found.curves[0], found.variants, "x")]
    assert titles[0] == "IOPS over queue depth: most is 601 at 16"
    assert titles[2] == "p99 latency over queue depth: least is 4 ms at 16"
    assert headings.titles_of(found)["latency"] == "Latency of every I/O: 2 distributions"
    assert headings.titles_of(found)["costs"] == "Cost: every variant costs USD 1,000 per TB"


def test_variants_that_lead_in_equally_many_rows_are_both_named():
    measured = at_loads("node1", "none", {1: 100, 16: 900}) + at_loads("node1", "writeback", {1: 200, 16: 600})
    found = analysed(measured)
    assert headings.titles_of(found)["costs"].endswith("writeback and none each cost least for its IOPS in 1 of 2 rows")


def test_hosts_of_one_load_do_not_take_those_of_the_others():
    hosts = [f"node{number}" for number in range(9)]
    measured = [one for host in hosts for variant in ("none", "writeback") for one in at_loads(host, variant, {1: 100, 4: 300})]
    measured += [one for variant in ("none", "writeback") for one in at_loads("node1", variant, {64: 500})]
    [curve] = analysed(measured).curves
    assert [[value.hosts for value in one.values] for one in curve.curves] == [[9, 9, 1]] * 2


def test_hosts_that_lack_a_load_are_left_out_of_the_whole_curve():
    assert places.shared_hosts({1: {"A": "abc", "B": "abcd"}, 4: {"A": "ab", "B": "abc"}}) == {1: {"a", "b"}, 4: {"a", "b"}}
    assert places.shared_hosts({1: {"A": "abc", "B": "abc"}, 4: {"A": "a", "B": "ab"}}) == {1: {"a", "b", "c"}, 4: {"a"}}
    assert places.shared_hosts({1: {"A": "ab", "B": "cd"}}) == {1: set()}


def test_cells_that_a_variant_lacks_are_not_part_of_a_median():
    measured = at_loads("node1", "none", {1: 100, 4: 300}) + at_loads("node1", "writeback", {1: 90, 4: 270})
    measured += [measurement("node1", "none", "rate-1", direction="read", rw="randread", bs="4096", iodepth=1, iops=10)]
    [curve] = analysed(measured).curves
    assert [[value.iops for value in one.values] for one in curve.curves] == [[100, 300], [90, 270]]


def test_classes_are_divided_by_what_was_measured():
    hosts = [f"node{number:02}" for number in range(20)]
    measured = [measurement(host, cell=f"cell{place}") for number, host in enumerate(hosts) for place in range(max(number - 9, 1))]
    parts = places.parts_of([hosts], measured)
    assert len(parts) == 8 and sorted(host for part in parts for host in part) == hosts
    assert parts[0] == tuple(hosts[:11])


def test_distributions_of_a_campaign_are_of_the_hosts_with_every_variant(tmp_path):
    three = write_campaign(tmp_path / "three", 3, cells=28, seconds=15)
    shutil.rmtree(three / "host0002" / "writeback")
    two = write_campaign(tmp_path / "two", 2, cells=28, seconds=15)
    found, expected = (write.analysed(folder, analysis.Options(host_class=("fio",)), fresh=True) for folder in (three, two))
    assert {(one.hosts, one.of, one.is_shared) for one in found.distributions} == {(2, 3, True)}
    assert [(one.variant, one.cell, one.values) for one in found.distributions] == [(one.variant, one.cell, one.values) for one in expected.distributions]
    # The host that lacks a variant has drives of its own, and with them curves of its own.
    latencies = [
        {one.workload: [value.latency for curve in one.curves for value in curve.values] for one in of.curves if len(one.curves) > 1}
        for of in (found, expected)
    ]
    assert latencies[0] == latencies[1] != {}
