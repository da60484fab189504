# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.health import Address, parse_scan, read_drives
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

UDEV = ("udevadm", "info")
SCAN = ("smartctl", "--scan-open", "-j")


def answer(serial, model="DISK", **further):
    return Reply(json.dumps({"device": {"protocol": "ATA"}, "model_name": model, "serial_number": serial, **further}))


def scan(*types):
    return Reply(json.dumps({"devices": [{"name": "/dev/bus/0" if "," in one else "/dev/sda", "type": one} for one in types]}))


def look(host, replies, missing=(), further=()):
    runner = ScriptedRunner({UDEV: host.udev_reply, **replies}, missing)
    return read_drives(read_devices(runner, host.root), runner, further, host.root), runner


def test_every_smart_capable_drive_is_queried_once(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", serial="A", DEVLINKS="/dev/disk/by-id/ata-A")
    host.disk("nvme0n1", "nvme", serial="B")
    host.disk("vda", "virtio", serial="C")
    host.disk("md0", "virtual")
    host.disk("sdu", "usb", serial="U")
    replies = {("smartctl", "-j", "-x"): lambda words: answer(words[-1])}
    found, runner = look(host, replies)
    assert [drive.name for drive in found.drives] == ["nvme0n1", "sda", "sdu"]
    assert found.drives[1].path == "/dev/disk/by-id/ata-A"
    assert found.problems == ()
    assert [words for words in runner.calls if "smartctl" in words] == [("smartctl", "-j", "-x", f"/dev/{name}") for name in ("nvme0n1", "sda", "sdu")]


def test_missing_smartctl_is_one_problem(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda")
    host.disk("sdb")
    found, _runner = look(host, {}, missing=("smartctl",))
    assert found.drives == ()
    assert len(found.problems) == 1
    assert "smartmontools" in found.problems[0]


def test_missing_smartctl_is_no_problem_without_drives(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("vda", "virtio")
    assert look(host, {}, missing=("smartctl",))[0].problems == ()


def test_one_unreadable_drive_does_not_hide_the_others(tmp_path):
    host = FakeHost(tmp_path)
    for name in ("sda", "sdb", "sdc"):
        host.disk(name)

    def hang(_words):
        raise TimedOut("smartctl -j -x /dev/sdb did not end within 60 seconds and was stopped.", item="/dev/sdb")

    refused = Reply(json.dumps({"smartctl": {"messages": [{"string": "open failed", "severity": "error"}]}}), rc=2)
    replies = {("smartctl", "-j", "-x"): answer("A"), ("smartctl", "-j", "-x", "/dev/sdb"): hang, ("smartctl", "-j", "-x", "/dev/sdc"): refused}
    found, _runner = look(host, replies)
    assert [drive.name for drive in found.drives] == ["sda"]
    assert len(found.problems) == 2
    assert "did not end" in found.problems[0]
    assert "open failed" in found.problems[1]


def test_drives_behind_controller_are_scanned_with_device_type(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    replies = {
        SCAN: scan("scsi", "megaraid,0", "sat+megaraid,1"),
        ("smartctl", "-j", "-x", "-d", "megaraid,0"): answer("A"),
        ("smartctl", "-j", "-x", "-d", "sat+megaraid,1"): answer("B"),
    }
    found, runner = look(host, replies)
    assert [(drive.device_type, drive.path, drive.name) for drive in found.drives] == [
        ("megaraid,0", "/dev/bus/0 -d megaraid,0", "bus/0"),
        ("sat+megaraid,1", "/dev/bus/0 -d sat+megaraid,1", "bus/0"),
    ]
    assert found.problems == ()
    assert ("smartctl", "-j", "-x", "/dev/sda") not in runner.calls


def test_passthrough_drive_of_controller_is_counted_once(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    host.disk("sdb", serial="S1")
    replies = {SCAN: scan("megaraid,0"), ("smartctl", "-j", "-x"): answer("S1")}
    found, _runner = look(host, replies)
    assert [(drive.name, drive.device_type) for drive in found.drives] == [("sdb", None)]


def test_two_drives_with_the_same_serial_are_both_counted(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda")
    host.disk("sdb")
    assert len(look(host, {("smartctl", "-j", "-x"): answer("QM0001")})[0].drives) == 2


def test_unlisted_controller_is_reported_unless_drives_are_given(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid", driver="smartpqi")
    replies = {SCAN: scan("scsi"), ("smartctl", "-j", "-x", "-d", "cciss,0", "/dev/sg1"): answer("A")}
    found, _runner = look(host, replies)
    assert len(found.problems) == 1
    assert "smartpqi" in found.problems[0]
    assert "further_drives" in found.problems[0]
    found, _runner = look(host, replies, further=[Address("/dev/sg1", "/dev/sg1 -d cciss,0", "cciss,0")])
    assert found.problems == ()
    assert [drive.device_type for drive in found.drives] == ["cciss,0"]


def test_megaraid_controller_without_listed_drive_is_a_problem(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    assert "megaraid_sas" in look(host, {SCAN: scan("scsi")})[0].problems[0]


def test_drives_behind_another_controller_than_the_listed_one_are_a_problem(tmp_path):
    """Of two controllers smartctl may list the drives of one, by driver or of one driver."""
    listed = {SCAN: scan("megaraid,0"), ("smartctl", "-j", "-x"): answer("A")}
    host = FakeHost(tmp_path / "drivers")
    host.disk("sda", "raid")
    host.disk("sdb", "raid", driver="mpi3mr")
    (problem,) = look(host, listed)[0].problems
    assert "/dev/sdb (mpi3mr)" in problem
    host = FakeHost(tmp_path / "numbers")
    for number, name in enumerate(("sda", "sdb")):
        place = host.disk(name, "raid")
        moved = host.root / f"sys/devices/pci0/host{number}/{name}"
        moved.parent.mkdir(parents=True)
        (host.root / "sys/class/block" / name).unlink()
        place.rename(moved)
        (host.root / "sys/class/block" / name).symlink_to(moved)
        (moved / "driver").unlink(missing_ok=True)
        (moved / "driver").symlink_to("/drivers/megaraid_sas")
    (problem,) = look(host, listed)[0].problems
    assert "/dev/sdb (megaraid_sas)" in problem


def test_drives_behind_a_controller_that_is_not_listed_beside_one_that_is(tmp_path):
    """Also where drives of another kind of controller are named."""
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    host.disk("sdb", "raid", driver="mpi3mr")
    row = {"name": "/dev/bus/0", "info_name": "/dev/bus/0 [megaraid_disk_00]", "type": "sat+megaraid,0", "protocol": "ATA"}
    replies = {SCAN: Reply(json.dumps({"devices": [row]})), ("smartctl", "-j", "-x"): lambda words: answer(words[-2])}
    for further in ((), [Address("/dev/bus/9", "/dev/bus/9 -d sat+megaraid,4", "sat+megaraid,4")]):
        found, _runner = look(host, replies, further=further)
        (problem,) = found.problems
        assert "of /dev/sdb (mpi3mr) is not known" in problem
    assert look(host, replies, further=[Address("/dev/sg1", "/dev/sg1 -d scsi", "scsi")])[0].problems == ()


def test_listed_drive_that_cannot_be_opened_is_a_problem(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    rows = [{"name": "/dev/bus/0", "type": "megaraid,1"}, {"name": "/dev/bus/0", "type": "megaraid,2", "open_error": "INQUIRY failed"}]
    found, _runner = look(host, {SCAN: Reply(json.dumps({"devices": rows})), ("smartctl", "-j", "-x"): answer("A")})
    assert found.problems == ("/dev/bus/0 -d megaraid,2: smartctl cannot open this drive: INQUIRY failed.",)


def test_unclear_wear_is_a_problem(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda")
    row = {"id": 202, "name": "Percent_Lifetime_Remain", "value": 90, "raw": {"value": 60, "string": "60"}}
    found, _runner = look(host, {("smartctl", "-j", "-x"): answer("A", ata_smart_attributes={"table": [row]})})
    assert found.drives[0].wear_used_percent is None
    (problem,) = found.problems
    assert "its raw value 60 contradicts it" in problem


def test_old_smartctl_without_scan_is_reported(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "raid")
    found, _runner = look(host, {SCAN: Reply("smartctl 6.6\n", rc=1)})
    assert len(found.problems) == 1
    assert "version 7.0" in found.problems[0]


def test_multipath_paths_are_counted_once(tmp_path):
    host = FakeHost(tmp_path)
    host.disk("sda", "sas", wwn="0x5000")
    host.disk("sdb", "sas", wwn="0x5000")
    host.disk("dm-0", "virtual", dm_name="mpatha", dm_uuid="mpath-35000", slaves=("sda", "sdb"))
    replies = {("smartctl", "-j", "-x"): answer("A"), ("dmsetup", "table"): Reply("mpatha: 0 16384 multipath 0 0 1 1\n")}
    assert [drive.name for drive in look(host, replies)[0].drives] == ["sda"]


def test_scan_keeps_only_drives_behind_a_controller():
    text = json.dumps(
        {
            "devices": [
                {"name": "/dev/sda", "type": "sat"},
                {"name": "/dev/bus/2", "type": "megaraid,12"},
                {"name": "/dev/bus/3", "type": "megaraid,13", "open_error": "INQUIRY failed"},
                "strange",
            ]
        }
    )
    assert parse_scan(text) == [Address("/dev/bus/2", "/dev/bus/2 -d megaraid,12", "megaraid,12")]
