# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps that keep a part of an SSD free of data, or give it back. Pure.

A drive is changed only while it is empty, and after it was discarded as a whole: a part that the drive still takes for data is
no reserve, however the drive is divided.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import read_size
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
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


@frozen
class DiscardDrive(Operation):
    """Discard a whole drive that is still empty, and read it again."""

    needs_commands = ("blkdiscard",)


@frozen
class RemovePartition(Operation):
    """Remove the partition table that was made by us."""

    needs_commands = ("wipefs",)


@frozen
class MakePartition(Operation):
    """Make one partition; ``size`` in bytes."""

    needs_commands = ("sfdisk",)
    size: int


@frozen
class RereadTable(Operation):
    """Have the kernel read the partition table again."""

    needs_commands = ("blockdev",)


@frozen
class SetMaxSectors(Operation):
    """Set the size of a SATA drive; ``sectors`` are its logical blocks."""

    needs_commands = ("hdparm",)
    sectors: int


@frozen
class DeleteNamespace(Operation):
    """Delete the namespace ``number`` of an NVMe controller, which is named by its path."""

    needs_commands = ("nvme",)
    controller: str
    number: int


@frozen
class CreateNamespace(Operation):
    """Create a namespace.

    :param controller: the path of the NVMe controller.
    :param blocks: its size in logical blocks.
    :param flbas: the index of its format.
    """

    needs_commands = ("nvme",)
    controller: str
    blocks: int
    flbas: int


@frozen
class AttachNamespace(Operation):
    """Attach the only namespace of an NVMe controller, which is named by its path."""

    needs_commands = ("nvme",)
    controller: str


@frozen
class ReserveSpec:
    """One drive. What stays usable is ``size`` in bytes, or ``share`` of the drive.

    :param without_discard: the user states that the drive is as it left the factory, so that a discard would change nothing.
    """

    device: str
    method: str = "partition"
    size: int | None = None
    share: float = 1.0
    state: str = "present"
    without_discard: bool = False


