# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which disk of the kernel is which volume, or passed-through drive, of which controller.

Three ways, the surest first: the world wide name, the SCSI address below the controller's PCI function, and the path the tool
says. What is ambiguous does not match: a disk without a match is unknown, a disk with a wrong match would be wrong.

Sources: ``/sys/class/block/<name>`` (a link to ``…/<PCI function>/host<H>/target…/<H>:<C>:<T>:<L>/block/<name>``), ``device/wwid`` in it
(``naa.…``), ``/sys/class/scsi_host/host<H>/proc_name``, and udev's ``ID_WWN_WITH_EXTENSION`` and ``ID_SERIAL`` (the SCSI identifier with
its type in front: ``3600508b1…``).
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import ADAPTER_DRIVERS
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.controller.model import Controller, Drive, Volume
from ansible_collections.cachefleet.storage.plugins.module_utils._raid.tools import TOOLS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

#: A thing of a controller that can be a disk of the kernel.
Exposed = t.Union[Volume, Drive]
Match = t.Tuple[Controller, Exposed]

#: The SCSI channels on which drivers show volumes; what they show on others are drives as they are. Sources: ``MEGASAS_MAX_PD_CHANNELS`` of
#: megaraid_sas, ``RAID_CHANNEL`` of mpt3sas, ``HPSA_RAID_VOLUME_BUS`` of hpsa, ``PQI_RAID_VOLUME_BUS`` of smartpqi.
_VOLUME_CHANNELS: t.Mapping[str, tuple[int, ...]] = {
    "megaraid_sas": (2, 3),
    "mptsas": (1,),
    "mpt2sas": (1,),
    "mpt3sas": (1,),
    "hpsa": (1,),
    "smartpqi": (1, 3),
}

_PCI_FUNCTION = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_SCSI_ADDRESS = re.compile(r"^([0-9]+):([0-9]+):([0-9]+):([0-9]+)$")
_IDENTIFIER = re.compile(r"^[0-9a-f]{16}(?:[0-9a-f]{16})?$")


@frozen
class DiskAddress:
    """Where in the machine a disk is attached.

    :param address: (channel, target, lun) below the SCSI host.
    """

    driver: str | None = None
    pci_address: str | None = None
    host: str | None = None
    address: tuple[int, int, int] | None = None


def place_of(device: BlockDevice, root: Path = Path("/")) -> DiskAddress:
    """The place of a disk, as far as sysfs shows it."""
    parts = Path(os.path.realpath(root / "sys/class/block" / device.name)).parts
    functions = [part for part in parts if _PCI_FUNCTION.match(part)]
    addresses = [found for found in map(_SCSI_ADDRESS.match, parts) if found]
    found = addresses[-1] if addresses else None
    host = f"host{found.group(1)}" if found else None
    return DiskAddress(
        driver=device.driver or ((read_attribute(root / "sys/class/scsi_host" / host / "proc_name") or None) if host else None),
        pci_address=functions[-1] if functions else None,
        host=host,
        address=(int(found.group(2)), int(found.group(3)), int(found.group(4))) if found else None,
    )


def is_volume(device: BlockDevice, place: DiskAddress) -> bool:
    """Whether the kernel shows that a disk behind a RAID controller is a volume and no drive; of an adapter only its volumes are behind one."""
    channel = place.address[0] if place.address is not None else None
    return device.driver in ADAPTER_DRIVERS or channel in _VOLUME_CHANNELS.get(place.driver or "", ())


def match(devices: t.Iterable[BlockDevice], controllers: t.Iterable[Controller], root: Path = Path("/")) -> dict[str, Match]:
    """``{kernel name: (controller, volume or drive)}`` for every disk that is surely one of them.

    :param controllers: each real controller once.
    """
    known = list(controllers)
    names = _by_name(known)
    hosts = _drivers_of_hosts(root)
    found: dict[str, Match] = {}
    disks = [(device, place_of(device, root)) for device in devices if device.kind == "disk" and known]
    for device, place in disks:
        one = _one(device, place, known, names, hosts, root) or _only_volume(device, place, disks, known)
        if one is not None:
            found[device.name] = one
    return found


def _only_volume(device: BlockDevice, place: DiskAddress, disks: t.Sequence[tuple[BlockDevice, DiskAddress]], controllers: list[Controller]) -> Match | None:
    """The volume of an adapter that has only one, while the kernel shows only one there too: neither name nor address of it is reported."""
    near = controllers_at(place, controllers)
    if device.driver not in ADAPTER_DRIVERS or len(near) != 1 or len(near[0].volumes) != 1 or not _drives(place, near[0]):
        return None
    alike = [other for other, where in disks if other.driver == device.driver and where.pci_address == place.pci_address]
    return (near[0], near[0].volumes[0]) if len(alike) == 1 else None


