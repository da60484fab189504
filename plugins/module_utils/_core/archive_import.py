# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Python files in the archive that Ansible sends to a host are compiled once in a process, instead of twice.

Nothing is kept for the next call: that would be code that root executes from a file, for 5 % of the CPU of a call on a configured host.
"""

from __future__ import annotations

import functools
import zipimport


def compile_once() -> None:
    """Make the imports that follow cheap; without effect for files that are not in an archive.

    importlib calls ``get_filename`` of a zipimporter for the specification of a module, and then ``get_code`` for its code. Both
    compile the file, and nothing is imported in between. Source: Lib/zipimport.py and Lib/importlib/_bootstrap_external.py of
    CPython 3.8 to 3.13. A version without this function is left as it is.
    """
    of_module = vars(zipimport).get("_get_module_code")
    if callable(of_module) and not hasattr(of_module, "cache_info"):
        vars(zipimport)["_get_module_code"] = functools.lru_cache(maxsize=1)(of_module)
