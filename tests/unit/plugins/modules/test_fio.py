# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import functools
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import read_status
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_process

MODULE = "ansible_collections.cachefleet.storage.plugins.modules.fio"


run = functools.partial(run_process, "fio")


def arguments(tmp_path, **cell):
    cells = [{"name": "c", "target": {"device": "/dev/nvme9n9"}, "job": {"rw": "randwrite"}, **cell}] if cell else []
    return {"campaign": "c1", "host": "node1", "spool": str(tmp_path / "spool"), "cells": cells}


def test_empty_list_is_a_no_op(tmp_path):
    result = run(arguments(tmp_path))
    assert (result["changed"], result["cells"], result["archive"]) == (False, [], {})
    assert not (tmp_path / "spool").exists()


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"job": {"rw": "randwrite", "exec_prerun": "rm"}}, "option exec_prerun is refused"),
        ({"name": "../c"}, "cannot be the name of a cell"),
        ({"target": {"file": "/srv/f", "size": "much"}}, "'much' is not a size"),
        ({"target": {}}, "one of the following is required: device, file"),
        ({"target": {"device": "/dev/sda", "file": "/srv/f"}}, "mutually exclusive: device|file"),
        ({"repeat": "often"}, "cannot be converted to an int"),
        ({"job": "rw=read x"}, "dict"),
    ],
)
def test_invalid_input_fails_with_one_sentence(tmp_path, cell, words, check_mode):
    result = run(arguments(tmp_path, **cell), check_mode)
    assert result["failed"] and words in result["msg"]
    assert not (tmp_path / "spool").exists()


def test_invalid_host_name_is_rejected(tmp_path):
    assert "cannot be the name of a host" in run({**arguments(tmp_path), "host": "a/b"})["msg"]


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_fio_ends_with_a_stopped_module(tmp_path, number):
    job = {"rw": "randread", "time_based": True, "runtime": 60}
    text = json.dumps({"ANSIBLE_MODULE_ARGS": arguments(tmp_path, target={"file": str(tmp_path / "f"), "size": "1M"}, job=job)})
    with subprocess.Popen([sys.executable, "-m", MODULE], stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        process.stdin.write(text)
        process.stdin.close()
        deadline = time.monotonic() + 60
        while not _running(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.1)
        process.send_signal(number)
        output = process.stdout.read()
    if number == signal.SIGKILL:
        # Nothing is left that could wait for the end of the runner.
        while is_alive(read_status(tmp_path / "spool/c1")) and time.monotonic() < deadline:
            time.sleep(0.1)
    else:
        result = json.loads(output)
        assert (result["failed"], result["error"]) == (True, "stopped")
    assert not _running(tmp_path) and not is_alive(read_status(tmp_path / "spool/c1"))
    # What fio had until then is kept, and measured again by the next run.
    meta = json.loads((tmp_path / "spool/c1/as_found/c/1/meta.json").read_text())
    assert (meta["state"], meta["reason"], meta["summary"]) == ("interrupted", "The runner was stopped.", None)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not on this machine")
def test_file_is_measured_once(tmp_path):
    requested = arguments(tmp_path, target={"file": str(tmp_path / "f"), "size": "1M"}, job={"rw": "randwrite", "number_ios": 50})
    check, first, second = run(requested, check_mode=True), run(requested), run(requested)
    assert (check["changed"], check["cells"], check["actions"]) == (True, [], first["actions"])
    (row,) = first["cells"]
    assert (first["changed"], row["state"], row["kept"], row["summary"]["write"]["total_ios"] >= 50) == (True, "ok", False, True)
    assert first["fio_version"].startswith("fio-") and first["archive"]["size"] == Path(first["archive"]["path"]).stat().st_size
    assert (second["changed"], second["cells"]) == (False, [{**row, "kept": True}])


def _running(folder):
    """Whether a fio runs that reports below a folder."""
    mark = f"--output={folder}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [process.name] if mark in (process / "cmdline").read_bytes() else []
    return found
