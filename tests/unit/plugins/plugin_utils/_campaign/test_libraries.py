# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import subprocess
import sys

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign import libraries

STATISTICS = "ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics"
MODULES = ("changes", "fleet", "limit", "noise", "numbers", "oscillation", "outliers", "percentiles", "segments", "series", "steady", "two_variants")


def test_missing_library_is_reported_with_install_command():
    missing = libraries.Library("no_such_library.part", "Drawing")
    with pytest.raises(libraries.LibraryMissing) as caught:
        missing.plot()
    assert caught.value.to_dict() == {
        "msg": "Drawing needs the Python library no_such_library on the controller, and it cannot be imported (No module named 'no_such_library'): "
        f"run '{sys.executable} -m pip install no_such_library'.",
        "error": "library_missing",
        "item": "no_such_library",
    }


def test_one_command_installs_all_missing_libraries(monkeypatch):
    monkeypatch.setattr(libraries.importlib.util, "find_spec", lambda name: None if name in ("numpy", "scipy") else object())
    with pytest.raises(libraries.LibraryMissing, match="-m pip install no_such_library numpy scipy'"):
        libraries.Library("no_such_library", "Drawing").plot()


def test_missing_attribute_of_a_library_is_an_attribute_error():
    with pytest.raises(AttributeError):
        libraries.numpy.no_such_function()


def test_introspection_imports_nothing():
    assert not hasattr(libraries.Library("no_such_library", "Drawing"), "__wrapped__")


def test_package_is_importable_without_any_library():
    """As ansible-test does, and as a controller without statistics does."""
    script = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in ("numpy", "scipy", "ruptures"))
    script += "".join(f"import {STATISTICS}.{name}\n" for name in MODULES)
    script += f"from {STATISTICS}.series import classify\ntry:\n    classify([1.0] * 20)\nexcept Exception as error:\n    print(error)\n"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "Statistics of results needs the Python library numpy on the controller" in done.stdout, done.stderr
