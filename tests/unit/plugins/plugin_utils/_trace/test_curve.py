# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Curves against caches that are simulated one access at a time."""

from __future__ import annotations

import typing as t
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import curve as curves_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.bcache import BcacheSettings
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import KINDS, Kind, curves
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.load import load_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.types import MODELS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.writecache import HARD_DISK, WritecacheSettings
from ansible_collections.cachefleet.storage.tests.unit.support.loads import READ, WRITE, Step, reads, sampled, trace_of, writes

BLOCK = 4096
LRU = KINDS[0]

STEPS = st.lists(st.tuples(st.integers(0, 20), st.sampled_from([READ, WRITE]), st.fixed_dictionaries({"blocks": st.integers(1, 4)})), min_size=1, max_size=60)


class Searched(t.NamedTuple):
    """What a naive LRU cache with write-back did."""

    hits: list[bool]
    filled: int
    written_back: int


def searched(steps: t.Sequence[t.Any], size: int) -> Searched:
    """Each block of a request in turn."""
    cache: OrderedDict[int, bool] = OrderedDict()
    hits, filled, written_back = [], 0, 0
    for first, operation, options in steps:
        all_there = True
        for block in range(first, first + options["blocks"]):
            there = block in cache
            all_there &= there
            dirty = cache.pop(block, False) or operation == WRITE
            filled += operation == READ and not there
            if len(cache) >= size:
                written_back += cache.popitem(last=False)[1]
            cache[block] = dirty
        hits.append(all_there)
    return Searched(hits, filled, written_back + sum(cache.values()))


@settings(deadline=None)
@given(STEPS, st.integers(1, 25))
def test_without_sampling_an_ideal_cache_is_exact(steps: list[Step], size: int) -> None:
    (point,) = curves(trace_of(steps, seconds=10), [size * BLOCK], [LRU])
    expected = searched(steps, size)
    operations = [step[1] for step in steps]
    written = sum(step[2]["blocks"] for step in steps if step[1] == WRITE)  # type: ignore[misc]
    for found, chosen in ((point.read_hits, (READ,)), (point.write_hits, (WRITE,)), (point.hits, (READ, WRITE))):
        hits = [hit for hit, operation in zip(expected.hits, operations, strict=True) if operation in chosen]
        assert found == pytest.approx(sum(hits) / max(len(hits), 1))
    assert point.saved_writes == pytest.approx(1 - expected.written_back / written if written else 0)
    assert point.cache_writes == pytest.approx((expected.filled + written) * BLOCK / 10)
    assert point.low == pytest.approx(point.hits) == pytest.approx(point.high)


def zipf(requests: int, blocks: int) -> Trace:
    generator = np.random.default_rng(3)
    ranks = np.minimum(np.exp(generator.random(requests) * np.log(blocks)).astype(int), blocks - 1)
    places = generator.permutation(blocks)[ranks]
    steps: list[Step] = [(int(place), int(write)) for place, write in zip(places, generator.random(requests) < 0.3, strict=True)]
    return trace_of(steps, size=blocks * BLOCK)


def test_the_interval_of_a_sample_has_the_truth_in_it() -> None:
    trace = zipf(40_000, 200 * 256)
    sizes = [share * 256 * BLOCK for share in (2, 10, 40)]
    truth = [point.hits for point in curves(trace, sizes, [LRU])]
    points = [curves(sampled(trace, 0.1, device), sizes, [LRU]) for device in range(60)]
    inside = [[point.low <= true <= point.high for point, true in zip(one, truth, strict=True)] for one in points]
    assert np.mean(inside) >= 0.9
    # A wide interval would always have it.
    assert np.mean([[point.high - point.low for point in one] for one in points]) < 0.15
    assert np.mean([[abs(point.hits - true) for point, true in zip(one, truth, strict=True)] for one in points]) < 0.02


def test_points_are_in_the_order_of_kinds_and_sizes() -> None:
    sizes = [1 << 20, 1 << 16]
    kinds = (Kind("dm_cache", block=65536), Kind("lru"), Kind("dm_cache", "writethrough", 65536))
    points = curves(trace_of(reads(1, 2, 1)), sizes, kinds)
    assert [(point.type, point.mode, point.block, point.size) for point in points] == [(k.type, k.mode, k.block, size) for k in kinds for size in sizes]


