# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A fio job whose hits in a cache and whose request sizes are those of a trace.

Accesses to a zone that fio chooses at random come back after exponentially distributed times, those of a sequential region after one pass. So the
share of accesses that have come back after so many others is a sum of known functions, whose weights are found by non-negative least squares: the
weights are the shares of zones and regions, and their times the sizes. A cache of a size holds the blocks of a window of time (Che, Tung and Wang,
Hierarchical Web Caching Systems, IEEE JSAC 2002), and the first access to a block is a miss.

Source of what fio does: its HOWTO (``random_distribution=zoned_abs``, ``bssplit``, ``rate``).
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, round_up
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_optimize
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import share
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.contents import BLOCK, DATA, DeviceContents
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.distances import last_accesses, reuse_distances
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError

#: What a fitted job may differ, 0 to 1: of the hits at any size of a cache, and of the cumulative sizes of requests.
CURVE_LIMIT, SIZE_LIMIT = 0.05, 0.03
#: Bytes after which a stream is a region of its own, and the share of accesses below which it is not worth one.
_LONG, _WORTH = trace_format.REGION, 0.02
#: Accesses that a fit needs; that are generated to check it; sizes of caches that are fitted, down to this part of the data.
_FEWEST, _MOST, _SIZES, _SMALLEST = 2000, 1_000_000, 48, 256
_ITERATIONS, _FIRM, _DEEPEST = 15, 30.0, 256
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)

#: Sizes of requests with their percentages.
Split = tuple[tuple[int, int], ...]


@dataclasses.dataclass(frozen=True)
class Part:
    """A section of the job.

    :param zones: percentages and blocks, the hottest first; none if it is sequential.
    :param blocks: of its region.
    :param rates: reads and writes per second.
    :param splits: of reads and of writes.
    """

    zones: tuple[tuple[int, int], ...]
    blocks: int
    rates: tuple[float, float]
    splits: tuple[Split, Split]


@dataclasses.dataclass(frozen=True)
class Fitted:
    """A cell of a suite for one device, and how well it fits.

    :param curve: bytes of a cache, and the share of accesses to blocks of 4 KiB that an LRU cache serves, of the trace and of the job.
    :param curve_error: the largest difference of these shares; ``size_error``: of the cumulative histograms of sizes.
    """

    name: str
    job: t.Mapping[str, t.Any]
    curve: tuple[tuple[int, float, float], ...]
    curve_error: float
    size_error: float

    @property
    def fits(self) -> bool:
        return self.curve_error <= CURVE_LIMIT and self.size_error <= SIZE_LIMIT

    @property
    def sentence(self) -> str:
        errors = f"its hits differ by at most {share(self.curve_error, 1)} of the accesses, its request sizes by at most {share(self.size_error, 1)}"
        return f"{self.name}: {errors}{'' if self.fits else ', so that it is no good substitute for the recorded load'}."


