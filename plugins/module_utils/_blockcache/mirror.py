# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A mirror under a cache: an MD RAID1 array for types of cache that keep no second copy themselves.

Sources: md(4), mdadm(8), Documentation/admin-guide/md.rst. An array is named by its UUID, which is computed from the cache
and its members: a drive that was taken out and comes back with an old copy never passes for a member of the array that
was made after it, and the path of the array is known before it is made.
"""

from __future__ import annotations

import contextlib
import os
import typing as t
import uuid
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import PREFIX, examine, md_redundancy, still_empty
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.expected import AS_IT_IS, Expected
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Layer, Operation, Step
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotEffective, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

    AnyCacheLayer = Layer[t.Any, t.Any]

State = t.TypeVar("State")
Spec = t.TypeVar("Spec")

_NAMESPACE = uuid.UUID("6f6c3e0e-7f3c-4f0b-9d0a-2b7a1c5d9e43")
#: How long udev may take to name a new array, in seconds.
_PATIENCE = 30.0
#: How long an array may be in the making, and how often it is polled, in seconds.
_BIRTH = 8.0
_LOOK = 0.5


@frozen
class CreateMirror(Operation):
    """Make the mirror of a cache.

    :param members: the paths of its two devices.
    :param uuid: as :func:`array_uuid` writes it.
    :param label: ``MD_NAME`` of the array.
    """

    needs_commands = ("mdadm", "udevadm")
    needs_modules = ("raid1",)
    members: tuple[str, ...]
    uuid: str
    label: str

    def carry_out(self, layer: AnyCacheLayer, step: Step) -> None:
        if os.path.exists(layer.root / array_path(self.uuid).lstrip("/")):
            return
        # Every block of a cache is written before it is read, so the two need not be made equal first (mdadm(8), --assume-clean).
        command = ["mdadm", "--create", _node(self.uuid), "--run", "--level=1", "--raid-devices=2", "--metadata=1.2", "--assume-clean"]
        command += ["--bitmap=internal", "--homehost=any", f"--name={self.label}", f"--uuid={self.uuid}", *self.members]
        with contextlib.ExitStack() as held:
            for path in self.members:
                held.enter_context(still_empty(layer.runner, path, step.item, layer.root, layer.sleep))
            layer.runner.run(command, item=step.item)
        _await_path(layer, step, array_path(self.uuid))


@frozen
class StartMirror(Operation):
    """Start a mirror that was made and does not run, as after a kill between two steps. Fields as of :class:`CreateMirror`."""

    needs_commands = ("mdadm", "udevadm")
    needs_modules = ("raid1",)
    members: tuple[str, ...]
    uuid: str
    label: str

    def carry_out(self, layer: AnyCacheLayer, step: Step) -> None:
        layer.runner.run(["mdadm", "--assemble", _node(self.uuid), f"--uuid={self.uuid}", *self.members], item=step.item)
        _await_path(layer, step, array_path(self.uuid))


@frozen
class ReleaseMirror(Operation):
    """Stop a mirror that nothing uses and make its members empty.

    :param array: its kernel name; empty if it does not run.
    :param members: the paths of its devices.
    """

    needs_commands = ("mdadm", "udevadm")
    array: str
    members: tuple[str, ...]

    def carry_out(self, layer: AnyCacheLayer, step: Step) -> None:
        if self.array:
            _require_nothing_on(layer, step, f"/dev/{self.array}")
            completed = layer.runner.run(["mdadm", "--stop", f"/dev/{self.array}"], ok=None, item=step.item)
            if completed.rc and (layer.root / "sys/class/block" / self.array / "md").exists():
                raise completed.failure(step.item, f"{step.item}: ")
        there = [path for path in self.members if (layer.root / path.lstrip("/")).exists()]
        with releasing(there, layer.root):
            for path in there:
                # 2 of mdadm: no superblock is there, which is what is wanted.
                layer.runner.run(["mdadm", "--zero-superblock", path], ok=(0, 2), item=step.item)
        udev.refresh(layer.runner, there, step.item)


@frozen
class Array:
    """One MD array that runs. ``members`` are kernel names; ``redundant`` as returned by :func:`md_redundancy`; ``size`` in bytes."""

    name: str
    uuid: str
    label: str
    members: tuple[str, ...]
    redundant: bool | None
    size: int

    @property
    def ours(self) -> bool:
        """Whether this collection made it."""
        return self.label.split(":")[-1].startswith(PREFIX)

    @property
    def path(self) -> str:
        """The path that names it also after a reboot."""
        return array_path(self.uuid)


def read_arrays(devices: Devices, root: Path = Path("/")) -> dict[str, Array]:
    """Every MD array of the host by kernel name, from sysfs and udev alone."""
    return {
        device.name: Array(
            name=device.name,
            uuid=device.properties.get("MD_UUID", ""),
            label=device.properties.get("MD_NAME", ""),
            members=tuple(device.slaves),
            redundant=md_redundancy(root, device.name),
            size=device.size,
        )
        for device in devices
        if device.kind == "md"
    }


def array_uuid(item: str, members: t.Iterable[BlockDevice], machine: str = "") -> str:
    """The UUID of the mirror of a cache, as mdadm writes it: four groups of eight digits.

    :param machine: what identifies this host, for example its machine-id.
    """
    seed = "\n".join([machine, item, *sorted(_told_apart(member) for member in members)])
    digits = uuid.uuid5(_NAMESPACE, seed).hex
    return ":".join(digits[place : place + 8] for place in range(0, 32, 8))


def _told_apart(member: BlockDevice) -> str:
    # Where partitions have no UUID, their identity is the serial number of the disk, which all of them share.
    own = member.identity if member.kind != "partition" or member.properties.get("ID_PART_ENTRY_UUID") else member.stable_path
    return own or member.path


def array_path(array: str) -> str:
    """Where udev shows an array of that UUID (63-md-raid-arrays.rules)."""
    return f"/dev/disk/by-id/md-uuid-{array}"


def _node(array: str) -> str:
    """The device node that mdadm creates: another one for each array, since that of the cache's former mirror may still be there."""
    return f"/dev/md/{PREFIX}{array[:8]}"


