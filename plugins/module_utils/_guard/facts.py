# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a target is, what its user permits, and what is known of it and of everything around it."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import Sameness
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.room import Room
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit


@frozen
class GuardTarget:
    """What is to be read or written, and what its user permits.

    :param path: as the user wrote it.
    :param kind: ``device`` for a block device, ``file`` for a plain file, ``directory`` for a folder that the collection makes.
    :param identity: serial, WWN, ``vg/lv`` or device-mapper name that the device must have.
    :param size: bytes of the target to use; ``None`` for the whole device or the file as it is.
    :param caller: who is going to write, in a refusal: ``fio will not write to /dev/sda``; ``verb`` is what it does.
    """

    path: str
    kind: str = "device"
    allow_data_loss: bool = False
    identity: str | None = None
    size: int | None = None
    caller: str = "fio"
    verb: str = "write to"


@frozen
class Neighbour:
    """The target itself, or a device above it, below it, or of the same storage; ``relation`` is which.

    ``signatures`` are those that are no normal part of the stack; ``holders_outside`` are devices that hold it or are loops over it;
    ``exports`` is how it is given to other hosts; ``file_system`` which mounted file system of several devices it belongs to.
    """

    relation: str
    path: str
    mountpoints: tuple[str, ...] = ()
    swap: bool = False
    holders_outside: tuple[str, ...] = ()
    exports: tuple[str, ...] = ()
    busy: str | None = None
    signatures: tuple[str, ...] = ()
    file_system: str | None = None


@frozen
class TargetFacts:
    """Everything :func:`judge` decides on; plain data. Sizes in bytes.

    :param path: what fio opens: the kernel's name of the device, or the real path of the file.
    :param same_identity: other devices to which ``target.identity`` fits as well.
    :param indistinct: other devices that nothing in the record of left devices would distinguish from it.
    :param writers: processes that have the target, or a device below or above it, open for writing, as ``name (pid)``.
    :param readers: processes that have it open for reading only.
    :param unseen: how many processes may have it open without this user being allowed to see that.
    :param unknown: what could not be seen of who uses it, each as a sentence: what cannot be seen is in use.
    :param opened: how often it is open according to device-mapper, where nothing that was found explains it.
    :param data_at: offset in bytes of the first data without a known signature.
    :param unread: why the contents could not be read.
    :param suspended: it, or a device below it, is suspended: every read waits until it is resumed.
    :param rooms: what writes to it can fill.
    :param created: a file that the collection has made and that has not been changed since; overwriting it loses nothing.
    :param unit: what the path led to when it was examined.
    :param sameness: what a device was when it was examined.
    :param unsettled: udev was still processing events: the identity may be that of an earlier device of the same name.
    :param files: those in a folder, with their sizes; ``inodes``: how many more its file system has room for, ``None`` if it sets no limit.
    :param file_system: ``major:minor`` of the file system of a file (``st_dev`` of its folder), by which room is added up.
    """

    target: GuardTarget
    path: str
    size: int = 0
    read_only: bool = False
    identity: str | None = None
    identity_matches: bool | None = None
    same_identity: tuple[str, ...] = ()
    indistinct: tuple[str, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    writers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    unseen: int = 0
    unknown: tuple[str, ...] = ()
    opened: int = 0
    data_at: int | None = None
    unread: str | None = None
    suspended: str | None = None
    rooms: tuple[Room, ...] = ()
    unreadable: str | None = None
    device: BlockDevice | None = None
    exists: bool = True
    free: int | None = None
    created: bool = False
    file_system: str | None = None
    unit: Unit | None = None
    sameness: Sameness | None = None
    unsettled: bool = False
    files: t.Mapping[str, int] = field(default_factory=dict)
    inodes: int | None = None
