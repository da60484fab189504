# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The zip applications of tests/rack run where neither the collection nor ansible is installed."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

RACK = Path(__file__).resolve().parents[4] / "rack"


@pytest.mark.parametrize(("program", "summary"), [("guard_on_real_devices", "0 proven, 0 failed"), ("attacks", "0 held, 0 broken, 0 unbuilt")])
def test_packed_program_runs_without_the_collection(tmp_path, program, summary):
    packed = tmp_path / f"{program}.pyz"
    subprocess.run([sys.executable, RACK / f"{program}.py", "--pack", packed], check=True)
    names = zipfile.ZipFile(packed).namelist()
    assert {"__main__.py", "proofs/building.py", "ansible_collections/cachefleet/storage/plugins/module_utils/_fio/runner/control.py"} <= set(names)
    # Isolated: nothing from the environment, only what is in the file.
    ended = subprocess.run([sys.executable, "-I", "-S", packed, "--only", "nothing"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert summary in ended.stdout
