# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the test run reports of tests whose captures are not beside the checkout, and that CI cannot leave one out."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = "pytester"
CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"
TESTS = """
import pytest

@pytest.fixture
def outputs(shared_corpus):
    return shared_corpus

def test_reader(outputs): pass

def test_other_reader(shared_samples): pass

def test_tool(shared_samples): pytest.skip("no tool")

def test_without_captures(): pytest.skip("no root")
"""


@pytest.fixture
def run(pytester, monkeypatch):
    folder = pytester.path / "checkout/tests/unit/plugins/module_utils/_raid/storcli"
    folder.mkdir(parents=True)
    (folder / "test_captures.py").write_text(TESTS)
    shutil.copy(CONFTEST, pytester.path / "checkout/tests/conftest.py")
    monkeypatch.chdir(pytester.path / "checkout")
    (pytester.path / "checkout/pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib -ra\n")

    def run(*options, ci=False, present=()):
        monkeypatch.setenv("CI", "true") if ci else monkeypatch.delenv("CI", raising=False)
        for name in present:
            (pytester.path / "shared" / name).mkdir(parents=True)
        return pytester.runpytest_subprocess("tests", *options)

    return run


@pytest.mark.parametrize(("options", "ci"), [((), False), (("-n", "2"), True)])
def test_missing_captures_are_reported_in_one_line(run, options, ci):
    result = run(*options, ci=ci)
    result.assert_outcomes(skipped=4)
    assert [line for line in result.outlines if "tests need" in line] == [
        "3 tests need ../shared/corpus and ../shared/samples, which is not beside this checkout: readers of _raid/storcli were not tested against captures"
    ]


def test_tests_with_captures_must_run_in_ci(run):
    result = run(ci=True, present=["samples"])
    result.assert_outcomes(passed=1, failed=1, errors=1, skipped=1)
    result.stdout.fnmatch_lines(["*must run: Skipped: ../shared/corpus is not beside this checkout", "*must run: Skipped: no tool"])
    result.stdout.no_fnmatch_line("*tests need*")


def test_tests_with_captures_may_be_skipped_elsewhere(run):
    run(present=["corpus", "samples"]).assert_outcomes(passed=2, skipped=2)
