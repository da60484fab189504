# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A target and everything around it, as they are found on the host: nothing is changed, nothing is created. Files are in ``file_examination.py``.

fio's own check compares one string with the names in the mount table; a symbolic link, a partition of a mounted disk, a
physical volume or a raw swap device pass it. Nothing here relies on it. ``guard.py`` evaluates the facts.
"""

from __future__ import annotations

import dataclasses
import errno
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents, users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import suspended_below
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import read_sameness
from ansible_collections.cachefleet.storage.plugins.module_utils._device.room import rooms_below
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_cache_metadata, read_signatures
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, Neighbour, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.file_examination import examine_file
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import identity_of, indistinct_from

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices

#: The signature that a device carries because another one is built on it, by the kind of the device above.
NORMAL_BELOW: t.Mapping[str, frozenset[str]] = {
    "lvm": frozenset({"LVM2_member", "LVM1_member"}),
    "md": frozenset({"linux_raid_member", "isw_raid_member", "ddf_raid_member", "imsm_raid_member"}),
    "crypt": frozenset({"crypto_LUKS", "BitLocker", "TCRYPT"}),
    "bcache": frozenset({"bcache"}),
    "multipath": frozenset({"mpath_member"}),
    "dm": frozenset({"dm-cache", "dm-thin", "dm-writecache"}),
    "flashcache": frozenset({"flashcache"}),
    "partition": frozenset({"gpt", "dos", "PMBR", "mac", "sun", "sgi", "bsd", "atari"}),
}

#: An exclusive open and the list of writers are tried this often: udev and scanners hold a device for a moment.
_ATTEMPTS = 3
_PAUSE = 0.3


def examine(
    devices: Devices,
    target: GuardTarget,
    runner: Runner,
    root: Path = Path("/"),
    *,
    writing: bool = True,
    created: t.Container[str] = (),
    left: LeftDevices | None = None,
    again: bool = False,
    pause: t.Callable[[float], None] = time.sleep,
) -> TargetFacts:
    """Examine a target and everything around it; changes nothing, creates nothing.

    :param writing: whether the job writes: a job that only reads needs no proof that the device is empty.
    :param created: files that the collection has made, and that have not been changed since (:class:`made_files.MadeFiles`).
    :param left: devices that fio has written, and what it left there.
    :param again: a file that was examined before its order began: its mappings are not read again.
    :raises DeviceMissing: if the target is not there or is not of its kind.
    :raises Refused: if a device has become another one since ``devices`` was read.
    """
    if target.kind != "device":
        return examine_file(devices, target, runner, root, created, writing=writing, again=again)
    return _Examination(devices, target, runner, root, left, pause).facts(writing)


class _Examination:
    """The examination of one block device and its neighbourhood."""

    def __init__(self, devices: Devices, target: GuardTarget, runner: Runner, root: Path, left: LeftDevices | None, pause: t.Callable[[float], None]) -> None:
        self.devices = devices
        self.target = target
        self.runner = runner
        self.root = root
        self.left = left
        self.pause = pause
        self.device = devices.resolve(target.path)
        self.members = users.file_system_members(root)
        self.around = Neighbourhood(devices, runner, root)
        self.swaps = {self.around.names.get(unit) for unit in self.around.swaps}

    def facts(self, writing: bool) -> TargetFacts:
        device = self.device
        matches = None if self.target.identity is None else self._matches(device)
        facts = TargetFacts(
            target=self.target,
            path=device.path,
            size=device.size,
            read_only=device.read_only,
            identity=identity_of(self.devices, device, self.root),
            identity_matches=matches,
            same_identity=self._same_identity() if matches else (),
            indistinct=indistinct_from(self.devices, device, self.root),
            unreadable=self._open(device.path, os.O_RDONLY, accept=(errno.EBUSY,)),
            device=device,
            unit=unit_of(self.root / device.path.lstrip("/")),
            sameness=read_sameness(device.name, self.runner, self.root, self.devices),
            unsettled=not self.devices.settled,
        )
        return self._for_writing(facts) if writing else facts

    def _for_writing(self, facts: TargetFacts) -> TargetFacts:
        suspended = suspended_below(self.device.name, self.root)
        if suspended is not None:
            # Reads of it, or of its signatures, wait as long as it is suspended.
            return dataclasses.replace(facts, suspended=f"/dev/{suspended}")
        facts = dataclasses.replace(facts, neighbours=self._neighbours(), rooms=tuple(rooms_below(self.devices, self.device, self.runner)))
        facts = self._with_users(facts)
        return contents_of(facts, self.root, self.left)

    # -- who is who

    def _whole(self, device: BlockDevice) -> BlockDevice:
        return (self.devices.get(device.parent) if device.parent else None) or device

    def _matches(self, device: BlockDevice) -> bool:
        """Whether the identity that the user wrote is that of the device itself: that of a disk permits nothing on its partitions."""
        text = self.target.identity or ""
        return self.devices.matches_identity(device, text) or (text != "" and identity_of(self.devices, device, self.root) == text)

    def _same_identity(self) -> tuple[str, ...]:
        """Devices outside the target's own stack that carry its identity too."""
        own = {self.device.name, self._whole(self.device).name}
        own |= {one.name for one in self.devices.parents(self.device)} | {one.name for one in self.devices.children(self._whole(self.device))}
        return tuple(sorted(one.path for one in self.devices if one.name not in own and self._matches(one)))

    # -- the neighbourhood

    def _neighbours(self) -> tuple[Neighbour, ...]:
        device = self.device
        found = [self._examine("itself", device, self._signatures(device))]
        for child in self.around.above(device):
            relation = "partition of it" if child.kind == "partition" else "built on it"
            # What is built on it is in use whatever it contains; a suspended mapping would block its reader.
            partition = child.kind == "partition"
            found.append(self._examine(relation, child, self._signatures(child) if partition else (), exclusive=partition))
        seen = {device.name}
        # Breadth first with the device above: what is normal on a device depends on what is built on it.
        queue = [(below, device) for below in self.around.below(device)]
        while queue:
            below, above = queue.pop(0)
            if below.name in seen:
                continue
            seen.add(below.name)
            found.append(self._examine("below it", below, self._strange_signatures(below, above), exclusive=False))
            queue += [(further, below) for further in self.around.below(below)]
        found += [self._examine("the same storage", twin, (), exclusive=False) for twin in self.around.same_storage(device)]
        return tuple(found)

    def _examine(self, relation: str, device: BlockDevice, signatures: tuple[str, ...], *, exclusive: bool = True) -> Neighbour:
        points = device.mountpoints or ((self.around.mounts[device.number],) if device.number in self.around.mounts else ())
        # Below the target the holders are the target's own stack.
        holders = device.holders if relation in ("itself", "partition of it", "the same storage") else ()
        own = self.around.stack(self.device)
        holders_outside = tuple(node_of(name) for name in (*holders, *(loop for loop in self.around.loops_over(device) if loop not in own)))
        exports = self.around.exporters(device)
        busy = self._open(device.path, os.O_RDONLY | os.O_EXCL) if exclusive else None
        return Neighbour(
            relation, device.path, points, device.swap or device.name in self.swaps, holders_outside, exports, busy, signatures, self.members.get(device.name)
        )

    def _open(self, path: str, flags: int, accept: t.Container[int] = ()) -> str | None:
        """Why a device cannot be opened so, after a few attempts; ``None`` if it can. It is closed at once."""
        reason = None
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.pause(_PAUSE)
            try:
                os.close(os.open(self.root / path.lstrip("/"), flags | os.O_NONBLOCK | os.O_CLOEXEC))
            except OSError as error:
                reason = None if error.errno in accept else f"{os.strerror(error.errno or 0)}"
            else:
                return None
            if reason is None:
                return None
        return reason

    def _signatures(self, device: BlockDevice) -> tuple[str, ...]:
        if device.size == 0:
            return ()
        return (*read_signatures(self.runner, device.path), *read_cache_metadata(self.root / device.path.lstrip("/")))

    def _strange_signatures(self, below: BlockDevice, above: BlockDevice) -> tuple[str, ...]:
        """What a device below the target contains beside that on which the stack is built."""
        # The parts of a logical volume and the paths of a multipath device show the contents of the device above.
        if (above.kind, below.kind) == ("lvm", "lvm") or above.kind == "multipath":
            return ()
        mapped_partition = above.kind == "dm" and (above.dm_uuid or "").startswith("part")
        normal = NORMAL_BELOW.get("partition" if mapped_partition else above.kind, frozenset())
        return tuple(text for text in self._signatures(below) if text.split(" ", 1)[0] not in normal)

    # -- who has it open

    def _with_users(self, facts: TargetFacts) -> TargetFacts:
        """Who has the target open, and who has anything below, above or beside it open for writing."""
        found = self.around.openers(self.device, self.pause)
        return dataclasses.replace(facts, writers=found.writers, readers=found.readers, unseen=found.unseen, opened=found.opened, unknown=found.unknown)


