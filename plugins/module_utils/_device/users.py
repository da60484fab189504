# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Who uses a block device or a file, by device number and inode and never by the text of a path.

A path is not sufficient: the file behind a loop device can be reached by a hard link or through a bind mount, a swap file by another name, and
what another mount namespace has mounted is not in this one's table.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import re
import stat
import struct
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe_exports import running_exports
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute

#: What the kernel appends to the path of a node or file that has no name any more.
_DELETED = " (deleted)"

#: linux/loop.h: the request, and the first fields of ``struct loop_info64``: device, inode, device number of the backing file.
_LOOP_GET_STATUS64, _LOOP_INFO, _LOOP_INFO_SIZE = 0x4C05, "=QQQ", 232

#: linux/kcmp.h, and the number of the system call by machine.
_KCMP_FILES = 2
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "loongarch64": 272, "s390x": 343, "ppc64": 354, "ppc64le": 354}

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
class OpenFile:
    """A process that has a unit open."""

    name: str
    pid: int
    writing: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


@frozen
class OpenFiles:
    """What was found; ``unreadable`` counts the processes whose open files this user may not see."""

    found: t.Mapping[Unit, tuple[OpenFile, ...]]
    unreadable: int = 0

    def of(self, unit: Unit | None) -> tuple[OpenFile, ...]:
        return self.found.get(unit, ()) if unit is not None else ()


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


# -- mounts


def mounts_of_all(root: Path) -> dict[str, str]:
    """``{major:minor: where}`` of everything mounted in any mount namespace of any process.

    The namespace of this process comes first, so that its mount points are named. Source: proc(5), ``/proc/pid/mountinfo``.
    """
    found: dict[str, str] = {}
    for label, mountinfo in _mount_tables(root):
        for number, point in _mounted(mountinfo):
            found.setdefault(number, f"{point}{label}")
    return found


def _mount_tables(root: Path) -> t.Iterator[tuple[str, Path]]:
    seen = {_link(root / "proc/self/ns/mnt")}
    yield "", root / "proc/self/mountinfo"
    for process in processes(root):
        namespace = _link(process / "ns/mnt")
        if namespace not in seen or (namespace is None and process.name == "1"):
            seen.add(namespace)
            yield f" in the mount namespace of process {process.name}", process / "mountinfo"


def mount_points(root: Path) -> frozenset[str]:
    """Where something is mounted in the mount namespace of this process."""
    return frozenset(point for _number, point in _mounted(root / "proc/self/mountinfo"))


