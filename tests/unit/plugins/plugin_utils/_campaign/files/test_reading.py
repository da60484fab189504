# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of results: whole or not there, and a full disk is said with its figures."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import reading as files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError


def test_insufficient_space_is_reported_before_any_write(campaign, tmp_path):
    with pytest.raises(ResultsError, match="free and everything needs 1024 PiB: free space"):
        files.require_space(campaign, 1 << 60, "everything")


def test_json_is_written_atomically(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    files.write_json(path, {"a": 1})

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ResultsError, match="became full"):
        files.write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_hash_is_the_sha256_of_the_file(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert files.file_sha256(tmp_path / "x") == hashlib.sha256(b"abc").hexdigest()
