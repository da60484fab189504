# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A results folder to take results into, and a disk that becomes full."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.tests.unit.support.campaigns import NOW


@pytest.fixture
def campaign(tmp_path):
    folder, _is_new = store.open_campaign(tmp_path / "results", now=NOW)
    store.write_plan(folder, "node1", "before", [("randwrite-4k", 1), ("randwrite-4k", 2)], now=NOW)
    return folder


@pytest.fixture
def tiny_disk(tmp_path):
    """A real file system of 1 MiB, so that a full disk is a full disk."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"a tmpfs cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield place
    subprocess.run(["mount", "-o", "remount,rw", str(place)], check=False)
    subprocess.run(["umount", str(place)], check=True)
