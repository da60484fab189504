# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Modules as a test calls them: their ``main`` in the process of the test, or as Ansible starts them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import typing as t

import pytest
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


def run_here(module: t.Any, capsys: pytest.CaptureFixture[str], arguments: dict[str, t.Any]) -> tuple[int, dict[str, t.Any]]:
    """The exit status of a module whose ``main`` is called here, and its result."""
    with patch_module_args(arguments), pytest.raises(SystemExit) as ended:
        module.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def run_process(name: str, arguments: dict[str, t.Any], check_mode: bool = False) -> dict[str, t.Any]:
    """The result of a module that is a process: it reads its arguments and prints JSON."""
    text = json.dumps({"ANSIBLE_MODULE_ARGS": {**arguments, "_ansible_check_mode": check_mode}})
    command = [sys.executable, "-m", f"ansible_collections.cachefleet.storage.plugins.modules.{name}"]
    completed = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert "Traceback" not in completed.stderr + completed.stdout, completed.stderr
    return json.loads(completed.stdout)
