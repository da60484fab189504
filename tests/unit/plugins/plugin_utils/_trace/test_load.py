# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a sample says of the whole load."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import load as loads
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError
from ansible_collections.cachefleet.storage.tests.unit.support.loads import READ, WRITE, load, reads, sampled, trace_of, writes

PER_REGION = trace_format.REGION // 4096


def one_read_of_each(regions: range, size: int) -> Trace:
    return trace_of(reads(*(region * PER_REGION for region in regions)), size=size * trace_format.REGION)


def test_a_request_is_as_much_as_is_sampled_of_it() -> None:
    found = load([(0, READ, {"blocks": 3}), (PER_REGION - 1, WRITE, {"blocks": 2}), *reads(0)])
    assert found.begins.tolist() == [0, 3, 5]
    assert found.lengths.tolist() == [3, 2, 1]
    assert found.request_reads.tolist() == [True, False, True]
    assert found.weights.tolist() == [1, 1, 1]
    assert found.whole(np.array([1, 1, 0, 1, 1, 0])).tolist() == [0, 1, 0]
    halves = [loads.load_of(sampled(trace_of(writes(PER_REGION - 1, blocks=2)), 0.5, device), 4096) for device in range(40) if _half(device)]
    assert {float(one.shares[0]) for one in halves} == {0.5}


def _half(device: int) -> bool:
    return sum(trace_format.region_hash(device, region) < trace_format.HASHES // 2 for region in (0, 1)) == 1


def test_sampled_regions_stand_for_all_that_were_accessed() -> None:
    """A stretch of a device has its true size, whichever of its regions are sampled; without weights it would differ by a fifth."""
    trace = one_read_of_each(range(500, 1500), size=4000)
    found = [loads.load_of(sampled(trace, 0.02, device), 4096) for device in range(30)]
    weighted = np.array([one.stands_for.sum() for one in found])
    counted = np.array([len(one.stands_for) / 0.02 for one in found])
    assert abs(weighted.mean() - 1000) < 15
    assert weighted.std() < counted.std() / 2
    assert np.allclose([one.rate for one in found], [len(one.stands_for) / one.stands_for.sum() for one in found])


def test_a_whole_device_is_exact() -> None:
    trace = one_read_of_each(range(1000), size=1000)
    assert [round(loads.load_of(sampled(trace, 0.05, device), 4096).stands_for.sum()) for device in range(5)] == pytest.approx([1000] * 5, rel=0.05)


def test_without_sampling_everything_stands_for_itself() -> None:
    found = load(reads(0, PER_REGION, 5 * PER_REGION))
    assert (found.rate, found.stands_for.tolist()) == (1.0, [1, 1, 1])
    assert loads.scale_error(found) == 0


def test_a_device_that_is_too_large_has_the_nominal_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "_MOST_REGIONS", 100)
    trace = sampled(one_read_of_each(range(1000), size=1000), 0.1)
    assert set(loads.load_of(trace, 4096).stands_for.tolist()) == {10.0}


def test_regions_stand_for_their_surroundings_where_neighbours_are_alike() -> None:
    hot = [*(reads(*(region * PER_REGION for region in range(200))) * 9), *reads(*(region * PER_REGION for region in range(800)))]
    stretch = loads.load_of(sampled(trace_of(hot, size=800 * trace_format.REGION), 0.1, 1), 4096)
    assert stretch.stands_for.std() > 2
    # The hot stretch has its true size.
    assert stretch.stands_for[np.bincount(stretch.regions) > 1].sum() == pytest.approx(200, rel=0.1)
    turns = trace_of(reads(*(region * PER_REGION for region in range(800) for _request in range(1 + region % 2 * 9))), size=800 * trace_format.REGION)
    regions = np.arange(40)
    assert loads._alike(1 + regions % 2 * 9) == 0
    assert loads.load_of(sampled(turns, 0.1, 1), 4096).stands_for.sum() == pytest.approx(800)


def test_few_regions_say_nothing() -> None:
    found = loads.load_of(sampled(one_read_of_each(range(60), size=60), 0.05, 2), 4096)
    assert 0 < len(found.stands_for) < 8
    assert loads.share_of(found, np.ones(len(found.begins)), found.request_reads, found.total[0]).margin == 1


def test_what_a_sample_lacks_is_served_as_its_hottest_blocks_are() -> None:
    """Whether the hot block is in the sample or not, the share of what is served is that of the whole load."""
    steps = [*reads(*([7] * 900)), *reads(*([10 * PER_REGION] * 500)), *reads(*(9 * PER_REGION * number for number in range(44)))]
    whole = trace_of(steps, size=400 * trace_format.REGION)
    shares = []
    for device in range(200):
        # The warm block is in each sample that is looked at, the hot one in some.
        if trace_format.region_hash(device, 10) < trace_format.HASHES // 4:
            found = loads.load_of(sampled(whole, 0.25, device), 4096)
            served = np.isin(found.accesses["block"] % (1 << 48), [7, 10 * PER_REGION])
            shares.append(loads.share_of(found, served, found.request_reads, found.total[0]).value)
    assert len(shares) > 30
    assert np.abs(np.array(shares) - 1400 / 1444).max() < 0.05


def test_what_was_not_counted_is_not_corrected() -> None:
    trace = sampled(one_read_of_each(range(400), size=400), 0.1, 3)
    nothing = dataclasses.replace(trace, devices=tuple(dataclasses.replace(device, raw={}) for device in trace.devices))
    found = loads.load_of(nothing, 4096)
    assert np.isnan(found.total).all()
    served = np.ones(len(found.begins))
    served[:5] = 0
    expected = 1 - found.weights[:5].sum() / found.weights.sum()
    assert loads.share_of(found, served, found.request_reads, found.total[0]).value == pytest.approx(expected)
    assert np.isnan(loads.load_of(dataclasses.replace(trace, lost=1), 4096).total).all()


def test_nothing_that_counts_is_no_share() -> None:
    found = load(reads(1, 2))
    assert loads.share_of(found, np.zeros(2), ~found.request_reads, 0.0) == loads.Share(0.0, 0.0)


def test_requests_at_the_beginning_only_warm() -> None:
    trace = trace_of(reads(1, 2, 1, 2))
    found = loads.load_of(trace, 4096, warm=0.0015)
    assert found.weights.tolist() == [0, 0, 1, 1]
    assert np.isnan(found.total).all()


@pytest.mark.parametrize("warm", [0.0, 10.0])
def test_a_trace_without_requests_is_one_sentence(warm: float) -> None:
    trace = trace_of(reads(1, 2))
    with pytest.raises(TraceError, match="no sampled reads and writes"):
        loads.load_of(trace, 4096, [] if warm else [3], warm=warm)
