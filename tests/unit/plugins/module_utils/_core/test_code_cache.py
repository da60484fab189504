# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compiled code is kept for the next process, never for another source, and never taken from where others may write."""

from __future__ import annotations

import importlib
import os
import resource
import sys
import zipfile
import zipimport

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import CodeCache, code_cache, compile_once

SOURCE = b"def value():\n    return 7\n"


def compile_source(path, source):
    compile_source.calls.append(path)
    return compile(source, path, "exec")


@pytest.fixture(autouse=True)
def calls():
    compile_source.calls = []
    return compile_source.calls


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "kept").mkdir(mode=0o700)
    return tmp_path / "kept"


def process(folder, path="a.py", source=SOURCE, owner=None):
    """What a process of its own would do; what the code defines."""
    cache = CodeCache(str(folder), os.geteuid() if owner is None else owner)
    names = {}
    exec(cache.compile_with(compile_source)(path, source), names)
    cache.keep()
    return names


def test_the_second_process_compiles_nothing(folder, calls):
    process(folder)
    names = process(folder, "elsewhere/a.py")
    assert (names["value"](), calls) == (7, ["a.py"])
    assert names["value"].__code__.co_filename == "elsewhere/a.py"
    assert os.stat(CodeCache(str(folder)).path).st_mode & 0o777 == 0o600


def test_another_source_is_compiled(folder, calls):
    process(folder)
    assert process(folder, source=SOURCE.replace(b"7", b"8"))["value"]() == 8
    assert process(folder)["value"]() == 7
    assert len(calls) == 2


def test_a_folder_that_does_not_exist_is_made_for_its_owner_only(tmp_path):
    process(tmp_path / "new")
    assert os.stat(tmp_path / "new").st_mode & 0o777 == 0o700


@pytest.mark.parametrize("damage", [lambda data: data[:-9], lambda data: data[:40] + b"\xff" + data[41:], lambda data: b"", lambda data: b"abc"])
def test_a_damaged_file_is_not_read(folder, calls, damage):
    process(folder)
    place = folder / os.listdir(folder)[0]
    place.write_bytes(damage(place.read_bytes()))
    assert process(folder)["value"]() == 7
    assert len(calls) == 2


def writable_file(folder):
    os.chmod(folder / os.listdir(folder)[0], 0o666)


def writable_folder(folder):
    os.chmod(folder, 0o777)


def link(folder):
    name = os.listdir(folder)[0]
    os.rename(folder / name, folder.parent / name)
    os.symlink(folder.parent / name, folder / name)


def pipe(folder):
    name = os.listdir(folder)[0]
    os.unlink(folder / name)
    os.mkfifo(folder / name, 0o600)


@pytest.mark.parametrize("change", [writable_file, writable_folder, link, pipe])
def test_what_others_could_have_written_is_not_run(folder, calls, change):
    process(folder)
    change(folder)
    assert process(folder)["value"]() == 7
    assert len(calls) == 2


def test_what_belongs_to_another_user_is_not_run_nor_written(folder, calls):
    process(folder)
    before = os.listdir(folder)
    for _again in range(2):
        process(folder, owner=os.geteuid() + 1)
    assert (len(calls), os.listdir(folder)) == (3, before)


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").touch()
    assert process(tmp_path / "file" / "kept")["value"]() == 7


def test_what_could_not_be_written_whole_leaves_nothing_in_run(folder):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        process(folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert os.listdir(folder) == []


def test_the_last_space_of_run_is_not_used(folder, monkeypatch):
    room = os.statvfs(folder)
    monkeypatch.setattr(sys.modules[CodeCache.__module__], "LEFT", room.f_blocks * room.f_frsize)
    process(folder)
    assert os.listdir(folder) == []


def test_only_root_has_a_cache(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert code_cache() is None


def test_code_that_is_no_longer_used_goes_when_there_is_much(folder, monkeypatch):
    process(folder)
    size = os.stat(CodeCache(str(folder)).path).st_size
    monkeypatch.setattr(sys.modules[CodeCache.__module__], "MOST", 100)
    process(folder, source=SOURCE.replace(b"7", b"8"))
    assert os.stat(CodeCache(str(folder)).path).st_size == size


def test_a_module_in_an_archive_is_compiled_by_the_first_process_only(tmp_path, folder, monkeypatch):
    compiled = []
    real = zipimport._compile_source
    for number in range(2):
        with zipfile.ZipFile(tmp_path / f"{number}.zip", "w") as file:
            file.writestr("kept_in_archive.py", "NAME = __file__\n")
        with monkeypatch.context() as patched:
            patched.syspath_prepend(str(tmp_path / f"{number}.zip"))
            patched.setattr(zipimport, "_get_module_code", zipimport._get_module_code)
            patched.setattr(zipimport, "_compile_source", lambda path, source: compiled.append(path) or real(path, source))
            cache = CodeCache(str(folder), os.geteuid())
            compile_once(lambda cache=cache: cache)
            assert str(tmp_path / f"{number}.zip" / "kept_in_archive.py") == importlib.import_module("kept_in_archive").NAME
            cache.keep()
        del sys.modules["kept_in_archive"]
    assert len(compiled) == 1
