# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import functools
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table, read_devices, suspended_below
from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

_LVM = "LVM-6Mjv0000"


@pytest.fixture
def host(tmp_path):
    return FakeHost(tmp_path)


def _read(host, table=""):
    runner = ScriptedRunner({("udevadm", "info"): host.udev_reply, ("dmsetup", "table"): Reply(table)})
    return read_devices(runner, host.root), runner


def _sda(host):
    return _read(host)[0].get("sda")


@pytest.mark.parametrize(
    ("transport", "name", "driver"),
    [
        ("sata", "sda", "ahci"),
        ("nvme", "nvme0n1", "nvme"),
        ("virtio", "vda", "virtio_blk"),
        ("sas", "sdb", "mpt3sas"),
        ("raid", "sdc", "megaraid_sas"),
        ("usb", "sdd", "usb-storage"),
    ],
)
def test_transport_and_driver_are_read_from_sysfs_path(host, transport, name, driver):
    host.disk(name, transport)
    devices, _runner = _read(host)
    assert (devices.get(name).transport, devices.get(name).driver) == (transport, driver)


def test_sata_drive_behind_sas_adapter_is_sata(host):
    place = host.disk("sda", "sas")
    (place / "device/vendor").write_text("ATA     \n")
    assert _sda(host).transport == "sata"


@pytest.mark.parametrize(
    ("of_sysfs", "of_udev", "model"),
    [
        ("INTEL SSDSC2BB08", "INTEL_SSDSC2BB080G4", "INTEL SSDSC2BB080G4"),
        # The sixteenth character is a blank, which reading an attribute strips.
        ("Samsung SSD 850 ", "Samsung_SSD_850_EVO_500GB", "Samsung SSD 850 EVO 500GB"),
        # An underscore of the model's own.
        ("Micron_5100_MTFD", "Micron_5100_MTFDDAK480TCB", "Micron_5100_MTFDDAK480TCB"),
        ("ST4000NM0035-1V4", "ST4000NM0035-1V4107", "ST4000NM0035-1V4107"),
        # An enclosure names itself, and udev the drive in it.
        ("Portable Drive", "WDC_WD10EZEX-08WN4A0", "Portable Drive"),
        ("ST600MM0006", "ST600MM0006", "ST600MM0006"),
        ("ST600MM0006", None, "ST600MM0006"),
        (None, "QEMU_HARDDISK", "QEMU HARDDISK"),
        (None, None, None),
    ],
)
def test_the_model_is_whole(host, of_sysfs, of_udev, model):
    place = host.disk("sda", "sata", **({"ID_MODEL": of_udev} if of_udev else {}))
    (place / "device/model").unlink(missing_ok=True)
    if of_sysfs:
        (place / "device/model").write_text(f"{of_sysfs}\n")
    assert _sda(host).model == model


def test_a_sata_drive_is_known_by_the_model_of_sysfs_too(host):
    host.disk("sda", "sata", model="INTEL SSDSC2BB08", ID_MODEL="INTEL_SSDSC2BB080G4", ID_ATA="1")
    assert _sda(host).models == ("INTEL SSDSC2BB080G4", "INTEL_SSDSC2BB080G4", "INTEL SSDSC2BB08")


def test_one_udev_query_serves_all_devices(host):
    for letter in "abcdefghijkl":
        host.disk(f"sd{letter}", serial=letter)
    devices, runner = _read(host)
    assert len(devices) == 12
    assert [call[:2] for call in runner.calls] == [("udevadm", "info")]


def test_host_without_udev_has_devices(host):
    place = host.disk("nvme0n1", "nvme")
    host.write(str((place / "device/serial").relative_to(host.root)), "S1\n")
    devices = read_devices(ScriptedRunner({}, missing={"udevadm"}), host.root)
    assert devices.get("nvme0n1").serial == "S1"
    assert devices.get("nvme0n1").by_id == ()


