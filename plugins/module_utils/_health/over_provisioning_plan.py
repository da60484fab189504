# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that keep a part of an SSD free of data, or give it back. Pure.

A drive is changed only while it is empty, and after it was discarded as a whole: a part that the drive still takes for data is
no reserve, however the drive is divided.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import read_size
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import is_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.partition_table import ALIGNMENT, NAME

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.namespaces import Controller, Namespace
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import MaxSectors
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.partition_table import Table

LAYER = "over_provisioning"
METHODS = ("partition", "hpa", "namespace")
#: The table at the beginning and its copy at the end.
_AROUND = 2 * ALIGNMENT


@dataclass(frozen=True)
class ReserveSpec:
    """One drive. What stays usable is ``size`` in bytes, or ``share`` of the drive.

    :param without_discard: the user says that the drive is as it left the factory, so that a discard would change nothing.
    """

    device: str
    method: str = "partition"
    size: int | None = None
    share: float = 1.0
    state: str = "present"
    without_discard: bool = False


@dataclass(frozen=True)
class ReserveState:
    """What is known of one drive.

    :param device: None while an NVMe drive has no namespace.
    :param finding: what is on it; part_finding: what is on the partition that was made by us.
    :param partition: that partition as the kernel sees it, also when there is no table any more.
    :param discards: whether the kernel can discard blocks of it.
    :param claimants: other devices with the same link.
    """

    device: BlockDevice | None
    stable_path: str | None = None
    finding: DeviceUse = field(default_factory=DeviceUse)
    part_finding: DeviceUse = field(default_factory=DeviceUse)
    partition: BlockDevice | None = None
    discards: bool = False
    claimants: tuple[str, ...] = ()
    table: Table | None = None
    sectors: MaxSectors | None = None
    controller: Controller | None = None


#: By the path of each drive, as the user wrote it.
Present = t.Mapping[str, ReserveState]


