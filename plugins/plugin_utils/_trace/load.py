# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The sampled accesses of a trace to blocks of one size, and what a share of the sample says of the whole load."""

from __future__ import annotations

import dataclasses
import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, optional_integer
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import TraceError, region_hashes

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace

np = Library("numpy", "Reading traces")

#: Standard errors of an interval of 95 %.
_NORMAL = 1.96
#: A device of more regions has the nominal rate everywhere: 16 TiB.
_MOST_REGIONS = 1 << 24
#: By so much the estimate may be off however long the trace is: of generated traces (benchmarks/trace-curves).
_BIAS = 0.005
#: Fewer sampled regions say nothing.
_LEAST_REGIONS = 8
#: The most accessed blocks, with this share of the requests, say what those are that the sample has too many or too few of.
_HOTTEST = 0.05


@dataclasses.dataclass(frozen=True, eq=False)
class Load:
    """Sampled accesses, by time. A request is what is sampled of it: its blocks in one sampled region or in several that follow each other.

    :param block: bytes.
    :param rate: share of the accessed regions that is sampled.
    :param regions: number of the region in which each request begins, by address, from 0.
    :param stands_for: for how many accessed regions each of these stands.
    :param accesses: of ``Trace.accesses``.
    :param blocks: number of the block of each access, from 0.
    :param reads: whether each access is a read.
    :param begins: position of the first access of each request.
    :param shares: how much of each request is sampled, at most 1.
    :param origin: bytes of the largest device; 0 if not known.
    :param total: how many reads and writes there were in all; not a number where that was not counted.
    :param hottest: whether each request begins in one of the most accessed blocks.
    """

    block: int
    rate: float
    seconds: float
    accesses: t.Any
    regions: t.Any
    stands_for: t.Any
    blocks: t.Any
    reads: t.Any
    begins: t.Any
    shares: t.Any
    origin: int
    total: tuple[float, float]
    hottest: t.Any

    @property
    def distinct(self) -> int:
        """How many blocks there are."""
        return int(self.blocks.max()) + 1

    # Python's own numbers, which the simulations go through one by one.

    @functools.cached_property
    def block_list(self) -> list[int]:
        """Number of the block of each access."""
        return self.blocks.tolist()

    @functools.cached_property
    def read_list(self) -> list[bool]:
        """Whether each access is a read."""
        return self.reads.tolist()

    @functools.cached_property
    def byte_list(self) -> list[int]:
        """Bytes of each access."""
        return self.accesses["bytes"].tolist()

    @functools.cached_property
    def time_list(self) -> list[float]:
        """Seconds since the start of each access."""
        return (self.accesses["time"] / 1e9).tolist()

    @property
    def lengths(self) -> t.Any:
        """How many accesses each request has."""
        return np.diff(self.begins, append=len(self.blocks))

    @functools.cached_property
    def weights(self) -> t.Any:
        """For how many requests each stands."""
        return self.shares * self.stands_for[self.regions]

    @property
    def block_weights(self) -> t.Any:
        """For how many blocks that of each access stands."""
        return np.repeat(self.stands_for[self.regions], self.lengths)

    @property
    def request_reads(self) -> t.Any:
        """Whether each request is a read."""
        return self.reads[self.begins]

    def whole(self, served: t.Any) -> t.Any:
        """Of each request, whether all of its accesses were served."""
        return np.minimum.reduceat(served, self.begins)


def load_of(trace: Trace, block: int, devices: t.Collection[int] = (), warm: float = 0.0) -> Load:
    """The load of some devices, or of all.

    :param warm: seconds at the beginning that only warm the cache: their requests have no weight.
    :raises TraceError: if the trace has no reads and writes.
    """
    accesses = trace.accesses(block, devices)
    if not len(accesses) or accesses["time"][-1] < warm * 1e9:
        raise TraceError(f"The trace {trace.name} of {trace.host} has no sampled reads and writes of these devices: record for longer, or sample more regions.")
    request = accesses["request"]
    begins = np.flatnonzero(np.r_[True, request[1:] != request[:-1]])
    of_trace = trace.requests[request[begins]]
    regions = _regions(accesses["block"], block)
    sampled = np.unique(regions)
    weights = _weights(trace, sampled)
    of_requests = np.searchsorted(sampled, regions[begins])
    weights = weights.mean() + _alike(np.bincount(of_requests)) * (weights - weights.mean())
    shares = np.add.reduceat(accesses["bytes"].astype(np.int64), begins) / (of_trace["sectors"].astype(np.int64) * 512)
    total = _total(trace, devices)
    if warm:
        shares[of_trace["time"] < warm * 1e9] = 0
        total = (np.nan, np.nan)
    blocks = np.unique(accesses["block"], return_inverse=True)[1].astype(np.int32)
    return Load(
        block=block,
        rate=len(sampled) / weights.sum(),
        seconds=trace.seconds,
        accesses=accesses,
        regions=of_requests,
        stands_for=weights,
        blocks=blocks,
        reads=accesses["operation"] == trace_format.READ,
        begins=begins,
        shares=shares,
        origin=max(device.bytes for device in trace.devices),
        total=total,
        hottest=_hottest(blocks)[begins],
    )


def _number(value: t.Any) -> t.Any:
    """A block or region without its device."""
    return value % np.uint64(1 << 48)


