# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook site: what roles take reaches the one call, tags select layers, and empty lists cost no call."""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import MEASUREMENT, argument_spec

TOP = pathlib.Path(__file__).resolve().parents[3]
SITE = TOP / "playbooks/site.yml"
ROLE = TOP / "roles/cache_layers"
ROLES = ("drive_write_cache", "raid_cache", "block_cache", "storage_network", "block_queue")
#: Variables of the roles that site leaves to them: they are for steps that only a role has.
OF_ROLES = re.compile(r"block_cache_(replace|flush)_\w+|storage_network_(prove_peers|side)")


def tasks_of(name):
    return yaml.safe_load((ROLE / f"tasks/{name}.yml").read_text())


def test_a_converged_host_has_one_call_in_at_most_six_tasks():
    (play,) = yaml.safe_load(SITE.read_text())
    (block,) = play["tasks"]
    (only,), (last,) = block["block"], block["always"]
    # What is imported is decided before the play begins: the removal costs a configured host no task.
    assert only["ansible.builtin.import_tasks"]["file"].startswith("tasks/site_{{") and "include" not in str(only)
    (role,) = yaml.safe_load((SITE.parent / "tasks/site_present.yml").read_text())
    assert role["ansible.builtin.import_role"] == {"name": "cachefleet.storage.cache_layers", "rolespec_validate": False}
    tasks = tasks_of("main")
    assert len(tasks) + 1 <= 6
    assert [task for task in tasks if task.get("ansible.builtin.import_tasks") == "call.yml"] == [tasks[1]]
    assert all("pending" in condition for condition in tasks[2]["when"]) and tasks[2]["ansible.builtin.include_tasks"] == "pending.yml"
    assert len(tasks_of("call")) == 1
    # The summary costs one task for all hosts, and is printed even if some have failed.
    assert "cachefleet.storage.summary" in last and last["run_once"] is True


def test_the_second_call_is_made_only_for_what_the_first_has_left_and_never_replaces_its_result_by_a_skipped_task():
    last = tasks_of("pending")[0]["block"][-1]
    assert last["ansible.builtin.include_tasks"] == "call.yml"
    assert "__cache_layers_result.waiting" in last["when"][1] and "'block_cache' in __cache_layers_pending" in last["when"][1]


def test_failures_outside_of_the_call_replace_its_result_for_the_summary():
    for block in (tasks_of("main")[0], *tasks_of("pending")):
        (failure,) = block["rescue"]
        assert (
            failure["register"] == "__cache_layers_result"
            and "ansible_failed_result | cachefleet.storage.failure_reason" in failure["ansible.builtin.fail"]["msg"]
        )


def test_every_variable_of_the_roles_reaches_the_call_and_none_is_invented():
    variables = {
        name for role in ROLES for name in yaml.safe_load((TOP / f"roles/{role}/meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    }
    text = "".join(path.read_text() for path in (*ROLE.glob("tasks/*.yml"), *ROLE.glob("vars/*.yml")))
    used = set(re.findall(r"(?<!\w)(?:drive_write_cache|raid_cache|block_cache|storage_network|block_queue)_\w+", text))
    unknown = {name for name in used - variables if not name.endswith(("_configure", "_prove"))}
    assert unknown == set()
    assert {name for name in variables - used if not OF_ROLES.fullmatch(name)} == set()


def test_every_variable_that_has_a_default_is_evaluated_without_it_first():
    """``default()`` takes a variable with an undefined one in its template as not set."""
    variables = yaml.safe_load((ROLE / "vars/main.yml").read_text())
    used = (ROLE / "tasks/call.yml").read_text() + json.dumps(variables["__cache_layers_network"]) + variables["__cache_layers_is_target"]
    found = set(re.findall(r"(\w+) \| default\(", used)) - {f"__cache_layers_{name}" for name in ("is_last", "verifies", "benchmark", "settle")}
    assert found == {*variables["__cache_layers_lists"], *variables["__cache_layers_options"]}


def test_every_option_of_the_module_is_set():
    (call,) = tasks_of("call")
    assert set(call["cachefleet.storage.cache_layers"]) == {*argument_spec(), *MEASUREMENT}


def test_the_plan_is_the_same_call_in_check_mode_and_nothing_else():
    (block,) = tasks_of("plan")
    assert block["check_mode"] is True
    assert [task["ansible.builtin.import_tasks"] for task in block["block"]] == ["call.yml"]
    assert [task["ansible.builtin.meta"] for task in block["rescue"]] == ["noop"]


def _has_json_output():
    try:
        return importlib.util.find_spec("ansible_collections.ansible.posix.plugins.callback.json") is not None
    except ImportError:
        return False


needs_json_output = pytest.mark.skipif(not _has_json_output(), reason="ansible.posix, which prints the results of a play as JSON, is not installed")


def _run(tmp_path, *arguments, status=0, **variables):
    """Play site on this machine in check mode; the layers that the call was limited to, or ``None`` if there was no call.

    :param status: the exit status that it must have.
    """
    environment = {
        **os.environ,
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOCAL_TEMP": str(tmp_path),
        "ANSIBLE_CONFIG": str(TOP / "ansible.cfg"),
        # With ansible-core 2.21 results do not have it by themselves.
        "ANSIBLE_INJECT_INVOCATION": "1",
    }
    command = [str(pathlib.Path(sys.executable).with_name("ansible-playbook")), "-i", "here,", "-c", "local", str(SITE), "--check", "-vvv"]
    extra = {"ansible_become": False, "ansible_python_interpreter": sys.executable, **variables}
    played = subprocess.run([*command, "-e", json.dumps(extra), *arguments], env=environment, capture_output=True, text=True, timeout=900, check=False)
    report = json.loads(played.stdout[played.stdout.index("{") :])
    assert played.returncode == status, report
    if status:
        return None
    call = next(task["hosts"]["here"] for one in report["plays"] for task in one["tasks"] if task["task"]["name"].endswith(" : Configure the cache layers"))
    return None if call.get("skipped") else call["invocation"]["module_args"]["layers"]


NOTHING = {"block_queue_devices": [{"match": {"serial": ["no drive has this serial"]}, "scheduler": "none"}]}


@needs_json_output
def test_empty_lists_cost_no_call(tmp_path):
    assert _run(tmp_path, block_queue_devices=[]) is None


@needs_json_output
@pytest.mark.parametrize(("arguments", "variables"), [((), {}), (("--tags", "something_else"), {"block_queue_devices": []})])
def test_what_selects_nothing_fails(tmp_path, arguments, variables):
    _run(tmp_path, *arguments, status=2, **variables)


@needs_json_output
@pytest.mark.parametrize(
    ("arguments", "layers"),
    [
        ((), list(ROLES)),
        (("--tags", "block_queue"), ["block_queue"]),
        (("--tags", "block_queue_configure,drive_write_cache"), ["drive_write_cache", "block_queue"]),
        (("--skip-tags", "block_cache"), ["drive_write_cache", "raid_cache", "storage_network", "block_queue"]),
    ],
)
def test_tags_select_layers(tmp_path, arguments, layers):
    assert _run(tmp_path, *arguments, **NOTHING) == layers


@needs_json_output
@pytest.mark.parametrize("protected", [None, "*SSDSC2BB*"])
def test_protected_drives_may_be_empty_or_one_text(tmp_path, protected):
    assert _run(tmp_path, storage_protected_drives=protected, **NOTHING) == list(ROLES)
