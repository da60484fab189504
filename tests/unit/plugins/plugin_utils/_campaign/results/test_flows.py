# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The state of a cache while it is measured, of planted series, and its hit ratio."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import STATES, hit_ratio, state_of_cache

MIB = 1 << 20
SIZE = 1024 * MIB


def mib(*values):
    return [value * MIB for value in values]


@pytest.mark.parametrize(
    ("state", "used", "dirty", "ratios", "more"),
    [
        # The deciding cells of the demo: what the fill left dirty was written back meanwhile, or came and went in balance.
        ("writing back", mib(250, 250, 250), mib(25, 12, 4), (0.9, 0.9), {}),
        ("writing back", mib(250, 250, 250), mib(38, 20, 3), (None, None), {}),
        ("warm", mib(250, 250, 250), mib(22, 20, 19), (0.9, 0.9), {}),
        ("warm", mib(250, 250, 250), mib(0, 10, 25), (0.9, 0.9), {}),
        # A large cache writes back for an hour.
        ("writing back", mib(900, 900), mib(800, 770), (0.9, 0.9), {}),
        ("warm", mib(900, 900), mib(800, 790), (0.9, 0.9), {}),
        ("warm", mib(250, 250), [4096 * 100, 0], (0.9, 0.9), {}),
        ("full", mib(1020, 1020), mib(0, 0), (0.2, 0.4), {}),
        ("full", mib(1020, 1024), (), (None, None), {}),
        ("full", mib(500, 500), mib(204, 204), (0.5, 0.5), {"dirty_limit": 204.8 * MIB}),
        ("warm", mib(500, 500), mib(150, 150), (0.5, 0.5), {"dirty_limit": 204.8 * MIB}),
        ("empty", mib(0, 5, 9), mib(0, 0, 0), (0.0, 0.001), {}),
        ("empty", mib(0, 0), (), (None, None), {}),
        ("empty", mib(300, 300, 300), mib(0, 0, 0), (0.0, 0.0), {}),
        # Nothing hits, because everything is new and stays there.
        ("warming", mib(10, 100, 200), mib(10, 100, 200), (0.0, 0.0), {}),
        # A small working set in a large cache is found, although it occupies next to nothing.
        ("warming", mib(1, 3, 5), mib(0, 0, 0), (0.1, 0.8), {}),
        ("warm", mib(5, 5, 5), mib(0, 0, 0), (0.99, 0.99), {}),
        ("warming", mib(300, 400, 500, 600), mib(0, 0, 0, 0), (0.5, 0.5), {}),
        ("warming", mib(500, 500), (), (0.5, 0.55), {}),
        ("warm", mib(500, 505, 510), (), (0.5, 0.52), {}),
        ("warm", mib(500, 400), (), (0.55, 0.5), {}),
        ("warm", (), (), (0.5, None), {}),
        ("warming", (), (), (0.5, 0.6), {}),
        (None, (), (), (None, None), {}),
        (None, mib(500), (), (None, None), {}),
    ],
)
def test_state_of_a_planted_cache(state, used, dirty, ratios, more):
    assert state_of_cache(SIZE, used, dirty, ratios, **more) == state
    assert state is None or state in STATES


def test_state_without_the_size():
    assert state_of_cache(None, mib(1024, 1024), mib(0, 0), (0.5, 0.5)) == "warm"
    assert state_of_cache(None, mib(1, 600), (), (None, None)) == "warming"
    assert state_of_cache(None, mib(9, 9), mib(9, 1), (None, None)) == "writing back"


@pytest.mark.parametrize(
    ("pairs", "ratio"),
    [
        ([(3.0, 1.0), (1.0, 3.0)], 0.5),
        # bcache counts reads only.
        ([(3.0, 1.0), (None, None)], 0.75),
        ([(3.0, None), (None, 1.0)], None),
        ([(0.0, 0.0), (0.0, 0.0)], None),
        ([(0.0, 5.0), (0.0, 0.0)], 0.0),
    ],
)
def test_hit_ratio_is_of_what_is_counted(pairs, ratio):
    assert hit_ratio(*pairs) == ratio
