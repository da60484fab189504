# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""A target and everything around it, as they are found on the host: nothing is changed, nothing is created.

fio's own check compares one string with the names in the mount table; a symbolic link, a partition of a mounted disk, a
physical volume or a raw swap device pass it. Nothing here relies on it. What the facts mean is for ``guard.py`` to say.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_exports import running_exports
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.signatures import read_cache_metadata, read_signatures
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target_facts import Neighbour, Target, TargetFacts

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

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

#: Where a plain file is never a target: the kernel's own trees.
_KERNEL_TREES = ("/dev", "/proc", "/sys")

#: An exclusive open and the list of writers are looked at this often: udev and scanners hold a device for a moment.
_ATTEMPTS = 3
_PAUSE = 0.3

#: What the kernel appends to the path of a node that is gone.
_DELETED = " (deleted)"


def examine(
    devices: Devices,
    target: Target,
    runner: Runner,
    root: Path = Path("/"),
    *,
    writing: bool = True,
    created: t.Container[str] = (),
    pause: t.Callable[[float], None] = time.sleep,
) -> TargetFacts:
    """Look at a target and everything around it; changes nothing, creates nothing.

    :param writing: whether the job writes: a job that only reads needs no proof that the device is empty.
    :param created: files that the collection has made, and nobody has changed (:class:`made_files.MadeFiles`).
    :raises DeviceMissing: if the target is not there or is not what its kind says.
    """
    if target.kind == "file":
        return _examine_file(target, root, created)
    return _Examination(devices, target, runner, root, pause).facts(writing)


