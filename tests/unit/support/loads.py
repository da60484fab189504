# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recorded loads that are written down request by request."""

from __future__ import annotations

import typing as t

import numpy as np

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import Load, load_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TracedDevice, region_hashes, requests_of

READ, WRITE = trace_format.READ, trace_format.WRITE
#: One request: the first block of 4 KiB, the operation, then what differs from the defaults of :func:`request`.
Step = tuple[int, int] | tuple[int, int, t.Mapping[str, int]]


def request(number: int, block: int, operation: int, *, time: int | None = None, blocks: int = 1, stream: int = 0, process: int = 1, flags: int = 0) -> bytes:
    """A record of whole blocks of 4 KiB; without a time the n-th comes after n ms."""
    at = number * 1_000_000 if time is None else time
    return trace_format.RECORD.pack(at, block * 8, blocks * 8, stream or blocks * 8, process, 0, operation, flags)


def trace_of(steps: t.Sequence[Step], *, size: int = 1 << 40, seconds: float = 0, **raw: t.Any) -> Trace:
    """All requests of one device."""
    requests = requests_of(b"".join(request(number, *step[:2], **(step[2] if len(step) > 2 else {})) for number, step in enumerate(steps)))
    counts = {name: {"requests": int((requests["operation"] == number).sum())} for number, name in enumerate(("read", "write"))}
    duration = seconds or float(requests["time"].max()) / 1e9 + 0.001
    return Trace("monday", "db1", duration, 1.0, 0, (TracedDevice("/dev/vg0/data", size, {"counts": counts, **raw}),), requests)


def sampled(trace: Trace, rate: float, device: int = 0) -> Trace:
    """What is left of a trace of one device if it is sampled; another device has another sample."""
    requests = trace.requests.copy()
    requests["device"] = device
    ends = requests["sector"], requests["sector"] + requests["sectors"] - 1
    first, last = (region_hashes(requests["device"].astype(np.uint64), end // trace_format.REGION_SECTORS) for end in ends)
    kept = np.minimum(first, last) < round(rate * trace_format.HASHES)
    nothing = {"counts": {name: {"requests": 0} for name in ("read", "write")}}
    devices = (*(TracedDevice("", 0, nothing) for _number in range(device)), *trace.devices)
    return Trace(trace.name, trace.host, trace.seconds, rate, trace.lost, devices, requests[kept])


def load(steps: t.Sequence[Step], block: int = 4096, **options: t.Any) -> Load:
    """The load of these requests."""
    return load_of(trace_of(steps, **options), block)


def reads(*blocks: int, **options: int) -> list[Step]:
    """A read of each block, in this order."""
    return [(block, READ, options) for block in blocks]


def writes(*blocks: int, **options: int) -> list[Step]:
    """A write of each block, in this order."""
    return [(block, WRITE, options) for block in blocks]
