# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disks a hypervisor makes: decided by machine, bus and controller, never by the name of the model."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device import discovery

GUEST = "processor : 0\nflags : fpu sse2 hypervisor lahf_lm\n"
HARDWARE = "processor : 0\nflags : fpu sse2 lahf_lm\n"


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def _machine(root, *, cpu="", maker="", product="", xen="", type_=""):
    files = {
        "proc/cpuinfo": cpu,
        "sys/class/dmi/id/sys_vendor": maker,
        "sys/class/dmi/id/product_name": product,
        "proc/xen/capabilities": xen,
        "sys/hypervisor/type": type_,
    }
    for name, text in files.items():
        if text:
            _write(root / name, text)
    return root


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"cpu": GUEST}, True),
        ({"cpu": HARDWARE}, False),
        ({}, False),
        # A hypervisor that clears the flag, and processors that have none.
        ({"cpu": HARDWARE, "maker": "QEMU", "product": "Standard PC (Q35 + ICH9, 2009)"}, True),
        ({"maker": "Amazon EC2", "product": "c7g.large"}, True),
        ({"maker": "Amazon EC2", "product": "c7g.metal"}, False),
        ({"maker": "Microsoft Corporation", "product": "Virtual Machine"}, True),
        ({"cpu": HARDWARE, "maker": "Microsoft Corporation", "product": "C2080"}, False),
        ({"cpu": HARDWARE, "maker": "Dell Inc.", "product": "PowerEdge R740"}, False),
        ({"type_": "xen"}, True),
        # The first domain of Xen has the disks of the hardware.
        ({"cpu": GUEST, "type_": "xen", "xen": "control_d"}, False),
    ],
)
def test_a_virtual_machine_is_recognized(tmp_path, words, expected):
    assert discovery.is_virtual_machine(_machine(tmp_path, **words)) is expected


def _disk(root, *folders, pci=None, buses=()):
    """A disk below folders of sysfs; ``pci``: vendor, device, and vendor and device of the subsystem of the last PCI function."""
    place = root / "sys/devices"
    for folder in folders:
        place /= folder
        place.mkdir(parents=True, exist_ok=True)
        if pci and folder.count(":") == 2 and "." in folder:
            for name, value in zip(("vendor", "device", "subsystem_vendor", "subsystem_device"), pci):
                _write(place / name, f"0x{value}")
        for bus in buses:
            if folder.startswith(bus):
                (root / "sys/bus" / bus).mkdir(parents=True, exist_ok=True)
                (place / "subsystem").symlink_to(root / "sys/bus" / bus)
    disk = place / "block/sda"
    disk.mkdir(parents=True)
    return disk


ATA = ("pci0000:00", "0000:00:1f.2", "ata1", "host0", "target0:0:0", "0:0:0:0")
SAS = ("pci0000:00", "0000:00:03.0", "0000:01:00.0", "host0", "target0:0:0", "0:0:0:0")


@pytest.mark.parametrize(
    ("folders", "pci", "in_a_machine", "on_hardware"),
    [
        # ICH9 AHCI: in a real machine the chipset, in a virtual one that of QEMU, also with the subsystem of another vendor.
        (ATA, ("8086", "2922", "1af4", "1100"), True, False),
        (ATA, ("8086", "2922", "1028", "0001"), True, False),
        # Of a chipset that no hypervisor imitates, and of one whose subsystem is the hypervisor's.
        (ATA, ("8086", "a352", "1028", "0001"), False, False),
        (ATA, ("8086", "a352", "15ad", "0001"), True, False),
        # QEMU's MegaRAID, LSI's, and one whose subsystem cannot be read.
        (SAS, ("1000", "0060", "1000", "1013"), True, False),
        (SAS, ("1000", "005b", "1000", "9271"), False, False),
        (SAS, ("1000", "005b"), True, False),
        # An HBA that is passed through.
        (SAS, ("1000", "0097", "1028", "1f45"), False, False),
        # VMware's, QEMU's NVMe and a cloud's, whatever the machine; Samsung's NVMe.
        (SAS, ("15ad", "07c0", "15ad", "07c0"), True, True),
        (SAS, ("1b36", "0010", "1af4", "1100"), True, True),
        (SAS, ("1d0f", "8061", "0000", "0000"), True, True),
        (SAS, ("144d", "a80a", "144d", "a801"), False, False),
        # What cannot be read.
        (SAS, None, True, False),
        (("platform", "host0", "target0:0:0", "0:0:0:0"), None, True, False),
    ],
)
def test_the_controller_decides(tmp_path, folders, pci, in_a_machine, on_hardware):
    disk = _disk(tmp_path, *folders, pci=pci)
    assert (discovery.is_virtual(disk, True), discovery.is_virtual(disk, False)) == (in_a_machine, on_hardware)


@pytest.mark.parametrize("bus", ["virtio", "vmbus", "xen", "vio"])
def test_a_bus_of_a_hypervisor_decides_on_any_machine(tmp_path, bus):
    disk = _disk(tmp_path, "pci0000:00", "0000:00:05.0", f"{bus}0", "host2", "target2:0:0", "2:0:0:0", pci=("8086", "a352", "1028", "1"), buses=[bus])
    assert discovery.is_virtual(disk, False)


def test_a_namespace_with_several_paths_is_where_its_controllers_are(tmp_path):
    real = _disk(tmp_path, "pci0000:00", "0000:00:03.0", "0000:01:00.0", "nvme", "nvme0", pci=("144d", "a80a", "144d", "a801")).parent.parent
    subsystem = tmp_path / "sys/devices/virtual/nvme-subsystem/nvme-subsys0"
    (subsystem / "nvme0n1").mkdir(parents=True)
    assert discovery.is_virtual(subsystem / "nvme0n1", True)
    (subsystem / "nvme0").symlink_to(real)
    assert not discovery.is_virtual(subsystem / "nvme0n1", True)
