# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import math

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import Difference, HostValue, outliers, scores


def values(cell, numbers, alike="S3500"):
    return [HostValue(f"node{number}", cell, alike, float(value)) for number, value in enumerate(numbers, 1)]


COMMON = {"firmware": "D201", "scheduler": "none", "mtu": 9000, "cache": "writeback", "temperature": 31.0}
SLOW = [100, 101, 99, 102, 98, 70]


def facts(**own):
    """Facts of six hosts; the sixth has its own."""
    return {f"node{number}": {**COMMON, "temperature": 30.0 + number / 2, **(own if number == 6 else {})} for number in range(1, 7)}


def test_modified_z_score_of_logarithms():
    logs = np.log(SLOW)
    centre = np.median(logs)
    mad = np.median(np.abs(logs - centre))
    found = scores(values("randwrite", SLOW))
    # This MAD is below 2 %.
    assert mad < math.log(1.02)
    assert found[5].score == pytest.approx(0.6745 * (logs[5] - centre) / math.log(1.02))
    assert found[5].ratio == pytest.approx(70 / math.exp(centre))
    wide = [100, 120, 80, 140, 60, 40]
    logs = np.log(wide)
    spread = np.median(np.abs(logs - np.median(logs)))
    assert [one.score for one in scores(values("c", wide))] == pytest.approx(list(0.6745 * (logs - np.median(logs)) / spread))


def test_small_deviation_among_identical_hosts_is_not_an_outlier():
    assert not any(one.is_out for one in scores(values("c", [100, 100, 100, 100, 100, 101])))
    assert outliers(values("c", [100, 100, 100, 100, 100, 95]), {}) == ()


def test_fewer_than_five_hosts_of_a_class_have_only_a_ratio():
    found = scores(values("c", [100, 100, 100, 10]))
    assert [one.score for one in found] == [None] * 4
    assert found[3].ratio == pytest.approx(0.1)
    assert outliers(values("c", [100, 100, 100, 10]), {}) == ()


def test_only_hosts_of_the_same_class_are_compared():
    fast = [HostValue(f"fast{n}", "c", "P4510", 900.0 + n) for n in range(5)]
    assert not any(one.is_out for one in scores(values("c", [100, 101, 99, 102, 98]) + fast))
    assert scores(values("c", [100, 101]) + fast)[0].alike == 2


def test_differing_facts_are_named():
    (found,) = outliers(values("c", SLOW), facts(firmware="D101", mtu=1500, temperature=55.0))
    assert found.host == "node6"
    assert found.differences == (Difference("firmware", "D101", "D201"), Difference("mtu", 1500, 9000), Difference("temperature", 55.0, 31.5))


def test_fact_differing_between_all_hosts_is_omitted():
    own = facts(serial="S6", temperature=33.4)
    for number in range(1, 6):
        own[f"node{number}"]["serial"] = f"S{number}"
    (found,) = outliers(values("c", SLOW), own)
    assert found.differences == ()


def test_fact_of_a_single_host_is_not_compared():
    (found,) = outliers(values("c", SLOW), facts(odd="x"))
    assert found.differences == ()
    assert outliers(values("c", SLOW), {})[0].differences == ()


def test_small_deviation_requires_two_cells():
    # 12 % below: z is 4.3.
    little = [100, 101, 99, 102, 98, 88]
    (score,) = [one for one in scores(values("randread", little)) if one.is_out]
    assert -6 < score.score < -3.5
    assert outliers(values("randread", little), facts()) == ()
    (found,) = outliers(values("randread", little) + values("randwrite", little), facts())
    assert [one.cell for one in found.scores] == ["randread", "randwrite"]


def test_outliers_are_ordered_by_distance_and_include_faster_hosts():
    two = [100, 101, 99, 102, 98, 70, 200, 100, 100]
    assert [one.host for one in outliers(values("c", two), {})] == ["node7", "node6"]


def test_other_outliers_are_excluded_from_reference_facts():
    numbers = [100, 101, 99, 102, 98, 50, 51, 52, 53]
    own = {f"node{n}": {"firmware": "old" if n > 5 else "new"} for n in range(1, 10)}
    found = outliers(values("c", numbers), own)
    assert {one.host for one in found} <= {"node6", "node7", "node8", "node9"}
    assert all(one.differences == (Difference("firmware", "old", "new"),) for one in found)


def test_true_is_distinct_from_1_and_structured_facts_are_compared():
    (found,) = outliers(values("c", SLOW), {**{f"node{n}": {"plp": 1, "paths": ["a"]} for n in range(1, 6)}, "node6": {"plp": True, "paths": ["a", "b"]}})
    assert [one.fact for one in found.differences] == ["plp", "paths"]


def test_invalid_value_is_rejected():
    with pytest.raises(BadInput, match="values of hosts: number 2 is 0"):
        scores(values("c", [1, 0]))
    assert scores([]) == ()
