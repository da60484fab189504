# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.request_sizes import (
    PATTERNS,
    aligned_mtu,
    diagnose,
    diagnose_average,
    histogram_difference,
)

#: Field case C: frames of 8704 bytes over a cache with blocks of 4 KiB.
CASE_C = {
    512: 117531108,
    1024: 61124866,
    1536: 83563623,
    2048: 89738119,
    2560: 43968876,
    3072: 51713913,
    3584: 83726471,
    4096: 41667452,
}


def pieces(start, length, block):
    """How device-mapper cuts a request at the boundaries of blocks."""
    while length:
        piece = min(length, block - start % block)
        yield piece
        start, length = start + piece, length - piece


def histogram_of(requests, block=4096):
    counts: dict[int, int] = {}
    for start, length in requests:
        for piece in pieces(start, length, block):
            counts[piece] = counts.get(piece, 0) + 1
    return counts


def test_case_c_sizes_add_up_and_frames_are_recognized():
    found = diagnose(CASE_C, 4096)
    assert found.requests == sum(CASE_C.values()) == 573034428
    assert found.uncacheable_requests == 531366976
    assert found.uncacheable_requests + CASE_C[4096] == found.requests
    assert found.uncacheable_share == pytest.approx(0.9273, abs=1e-4)
    assert found.uncacheable_byte_share == pytest.approx(0.8558, abs=1e-3)
    assert found.pattern == "frames"
    assert "92.7% of 573034428 requests" in found.sentences[0]
    assert "MTU from 8228 to 8739 on both sides, which carries 8192 bytes" in found.sentences[1]


def test_consecutive_frames_produce_staircase_pattern():
    cut = histogram_of((frame * 8704, 8704) for frame in range(4096))
    assert diagnose(cut, 4096).pattern == "frames"
    whole = histogram_of((frame * 8192, 8192) for frame in range(4096))
    assert diagnose(whole, 4096).uncacheable_share == 0
    assert diagnose(whole, 4096).sentences == ()


def test_partition_starting_at_sector_63_is_detected():
    found = diagnose(histogram_of((63 * 512 + number * 4096 * 7, 4096) for number in range(500)), 4096)
    assert found.pattern == "misaligned"
    assert found.uncacheable_share == 1
    assert "such as 512 and 3584 bytes" in found.sentences[1]


def test_small_database_pages_are_detected():
    found = diagnose(histogram_of((number * 65536 + 2048 * (number % 2), 2048) for number in range(500)), 4096)
    assert found.pattern == "small_blocks"
    assert "chunk_size of 2048" in found.sentences[1]


def test_few_small_requests_are_not_reported():
    found = diagnose({512: 30, 4096: 9970}, 4096)
    assert (found.pattern, found.sentences) == ("none", ())
    assert found.uncacheable_share == pytest.approx(0.003)


def test_uncounted_block_size_cannot_be_diagnosed():
    found = diagnose({4096: 10}, 65536)
    assert found.uncacheable_share is None
    assert "cannot be determined" in found.sentences[0]


def test_empty_histogram_gives_no_diagnosis():
    found = diagnose({}, 4096)
    assert found.uncacheable_share is None
    assert found.sentences == ()


def test_difference_of_two_histograms():
    assert histogram_difference({512: 10, 4096: 5}, {512: 10, 1024: 1, 4096: 25}) == {1024: 1, 4096: 20}
    # The module was unloaded in between.
    assert histogram_difference({512: 10, 4096: 500}, {4096: 25}) == {4096: 25}


def test_device_statistics_give_minimum_uncacheable_share():
    found = diagnose_average(1000, 1000 * 1024, 4096)
    assert found.uncacheable_share == pytest.approx(0.75)
    assert "At least 75% of 1000 requests" in found.sentences[0]
    assert diagnose_average(1000, 1000 * 8192, 4096).sentences == ()
    assert diagnose_average(0, 0, 4096).uncacheable_share is None


@pytest.mark.parametrize(("block", "window"), [(4096, (8228, 8739)), (8192, (8228, 8739)), (1024, (8228, 8739)), (16384, None)])
def test_mtu_range_for_whole_blocks(block, window):
    assert aligned_mtu(block) == window
    if window:
        assert all((mtu - 36) // 512 * 512 % block == 0 for mtu in window)


@given(st.dictionaries(st.integers(0, 64).map(lambda sectors: sectors * 512), st.integers(0, 10**12)), st.sampled_from([512, 1024, 4096, 16384, 65536]))
def test_uncacheable_share_of_any_histogram_is_consistent(histogram, block):
    found = diagnose(histogram, block)
    assert found.pattern in PATTERNS
    assert found.uncacheable_share is None or 0 <= found.uncacheable_share <= 1
    assert found.requests == sum(count for size, count in histogram.items() if size)
    assert found.uncacheable_requests + (histogram.get(block, 0) if block else 0) == found.requests


@pytest.mark.parametrize("length", [5632, 6656, 8704, 12800])
def test_unaligned_frame_lengths_are_distinguished_from_aligned(length):
    blocks = list(itertools.islice(itertools.count(), 2048))
    assert diagnose(histogram_of((number * length, length) for number in blocks), 4096).pattern == "frames"
