# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verb ``results`` on the controller."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.cachefleet.storage.plugins.action import results as results_action
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

CELL = "host0000/writethrough/randread-4k-qd1/1"


@pytest.fixture
def campaign(tmp_path):
    return write_campaign(tmp_path / "synthetic", 1, cells=2, seconds=2)


@pytest.fixture
def run():
    def ran(path, *, check_mode=False, **args):
        return made_action(results_action, {"path": str(path), **args}, warnings, check_mode=check_mode).run(task_vars={})

    warnings = ran.warnings = []
    return ran


def test_tables_are_rebuilt(campaign, run):
    would = run(campaign, check_mode=True)
    assert (would["changed"], would["written"], (campaign / "tables").exists()) == (True, ["host0000"], False)
    assert run(campaign)["changed"] is True
    again = run(campaign)
    assert (again["changed"], again["written"], again["unchanged"], again["problems"]) == (False, [], 1, [])
    assert run(campaign, force=True)["written"] == ["host0000"]


def test_check_fails_with_names_of_damaged_and_missing_cells(campaign, run):
    assert run(campaign, operation="check")["states"] == {"ok": 2}
    assert run.warnings[-1].endswith("every file is as it was measured: 2 ok.")
    shutil.rmtree(campaign / CELL)
    missing = run(campaign, operation="check")
    assert missing["failed"] and f"1 cell is missing ({CELL}: no result came from this host)" in missing["msg"] and "allow_missing: true" in missing["msg"]
    assert "failed" not in run(campaign, operation="check", allow_missing=True)
    (campaign / "host0000/writeback/randread-4k-qd1/1/job.fio").write_text("other")
    damaged = run(campaign, operation="check", allow_missing=True)
    assert damaged["failed"] and "1 cell is damaged (host0000/writeback/randread-4k-qd1/1: the SHA-256 of job.fio" in damaged["msg"]
    assert json.loads(json.dumps(damaged))["damaged"][0]["cell"] == "host0000/writeback/randread-4k-qd1/1"


def test_campaigns_are_merged(campaign, run, tmp_path):
    other = write_campaign(tmp_path / "other", [1], cells=2, seconds=2)
    (other / "host0001/writeback/randread-4k-qd1/1/job.fio").write_text("damaged")
    found = run(tmp_path / "both", operation="merge", sources=[str(campaign), str(other)])
    assert (found["changed"], len(found["copied"]), found["conflicts"]) == (True, 3, [])
    assert "is damaged and was not merged" in run.warnings[0]
    assert run.warnings[1].endswith("both: 3 cells copied, 0 replaced, 0 there already.")
    refused = run(tmp_path / "both", operation="merge")
    assert refused["failed"] and "There is nothing to merge" in refused["msg"]


def test_paths_below_the_home_folder_are_expanded(campaign, run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert run("~/both", operation="merge", sources=["~/synthetic"])["path"] == str(tmp_path / "both")
    assert run("~/both", operation="check")["states"] == {"ok": 2}
    assert run("~/both", operation="export", file="~/all.ndjson")["file"] == str(tmp_path / "all.ndjson")
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(("kind", "name"), [("ndjson", "results.ndjson"), ("openmetrics", "results.prom"), ("influx", "results.lp")])
def test_export_updates_the_tables_first(campaign, run, kind, name):
    would = run(campaign, check_mode=True, operation="export", format=kind)
    assert would["changed"] and not (campaign / "reports").exists()
    found = run(campaign, operation="export", format=kind)
    assert found["file"] == str(campaign / "reports" / name)
    assert found["lines"] == len((campaign / "reports" / name).read_text().splitlines()) > 1
    assert run(campaign, operation="export", format=kind)["changed"] is False


def test_invalid_input_fails_with_one_sentence(run, tmp_path):
    assert "that folder does not exist" in run(tmp_path / "nothing")["msg"]
    found = run(tmp_path / "nothing", operation="check")
    assert found["failed"] and "that folder does not exist" in found["msg"]
