# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A device that this process holds: whether it is the one that was examined, and commands whose own check would find this process.

A name or a number shows nothing: between an examination and the first write a drive can be pulled and another one get its number, a loop device get
another file, a mapping another table. What is compared is what the kernel itself shows of a device and of everything below it, so far as that cannot
change while it is one and the same device.

Sources: Documentation/ABI/stable/sysfs-block (``diskseq``, ``start``), sysfs-block-device (``vpd_pg80``, ``wwid``), sysfs-class-nvme; linux/fs.h
(BLKGETDISKSEQ, Linux 5.15); ``dmsetup table``; blkdiscard(8): util-linux 2.36 and newer open the device exclusively without ``--force``, older ones do
not know the option; nvme-format(1).
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
import struct
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR
from ansible_collections.cachefleet.storage.plugins.module_utils._device import users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import instance_of, read_attribute, real_path

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

#: linux/fs.h, ``_IOR(0x12, 128, __u64)``: the direction is in other bits on these machines.
_BLKGETDISKSEQ = 0x40081280 if os.uname().machine.startswith(("ppc", "mips", "sparc", "alpha")) else 0x80081280

#: What a device is, as a message names it, and the attributes that show it: the first that is there counts. Those of people come first.
_OF_A_DISK: t.Sequence[tuple[str, tuple[str, ...]]] = (
    ("serial number", ("serial", "device/serial")),
    ("WWN", ("wwid", "device/wwid")),
    ("model", ("device/model",)),
    ("device-mapper name", ("dm/name",)),
    ("device-mapper UUID", ("dm/uuid",)),
    ("MD UUID", ("md/uuid",)),
    ("UUID of the bcache backing device", ("bcache/backing_dev_uuid",)),
    ("offset in the backing file", ("loop/offset",)),
    ("size limit in the backing file", ("loop/sizelimit",)),
    ("connection", ("pid", "backend")),
)
_OF_A_PARTITION: t.Sequence[tuple[str, tuple[str, ...]]] = (("number as a partition", ("partition",)), ("start", ("start",)))
#: See :func:`sysfs.instance_of`.
_INSTANCE = "number that the kernel gives anew to each device"
_PARTUUID = re.compile(r"^PARTUUID=(\S+)", re.MULTILINE)
_NUMBER = re.compile(r"\d+:\d+\Z")
#: Targets of device-mapper whose arguments are where its blocks are; of the others only the devices count, as settings are arguments too.
_PLACED = frozenset({"linear", "striped", "thin"})
#: What may lose or exchange a device below it and is the same device nevertheless.
_REDUNDANT = frozenset({"raid", "mirror", "multipath"})
#: How many differences a message names.
_NAMED = 3


@frozen
class Sameness:
    """What a device is now.

    :param name: kernel name; ``disk``: of a partition, that of its disk.
    :param marks: for it and everything below it, by device node and by what it is: the value.
    """

    name: str
    disk: str = ""
    marks: t.Mapping[tuple[str, str], str] = field(default_factory=dict)

    def differences(self, later: Sameness) -> list[str]:
        """What is not as it was, each as a part of a sentence."""
        own = node_of(self.name)
        if any(path == own for path, _what in self.marks) and not any(path == own for path, _what in later.marks):
            return ["it is gone"]
        texts = []
        for place in [*self.marks, *(one for one in later.marks if one not in self.marks)]:
            before, after = self.marks.get(place), later.marks.get(place)
            if before != after:
                path, what = place
                owner = f"the {what}" if path == own else f"the {what} of {path} below it"
                texts.append(f"{owner} was {_shown(before)} and is {_shown(after)} now")
        return texts


