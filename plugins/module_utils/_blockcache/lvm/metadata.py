# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metadata of a cache that does not run, read from the physical volume on which it lies.

If the power fails while LVM attaches a cache, the kernel may have formatted the metadata and written nothing into it. cache_check takes that
for damage, and LVM does not activate the volume at the next boot. The number of cache blocks in the superblock tells the two apart: the kernel
sets it with the first commit, and no block is dirty before its mapping was committed.

Source: ``struct cache_disk_superblock`` of drivers/md/dm-cache-metadata.c, little-endian and packed; seen with lvm2 2.03.16 and kernel 6.1.
"""

from __future__ import annotations

import struct
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import GONE
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.report import LogicalVolume
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.state import LvmState

#: Bytes of the superblock, with which the metadata begin.
SUPERBLOCK = 4096
#: What it has at :data:`_MAGIC_AT`, and where the number of cache blocks is.
MAGIC = 0o6142003
_MAGIC_AT, _BLOCKS_AT = 32, 240


@frozen
class Place:
    """Where metadata begin: a device path as LVM reports it, and an offset in bytes."""

    path: str
    offset: int


def cache_blocks(superblock: bytes) -> int | None:
    """The number of blocks of a cache; None if this is no superblock of dm-cache."""
    if len(superblock) < _BLOCKS_AT + 4 or struct.unpack_from("<Q", superblock, _MAGIC_AT) != (MAGIC,):
        return None
    return int(struct.unpack_from("<I", superblock, _BLOCKS_AT)[0])


def place_of(state: LvmState, cached: LogicalVolume) -> Place | None:
    """Where the metadata of a cache begin, on the first side of a mirror; None for a writecache, and where it is not known."""
    pool = state.pool_of(cached)
    if pool is None or cached.writecache:
        return None
    # A cachevol begins with its metadata.
    volume = state.volume(pool.vg, f"{pool.name}_cmeta") if pool.segtype == "cache-pool" else pool
    while volume is not None and volume.devices and volume.devices[0] != GONE:
        below = state.volume(volume.vg, volume.devices[0])
        if below is None:
            return _on_device(state, volume)
        volume = below
    return None


def unused(state: LvmState, names: t.Container[str] | None, root: Path) -> frozenset[str]:
    """The full names of those cached volumes that are not active because their cache was never in use.

    :param names: the full names of those that are looked at, or None for all.
    """
    found = set()
    for cached in state.volumes:
        if not cached.cached or cached.active or cached.suspended or cached.partial or (names is not None and cached.full_name not in names):
            continue
        place = place_of(state, cached)
        if place is not None and _read_blocks(root / place.path.lstrip("/"), place.offset) == 0:
            found.add(cached.full_name)
    return frozenset(found)


def _on_device(state: LvmState, volume: LogicalVolume) -> Place | None:
    physical = next((pv for pv in state.physical if pv.path == volume.devices[0] and not pv.missing), None)
    if physical is None or physical.data_start is None or not physical.extent_size or volume.first_extent is None:
        return None
    return Place(physical.path, physical.data_start + volume.first_extent * physical.extent_size)


def _read_blocks(node: Path, offset: int) -> int | None:
    try:
        return cache_blocks(contents.read(node, contents.Extent(offset, SUPERBLOCK)))
    except OSError:
        return None
