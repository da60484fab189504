# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The verbs report and compare, on folders as a campaign leaves them."""

from __future__ import annotations

import ast
import gzip
import hashlib
import json
import pathlib
import re

import jinja2
import pytest
import yaml

for library in ("numpy", "duckdb", "ruptures", "plotly"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.action import compare as compare_action
from ansible_collections.cachefleet.storage.plugins.action import report as report_action
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import write
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import overview
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep import state as states
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign


def run(module, check_mode=False, **args):
    printed = []
    return made_action(module, args, printed, check_mode=check_mode).run(task_vars={"inventory_hostname": "localhost"}), printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_campaign(tmp_path_factory.mktemp("results") / "2026-11-22T0600Z", 2, cells=6, seconds=20)


def test_snia_page_is_written_on_request(folder):
    result, printed = run(report_action, path=str(folder), files=["snia"])
    assert {name: path.rpartition("/")[2] for name, path in result["files"].items()} == {"snia": "snia.html", "snia_markdown": "snia.md"}
    assert "not recorded" in (folder / "reports" / "snia.md").read_text() and "snia.html" in printed[-1]


def test_files_are_written_on_request(folder):
    result, printed = run(report_action, path=str(folder), files=["html", "markdown", "csv"], prices=[{"price": 100}])
    assert result["changed"] is True
    assert result["answer"][0].endswith("Repeat at least 4 times: -e fio_benchmark_repeats=4.") or "shown to be better" in result["answer"][0]
    assert {name: path.rpartition("/")[2] for name, path in result["files"].items()} == {"html": "report.html", "markdown": "report.md", "csv": "report.csv"}
    assert "<!DOCTYPE html>" in (folder / "reports" / "report.html").read_text()[:300]
    assert printed[0].index("Answer:") < printed[0].index("HOST"), "the answer is first"
    assert result["answer"][0][:60] in printed[0]
    assert {row["baseline"] for row in result["ratios"]} == {re.search(r" (?:as|than) (\w+)", result["answer"][0])[1]}, "one baseline for all"
    again, _printed = run(report_action, path=str(folder))
    assert (again["changed"], again["files"], again["problems"]) == (False, {}, [])


def rewrite(place, name, content):
    """A file of a cell, with its hash."""
    (place / name).write_bytes(content)
    meta = json.loads((place / "meta.json").read_text())
    (place / "meta.json").write_text(json.dumps({**meta, "files": {**meta["files"], name: hashlib.sha256(content).hexdigest()}}))


def absurd(place, what):
    """Numbers that were never measured, in one cell."""
    meta = json.loads((place / "meta.json").read_text())
    if what == "rate":
        figures = {name: {**side, "iops": 2e18} if name == "read" else side for name, side in meta["summary"].items()}
        (place / "meta.json").write_text(json.dumps({**meta, "summary": figures}))
    elif what == "block":
        figures = {name: {**side, "iops": 1e15} if name == "read" else side for name, side in meta["summary"].items()}
        (place / "meta.json").write_text(json.dumps({**meta, "summary": figures}))
        rewrite(place, "job.fio", (place / "job.fio").read_bytes().replace(b"bs=64k", b"bs=1g"))
    elif what == "load":
        rewrite(place, "job.fio", re.sub(rb"iodepth=(\d+)\nnumjobs=1", rb"iodepth=\g<1>00000000\nnumjobs=2000000000", (place / "job.fio").read_bytes()))
    else:
        lines = "".join(f"{int(1000 * (meta['io_start'] + second))}, 900000000000000000, 0, 0, 0\n" for second in range(1, 13))
        rewrite(place, "series_iops.1.log.gz", gzip.compress(lines.encode()))
        rewrite(place, "series_iops.2.log.gz", gzip.compress(lines.encode()))


@pytest.mark.parametrize("what", ["rate", "block", "load", "series"])
def test_absurd_numbers_of_one_host_do_not_end_the_report_of_all(tmp_path, what):
    loads = [("randread", block, depth) for block in ("4k", "64k") for depth in (1, 16)]
    folder = write_campaign(tmp_path / "c", 2, cells=8, seconds=12, loads=loads)
    for place in (folder / "host0000").glob("*/*64k*/1"):
        absurd(place, what)
    result, printed = run(report_action, path=str(folder), files=["html", "markdown", "csv"])
    assert result.get("msg") is None
    assert sorted(result["files"]) == ["csv", "html", "markdown"] and "host0001" in printed[0]


def test_power_loss_tests_are_part_of_the_report(folder, tmp_path):
    host = {"host": "node1", "verdict": "durable", "sentence": "0 of 3 cuts lost anything.", "settings": {"sync": "fsync"}}
    hosts = [{**host, "host": one.name} for one in store.host_folders(folder, [])]
    (tmp_path / "power_loss.json").write_text(json.dumps({"schema": 1, "name": "t", "hosts": hosts}))
    result, _printed = run(report_action, path=str(folder), files=["markdown"], power_loss=[str(tmp_path)])
    assert "0 of 3 cuts lost anything." in pathlib.Path(result["files"]["markdown"]).read_text()
    result, _printed = run(report_action, path=str(folder), power_loss=[str(tmp_path / "nowhere")])
    assert result["failed"] is True and result["msg"].startswith("report_power_loss: ")


def test_the_playbook_writes_every_format_by_default(folder):
    """As the playbook calls the module when no variable is set."""
    collection = pathlib.Path(report_action.__file__).resolve().parents[2]
    [play] = yaml.safe_load((collection / "playbooks" / "report.yml").read_text())
    [task] = [task for task in play["tasks"] if "cachefleet.storage.report" in task]
    template = jinja2.Environment().from_string(task["cachefleet.storage.report"]["files"])
    formats = ast.literal_eval(template.render())
    assert sorted(formats) == sorted(write.FORMATS)
    for path in (folder / "reports").glob("report.*"):
        path.unlink()
    result, _printed = run(report_action, path=str(folder), files=formats)
    assert {path.name for path in (folder / "reports").iterdir() if path.stat().st_size} >= {"report.html", "report.md", "report.csv"}
    assert sorted(result["files"]) == ["csv", "html", "markdown"]


def test_many_hosts_are_printed_as_aggregates(tmp_path, monkeypatch):
    many = write_campaign(tmp_path / "many", 3, cells=2, seconds=12)
    monkeypatch.setattr(overview, "MANY", 2)
    monkeypatch.setattr(store, "load_campaign", lambda _path: pytest.fail("every file is read"))
    result, printed = run(report_action, path=str(many), files=["csv"], problems={"gone": "no route to it"})
    assert {row["host"].partition(",")[0] for row in result["rows"]} == {"all 3 hosts", "median of 1"}
    assert (result["states"], result["failed_cells"]) == ({"ok": 6}, ["gone: no route to it"])
    assert (many / "reports" / "report.csv").read_text().count("host0001") == 2
    assert "host0001" not in printed[0][printed[0].index("\nHOST") :], "the answer names classes of a few hosts"
    assert run(report_action, path=str(many), baseline="other")[0]["msg"].startswith("There is no variant 'other'")


@pytest.mark.parametrize("many", [20, 1])
def test_the_ratios_of_a_sweep_are_those_to_its_baseline(tmp_path, monkeypatch, many):
    campaign = write_campaign(tmp_path / "night", 2, cells=4, seconds=12)
    monkeypatch.setattr(overview, "MANY", many)
    assert {ratio["variant"] for ratio in run(report_action, path=str(campaign), files=[])[0]["ratios"]} == {"writeback"}
    states.save(campaign, states.HostState("host0000", "", "", {}, {}, {}, repeats=2, most_repeats=2, order=["writeback/1", "writethrough/1"]))
    assert {ratio["variant"] for ratio in run(report_action, path=str(campaign), files=[])[0]["ratios"]} == {"writethrough"}


@pytest.mark.parametrize("many", [20, 1])
def test_copy_of_a_campaign_has_one_name_in_all_outputs(tmp_path, monkeypatch, many):
    copy = write_campaign(tmp_path / "copy", 2, cells=2, seconds=12, campaign="nightly")
    monkeypatch.setattr(overview, "MANY", many)
    _result, printed = run(report_action, path=str(copy), files=["html", "markdown", "csv"])
    assert "Campaign nightly" in printed[0]
    assert (copy / "reports" / "report.md").read_text().startswith("# Campaign nightly\n")
    assert "<h1>Campaign nightly</h1>" in (copy / "reports" / "report.html").read_text()
    assert (copy / "reports" / "report.csv").read_text().splitlines()[1].startswith("nightly,")


def test_every_host_is_printed_and_returned_if_a_library_is_missing(tmp_path, monkeypatch):
    many = write_campaign(tmp_path / "many", 3, cells=2, seconds=12)
    monkeypatch.setattr(overview, "MANY", 2)

    def missing(*_args, **_named):
        raise LibraryMissing("it needs duckdb: run 'pip install duckdb'.")

    monkeypatch.setattr(report_action, "ingest", missing)
    monkeypatch.setattr(write, "ingest", missing)
    result, printed = run(report_action, path=str(many), files=["html"])
    assert (result["failed"], result["states"], len(result["rows"])) == (True, {"ok": 6}, 8)
    assert "host0001" in printed[0]
    assert printed[-1] == "No report was written: it needs duckdb: run 'pip install duckdb'.\n"
    assert result["failed_cells"] == []
    # As the playbooks do it if the user did not ask for files.
    result, printed = run(report_action, path=str(many), files=["html"], require_files=False)
    assert ("failed" in result, result["states"], result["files"], result["changed"]) == (False, {"ok": 6}, {}, False)
    assert printed[-1] == "No report was written: it needs duckdb: run 'pip install duckdb'.\n"
    # Without a table it is an error in any case.
    result, _printed = run(report_action, path=str(tmp_path / "missing"), files=["html"], require_files=False)
    assert result["failed"] is True


def test_check_mode_writes_nothing(tmp_path):
    copy = write_campaign(tmp_path / "c", 1, cells=2, seconds=12)
    result, _printed = run(report_action, check_mode=True, path=str(copy), files=["html"])
    assert (result["changed"], result["files"]) == (False, {})
    assert not (copy / "reports").exists()
    assert not (copy / "tables").exists()


@pytest.mark.parametrize("wrong", [{"latency_limit_ms": -1.0}, {"rows": -2}, {"prices": [{"price": 0}]}, {"baseline": "other"}, {"path": "/nowhere"}])
def test_invalid_input_fails_with_one_sentence(folder, wrong):
    result, _printed = run(report_action, **{"path": str(folder), "files": ["markdown"], **wrong})
    assert result["failed"] is True
    assert "Traceback" not in result["msg"]


def test_campaign_is_compared_with_itself_by_variant(folder):
    result, printed = run(
        compare_action,
        baseline=str(folder),
        candidate=str(folder),
        baseline_variant="writethrough",
        candidate_variant="writeback",
        files=["markdown", "json", "junit"],
    )
    assert (result["rc"], result["failed"]) == (2, True)
    assert {line["verdict"] for line in result["lines"]} == {"not_enough_repeats"}
    assert json.loads((folder / "reports" / "comparison.json").read_text())["rc"] == 2
    assert (folder / "reports" / "comparison.junit.xml").exists()
    assert any(result["summary"] in line for line in printed)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "the same campaign"),
        ({"baseline_variant": "writeback"}, "both"),
        ({"thresholds": {"x": 1}}, "no metric"),
        ({"candidate": "/nowhere"}, "no campaign"),
    ],
)
def test_invalid_comparisons_are_refused(folder, wrong, message):
    result, _printed = run(compare_action, **{"baseline": str(folder), "candidate": str(folder), **wrong})
    assert (result["failed"], result["rc"]) == (True, 2)
    assert message in result["msg"]
