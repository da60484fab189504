# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The model of block devices: identity, topology, users and queue of each, and paths that name them."""

from __future__ import annotations

import copy
import os
import re
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

_UNSTABLE = re.compile(
    r"^/dev/([a-z]+|[hsv]d[a-z]+\d+|xvd[a-z]+\d*|nvme\d+n\d+(p\d+)?|(mmcblk|dm-|md|loop|nbd|rbd|bcache|sr|zram|ram)\d+(p\d+)?|block/.*|disk/by-diskseq/.*)$"
)
#: Characters of the model in a SCSI inquiry (SPC), which is what sysfs has of a SATA drive.
_INQUIRY_MODEL = 16
_SINGLE_HYPHEN = re.compile(r"(?<!-)-(?!-)")


@frozen
class Signature:
    """What udev's blkid found on a device: ``usage`` is filesystem, raid, crypto or other."""

    usage: str | None = None
    type: str | None = None
    uuid: str | None = None
    label: str | None = None
    partition_table: str | None = None


@frozen
class BlockDevice:
    """One block device of the kernel. Sizes in bytes; relations are kernel names.

    ``shared_links`` are links that other devices claim too, as two drives with one serial number do: they name none of them.
    ``properties`` holds the udev properties that identify the device, for rules that must match on them.
    ``suspended`` is a device-mapper device that takes requests and answers none.
    ``dm_targets`` are the target types of a device-mapper device (``linear``, ``cache``, ``flashcache``…).
    ``instance`` is what the kernel gave this device anew, of a partition that of its disk (:func:`sysfs.instance_of`), as it was before everything else
    was read. ``partition`` is the number of a partition. ``placeholder`` is the serial number that it reports and that is none
    (:func:`is_placeholder`). ``virtual`` is a disk that a hypervisor makes (:func:`virtual_disk.is_virtual`); a stack clears it where the user declared
    that its flushes reach media.
    """

    name: str
    path: str
    number: str
    kind: str = "disk"
    size: int = 0
    logical_block: int = 512
    physical_block: int = 512
    read_only: bool = False
    removable: bool = False
    rotational: bool | None = None
    transport: str = "unknown"
    driver: str | None = None
    serial: str | None = None
    wwn: str | None = None
    model: str | None = None
    firmware: str | None = None
    by_id: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    dm_name: str | None = None
    dm_uuid: str | None = None
    dm_targets: tuple[str, ...] = ()
    parent: str | None = None
    partitions: tuple[str, ...] = ()
    slaves: tuple[str, ...] = ()
    holders: tuple[str, ...] = ()
    mountpoints: tuple[str, ...] = ()
    swap: bool = False
    signature: Signature | None = None
    queue: t.Mapping[str, t.Any] = field(default_factory=dict)
    cache_type: str | None = None
    suspended: bool = False
    shared_links: tuple[str, ...] = ()
    properties: t.Mapping[str, str] = field(default_factory=dict)
    instance: str | None = None
    partition: int | None = None
    placeholder: str | None = None
    virtual: bool = False

    @property
    def is_part(self) -> bool:
        """Whether it is a partition, of the kernel or of device-mapper (kpartx): what udev reports of its disk is not its own."""
        return self.kind == "partition" or _MAPPED_PARTITION.match(self.dm_uuid or "") is not None

    @property
    def logical_volume(self) -> str | None:
        """``vg/lv`` of an LVM logical volume; ``None`` for the layers under one (``-real``, ``-cow``, ``-tpool``, ``-cdata``…)."""
        # The UUID of a layer carries a suffix: LVM-<ids of group and volume>-real.
        if self.kind == "lvm" and self.dm_name and (self.dm_uuid or "").count("-") == 1:
            parts = [part.replace("--", "-") for part in _SINGLE_HYPHEN.split(self.dm_name)]
            if len(parts) >= 2:
                return f"{parts[0]}/{parts[1]}"
        return None

    @property
    def identity(self) -> str | None:
        """What a user writes to identify this device and no other: serial, WWN, ``vg/lv``, device-mapper or MD name, UUID or place of a partition."""
        if self.kind == "partition":
            whole = self.serial or self.wwn
            return self.partition_uuid or (part_of(whole, self.partition) if whole else None)
        if self.is_part:
            return self.dm_name
        return self.logical_volume or self.serial or self.wwn or self.dm_name or self.properties.get("MD_NAME") or self.properties.get("MD_UUID")

    @property
    def partition_uuid(self) -> str | None:
        """The PARTUUID, if the partition table has one: without a disk signature those of all DOS tables are 00000000-01, 00000000-02 and so on."""
        found = self.properties.get("ID_PART_ENTRY_UUID")
        return found if found and found.split("-", 1)[0].strip("0") else None

    @property
    def models(self) -> tuple[str, ...]:
        """The model as people, udev and sysfs write it: udev without blanks, sysfs with 16 characters of that of a SATA drive."""
        of_udev = self.properties.get("ID_MODEL") or ""
        of_sysfs = (self.model or "")[:_INQUIRY_MODEL].strip() if self.properties.get("ID_ATA") else ""
        return tuple(dict.fromkeys(one for one in (self.model, of_udev, of_udev.replace("_", " "), of_sysfs) if one))

    @property
    def stable_path(self) -> str | None:
        """The path that still names this device after a reboot; ``None`` if there is none."""
        if self.kind == "lvm" and self.logical_volume:
            return f"/dev/{self.logical_volume}"
        if self.dm_name:
            return f"/dev/mapper/{self.dm_name}"
        for path in (*self.by_id, *self.links):
            if path not in self.shared_links and path.startswith(("/dev/disk/by-id/", "/dev/md/", "/dev/bcache/by-uuid/", "/dev/disk/by-partuuid/")):
                return path
        return None


