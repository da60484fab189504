# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Space that writes to a device take from others: thin pools, snapshots and VDO volumes below or beside it.

A pool that is full fails the writes of every volume in it, and a snapshot whose store is full is lost.

Sources: Documentation/admin-guide/device-mapper/{thin-provisioning,snapshot,vdo}.rst, and ``status`` of drivers/md/dm-thin.c, dm-snap.c
and dm-vdo/dm-vdo-target.c.
"""

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices

#: A block of the metadata of a thin pool, in bytes.
_METADATA_BLOCK = 4096
#: Bytes of metadata for each new block of data: 16 in a leaf of a B-tree that may be half full, twice for copies that are being written.
_METADATA_FOR_A_BLOCK = 64
#: Blocks of a VDO volume, in bytes.
_VDO_BLOCK = 4096
#: Bytes that the store of a snapshot needs for each chunk beside the chunk (``struct disk_exception``).
_EXCEPTION = 16

_FRACTION = re.compile(r"^(\d+)/(\d+)$")


@frozen
class Room:
    """Something that writes to a target fill.

    :param what: for messages: ``the thin pool vg0/pool``.
    :param free: bytes that are left; ``None`` if that could not be determined.
    :param lost: what becomes of the others when it is full, as the rest of a sentence.
    :param unmapped: bytes of the device that have no place of their own yet; ``None``: every write may take a new place.
    """

    what: str
    free: int | None
    lost: str
    unmapped: int | None = None

    def problem(self, extent: int, grows: int | None = None) -> str | None:
        """Why writes to ``extent`` bytes may fill it; ``None`` if they cannot.

        :param grows: of a file on the device, by how much it becomes larger; ``None`` for the device itself.
        """
        needed = extent
        if self.unmapped is not None:
            needed = min(extent, self.unmapped) if grows is None else grows
        if needed == 0 or (self.free is not None and needed <= self.free):
            return None
        left = "an unknown amount" if self.free is None else format_size(self.free)
        return f"{self.what} has {left} free and the job can use {format_size(needed)} of it: {self.lost}"


@frozen
class _Mapping:
    """One device-mapper device of one target, or of several of the same type; words behind start, length and type."""

    device: BlockDevice
    target: str
    length: int
    table: t.Sequence[str]
    status: t.Sequence[str]


def rooms_below(devices: Devices, device: BlockDevice, runner: Runner) -> list[Room]:
    """Everything that writes to a device may fill, below it and beside it."""
    names = {device.name, *(one.name for one in devices.parents(device))}
    if not any(one.dm_name for one in map(devices.get, names) if one is not None):
        return []
    mappings = {one.device.name: one for one in _read_mappings(devices, runner)}
    return [room for name in sorted(names) if name in mappings for room in _rooms_of(mappings[name], mappings, runner)]


def _rooms_of(mapping: _Mapping, mappings: t.Mapping[str, _Mapping], runner: Runner) -> list[Room]:
    if mapping.target == "thin":
        return [_thin(mapping, mappings, runner)]
    if mapping.target in ("snapshot-origin", "snapshot-merge"):
        # Every snapshot of an origin gets a copy of what is overwritten there.
        below = set(mapping.device.slaves)
        return [_snapshot(one) for one in mappings.values() if one.target == "snapshot" and below & set(one.device.slaves)]
    if mapping.target == "snapshot":
        return [_snapshot(mapping)]
    return [_vdo(mapping)] if mapping.target == "vdo" else []


def _read_mappings(devices: Devices, runner: Runner) -> t.Iterator[_Mapping]:
    # Never the kind of status that flushes or waits: a pool that is out of space answers late.
    tables = parse_dm_table(runner.run(["dmsetup", "table"]).stdout)
    statuses = parse_dm_table(runner.run(["dmsetup", "status", "--noflush"]).stdout)
    for device in devices:
        rows, state_row = tables.get(device.dm_name or "", ()), statuses.get(device.dm_name or "", ())
        if rows:
            yield _Mapping(device, rows[0][2], int(rows[0][1]) * SECTOR, rows[0][3:], state_row[0][3:] if state_row else ())


def _label(device: BlockDevice) -> str:
    return device.logical_volume or device.dm_name or device.name


def _pool_label(device: BlockDevice) -> str:
    """A pool is ``vg-pool-tpool`` for device-mapper and ``vg/pool`` for its owner."""
    name = device.dm_name or device.name
    if (device.dm_uuid or "").endswith("-tpool") and name.endswith("-tpool"):
        group, _hyphen, volume = name[: -len("-tpool")].replace("--", "\0").partition("-")
        return f"{group}/{volume}".replace("\0", "-")
    return name


def _thin(mapping: _Mapping, mappings: t.Mapping[str, _Mapping], runner: Runner) -> Room:
    """Table: ``pool device id [external origin]``. Status: ``mapped sectors, highest mapped sector``."""
    pool = next((mappings[name] for name in mapping.device.slaves if name in mappings and mappings[name].target == "thin-pool"), None)
    lost = "every volume of a full pool loses writes"
    if pool is None:
        return Room(f"the thin pool of {_label(mapping.device)}", None, lost)
    has_count = bool(mapping.status) and mapping.status[0].isdigit()
    unmapped = mapping.length - int(mapping.status[0]) * SECTOR if has_count and not _shares_blocks(mapping.device, runner) else None
    return Room(f"the thin pool {_pool_label(pool.device)}", _pool_free(pool), lost, unmapped)


def _shares_blocks(device: BlockDevice, runner: Runner) -> bool:
    """Whether a thin volume may share blocks with a snapshot, which are copied when they are written.

    Only LVM reports them: its snapshots are inactive by default, and device-mapper does not list them then.
    """
    volume = device.logical_volume
    if volume is None or not runner.has("lvs"):
        return True
    group, name = volume.split("/", 1)
    completed = runner.run(["lvs", "--all", "--noheadings", "--separator", "|", "--options", "lv_name,origin", group], ok=None)
    rows = [line.strip().split("|") for line in completed.stdout.splitlines() if "|" in line]
    if completed.rc != 0 or not rows:
        return True
    return any((own.strip("[]") == name and origin) or origin.strip("[]") == name for own, origin in rows)


def _pool_free(pool: _Mapping) -> int | None:
    """Table: ``metadata data block-sectors …``. Status: ``transaction used/total (metadata) used/total (data) root mode …``."""
    if len(pool.status) < 5 or len(pool.table) < 3 or "ro" in pool.status[4:5] or "out_of_data_space" in pool.status:
        return 0 if len(pool.status) >= 5 else None
    metadata, data = _free_of(pool.status[1]), _free_of(pool.status[2])
    if metadata is None or data is None or not pool.table[2].isdigit():
        return None
    block = int(pool.table[2]) * SECTOR
    return min(data, metadata * _METADATA_BLOCK // _METADATA_FOR_A_BLOCK) * block


def _free_of(text: str) -> int | None:
    match = _FRACTION.match(text)
    return int(match.group(2)) - int(match.group(1)) if match else None


def _snapshot(mapping: _Mapping) -> Room:
    """Table: ``origin store P|N chunk-sectors``. Status: ``allocated/total metadata`` in sectors, or one word if it is lost already."""
    what, lost = f"the snapshot {_label(mapping.device)}", "a snapshot that is full is lost"
    if mapping.status and mapping.status[0] in ("Invalid", "Overflow", "Merge", "Unknown"):
        # One that is lost cannot be lost again; a merge is not for us to disturb.
        return Room(what, mapping.length if mapping.status[0] in ("Invalid", "Overflow") else None, lost)
    free = _free_of(mapping.status[0]) if mapping.status else None
    if free is None or len(mapping.table) < 4 or not mapping.table[3].isdigit():
        return Room(what, None, lost)
    chunk = int(mapping.table[3]) * SECTOR
    # One chunk of exceptions for as many chunks as fit into it, and one more for the beginning.
    chunks = max(0, free * SECTOR // chunk - 1)
    return Room(what, chunks * (chunk // _EXCEPTION) // (chunk // _EXCEPTION + 1) * chunk, lost)


def _vdo(mapping: _Mapping) -> Room:
    """Status: ``device mode recovery index compression used-blocks total-blocks``, in blocks of 4 KiB."""
    what = f"the VDO volume {_label(mapping.device)}"
    numbers = mapping.status[5:7]
    if len(numbers) < 2 or not all(word.isdigit() for word in numbers):
        return Room(what, None, "a full VDO volume loses writes")
    return Room(what, (int(numbers[1]) - int(numbers[0])) * _VDO_BLOCK, "a full VDO volume loses writes")
