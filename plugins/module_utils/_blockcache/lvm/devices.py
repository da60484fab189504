# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a cache goes: its devices, their way into the volume group and out again, and the room on them. Pure."""

from __future__ import annotations

import contextlib
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import (
    DEGRADED,
    MIRRORED,
    DeviceUse,
    require_empty,
    require_whole_unit,
    resolve_stable,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import sizes as lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.operations import CreatePhysicalVolume, ExtendVolumeGroup, ReleaseDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LAYER
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume, PhysicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import LvmCacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice


@dataclass
class Earlier:
    """What earlier caches of the same list did with devices, by kernel name.

    :param rooms: what they left free on a device.
    :param groups: the volume group that they add a device to.
    :param removed: full names of volumes that they take away.
    :param released: devices that they give back.
    :param mended: volume groups from which they remove missing devices.
    """

    rooms: dict[str, lvm_layout.Room] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    released: set[str] = field(default_factory=set)
    mended: set[str] = field(default_factory=set)


class Placement:
    """The devices of one cache, after those of the caches before it in the list."""

    def __init__(self, state: LvmState, spec: LvmCacheSpec, earlier: Earlier) -> None:
        self.state = state
        self.spec = spec
        self.earlier = earlier

    def devices(self) -> list[BlockDevice]:
        """The wanted cache devices.

        :raises DeviceMissing: if one is not there.
        :raises BadInput: if a path is not stable, or two of them are one device.
        """
        spec = self.spec
        devices = [resolve_stable(self.state.devices, path, spec.name) for path in spec.cache_devices]
        if len({device.name for device in devices}) < len(devices):
            raise BadInput(f"{spec.name}: {' and '.join(spec.cache_devices)} are one device, which mirrors nothing.", item=spec.name)
        return devices

    def names(self) -> tuple[set[str], int]:
        """The kernel names of those that are there, and how many are not."""
        names = set()
        for path in self.spec.cache_devices:
            with contextlib.suppress(DeviceMissing):
                names.add(resolve_stable(self.state.devices, path, self.spec.name).name)
        return names, len(self.spec.cache_devices) - len(names)

    def redundancy(self) -> str:
        """What will protect a cache that is made there."""
        devices = self.devices()
        below = self.state.redundancy({device.name for device in devices})
        return MIRRORED if self.spec.mirror and below != DEGRADED else below

    # -- into the volume group

    def own(self, origin: LogicalVolume) -> list[Step]:
        """The steps that make the cache devices part of the volume group."""
        steps = []
        for device, path in zip(self.devices(), self.spec.cache_devices):
            steps += self._own(origin, device, path)
        return steps

    def _own(self, origin: LogicalVolume, device: BlockDevice, path: str) -> list[Step]:
        spec = self.spec
        if any(device.name in self.state.devices_under(part) for part in self.origin_parts(origin)):
            raise self._bad(f"is already on {path}: a cache on the same device as its origin has no benefit; name another device")
        physical = self.state.physical_of(device)
        if physical is not None and physical.vg == spec.vg:
            if not physical.allocatable:
                raise Refused(
                    f"{spec.name}: {spec.origin} cannot get a cache on {path}: that physical volume is closed for allocation; open it with pvchange -x y.",
                    item=spec.name,
                )
            return []
        if physical is not None and physical.vg is not None:
            raise BadInput(f"{spec.name}: {path} belongs to volume group {physical.vg}, and a cache must be in {spec.vg} like its origin.", item=spec.name)
        taken = self.earlier.groups.get(device.name)
        if taken == spec.vg:
            return []
        if taken is not None:
            raise BadInput(
                f"{spec.name}: {path} cannot be added to volume group {spec.vg}, because a cache before it in the list adds it to {taken}:"
                " a device belongs to one volume group, so name another device.",
                item=spec.name,
            )
        self.earlier.groups[device.name] = spec.vg
        steps = []
        if physical is None:
            require_whole_unit(self.state.devices, device, path, spec.name)
            require_empty(device, self.state.findings.get(device.name, DeviceUse()), path, spec.name)
            steps.append(self._step("physical_volume", None, path, f"Create a physical volume of LVM on {path}", CreatePhysicalVolume(path)))
        steps.append(self._step("volume_group", None, spec.vg, f"Add {path} to volume group {spec.vg}", ExtendVolumeGroup(spec.vg, path)))
        return steps

    def origin_parts(self, origin: LogicalVolume) -> list[LogicalVolume]:
        """The origin, or of a cached volume what is under the cache."""
        if not origin.cached:
            return [origin]
        inner = (self.state.volume(origin.vg, name) for name in origin.devices)
        return [volume for volume in inner if volume is not None]

    # -- room

    def lay_out(self) -> lvm_layout.Layout:
        """The layout of the new cache volume; what it takes is no longer free for the caches after it.

        :raises BadInput: if it does not fit.
        """
        spec = self.spec
        devices = self.devices()
        rooms = [self._room(device) for device in devices]
        low = min(rooms, key=lambda room: room.free)
        layout = lvm_layout.lay_out(spec.kind, low, size=spec.size, share=spec.share, chunk_size=spec.chunk_size, item=spec.name, mirror=spec.mirror)
        for device, room in zip(devices, rooms):
            self.earlier.rooms[device.name] = lvm_layout.Room(room.free - layout.footprint, room.extent_size, max(room.spare, layout.metadata))
        return layout

    def forget(self, pool: LogicalVolume) -> None:
        """What a fast volume takes becomes free for what comes after it in the plan."""
        size = self.state.extent_size(self.spec.vg)
        for part in self.state.parts(pool):
            self.earlier.removed.add(part.full_name)
            paths = [path for path in part.devices if path in self.state.pv_devices]
            # Of a part on several devices the report does not show how much lies on which: then nothing is counted on.
            if len(paths) != 1 or len(part.devices) != 1:
                continue
            device = self.state.devices.get(self.state.pv_devices[paths[0]])
            if device is not None:
                room = self._room(device)
                self.earlier.rooms[device.name] = lvm_layout.Room(room.free + part.size // size, room.extent_size, room.spare)

    def _room(self, device: BlockDevice) -> lvm_layout.Room:
        room = self.earlier.rooms.get(device.name)
        if room is not None:
            return room
        physical = self.state.physical_of(device)
        size = self.state.extent_size(self.spec.vg)
        in_group = physical is not None and physical.vg is not None
        free = t.cast("PhysicalVolume", physical).free // size if in_group else lvm_layout.extents_of_new_device(device.size, size)
        return lvm_layout.Room(free, size, self.state.spare(self.spec.vg))

    # -- out of the volume group

    def release(self) -> list[Step]:
        """The steps that give the cache devices back, of those that hold nothing else.

        Called after :meth:`forget` of everything that the item takes away.
        """
        if not self.spec.release_devices:
            return []
        steps = []
        for path in self.spec.cache_devices:
            with contextlib.suppress(DeviceMissing):
                device = resolve_stable(self.state.devices, path, self.spec.name)
                physical = self.state.physical_of(device)
                if physical is None or physical.vg not in (None, self.spec.vg) or self.still_used(device) or device.name in self.earlier.released:
                    continue
                self.earlier.released.add(device.name)
                group = f"Remove {path} from volume group {physical.vg}, and the" if physical.vg else "Remove the"
                before = physical.vg or "no volume group"
                steps.append(self._step(f"devices.{path}", before, None, f"{group} physical volume label of {path}", ReleaseDevice(self.spec.vg, path)))
        return steps

    def still_used(self, device: BlockDevice) -> list[str]:
        """What else lies on a device, by full name; the spare for pool metadata goes with the last pool."""
        return self.needed(self.state.leaves_on(device, self.spec.vg))

    def needed(self, volumes: t.Iterable[LogicalVolume]) -> list[str]:
        """Of volumes of the group those that no step takes away, by full name."""
        vg = self.spec.vg
        pools = [volume for volume in self.state.volumes if volume.vg == vg and volume.segtype in ("cache-pool", "thin-pool")]
        gone = set(self.earlier.removed)
        if all(pool.full_name in gone for pool in pools):
            gone |= {spare.full_name for spare in self.state.spares(vg)}
        return [volume.full_name for volume in volumes if volume.full_name not in gone]

    def _step(self, attribute: str, before: t.Any, after: t.Any, action: str, operation: Operation) -> Step:
        return Step(LAYER, self.spec.name, attribute, before, after, action, operation)

    def _bad(self, reason: str) -> BadInput:
        return BadInput(f"{self.spec.name}: {self.spec.origin} {reason}.", item=self.spec.name)
