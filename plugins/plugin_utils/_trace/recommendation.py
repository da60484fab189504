# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cache a recorded load would pay for, or that none is worth it."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, optional_integer
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import block as block_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count, figure, share
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import size as size_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.types import MODELS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import CurvePoint
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace

np = Library("numpy", "Reading traces")

#: A cache that serves fewer requests is not worth it.
_LEAST = 0.10
#: A larger cache must serve more by this share of its growth: with twice the size, an eighth more.
_GROWTH = 0.25
#: Caches that serve as much, but for this share of the requests, are as good: the one that wears out its device least is chosen.
_EQUAL = 0.02
#: With first accesses and without them the hits may differ by so much; of a trace that is longer they would differ less.
_COLD = 0.25
#: Of a trace that has lost a larger share of its events no cache is recommended.
_LOST = 0.05
#: How much larger a cache the answer is compared with.
_LARGER = 4
_DAY = 86_400


@dataclasses.dataclass(frozen=True)
class Prices:
    """What cache devices cost and bear.

    :param per_gb: price of a GB (1e9 bytes) of a cache device, in any currency; 0 if it is not known.
    :param drive_writes: drive writes per day that the device is rated for; 0 if it is not known.
    :param per_request: what it costs in any other way to serve a request per second; 0 if it is not known. A larger cache must not cost more than that.
    """

    per_gb: float = 0.0
    drive_writes: float = 0.0
    per_request: float = 0.0


@dataclasses.dataclass(frozen=True)
class Recommendation:
    """A cache, or that none is worth it.

    :param point: the recommended one; without it no cache is recommended.
    :param sentence: the answer.
    :param rests_on: what it rests on, one sentence each.
    :param entry: an entry of ``block_cache_caches`` without its cache devices; empty if no cache is recommended, or one for several devices.
    """

    point: CurvePoint | None
    sentence: str
    rests_on: tuple[str, ...]
    entry: t.Mapping[str, t.Any]


@dataclasses.dataclass(frozen=True)
class _Load:
    """Requests per second, the share of reads, and the share of these that are the first access to their block."""

    rate: float
    reads: float
    first: float


def recommend(points: t.Sequence[CurvePoint], trace: Trace, prices: Prices = Prices()) -> Recommendation:
    """The cache at the knee of its curve, in the type, mode and block size that serve most there.

    :param points: curves of one or more sizes; those of an ideal cache are not recommended.
    """
    load = _load_of(trace)
    real = [point for point in points if point.type in MODELS]
    basis = _sizes(trace)
    if len(trace.devices) > 1:
        basis += (
            f"The cache is one for all {len(trace.devices)} devices together: their curves show a cache for each, whose file needs a recording of its own.",
        )
    if not real:
        return Recommendation(None, "No cache is recommended: there is no curve of a type that can be built.", basis, {})
    if trace.lost > _LOST * (trace.lost + load.rate * trace.seconds):
        return Recommendation(None, "No cache is recommended: too many events were lost. Record fewer devices at once.", basis, {})
    top = max(real, key=lambda point: _served(point, load))
    if _served(top, load) < _LEAST <= _warm(top, load) or _warm(top, load) - _served(top, load) > _COLD:
        sentence = f"The trace is too short to recommend a cache of {size_text(top.size)}, record for longer: {_coldness(top, load)}"
        return Recommendation(None, sentence, basis, {})
    if _served(top, load) < _LEAST:
        return Recommendation(None, f"A cache is not worth it: even {size_text(top.size)} serve only {share(_served(top, load))} of the requests.", basis, {})
    knees = [_knee(curve, load, prices) for curve in _curves(real)]
    point = _best(knees, load, prices)
    return Recommendation(point, _sentence(point, real), (*_basis(point, load, prices, knees), _coldness(point, load), *basis), _entry(point, trace))


def _load_of(trace: Trace) -> _Load:
    accesses = trace.accesses(4 * KIB)
    reading = accesses["operation"] == trace_format.READ
    first = float(reading[np.unique(accesses["block"], return_index=True)[1]].sum() / max(reading.sum(), 1))
    counts = [mapping(one.raw.get("counts")) for one in trace.devices]
    reads, writes = (sum(optional_integer(mapping(one.get(name)).get("requests")) or 0 for one in counts) for name in ("read", "write"))
    if not reads + writes:
        reads, writes = (int(number / trace.rate) for number in (reading.sum(), (~reading).sum()))
    return _Load((reads + writes) / trace.seconds, reads / max(reads + writes, 1), first)


def _served(point: CurvePoint, load: _Load) -> float:
    """The share of the requests that do not wait for the origin: without write-back every write does."""
    return load.reads * point.read_hits + (1 - load.reads) * (point.write_hits if point.mode == "writeback" else 0.0)


def _warm(point: CurvePoint, load: _Load) -> float:
    """The same if no read were the first access to its block: in a longer trace fewer are."""
    return _served(point, load) + load.reads * min(point.read_hits * load.first / max(1 - load.first, 1e-9), 1 - point.read_hits)


def _coldness(point: CurvePoint, load: _Load) -> str:
    between = f"{share(_served(point, load))} of the requests do not wait for the origin with them, {share(_warm(point, load))} without them."
    return f"{share(load.first)} of the reads were the first access to their block, which no cache serves; {between}"


