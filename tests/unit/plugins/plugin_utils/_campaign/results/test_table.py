# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table as a user sees it."""

from __future__ import annotations

import datetime

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.archive import receive
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import SWEEP_FOLDER
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import overview
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import compare, table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import rows_of
from ansible_collections.cachefleet.storage.tests.unit.support.archives import CAMPAIGN, JOB, cell, pack, summary

NOW = datetime.datetime(2026, 11, 21, 14, 3, tzinfo=datetime.timezone.utc)
DURABLE_JOB = JOB.replace("direct=1", "direct=1\nfdatasync=1")


def rendered(campaign, **options):
    loaded = store.load_campaign(campaign)
    measurements = CampaignFiles(loaded).measurements
    rows = rows_of(measurements)
    return table.render(loaded, rows, compare.ratios_of(loaded.variants, rows, measurements), **options)


def bring(campaign, tmp_path, host, variant, *cells, planned=(), later=0):
    names = {(name.split("/")[1], int(name.split("/")[2])) for files in cells for name in files}
    store.write_plan(campaign, host, variant, names | set(planned), now=NOW + datetime.timedelta(minutes=later))
    if cells:
        receive(pack(tmp_path / "x.tar", *cells), campaign, host, store.expected_cells(campaign, host))


@pytest.fixture
def campaign(tmp_path):
    return store.open_campaign(tmp_path / "results", CAMPAIGN, now=NOW)[0]


GOLDEN = """\
Campaign 2026-11-21T1403Z

HOST   VARIANT  CELL                     IOPS  MB/s      p50      p99     p99.9  RUNS  SPREAD  STATE    VERDICT
node1  before   randwrite-4k-bound      2,400  9.83  400 µs   2.5 ms   45.1 ms    1/1       -  ok       durable
node1  before   randwrite-4k-fdatasync    154  0.63  800 µs*  -         -         2/2     5 %  ok       durable
node1  after    randwrite-4k-bound          -  -       -      -         -         0/1       -  failed   at_risk
node1  after    randwrite-4k-fdatasync  1,840  7.54  800 µs*  5   ms*  90.2 ms*   1/1       -  ok       durable
node2  before   randwrite-4k-bound          -  -       -      -         -         0/1       -  missing  -
* latency of the sync that makes the write durable, not of the write

IOPS against variant before (median ratio of the repeats)
HOST   CELL                    VARIANT  RATIO  NOTE
node1  randwrite-4k-fdatasync  after     12 x  2 and 1 repeats: fewer than 4, no significance claimed

Not ok:
  node1 after randwrite-4k-bound/1: failed: fio ended with exit status 1: no space
  node2 before randwrite-4k-bound/1: missing: This host could not be reached

6 cells: 4 ok, 1 failed, 1 missing. Results: RESULTS/2026-11-21T1403Z"""


def test_complete_report(campaign, tmp_path):
    durable, bound = "randwrite-4k-fdatasync", "randwrite-4k-bound"
    few = {"job": DURABLE_JOB, "numbers": summary(150.0, 900, sync=True)}
    bring(
        campaign,
        tmp_path,
        "node1",
        "before",
        cell(durable, **few),
        cell(durable, repeat=2, job=DURABLE_JOB, numbers=summary(157.5, 900, sync=True)),
        cell(bound, numbers=summary(2400.0)),
    )
    fast = cell(durable, variant="after", job=DURABLE_JOB, numbers=summary(1840.0, sync=True))
    lost = cell(bound, variant="after", state="failed", reason="fio ended with exit status 1:\x1b[31m no space", numbers={}, verdict=("at_risk", "at_risk"))
    bring(campaign, tmp_path, "node1", "after", fast, lost, later=10)
    bring(campaign, tmp_path, "node2", "before", planned=[(bound, 1)])
    text = rendered(campaign, notes={"node2": "This host could not be reached"})
    assert text == GOLDEN.replace("RESULTS", str(campaign.parent))
    assert max(len(line) for line in text.splitlines() if str(campaign) not in line) <= table.WIDTH


def test_mixed_load_is_labelled_by_direction(campaign, tmp_path):
    mixed = {**summary(700.0, direction="read"), "write": summary(300.0)["write"]}
    bring(campaign, tmp_path, "node1", "before", cell("mix", numbers=mixed))
    text = rendered(campaign)
    assert "mix (read)" in text
    assert "mix (write)" in text


def test_long_names_are_abbreviated_in_the_middle(campaign, tmp_path):
    host, variant, name = "storage-rack-17-node-042.example.org", "raid-controller-on-drive-off", "randwrite-4k-fdatasync-iodepth-16-numjobs-64"
    bring(campaign, tmp_path, host, variant, cell(name, variant=variant, host=host, verdict=("durable", "at_risk")))
    lines = rendered(campaign).splitlines()
    row = next(line for line in lines if "durable>at_risk" in line)
    assert len(row) <= table.WIDTH
    assert row.startswith("storag")
    assert "~" in row


