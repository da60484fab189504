# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One journal for all that outlives a run: what is missing, unreadable, damaged, of another user or of a later version."""

from __future__ import annotations

import json
import os
import stat

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import files
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import (
    Journal,
    LaterVersion,
    counts_as_none,
    counts_as_none_if_damaged,
    is_an_error,
)

MEANINGS = (is_an_error, counts_as_none, counts_as_none_if_damaged)


def journal(folder, unusable=is_an_error, **more):
    return Journal(folder / "journal.json", lambda value: value["name"], unusable, **more)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("unusable", MEANINGS)
def test_what_was_written_is_read_and_removed(tmp_path, own, unusable):
    folder = tmp_path / "new"
    if own:
        # Whether others can exchange it has been examined where it was made.
        with pytest.raises(CommandFailed, match="No such file or directory"):
            journal(folder, own=True).write({"name": "first"})
        folder.mkdir()
    one = journal(folder, unusable, own=own)
    assert one.read() is None
    one.write({"name": "first"})
    one.write({"name": "second"})
    assert one.read() == "second"
    assert stat.S_IMODE(one.path.stat().st_mode) == 0o600
    assert [path.name for path in one.path.parent.iterdir()] == ["journal.json"]
    one.remove()
    one.remove()
    assert one.read() is None and not one.path.exists()


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("text", ["", "{", "null", "[]", "{}", '"x"', b"\xff"])
def test_damaged_file_means_what_its_owner_says(tmp_path, own, text):
    (tmp_path / "journal.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(NotUnderstood):
        journal(tmp_path, own=own).read()
    assert journal(tmp_path, counts_as_none, own=own).read() is None
    assert journal(tmp_path, counts_as_none_if_damaged, own=own).read() is None
    assert journal(tmp_path, lambda error: error.kind, own=own).read() == NotUnderstood.kind


@pytest.mark.parametrize("own", [False, True])
def test_unreadable_file_is_not_a_damaged_one(tmp_path, own):
    (tmp_path / "journal.json").mkdir()
    for unusable in (is_an_error, counts_as_none_if_damaged):
        with pytest.raises(CommandFailed, match=r"journal\.json cannot be read"):
            journal(tmp_path, unusable, own=own).read()
    assert journal(tmp_path, counts_as_none, own=own).read() is None


@pytest.mark.parametrize("mode", [0o602, 0o666])
def test_file_that_others_may_write_is_not_an_own_one(tmp_path, mode):
    journal(tmp_path).write({"name": "x"})
    (tmp_path / "journal.json").chmod(mode)
    assert journal(tmp_path).read() == "x"
    with pytest.raises(CommandFailed, match="cannot be read: Operation not permitted"):
        journal(tmp_path, own=True).read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_file_of_another_user_and_link_are_not_own_ones(tmp_path):
    journal(tmp_path).write({"name": "x"})
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "journal.json").symlink_to(tmp_path / "journal.json")
    with pytest.raises(CommandFailed, match="cannot be read: Too many levels of symbolic links"):
        journal(tmp_path / "other", own=True).read()
    os.chown(tmp_path / "journal.json", 1234, 1234)
    with pytest.raises(CommandFailed, match="cannot be read: Operation not permitted"):
        journal(tmp_path, own=True).read()


@pytest.mark.parametrize("unusable", MEANINGS)
def test_journal_of_a_later_version_is_never_ignored(tmp_path, unusable):
    journal(tmp_path, schema=2).write({"name": "x"})
    assert json.loads((tmp_path / "journal.json").read_text())["schema"] == 2
    with pytest.raises(LaterVersion, match=r"was written by a later version of this collection \(schema 2, this one knows 1\): use that version\.$"):
        journal(tmp_path, unusable, schema=1).read()
    assert journal(tmp_path, unusable, schema=2).read() == "x"


@pytest.mark.parametrize("durable", [True, False])
def test_only_what_must_survive_a_power_cut_is_synced(tmp_path, monkeypatch, durable):
    synced = []
    monkeypatch.setattr(files.os, "fsync", synced.append)
    journal(tmp_path, durable=durable).write({"name": "x"})
    assert bool(synced) is durable
    journal(tmp_path, durable=not durable).write({"name": "y"}, durable=durable)
    assert journal(tmp_path).read() == "y"


def test_failed_write_leaves_the_old_content(tmp_path, monkeypatch):
    journal(tmp_path).write({"name": "old"})

    def full(*_given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(CommandFailed, match=r"journal\.json cannot be written: No space left on device\."):
        journal(tmp_path).write({"name": "new"})
    assert journal(tmp_path).read() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["journal.json"]
