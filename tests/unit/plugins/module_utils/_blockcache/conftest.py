# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts of files are made and thrown away by the thousand here, and the layers wait until what they write is safe: in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

_MEMORY = Path("/dev/shm")
_LEAST = 256 << 20


@pytest.fixture
def tmp_path(tmp_path):
    """As pytest's own, in memory where there is room and programs may run."""
    if not _is_fit():
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="cachefleet-", dir=_MEMORY))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _is_fit():
    try:
        found = os.statvfs(_MEMORY)
    except OSError:
        return False
    return os.access(_MEMORY, os.W_OK) and not found.f_flag & os.ST_NOEXEC and found.f_bavail * found.f_frsize > _LEAST