def test_logical_volume_name_has_hyphens_unescaped(host):
    host.disk("sda", serial="S1")
    host.disk("dm-0", "virtual", dm_name="vg--one-my--lv", dm_uuid=_LVM, slaves=["sda"])
    devices, _runner = _read(host, "vg--one-my--lv: 0 2048 linear 9:0 2048\n")
    volume = devices.get("dm-0")
    assert (volume.kind, volume.logical_volume, volume.identity, volume.stable_path) == ("lvm", "vg-one/my-lv", "vg-one/my-lv", "/dev/vg-one/my-lv")
    assert [below.name for below in devices.parents(volume)] == ["sda"]
    assert [above.name for above in devices.children(devices.get("sda"))] == ["dm-0"]


def test_flashcache_target_has_its_own_kind(host):
    host.disk("dm-0", "virtual", dm_name="cachedev", dm_uuid="")
    table = "cachedev: 0 2097152 flashcache conf:\n\tssd dev (/dev/sdb), disk dev (/dev/sda) cache mode(WRITE_BACK)\n"
    assert _read(host, table)[0].get("dm-0").kind == "flashcache"


def test_what_was_read_with_targets_serves_whoever_reads_without_them_as_if_dmsetup_had_not_run(host):
    host.disk("sda", "sata")
    host.disk("dm-0", "virtual", dm_name="fc0", dm_uuid="")
    inner = ScriptedRunner({("udevadm", "info"): host.udev_reply, ("dmsetup", "table"): Reply("fc0: 0 100 flashcache conf:\n")})
    runner = HostRunner(t.cast("t.Any", inner))
    assert read_devices(runner, host.root).get("dm-0").kind == "flashcache"
    asked = list(inner.calls)
    devices = read_devices(runner, host.root, dm_targets=False)
    alone = read_devices(ScriptedRunner({("udevadm", "info"): host.udev_reply}), host.root, dm_targets=False)
    assert (list(devices), inner.calls) == (list(alone), asked)
    runner.shared.forget()
    assert list(read_devices(runner, host.root, dm_targets=False)) == list(alone)
    assert [call for call in inner.calls if call not in asked] == []


def test_multi_line_dm_tables():
    assert parse_dm_table("a: 0 8 linear 8:0 0\na: 8 8 linear 8:16 0\nNo devices found\n") == {
        "a": (("0", "8", "linear", "8:0", "0"), ("8", "8", "linear", "8:16", "0"))
    }


def test_scsi_serial_matches_the_drive_label(host):
    host.disk("sda", "sas", ID_SERIAL_SHORT="5000c500a1b2c3d4", ID_SCSI_SERIAL="ZA1234", ID_SERIAL="35000c500a1b2c3d4")
    devices, _runner = _read(host)
    disk = devices.get("sda")
    assert disk.serial == "ZA1234"
    for written in ("ZA1234", " ZA1234 ", "5000c500a1b2c3d4", "35000c500a1b2c3d4"):
        assert devices.matches_identity(disk, written)
    for written in ("", "ZA123", "za1234", "5000C500A1B2C3D4"):
        assert not devices.matches_identity(disk, written)


def test_identities_are_case_sensitive_except_world_wide_names(host):
    host.disk("sda", "sas", ID_SERIAL_SHORT="S1", ID_WWN="0x5000c500a1b2c3d4")
    host.disk("sdb", serial="NAA.oops", ID_WWN="eui.0025385b71b0a1c2")
    devices, _runner = _read(host)
    assert devices.matches_identity(devices.get("sda"), "0x5000C500A1B2C3D4")
    assert devices.matches_identity(devices.get("sdb"), "EUI.0025385B71B0A1C2")
    assert not devices.matches_identity(devices.get("sda"), "s1")
    assert not devices.matches_identity(devices.get("sdb"), "naa.oops")


def test_logical_volume_names_are_case_sensitive(host):
    host.disk("sda")
    devices, _runner = _read(host)
    device = dataclasses.replace(devices.get("sda"), kind="lvm", dm_name="vg0-raw", dm_uuid=_LVM)
    assert devices.matches_identity(device, "vg0/raw")
    for written in ("VG0/RAW", "vg0/RAW", "VG0-RAW"):
        assert not devices.matches_identity(device, written)