def _curves(points: t.Sequence[CurvePoint]) -> list[list[CurvePoint]]:
    found: dict[tuple[str, str, int], list[CurvePoint]] = {}
    for point in sorted(points, key=lambda one: one.size):
        found.setdefault((point.type, point.mode, point.block), []).append(point)
    return list(found.values())


def _knee(curve: t.Sequence[CurvePoint], load: _Load, prices: Prices) -> CurvePoint:
    """The largest cache that is worth more than each smaller one."""
    knee = curve[0]
    for larger in curve[1:]:
        more, served = _served(larger, load) - _served(knee, load), _served(knee, load)
        if prices.per_gb and prices.per_request:
            worth = more * load.rate * prices.per_request >= (larger.size - knee.size) / 1e9 * prices.per_gb
        else:
            worth = more >= _GROWTH / 2 * np.log2(larger.size / knee.size) * max(served, 0.01)
        knee = larger if worth else knee
    return knee


def _best(knees: t.Sequence[CurvePoint], load: _Load, prices: Prices) -> CurvePoint:
    """Of those that a device bears, the one that serves most; of equal ones the smaller, then the one that writes least."""
    borne = [point for point in knees if not prices.drive_writes or _wear(point) <= prices.drive_writes] or knees
    top = max(_served(point, load) for point in borne)
    return min((point for point in borne if _served(point, load) >= top - _EQUAL), key=lambda point: (point.size, point.cache_writes))


def _wear(point: CurvePoint) -> float:
    """Drive writes per day."""
    return point.cache_writes * _DAY / point.size


def _sentence(point: CurvePoint, points: t.Sequence[CurvePoint]) -> str:
    subject, value = ("reads", point.read_hits) if "writethrough" in MODELS[point.type].modes else ("writes", point.write_hits)
    # The interval is wider downwards where a cache may be bypassed while it is congested.
    error = 100 * max(point.high - point.hits, point.hits - point.low)
    sentence = f"{size_text(point.size)} serve {count(100 * value)} ± {count(max(error, 1))} % of the {subject} as {point.type} in {point.mode}"
    same = [one for one in points if (one.type, one.mode, one.block) == (point.type, point.mode, point.block) and one.size > point.size]
    if not same:
        return f"{sentence}; no larger one was examined."
    larger = min(same, key=lambda one: abs(one.size - _LARGER * point.size))
    more = (larger.read_hits if subject == "reads" else larger.write_hits) - value
    return f"{sentence}; {figure(larger.size / point.size)} times as much adds {count(max(100 * more, 0))} points."


def _basis(point: CurvePoint, load: _Load, prices: Prices, knees: t.Sequence[CurvePoint]) -> tuple[str, ...]:
    found = [f"{share(_served(point, load))} of the requests do not wait for the origin; {share(load.reads)} of all are reads."]
    others = [
        f"{one.type} in {one.mode} with {block_text(one.block)}: {share(_served(one, load))} with {size_text(one.size)}" for one in knees if one is not point
    ]
    if others:
        found.append(f"Of the others, at the knee of their curves: {'; '.join(others)}.")
    if point.mode == "writeback":
        found.append(
            f"{share(point.saved_writes)} of the written bytes never reach the origin. Write-back needs two cache devices: some writes are only there."
        )
    wear = f"The cache is written {figure(_wear(point))} times per day"
    if prices.drive_writes:
        wear += f", and the device is rated for {figure(prices.drive_writes)}" + (": it is worn out early" if _wear(point) > prices.drive_writes else "")
    found.append(f"{wear}.")
    if prices.per_gb:
        price = point.size / 1e9 * prices.per_gb
        found.append(f"It costs {figure(price)}, and {figure(price / max(_served(point, load) * load.rate, 1e-9))} for each request per second that it serves.")
    return tuple(found)


def _sizes(trace: Trace) -> tuple[str, ...]:
    """Whether most requests are of another size than caches and benchmarks suppose."""
    counts: dict[str, int] = {}
    for device in trace.devices:
        for sizes in mapping(device.raw.get("sizes")).values():
            for size, number in mapping(sizes).items():
                counts[size] = counts.get(size, 0) + (optional_integer(number) or 0)
    total = sum(counts.values())
    other = 1 - counts.get(str(4 * KIB), 0) / total if total else 0.0
    return (f"{share(other)} of the requests are not 4 KiB.",) if other >= 0.5 else ()


def _entry(point: CurvePoint, trace: Trace) -> dict[str, t.Any]:
    if len(trace.devices) > 1:
        return {}
    device = trace.devices[0].name
    name = device.rpartition("/")[2] or "cached"
    model = MODELS[point.type]
    entry: dict[str, t.Any] = {"name": name, "origin": device or "/dev/disk/by-id/ORIGIN", "mode": point.mode, **model.entry}
    if model.size:
        entry["size"] = f"{max(point.size // MIB, 1)}M"
        entry |= {"settings": {"block_size": point.block}} if "kind" in entry else {"chunk_size": f"{point.block // KIB}K"}
    return entry | ({"mirror": True} if point.mode == "writeback" else {})
