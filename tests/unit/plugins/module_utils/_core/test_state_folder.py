# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of the former state folder are found, and moved once: whatever they meet, and wherever the move is killed."""

from __future__ import annotations

import errno
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import state_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed

NAME = "unit/journal.json"


class Killed(BaseException):
    """Stands for kill -9: nothing catches it."""


def put(place, text, mode=0o600):
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    place.chmod(mode)


def texts(root):
    """What is below both folders, by path."""
    return {str(path.relative_to(root / "var/lib")): path.read_text() for path in (root / "var/lib").rglob("*") if path.is_file()}


def test_former_file_is_found_and_moved_once(tmp_path):
    put(state_folder.former_place(NAME, tmp_path), "old")
    assert state_folder.present_place(NAME, tmp_path).read_text() == "old"
    before = state_folder.former_place(NAME, tmp_path).stat()
    state_folder.adopt(NAME, tmp_path)
    place = state_folder.place_of(NAME, tmp_path)
    assert (place.stat().st_ino, place.stat().st_mode, place.read_text()) == (before.st_ino, before.st_mode, "old")
    assert state_folder.present_place(NAME, tmp_path) == place
    assert not (tmp_path / state_folder.FORMER).exists(), "the empty folder is removed"
    state_folder.adopt(NAME, tmp_path)
    assert texts(tmp_path) == {"cachefleet/unit/journal.json": "old"}


def test_what_is_there_is_not_replaced_and_nothing_is_lost(tmp_path):
    place, former = state_folder.place_of(NAME, tmp_path), state_folder.former_place(NAME, tmp_path)
    put(place, "new")
    put(former, "old")
    put(former.with_name("other"), "of another unit")
    assert state_folder.conflict_of(NAME, tmp_path) == (
        f"{former} differs from {place}, which is used: it is kept as {place}.former, examine it and delete it."
    )
    assert state_folder.present_place(NAME, tmp_path) == place
    state_folder.adopt(NAME, tmp_path)
    assert texts(tmp_path) == {
        "cachefleet/unit/journal.json": "new",
        "cachefleet/unit/journal.json.former": "old",
        "cachefleet.storage/unit/other": "of another unit",
    }
    assert state_folder.conflict_of(NAME, tmp_path) == ""
    put(former, "older")
    state_folder.adopt(NAME, tmp_path)
    assert texts(tmp_path)["cachefleet/unit/journal.json.former2"] == "older"


def test_equal_files_are_one(tmp_path):
    put(state_folder.place_of(NAME, tmp_path), "same")
    put(state_folder.former_place(NAME, tmp_path), "same")
    assert state_folder.conflict_of(NAME, tmp_path) == ""
    state_folder.adopt(NAME, tmp_path)
    assert texts(tmp_path) == {"cachefleet/unit/journal.json": "same"}


def counted(base, calls, limit):
    """A function that is killed at the call after the last one that is allowed to all of them together."""

    def call(*args, **more):
        calls[0] += 1
        if calls[0] > limit:
            raise Killed
        return base(*args, **more)

    return call


@pytest.mark.parametrize("there", ["", "new"])
@pytest.mark.parametrize("copied", [False, True])
def test_move_that_is_killed_anywhere_is_completed_by_the_next(tmp_path, monkeypatch, there, copied):
    real = {name: getattr(os, name) for name in ("link", "unlink", "fsync", "rmdir", "mkdir")}
    former_folder = str(tmp_path / state_folder.FORMER)

    def between_file_systems(source, target, **more):
        if str(source).startswith(former_folder):
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return real["link"](source, target, **more)

    for limit in range(100):
        root = tmp_path if not limit else tmp_path / str(limit)
        former_folder = str(root / state_folder.FORMER)
        put(state_folder.former_place(NAME, root), "old")
        if there:
            put(state_folder.place_of(NAME, root), there)
        calls = [0]

        with monkeypatch.context() as patch:
            for name, function in real.items():
                base = between_file_systems if copied and name == "link" else function
                patch.setattr(os, name, counted(base, calls, limit))
            try:
                state_folder.adopt(NAME, root)
                killed = False
            except Killed:
                killed = True
        assert "old" in texts(root).values() and state_folder.present_place(NAME, root).read_text() == (there or "old")
        state_folder.adopt(NAME, root)
        left = {path: text for path, text in texts(root).items() if ".cachefleet-" not in path}
        assert left == {"cachefleet/unit/journal.json": there or "old", **({"cachefleet/unit/journal.json.former": "old"} if there else {})}
        if not killed:
            break
    else:
        pytest.fail("the move does not end")
    assert limit > 5


def test_move_that_fails_is_one_sentence_and_leaves_the_file(tmp_path, monkeypatch):
    put(state_folder.former_place(NAME, tmp_path), "old")

    def full(*_args, **_named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(CommandFailed, match=r"cannot be moved to .*/cachefleet/unit/journal.json: No space left on device"):
        state_folder.adopt(NAME, tmp_path)
    assert state_folder.present_place(NAME, tmp_path).read_text() == "old"
