# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a path that a user names has to do with flushes: a block device itself, or the one under a file system.

Sources: proc(5) (``/proc/self/mountinfo``), btrfs(5) and Documentation/filesystems/{ext4,xfs} (``barrier``, ``nobarrier``, ``logdev``),
``/sys/fs/btrfs/<uuid>/devices``.
"""

from __future__ import annotations

import os
import stat
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unescape
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.zfs import PREFIX

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

_NO_BARRIERS = frozenset({"nobarrier", "barrier=0", "barrier=none"})


@frozen
class FlushTarget:
    """What is flushed for a path.

    :param devices: the block devices on which a flush of the path ends up; several for a btrfs of several devices or an external journal.
    :param mount: the mount point, if the path is no block device.
    :param barriers: whether its file system sends flushes at all.
    """

    path: str
    devices: tuple[BlockDevice, ...]
    mount: str | None = None
    barriers: bool = True


class _Mount(t.NamedTuple):
    point: str
    number: str
    fstype: str
    source: str
    options: frozenset[str]


def resolve(path: str, devices: Devices, root: Path) -> FlushTarget:
    """The block devices behind a path.

    :raises DeviceMissing: if it is not there, or lies on no block device of this host.
    """
    if path.startswith(PREFIX) and devices.get(path) is not None:
        return FlushTarget(path, (t.cast("BlockDevice", devices.get(path)),))
    node = os.path.realpath(root / path.lstrip("/"))
    try:
        status = os.stat(node)
    except OSError as error:
        raise DeviceMissing(f"{path} cannot be read on this host ({error.strerror}): name a block device or a folder.", item=path) from None
    if stat.S_ISBLK(status.st_mode) or any(device.path == path for device in devices):
        return FlushTarget(path, (devices.resolve(path),))
    # What realpath added in front of it, if the host is not this one but a folder.
    inside = "/" + os.path.relpath(node, os.path.realpath(root)) if str(root) != "/" else node
    return _under_file_system(path, _mount_of(inside, root), devices, root)


def _under_file_system(path: str, mount: _Mount | None, devices: Devices, root: Path) -> FlushTarget:
    if mount is None:
        raise DeviceMissing(f"{path} is on no mounted file system of this host.", item=path)
    if mount.fstype == "zfs" and devices.get(PREFIX + mount.source.split("/", 1)[0]) is not None:
        return FlushTarget(path, (t.cast("BlockDevice", devices.get(PREFIX + mount.source.split("/", 1)[0])),), mount.point)
    found = [device for device in devices if device.number == mount.number]
    if not found and mount.source.startswith("/dev/"):
        found = [devices.resolve(mount.source, path)]
    if not found:
        raise DeviceMissing(
            f"{path} is on {mount.fstype} ({mount.source}), which is on no block device of this host: name a block device, or a folder that is.", item=path
        )
    journals = [devices.resolve(word.split("=", 1)[1], path) for word in mount.options if word.startswith("logdev=/dev/")]
    together = [*found, *journals, *_btrfs_companions(found[0], devices, root)]
    return FlushTarget(path, tuple({device.name: device for device in together}.values()), mount.point, not mount.options & _NO_BARRIERS)


def _mount_of(path: str, root: Path) -> _Mount | None:
    """The mount with the longest mount point above a path; of several there, the last, which hides the others."""
    best = None
    try:
        text = (root / "proc/self/mountinfo").read_text(errors="replace")
    except OSError:
        return None
    for line in text.splitlines():
        mount = _parse_mount(line)
        if mount is None:
            continue
        above = mount.point.rstrip("/") + "/"
        if (path + "/").startswith(above) and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def _parse_mount(line: str) -> _Mount | None:
    before, separator, after = line.partition(" - ")
    words, rest = before.split(), after.split()
    if not separator or len(words) < 6 or len(rest) < 2:
        return None
    options = frozenset(",".join([words[5], *rest[2:3]]).split(","))
    return _Mount(unescape(words[4]), words[2], rest[0], unescape(rest[1]), options)


def _btrfs_companions(device: BlockDevice, devices: Devices, root: Path) -> t.Iterator[BlockDevice]:
    """The other devices of the btrfs on this one."""
    for folder in sorted((root / "sys/fs/btrfs").glob("*/devices")):
        names = sorted(place.name for place in folder.iterdir())
        if device.name in names:
            for name in names:
                found = devices.get(name)
                if found is not None:
                    yield found
