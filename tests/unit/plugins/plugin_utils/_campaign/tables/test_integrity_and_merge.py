# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a campaign is whole, and campaigns of several controllers in one folder."""

from __future__ import annotations

import json
import shutil

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import merge as merging
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.merge import merge
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.integrity import check
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import change, write_campaign

CELL = "writethrough/randread-4k-qd1/1"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    base = tmp_path_factory.mktemp("results")
    write_campaign(base / "one", [0, 1], cells=4, seconds=2, campaign="one")
    write_campaign(base / "two", [1, 2], cells=4, seconds=2, campaign="two")
    return base


@pytest.fixture
def results(made, tmp_path):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def everything(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def cells(folder):
    return {f"{record.host}/{record.key}": record.state for record in store.load_campaign(folder).cells}


# ---------------------------------------------------------------------------------------------------------------------
# Integrity


def test_complete_campaign(results):
    ingest(results / "one", workers=1)
    found = check(results / "one")
    assert (found.states, found.damaged, found.missing, found.stale, found.doubled, found.left_out) == ({"ok": 8}, (), (), (), (), ())


def test_damaged_and_missing_cells_are_named(results):
    folder = results / "one"
    (folder / "host0000" / CELL / "job.fio").write_text("[global]\n")
    (folder / "host0001" / CELL / "fio.json.gz").unlink()
    shutil.rmtree(folder / "host0000/writeback/randread-4k-qd1")
    (folder / "host0001/writeback/randread-4k-qd1/1/meta.json").write_text("{")
    found = check(folder)
    assert found.states == {"ok": 4, "failed": 3, "missing": 1}
    assert [(trouble.cell, trouble.problem) for trouble in found.missing] == [("host0000/writeback/randread-4k-qd1/1", "no result came from this host")]
    reported = {trouble.cell: trouble.problem for trouble in found.damaged}
    assert reported.keys() == {f"host0000/{CELL}", f"host0001/{CELL}", "host0001/writeback/randread-4k-qd1/1"}
    assert "SHA-256 of job.fio" in reported[f"host0000/{CELL}"]
    assert "fio.json.gz is missing" in reported[f"host0001/{CELL}"]
    assert "is not JSON" in reported["host0001/writeback/randread-4k-qd1/1"]


def test_tables_not_matching_the_files_are_reported(results):
    ingest(results / "one", workers=1)
    change(results / "one/host0001" / CELL, state="noisy")
    assert check(results / "one").stale == ("host0001",)


def test_rows_written_by_two_writers_are_reported(results):
    shared = results / "shared"
    ingest(results / "one", shared, workers=1)
    (results / "one/campaign.json").write_text(json.dumps({"schema": 1, "campaign": "one", "created": "another day"}))
    ingest(results / "one", shared, workers=1)
    assert check(results / "one", shared).doubled == ("host0000", "host0001")


# ---------------------------------------------------------------------------------------------------------------------
# Merging


def test_campaigns_of_two_controllers_are_merged(results):
    shutil.rmtree(results / "two/host0001")
    before = everything(results / "one"), everything(results / "two")
    found = merge([results / "one", results / "two"], results / "both")
    assert (len(found.copied), found.replaced, found.kept, found.conflicts, found.damaged) == (12, (), 0, (), ())
    assert cells(results / "both") == {**cells(results / "one"), **cells(results / "two")}
    reported = json.loads((results / "both/campaign.json").read_text())
    assert (reported["campaign"], reported["merged_from"], reported["created"]) == ("both", ["one", "two"], "2026-11-22T06:00:00.000000Z")
    assert (everything(results / "one"), everything(results / "two")) == before
    assert not [path for path in (results / "both").iterdir() if path.name.startswith(".")]
    assert len(ingest(results / "both", workers=1).written) == 3


def test_no_change_on_second_merge(results):
    shutil.rmtree(results / "two/host0001")
    merge([results / "one", results / "two"], results / "both")
    before = everything(results / "both")
    found = merge([results / "one", results / "two"], results / "both")
    assert (found.changed, found.kept) == (False, 12)
    assert everything(results / "both") == before


def test_dry_run_merges_nothing(results):
    assert merge([results / "one"], results / "both", dry_run=True).changed
    assert not (results / "both").exists()


def test_conflicting_results_of_one_cell_are_refused_and_named(results):
    change(results / "two/host0001" / CELL, notes=["other"])
    (results / "two/host0001" / CELL / "job.fio").write_text("[global]\nrw=read\n")
    change(results / "two/host0001" / CELL)
    with pytest.raises(BadInput, match=rf"1 cells have two different results: host0001/{CELL}. Nothing was merged.*conflicts: keep"):
        merge([results / "one", results / "two"], results / "both")
    assert not (results / "both").exists()
    found = merge([results / "one", results / "two"], results / "both", keep_conflicts=True)
    assert found.conflicts == (f"host0001/{CELL}",)
    assert everything(results / "both/host0001" / CELL) == everything(results / "one/host0001" / CELL)


def test_measured_cell_replaces_one_without_figures_only(results):
    place = results / "one/host0001" / CELL
    change(place, state="failed", summary=None, reason="no device")
    (place / "job.fio").write_text("[global]\n")
    change(place)
    found = merge([results / "two"], results / "one")
    assert f"host0001/{CELL}" in found.replaced
    assert cells(results / "one")[f"host0001/{CELL}"] == "ok"
    change(results / "two/host0002" / CELL, state="interrupted", summary=None)
    assert merge([results / "two"], results / "one").replaced == ()
    assert cells(results / "one")[f"host0002/{CELL}"] == "ok"


def test_damaged_cells_are_not_copied_and_stay_missing(results):
    (results / "one/host0000" / CELL / "job.fio").write_text("changed")
    found = merge([results / "one"], results / "both")
    assert [name.partition(" of ")[0] for name in found.damaged] == [f"host0000/{CELL}"]
    assert cells(results / "both")[f"host0000/{CELL}"] == "missing"


def test_plans_are_merged(results):
    shutil.rmtree(results / "one/host0001" / CELL)
    path = results / "two/host0001/writethrough/plan.json"
    plan = json.loads(path.read_text())
    path.write_text(json.dumps({**plan, "created": "2026-11-01", "cells": {"randread-4k-qd1": [2]}, "patterns": []}))
    shutil.rmtree(results / "two/host0001/writethrough/randread-4k-qd1")
    merge([results / "one", results / "two"], results / "both", keep_conflicts=True)
    joined = json.loads((results / "both/host0001/writethrough/plan.json").read_text())
    assert (joined["cells"]["randread-4k-qd1"], joined["created"], joined["campaign"]) == ([1, 2], "2026-11-01", "both")


@pytest.mark.parametrize(
    "plan",
    ['{"cells": [1]}', '{"cells": {"a": 5}}', '{"cells": {"a": [[]]}}', '{"cells": {}, "patterns": 5}', '{"cells": {}, "patterns": [{}]}', "[" * 5000],
)
def test_hostile_plan_does_not_stop_a_merge(results, plan):
    (results / "two/host0001/writethrough/plan.json").write_text(plan)
    found = merge([results / "one", results / "two"], results / "both", keep_conflicts=True)
    assert found.copied and cells(results / "both")[f"host0000/{CELL}"] == "ok"


def test_stopped_merge_leaves_no_partial_cell(results, monkeypatch):
    calls = []
    real = merging.sync_folder

    def full(folder):
        real(folder)
        calls.append(folder)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(merging, "sync_folder", full)
    with pytest.raises(ResultsError, match="became full while merging campaigns"):
        merge([results / "one"], results / "both")
    assert sorted(set(cells(results / "both").values())) == ["missing", "ok"]
    assert not [path for path in (results / "both").iterdir() if path.name.startswith(".")]
    monkeypatch.undo()
    assert len(merge([results / "one"], results / "both").copied) == 5


@pytest.mark.parametrize(
    ("sources", "into", "message"),
    [([], "both", "There is nothing to merge"), (["one"], "one", "is both a source and the destination"), (["nothing"], "both", "that folder does not exist")],
)
def test_invalid_merges_are_rejected(results, sources, into, message):
    with pytest.raises((BadInput, ResultsError), match=message):
        merge([results / source for source in sources], results / into)
