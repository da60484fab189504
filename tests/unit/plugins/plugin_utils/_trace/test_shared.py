# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies of traces for others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import contents, curve, distances, shared
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError, made_trace, requests_of
from ansible_collections.cachefleet.storage.tests.unit.support import recorded_loads


def copy_of(trace: Trace, key: str = "a key") -> Trace:
    described, requests = shared.scrambled(trace, key)
    return made_trace(json.loads(described), requests_of(requests), "copy")


@pytest.mark.parametrize("block", [4096, 65536, trace_format.REGION])
@pytest.mark.parametrize("name", ["zipf 1.1, a quarter", "mixed sizes", "loop and zipf"])
def test_accesses_of_the_copy_are_those_of_the_trace(name: str, block: int) -> None:
    trace = recorded_loads.LOADS[name](8000)
    reuse = [distances.reuse_distances(distances.last_accesses(one.accesses(block)["block"])[0]) for one in (trace, copy_of(trace))]
    assert np.array_equal(*reuse)
    half = contents.dataclasses.replace(copy_of(trace), rate=trace.rate / 2).accesses(block)
    assert 0 < len(half) < len(reuse[0]), "a part of the sample can be used"


@pytest.mark.parametrize("kind", curve.KINDS)
def test_curves_of_the_copy_of_a_whole_trace_are_the_same(kind: curve.Kind) -> None:
    trace = recorded_loads.LOADS["mixed sizes"](8000)
    sizes = [4 << 20, 16 << 20]
    copied = copy_of(trace)
    for one, other in zip(curve.curves(copied, sizes, [kind]), curve.curves(trace, sizes, [kind]), strict=True):
        # bcache writes back in the order of addresses, which is another one in the copy.
        assert (one.hits, one.read_hits, one.cache_writes) == pytest.approx((other.hits, other.read_hits, other.cache_writes), rel=0.03)


def test_the_copy_has_no_names_and_no_places() -> None:
    trace = recorded_loads.recorded(np.arange(500) * recorded_loads.SECTORS + 8, 8, 0, number="253:3", source="block_bio_queue")
    trace.requests["process"] = np.arange(500) % 3 + 4711
    described, _requests = shared.scrambled(trace, "a key")
    assert not [secret for secret in ("vg0", "db1", "monday", "253:3") if secret in described]
    copied = copy_of(trace)
    assert set(copied.requests["process"].tolist()) == {0, 1, 2}
    regions = copied.requests["sector"] // recorded_loads.SECTORS
    assert len(set(regions.tolist())) == 500 and not set(regions.tolist()) & set(range(500))
    assert set((copied.requests["sector"] % recorded_loads.SECTORS).tolist()) == {8}
    assert contents.contents_of(copied).devices[0].counts == contents.contents_of(trace).devices[0].counts
    again = contents.dataclasses.replace(copied)
    assert np.array_equal(copy_of(trace).requests, copied.requests) and not np.array_equal(copy_of(trace, "other").requests, copied.requests)
    assert len(copy_of(again).requests) == 500, "a copy can be copied"


def test_a_request_is_cut_where_its_region_ends() -> None:
    trace = recorded_loads.recorded([recorded_loads.SECTORS - 8], 24, 1)
    copied = copy_of(trace)
    assert sorted(copied.requests["sectors"].tolist()) == [8, 16] and len(copied.accesses(4096)) == 3


def test_what_cannot_be_scrambled_is_refused() -> None:
    with pytest.raises(TraceError, match="needs a key"):
        shared.scrambled(recorded_loads.recorded([0], 8, 0), "")
    with pytest.raises(TraceError, match="up to 4 PiB"):
        shared.scrambled(recorded_loads.recorded([recorded_loads.SECTORS << 32], 8, 0), "key")
    assert len({shared._permuted(one, b"key") for one in range(5000)}) == 5000
