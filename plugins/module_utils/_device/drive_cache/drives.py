# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which drive a path of the user means, by every name it has on the host."""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.model import DriveSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import Match, choose, traits_of

_NAMESPACE = re.compile(r"^(nvme\d+)(?:c\d+)?n\d+$")
_BUILT_ON_DRIVES = {
    "lvm": "a logical volume",
    "crypt": "an encrypted volume",
    "dm": "a device-mapper device",
    "flashcache": "a flashcache device",
    "md": "an MD array",
    "bcache": "a bcache device",
}
_WITHOUT_DRIVES = {
    "loop": "a loop device, which is a file",
    "zram": "a compressed RAM disk",
    "ram": "a RAM disk",
    "rom": "a drive for removable media",
    "nbd": "served over the network, so its drives are set on the server",
    "rbd": "served over the network, so its drives are set on the servers",
    "aoe": "served over the network, so its drives are set on the server",
}


def find_drive(devices: Devices, item: str) -> list[BlockDevice]:
    """The drive behind what the user named, and every other path to it.

    :raises DeviceMissing: if there is nothing behind it.
    :raises BadInput: if it is no whole drive, naming the one to use, or if several drives claim that name.
    """
    device = devices.resolve(item)
    claiming = {unit_of(devices, one): one.path for one in devices if one.kind == "disk" and item in (*one.by_id, *one.links)}
    if len(claiming) > 1:
        # Two drives with one serial number: the link points to the one that came last.
        raise BadInput(f"{item} is the name of several drives ({', '.join(sorted(claiming.values()))}): use a path that only one of them has.", item=item)
    if device.kind == "multipath":
        paths = devices.existing(device.slaves)
        if not paths:
            raise BadInput(f"{item} is a multipath device without a path to its drive.", item=item)
        return paths
    if device.kind == "partition":
        whole = devices.get(device.parent or "")
        raise BadInput(f"{item} is a partition: name the whole drive{f', {whole.stable_path or whole.path}' if whole else ''}.", item=item)
    if device.kind in _BUILT_ON_DRIVES:
        below = [one.stable_path or one.path for one in devices.parents(device) if one.kind == "disk"]
        raise BadInput(
            f"{item} is {_BUILT_ON_DRIVES[device.kind]} and not a drive: name the drives below it{': ' + ', '.join(below) if below else ''}.", item=item
        )
    if device.kind != "disk":
        raise BadInput(f"{item} is {_WITHOUT_DRIVES.get(device.kind, device.kind)}: it has no write cache of a drive.", item=item)
    return _paths_of(devices, device)


def _paths_of(devices: Devices, device: BlockDevice) -> list[BlockDevice]:
    group = devices.multipath_over(device)
    return [device, *(path for path in devices.existing(group.slaves if group else ()) if path.name != device.name)]


def drives_of(devices: Devices, specs: t.Sequence[DriveSpec], root: Path = Path("/")) -> list[tuple[DriveSpec, list[BlockDevice]]]:
    """Each drive that an entry names, in the order of the list, then each other drive that a match chooses: its entry and its paths.

    The last match decides. The entry of a chosen drive has its path as ``device``.

    :raises DeviceMissing: for a path that is not there.
    :raises BadInput: for what is no drive.
    """
    found = [(spec, find_drive(devices, spec.device)) for spec in specs if spec.match is None]
    units = {unit_of(devices, paths[0]) for spec, paths in found}
    for device in devices if len(found) < len(specs) else ():
        spec = choose(specs, traits_of(device, root)) if device.kind == "disk" else None
        if spec is not None and unit_of(devices, device) not in units:
            units.add(unit_of(devices, device))
            found.append((replace(spec, device=own_path(devices, device) or device.path), _paths_of(devices, device)))
    return found


def paths_meeting(devices: Devices, match: Match, root: Path = Path("/")) -> list[str]:
    """The path of each device that meets a match, sorted: one that lasts, if there is one."""
    found = [device for device in devices if match.meets(traits_of(device, root), device.rotational)]
    return sorted(own_path(devices, device) or device.path for device in found)


def unit_of(devices: Devices, device: BlockDevice) -> str:
    """The same text for all kernel names of one drive: its multipath device, its NVMe controller, or its own name."""
    group, namespace = devices.multipath_over(device), _NAMESPACE.match(device.name)
    return group.name if group else namespace.group(1) if namespace else device.name


def own_path(devices: Devices, drive: BlockDevice) -> str | None:
    """The path to recommend: one that lasts and that no other drive claims."""
    unit = unit_of(devices, drive)
    claimed = {link for other in devices if unit_of(devices, other) != unit for link in (*other.by_id, *other.links)}
    lasting = (link for link in (*drive.by_id, *drive.links) if link.startswith(("/dev/disk/by-id/", "/dev/disk/by-path/")))
    return next((link for link in lasting if link not in claimed), None)


def names_only(devices: Devices, unit: str, key: udev_rule.RuleKey) -> bool:
    """Whether no other drive of the host has this value: a line that is keyed on a shared one is not unique."""
    return not any(other.kind == "disk" and other.properties.get(key.name) == key.value and unit_of(devices, other) != unit for other in devices)
