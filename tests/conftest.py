# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures that every test may use, and what is said of the tests whose captures are missing."""

from __future__ import annotations

import os
import pathlib
import re
import typing as t

import hypothesis
import pytest

# How long an example takes depends on what the machine does beside: tests do not assert times.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.register_profile("first_cases", deadline=None, max_examples=5)
# Whether a version of Python can run the code is seen with one case of each test.
FIRST_CASES = bool(os.environ.get("CACHEFLEET_FIRST_CASES"))
hypothesis.settings.load_profile("first_cases" if FIRST_CASES else "without_deadline")

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
_NEEDING = {"shared_samples", "shared_corpus"}


def _beside(folder: str) -> pathlib.Path | None:
    return next((base / folder for base in REPOSITORY.parents if (base / folder).is_dir()), None)


def _shared(folder: str) -> pathlib.Path:
    return _beside(f"shared/{folder}") or pytest.skip(f"../shared/{folder} is not beside this checkout")


@pytest.fixture(scope="session")
def shared_samples() -> pathlib.Path:
    """Captured outputs of fio, LVM, bcache and drives; kept beside the checkout, not in it."""
    return _shared("samples")


@pytest.fixture(scope="session")
def shared_corpus() -> pathlib.Path:
    """Captured outputs of RAID tools; kept beside the checkout, not in it."""
    return _shared("corpus")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With ``CACHEFLEET_FIRST_CASES`` set, each test with the first of its parameters only."""
    if FIRST_CASES:
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
        config.hook.pytest_deselected(items=[item for item in items if first[item.nodeid.partition("[")[0]] is not item])
        items[:] = [item for item in items if first[item.nodeid.partition("[")[0]] is item]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> t.Generator[None, pytest.TestReport, pytest.TestReport]:
    """With ``CI`` set and the captures there, a test that needs them must run."""
    report = yield
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and _NEEDING.intersection(getattr(item, "fixturenames", ()))
        and os.environ.get("CI")
        and _beside("shared")
    ):
        report.outcome = "failed"
        report.longrepr = f"With CI set and ../shared present this test must run: {report.longrepr[2]}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for all tests that need ../shared and do not find it."""
    untested = [
        (missing.group(), pathlib.PurePath(report.nodeid.partition("::")[0]).parent)
        for report in terminalreporter.stats.get("skipped", ())
        for missing in [re.search(r"\.\./shared/\w+(?= is not beside this checkout$)", report.longrepr[2])]
        if missing
    ]
    if untested:
        folders = " and ".join(sorted({folder for folder, _readers in untested}))
        readers = ", ".join(sorted({re.sub(r"^tests/(unit/)?(plugins/\w+_utils/)?", "", readers.as_posix()) for _folder, readers in untested}))
        terminalreporter.write_line(
            f"{len(untested)} tests need {folders}, which is not beside this checkout: readers of {readers} were not tested against captures", yellow=True
        )
