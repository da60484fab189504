# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Chromium of the system, without a network; where there is none every test skips, or fails if REPORT_NEEDS_CHROMIUM is set."""

from __future__ import annotations

import os
import shutil

import pytest

HOW = "needs a Chromium: apt-get install chromium, or set CHROMIUM to one; and pip install -r requirements-dev.txt"


@pytest.fixture(scope="session")
def browser():
    give_up = pytest.fail if os.environ.get("REPORT_NEEDS_CHROMIUM") else pytest.skip
    try:
        from playwright import sync_api as playwright
    except ImportError:
        give_up(HOW)
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        give_up(HOW)
    with playwright.sync_playwright() as running:
        # The sandbox of Chromium refuses to run as root; the page is ours.
        launched = running.chromium.launch(executable_path=path, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        yield launched
        launched.close()