class Devices:
    """Every block device of a host, read at one moment.

    :param settled: whether udev had processed all events then: if not, an identity may be that of an earlier device of the same name.
    """

    def __init__(self, devices: t.Iterable[BlockDevice], root: Path = Path("/"), *, settled: bool = True) -> None:
        self.settled = settled
        self._by_name = {device.name: device for device in devices}
        self._root = root

    def __iter__(self) -> t.Iterator[BlockDevice]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def get(self, name: str) -> BlockDevice | None:
        """The device of that kernel name."""
        return self._by_name.get(name)

    def with_changed(self, devices: t.Iterable[BlockDevice]) -> Devices:
        """The same host with some devices as they will be after steps that are planned."""
        changed = copy.copy(self)
        changed._by_name = {**self._by_name, **{device.name: device for device in devices}}
        return changed

    def without(self, names: t.Container[str], devices: t.Iterable[BlockDevice]) -> Devices:
        """The same host with these devices only, and without some of them."""
        changed = copy.copy(self)
        changed._by_name = {device.name: device for device in devices if device.name not in names}
        return changed

    def resolve(self, path: str, item: str | None = None) -> BlockDevice:
        """The device behind a path, through every symbolic link.

        :raises DeviceMissing: if the path is empty, does not exist or is no block device.
        """
        item = path if item is None else item
        if not path:
            raise DeviceMissing("A device is named by an empty path: use for example /dev/disk/by-id/ata-SERIAL.", item=item)
        try:
            node = os.path.realpath(self._root / path.lstrip("/"))
            status = os.stat(node)
        except (OSError, ValueError):  # ValueError: a path with a null character
            raise DeviceMissing(f"{path} does not exist on this host: check the name, for example with lsblk -o +serial.", item=item) from None
        if stat.S_ISBLK(status.st_mode):
            number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
            found = [device for device in self if device.number == number]
        elif self._root != Path("/"):
            found = [device for device in self if os.path.realpath(self._root / device.path.lstrip("/")) == node]
        else:
            found = []
        if not found:
            raise DeviceMissing(f"{path} is not a block device of this host: use for example /dev/disk/by-id/ata-SERIAL.", item=item)
        return found[0]

    def claimants(self, path: str) -> list[BlockDevice]:
        """Every device for which udev made this link; two of them means that the link names neither."""
        return [device for device in self if path in device.by_id or path in device.links]

    def multipath_over(self, device: BlockDevice) -> BlockDevice | None:
        """The multipath device that a drive is a path of."""
        above = (self.get(name) for name in device.holders)
        return next((one for one in above if one is not None and one.kind == "multipath"), None)

    def existing(self, names: t.Iterable[str]) -> list[BlockDevice]:
        """The devices of these kernel names, without those that are not there."""
        return [device for device in map(self.get, names) if device is not None]

    def parents(self, device: BlockDevice) -> list[BlockDevice]:
        """Everything this device is made of, nearest first: its whole disk, its slaves, and theirs."""
        return self._walk(device, lambda one: ([one.parent] if one.parent else []) + list(one.slaves))

    def children(self, device: BlockDevice) -> list[BlockDevice]:
        """Everything built on this device, nearest first: partitions, holders, and theirs."""
        return self._walk(device, lambda one: [*one.partitions, *one.holders])

    def _walk(self, device: BlockDevice, neighbours: t.Callable[[BlockDevice], list[str]]) -> list[BlockDevice]:
        found: dict[str, BlockDevice] = {}
        queue = neighbours(device)
        while queue:
            name = queue.pop(0)
            neighbour = self.get(name)
            if neighbour is not None and name not in found and name != device.name:
                found[name] = neighbour
                queue += neighbours(neighbour)
        return list(found.values())

    def matches_identity(self, device: BlockDevice, text: str) -> bool:
        """Whether a serial, WWN, ``vg/lv``, device-mapper name or by-id name that a user wrote is that of this device.

        Names of LVM and serials that differ in case belong to different devices; only a WWN is a number, in upper or lower case. A partition has names of its
        own: the serial number and the WWN are those of its whole disk, and name only that.
        """
        if device.is_part:
            names = {device.identity, device.partition_uuid, device.dm_name}
            if device.kind == "partition":
                names |= {part_of(whole, device.partition) for whole in (device.serial, device.wwn) if whole}
        else:
            names = {device.identity, device.serial, device.wwn, device.logical_volume, device.dm_name}
            names |= {value for key, value in device.properties.items() if key in IDENTIFYING}
        links = set(device.by_id) - set(device.shared_links)
        names |= {path.rsplit("/", 1)[-1] for path in links} | links
        normalized = _as_identity(text)
        return bool(normalized) and any(name is not None and _as_identity(name) == normalized for name in names)


