# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Two variants over hosts that do not have the same number of repeats."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair


def side(variant, factor, repeats):
    return {
        host: [Measurement(host, variant, "w", repeat, "write", iops=factor * (1000 + 10 * place + repeat)) for repeat in range(1, count + 1)]
        for place, (host, count) in enumerate(repeats.items())
    }


def pairing(old, new):
    return pair(METRICS["iops"], side("a", 1.0, old), side("b", 1.5, new), ())


@pytest.mark.parametrize("short", [({"f": 3}, {"f": 5}), ({"f": 5}, {"f": 3}), ({"f": 1}, {"f": 1})])
def test_host_with_too_few_repeats_is_left_out_by_name(short):
    five = dict.fromkeys("abcd", 5)
    found = pairing({**five, **short[0]}, {**five, **short[1]})
    fewest = min(short[0]["f"], short[1]["f"])
    assert (found.verdict, found.ratio, found.repeats) == ("better", pytest.approx(1.5, rel=0.01), (5, 5))
    assert found.not_compared == (f"f: {fewest} repeats on a side, at least 4 are needed",)
    assert [one.host for one in found.hosts] and "f" not in [one.host for one in found.hosts]


def test_nothing_is_left_out_where_all_hosts_have_too_few_repeats():
    found = pairing(dict.fromkeys("ab", 3), dict.fromkeys("ab", 3))
    assert (found.verdict, found.not_compared) == ("not_enough_repeats", ())


def test_of_many_hosts_each_counts_however_few_repeats_it_has():
    hosts = {**dict.fromkeys("abcdefg", 5), "h": 3}
    found = pairing(hosts, hosts)
    assert (found.unit, found.verdict, found.not_compared) == ("hosts", "better", ())
