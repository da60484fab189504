# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The files of a trace: what a host writes and the controller reads.

``trace.json`` describes the recording and has what was counted over all requests. ``requests.bin`` has one record for each sampled request.

Reuse distances need every access to a block, but not every block: a request is sampled if the hash of one of its *regions* is below the
limit of the trace. A region is larger than any block of a cache that is modelled, so that a sampled block is sampled whole.
Source of the method: Waldspurger et al., Efficient MRC Construction with SHARDS, FAST 2015.
"""

from __future__ import annotations

import struct

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB

TRACE_FILE, REQUESTS_FILE = "trace.json", "requests.bin"
#: Of both files.
SCHEMA = 1

#: Bytes of a region, and the sectors of 512 bytes in it.
REGION = MIB
REGION_SECTORS = REGION // 512

#: One request, little-endian, 32 bytes: nanoseconds since the start; first sector; sectors; sectors of the sequential stream that ends with this
#: request, itself included; ID of the process (0: not known); index of the device in ``trace.json``; operation; flags.
RECORD = struct.Struct("<QQIIIHBB")
FIELDS = ("time", "sector", "sectors", "stream", "process", "device", "operation", "flags")

READ, WRITE, FLUSH, DISCARD = range(4)
OPERATIONS = ("read", "write", "flush", "discard")
#: Flags of a record: forced unit access, synchronous, metadata, read-ahead.
FUA, SYNC, META, AHEAD = 1, 2, 4, 8

#: Hashes are below this. A region is sampled if its hash is below the ``limit`` of the trace, so that ``limit / HASHES`` of all regions are.
HASHES = 1 << 32
_MASK = (1 << 64) - 1
#: Odd constants of the finalizer of MurmurHash3 (public domain), and 2**64 divided by the golden ratio.
MIX_1, MIX_2, GOLDEN = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 0x9E3779B97F4A7C15


def region_hash(device: int, region: int) -> int:
    """Below :data:`HASHES`; the controller has the same function for arrays.

    :param device: its index in ``trace.json``.
    :param region: the first sector divided by :data:`REGION_SECTORS`.
    """
    mixed = (region + (device + 1) * GOLDEN) & _MASK
    mixed = ((mixed ^ (mixed >> 33)) * MIX_1) & _MASK
    mixed = ((mixed ^ (mixed >> 33)) * MIX_2) & _MASK
    return (mixed ^ (mixed >> 33)) >> 32
