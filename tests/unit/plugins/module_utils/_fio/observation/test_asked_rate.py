# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cautions import by_direction, compare_rates


@pytest.mark.parametrize(
    ("text", "limits"),
    [
        ("400", {"read": 400, "write": 400, "trim": 400}),
        ("500,300", {"read": 500, "write": 300}),
        (",300", {"write": 300}),
        ("1k,", {"read": 1024}),
        ("0", {}),
        (None, {}),
    ],
)
def test_limits_are_of_each_direction(text, limits):
    assert by_direction(text) == limits


@pytest.mark.parametrize(
    ("job", "found", "reached", "notes"),
    [
        ({"rate_iops": 400}, {"iops": 399.9}, True, []),
        ({"rate_iops": 400, "bssplit": "4k/60:64k/40"}, {"iops": 59.0}, False, ["read reached 59 of the 400 IOPS that rate_iops of the job requests."]),
        ({"rate_iops": 100, "numjobs": 4}, {"iops": 380.5}, True, []),
        ({"rate": "1m"}, {"iops": 128.0, "bw_bytes": 524288}, False, ["read reached 524,288 of the 1,048,576 bytes per second that rate of the job requests."]),
        ({"rate_iops": ",400"}, {"iops": 3.0}, False, []),
        ({"rate_iops": 400}, {"iops": None}, False, []),
        ({}, {"iops": 3.0}, False, []),
    ],
)
def test_reached_rate_is_compared_with_the_requested_one(job, found, reached, notes):
    requested = read_job({"rw": "randread", **job}, "a")
    assert compare_rates(requested, {"read": {"bw_bytes": None, "at_once": True, **found}, "write": None}) == (reached, notes)


def test_nothing_is_compared_where_sections_do_not_run_together_or_are_not_all_limited():
    summary = {"read": {"iops": 100.0, "bw_bytes": None, "at_once": True}}
    both = [{"name": "a"}, {"name": "b"}]
    assert compare_rates(read_job({"global": {"rw": "read", "rate_iops": 100}, "jobs": both}, "x"), summary)[1] == [
        "read reached 100 of the 200 IOPS that rate_iops of the job requests."
    ]
    # Jobs in turn, of unequal times, or that ended each other: the summary has what the report shows.
    in_turn = {"read": {**summary["read"], "at_once": False}}
    assert compare_rates(read_job({"global": {"rw": "read", "rate_iops": 100}, "jobs": both}, "x"), in_turn) == (False, [])
    assert compare_rates(read_job({"global": {"rw": "read"}, "jobs": [{**both[0], "rate_iops": 400}, both[1]]}, "x"), summary) == (False, [])


@pytest.mark.parametrize(("total_ios", "reached"), [(1139, True), (1000, False), (30_000, True), (28_000, False)])
def test_rate_by_chance_may_deviate_as_a_count_does(total_ios, reached):
    # 1200 I/Os are 1200 +- 35: 1139 is no other rate. 30,000 of 31,000 are within a twentieth.
    seconds = 6 if total_ios < 2000 else 155
    job = read_job({"rw": "randread", "rate_iops": 200, "rate_process": "poisson"}, "x")
    found = {"read": {"iops": total_ios / seconds, "total_ios": total_ios, "at_once": True}}
    assert compare_rates(job, found)[0] is reached
