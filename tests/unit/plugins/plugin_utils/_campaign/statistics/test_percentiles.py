# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram as bins_of_fio
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import percentiles as table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import percentiles as ps
from ansible_collections.cachefleet.storage.tests.unit.support.fio_samples import latencies

BINS = st.dictionaries(st.integers(0, 10**10), st.integers(0, 10**6), max_size=40)
PERCENTS = [0.0, 1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.9999, 100.0]


@settings(deadline=None)
@given(BINS.filter(lambda bins: any(bins.values())))
def test_percentiles_match_fio(bins):
    bins = {value: count for value, count in bins.items() if count}
    assert ps.percentile_values(ps.histogram(bins), PERCENTS) == tuple(bins_of_fio.percentile(bins, percent) for percent in PERCENTS)


def test_bin_reaching_the_share_exactly_is_used():
    assert ps.percentile_values(ps.histogram({100: 90, 200: 9, 300: 1}), (90.0, 99.0, 99.5)) == (100, 200, 300)


@settings(deadline=None)
@given(st.lists(BINS, max_size=6))
def test_merge_is_independent_of_order(parts):
    whole = ps.merged(map(ps.histogram, parts))
    again = ps.merged([ps.merged(map(ps.histogram, parts[1:])), *map(ps.histogram, parts[:1])])
    ranks = {value: count for value, count in bins_of_fio.merge(parts).items() if count}
    assert dict(zip(whole.durations.tolist(), whole.counts.tolist())) == ranks
    assert dict(zip(again.durations.tolist(), again.counts.tolist())) == ranks


def test_sample_percentiles_are_reproduced_from_bins(shared_samples):
    compared = 0
    for path in sorted((shared_samples / "fio").glob("v*/*.json")):
        for values in latencies(path.read_text(errors="replace")):
            ranks = {float(key): value for key, value in values["percentile"].items() if float(key) > 0}
            of = ps.histogram({int(duration): count for duration, count in values["bins"].items()})
            assert ps.percentile_values(of, list(ranks)) == tuple(ranks.values()), path.name
            compared += len(ranks)
    assert compared >= 600


def test_merged_percentile_of_ten_hosts_with_one_slow_host():
    hosts = [*[ps.histogram({100_000: 20_000})] * 9, ps.histogram({10_000_000: 20_000})]
    p50, p99 = ps.percentiles(ps.merged(hosts), (50.0, 99.0))
    assert (p50.value, p99.value) == (100_000, 10_000_000)


def test_percentile_with_too_few_samples_is_hidden():
    few = ps.histogram({1000: 1521})
    (p99,) = ps.percentiles(few, (99.0,))
    assert (p99.value, p99.samples, p99.needed) == (None, 1521, 1522)
    (p99,) = ps.percentiles(ps.histogram({1000: 1522}), (99.0,))
    assert p99.value == 1000
    # Two hosts that know nothing alone know it together.
    (both,) = ps.percentiles(ps.merged([few, few]), (99.0,))
    assert both.value == 1000


def test_required_samples_match_the_terminal_table():
    assert {one.name: one.needed for one in table.SHOWN} == {"p50": 100, "p99": 1522, "p99.9": 15351}
    assert all(one.needed == ps.samples_needed(one.percent) for one in table.PERCENTILES)


def test_empty_histogram_has_no_percentiles():
    assert [one.value for one in ps.percentiles(ps.merged([]))] == [None] * len(ps.PERCENTS)
    with pytest.raises(BadInput, match="empty"):
        ps.percentile_values(ps.merged([]), (50.0,))


def test_invalid_histogram_or_percent_is_rejected():
    with pytest.raises(BadInput, match="negative"):
        ps.histogram({5: -1})
    with pytest.raises(BadInput, match="100"):
        ps.percentile_values(ps.histogram({5: 1}), (101.0,))


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(1, 1e6), min_size=1, max_size=8), min_size=1, max_size=5))
def test_moments_are_pooled_exactly(parts):
    def moments(values):
        return ps.Moments(len(values), min(values), max(values), float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0)

    whole = moments([value for part in parts for value in part])
    found = ps.pooled(map(moments, parts))
    assert (found.count, found.low, found.high) == (whole.count, whole.low, whole.high)
    assert found.mean == pytest.approx(whole.mean, rel=1e-9)
    assert found.deviation == pytest.approx(whole.deviation, rel=1e-6, abs=1e-4)
    assert ps.pooled([]) is None