def _mounted(mountinfo: Path) -> t.Iterator[tuple[str, str]]:
    try:
        lines = mountinfo.read_text(errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        if len(words) > 4:
            yield words[2], unescape(words[4])


def file_system_members(root: Path) -> dict[str, str]:
    """By kernel name, devices of mounted file systems that have several, of which the mount table names one at most.

    Sources: ``/sys/fs/btrfs/<uuid>/devices`` (fs/btrfs/sysfs.c), ``/sys/fs/bcachefs/<uuid>/dev-<n>/block`` (fs/bcachefs/sysfs.c).
    """
    found = {device.name: f"btrfs {device.parent.parent.name}" for device in (root / "sys/fs/btrfs").glob("*/devices/*")}
    for block in (root / "sys/fs/bcachefs").glob("*/dev-*/block"):
        found[os.path.basename(os.path.realpath(block))] = f"bcachefs {block.parent.parent.name}"
    return found


# -- swap, loop devices, exports


def swap_units(root: Path) -> set[Unit]:
    """Swap spaces in use, partitions and files. Source: proc(5), ``/proc/swaps``."""
    try:
        lines = (root / "proc/swaps").read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return set()
    found = (unit_at(root, unescape(line.split()[0])) for line in lines if line.split())
    return {unit for unit in found if unit is not None}


def backing_unit(root: Path, loop: str) -> Unit | None:
    """What a loop device lies on: as its driver reports, else by the path in sysfs. ``loop`` is its kernel name.

    Source: loop(4), LOOP_GET_STATUS64; a block device below has its number in ``lo_rdevice``.
    """
    if not (root / "sys/class/block" / loop / "loop").exists():
        return None
    text = backing_path(root, loop)
    named = unit_at(root, text)
    answer = _ask_loop_driver(root / "dev" / loop)
    if answer is None:
        return named
    device, inode, number = answer
    if named is not None and named.kind == "file" and (named.device, named.inode) == (device, inode):
        return named
    # The path may lead to another file by now, or to none. The driver gives a device number of its own for a block device only.
    if named is not None and named.kind == "block" and named.device == number:
        return named
    return Unit("block", number) if number and number != device else Unit("file", device, inode)


def backing_path(root: Path, loop: str) -> str | None:
    """The path of the backing file as sysfs has it; ``None`` if it is no loop device in use."""
    try:
        return (root / "sys/class/block" / loop / "loop/backing_file").read_text(errors="surrogateescape").rstrip("\n")
    except OSError:
        return None


def _ask_loop_driver(node: Path) -> tuple[int, int, int] | None:
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        answer = fcntl.ioctl(descriptor, _LOOP_GET_STATUS64, bytes(_LOOP_INFO_SIZE))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    device, inode, number = struct.unpack_from(_LOOP_INFO, answer)
    return device, inode, number


def exported_units(root: Path) -> list[tuple[Unit | None, str]]:
    """What this host gives to others, and by what it is exported."""
    exports = [*_nvmet_exports(root), *_lio_exports(root), *_scst_exports(root)]
    exports += [(unit_at(root, one.path), f"vblade {one.address} on {one.interface}") for one in running_exports(root)]
    return exports


def _nvmet_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    """Such a target opens its device without O_EXCL, has no holder link and no process with a file descriptor.

    Source: drivers/nvme/target/configfs.c (``device_path``, and ``enable`` of a namespace).
    """
    for namespace in sorted((root / "sys/kernel/config/nvmet/subsystems").glob("*/namespaces/*")):
        path = read_attribute(namespace / "device_path")
        if path and read_attribute(namespace / "enable") == "1":
            yield unit_at(root, path), f"nvmet subsystem {namespace.parent.parent.name}"


def _lio_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    """Source: drivers/target/target_core_configfs.c (``udev_path``), target_core_iblock.c and target_core_file.c (``info``)."""
    for backstore in sorted((root / "sys/kernel/config/target/core").glob("*/*")):
        exporter = f"LIO backstore {backstore.parent.name}/{backstore.name}"
        info = read_attribute(backstore / "info") or ""
        numbers = re.search(r"Major: (\d+)\s+Minor: (\d+)", info)
        if numbers:
            yield Unit("block", os.makedev(int(numbers.group(1)), int(numbers.group(2)))), exporter
        file = re.search(r"\bFile: (/\S+)", info)
        for path in filter(None, (read_attribute(backstore / "udev_path"), file.group(1) if file else "")):
            yield unit_at(root, path), exporter


def _scst_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    """Source: the sysfs interface of SCST, ``devices/<name>/filename``, whose further lines are marks."""
    for file in sorted((root / "sys/kernel/scst_tgt/devices").glob("*/filename")):
        path = (read_attribute(file) or "").split("\n", 1)[0]
        if path:
            yield unit_at(root, path), f"SCST device {file.parent.name}"


# -- processes


def processes(root: Path) -> list[Path]:
    """The folders of all processes but this one, by number."""
    found = (place for place in (root / "proc").glob("[0-9]*") if place.name.isdigit() and place.name != str(os.getpid()))
    return sorted(found, key=lambda place: int(place.name))


def open_files(root: Path, units: t.AbstractSet[Unit], *, mapped: bool = True) -> OpenFiles:
    """Who has any of some units open or mapped.

    :param mapped: read mappings too, which takes several times as long.

    A virtual machine, a database or a user-space target opens its disk without O_EXCL; only its descriptor shows it. One that has closed
    its descriptor and kept the mapping shows in its maps. Source: proc(5), ``fd``, ``fdinfo`` (``flags`` is octal, the lowest two bits
    are the access mode) and ``maps``.
    """
    found: dict[Unit, list[OpenFile]] = {}
    unreadable = 0
    for process in processes(root):
        try:
            threads = _threads(process)
            uses = _mapped(threads[0], units) if mapped else {}
            for thread in threads:
                for unit, writing in _opened(thread, units).items():
                    uses[unit] = uses.get(unit, False) or writing
        except PermissionError:
            unreadable += 1
            continue
        except OSError:
            continue  # the process has ended meanwhile
        for unit, writing in uses.items():
            found.setdefault(unit, []).append(OpenFile(read_attribute(process / "comm") or "a process", int(process.name), writing))
    return OpenFiles({unit: tuple(rows) for unit, rows in found.items()}, unreadable)


def _threads(process: Path) -> list[Path]:
    """The folders of a process and of its threads with which all of its descriptors are found, in most cases the first alone.

    The main thread may have ended before the others, and then has no descriptors; and a thread may have a table of its own
    (unshare(2), CLONE_FILES). Source: proc(5), ``task``.
    """
    try:
        others = [name for name in os.listdir(process / "task") if name != process.name]
    except FileNotFoundError:
        others = []
    if not others:
        return [process]
    first = next((one for one in (process, *(process / "task" / name for name in others)) if _descriptors(one)), process)
    return [first, *_with_own_table(first, process, others)]


def _with_own_table(first: Path, process: Path, others: t.Iterable[str]) -> t.Iterator[Path]:
    """The threads that do not share their descriptors with the first; where kcmp(2) cannot tell, those that have other numbers open."""
    ask = _kcmp() if process.parent == Path("/proc") else None
    known = int(first.name)
    for name in others:
        # A host may have 100,000 threads: no path is made of most.
        answer = ask(known, int(name)) if ask is not None else -1
        if answer > 0 or (answer < 0 and _descriptors(process / "task" / name) != _descriptors(first)):
            yield process / "task" / name


def _descriptors(thread: Path) -> list[str]:
    try:
        return os.listdir(thread / "fd")
    except FileNotFoundError:
        return []


@functools.lru_cache(maxsize=None)
def _kcmp() -> t.Callable[[int, int], int] | None:
    """kcmp(2) of two threads by number: 0 if they have one table of descriptors, less than 0 if that cannot be determined."""
    number = _KCMP.get(os.uname().machine)
    if number is None:
        return None
    call = ctypes.CDLL(None).syscall
    return lambda one, other: int(call(number, one, other, _KCMP_FILES, 0, 0))


def _opened(process: Path, units: t.AbstractSet[Unit]) -> dict[Unit, bool]:
    found: dict[Unit, bool] = {}
    for descriptor in os.listdir(process / "fd") if process.parent.name != "task" else _descriptors(process):
        unit = unit_of(process / "fd" / descriptor)
        if unit is not None and unit in units:
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                found[unit] = found.get(unit, False) or is_writable(process / "fdinfo" / descriptor)
    return found


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


def _mapped(process: Path, units: t.AbstractSet[Unit]) -> dict[Unit, bool]:
    """Which units a process has mapped, and whether it may write there. A device is mapped as its node, and found by its path."""
    found: dict[Unit, bool] = {}
    inodes = {str(unit.inode) for unit in units if unit.kind == "file"}
    try:
        lines = (process / "maps").read_text(errors="surrogateescape").splitlines()
    except FileNotFoundError:
        return found
    for line in lines:
        words = line.split(None, 5)
        if len(words) < 6 or not (words[4] in inodes or words[5].startswith("/dev/")):
            continue
        for unit in _units_of_mapping(process, words):
            if unit in units:
                found[unit] = found.get(unit, False) or words[1][1:2] == "w"
    return found


def _units_of_mapping(process: Path, words: t.Sequence[str]) -> t.Iterator[Unit]:
    """By the numbers of the line, and by the path: the devices of some file systems (btrfs) are not those that stat(2) gives."""
    with contextlib.suppress(ValueError):
        major, minor = (int(part, 16) for part in words[3].split(":"))
        yield Unit("file", os.makedev(major, minor), int(words[4]))
    if not words[5].endswith(_DELETED):
        named = unit_of(process / "root" / words[5].lstrip("/")) or unit_of(words[5])
        if named is not None:
            yield named


def _link(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return None


def unescape(text: str) -> str:
    """Undo the octal escapes of proc(5): ``\\040`` is a blank."""
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 8)), text)


def _number(device: int) -> str:
    return f"{os.major(device)}:{os.minor(device)}"