def _regions(blocks: t.Any, size: int) -> t.Any:
    """The regions of blocks, with their devices."""
    return blocks // np.uint64(1 << 48) * np.uint64(1 << 48) + _number(blocks) * np.uint64(size) // np.uint64(trace_format.REGION)


def _weights(trace: Trace, regions: t.Any) -> t.Any:
    """For how many accessed regions each sampled one stands.

    Which regions of a device are sampled follows from their hashes, accessed or not. A region stands for all that are nearer to it than to another sampled one,
    so that a hot stretch of the device has its true size, even if by chance fewer of its regions are sampled than of others. Where neighbours have nothing in
    common, that would only add noise.
    """
    weights = np.full(len(regions), 1 / trace.rate)
    devices = (regions >> np.uint64(48)).astype(np.int64)
    for device in np.unique(devices) if trace.rate < 1 and not trace.scrambled else ():
        own = np.flatnonzero(devices == device)
        accessed = _number(regions[own]).astype(np.int64)
        end = max(-(-trace.devices[device].bytes // trace_format.REGION), int(accessed[-1]) + 1)
        if end > _MOST_REGIONS:
            continue
        every = np.arange(end)
        sampled = every[region_hashes(np.full(end, device), every) < round(trace.rate * trace_format.HASHES)]
        weights[own] = np.diff(np.r_[0, (sampled[1:] + sampled[:-1] + 1) / 2, end])[np.searchsorted(sampled, accessed)]
    return weights


def _alike(requests: t.Any) -> float:
    """How much neighbouring regions have in common, 0 to 1: the root of the correlation of the logarithms of their requests."""
    heat = np.log(np.maximum(requests, 1))
    if len(heat) < 3 or not heat[1:].std() or not heat[:-1].std():
        return 0.0
    return float(np.sqrt(max(np.corrcoef(heat[1:], heat[:-1])[0, 1], 0.0)))


def _total(trace: Trace, devices: t.Collection[int]) -> tuple[float, float]:
    found = []
    for operation in ("read", "write"):
        counts = [
            mapping(mapping(one.raw.get("counts")).get(operation)).get("requests") for at, one in enumerate(trace.devices) if not devices or at in devices
        ]
        numbers = [optional_integer(one) for one in counts]
        found.append(np.nan if trace.lost or None in numbers else float(sum(one or 0 for one in numbers)))
    return found[0], found[1]


def _hottest(blocks: t.Any) -> t.Any:
    """Whether each access is one of the most accessed blocks."""
    counts = np.bincount(blocks)
    order = np.argsort(-counts, kind="stable")
    among = np.zeros(len(counts), dtype=bool)
    among[order[: int(np.searchsorted(np.cumsum(counts[order]), _HOTTEST * len(blocks))) + 1]] = True
    return among[blocks]


@dataclasses.dataclass(frozen=True)
class Share:
    """An estimated share of the requests, and half of its interval of 95 %."""

    value: float
    margin: float


def share_of(load: Load, served: t.Any, which: t.Any, total: float) -> Share:
    """The share of requests that is served, as it would be without sampling.

    If the requests of the sample stand for more or fewer than there were in all, it has too many or too few of the hottest blocks, which decide how many there
    are: the difference is served as those are. SHARDS-adj supposes that they always are.

    :param served: of each request, 0 or 1; ``which`` are those that count.
    :param total: how many there were, or not a number.
    """
    weights = np.where(which, load.weights, 0.0)
    seen = weights.sum()
    if not seen:
        return Share(0.0, 0.0)
    hits = weights @ served
    slope, count = hits / seen, seen
    if total > 0 and load.rate < 1:
        hot = weights * load.hottest
        slope, count = ((hot @ served) / hot.sum() if hot.sum() else slope), total
    share = (hits + slope * (count - seen)) / count
    # What the slope leaves unexplained in each region. The regions between two sampled ones are like these two, so that half of the square of the difference
    # of two neighbours is the variance of one.
    rest = np.bincount(load.regions, np.where(which, load.shares, 0.0) * (served - slope), len(load.stands_for))
    error = np.sqrt((1 - load.rate) * (load.stands_for[1:] * load.stands_for[:-1] * np.diff(rest) ** 2).sum() / 2) / count
    # The difference is served as the hottest or as all are, or anything in between.
    margin = np.hypot(_NORMAL * error, (slope - hits / seen) * (count - seen) / count / 2)
    margin = np.hypot(margin, _BIAS) if load.rate < 1 else margin
    unknown = load.rate < 1 and len(load.stands_for) < _LEAST_REGIONS
    return Share(float(min(max(share, 0.0), 1.0)), 1.0 if unknown else float(margin))


def scale_error(load: Load) -> float:
    """Half of the interval of 95 % of the number of blocks that were accessed in between, as a share: by so much the size of a scaled cache is uncertain."""
    if load.rate >= 1:
        return 0.0
    first, counts = np.unique(load.blocks, return_index=True, return_counts=True)[1:]
    regions = np.unique(_regions(load.accesses["block"][first], load.block), return_inverse=True)[1]
    blocks, requests = np.bincount(regions), np.bincount(regions, np.sqrt(counts))
    # As many regions of equally many requests would say as much.
    count = requests.sum() ** 2 / (requests**2).sum()
    return float(min(_NORMAL * np.sqrt((1 - load.rate) * ((blocks.std() / blocks.mean()) ** 2 / count + 2 / count**2)), 1.0))
