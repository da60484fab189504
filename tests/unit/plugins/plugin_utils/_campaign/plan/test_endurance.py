# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan costs its targets, and its refusal."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.endurance import check_wear, wear_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import make_plan

#: 10 s at 100 MB/s: 1 GB; a fill of 2 GB.
CELLS = [
    {"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m"}},
    {"name": "w", "repeats": 3, "job": {"rw": "write", "bs": "1m", "runtime": 10, "time_based": 1}},
    {"name": "r", "repeats": 3, "job": {"rw": "read", "bs": "1m", "runtime": 10, "time_based": 1}},
]
DISK = {"device": "/dev/a", "capacity": "2000000000", "write_rate": "100000000", "endurance": "1TB"}


def wears(*targets, **suite):
    return wear_of(make_plan("mine", {"mine": {"cells": CELLS, **suite}}, targets or [DISK]))


def test_all_repeats_are_added_per_target():
    (wear,) = wears()
    assert (wear.written, wear.cells, wear.repeats) == (5 * 10**9, {"fill": 2 * 10**9, "w": 3 * 10**9, "r": 0}, {"fill": 1, "w": 3, "r": 3})
    assert wear.to_dict() == {"target": "/dev/a", "bytes_written": 5 * 10**9, "endurance": 10**12, "percent": 0.5, "unknown": []}


def test_search_counts_all_its_probes():
    suite = {"cells": [{"name": "s", "job": {"rw": "write", "bs": "1m", "runtime": 10, "time_based": 1}, "search": {"limit": "1ms", "last": 2}}]}
    assert wears(**suite)[0].written == 2 * 10**9


def test_each_target_has_its_own_wear():
    assert [wear.percent for wear in wears(DISK, {"device": "/dev/b", "capacity": "1g"})] == [0.5, None]


@pytest.mark.parametrize("targets", ["together", "one_after_another"])
def test_parts_of_a_target_are_added(targets):
    suite = {"targets": targets, "cells": [{**CELLS[0], "share": 50}, {**CELLS[1], "name": "whole", "repeats": 1}]}
    assert [wear.written for wear in wears(**suite)] == [2 * 10**9]


def test_exceeded_wear_budget_is_refused_with_the_largest_cells():
    check_wear(wears(), 0.5)
    with pytest.raises(Refused) as caught:
        check_wear(wears(), 0.4)
    assert "/dev/a: this campaign would write up to 5 GB, 0.5 % of the 1 TB" in caught.value.message
    assert "(w 3 GB in 3 repeats, fill 2 GB)" in caught.value.message
    assert "raise fio_benchmark_wear_budget" in caught.value.message


def test_no_refusal_without_endurance_or_budget():
    check_wear(wears({"device": "/dev/a", "capacity": "1t"}), 0.0001)
    check_wear(wears(), 0)


def test_budget_requires_known_written_bytes():
    with pytest.raises(Refused, match=r"how much fill would write cannot be determined.*'capacity'.*fio_benchmark_wear_budget"):
        check_wear(wears({"device": "/dev/a", "endurance": 1}), 50)