def read_drives(items: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[ReserveSpec, ...]:
    """What the user asks for.

    :raises BadInput: naming what cannot be meant.
    """
    wanted = tuple(_read_drive(item) for item in items)
    for path in {drive.device for drive in wanted}:
        if sum(drive.device == path for drive in wanted) > 1:
            raise BadInput(f"{path} stands in the list twice.", item=path)
    return wanted


def _read_drive(item: t.Mapping[str, t.Any]) -> ReserveSpec:
    path, state = item["device"], item.get("state") or "present"
    if not path.startswith("/dev/"):
        raise BadInput(f"'{path}' is not a path below /dev: write for example /dev/disk/by-id/ata-SERIAL.", item=path)
    given = item.get("usable")
    if state == "present" and given is None:
        raise BadInput(f"{path}: usable is missing: write what shall stay usable of the drive, for example 70% or 240G.", item=path)
    size, share = read_size(given, path) if state == "present" else (None, 1.0)
    if state == "present" and size is None and share >= 1:
        raise BadInput(f"{path}: with usable 100% nothing is kept free: write less, or state: absent to give everything back.", item=path)
    return ReserveSpec(path, item.get("method") or "partition", size, share, state, bool(item.get("without_discard")))


def plan(present: Present, wanted: t.Iterable[ReserveSpec]) -> list[Step]:
    """The steps for all drives.

    :raises Refused: if a drive is not empty, cannot be discarded or has no such method.
    """
    planners = {"partition": _plan_partition, "hpa": _plan_hpa, "namespace": _plan_namespace}
    steps: list[Step] = []
    for drive in wanted:
        found = present[drive.device]
        _require_one(found, drive)
        steps += planners[drive.method](found, drive)
    return steps


def _require_one(found: ReserveState, wanted: ReserveSpec) -> None:
    """Refuse a path that does not name one whole drive for good."""
    if not is_stable(wanted.device):
        instead = f"write {found.stable_path}, which is the same drive" if found.stable_path else "name it by its serial number"
        raise BadInput(f"{wanted.device} may be another drive after the next reboot: {instead}.", item=wanted.device)
    if found.claimants:
        raise BadInput(f"{wanted.device} is also a link to {', '.join(found.claimants)}: write a link that only one of them has.", item=wanted.device)
    if found.device is not None and found.device.kind != "disk":
        raise BadInput(f"{wanted.device} is a {found.device.kind} and no drive: only a whole drive can be divided.", item=wanted.device)


# -- one partition


def _plan_partition(found: ReserveState, wanted: ReserveSpec) -> list[Step]:
    device = _there(found, wanted)
    ours = found.table.ours if found.table is not None else None
    steps: list[Step] = []
    if found.table is None and found.partition is not None:
        # A run that was killed here took the table away, and the kernel still shows what was in it.
        _require_unused(found.partition, found.part_finding, wanted)
        action = f"Have the kernel read {wanted.device} again, on which there is no partition table any more"
        steps.append(Step(LAYER, wanted.device, "usable", found.partition.size, None, action, "reread", {}))
        device = dataclasses.replace(device, partitions=(), signature=None)
    if wanted.state == "absent":
        if ours is None:
            return steps
        _require_unused(found.partition, found.part_finding, wanted)
        return [_forget(wanted, ours.size)]
    usable = _usable(wanted, device.size)
    size = min(usable, device.size - _AROUND) // ALIGNMENT * ALIGNMENT
    _require_sensible(size if usable < device.size else usable, device.size, wanted)
    if ours is not None and ours.size == size:
        if found.partition is not None and found.partition.size == size:
            return []
        action = f"Have the kernel read the partition table of {wanted.device} again"
        return [Step(LAYER, wanted.device, "usable", None, size, action, "reread", {})]
    if ours is not None:
        _require_unused(found.partition, found.part_finding, wanted)
        steps.append(_forget(wanted, ours.size))
    else:
        _require_unused(device, found.finding, wanted)
    action = f"Make one partition of {format_size(size)} on {wanted.device} and leave {format_size(device.size - size)} free"
    return [*steps, *_discard(found, wanted), Step(LAYER, wanted.device, "usable", None, size, action, "partition", {"size": size})]


def _forget(wanted: ReserveSpec, size: int) -> Step:
    action = f"Take the partition {NAME} of {wanted.device} away, which is empty"
    return Step(LAYER, wanted.device, "usable", size, None, action, "forget", {})


# -- ATA host protected area


def _plan_hpa(found: ReserveState, wanted: ReserveSpec) -> list[Step]:
    device, sectors = _there(found, wanted), found.sectors
    if device.transport != "sata" or sectors is None:
        raise Refused(
            f"{wanted.device} does not tell how many sectors it can hide (hdparm -N), as only SATA drives do that the host reaches directly:"
            " use the method partition.",
            item=wanted.device,
        )
    native = sectors.native * device.logical_block
    if wanted.state == "absent":
        target = sectors.native
    else:
        usable = _usable(wanted, native) // MIB * MIB
        _require_sensible(usable, native, wanted)
        target = usable // device.logical_block
    if sectors.visible == target:
        return []
    visible = sectors.visible * device.logical_block
    if visible != device.size:
        raise Refused(
            f"{wanted.device} was set to {format_size(visible)} since it was switched on, and takes one change per power cycle: switch the power of"
            " the drive off and on, and run this again.",
            item=wanted.device,
        )
    _require_unused(device, found.finding, wanted)
    hidden = (sectors.native - target) * device.logical_block
    action = f"Set the size of {wanted.device} to {target} sectors and hide {format_size(hidden)} (from the next power cycle on)"
    step = Step(LAYER, wanted.device, "usable", visible, target * device.logical_block, action, "set_max", {"sectors": target})
    return [*(_discard(found, wanted) if wanted.state == "present" else []), step]


# -- NVMe namespace


def _plan_namespace(found: ReserveState, wanted: ReserveSpec) -> list[Step]:
    controller = found.controller
    if controller is None:
        raise Refused(f"{wanted.device} is no NVMe drive that the host reaches directly: use the method partition.", item=wanted.device)
    _require_manageable(controller, wanted)
    space = controller.namespaces[0] if controller.namespaces else None
    block = space.block if space is not None else 512
    if wanted.state == "absent":
        size = ((space.size if space is not None else 0) + controller.unallocated) // MIB * MIB
        if space is not None and space.attached and controller.unallocated < MIB:
            return []
    else:
        size = _usable(wanted, controller.capacity) // MIB * MIB
        _require_sensible(size, controller.capacity, wanted)
    attach = Step(LAYER, wanted.device, "attached", False, True, f"Attach the namespace of {wanted.device}", "attach", {"controller": controller.path})
    if space is not None and space.size == size:
        return [] if space.attached else [attach]
    action = f"Make a namespace of {format_size(size)} on {wanted.device} and leave {format_size(controller.capacity - size)} free"
    arguments = {"controller": controller.path, "blocks": size // block, "flbas": space.flbas if space is not None else 0}
    create = Step(LAYER, wanted.device, "usable", space.size if space is not None else None, size, action, "create", arguments)
    if space is None:
        return [create, attach]
    return [*_emptied(found, wanted, controller, space), create, attach]


def _emptied(found: ReserveState, wanted: ReserveSpec, controller: Controller, space: Namespace) -> list[Step]:
    """Discard and delete the namespace that is there."""
    if not space.attached or found.device is None:
        raise Refused(
            f"{wanted.device}: its namespace {space.number} is not attached, so that nobody can see what is in it: attach it"
            f" (nvme attach-ns {controller.path} --namespace-id={space.number} --controllers={controller.number}) and run this again.",
            item=wanted.device,
        )
    _require_unused(found.device, found.finding, wanted)
    action = f"Delete the namespace {space.number} of {wanted.device}, which is empty"
    arguments = {"controller": controller.path, "number": space.number}
    return [*_discard(found, wanted), Step(LAYER, wanted.device, "usable", space.size, None, action, "delete", arguments)]


def _require_manageable(controller: Controller, wanted: ReserveSpec) -> None:
    reason = ""
    if not controller.manages:
        reason = "has no namespace management"
    elif not controller.capacity:
        reason = "does not tell its total capacity (tnvmcap), so that no size can be worked out"
    elif controller.several:
        reason = "has several controllers, to which its namespaces would have to be attached one by one"
    elif len(controller.namespaces) > 1:
        reason = f"has {len(controller.namespaces)} namespaces, and only a drive with one is divided"
    if reason:
        raise Refused(f"{wanted.device} {reason}: use the method partition.", item=wanted.device)


# -- for all methods


def _there(found: ReserveState, wanted: ReserveSpec) -> BlockDevice:
    if found.device is None:
        raise DeviceMissing(f"{wanted.device} does not exist on this host: check the name, for example with lsblk -o +serial.", item=wanted.device)
    return found.device


def _usable(wanted: ReserveSpec, whole: int) -> int:
    return wanted.size if wanted.size is not None else int(whole * wanted.share)


def _require_sensible(size: int, whole: int, wanted: ReserveSpec) -> None:
    if not 0 < size < whole:
        raise BadInput(f"{wanted.device} has {format_size(whole)}: what stays usable must be less than that and at least 1 MiB.", item=wanted.device)


def _require_unused(device: BlockDevice | None, finding: DeviceUse, wanted: ReserveSpec) -> None:
    """Refuse a drive, or our partition of it, that holds or serves anything."""
    if device is not None and device.signature is not None:
        finding = finding.with_signatures(device.signature.type, device.signature.partition_table if device.kind != "partition" else None)
    reasons = [*(uses_of(device) if device is not None else []), *finding.reasons]
    if reasons:
        path = device.path if device is not None else wanted.device
        raise Refused(
            f"{wanted.device}: {path} {' and '.join(reasons)}, and only an empty drive is divided, because dividing it discards everything:"
            f" take it out of use, or, if nothing on it is needed, run wipefs -a {path} yourself.",
            item=wanted.device,
        )


def _discard(found: ReserveState, wanted: ReserveSpec) -> list[Step]:
    """Discard the whole drive first."""
    if wanted.without_discard:
        return []
    if not found.discards:
        raise Refused(
            f"{wanted.device} cannot be discarded through its controller, and what the drive still takes for data is no reserve: erase it where"
            " that works, or say with without_discard: true that it is as it left the factory.",
            item=wanted.device,
        )
    return [Step(LAYER, wanted.device, "discarded", False, True, f"Discard the whole of {wanted.device}, which is empty", "discard", {})]