def array_of(arrays: t.Mapping[str, Array], members: t.Iterable[BlockDevice]) -> Array | None:
    """The array that is made of exactly these devices, regardless of its creator."""
    names = {member.name for member in members}
    return next((array for array in arrays.values() if set(array.members) == names), None)


def smallest_size(members: t.Iterable[BlockDevice]) -> int:
    """Bytes that a mirror of these devices has at least: MD keeps up to 128 MiB of a large member for itself, and less of a small one."""
    smallest = min(member.size for member in members)
    return max(smallest - min(129 * MIB, smallest // 16 + 2 * MIB), 0)


class CacheLayer(Layer[State, Spec]):
    """A layer of caches that may lie on a mirror."""

    def settled_devices(self, expected: Expected = AS_IT_IS) -> Devices:
        """Every block device, once no array is in the making: a run that was killed may have left mdadm at work, and udev a moment behind it.

        An array that stays without a size or a name, as one that lacks members, is waited for in vain, for a few seconds.
        """
        waited = 0.0
        while True:
            devices = read_devices(self.runner, self.root)
            begun = [device for device in devices if device.kind == "md" and device.slaves and not (device.size and device.properties.get("MD_UUID"))]
            if not begun or waited >= _BIRTH:
                return expected.without(devices)
            self.sleep(_LOOK)
            waited += _LOOK


def _require_nothing_on(layer: AnyCacheLayer, step: Step, path: str) -> None:
    """The cache of this item has gone by now: what is there belongs to another user, and may not even run."""
    reasons = examine(layer.runner, path, layer.root, layer.sleep).reasons
    if reasons and (layer.root / path.lstrip("/")).exists():
        raise Refused(f"{step.item}: the mirror {path} {' and '.join(reasons)}, so it is not stopped: find out who uses it.", item=step.item)


def _await_path(layer: AnyCacheLayer, step: Step, path: str) -> None:
    layer.runner.run(["udevadm", "settle"], ok=None, item=step.item)
    waited = 0.0
    while not (layer.root / path.lstrip("/")).exists():
        if waited >= _PATIENCE:
            raise NotEffective(f"{step.item}: the array was made and udev does not show it as {path}: check udevadm and /proc/mdstat.", item=step.item)
        layer.sleep(0.5)
        waited += 0.5


def machine_id(root: Path = Path("/")) -> str:
    """What identifies this host (machine-id(5)); empty where there is none."""
    try:
        return (root / "etc/machine-id").read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
