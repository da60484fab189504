# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verbs describe and describe_groups, without a host."""

from __future__ import annotations

import types

import pytest
import yaml

from ansible_collections.cachefleet.storage.plugins.action import describe, describe_groups
from ansible_collections.cachefleet.storage.tests.unit.support.action_calls import made_action

DRIVE = {"device": "/dev/disk/by-id/ata-A", "write_cache": "disabled"}


def found(*entries, notes=(), host="node1"):
    drives = {"name": "drive_write_cache_drives", "entries": [{"values": one, "notes": []} for one in entries], "value": None, "notes": list(notes)}
    volumes = [{"id": "0", "name": "data", "wwn": f"wwn-{host}"}]
    raid = {"provider": "storcli", "serial": host, "volumes": [{"wwn": f"wwn-{host}", "write": "writeback"}]}
    controllers = [{"provider": "storcli", "id": "0", "serial": host, "model": "MegaRAID 9361-8i", "volumes": volumes}]
    variables = [drives, {"name": "raid_cache_controllers", "entries": [{"values": raid, "notes": []}], "value": None, "notes": []}]
    return {"changed": False, "variables": variables, "controllers": controllers}


def run(module, returned=None, *, check_mode=False, diff=False, variables=None, **args):
    printed, calls = [], []
    templar = types.SimpleNamespace(template=lambda value: value)
    action = made_action(module, args, printed, check_mode=check_mode, _templar=templar)
    action._task.diff = diff
    action._execute_module = lambda name, module_args, task_vars: calls.append((name, module_args)) or returned
    result = action.run(task_vars={"inventory_hostname": "node1", **(variables or {})})
    return result, printed, calls


def test_a_host_becomes_a_file_of_variables(tmp_path):
    result, _printed, calls = run(describe, found(DRIVE, notes=["/dev/sdx is not described: no path."]), path=str(tmp_path), all_settings=True)
    assert calls[0][0] == "cachefleet.storage.cache_description_info"
    assert calls[0][1]["all_settings"] is True
    path = tmp_path / "host_vars/node1.yml"
    assert (result["changed"], result["path"], result["notes"]) == (True, str(path), ["/dev/sdx is not described: no path."])
    assert yaml.safe_load(path.read_text())["drive_write_cache_drives"] == [DRIVE]
    assert run(describe, found(DRIVE, notes=["/dev/sdx is not described: no path."]), path=str(tmp_path))[0]["changed"] is False


def test_check_mode_writes_nothing(tmp_path):
    result, _printed, _calls = run(describe, found(DRIVE), path=str(tmp_path), check_mode=True)
    assert result["changed"] is True
    assert list(tmp_path.iterdir()) == []


def test_the_inventory_is_compared_in_diff_mode(tmp_path):
    inventory = {"drive_write_cache_drives": [{**DRIVE, "write_cache": "enabled"}]}
    result, printed, _calls = run(describe, found(DRIVE), path=str(tmp_path), diff=True, variables=inventory)
    assert result["differing"] == ["drive_write_cache_drives", "raid_cache_controllers"]
    assert "write_cache: enabled" in result["diff"]["before"]
    assert "write_cache: disabled" in result["diff"]["after"]
    assert printed == []
    # Ansible prints no difference of a task that changed nothing.
    result, printed, _calls = run(describe, found(DRIVE), path=str(tmp_path), diff=True, variables=inventory)
    assert "diff" not in result
    assert "-    write_cache: enabled" in printed[0]


def test_the_inventory_is_compared_also_where_an_edited_file_is_not_overwritten(tmp_path):
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars/node1.yml").write_text("drive_write_cache_drives: []\n")
    result, printed, _calls = run(describe, found(DRIVE), path=str(tmp_path), diff=True)
    assert result["failed"] is True
    assert "describe_force: true" in result["msg"]
    assert "+    write_cache: disabled" in printed[0]


@pytest.mark.parametrize("returned", [{"failed": True, "msg": "no python"}, {"unreachable": True, "msg": "no route"}])
def test_a_host_that_fails_is_passed_on(tmp_path, returned):
    assert run(describe, returned, path=str(tmp_path))[0] == returned
    assert list(tmp_path.iterdir()) == []


def test_what_a_host_makes_up_is_not_written(tmp_path):
    result, _printed, _calls = run(describe, {"variables": [{"name": "ansible_connection"}]}, path=str(tmp_path))
    assert result["failed"] is True
    assert list(tmp_path.iterdir()) == []


def test_equal_hosts_become_a_file_of_their_group(tmp_path):
    descriptions = {host: run(describe, found(DRIVE, host=host), path=str(tmp_path), check_mode=True)[0]["description"] for host in ("a", "b")}
    result, _printed, _calls = run(describe_groups, path=str(tmp_path), descriptions=descriptions)
    (group,) = result["groups"]
    assert (result["changed"], group["name"], group["hosts"]) == (True, "megaraid_9361_8i", ["a", "b"])
    contents = yaml.safe_load((tmp_path / "group_vars/megaraid_9361_8i.yml").read_text())
    assert contents["raid_cache_controllers"] == [{"provider": "storcli", "id": "0", "volumes": [{"name": "data", "write": "writeback"}]}]
    assert run(describe_groups, path=str(tmp_path), descriptions=descriptions)[0]["changed"] is False


def test_the_host_searches_raid_tools_where_the_inventory_has_them(tmp_path):
    entries = [{"provider": "storcli", "tool_path": "/srv/storcli", "volumes": []}, {"provider": "arcconf"}, {"tool_path": "/srv/x"}, "odd"]
    _result, _printed, calls = run(describe, found(DRIVE), path=str(tmp_path), variables={"raid_cache_controllers": entries})
    assert calls[0][1]["tool_paths"] == {"storcli": "/srv/storcli"}
