# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Python files in the archive that Ansible sends to a host are compiled once instead of twice."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import functools
import zipimport


def compile_once() -> None:
    """Halve the cost of the imports that follow; without effect for files that are not in an archive.

    importlib calls ``get_filename`` of a zipimporter for the specification of a module, and then ``get_code`` for its code. Both
    compile the file, and nothing is imported in between. Source: Lib/zipimport.py and Lib/importlib/_bootstrap_external.py of
    CPython 3.8 to 3.13. A version without this function is left as it is.
    """
    functions = vars(zipimport)
    compile_file = functions.get("_get_module_code")
    if callable(compile_file) and not hasattr(compile_file, "cache_info"):
        functions["_get_module_code"] = functools.lru_cache(maxsize=1)(compile_file)
