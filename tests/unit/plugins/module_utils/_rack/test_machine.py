# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import (
    Boot,
    RackPaths,
    describe_machines,
    machine_from_data,
    qemu_arguments,
)

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


def test_a_machine_is_reached_from_the_loopback_interface_only_and_reaches_nothing():
    (user,) = [value for value in values(arguments(), "-netdev") if value.startswith("user,")]
    assert "hostfwd=tcp:127.0.0.1:22345-:22" in user
    assert "restrict=on" in user


def test_the_root_disk_and_the_ssh_interface_come_first():
    devices = values(arguments(disk(kind="virtio"), networks=[{"name": "storage"}]), "-device")
    virtio_blocks = [device for device in devices if device.startswith("virtio-blk-pci")]
    interfaces = [device for device in devices if device.startswith("virtio-net-pci")]
    assert options_of(virtio_blocks[0])["drive"] == "root"
    assert options_of(interfaces[0])["netdev"] == "ssh"


def test_a_spinning_disk_and_a_flash_disk_say_so():
    devices = values(arguments(disk("hdd0", "sata_hdd"), disk("ssd0", "sata_ssd")), "-device")
    rotation = {options_of(device)["id"]: options_of(device)["rotation_rate"] for device in devices if device.startswith("ide-hd")}
    assert rotation == {"disk-hdd0": "7200", "disk-ssd0": "1"}


def test_a_controller_has_six_ports_and_the_seventh_disk_gets_another_controller():
    devices = values(arguments(*(disk(f"d{number}") for number in range(7))), "-device")
    assert [device for device in devices if device.startswith("ich9-ahci")] == ["ich9-ahci,id=ahci0", "ich9-ahci,id=ahci1"]
    assert [options_of(device)["bus"] for device in devices if device.startswith("ide-hd")] == [*(f"ahci0.{port}" for port in range(6)), "ahci1.0"]


def test_every_kind_has_its_controller():
    devices = values(arguments(disk("n0", "nvme"), disk("n1", "nvme"), disk("v0", "megaraid_vd"), disk("v1", "megaraid_vd")), "-device")
    assert [device.split(",")[0] for device in devices] == [
        "virtio-blk-pci", "virtio-net-pci", "pcie-root-port", "nvme", "pcie-root-port", "nvme", "megasas-gen2", "scsi-hd", "scsi-hd",
    ]  # fmt: skip
    assert [options_of(device)["scsi-id"] for device in devices if device.startswith("scsi-hd")] == ["0", "1"]


def test_a_disk_that_is_not_attached_keeps_its_place():
    devices = values(arguments(disk("n0", "nvme", attached=False), disk("v0", "megaraid_vd", attached=False), disk("v1", "megaraid_vd")), "-device")
    assert [device.split(",")[0] for device in devices[2:]] == ["pcie-root-port", "megasas-gen2", "scsi-hd"]
    assert options_of(devices[-1])["scsi-id"] == "1"
    assert not [drive for drive in values(arguments(disk("n0", attached=False)), "-drive") if "drive-n0" in drive]


def test_a_protected_cache_has_nothing_to_flush():
    (drive,) = [value for value in values(arguments(disk(power_loss_protection=True)), "-drive") if "id=drive-d0" in value]
    assert "cache=unsafe" in drive


def test_a_protected_cache_needs_a_cache():
    with pytest.raises(BadInput, match="with volatile_cache false there is none"):
        arguments(disk(power_loss_protection=True, volatile_cache=False))


@pytest.mark.parametrize(("volatile", "mode"), [(True, "writeback"), (False, "writethrough"), (None, "writeback")])
def test_a_volatile_cache_is_a_write_back_drive(volatile, mode):
    (drive,) = [value for value in values(arguments(disk(volatile_cache=volatile)), "-drive") if "id=drive-d0" in value]
    assert options_of(drive)["cache"] == mode


def test_no_disk_under_test_lies_about_its_flushes():
    drives = values(arguments(disk("a"), disk("b", "nvme", volatile_cache=False)), "-drive")
    assert [options_of(drive)["id"] for drive in drives if options_of(drive)["cache"] == "unsafe"] == ["root"]


def test_an_iops_limit_throttles_that_disk_only():
    drives = values(arguments(disk("slow", iops_limit=150), disk("fast", "sata_ssd")), "-drive")
    limits = {options_of(drive)["id"]: options_of(drive).get("throttling.iops-total") for drive in drives}
    assert limits == {"root": None, "drive-slow": "150", "drive-fast": None}


def test_identity_reaches_the_device():
    devices = values(
        arguments(disk(serial="S1", model="ST10 000", firmware="SN04", wwn="5000C500A1B2C3D4"), disk("vd", "megaraid_vd", model="PERC")), "-device"
    )
    sata = options_of(next(device for device in devices if device.startswith("ide-hd")))
    scsi = options_of(next(device for device in devices if device.startswith("scsi-hd")))
    assert (sata["serial"], sata["model"], sata["ver"], sata["wwn"]) == ("S1", "ST10 000", "SN04", "0x5000c500a1b2c3d4")
    assert (scsi["serial"], scsi["product"]) == ("NODE1-VD", "PERC")