class _Examination:
    """One look at one block device and its neighbourhood."""

    def __init__(self, devices: Devices, target: Target, runner: Runner, root: Path, pause: t.Callable[[float], None]) -> None:
        self.devices = devices
        self.target = target
        self.runner = runner
        self.root = root
        self.pause = pause
        self.device = devices.resolve(target.path)
        self.mounts_elsewhere = _mount_numbers(root / "proc/1/mountinfo")
        # Kernel names of loop devices, and of what each lies on: it leaves no holder there, and no exclusive open would tell.
        self.loops = {one.name: self._device_at(_backing_text(root, one.name)) for one in devices if one.kind == "loop"}
        self.exports = [(self._device_at(path), exporter) for path, exporter in (*kernel_exports(root), *aoe_exports(root))]

    def facts(self, writing: bool) -> TargetFacts:
        device = self.device
        matches = None if self.target.identity is None else self._matches(device)
        return TargetFacts(
            target=self.target,
            path=device.path,
            size=device.size,
            read_only=device.read_only,
            identity=self._identity(),
            identity_matches=matches,
            twins=self._twins() if matches else (),
            neighbours=self._neighbours() if writing else (),
            writers=self._writers() if writing else (),
            unreadable=self._open(device.path, os.O_RDONLY, accept=(errno.EBUSY,)),
            device=device,
        )

    def _whole(self, device: BlockDevice) -> BlockDevice:
        return (self.devices.get(device.parent) if device.parent else None) or device

    def _matches(self, device: BlockDevice) -> bool:
        """A partition may be named by the identity of its disk (udev gives it the same serial), a loop device by its file."""
        text = self.target.identity or ""
        whole = self._whole(device)
        return any(self.devices.matches_identity(one, text) for one in (device, whole)) or (text != "" and self._backing_file(whole.name) == text)

    def _identity(self) -> str | None:
        whole = self._whole(self.device)
        return self.device.identity or whole.identity or self._backing_file(whole.name)

    def _twins(self) -> tuple[str, ...]:
        """Devices outside the target's own stack that carry its identity too."""
        own = {self.device.name, self._whole(self.device).name}
        own |= {one.name for one in self.devices.parents(self.device)} | {one.name for one in self.devices.children(self._whole(self.device))}
        return tuple(sorted(one.path for one in self.devices if one.name not in own and self._matches(one)))

    def _neighbours(self) -> tuple[Neighbour, ...]:
        device = self.device
        found = [self._look("itself", device, self._signatures(device))]
        for child in self._above(device):
            relation = "partition of it" if child.kind == "partition" else "built on it"
            # What is built on it is in use whatever it contains; a suspended mapping would block its reader.
            partition = child.kind == "partition"
            found.append(self._look(relation, child, self._signatures(child) if partition else (), exclusive=partition))
        seen = {device.name}
        # Breadth first with the device above: what is normal on a device depends on what is built on it.
        queue = [(below, device) for below in self._below(device)]
        while queue:
            below, above = queue.pop(0)
            if below.name in seen:
                continue
            seen.add(below.name)
            found.append(self._look("below it", below, self._strange_signatures(below, above), exclusive=False))
            queue += [(further, below) for further in self._below(below)]
        found += [self._look("the same storage", twin, (), exclusive=False) for twin in self._same_storage()]
        return tuple(found)

    def _below(self, device: BlockDevice) -> list[BlockDevice]:
        names = [device.parent] if device.parent else [*device.slaves, self.loops.get(device.name) or ""]
        return [one for one in map(self.devices.get, names) if one is not None]

    def _above(self, device: BlockDevice) -> list[BlockDevice]:
        """Everything built on a device, nearest first: partitions, holders, loop devices over it, and theirs."""
        found: dict[str, BlockDevice] = {}
        queue = [device]
        while queue:
            one = queue.pop(0)
            for name in (*one.partitions, *one.holders, *self._loops_over(one)):
                above = self.devices.get(name)
                if above is not None and name not in found and name != device.name:
                    found[name] = above
                    queue.append(above)
        return list(found.values())

    def _loops_over(self, device: BlockDevice) -> list[str]:
        return [loop for loop, below in self.loops.items() if below == device.name]

    def _own_loops(self) -> set[str]:
        """Loop devices that are the target or lie below it."""
        found: set[str] = set()
        queue = [self.device]
        while queue:
            one = queue.pop(0)
            if one.name not in found:
                found.add(one.name)
                queue += self._below(one)
        return found & set(self.loops)

    def _device_at(self, path: str | None) -> str | None:
        """The kernel name of the block device behind a path that the kernel gives; ``None`` if there is none."""
        # The kernel adds this when the node was made anew by udev; the device may be there all the same.
        for text in (path, path[: -len(_DELETED)] if path and path.endswith(_DELETED) else None):
            if text and text.startswith("/"):
                with contextlib.suppress(DeviceMissing):
                    return self.devices.resolve(text).name
        return None

    def _backing_file(self, name: str) -> str | None:
        text = _backing_text(self.root, name)
        return None if text is None else os.path.realpath(text)

    def _same_storage(self) -> list[BlockDevice]:
        """Other block devices with the very same bytes: paths with one WWN, loop devices on one file; with their children."""
        disks = [one for one in (self.device, *self.devices.parents(self.device)) if one.kind in ("disk", "loop")]
        known = {one.name for disk in disks for one in (disk, *self._above(disk))} | {self.device.name}
        found: dict[str, BlockDevice] = {}
        for disk in disks:
            file = self._backing_file(disk.name)
            for other in self.devices:
                same_unit = disk.kind == other.kind == "disk" and disk.wwn is not None and disk.wwn == other.wwn
                if other.name not in known and (same_unit or (file is not None and self._backing_file(other.name) == file)):
                    found.update({one.name: one for one in (other, *self._above(other)) if one.name not in known})
        return list(found.values())

    def _look(self, relation: str, device: BlockDevice, signatures: tuple[str, ...], *, exclusive: bool = True) -> Neighbour:
        points = device.mountpoints or (("another mount namespace",) if device.number in self.mounts_elsewhere else ())
        # Below the target the holders are the target's own stack.
        holders = device.holders if relation in ("itself", "partition of it", "the same storage") else ()
        own = self._own_loops()
        strangers = tuple(node_of(name) for name in (*holders, *(loop for loop in self._loops_over(device) if loop not in own)))
        exports = tuple(exporter for name, exporter in self.exports if name == device.name)
        busy = self._open(device.path, os.O_RDONLY | os.O_EXCL) if exclusive else None
        return Neighbour(relation, device.path, points, device.swap, strangers, exports, busy, signatures)

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

    def _writers(self) -> tuple[str, ...]:
        numbers = {one.number for one in (self.device, self._whole(self.device), *self.devices.children(self.device))}
        found: tuple[str, ...] = ()
        for attempt in range(_ATTEMPTS):
            if attempt:
                self.pause(_PAUSE)
            found = writers_of(self.root, lambda status: stat.S_ISBLK(status.st_mode) and _number(status.st_rdev) in numbers)
            if not found:
                break
        return found


def kernel_exports(root: Path) -> list[tuple[str, str]]:
    """What the kernel gives to other hosts: the path as it was configured, and by what it is exported.

    Such a target opens its device without O_EXCL, has no holder link and no process with a file descriptor.
    Sources: drivers/nvme/target/configfs.c (``device_path``, and ``enable`` of a namespace) and
    drivers/target/target_core_configfs.c (``udev_path`` of a backstore of LIO).
    """
    config = root / "sys/kernel/config"
    found = []
    for namespace in sorted((config / "nvmet/subsystems").glob("*/namespaces/*")):
        path = _line(namespace / "device_path")
        if path and _line(namespace / "enable") == "1":
            found.append((path, f"nvmet subsystem {namespace.parent.parent.name}"))
    for backstore in sorted((config / "target/core").glob("*/*")):
        path = _line(backstore / "udev_path")
        if path:
            found.append((path, f"LIO backstore {backstore.parent.name}/{backstore.name}"))
    return found