@frozen
class ReserveState:
    """What is known of one drive.

    :param device: None while an NVMe drive has no namespace.
    :param finding: what is on it; part_finding: what is on the partition that was made by us.
    :param partition: that partition as seen by the kernel, also when there is no table any more.
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
ReserveStates = t.Mapping[str, ReserveState]


def read_drives(items: t.Iterable[t.Mapping[str, t.Any]]) -> tuple[ReserveSpec, ...]:
    """What the user requests.

    :raises BadInput: naming what is invalid.
    """
    specs = tuple(_read_drive(item) for item in items)
    for path in {spec.device for spec in specs}:
        if sum(spec.device == path for spec in specs) > 1:
            raise BadInput(f"{path} is listed twice: name it once.", item=path)
    return specs


def _read_drive(item: t.Mapping[str, t.Any]) -> ReserveSpec:
    path, state = item["device"], item.get("state") or "present"
    if not path.startswith("/dev/"):
        raise BadInput(f"'{path}' is not a path below /dev: use for example /dev/disk/by-id/ata-SERIAL.", item=path)
    given = item.get("usable")
    if state == "present" and given is None:
        raise BadInput(f"{path}: usable is required: set the usable part of the drive, for example 70% or 240G.", item=path)
    size, share = read_size(given, path) if state == "present" else (None, 1.0)
    if state == "present" and size is None and share >= 1:
        raise BadInput(f"{path}: with usable 100% nothing is kept free: use less, or state: absent to make the whole drive usable.", item=path)
    return ReserveSpec(path, item.get("method") or "partition", size, share, state, bool(item.get("without_discard")))


def plan(states: ReserveStates, specs: t.Iterable[ReserveSpec]) -> list[Step]:
    """The steps for all drives.

    :raises Refused: if a drive is not empty, cannot be discarded or has no such method.
    """
    planners = {"partition": _plan_partition, "hpa": _plan_hpa, "namespace": _plan_namespace}
    steps: list[Step] = []
    for spec in specs:
        found = states[spec.device]
        _require_one(found, spec)
        steps += planners[spec.method](found, spec)
    return steps


def _require_one(found: ReserveState, spec: ReserveSpec) -> None:
    """Refuse a path that does not permanently name one whole drive."""
    if not is_stable(spec.device):
        instead = f"use {found.stable_path}, which is the same device" if found.stable_path else "name it by its serial number"
        raise BadInput(f"{spec.device} may be another device after the next reboot: {instead}.", item=spec.device)
    if found.claimants:
        raise BadInput(f"{spec.device} is also a link to {', '.join(found.claimants)}: use a link that only one of them has.", item=spec.device)
    if found.device is not None and found.device.kind != "disk":
        raise BadInput(f"{spec.device} is a {found.device.kind} and not a drive: only a whole drive can be divided.", item=spec.device)


# -- one partition


def _plan_partition(found: ReserveState, spec: ReserveSpec) -> list[Step]:
    device = _there(found, spec)
    ours = found.table.ours if found.table is not None else None
    steps: list[Step] = []
    if found.table is None and found.partition is not None:
        # A run that was killed here took the table away, and the kernel still shows what was in it.
        _require_unused(found.partition, found.part_finding, spec)
        action = f"Make the kernel re-read {spec.device}, which no longer has a partition table"
        steps.append(Step(LAYER, spec.device, "usable", found.partition.size, None, action, RereadTable()))
        device = dataclasses.replace(device, partitions=(), signature=None)
    if spec.state == "absent":
        if ours is None:
            return steps
        _require_unused(found.partition, found.part_finding, spec)
        return [_forget(spec, ours.size)]
    usable = _usable(spec, device.size)
    size = min(usable, device.size - _AROUND) // ALIGNMENT * ALIGNMENT
    _require_sensible(size if usable < device.size else usable, device.size, spec)
    if ours is not None and ours.size == size:
        if found.partition is not None and found.partition.size == size:
            return []
        action = f"Make the kernel re-read the partition table of {spec.device}"
        return [Step(LAYER, spec.device, "usable", None, size, action, RereadTable())]
    if ours is not None:
        _require_unused(found.partition, found.part_finding, spec)
        steps.append(_forget(spec, ours.size))
    else:
        _require_unused(device, found.finding, spec)
    action = f"Create one partition of {format_size(size)} on {spec.device} and leave {format_size(device.size - size)} free"
    return [*steps, *_discard(found, spec), Step(LAYER, spec.device, "usable", None, size, action, MakePartition(size))]


def _forget(spec: ReserveSpec, size: int) -> Step:
    action = f"Remove the empty partition {NAME} of {spec.device}"
    return Step(LAYER, spec.device, "usable", size, None, action, RemovePartition())


# -- ATA host protected area


def _plan_hpa(found: ReserveState, spec: ReserveSpec) -> list[Step]:
    device, sectors = _there(found, spec), found.sectors
    if device.transport != "sata" or sectors is None:
        raise Refused(
            f"{spec.device} does not report how many sectors it can hide (hdparm -N), as only SATA drives do that the host reaches directly:"
            " use the method partition.",
            item=spec.device,
        )
    native = sectors.native * device.logical_block
    if spec.state == "absent":
        target = sectors.native
    else:
        usable = _usable(spec, native) // MIB * MIB
        _require_sensible(usable, native, spec)
        target = usable // device.logical_block
    if sectors.visible == target:
        return []
    visible = sectors.visible * device.logical_block
    if visible != device.size:
        raise Refused(
            f"{spec.device} was set to {format_size(visible)} since it was switched on, and accepts one change per power cycle: power-cycle"
            " the drive, and run this again.",
            item=spec.device,
        )
    _require_unused(device, found.finding, spec)
    hidden = (sectors.native - target) * device.logical_block
    action = f"Set the size of {spec.device} to {target} sectors and hide {format_size(hidden)} (from the next power cycle on)"
    step = Step(LAYER, spec.device, "usable", visible, target * device.logical_block, action, SetMaxSectors(target))
    return [*(_discard(found, spec) if spec.state == "present" else []), step]


# -- NVMe namespace


def _plan_namespace(found: ReserveState, spec: ReserveSpec) -> list[Step]:
    controller = found.controller
    if controller is None:
        raise Refused(f"{spec.device} is not an NVMe drive that the host can access directly: use the method partition.", item=spec.device)
    _require_manageable(controller, spec)
    space = controller.namespaces[0] if controller.namespaces else None
    block = space.block if space is not None else 512
    if spec.state == "absent":
        size = ((space.size if space is not None else 0) + controller.unallocated) // MIB * MIB
        if space is not None and space.attached and controller.unallocated < MIB:
            return []
    else:
        size = _usable(spec, controller.capacity) // MIB * MIB
        _require_sensible(size, controller.capacity, spec)
    attach = Step(LAYER, spec.device, "attached", False, True, f"Attach the namespace of {spec.device}", AttachNamespace(controller.path))
    if space is not None and space.size == size:
        return [] if space.attached else [attach]
    action = f"Create a namespace of {format_size(size)} on {spec.device} and leave {format_size(controller.capacity - size)} free"
    operation = CreateNamespace(controller.path, size // block, space.flbas if space is not None else 0)
    create = Step(LAYER, spec.device, "usable", space.size if space is not None else None, size, action, operation)
    if space is None:
        return [create, attach]
    return [*_emptied(found, spec, controller, space), create, attach]


def _emptied(found: ReserveState, spec: ReserveSpec, controller: Controller, space: Namespace) -> list[Step]:
    """Discard and delete the namespace that is there."""
    if not space.attached or found.device is None:
        raise Refused(
            f"{spec.device}: its namespace {space.number} is not attached, so its contents cannot be read: attach it"
            f" (nvme attach-ns {controller.path} --namespace-id={space.number} --controllers={controller.number}) and run this again.",
            item=spec.device,
        )
    _require_unused(found.device, found.finding, spec)
    action = f"Delete the namespace {space.number} of {spec.device}, which is empty"
    return [*_discard(found, spec), Step(LAYER, spec.device, "usable", space.size, None, action, DeleteNamespace(controller.path, space.number))]


def _require_manageable(controller: Controller, spec: ReserveSpec) -> None:
    reason = ""
    if not controller.manages:
        reason = "has no namespace management"
    elif not controller.capacity:
        reason = "does not report its total capacity (tnvmcap), so that no size can be worked out"
    elif controller.several:
        reason = "has several controllers, to which its namespaces would have to be attached one by one"
    elif len(controller.namespaces) > 1:
        reason = f"has {len(controller.namespaces)} namespaces, and only a drive with one is divided"
    if reason:
        raise Refused(f"{spec.device} {reason}: use the method partition.", item=spec.device)


# -- for all methods


def _there(found: ReserveState, spec: ReserveSpec) -> BlockDevice:
    if found.device is None:
        raise DeviceMissing(f"{spec.device} does not exist on this host: check the name, for example with lsblk -o +serial.", item=spec.device)
    return found.device


def _usable(spec: ReserveSpec, whole: int) -> int:
    return spec.size if spec.size is not None else int(whole * spec.share)


def _require_sensible(size: int, whole: int, spec: ReserveSpec) -> None:
    if not 0 < size < whole:
        raise BadInput(f"{spec.device} has {format_size(whole)}: what stays usable must be less than that and at least 1 MiB.", item=spec.device)


def _require_unused(device: BlockDevice | None, finding: DeviceUse, spec: ReserveSpec) -> None:
    """Refuse a drive, or our partition of it, that holds or serves anything."""
    if device is not None and device.signature is not None:
        finding = finding.with_signatures(device.signature.type, device.signature.partition_table if device.kind != "partition" else None)
    reasons = [*(uses_of(device) if device is not None else []), *finding.reasons]
    if reasons:
        path = device.path if device is not None else spec.device
        raise Refused(
            f"{spec.device}: {path} {' and '.join(reasons)}, and only an empty drive is divided, because dividing it discards everything:"
            f" {finding.advice(path)}.",
            item=spec.device,
        )


def _discard(found: ReserveState, spec: ReserveSpec) -> list[Step]:
    """Discard the whole drive first."""
    if spec.without_discard:
        return []
    if not found.discards:
        raise Refused(
            f"{spec.device} cannot be discarded through its controller, and blocks that the drive considers in use are not spare: erase it where"
            " that works, or set without_discard: true if it is in factory state.",
            item=spec.device,
        )
    return [Step(LAYER, spec.device, "discarded", False, True, f"Discard the whole of {spec.device}, which is empty", DiscardDrive())]
