# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which share of the requests of a device a block cache cannot take, and why, from how large they are.

flashcache cuts every request at the boundaries of its blocks and caches a piece only if it is a whole block
(``flashcache_map`` of flashcache_main.c); it counts the pieces up to 16 KiB by their size. So the counts show what was
sent to it: requests that end in the middle of a block, requests that begin there, or requests that are simply small.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.frames import JUMBO, aoe_window, payload

#: Larger pieces are not counted (``size_hist`` of flashcache has 32 buckets of a sector).
LARGEST_COUNTED = 32 * SECTOR
#: What can be wrong. ``frames``: requests whose length is not a multiple of the block; ``misaligned``: whole blocks that lie
#: across two blocks of the cache; ``small_blocks``: a file system or database with smaller blocks; ``mixed``: none of these.
PATTERNS = ("none", "frames", "misaligned", "small_blocks", "mixed")

#: Shares up to which no action is required: a file system writes its journal and its superblocks in small pieces.
_NEGLIGIBLE = 0.05
#: In the staircase of frames every size has at least this part of the mean count.
_EVEN = 0.25
#: Two halves of the same requests are counted equally often but for the few requests around them.
_TWIN = 0.9


@frozen
class Diagnosis:
    """What the sizes of requests imply for a cache with blocks of ``block_size`` bytes.

    :param requests: pieces that were counted; ``request_bytes`` are their bytes.
    :param uncacheable_requests: those that are no whole block; ``uncacheable_bytes`` are their bytes.
    :param pattern: one of :data:`PATTERNS`.
    :param sentences: for users: the share, the reason, what to do. None if there is nothing to report.
    """

    block_size: int
    requests: int
    request_bytes: int
    uncacheable_requests: int
    uncacheable_bytes: int
    pattern: str = "none"
    sentences: tuple[str, ...] = ()

    @property
    def uncacheable_share(self) -> float | None:
        """The share of requests that cannot be cached, 0 to 1; None if it cannot be determined."""
        if not self.requests or self.block_size > LARGEST_COUNTED:
            return None
        return self.uncacheable_requests / self.requests

    @property
    def uncacheable_byte_share(self) -> float | None:
        """The same of bytes."""
        if not self.request_bytes or self.block_size > LARGEST_COUNTED:
            return None
        return self.uncacheable_bytes / self.request_bytes


def histogram_difference(before: t.Mapping[int, int], after: t.Mapping[int, int]) -> dict[int, int]:
    """What was counted between two readings of flashcache's histogram.

    It is one for all caches of a host and is cleared by nothing but unloading the module; if a count has fallen that has
    happened in between, and everything in ``after`` is new.
    """
    if any(after.get(size, 0) < count for size, count in before.items()):
        before = {}
    grown = {size: count - before.get(size, 0) for size, count in after.items()}
    return {size: count for size, count in sorted(grown.items()) if count}


def diagnose(histogram: t.Mapping[int, int], block_size: int) -> Diagnosis:
    """The result of flashcache's histogram.

    :param histogram: how many pieces of each size in bytes, a difference of two readings or everything since the module was loaded.
    :param block_size: of the cache, in bytes.
    """
    counted = {size: count for size, count in histogram.items() if size > 0 and count > 0}
    partial = {size: count for size, count in counted.items() if size != block_size}
    pattern = _pattern(partial, block_size, counted.get(block_size, 0))
    found = Diagnosis(
        block_size=block_size,
        requests=sum(counted.values()),
        request_bytes=sum(size * count for size, count in counted.items()),
        uncacheable_requests=sum(partial.values()),
        uncacheable_bytes=sum(size * count for size, count in partial.items()),
        pattern=pattern,
    )
    return Diagnosis(**{**vars(found), "sentences": tuple(_sentences(found, partial))})


