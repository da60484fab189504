# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a step means beyond what it sets."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._host.risks import RISKS, risks_of
from ansible_collections.cachefleet.storage.tests.unit.support.host_rig import CACHES, DRIVES, HDD, QUEUES, HostRig

LVM = {"kind": "cache", "mode": "writethrough"}


@pytest.mark.parametrize(
    ("layer", "attribute", "before", "after", "risks"),
    [
        ("drive_write_cache", "write_cache", "disabled", "enabled", ["power_loss"]),
        ("drive_write_cache", "write_cache", "enabled", "disabled", ["slower_writes"]),
        ("drive_write_cache", "boot_rule", None, "rule", []),
        ("raid_cache", "write", "writethrough", "writeback_always", ["power_loss"]),
        ("raid_cache", "write", "writeback", "writethrough", ["slower_writes"]),
        ("raid_cache", "drive_cache.jbod", "disabled", "enabled", ["power_loss"]),
        ("raid_cache", "no_battery_write_cache", "disabled", "enabled", ["power_loss"]),
        ("raid_cache", "read", "none", "adaptive", []),
        ("raid_maxcache", "maxcache_write", "disabled", "writeback", ["device_loss"]),
        ("raid_maxcache", "dirty", 5, 0, ["flush"]),
        ("lvm_cache", "cache", None, LVM, []),
        ("lvm_cache", "cache", None, {**LVM, "mode": "writeback"}, ["device_loss"]),
        ("dm_cache", "cache", None, {"kind": "writecache", "mode": None}, ["device_loss"]),
        ("lvm_cache", "cache", {**LVM, "mode": "writeback"}, None, ["flush", "slower_writes"]),
        ("bcache", "mode", "writethrough", "writeback", ["device_loss"]),
        ("bcache", "mode", "writeback", "none", ["flush"]),
        ("enhanceio", "mode", "writeback", "writethrough", ["flush", "slower_writes"]),
        ("bcache", "cache_set", "stopped", "running", []),
        ("bcache", "cache_set", None, {"device": "/dev/sdb"}, ["overwrite"]),
        ("flashcache", "cache_device", "/dev/sdb", None, ["overwrite"]),
        ("lvm_cache", "dirty", "not proven", 0, ["flush"]),
        ("lvm_cache", "cleaner", True, False, []),
        ("lvm_cache", "settings.migration_threshold", 2048, 4096, []),
        ("storage_network", "mtu", 1500, 9000, ["interruption"]),
        ("storage_network", "boot_mtu", 1500, 9000, []),
        ("block_queue", "scheduler", "mq-deadline", "none", []),
    ],
)
def test_risks_follow_from_the_change(layer, attribute, before, after, risks):
    assert risks_of(Step(layer, "item", attribute, before, after, "Do it", Operation())) == risks
    assert risks == [risk for risk in RISKS if risk in risks]


def test_the_result_of_a_host_has_the_risk_of_each_step(tmp_path, monkeypatch):
    rig = HostRig(tmp_path, monkeypatch)
    caches = [{**CACHES[0], "mode": "writeback", "allow_unmirrored_writeback": True}]
    result = rig.converge(check_mode=True, drives=DRIVES, caches=caches, queues=QUEUES).to_dict()
    assert [step["action"] for step in result["steps"]] == result["actions"]
    risks = {(step["layer"], step["attribute"]): step["risks"] for step in result["steps"]}
    assert risks["drive_write_cache", "write_cache"] == ["slower_writes"]
    assert risks["lvm_cache", "cache"] == ["device_loss"]
    assert risks["lvm_cache", "physical_volume"] == ["overwrite"]
    assert result["steps"][0]["item"] == HDD
