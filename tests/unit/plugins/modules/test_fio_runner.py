# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later


from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.log_file import located
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_process

MODULE = "ansible_collections.cachefleet.storage.plugins.modules.fio_runner"


run = functools.partial(run_process, "fio_runner")


def arguments(tmp_path, **cell):
    cells = [{"cells": [{"name": "c", "target": {"device": "/dev/nvme9n9"}, "job": {"rw": "randwrite"}, **cell}]}] if cell else []
    return {"campaign": "c1", "host": "node1", "spool": str(tmp_path / "spool"), "steps": cells}


def test_empty_list_is_a_no_op(tmp_path):
    result = run(arguments(tmp_path))
    assert (result["changed"], result["attached"], result["runner"]) == (False, False, {})
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"job": {"rw": "randwrite", "exec_prerun": "rm"}}, "option exec_prerun is refused"),
        ({"name": "../c"}, "cannot be the name of a cell"),
        ({"target": {"file": "/srv/f", "size": "much"}}, "'much' is not a size"),
        ({"target": {}}, "a target must have either device"),
        ({"repeat": "often"}, "repeat of the cell c must be a whole number"),
        ({"job": "rw=read x"}, "the job must be a dictionary"),
        ({"job": None}, "the job must be a dictionary"),
    ],
)
def test_invalid_input_fails_with_one_sentence(tmp_path, cell, words):
    result = run(arguments(tmp_path, **cell), check_mode="job" in cell)
    assert result["failed"] and words in result["msg"]
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"host": "a/b"}, "cannot be the name of a host"),
        ({"campaign": "a b"}, "cannot be the name of a campaign"),
        ({"host": ""}, "cannot be the name of a host"),
    ],
)
def test_invalid_folder_names_are_rejected(tmp_path, change, words):
    assert words in run({**arguments(tmp_path, repeat=1), **change})["msg"]


def test_packed_and_stopped_without_runner_change_nothing(tmp_path):
    for state in ("packed", "stopped"):
        result = run({"campaign": "c1", "spool": str(tmp_path / "spool"), "state": state})
        assert (result["changed"], result["cells"], result["archive"], result["runner"]) == (False, [], {}, {})
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize(("caches", "lasting"), [([], True), (["vg0/images"], False)])
def test_targets_are_examined_without_a_runner_and_without_fio(tmp_path, caches, lasting):
    result = run({**arguments(tmp_path, repeat=1), "state": "examined", "caches": caches})
    assert [(one["target"], one["lasting"]) for one in result["refusals"]] == [("/dev/nvme9n9", lasting)]
    assert (result["changed"], result["runner"]) == (False, {})
    assert not (tmp_path / "spool").exists()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
@pytest.mark.parametrize(
    "task", [lambda order: {"cachefleet.storage.fio_runner": order}, lambda order: {"cachefleet.storage.cache_layers": {"benchmark": order}}]
)
def test_real_fio_continues_after_ansible_disconnects(tmp_path, monkeypatch, task):
    """Through Ansible: what it sent to the host is gone when the second cell begins."""
    monkeypatch.setenv("ANSIBLE_LOCAL_TEMP", str(tmp_path / "local"))
    monkeypatch.setenv("ANSIBLE_REMOTE_TEMP", str(tmp_path / "remote"))
    spool = tmp_path / "spool"
    job = {"rw": "randrw", "bs": "4k", "time_based": True, "runtime": 1, "thread": True, "numjobs": 2, "group_reporting": True}
    target = {"file": str(tmp_path / "data"), "size": "8M"}
    steps = [{"cells": [{"name": name, "target": target, "job": job}]} for name in ("a", "b")]
    play = [
        {
            "hosts": "localhost",
            "gather_facts": False,
            "connection": "local",
            "vars": {"ansible_python_interpreter": sys.executable},
            "tasks": [task({**arguments(tmp_path), "steps": steps})],
        }
    ]
    (tmp_path / "play.yml").write_text(yaml.safe_dump(play))
    ansible = Path(sys.executable).with_name("ansible-playbook")
    completed = subprocess.run([str(ansible), "-i", "localhost,", str(tmp_path / "play.yml")], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    status = _await_end(spool / "c1")
    assert (status["state"], status["done"], status["message"]) == ("finished", 2, "")
    rows = run({"campaign": "c1", "spool": str(spool), "state": "packed"})["cells"]
    assert [(row["name"], row["state"]) for row in rows] == [("a", "ok"), ("b", "ok")]
    assert all(row["summary"][way]["iops"] > 0 for row in rows for way in ("read", "write"))
    meta = json.loads((spool / "c1/as_found/b/1/meta.json").read_text())
    assert meta["started"] <= meta["io_start"] < meta["io_end"] <= meta["finished"] + 1
    assert {name for name in meta["files"] if name.startswith("series_")} >= {"series_bw.1.log.gz", "series_lat.2.log.gz"}


def _await_end(home):
    ends = time.monotonic() + 120
    while time.monotonic() < ends:
        status = json.loads((home / "runner.json").read_text())
        if status["state"] in ("finished", "stopped", "failed"):
            return status
        time.sleep(0.1)
    with contextlib.suppress(ProcessLookupError):
        os.kill(status["pid"], signal.SIGTERM)
    raise AssertionError(f"it did not end: {status}")


def test_logs_are_taken_into_the_spool_but_not_in_check_mode(tmp_path):
    log = tmp_path / "oltp.log"
    log.write_text("fio version 2 iolog\nx add\nx open\nx read 0 4096\nx close\n")
    options = {**arguments(tmp_path, job=located({"read_iolog": str(log)}, "s")), "state": "supplied"}
    assert run(options)["missing"] == [str(log)]
    assert run({**options, "logs": {str(log): str(log)}}, check_mode=True)["missing"] == [str(log)]
    assert not (tmp_path / "spool").exists()
    assert run({**options, "logs": {str(log): str(log)}})["changed"]
    assert run(options)["missing"] == []
