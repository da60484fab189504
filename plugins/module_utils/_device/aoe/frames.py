# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much an ATA over Ethernet frame carries at an MTU, and which MTU carries whole blocks. Pure arithmetic.

A frame carries as many whole sectors of 512 bytes as fit behind 36 bytes of headers (``struct aoe_hdr`` with the 14 bytes of
Ethernet, and ``struct aoe_atahdr``), and never more than its target accepts. The side with the lower figure wins.

Sources: ``aoecmd_cfg_rsp`` of drivers/block/aoe/aoecmd.c; ``aoe.c`` of vblade, which computes the same from its interface.
"""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import SECTOR

#: Bytes of a frame that are no data.
HEADER = 36
#: What the driver sends if not even one sector fits: two of them, since every Ethernet carries these.
LEAST_PAYLOAD = 2 * SECTOR
#: The largest usual MTU.
JUMBO = 9000
#: The page of memory and the block of most caches and file systems.
BLOCK = 4096
#: A round number is easier to read and compare.
_ROUND = 100


def payload(mtu: int) -> int:
    """The bytes of data in a full frame, if the other side takes as many.

    :param mtu: of the interface, in bytes.
    """
    return (mtu - HEADER) // SECTOR * SECTOR if mtu >= HEADER + SECTOR else LEAST_PAYLOAD


def aoe_window(block_size: int, limit: int = JUMBO) -> tuple[int, int] | None:
    """The MTUs up to ``limit`` whose frames carry the most whole blocks and nothing else: the lowest and the highest; None if there is none.

    :param block_size: in bytes.
    :raises BadInput: if it is no multiple of a sector: no frame carries a part of one.
    """
    if block_size < SECTOR or block_size % SECTOR:
        raise BadInput(f"A block of {block_size} bytes is not a multiple of a sector: give the block size of the cache in bytes, such as 4096.")
    blocks = (limit - HEADER) // block_size
    if blocks < 1:
        return None
    low = blocks * block_size + HEADER
    return low, min(low + SECTOR - 1, limit)


def best_mtu(limit: int, block_size: int = BLOCK) -> int:
    """The MTU to set: in the window, the highest that is a multiple of 100, or else the lowest.

    :param limit: the highest MTU that every interface and switch port on the way takes.
    :param block_size: of the cache, in bytes.
    :raises BadInput: if no MTU up to ``limit`` carries a whole block.
    """
    window = aoe_window(block_size, limit)
    if window is None:
        raise BadInput(
            f"No MTU up to {limit} carries a whole block of {block_size} bytes over ATA over Ethernet, the least is {block_size + HEADER}: "
            "raise the maximum, or use smaller blocks."
        )
    low, high = window
    handy = high // _ROUND * _ROUND
    return handy if handy >= low else low
