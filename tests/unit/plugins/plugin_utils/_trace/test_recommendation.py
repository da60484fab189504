# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cache is recommended for planted curves."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.spec import read_items as bcache_items
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.spec import read_items as dm_cache_items
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.curve import CurvePoint
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.recommendation import Prices, Recommendation, recommend
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace
from ansible_collections.cachefleet.storage.tests.unit.support.loads import reads, trace_of, writes

GB = 10**9
DEVICES = ["/dev/disk/by-id/ata-SSD_A", "/dev/disk/by-id/ata-SSD_B"]
#: Each block is read or written ten times, and of ten requests seven are reads: 1000 requests per second.
STEPS = [*reads(*range(70)), *writes(*range(100, 130))] * 10


def point(size: float, read_hits: float, **changed: t.Any) -> CurvePoint:
    fields: dict[str, t.Any] = {"type": "bcache", "mode": "writethrough", "block": 4096, "size": int(size * GB), "read_hits": read_hits, "write_hits": 0.5}
    hits = 0.7 * read_hits + 0.15
    fields |= {"hits": hits, "saved_writes": 0.0, "cache_writes": 1e6, "low": hits - 0.02, "high": hits + 0.02}
    return CurvePoint(**{**fields, **changed})


CURVE = [point(14, 0.40), point(28, 0.62), point(57, 0.71), point(114, 0.73), point(228, 0.74)]


def recommended(points: t.Sequence[CurvePoint], prices: Prices | None = None, trace: Trace | None = None) -> Recommendation:
    return recommend(points, trace or trace_of(STEPS, seconds=1), prices or Prices())


def test_the_knee_is_recommended() -> None:
    found = recommended(CURVE)
    assert found.point == CURVE[2]
    assert found.sentence == "57 GB serve 71 ± 2 % of the reads as bcache in writethrough; 4 times as much adds 3 points."
    assert found.rests_on[0] == "50 % of the requests do not wait for the origin; 70 % of all are reads."
    cold = "10 % of the reads were the first access to their block, which no cache serves"
    assert found.rests_on[-1] == f"{cold}; 50 % of the requests do not wait for the origin with them, 55 % without them."


def test_no_entry_is_written_for_several_devices_which_share_the_cache_of_the_curves() -> None:
    trace = trace_of(STEPS, seconds=1)
    found = recommended(CURVE, trace=dataclasses.replace(trace, devices=trace.devices * 2))
    assert found.point is not None and not found.entry
    assert found.rests_on[-1] == "The cache is one for all 2 devices together: their curves show a cache for each, whose file needs a recording of its own."


@pytest.mark.parametrize(("lost", "is_recommended"), [(50, True), (100, False)])
def test_no_cache_is_recommended_if_many_events_were_lost(lost: int, is_recommended: bool) -> None:
    found = recommended(CURVE, trace=dataclasses.replace(trace_of(STEPS, seconds=1), lost=lost))
    assert bool(found.entry) is is_recommended and ("too many events were lost" in found.sentence) is not is_recommended


def test_an_interval_that_is_wider_downwards_is_stated_by_its_wider_side() -> None:
    assert "71 ± 7 % of the reads" in recommended([*CURVE[:2], dataclasses.replace(CURVE[2], low=CURVE[2].hits - 0.07), *CURVE[3:]]).sentence


def test_what_only_caches_writes_is_judged_by_them() -> None:
    found = recommended(
        [point(57, 0.2, type="writecache", mode="writeback", write_hits=0.95), point(228, 0.2, type="writecache", mode="writeback", write_hits=0.97)]
    )
    assert found.sentence == "57 GB serve 95 ± 2 % of the writes as writecache in writeback; 4 times as much adds 2 points."


def test_the_order_of_the_points_does_not_matter() -> None:
    assert recommended(CURVE[::-1]).point == CURVE[2]


def test_a_price_of_a_request_moves_the_knee() -> None:
    # 29 GB more serve 63 requests per second more.
    assert recommended(CURVE, Prices(per_gb=1, per_request=29 / 63 * 1.05)).point == CURVE[2]
    assert recommended(CURVE, Prices(per_gb=1, per_request=29 / 63 * 0.95)).point == CURVE[1]


def test_cost_and_wear() -> None:
    found = recommended(CURVE[:3], Prices(per_gb=0.2, drive_writes=1))
    assert "It costs 11.4, and 0.0229 for each request per second that it serves." in found.rests_on
    assert "The cache is written 1.52 times per day, and the device is rated for 1: it is worn out early." in found.rests_on
    assert found.sentence.endswith("in writethrough; no larger one was examined.")
    assert "The cache is written 1.52 times per day." in recommended(CURVE).rests_on


def test_what_a_device_does_not_bear_is_not_chosen() -> None:
    gentle = point(57, 0.60, type="dm_cache", block=65536, cache_writes=1e5)
    assert recommended([CURVE[2], gentle], Prices(drive_writes=1)).point == gentle
    assert recommended([CURVE[2], gentle]).point == CURVE[2]


