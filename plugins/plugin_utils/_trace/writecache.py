# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""dm-writecache on a sampled load. Source: drivers/md/dm-writecache.c of Linux, from 5.13 on, on an SSD."""

from __future__ import annotations

import dataclasses
import math
import typing as t
from collections import deque

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome, scaled

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load

np = Library("numpy", "Reading traces")

#: Blocks per second that the slowest origin takes: random writes of one hard disk with 7,200 revolutions per minute.
HARD_DISK = 100.0


@dataclasses.dataclass(frozen=True)
class WritecacheSettings:
    """Options of the target, in percent of the blocks in use.

    :param high_watermark: writing back begins.
    :param low_watermark: writing back ends.
    :param origin_rate: blocks per second that the origin takes of what is written back: not in a trace. Without a limit no write passes the cache, and
        the interval reaches to what is served with that of a hard disk.
    """

    high_watermark: float = 50
    low_watermark: float = 45
    origin_rate: float = math.inf


def others(settings: WritecacheSettings) -> tuple[WritecacheSettings, ...]:
    """The other end of what the settings may be.

    A slow origin keeps blocks for longer, which then serve more, until the cache is full and writes pass it: either may prevail.
    """
    return (dataclasses.replace(settings, origin_rate=HARD_DISK),) if math.isinf(settings.origin_rate) else ()


def simulate(load: Load, size: int, _mode: str, settings: WritecacheSettings) -> Outcome:
    """Only writes fill the cache.

    A write of a block that is in the cache overwrites it in place and does not make it younger (``writecache_map``); otherwise it takes a free block, and
    goes to the origin if there is none. Blocks are written back in the order in which they came (``writecache_insert_entry``), and free after that.
    """
    blocks = scaled(load, size)
    begin, end = blocks * settings.high_watermark / 100, blocks * settings.low_watermark / 100
    served = bytearray(len(load.blocks))
    held = bytearray(load.distinct)
    queue: deque[int] = deque()
    around = inserted = 0
    allowed = before = 0.0
    writing, unlimited, rate = False, math.isinf(settings.origin_rate), settings.origin_rate * load.rate
    for position, (block, read, size_now, now) in enumerate(zip(load.block_list, load.read_list, load.byte_list, load.time_list, strict=True)):
        if writing:
            allowed += (now - before) * rate
            while allowed >= 1 and len(queue) >= end:
                held[queue.popleft()] = 0
                allowed -= 1
            writing = len(queue) >= end
        before = now
        if held[block]:
            served[position] = 1
        elif not read:
            if len(queue) >= blocks:
                around += size_now
                continue
            served[position] = held[block] = 1
            queue.append(block)
            inserted += 1
            if not writing and len(queue) >= begin:
                writing, allowed = not unlimited, 0.0
                while unlimited and queue and len(queue) >= end:
                    held[queue.popleft()] = 0
    absorbed = np.frombuffer(served, dtype=np.uint8)
    written = load.accesses["bytes"][~load.reads & (absorbed > 0)].sum(dtype=np.int64)
    return Outcome(absorbed, float(written), float(inserted * load.block + around))
