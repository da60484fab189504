# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module as Ansible calls it, with the simulated tool in a process of its own."""

from __future__ import annotations

import pathlib
import sys

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.filter.raid_settings import raid_settings
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import caches as maxcache
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.maxcache import spec as maxcache_spec
from ansible_collections.cachefleet.storage.plugins.modules import raid_maxcache
from ansible_collections.cachefleet.storage.tests.simulators import __main__ as simulators
from ansible_collections.cachefleet.storage.tests.simulators import simulator
from ansible_collections.cachefleet.storage.tests.unit.support.module_calls import run_here

REPOSITORY = pathlib.Path(__file__).resolve().parents[4]
_LAUNCHER = '#!/bin/sh\nCACHEFLEET_SIMULATORS={states} exec {python} -S {tests}/simulators/call.py {called} "$@"\n'


@pytest.fixture
def tool(tmp_path, monkeypatch):
    """A simulated series 8 card whose SSDs are 0,12 and 0,13; time passes only between its answers."""
    monkeypatch.setenv(simulator.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setattr(maxcache, "FIRST_PAUSE", 0.0)
    launcher = tmp_path / "arcconf"
    launcher.write_text(_LAUNCHER.format(tests=REPOSITORY / "tests", states=tmp_path, python=sys.executable, called=simulators.called("arcconf")))
    launcher.chmod(0o755)
    simulators.add("arcconf", "Adaptec ASR-81605ZQ", {"volumes": 1, "drives": 4, "ssds": 2, "maxcache": False})
    return str(launcher)


@pytest.fixture
def run(capsys):
    return lambda *controllers, **more: run_here(raid_maxcache, capsys, {"controllers": list(controllers), **more})


def test_cache_is_created_used_and_removed(tool, run):
    who = {"provider": "arcconf", "tool_path": tool}
    requested = {
        **who,
        "cache_volumes": [{"drives": ["0,12", "0,13"], "raid_level": "1"}],
        "volumes": [{"id": "all", "read": True, "write": "writeback"}],
    }
    _code, predicted = run(requested, _ansible_check_mode=True)
    code, done = run(requested)
    assert (code, done["changed"], done["problems"]) == (0, True, [])
    assert (predicted["actions"], predicted["diff"]) == (done["actions"], done["diff"])
    assert run(requested)[1]["changed"] is False

    gone = {**who, "cache_volumes": [{"state": "absent"}]}
    code, done = run(gone)
    assert (code, [action.split()[0] for action in done["actions"]]) == (0, ["Stop", "Wait", "Delete"])
    assert len(done["progress"]) > 1
    assert done["controllers"][0]["maxcache"]["volumes"] == []
    assert run(gone)[1]["changed"] is False


def test_expired_flush_timeout_reports_completed_actions(tool, run):
    who = {"provider": "arcconf", "tool_path": tool}
    run({**who, "cache_volumes": [{"drives": ["0,12", "0,13"], "raid_level": "1"}], "volumes": [{"id": "0", "write": "writeback"}]})
    with simulator.opened("arcconf") as state:
        state["controllers"][0]["flush_reads"] = 1_000_000
    code, result = run({**who, "cache_volumes": [{"state": "absent"}], "flush_timeout": 1})
    assert (code, result["error"], result["changed"]) == (1, "timed_out", True)
    assert result["broke_off"].startswith("Wait until")
    assert len(result["actions"]) == 1
    assert "Run again to continue" in result["msg"]


def test_same_tool_under_two_paths_is_one_tool(tool, run, monkeypatch):
    monkeypatch.setenv("PATH", str(pathlib.Path(tool).parent), prepend=":")
    rate = {"provider": "arcconf", "tool_path": tool, "flush_and_fetch_rate": 300}
    code, result = run(rate, {"id": "1", "volumes": [{"id": "0", "read": False}]})
    assert (code, result["error"]) == (1, "bad_input")
    assert "join them into one" in result["msg"]
    assert run({"flush_and_fetch_rate": 300})[1]["changed"] is True


def test_refusals_change_nothing(tool, run):
    code, result = run({"provider": "arcconf", "tool_path": tool, "volumes": [{"id": "0", "read": True}]})
    assert (code, result["error"], "changed" in result and result["changed"]) == (1, "bad_input", False)
    code, result = run({"provider": "storcli", "flush_and_fetch_rate": 1})
    assert (code, result["error"]) == (1, "bad_input")
    assert "CacheCade" in result["msg"]


def test_empty_list_runs_no_tool(run):
    code, result = run()
    assert (code, result["changed"], result["actions"], result["controllers"]) == (0, False, [], [])


def test_missing_tool_is_reported(run):
    code, result = run({"provider": "arcconf", "tool_path": "/nowhere/arcconf", "flush_and_fetch_rate": 1})
    assert (code, result["error"]) == (1, "tool_missing")


def _options(documented):
    return {
        name: {key: option.get(key) for key in ("type", "elements", "choices", "required", "default")}
        | {"options": _options(option.get("suboptions", option.get("options")) or {})}
        for name, option in documented.items()
    }


@pytest.fixture
def role():
    """The options of one controller in the role."""
    specification = yaml.safe_load((REPOSITORY / "roles/raid_cache/meta/argument_specs.yml").read_text())
    return _options(specification["argument_specs"]["main"]["options"])["raid_cache_controllers"]["options"]


def _filled(options):
    """A value for every option, each one its own."""

    def value(name, option):
        if option["options"]:
            return [_filled(option["options"])] if option["elements"] == "dict" else _filled(option["options"])
        return [f"each {name}"] if option["type"] == "list" else f"the {name}"

    return {name: value(name, option) for name, option in options.items()}


def test_all_ssd_cache_options_of_the_role_are_passed_to_the_module(role):
    controller = _filled(role)
    controller["volumes"][0]["maxcache"]["allow_unprotected"] = "the one of maxcache"
    (handed,) = raid_settings([controller], "ssd_cache")
    assert set(handed) == set(maxcache_spec.CONTROLLER)
    assert set(handed["volumes"][0]) == set(maxcache_spec.VOLUME)
    # What a power cut may lose is allowed in one place, what an SSD may lose in the other.
    assert handed["volumes"][0]["allow_unprotected"] == "the one of maxcache"
    assert handed["allow_unprotected"] == controller["maxcache"]["allow_unprotected"]
    controller["maxcache"]["cache_volumes"][0]["state"] = "absent"
    del controller["maxcache"]["pool_drives"]
    (removed,) = raid_settings([controller], "removed_ssd_cache")
    assert set(removed) == {"provider", "tool_path", "id", "serial", "flush_timeout", "cache_volumes"}
