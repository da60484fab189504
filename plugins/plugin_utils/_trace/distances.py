# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Exact reuse distances of many accesses at once. Pure functions on arrays."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import Library

np = Library("numpy", "Reading traces")

#: The distance of a first access.
FIRST = (1 << 31) - 1


def last_accesses(blocks: t.Any) -> tuple[t.Any, t.Any]:
    """The position of the access before to the same block, -1 if there is none; and all positions, by block and time."""
    order = np.argsort(blocks, kind="stable").astype(np.int32)
    last = np.full(len(blocks), -1, dtype=np.int32)
    again = blocks[order[1:]] == blocks[order[:-1]]
    last[order[1:][again]] = order[:-1][again]
    return last, order


def reuse_distances(last: t.Any, weights: t.Any = None) -> t.Any:
    """How many other blocks were accessed since the last access to this block; :data:`FIRST` for a first access.

    Between positions p and i there were i - p - 1 accesses, of which those whose own last access is after p repeat a block.

    :param last: of :func:`last_accesses`.
    :param weights: for how many blocks the block of each access stands; 1 if there are none.
    """
    again = np.flatnonzero(last >= 0).astype(np.int32)
    before = last[again]
    ranks = _ranks(before, len(last))
    if weights is None:
        distances = np.full(len(last), FIRST, dtype=np.int32)
        distances[again] = again - before - 1 - _greater_before(ranks, None)
        return distances
    distances = np.full(len(last), float(FIRST))
    sums = np.cumsum(weights)
    distances[again] = sums[again] - weights[again] - sums[before] - _greater_before(ranks, weights[again])
    return distances


def _ranks(values: t.Any, limit: int) -> t.Any:
    """0 for the least of different numbers below ``limit``."""
    present = np.zeros(limit, dtype=np.int32)
    present[values] = 1
    return (np.cumsum(present, dtype=np.int32) - 1)[values]


def _greater_before(ranks: t.Any, weights: t.Any) -> t.Any:
    """For each element of a permutation, how many elements before it are greater, or their weights.

    Elements are divided by their highest bit, then each half by the next: those with 0 follow those with 1 that were before them.
    """
    count = len(ranks)
    greater = np.zeros(count, dtype=np.int32 if weights is None else np.float64)
    order = ranks.copy()
    for bit in reversed(range(max(count - 1, 0).bit_length())):
        # The elements of a group are the ranks that share the higher bits, so that it begins at the first of them.
        begin = order >> (bit + 1) << (bit + 1)
        high = (order >> bit) & 1
        passed = _sums_before(high, begin)
        low = high == 0
        greater[order[low]] += (passed if weights is None else _sums_before(high * weights, begin))[low]
        position = np.where(low, np.arange(count, dtype=np.int32) - passed, begin + (1 << bit) + passed)
        order = _moved(order, position)
        weights = None if weights is None else _moved(weights, position)
    return greater[ranks]


def _sums_before(values: t.Any, begin: t.Any) -> t.Any:
    """The sum of the values before each, from the begin of its group."""
    sums = np.zeros(len(values) + 1, dtype=values.dtype)
    np.cumsum(values, out=sums[1:])
    return sums[:-1] - sums[begin]


def _moved(values: t.Any, position: t.Any) -> t.Any:
    moved = np.empty_like(values)
    moved[position] = values
    return moved
