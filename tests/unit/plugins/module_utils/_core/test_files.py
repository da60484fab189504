# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import files
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput


@pytest.fixture
def synced(monkeypatch):
    """The folders whose entries were made to survive a power cut, in order."""
    folders = []
    monkeypatch.setattr(files, "sync_folder", folders.append)
    return folders


def test_new_folder_is_synced_for_power_cuts(tmp_path, synced):
    path = tmp_path / "var/lib/cachefleet/record"
    files.replace_file(path, "text\n")
    assert path.read_text() == "text\n"
    assert synced == [tmp_path, tmp_path / "var", tmp_path / "var/lib", tmp_path / "var/lib/cachefleet"]


def test_existing_folder_is_synced_once(tmp_path, synced):
    files.replace_file(tmp_path / "record", "text\n")
    files.replace_file(tmp_path / "record", "")
    assert not (tmp_path / "record").exists()
    assert synced == [tmp_path, tmp_path]


def test_new_folders_are_not_world_writable_with_any_umask(tmp_path):
    umask = os.umask(0)
    try:
        files.replace_file(tmp_path / "a/b/file", "text")
    finally:
        os.umask(umask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/file")] == [0o755, 0o755, 0o644]


@pytest.mark.parametrize(("name", "words"), [("a\0b", "a null character"), ("\ud800", "cannot be encoded"), ("x" * 3000, "too long")])
def test_text_that_cannot_be_a_path_is_rejected(tmp_path, name, words):
    with pytest.raises(BadInput, match=rf"^spool '.*is not a path: it .*{words}") as caught:
        files.require_path(tmp_path / name, "spool")
    assert len(caught.value.message.encode()) < 200
    files.require_path(tmp_path / "not there" / "x", "spool")
