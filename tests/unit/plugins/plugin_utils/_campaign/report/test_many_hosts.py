# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the terminal shows of many hosts: the same sums from the tables as from the files, and few lines."""

from __future__ import annotations

import json
import shutil

import pytest

for library in ("numpy", "scipy", "duckdb", "ruptures"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.overview import _by_cell, _median_rows, overview_of_tables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import aggregate, table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

KEY = ("variant", "cell", "repeat", "direction")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Randrw, randwrite with fdatasync, and reads, on seven hosts."""
    folder = write_campaign(tmp_path_factory.mktemp("results") / "seven", 7, cells=28, seconds=15)
    ingest(folder)
    return folder


def changed(folder, where, **changes):
    path = folder / where / "meta.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def by_key(sums):
    return {tuple(getattr(one, name) for name in KEY): one for one in sums}


def test_aggregates_match_those_of_the_files(measured):
    from_files = by_key(aggregate.aggregates_of(CampaignFiles(store.load_campaign(measured))))
    fleet = overview_of_tables(measured, "synthetic")
    from_tables = by_key(fleet.aggregates)
    assert from_tables.keys() == from_files.keys()
    assert len(from_tables) > 14
    for key, one in from_tables.items():
        assert one.iops == pytest.approx(from_files[key].iops)
        assert one.bandwidth == pytest.approx(from_files[key].bandwidth)
        assert (len(one.hosts), one.planned, one.pro_rata) == (7, 7, ())
    rows = {(row.variant, row.cell, row.direction): row for row in fleet.rows if row.host == "all 7 hosts"}
    for row in aggregate.rows_of(list(from_files.values())):
        own = rows[row.variant, row.cell, row.direction]
        assert (own.latency, own.synced, own.state, own.runs) == (row.latency, row.synced, row.state, row.runs)


def test_each_cell_has_a_total_and_a_median_line(measured):
    fleet = overview_of_tables(measured, "synthetic")
    # Hosts with other drives have a line of their own.
    assert {row.host for row in fleet.rows} == {
        "all 7 hosts", "median of 3, INTEL SSDSC2BB080G4", "median of 2, SAMSUNG MZ7LH960", "median of 2, MICRON 5300 MTFDDAK"
    }  # fmt: skip
    text = table.render(fleet.campaign, fleet.rows, fleet.ratios, {}, fleet.notes)
    assert "host0003" not in text
    assert "7 hosts: lines are of all of them" in text
    assert sum(row.host.startswith("median of 3") for row in fleet.rows) == text.count("all 7 hosts") == len(fleet.aggregates)
    assert "196 cells: 196 ok" in text
    assert {(ratio.host, ratio.baseline, ratio.variant) for ratio in fleet.ratios} == {("7 hosts", "writethrough", "writeback")}
    assert all(ratio.ratio == pytest.approx(1.4, rel=0.05) and ratio.note.startswith("better, ") for ratio in fleet.ratios)


def test_hosts_measured_at_different_times_are_not_added(measured, tmp_path):
    copy = shutil.copytree(measured, tmp_path / "apart")
    where = "host0003/writeback/randread-4k-qd1/1"
    meta = json.loads((copy / where / "meta.json").read_text())
    changed(copy, where, io_start=meta["io_start"] + 3600, io_end=meta["io_end"] + 3600)
    changed(copy, "host0005/writethrough/randread-4k-qd1/1", state="failed", reason="fio ended with status 1")
    ingest(copy)
    fleet = overview_of_tables(copy, "synthetic")
    sums = by_key(fleet.aggregates)
    assert sums["writeback", "randread-4k-qd1", 1, "read"].iops is None
    one = sums["writethrough", "randread-4k-qd1", 1, "read"]
    assert (len(one.hosts), one.planned) == (6, 7)
    notes = " ".join(fleet.notes)
    assert "Not added up, for the hosts did not measure at the same time: randread-4k-qd1/1." in notes
    assert "Not every host or target is in the sum of: randread-4k-qd1 (6 of 7)." in notes
    assert table.troubles(fleet.campaign, {}) == ["host0005 writethrough randread-4k-qd1/1: failed: fio ended with status 1"]


def test_hosts_sharing_an_array_have_a_line(measured, tmp_path):
    copy = shutil.copytree(measured, tmp_path / "groups")
    for number in range(7):
        for variant in ("writeback", "writethrough"):
            plan = {"schema": 1, "cells": {}, "group": "left" if number < 3 else "right"}
            (copy / f"host{number:04d}" / variant / "plan.json").write_text(json.dumps(plan))
    ingest(copy)
    sums = overview_of_tables(copy, "synthetic").aggregates
    of = {one.group: one for one in sums if one.cell == "randread-4k-qd1" and one.variant == "writeback"}
    assert {group: len(one.hosts) for group, one in of.items()} == {"": 7, "left": 3, "right": 4}
    assert of["left"].iops + of["right"].iops == pytest.approx(of[""].iops)


@pytest.fixture
def several_targets(measured, tmp_path):
    """Each host measured one cell on two targets at once."""
    copy = shutil.copytree(measured, tmp_path / "targets")
    for number in range(7):
        for variant in ("writeback", "writethrough"):
            where = f"host{number:04d}/{variant}"
            plan = json.loads((copy / where / "plan.json").read_text())
            repeats = plan["cells"].pop("randread-4k-qd1")
            (copy / where / "randread-4k-qd1").rename(copy / where / "randread-4k-qd1.sda")
            shutil.copytree(copy / where / "randread-4k-qd1.sda", copy / where / "randread-4k-qd1.sdb")
            for target in ("sda", "sdb"):
                cell = f"randread-4k-qd1.{target}"
                for repeat in repeats:
                    reported = {"cell": cell, "target": {"path": f"/dev/{target}"}, "step": repeat, "order_sha256": "5" * 64}
                    changed(copy, f"{where}/{cell}/{repeat}", **reported)
                plan["cells"][cell] = repeats
            (copy / where / "plan.json").write_text(json.dumps(plan))
    return copy


def test_targets_of_all_hosts_are_added_as_in_the_files(several_targets):
    ingest(several_targets)
    campaign = store.load_campaign(several_targets)
    assert not [record.reason for record in campaign.cells if record.state != "ok"]
    from_files = by_key(one for one in aggregate.aggregates_of(CampaignFiles(campaign)) if one.planned > 1)
    fleet = overview_of_tables(several_targets, "synthetic")
    from_tables = by_key(fleet.aggregates)
    assert from_tables.keys() == from_files.keys()
    assert ("writeback", "randread-4k-qd1", 1, "read") in from_tables
    for key, one in from_tables.items():
        file = from_files[key]
        assert (one.iops, one.bandwidth) == (pytest.approx(file.iops), pytest.approx(file.bandwidth))
        assert (one.hosts, one.planned, one.targets, one.added, one.label) == (file.hosts, file.planned, file.targets, file.added, file.label)
    rows = {(row.host, row.variant, row.cell, row.direction): row for row in fleet.rows}
    for row in aggregate.rows_of(list(from_files.values())):
        own = rows[row.host, row.variant, row.cell, row.direction]
        assert (own.latency, own.synced, own.state, own.runs) == (row.latency, row.synced, row.state, row.runs)
    assert rows["all 14 targets", "writeback", "randread-4k-qd1", "read"].latency["p50"] is not None


def test_failed_target_is_reported_as_missing_in_the_total(several_targets):
    changed(several_targets, "host0002/writeback/randread-4k-qd1.sdb/1", state="failed", reason="fio ended with status 1")
    ingest(several_targets)
    fleet = overview_of_tables(several_targets, "synthetic")
    one = by_key(fleet.aggregates)["writeback", "randread-4k-qd1", 1, "read"]
    assert (len(one.hosts), one.planned, one.targets, one.added, one.is_partial) == (7, 7, 14, 13, True)
    assert "Not every host or target is in the sum of: randread-4k-qd1 (13 of 14) and randread-4k-qd1.sdb (6 of 7)." in " ".join(fleet.notes)
    assert {row.state for row in fleet.rows if row.host == "all 14 targets" and row.variant == "writeback"} == {"failed"}


@pytest.mark.parametrize(("loud", "state"), [(1, "ok"), (20, "noisy")])
def test_line_of_many_hosts_is_noisy_if_the_typical_host_is(measured, loud, state):
    rates = {number: (100.0, 150.0) if number < loud else (100.0, 101.0) for number in range(25)}
    points = points_of(measurement(f"host{number}", "none", repeat=repeat, iops=rates[number][repeat - 1]) for number in rates for repeat in (1, 2))
    rows = list(_median_rows(_by_cell(points)))
    assert {row.state for row in rows} == {state}
    fleet = overview_of_tables(measured, "synthetic")
    text = " ".join(table.render(fleet.campaign, rows, [], {}, ()).split())
    assert ("Noisy: the repeats of 1 of 1 rows vary" in text) == (state == "noisy")
    assert ("an idle host is needed" in text) == (state == "noisy")
