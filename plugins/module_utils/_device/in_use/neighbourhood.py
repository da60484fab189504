# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is below, above and beside a block device, and who uses any of that: holders, loop devices, exports, open files.

Sources: sysfs (Documentation/ABI/stable/sysfs-block: ``holders``, ``slaves``, ``start`` and ``size`` of a partition in sectors of 512), the
loop driver (loop(4)), proc(5), and ``dmsetup table``, whose rows give what a mapping uses of each device below it (Documentation/admin-guide/
device-mapper: linear, striped, dm-crypt).
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table
from ansible_collections.cachefleet.storage.plugins.module_utils._device.enhanceio_devices import read_enhanceio_devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.exports import exported_units
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import OpenFiles, open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_number
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: The list of processes is read this often: udev and scanners hold a device for a moment.
_ATTEMPTS = 3
_PAUSE = 0.3
#: So often where only udev reads it, as it does after every write to it: on a slow host that takes seconds.
_UDEV_ATTEMPTS = 30


@frozen
class Openers:
    """Who has a device open.

    :param writers: processes that have it, or anything below, above or beside it, open for writing.
    :param readers: processes that have the device itself open for reading.
    :param unseen: how many processes could not be examined.
    :param opened: how often device-mapper counts it as open, where no process was found.
    :param unknown: what could not be seen, so that there may be others; each as a sentence.
    """

    writers: tuple[str, ...] = ()
    readers: tuple[str, ...] = ()
    unseen: int = 0
    opened: int = 0
    unknown: tuple[str, ...] = ()


