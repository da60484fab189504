# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The installed collection under ansible-runner, as AWX and other controllers start it."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ansible_runner = pytest.importorskip("ansible_runner", reason="needs ansible-runner: pip install -r requirements-dev.txt")

if not shutil.which("fio"):
    pytest.skip("fio is not installed on this machine", allow_module_level=True)


@pytest.fixture(autouse=True)
def _ansible_of_these_tests(monkeypatch):
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def run(controller, name, place="job", **options):
    """A playbook in a private folder of its own, as a job has one."""
    private = controller.folder / place
    (private / "project").mkdir(parents=True, exist_ok=True)
    environment = {"ANSIBLE_COLLECTIONS_PATH": os.environ["ANSIBLE_COLLECTIONS_PATH"]}
    extra = {**controller.extra, **options.pop("extravars", {})}
    return ansible_runner.run(
        private_data_dir=str(private),
        playbook=f"cachefleet.storage.{name}",
        inventory=str(controller.inventory),
        extravars=extra,
        envvars=environment,
        quiet=True,
        **options,
    )


def metas(folder):
    return {path.relative_to(folder).as_posix(): json.loads(path.read_text()) for path in folder.glob("*/*/*/*/meta.json")}


def test_benchmark_has_events_and_artifacts(controller):
    controller.write_inventory("here")
    done = run(controller, "benchmark")
    assert (done.status, done.rc) == ("successful", 0), done.stdout.read()
    collected = [one for one in done.events if one["event"] == "runner_on_ok" and "Collect the results" in one["event_data"].get("task", "")]
    assert [one["event_data"]["host"] for one in collected] == ["here"]
    assert "Campaign tested" in done.stdout.read()
    assert [meta["state"] for meta in metas(controller.results / "tested").values()] == ["ok"]


def test_canceled_job_is_resumed_by_the_next_one(controller):
    seconds = {"time_based": 1, "runtime": 20}
    job = {"rw": "randwrite", "bs": "4k", "ioengine": "psync", **seconds}
    controller.write_inventory("here", fio_benchmark_suites={"tiny": {"cells": [{"name": "write", "job": job}]}})
    waits = []

    def look(event):
        if event["event"] == "playbook_on_task_start" and "Wait for the runner of this host to finish" in event["event_data"]["task"]:
            waits.append(event)
        return True

    first = run(controller, "benchmark", "first", event_handler=look, cancel_callback=lambda: bool(waits))
    assert first.status == "canceled", first.stdout.read()
    assert not metas(controller.results / "tested")
    # The host measures on meanwhile: the second job follows it, and does not begin again.
    began = time.time()
    second = run(controller, "benchmark", "second")
    assert (second.status, second.rc) == ("successful", 0), second.stdout.read()
    (meta,) = metas(controller.results / "tested").values()
    assert meta["state"] == "ok" and meta["started"] < began


def test_slices_of_a_job_are_merged(controller):
    controller.hosts["there"] = {
        "ansible_connection": "local",
        "fio_benchmark_spool": str(controller.folder / "spool2"),
        "fio_benchmark_targets": [{"file": str(controller.folder / "target2.bin"), "size": "16m"}],
    }
    controller.write_inventory("here", "there")

    def measure(host):
        return run(controller, "benchmark", f"slice-{host}", limit=host, extravars={"fio_benchmark_results": str(controller.folder / f"of-{host}")})

    with concurrent.futures.ThreadPoolExecutor() as pool:
        jobs = list(pool.map(measure, ("here", "there")))
    assert [job.status for job in jobs] == ["successful"] * 2, "".join(job.stdout.read() for job in jobs)
    both = controller.folder / "both"
    sources = [str(controller.folder / f"of-{host}/tested") for host in ("here", "there")]
    merged = run(controller, "results", "merge", extravars={"results_campaign": str(both), "results_operation": "merge", "results_sources": sources})
    assert merged.status == "successful", merged.stdout.read()
    assert {name: meta["state"] for name, meta in metas(both).items()} == {
        "here/default/write/1/meta.json": "ok",
        "there/default/write/1/meta.json": "ok",
    }
    again = run(controller, "results", "again", extravars={"results_campaign": str(both), "results_operation": "merge", "results_sources": sources})
    assert "0 cells copied, 0 replaced, 2 there already" in again.stdout.read()


def test_results_in_the_folder_of_a_job_are_refused(controller, monkeypatch):
    controller.write_inventory("here")
    private = controller.folder / "job"
    monkeypatch.setenv("AWX_PRIVATE_DATA_DIR", str(private))
    done = run(controller, "benchmark", extravars={"fio_benchmark_results": str(private / "project/results")})
    assert done.status == "failed"
    assert "which is removed when the job has ended: set fio_benchmark_results to a folder that is kept" in " ".join(done.stdout.read().split())
    assert not (controller.folder / "target.bin").exists(), "nothing was measured"


def test_execution_environment_has_the_libraries_of_the_collection(tmp_path):
    pytest.importorskip("ansible_builder", reason="needs ansible-builder: pip install -r requirements-dev.txt")
    installed = os.environ["ANSIBLE_COLLECTIONS_PATH"]
    found = subprocess.run(["ansible-builder", "introspect", installed], capture_output=True, text=True, timeout=1800, check=False)
    assert found.returncode == 0, found.stderr
    assert all(name in found.stdout for name in ("duckdb", "numpy", "scipy", "plotly")), found.stdout
    definition = tmp_path / "execution-environment.yml"
    images = {"base_image": {"name": "example/base:1"}}
    definition.write_text(json.dumps({"version": 3, "images": images, "dependencies": {"galaxy": {"collections": ["cachefleet.storage"]}}}))
    command = ["ansible-builder", "create", "--file", str(definition), "--context", str(tmp_path / "context"), "--output-filename", "Containerfile"]
    made = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "context/Containerfile").exists()
