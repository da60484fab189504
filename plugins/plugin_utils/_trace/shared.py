# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A copy of a trace for others: without names, and with its regions renamed by a key, so that it does not say where something is.

Offsets within a region stay, and so does what is sampled: accesses to blocks that are no larger than a region are the same. Requests are cut at the
ends of regions, because neighbouring regions are no longer neighbours; for the same reason the regions of a sample all have the same weight.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError, region_hashes

#: What is copied of a device; names, numbers and times of day are not.
_COPIED = ("bytes", "source", "counts", "sizes", "latency", "minutes")
#: Renamed are numbers of regions below 2**32: devices of 4 PiB.
_HALF, _ROUNDS = 16, 4


def scrambled(trace: Trace, key: str) -> tuple[str, bytes]:
    """The contents of ``trace.json`` and ``requests.bin``.

    :param key: whoever has it can undo the renaming; the same key renames the same regions of other traces alike.
    :raises TraceError: without a key, or for a device that is too large.
    """
    if not key:
        raise TraceError("A scrambled copy of a trace needs a key.")
    devices = [{"name": f"device-{place}", **{name: one.raw[name] for name in _COPIED if name in one.raw}} for place, one in enumerate(trace.devices)]
    described = {"schema": trace_format.SCHEMA, "name": "trace", "host": "host", "seconds": trace.seconds, "lost": trace.lost, "ended": trace.ended}
    described |= {"scrambled": True, "limit": round(trace.rate * trace_format.HASHES), "devices": devices}
    return json.dumps(described, indent=1) + "\n", _renamed(_cut(trace), key).tobytes()


def _cut(trace: Trace) -> t.Any:
    """Reads and writes, cut to the regions that are in the sample, with processes by their order."""
    found = trace.requests[(trace.requests["operation"] <= trace_format.WRITE) & (trace.requests["sectors"] > 0)]
    first, end = found["sector"] // trace_format.REGION_SECTORS, found["sector"] + found["sectors"]
    number = ((end - 1) // trace_format.REGION_SECTORS - first + 1).astype(np.int64)
    which = np.repeat(np.arange(len(found)), number)
    region = first[which] + (np.arange(len(which)) - np.repeat(np.cumsum(number) - number, number)).astype(np.uint64)
    parts = found[which]
    low = np.maximum(parts["sector"], region * trace_format.REGION_SECTORS)
    parts["sectors"] = np.minimum(end[which], (region + np.uint64(1)) * trace_format.REGION_SECTORS) - low
    parts["sector"] = low
    _known, parts["process"] = np.unique(parts["process"], return_inverse=True)
    return parts[region_hashes(parts["device"], region) < round(trace.rate / (trace.scrambled or 1.0) * trace_format.HASHES)]


def _renamed(parts: t.Any, key: str) -> t.Any:
    regions = parts["sector"] // trace_format.REGION_SECTORS
    distinct, place = np.unique(regions, return_inverse=True)
    if len(distinct) and int(distinct[-1]) >> 2 * _HALF:
        raise TraceError("Only traces of devices up to 4 PiB can be scrambled.")
    names = np.array([_permuted(int(one), key.encode()) for one in distinct], dtype=np.uint64)
    parts["sector"] = names[place] * np.uint64(trace_format.REGION_SECTORS) + parts["sector"] % trace_format.REGION_SECTORS
    return parts


def _permuted(region: int, key: bytes) -> int:
    """Another number for each, by a Feistel network: no two regions get the same."""
    left, right = region >> _HALF, region & ((1 << _HALF) - 1)
    for turn in range(_ROUNDS):
        digest = hashlib.blake2b(bytes([turn]) + right.to_bytes(2, "big"), key=hashlib.sha256(key).digest(), digest_size=2).digest()
        left, right = right, left ^ int.from_bytes(digest, "big")
    return left << _HALF | right
