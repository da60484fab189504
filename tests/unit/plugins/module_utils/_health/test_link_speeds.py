# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._health.link_speeds import LinkSpeed, read_links

PCI = "sys/devices/pci0000:00/0000:00:04.0"


class Host:
    """A folder as the root of a host."""

    def __init__(self, root):
        self.root = root

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(f"{text}\n")

    def speed(self, name, place):
        """That of a drive at a place of sysfs."""
        (self.root / place / name).mkdir(parents=True, exist_ok=True)
        (self.root / "sys/block").mkdir(parents=True, exist_ok=True)
        (self.root / "sys/block" / name).symlink_to(self.root / place / name)
        found = read_links([BlockDevice(name, f"/dev/{name}", "8:0", kind="disk")], self.root)
        return [one.speed for one in found]


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


@pytest.mark.parametrize(("text", "speed"), [("6.0 Gbps", 6e9), ("1.5 Gbps", 1.5e9), ("<unknown>", None)])
def test_a_sata_drive_has_the_speed_of_its_port(host, text, speed):
    host.write("sys/class/ata_link/link7/sata_spd", text)
    assert host.speed("sdb", f"{PCI}/ata7/host1/target1:0:0/1:0:0:0/block") == [speed]


def test_a_sas_drive_has_the_speed_of_the_slowest_phy_of_its_port(host):
    for phy, text in (("phy-0:1", "12.0 Gbit"), ("phy-0:2", "6.0 Gbit"), ("phy-0:3", "Unknown")):
        host.write(f"sys/class/sas_port/port-0:5/device/{phy}/sas_phy/{phy}/negotiated_linkrate", text)
    assert host.speed("sdc", f"{PCI}/host0/port-0:5/end_device-0:5/target0:0:5/0:0:5:0/block") == [6e9]


@pytest.mark.parametrize(
    ("lane", "lanes", "speed"),
    [("8.0 GT/s PCIe", "4", 8e9 * 4 * 128 / 130), ("2.5 GT/s PCIe", "1", 2e9), ("5 GT/s", "4", 16e9), ("Unknown", "4", None), ("8.0 GT/s PCIe", "0", None)],
)
def test_an_nvme_drive_has_the_speed_of_all_its_lanes(host, lane, lanes, speed):
    host.write(f"{PCI}/current_link_speed", lane)
    host.write(f"{PCI}/current_link_width", lanes)
    assert host.speed("nvme0n1", f"{PCI}/nvme/nvme0") == [speed if speed is None else pytest.approx(speed)]


@pytest.mark.parametrize("place", [f"{PCI}/host0/target0:2:0/0:2:0:0/block", f"{PCI}/virtio0/block"])
def test_a_volume_of_a_controller_and_a_virtual_disk_have_no_link(host, place):
    assert host.speed("sda", place) == []


def test_a_drive_whose_files_are_missing_has_an_unknown_speed(host):
    assert host.speed("sdb", f"{PCI}/ata1/host1/target1:0:0/1:0:0:0/block") == [None]
    assert host.speed("sdc", f"{PCI}/host0/port-0:0/end_device-0:0/target0:0:0/0:0:0:0/block") == [None]
    assert host.speed("nvme0n1", f"{PCI}/nvme/nvme0") == [None]


def test_interfaces_that_are_up(host):
    rows = (("eth0", "10000", "up"), ("eth1", "-1", "up"), ("eth2", "1000", "down"), ("eth0.5", "10000", "up"), ("veth0", "10000", "up"))
    for name, speed, state in rows:
        host.write(f"sys/class/net/{name}/speed", speed)
        host.write(f"sys/class/net/{name}/operstate", state)
        if name != "veth0":
            host.write(f"sys/class/net/{name}/{'lower_eth0' if '.' in name else 'device'}/x", "")
    assert read_links([], host.root) == (LinkSpeed("network", "eth0", 1e10), LinkSpeed("network", "eth0.5", 1e10), LinkSpeed("network", "eth1", None))
