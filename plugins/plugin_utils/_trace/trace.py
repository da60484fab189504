# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A trace that a host has recorded, read from its folder and checked: a host is never trusted.

``trace.json`` of schema 1::

    {"schema": 1, "name": "monday", "host": "db1", "started": 1764400000.0, "seconds": 3600.0, "limit": 4294967296,
     "lost": 0, "ended": "time", "scrambled": false, "devices": [{
        "name": "/dev/vg0/data", "number": "253:3", "bytes": 107374182400, "source": "block_bio_queue",
        "counts": {"read": {"requests": 1, "bytes": 4096, "sequential": 0, "unaligned": 0}, "write": {...}, "flush": {...}, "discard": {...}},
        "sizes": {"read": {"4096": 1}, ...}, "latency": {"read": {"<midpoint of a bin of fio in ns>": 1}, ...},
        "minutes": [{"minute": 0, "read": [requests, bytes], "write": [...], "flush": [...], "discard": [...], "busiest": requests in its busiest second}],
     }]}

``lost`` are events that the kernel or the recorder dropped; ``ended`` is time, bytes, stopped, device or error, ``message`` a sentence about it.
What was not counted is missing.
"""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import read_limited
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, number, optional_integer, optional_text

np = Library("numpy", "Reading traces")

#: Bytes of the records of one trace: 32 million requests.
_LARGEST = GIB
#: Sectors of a device, and of a read or write.
_MOST_SECTORS, _MOST_MOVED = 1 << 48, 1 << 22


class TraceError(StorageError):
    """A trace that cannot be read, with the reason."""

    kind = "invalid_trace"


@dataclasses.dataclass(frozen=True)
class TracedDevice:
    """One device of a trace. ``raw`` has the counted figures as the host wrote them."""

    name: str
    bytes: int
    raw: t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True, eq=False)
class Trace:
    """A recording.

    :param seconds: how long it was recorded.
    :param rate: the sampled share of the regions, above 0 and at most 1.
    :param lost: events that are missing; ``ended``: why the recording ended, empty if that is not known.
    :param requests: a structured array with the fields of ``format.FIELDS``, by time; use :meth:`accesses`.
    :param scrambled: the sampled share if regions were renamed and requests cut to those that were sampled (``shared.py``), else 0.
    """

    name: str
    host: str
    seconds: float
    rate: float
    lost: int
    devices: tuple[TracedDevice, ...]
    requests: t.Any
    scrambled: float = 0.0
    ended: str = ""

    def accesses(self, block: int, devices: t.Collection[int] = ()) -> t.Any:
        """The sampled accesses to blocks, by time: a request on several blocks is an access to each of them.

        :param block: bytes of a block of the cache, a divisor or multiple of 4096 up to ``format.REGION``.
        :param devices: their indexes; all if empty.
        :returns: a structured array with ``time``, ``block`` (unique over devices), ``bytes``, ``stream`` (sectors), ``process``,
            ``request`` (its position in ``requests``), ``operation``, ``flags``; only reads and writes, whose blocks are in sampled regions.
        """
        chosen = (self.requests["operation"] <= trace_format.WRITE) & (self.requests["sectors"] > 0)
        if devices:
            chosen &= np.isin(self.requests["device"], list(devices))
        positions = np.flatnonzero(chosen)
        requests = self.requests[positions]
        sectors = block // 512
        first = requests["sector"] // sectors
        end = requests["sector"] + requests["sectors"]
        count = ((end - 1) // sectors - first + 1).astype(np.int64)
        request = np.repeat(np.arange(len(requests)), count)
        index = first[request] + (np.arange(len(request)) - np.repeat(np.cumsum(count) - count, count)).astype(np.uint64)
        found = np.zeros(len(request), dtype=_ACCESS)
        parts = requests[request]
        for field in ("time", "stream", "process", "operation", "flags"):
            found[field] = parts[field]
        found["request"] = positions[request]
        low, high = np.maximum(parts["sector"], index * sectors), np.minimum(end[request], (index + 1) * sectors)
        found["bytes"] = (high - low) * 512
        found["block"] = index + (parts["device"].astype(np.uint64) << np.uint64(48))
        region = index * sectors // trace_format.REGION_SECTORS
        return found[region_hashes(parts["device"], region) < round(self.rate / (self.scrambled or 1.0) * trace_format.HASHES)]


_ACCESS = [("time", "<u8"), ("block", "<u8"), *((name, "<u4") for name in ("bytes", "stream", "process", "request")), ("operation", "u1"), ("flags", "u1")]


def region_hashes(device: t.Any, region: t.Any) -> t.Any:
    """``format.region_hash`` of arrays."""
    with np.errstate(over="ignore"):
        mixed = region.astype(np.uint64) + (device.astype(np.uint64) + np.uint64(1)) * np.uint64(trace_format.GOLDEN)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(trace_format.MIX_1)
        mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(trace_format.MIX_2)
        return (mixed ^ (mixed >> np.uint64(33))) >> np.uint64(32)


def requests_of(content: bytes) -> t.Any:
    """The records of ``requests.bin``, by time. A record that was cut off at the end is left out."""
    kinds = ("<u8", "<u8", "<u4", "<u4", "<u4", "<u2", "u1", "u1")
    whole = len(content) // trace_format.RECORD.size * trace_format.RECORD.size
    found = np.frombuffer(content[:whole], dtype=list(zip(trace_format.FIELDS, kinds, strict=True)))
    return found[np.argsort(found["time"], kind="stable")]


def read_trace(folder: Path) -> Trace:
    """The trace in a folder.

    :raises TraceError: if a file is missing, damaged or contradicts itself.
    """
    try:
        described = mapping(json_text.loads(read_limited(folder / trace_format.TRACE_FILE, json_text.FIO.size), json_text.FIO))
        requests = requests_of(read_limited(folder / trace_format.REQUESTS_FILE, _LARGEST))
    except (StorageError, ValueError) as error:
        raise TraceError(f"The trace in {folder} could not be read: {error}") from None
    return made_trace(described, requests, str(folder))


def made_trace(described: t.Mapping[str, t.Any], requests: t.Any, where: str) -> Trace:
    """A trace from its description and its requests.

    :raises TraceError: as :func:`read_trace`.
    """
    if described.get("schema") != trace_format.SCHEMA:
        raise TraceError(f"The trace in {where} has schema {described.get('schema')!r}; this version reads {trace_format.SCHEMA}.")
    devices = tuple(
        TracedDevice(optional_text(one.get("name")) or "", optional_integer(one.get("bytes")) or 0, one) for one in map(mapping, described.get("devices") or [])
    )
    seconds, limit, lost = number(described.get("seconds")), optional_integer(described.get("limit")), optional_integer(described.get("lost"))
    if not seconds or seconds <= 0 or not limit or not 0 < limit <= trace_format.HASHES or lost is None or not devices:
        raise TraceError(f"The trace in {where} does not state its duration, its sampling limit, its lost events and its devices.")
    if len(requests) and (int(requests["device"].max()) >= len(devices) or int(requests["operation"].max()) >= len(trace_format.OPERATIONS)):
        raise TraceError(f"The trace in {where} has requests of a device or operation that it does not name.")
    moved = requests["operation"] <= trace_format.WRITE
    if len(requests) and (int(requests["sector"].max()) >= _MOST_SECTORS or (requests["sectors"][moved] >= _MOST_MOVED).any()):
        raise TraceError(f"The trace in {where} has requests at an offset or of a size that no device has.")
    name, host = optional_text(described.get("name")) or "", optional_text(described.get("host")) or ""
    rate, ended = limit / trace_format.HASHES, optional_text(described.get("ended")) or ""
    return Trace(name, host, seconds, rate, lost, devices, requests, rate if described.get("scrambled") is True else 0.0, ended)
