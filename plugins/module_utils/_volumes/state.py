# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is there of test volumes: their devices, groups, arrays, file systems and mounts, with the guard's objections to what would be overwritten.

What a volume group or an array carries as a mark is in it: the tag of the group, the name in the superblock of the array. What the devices
of an unfinished run carry is in the record of :mod:`left_devices`, so that a run that was killed can be completed.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import resolve_stable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_signatures
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute, read_number
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unescape
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import Objection, judge
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices, identity_of, indistinct_from
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.report import REPORT, Group, Report, parse_report

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VolumeSpec

#: The tag of a volume group that the role has made.
TAG = "cachefleet_test_volume"
#: What the record of a device may name as the work that is under way, and what it names afterwards.
CREATING, REMOVING, DONE = "creating", "removing", "done"


@frozen
class Member:
    """One device of a volume.

    :param path: as the user wrote it.
    :param name: kernel name; None if it is not there.
    :param objections: of the guard, if it was examined: whether it may be overwritten.
    :param begun: :data:`CREATING` or :data:`REMOVING` if a run of the role on this volume has not ended.
    :param is_ours: whether all that is on it is a label of an unfinished run, or of an array of this volume.
    """

    path: str
    name: str | None = None
    objections: tuple[Objection, ...] = ()
    begun: str | None = None
    is_ours: bool = False
    facts: TargetFacts | None = None


@frozen
class Array:
    """An MD array by the name in its superblock. ``chunk`` in bytes; ``members`` are kernel names; a size of 0 if it does not run."""

    name: str
    level: str
    chunk: int
    members: tuple[str, ...]
    size: int


@frozen
class VolumeState:
    """One volume as it is.

    :param group_members: kernel names of the devices of its group; one that is missing is named as LVM names it.
    :param device: of the volume, if it is there and active.
    :param filesystem: the first signature on it.
    :param objections: of the guard to overwriting the volume, if it was examined.
    :param fstab: the entry of its mount point: device and options.
    :param mounted_there: what is mounted at its mount point.
    :param mount_is_empty: whether the folder of the mount point is empty or not there.
    """

    members: tuple[Member, ...]
    group: Group | None = None
    group_members: tuple[str, ...] = ()
    array: Array | None = None
    device: BlockDevice | None = None
    filesystem: str | None = None
    objections: tuple[Objection, ...] = ()
    fstab: tuple[str, str] | None = None
    mounted_there: str | None = None
    mount_is_empty: bool = True

    def begun(self, what: str) -> bool:
        """Whether a run has begun that on every device, and has not ended."""
        return bool(self.members) and all(member.begun == what for member in self.members)