def test_write_back_counts_with_the_writes_that_it_absorbs() -> None:
    back = point(57, 0.65, mode="writeback", write_hits=0.9, saved_writes=0.4)
    found = recommended([CURVE[2], back])
    assert found.point == back
    assert "40 % of the written bytes never reach the origin. Write-back needs two cache devices: some writes are only there." in found.rests_on
    assert found.rests_on[1] == "Of the others, at the knee of their curves: bcache in writethrough with 4 KiB: 50 % with 57 GB."


def test_of_equal_ones_the_smaller_then_the_one_that_writes_least() -> None:
    assert recommended([point(57, 0.71), point(40, 0.70, type="dm_cache")]).point == point(40, 0.70, type="dm_cache")
    assert recommended([point(57, 0.71), point(57, 0.70, type="dm_cache", cache_writes=1e5)]).point == point(57, 0.70, type="dm_cache", cache_writes=1e5)


def test_the_ideal_cache_is_not_recommended() -> None:
    assert recommended([point(57, 0.95, type="lru"), CURVE[2]]).point == CURVE[2]
    assert recommended([point(57, 0.95, type="lru")]).sentence == "No cache is recommended: there is no curve of a type that can be built."


def test_a_flat_curve_is_not_worth_a_cache() -> None:
    found = recommended([point(57, 0.05), point(228, 0.08)])
    assert (found.point, found.entry) == (None, {})
    assert found.sentence == "A cache is not worth it: even 228 GB serve only 6 % of the requests."


@pytest.mark.parametrize(("read_hits", "warm"), [(0.05, 50), (0.4, 100)])
def test_first_accesses_are_not_a_low_hit_ratio(read_hits: float, warm: int) -> None:
    trace = trace_of([*reads(*range(90)), *reads(*range(10))], seconds=1)
    found = recommended([point(57, read_hits)], trace=trace)
    cold = "90 % of the reads were the first access to their block, which no cache serves"
    between = f"{100 * read_hits:.0f} % of the requests do not wait for the origin with them, {warm} % without them."
    assert (found.point, found.entry) == (None, {})
    assert found.sentence == f"The trace is too short to recommend a cache of 57 GB, record for longer: {cold}; {between}"


def test_writes_that_are_the_first_to_their_block_are_absorbed_all_the_same() -> None:
    trace = trace_of([*writes(*range(90)), *reads(*range(10))], seconds=1)
    found = recommended([point(57, 0.9, mode="writeback", write_hits=1.0)], trace=trace)
    assert found.rests_on[-1].startswith("0 % of the reads were the first")


def test_sizes_of_requests() -> None:
    sizes = {"read": {"4096": 6, "65536": 64}, "write": {"16384": 30}}
    assert "94 % of the requests are not 4 KiB." in recommended(CURVE, trace=trace_of(STEPS, seconds=1, sizes=sizes)).rests_on
    assert not any("4 KiB" in one for one in recommended(CURVE, trace=trace_of(STEPS, seconds=1, sizes={"read": {"4096": 1}})).rests_on)


def test_requests_that_were_not_counted_are_those_of_the_sample() -> None:
    trace = trace_of(STEPS, seconds=1)
    trace.devices[0].raw.pop("counts")  # type: ignore[attr-defined]
    assert recommended(CURVE, trace=trace).rests_on[0] == "50 % of the requests do not wait for the origin; 70 % of all are reads."


@pytest.mark.parametrize("mode", ["writethrough", "writeback"])
@pytest.mark.parametrize("kind", ["bcache", "dm_cache", "writecache"])
def test_the_entry_is_one_of_the_role(kind: str, mode: str) -> None:
    chosen = point(57, 0.71, type=kind, mode=mode, block=65536 if kind == "dm_cache" else 4096, write_hits=0.9)
    entry = dict(recommended([chosen]).entry)
    entry["cache_devices"] = DEVICES if entry.get("mirror") else DEVICES[:1]
    if kind == "writecache" and mode == "writethrough":
        mode = entry["mode"] = "writeback"
    (spec,) = (bcache_items if entry.pop("type") == "bcache" else dm_cache_items)([entry])
    assert (spec.origin, spec.mode) == ("/dev/vg0/data", mode)
    if kind == "bcache":
        assert spec.size is None
    else:
        assert (spec.size, spec.chunk_size) == (57 * GB >> 20 << 20, chosen.block)


def test_a_device_without_a_name() -> None:
    trace = trace_of(STEPS, seconds=1)
    device = trace.devices[0]
    nameless = Trace(trace.name, trace.host, trace.seconds, trace.rate, 0, (type(device)("", device.bytes, device.raw),), trace.requests)
    assert recommended(CURVE, trace=nameless).entry["origin"] == "/dev/disk/by-id/ORIGIN"
