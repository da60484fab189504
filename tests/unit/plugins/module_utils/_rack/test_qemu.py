# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import describe_machines
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.paths import RackPaths
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.qemu import Boot, qemu_arguments

PLACES = RackPaths(pathlib.Path("/racks/demo"))
BOOT = Boot("/image/kernel", "/image/initrd", "tcg", 22345, "ssh-ed25519 AAAAkey comment of the key")


def disk(name="d0", kind="sata_hdd", size="1G", **more):
    return {"name": name, "kind": kind, "size": size, **more}


def arguments(*disks, boot=BOOT, **more):
    machine = describe_machines("demo", [{"name": "node1", "disks": list(disks), **more}])[0]
    return qemu_arguments(machine, "demo", PLACES, boot)


def values(argv, option):
    return [value for key, value in zip(argv, argv[1:]) if key == option]


def options_of(text):
    return dict(word.partition("=")[::2] for word in text.split(","))


def test_machine_is_reachable_only_on_loopback_and_has_no_outgoing_access():
    (user,) = [value for value in values(arguments(), "-netdev") if value.startswith("user,")]
    assert "hostfwd=tcp:127.0.0.1:22345-:22" in user
    assert "restrict=on" in user


def test_root_disk_and_ssh_interface_come_first():
    devices = values(arguments(disk(kind="virtio"), networks=[{"name": "storage"}]), "-device")
    virtio_blocks = [device for device in devices if device.startswith("virtio-blk-pci")]
    interfaces = [device for device in devices if device.startswith("virtio-net-pci")]
    assert options_of(virtio_blocks[0])["drive"] == "root"
    assert options_of(interfaces[0])["netdev"] == "ssh"


def test_disks_report_their_rotation_rate():
    devices = values(arguments(disk("hdd0", "sata_hdd"), disk("ssd0", "sata_ssd")), "-device")
    rotation = {options_of(device)["id"]: options_of(device)["rotation_rate"] for device in devices if device.startswith("ide-hd")}
    assert rotation == {"disk-hdd0": "7200", "disk-ssd0": "1"}


def test_seventh_disk_gets_a_second_controller():
    devices = values(arguments(*(disk(f"d{number}") for number in range(7))), "-device")
    assert [device for device in devices if device.startswith("ich9-ahci")] == ["ich9-ahci,id=ahci0", "ich9-ahci,id=ahci1"]
    assert [options_of(device)["bus"] for device in devices if device.startswith("ide-hd")] == [*(f"ahci0.{port}" for port in range(6)), "ahci1.0"]


def test_every_disk_kind_has_its_controller():
    devices = values(arguments(disk("n0", "nvme"), disk("n1", "nvme"), disk("v0", "megaraid_vd"), disk("v1", "megaraid_vd")), "-device")
    assert [device.split(",")[0] for device in devices] == [
        "virtio-blk-pci", "virtio-net-pci", "pcie-root-port", "nvme", "pcie-root-port", "nvme", "megasas-gen2", "scsi-hd", "scsi-hd",
    ]  # fmt: skip
    assert [options_of(device)["scsi-id"] for device in devices if device.startswith("scsi-hd")] == ["0", "1"]


def test_each_path_of_a_scsi_disk_has_a_host_adapter():
    argv = arguments(disk("a", "scsi_hdd"), disk("b", "scsi_hdd", paths=2, volatile_cache="off"), disk("c", "scsi_hdd", attached=False))
    devices = values(argv, "-device")[2:]
    assert [device.split(",")[0] for device in devices] == [*["virtio-scsi-pci", "scsi-hd"] * 3, "virtio-scsi-pci"]
    paths = [options_of(device) for device in devices if device.startswith("scsi-hd")]
    assert [path["bus"] for path in paths] == ["scsi0.0", "scsi1.0", "scsi2.0"]
    assert len({path["id"] for path in paths}) == 3
    assert [(path["drive"], path["serial"], path.get("share-rw"), path.get("write-cache")) for path in paths] == [
        ("drive-a", "NODE1-A", None, None),
        *[("drive-b", "NODE1-B", "on", "off")] * 2,
    ]
    (node,) = values(argv, "-blockdev")
    assert (options_of(node)["node-name"], options_of(node)["file.filename"]) == ("drive-b", "/racks/demo/node1/b.raw")
    assert not [drive for drive in values(argv, "-drive") if "drive-b" in drive]


def test_disk_with_several_paths_can_forget_or_be_protected():
    nodes = [
        options_of(values(arguments(disk("b", "scsi_hdd", paths=2, **more)), "-blockdev")[0])
        for more in ({"volatile_cache": "honest"}, {"power_loss_protection": True})
    ]
    assert [(node["file.driver"], node["cache.no-flush"]) for node in nodes] == [("nbd", "off"), ("file", "on")]


def test_detached_disk_keeps_its_slot():
    devices = values(arguments(disk("n0", "nvme", attached=False), disk("v0", "megaraid_vd", attached=False), disk("v1", "megaraid_vd")), "-device")
    assert [device.split(",")[0] for device in devices[2:]] == ["pcie-root-port", "megasas-gen2", "scsi-hd"]
    assert options_of(devices[-1])["scsi-id"] == "1"
    assert not [drive for drive in values(arguments(disk("n0", attached=False)), "-drive") if "drive-n0" in drive]


def test_protected_cache_ignores_flushes():
    (drive,) = [value for value in values(arguments(disk(power_loss_protection=True)), "-drive") if "id=drive-d0" in value]
    assert "cache=unsafe" in drive