def read_sameness(name: str, runner: Runner, root: Path = Path("/"), devices: Devices | None = None) -> Sameness:
    """What a device is now, and everything below it that its blocks are on.

    :param name: kernel name.
    :param devices: as they were read before: what their identities were read from has to be this very device.
    :raises Refused: if a device has become another one since ``devices`` was read.
    """
    reading = _Reading(runner, root)
    place = root / "sys/class/block" / name
    found = Sameness(name, real_path(place).parent.name if (place / "partition").exists() else name, reading.marks(name))
    for (path, what), instance in found.marks.items():
        known = next((one for one in devices or () if one.path == path), None) if what == _INSTANCE else None
        if known is not None and known.instance and known.instance != instance:
            raise Refused(
                f"{path} has become another device while the devices of this host were read (it was {known.instance} and is {instance} now): run again.",
                item=path,
            )
    return found


def _shown(value: str | None) -> str:
    """A text from a device as a message may have it."""
    return "".join(char if char.isprintable() else "?" for char in value) if value else "unknown"


class _Reading:
    """One reading of a device and what is below it."""

    def __init__(self, runner: Runner, root: Path) -> None:
        self.runner = runner
        self.root = root
        self._tables: t.Mapping[str, tuple[tuple[str, ...], ...]] | None = None

    def marks(self, name: str) -> dict[tuple[str, str], str]:
        found: dict[tuple[str, str], str] = {}
        seen = [name]
        for one in seen:
            place = self.root / "sys/class/block" / one
            real = real_path(place)
            is_partition = (place / "partition").exists()
            rows = self._rows(place)
            found.update({(node_of(one), what): value for what, value in self._own(one, real, rows, is_partition=is_partition) if value})
            below = [real.parent.name] if is_partition else self._below(one, place, rows)
            seen += [other for other in below if other not in seen]
        return found

    def _own(self, name: str, real: Path, rows: t.Sequence[t.Sequence[str]], *, is_partition: bool) -> t.Iterator[tuple[str, str | None]]:
        for what, attributes in _OF_A_PARTITION if is_partition else _OF_A_DISK:
            yield what, next((value for value in (read_attribute(real / attribute) for attribute in attributes) if value), None)
        if is_partition:
            partuuid = _PARTUUID.search(read_attribute(real / "uevent") or "")
            yield "PARTUUID", partuuid.group(1) if partuuid else None
        else:
            yield "unit serial number", _unit_serial(real / "device/vpd_pg80")
            unit = self._unit_below(name)
            # A path can be renamed, and lead to another file: it counts where nothing else is known.
            path = users.backing_path(self.root, name)
            yield "backing file", path if unit is None else f"{unit.kind} {unit.number or f'{unit.device}/{unit.inode}'}"
            yield _INSTANCE, instance_of(real)
        for number, row in enumerate(rows):
            yield f"row {number} of the device-mapper table", " ".join(_placement(row))
        yield "device number", read_attribute(real / "dev")
        sectors = read_attribute(real / "size")
        yield "size", f"{sectors} sectors of {SECTOR} bytes" if sectors else None

    def _below(self, name: str, place: Path, rows: t.Sequence[t.Sequence[str]]) -> list[str]:
        if (place / "md").exists() or any(row[2] in _REDUNDANT for row in rows):
            return []
        unit = self._unit_below(name)
        if unit is not None and unit.number is not None:
            return [one for one in (self._name_of(unit.number),) if one]
        return sorted(path.name for path in place.glob("slaves/*"))

    def _unit_below(self, name: str) -> users.Unit | None:
        return users.loop_backing(self.root, name).unit

    def _name_of(self, number: str) -> str | None:
        try:
            return os.path.basename(os.readlink(self.root / "sys/dev/block" / number))
        except OSError:
            return None

    def _rows(self, place: Path) -> tuple[tuple[str, ...], ...]:
        name = read_attribute(place / "dm/name")
        # Nothing is written to a mapping on a host without it: its room could not be determined.
        if not name or not self.runner.has("dmsetup"):
            return ()
        if self._tables is None:
            self._tables = parse_dm_table(self.runner.run(["dmsetup", "table"]).stdout)
        return self._tables.get(name, ())


