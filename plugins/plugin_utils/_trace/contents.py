# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is in a trace: sizes, alignment, mix, rates, working set, latency. Pure; every figure of a host is checked, and what was not counted is ``None``."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import request_sizes
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, optional_integer
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import amount, block, count, counted, duration, factor, share, size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import distances

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TracedDevice

#: Bytes of the blocks in which the working set is counted.
BLOCK = 4096
PERCENTS = (50.0, 90.0, 99.0, 99.9)
DATA = trace_format.OPERATIONS[:2]
#: Shares that are not reported, and how many times the mean rate the busiest second must have.
_NEGLIGIBLE, _BURST = 0.05, 3
#: Windows of a recording of less than two hours, and the most of any.
_WINDOWS, _HOUR, _MOST_WINDOWS = 12, 3600.0, 24 * 60
#: How a recording ended before its time; a recorder that was killed has left "error".
_EARLY = {
    "stopped": "was stopped before its time",
    "device": "ended when a device disappeared",
    "bytes": "ended at its limit of bytes",
    "error": "was interrupted by an error or a kill",
}


@dataclasses.dataclass(frozen=True)
class Count:
    """All requests of one operation: how many, their bytes, those behind the one before, those that do not begin and end at multiples of 4 KiB of the disk."""

    requests: int = 0
    bytes: int = 0
    sequential: int = 0
    unaligned: int = 0


@dataclasses.dataclass(frozen=True)
class Window:
    """Bytes that were accessed from ``start`` (seconds) to the next window, and since the beginning."""

    start: float
    bytes: float
    cumulative: float


@dataclasses.dataclass(frozen=True)
class DeviceContents:
    """One device.

    :param size: bytes; 0 if it is not known.
    :param counts: by operation; ``sizes``: of reads and writes, requests by bytes.
    :param minutes: since the start; requests of each operation, in the order of ``OPERATIONS``. ``busiest``: requests in the busiest second.
    :param latency: ns from issue to completion by operation and percentile.
    :param reuse: bytes that were accessed between two accesses to a block, by percent of such accesses; empty without them.
    :param pieces: sampled pieces of requests by bytes, cut at multiples of 4 KiB as a cache of whole blocks does it.
    """

    name: str
    size: int
    counts: t.Mapping[str, Count]
    sizes: t.Mapping[str, t.Mapping[int, int]]
    minutes: t.Mapping[int, tuple[int, ...]]
    busiest: int | None
    latency: t.Mapping[str, t.Mapping[float, int]]
    mean_latency: float | None
    working_set: tuple[Window, ...]
    reuse: t.Mapping[float, float]
    pieces: t.Mapping[int, int]

    @property
    def requests(self) -> int:
        return sum(one.requests for one in self.counts.values())

    def part(self, what: str) -> float | None:
        """The share of the reads and writes that are ``sequential`` or ``unaligned``, 0 to 1."""
        total = sum(self.counts[one].requests for one in DATA)
        return sum(getattr(self.counts[one], what) for one in DATA) / total if total else None

    @property
    def all_sizes(self) -> dict[int, int]:
        return histogram.merge(self.sizes.values())


@dataclasses.dataclass(frozen=True)
class Contents:
    """A whole trace. :param window: seconds of a window of the working set. :param ended: why the recording ended."""

    name: str
    host: str
    seconds: float
    rate: float
    lost: int
    window: float
    devices: tuple[DeviceContents, ...]
    ended: str = ""


def contents_of(trace: Trace) -> Contents:
    """:returns: the counted figures, and what its sample shows."""
    window = max(_HOUR, trace.seconds / _MOST_WINDOWS) if trace.seconds >= 2 * _HOUR else trace.seconds / _WINDOWS
    devices = tuple(_device(trace, place, one, window) for place, one in enumerate(trace.devices))
    return Contents(trace.name, trace.host, trace.seconds, trace.rate, trace.lost, window, devices, trace.ended)


def _device(trace: Trace, place: int, device: TracedDevice, window: float) -> DeviceContents:
    raw = device.raw
    accesses = trace.accesses(BLOCK, [place])
    latencies = {one: _histogram(mapping(raw.get("latency")).get(one)) for one in trace_format.OPERATIONS}
    together = histogram.merge(latencies[one] for one in DATA)
    rows = [mapping(one) for one in raw.get("minutes") or []] if isinstance(raw.get("minutes"), list) else []
    busiest = [found for one in rows if (found := optional_integer(one.get("busiest"))) is not None]
    return DeviceContents(
        name=device.name,
        size=device.bytes,
        counts={one: _count(mapping(mapping(raw.get("counts")).get(one))) for one in trace_format.OPERATIONS},
        sizes={one: _histogram(mapping(raw.get("sizes")).get(one)) for one in DATA},
        minutes=dict(sorted(_minutes(rows, trace.seconds))),
        busiest=max(busiest, default=None),
        latency={one: histogram.percentiles(bins, PERCENTS) for one, bins in latencies.items() if bins},
        mean_latency=sum(value * number for value, number in together.items()) / histogram.total(together) if together else None,
        working_set=tuple(_windows(accesses, window, trace)),
        reuse=_reuse(accesses["block"], trace.rate),
        pieces={int(one): int(number) for one, number in zip(*np.unique(accesses["bytes"], return_counts=True), strict=True)},
    )


def _count(raw: t.Mapping[str, t.Any]) -> Count:
    return Count(**{one.name: optional_integer(raw.get(one.name)) or 0 for one in dataclasses.fields(Count)})


