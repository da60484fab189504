# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DriveCache, DriveCacheSetting
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.providers import (
    NvmeProvider,
    ScsiProvider,
    choose_provider,
    query_drives,
    read_drive_caches,
)
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

DATA = pathlib.Path(__file__).resolve().parents[4] / "data" / "drive_cache"


def captured(name):
    return (DATA / name).read_text()


def drive(name, transport, **more):
    return BlockDevice(name=name, path=f"/dev/{name}", number="8:0", transport=transport, **more)


@pytest.mark.parametrize(
    "name, transport, provider",
    [
        ("sda", "sata", "ata"),
        ("sdaa", "sata", "ata"),
        ("sda", "sas", "scsi"),
        ("sda", "scsi", "scsi"),
        ("sda", "usb", "scsi"),
        ("nvme0n1", "nvme", "nvme"),
        ("vda", "virtio", "virtio"),
    ],
)
def test_auto_selects_provider_by_transport(name, transport, provider):
    assert choose_provider(drive(name, transport)) == provider


def test_auto_selects_ata_for_usb_bridge_with_ata_passthrough():
    assert choose_provider(drive("sda", "usb", properties={"ID_BUS": "ata"})) == "ata"


def test_raid_controller_volume_is_rejected():
    with pytest.raises(BadInput, match=r"belongs to the RAID controller \(megaraid_sas\).*raid_cache_controllers"):
        choose_provider(drive("sda", "raid", driver="megaraid_sas"))


def test_unknown_disk_kind_is_rejected():
    with pytest.raises(BadInput, match="no kind whose write cache can be set"):
        choose_provider(drive("pmem0", "unknown"))


def test_all_ata_drives_are_read_by_one_command():
    runner = ScriptedRunner({("hdparm",): Reply(captured("hdparm-get.txt"))})
    found = read_drive_caches(runner, [drive(name, "sata") for name in ("sdc", "sdd", "sde")])
    assert runner.calls == [("hdparm", "-W", "/dev/sdc", "/dev/sdd", "/dev/sde")]
    assert {name: state.drive for name, state in found.items()} == dict.fromkeys(("sdc", "sdd", "sde"), "enabled")


def test_all_scsi_drives_are_read_by_one_command_ignoring_exit_status_5():
    runner = ScriptedRunner({("sdparm",): Reply(captured("sdparm-get.txt"), rc=5)})
    found = read_drive_caches(runner, [drive("sdb", "sas"), drive("sdf", "usb")])
    assert runner.calls == [("sdparm", "--get=WCE", "/dev/sdb", "/dev/sdf")]
    assert [found[name].drive for name in ("sdb", "sdf")] == ["enabled", "enabled"]


def test_hdparm_not_supported_with_exit_status_0_has_no_state():
    runner = ScriptedRunner({("hdparm",): Reply(captured("hdparm-get.txt"))})
    found = read_drive_caches(runner, [drive("sdf", "usb"), drive("sdc", "sata")], providers={"sdf": "ata"})
    assert found["sdf"].drive is None
    assert "not supported" in (found["sdf"].reason or "")
    assert found["sdc"].drive == "enabled"


def test_hdparm_missing_node_does_not_hide_other_drives():
    missing = Reply(rc=2, stderr=captured("hdparm-missing.err"))
    runner = ScriptedRunner({("hdparm", "-W", "/dev/nothere"): missing, ("hdparm", "-W", "/dev/sdc"): Reply("\n/dev/sdc:\n write-caching =  1 (on)\n")})
    found = read_drive_caches(runner, [drive("nothere", "sata"), drive("sdc", "sata")])
    assert "No such file" in (found["nothere"].reason or "")
    assert found["sdc"].drive == "enabled"


def test_sdparm_on_non_scsi_device_reports_the_reason():
    runner = ScriptedRunner({("sdparm",): Reply(rc=75, stderr=captured("sdparm-get-virtio.err"))})
    found = query_drives(runner, [drive("vdb", "virtio")], providers={"vdb": "scsi"})
    assert isinstance(found["vdb"], NotUnderstood)
    assert "INQUIRY command failed" in str(found["vdb"])


def test_missing_tool_affects_only_drives_that_need_it():
    runner = ScriptedRunner({("hdparm",): Reply(captured("hdparm-get.txt"))}, missing={"nvme"})
    found = query_drives(runner, [drive("sdc", "sata"), drive("nvme0n1", "nvme")])
    assert isinstance(found["nvme0n1"], ToolMissing)
    assert "install the package nvme-cli" in str(found["nvme0n1"])
    assert isinstance(found["sdc"], DriveCache)


def test_nvme_reads_the_controller_not_a_namespace():
    runner = ScriptedRunner(
        {("nvme", "id-ctrl"): Reply(captured("nvme-id-ctrl.json")), ("nvme", "get-feature"): Reply(captured("nvme-feature-off.txt"))},
    )
    found = read_drive_caches(runner, [drive("nvme0n1", "nvme")])
    assert found["nvme0n1"].drive == "disabled"
    assert runner.calls[1] == ("nvme", "get-feature", "/dev/nvme0n1", "--namespace-id=0xffffffff", "--feature-id=6")


def test_nvme_without_volatile_cache_is_absent_and_skips_feature_6():
    runner = ScriptedRunner({("nvme", "id-ctrl"): Reply('{"vwc":6}')})
    assert read_drive_caches(runner, [drive("nvme0n1", "nvme")])["nvme0n1"].drive == "absent"
    assert len(runner.calls) == 1


@pytest.mark.parametrize("save, expected", [(True, ["--save", None]), (False, [None])])
def test_nvme_unsupported_save_falls_back_to_set_without_save(save, expected):
    refused = Reply(rc=1, stderr=captured("nvme-save-refused.err"))
    runner = ScriptedRunner({("nvme",): lambda words: refused if "--save" in words else Reply(captured("nvme-set.txt"))})
    completed = NvmeProvider(runner).set(DriveCacheSetting("nvme0n1", "/dev/nvme0n1", "disabled", "x", save))
    assert completed is not None
    assert completed.rc == 0
    plain = ("nvme", "set-feature", "/dev/nvme0n1", "--namespace-id=0xffffffff", "--feature-id=6", "--value=0")
    assert runner.calls == [(*plain, word) if word else plain for word in expected]


@pytest.mark.parametrize("value, change", [("disabled", "--clear=WCE"), ("enabled", "--set=WCE")])
def test_sdparm_exit_status_97_falls_back_to_set_without_save(value, change):
    refused = Reply(captured("sdparm-save-refused.txt"), rc=97, stderr=captured("sdparm-save-refused.err"))
    runner = ScriptedRunner({("sdparm",): lambda words: refused if "--save" in words else Reply()})
    ScsiProvider(runner).set(DriveCacheSetting("sdb", "/dev/sdb", value, "x", save=True))
    assert runner.calls == [("sdparm", change, "--save", "/dev/sdb"), ("sdparm", change, "/dev/sdb")]


def test_sdparm_with_save_support_runs_once():
    runner = ScriptedRunner({("sdparm",): Reply()})
    ScsiProvider(runner).set(DriveCacheSetting("sdb", "/dev/sdb", "disabled", "x", save=True))
    assert runner.calls == [("sdparm", "--clear=WCE", "--save", "/dev/sdb")]


def test_virtio_without_cache_type_reports_the_reason(tmp_path):
    found = read_drive_caches(ScriptedRunner({}), [drive("vdb", "virtio")], tmp_path)
    assert found["vdb"].drive is None
    assert "has no cache_type" in (found["vdb"].reason or "")
