# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""dm-writecache on sequences whose outcome is computed by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.models import Outcome
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.writecache import WritecacheSettings, simulate
from ansible_collections.cachefleet.storage.tests.unit.support.loads import READ, WRITE, Step, load, reads, writes

BLOCK = 4096


def run(steps: list[Step], blocks: int, **settings: float) -> Outcome:
    return simulate(load(steps), blocks * BLOCK, "writeback", WritecacheSettings(**settings))


def test_only_writes_fill_it() -> None:
    outcome = run([*reads(1, 1), *writes(1), *reads(1)], 8)
    assert outcome.served.tolist() == [0, 0, 1, 1]
    assert (outcome.to_cache, outcome.to_origin) == (BLOCK, BLOCK)


def test_an_overwritten_block_reaches_the_origin_once() -> None:
    outcome = run(writes(1, 1, 1), 8)
    assert (outcome.to_cache, outcome.to_origin) == (3 * BLOCK, BLOCK)


def test_half_of_the_blocks_in_use_are_written_back_to_45_percent_in_the_order_in_which_they_came() -> None:
    # 20 blocks: with the tenth, writing back begins, until fewer than 9 are left. Overwriting the first does not make it younger.
    outcome = run([*writes(*range(9), 0), *reads(0), *writes(9), *reads(0, 1, 2, 9)], 20)
    assert outcome.served.tolist()[-4:] == [0, 0, 1, 1]
    assert outcome.served[10] == 1


def test_watermarks_are_settings() -> None:
    assert run([*writes(*range(8)), *reads(*range(8))], 10, high_watermark=80, low_watermark=30).served.tolist()[8:] == [0] * 6 + [1] * 2


def test_a_full_cache_lets_writes_pass_and_the_origin_limits_what_becomes_free() -> None:
    # One block a second, and a request each ms: nothing becomes free in time, then one does.
    later = writes(6, time=1_100_000_000)
    outcome = run([*writes(*range(6)), *later, *reads(6, 0, 5, time=1_200_000_000)], 4, origin_rate=1)
    assert outcome.served.tolist() == [1, 1, 1, 1, 0, 0, 1, 1, 0, 0]
    assert outcome.to_origin == 7 * BLOCK
    assert run(writes(*range(6)), 4, origin_rate=math.inf).served.tolist() == [1] * 6


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([READ, WRITE])), min_size=1, max_size=60), st.integers(2, 12))
def test_it_is_a_queue(steps: list[Step], blocks: int) -> None:
    queue: list[int] = []
    expected = []
    for block, operation in steps:  # type: ignore[misc]
        expected.append(int(block in queue or operation == WRITE))
        if operation == WRITE and block not in queue:
            queue.append(block)
            if len(queue) * 100 >= blocks * 50:
                while queue and len(queue) * 100 >= blocks * 45:
                    queue.pop(0)
    assert run(steps, blocks).served.tolist() == expected


@pytest.mark.parametrize("blocks", [1, 2])
def test_the_smallest_caches(blocks: int) -> None:
    assert run([*writes(1), *reads(1)], blocks).served.tolist() == [1, 0]