class HostReader:
    """Reads the state of volumes; what is common to all of them once."""

    def __init__(self, runner: Runner, spool: Path, root: Path = Path("/")) -> None:
        self.runner = runner
        self.spool = spool
        self.root = root
        self.devices = read_devices(runner, root)
        self.report = parse_report(runner.run(REPORT).stdout) if runner.has("lvm") else Report()
        self.arrays = dict(self._arrays())
        self.fstab = {fields[1]: (fields[0], fields[3]) for fields in self._table("etc/fstab")}
        self.mounts = {fields[1]: fields[0] for fields in self._table("proc/self/mounts")}

    def read(self, spec: VolumeSpec) -> VolumeState:
        """:raises StorageError: if a device is missing, or is not named by a path that stays."""
        group = None if spec.is_array else self.report.group(spec.label)
        array = self.arrays.get(spec.label) if spec.is_array else None
        device = self._volume(spec, array)
        members = tuple(self._member(spec, path, examined=group is None and array is None) for path in spec.devices)
        signatures = read_signatures(self.runner, device.path) if device is not None else ()
        signature = signatures[0].split(" ", 1)[0] if signatures else None
        needed = device is not None and (spec.state == "absent" or (spec.filesystem is not None and signature is None))
        return VolumeState(
            members=members,
            group=group,
            group_members=tuple(self._kernel_name(path) for path in group.devices) if group else (),
            array=array,
            device=device,
            filesystem=signature,
            objections=tuple(self._judge(spec, device.path)) if needed and device is not None else (),
            fstab=self.fstab.get(spec.mount) if spec.mount else None,
            mounted_there=self.mounts.get(spec.mount) if spec.mount else None,
            mount_is_empty=self._is_empty(spec.mount),
        )

    def records(self, spec: VolumeSpec, what: str) -> LeftDevices:
        """The record of the devices, as that work on this volume writes and reads it."""
        return LeftDevices(self.spool, f"test_volume.{spec.name}.{what}")

    def identified(self, device: BlockDevice, path: str) -> TargetFacts:
        """What the record of left devices needs to know a device."""
        return TargetFacts(
            target=GuardTarget(path),
            path=device.path,
            size=device.size,
            identity=identity_of(self.devices, device, self.root),
            indistinct=indistinct_from(self.devices, device, self.root),
            device=device,
        )

    # -- devices

    def _member(self, spec: VolumeSpec, path: str, *, examined: bool) -> Member:
        try:
            device = resolve_stable(self.devices, path, spec.name)
        except DeviceMissing as error:
            if spec.state == "absent":
                return Member(path)
            raise DeviceMissing(f"{spec.name}: {error.message}", item=spec.name) from None
        known = self.identified(device, path)
        begun = next((what for what in (CREATING, REMOVING) if self.records(spec, what).is_claimed(known)), None)
        if not examined:
            return Member(path, device.name, (), begun, facts=known)
        facts = examine(self.devices, GuardTarget(path), self.runner, self.root, left=self.records(spec, begun or CREATING))
        return Member(path, device.name, tuple(judge(facts, writing=True)), begun, self._is_ours(spec, facts, begun), facts)

    def _is_ours(self, spec: VolumeSpec, facts: TargetFacts, begun: str | None) -> bool:
        """Whether the signatures of a device are labels of this volume: of an array by their name, of LVM by the record and no group."""
        signatures = [text for one in facts.neighbours for text in one.signatures]
        if not signatures or any(one.signatures and one.relation != "itself" for one in facts.neighbours):
            return False
        if spec.is_array:
            # An array that was complete and does not run may hold data: it can be removed, and is not created again.
            return (begun is not None or spec.state == "absent") and all(
                text.startswith("linux_raid_member") and f"(any:{spec.label})" in text for text in signatures
            )
        orphans = {self._kernel_name(path) for path in self.report.orphans}
        name = facts.device.name if facts.device is not None else ""
        return begun is not None and name in orphans and all(text.startswith("LVM2_member") for text in signatures)

    def _judge(self, spec: VolumeSpec, path: str) -> t.Iterator[Objection]:
        facts = examine(self.devices, GuardTarget(path), self.runner, self.root, left=self.records(spec, DONE))
        # Room in a thin pool is no matter of the volume's own contents.
        return (one for one in judge(facts, writing=True) if one.kind != "room")

    def _kernel_name(self, path: str) -> str:
        try:
            return self.devices.resolve(path).name
        except DeviceMissing:
            return path

    def _volume(self, spec: VolumeSpec, array: Array | None) -> BlockDevice | None:
        if spec.is_array:
            return self.devices.get(array.name) if array is not None and array.size else None
        wanted = f"{spec.label}/{spec.name}"
        return next((device for device in self.devices if device.logical_volume == wanted), None)

    def _arrays(self) -> t.Iterator[tuple[str, Array]]:
        for device in self.devices:
            host, _colon, label = device.properties.get("MD_NAME", "").partition(":")
            if device.kind == "md" and host == "any" and label:
                folder = self.root / "sys/class/block" / device.name / "md"
                yield (
                    label,
                    Array(device.name, read_attribute(folder / "level") or "", read_number(folder / "chunk_size") or 0, tuple(device.slaves), device.size),
                )

    # -- mounts

    def _table(self, path: str) -> t.Iterator[list[str]]:
        try:
            text = (self.root / path).read_text(errors="surrogateescape")
        except OSError:
            return
        for line in text.splitlines():
            fields = [unescape(field) for field in line.split()]
            if len(fields) >= 4 and not fields[0].startswith("#"):
                yield fields

    def _is_empty(self, mount: str | None) -> bool:
        folder = self.root / (mount or "").lstrip("/")
        if mount is None or not folder.exists():
            return True
        if not folder.is_dir():
            raise BadInput(f"The mount point {mount} exists and is not a directory: choose another one.", item=mount)
        return next(folder.iterdir(), None) is None
