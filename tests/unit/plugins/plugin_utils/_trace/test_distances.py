# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reuse distances against a stack that is searched."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import distances


def searched(blocks: list[int], weights: list[float]) -> list[float]:
    """The weights of the blocks that are above each in a stack of the last used ones."""
    stack: list[int] = []
    found = []
    for block in blocks:
        if block in stack:
            found.append(sum(weights[one] for one in stack[: stack.index(block)]))
            stack.remove(block)
        else:
            found.append(distances.FIRST)
        stack.insert(0, block)
    return found


@given(st.lists(st.integers(0, 12), max_size=80))
def test_distances_are_those_of_a_stack(blocks: list[int]) -> None:
    last, order = distances.last_accesses(np.array(blocks, dtype=np.int64))
    assert distances.reuse_distances(last).tolist() == searched(blocks, [1] * 13)
    assert [blocks[at] for at in order] == sorted(blocks)


@given(st.lists(st.integers(0, 6), max_size=60), st.lists(st.integers(1, 9), min_size=7, max_size=7))
def test_a_block_counts_as_much_as_it_stands_for(blocks: list[int], weights: list[int]) -> None:
    last = distances.last_accesses(np.array(blocks, dtype=np.int64))[0]
    of_accesses = np.array([weights[block] for block in blocks], dtype=float)
    assert np.allclose(distances.reuse_distances(last, of_accesses), searched(blocks, [float(one) for one in weights]))


def test_last_accesses() -> None:
    assert distances.last_accesses(np.array([7, 8, 7, 7, 8]))[0].tolist() == [-1, -1, 0, 2, 1]