def fit(trace: Trace, device: int, found: DeviceContents) -> Fitted:
    """The job of one device.

    :raises TraceError: if its sample is too small.
    """
    accesses = trace.accesses(BLOCK, [device])
    if len(accesses) < _FEWEST:
        raise TraceError(f"{found.name}: the sample has {len(accesses)} accesses, and a fitted job needs at least {_FEWEST}: record longer, or more of it.")
    last, _order = last_accesses(accesses["block"])
    distances = reuse_distances(last)
    data = int(np.sum(last < 0))
    sizes = np.unique(np.geomspace(max(8, data // _SMALLEST), data, _SIZES).astype(np.int64))
    hits = _hits(distances, sizes)
    streams = np.flatnonzero(accesses["stream"].astype(np.int64) * 512 > _LONG)
    zones, regions = _solved(sizes, hits, len(accesses), *_passes(streams, last))
    room = found.size * trace.rate / BLOCK - sum(blocks for _share, blocks in regions)
    parts, shares, align = _parts(trace, device, zones, regions, room)
    few = min(1.0, _MOST * trace.rate / len(accesses))
    made = generated(parts, align, round(len(accesses) * few), trace.rate * few)
    # Of a smaller job a cache is as much smaller.
    job_hits = _hits(reuse_distances(last_accesses(made)[0]), np.maximum(np.round(sizes * few), 1))
    curve = tuple((int(of * BLOCK / trace.rate), float(one), float(other)) for of, one, other in zip(sizes, hits, job_hits, strict=True))
    error = max(abs(one - other) for _of, one, other in curve)
    return Fitted(name_of(found.name), _job(parts, align, trace, found), curve, error, _size_error(found, shares))


def name_of(device: str) -> str:
    """The name of the cell of a device."""
    return f"fitted-{re.sub(r'[^A-Za-z0-9_]+', '-', device.removeprefix('/dev/')).strip('-')[:60] or 'device'}"


def _hits(distances: t.Any, sizes: t.Any) -> t.Any:
    """The share of the accesses that LRU caches of so many blocks serve."""
    return np.searchsorted(np.sort(distances), sizes, side="left") / len(distances)


def _passes(streams: t.Any, last: t.Any) -> tuple[float, t.Any]:
    """The share of the accesses by long streams, and after how many accesses they come back: some of those times, and never."""
    streamed = len(streams) / len(last)
    if streamed < _WORTH:
        return 0.0, np.zeros(0)
    again = streams[last[streams] >= 0]
    times = np.quantile(again - last[again], _QUANTILES) if len(again) else []
    return streamed, np.unique([*times, float(len(last))])


def _solved(sizes: t.Any, hits: t.Any, number: int, streamed: float, passes: t.Any) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Zones and sequential regions: the share of all accesses, and blocks; the hottest first."""
    rates = np.geomspace(0.5, 1 / (8 * number), 48)
    times = np.geomspace(1, number, 600)
    wanted = np.concatenate([hits, [_FIRM * (1 - streamed), _FIRM * streamed]])
    firm = _FIRM * np.array([[1.0] * len(rates) + [0.0] * len(passes), [0.0] * len(rates) + [1.0] * len(passes)])
    held = np.hstack([(1 - np.exp(-np.outer(times, rates))) / rates, np.minimum.outer(times, passes)])
    # How long a block stays, were the blocks in the cache like those of the trace.
    time = np.minimum(np.cumsum(np.diff(sizes, prepend=0) / np.maximum(1 - hits, 1e-3)), number)
    best: tuple[float, t.Any] = (math.inf, None)
    for _round in range(_ITERATIONS):
        weights = scipy_optimize.nnls(np.vstack([_served(time, rates, passes, number), firm]), wanted)[0]
        after = np.interp(sizes, held @ weights, times)
        error = float(np.max(np.abs(_served(after, rates, passes, number) @ weights - hits)))
        best = min(best, (error, weights), key=lambda one: one[0])
        time = np.sqrt(time * after)
    weights = best[1]
    zones = [(part, part / rate) for part, rate in zip(weights, rates, strict=False) if part > 0]
    regions = [(part, part * turn) for part, turn in zip(weights[len(rates) :], passes, strict=True) if part >= _WORTH]
    lost = sum(weights[len(rates) :]) - sum(part for part, _blocks in regions)
    return zones, [(part + lost / len(regions), blocks) for part, blocks in regions]


def _served(time: t.Any, rates: t.Any, passes: t.Any, number: int) -> t.Any:
    """The share of the accesses to a zone or region that come back within a time, of so many accesses from an empty cache."""
    waits = np.outer(time, rates)
    random = (time / number)[:, None] * (1 + np.expm1(-waits) / waits) - (1 - time / number)[:, None] * np.expm1(-waits)
    return np.hstack([random, np.greater_equal.outer(time, passes) * (1 - passes / number)])


def _parts(
    trace: Trace, device: int, zones: t.Sequence[tuple[float, float]], regions: t.Sequence[tuple[float, float]], room: float
) -> tuple[list[Part], t.Any, int]:
    """The sections; the weighted sizes of all of them; bytes at whose multiples requests begin."""
    requests = trace.requests[(trace.requests["device"] == device) & (trace.requests["operation"] <= trace_format.WRITE) & (trace.requests["sectors"] > 0)]
    touched = (requests["sector"] + requests["sectors"] - 1) // trace_format.REGION_SECTORS - requests["sector"] // trace_format.REGION_SECTORS + 1
    # A request in two regions is in the sample if either of them is.
    weights = 1 / (1 - (1 - trace.rate) ** touched.astype(float)) if trace.rate < 1 else np.ones(len(requests))
    is_long = (requests["stream"].astype(np.int64) * 512 > _LONG) & bool(regions)
    align = BLOCK if np.mean(requests["sector"] % (BLOCK // 512) == 0) > 0.5 else 512
    whole = sum(part for part, _blocks in zones)
    percents = _rounded([part / whole for part, _blocks in zones])
    chosen = [(percent, percent / 100 * whole * blocks / part / trace.rate) for percent, (part, blocks) in zip(percents, zones, strict=True) if percent]
    # The coldest zone is as large as the device has room.
    before = sum(blocks for _percent, blocks in chosen[:-1])
    chosen = [*chosen[:-1], (chosen[-1][0], max(1.0, min(chosen[-1][1], room / trace.rate - before if room > 0 else math.inf)))]
    random = tuple((percent, max(1, round(blocks))) for percent, blocks in chosen)
    parts = [Part(random, sum(blocks for _percent, blocks in random), *_traffic(requests, weights, ~is_long, trace.seconds))]
    streams = sum(part for part, _blocks in regions)
    rates, splits = _traffic(requests, weights, is_long, trace.seconds)
    for part, blocks in regions:
        parts.append(Part((), max(1, round(blocks / trace.rate)), (rates[0] * part / streams, rates[1] * part / streams), splits))
    least = _WORTH / 4 * sum(sum(one.rates) for one in parts)
    return [one for one in parts if sum(one.rates) > least], (requests, weights), align


def _traffic(requests: t.Any, weights: t.Any, chosen: t.Any, seconds: float) -> tuple[tuple[float, float], tuple[Split, Split]]:
    """Rates and sizes of some of the requests."""
    found = [chosen & (requests["operation"] == operation) for operation in (trace_format.READ, trace_format.WRITE)]
    rates = tuple(float(weights[one].sum()) / seconds for one in found)
    splits = tuple(_split(requests["sectors"][one], weights[one]) for one in found)
    return t.cast(tuple[float, float], rates), t.cast(tuple[Split, Split], splits)


def _split(sectors: t.Any, weights: t.Any) -> Split:
    sizes, place = np.unique(sectors, return_inverse=True)
    if not len(sizes):
        return ()
    shares = np.bincount(place, weights=weights) / weights.sum()
    return tuple((int(size) * 512, percent) for size, percent in zip(sizes, _rounded(shares), strict=True) if percent)


def _rounded(shares: t.Sequence[float]) -> list[int]:
    """Percentages whose sums up to any place are right within half a percent."""
    sums = np.round(100 * np.cumsum(shares)).astype(int)
    return [int(one) for one in np.diff(sums, prepend=0)]


def generated(parts: t.Sequence[Part], align: int, number: int, rate: float, seed: int = 1) -> t.Any:
    """The blocks of 4 KiB that the sections access, at least ``number`` of them, as the HOWTO describes it.

    :param rate: the part of each zone and region that is generated.
    """
    chance = np.random.default_rng(seed)
    flows = np.array([one for part in parts for one in part.rates])
    means = [sum(size * percent for size, percent in split) / 100 for part in parts for split in part.splits]
    mean = max(1.0, float(np.dot(flows, means) / flows.sum() / BLOCK))
    which = chance.choice(len(flows), round(number / mean * 1.05), p=flows / flows.sum())
    starts, ends = np.zeros(len(which)), np.zeros(len(which))
    base = 0.0
    for place, part in enumerate(parts):
        mine = np.flatnonzero(which // 2 == place)
        lengths = np.zeros(len(mine))
        for direction, split in enumerate(part.splits):
            own = which[mine] % 2 == direction
            if split:
                lengths[own] = chance.choice([size for size, _percent in split], int(own.sum()), p=np.array([percent for _size, percent in split]) / 100)
        room = max(part.blocks * rate, 1.0) * BLOCK
        if part.zones:
            edges = np.cumsum([0, *(blocks * rate * BLOCK for _percent, blocks in part.zones)])
            zone = chance.choice(len(part.zones), len(mine), p=np.array([percent for percent, _blocks in part.zones]) / 100)
            begin = (edges[zone] + chance.random(len(mine)) * np.diff(edges)[zone]) // align * align
        else:
            begin = (np.cumsum(lengths) - lengths) % room
        starts[mine] = base + begin
        ends[mine] = base + begin + lengths
        base += -(-room // BLOCK) * BLOCK + _LONG
    first, last = (starts // BLOCK).astype(np.int64), ((ends - 1) // BLOCK).astype(np.int64)
    count = last - first + 1
    request = np.repeat(np.arange(len(which)), count)
    return (first[request] + np.arange(len(request)) - np.repeat(np.cumsum(count) - count, count))[:number]


def _size_error(found: DeviceContents, sample: t.Any) -> float:
    """Between what was counted, and what the job has."""
    requests, weights = sample
    total, error = weights.sum(), 0.0
    for operation, name in enumerate(DATA):
        counted, chosen = found.sizes[name], requests["operation"] == operation
        whole = sum(counted.values()) or found.counts[name].requests
        split = _split(requests["sectors"][chosen], weights[chosen])
        below = 0
        for size in sorted({*counted, *(size for size, _percent in split)}):
            below += counted.get(size, 0)
            made = sum(percent for of, percent in split if of <= size) / 100
            error = max(error, abs(below / whole - made) if whole and counted and total else 0.0)
    return error


def _job(parts: t.Sequence[Part], align: int, trace: Trace, found: DeviceContents) -> dict[str, t.Any]:
    """As a suite has it."""
    rate = sum(sum(one.rates) for one in parts)
    depth = max(1, min(_DEEPEST, math.ceil(rate * (found.mean_latency or 0) / 1e9))) if found.mean_latency else 32
    jobs, start = [], 0
    flushes, writes = found.counts["flush"].requests, found.counts["write"].requests
    for place, part in enumerate(parts):
        reads, written = part.rates
        kind = "rw" if reads and written else "read" if reads else "write"
        job: dict[str, t.Any] = {"name": f"stream-{place}" if not part.zones else "random", "rw": kind if not part.zones else f"rand{kind}"}
        job["bssplit"] = ",".join(
            ":".join(f"{_size(size)}/{percent}" for size, percent in split or part.splits[not of]) for of, split in enumerate(part.splits)
        )
        # rate_iops would count every request as one of the smallest size.
        means = (sum(size * percent for size, percent in split) / 100 for split in part.splits)
        job["rate"] = ",".join(str(max(512, round(one * mean))) for one, mean in zip(part.rates, means, strict=True) if one)
        if part.zones:
            job["blockalign"] = align
            job["random_distribution"] = "zoned_abs:" + ":".join(f"{percent}/{_size(blocks * BLOCK)}" for percent, blocks in part.zones)
        if flushes and written and writes:
            job["fsync"] = max(1, round(writes / flushes))
        # fio refuses zones that end closer to the end of the region than a request is large.
        length = part.blocks * BLOCK + (round_up(max(size for split in part.splits for size, _percent in split), BLOCK) if part.zones else 0)
        jobs.append({**job, "offset": start, "size": length})
        start += length
    options = {"ioengine": "libaio", "direct": 1, "iodepth": depth, "norandommap": 1, "randrepeat": 0, "time_based": 1, "runtime": max(1, round(trace.seconds))}
    return {"global": options, "jobs": jobs}


def _size(number: int) -> str:
    return f"{number // KIB}k" if number % KIB == 0 else str(number)