@pytest.mark.parametrize(
    ("transport", "serial"),
    [
        ("sata", "0123456789ABCDEF"),
        ("usb", "000000000000"),
        ("usb", "DD56419883914"),
        ("usb", "AAAABBBB0007"),
        ("usb", "152D00539000"),
        ("usb", "201503310007F"),
        ("virtio", "drive-virtio0"),
        ("sata", "QM00001"),
        ("sata", "To be filled by O.E.M."),
    ],
)
def test_placeholder_is_no_serial_number(host, transport, serial):
    written = serial.replace(" ", "_")
    links = f"/dev/disk/by-id/usb-TESTDISK_{written}-0:0 /dev/disk/by-id/wwn-0x5000c500a1b2c3d4 /dev/disk/by-path/pci-1"
    host.disk("sda", transport, serial=serial, ID_WWN="0x5000c500a1b2c3d4", ID_SCSI_SERIAL=serial, DEVLINKS=links)
    host.disk("sdb", transport, serial="REAL1", DEVLINKS="/dev/disk/by-id/usb-TESTDISK_REAL1-0:0")
    devices, _runner = _read(host)
    device = devices.get("sda")
    assert (device.serial, device.placeholder, device.identity) == (None, serial, "0x5000c500a1b2c3d4")
    assert device.stable_path == "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"
    for text in (serial, f"TESTDISK_{written}", f"usb-TESTDISK_{written}-0:0", f"/dev/disk/by-id/usb-TESTDISK_{written}-0:0"):
        assert not devices.matches_identity(device, text)
    assert devices.matches_identity(device, "wwn-0x5000c500a1b2c3d4")
    assert (devices.get("sdb").identity, devices.get("sdb").placeholder) == ("REAL1", None)


def test_serial_number_beside_a_placeholder_counts(host):
    host.disk("sda", "sas", serial="5000c500a1b2c3d4", ID_SCSI_SERIAL="00000000")
    device = _sda(host)
    assert (device.serial, device.placeholder) == ("5000c500a1b2c3d4", None)


@pytest.mark.parametrize("wwn", ["0x0000000000000000", "0x5000000000000000", "0xffffffffffffffff"])
def test_placeholder_is_no_wwn(host, wwn):
    host.disk("sda", "usb", serial="REAL1", wwn=wwn)
    assert _sda(host).wwn is None


@pytest.mark.parametrize(("sequence", "identity"), [("7", "S-OLD"), ("8", None)])
def test_database_entry_of_the_device_before_is_ignored(host, sequence, identity):
    place = host.disk("sda", serial="S-OLD", DEVLINKS="/dev/disk/by-diskseq/7 /dev/disk/by-id/ata-S-OLD")
    (place / "diskseq").write_text(f"{sequence}\n")
    device = _sda(host)
    assert (device.identity, device.instance) == (identity, f"diskseq {sequence}")


@pytest.mark.parametrize(("ends", "settled"), [(2, True), (10**6, False)])
def test_udev_is_waited_for_before_it_is_asked(host, monkeypatch, ends, settled):
    queue = host.write("run/udev/queue", "")
    host.disk("sda", serial="S-1")
    waited = []

    def sleep(seconds):
        waited.append(seconds)
        if len(waited) == ends:
            queue.unlink()

    monkeypatch.setattr(udev, "wait_until_settled", functools.partial(udev.wait_until_settled, sleep=sleep))
    assert _read(host)[0].settled is settled
    assert sum(waited) < 3.1


def test_partitions_reference_their_disk_and_share_its_queue(host):
    host.disk("sda", serial="S1", rotational=True)
    host.partition("sda", 1)
    devices, _runner = _read(host)
    assert devices.get("sda").partitions == ("sda1",)
    assert (devices.get("sda1").kind, devices.get("sda1").parent, devices.get("sda1").rotational) == ("partition", "sda", True)


