# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses a block device or a file, by device number and inode and never by the text of a path.

A path is not sufficient: the file behind a loop device can be reached by a hard link or through a bind mount, a swap file by another name, and
what another mount namespace has mounted is not in this one's table.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import struct
import tempfile
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

#: What the kernel appends to the path of a node or file that has no name any more.
_DELETED = " (deleted)"

#: linux/loop.h: the request, and the first fields of ``struct loop_info64``: device, inode, device number of the backing file.
_LOOP_GET_STATUS64, _LOOP_INFO, _LOOP_INFO_SIZE = 0x4C05, "=QQQ", 232

#: Where a node of a loop device is made for a moment, if this /dev has none: the first that is not mounted with nodev.
_NODE_FOLDERS = ("/dev", "/var/lib/cachefleet", "/var/lib", "/var/tmp", "/root")

#: What a process answers that ends: its mounts are gone before it is.
_GONE = (errno.ENOENT, errno.ESRCH, errno.EINVAL)

_ESCAPE = re.compile(r"\\([0-7]{3})")


@frozen
class Unit:
    """A block device by its number, or a file by its file system and inode, whatever it is called."""

    kind: str
    device: int
    inode: int = 0

    @property
    def number(self) -> str | None:
        """``major:minor`` of a block device."""
        return _number(self.device) if self.kind == "block" else None


@frozen
class Mount:
    """A line of a mount table.

    :param number: ``major:minor`` of the file system.
    :param root: which part of the file system is mounted.
    :param options: of the file system.
    """

    number: str
    root: str
    point: str
    kind: str
    source: str
    options: tuple[str, ...] = ()


@frozen
class LoopBacking:
    """What a loop device lies on.

    :param unit: ``None`` if nothing, or if that is not known.
    :param problem: why it is not known, as a sentence; empty if it is.
    """

    unit: Unit | None = None
    problem: str = ""


def unit_of(path: Path | str | int) -> Unit | None:
    """What a path or a descriptor leads to; ``None`` if it cannot be reached."""
    try:
        return unit_of_status(os.stat(path))
    except (OSError, ValueError):
        return None


def unit_of_status(status: os.stat_result) -> Unit:
    if stat.S_ISBLK(status.st_mode):
        return Unit("block", status.st_rdev)
    return Unit("file", status.st_dev, status.st_ino)


def unit_at(root: Path, path: str | None) -> Unit | None:
    """What a path leads to that the kernel gives, which may show that the name is gone."""
    for text in (path, path[: -len(_DELETED)] if path and path.endswith(_DELETED) else None):
        if text and text.startswith("/"):
            found = unit_of(root / text.lstrip("/"))
            if found is not None:
                return found
    return None


def is_missing_below(root: Path, error: OSError) -> bool:
    """Whether a host that is made of files lacks one; the root of a real host has all of them, or they are hidden."""
    return root != Path("/") and isinstance(error, FileNotFoundError)


# -- mounts


def mounts_of_all(root: Path, unknown: list[str]) -> dict[str, str]:
    """``{major:minor: where}`` of everything mounted in any mount namespace of any process.

    The namespace of this process comes first, so that its mount points are named. Source: proc(5), ``/proc/pid/mountinfo``.

    :param unknown: gets a sentence for what cannot be read.
    """
    found: dict[str, str] = {}
    tables: dict[str, list[Mount]] = {}
    failed: dict[str | None, str] = {}
    seen = {_link(root / "proc/self/ns/mnt")}
    try:
        if root == Path("/") or (root / "proc/self/mountinfo").exists():
            tables[""] = read_mounts(root / "proc/self/mountinfo")
        for process in processes(root):
            namespace = _link(f"{process}/ns/mnt")
            if namespace in seen if namespace is not None else process.name != "1":
                continue
            try:
                tables[f" in the mount namespace of process {process.name}"] = read_mounts(process / "mountinfo")
                seen.add(namespace)
            except OSError as error:
                # Of a process that ends; another one of the namespace may show it.
                if error.errno not in _GONE:
                    failed[namespace] = f"the mounts of process {process.name} cannot be read ({error.strerror}): {way_to_see()}"
    except OSError as error:
        if is_missing_below(root, error):
            return found
        unknown.append(f"what is mounted cannot be read ({error.strerror}: {error.filename}): mount /proc, and {way_to_see()}")
        return found
    unknown += [text for namespace, text in failed.items() if namespace not in seen]
    for label, mounts in tables.items():
        for one in mounts:
            found.setdefault(one.number, f"{one.point}{label}")
            # Some file systems are mounted from a file, without a loop device.
            if one.source.startswith("/") and not one.source.startswith("/dev/"):
                found.setdefault(one.source, f"{one.point}{label}")
    return found


def mount_points(root: Path) -> frozenset[str]:
    """Where something is mounted in the mount namespace of this process; nowhere, if that cannot be read."""
    try:
        return frozenset(one.point for one in read_mounts(root / "proc/self/mountinfo"))
    except OSError:
        return frozenset()


def read_mounts(mountinfo: Path) -> list[Mount]:
    """A mount table, as the kernel has it.

    :raises OSError: if it cannot be read.
    """
    mounts = []
    for line in mountinfo.read_text(errors="surrogateescape").splitlines():
        words, _separator, after = (part.split() for part in line.partition(" - "))
        if len(words) > 4:
            kind, source, options = (*after, "", "", "")[:3]
            mounts.append(Mount(words[2], unescape(words[3]), unescape(words[4]), kind, unescape(source), tuple(options.split(","))))
    return mounts