def part_of(identity: str, number: int | None) -> str | None:
    """What identifies a partition that has no UUID: the identity of its disk with the number, as udev names it below ``/dev/disk/by-id``."""
    return f"{identity}-part{number}" if number is not None else None


def is_placeholder(text: str, *, usb: bool = False) -> bool:
    """Whether a serial number or WWN is one that many devices have: what bridges, card readers and virtual disks report that have none of their own.

    Bridges repeat one character, count up, or have one number for all of their bays, by maker: DD56419883… (JMicron), AAAABBBB… (ASMedia),
    01234567…. (Realtek). QEMU's QM00001 and drive-scsi0 are the place of a disk in its machine.

    :param usb: whether a device is on USB: there a date of manufacture, or vendor and product number, stand for a serial number too.
    """
    plain = text.strip()
    number = _WWN_PREFIX.sub("", plain)
    bare = _NO_LETTER.sub("", number).upper()
    if bare in _PLACEHOLDERS or (len(bare) > 1 and len(set(bare)) == 1) or _OF_MAKERS.match(bare) or (usb and _OF_BRIDGES.match(bare)):
        return True
    if any(len(one) > _SHORT_RUN and any(one in order * 3 for order in _ORDERS) for one in (bare, bare.lstrip("0"))):
        return True
    # 0x5000000000000000: only the type of a WWN.
    return number != plain and len(bare) >= _WWN_DIGITS and not bare[1:].strip("0")