def test_every_type_differs_from_an_ideal_cache_by_its_own_rules() -> None:
    steps = [*reads(*range(100)), *reads(*range(100)), *writes(*range(200, 300)), *reads(*range(200, 300))]
    points = {point.type: point for point in curves(trace_of(steps), [1 << 30], KINDS)}
    assert (points["lru"].read_hits, points["lru"].write_hits) == (pytest.approx(2 / 3), 0)
    assert (points["bcache"].read_hits, points["bcache"].write_hits) == (pytest.approx(2 / 3), 1)
    assert (points["writecache"].read_hits, points["writecache"].write_hits) == (pytest.approx(1 / 3), 1)
    # Blocks of 64 KiB are promoted once their surroundings were missed often enough: by then, only the first write to each of the seven misses.
    assert 0 < points["dm_cache"].read_hits < 1 and points["dm_cache"].write_hits == 0.93


def test_a_sample_is_simulated_in_a_cache_of_its_scale() -> None:
    """At a fifth of the regions the same shares, and as many bytes per second."""
    trace = zipf(40_000, 200 * 256)
    kinds = [Kind("bcache", settings=BcacheSettings(sequential_cutoff=0)), Kind("writecache")]
    whole = curves(trace, [40 << 20], kinds)
    parts = [curves(sampled(trace, 0.2, device), [40 << 20], kinds) for device in range(6)]
    for at, point in enumerate(whole):
        assert np.mean([one[at].hits for one in parts]) == pytest.approx(point.hits, abs=0.03)
        assert np.mean([one[at].cache_writes for one in parts]) == pytest.approx(point.cache_writes, rel=0.1)


def test_of_a_long_trace_fewer_regions_are_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = zipf(5_000, 200 * 256)
    (whole,) = curves(trace, [40 << 20], [Kind("writecache")])
    monkeypatch.setattr(curves_of, "MOST_ACCESSES", 1_000)
    (part,) = curves(trace, [40 << 20], [Kind("writecache")])
    assert part.hits != whole.hits
    assert part.high - part.low > whole.high - whole.low
    assert part.hits == pytest.approx(whole.hits, abs=0.1)


def test_congestion_lowers_what_is_certain() -> None:
    trace = trace_of(reads(*range(10)) * 4)
    points = [curves(trace, [1 << 24], [Kind("bcache", settings=BcacheSettings(congested=share))])[0] for share in (0.0, 0.1)]
    assert [point.hits for point in points] == [0.75, 0.75]
    assert points[0].low - points[1].low == pytest.approx(0.075)
    assert points[0].high == points[1].high


def test_what_is_assumed_of_a_simulation_is_in_its_interval() -> None:
    (point,) = curves(trace_of(writes(*range(10)) * 4), [1 << 24], [Kind("writecache")])
    assert (point.low, point.high) == (1 - MODELS["writecache"].margin, 1.0)


@pytest.mark.parametrize(
    ("steps", "slow_is_better"),
    [
        # What is not yet written back still serves reads,
        ([*writes(*range(12)), *reads(*range(12))], True),
        # or the cache is full.
        (writes(*range(30)), False),
    ],
)
def test_the_interval_reaches_over_what_a_trace_does_not_show(steps: list[Step], slow_is_better: bool) -> None:
    trace, margin = trace_of(steps), MODELS["writecache"].margin
    fast, slow = (curves(trace, [20 * BLOCK], [Kind("writecache", settings=WritecacheSettings(origin_rate=rate))])[0] for rate in (np.inf, HARD_DISK))
    assert (slow.hits > fast.hits) is slow_is_better
    assert fast.low == pytest.approx(min(fast.hits, slow.hits) - margin)
    assert fast.high == pytest.approx(min(max(fast.hits, slow.hits) + margin, 1))
    # If the rate is known, there is nothing else.
    assert (slow.low, slow.high) == (pytest.approx(slow.hits - margin), pytest.approx(min(slow.hits + margin, 1)))


def test_devices_and_what_warms() -> None:
    trace = trace_of([*reads(1, 2), *reads(1, 2)])
    assert curves(trace, [1 << 20], [LRU], warm=0.0015)[0].hits == 1
    assert curves(trace, [1 << 20], [LRU], devices=[0])[0].hits == 0.5
    assert load_of(trace, BLOCK, [0]).distinct == 2


@pytest.mark.parametrize(
    "kind",
    [Kind("flashcache"), Kind("lru", "writearound"), Kind("writecache", "writethrough"), Kind("lru", block=1000), Kind("lru", block=2 * trace_format.REGION)],
)
def test_a_kind_without_a_model_is_refused(kind: Kind) -> None:
    with pytest.raises(BadInput, match=f"no curve of {kind.type} in mode {kind.mode} with blocks of {kind.block} bytes"):
        curves(trace_of(reads(1)), [1 << 20], [kind])


def test_a_cache_of_no_size_is_refused() -> None:
    with pytest.raises(BadInput, match="above 0 bytes"):
        curves(trace_of(reads(1)), [1 << 20, 0])
