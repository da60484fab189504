# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a disk is made by a hypervisor, whatever model it reports: its cache is then one of the hypervisor, which may drop flushes.

That is decided by the bus and the controller, and for controllers that also exist as hardware by the machine. A drive or controller that is passed
through to a virtual machine is a real one.

Sources: pci.ids of the PCI ID project, include/linux/pci_ids.h, and the device models of QEMU (hw/ide, hw/scsi, hw/nvme), for the numbers; cpuid leaf 1,
ECX bit 31 (``hypervisor`` in ``/proc/cpuinfo``); Documentation/ABI/testing/sysfs-class-dmi; Documentation/ABI/stable/sysfs-hypervisor-xen;
the flag ``control_d`` of ``/proc/xen/capabilities``, which the first domain of Xen has: its disks are those of the hardware.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

#: Buses that only hypervisors have: virtio, VMBus of Hyper-V, xenbus, and the virtual I/O of POWER.
_BUSES = frozenset({"virtio", "vmbus", "xen", "vio"})
#: PCI vendors of which every storage controller is a virtual one: virtio, QEMU, VMware, VirtualBox, Microsoft, XenSource, Amazon, Google, Alibaba, Parallels,
#: bhyve. Also on hardware: the disks of a cloud are behind them.
_VENDORS = frozenset({"1af4", "1b36", "15ad", "80ee", "1414", "5853", "1d0f", "1ae0", "1ded", "1ab8", "fb5d"})
#: Controllers that hypervisors imitate: PIIX3 and PIIX4, ICH6, ICH8M and ICH9, QEMU's first NVMe; 53c895a, 53c1030, SAS1068; BusLogic; AM53C974.
_IMITATED = frozenset(
    {"8086:7010", "8086:7111", "8086:2652", "8086:2829", "8086:2922", "8086:2821", "8086:5845"}
    | {"1000:0012", "1000:0030", "1000:0054", "104b:1040", "1022:2020"}
)
#: The MegaRAID controllers of QEMU, and the subsystem that tells them from those of LSI.
_MEGASAS, _OF_QEMU = frozenset({"1000:0060", "1000:005b"}), "1013"
#: Beginnings of vendor and product in the DMI of virtual machines, for processors without a flag for it and for hypervisors that clear it.
_MACHINES = (
    *("QEMU", "VMware", "innotek", "Xen", "Amazon EC2", "Google Google Compute", "Alibaba Cloud", "OpenStack", "Nutanix AHV", "oVirt", "KVM"),
    *("BHYVE", "Parallels", "Bochs", "Red Hat", "Microsoft Corporation Virtual Machine"),
)
_PCI = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]\Z")


def is_virtual_machine(root: Path = Path("/")) -> bool:
    """Whether this host has a hypervisor below it."""
    if "control_d" in (read_attribute(root / "proc/xen/capabilities") or ""):
        return False
    flags = re.search(r"^flags\s*:.*$", read_attribute(root / "proc/cpuinfo") or "", re.MULTILINE)
    if flags is not None and " hypervisor" in flags.group():
        return True
    if (root / "sys/firmware/devicetree/base/hypervisor").exists() or read_attribute(root / "sys/hypervisor/type") == "xen":
        return True
    product = " ".join(read_attribute(root / f"sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    # Machines without a hypervisor have the same vendor in a cloud: c5.metal.
    return product.startswith(_MACHINES) and ".metal" not in product


def is_virtual(disk: Path, machine: bool) -> bool:
    """Whether a hypervisor makes a disk.

    :param disk: its folder in sysfs, without symbolic links.
    :param machine: of :func:`is_virtual_machine`.
    """
    for place in _places(disk):
        for folder in (place, *place.parents):
            if folder.name in ("devices", "block"):
                continue
            subsystem = folder / "subsystem"
            if subsystem.is_symlink() and subsystem.resolve().name in _BUSES:
                return True
            if _PCI.match(folder.name):
                return _is_virtual_controller(folder, machine)
    return machine


def _places(disk: Path) -> t.Iterator[Path]:
    """Where a disk is attached: a namespace of NVMe with several paths is below none of its controllers."""
    if disk.parent.parent.name == "nvme-subsystem":
        yield from (link.resolve() for link in sorted(disk.parent.glob("nvme[0-9]*")) if link.is_symlink())
    yield disk


def _is_virtual_controller(folder: Path, machine: bool) -> bool:
    vendor, device, maker, kind = (
        (read_attribute(folder / name) or "").replace("0x", "") for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")
    )
    if vendor in _VENDORS:
        return True
    # A controller of a passed-through kind that cannot be read is not known to be one.
    imitated = f"{vendor}:{device}" in _IMITATED or maker in _VENDORS or not vendor or (f"{vendor}:{device}" in _MEGASAS and kind in ("", _OF_QEMU))
    return machine and imitated
