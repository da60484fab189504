# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._health.diagnosis import diagnose
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Limits
from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import CacheActivity, passed
from ansible_collections.cachefleet.storage.plugins.module_utils._health.rules import cache_findings
from ansible_collections.cachefleet.storage.tests.unit.support.health import BCACHE, CACHE, CASE_C, FLASHCACHE, cache, readings, traffic


def test_case_c_histogram_explains_the_low_hit_rate():
    """Field case C: 14% of the reads and 3% of the writes were hits, and the sizes of the requests tell why."""
    counters = {"read_hits": 0, "read_misses": 0, "bypassed_reads": 0, "write_hits": 0, "write_misses": 0, "bypassed_writes": 0}
    state = cache(FLASHCACHE, counters=counters)
    later = {"read_hits": 14_000, "read_misses": 6_000, "bypassed_reads": 80_000, "write_hits": 300, "write_misses": 700, "bypassed_writes": 9_000}
    happened = passed(state, readings(state, 0.5, histogram={}), readings(state, 3600.5, counters=later))
    assert (happened.reads.of_all, happened.writes.of_all) == (14.0, 3.0)
    found = diagnose(state, happened)
    assert found.source == "histogram"
    assert found.since == "previous_reading"
    assert found.requests == sum(CASE_C.values())
    assert found.uncacheable_percent == 92.7
    assert found.pattern == "frames"
    (finding,) = [one for one in cache_findings(state, happened, found, (None, 0), Limits()) if one.check == "cache_uncacheable"]
    assert finding.severity == "warning"
    assert finding.value == 92.7
    assert "\n" not in finding.message
    for words in (
        "flashcache images: ",
        "92.7% of 573034428 requests",
        "from 512 to 3584 bytes",
        "frames whose length is not a multiple of 4 KiB",
        "MTU from 8228 to 8739",
    ):
        assert words in finding.message
    (hits,) = [one for one in cache_findings(state, happened, found, (None, 0), Limits()) if one.check == "cache_hits"]
    assert "served 14% of 100000 reads in 60 min" in hits.message


def test_histogram_is_the_difference_of_two_readings():
    state = cache(FLASHCACHE, histogram={**CASE_C, 4096: CASE_C[4096] + 5000, 512: CASE_C[512] + 100})
    happened = passed(state, readings(FLASHCACHE, 1.0), readings(state, 61.0))
    found = diagnose(state, happened)
    assert found.requests == 5100
    assert found.uncacheable_percent == 2.0
    assert found.sentences == ()


def test_histogram_without_earlier_reading_counts_since_module_load():
    found = diagnose(FLASHCACHE, CacheActivity())
    assert (found.since, found.uncacheable_percent) == ("load", 92.7)
    (finding,) = [one for one in cache_findings(FLASHCACHE, CacheActivity(), found, (None, 0), Limits()) if one.check == "cache_uncacheable"]
    assert "since the cache was loaded" in finding.message


def test_histogram_shared_by_several_caches_is_reported():
    assert diagnose(FLASHCACHE, CacheActivity(), 1).unknown == ()
    assert "3 caches on this host together" in diagnose(FLASHCACHE, CacheActivity(), 3).unknown[0]


def test_few_requests_give_no_finding():
    state = cache(FLASHCACHE, histogram={512: 900})
    found = diagnose(state, CacheActivity())
    assert found.uncacheable_percent == 100.0
    assert [one.check for one in cache_findings(state, CacheActivity(), found, (None, 0), Limits()) if one.check == "cache_uncacheable"] == []


def test_bcache_reports_bypassed_requests_without_their_reason():
    counters = {"read_hits": 0, "read_misses": 0, "bypassed_reads": 0}
    happened = passed(
        BCACHE,
        readings(BCACHE, 1.0, counters=counters, traffic={"bcache0": traffic()}),
        readings(BCACHE, 61.0, counters={"read_hits": 100, "read_misses": 100, "bypassed_reads": 600}, traffic={"bcache0": traffic(800, 800 << 20)}),
    )
    found = diagnose(BCACHE, happened)
    assert found.source == "block_statistics"
    assert found.bypassed_percent == 75.0
    assert found.uncacheable_percent is None
    assert found.mean_read == 1 << 20
    assert "75.0% of the requests (600) bypassed the cache" in found.sentences[0]
    assert "sequential_cutoff (4 MiB)" in found.sentences[0]
    assert "does not count which" in found.sentences[0]
    assert "cannot be seen" in found.unknown[0]


def test_disabled_sequential_limit_is_reported_as_off():
    state = cache(FLASHCACHE, settings={"skip_seq_thresh_kb": 0})
    counters = {"read_hits": 0, "read_misses": 0, "bypassed_reads": 0}
    happened = passed(state, readings(state, 1.0, counters=counters), readings(state, 61.0, counters={**counters, "bypassed_reads": 600}))
    assert "skip_seq_thresh_kb (off)" in " ".join(diagnose(state, happened).sentences)


def dm(top, origin, **counters):
    state = CACHE
    before = readings(state, 1.0, counters=dict.fromkeys(counters, 0), traffic={"dm-5": traffic(), "dm-3": traffic()})
    return diagnose(state, passed(state, before, readings(state, 61.0, counters=counters, traffic={"dm-5": top, "dm-3": origin})))


def test_dm_cache_misses_small_and_sequential_requests():
    found = dm(traffic(1000, 4096_000), traffic(100, 5_000_000, merged=900), read_hits=100, read_misses=900)
    text = " ".join(found.sentences)
    assert "90.0% of the reads (900) were not in the cache: dm-cache counts no bypass" in text
    assert "each block that is cached moves 16 times what was requested" in text
    assert "90% of the reads that went to the origin were merged" in text
    assert found.origin_read_percent == 122.1
    assert found.uncacheable_percent is None


def test_dm_cache_with_high_hit_rate_gives_no_diagnosis():
    found = dm(traffic(1000, 65536_000), traffic(10, 655_360), read_hits=990, read_misses=10)
    assert found.sentences == ()
    assert found.origin_read_percent == 1.0


def test_writecache_serves_only_reads_of_written_blocks():
    state = cache(kind="writecache", mode="writeback", block_size=4096)
    before = readings(state, 1.0, counters={"read_hits": 0, "read_misses": 0}, traffic={"dm-5": traffic()})
    after = readings(state, 61.0, counters={"read_hits": 1, "read_misses": 99}, traffic={"dm-5": traffic(100, 409600)})
    assert "caches only what is written" in diagnose(state, passed(state, before, after)).sentences[0]


def test_enhanceio_without_histogram_uses_mean_request_size():
    state = cache(FLASHCACHE, type="enhanceio", name="images", histogram={}, settings={})
    before = readings(state, 1.0, traffic={"dm-5": traffic()})
    after = readings(state, 61.0, traffic={"dm-5": traffic(reads=10000, read_bytes=10000 * 1024)})
    found = diagnose(state, passed(state, before, after))
    assert found.source == "block_statistics"
    assert found.uncacheable_percent == 75.0
    assert "At least 75%" in found.sentences[0]


@pytest.mark.parametrize("state", [CACHE, BCACHE, cache(FLASHCACHE, histogram={})], ids=lambda state: state.type)
def test_no_requests_give_no_diagnosis(state):
    found = diagnose(state, CacheActivity())
    assert (found.source, found.requests, found.uncacheable_percent, found.sentences) == (None, 0, None, ())