_WWN_PREFIX = re.compile(r"^(?:0x|naa\.|eui\.)", re.IGNORECASE)
_WWN_DIGITS = 16
_NO_LETTER = re.compile(r"[^0-9A-Za-z]")
#: In which placeholders count, up and down, and begin again. What is not longer than that may be the number of a real device.
_ORDERS = tuple(order[::step] for order in ("0123456789ABCDEF", "0123456789", "123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ") for step in (1, -1))
_SHORT_RUN = 5
_OF_MAKERS = re.compile(
    r"(?:DD56419883\w{1,6}|AAAABBBB\w{4}|01234567\d{4}|QM\d{5}|DRIVE(?:SCSI|SATA|IDE|VIRTIO)\d+|VMWARENVME\d{4}"
    r"|(?:DEADBEEF|DEADC0DE|BAADF00D|CAFEBABE)+\w?)\Z"
)
_OF_BRIDGES = re.compile(r"(?:20[0-2]\d(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])[0-9A-F]{4,5}|(?:152D|174C|0BDA|2109|1F75)[0-9A-F]{8})\Z")
#: In capital letters, without blanks and signs.
_PLACEHOLDERS = frozenset(
    {
        *("", "NONE", "NULL", "NA", "NOTAVAILABLE", "NOTAPPLICABLE", "NOTSPECIFIED", "UNKNOWN", "DEFAULT", "DEFAULTSTRING", "EMPTY", "INVALID", "GENERIC"),
        *("SERIAL", "SERIALNUMBER", "SERIALNO", "SN", "SNXXXXXX", "NOSERIAL", "NOSERIALNUMBER", "DISKSERIAL", "USBSERIAL", "SYSTEMSERIALNUMBER"),
        *("TOBEFILLEDBYOEM", "OEM", "TBD", "TEST", "VIRTUAL", "0", "1234", "12345", "ABCD", "ABCDE", "000001", "00000001", "000000000001", "0000000000000001"),
    }
)

#: kpartx gives the mapping of a partition the UUID of its disk behind a number: part1-mpath-3600….
_MAPPED_PARTITION = re.compile(r"part\d+-")

#: A world wide name in hexadecimal, as udev (0x) and SCSI and NVMe in sysfs (naa., eui.) write it.
_WWN = re.compile(r"(?:0x|naa\.|eui\.)[0-9a-f]+\Z", re.IGNORECASE)


def _as_identity(text: str) -> str:
    stripped = text.strip()
    return stripped.lower() if _WWN.match(stripped) else stripped


#: udev properties that distinguish one device from another.
IDENTIFYING = (
    "ID_SERIAL",
    "ID_SERIAL_SHORT",
    "ID_SCSI_SERIAL",
    "ID_WWN",
    "ID_WWN_WITH_EXTENSION",
    "ID_PART_ENTRY_UUID",
    "MD_NAME",
    "MD_UUID",
)


def node_of(name: str) -> str:
    """The device node of a kernel name. sysfs has ``!`` for the slash in the names of AoE, cciss and DAC960: ``etherd!e7.1``."""
    return "/dev/" + name.replace("!", "/")


def kernel_name(path: str, root: Path = Path("/")) -> str:
    """The name in sysfs of what a path leads to, whether it is there or not."""
    return os.path.relpath(os.path.realpath(root / path.lstrip("/")), os.path.realpath(root / "dev")).replace("/", "!")


#: What to do about a device that no path names permanently.
NO_STABLE_PATH = "it has no serial number or WWN, so set persistent: false for it"


def is_stable(path: str) -> bool:
    """Whether a path names the same device after a reboot: false for ``/dev/sda``, ``/dev/nvme0n1``, ``/dev/dm-3``, ``by-diskseq``."""
    return not _UNSTABLE.match("/" + os.path.normpath(path).lstrip("/"))


def require_stable(path: str, stable: str | None, otherwise: str) -> None:
    """
    :param stable: a path of the same device that lasts; without one, ``otherwise`` is what to do.
    :raises BadInput: if a path may be another device after a reboot.
    """
    if not is_stable(path):
        instead = f"use {stable}, which is the same device" if stable else otherwise
        raise BadInput(f"{path} may be another device after the next reboot: {instead}.", item=path)


def describe_suspended(device: BlockDevice) -> str:
    """Warnings about a device that is suspended, as a sentence."""
    return (
        f"{device.stable_path or device.path} is suspended, so that everything that is written to it or read from it waits: if no command is at work with it,"
        f" one was killed or the kernel refused its table. A run with its cache in the list resumes it; else check dmesg, and resume it with dmsetup"
        f" resume {device.dm_name}, what is below it first."
    )