def controllers_at(place: DiskAddress, controllers: t.Iterable[Controller]) -> list[Controller]:
    """The controllers a disk at this place can be behind: by the PCI function, else every one with its driver whose function is not reported."""
    known = list(controllers)
    same = [controller for controller in known if controller.pci_address is not None and controller.pci_address == place.pci_address]
    untold = [controller for controller in known if _drives(place, controller) and (controller.pci_address is None or place.pci_address is None)]
    return same or untold


def _one(
    device: BlockDevice, place: DiskAddress, controllers: list[Controller], names: t.Mapping[str, list[Match]], hosts: list[str], root: Path
) -> Match | None:
    """The only thing this disk can be; ``None`` if there is none or more than one."""
    by_name = _unique([one for name in sorted(_names_of(device, root)) for one in names.get(name, ()) if _drives(place, one[0])])
    if by_name:
        if len(by_name) > 1:
            by_name = [one for one in by_name if one[0].pci_address is not None and one[0].pci_address == place.pci_address]
        return by_name[0] if len(by_name) == 1 else None
    near = controllers_at(place, controllers)
    # Addresses repeat on every card. Without a PCI function there must be only one card, to the tool and to the kernel.
    sure = len(near) == 1 and (place.pci_address in (one.pci_address for one in near if one.pci_address) or hosts.count(place.driver or "") <= 1)
    by_address = [(near[0], volume) for volume in near[0].volumes if volume.scsi is not None and volume.scsi == place.address] if sure else []
    by_path = [one for controller in near for one in _label(controller, {device.path, *device.links, *device.by_id})]
    by_serial = [(controller, drive) for controller in near for drive in controller.drives if drive.serial and drive.serial == device.serial]
    candidates = _unique([*by_address, *by_path, *by_serial])
    return candidates[0] if len(candidates) == 1 else None


def _by_name(controllers: t.Iterable[Controller]) -> dict[str, list[Match]]:
    """Everything with a world wide name, by that name."""
    found: dict[str, list[Match]] = {}
    for controller in controllers:
        for exposed in (*controller.volumes, *controller.drives):
            if exposed.wwn:
                found.setdefault(exposed.wwn, []).append((controller, exposed))
    return found


def _names_of(device: BlockDevice, root: Path) -> set[str]:
    """The world wide names of a disk as plain hexadecimal digits.

    ``ID_WWN`` is left out where there is an extension: it is the first half of the name then, which all volumes of a controller may share.
    """
    properties = device.properties
    identities = [
        device.wwn,
        read_attribute(root / "sys/class/block" / device.name / "device/wwid"),
        read_attribute(root / "sys/class/block" / device.name / "wwid"),
    ]
    identities += [
        properties.get("ID_WWN_WITH_EXTENSION") or properties.get("ID_WWN"),
        properties.get("ID_SERIAL"),
        (device.dm_uuid or "").replace("mpath-", "", 1),
    ]
    whole = {name for text in identities if text for name in (_digits(text),) if name}
    return {name for name in whole if not any(other != name and other.startswith(name) for other in whole)}


def _digits(text: str) -> str | None:
    """``naa.600…``, ``0x600…`` and the SCSI identifier ``3600…`` as digits; ``None`` for anything that is no such name."""
    name = text.strip().lower()
    for prefix in ("naa.", "eui.", "0x"):
        if name.startswith(prefix):
            name = name[len(prefix) :]
            break
    else:
        if name[:1] in ("2", "3") and len(name) in (17, 33):
            name = name[1:]
    return name if _IDENTIFIER.match(name) else None


def _drives(place: DiskAddress, controller: Controller) -> bool:
    """Whether the driver of the disk can be the driver of the controller."""
    if place.driver is None:
        return True
    if controller.driver is not None:
        return controller.driver == place.driver
    return controller.provider not in TOOLS or place.driver in TOOLS[controller.provider].drivers


def _label(controller: Controller, paths: t.AbstractSet[str]) -> list[Match]:
    """The item with this kernel name according to the tool."""
    found: list[Match] = [(controller, volume) for volume in controller.volumes if volume.os_device in paths]
    devices = controller.traits.get("drive_devices", {})
    return found + [(controller, drive) for drive in controller.drives if devices.get(drive.address) in paths]


def _unique(found: t.Iterable[Match]) -> list[Match]:
    unique: list[Match] = []
    for one in found:
        if not any(one[0] is other[0] and one[1] is other[1] for other in unique):
            unique.append(one)
    return unique


def _drivers_of_hosts(root: Path) -> list[str]:
    """The driver of every SCSI host."""
    folder = root / "sys/class/scsi_host"
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    return [read_attribute(folder / name / "proc_name") or "" for name in names]