def file_system_members(root: Path) -> dict[str, str]:
    """By kernel name, devices of mounted file systems that have several, of which the mount table names one at most.

    Sources: ``/sys/fs/btrfs/<uuid>/devices`` (fs/btrfs/sysfs.c), ``/sys/fs/bcachefs/<uuid>/dev-<n>/block`` (fs/bcachefs/sysfs.c).
    """
    found = {device.name: f"btrfs {device.parent.parent.name}" for device in (root / "sys/fs/btrfs").glob("*/devices/*")}
    for block in (root / "sys/fs/bcachefs").glob("*/dev-*/block"):
        found[os.path.basename(os.path.realpath(block))] = f"bcachefs {block.parent.parent.name}"
    return found


# -- swap, loop devices, exports


def swap_units(root: Path, unknown: list[str]) -> set[Unit]:
    """Swap spaces in use, partitions and files. Source: proc(5), ``/proc/swaps``.

    :param unknown: gets a sentence for what cannot be read or found.
    """
    try:
        lines = (root / "proc/swaps").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError as error:
        if is_missing_below(root, error):
            return set()
        unknown.append(f"what is swap space cannot be read ({error.strerror}: {error.filename}): mount /proc, and {way_to_see()}")
        return set()
    units = {name: unit_at(root, name) for name in (unescape(line.split()[0]) for line in lines if line.split())}
    unknown += [f"{name}, which is swap space, cannot be found, and may be any device or file: swapoff it" for name, unit in units.items() if unit is None]
    return {unit for unit in units.values() if unit is not None}


def loop_backing(root: Path, loop: str) -> LoopBacking:
    """What a loop device lies on: as its driver reports, else by the path in sysfs. ``loop`` is its kernel name.

    Source: loop(4), LOOP_GET_STATUS64; a block device below has its number in ``lo_rdevice``.
    """
    if not (root / "sys/class/block" / loop / "loop").exists():
        return LoopBacking()
    text = backing_path(root, loop)
    named = unit_at(root, text)
    try:
        answer = _ask_loop_driver(root, loop)
    except OSError as error:
        if error.errno == errno.ENXIO:
            return LoopBacking()
        # Below another root a node is a plain file; and other users may not ask.
        if named is not None and (root != Path("/") or os.geteuid() != 0):
            return LoopBacking(named)
        what = f"what /dev/{loop} lies on ({text or 'a file'})"
        return LoopBacking(problem=f"{what} cannot be determined ({error.strerror}): make its device node (mknod), or detach it (losetup --detach)")
    device, inode, number = answer
    if named is not None and named.kind == "file" and (named.device, named.inode) == (device, inode):
        return LoopBacking(named)
    # The path may lead to another file by now, or to none. The driver gives a device number of its own for a block device only.
    if named is not None and named.kind == "block" and named.device == number:
        return LoopBacking(named)
    return LoopBacking(Unit("block", number) if number and number != device else Unit("file", device, inode))


def backing_path(root: Path, loop: str) -> str | None:
    """The path of the backing file as sysfs has it; ``None`` if it is no loop device in use."""
    try:
        return (root / "sys/class/block" / loop / "loop/backing_file").read_text(errors="surrogateescape").rstrip("\n")
    except OSError:
        return None


def _ask_loop_driver(root: Path, loop: str) -> tuple[int, int, int]:
    """Device, inode and device number of what a loop device lies on.

    :raises OSError: ``ENXIO`` if it is unused, another one if it cannot be asked.
    """
    number = _number_in_sysfs(root / "sys/class/block" / loop)
    try:
        descriptor = _open_node(root / "dev" / loop, number)
    except OSError:
        if root != Path("/") or number is None:
            raise
        descriptor = _open_own_node(number)
    try:
        answer = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO_SIZE))
    finally:
        os.close(descriptor)
    device, inode, below = struct.unpack_from(_LOOP_INFO, answer)
    return device, inode, below


def _number_in_sysfs(place: Path) -> int | None:
    major, _colon, minor = (read_attribute(place / "dev") or "").partition(":")
    return os.makedev(int(major), int(minor)) if major.isdigit() and minor.isdigit() else None


def _open_node(node: Path, number: int | None) -> int:
    descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if number is not None and os.fstat(descriptor).st_rdev != number:
        os.close(descriptor)
        raise OSError(errno.ENODEV, "it is the node of another device", str(node))
    return descriptor


def _open_own_node(number: int) -> int:
    """Open a device by its number, where this /dev has no node of it: a container, or a host without udev.

    :raises OSError: if that is not allowed anywhere.
    """
    reason = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in _NODE_FOLDERS:
        try:
            with tempfile.TemporaryDirectory(prefix="cachefleet.", dir=folder) as own:
                node = Path(own) / "node"
                os.mknod(node, stat.S_IFBLK | 0o600, number)
                return _open_node(node, number)
        except OSError as error:
            reason = error
    raise reason


# -- processes


def processes(root: Path) -> list[Path]:
    """The folders of all processes but this one, by number.

    :raises OSError: if they cannot be listed.
    """
    own = os.getpid()
    return [root / "proc" / str(number) for number in sorted(int(name) for name in os.listdir(root / "proc") if name.isdigit()) if number != own]


def is_writable(fdinfo: Path) -> bool:
    """Whether a descriptor of a process is open for writing; true if that cannot be determined.

    :raises FileNotFoundError: if it is closed by now.
    """
    try:
        match = re.search(r"^flags:\s*(\d+)", fdinfo.read_text(), re.MULTILINE)
    except FileNotFoundError:
        raise
    except OSError:
        return True
    return (int(match.group(1), 8) & os.O_ACCMODE) != os.O_RDONLY if match else True


def _link(path: Path | str) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return None


def unescape(text: str) -> str:
    """Undo the octal escapes of proc(5): ``\\040`` is a blank."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
