# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tools themselves say after the role has run, and what its runs did."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

_MODULE, _SSD_MODULE = "cachefleet.storage.raid_cache", "cachefleet.storage.raid_maxcache"


@pytest.fixture
def name(host):
    return host.ansible.get_variables()["inventory_hostname"] if host.backend.NAME == "ansible" else host.check_output("hostname")


def _runs(check):
    runs = [json.loads(path.read_text()) for path in sorted(Path(os.environ["CACHEFLEET_RECORD"]).glob("*.json"))]
    return [run["results"] for run in runs if (run["scenario"], run["playbook"], run["check"]) == ("raid", "converge", check)]


def _reported(results, name, module=_MODULE):
    return [(result["changed"], result["actions"], result["diff"]) for result in results if result["host"] == name and result["module"] == module]


def _calls(host, tool):
    output = host.check_output("cd /opt/cachefleet && python3 -m simulators calls %s", tool)
    return [json.loads(line) for line in output.splitlines()]


def _json(host, command):
    return json.loads(host.run(command).stdout)["Controllers"][0]["Response Data"]


def test_check_mode_predicts_the_first_run(name):
    predicted, done = _reported(_runs(True)[0], name), _reported(_runs(False)[0], name)
    assert predicted == done
    assert done[0][0]
    assert len(done[0][1]) >= 3


def test_no_change_on_second_run_with_one_call(name):
    assert _reported(_runs(False)[1], name) == [(False, [], {"before": {}, "after": {}})]


def test_tool_reports_the_requested_settings_of_a_megaraid(host, name):
    if name != "node1":
        pytest.skip("this machine has another card")
    data = _json(host, "/opt/MegaRAID/storcli/storcli64 /c0/vall show all J")
    columns = {key: data[key][0]["Cache"] for key in data if key.startswith("/c0/v")}
    assert columns == {"/c0/v0": "RWBD", "/c0/v1": "RWBD", "/c0/v2": "RWTD"}
    assert {data[key]["Disk Cache Policy"] for key in data if key.endswith("Properties")} == {"Disabled"}


def test_tool_reports_the_requested_settings_of_an_adaptec(host, name):
    if name != "node1":
        pytest.skip("this machine has another card")
    output = host.run("/usr/Arcconf/arcconf GETCONFIG 1 AL").stdout
    settings = [line.split(":", 1)[1].strip() for line in output.splitlines() if line.strip().startswith("Write-cache setting")]
    assert settings == ["On when protected by battery/ZMM"] * 2
    assert "Global Physical Device Write Cache Policy: Disabled" in output


def test_check_mode_predicts_the_ssd_cache_and_no_change_on_second_run(name):
    if name != "node1":
        assert _reported(_runs(False)[0], name, _SSD_MODULE) == []
        return
    predicted, done = _reported(_runs(True)[0], name, _SSD_MODULE), _reported(_runs(False)[0], name, _SSD_MODULE)
    assert predicted == done
    assert [action.split(" (")[0] for action in done[0][1]] == [
        "Create a maxCache volume",
        "Set the maxCache flush and fetch rate of controller 1",
        "Set the maxCache read/write balance of controller 1",
        "Set maxCache read of volume volume1 of controller 1",
        "Set maxCache write of volume volume1 of controller 1",
    ]
    assert _reported(_runs(False)[1], name, _SSD_MODULE) == [(False, [], {"before": {}, "after": {}})]


def _lines(output, label):
    """What stands behind a label, wherever it is."""
    pairs = [line.split(":", 1) for line in output.splitlines() if ":" in line]
    return [value.strip() for key, value in pairs if key.strip().lower() == label.lower()]


