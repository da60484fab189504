# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whoever sees only the first lines after a failed run of molecule sees why it failed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "scripts/molecule-failures"

PASSED = """\
INFO     \x1b[32mdefault\x1b[0m ➜ side_effect: Executing
  │ fatal: [node1]: FAILED! => this was expected
  │ ...ignoring
INFO     default ➜ side_effect: Executed: Successful
"""
TESTS = """\
INFO     default ➜ verify: Executing
  │ tests/test_default.py ..F.
  │ E       assert 4.2 >= 5
  │ tests/test_default.py:99: AssertionError
  │ FAILED tests/test_default.py::test_gain[ansible://node1]
CRITICAL Verifier tests failed
ERROR    default ➜ verify: Executed: Failed
"""
PLAYBOOK = """\
INFO     raid ➜ converge: Executing
  │ TASK [Have it]
  │ fatal: [node2]: FAILED! =>
  │     msg: no such volume
ERROR    raid ➜ converge: Executed: Failed
"""


@pytest.fixture
def reported(tmp_path):
    if not SCRIPT.exists():
        pytest.skip("the scripts of the repository are not part of a built collection")

    def run(*parts):
        log = tmp_path / "log"
        log.write_text("".join(parts))
        return subprocess.run([str(SCRIPT), str(log)], capture_output=True, text=True, check=True).stdout.splitlines()

    return run


def test_test_names_precede_assertions(reported):
    assert reported(PASSED, TESTS, PASSED) == [
        "INFO     default ➜ verify: Executing",
        "FAILED tests/test_default.py::test_gain[ansible://node1]",
        "E       assert 4.2 >= 5",
    ]


def test_last_message_of_a_playbook_is_used(reported):
    assert reported(PASSED, PLAYBOOK)[:3] == ["INFO     raid ➜ converge: Executing", "TASK [Have it]", "fatal: [node2]: FAILED! =>"]


def test_expected_messages_are_omitted(reported):
    assert not [line for line in reported(PASSED * 20, PLAYBOOK) if "expected" in line]


def test_aborted_molecule_run_is_reported_with_its_last_lines(reported):
    assert reported(PASSED, "Traceback (most recent call last):\n", "RuntimeError: no pytest\n")[-1] == "RuntimeError: no pytest"
