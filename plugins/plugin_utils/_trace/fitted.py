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
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import load_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError

#: What a fitted job may differ, 0 to 1: of the hits at any size of a cache, and of the cumulative sizes of requests.
CURVE_LIMIT, SIZE_LIMIT = 0.05, 0.03
#: The curve of a loop is a cliff: by so much of the size of a cache it may be elsewhere.
_NEAR = 0.02
#: Bytes after which a stream is a region of its own, and the share of accesses below which it is not worth one.
_LONG, _WORTH = trace_format.REGION, 0.02
#: Accesses that a fit needs; that are generated to check it; sizes of caches that are fitted, down to this part of the data.
_FEWEST, _MOST, _SIZES, _SMALLEST = 2000, 1_000_000, 48, 256
_ITERATIONS, _FIRM, _DEEPEST = 8, 30.0, 256

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
    :param curve_error: the largest difference of these shares, of a cache that is up to 2 % smaller or larger.
    :param size_error: of the cumulative histograms of sizes.
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
    load = load_of(trace, BLOCK, [device])
    accesses, weights = load.accesses, load.weights
    number = len(accesses)
    if number < _FEWEST:
        raise TraceError(f"{found.name}: the sample has {number} accesses, and a fitted job needs at least {_FEWEST}: record longer, or more of it.")
    last, _order = last_accesses(accesses["block"])
    data = int(np.sum(last < 0))
    sizes = np.unique(np.geomspace(max(8, data // _SMALLEST), data, _SIZES).astype(np.int64))
    hits = _hits(reuse_distances(last), sizes)
    requests = trace.requests[accesses["request"][load.begins]]
    # The first requests of a long stream have its first sector too.
    begin = requests["sector"] + requests["sectors"] - requests["stream"]
    is_long = np.isin(begin, begin[requests["stream"] > _LONG // 512])
    streamed = float(np.dot(weights * is_long, requests["sectors"]) / np.dot(weights, requests["sectors"]))
    passes = _passes(np.flatnonzero(accesses["stream"] > _LONG // 512), last) if streamed >= _WORTH else np.zeros(0)
    zones, regions = _solved(sizes, hits, number, found.size * trace.rate / BLOCK, streamed, passes)
    parts = list(_parts(requests, weights, is_long & bool(regions), zones, regions, trace))
    align = BLOCK if np.mean(requests["sector"] % (BLOCK // 512) == 0) > 0.5 else 512
    few = min(1.0, _MOST / number)
    made = generated(parts, align, round(number * few), trace.rate * few)
    # Of a smaller job a cache is as much smaller.
    reuse = reuse_distances(last_accesses(made)[0])
    low, job_hits, high = (_hits(reuse, np.maximum(np.round(sizes * few * scale), 1)) for scale in (1 - _NEAR, 1.0, 1 + _NEAR))
    error = float(np.max(np.maximum(hits - high, low - hits).clip(0)))
    curve = tuple((int(of * BLOCK / trace.rate), float(one), float(other)) for of, one, other in zip(sizes, hits, job_hits, strict=True))
    return Fitted(name_of(found.name, device), _job(parts, align, trace, found), curve, error, _size_error(found, requests, weights))


def name_of(device: str, place: int) -> str:
    """The name of the cell of a device; devices that differ in other characters only have their places."""
    return f"fitted-{place}-{re.sub(r'[^A-Za-z0-9_]+', '-', device.removeprefix('/dev/')).strip('-')[:60] or 'device'}"


def _hits(distances: t.Any, sizes: t.Any) -> t.Any:
    """The share of the accesses that LRU caches of so many blocks serve."""
    return np.searchsorted(np.sort(distances), sizes, side="left") / len(distances)


def _passes(streams: t.Any, last: t.Any) -> t.Any:
    """After how many accesses those of long streams come back: some of those times, and never."""
    again = streams[last[streams] >= 0]
    low, middle, high = np.quantile(again - last[again], (0.05, 0.5, 0.95)) if len(again) else [len(last)] * 3
    # One pass is not always as long as the next.
    return np.unique([middle, len(last), *(one for one in (low, high) if not 0.8 < one / middle < 1.25)])


def _solved(sizes: t.Any, hits: t.Any, number: int, room: float, streamed: float, passes: t.Any) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """Zones and sequential regions: the share of all accesses, and blocks; the hottest first. Zones are not larger than the room."""
    rates = np.geomspace(0.5, max(1 / (8 * number), 1 / room if room > 2 else 0.0), 32)
    times = np.unique([*np.geomspace(1, number, 600), *passes])
    streamed = streamed if len(passes) else 0.0
    totals = [_FIRM * (1 - streamed), _FIRM * streamed]
    firm = _FIRM * np.array([[1.0] * len(rates) + [0.0] * len(passes), [0.0] * len(rates) + [1.0] * len(passes)])
    held = np.hstack([(1 - np.exp(-np.outer(times, rates))) / rates, np.minimum.outer(times, passes)])
    # How long a block stays, were the blocks in the cache like those of the trace.
    time = np.minimum(np.cumsum(np.diff(sizes, prepend=0) / np.maximum(1 - hits, 1e-3)), number)
    best: tuple[float, t.Any] = (math.inf, None)
    emphasis = np.ones(len(hits))
    for _round in range(_ITERATIONS):
        rows = np.vstack([_served(time, rates, passes, number) * emphasis[:, None], firm])
        weights = scipy_optimize.nnls(rows, np.concatenate([hits * emphasis, totals]))[0]
        after = np.interp(sizes, held @ weights, times)
        errors = np.abs(_served(after, rates, passes, number) @ weights - hits)
        # In the middle of a cliff nothing fits: such sizes do not bend the others.
        emphasis = np.minimum(1.0, 0.02 / np.maximum(errors, 0.001))
        best = min(best, (float(np.mean(errors)), weights), key=lambda one: one[0])
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
    return np.hstack([random, np.greater_equal.outer(time, passes * 0.999) * (1 - passes / number)])


def _parts(
    requests: t.Any, weights: t.Any, is_long: t.Any, zones: t.Sequence[tuple[float, float]], regions: t.Sequence[tuple[float, float]], trace: Trace
) -> t.Iterator[Part]:
    """The sections that are worth one."""
    whole = sum(part for part, _blocks in zones)
    percents = _rounded([part / max(whole, 1e-9) for part, _blocks in zones])
    sized = [(percent, max(1, round(percent / 100 * whole * blocks / part / trace.rate))) for percent, (part, blocks) in zip(percents, zones, strict=True)]
    random = tuple(one for one in sized if one[0])
    rates, splits = _traffic(requests, weights, ~is_long, trace.seconds)
    if random and sum(rates):
        yield Part(random, sum(blocks for _percent, blocks in random), rates, splits)
    rates, splits = _traffic(requests, weights, is_long, trace.seconds)
    streams = sum(part for part, _blocks in regions)
    for part, blocks in regions:
        yield Part((), max(1, round(blocks / trace.rate)), (rates[0] * part / streams, rates[1] * part / streams), splits)


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
    sizes = [np.array([size for split in part.splits for size, _percent in split]) for part in parts]
    # Of each part, how often it has a request of each size.
    often = [np.array([rate * percent for rate, split in zip(part.rates, part.splits, strict=True) for _size, percent in split]) / 100 for part in parts]
    flows = np.array([one.sum() for one in often])
    mean = max(1.0, sum(float(np.dot(one, of)) for one, of in zip(sizes, often, strict=True)) / flows.sum() / BLOCK)
    which = chance.choice(len(parts), round(number / mean * 1.05), p=flows / flows.sum())
    starts, ends = np.zeros(len(which)), np.zeros(len(which))
    base = 0.0
    for place, part in enumerate(parts):
        mine = np.flatnonzero(which == place)
        lengths = chance.choice(sizes[place], len(mine), p=often[place] / flows[place])
        room = max(part.blocks * rate, 1.0) * BLOCK
        if part.zones:
            edges = np.cumsum([0, *(blocks * rate * BLOCK for _percent, blocks in part.zones)])
            zone = chance.choice(len(part.zones), len(mine), p=np.array([percent for percent, _blocks in part.zones]) / 100)
            begin = (edges[zone] + chance.random(len(mine)) * np.diff(edges)[zone]) // align * align
        else:
            begin = (np.cumsum(lengths) - lengths) % room
        starts[mine], ends[mine] = base + begin, base + begin + lengths
        base += -(-room // BLOCK) * BLOCK + _LONG
    first, last = (starts // BLOCK).astype(np.int64), ((ends - 1) // BLOCK).astype(np.int64)
    count = last - first + 1
    request = np.repeat(np.arange(len(which)), count)
    return (first[request] + np.arange(len(request)) - np.repeat(np.cumsum(count) - count, count))[:number]


def _size_error(found: DeviceContents, requests: t.Any, weights: t.Any) -> float:
    """Between what was counted, and what the job has."""
    errors = [0.0]
    for operation, name in enumerate(DATA):
        counted, chosen = found.sizes[name], requests["operation"] == operation
        if counted:
            split = dict(_split(requests["sectors"][chosen], weights[chosen]))
            ordered = sorted({*counted, *split})
            shares = [[one.get(size, 0) / max(sum(one.values()), 1) for size in ordered] for one in (counted, split)]
            errors.append(float(np.max(np.abs(np.subtract(*np.cumsum(shares, axis=1))))))
    return max(errors)


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
