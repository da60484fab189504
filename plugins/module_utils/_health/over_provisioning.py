# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The layer ``over_provisioning``: a part of an SSD that no data is ever written to, so that the drive lasts longer and stays fast.

Sources: blkdiscard(8); hdparm(8) ``-N``; ``queue/discard_max_bytes`` (Documentation/ABI/stable/sysfs-block), 0 where nothing can be
discarded. ``queue/discard_zeroes_data`` is always 0 since Linux 4.12 and proves nothing; what a drive guarantees it reports itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse, examine, identified, still_same
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import keep, releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, NotEffective, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device import namespaces, partition_table
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import read_max_sectors
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import discard, require_same
from ansible_collections.cachefleet.storage.plugins.module_utils._health.over_provisioning_plan import (
    LAYER,
    AttachNamespace,
    CreateNamespace,
    DeleteNamespace,
    DiscardDrive,
    MakePartition,
    RemovePartition,
    RereadTable,
    ReserveSpec,
    ReserveState,
    ReserveStates,
    SetMaxSectors,
    plan,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice

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

    # -- read and plan

    def read(self) -> ReserveStates:
        """Each drive in the list, and no other: what is on it and how it is divided."""
        if not self.spec:
            return {}
        devices = read_devices(self.runner, self.root)
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
        try:
            return int((self.root / "sys/class/block" / device.name / "queue/discard_max_bytes").read_text()) > 0
        except (OSError, ValueError):
            return False

    def plan(self, state: ReserveStates) -> list[Step]:
        """See :func:`over_provisioning_plan.plan`."""
        return plan(state, self.spec)

    # -- apply

    def apply(self, step: Step) -> None:
        """One step on one drive."""
        super().apply(step)
        if self.runner.has("udevadm"):
            # The links of a new partition or namespace are made by udev.
            self.runner.run(["udevadm", "settle"], ok=None, timeout=180)

    @functools.singledispatchmethod
    def carry_out(self, operation: Operation, _step: Step) -> None:
        """:raises StorageError: if a command fails, or its effect is not what was requested."""
        raise TypeError(operation)

    @carry_out.register
    def _discard(self, _operation: DiscardDrive, step: Step) -> None:
        """Discard a drive that is still empty, and read it again.

        :raises Refused: if something came upon it since it was read.
        """
        path = step.item
        before = identified(self.runner, path, self.root)
        with _held(self.root / path.lstrip("/"), path) as handle:
            finding = examine(self.runner, path, self.root, self.sleep, around=self._around(), held=True)
            if finding.reasons:
                raise Refused(f"{path} {' and '.join(finding.reasons)} now, and is not discarded: {finding.advice(path)}.", item=path)
            require_same(path, before, self.runner, self.root, handle)
            # Its number stays while it is held; a link can be moved to another drive.
            discard(self.runner, node_of(before.name), timeout=_PATIENCE)
        self.proofs[path] = self._prove(path)

    def _prove(self, path: str) -> str:
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

    @carry_out.register
    def _remove_partition(self, _operation: RemovePartition, step: Step) -> None:
        """Remove the table of a partition that is still empty, or as a cache of ours has left it.

        :raises Refused: if something came upon it since it was read.
        """
        before = identified(self.runner, step.item, self.root)
        around = self._around()
        for name in around.devices.resolve(step.item).partitions:
            reasons = examine(self.runner, node_of(name), self.root, self.sleep, around=around).reasons
            if reasons:
                raise Refused(f"{node_of(name)} {' and '.join(reasons)} now, and is not removed.", item=step.item)
        with still_same(self.runner, step.item, step.item, self.root, before), releasing([step.item], self.root):
            self.runner.run(["wipefs", "--all", "--quiet", step.item], item=step.item)

    def _around(self) -> Neighbourhood:
        return Neighbourhood(read_devices(self.runner, self.root), self.runner, self.root)

    @carry_out.register
    def _make_partition(self, operation: MakePartition, step: Step) -> None:
        partition_table.make(self.runner, step.item, operation.size)
        # A drive that returns other bytes than zeros after a discard has an empty partition all the same.
        for name in read_devices(self.runner, self.root).resolve(step.item).partitions:
            keep(node_of(name), self.root)

    @carry_out.register
    def _reread(self, _operation: RereadTable, step: Step) -> None:
        self.runner.run(["blockdev", "--rereadpt", step.item], item=step.item)

    @carry_out.register
    def _set_max_sectors(self, operation: SetMaxSectors, step: Step) -> None:
        path, sectors = step.item, operation.sectors
        # p: so that it stays after the next power cycle. The exit status is not sufficient: the value is read back.
        completed = self.runner.run(["hdparm", "--yes-i-know-what-i-am-doing", f"-Np{sectors}", path], ok=None, item=path)
        found = read_max_sectors(self.runner, read_devices(self.runner, self.root).resolve(path))
        if found is None or found.visible != sectors:
            raise CommandFailed(
                f"{path} did not take a size of {sectors} sectors: it takes one change per power cycle, and none while it is frozen"
                f" (see hdparm -I): {completed.last_words}",
                item=path,
                completed=completed,
            )

    @carry_out.register
    def _delete(self, operation: DeleteNamespace, _step: Step) -> None:
        namespaces.delete(self.runner, operation.controller, operation.number)

    @carry_out.register
    def _create(self, operation: CreateNamespace, _step: Step) -> None:
        namespaces.create(self.runner, operation.controller, operation.blocks, operation.flbas)

    @carry_out.register
    def _attach(self, operation: AttachNamespace, step: Step) -> None:
        controller = namespaces.read_controller(self.runner, operation.controller)
        if len(controller.namespaces) != 1:
            raise NotEffective(f"{step.item} has {len(controller.namespaces)} namespaces where one was made.", item=step.item)
        namespaces.attach(self.runner, controller.path, controller.namespaces[0].number, controller.number)

    # -- after

    def facts(self, state: ReserveStates) -> dict[str, t.Any]:
        """Each drive of the list as it is now, and the manual actions."""
        drives = [_described(state[spec.device], spec, self.proofs.get(spec.device)) for spec in self.spec]
        return {"drives": drives, "problems": self._to_do(state)}

    def check_settled(self, state: ReserveStates) -> None:
        """The manual actions."""
        for sentence in self._to_do(state):
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
