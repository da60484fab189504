# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disk is which volume: by name, by address, by path; and by nothing where it could be two things."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Drive, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.on_host import DiskAddress, controllers_at, match, place_of

WWN = "600508b1001c0000000000000000abcd"


class Host:
    """Disks in a folder that looks like sysfs."""

    def __init__(self, root):
        self.root = root
        self.disks: list[BlockDevice] = []

    def disk(self, name="sda", pci="0000:3b:00.0", address="0:2:0:0", driver="megaraid_sas", wwid="", **fields):
        host = f"host{address.split(':')[0]}"
        folder = self.root / f"sys/devices/pci0000:3a/0000:3a:00.0/{pci}/{host}/target{address[:5]}/{address}/block/{name}"
        (folder / "device").mkdir(parents=True)
        if wwid:
            (folder / "device/wwid").write_text(wwid + "\n")
        (self.root / "sys/class/block").mkdir(parents=True, exist_ok=True)
        (self.root / "sys/class/block" / name).symlink_to(folder)
        proc = self.root / "sys/class/scsi_host" / host
        proc.mkdir(parents=True, exist_ok=True)
        (proc / "proc_name").write_text(driver + "\n")
        self.disks.append(BlockDevice(name, f"/dev/{name}", "8:0", size=1 << 30, transport="raid", driver=fields.pop("known_driver", driver), **fields))

    def match(self, *controllers):
        found = match(self.disks, controllers, self.root)
        return {name: (one.id, thing.id if isinstance(thing, Volume) else thing.address) for name, (one, thing) in found.items()}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def controller(number="0", **changes):
    plain = Controller("storcli", number, driver="megaraid_sas", pci_address="0000:3b:00.0", volumes=(Volume("0", scsi=(2, 0, 0)), Volume("1", scsi=(2, 1, 0))))
    return dataclasses.replace(plain, **changes)


def test_disk_address(host):
    host.disk(address="3:2:17:0", known_driver=None)
    assert place_of(host.disks[0], host.root) == DiskAddress("megaraid_sas", "0000:3b:00.0", "host3", (2, 17, 0))
    assert place_of(BlockDevice("nothere", "/dev/nothere", "8:0"), host.root) == DiskAddress()


@pytest.mark.parametrize(
    "fields",
    [
        {"wwn": f"0x{WWN}"},
        {"wwn": f"naa.{WWN}"},
        {"wwid": f"naa.{WWN}"},
        {"properties": {"ID_WWN": f"0x{WWN[:16]}", "ID_WWN_WITH_EXTENSION": f"0x{WWN}"}},
        {"properties": {"ID_SERIAL": f"3{WWN}"}},
        {"wwn": f"0x{WWN.upper()}"},
    ],
)
def test_match_by_world_wide_name(host, fields):
    host.disk(address="0:9:9:9", **fields)
    assert host.match(controller(volumes=(Volume("7", wwn=WWN), Volume("8", wwn=WWN[:-1] + "e")))) == {"sda": ("0", "7")}


def test_name_takes_precedence_over_address(host):
    host.disk(address="0:2:0:0", wwn=f"0x{WWN}")
    assert host.match(controller(volumes=(Volume("0", scsi=(2, 0, 0)), Volume("1", wwn=WWN, scsi=(2, 1, 0))))) == {"sda": ("0", "1")}


def test_partial_name_does_not_match(host):
    host.disk(address="0:9:9:9", wwn=f"0x{WWN[:16]}")
    assert host.match(controller(volumes=(Volume("7", wwn=WWN),))) == {}


def test_name_on_two_controllers_requires_the_pci_slot(host):
    first = controller("0", volumes=(Volume("0", wwn=WWN),))
    second = controller("1", volumes=(Volume("0", wwn=WWN),), pci_address="0000:5e:00.0")
    host.disk(wwn=f"0x{WWN}", pci="0000:5e:00.0")
    assert host.match(first, second) == {"sda": ("1", "0")}
    assert host.match(first, dataclasses.replace(second, pci_address=None)) == {}


def test_duplicate_volume_name_does_not_match(host):
    host.disk(wwn=f"0x{WWN}")
    assert host.match(controller(volumes=(Volume("0", wwn=WWN), Volume("1", wwn=WWN, scsi=(2, 0, 0))))) == {}