def test_mounts_are_matched_by_number_and_swap_by_path(host):
    host.disk("sda")
    host.disk("sdb")
    host.mount("sda", "/srv/with\\040blank")
    host.swap_on("sdb")
    devices, _runner = _read(host)
    assert devices.get("sda").mountpoints == ("/srv/with blank",)
    assert devices.get("sdb").swap
    assert not devices.get("sda").swap


def test_file_system_with_own_device_number_is_matched_by_source(host):
    host.disk("sda")
    host.write("proc/self/mountinfo", "30 1 0:44 / /data rw - btrfs /dev/sda rw\n")
    assert _sda(host).mountpoints == ("/data",)


def test_links_are_ordered_by_preference_with_stable_path(host):
    links = "/dev/disk/by-path/pci-0 /dev/disk/by-id/wwn-0x5 /dev/disk/by-id/ata-TESTDISK_S1"
    host.disk("sda", serial="S1", DEVLINKS=links)
    disk = _sda(host)
    assert disk.by_id == ("/dev/disk/by-id/ata-TESTDISK_S1", "/dev/disk/by-id/wwn-0x5")
    assert disk.links == ("/dev/disk/by-path/pci-0",)
    assert disk.stable_path == "/dev/disk/by-id/ata-TESTDISK_S1"


def test_links_are_resolved_and_missing_paths_rejected(host):
    host.disk("sda", DEVLINKS="/dev/disk/by-id/ata-X")
    host.write("dev/a-file", "text")
    devices, _runner = _read(host)
    assert devices.resolve("/dev/disk/by-id/ata-X").name == "sda"
    with pytest.raises(DeviceMissing, match=r"/dev/sdz does not exist on this host"):
        devices.resolve("/dev/sdz")
    with pytest.raises(DeviceMissing, match=r"/dev/a-file is not a block device"):
        devices.resolve("/dev/a-file")


def test_link_claimed_by_two_drives_is_ignored(host):
    host.disk("sda", DEVLINKS="/dev/disk/by-id/ata-Cheap_0001 /dev/disk/by-id/wwn-0x1")
    host.disk("sdb", DEVLINKS="/dev/disk/by-id/ata-Cheap_0001")
    devices, _runner = _read(host)
    assert devices.get("sda").stable_path == "/dev/disk/by-id/wwn-0x1"
    assert devices.get("sdb").stable_path is None
    assert [one.name for one in devices.claimants("/dev/disk/by-id/ata-Cheap_0001")] == ["sda", "sdb"]
    assert [one.name for one in devices.claimants("/dev/disk/by-id/wwn-0x1")] == ["sda"]


def test_hidden_nvme_multipath_nodes_are_not_devices(host):
    host.disk("nvme0n1", "nvme", serial="S1")
    place = host.disk("nvme0c0n1", "nvme", serial="S1")
    (place / "dev").unlink()
    assert [device.name for device in _read(host)[0]] == ["nvme0n1"]


def test_container_without_device_mapper_access_has_devices(host):
    host.disk("dm-0", "virtual", dm_name="vg0-data", dm_uuid=_LVM)
    (host.root / "dev/mapper/control").unlink()
    devices, runner = _read(host)
    assert devices.get("dm-0").dm_targets == ()
    assert [call[:2] for call in runner.calls] == [("udevadm", "info")]


@pytest.mark.parametrize("driver", ["stex", "hptiop", "3w-xxxx"])
def test_legacy_raid_controllers(host, driver):
    host.disk("sda", "raid", driver=driver)
    assert _sda(host).transport == "raid"


def test_raid_volume_of_host_adapter_has_transport_raid(host):
    host.disk("sda", "sas", model="Logical Volume")
    host.disk("sdb", "sas", model="ST4000NM0023")
    devices, _runner = _read(host)
    assert (devices.get("sda").transport, devices.get("sdb").transport) == ("raid", "sas")


@pytest.mark.parametrize("model", ["Logical Volume", "VIRTUAL DISK", "Virtual Disk"])
def test_raid_volume_of_host_adapter_is_known_by_its_model(host, model):
    host.disk("sda", "sas", model=model)
    assert _sda(host).transport == "raid"


