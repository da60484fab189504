# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""bcache on sequences whose outcome is computed by hand."""

from __future__ import annotations

import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.bcache import BcacheSettings, bypassed, simulate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome, Reuse
from ansible_collections.cachefleet.storage.tests.unit.support.loads import Step, load, reads, writes

BLOCK = 4096
CUTOFF = 4 * MIB // 512


def run(steps: list[Step], blocks: int, mode: str = "writeback", **settings: t.Any) -> Outcome:
    return simulate(load(steps), blocks * BLOCK, mode, BcacheSettings(**{"reserved": 0.0, **settings}))


def passed(steps: list[Step], mode: str = "writeback", **settings: t.Any) -> list[bool]:
    return bypassed(load(steps), mode, BcacheSettings(**settings)).tolist()


def test_reads_fill_it_and_what_is_read_ahead_too() -> None:
    assert run([*reads(1, flags=trace_format.AHEAD), *reads(1)], 64).served.tolist() == [0, 1]
    assert run([*reads(1, flags=trace_format.AHEAD), *reads(1)], 64, readahead=False).served.tolist() == [0, 0]
    assert run([*reads(1, flags=trace_format.AHEAD | trace_format.META), *reads(1)], 64, readahead=False).served.tolist() == [0, 1]


def test_modes() -> None:
    steps = [*writes(1), *reads(1), *writes(1), *reads(1)]
    outcomes = {mode: run(steps, 64, mode) for mode in ("writeback", "writethrough", "writearound")}
    assert {mode: one.served.tolist() for mode, one in outcomes.items()} == {
        "writeback": [1, 1, 1, 1],
        "writethrough": [0, 1, 1, 1],
        # The second write invalidates what the read has cached.
        "writearound": [0, 0, 0, 0],
    }
    assert [one.to_origin / BLOCK for one in outcomes.values()] == [1, 2, 2]
    assert [one.to_cache / BLOCK for one in outcomes.values()] == [2, 2, 2]


def test_long_streams_pass_it_and_invalidate_what_they_write() -> None:
    assert passed([*reads(1, stream=CUTOFF - 1), *reads(1, stream=CUTOFF)]) == [False, True]
    assert passed(reads(1, stream=CUTOFF), sequential_cutoff=0) == [False]
    steps = [*reads(1), *writes(1, stream=CUTOFF), *reads(1)]
    assert run(steps, 64).served.tolist() == [0, 0, 0]
    # What is already cached is still served.
    assert run([*reads(1), *reads(1, stream=CUTOFF)], 64).served.tolist() == [0, 1]


def test_a_task_with_long_streams_passes_with_short_ones_until_its_mean_has_fallen() -> None:
    long = reads(*range(0, 80, 2), stream=CUTOFF * 8)
    short = reads(*range(100, 140, 2))
    # Forty times an eighth of the difference from 32 MiB: nearly all of it. Then seven eighths each time: below 4 MiB after 16 short streams.
    found = passed([*long, *short])
    assert found == [True] * 56 + [False] * 4
    # Another task has its own mean.
    assert passed([*long, *reads(100, process=2)])[-1] is False


def test_requests_that_are_not_whole_blocks_of_the_cache_pass_it() -> None:
    trace = load([*reads(1), *reads(1)])
    trace.accesses["bytes"][0] = 2048
    assert bypassed(trace, "writeback", BcacheSettings(block=4096)).tolist() == [True, False]
    assert bypassed(trace, "writeback", BcacheSettings()).tolist() == [False, False]


def test_buckets_are_freed_whole_the_least_recently_used_first() -> None:
    # 128 blocks in 64 buckets of two: the third and fourth block share the second bucket.
    filling = reads(*range(128))
    steps = [*filling, *reads(2), *reads(200), *reads(2, 3, 0, 1)]
    outcome = run(steps, 128, sequential_cutoff=0)
    # A hit of one block keeps the other; the first bucket has gone, and with its first block its second.
    assert outcome.served.tolist()[128:] == [1, 0, 1, 1, 0, 0]


def test_a_bucket_of_overwritten_blocks_goes_first() -> None:
    filling = [*reads(*range(120)), *writes(*range(116, 120)), *reads(*range(130, 134))]
    outcome = run([*filling, *reads(0, 1, 2, 3)], 128, "writethrough", sequential_cutoff=0)
    assert outcome.served.tolist()[-4:] == [1, 1, 1, 1]