@pytest.mark.parametrize(
    ("volatile", "mode"), [("on", "writeback"), ("off", "writethrough"), (None, "writeback"), (False, "writethrough"), ("lies", "writeback")]
)
def test_volatile_cache_is_a_write_back_drive(volatile, mode):
    (drive,) = [value for value in values(arguments(disk(volatile_cache=volatile)), "-drive") if "id=drive-d0" in value]
    assert options_of(drive)["cache"] == mode


def test_disk_that_forgets_is_served_by_a_process_and_not_hot_plugged():
    (drive,) = [value for value in values(arguments(disk(kind="nvme", volatile_cache="honest")), "-drive") if "id=drive-d0" in value]
    assert (options_of(drive)["file.driver"], options_of(drive)["file.server.path"]) == ("nbd", "/racks/demo/node1/d0.nbd")
    (machine,) = describe_machines("demo", [{"name": "node1", "disks": [disk(kind="nvme", volatile_cache="honest")]}])
    assert not machine.disks[0].hot_pluggable


def test_disk_and_serial_port_of_a_process_are_connected_to_its_sockets():
    port = {"name": "cachefleet.controller.0", "socket": "/s/control,0"}
    argv = arguments(disk(kind="megaraid_vd", nbd="/s/v0", vendor="Adaptec"), serial_ports=[port], processes=[["serve"]])
    (drive,) = [value for value in values(argv, "-drive") if "id=drive-d0" in value]
    assert (options_of(drive)["file.driver"], options_of(drive)["file.server.path"]) == ("nbd", "/s/v0")
    devices = [options_of(device) for device in values(argv, "-device")]
    assert [device["vendor"] for device in devices if "scsi-hd" in device] == ["Adaptec"]
    (serial,) = [device for device in devices if "virtserialport" in device]
    assert (serial["name"], serial["bus"]) == ("cachefleet.controller.0", "ports.0")
    assert f"socket,id={serial['chardev']},path=/s/control,,0" in values(argv, "-chardev")
    assert "ports" not in str(arguments(disk()))


def test_disks_under_test_honor_flushes():
    drives = values(arguments(disk("a"), disk("b", "nvme", volatile_cache="off")), "-drive")
    assert [options_of(drive)["id"] for drive in drives if options_of(drive)["cache"] == "unsafe"] == ["root"]


def test_iops_limit_applies_only_to_its_disk():
    drives = values(arguments(disk("slow", iops_limit=150), disk("fast", "sata_ssd")), "-drive")
    limits = {options_of(drive)["id"]: options_of(drive).get("throttling.iops-total") for drive in drives}
    assert limits == {"root": None, "drive-slow": "150", "drive-fast": None}


def test_disks_of_a_group_share_their_limit():
    group = {"iops_limit": 200, "iops_group": "twins"}
    drives = values(arguments(disk("one", **group), disk("two", **group), disk("other", iops_limit=200)), "-drive")
    assert [options_of(drive).get("throttling.group") for drive in drives] == [None, "twins", "twins", None]


def test_identity_is_passed_to_the_device():
    devices = values(
        arguments(disk(serial="S1", model="ST10 000", firmware="SN04", wwn="5000C500A1B2C3D4"), disk("vd", "megaraid_vd", model="PERC")), "-device"
    )
    sata = options_of(next(device for device in devices if device.startswith("ide-hd")))
    scsi = options_of(next(device for device in devices if device.startswith("scsi-hd")))
    assert (sata["serial"], sata["model"], sata["ver"], sata["wwn"]) == ("S1", "ST10 000", "SN04", "0x5000c500a1b2c3d4")
    assert (scsi["serial"], scsi["product"]) == ("NODE1-VD", "PERC")


def test_guest_configuration_is_passed_on_the_kernel_command_line():
    (line,) = values(arguments(networks=[{"name": "a", "address": "10.1.0.1/24"}, {"name": "b"}, {"name": "c", "address": "10.3.0.1/24"}]), "-append")
    words = line.split()
    assert "systemd.hostname=node1" in words
    assert "rack.key=ssh-ed25519:AAAAkey" in words
    assert [word for word in words if word.startswith("rack.address=")] == [
        "rack.address=eth0:10.0.2.15/24",
        "rack.address=eth1:10.1.0.1/24",
        "rack.address=eth3:10.3.0.1/24",
    ]


def test_two_machines_on_a_network_are_connected():
    one, two = describe_machines("demo", [{"name": name, "networks": [{"name": "storage"}]} for name in ("node1", "node2")])
    ends = [options_of(values(qemu_arguments(machine, "demo", PLACES, BOOT), "-netdev")[1]) for machine in (one, two)]
    assert ends[0]["local.path"] == ends[1]["remote.path"]
    assert ends[1]["local.path"] == ends[0]["remote.path"]
    assert one.networks[0].mac != two.networks[0].mac


def test_commas_in_paths_are_escaped():
    machine = describe_machines("demo", [{"name": "node1", "disks": [disk()]}])[0]
    argv = qemu_arguments(machine, "demo", RackPaths(pathlib.Path("/racks/a,b")), BOOT)
    assert "file=/racks/a,,b/node1/d0.raw," in values(argv, "-drive")[1]


def test_kvm_uses_the_host_cpu():
    argv = arguments(boot=Boot("/k", "/i", "kvm", 1, "a b"))
    assert (values(argv, "-accel"), values(argv, "-cpu")) == (["kvm"], ["host"])
