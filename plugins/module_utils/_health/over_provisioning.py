# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``over_provisioning``: a part of an SSD that no data is ever written to, so that the drive lasts longer and stays fast.

Sources: blkdiscard(8); hdparm(8) ``-N``; ``queue/discard_max_bytes`` (Documentation/ABI/stable/sysfs-block), 0 where nothing can be
discarded. ``queue/discard_zeroes_data`` is always 0 since Linux 4.12 and proves nothing; what a drive guarantees it reports itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse, examine, identified, still_same, uses_of
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import keep, releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import read_size
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, DeviceMissing, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device import namespaces, partition_table
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, node_of, require_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.match import (
    Match,
    check_entry,
    choose,
    chosen_by,
    no_match_sentence,
    read_match,
    traits_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import read_max_sectors
from ansible_collections.cachefleet.storage.plugins.module_utils._device.partition_table import ALIGNMENT, NAME
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import discard, require_same
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_number

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.namespaces import Controller, Namespace
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import MaxSectors
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.partition_table import Table

LAYER = "over_provisioning"
VARIABLE = "over_provisioning_drives"
METHODS = ("partition", "hpa", "namespace")
#: The table at the beginning and its copy at the end.
_AROUND = 2 * ALIGNMENT


@frozen
class DiscardDrive(Operation):
    """Discard a whole drive that is still empty, and read it again."""

    needs_commands = ("blkdiscard",)

    def carry_out(self, layer: OverProvisioningLayer, step: Step) -> None:
        """
        :raises Refused: if something came upon it since it was read.
        """
        path, runner, root = step.item, layer.runner, layer.root
        before = identified(runner, path, root)
        with _held(root / path.lstrip("/"), path) as handle:
            finding = examine(runner, path, root, layer.sleep, around=layer.around(), held=True)
            if finding.reasons:
                raise Refused(f"{path} {' and '.join(finding.reasons)} now, and is not discarded: {finding.advice(path)}.", item=path)
            require_same(path, before, runner, root, handle)
            # Its number stays while it is held; a link can be moved to another drive.
            discard(runner, node_of(before.name), timeout=_PATIENCE)
        layer.proofs[path] = layer.prove(path)


@frozen
class RemovePartition(Operation):
    """Remove the table of a partition that is still empty, or as a cache of ours has left it."""

    needs_commands = ("wipefs",)

    def carry_out(self, layer: OverProvisioningLayer, step: Step) -> None:
        """
        :raises Refused: if something came upon it since it was read.
        """
        runner, root = layer.runner, layer.root
        before = identified(runner, step.item, root)
        around = layer.around()
        for name in around.devices.resolve(step.item).partitions:
            reasons = examine(runner, node_of(name), root, layer.sleep, around=around).reasons
            if reasons:
                raise Refused(f"{node_of(name)} {' and '.join(reasons)} now, and is not removed.", item=step.item)
        with still_same(runner, step.item, step.item, root, before), releasing([step.item], root):
            runner.run(["wipefs", "--all", "--quiet", step.item], item=step.item)


@frozen
class MakePartition(Operation):
    """Make one partition; ``size`` in bytes."""

    needs_commands = ("sfdisk",)
    size: int

    def carry_out(self, layer: OverProvisioningLayer, step: Step) -> None:
        partition_table.make(layer.runner, step.item, self.size)
        # A drive that returns other bytes than zeros after a discard has an empty partition all the same.
        for name in read_devices(layer.runner, layer.root).resolve(step.item).partitions:
            keep(node_of(name), layer.root)


@frozen
class RereadTable(Operation):
    """Have the kernel read the partition table again."""

    needs_commands = ("blockdev",)

    def carry_out(self, layer: OverProvisioningLayer, step: Step) -> None:
        layer.runner.run(["blockdev", "--rereadpt", step.item], item=step.item)


@frozen
class SetMaxSectors(Operation):
    """Set the size of a SATA drive; ``sectors`` are its logical blocks."""

    needs_commands = ("hdparm",)
    sectors: int

    def carry_out(self, layer: OverProvisioningLayer, step: Step) -> None:
        path = step.item
        # p: so that it stays after the next power cycle. The exit status is not sufficient: the value is read back.
        completed = layer.runner.run(["hdparm", "--yes-i-know-what-i-am-doing", f"-Np{self.sectors}", path], ok=None, item=path)
        found = read_max_sectors(layer.runner, read_devices(layer.runner, layer.root).resolve(path))
        if found is None or found.visible != self.sectors:
            raise CommandFailed(
                f"{path} did not take a size of {self.sectors} sectors: it takes one change per power cycle, and none while it is frozen"
                f" (see hdparm -I): {completed.last_words}",
                item=path,
                completed=completed,
            )


@frozen
class DeleteNamespace(Operation):
    """Delete the namespace ``number`` of an NVMe controller, which is named by its path."""

    needs_commands = ("nvme",)
    controller: str
    number: int

    def carry_out(self, layer: OverProvisioningLayer, _step: Step) -> None:
        namespaces.delete(layer.runner, self.controller, self.number)


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

    def carry_out(self, layer: OverProvisioningLayer, _step: Step) -> None:
        namespaces.create(layer.runner, self.controller, self.blocks, self.flbas)


@frozen
class AttachNamespace(Operation):
    """Attach the only namespace of an NVMe controller, which is named by its path."""

    needs_commands = ("nvme",)
    controller: str

    def carry_out(self, layer: OverProvisioningLayer, step: Step) -> None:
        controller = namespaces.read_controller(layer.runner, self.controller)
        if len(controller.namespaces) != 1:
            raise NotEffective(f"{step.item} has {len(controller.namespaces)} namespaces where one was made.", item=step.item)
        namespaces.attach(layer.runner, controller.path, controller.namespaces[0].number, controller.number)


@frozen
class ReserveSpec:
    """One drive. What stays usable is ``size`` in bytes, or ``share`` of the drive.

    :param without_discard: the user states that the drive is as it left the factory, so that a discard would change nothing.
    :param match: what chooses drives in place of ``device``, which is then the path of one of them, or empty; ``number`` that of the entry.
    """

    device: str
    method: str = "partition"
    size: int | None = None
    share: float = 1.0
    state: str = "present"
    without_discard: bool = False
    match: Match | None = None
    number: int = 0

    @property
    def label(self) -> str:
        """How messages name an entry with ``match``."""
        return f"the match of entry {self.number}"


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
    specs = tuple(_read_drive(item, number) for number, item in enumerate(items, 1))
    for path in {spec.device for spec in specs if spec.match is None}:
        if sum(spec.device == path for spec in specs) > 1:
            raise BadInput(f"{path} is listed twice: name it once.", item=path)
    return specs


def _read_drive(item: t.Mapping[str, t.Any], number: int) -> ReserveSpec:
    check_entry(VARIABLE, number, item)
    match = read_match(item["match"], number) if item.get("match") is not None else None
    path, state = item.get("device") or "", item.get("state") or "present"
    if match is not None:
        path = f"{VARIABLE}: entry {number}"
        if item.get("without_discard"):
            raise BadInput(f"{path} has without_discard and match, but that is a statement about one drive: name it with device.", item=path)
        if item.get("method") == "namespace":
            raise BadInput(
                f"{path} has method: namespace and match, but a drive whose namespace is gone matches nothing: name each drive with device.", item=path
            )
    elif not path.startswith("/dev/"):
        raise BadInput(f"'{path}' is not a path below /dev: use for example /dev/disk/by-id/ata-SERIAL.", item=path)
    given = item.get("usable")
    if state == "present" and given is None:
        raise BadInput(f"{path}: usable is required: set the usable part of the drive, for example 70% or 240G.", item=path)
    size, share = read_size(given, path) if state == "present" else (None, 1.0)
    if state == "present" and size is None and share >= 1:
        raise BadInput(f"{path}: with usable 100% nothing is kept free: use less, or state: absent to make the whole drive usable.", item=path)
    device = path if match is None else ""
    return ReserveSpec(device, item.get("method") or "partition", size, share, state, bool(item.get("without_discard")), match, number)


def drives_of(devices: Devices, specs: t.Sequence[ReserveSpec], root: Path = Path("/")) -> list[ReserveSpec]:
    """An entry for each drive: those that are named, and the last match of each other one."""
    found = [spec for spec in specs if spec.match is None]
    named = set()
    for spec in found:
        # What is not there is reported when it is read.
        with contextlib.suppress(DeviceMissing):
            named.add(devices.resolve(spec.device).name)
    for device in devices if len(found) < len(specs) else ():
        chosen = choose(specs, traits_of(device, root)) if device.kind == "disk" and device.name not in named else None
        if chosen is not None:
            found.append(dataclasses.replace(chosen, device=device.stable_path or device.path))
    return found


def plan(states: ReserveStates, specs: t.Iterable[ReserveSpec]) -> list[Step]:
    """The steps for all drives.

    :raises Refused: if a drive is not empty, cannot be discarded or has no such method.
    """
    planners = {"partition": _plan_partition, "hpa": _plan_hpa, "namespace": _plan_namespace}
    steps: list[Step] = []
    for spec in specs:
        found = states[spec.device]
        try:
            _require_one(found, spec)
            steps += planners[spec.method](found, spec)
        except StorageError as error:
            raise error if spec.match is None else chosen_by(error, VARIABLE, spec.label, spec.device) from None
    return steps


def _require_one(found: ReserveState, spec: ReserveSpec) -> None:
    """Refuse a path that does not permanently name one whole drive."""
    require_stable(spec.device, found.stable_path, "name it by its serial number")
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


#: A drive may take minutes for each terabyte it discards.
_PATIENCE = 6 * 3600.0
#: Where a discarded drive is read again: so many places, so many bytes each.
_PLACES = 64
_SPAN = 64 * KIB


class OverProvisioningLayer(Layer[ReserveStates, t.Sequence[ReserveSpec]]):
    """The reserve of SSDs. Only the drives of the specification are read."""

    name = LAYER
    one_at_a_time = True

    def __init__(self, runner: Runner, spec: t.Sequence[ReserveSpec], root: Path = Path("/"), *, sleep: t.Callable[[float], None] = time.sleep) -> None:
        super().__init__(runner, spec, root, sleep=sleep)
        #: The result of reading back each discarded drive, as the rest of a sentence.
        self.proofs: dict[str, str] = {}
        #: The entries of the list, until they are those of drives: what a drive is may change with its size.
        self._entries: t.Sequence[ReserveSpec] | None = spec
        self._unmatched: list[ReserveSpec] = []

    # -- read and plan

    def read(self) -> ReserveStates:
        """Each drive in the list, and no other: what is on it and how it is divided."""
        if not self.spec:
            return {}
        devices = read_devices(self.runner, self.root)
        if self._entries is not None:
            self.spec = drives_of(devices, self._entries, self.root)
            everything = [traits_of(device, self.root) for device in devices if device.kind == "disk"]
            self._unmatched = [spec for spec in self._entries if spec.match and not any(spec.match.meets(one, one.rotational) for one in everything)]
            self._entries = None
        return {spec.device: self._read_drive(devices, spec) for spec in self.spec}

    def _read_drive(self, devices: Devices, spec: ReserveSpec) -> ReserveState:
        try:
            device = devices.resolve(spec.device)
        except DeviceMissing:
            # A run that was killed between deleting and making a namespace left a drive without a device.
            path = namespaces.controller_named(self.root, spec.device) if spec.method == "namespace" else None
            if path is None:
                raise
            return ReserveState(None, spec.device, controller=namespaces.read_controller(self.runner, path))
        claimants = tuple(other.path for other in devices.claimants(spec.device) if other.name != device.name)
        found = ReserveState(device, device.stable_path, discards=self._discards(device), claimants=claimants)
        if device.kind != "disk":
            return found
        found = dataclasses.replace(found, finding=self._examine(devices, device))
        if spec.method == "partition":
            return self._with_partition(devices, device, found)
        if spec.method == "hpa" and device.transport == "sata":
            return dataclasses.replace(found, sectors=read_max_sectors(self.runner, device))
        controller = namespaces.controller_of(self.root, device.name) if spec.method == "namespace" and device.transport == "nvme" else None
        return dataclasses.replace(found, controller=namespaces.read_controller(self.runner, controller)) if controller else found

    def _with_partition(self, devices: Devices, device: BlockDevice, found: ReserveState) -> ReserveState:
        # Checked in any case: a missing tool must be reported before the discard.
        self.runner.find("sfdisk")
        table = partition_table.read_table(self.runner, device.path)
        partition = devices.get(device.partitions[0]) if len(device.partitions) == 1 else None
        if partition is None or (table is not None and table.ours is None):
            return dataclasses.replace(found, table=table)
        return dataclasses.replace(found, table=table, partition=partition, part_finding=self._examine(devices, partition))

    def _examine(self, devices: Devices, device: BlockDevice) -> DeviceUse:
        # Use is reported by itself; opening it exclusively would only wait.
        if device.holders or device.mountpoints or device.swap:
            return DeviceUse()
        return examine(self.runner, device.path, self.root, self.sleep, around=Neighbourhood(devices, self.runner, self.root))

    def _discards(self, device: BlockDevice) -> bool:
        return (read_number(self.root / "sys/class/block" / device.name / "queue/discard_max_bytes") or 0) > 0

    def plan(self, state: ReserveStates) -> list[Step]:
        return plan(state, self.spec)

    # -- apply

    def apply(self, step: Step) -> None:
        """One step on one drive."""
        super().apply(step)
        if self.runner.has("udevadm"):
            # The links of a new partition or namespace are made by udev.
            self.runner.run(["udevadm", "settle"], ok=None, timeout=180)

    def prove(self, path: str) -> str:
        """The result of reading a discarded drive.

        :raises NotEffective: if it promises to return zeroes and does not.
        """
        promises = self._promises_zeroes(path)
        if _reads_zeroes(self.root / path.lstrip("/")):
            return "was discarded, and returns zeroes wherever it was read again"
        if promises:
            raise NotEffective(
                f"{path} returns other bytes than zeroes after it was discarded, although it promises zeroes: the discard did nothing.", item=path
            )
        return "was discarded, which reading cannot prove: the drive does not promise what it returns then"

    def _promises_zeroes(self, path: str) -> bool:
        """Whether the drive reports that what was discarded reads as zeroes: ATA in its identity, NVMe in that of the namespace."""
        device = read_devices(self.runner, self.root).resolve(path)
        with contextlib.suppress(StorageError):
            if device.transport == "sata":
                # hdparm -I, word 169 bit 14 and word 69 bit 5 of IDENTIFY DEVICE.
                output = self.runner.run(["hdparm", "-I", device.path], ok=None, item=path).stdout
                return any(line.strip().startswith("*") and "eterministic read ZEROs after TRIM" in line for line in output.splitlines())
            controller = namespaces.controller_of(self.root, device.name) if device.transport == "nvme" else None
            if controller is not None and self.runner.has("nvme"):
                spaces = namespaces.read_controller(self.runner, controller).namespaces
                return len(spaces) == 1 and spaces[0].zeroes
        return False

    def around(self) -> Neighbourhood:
        return Neighbourhood(read_devices(self.runner, self.root), self.runner, self.root)

    # -- after

    def facts(self, state: ReserveStates) -> dict[str, t.Any]:
        """Each drive of the list as it is now, and the manual actions."""
        drives = [_described(state[spec.device], spec, self.proofs.get(spec.device)) for spec in self.spec]
        return {"drives": drives, "problems": self._to_do(state)}

    def check_settled(self, state: ReserveStates) -> None:
        """The manual actions, and matches without a drive."""
        for sentence in (*self._to_do(state), *(no_match_sentence(VARIABLE, spec.label) for spec in self._unmatched)):
            self.warn(sentence)

    def _to_do(self, state: ReserveStates) -> list[str]:
        sentences = []
        for spec in self.spec:
            found = state[spec.device]
            if found.device is not None and found.sectors is not None and found.sectors.visible * found.device.logical_block != found.device.size:
                sentences.append(f"{spec.device}: the new size counts from the next power cycle of the drive on; until then the kernel sees all of it.")
        return sentences


def _described(found: ReserveState, spec: ReserveSpec, proof: str | None) -> dict[str, t.Any]:
    """One drive as plain data; sizes in bytes."""
    whole = usable = found.device.size if found.device is not None else None
    path = spec.device
    if spec.method == "partition" and found.partition is not None:
        usable, path = found.partition.size, found.partition.stable_path or found.partition.path
    elif found.device is not None and found.sectors is not None:
        whole, usable = (sectors * found.device.logical_block for sectors in (found.sectors.native, found.sectors.visible))
    elif found.controller is not None:
        whole, usable = found.controller.capacity or whole, sum(space.size for space in found.controller.namespaces)
    return {"device": spec.device, "method": spec.method, "size": whole, "usable": usable, "usable_device": path, "discard": proof}


@contextlib.contextmanager
def _held(node: Path, path: str) -> t.Iterator[int]:
    """Hold a drive exclusively: meanwhile it cannot be mounted or built on.

    :raises Refused: if it is in use.
    """
    try:
        handle = os.open(node, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(f"{path} cannot be opened exclusively now ({error.strerror}), and is not discarded.", item=path) from None
    try:
        yield handle
    finally:
        os.close(handle)


def _reads_zeroes(node: Path) -> bool:
    """Whether a device returns nothing but zeroes in its first and last MiB and at places spread evenly over it."""
    try:
        handle = os.open(node, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        size = os.lseek(handle, 0, os.SEEK_END)
        places = {(0, MIB), (max(size - MIB, 0), MIB)} | {(size * number // _PLACES, _SPAN) for number in range(_PLACES)}
        return all(not os.pread(handle, length, start).strip(b"\0") for start, length in sorted(places))
    except OSError:
        return False
    finally:
        os.close(handle)
