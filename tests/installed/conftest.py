# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with the installed collection: an inventory of this machine and of an unreachable host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_BIN = Path(sys.executable).parent


class Controller:
    """An inventory with one host that is this machine and one that is unreachable."""

    def __init__(self, folder):
        self.folder = folder
        self.inventory = folder / "inventory.json"
        self.results = folder / "results"
        target = {"file": str(folder / "target.bin"), "size": "16m"}
        suite = {"tiny": {"cells": [{"name": "write", "job": {"rw": "randwrite", "bs": "4k", "ioengine": "psync", "runtime": 1, "time_based": 1}}]}}
        common = {"ansible_become": False, "ansible_python_interpreter": sys.executable, "fio_benchmark_spool": str(folder / "spool")}
        self.hosts = {
            "here": {"ansible_connection": "local"},
            "gone": {"ansible_host": "127.0.0.1", "ansible_port": 1, "ansible_ssh_common_args": "-o ConnectTimeout=2"},
        }
        self.variables = {**common, "fio_benchmark_suite": "tiny", "fio_benchmark_suites": suite, "fio_benchmark_targets": [target]}

    @property
    def extra(self):
        """Only what was given on the command line counts for plays on the controller."""
        return {
            "fio_benchmark_results": str(self.results),
            "fio_benchmark_campaign": "tested",
            "report_campaign": str(self.results / "tested"),
            # A host has one journal of sweeps, and several tests sweep this machine at the same time.
            "__sweep_folder": str(self.folder / "sweep"),
        }

    def write_inventory(self, *hosts, **variables):
        inventory = {"all": {"hosts": {host: self.hosts[host] for host in hosts}, "vars": {**self.variables, **variables}}}
        self.inventory.write_text(json.dumps(inventory))

    def play(self, name, *hosts, limit="", **variables):
        self.write_inventory(*hosts, **variables)
        command = [
            str(_BIN / "ansible-playbook"),
            "-i",
            str(self.inventory),
            "-e",
            json.dumps(self.extra),
            f"cachefleet.storage.{name}",
            *(["--limit", limit] if limit else []),
        ]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "PATH": f"{_BIN}:{os.environ['PATH']}"}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=1800, check=False)


@pytest.fixture
def controller(tmp_path):
    return Controller(tmp_path)
