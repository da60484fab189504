# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign's folder: where it may be, what is planned in it, and what is read back from it."""

from __future__ import annotations

import datetime
import json
import os
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.archive import receive
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import SWEEP_FOLDER, ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Pattern
from ansible_collections.cachefleet.storage.tests.unit.support.archives import CAMPAIGN, cell, pack
from ansible_collections.cachefleet.storage.tests.unit.support.campaigns import KEY, NOW, everything, take_in

# --- the controller's own troubles


def test_campaign_is_not_started_on_a_full_disk(tiny_disk):
    with pytest.raises(ResultsError, match=r"has .* free and a campaign needs 16 MiB"):
        store.open_campaign(tiny_disk, now=NOW)


def test_read_only_results_folder_is_reported_in_one_sentence(tiny_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with pytest.raises(ResultsError, match=r"cannot be written by user .*Read-only file system.*set fio_benchmark_results"):
        store.open_campaign(tiny_disk / "results", now=NOW)


def test_results_folder_without_permission_is_reported_in_one_sentence(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    tmp_path.chmod(0o555)
    with pytest.raises(ResultsError, match=r"Permission denied.*set fio_benchmark_results"):
        store.open_campaign(tmp_path / "results", now=NOW)
    with pytest.raises(ResultsError, match="Permission denied"):
        store.open_campaign(tmp_path / "results", now=NOW, dry_run=True)


@pytest.mark.parametrize("dry_run", [True, False])
def test_results_folder_that_is_a_file_is_reported_in_one_sentence(tmp_path, dry_run):
    (tmp_path / "results").write_text("x")
    with pytest.raises(ResultsError, match="cannot be written by user"):
        store.open_campaign(tmp_path / "results", now=NOW, dry_run=dry_run)


def test_dry_run_creates_nothing(tmp_path):
    folder, is_new = store.open_campaign(tmp_path / "results", label="x", now=NOW, dry_run=True)
    assert (folder.name, is_new, list(tmp_path.iterdir())) == ("2026-11-21T1403Z-x", True, [])


# --- campaigns and plans


def test_two_campaigns_in_one_minute_have_two_folders(tmp_path):
    assert [store.open_campaign(tmp_path, now=NOW)[0].name for _time in range(2)] == ["2026-11-21T1403Z", "2026-11-21T1403Z-2"]


def test_existing_named_campaign_is_reopened(tmp_path):
    assert [store.open_campaign(tmp_path, "mine", now=NOW) for _time in range(2)] == [(tmp_path / "mine", True), (tmp_path / "mine", False)]


@pytest.mark.parametrize("name", ["../x", "a/b", ".x"])
def test_campaign_name_with_path_is_rejected(tmp_path, name):
    with pytest.raises(BadInput, match="cannot be the name of a campaign"):
        store.open_campaign(tmp_path, name, now=NOW)


def test_plan_is_extended_and_never_shortened(campaign):
    assert store.write_plan(campaign, "node1", "before", [("other", 1)], now=NOW)
    assert not store.write_plan(campaign, "node1", "before", [("other", 1)], now=NOW)
    assert store.expected_cells(campaign, "node1").keys == {KEY, CellKey("before", "randwrite-4k", 2), CellKey("before", "other", 1)}


SEARCH = Pattern("randwrite-4k", (1,), "iodepth", 1, 64)
PROBE = CellKey("before", "randwrite-4k.iodepth-16", 1)


def test_probes_of_a_planned_search_are_optional(campaign):
    assert PROBE not in store.expected_cells(campaign, "node1")
    assert store.write_plan(campaign, "node1", "before", [("randwrite-4k", 1)], patterns=[SEARCH], now=NOW)
    assert not store.write_plan(campaign, "node1", "before", [("randwrite-4k", 1)], patterns=[SEARCH], now=NOW)
    assert not store.write_plan(campaign, "node1", "before", [("randwrite-4k", 1)], now=NOW)
    assert PROBE in store.expected_cells(campaign, "node1")
    assert CellKey("before", "randwrite-4k.iodepth-65", 1) not in store.expected_cells(campaign, "node1")
    assert {record.key.cell for record in store.load_campaign(campaign).cells} == {"randwrite-4k"}


@pytest.mark.parametrize("patterns", ["x", {}, [1], [{"cell": "../x", "repeats": [1], "over": "", "first": 1, "last": 2}]])
def test_plan_with_invalid_searches_is_reported_in_one_sentence(campaign, patterns):
    path = campaign / "node1/before/plan.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "patterns": patterns}))
    with pytest.raises(ResultsError, match="does not contain the planned searches and rounds"):
        store.expected_cells(campaign, "node1")


def test_dry_run_of_a_plan_reports_changes_and_writes_nothing(campaign):
    assert store.write_plan(campaign, "node1", "after", [("x", 1)], now=NOW, dry_run=True)
    assert not store.write_plan(campaign, "node1", "before", [("randwrite-4k", 1)], now=NOW, dry_run=True)
    assert everything(campaign) == ["campaign.json", "node1/before/plan.json"]


# --- reading back


def test_planned_cells_without_result_are_missing(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    store.write_plan(campaign, "node2", "before", [("randwrite-4k", 1)], now=NOW)
    loaded = store.load_campaign(campaign)
    assert [(record.host, record.key.repeat, record.state) for record in loaded.cells] == [("node1", 1, "ok"), ("node1", 2, "missing"), ("node2", 1, "missing")]
    assert loaded.cells[1].path is None
    assert loaded.cells[0].job["bs"] == "4k"
    assert loaded.cells[0].verdicts == ("durable", "durable")


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ({"before/1": {"state": "failed", "reason": "/dev/vg0/x is mounted."}}, "/dev/vg0/x is mounted."),
        ({"before/1": {"state": "failed", "reason": "a\x1b[2J\nb"}}, "a"),
        ({"before/1": {"state": "done", "reason": "x"}, "before/2": {"state": "failed", "reason": "of another repeat"}}, "no result came from this host"),
        ({"before/1": {"state": "measuring", "reason": ""}}, "no result came from this host"),
        ({"before/1": "odd"}, "no result came from this host"),
        ([], "no result came from this host"),
    ],
)
def test_the_reason_of_a_missing_cell_is_what_happened_in_the_sweep(campaign, steps, reason):
    store.write_plan(campaign, "node2", "before", [("randwrite-4k", 1)], now=NOW)
    folder = campaign / SWEEP_FOLDER
    folder.mkdir()
    (folder / "node2.json").write_text(json.dumps({"schema": 1, "host": "node2", "steps": steps}))
    [record] = [one for one in store.load_campaign(campaign).cells if one.host == "node2"]
    assert record.state == "missing" and record.reason.startswith(reason) and "\n" not in record.reason
    (folder / "node2.json").write_text("{")
    assert [one.reason for one in store.load_campaign(campaign).cells if one.host == "node2"] == ["no result came from this host"]


def test_variants_are_in_planned_order(campaign):
    store.write_plan(campaign, "node1", "after", [("randwrite-4k", 1)], now=NOW + datetime.timedelta(minutes=5))
    assert store.load_campaign(campaign).variants == ("before", "after")


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("fio.json.gz", b"other numbers", "the SHA-256 of fio.json.gz"),
        ("extra.log.gz", b"x", "extra.log.gz is not listed"),
        ("meta.json", b"no", "is not JSON"),
        ("meta.json", json.dumps({"schema": 1, "host": "node9", "files": {}, "state": "ok"}).encode(), "is not listed in its meta.json"),
    ],
)
def test_modified_cell_is_failed_and_has_no_figures(campaign, tmp_path, name, content, why):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    (campaign / "node1/before/randwrite-4k/1" / name).write_bytes(content)
    record = store.load_campaign(campaign).cells[0]
    assert (record.state, record.meta) == ("failed", {})
    assert why in record.reason


