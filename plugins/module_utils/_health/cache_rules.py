# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Findings about the SSD caches of a host. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DEGRADED, UNMIRRORED
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import dirty_share
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.diagnosis import Diagnosis
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
    from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import CacheActivity

#: A cache that is known and does not run serves nothing; every other state than ok may cost data.
_SEVERITY_OF_STATE = {"inactive": "warning"}
_ADVICE_OF_STATE = {
    "needs_check": "its metadata must be checked before it is used again",
    "read_only": "its metadata cannot be written, check its cache device",
    "failed": "the kernel serves nothing from it, check its cache device and dmesg",
    "cache_missing": "its cache device is not there: reconnect it, for the newest data may be only on it",
    "inactive": "it does not run",
    "unknown": "it should run, and the kernel reports no status of it: check dmesg and dmsetup status",
    "inconsistent": "its origin was used without it: check the data on it",
}


def cache_findings(cache: CacheState, passed: CacheActivity, diagnosis: Diagnosis, average: tuple[float | None, int], limits: Limits) -> t.Iterator[Finding]:
    """The findings of one cache.

    :param average: the mean of the dirty shares of the readings kept (0 to 1, None if unknown), and how many these are.
    """
    yield from _state(cache)
    yield from _redundancy(cache)
    yield from _dirty(cache, average, limits)
    yield from _metadata(cache, limits)
    yield from _errors(cache, passed)
    yield from _hits(cache, passed, limits)
    yield from _diagnosis(cache, diagnosis, limits)


def _state(cache: CacheState) -> t.Iterator[Finding]:
    if cache.state == "ok":
        return
    words = cache.problem or f"{_label(cache)} is {cache.state.replace('_', ' ')}: {_ADVICE_OF_STATE.get(cache.state, 'check it')}."
    if cache.name not in words:
        words = f"{_label(cache)}: {words}"
    yield Finding(_SEVERITY_OF_STATE.get(cache.state, "critical"), cache.name, "cache_state", words, cache.state, "ok")


def _redundancy(cache: CacheState) -> t.Iterator[Finding]:
    """What it means for the newest data if the cache device fails."""
    if cache.mode != "writeback" or cache.state == "inactive":
        return
    at_stake = f" ({format_size(cache.dirty)} now)" if cache.dirty else ""
    device = " and ".join(cache.cache_devices) or "its cache device"
    if cache.redundancy == DEGRADED:
        words = f"{_label(cache)} writes back and its mirror has lost a member: the newest data{at_stake} is on one drive only. Replace the member that failed."
        yield Finding("critical", cache.name, "cache_redundancy", words, cache.redundancy, "mirrored")
    elif cache.redundancy == UNMIRRORED:
        words = f"{_label(cache)} writes back to {device}, which is not mirrored: when it fails, the newest data{at_stake} is lost."
        yield Finding("warning", cache.name, "cache_redundancy", words, cache.redundancy, "mirrored")


def _dirty(cache: CacheState, average: tuple[float | None, int], limits: Limits) -> t.Iterator[Finding]:
    share = dirty_share(cache)
    if share is None or not cache.dirty:
        return
    now = round(100 * share, 1)
    if now >= limits.dirty:
        words = (
            f"{_label(cache)} is {now:g}% dirty ({format_size(cache.dirty)}; the limit is {limits.dirty}%): its origin does not keep up with the writes,"
            " and flushing the cache will take long."
        )
        yield Finding("critical", cache.name, "cache_dirty", words, now, limits.dirty)
        return
    mean = round(100 * (share if average[0] is None else average[0]), 1)
    if mean >= limits.dirty_average:
        over = f" in the mean of {average[1]} readings" if average[1] > 1 else ""
        words = f"{_label(cache)} is {mean:g}% dirty{over} (the limit is {limits.dirty_average}%): its origin hardly keeps up with the writes."
        yield Finding("warning", cache.name, "cache_dirty", words, mean, limits.dirty_average)


def _metadata(cache: CacheState, limits: Limits) -> t.Iterator[Finding]:
    """A cache without room for its metadata becomes read-only."""
    if not cache.metadata_size or cache.metadata_used is None:
        return
    used = round(100 * cache.metadata_used / cache.metadata_size, 1)
    if used >= limits.metadata:
        words = (
            f"{_label(cache)} uses {used:g}% of the {format_size(cache.metadata_size)} for its metadata (the limit is {limits.metadata}%): when it is"
            " full, the cache becomes read-only. Create the cache anew with more metadata or larger blocks."
        )
        yield Finding("warning", cache.name, "cache_metadata", words, used, limits.metadata)


def _errors(cache: CacheState, passed: CacheActivity) -> t.Iterator[Finding]:
    for name, device in (("cache_errors", "cache device"), ("origin_errors", "origin")):
        total, new = cache.counters.get(name, 0), passed.counters.get(name, 0)
        if new:
            words = f"{_label(cache)}: {new} errors of its {device} since the last reading: replace that drive."
            yield Finding("critical", cache.name, name, words, new, 0)
        elif total:
            words = f"{_label(cache)}: {total} errors of its {device} since it was loaded: check the health of that drive."
            yield Finding("warning", cache.name, name, words, total, 0)


def _hits(cache: CacheState, passed: CacheActivity, limits: Limits) -> t.Iterator[Finding]:
    reads = passed.reads
    # Such caches are not there for reads.
    if cache.kind == "writecache" or cache.mode in ("passthrough", "none"):
        return
    if passed.state != "measured" or reads.requests < limits.requests or reads.of_all is None or reads.of_all >= limits.read_hits:
        return
    words = (
        f"{_label(cache)} served {reads.of_all:g}% of {reads.requests} reads in {_span(passed.seconds)} (the limit is {limits.read_hits}%):"
        f" {reads.misses} missed and {reads.bypassed} bypassed it."
    )
    yield Finding("warning", cache.name, "cache_hits", words, reads.of_all, limits.read_hits)


def _diagnosis(cache: CacheState, diagnosis: Diagnosis, limits: Limits) -> t.Iterator[Finding]:
    share = diagnosis.uncacheable_percent
    if share is None or diagnosis.requests < limits.requests or share < limits.uncacheable:
        return
    since = " since the cache was loaded" if diagnosis.since == "load" else ""
    words = f"{_label(cache)}: {' '.join(diagnosis.sentences)}" if diagnosis.sentences else f"{_label(cache)}: {share:g}% of the requests cannot be cached."
    yield Finding("warning", cache.name, "cache_uncacheable", words.rstrip(".") + f"{since}.", share, limits.uncacheable)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "an unknown time"
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _label(cache: CacheState) -> str:
    return f"{cache.type} {cache.name}"
