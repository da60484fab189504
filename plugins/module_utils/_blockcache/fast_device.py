# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a cache will lie on: one device, or a mirror of two that is made for it. For every type but LVM's, which mirrors itself."""

from __future__ import annotations

import contextlib
import time
import typing as t
from dataclasses import replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import (
    DEGRADED,
    MIRRORED,
    UNMIRRORED,
    DeviceUse,
    examine,
    require_empty,
    require_whole_unit,
    resolve_stable,
    uses_of,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import CacheSpec
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices


@frozen
class HostDevices:
    """The devices of a host as far as caches are concerned.

    :param findings: what candidates contain, by kernel name; only devices that no cache uses yet were examined.
    :param arrays: MD arrays by kernel name.
    :param machine: what identifies this host.
    """

    devices: Devices
    findings: t.Mapping[str, DeviceUse] = field(default_factory=dict)
    arrays: t.Mapping[str, mirror.Array] = field(default_factory=dict)
    machine: str = ""

    def without(self, leaving: Expected) -> HostDevices:
        """The same once caches are removed."""
        arrays = {name: array for name, array in self.arrays.items() if name not in leaving.gone}
        freed = {name: DeviceUse(examined=True) for name in leaving.emptied}
        return replace(self, devices=leaving.without(self.devices), findings={**self.findings, **freed}, arrays=arrays)

    def redundancy(self, names: t.Iterable[str]) -> str:
        """What protects a cache on these devices, by kernel name."""
        arrays = [self.arrays.get(name) for name in names]
        if not arrays or any(array is None or array.redundant is None for array in arrays):
            return UNMIRRORED
        return MIRRORED if all(array is not None and array.redundant for array in arrays) else DEGRADED


@frozen
class FastDevice:
    """What a cache will lie on.

    :param path: what goes into tables, superblocks and units.
    :param device: the device, None while its mirror has not been made.
    :param size: bytes; of a mirror that has not been made, what it will have at least.
    :param steps: what makes the mirror.
    """

    path: str
    device: BlockDevice | None
    size: int
    redundancy: str
    steps: tuple[Step, ...] = ()


def read_host_devices(
    runner: Runner,
    devices: Devices,
    candidates: t.Iterable[str],
    *,
    in_use: t.Container[str] = (),
    root: Path = Path("/"),
    sleep: t.Callable[[float], None] = time.sleep,
    expected: Expected = AS_IT_IS,
) -> HostDevices:
    """What :func:`choose` needs; costs one ``wipefs`` for each candidate that no cache lies on.

    :param candidates: paths of the wanted cache devices.
    :param in_use: kernel names of devices that caches lie on.
    """
    arrays = mirror.read_arrays(devices, root)
    names = {}
    for path in candidates:
        try:
            names[devices.resolve(path).name] = path
        except DeviceMissing:
            continue
    # An array of two candidates is what the cache lies on, or would.
    above = {array.name: array.path for array in arrays.values() if array.members and set(array.members) <= set(names)}
    members = {member for name in above for member in arrays[name].members}
    # A mirror that a cache has left, in a run that was killed.
    above.update({array.name: array.path for array in arrays.values() if array.ours})
    examined = {**{name: path for name, path in names.items() if name not in members}, **{name: node_of(name) for name in above}}
    around = Neighbourhood(devices, runner, root)
    freed = expected.emptied
    findings = {name: examine(runner, path, root, sleep, around=around) for name, path in examined.items() if name not in in_use and name not in freed}
    findings.update({name: DeviceUse(examined=True) for name in examined if name in freed})
    return HostDevices(devices, findings, arrays, mirror.machine_id(root))


def choose(ground: HostDevices, spec: CacheSpec, layer: str, *, taken: t.Container[str] = (), check_empty: bool = True) -> FastDevice:
    """What the cache of an item will lie on, with the steps that make it.

    :param layer: the name of the layer, for its steps.
    :param taken: kernel names that caches before it in the list have taken.
    :param check_empty: whether it must be empty; not if the cache lies there already.
    :raises DeviceMissing: if a device is not there.
    :raises BadInput: if a path is not stable, or two are one device, or a cache before it takes the same.
    :raises Refused: if it is not empty, or a half of another mirror.
    """
    degraded = _degraded_mirror(ground, spec)
    if degraded is not None and check_empty and _never_used(ground, degraded):
        return _made_again(ground, spec, layer, degraded)
    if degraded is not None:
        return FastDevice(degraded.path, ground.devices.get(degraded.name), degraded.size, DEGRADED)
    members = [resolve_stable(ground.devices, path, spec.name) for path in spec.cache_devices]
    for member, path in zip(members, spec.cache_devices):
        if member.name in taken:
            raise BadInput(f"{spec.name}: {path} is used by a cache before it in the list: name another device.", item=spec.name)
        if check_empty:
            require_whole_unit(ground.devices, member, path, spec.name)
    _require_no_half(ground, spec, members)
    if not spec.mirror:
        member = members[0]
        if check_empty:
            require_empty(member, ground.findings.get(member.name, DeviceUse()), spec.cache_devices[0], spec.name)
        return FastDevice(spec.cache_devices[0], member, member.size, ground.redundancy([member.name]))
    if members[0].name == members[1].name:
        raise BadInput(f"{spec.name}: {' and '.join(spec.cache_devices)} are one device, which mirrors nothing.", item=spec.name)
    array = mirror.array_of(ground.arrays, members)
    if array is not None:
        device = ground.devices.get(array.name)
        if check_empty and device is not None:
            require_empty(device, ground.findings.get(array.name, DeviceUse()), array.path, spec.name)
        return FastDevice(array.path, device, array.size, ground.redundancy([array.name]))
    return _new_mirror(ground, spec, layer, members)


def _degraded_mirror(ground: HostDevices, spec: CacheSpec) -> mirror.Array | None:
    """The mirror of an item that has lost a member, which may be gone from the host altogether; its cache goes on."""
    if not spec.mirror:
        return None
    names = set()
    for path in spec.cache_devices:
        with contextlib.suppress(DeviceMissing):
            names.add(ground.devices.resolve(path, spec.name).name)
    return next((array for array in ground.arrays.values() if array.ours and array.redundant is False and array.members and set(array.members) <= names), None)


def _require_no_half(ground: HostDevices, spec: CacheSpec, members: t.Sequence[BlockDevice]) -> None:
    """A drive cannot move from one mirror to another while the first is there, and what it carries is no reason to wipe it."""
    names = {member.name for member in members}
    for array in ground.arrays.values():
        halves = [path for member, path in zip(members, spec.cache_devices) if member.name in array.members]
        if halves and array.ours and set(array.members) != names:
            raise Refused(
                f"{spec.name}: {' and '.join(halves)} is a half of the mirror {array.label.split(':')[-1]}, which a cache of this host is on: change"
                " the drives of a mirrored cache with the playbook cachefleet.storage.replace_cache_device, or name devices that are free.",
                item=spec.name,
            )


def _never_used(ground: HostDevices, array: mirror.Array) -> bool:
    """Whether nothing is on a mirror, as when its making was killed half way and the host then started what there was of it."""
    device, finding = ground.devices.get(array.name), ground.findings.get(array.name)
    return device is not None and not uses_of(device) and finding is not None and not finding.reasons


def _made_again(ground: HostDevices, spec: CacheSpec, layer: str, array: mirror.Array) -> FastDevice:
    members = [resolve_stable(ground.devices, path, spec.name) for path in spec.cache_devices]
    for member, path in zip(members, spec.cache_devices):
        if member.name not in array.members:
            require_empty(member, ground.findings.get(member.name, DeviceUse()), path, spec.name)
    freed = [path for member, path in zip(members, spec.cache_devices) if member.name in array.members]
    action = f"Stop the mirror {array.label.split(':')[-1]}, which is incomplete and was never used, and wipe {' and '.join(freed)}"
    stop = Step(layer, spec.name, "mirror", freed, None, action, mirror.ReleaseMirror(array.name, tuple(freed)))
    uuid = mirror.array_uuid(spec.name, members, ground.machine)
    return FastDevice(mirror.array_path(uuid), None, mirror.smallest_size(members), MIRRORED, (stop, _mirror_step(spec, layer, uuid, mirror.CreateMirror)))


def _mirror_step(spec: CacheSpec, layer: str, uuid: str, operation: type[mirror.CreateMirror] | type[mirror.StartMirror]) -> Step:
    # mdadm keeps 32 bytes of a name, and the whole file of names of a host is one list.
    label = (mirror.PREFIX + spec.name)[:31]
    paths = " and ".join(spec.cache_devices)
    action = f"Start the mirror {label} of {paths}" if operation is mirror.StartMirror else f"Create the mirror {label} (MD RAID1) of {paths}"
    return Step(layer, spec.name, "mirror", None, list(spec.cache_devices), action, operation(tuple(spec.cache_devices), uuid, label))


def _new_mirror(ground: HostDevices, spec: CacheSpec, layer: str, members: list[BlockDevice]) -> FastDevice:
    uuid = mirror.array_uuid(spec.name, members, ground.machine)
    # A mirror of ours that was made and stopped: its members carry its UUID and nothing else.
    made = [path for path, member in zip(spec.cache_devices, members) if _carries(member, uuid)]
    begun: tuple[Step, ...] = ()
    if len(made) < len(members):
        for member, path in zip(members, spec.cache_devices):
            if path not in made:
                require_empty(member, ground.findings.get(member.name, DeviceUse()), path, spec.name)
        if made:
            # mdadm was killed between the two.
            action = f"Discard the incomplete mirror and wipe {' and '.join(made)}"
            begun = (Step(layer, spec.name, "mirror", made, None, action, mirror.ReleaseMirror("", tuple(made))),)
    step = _mirror_step(spec, layer, uuid, mirror.CreateMirror if len(made) < len(members) else mirror.StartMirror)
    return FastDevice(mirror.array_path(uuid), None, mirror.smallest_size(members), MIRRORED, (*begun, step))


def _carries(member: BlockDevice, uuid: str) -> bool:
    """Whether a device is a member of the array of that UUID, and nothing uses it."""
    return member.signature is not None and member.signature.uuid == _as_blkid(uuid) and not member.holders


def _as_blkid(uuid: str) -> str:
    """A UUID of mdadm as blkid writes it."""
    digits = uuid.replace(":", "")
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def retire(ground: HostDevices, spec: CacheSpec, layer: str, leaving: t.Container[str] = ()) -> list[Step]:
    """The steps that take apart what an item's cache has left: mirrors of its name of other drives, that nothing is on.

    :param leaving: kernel names of devices that the cache is on now, and is taken away from by the steps before.
    """
    names = set()
    for path in spec.cache_devices:
        with contextlib.suppress(DeviceMissing):
            names.add(ground.devices.resolve(path, spec.name).name)
    label = (mirror.PREFIX + spec.name)[:31]
    steps = []
    for array in ground.arrays.values():
        left = array.ours and array.label.split(":")[-1] == label and array.members and not set(array.members) <= names
        if left and (array.name in leaving or _never_used(ground, array)):
            members = [device for device in ground.devices if device.name in array.members]
            paths = [device.stable_path or device.path for device in members]
            action = f"Stop the mirror {label}, which the cache has left, and wipe {' and '.join(paths)}"
            steps.append(Step(layer, spec.name, "mirror", paths, None, action, mirror.ReleaseMirror(array.name, tuple(paths))))
    return steps


def release(ground: HostDevices, spec: CacheSpec, layer: str) -> list[Step]:
    """The steps that give the members of the mirror of an item back, once its cache is gone; none if there is no mirror of ours."""
    if not spec.mirror:
        return []
    members: dict[str, BlockDevice] = {}
    for path in spec.cache_devices:
        with contextlib.suppress(DeviceMissing):
            members[path] = ground.devices.resolve(path, spec.name)
    names = {member.name for member in members.values()}
    array = next((found for found in ground.arrays.values() if found.ours and found.members and set(found.members) <= names), None)
    # Without an array: what a run that was killed after it had stopped one left behind.
    uuid = _as_blkid(array.uuid if array is not None else mirror.array_uuid(spec.name, members.values(), ground.machine))
    paths = [
        path
        for path, member in members.items()
        if (array is not None and member.name in array.members) or (member.signature is not None and member.signature.uuid == uuid and not member.holders)
    ]
    if not paths:
        return []
    label = (mirror.PREFIX + spec.name)[:31]
    action = f"{'Stop' if array is not None else 'Discard'} the mirror {label} and wipe {' and '.join(paths)}"
    operation = mirror.ReleaseMirror(array.name if array is not None else "", tuple(paths))
    return [Step(layer, spec.name, "mirror", paths, None, action, operation)]