def test_match_by_address(host):
    host.disk("sda", address="0:2:1:0")
    host.disk("sdb", address="0:2:5:0")
    assert host.match(controller()) == {"sda": ("0", "1")}


def test_addresses_repeated_on_several_cards_require_the_pci_slot(host):
    host.disk("sda", pci="0000:3b:00.0", address="0:2:0:0")
    host.disk("sdb", pci="0000:5e:00.0", address="1:2:0:0")
    both = (controller("0"), controller("1", pci_address="0000:5e:00.0"))
    assert host.match(*both) == {"sda": ("0", "0"), "sdb": ("1", "0")}
    assert host.match(*(dataclasses.replace(one, pci_address=None) for one in both)) == {}
    assert host.match(dataclasses.replace(both[0], pci_address=None)) == {}


def test_only_card_of_a_driver_matches_without_pci_slot(host):
    host.disk("sda", address="0:2:0:0")
    host.disk("sdb", address="1:0:0:0", driver="ahci", pci="0000:00:17.0")
    assert host.match(controller(pci_address=None)) == {"sda": ("0", "0")}
    assert host.match(controller(pci_address=None, driver=None)) == {"sda": ("0", "0")}
    assert host.match(controller(pci_address=None, driver=None, provider="arcconf")) == {}
    assert host.match(controller(pci_address=None, driver="aacraid")) == {}


def test_card_in_another_pci_slot_does_not_match(host):
    host.disk(address="0:2:0:0")
    assert host.match(controller(pci_address="0000:5e:00.0")) == {}


def test_match_by_path(host):
    host.disk("sdc", address="0:1:0:3", driver="smartpqi")
    ssacli = Controller(
        "ssacli", "3", driver="smartpqi", pci_address="0000:3b:00.0", volumes=(Volume("1", os_device="/dev/sdb"), Volume("2", os_device="/dev/sdc"))
    )
    assert host.match(ssacli) == {"sdc": ("3", "2")}


def test_path_contradicting_the_address_does_not_match(host):
    host.disk("sda", address="0:2:0:0")
    assert host.match(controller(volumes=(Volume("0", scsi=(2, 0, 0)), Volume("1", os_device="/dev/sda")))) == {}
    assert host.match(controller(volumes=(Volume("0", scsi=(2, 0, 0), os_device="/dev/sda"),))) == {"sda": ("0", "0")}


def test_pass_through_drives(host):
    host.disk("sda", address="0:0:5:0", wwn="0x5000c50000000001")
    host.disk("sdb", address="0:0:6:0", serial="SERIAL6")
    host.disk("sdc", address="0:0:7:0")
    drives = (Drive("252:5", wwn="5000c50000000001"), Drive("252:6", serial="SERIAL6"), Drive("252:7"))
    found = host.match(controller(volumes=(), drives=drives, traits={"drive_devices": {"252:7": "/dev/sdc"}}))
    assert found == {"sda": ("0", "252:5"), "sdb": ("0", "252:6"), "sdc": ("0", "252:7")}


def test_repeated_serials_do_not_match(host):
    host.disk("sda", address="0:0:5:0", serial="SAME")
    assert host.match(controller(volumes=(), drives=(Drive("252:5", serial="SAME"), Drive("252:6", serial="SAME")))) == {}


def test_only_whole_disks_match(host):
    host.disk("sda", address="0:2:0:0")
    host.disks = [dataclasses.replace(host.disks[0], kind=kind) for kind in ("partition", "multipath", "lvm")]
    assert host.match(controller()) == {}
    assert match([], [controller()], host.root) == {}
    assert match(host.disks, [], host.root) == {}


def test_controllers_possible_for_a_disk(host):
    here, there, untold = controller("0"), controller("1", pci_address="0000:5e:00.0"), controller("2", pci_address=None)
    place = DiskAddress("megaraid_sas", "0000:3b:00.0", "host0", (2, 0, 0))
    assert controllers_at(place, [here, there, untold]) == [here]
    assert controllers_at(place, [there, untold]) == [untold]
    assert controllers_at(dataclasses.replace(place, driver="aacraid", pci_address="0000:01:00.0"), [here, untold]) == []