def examined_again(facts: TargetFacts, runner: Runner, root: Path, left: LeftDevices | None) -> TargetFacts:
    """The facts of a device that is held now, with what it contains now: until it was held any process could write to it."""
    if facts.device is None or facts.size == 0:
        return facts
    signatures = (*read_signatures(runner, facts.path), *read_cache_metadata(root / facts.path.lstrip("/")))
    neighbours = tuple(dataclasses.replace(one, signatures=signatures) if one.relation == "itself" else one for one in facts.neighbours)
    return contents_of(dataclasses.replace(facts, neighbours=neighbours, data_at=None, unread=None), root, left)


def contents_of(facts: TargetFacts, root: Path, left: LeftDevices | None) -> TargetFacts:
    """The facts with what was read of the device itself, where signatures do not show already that it has data."""
    device = facts.device
    permitted = facts.target.allow_data_loss and facts.identity_matches is True
    if device is None or permitted or device.size == 0 or facts.unreadable or any(one.signatures for one in facts.neighbours):
        return facts
    if left is not None and left.is_unchanged(facts, root):
        return facts
    try:
        found = contents.first_data(root / facts.path.lstrip("/"), contents.places_of(device.size))
    except OSError as error:
        return dataclasses.replace(facts, unread=error.strerror or str(error))
    return dataclasses.replace(facts, data_at=found)
