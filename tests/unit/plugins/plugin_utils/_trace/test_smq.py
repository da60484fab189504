# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""dm-cache's policy smq on sequences whose outcome is computed by hand."""

from __future__ import annotations

import random
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import smq
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.smq import SmqSettings, simulate
from ansible_collections.cachefleet.storage.tests.unit.support.loads import WRITE, Step, load, reads, writes

BLOCK = 4096


def run(steps: list[Step], blocks: int, mode: str = "writeback", block: int = BLOCK, origin: int = 0, **settings: t.Any) -> Outcome:
    return simulate(load(steps, block, size=origin), blocks * block, mode, SmqSettings(**settings))


def test_a_block_is_promoted_when_its_surroundings_are_among_those_most_missed() -> None:
    # The only hotspot is at the top after a second. The block is promoted with the next miss, and served from then on.
    steps = [(0, 0, {"time": second * 1_000_000_000}) for second in range(6)]
    assert run(steps, 64).served.tolist() == [0, 0, 1, 1, 1, 1]
    # In the first second there are no top levels yet: it rises four levels with each miss after the first, and is promoted with the one at level 48.
    assert run(reads(*([0] * 20)), 64, migration=0).served.tolist() == [0] * 13 + [1] * 7


def missed(hot: smq._Hotspots, *entries: int) -> list[int]:
    """Levels of an entry after requests that miss it."""
    levels = []
    for entry in entries:
        hot.raised.clear()
        levels.append(hot.missed(entry))
    return levels


def test_a_hotspot_rises_with_each_miss_and_faster_if_the_queue_knows_little() -> None:
    hot = smq._Hotspots(8, 100, 2, 0)
    assert missed(hot, 5, 5, 5) == [0, 1, 2]
    hot._jump = 4
    assert missed(hot, 5, 5, 5) == [6, 10, 14]


def test_a_hotspot_rises_once_with_all_blocks_of_a_request() -> None:
    hot = smq._Hotspots(1, 100, 2, 0)
    assert [hot.missed(5) for _block in range(4)] == [0, 1, 1, 1]
    # Another one that takes its place may rise.
    assert [hot.missed(entry) for entry in (6, 6, 5, 5)] == [1, 2, 2, 3]
    # Of two blocks, the second already lifts a new hotspot by four levels: level 48 comes with the 12th request, with single blocks with the 13th.
    single, double = (run(reads(*([0] * 20), blocks=blocks), 64, migration=0).served.tolist() for blocks in (1, 2))
    assert (single.index(1), double.index(1)) == (13, 2 * 12)


def test_the_oldest_hotspot_of_the_lowest_level_makes_room() -> None:
    hot = smq._Hotspots(2, 100, 0, 0)
    missed(hot, 1, 2, 1, 3, 2)
    # 1 has risen; 3 took the place of 2, and then 2 that of 3.
    assert [hot._levels[entry] for entry in (1, 2, 3)] == [1, 0, -1]


def test_a_promoted_block_can_be_used_after_the_migration() -> None:
    steps = [(0, 0, {"time": time * 1_000_000}) for time in (0, 1000, 1005, 1030)]
    assert run(steps, 64, migration=0.02).served.tolist() == [0, 0, 0, 1]
    assert run(steps, 64, migration=0.001).served.tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_a_write_waits_for_the_migration_of_its_block(mode: str) -> None:
    steps = [(0, operation, {"time": time * 1_000_000}) for time, operation in ((0, 0), (1000, 0), (1005, 0), (1006, WRITE), (1007, 0), (1030, 0))]
    outcome = run(steps, 64, mode, block=65536)
    assert outcome.served.tolist() == [0, 0, 0, 1, 1, 1]
    # It was promoted once.
    assert outcome.to_cache == 65536 + BLOCK


def test_writes_of_whole_blocks_are_promoted_at_once_in_write_back_while_there_is_room() -> None:
    steps = [*writes(1, 2), *reads(1, 2), *writes(3), *reads(3)]
    assert run(steps, 2).served.tolist() == [1, 1, 1, 1, 0, 0]
    assert run(steps, 2, "writethrough").served.tolist() == [0] * 6
    # A write of a part of a block is not.
    assert run(writes(1, 1), 2, block=65536).served.tolist() == [0, 0]


