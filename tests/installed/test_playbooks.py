# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbooks of an installed collection, run as a user runs them, on this machine and without any rack.

``scripts/tarball-test`` builds and installs the collection and then runs this; ANSIBLE_COLLECTIONS_PATH says where it is.
"""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest

if not shutil.which("fio"):
    pytest.skip("fio is not installed on this machine", allow_module_level=True)


def test_unreachable_host_does_not_stop_the_others_and_is_reported(controller):
    played = controller.play("benchmark", "here", "gone")
    assert played.returncode != 0, played.stdout
    folder = controller.results / "tested/here/default/write/1"
    meta = json.loads((folder / "meta.json").read_text())
    assert (meta["state"], meta["host"]) == ("ok", "here")
    assert meta["summary"]["write"]["iops"] > 0
    assert json.loads(gzip.decompress((folder / "fio.json.gz").read_bytes()))["jobs"][0]["write"]["total_ios"] > 0
    assert "rw=randwrite" in (folder / "job.fio").read_text()
    rows = [line.split() for line in played.stdout.splitlines() if line.startswith(("here ", "gone "))]
    assert any(row[0] == "here" and "ok" in row for row in rows)
    assert any(row[0] == "gone" and "missing" in row for row in rows)
    assert "Not all cells were measured: gone" in played.stdout
    page = controller.results / "tested/reports/report.html"
    assert f"Report: {page}" in played.stdout if page.exists() else "No report was written: " in played.stdout
    assert page.exists() or not all(map(importlib.util.find_spec, ("duckdb", "numpy", "scipy", "ruptures", "plotly")))

    # The file is there now, and the host still knows that this campaign has made it.
    again = controller.play("benchmark", "here")
    # The host that is missing still belongs to the campaign; what is measured is not measured again.
    assert "here: there is nothing to collect" in again.stdout
    assert json.loads((folder / "meta.json").read_text()) == meta
    printed = controller.play("report", "here")
    assert (printed.returncode, "tested" in printed.stdout) == (0, True)


def test_parallel_hosts_are_aggregated_and_dry_run_writes_nothing(controller):
    there = {"ansible_connection": "local", "fio_benchmark_spool": str(controller.folder / "spool2")}
    there["fio_benchmark_targets"] = [{"file": str(controller.folder / "target2.bin"), "size": "16m"}]
    controller.hosts["there"] = there
    dry = controller.play("benchmark", "here", "there", fio_benchmark_dry_run=True)
    assert dry.returncode == 0, dry.stdout
    assert "suite tiny" in dry.stdout
    assert re.search("writes (at most|what the target takes in timed cells)", " ".join(dry.stdout.split()))
    # A plan is text, not the list of its lines, and opening a campaign that is not opened changes nothing.
    assert '"suite' not in dry.stdout and not re.search(r"changed=[1-9]", dry.stdout)
    assert not controller.results.exists()
    assert not (controller.folder / "target.bin").exists()

    played = controller.play("benchmark", "here", "there")
    assert played.returncode == 0, played.stdout
    metas = [json.loads((controller.results / f"tested/{host}/default/write/1/meta.json").read_text()) for host in ("here", "there")]
    assert all(meta["synchronised"] for meta in metas)
    # One clock, asked over two connections: what is found of it holds within what it is said to hold.
    assert all(abs(meta["clock"]["offset"]) <= meta["clock"]["error"] + 1e-3 for meta in metas)
    assert any(line.startswith("all 2 hosts ") for line in played.stdout.splitlines())
    assert "The starts were at most" in played.stdout


def test_benchmark_without_targets_fails(controller):
    played = controller.play("benchmark", "here", fio_benchmark_targets=[])
    assert played.returncode == 2 and "Nothing was measured: no host has fio_benchmark_file or fio_benchmark_targets" in " ".join(played.stdout.split()), (
        played.stdout
    )


def test_last_line_of_stderr_of_a_module_that_died_is_kept(controller):
    python = controller.folder / "python"
    python.write_text("#!/bin/sh\necho 'out of memory' >&2\nexit 137\n")
    python.chmod(0o755)
    played = controller.play("benchmark", "here", ansible_python_interpreter=str(python))
    assert played.returncode == 2, played.stdout
    # In the table of what is not ok.
    assert re.search(r"missing: [^\n]*The last line of stderr is 'out of memory'\.", " ".join(played.stdout.split())), played.stdout


def test_smallest_run_measures_a_file(controller):
    file = controller.folder / "smallest.fio"
    file.write_text("precious")
    refused = controller.play("benchmark", "here", fio_benchmark_targets=[], fio_benchmark_file=str(file))
    assert refused.returncode == 2 and f"fio will not write to {file}" in " ".join(refused.stdout.split()), refused.stdout
    assert file.read_text() == "precious"
    file.unlink()
    played = controller.play("benchmark", "here", fio_benchmark_targets=[], fio_benchmark_file=str(file))
    assert played.returncode == 0, played.stdout
    assert file.stat().st_size == 1024**3
    assert json.loads((controller.results / "tested/here/default/write/1/meta.json").read_text())["state"] == "ok"


def test_limit_needs_no_localhost(controller):
    there = {"ansible_connection": "local", "fio_benchmark_spool": str(controller.folder / "spool2")}
    there["fio_benchmark_targets"] = [{"file": str(controller.folder / "target2.bin"), "size": "16m"}]
    controller.hosts["there"] = there
    played = controller.play("benchmark", "here", "there", "gone", limit="there")
    assert played.returncode == 0, played.stdout
    assert sorted(path.name for path in (controller.results / "tested").glob("*here")) == ["there"]
    planned = controller.play("plan", "here", "there", "gone", limit="here", block_queue_devices=[])
    assert planned.returncode == 0 and "1 host: 1 has no cache layer in its variables." in planned.stdout, planned.stdout


def test_variable_of_wrong_type_is_rejected_before_any_change(controller):
    played = controller.play("benchmark", "here", fio_benchmark_targets="/dev/sda")
    assert played.returncode != 0
    assert "fio_benchmark_targets" in played.stdout
    assert not list(controller.results.glob("tested/here/**/meta.json"))


def test_unwritable_results_stop_the_play_before_any_measurement(controller):
    controller.results.write_text("a file in the way")
    played = controller.play("benchmark", "here")
    assert played.returncode != 0
    assert str(controller.results) in played.stdout + played.stderr
    assert not (controller.folder / "target.bin").exists()


def test_mounted_or_missing_device_is_refused_with_one_sentence(controller):
    played = controller.play("benchmark", "here", fio_benchmark_targets=[{"device": "/dev/nvme9n9"}])
    assert played.returncode != 0
    assert "/dev/nvme9n9 does not exist on this host" in played.stdout
    assert not Path("/dev/nvme9n9").exists()


def test_site_continues_without_an_unreachable_host_and_reports_it(controller):
    # A host with empty lists is not contacted. No drive has this serial number.
    queues = [{"match": {"serial": ["NOT_THERE"]}, "scheduler": "none", "persistent": False}]
    played = controller.play("site", "here", "gone", block_queue_devices=queues)
    assert played.returncode != 0
    recap = {line.split()[0]: line.split(":")[1].split()[2:4] for line in played.stdout.splitlines() if "unreachable=" in line}
    assert recap == {"gone": ["unreachable=1", "failed=0"], "here": ["unreachable=0", "failed=0"]}
    assert "2 hosts: 1 is unreachable, 1 is configured as described." in " ".join(played.stdout.split())


def test_hosts_are_accepted_by_what_was_measured(controller):
    limits = [
        {"name": name, "workload": "write", "metric": "iops", "of": "write", "at_least": limit} for name, limit in (("low", "1 /s"), ("high", "1000000000 /s"))
    ]
    played = controller.play("accept", "here", "gone", accept_suite="tiny", accept_requirements=limits, accept_at_once=1)
    assert played.returncode == 1, played.stdout + played.stderr
    text = " ".join(played.stdout.split())
    assert "here fail: high" in text and re.search(r"gone not measured: low \S+: This host is unreachable", text), text
    assert "2 hosts: 1 fail, 1 not measured." in text
    folder = controller.results / "tested/accept"
    states = {one["requirement"]["name"]: one["state"] for one in json.loads((folder / "acceptance.json").read_text())["judgements"] if one["host"] == "here"}
    assert states == {"low": "pass", "high": "fail"}
    assert {"host-here.json", "host-gone.json"} <= {path.name for path in (folder / "certificates").iterdir()}
    assert 2 <= len(list((controller.results / "tested/here/accept/write").iterdir())) < 12, "measured no longer than needed"


def test_plan_is_printed_for_all_hosts_and_fails_for_those_that_cannot_be_changed(controller):
    drives = [{"device": "/dev/disk/by-id/ata-NOT_THERE", "write_cache": "disabled"}]
    queues = [{"match": {"serial": ["NOT_THERE"]}, "scheduler": "none", "persistent": False}]
    controller.hosts["bad"] = {"ansible_connection": "local", "drive_write_cache_drives": drives}
    controller.hosts["wrong"] = {"ansible_connection": "local", "drive_write_cache_drives": "/dev/sda"}
    played = controller.play("plan", "here", "gone", "bad", "wrong", block_queue_devices=queues, plan_directory=str(controller.folder / "plans"))
    assert played.returncode == 2, played.stdout
    text = " ".join(played.stdout.split())
    assert "4 hosts: 2 would be refused, 1 is unreachable, 1 is configured as described." in text
    assert "bad would be refused /dev/disk/by-id/ata-NOT_THERE does not exist on this host" in text
    assert "The plan cannot be carried out on bad, gone, wrong." in text
    hosts = {one["host"]: one for one in json.loads((controller.folder / "plans/plan.json").read_text())["hosts"]}
    assert {name: one["outcome"] for name, one in hosts.items()} == {"here": "unchanged", "gone": "unreachable", "bad": "refused", "wrong": "refused"}
    assert "drives" in hosts["wrong"]["reason"] and "Traceback" not in played.stdout + played.stderr
    fine = controller.play("plan", "here", block_queue_devices=queues)
    assert fine.returncode == 0 and "1 host: 1 is configured as described." in fine.stdout, fine.stdout


def test_site_changes_nothing_without_configuration(controller):
    played = controller.play("site", "here", block_queue_devices=[])
    assert played.returncode == 0, played.stdout
    assert "changed=0" in played.stdout


def test_unknown_drive_is_refused_in_check_mode_and_in_a_run(controller):
    drives = [{"device": "/dev/disk/by-id/ata-NOT_THERE", "write_cache": "disabled"}]
    played = controller.play("site", "here", drive_write_cache_drives=drives)
    assert played.returncode != 0
    assert "/dev/disk/by-id/ata-NOT_THERE does not exist on this host" in played.stdout


def test_sweep_measures_each_variant_restores_the_host_and_recommends(controller):
    other = [{"file": str(controller.folder / "other.bin"), "size": "16m"}]
    sweep = {"sweep_repeats": 1, "sweep_max_repeats": 0, "sweep_settle": 0, "sweep_variants": [{"name": "other", "fio_benchmark_targets": other}]}
    played = controller.play("sweep", "here", **sweep)
    assert played.returncode == 0, played.stdout
    assert "here: 2 of 2 steps are done, the host is restored and verified" in played.stdout
    folder = controller.results / "tested"
    assert [json.loads((folder / f"here/{name}/write/1/meta.json").read_text())["state"] for name in ("baseline", "other")] == ["ok", "ok"]
    libraries = all(map(importlib.util.find_spec, ("duckdb", "numpy", "scipy", "ruptures")))
    # Neither variant sets anything on the host.
    assert not (folder / "recommended/here.yml").exists()
    assert ("There is no recommended file for here: baseline changes nothing there." in " ".join(played.stdout.split())) == libraries
