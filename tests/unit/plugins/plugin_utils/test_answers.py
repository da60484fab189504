# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is kept of the answer of a host. With Ansible around it: ``tests/installed/test_hostile_hosts.py``."""

from __future__ import annotations

import ast
import json
import types
from pathlib import Path

import pytest
from ansible.errors import AnsibleActionFail

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import FURTHER, BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain, printable
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostOutcome
from ansible_collections.cachefleet.storage.plugins.plugin_utils._answers import StorageAction, expected_of, limited_to, refuse_injected_variables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._variable_names import not_for_hosts

TOP = Path(__file__).resolve().parents[4]


def kept(answer, module="cachefleet.storage.cache_stack_info"):
    return json.loads(limited_to(json.dumps(answer), expected_of(module), "node1")[0])


def test_only_what_the_module_documents_is_kept():
    answer = {"changed": False, "devices": [1], "ansible_facts": {"a": 1}, "add_host": {}, "_ansible_no_log": True, "caches": [], "results": []}
    assert kept(answer) == {"changed": False, "devices": [1]}
    assert kept({"ansible_facts": {}, "content": "eA==", "devices": []}, "ansible.builtin.slurp") == {"content": "eA=="}


@pytest.mark.parametrize("module", ["cache_layers", "sweep_step"])
def test_what_is_not_in_effect_is_kept(module):
    """A variant of a sweep that was not applied would be measured without a word."""
    answer = {name: value for name, value in HostOutcome().to_dict().items() if name != "changed"}
    assert {"pending", "waiting", "not_running", "left_out"} < kept(answer, f"cachefleet.storage.{module}").keys() == answer.keys()
    assert ("benchmark" in kept({"benchmark": {}}, f"cachefleet.storage.{module}")) is True


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;x\x07", "\u202e", "a\rb", "\x85", "\u2028", "\x00", "\x9b2J"])
def test_characters_that_act_on_a_terminal_are_replaced_in_keys_and_values(text):
    [(key, value)] = kept({"msg": {text: [text]}})["msg"].items()
    for found in (key, *value):
        assert all(char.isprintable() for char in found) and "\ufffd" in found


def test_lines_and_tabs_stay():
    assert printable("a\n\tb\r\nc") == "a\n\tb\nc"
    assert plain("a\n\tb\x1b[31mc\x1b[0m") == "a bc"


def test_what_is_printed_instead_of_a_result_is_passed_on_without_escapes():
    assert limited_to("Traceback \x1b[2J", frozenset(), "node1") == ("Traceback \ufffd[2J", [])
    text, dropped = limited_to('junk\n{"msg": 1, "pending": 2}\njunk \x1b[2J', frozenset({"msg"}), "node1")
    assert json.loads(text) == {"msg": 1} and dropped == ["pending"]


def test_answers_that_are_too_deep_fail_with_one_sentence():
    with pytest.raises(AnsibleActionFail, match="nested too deeply"):
        limited_to('{"msg": ' + "[" * 100_000 + "]" * 100_000 + "}", frozenset({"msg"}), "node1")


def test_a_host_with_variables_of_the_collection_in_its_facts_is_refused():
    refuse_injected_variables({"ansible_facts": {"distribution": "Debian", "site_name": "x", "lvm": {}}, "cache_health_notify_command": []})
    with pytest.raises(AnsibleActionFail, match=r"only the inventory may set \(__sweep_tasks, cache_health_notify_command\)"):
        refuse_injected_variables({"inventory_hostname": "n1", "ansible_facts": {"cache_health_notify_command": [], "__sweep_tasks": "x", "a": 1}})


def test_names_of_roles_and_playbooks_are_reserved_and_no_others():
    own = [
        "__describe_path",
        "__cache_layers_is_last",
        "storage_protected_drives",
        "storage_hosts",
        "fio_benchmark_any",
        "health_failure",
        "inventory_hostname",
    ]
    assert not_for_hosts([*own, "site_name", "ansible_facts", "__other", "health", "results"]) == sorted(own)


def test_every_further_value_of_an_error_is_one_that_the_controller_accepts():
    """An error class of the collection is called with ``item``, ``completed`` and values for the result of the task."""
    classes = {BadInput.__mro__[1].__name__}
    trees = [ast.parse(path.read_text()) for path in (TOP / "plugins/module_utils").rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    while True:
        found = {one.name for one in nodes if isinstance(one, ast.ClassDef) and {getattr(base, "id", "") for base in one.bases} & classes}
        if found <= classes:
            break
        classes |= found
    calls = [one for one in nodes if isinstance(one, ast.Call) and getattr(one.func, "id", "") in classes]
    used = {keyword.arg for call in calls for keyword in call.keywords if keyword.arg} - {"item", "completed", "changed"}
    assert len(calls) > 100 and used <= FURTHER, used - FURTHER


@pytest.mark.parametrize(
    ("action", "args", "message"),
    [
        ("compare", {"thresholds": "5%"}, "compare_thresholds: thresholds must be a dictionary, not '5%': for example thresholds: {key: value}."),
        ("compare", {"files": ["pdf"]}, "compare_files: value of files must be one or more of: json. Got no match for: pdf"),
        ("collect", {"files": ["pdf"]}, "value of files must be one or more of: json. Got no match for: pdf"),
    ],
)
def test_wrong_option_of_a_verb_names_the_variable_of_its_playbook(action, args, message):
    verb = object.__new__(StorageAction)
    vars(verb).update(_task=types.SimpleNamespace(action=f"cachefleet.storage.{action}", args=args), _load_name=action)
    spec = {"thresholds": {"type": "dict"}, "files": {"type": "list", "elements": "str", "choices": ["json"]}}
    with pytest.raises(AnsibleActionFail) as failure:
        verb.validate_argument_spec(argument_spec=spec)
    assert failure.value.message == message
