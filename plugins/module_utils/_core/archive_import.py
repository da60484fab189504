# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Python files in the archive that Ansible sends to a host are compiled once until it is rebooted, instead of twice in every process."""

from __future__ import annotations

import functools
import typing as t
import zipimport

from ansible_collections.cachefleet.storage.plugins.module_utils._core.code_cache import code_cache

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.code_cache import CodeCache


def compile_once(cache_of_host: t.Callable[[], CodeCache | None] = code_cache) -> None:
    """Make the imports that follow cheap; without effect for files that are not in an archive.

    importlib calls ``get_filename`` of a zipimporter for the specification of a module, and then ``get_code`` for its code. Both
    compile the file, and nothing is imported in between. Source: Lib/zipimport.py and Lib/importlib/_bootstrap_external.py of
    CPython 3.8 to 3.13. A version without these functions is left as it is.
    """
    functions = vars(zipimport)
    of_module, compile_source = functions.get("_get_module_code"), functions.get("_compile_source")
    if not callable(of_module) or not callable(compile_source) or hasattr(of_module, "cache_info"):
        return
    cache = cache_of_host()
    if cache is not None:
        functions["_compile_source"] = cache.compile_with(compile_source)
    functions["_get_module_code"] = functools.lru_cache(maxsize=1)(of_module)
