# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Libraries that only the controller has, and the one sentence about one that is missing.

Each is imported when it is first used: a playbook that needs no statistics needs no library, and pays nothing for one.
"""

from __future__ import annotations

import importlib
import importlib.util
import shlex
import sys
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError


class LibraryMissing(StorageError):
    """A Python library that the controller needs is not installed."""

    kind = "library_missing"


class Library:
    """Stands for a module and imports it at the first use of one of its names.

    :param module: what is imported, ``scipy.stats``.
    :param purpose: what it is needed for, for the message.
    """

    def __init__(self, module: str, purpose: str) -> None:
        self._name = module
        self._purpose = purpose

    def __getattr__(self, name: str) -> t.Any:
        # Code that only inspects this object (pickle, inspect, pytest) must not import anything.
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(self._imported(), name)
        # The next use does not come through here.
        self.__dict__[name] = value
        return value

    def _imported(self) -> t.Any:
        try:
            return importlib.import_module(self._name)
        except ImportError as error:
            raise _missing(self._name, self._purpose, error) from None


def _missing(module: str, purpose: str, error: ImportError) -> LibraryMissing:
    package = module.partition(".")[0]
    packages = list(dict.fromkeys([package, *(name for name in _PACKAGES if importlib.util.find_spec(name) is None)]))
    command = shlex.join([sys.executable or "python3", "-m", "pip", "install", *packages])
    message = f"{purpose} needs the Python library {package} on the controller, and it cannot be imported ({error}): run '{command}'."
    return LibraryMissing(message, item=package)


duckdb = Library("duckdb", "Reading and writing tables of results")
numpy = Library("numpy", "Statistics of results")
scipy_optimize = Library("scipy.optimize", "Statistics of results")
scipy_special = Library("scipy.special", "Statistics of results")
scipy_stats = Library("scipy.stats", "Statistics of results")
ruptures = Library("ruptures", "Finding changes in a series")
plotly_offline = Library("plotly.offline", "The HTML report")

#: All that is missing of these is installed with one command.
_PACKAGES = ("duckdb", "numpy", "scipy", "ruptures", "plotly")