def test_the_guest_learns_its_name_key_and_addresses_from_its_command_line():
    (line,) = values(arguments(networks=[{"name": "a", "address": "10.1.0.1/24"}, {"name": "b"}, {"name": "c", "address": "10.3.0.1/24"}]), "-append")
    words = line.split()
    assert "systemd.hostname=node1" in words
    assert "rack.key=ssh-ed25519:AAAAkey" in words
    assert [word for word in words if word.startswith("rack.address=")] == [
        "rack.address=eth0:10.0.2.15/24",
        "rack.address=eth1:10.1.0.1/24",
        "rack.address=eth3:10.3.0.1/24",
    ]


def test_two_machines_on_a_network_send_to_each_other():
    one, two = describe_machines("demo", [{"name": name, "networks": [{"name": "storage"}]} for name in ("node1", "node2")])
    ends = [options_of(values(qemu_arguments(machine, "demo", PLACES, BOOT), "-netdev")[1]) for machine in (one, two)]
    assert ends[0]["local.path"] == ends[1]["remote.path"]
    assert ends[1]["local.path"] == ends[0]["remote.path"]
    assert one.networks[0].mac != two.networks[0].mac


def test_racks_side_by_side_have_hardware_addresses_of_their_own():
    options = [{"name": "node1", "networks": [{"name": "storage"}]}]
    assert describe_machines("demo", options)[0].networks[0].mac != describe_machines("other", options)[0].networks[0].mac


def test_commas_in_paths_are_kept_from_qemu():
    machine = describe_machines("demo", [{"name": "node1", "disks": [disk()]}])[0]
    argv = qemu_arguments(machine, "demo", RackPaths(pathlib.Path("/racks/a,b")), BOOT)
    assert "file=/racks/a,,b/node1/d0.raw," in values(argv, "-drive")[1]


def test_kvm_takes_the_processor_of_the_host():
    argv = arguments(boot=Boot("/k", "/i", "kvm", 1, "a b"))
    assert (values(argv, "-accel"), values(argv, "-cpu")) == (["kvm"], ["host"])


def test_a_description_survives_being_stored():
    machine = describe_machines("demo", [{"name": "node1", "disks": [disk(iops_limit=150)], "networks": [{"name": "n"}], "ssh_port": 2222}])[0]
    assert machine_from_data(machine.as_data()) == machine


@pytest.mark.parametrize(("text", "size"), [("768", 768 * MIB), ("1G", GIB), (1024, GIB), ("512M", 512 * MIB)])
def test_memory_without_a_suffix_is_mebibytes(text, size):
    assert describe_machines("demo", [{"name": "node1", "memory": text}])[0].memory == size


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "Node_1"}, "cannot be the name of a machine"),
        ({"name": "../up"}, "cannot be the name of a machine"),
        ({"name": "node1", "memory": "64"}, "at least 256 MiB"),
        ({"name": "node1", "memory": "much"}, "is not a size"),
        ({"name": "node1", "cpus": -1}, "cpus must be between"),
        ({"name": "node1", "ssh_port": 22}, "ssh_port must be between"),
        ({"name": "node1", "disks": [disk(kind="floppy")]}, "'floppy' is no kind of disk"),
        ({"name": "node1", "disks": [disk(size="17 apples")]}, "is not a size"),
        ({"name": "node1", "disks": [disk(size="1000000")]}, "multiple of 64 KiB"),
        ({"name": "node1", "disks": [disk(), disk()]}, "disk d0 is listed twice in node1"),
        ({"name": "node1", "disks": [disk("a", serial="S"), disk("b", serial="S")]}, "serial S is listed twice in node1"),
        ({"name": "node1", "disks": [disk(serial="X" * 21)]}, "at most 20 letters"),
        ({"name": "node1", "disks": [disk(serial="a,file=/etc/shadow")]}, "at most 20 letters"),
        ({"name": "node1", "disks": [disk(kind="nvme", model="PM1733")]}, "no model of one's own"),
        ({"name": "node1", "disks": [disk(wwn="12")]}, "wwn must be 16 hexadecimal digits"),
        ({"name": "node1", "disks": [disk(iops_limit=-1)]}, "must not be negative"),
        ({"name": "node1", "networks": [{"name": "n", "mac": "01:00:5e:00:00:01"}]}, "not the hardware address of one interface"),
        ({"name": "node1", "networks": [{"name": "n", "address": "10.0.0.1"}]}, "prefix length"),
    ],
)
def test_bad_descriptions_are_one_sentence(options, words):
    with pytest.raises(BadInput, match=r".") as caught:
        describe_machines("demo", [options])
    assert words in caught.value.message


def test_three_machines_on_one_network_are_refused():
    with pytest.raises(BadInput, match="joins 3 machines") as caught:
        describe_machines("demo", [{"name": f"node{number}", "networks": [{"name": "storage"}]} for number in (1, 2, 3)])
    assert "at most two" in caught.value.message


def test_two_machines_of_one_name_or_port_are_refused():
    with pytest.raises(BadInput, match="machine node1 is listed twice"):
        describe_machines("demo", [{"name": "node1"}, {"name": "node1"}])
    with pytest.raises(BadInput, match="ssh_port 2222 is listed twice"):
        describe_machines("demo", [{"name": "node1", "ssh_port": 2222}, {"name": "node2", "ssh_port": 2222}])


def test_a_folder_too_long_for_sockets_is_refused():
    machine = describe_machines("demo", [{"name": "node1"}])[0]
    RackPaths(pathlib.Path("/" + "x" * 80)).check_sockets(machine)
    with pytest.raises(BadInput, match="choose a shorter directory"):
        RackPaths(pathlib.Path("/" + "x" * 100)).check_sockets(machine)