def _placement(row: t.Sequence[str]) -> list[str]:
    """Of a row of a table: where it begins, its length, its target, and where its blocks are."""
    arguments = list(row[3:])
    if row[2] == "crypt":
        # The second is the key, or zeros in its place.
        return [*row[:3], *arguments[:1], *arguments[2:5]]
    if row[2] in _REDUNDANT:
        return [*row[:3]]
    return [*row[:3], *(word for word in arguments if row[2] in _PLACED or _NUMBER.match(word))]


def _unit_serial(page: Path) -> str | None:
    """The text of a page 80h of a SCSI device (SPC, Unit Serial Number VPD page): behind four bytes of header."""
    try:
        content = page.read_bytes()
    except OSError:
        return None
    return content[4:].decode("ascii", "replace").strip("\0\n ") or None


def require_same(path: str, examined: Sameness, runner: Runner, root: Path = Path("/"), descriptor: int | None = None) -> None:
    """:raises Refused: if a device is not the one that was examined, in one sentence that says what it was and what it is.

    :param path: as the user wrote it.
    :param descriptor: of the device, where it is held: it has to be open as that very device.
    """
    found = examined.differences(read_sameness(examined.name, runner, root))
    differences = list(dict.fromkeys([*found, *(() if descriptor is None else _of_descriptor(descriptor, examined, root))]))
    if differences:
        more = f" (and {len(differences) - _NAMED} more differences)" if len(differences) > _NAMED else ""
        raise Refused(
            f"{path} is not the device any more that was examined: {'; '.join(differences[:_NAMED])}{more}. Nothing was written to what is there now.",
            item=path,
        )


def _of_descriptor(descriptor: int, examined: Sameness, root: Path) -> t.Iterator[str]:
    """What is open, compared with what was examined: its number, its sequence number and its size."""
    status = os.fstat(descriptor)
    if not stat.S_ISBLK(status.st_mode):
        # Below another root the nodes are plain files.
        if root == Path("/"):
            yield "it was a block device and is none now"
        return
    path = node_of(examined.name)
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    before = examined.marks.get((path, "device number"))
    if number != before:
        yield f"the device number was {before or 'unknown'} and is {number} now"
    sequence, known = _sequence_of(descriptor), examined.marks.get((node_of(examined.disk), _INSTANCE), "")
    if sequence is not None and known.startswith("diskseq") and known != f"diskseq {sequence}":
        yield f"the {_INSTANCE} was {known} and is diskseq {sequence} now"
    sectors = os.lseek(descriptor, 0, os.SEEK_END) // SECTOR
    size = examined.marks.get((path, "size"))
    if size is not None and size.split(" ", 1)[0] != str(sectors):
        yield f"the size was {size} and is {sectors} sectors of {SECTOR} bytes now"


def _sequence_of(descriptor: int) -> int | None:
    """The ``diskseq`` of an open device, of a partition that of its disk; ``None`` on kernels before 5.15."""
    try:
        return int(struct.unpack("=Q", fcntl.ioctl(descriptor, _BLKGETDISKSEQ, bytes(8)))[0])
    except OSError:
        return None


def discard(runner: Runner, path: str, *, timeout: float) -> None:
    """Discard a whole device.

    :param timeout: in seconds.
    :raises CommandFailed: if it was not discarded.
    """
    completed = run_forced(runner, ["blkdiscard", path], path, timeout=timeout)
    if completed.rc:
        raise CommandFailed(f"{path} was not discarded: {completed.last_words}", item=path, completed=completed)


def run_forced(runner: Runner, argv: list[str], path: str, *, timeout: float) -> Completed:
    """With ``--force``, as this process holds the device exclusively; without it if the version of the tool does not have the option."""
    completed = runner.run([*argv, "--force"], ok=None, timeout=timeout, item=path)
    printed = f"{completed.stdout}{completed.stderr}"
    if completed.rc and "option" in printed and "force" in printed:
        return runner.run(argv, ok=None, timeout=timeout, item=path)
    return completed