def _histogram(raw: t.Any) -> dict[int, int]:
    """``{"4096": 1}`` as numbers; what is none is left out."""
    found = {int(of): optional_integer(number) for of, number in mapping(raw).items() if of.isascii() and of.isdigit() and len(of) < 19}
    return {of: number for of, number in sorted(found.items()) if number}


def _minutes(rows: t.Iterable[t.Mapping[str, t.Any]], seconds: float) -> t.Iterator[tuple[int, tuple[int, ...]]]:
    for one in rows:
        minute = optional_integer(one.get("minute"))
        if minute is not None and minute <= seconds / 60:
            pairs = (one.get(operation) for operation in trace_format.OPERATIONS)
            yield minute, tuple(optional_integer(pair[0]) or 0 if isinstance(pair, list) and pair else 0 for pair in pairs)


def _windows(accesses: t.Any, window: float, trace: Trace) -> t.Iterator[Window]:
    """Distinct blocks, scaled from the sample."""
    number = max(1, round(trace.seconds / window))
    which = np.minimum(accesses["time"] // int(min(max(window * 1e9, 1), 2**62)), number - 1).astype(np.int64)
    _blocks, first, rank = np.unique(accesses["block"], return_index=True, return_inverse=True)
    distinct = np.bincount(np.unique(rank * number + which) % number, minlength=number)
    new = np.cumsum(np.bincount(which[first], minlength=number))
    for place in range(number):
        yield Window(place * window, float(distinct[place]) * BLOCK / trace.rate, float(new[place]) * BLOCK / trace.rate)


def _reuse(blocks: t.Any, rate: float) -> dict[float, float]:
    found = distances.reuse_distances(distances.last_accesses(blocks)[0])
    again = found[found != distances.FIRST]
    return {percent: float(np.percentile(again, percent)) * BLOCK / rate for percent in PERCENTS} if len(again) else {}


def sentences(found: Contents) -> list[str]:
    """What is worth knowing, in the order of importance; each sentence names its device if there are several."""
    sampled = "all of them are in the sample" if found.rate == 1 else f"the sample has {share(found.rate, 1)} of all regions"
    total = sum(one.requests for one in found.devices)
    said = [f"{count(total)} requests of {counted(len(found.devices), 'device')} in {duration(found.seconds)}; {sampled}."]
    if found.ended in _EARLY:
        said.append(f"The recording {_EARLY[found.ended]}: what follows is of the time until then.")
    if found.lost:
        said.append(f"Lost events: {count(found.lost)} ({share(found.lost / (found.lost + total), 1)}). The figures are those of the others.")
    for one in found.devices:
        before = f"{one.name}: " if len(found.devices) > 1 else ""
        said += [before + sentence for sentence in (*_of_working_set(one, found.window), *_of_sizes(one), *_of_rates(one, found.seconds), *diagnosis(one))]
    return said


def _of_working_set(one: DeviceContents, window: float) -> t.Iterator[str]:
    used = sorted(part.bytes for part in one.working_set)
    if not used or not used[-1]:
        return
    middle, most, whole = used[len(used) // 2], used[-1], one.working_set[-1].cumulative
    if one.size:
        figures = [amount(100 * value / one.size) for value in (middle, most, whole)]
        yield f"In {duration(window)} {figures[0]} of the device is accessed in the median, at most {figures[1]}; {figures[2]} ({size(whole)}) in all."
    else:
        yield f"In {duration(window)} {size(middle)} are accessed in the median, at most {size(most)}; {size(whole)} in all."


def _of_sizes(one: DeviceContents) -> t.Iterator[str]:
    sizes = one.all_sizes
    total = sum(sizes.values())
    if total:
        first = max(sizes, key=lambda of: sizes[of])
        other = 1 - sizes.get(BLOCK, 0) / total
        rest = f"; {share(other)} of the requests are not 4 KiB" if first != BLOCK or other >= _NEGLIGIBLE else ""
        yield f"Most frequent size: {block(first)} ({share(sizes[first] / total)}){rest}."
    sequential = one.part("sequential")
    if sequential is not None and sequential >= _NEGLIGIBLE:
        yield f"{share(sequential)} of the reads and writes continue where the one before ended."


def _of_rates(one: DeviceContents, seconds: float) -> t.Iterator[str]:
    mean = one.requests / seconds
    if one.busiest and mean and one.busiest >= _BURST * mean:
        yield f"The busiest second had {count(one.busiest)} requests, {factor(one.busiest / mean)} times the mean."
    flushes, writes = one.counts["flush"].requests, one.counts["write"].requests
    if flushes and writes:
        yield f"{'One flush for each write' if flushes >= writes else f'One flush for every {factor(writes / flushes)} writes'}."


def diagnosis(one: DeviceContents) -> t.Iterator[str]:
    """Why a cache of whole blocks would not serve these requests: alignment, frames of a network, small blocks."""
    unaligned = one.part("unaligned")
    if unaligned is not None and unaligned >= _NEGLIGIBLE:
        yield f"{share(unaligned)} of the reads and writes do not begin and end at multiples of 4 KiB of the disk."
    found = request_sizes.diagnose(one.pieces, BLOCK).sentences
    if found:
        yield f"In a cache of whole blocks of 4 KiB (flashcache, EnhanceIO), of the sampled requests as it cuts them: {' '.join(found)}"
