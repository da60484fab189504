# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status with which the playbook compare ends, as a job of a CI system sees it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

for library in ("numpy", "scipy", "duckdb"):
    pytest.importorskip(library, reason=f"needs {library}: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

ANSIBLE = Path(sys.executable).with_name("ansible-playbook")
PLAYBOOK = next(parent for parent in Path(__file__).absolute().parents if parent.name == "tests").parent / "playbooks/compare.yml"


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return {hosts: write_campaign(folder / f"hosts-{hosts}", hosts, cells=2, seconds=12) for hosts in (1, 6)}


@pytest.mark.parametrize(
    ("hosts", "baseline", "candidate", "status", "message", "strategy"),
    [
        (6, "writethrough", "writeback", 0, "Same or better in all of", "linear"),
        (6, "writeback", "writethrough", 1, "Regression: ", "linear"),
        (6, "writeback", "writethrough", 1, "Regression: ", "free"),
        (1, "writeback", "writethrough", 2, "not enough repeats", "linear"),
        (6, "writeback", "nobody", 2, "has no variant", "linear"),
    ],
)
def test_exit_status_matches_the_comparison(campaigns, tmp_path, hosts, baseline, candidate, status, message, strategy):
    variables = {
        "compare_baseline": str(campaigns[hosts]),
        "compare_candidate": str(campaigns[hosts]),
        "compare_baseline_variant": baseline,
        "compare_candidate_variant": candidate,
        "compare_thresholds": {"iops": 5},
        "compare_files": ["json"],
    }
    environment = {**os.environ, "ANSIBLE_STRATEGY": strategy, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_HOME": str(tmp_path)}
    played = subprocess.run(
        [ANSIBLE, PLAYBOOK, "-i", "localhost,", "-e", json.dumps(variables)], env=environment, capture_output=True, text=True, timeout=900, check=False
    )
    assert played.returncode == status, played.stdout + played.stderr
    assert message in " ".join((played.stdout + played.stderr).split())
    assert "Traceback" not in played.stderr
    if "nobody" not in candidate:
        assert json.loads((campaigns[hosts] / "reports/comparison.json").read_text())["rc"] == status
