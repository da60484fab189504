# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller with the installed collection: an inventory of this machine and of an unreachable host."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

_BIN = Path(sys.executable).parent
_HOSTILE_PYTHON = Path(__file__).parent / "hostile/python"
_COLLECTION = Path(os.environ["ANSIBLE_COLLECTIONS_PATH"].split(":")[0]) / "ansible_collections/cachefleet/storage"
_ROLES = sorted(path.parent.parent.name for path in _COLLECTION.glob("roles/*/meta/argument_specs.yml"))


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


class Attack:
    """One hostile host, and whether it got what it wanted."""

    collection = _COLLECTION
    roles = _ROLES

    def __init__(self, folder):
        self.folder = folder
        self.marker = folder / "executed"
        self.stolen = folder / "stolen"
        self.answers = folder / "answers.json"
        self.command = f"touch {self.marker}"
        self.template = f"lookup('ansible.builtin.pipe', '{self.command}')"
        self.plan = {"python": sys.executable, "add": {}, "instead": {}}
        self.variables = {}

    @functools.cached_property
    def options(self):
        """The options of all roles."""
        specs = [yaml.safe_load((_COLLECTION / f"roles/{role}/meta/argument_specs.yml").read_text()) for role in _ROLES]
        return {name: option for spec in specs for entry in spec["argument_specs"].values() for name, option in entry["options"].items()}

    @property
    def facts(self):
        """Every variable of every role, and what roles and playbooks keep for themselves, as an attacker sets it."""
        values = {"str": f"{{{{ {self.template} }}}}", "path": str(self.stolen), "list": ["touch", str(self.marker)], "bool": True, "int": 7, "float": 7.5}
        facts = {name: values.get(option.get("type", "str"), {"command": str(self.marker)}) for name, option in self.options.items()}
        facts |= {"power_loss_test_cutter": "command", "power_loss_test_witness": "localhost", "ansible_facts": {}, "ansible_connection": "local"}
        facts |= {
            name: str(self.stolen) for name in ("describe_directory", "plan_directory", "report_campaign", "fio_benchmark_results", "power_loss_test_results")
        }
        facts["cache_health_timer"] = {"unit_directory": str(self.stolen), "command": str(_BIN / "ansible-playbook"), "user": "root", "directory": "/"}
        return {**facts, "__sweep_tasks": f"../../../../../../{self.stolen}", "__cache_layers_verifies": True, "sweep_campaign": {"path": str(self.stolen)}}

    @property
    def additions(self):
        """What is added to each answer: facts, keys of other modules and of Ansible, escape sequences of a terminal."""
        escapes = f"\x1b]0;x\x07\x1b[2J\u202e{{{{ {self.template} }}}}"
        return {
            "ansible_facts": self.facts,
            "_ansible_facts_cacheable": True,
            "add_host": {"host_name": "localhost", "host_vars": self.facts},
            "add_group": "all",
            "ansible_stats": {"data": {"x": 1}, "per_host": True},
            "include": "x.yml",
            "surplus": {"key": escapes},
            "warnings": [escapes],
            "deprecations": [{"msg": escapes, "version": "9.9"}],
        }

    def play(self, *arguments, plays=None, hostile=("bad",), **environment):
        interpreters = {host: str(_HOSTILE_PYTHON) if host in hostile else sys.executable for host in ("bad", "good")}
        hosts = {
            host: {**self.variables, "ansible_python_interpreter": python, "fio_benchmark_spool": str(self.folder / f"spool-{host}")}
            for host, python in interpreters.items()
        }
        inventory = self.folder / "inventory.json"
        inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": {"ansible_connection": "local", "ansible_become": False}}}))
        self.answers.write_text(json.dumps(self.plan))
        if plays is not None:
            (self.folder / "plays.yml").write_text(json.dumps(plays))
            arguments = ("plays.yml", *arguments)
        own = {name: value for name, value in os.environ.items() if name == "ANSIBLE_COLLECTIONS_PATH" or not name.startswith("ANSIBLE_")}
        own |= {"HOSTILE_ANSWERS": str(self.answers), "PATH": f"{_BIN}:{os.environ['PATH']}", "PWD": str(self.folder), "ANSIBLE_NOCOLOR": "1", **environment}
        command = [str(_BIN / "ansible-playbook"), "-i", str(inventory), *arguments]
        done = subprocess.run(command, cwd=self.folder, env=own, capture_output=True, text=True, timeout=900, check=False, stdin=subprocess.DEVNULL)
        assert not self.marker.exists(), done.stdout
        assert not self.stolen.exists(), done.stdout
        return done

    @property
    def given(self):
        """How many answers were changed: an attack that reaches no one shows nothing."""
        path = Path(f"{self.answers}.given")
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def attack(tmp_path):
    return Attack(tmp_path)