def test_tool_reports_the_requested_settings_of_the_ssd_cache(host, name):
    if name != "node1":
        pytest.skip("this machine has another card")
    output = host.run("/usr/Arcconf/arcconf GETCONFIG 1 AL").stdout
    assert _lines(output, "maxCache read cache setting") == ["Disabled", "Enabled"]
    assert _lines(output, "maxCache write cache setting") == ["Disabled", "Enabled"]
    assert _lines(output, "maxCache write cache policy") == ["Instant Write Back"]
    assert _lines(output, "maxCache flush and fetch rate") == ["200"]
    assert _lines(output, "maxCache Read, Write Balance Factor") == ["5,4"]
    device = output[output.index("Maxcache device number 100") :]
    assert (_lines(device, "RAID level")[0], _lines(device, "Status of MaxCache")) == ("1", ["Optimal"])
    # The free SSDs are in slots 8 to 10: two are in it, and the third is left alone.
    assert [slot for slot in (8, 9, 10) if f"SSD, Enclosure:0, Slot:{slot})" in device] == [8, 9]


def test_ssd_cache_was_deleted_only_after_it_was_clean(host, name):
    if name != "node1":
        pytest.skip("this machine has another card")
    calls = _calls(host, "arcconf")
    words = [" ".join(call) for call in calls]
    # The converging run creates, the side effect deletes and the role creates again.
    changing = [(index, call[0]) for index, call in enumerate(calls) if call[0] in ("CREATE", "DELETE")]
    assert [word for _index, word in changing] == ["CREATE", "DELETE", "CREATE"]
    deleted = changing[1][0]
    off = max(index for index, line in enumerate(words[:deleted]) if line.startswith("SETMAXCACHE 1 LOGICALDRIVE 1 WRITECACHE DISABLE"))
    assert [line for line in words[off + 1 : deleted] if not line.startswith(("LIST", "GETCONFIG 1 AL"))] == []
    assert sum(line.startswith("GETCONFIG") for line in words[off:deleted]) >= 2
    assert not any("FORCE" in line.upper() or (" 18 " in f"{line} " and line.startswith("CREATE")) for line in words)


def test_tool_reports_the_requested_settings_of_a_perc(host, name):
    if name != "node2":
        pytest.skip("this machine has another card")
    data = _json(host, "/opt/MegaRAID/perccli/perccli64 /c0/vall show all J")
    assert {data[key][0]["Cache"] for key in data if key.startswith("/c0/v")} == {"NRWTD"}


def test_tool_reports_the_requested_settings_of_a_9660(host, name):
    if name != "node2":
        pytest.skip("this machine has another card")
    volumes = _json(host, "/opt/MegaRAID/storcli2/storcli2 /c0/vall show all J")["Virtual Drives"]
    assert {volume["VD Info"]["DefaultCache"] for volume in volumes} == {"NR,WT"}


def test_tool_reports_the_requested_settings_of_smart_arrays(host, name):
    if name != "node2":
        pytest.skip("this machine has another card")
    smartraid = host.run("/usr/Arcconf/arcconf GETCONFIG 1 AL").stdout
    assert [line.split(":")[1].strip() for line in smartraid.splitlines() if line.strip().startswith("Caching ")] == ["Enabled", "Disabled"]
    assert [line.split(":")[1].strip() for line in smartraid.splitlines() if line.strip().startswith("Read Cache Percentage")] == ["20 percent"]
    hpe = host.run("ssacli ctrl all show config detail").stdout
    assert [line.split(":")[1].strip() for line in hpe.splitlines() if line.strip().startswith("Caching:")] == ["Enabled", "Disabled"]
    assert "Configured Drive Write Cache Policy: Disable" in hpe


def test_set_commands_match_the_differences(host, name):
    tool = {"node1": "storcli", "node2": "perccli"}[name]
    sent = [call for call in _calls(host, tool) if "set" in call]
    actions = [action for _changed, actions, _diff in _reported(_runs(False)[0], name) for action in actions if f", {tool})" in action]
    # node1 sends two more: the side effect asks for write-back without protection, and the role takes it back.
    assert len(sent) == len(actions) + (2 if name == "node1" else 0)


def test_simulated_tool_is_recognizable(host):
    assert "NOT the vendor's" in host.file("/opt/MegaRAID/storcli/storcli64").content_string
    assert "simulators of proprietary RAID tools" in host.file("/opt/MegaRAID/storcli/SIMULATORS.txt").content_string
