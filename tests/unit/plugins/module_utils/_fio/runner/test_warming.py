# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""When a cache is warm: what is called steady must be what one more hour gives, on a simulated cache of which that is known."""

from __future__ import annotations

import bisect
import collections
import itertools
import random

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import Sample
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import warming


def sample(name="c0", used=0, **counters):
    return Sample(name, 0, used, counters)


def hit_ratios_of_lru(blocks, working_set, theta, accesses, rounds):
    """The hit ratio of each round of an LRU cache that begins empty."""
    draw, cache, found = random.Random(1), collections.OrderedDict(), []
    weights = list(itertools.accumulate(rank**-theta for rank in range(1, int(blocks * working_set) + 1)))
    for _round in range(rounds):
        hits = 0
        for _access in range(accesses):
            block = bisect.bisect(weights, draw.random() * weights[-1])
            if block in cache:
                hits += 1
                cache.move_to_end(block)
            else:
                cache[block] = None
                if len(cache) > blocks:
                    cache.popitem(last=False)
        found.append(100 * hits / accesses)
    return found


@pytest.mark.parametrize("theta", [0, 0.9, 1.2])
@pytest.mark.parametrize("working_set", [0.5, 1, 2, 4])
def test_what_is_steady_is_what_one_more_hour_gives(working_set, theta):
    ratios = hit_ratios_of_lru(1000, working_set, theta, 1500, 160)
    steady = [number for number in range(1, warming.MOST + 1) if warming.is_steady(ratios[:number], 30.0 * number)]
    assert steady, "it is never steady, and nothing is tested"
    for number in steady[:1]:
        # Over ten rounds chance is less than a point.
        assert sum(ratios[number - 3 : number]) / 3 == pytest.approx(sum(ratios[number + 110 : number + 120]) / 10, abs=3)


@pytest.mark.parametrize("theta", [0, 1.2])
def test_cache_that_fills_for_hours_is_not_steady(theta):
    ratios = hit_ratios_of_lru(100_000, 1, theta, 1000, warming.MOST)
    assert not any(warming.is_steady(ratios[:number], 30.0 * number) for number in range(1, warming.MOST + 1))


@pytest.mark.parametrize(
    ("ratios", "steady"),
    [
        ([90.0] * 5, False),
        ([90.0] * 6, True),
        ([0.0] * 6, True),
        ([90.0, 90.0, 90.0, 88.0, 90.0, 91.1], False),
        ([90.0, 90.0, 90.0, 90.0, 92.0, 89.0], True),
        ([89.0, 89.0, 89.0, 90.0, 90.0, 90.0], False),
        # A cache that loses its blocks is not steady either.
        ([90.0, 90.0, 90.0, 89.0, 89.0, 89.0], False),
    ],
)
def test_steady_rule(ratios, steady):
    assert warming.is_steady(ratios, 30.0 * len(ratios)) is steady


def test_the_same_gain_says_less_after_a_short_time():
    ratios = [89.0] * 60 + [90.0] * 60
    assert warming.is_steady(ratios, 3600.0) and not warming.is_steady(ratios, 120.0)


def test_hit_ratio_of_each_cache():
    before = [sample(read_hits=10, read_misses=10), sample("other", write_hits=5, write_misses=5), sample("new", read_hits=9, read_misses=1), sample("none")]
    after = [
        sample(read_hits=40, read_misses=20),
        sample("other", write_hits=5, write_misses=5),
        sample("new", read_hits=1, read_misses=8),
        sample("none"),
        sample("later", read_hits=9, read_misses=1),
    ]
    assert warming.hit_ratios(before, after) == {"c0": 75.0}, "what counted nothing, fell, or was not there before has none"


def test_bypassed_io_was_not_looked_up():
    assert warming.hit_ratios([sample(read_hits=0, read_misses=0, bypassed_reads=0)], [sample(read_hits=1, read_misses=1, bypassed_reads=98)]) == {"c0": 50.0}


def test_which_caches_count_hits():
    assert warming.counts_hits([sample("none"), sample(write_hits=0)])
    assert not warming.counts_hits([]) and not warming.counts_hits([sample(bypassed_reads=3)])


@pytest.mark.parametrize(
    ("runtime", "counts_late", "expected"),
    [(60.0, False, "30000ms"), (30.0, False, 30), (5.0, False, 30), (5.0, True, "30000ms"), (None, False, "30000ms"), (3600.0, True, "30000ms")],
)
def test_round_is_no_longer_than_its_cell_except_over_late_counters(runtime, counts_late, expected):
    given = {"rw": "randread", "runtime": 30}
    assert warming.round_job(given, runtime, counts_late=counts_late)["runtime"] == expected
    assert given["runtime"] == 30


def test_round_of_several_sections():
    job = {"global": {"bs": "4k"}, "jobs": [{"name": "a", "runtime": 90}, {"name": "b"}]}
    assert warming.round_job(job, 90.0, counts_late=False) == {"global": {"bs": "4k", "runtime": "30000ms"}, "jobs": [{"name": "a"}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("used", "why"),
    [(0, ""), (1000, ""), (1001, "The cache c0 holds 1001 B"), (None, "The cache c0 may hold data: how full it is could not be read")],
)
def test_which_cache_is_empty(used, why):
    found = warming.why_not_empty([sample(), sample(used=used)], 100_000)
    assert found.startswith(why) and bool(found) == bool(why)
    assert not why or "a cache cannot be emptied without destroying it" in found


@pytest.mark.parametrize(("size", "region"), [(None, 2**30), ("1m", 2**20), ("50%", 2**30), ("2g", 2**30)])
def test_region_of_a_cell(size, region):
    assert warming.region_of(read_job({"rw": "randread", **({"size": size} if size else {})}, "w"), 2**30) == region


@pytest.mark.parametrize("value", ["hot", "", 1, True, ["empty"]])
def test_unknown_states_are_rejected(value):
    with pytest.raises(BadInput, match="Here: warm must be one of none, until_steady, empty, not"):
        warming.read_warm(value, "Here")
