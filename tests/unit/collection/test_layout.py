# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must agree between files that no tool compares."""

from __future__ import annotations

import pathlib
import re

import pytest
import yaml
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.cachefleet.storage.plugins.plugin_utils import _variable_names

TOP = pathlib.Path(__file__).resolve().parents[3]
ROLES = sorted(path.name for path in (TOP / "roles").iterdir())
MODULES = sorted(path.stem for path in (TOP / "plugins/modules").glob("*.py"))


def _load(path):
    return yaml.safe_load((TOP / path).read_text())


def _specification(role):
    return _load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]


@pytest.mark.parametrize("role", ROLES)
def test_role_defaults_match_the_documented_options(role):
    defaults = _load(f"roles/{role}/defaults/main.yml")
    documented = _specification(role)
    # A former name of a variable has no default: it is only looked at if it is set.
    former = {name for name, option in documented.items() if str(option["description"]).startswith("Former name of")}
    assert set(defaults) == {name for name, option in documented.items() if not option.get("required")} - former
    assert {name: option.get("default") for name, option in documented.items() if "default" in option} == {
        name: defaults[name] for name, option in documented.items() if "default" in option
    }


@pytest.mark.parametrize("role", ROLES)
def test_public_variables_have_the_role_prefix(role):
    assert all(name.startswith(f"{role}_") for name in _specification(role))


@pytest.mark.parametrize("role", ROLES)
def test_empty_role_lists_are_a_no_op(role):
    assert all(option["default"] == [] for option in _specification(role).values() if option["type"] == "list" and "default" in option)


def test_action_group_lists_every_module_documenting_it():
    documented = [name for name in MODULES if "_attributes.actiongroup_storage" in (TOP / f"plugins/modules/{name}.py").read_text()]
    assert sorted(_load("meta/runtime.yml")["action_groups"]["storage"]) == documented == MODULES


def test_every_action_plugin_is_documented_by_a_module():
    assert {path.stem for path in (TOP / "plugins/action").glob("*.py")} <= set(MODULES)


def test_modules_of_hosts_compile_their_imports_once():
    of_controller = {path.stem for path in (TOP / "plugins/action").glob("*.py")} - {"storage_network", "cache_layers", "fio_runner", "io_trace"} | {
        "virtual_rack",
        "virtual_rack_image",
    }
    # What it keeps is what this module removes.
    of_controller |= {"host_files"}
    begin = re.compile(
        r'"""\n\nfrom \S+\._core\.archive_import import compile_once\n\nif __name__ == "__main__":\n    # .*\n    compile_once\(\)\n\n(?:import|from) '
    )
    assert [name for name in MODULES if not begin.search((TOP / f"plugins/modules/{name}.py").read_text())] == sorted(of_controller)


def test_module_utils_are_private_by_their_names():
    for path in (TOP / "plugins/module_utils").rglob("*.py"):
        assert path.relative_to(TOP / "plugins/module_utils").parts[0].startswith("_")


def test_module_utils_import_only_the_standard_library():
    allowed = re.compile(r"^(from|import) (ansible\.module_utils|ansible_collections\.cachefleet\.storage\.plugins\.module_utils|__future__)")
    import sys

    for folder in ("module_utils", "modules"):
        for path in (TOP / "plugins" / folder).rglob("*.py"):
            for line in path.read_text().splitlines():
                match = re.match(r"^(?:from|import) ([\w]+)", line)
                if match and not allowed.match(line):
                    assert match.group(1) in sys.stdlib_module_names, f"{path}: {line}"


def _inventory_files():
    return sorted(path.relative_to(TOP) for name in ("group_vars", "host_vars") for path in (TOP / "inventories").glob(f"*/{name}/**/*.yml"))


def _as_argument_spec(options):
    return {
        name: {key: value for key, value in option.items() if key in ("type", "elements", "choices", "required", "default")}
        | ({"options": _as_argument_spec(option["options"])} if "options" in option else {})
        for name, option in options.items()
    }


@pytest.mark.parametrize("path", _inventory_files(), ids=str)
def test_included_inventories_are_valid(path):
    known = {**{name: option for role in ROLES for name, option in _specification(role).items()}, **_variable_names._OF_SEVERAL_ROLES}
    variables = {name: value for name, value in (_load(path) or {}).items() if not name.startswith(("ansible_", "__"))}
    own = {name for name in variables if name.split("_machine")[0] == "virtual_rack" and name not in known}
    unknown = set(variables) - set(known) - own
    assert not unknown
    given = {name: value for name, value in variables.items() if name in known}
    specification = _as_argument_spec({name: known[name] | {"required": False} for name in given})
    assert ArgumentSpecValidator(specification).validate(given).error_messages == []


def _tasks(entries):
    for entry in entries or []:
        yield entry
        for part in ("block", "rescue", "always", "pre_tasks", "tasks", "post_tasks", "handlers"):
            yield from _tasks(entry.get(part))


@pytest.mark.parametrize("path", sorted([*(TOP / "playbooks").glob("*.yml"), *(TOP / "roles").glob("*/tasks/**/*.yml")]), ids=str)
def test_no_condition_stands_before_the_reason_of_a_failure(path):
    """Newer cores print the expression of failed_when first: a module, ansible.builtin.fail or assert decides, with a sentence."""
    conditions = [task["failed_when"] for task in _tasks(yaml.safe_load(path.read_text())) if "failed_when" in task]
    assert all(condition is False for condition in conditions), conditions


@pytest.mark.parametrize("role", ROLES)
def test_example_in_the_readme_of_a_role_is_valid(role):
    (example,) = re.findall(r"```yaml\n(.*?)```", (TOP / f"roles/{role}/README.md").read_text(), flags=re.DOTALL)
    (play,) = yaml.safe_load(example)
    variables = {name: value for one in play.get("roles", ()) for name, value in one.get("vars", {}).items()}
    known = _specification(role)
    assert set(variables) <= set(known)
    specification = _as_argument_spec({name: known[name] | {"required": False} for name in variables})
    assert ArgumentSpecValidator(specification).validate(variables).error_messages == []
