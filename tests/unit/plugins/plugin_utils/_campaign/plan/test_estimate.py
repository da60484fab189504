# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a job takes and how much it writes, before it runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.estimate import estimate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import CampaignTarget

GIB = 1024**3
#: 1000 writes of 4 KiB a second, or 100 MB/s.
DISK = CampaignTarget("", "/dev/x", "device", {"device": "/dev/x"}, 10 * GIB, 100e6, 1000)
TIMED = {"rw": "randwrite", "bs": "4k", "runtime": 60, "time_based": 1}


def of(job, target=DISK):
    return estimate(read_job(job, "a"), target, "a")


def test_timed_job_writes_at_the_target_rate_for_its_duration():
    cost = of({**TIMED, "ramp_time": 10})
    assert (cost.seconds, cost.known, cost.written, cost.exact) == (70, True, 70 * 1000 * 4096, False)
    assert of({**TIMED, "bs": "1m"}).written == 60 * 100e6


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"rw": "randread"}, 0),
        ({"rw": "randtrim"}, 0),
        ({"rw": "randrw"}, 0.5),
        ({"rw": "randrw", "rwmixread": 70}, 0.3),
        ({"rw": "randrw", "rwmixwrite": 20}, 0.2),
        ({"rate_iops": 100}, 0.1),
        ({"rate_iops": 100, "numjobs": 4}, 0.4),
        ({"rate": "409600"}, 0.1),
        ({"bs": "64k,8k"}, 2),
        ({"bs": ",8k"}, 2),
        ({"bs": "64k,"}, 1),
        ({"bsrange": "1k-8k"}, 2),
        ({"numjobs": 64, "iodepth": 64}, 1),
    ],
)
def test_job_options_change_the_written_bytes(options, part):
    assert of({**TIMED, **options}).written == round(part * 60 * 1000 * 4096)


def test_fill_writes_its_size_at_the_target_rate():
    cost = of({"rw": "write", "bs": "1m"})
    assert (cost.written, cost.exact, cost.known, cost.longest) == (10 * GIB, True, False, None)
    assert cost.seconds == pytest.approx(10 * GIB / 100e6)


@pytest.mark.parametrize(
    ("options", "written", "exact"),
    [
        ({"loops": 2}, 20 * GIB, True),
        ({"numjobs": 3}, 30 * GIB, True),
        ({"size": "1g"}, GIB, True),
        ({"size": "70%"}, 7 * GIB, True),
        ({"io_size": "2g"}, 2 * GIB, True),
        ({"number_ios": 5, "bs": "4k"}, 5 * 4096, True),
        ({"runtime": 3600}, 10 * GIB, True),
        ({"runtime": 10}, 1000 * 10**6, False),
    ],
)
def test_size_options_limit_the_written_bytes(options, written, exact):
    cost = of({"rw": "write", "bs": "1m", **options})
    assert (cost.written, cost.exact) == (written, exact)


def test_estimate_without_device_size_is_unknown():
    unknown = CampaignTarget("", "/dev/x", "device", {"device": "/dev/x"}, None)
    assert (of({"rw": "write"}, unknown).written, of({"rw": "write"}, unknown).seconds) == (None, None)
    assert of({"rw": "read"}, unknown).written == 0
    assert of({"rw": "write", "runtime": 10}, unknown).seconds == 10


def test_parallel_sections_share_the_target_and_phases_add_up():
    writers = {"global": TIMED, "jobs": [{"name": "x"}, {"name": "y"}]}
    assert of(writers).written == of(TIMED).written
    assert of({"global": TIMED, "jobs": [{"name": "x"}, {"name": "y", "stonewall": 1}]}).written == 2 * of(TIMED).written
    assert of({"global": TIMED, "jobs": [{"name": "x"}, {"name": "y", "rw": "randread"}]}).written == of(TIMED).written


@pytest.mark.parametrize(
    "options",
    [
        {"loops": "many", "time_based": 0},
        {"numjobs": "x"},
        {"rwmixread": "half", "rw": "rw"},
        {"bs": "wide"},
        {"bs": "0"},
        {"bs": "4k,x"},
        {"size": "x%", "time_based": 0},
    ],
)
def test_invalid_numbers_are_rejected_in_one_sentence(options):
    with pytest.raises(BadInput, match=r"a: (how much the job writes cannot be determined|[a-z]+=.* is refused: the value must be)"):
        of({**TIMED, **options})


@given(seconds=st.integers(1, 10**6), rate=st.integers(1, 10**10), iops=st.integers(1, 10**7), block=st.sampled_from(["4k", "64k", "1m"]))
def test_estimate_never_exceeds_the_target_rate(seconds, rate, iops, block):
    cost = of({**TIMED, "bs": block, "runtime": seconds}, CampaignTarget("", "/dev/x", "device", {}, None, rate, iops))
    assert 0 <= cost.written <= seconds * rate


@pytest.mark.parametrize(
    ("options", "written"),
    [
        # fio 3.33 wrote 3.28 MB in 2 s with the first: each direction has the limit, and the mix is not kept.
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": 400}, 60 * 400 * 4096),
        ({"rw": "randrw", "rwmixread": 90, "rate": "1600k"}, 60 * 1600 * 1024),
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": "500,300"}, 60 * 300 * 4096),
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": "500,300", "numjobs": 2}, 60 * 600 * 4096),
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": ",300"}, 60 * 300 * 4096),
        # Reads that wait leave all of the device to the writes.
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": "50,"}, 60 * 1000 * 4096),
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": 400, "bssplit": "4k/50:64k/50"}, 60 * 100e6),
        ({"rw": "randrw", "rwmixread": 90, "rate_iops": 400, "time_based": 0, "io_size": "40k"}, 40 * 1024),
    ],
)
def test_rate_limit_of_each_direction_is_not_multiplied_with_the_mix(options, written):
    assert of({**TIMED, **options}).written == written


def test_sections_at_once_write_their_limits_together():
    jobs = [{"name": name, "rw": "randwrite", "rate_iops": 200} for name in "ab"]
    assert of({"global": {"runtime": 60, "time_based": 1, "bs": "4k"}, "jobs": jobs}).written == 60 * 400 * 4096


@pytest.mark.parametrize("wait", [{"wait_for": "a"}, {"stonewall": 1}, {"wait_for_previous": 1}, {"startdelay": 60}])
def test_sections_that_follow_each_other_take_and_write_their_times_together(wait):
    jobs = [{"name": "a", "rw": "randwrite"}, {"name": "b", "rw": "randwrite", **wait}]
    cost = of({"global": {"runtime": 60, "time_based": 1, "bs": "4k"}, "jobs": jobs})
    assert (cost.seconds, cost.longest, cost.written) == (120, 120, 120 * 1000 * 4096)
