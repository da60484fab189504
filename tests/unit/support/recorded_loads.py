# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Recordings of loads that are known: traces as a host would have recorded them."""

from __future__ import annotations

import json
import typing as t

import numpy as np

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import trace as trace_files

if t.TYPE_CHECKING:
    from pathlib import Path

SECTORS = trace_format.REGION_SECTORS


def recorded(sector: t.Any, sectors: t.Any, write: t.Any, stream: t.Any = None, part: int = 1, seconds: float = 600.0, **device: t.Any) -> trace_files.Trace:
    """A trace of one device.

    :param write: whether each request is a write; ``stream``: sectors of its sequential stream; ``part``: one of so many regions is in the sample.
    :param device: what ``trace.json`` has of the device in addition.
    """
    described, requests = _recording(np.asarray(sector), np.broadcast_to(sectors, len(sector)), np.broadcast_to(write, len(sector)), stream, part, seconds)
    described["devices"][0].update(device)
    return trace_files.made_trace(described, requests, "here")


def _recording(sector: t.Any, sectors: t.Any, write: t.Any, stream: t.Any, part: int, seconds: float) -> tuple[dict[str, t.Any], t.Any]:
    found = trace_files.requests_of(bytes(trace_format.RECORD.size * len(sector))).copy()
    found["time"] = np.arange(len(sector)) * (seconds * 1e9 / len(sector))
    found["sector"], found["sectors"], found["operation"] = sector, sectors, write
    found["stream"] = sectors if stream is None else stream
    counts, sizes = {}, {}
    for operation, name in enumerate(trace_format.OPERATIONS[:2]):
        own = found[found["operation"] == operation]
        known, number = np.unique(own["sectors"], return_counts=True)
        sizes[name] = {str(512 * int(size)): int(count) for size, count in zip(known, number, strict=True)}
        sequential, unaligned = int(np.sum(own["stream"] > own["sectors"])), int(np.sum((own["sector"] | own["sectors"]) % 8 > 0))
        counts[name] = {"requests": len(own), "bytes": 512 * int(own["sectors"].sum()), "sequential": sequential, "unaligned": unaligned}
    limit = trace_format.HASHES // part
    ends = (found["sector"] // SECTORS, (found["sector"] + found["sectors"] - 1) // SECTORS)
    found = found[np.any([trace_files.region_hashes(found["device"], end) < limit for end in ends], axis=0)]
    device = {"name": "/dev/vg0/data", "bytes": 1 << 40, "counts": counts, "sizes": sizes}
    return {"schema": 1, "name": "monday", "host": "db1", "seconds": seconds, "limit": limit, "lost": 0, "devices": [device]}, found


def write(folder: Path, trace: trace_files.Trace, **changed: t.Any) -> Path:
    """The files of a trace."""
    folder.mkdir(parents=True, exist_ok=True)
    devices = [{**one.raw, "name": one.name, "bytes": one.bytes} for one in trace.devices]
    described = {"schema": 1, "name": trace.name, "host": trace.host, "seconds": trace.seconds, "lost": trace.lost, "devices": devices}
    described |= {"limit": round(trace.rate * trace_format.HASHES), **changed}
    (folder / trace_format.TRACE_FILE).write_text(json.dumps(described))
    (folder / trace_format.REQUESTS_FILE).write_bytes(trace.requests.tobytes())
    return folder


def zipf(chance: t.Any, count: int, blocks: int, skew: float) -> t.Any:
    shares = 1 / np.arange(1, blocks + 1) ** skew
    return chance.permutation(blocks)[chance.choice(blocks, count, p=shares / shares.sum())]


def _zipf(count: int, skew: float, part: int = 1) -> trace_files.Trace:
    chance = np.random.default_rng(1)
    return recorded(8 * zipf(chance, count, count // 3, skew), 8, chance.random(count) < 0.3, part=part)


def _uniform(count: int) -> trace_files.Trace:
    chance = np.random.default_rng(2)
    return recorded(32 * chance.integers(0, count // 20, count), 32, chance.random(count) < 0.5)


def _hot_and_cold(count: int) -> trace_files.Trace:
    chance = np.random.default_rng(3)
    hot = chance.random(count) < 0.9
    blocks = np.where(hot, chance.integers(0, count // 66, count), count // 66 + chance.integers(0, count, count))
    return recorded(8 * blocks, 8, chance.random(count) < 0.2)


def _streams(count: int, part: float, length: int, turn: int, skew: float, of: int, write: bool = False) -> trace_files.Trace:
    """So many of the requests in a stream of requests of ``length`` sectors, which begins anew after ``turn`` of them; the others by zipf."""
    chance = np.random.default_rng(4)
    streams = chance.random(count) < part
    place = (np.cumsum(streams) - 1) % turn
    sectors = np.where(streams, length, 8)
    others = 8 * zipf(chance, count, of, skew)
    stream = np.minimum(np.where(streams, (place + 1) * length, 8), 2**32 - 1)
    return recorded(np.where(streams, 10**8 + place * length, others), sectors, np.where(streams, write, chance.random(count) < 0.3), stream)


def _moving(count: int) -> trace_files.Trace:
    chance = np.random.default_rng(5)
    phase = np.arange(count) * 10 // count
    return recorded(8 * (phase * count // 25 + chance.integers(0, count // 12, count)), 8, chance.random(count) < 0.4)


def _sizes(count: int) -> trace_files.Trace:
    chance = np.random.default_rng(6)
    sectors = chance.choice([1, 2, 7, 8, 16, 32, 64, 128, 256], count, p=[0.05, 0.05, 0.1, 0.4, 0.1, 0.1, 0.1, 0.06, 0.04])
    write = chance.random(count) < 0.5
    return recorded(8 * zipf(chance, count, count // 10, 0.95), np.where(write, np.minimum(sectors, 32), sectors), write)


#: By name: a function of the number of requests.
LOADS: dict[str, t.Callable[[int], trace_files.Trace]] = {
    "zipf 0.8": lambda count: _zipf(count, 0.8),
    "zipf 1.1, a quarter": lambda count: _zipf(4 * count, 1.1, part=4),
    "uniform": _uniform,
    "hot and cold": _hot_and_cold,
    "scan and hot set": lambda count: _streams(count, 0.2, 128, count, 1.0, count // 10),
    "loop and zipf": lambda count: _streams(count, 0.3, 64, count // 30, 0.9, count // 7),
    "loop": lambda count: _streams(count, 1.0, 16, count // 7, 1.0, 10),
    "moving working set": _moving,
    "mixed sizes": _sizes,
    "database and log": lambda count: _streams(count, 0.35, 8, count // 13, 0.9, count // 3, write=True),
}
