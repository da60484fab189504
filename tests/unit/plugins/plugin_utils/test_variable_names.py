# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Variables that start like a role: which no role has, and what was meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import RoleVariables, complaint

TOP = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="module")
def variables():
    return RoleVariables()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("block_cache_cache", "block_cache_caches"),
        ("fio_benchmark_target", "fio_benchmark_targets"),
        ("fio_benchmark_suit", "fio_benchmark_suite"),
        ("drive_write_cache_drive", "drive_write_cache_drives"),
        ("raid_cache_controler", "raid_cache_controllers"),
        ("storage_network_link", "storage_network_links"),
    ],
)
def test_mistyped_variable_is_unknown_and_the_nearest_is_named(variables, name, meant):
    assert variables.unknown([name, meant, "my_own", "ansible_host", "__block_cache_found"]) == [name]
    assert complaint({name: ["a"]}, variables) == f"No role or playbook has the variable {name}, which is set for a: did you mean {meant}?"


def test_variable_that_is_like_no_other_names_the_role_and_few_hosts(variables):
    assert complaint({"block_queue_xyzzy": ["a", "b", "c", "d", "e"]}, variables) == (
        "No role or playbook has the variable block_queue_xyzzy, which is set for a, b, c and 2 more: "
        "rename it if it is a variable of your own, or see the README of the role block_queue."
    )


def test_every_variable_that_the_collection_itself_sets_is_known(variables):
    files = [path for folder in ("playbooks", "roles", "inventories", "molecule", "tests/rack") for path in (TOP / folder).rglob("*.yml")]
    assert len(files) > 50
    names = set()
    for path in files:
        text = re.sub(r"cachefleet\.storage\.\w+:", "", path.read_text())
        names.update(re.findall(r"^ *(?:- )?([a-z]\w+):", text, re.MULTILINE), re.findall(r"register: ([a-z]\w+)$", text, re.MULTILINE))
    assert variables.unknown(sorted(names)) == []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"fio_benchmark_targets": "/dev/sda"}, "fio_benchmark_targets must be a list of dictionaries, for example [{device: ...}]"),
        ({"fio_benchmark_targets": [{"fille": "x"}]}, "fio_benchmark_targets: there is no key fille: did you mean file?"),
        ({"fio_benchmark_suites": "quick"}, "fio_benchmark_suites must be a dictionary"),
        ({"drive_write_cache_drives": [{"device": "x"}]}, "drive_write_cache_drives: missing required arguments: write_cache"),
        ({"raid_cache_controllers": [{"xyzzy": 1}]}, "raid_cache_controllers: there is no key xyzzy: give one of "),
        ({"fio_benchmark_dry_run": "maybe"}, "fio_benchmark_dry_run must be true or false"),
        ({"block_queue_devices": [{"device": "/dev/x", "persistent": "maybe"}]}, "block_queue_devices: persistent must be true or false"),
        ({"fio_benchmark_repeats": "four"}, "fio_benchmark_repeats must be a whole number"),
        (
            {"drive_write_cache_drives": [{"device": "x", "write_cache": "of"}]},
            "drive_write_cache_drives: value of write_cache must be one of: enabled, disabled, got: of",
        ),
    ],
)
def test_wrong_type_or_key_is_one_sentence(variables, values, sentence):
    [found] = variables.type_errors(values)
    assert found.startswith(sentence)


@pytest.mark.parametrize(
    "values",
    [
        {"fio_benchmark_targets": "{{ targets }}"},
        {"drive_write_cache_drives": [{"device": "{{ disk }}", "write_cache": "of"}]},
        {"fio_benchmark_repeats": "4", "fio_benchmark_dry_run": "yes", "fio_benchmark_only": "a,b"},
        {"block_cache_caches": None, "my_own": object()},
    ],
)
def test_templates_and_text_of_the_command_line_are_accepted(variables, values):
    assert variables.type_errors(values) == []


def test_inventories_of_the_collection_are_accepted(variables):
    seen = 0
    for path in (TOP / "inventories").rglob("*_vars/**/*.yml"):
        values = yaml.safe_load(path.read_text()) or {}
        seen += len(values)
        assert (variables.unknown(values), variables.type_errors(values)) == ([], []), path
    assert seen > 10