class Neighbourhood:
    """The block devices of a host, and what each of them shares with others."""

    def __init__(self, devices: Devices, runner: Runner, root: Path = Path("/")) -> None:
        self.devices = devices
        self.runner = runner
        self.root = root
        self.names = {unit: one.name for one in devices for unit in self.units_of(one)}
        #: What could not be seen of this host, each as a sentence: it may be a use of any device or file.
        self.unknown: list[str] = []
        # What each loop device lies on: it leaves no holder there, and an exclusive open would not detect it.
        backing = {name: users.loop_backing(root, name) for name in self._loop_names()}
        self.backing = {name: one.unit for name, one in backing.items()}
        self.unknown += [one.problem for one in backing.values() if one.problem]
        self.loops = {name: self.names.get(unit) if unit is not None else None for name, unit in self.backing.items()}
        self.exported = exported_units(root, self.unknown)
        self.exports = [(self.names.get(unit), exporter) for unit, exporter in self.exported if unit is not None]
        #: Who has any device open, once it was read: on a host with many processes this takes long.
        self._read: OpenFiles | None = None
        self.swaps = users.swap_units(root, self.unknown)
        self.mounts = users.mounts_of_all(root, self.unknown)

    def _loop_names(self) -> list[str]:
        """Of all loop devices that the kernel has: one without a number of its own is not among the devices."""
        try:
            return sorted(name for name in os.listdir(self.root / "sys/class/block") if name.startswith("loop") and name[4:].isdigit())
        except OSError as error:
            if users.is_missing_below(self.root, error):
                return []
            self.unknown.append(f"the block devices of this host cannot be listed ({error.strerror}: {error.filename}): mount sysfs on /sys")
            return []

    def units_of(self, device: BlockDevice) -> t.Iterator[Unit]:
        major, _colon, minor = device.number.partition(":")
        if major.isdigit() and minor.isdigit():
            yield Unit("block", os.makedev(int(major), int(minor)))
        # Below another root the nodes are plain files.
        node = unit_of(self.root / device.path.lstrip("/")) if self.root != Path("/") else None
        if node is not None:
            yield node

    def exporters(self, device: BlockDevice) -> tuple[str, ...]:
        """By what a device is given to other hosts."""
        return tuple(dict.fromkeys(exporter for name, exporter in self.exports if name == device.name))

    def below(self, device: BlockDevice) -> list[BlockDevice]:
        names = [device.parent] if device.parent else [*device.slaves, self.loops.get(device.name) or ""]
        return [one for one in map(self.devices.get, names) if one is not None]

    def above(self, device: BlockDevice) -> list[BlockDevice]:
        """Everything built on a device, nearest first: partitions, holders, loop devices over it, and theirs."""
        found: dict[str, BlockDevice] = {}
        queue = [device]
        while queue:
            one = queue.pop(0)
            for name in (*one.partitions, *one.holders, *self.loops_over(one)):
                above = self.devices.get(name)
                if above is not None and name not in found and name != device.name:
                    found[name] = above
                    queue.append(above)
        return list(found.values())

    def loops_over(self, device: BlockDevice) -> list[str]:
        return [loop for loop, below in self.loops.items() if below == device.name]

    def stack(self, device: BlockDevice) -> dict[str, BlockDevice]:
        """A device and everything below it, loop devices too, by name."""
        found: dict[str, BlockDevice] = {}
        queue = [device]
        while queue:
            one = queue.pop(0)
            if one.name not in found:
                found[one.name] = one
                queue += self.below(one)
        return found

    def same_storage(self, device: BlockDevice) -> list[BlockDevice]:
        """Other block devices with the same bytes, or some of them, and what is on those.

        These are paths with one WWN, loop devices on one file, and partitions and mappings that overlap.
        """
        disks = [one for one in (device, *self.devices.parents(device)) if one.kind in ("disk", "loop")]
        known = {one.name for disk in disks for one in (disk, *self.above(disk))} | {device.name}
        found: dict[str, BlockDevice] = {}
        for disk in disks:
            file = self._storage_of(disk)
            for other in self.devices:
                same_unit = disk.kind == other.kind == "disk" and disk.wwn is not None and disk.wwn == other.wwn
                if other.name not in known and (same_unit or (file is not None and self._storage_of(other) == file)):
                    found.update({one.name: one for one in (other, *self.above(other)) if one.name not in known})
        own = {*self.stack(device), *(one.name for one in self.above(device))}
        for other in self._overlapping(device):
            found.update({one.name: one for one in (other, *self.above(other)) if one.name not in own})
        return list(found.values())

    def _overlapping(self, device: BlockDevice) -> t.Iterator[BlockDevice]:
        """Partitions and mappings beside a device, or beside one below it, that have a part of it: a BSD slice in a partition, for example."""
        for one in self.stack(device).values():
            for base in self.below(one):
                for name in (*base.partitions, *base.holders):
                    other = self.devices.get(name)
                    if other is not None and name != one.name and _overlap(self._ranges(one, base), self._ranges(other, base)):
                        yield other

    def _ranges(self, device: BlockDevice, base: BlockDevice) -> list[tuple[int, int]]:
        """Where a partition or a mapping lies on a device directly below it, from and to, in sectors of 512; empty if that is not known."""
        if device.kind == "partition":
            folder = self.root / "sys/class/block" / device.name
            start, length = read_number(folder / "start"), read_number(folder / "size")
            return [] if start is None or length is None else [(start, start + length)]
        rows = self._tables.get(device.dm_name, ()) if device.dm_name else ()
        return [(start, start + length) for row in rows for number, start, length in _areas(row) if number == base.number]

    @functools.cached_property
    def _tables(self) -> t.Mapping[str, tuple[tuple[str, ...], ...]]:
        if not self.runner.has("dmsetup"):
            return {}
        completed = self.runner.run(["dmsetup", "table"], ok=None)
        if completed.rc:
            self.unknown.append(f"which mappings share storage cannot be read ({completed.last_words}): check 'dmsetup table'")
        return parse_dm_table(completed.stdout)

    def _storage_of(self, device: BlockDevice) -> Unit | str | None:
        """What a loop device lies on; its path where nothing else is known."""
        return (self.backing.get(device.name) or users.backing_path(self.root, device.name)) if device.kind == "loop" else None

    def around(self, device: BlockDevice) -> dict[str, BlockDevice]:
        """A device and its whole disk, with everything below, above and beside it, by name."""
        whole = self.devices.get(device.parent) if device.parent else None
        found = {**self.stack(device), **({whole.name: whole} if whole is not None else {})}
        found.update({one.name: one for one in (*self.above(device), *self.same_storage(device))})
        return found

    # -- who has it open

    def openers(self, device: BlockDevice, pause: t.Callable[[float], None] = time.sleep) -> Openers:
        """Who has a device open, and who has anything around it open for writing."""
        units = {unit: one.name for one in self.around(device).values() for unit in self.units_of(one)}
        for attempt in range(_UDEV_ATTEMPTS):
            if attempt:
                pause(_PAUSE)
            found = self._openers(device, units, self._search(device, pause, again=attempt > 0))
            is_only_udev = found.readers and not found.writers and all("udev" in reader for reader in found.readers)
            if not (found.writers or found.readers or found.opened) or (attempt + 1 >= _ATTEMPTS and not is_only_udev):
                break
        return found

    def openers_of_file(self, path: str, unit: Unit, *, mapped: bool = True) -> OpenFiles:
        """Who has a file open; ``unknown`` is what could not be seen."""
        found = open_files(self.root, {unit}, path, unit, mapped=mapped)
        return OpenFiles(found.found, found.unreadable, (*self.unknown, *found.unknown))

    def _openers(self, device: BlockDevice, units: t.Mapping[Unit, str], files: OpenFiles) -> Openers:
        rows = [(name, row) for unit, name in units.items() for row in files.of(unit)]
        writers = tuple(dict.fromkeys(str(row) for _name, row in rows if row.writing))
        readers = tuple(dict.fromkeys(str(row) for name, row in rows if not row.writing and name == device.name))
        opened = 0 if writers or readers else _open_count(device, self.runner)
        unread = () if opened is not None else (f"how often {device.path} is open cannot be read: check 'dmsetup info {device.dm_name}'",)
        if opened:
            opened -= min(opened, self._opens_of_enhanceio(device))
        return Openers(writers, readers, files.unreadable, opened or 0, (*self.unknown, *self._unseen_holders(device), *files.unknown, *unread))

    def _opens_of_enhanceio(self, device: BlockDevice) -> int:
        """How many running EnhanceIO caches have a device as their origin: the driver has it open once for each."""
        found = 0
        for paths in read_enhanceio_devices(self.root).values():
            with contextlib.suppress(DeviceMissing):
                found += "src_name" in paths and self.devices.resolve(paths["src_name"]).name == device.name
        return found

    def _search(self, device: BlockDevice, pause: t.Callable[[float], None], *, again: bool) -> OpenFiles:
        """The processes are read once for all devices; each device has a control of its own."""
        known = None if again else self._read
        node = next(self.units_of(device), None)
        found = open_files(self.root, set(self.names), str(self.root / device.path.lstrip("/")), node, pause=pause, control_only=known is not None)
        if known is None:
            self._read = found
            return found
        return OpenFiles(known.found, known.unreadable, tuple(dict.fromkeys((*known.unknown, *found.unknown))))

    def _unseen_holders(self, device: BlockDevice) -> t.Iterator[str]:
        for one in (device, *self.above(device)):
            place = self.root / "sys/class/block" / one.name
            if self.root == Path("/") and not (place / "holders").is_dir():
                yield f"what is built on {one.path} cannot be determined, because {place}/holders is not there: mount sysfs on /sys"


