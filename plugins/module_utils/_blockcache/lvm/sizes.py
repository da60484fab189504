# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How large the parts of a cache become: chunks, metadata, extents. Sizes in bytes.

Sources: lvmcache(7) "dm-cache chunk size" and "dm-cache metadata"; Documentation/admin-guide/device-mapper/cache.rst.
"""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import CHUNK_STEP, require_chunk_size
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB, format_size, round_up

DEFAULT_CHUNK = 64 * KIB
#: LVM takes no cache of more chunks (``allocation/cache_pool_max_chunks``).
MOST_CHUNKS = 1_000_000
#: LVM keeps the metadata of a cachevol inside it, at least 8 MiB; below this nothing useful is left for data.
SMALLEST_CACHEVOL = 16 * MIB
#: Where the first extent of a new physical volume begins unless the drive requires another alignment (pvcreate(8)).
FIRST_EXTENT = MIB


def smallest_chunk(size: int) -> int:
    """The smallest chunk that LVM accepts for so much cached data: cachevols are not raised to it by LVM itself."""
    return max(CHUNK_STEP, round_up(-(-size // MOST_CHUNKS), CHUNK_STEP))


def choose_chunk(size: int, requested: int | None, item: str | None = None) -> int:
    """The chunk size for a cache of ``size``: the requested one if it is possible, else 64 KiB or what the size demands.

    :raises BadInput: if the requested one is impossible.
    """
    low = smallest_chunk(size)
    if requested is None:
        return max(DEFAULT_CHUNK, low)
    require_chunk_size(requested, item)
    if requested < low:
        raise BadInput(
            f"{item}: chunk_size is {format_size(requested)}, and a cache of {format_size(size)} would have more than a million such chunks:"
            f" write {format_size(low)} or more, or leave chunk_size out.",
            item=item,
        )
    return requested


def metadata_size(data: int, chunk_size: int) -> int:
    """Room for the metadata of a cache pool: 4 MiB and 64 bytes a chunk (LVM requires 44), and never below its own 8 MiB."""
    return max(8 * MIB, 4 * MIB + 64 * -(-data // chunk_size))


@frozen
class Layout:
    """What is created: ``extents`` of data (a cachevol: of everything), ``metadata`` and ``chunk_size`` in bytes.

    ``footprint`` are the extents that it takes from the device, metadata and the spare that LVM keeps for repairs included.
    """

    extents: int
    metadata: int
    chunk_size: int
    footprint: int


@frozen
class Room:
    """Where a cache goes: free extents of the device, bytes of one, and the metadata spare the volume group has already."""

    free: int
    extent_size: int
    spare: int = 0


def lay_out(kind: str, room: Room, *, size: int | None, share: float, chunk_size: int | None, item: str, mirror: bool = False) -> Layout:
    """The layout of a new cache.

    :param kind: ``cachevol`` and ``writecache`` (metadata inside) or ``cachepool`` (metadata and spare beside the data).
    :param room: of each device; of a mirror the smaller one.
    :param size: of the volume, as LVM counts it; None takes ``share`` of what is free (1.0: all of it).
    :param mirror: whether LVM keeps it on two devices, which takes an extent of bookkeeping for each volume.
    :raises BadInput: if it does not fit, or the chunk size is impossible.
    """
    available = int(room.free * share)
    if kind in ("cachevol", "writecache"):
        beside = int(mirror)
        extents = -(-size // room.extent_size) if size else available - beside
        metadata = 0
        chunk = choose_chunk(extents * room.extent_size, chunk_size, item) if kind == "cachevol" else 0
        low = -(-SMALLEST_CACHEVOL // room.extent_size)
    else:
        # The metadata is sized for all that is free, so that it is never too small for what is left beside it.
        data = size or available * room.extent_size
        chunk = choose_chunk(data, chunk_size, item)
        metadata = round_up(metadata_size(data, chunk), room.extent_size)
        beside = (metadata + (metadata if room.spare < metadata else 0)) // room.extent_size + 2 * mirror
        extents = -(-size // room.extent_size) if size else available - beside
        low = 1
    if extents < low or extents + beside > room.free:
        raise BadInput(_too_small(kind, room, max(extents, low), beside, item), item=item)
    return Layout(extents, metadata, chunk, extents + beside)


def _too_small(kind: str, room: Room, extents: int, beside: int, item: str) -> str:
    needed = format_size((extents + beside) * room.extent_size)
    detail = f" ({format_size(beside * room.extent_size)} of it for metadata and LVM's spare of it)" if beside else ""
    return (
        f"{item}: a {kind} needs {needed}{detail}, and the cache device has {format_size(room.free * room.extent_size)} free:"
        " use a smaller size or free space on it."
    )


def extents_of_new_device(size: int, extent_size: int) -> int:
    """How many extents a device will have once it is a physical volume."""
    return max(size - FIRST_EXTENT, 0) // extent_size