def test_cell_moved_to_another_host_is_failed(campaign, tmp_path):
    take_in(pack(tmp_path / "a.tar", cell()), campaign)
    (campaign / "node1").rename(campaign / "node7")
    assert "belongs to another cell" in store.load_campaign(campaign).cells[0].reason


def test_links_and_invalid_names_are_reported_and_not_followed(campaign, tmp_path):
    (campaign / "linked").symlink_to("/etc")
    (campaign / "node1/before/randwrite-4k").mkdir()
    (campaign / "node1/before/randwrite-4k/first").mkdir()
    problems = store.load_campaign(campaign).problems
    assert any("linked is left out" in problem for problem in problems)
    assert any("first is left out" in problem for problem in problems)


@pytest.mark.parametrize("name", ["sweep", "recommended"])
def test_host_with_the_name_of_a_folder_is_refused_and_reported_if_it_is_there(campaign, name):
    with pytest.raises(BadInput, match=f"'{name}' cannot be the name of a host.* not one of .*{name}.* Give the host another name"):
        store.write_plan(campaign, name, "before", [("randwrite-4k", 1)], now=NOW)
    # A variant may be called so.
    store.write_plan(campaign, "node1", name, [("randwrite-4k", 1)], now=NOW)
    assert store.load_campaign(campaign).problems == ()
    (campaign / "node1").rename(campaign / name)
    assert [f"{name} has results of a host with this name" in problem for problem in store.load_campaign(campaign).problems] == [True]


def test_campaign_folders_can_be_merged_by_copying(tmp_path):
    for host in ("node1", "node2"):
        folder, _is_new = store.open_campaign(tmp_path / host, CAMPAIGN, now=NOW)
        store.write_plan(folder, host, "before", [("randwrite-4k", 1)], now=NOW)
        archive = pack(tmp_path / f"{host}.tar", cell(host=host))
        receive(archive, folder, host, store.expected_cells(folder, host))
    subprocess.run(["cp", "-r", str(tmp_path / "node2" / CAMPAIGN / "node2"), str(tmp_path / "node1" / CAMPAIGN)], check=True)
    assert [record.state for record in store.load_campaign(tmp_path / "node1" / CAMPAIGN).cells] == ["ok", "ok"]


def test_folder_without_campaign_is_reported_in_one_sentence(tmp_path):
    with pytest.raises(ResultsError, match="does not exist"):
        store.load_campaign(tmp_path / "nowhere")
    with pytest.raises(ResultsError, match="is not the folder of a campaign"):
        store.load_campaign(tmp_path)
