# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which share of the requests of a cache it cannot serve, and why, as far as the kernel's figures show. Pure.

flashcache counts its requests by size, which answers the question. Of every other type there are block statistics
(Documentation/block/stat.rst) and what the cache itself counts: they give means, not sizes, and that is reported.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import request_sizes
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import type_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Traffic

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import CacheActivity

HISTOGRAM = "histogram"
STATISTICS = "block_statistics"

#: From this share of merged requests on, what reached a device was mostly one request behind the other.
_SEQUENTIAL = 0.5
#: Shares that are not reported.
_WORTH_SAYING = 5.0

_WHY_MISSED = {
    "dm": "dm-cache counts no bypass: what is not in the cache is a miss, and its policy caches only blocks that are requested again,"
    " so that reading once or in sequence stays with the origin",
    "writecache": "dm-writecache caches only what is written; reads that were not written before come from the origin",
}
_STATISTICS_CANNOT_TELL = (
    "Block statistics count requests and bytes: single sizes, and whether requests begin inside a block of the cache, cannot be seen in them."
)


@frozen
class Diagnosis:
    """Reasons why a cache does not serve its requests.

    :param source: where it was taken from: :data:`HISTOGRAM` or :data:`STATISTICS`; None without requests to the cache.
    :param since: ``previous_reading``, or ``load`` for everything since the cache, or its module, was loaded.
    :param requests: what it is about; a count.
    :param uncacheable_percent: of the requests: those that cannot be cached for their size; None if it cannot be determined.
    :param bypassed_percent: those that the cache counted as passed by.
    :param origin_read_percent: bytes read from the origin for every 100 bytes read from the cached device; may exceed 100,
        because a cache also reads what it takes in.
    :param pattern: one of :data:`request_sizes.PATTERNS`.
    :param sentences: the reasons, for users; ``unknown``: what the figures cannot show.
    """

    source: str | None = None
    since: str = "previous_reading"
    requests: int = 0
    uncacheable_percent: float | None = None
    bypassed_percent: float | None = None
    origin_read_percent: float | None = None
    mean_read: int | None = None
    mean_write: int | None = None
    pattern: str = "none"
    sentences: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "sentences": list(self.sentences), "unknown": list(self.unknown)}


def diagnose(cache: CacheState, passed: CacheActivity, sharing: int = 1) -> Diagnosis:
    """Why a cache does not serve its requests.

    :param passed: what happened since the earlier reading.
    :param sharing: how many caches of this type the host has, which one histogram counts together.
    """
    if cache.histogram and cache.block_size:
        return _from_histogram(cache, cache.block_size, passed, sharing)
    return _from_statistics(cache, passed)


def _from_histogram(cache: CacheState, block_size: int, passed: CacheActivity, sharing: int) -> Diagnosis:
    counts: t.Mapping[int, int] = cache.histogram
    since = "load"
    if passed.earlier_histogram is not None:
        counts = request_sizes.histogram_difference(passed.earlier_histogram, cache.histogram)
        since = "previous_reading"
    found = request_sizes.diagnose(counts, block_size)
    unknown = []
    if type_of(cache.type).shared_histogram and sharing > 1:
        unknown.append(f"{cache.type} counts sizes for its {sharing} caches on this host together: the cache to which a size belongs cannot be determined.")
    share = found.uncacheable_share
    bypassed = _bypassed(passed)
    sentences = [*found.sentences, *_size_range(counts, block_size, share), *_bypass_sentences(cache, passed, bypassed)]
    return Diagnosis(
        source=HISTOGRAM if found.requests else None,
        since=since,
        requests=found.requests,
        uncacheable_percent=None if share is None else round(100 * share, 1),
        bypassed_percent=bypassed,
        pattern=found.pattern,
        sentences=tuple(sentences),
        unknown=tuple(unknown),
    )


def _size_range(counts: t.Mapping[int, int], block_size: int, share: float | None) -> t.Iterator[str]:
    """Which sizes those are that cannot be cached."""
    sizes = sorted(size for size, count in counts.items() if count and size != block_size)
    if share is None or 100 * share < _WORTH_SAYING or not sizes:
        return
    span = f"{sizes[0]} to {sizes[-1]} bytes" if len(sizes) > 1 else f"{sizes[0]} bytes"
    yield f"Requests of {span} cannot be cached, only those of exactly {block_size} bytes."