def aoe_exports(root: Path) -> list[tuple[str, str]]:
    """The same of AoE targets. One that is read-only has no descriptor open for writing, and its initiators read all the same."""
    return [(export.path, f"vblade {export.address} on {export.interface}") for export in running_exports(root)]


def _line(path: Path) -> str:
    """The only line of a file of the kernel; empty if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip("\n\0 ")
    except OSError:
        return ""


def _backing_text(root: Path, loop: str) -> str | None:
    try:
        return (root / "sys/class/block" / loop / "loop/backing_file").read_text(errors="surrogateescape").rstrip("\n")
    except OSError:
        return None


def writers_of(root: Path, wanted: t.Callable[[os.stat_result], bool]) -> tuple[str, ...]:
    """Processes that have a matching file open for writing, as ``name (pid)``.

    A virtual machine or a user-space iSCSI target opens its disk without O_EXCL; only its file descriptor shows it.
    Source: proc(5), ``/proc/pid/fdinfo``: ``flags`` is octal, the lowest two bits are the access mode.
    """
    found = []
    for process in sorted((root / "proc").glob("[0-9]*")):
        if process.name == str(os.getpid()):
            continue
        with contextlib.suppress(OSError):
            for descriptor in (process / "fd").iterdir():
                with contextlib.suppress(OSError, ValueError):
                    if wanted(os.stat(descriptor)) and _access_mode(process / "fdinfo" / descriptor.name) != os.O_RDONLY:
                        found.append(f"{(process / 'comm').read_text().strip()} ({process.name})")
                        break
    return tuple(found)


def _access_mode(fdinfo: Path) -> int:
    match = re.search(r"^flags:\s*(\d+)", fdinfo.read_text(), re.MULTILINE)
    return int(match.group(1), 8) & os.O_ACCMODE if match else os.O_RDWR


def _mount_numbers(mountinfo: Path) -> set[str]:
    """``major:minor`` of everything mounted in the namespace of the first process; empty if it may not be read."""
    try:
        return {line.split()[2] for line in mountinfo.read_text().splitlines() if len(line.split()) > 2}
    except OSError:
        return set()


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"


def _examine_file(target: Target, root: Path, created: t.Container[str]) -> TargetFacts:
    asked = root / target.path.lstrip("/")
    if not target.path.startswith("/"):
        raise DeviceMissing(f"The file {target.path} must be an absolute path.", item=target.path)
    real = Path(os.path.realpath(asked))
    inside = "/" + str(real.relative_to(os.path.realpath(root)))
    if any(inside == tree or inside.startswith(tree + "/") for tree in _KERNEL_TREES):
        raise Refused(
            f"{target.path} lies in {inside.split('/')[1]}: fio must never make a file there; name a block device with device: instead.", item=target.path
        )
    try:
        status: os.stat_result | None = os.stat(real)
    except FileNotFoundError:
        status = None
    except OSError as error:
        raise DeviceMissing(f"{target.path} cannot be reached: {error.strerror}.", item=target.path) from None
    if status is None and not real.parent.is_dir():
        raise DeviceMissing(f"The folder {real.parent} does not exist on this host: fio would make it, so create it first.", item=target.path)
    if status is not None and stat.S_ISBLK(status.st_mode):
        raise DeviceMissing(f"{target.path} is a block device: name it with device: instead of file:.", item=target.path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise DeviceMissing(f"{target.path} is neither a plain file nor new.", item=target.path)
    space = os.statvfs(real.parent)
    return TargetFacts(
        target=target,
        path=inside,
        size=status.st_size if status else 0,
        read_only=bool(space.f_flag & os.ST_RDONLY),
        identity=inside,
        neighbours=(_file_users(real, inside, root),) if status else (),
        writers=writers_of(root, lambda other: (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino)) if status else (),
        exists=status is not None,
        free=space.f_bavail * space.f_frsize,
        created=inside in created,
        file_system=_number(os.stat(real.parent).st_dev),
    )


def _file_users(real: Path, inside: str, root: Path) -> Neighbour:
    """Whether a file is swap space, lies under a loop device or is exported."""
    swap = False
    with contextlib.suppress(OSError):
        lines = (root / "proc/swaps").read_text().splitlines()[1:]
        swap = any(os.path.realpath(root / line.split()[0].replace("\\040", " ").lstrip("/")) == str(real) for line in lines if line.split())
    loops = []
    for backing in sorted((root / "sys/class/block").glob("*/loop/backing_file")):
        with contextlib.suppress(OSError):
            if os.path.realpath(root / backing.read_text().rstrip("\n").lstrip("/")) == str(real):
                loops.append(f"/dev/{backing.parent.parent.name}")
    exports = tuple(exporter for path, exporter in (*kernel_exports(root), *aoe_exports(root)) if os.path.realpath(root / path.lstrip("/")) == str(real))
    return Neighbour("itself", inside, swap=swap, strangers=tuple(loops), exports=exports)