def diagnose_average(requests: int, request_bytes: int, block_size: int) -> Diagnosis:
    """The least that must be uncacheable, from no more than a number of requests and their bytes, as ``/sys/block/*/stat`` counts them.

    Requests with fewer bytes in the mean than a block has cannot all be whole blocks.
    """
    whole = min(request_bytes // block_size, requests) if block_size else requests
    missing = requests - whole
    found = Diagnosis(block_size, requests, request_bytes, missing, request_bytes - whole * block_size if missing else 0, "mixed" if missing else "none")
    share = found.uncacheable_share
    if share is None or share <= _NEGLIGIBLE:
        return found
    mean = request_bytes / requests
    sentence = (
        f"At least {share:.0%} of {requests} requests are not whole blocks of {format_size(block_size)} and cannot be cached: a request has {mean:.0f}"
        " bytes in the mean."
    )
    return Diagnosis(**{**vars(found), "sentences": (sentence,)})


def aligned_mtu(block_size: int, limit: int = JUMBO) -> tuple[int, int] | None:
    """The MTUs with which an ATA over Ethernet frame carries whole blocks: the lowest and the highest up to ``limit``; None if there is none."""
    return aoe_window(block_size, limit) if block_size % SECTOR == 0 else None


def _pattern(partial: t.Mapping[int, int], block_size: int, whole: int) -> str:
    missed = sum(partial.values())
    if not missed or missed <= _NEGLIGIBLE * (missed + whole):
        return "none"
    sectors = range(SECTOR, block_size, SECTOR)
    counts = [partial.get(size, 0) for size in sectors]
    if len(counts) > 2 and min(counts) >= _EVEN * missed / len(counts):
        return "frames"
    if _are_twins(partial, block_size, missed):
        return "misaligned"
    sizes = [size for size, count in partial.items() if count > _NEGLIGIBLE * missed]
    # A database of 2 KiB pages sends 2 KiB, or several at once that end at the boundary of a block.
    unit = min(sizes)
    if unit < block_size and partial[unit] >= missed / 2 and all(size % unit == 0 for size in sizes):
        return "small_blocks"
    return "mixed"


def _are_twins(partial: t.Mapping[int, int], block_size: int, missed: int) -> bool:
    """Whether nearly everything is a pair of sizes that make a block together, each as often as the other."""
    for size, count in partial.items():
        other = partial.get(block_size - size, 0)
        if size < block_size / 2 and other and min(count, other) >= _TWIN * max(count, other) and count + other >= _TWIN * missed:
            return True
    return False


def _sentences(found: Diagnosis, partial: t.Mapping[int, int]) -> t.Iterator[str]:
    block = format_size(found.block_size)
    if found.block_size > LARGEST_COUNTED:
        yield (
            f"Which share of the requests can be cached cannot be determined: flashcache counts requests up to {format_size(LARGEST_COUNTED)},"
            f" and the blocks of this cache have {block}."
        )
        return
    share, bytes_share = found.uncacheable_share, found.uncacheable_byte_share
    if share is None or bytes_share is None or found.pattern == "none":
        return
    yield f"{share:.1%} of {found.requests} requests ({bytes_share:.1%} of their bytes) are not whole blocks of {block} and cannot be cached."
    if found.pattern == "frames":
        window = aligned_mtu(found.block_size)
        network = (
            f" For ATA over Ethernet set an MTU from {window[0]} to {window[1]} on both sides, which carries {payload(window[0])} bytes." if window else ""
        )
        yield (
            f"Every size from {SECTOR} to {found.block_size - SECTOR} bytes occurs about as often: what sends them works in frames whose length is not a"
            f" multiple of {block}, so that each begins a little further inside a block.{network}"
        )
    elif found.pattern == "misaligned":
        offset = min(size for size in partial if partial.get(found.block_size - size))
        yield (
            f"Nearly all come in pairs that make {block} together (such as {offset} and {found.block_size - offset} bytes): whole blocks that straddle two"
            f" blocks of the cache. Begin the partition or the logical volume on the cache at a multiple of {block}."
        )
    elif found.pattern == "small_blocks":
        unit = max(partial, key=lambda size: partial[size])
        yield f"Most of them have {unit} bytes: make the file system or the database use blocks of {block}, or create the cache with a chunk_size of {unit}."
    else:
        commonest = sorted(partial, key=lambda size: -partial[size])[:3]
        yield f"The commonest of them have {', '.join(str(size) for size in commonest)} bytes: check for direct I/O or a file system with blocks below {block}."
