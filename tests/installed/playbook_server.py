# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs ``ansible-playbook`` many times at the cost of one start: each run is a fork of this process, which has imported Ansible and the libraries.

Each line of the standard input is a JSON list of arguments, each line of the output ``{"rc": ..., "text": ...}``. Modules of this collection are run
in a fork too, in place of a new Python to which they are sent, and another interpreter is only started: everything that is said about a variable is said
by the same code.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
import typing as t

import ansible.cli
from ansible.cli.playbook import PlaybookCLI
from ansible.inventory.manager import InventoryManager
from ansible.module_utils import basic
from ansible.parsing.dataloader import DataLoader
from ansible.plugins import loader
from ansible.plugins.action import ActionBase
from ansible.utils.collection_loader._collection_finder import _get_collection_metadata

try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:
    patch_module_args = None

_PLUGINS = "ansible_collections.cachefleet.storage.plugins."
_WARM = ("numpy", "scipy.stats", "plotly.graph_objects", "duckdb", "ruptures")
_SENT = ActionBase._execute_module


def forked(function: t.Callable[[], int]) -> tuple[int, str]:
    """The exit status of a function and what it printed."""
    with tempfile.TemporaryFile("w+") as printed:
        child = os.fork()
        if not child:
            status = 250
            try:
                os.dup2(printed.fileno(), 1)
                os.dup2(printed.fileno(), 2)
                sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
                status = function()
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else 1
            finally:
                with contextlib.suppress(OSError):
                    sys.stdout.flush()
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        printed.seek(0)
        return status, printed.read()


def enter(folder: str) -> None:
    """Results are written below it."""
    os.chdir(folder)
    os.environ["PWD"] = folder


def run_module(name: str, arguments: dict[str, t.Any]) -> dict[str, t.Any]:
    """The answer of a module of this collection."""

    def main() -> int:
        basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": arguments}).encode()
        if patch_module_args:
            with patch_module_args(arguments):
                importlib.import_module(f"{_PLUGINS}modules.{name}").main()
        else:
            importlib.import_module(f"{_PLUGINS}modules.{name}").main()
        return 0

    status, text = forked(main)
    lines = [line for line in text.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"failed": True, "rc": status, "msg": text}


def execute_module(
    self: ActionBase, module_name: str | None = None, module_args: dict[str, t.Any] | None = None, *args: t.Any, **kwargs: t.Any
) -> dict[str, t.Any]:
    """In place of ``ActionBase._execute_module``."""
    name = module_name or self._task.action
    if not name.startswith("cachefleet.storage."):
        return _SENT(self, module_name, module_args, *args, **kwargs)
    python = str((kwargs.get("task_vars") or {}).get("ansible_python_interpreter", sys.executable))
    if python != sys.executable:
        started = subprocess.run(["/bin/sh", "-c", f"{python} -c pass"], capture_output=True, text=True, check=False)
        return {
            "failed": True,
            "changed": False,
            "rc": started.returncode,
            "module_stdout": started.stdout,
            "module_stderr": started.stderr,
            "msg": "No start.",
        }
    arguments = {**(self._task.args if module_args is None else module_args), "_ansible_check_mode": self._task.check_mode, "_ansible_remote_tmp": "/tmp"}
    return run_module(name.rpartition(".")[2], arguments)


def warm() -> None:
    """Read and import what every run needs."""
    _get_collection_metadata("ansible.builtin")
    InventoryManager(loader=DataLoader(), sources=["localhost,"])
    for plugins in (loader.filter_loader, loader.test_loader, loader.callback_loader, loader.vars_loader):
        list(plugins.all(class_only=True))
    for plugins, name in (
        (loader.action_loader, "normal"),
        (loader.strategy_loader, "linear"),
        (loader.connection_loader, "local"),
        (loader.shell_loader, "sh"),
    ):
        plugins.get(f"ansible.builtin.{name}", class_only=True)
    for name in (*_WARM, *(f"{_PLUGINS}action.{verb}" for verb in ("benchmark_plan", "report", "verify_inventory")), f"{_PLUGINS}modules.cache_layers"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def main() -> None:
    """Until there are no more orders."""
    loader.init_plugin_loader()
    ansible.cli.init_plugin_loader = lambda *_args, **_kwargs: None
    ActionBase._execute_module = execute_module
    warm()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    for line in sys.stdin:
        order = json.loads(line)
        status, text = forked(lambda order=order: enter(order["folder"]) or PlaybookCLI.cli_executor(["ansible-playbook", *order["arguments"]]))
        answers.write(json.dumps({"rc": status, "text": text}) + "\n")


if __name__ == "__main__":
    main()
