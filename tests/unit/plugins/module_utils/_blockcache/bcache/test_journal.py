# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The notes about sets between two states, also where a former version of the collection has written them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache import journal
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.journal import Between
from ansible_collections.cachefleet.storage.plugins.module_utils._core import state_folder

FORMER = {"b1": {"set": "s1", "detaching": True}}


@pytest.fixture
def former(tmp_path):
    place = state_folder.former_place(journal.SETS_FILE, tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps(FORMER))
    return place


def between(root):
    return dict(journal.read_journal(root).between)


def test_notes_of_a_former_version_are_found_without_a_change(tmp_path, former):
    assert between(tmp_path) == {"b1": Between("s1", detaching=True)}
    assert former.exists() and not state_folder.place_of(journal.SETS_FILE, tmp_path).exists()


def test_they_are_moved_before_the_first_change(tmp_path, former):
    journal.note_between("b2", Between("s2"), tmp_path)
    assert between(tmp_path) == {"b1": Between("s1", detaching=True), "b2": Between("s2")}
    assert not former.parent.exists()
    journal.forget_set("s1", tmp_path)
    assert between(tmp_path) == {"b2": Between("s2")}
    journal.note_between("b2", None, tmp_path)
    assert between(tmp_path) == {}
    assert not state_folder.place_of(journal.SETS_FILE, tmp_path).exists()


def test_a_note_that_ends_is_not_found_again_at_the_former_place(tmp_path, former):
    journal.note_between("b1", None, tmp_path)
    assert between(tmp_path) == {} and not former.exists()


def test_notes_at_both_places_are_joined(tmp_path, former):
    place = state_folder.place_of(journal.SETS_FILE, tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"b2": {"set": "s2"}}))
    assert journal.sets_conflict(tmp_path) == ""
    assert between(tmp_path) == {"b1": Between("s1", detaching=True), "b2": Between("s2")}
    journal.note_between("b3", Between("s3"), tmp_path)
    assert sorted(json.loads(place.read_text())) == ["b1", "b2", "b3"] and not former.exists()


def test_another_note_about_the_same_device_is_kept_and_reported(tmp_path, former):
    place = state_folder.place_of(journal.SETS_FILE, tmp_path)
    place.parent.mkdir(parents=True)
    place.write_text(json.dumps({"b1": {"set": "s9"}}))
    assert journal.sets_conflict(tmp_path).startswith(f"{former} differs from {place}, which is used: it is kept as {place}.former")
    journal.note_between("b2", Between("s2"), tmp_path)
    assert between(tmp_path) == {"b1": Between("s9"), "b2": Between("s2")}
    assert json.loads(place.with_name(f"{place.name}.former").read_text()) == FORMER
    assert journal.sets_conflict(tmp_path) == ""