def test_dirty_buckets_stay_and_beyond_40_percent_only_synchronous_writes_are_written_back() -> None:
    steps = [*writes(*range(60)), *writes(200), *writes(201, flags=trace_format.SYNC)]
    outcome = run(steps, 128, sequential_cutoff=0)
    # The 26th of 64 buckets is the one that is too much.
    assert outcome.served.tolist() == [1] * 51 + [0] * 10 + [1]
    lasting = [*writes(*range(40)), *reads(*range(1000, 1300)), *reads(*range(40))]
    assert run(lasting, 128, sequential_cutoff=0).served.tolist()[-40:] == [1] * 40


def test_nothing_is_cached_while_too_many_buckets_are_in_use() -> None:
    assert run(reads(1, 2, 1, 2), 64, cutoff=(40, 70, 0)).served.tolist() == [0, 0, 1, 0]


def test_dirty_blocks_above_the_target_are_written_back_in_the_background() -> None:
    # 20 of 1280 blocks may be dirty; of 80 above them, a fortieth each second, and a thousandth for each second that they are too many.
    steps = [*writes(*range(100)), *reads(5000, time=6_000_000_000), *writes(*range(100), time=7_000_000_000)]
    outcome = run(steps, 1280, writeback_percent=100 * 20 / 1280, writeback_delay=0)
    # The period of 5 s: 80 / 40 * 5 = 10, and 80 * 5 / 10,000 * 5 = 0.2. They were written to the origin, and again at the end.
    assert outcome.to_origin == 110 * BLOCK
    assert run(steps, 1280, writeback_percent=40, writeback_delay=0).to_origin == 100 * BLOCK


@pytest.mark.parametrize(
    ("delay", "moments", "written"),
    [
        # 100 / 40 and 100 * 25 / 10,000 each second.
        (0, [25], round(25 * 2.75)),
        (30, [25], 0),
        # Of the 35 s, it was 5 s long without a pause.
        (30, [35], round(5 * 2.55)),
        # The 100 dirty blocks are all that the search has found: another pause.
        (30, [80], 100),
        (30, [80, 105], 100),
        (30, [80, 200], 200),
    ],
)
def test_writing_back_pauses_after_the_first_dirty_block_and_after_a_search_of_the_whole_index(delay: float, moments: list[int], written: int) -> None:
    steps = writes(*range(100))
    for moment in moments:
        steps += [*reads(5000, time=moment * 10**9), *writes(*range(100), time=moment * 10**9 + 1)]
    assert run(steps, 1280, writeback_percent=0, writeback_delay=delay).to_origin == (written + 100) * BLOCK


@pytest.mark.parametrize(("dirty", "expected"), [(2, 2), (3, 1)])
def test_buckets_with_few_dirty_blocks_are_written_back_below_the_target(dirty: int, expected: int) -> None:
    # 44 of 64 buckets of 8 blocks are in use, more than 64 %. At 2 dirty blocks in each that is a quarter.
    starts = range(0, 44 * 8, 8)
    steps = [step for start in starts for step in (*writes(*range(start, start + dirty)), *reads(*range(start + dirty, start + 8)))]
    again = [step for start in starts for step in writes(*range(start, start + dirty), time=7_000_000_000)]
    settings = {"bucket": 8 * BLOCK, "writeback_percent": 100, "writeback_delay": 0, "sequential_cutoff": 0, "cutoff": (95, 95, 95)}
    outcome = run([*steps, *reads(5000, time=6_000_000_000), *again], 512, **settings)
    assert outcome.to_origin == 44 * dirty * BLOCK * expected


def test_only_the_first_missing_part_of_a_read_is_cached() -> None:
    steps = [*reads(2), *reads(0, blocks=5), *reads(0, 1, 2, 3, 4)]
    assert run(steps, 64).served.tolist() == [0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 0]


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60), st.integers(2, 16))
def test_reads_into_buckets_of_one_block_are_those_of_an_ideal_cache(blocks: list[int], size: int) -> None:
    steps = reads(*blocks)
    assert run(steps, size).served.tolist() == Reuse(load(steps)).served(size * BLOCK).tolist()


def test_tasks_have_their_own_buckets() -> None:
    hot, cold = reads(*range(8), process=1), reads(*range(100, 108), process=2)
    mixed = [step for pair in zip(hot, cold, strict=True) for step in pair]
    more = [*mixed, *(reads(*range(8)) * 4), *reads(*range(1000, 1112), process=3)]
    buckets = {"sequential_cutoff": 0, "bucket": 8 * BLOCK}
    found = run([*more, *hot, *cold], 512, **buckets).served.tolist()
    assert found[-16:] == [1] * 16


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_the_smallest_cache(mode: str) -> None:
    assert run([*reads(1, 1, 2, 1)], 1, mode).served.tolist() == [0, 1, 0, 0]