def test_width_is_that_of_the_terminal_and_unlimited_for_files(campaign, tmp_path):
    host = "storage-rack-17-node-042.example.org"
    bring(campaign, tmp_path, host, "before", *(cell(f"randwrite-4k-iodepth-{depth}", host=host) for depth in (1, 2)))
    narrow, wide = ([line for line in rendered(campaign, width=width).splitlines() if line.startswith(("HOST", "stor"))] for width in (100, table.UNLIMITED))
    assert max(map(len, narrow)) <= 100
    assert all(line.startswith(host) for line in wide[1:])


def test_abbreviated_names_stay_distinct(campaign, tmp_path):
    names = [f"randwrite-4k-fdatasync-iodepth-{depth:02d}-numjobs-on-the-whole-device" for depth in range(4)]
    bring(campaign, tmp_path, "node1", "before", *map(cell, names))
    shown = [line.split()[0] for line in rendered(campaign, width=60).splitlines() if line.startswith("rand")]
    assert len(shown) == len(set(shown)) == 4, shown


def test_values_common_to_all_lines_are_printed_once(campaign, tmp_path):
    bring(campaign, tmp_path, "node1", "before", *(cell(f"c{number}") for number in range(3)))
    text = rendered(campaign)
    assert "VARIANT" not in text and "STATE" not in text
    assert "On every line: host node1, variant before, runs 1/1, state ok, verdict durable." in text


def test_row_limit_is_applied_and_omitted_rows_are_counted(campaign, tmp_path):
    bring(campaign, tmp_path, "node1", "before", *(cell(f"c{number}") for number in range(5)))
    text = rendered(campaign, most_rows=2)
    assert sum(line.startswith("node1") for line in text.splitlines()) == 2
    assert "and 3 more rows: -e report_rows=all prints them" in text


@pytest.fixture
def rack(campaign, tmp_path):
    for host in ("node2", "node10", "node1"):
        for place, variant in enumerate(("before", "after")):
            cells = [
                cell(f"randwrite-4k-iodepth-{depth}", repeat=repeat, variant=variant, host=host, numbers=summary(depth * (100.0 + 900 * place) * rate))
                for depth in (1, 4, 16)
                for repeat, rate in enumerate((1.0, 1.0, 1.3 if host == "node10" and depth == 4 else 1.01), start=1)
            ]
            bring(campaign, tmp_path, host, variant, *cells, later=10 * place)
    return campaign


def shown_of(campaign, **options):
    seen = overview.overview_of_files(store.load_campaign(campaign))
    return table.render(seen.campaign, seen.shown, seen.ratios, {}, seen.notes, seen.answers, **options)


@pytest.mark.parametrize("width", [60, 80, 99])
def test_host_is_a_heading_in_a_narrow_terminal_and_no_line_is_wider(rack, width):
    lines = shown_of(rack, width=width).splitlines()
    assert [line for line in lines if line.startswith("node")] == ["node1", "node2", "node10"] * 2
    assert all(len(line) <= width for line in lines if str(rack.parent) not in line), lines
    assert any(line.startswith("Not shown below 100 columns: p50") for line in lines) == (width < 99)


@pytest.mark.parametrize(("width", "shown"), [(150, "p50"), (52, "")])
def test_percentiles_that_no_row_has_are_no_columns_and_the_note_on_syncs_needs_a_latency(campaign, tmp_path, width, shown):
    few = {"job": DURABLE_JOB, "numbers": summary(150.0, 900, sync=True)}
    for variant in ("before", "after"):
        bring(campaign, tmp_path, "node1", variant, cell("randwrite-4k-fdatasync", variant=variant, **few))
    text = rendered(campaign, width=width)
    header = next(line for line in text.splitlines() if "IOPS" in line).split()
    assert [name for name in header if name.startswith("p")] == ([shown] if shown else [])
    assert "Not measured, or of too few I/Os: p99, p99.9." in " ".join(text.split())
    assert ("* latency of the sync" in text) == bool(shown)


def test_rows_are_in_natural_order_and_decimal_points_below_each_other(rack):
    lines = [line for line in shown_of(rack, width=150).splitlines() if line.startswith("node")][:18]
    assert [line.split()[0] for line in lines] == [name for name in ("node1", "node2", "node10") for _row in range(6)]
    assert [line.split()[2].rpartition("-")[2] for line in lines] == ["1", "4", "16"] * 6
    assert len({line.index(".") for line in lines if "." in line.split()[4]}) == 1


