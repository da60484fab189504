# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wear of every drive of a host: one ``smartctl`` per drive, and one more that finds the drives behind RAID controllers.

Source: smartctl(8), ``--scan-open`` lists what can be queried, with the argument of ``-d`` where one is needed (``megaraid,0``).
"""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import real_path
from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth, parse_smartctl

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: Transports behind which a drive answers for itself. Of virtio, networks and memory wear cannot be read.
_ASKED = frozenset({"sata", "sas", "scsi", "nvme", "usb", "unknown"})
#: Drivers of RAID controllers whose drives ``smartctl --scan-open`` can list, and what is in the type of such a drive.
_LISTED_DRIVERS = {"megaraid_sas": "megaraid", "mpi3mr": "mpi3mr"}
#: The drivers whose drives each type of ``smartctl -d`` is for; other types may be for any.
_DRIVERS_OF_TYPE = {
    "megaraid": ("megaraid_sas", "megaraid_mbox", "megaraid"),
    "cciss": ("hpsa", "smartpqi", "cciss"),
    "aacraid": ("aacraid",),
    "areca": ("arcmsr",),
    "3ware": ("3w-9xxx", "3w-sas", "3w-xxxx"),
}


@frozen
class Address:
    """What ``smartctl`` is called with: a path, and the argument of ``-d`` of a drive behind a controller."""

    name: str
    path: str
    device_type: str | None = None

    @property
    def arguments(self) -> list[str]:
        return [*(["-d", self.device_type] if self.device_type else []), self.name]


@frozen
class DriveReadings:
    """The drives that could be read, and a sentence for each that could not."""

    drives: tuple[DriveHealth, ...] = ()
    problems: tuple[str, ...] = ()


def read_drives(devices: Devices, runner: Runner, further: t.Sequence[Address] = (), root: Path = Path("/")) -> DriveReadings:
    """The health of every drive that can be queried.

    :param further: drives that no tool lists, as the user named them.
    """
    direct = drives_of(devices)
    behind = [device for device in devices if device.kind == "disk" and device.size and device.transport == "raid"]
    if not direct and not behind and not further:
        return DriveReadings()
    try:
        runner.find("smartctl")
    except ToolMissing as error:
        return DriveReadings(problems=(f"{error.message.rstrip('.')}; without it the wear of the drives of this host is not known.",))
    addresses = [Address(device.path, device.stable_path or device.path) for device in direct]
    hidden, problems = _behind_controllers(runner, behind, further, root) if behind else ([], [])
    drives: list[DriveHealth] = []
    for address in (*addresses, *hidden, *further):
        try:
            drives.append(_read_one(runner, address))
        except StorageError as error:
            problems.append(error.message)
    for drive in drives:
        if drive.wear_used_percent is None and "wear_used_percent" in drive.evidence:
            problems.append(f"{drive.path}: the wear of this drive is not known: {drive.evidence['wear_used_percent']}.")
    return DriveReadings(tuple(_each_once(drives)), tuple(problems))


def drives_of(devices: Devices) -> list[BlockDevice]:
    """The whole drives of a host that answer for themselves; a drive with several paths counts once."""
    seen: set[str] = set()
    found = []
    for device in devices:
        if device.kind != "disk" or not device.size or device.removable or device.transport not in _ASKED:
            continue
        # A multipath device lies on several disks that are one.
        identity = device.wwn or device.name if devices.multipath_over(device) else device.name
        if identity not in seen:
            seen.add(identity)
            found.append(device)
    return found


def _behind_controllers(runner: Runner, disks: t.Sequence[BlockDevice], further: t.Sequence[Address], root: Path) -> tuple[list[Address], list[str]]:
    """The drives behind RAID controllers, and a sentence for those that cannot be opened, and for each driver with disks whose drives smartctl does not list.

    :param further: drives that the user named, which may be these.
    """
    addresses, problems = [], []
    try:
        text = runner.run(["smartctl", "--scan-open", "-j"], ok=None).stdout
        addresses = parse_scan(text)
        problems += [f"{row['name']} -d {row['type']}: smartctl cannot open this drive: {row['open_error']}." for row in _hidden(text) if "open_error" in row]
    except StorageError as error:
        return [], [error.message]
    unlisted: dict[str, list[str]] = {}
    for disk in disks:
        if not any(_may_be_behind(disk, address) for address in further) and not _is_listed(disk, disks, addresses, root):
            unlisted.setdefault(disk.driver or "unknown driver", []).append(disk.path)
    for driver, paths in sorted(unlisted.items()):
        names = ", ".join(paths)
        problems.append(
            f"The wear of the drives behind the RAID controller of {names} ({driver}) is not known: smartctl does not list them;"
            " name them in further_drives, each with the argument of smartctl -d."
        )
    return addresses, problems


def _may_be_behind(disk: BlockDevice, address: Address) -> bool:
    drivers = [drivers for word, drivers in _DRIVERS_OF_TYPE.items() if word in (address.device_type or "")]
    return not drivers or disk.driver is None or disk.driver in drivers[0]


def _is_listed(disk: BlockDevice, disks: t.Sequence[BlockDevice], addresses: t.Sequence[Address], root: Path) -> bool:
    """Whether the controller of a disk is one whose drives are listed: by its driver, and where that has several, by its number (``/dev/bus/1``)."""
    word = _LISTED_DRIVERS.get(disk.driver or "")
    numbers = [address.name.rpartition("/")[2] for address in addresses if word and word in str(address.device_type)]
    hosts = {_host_of(other, root) for other in disks if other.driver == disk.driver}
    return bool(numbers) and (len(hosts) == 1 or _host_of(disk, root) in numbers)


def _host_of(disk: BlockDevice, root: Path) -> str | None:
    found = re.search(r"/host(\d+)/", f"{real_path(root / 'sys/class/block' / disk.name)}/")
    return found.group(1) if found else None


def parse_scan(text: str) -> list[Address]:
    """The drives behind controllers in the output of ``smartctl --scan-open -j``.

    :raises NotUnderstood: if it is no JSON.
    """
    return [Address(str(row["name"]), f"{row['name']} -d {row['type']}", str(row["type"])) for row in _hidden(text) if "open_error" not in row]


def _hidden(text: str) -> list[dict[str, t.Any]]:
    try:
        rows = json.loads(text).get("devices", [])
    except (ValueError, AttributeError):
        raise NotUnderstood("smartctl --scan-open printed no JSON: version 7.0 or newer of smartmontools is needed.", item="smartctl") from None
    # "megaraid,3" and "sat+megaraid,3": a number behind the type is an address inside a controller.
    return [row for row in rows if isinstance(row, dict) and row.get("name") and "," in str(row.get("type", ""))]


def _read_one(runner: Runner, address: Address) -> DriveHealth:
    completed = runner.run(["smartctl", "-j", "-x", *address.arguments], ok=None, item=address.path)
    return parse_smartctl(completed.stdout, completed.rc, address.name.split("/dev/", 1)[-1], address.path, address.device_type)


def _each_once(drives: t.Sequence[DriveHealth]) -> list[DriveHealth]:
    """Without drives that are seen twice because their controller passes them through."""
    direct = {drive.serial for drive in drives if drive.device_type is None and drive.serial}
    return [drive for drive in drives if drive.device_type is None or drive.serial not in direct]
