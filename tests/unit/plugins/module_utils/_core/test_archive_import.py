# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in an archive are compiled once, and errors in them are still errors."""

from __future__ import annotations

import importlib
import sys
import zipfile
import zipimport

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.archive_import import compile_once


def no_cache():
    return None


@pytest.fixture
def archive(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "payload.zip", "w") as file:
        file.writestr("in_archive/__init__.py", "")
        file.writestr("in_archive/outer.py", "from in_archive.inner import VALUE\nNAME = __file__\n")
        file.writestr("in_archive/inner.py", "VALUE = 7\n")
        file.writestr("in_archive/wrong.py", "VALUE = = 7\n")
    monkeypatch.syspath_prepend(str(tmp_path / "payload.zip"))
    monkeypatch.setattr(zipimport, "_get_module_code", zipimport._get_module_code)
    compiled = []
    real = zipimport._compile_source
    monkeypatch.setattr(zipimport, "_compile_source", lambda path, source: compiled.append(path.rpartition("/")[2]) or real(path, source))
    yield compiled
    for name in [name for name in sys.modules if name.startswith("in_archive")]:
        del sys.modules[name]


def test_each_file_is_compiled_once(archive):
    compile_once(no_cache)
    module = importlib.import_module("in_archive.outer")
    assert (module.VALUE, module.NAME.endswith("payload.zip/in_archive/outer.py")) == (7, True)
    assert sorted(archive) == ["__init__.py", "inner.py", "outer.py"]


def test_errors_in_a_file_are_raised_and_a_second_call_changes_nothing(archive):
    compile_once(no_cache)
    before = zipimport._get_module_code
    compile_once(no_cache)
    assert zipimport._get_module_code is before
    with pytest.raises(SyntaxError):
        importlib.import_module("in_archive.wrong")


def test_a_python_without_the_function_is_left_as_it_is(archive, monkeypatch):
    monkeypatch.delattr(zipimport, "_get_module_code")
    compile_once(no_cache)
    assert not hasattr(zipimport, "_get_module_code")