def test_write_back_saves_what_is_overwritten_and_write_through_nothing() -> None:
    outcome = run(writes(1, 1, 1, 1), 8)
    assert (outcome.to_cache, outcome.to_origin) == (4 * BLOCK, BLOCK)
    assert run(writes(1, 1, 1, 1), 8, "writethrough").to_origin == 4 * BLOCK


def test_without_requests_everything_is_written_back() -> None:
    steps = [*writes(1, time=0), *writes(2, time=500_000_000), *writes(1, time=2_000_000_000), *writes(1, time=2_900_000_000)]
    # Both when it is idle for 1.5 s, the first again at the end.
    assert run(steps, 8).to_origin == 3 * BLOCK


def test_without_room_a_clean_block_of_the_lower_half_leaves_and_the_next_one_is_promoted() -> None:
    """New blocks are at the top: none leaves until the levels are spread again after a minute."""
    full = [(number, WRITE, {"time": number * 1_000_000}) for number in range(60)]
    # Everything is clean since it was idle, and spread over the levels. The hotspot of what is missed rises within one second.
    late = [(60, 0, {"time": 62_000_000_000 + number * 10_000_000}) for number in range(60)]
    # The first miss makes room, as the queue knew what is hot a minute ago; at level 48 the block is promoted, and comes 20 ms later.
    served = run([*full, *late], 60).served.tolist()[60:]
    assert served == [0] * 49 + [1] * 11
    # The block that has left is missed, which makes room again: of the next one.
    assert run([*full, *late, *reads(*range(60), time=69_000_000_000)], 60).served[120:].tolist() == [0, 0] + [1] * 58
    early = [(60, 0, {"time": 2_000_000_000 + number * 10_000_000}) for number in range(60)]
    assert sum(run([*full, *early], 60).served.tolist()[60:]) == 0


@pytest.mark.parametrize(("hits", "misses", "level", "jump"), [(1, 16, 48, 4), (1, 15, 32, 2), (1, 8, 32, 2), (1, 7, 0, 1), (0, 0, 48, 4)])
def test_the_better_the_queue_knows_what_is_hot_the_more_is_promoted(hits: int, misses: int, level: int, jump: int) -> None:
    hot = smq._Hotspots(8, 100, 2, 0)
    hot._hits, hot._misses = hits, misses
    hot.end_period()
    assert (hot.promoted_from, hot._jump, hot._hits, hot._misses) == (level, jump, 0, 0)


def test_few_accesses_of_a_sample_change_nothing() -> None:
    hot = smq._Hotspots(8, 100, 2, 32)
    hot.missed(5)
    hot.end_period()
    assert hot._misses == 1


@given(st.integers(1, 300), st.integers(0, 40), st.randoms(use_true_random=False))
def test_levels_have_equally_many_entries_after_they_are_spread(count: int, top: int, generator: random.Random) -> None:
    levels = [-1] * count
    queue = smq._Queue(levels, top)
    for entry in range(count):
        queue.push(entry, generator.randrange(64))
    queue.spread()
    counts = [len(row) for row in queue.rows]
    assert sum(counts) == count == queue.count
    assert [levels[entry] for row in queue.rows for entry in row] == [level for level, number in enumerate(counts) for _entry in range(number)]
    lower, upper = (counts[:56], counts[56:]) if top else (counts, [0])
    assert max(lower) - min(lower) <= 1
    assert count < top or max(upper) - min(upper) <= 1
    assert sum(upper) == min(top, count)


def test_a_used_entry_changes_places_with_the_oldest_above_it() -> None:
    levels = [-1] * 4
    queue = smq._Queue(levels)
    for entry, level in ((0, 3), (1, 3), (2, 4), (3, 4)):
        queue.push(entry, level)
    queue.used(0, 1)
    assert [list(queue.rows[level]) for level in (3, 4)] == [[1, 2], [3, 0]]
    queue.used(3, 0)
    assert list(queue.rows[4]) == [0, 3]
    assert queue.oldest() == 1
    assert queue.oldest(3) is None


@pytest.mark.parametrize(("origin", "expected"), [(0, 3), (1024 * 4096, 4)])
def test_hotspots_are_smaller_on_a_small_origin(origin: int, expected: int) -> None:
    """Two neighbours, in turn, rise together as one hotspot, and each on its own if hotspots are single blocks."""
    steps = [(second % 2, 0, {"time": second * 1_000_000_000}) for second in range(40)]
    served = run(steps, 64, origin=origin).served.tolist()
    assert served.index(1) == expected
