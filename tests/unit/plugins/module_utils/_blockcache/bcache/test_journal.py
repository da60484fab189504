# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The notes about sets between two states."""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.journal import Between
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import place_of


def between(root):
    return dict(journal.read_journal(root).between)


def test_notes_end_one_by_one_and_with_their_set(tmp_path):
    journal.note_between("b1", Between("s1", detaching=True), tmp_path)
    journal.note_between("b2", Between("s2"), tmp_path)
    assert between(tmp_path) == {"b1": Between("s1", detaching=True), "b2": Between("s2")}
    journal.forget_set("s1", tmp_path)
    assert between(tmp_path) == {"b2": Between("s2")}
    journal.note_between("b2", None, tmp_path)
    assert between(tmp_path) == {}
    assert not place_of(journal.SETS_FILE, tmp_path).exists()
