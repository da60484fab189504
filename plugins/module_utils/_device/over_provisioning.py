# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much of an SSD is left to itself: sectors hidden from the host, space in no partition, capacity in no namespace.

Sources: hdparm(8) ``-N`` (ATA host protected area, or accessible maximum address); ``/sys/class/block/*/start`` and ``size`` in
sectors of 512 bytes; NVM Express base specification, Identify Controller ``tnvmcap`` and ``unvmcap`` in bytes.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.wear import DriveHealth

_MAX_SECTORS = re.compile(r"^\s*max sectors\s*=\s*(\d+)/(\d+)\s*,\s*(.+)$", re.MULTILINE)
#: What hdparm prints beside numbers that mean nothing, with exit status 0.
_DOUBTFUL = ("seems invalid", "bad/missing sense data")


@frozen
class MaxSectors:
    """Addressable and native sectors of an ATA drive, in its logical blocks."""

    visible: int
    native: int


def parse_max_sectors(stdout: str, stderr: str = "") -> MaxSectors | None:
    """The output of ``hdparm -N``; None if the drive has no such setting or what was printed cannot be true.

    Bridges and RAID volumes answer ``0/1, HPA is enabled`` and exit status 0.
    """
    match = _MAX_SECTORS.search(stdout)
    if match is None or any(words in text for words in _DOUBTFUL for text in (match.group(3), stderr)):
        return None
    visible, native = int(match.group(1)), int(match.group(2))
    return MaxSectors(visible, native) if 0 < visible <= native else None


def read_max_sectors(runner: Runner, device: BlockDevice) -> MaxSectors | None:
    """What a SATA drive reports; None if that does not fit its size.

    :raises ToolMissing: without hdparm.
    """
    completed = runner.run(["hdparm", "-N", device.path], ok=None, item=device.path)
    found = parse_max_sectors(completed.stdout, completed.stderr)
    return found if found is not None and found.native * device.logical_block >= device.size else None


@frozen
class Reserve:
    """What of one SSD no data will ever be written to. Sizes in bytes; None is "not known".

    :param size: the drive as seen by the host.
    :param native: the drive without anything hidden.
    :param hidden: taken out of the drive's size by ``hdparm -N``.
    :param tail: behind the last partition; None if the drive is used whole or not at all.
    :param unallocated: NVMe capacity that is in no namespace.
    :param reserved: all of these together, ``percent`` of the native size.
    """

    name: str
    path: str
    size: int
    native: int
    hidden: int | None = None
    tail: int | None = None
    unallocated: int | None = None

    @property
    def reserved(self) -> int:
        return sum(part for part in (self.hidden, self.tail, self.unallocated) if part)

    @property
    def percent(self) -> float:
        return round(100 * self.reserved / self.native, 1) if self.native else 0.0

    def to_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "reserved": self.reserved, "percent": self.percent}


def read_reserves(disks: t.Iterable[BlockDevice], health: t.Iterable[DriveHealth], runner: Runner, root: Path = Path("/")) -> tuple[list[Reserve], list[str]]:
    """The reserve of every SSD, and a sentence for what could not be read; one ``hdparm`` per SATA SSD.

    :param health: what is known of the same drives, for the capacity of NVMe drives.
    """
    reported = {drive.name: drive for drive in health if drive.device_type is None}
    reserves, problems = [], []
    for disk in disks:
        if disk.rotational is not False:
            continue
        sectors = None
        if disk.transport == "sata":
            try:
                sectors = read_max_sectors(runner, disk)
            except ToolMissing as error:
                problems.append(f"{error.message.rstrip('.')}; without it, hidden sectors of SATA drives are not detected.")
            except StorageError as error:
                problems.append(error.message)
        reserves.append(_reserve(disk, sectors, reported.get(disk.name), root))
    return reserves, list(dict.fromkeys(problems))


def _reserve(disk: BlockDevice, sectors: MaxSectors | None, health: DriveHealth | None, root: Path) -> Reserve:
    hidden = (sectors.native - sectors.visible) * disk.logical_block if sectors is not None else None
    unallocated = health.unallocated if health is not None and health.capacity else None
    native = disk.size + (unallocated or 0)
    if sectors is not None:
        native = sectors.native * disk.logical_block
    return Reserve(disk.name, disk.stable_path or disk.path, disk.size, native, hidden, tail_of(disk, root), unallocated)


def tail_of(disk: BlockDevice, root: Path = Path("/")) -> int | None:
    """Bytes behind the last partition; None without partitions."""
    ends = []
    for name in disk.partitions:
        folder = root / "sys/class/block" / name
        try:
            ends.append((int((folder / "start").read_text()) + int((folder / "size").read_text())) * SECTOR)
        except (OSError, ValueError):
            return None
    return max(disk.size - max(ends), 0) if ends else None
