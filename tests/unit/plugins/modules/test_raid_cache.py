# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The modules as Ansible calls them, with simulated tools in processes of their own."""

from __future__ import annotations

import pathlib
import sys

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule

from ansible_collections.cachefleet.storage.plugins.module_utils._raid import registry
from ansible_collections.cachefleet.storage.plugins.modules import raid_cache, raid_cache_info
from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators import simulator
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
_LAUNCHER = '#!/bin/sh\nCACHEFLEET_SIMULATORS={states} exec {python} -S {tests}/simulators/call.py {called} "$@"\n'


@pytest.fixture
def add(tmp_path, monkeypatch):
    """A function that adds a simulated controller and returns the path of its tool."""
    monkeypatch.setenv(simulator.FOLDER_VARIABLE, str(tmp_path))

    def make(name="storcli", model="MegaRAID 9361-8i", **options):
        launcher = tmp_path / name
        launcher.write_text(_LAUNCHER.format(tests=REPOSITORY / "tests", states=tmp_path, python=sys.executable, called=simulators.called(name)))
        launcher.chmod(0o755)
        simulators.add(name, model, {"volumes": 2, "drives": 4, **options})
        return str(launcher)

    return make


@pytest.fixture
def run(capsys):
    return lambda module, **arguments: run_here(module, capsys, arguments)


def test_settings_are_applied_and_verified_without_change_on_second_run(add, run):
    controllers = [{"provider": "storcli", "tool_path": add(), "volumes": [{"id": "all", "write": "writethrough"}]}]
    _code, predicted = run(raid_cache, controllers=controllers, _ansible_check_mode=True)
    code, first = run(raid_cache, controllers=controllers)
    assert code == 0
    assert (predicted["changed"], predicted["actions"], predicted["diff"]) == (first["changed"], first["actions"], first["diff"]) != (False, [], {})
    assert {volume["write"]["configured"] for volume in predicted["controllers"][0]["volumes"]} == {"writeback"}
    assert {volume["write"]["configured"] for volume in first["controllers"][0]["volumes"]} == {"writethrough"}
    _code, second = run(raid_cache, controllers=controllers)
    assert (second["changed"], second["actions"]) == (False, [])


def test_info_is_the_same_in_check_mode_and_serializable(add, run):
    tool = add("arcconf", "Adaptec ASR-81605ZQ")
    code, info = run(raid_cache_info, provider="arcconf", tool_path=tool, _ansible_check_mode=True)
    assert (code, info["changed"], info["problems"]) == (0, False, [])
    assert info["tools"] == [{"provider": "arcconf", "path": tool}]
    one = info["controllers"][0]
    assert (one["provider"], one["protection"]["health"], len(one["volumes"])) == ("arcconf", "healthy", 2)
    documented = yaml.safe_load(raid_cache_info.RETURN)["controllers"]["contains"]
    assert set(documented) == set(one)
    assert set(documented["volumes"]["contains"]) == set(one["volumes"][0])
    assert set(documented["drives"]["contains"]) == set(one["drives"][0])
    assert set(documented["protection"]["contains"]) == set(one["protection"])
    assert one["protection"]["raw"] != ""


def test_incomplete_output_is_an_info_problem_and_a_raid_cache_failure(add, run):
    tool = add()
    simulators.set_fault("storcli", "truncated", True)
    code, info = run(raid_cache_info, provider="storcli", tool_path=tool)
    assert code == 0
    assert info["problems"]
    code, failed = run(raid_cache, controllers=[{"provider": "storcli", "tool_path": tool, "volumes": [{"id": "all", "write": "writethrough"}]}])
    assert (code, failed["error"]) == (1, "not_understood")
    assert [call for call in simulator.calls("storcli") if "set" in call] == []


def test_ineffective_policy_is_a_warning_if_requested(add, run, monkeypatch):
    message = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda module, warning: message.append(warning))
    entry = {"provider": "storcli", "tool_path": add(), "volumes": [{"id": "all", "write": "writeback"}]}
    simulators.set_fault("storcli", "battery_failed", True)
    code, failed = run(raid_cache, controllers=[entry])
    assert (code, failed["error"], len(failed["not_in_force"])) == (1, "not_effective", 2)
    code, warned = run(raid_cache, controllers=[{**entry, "require_effective": False}])
    assert (code, warned["changed"]) == (0, False)
    assert len(message) == 1
    assert "but writethrough is in effect" in message[0]
    assert len(warned["not_in_force"]) == 2


def test_missing_tool_is_named_with_the_searched_folders(run, tmp_path):
    code, failed = run(raid_cache, controllers=[{"provider": "arcconf"}])
    if code == 0:
        pytest.skip("this machine has a real arcconf")
    assert failed["error"] == "tool_missing"
    assert "proprietary" in failed["msg"]
    assert all(folder in failed["msg"] for folder in registry.TOOLS["arcconf"].folders)
    _code, failed = run(raid_cache, controllers=[{"provider": "arcconf", "tool_path": str(tmp_path / "none")}])
    assert failed["error"] == "tool_missing"


@pytest.mark.parametrize(
    ("controllers", "words"),
    [
        ([{"volumes": [{"id": "0", "write": "wb"}]}], "write must be one of: writethrough, writeback, writeback_always"),
        ([{"provider": "megacli"}], "provider must be one of"),
        ([{"drive_cache": {"everything": "enabled"}}], "everything"),
        ([{"volumes": [{"write": "writeback"}]}], "exactly one of id, name, wwn"),
        ([{"cache_ratio": "much"}], "cache_ratio"),
    ],
)
def test_invalid_options_are_rejected(run, controllers, words):
    code, failed = run(raid_cache, controllers=controllers)
    assert code == 1
    assert words in failed["msg"]
    assert "Traceback" not in failed["msg"]


def test_empty_request_changes_nothing(run):
    code, result = run(raid_cache, controllers=[])
    assert (code, result["changed"], result["controllers"]) == (0, False, [])


def test_info_module_requires_provider_for_tool_path(run):
    code, failed = run(raid_cache_info, tool_path="/opt/tool")
    assert (code, failed["error"]) == (1, "bad_input")