def _from_statistics(cache: CacheState, passed: CacheActivity) -> Diagnosis:
    top = passed.traffic.get(cache.device_name or "")
    bypassed = _bypassed(passed)
    if top is None or not top.requests:
        return Diagnosis(bypassed_percent=bypassed, sentences=tuple(_bypass_sentences(cache, passed, bypassed)))
    origin = passed.traffic.get(cache.origin_name or "")
    size = _by_size(cache, top)
    sentences = [*(size.sentences if size is not None else ()), *_bypass_sentences(cache, passed, bypassed), *_miss_sentences(cache, passed)]
    sentences += [*_promotion_sentences(cache, top), *_sequential_sentences(origin)]
    share = size.uncacheable_share if size is not None else None
    return Diagnosis(
        source=STATISTICS,
        requests=top.requests,
        uncacheable_percent=None if share is None else round(100 * share, 1),
        bypassed_percent=bypassed,
        origin_read_percent=round(100 * origin.read_bytes / top.read_bytes, 1) if origin is not None and top.read_bytes else None,
        mean_read=None if top.mean_read is None else round(top.mean_read),
        mean_write=None if top.mean_write is None else round(top.mean_write),
        pattern=size.pattern if size is not None else "none",
        sentences=tuple(sentences),
        unknown=(_STATISTICS_CANNOT_TELL,),
    )


def _by_size(cache: CacheState, top: Traffic) -> request_sizes.Diagnosis | None:
    """What the mean size shows, of types that cache whole blocks only."""
    if not type_of(cache.type).whole_blocks or not cache.block_size:
        return None
    return request_sizes.diagnose_average(top.requests, top.read_bytes + top.written_bytes, cache.block_size)


def _bypassed(passed: CacheActivity) -> float | None:
    """The share that the cache itself counted as passed by; None if its type does not count it."""
    if not any(name.startswith("bypassed_") for name in passed.counters):
        return None
    requests = passed.reads.requests + passed.writes.requests
    return round(100 * (passed.reads.bypassed + passed.writes.bypassed) / requests, 1) if requests else None


def _bypass_sentences(cache: CacheState, passed: CacheActivity, bypassed: float | None) -> t.Iterator[str]:
    if bypassed is None or bypassed < _WORTH_SAYING or not type_of(cache.type).why_bypassed:
        return
    count = passed.reads.bypassed + passed.writes.bypassed
    kind = type_of(cache.type)
    words = _cutoff(cache.settings.get(kind.cutoff), in_bytes=kind.cutoff_in_bytes)
    yield f"{bypassed:.1f}% of the requests ({count}) bypassed the cache: {kind.why_bypassed.format(cutoff=words)}."


def _cutoff(value: t.Any, *, in_bytes: bool) -> str:
    """A limit for sequential requests, in parentheses; 0 turns it off."""
    if value in (None, ""):
        return ""
    if str(value) == "0":
        return " (off)"
    return f" ({format_size(value) if in_bytes and isinstance(value, int) else value})"


def _miss_sentences(cache: CacheState, passed: CacheActivity) -> t.Iterator[str]:
    """Misses of the types without bypass."""
    rate = passed.reads.percent
    if rate is None or rate > 100 - _WORTH_SAYING or not type_of(cache.type).moves_blocks:
        return
    why = _WHY_MISSED["writecache" if cache.kind == "writecache" else "dm"]
    yield f"{100 - rate:.1f}% of the reads ({passed.reads.misses}) were not in the cache: {why}."


def _promotion_sentences(cache: CacheState, top: Traffic) -> t.Iterator[str]:
    """dm-cache moves whole blocks, whatever the size of the request."""
    mean = (top.read_bytes + top.written_bytes) / top.requests
    if type_of(cache.type).moves_blocks and cache.kind != "writecache" and cache.block_size and mean and cache.block_size >= 4 * mean:
        yield (
            f"A request has {format_size(round(mean))} in the mean and a block of the cache {format_size(cache.block_size)}: each block that is cached moves"
            f" {cache.block_size / mean:.0f} times what was requested. A smaller chunk_size suits these requests better."
        )


def _sequential_sentences(origin: Traffic | None) -> t.Iterator[str]:
    """What was merged on its way to the origin came one behind the other."""
    if origin is None or not origin.reads:
        return
    merged = origin.reads_merged / (origin.reads + origin.reads_merged)
    if merged >= _SEQUENTIAL:
        yield f"{merged:.0%} of the reads that went to the origin were merged with their neighbours: they are sequential, which an SSD cache is not for."
