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


def test_second_lock_holder_times_out_with_one_sentence(tmp_path):
    lock = tmp_path / "rack/.lock"
    with exclusive(lock, patience=1, what="the rack demo"), pytest.raises(TimedOut, match="Another process has been working on the rack demo"):
        exclusive(lock, patience=0, what="the rack demo").__enter__()


def test_lock_waiter_uses_the_new_folder_after_removal(tmp_path):
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


def test_json_is_written_atomically(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert read_json(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    assert read_json(tmp_path / "missing.json") is None


def test_damaged_file_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "a.json").write_text("{")
    with pytest.raises(StorageError, match=r"a\.json is damaged"):
        read_json(tmp_path / "a.json")


def test_free_space_is_checked_at_the_future_location(tmp_path):
    require_free(tmp_path / "not/yet/there", 1, "a test")
    with pytest.raises(Refused, match=r"Not enough disk space: a test needs 1024 PiB in .*there, and .* are free"):
        require_free(tmp_path / "not/yet/there", 1024 * 1024**5, "a test")


def test_folder_creation_failure_is_reported_in_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be made: Not a directory"):
        make_folder(tmp_path / "file/below")


def test_last_console_lines(tmp_path):
    path = tmp_path / "console.log"
    path.write_text("x" * 100_000 + "\nlast but one\r\nKernel panic\n")
    assert last_lines(path, 2) == "last but one\nKernel panic"
    assert last_lines(pathlib.Path("/nowhere"), 2) == ""


def test_missing_or_undeletable_folder_is_handled(tmp_path, monkeypatch):
    remove_folder(tmp_path / "missing")

    def forbidden(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(places.shutil, "rmtree", forbidden)
    with pytest.raises(StorageError, match=r"cannot be removed: Permission denied"):
        remove_folder(tmp_path)


def test_lock_file_link_is_not_followed(tmp_path):
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"The lock file .* cannot be opened"), exclusive(tmp_path / ".lock", patience=0, what="it"):
        pass
    assert not (tmp_path / "elsewhere").exists()