def test_raid_volume_of_host_adapter_is_known_by_channel_and_class(host):
    for name, target in (("sda", "target0:1:0"), ("sdb", "target0:0:1")):
        place = host.disk(name, "sas", model="RENAMED")
        moved = host.root / f"sys/devices/pci0/host0/{target}/block/{name}"
        moved.parent.mkdir(parents=True)
        (host.root / "sys/class/block" / name).unlink()
        place.rename(moved)
        (host.root / "sys/class/block" / name).symlink_to(moved)
        (moved.parent / "driver").symlink_to("/drivers/mpt3sas")
    devices, _runner = _read(host)
    assert (devices.get("sda").transport, devices.get("sdb").transport) == ("raid", "scsi")
    (host.root / "sys/devices/pci0/host0/target0:0:1/block/sdb/device/raid_devices").mkdir()
    assert _read(host)[0].get("sdb").transport == "raid"


def test_signatures_are_read_from_udev(host):
    host.disk("sda", ID_FS_TYPE="LVM2_member", ID_FS_USAGE="raid")
    host.disk("sdb", ID_PART_TABLE_TYPE="gpt")
    host.disk("sdc")
    devices, _runner = _read(host)
    assert devices.get("sda").signature.type == "LVM2_member"
    assert devices.get("sdb").signature.partition_table == "gpt"
    assert devices.get("sdc").signature is None


def test_partition_does_not_inherit_partition_table_signature(host):
    host.disk("sda", ID_PART_TABLE_TYPE="gpt")
    host.partition("sda", 1, ID_PART_TABLE_TYPE="gpt")
    host.partition("sda", 2, ID_PART_TABLE_TYPE="gpt", ID_FS_TYPE="ext4")
    devices, _runner = _read(host)
    assert devices.get("sda1").signature is None
    assert (devices.get("sda2").signature.type, devices.get("sda2").signature.partition_table) == ("ext4", None)


def test_queue_settings(host):
    host.disk("sda")
    assert _sda(host).queue == {
        "scheduler": "mq-deadline",
        "schedulers": ["mq-deadline", "none"],
        "nr_requests": 64,
        "write_cache": "write back",
        "fua": False,
    }


@pytest.mark.parametrize("short", [Reply("", 1, "Unknown device"), Reply("P: /devices/virtual/block/sda\nE: SUBSYSTEM=block\n")])
def test_whole_udev_database_is_read_if_device_vanished_or_is_single(host, short):
    host.disk("sda", "sata", serial="S1")
    host.disk("sdb", "sata", serial="S2")
    runner = ScriptedRunner({("udevadm", "info"): short, ("udevadm", "info", "--export-db"): host.udev_reply})
    devices = read_devices(runner, host.root)
    assert [device.serial for device in devices] == ["S1", "S2"]
    assert runner.calls == [("udevadm", "info", "/sys/class/block/sda", "/sys/class/block/sdb"), ("udevadm", "info", "--export-db")]


def test_suspended_lower_device_is_found_through_partitions_and_mappings(tmp_path):
    folder = tmp_path / "sys/class/block"
    devices = tmp_path / "sys/devices/virtual/block"
    for name in ("dm-0", "dm-1", "dm-0/dm-0p1"):
        (devices / name / "dm").mkdir(parents=True)
        (devices / name / "slaves").mkdir()
        (devices / name / "dm/suspended").write_text("0\n")
    (devices / "dm-0/dm-0p1/partition").write_text("1\n")
    (devices / "dm-1/slaves/dm-0p1").mkdir()
    folder.mkdir(parents=True)
    for name in ("dm-0", "dm-1", "dm-0/dm-0p1"):
        (folder / name.rsplit("/", 1)[-1]).symlink_to(devices / name)
    assert suspended_below("dm-1", tmp_path) is None
    assert suspended_below("sdz", tmp_path) is None
    (devices / "dm-0/dm/suspended").write_text("1\n")
    assert suspended_below("dm-1", tmp_path) == "dm-0"
    (devices / "dm-1/dm/suspended").write_text("1\n")
    assert suspended_below("dm-1", tmp_path) == "dm-1"
