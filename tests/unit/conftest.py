# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fixtures that every unit test may use."""

from __future__ import annotations

import pathlib

import hypothesis
import pytest

# How long an example takes depends on what the machine does beside: tests do not assert times.
hypothesis.settings.register_profile("without_deadline", deadline=None)
hypothesis.settings.load_profile("without_deadline")

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


def _shared(folder: str) -> pathlib.Path:
    for base in (REPOSITORY.parent, *REPOSITORY.parents):
        path = base / "shared" / folder
        if path.is_dir():
            return path
    pytest.skip(f"shared/{folder} is not beside this checkout")


@pytest.fixture(scope="session")
def shared_samples() -> pathlib.Path:
    """Captured outputs of fio, LVM, bcache and drives; kept beside the checkout, not in it."""
    return _shared("samples")


@pytest.fixture(scope="session")
def shared_corpus() -> pathlib.Path:
    """Captured outputs of RAID tools; kept beside the checkout, not in it."""
    return _shared("corpus")
