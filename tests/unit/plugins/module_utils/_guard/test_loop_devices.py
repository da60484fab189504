# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cases of tests/rack/guard_on_real_devices.py that loop devices are enough for; the machines of the rack run them all."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "rack/guard_on_real_devices.py"


@pytest.fixture(scope="module")
def real():
    if os.geteuid() != 0 or not all(shutil.which(tool) for tool in ("losetup", "mkfs.ext4", "wipefs", "mkswap")):
        pytest.skip("loop devices need root, losetup, mkfs.ext4, wipefs and mkswap")
    if subprocess.run(["losetup", "--find"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no free loop device")
    spec = importlib.util.spec_from_file_location("guard_on_real_devices", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = (
    *("missing", "empty_and_used", "read_only", "partitions", "swap", "process_holding_it"),
    *("loops_over_it", "loop_over_a_partition", "held_loop", "held_partition", "held_mapping"),
)


@pytest.mark.parametrize("case", CASES)
def test_guard_on_loop_devices(real, tmp_path, case, capsys):
    proof = real.Proof(tmp_path)
    proof.case(getattr(real, case))
    if proof.skipped:
        pytest.skip(proof.skipped[0].splitlines()[0])
    assert proof.failures == 0, capsys.readouterr().out
    assert proof.proven > 0
