# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib
import threading

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import places
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.places import (
    exclusive,
    last_lines,
    make_folder,
    read_json,
    remove_folder,
    require_free,
    write_json,
)


def test_a_second_holder_of_a_lock_gives_up_with_a_sentence(tmp_path):
    lock = tmp_path / "rack/.lock"
    with exclusive(lock, patience=1, what="the rack demo"), pytest.raises(TimedOut, match="Another process has been working on the rack demo"):
        exclusive(lock, patience=0, what="the rack demo").__enter__()


def test_who_waited_while_the_folder_was_removed_locks_the_new_one(tmp_path):
    lock, entered = tmp_path / "rack/.lock", []

    def wait():
        with exclusive(lock, patience=10, what="the rack"):
            entered.append(lock.exists())

    with exclusive(lock, patience=1, what="the rack"):
        thread = threading.Thread(target=wait)
        thread.start()
        remove_folder(lock.parent)
    thread.join(10)
    assert entered == [True]


def test_json_is_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert read_json(tmp_path / "missing.json") is None


def test_a_damaged_file_is_one_sentence(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(StorageError, match=r"a\.json is damaged"):
        read_json(tmp_path / "a.json")


def test_free_space_is_checked_where_the_folder_will_be(tmp_path):
    require_free(tmp_path / "not/yet/there", 1, "a test")
    with pytest.raises(Refused, match=r"The disk is short: a test needs 1024 PiB in .*there, and .* are free"):
        require_free(tmp_path / "not/yet/there", 1024 * 1024**5, "a test")


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be made: Not a directory"):
        make_folder(tmp_path / "file/below")


def test_the_end_of_a_console(tmp_path):
    path = tmp_path / "console.log"
    path.write_text("x" * 100_000 + "\nlast but one\r\nKernel panic\n")
    assert last_lines(path, 2) == "last but one\nKernel panic"
    assert last_lines(pathlib.Path("/nowhere"), 2) == ""


def test_removing_what_is_not_there_or_may_not_be_removed(tmp_path, monkeypatch):
    remove_folder(tmp_path / "missing")

    def forbidden(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(places.shutil, "rmtree", forbidden)
    with pytest.raises(StorageError, match=r"cannot be removed: Permission denied"):
        remove_folder(tmp_path)


def test_a_lock_file_is_not_followed_to_another_place(tmp_path):
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"The lock file .* cannot be opened"), exclusive(tmp_path / ".lock", patience=0, what="it"):
        pass
    assert not (tmp_path / "elsewhere").exists()