def _overlap(some: t.Sequence[tuple[int, int]], others: t.Sequence[tuple[int, int]]) -> bool:
    return any(start < other_end and other_start < end for start, end in some for other_start, other_end in others)


def _areas(row: t.Sequence[str]) -> t.Iterator[tuple[str, int, int]]:
    """What a row of a table uses of each device below, as device number, start and length; nothing for targets other than these three."""
    length, target, arguments = int(row[1]), row[2], row[3:]
    areas = {"linear": arguments[:2], "crypt": arguments[3:5], "striped": arguments[2:]}.get(target, ())
    stripes = int(arguments[0]) if target == "striped" else 1
    for number, start in zip(areas[::2], areas[1::2]):
        yield number, int(start), length // stripes


def _open_count(device: BlockDevice, runner: Runner) -> int | None:
    """How often a device is open according to device-mapper: a user inside the kernel leaves no holder and has no process (dmsetup(8), info).

    ``None`` if that cannot be read.
    """
    if device.dm_name is None or device.holders or device.mountpoints or not runner.has("dmsetup"):
        return 0
    major, _colon, minor = device.number.partition(":")
    answer = runner.run(["dmsetup", "info", "--columns", "--noheadings", "--options", "open", "--major", major, "--minor", minor], ok=None).stdout.strip()
    return int(answer) if answer.isdigit() else None