def test_noisy_rows_are_named_with_the_repeats_they_need(rack):
    text = " ".join(shown_of(rack, width=150).split())
    assert (
        "Noisy: the repeats of 2 of 18 rows vary by more than 5 % (standard deviation by mean), most those of node10 before randwrite-4k-iodepth-4: 16 %."
        in text
    )
    assert "A difference of 10 % needs 46 repeats: an idle host is needed, find what else runs there." in text and "_repeats=" not in text
    rows = overview.overview_of_files(store.load_campaign(rack)).rows
    assert [row.state for row in rows if row.host == "node10"] == ["ok", "noisy", "ok"] * 2


def measured(campaign, tmp_path, *rates):
    """What is said of one cell whose repeats have these IOPS."""
    bring(campaign, tmp_path, "node1", "before", *(cell("c", repeat=place, numbers=summary(rate)) for place, rate in enumerate(rates, 1)))
    return " ".join(rendered(campaign).split())


def test_noisy_repeats_are_added_for_a_difference_that_matters(campaign, tmp_path):
    said = "needs 10 repeats: measure the same suite and variants again, on idle hosts, with -e fio_benchmark_campaign="
    text = measured(campaign, tmp_path, 100.0, 107.0, 93.0, 107.0, 93.0)
    assert said in text and text.count("fio_benchmark_repeats=10.") == 1
    (campaign / "sweep").mkdir()
    assert "sweep_repeats=10." in rendered(campaign)


def test_repeats_that_are_enough_are_not_added(campaign, tmp_path):
    assert "A difference of 10 % needs 11 repeats, which were measured." in measured(campaign, tmp_path, *[107.0, 93.0] * 6)


def test_noise_that_repeats_do_not_end_is_said(campaign, tmp_path):
    text = measured(campaign, tmp_path, *(100.0 * repeat for repeat in range(1, 10)))
    assert "A difference of 10 % needs 545 repeats: an idle host is needed" in text and "fio_benchmark_repeats" not in text


def test_note_of_every_ratio_is_printed_once(rack):
    text = shown_of(rack, width=150)
    assert text.count("fewer than 4, no significance claimed") == 1
    assert "On every line: variant after, 3 and 3 repeats: fewer than 4, no significance claimed." in text


def test_escape_sequences_from_hosts_are_removed(campaign, tmp_path):
    evil = cell(state="failed", reason="\x1b[2J\x1b]0;owned\x07gone\nokay", verdict=("\x1b[31mdurable", "durable"), numbers={})
    bring(campaign, tmp_path, "node1", "before", evil)
    text = rendered(campaign, notes={"node1": "\x1b[5m"})
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "failed: gone okay" in text


def test_campaign_without_cells_is_reported(campaign):
    text = rendered(campaign)
    assert "Nothing was planned and nothing was measured" in text
    assert f"0 cells. Results: {campaign}" in text


def test_sweep_without_cells_does_not_blame_the_targets(campaign):
    (campaign / SWEEP_FOLDER).mkdir()
    text = rendered(campaign)
    assert "Nothing was measured." in text
    assert "fio_benchmark_targets" not in text


def test_host_failing_before_it_had_a_plan_is_named(campaign):
    assert "  node9: there is no suite named 'x'" in rendered(campaign, notes={"node9": "there is no suite named 'x'"})


def test_cells_with_the_same_reason_share_a_line(campaign, tmp_path):
    bring(campaign, tmp_path, "node1", "before", planned=[("a", number) for number in range(1, 8)])
    assert "node1 before a/1, a/2, a/3, a/4 and 3 more: missing: no result came from this host" in rendered(campaign)


def test_what_happened_to_a_cell_precedes_what_happened_to_its_host(campaign, tmp_path):
    bring(campaign, tmp_path, "node1", "before", planned=[("a", 1)])
    note = {"node1": "node1 is not restored"}
    assert "node1 before a/1: missing: node1 is not restored" in rendered(campaign, notes=note)
    (campaign / SWEEP_FOLDER).mkdir()
    (campaign / SWEEP_FOLDER / "node1.json").write_text('{"steps": {"before/1": {"state": "failed", "reason": "the disk is gone"}}}')
    assert "node1 before a/1: missing: the disk is gone" in rendered(campaign, notes=note)


@pytest.mark.parametrize(("count", "rest"), [(13, "and 1 more workload, in the report"), (15, "and 3 more workloads, in the report")])
def test_caveats_are_printed_however_many_workloads_there_are(tmp_path, count, rest):
    campaign = store.Campaign("c", tmp_path, (), (), ())
    text = table.render(campaign, [], [], answer=[f"workload {number}" for number in range(count)], caveats=["The CPU may have been the limit."])
    assert text.partition("Nothing was")[0].endswith(f"  workload 11\n  {rest}\n  The CPU may have been the limit.\n\n")
