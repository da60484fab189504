# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Arguments of a module, for a test that calls its ``main``."""

from __future__ import annotations

import contextlib
import json
import typing as t

from ansible.module_utils import basic

try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:
    # ansible-core before 2.19.
    @contextlib.contextmanager
    def patch_module_args(args: dict[str, t.Any] | None = None) -> t.Iterator[None]:
        former = basic._ANSIBLE_ARGS
        basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": args or {}}).encode()
        try:
            yield
        finally:
            basic._ANSIBLE_ARGS = former


__all__ = ["patch_module_args"]
