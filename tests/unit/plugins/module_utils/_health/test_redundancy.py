# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._health.rules import (
    array_findings,
    controller_findings,
    read_controllers,
    volume_group_findings,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import CacheModule, Policy, Protection
from ansible_collections.cachefleet.storage.tests.simulators.in_process.provider import FakeTool, controller, volume
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

BACK = volume(0, write=Policy("writeback", "writeback_always"))


def devices_of(host, **replies):
    runner = ScriptedRunner({("udevadm", "info"): host.udev_reply, ("dmsetup", "table"): Reply(""), **replies})
    return read_devices(runner, host.root), runner


def array(tmp_path, degraded, action="idle"):
    host = FakeHost(tmp_path)
    place = host.disk("md0", "virtual")
    for name, text in {"level": "raid1", "raid_disks": "2", "degraded": str(degraded), "sync_action": action}.items():
        host.write(f"{place.relative_to(tmp_path)}/md/{name}", text + "\n")
    return list(array_findings(devices_of(host)[0], tmp_path))


def test_degraded_array_is_critical_until_rebuild_starts(tmp_path):
    (finding,) = array(tmp_path, 1)
    assert (finding.severity, finding.value) == ("critical", 1)
    assert "raid1, /dev/md0) lacks 1 of 2 members" in finding.message


@pytest.mark.parametrize("action", ["recover", "resync"])
def test_rebuilding_array_is_a_warning(tmp_path, action):
    assert [one.severity for one in array(tmp_path, 1, action)] == ["warning"]


def test_healthy_and_non_redundant_arrays_give_no_findings(tmp_path):
    assert array(tmp_path, 0) == []
    host = FakeHost(tmp_path / "other")
    host.disk("md1", "virtual")
    assert list(array_findings(devices_of(host)[0], tmp_path / "other")) == []


def groups(tmp_path, reply, **udev):
    host = FakeHost(tmp_path)
    host.disk("sda", **udev)
    devices, runner = devices_of(host)
    runner.replies[("vgs",)] = reply
    return (*volume_group_findings(devices, runner), runner)


def vgs(**missing):
    return Reply(json.dumps({"report": [{"vg": [{"vg_name": name, "vg_missing_pv_count": str(count)} for name, count in missing.items()]}]}))


def test_volume_group_with_missing_physical_volumes_is_critical(tmp_path):
    findings, problems, _runner = groups(tmp_path, vgs(vg0=0, vg1=2), ID_FS_TYPE="LVM2_member")
    assert [(one.severity, one.subject, one.value) for one in findings] == [("critical", "vg1", 2)]
    assert problems == []


def test_host_without_lvm_runs_no_commands(tmp_path):
    _findings, _problems, runner = groups(tmp_path, vgs(vg0=1), ID_FS_TYPE="ext4")
    assert not [words for words in runner.calls if words[0] == "vgs"]


@pytest.mark.parametrize("reply", [Reply("no json"), Reply('{"report": []}'), Reply("", 5, "locking failed")])
def test_unreadable_volume_groups_are_a_problem(tmp_path, reply):
    findings, problems, _runner = groups(tmp_path, reply, ID_FS_TYPE="LVM2_member")
    assert findings == []
    assert len(problems) == 1


def of(**changes):
    return [(one.severity, one.check) for one in controller_findings([controller(**changes)])]


def test_healthy_controller_gives_no_finding():
    assert of() == []
    assert of(volumes=(BACK,)) == []


@pytest.mark.parametrize("health", ["failed", "missing", "degraded"])
def test_failed_protection_unit_severity_depends_on_writeback(health):
    assert of(protection=Protection("battery", health), volumes=(BACK,)) == [("critical", "protection_unit")]
    assert of(protection=Protection("battery", health)) == [("warning", "protection_unit")]


@pytest.mark.parametrize("health", ["charging", "learning"])
def test_recovering_protection_unit_has_lower_severity(health):
    assert of(protection=Protection("capacitor", health), volumes=(BACK,)) == [("warning", "protection_unit")]
    assert of(protection=Protection("capacitor", health)) == [("info", "protection_unit")]


def test_missing_protection_unit_is_critical_only_with_writeback():
    assert of(protection=Protection("none")) == []
    assert of(protection=Protection("none"), volumes=(BACK,)) == [("critical", "protection_unit")]


def test_unreported_protection_unit_gives_no_finding():
    assert of(protection=Protection(), volumes=(BACK,)) == []


def test_message_names_volumes_and_raw_tool_status():
    one = controller(protection=Protection("battery", "failed", raw="Replacement required"), volumes=(BACK, volume(1)))
    (finding,) = controller_findings([one])
    assert finding.message == (
        "controller 0 (MODEL, storcli) has a battery that is failed (Replacement required) and still writes back on volume0: a power failure loses what"
        " is in its cache."
    )


@pytest.mark.parametrize(
    ("status", "severity"), [("optimal", None), ("unknown", None), ("degraded", "critical"), ("offline", "critical"), ("rebuilding", "warning")]
)
def test_volume_status_severity(status, severity):
    assert of(volumes=(volume(0, status=status),)) == ([] if severity is None else [(severity, "volume_status")])


def test_disabled_controller_cache_is_a_warning():
    assert of(cache=CacheModule("temporarily_disabled", "battery too hot")) == [("warning", "controller_cache")]
    assert of(cache=CacheModule("ok")) == []


def test_tools_run_only_if_a_disk_is_behind_a_controller(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda")
    tool = FakeTool(controller())
    devices, runner = devices_of(host)
    assert read_controllers(devices, runner, lambda _runner: [tool]) == ([], [])
    assert tool.reads == 0


def test_controller_is_read_once(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    host.disk("sdb", "raid")
    tool = FakeTool(controller())
    devices, runner = devices_of(host)
    controllers, problems = read_controllers(devices, runner, lambda _runner: [tool])
    assert [one.id for one in controllers] == ["0"]
    assert problems == []
    assert tool.reads == 1
    tool.reading = {"not_understood": ("line 3: 'x'",)}
    assert "could not be parsed" in read_controllers(devices, runner, lambda _runner: [tool])[1][0]


def test_missing_tool_is_a_problem_with_its_name(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    devices, runner = devices_of(host)
    controllers, problems = read_controllers(devices, runner, lambda _runner: [])
    assert controllers == []
    assert "megaraid_sas" in problems[0]
    assert "storcli" in problems[0]


def test_controller_findings_are_json_serializable():
    json.dumps([dataclasses.asdict(one) for one in controller_findings([controller(protection=Protection("battery", "failed"))])])
