# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What passed the devices and the caches of a measurement, from logs of which the answer is known."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import shutil

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation import sampler
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import ResultsError
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CacheFlow, Flow, read_flows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables import cell_flows, schema
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.ingest import ingest
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_logs import read_samples
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import open_tables
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

#: A digit to Python, and a number too.
ARABIC = "\u0661"

START = 1_800_000_000.0
GIB = 1 << 30
OLD_CACHES = "epoch_s,cache,dirty_bytes,used_bytes,read_hits,read_misses,write_hits,write_misses,bypassed_reads,bypassed_writes"


def layer(name, kind="disk", below=(), caches=(), **values):
    return {"name": name, "path": f"/dev/{name}", "kind": kind, "below": list(below), "caches": list(caches), **values}


def block_cache(kind, **values):
    return {"layer": "block_cache", "type": kind, "mode": "writeback", "cache_device_names": ["sdb"], "origin": "/dev/sda", **values}


def device_line(second, device="sda", **values):
    defaults = dict.fromkeys(sampler.COLUMNS.split(",")[2:], "0.00")
    given = {**defaults, "r_await_ms": "", "w_await_ms": "", "f_await_ms": "", **values}
    return ",".join([f"{START + second:.3f}", device, *(str(given[name]) for name in defaults)])


def flows(lines, window=(0, 10), layers=None, started=-10.0, kernel="6.1.0", header=sampler.COLUMNS, around=None):
    """By device, from lines of a device_series.log; seconds are those after ``io_start``. :param around: when fio was started and had ended."""
    layers = [layer("sda")] if layers is None else layers
    samples = read_samples("\n".join([header, *lines]) + "\n", "device", cell_flows.DEVICE_COLUMNS, None if started is None else START + started)
    rates = {}
    if samples is not None:
        cell_flows.without_uncounted(samples, [cell_flows.counting(layers, kernel)])
        with np.errstate(all="ignore"):
            spans = (cell_flows.windows_of(samples, [(START + begin, START + end)]) for begin, end in (window, around or window))
            rates = cell_flows.device_rates(samples, *spans)
    return {row["device"]: row for row in cell_flows.device_flows(0, layers, rates)}


def caches(rows, kind="lvm_cache", window=(0, 40), header=sampler.CACHE_COLUMNS, layers=None, name="dm-0", **values):
    """By name, and notes. :param rows: second, and the values of the other columns."""
    lines = [",".join([f"{START + second:.3f}", name, *("" if value is None else str(value) for value in some)]) for second, *some in rows]
    layers = layers or [layer("dm-0", "lvm", ["sda", "sdb"], [block_cache(kind, **values)]), layer("sda"), layer("sdb")]
    samples = read_samples("\n".join([header, *lines]) + "\n", "cache", cell_flows.CACHE_COLUMNS)
    window = (START + window[0], START + window[1])
    stacked = cell_flows.caches_of(layers)
    with np.errstate(all="ignore"):
        found = None if samples is None else cell_flows.cache_samples(samples, [stacked])
        rates = {} if found is None else cell_flows.cache_rates(found, *[cell_flows.windows_of(found, [window])] * 2)
        rows = {row["device"]: row for row in cell_flows.cache_flows(0, layers, stacked, found, rates, window)}
        return rows, [] if found is None else cell_flows.notes_of(found, [window])[0]


def counted(*seconds, dirty=0, used=GIB // 2, size=GIB, rates=(10, 10, 10, 10, None, None), promotions=1, written=None):
    """Samples whose counters grow by these rates per second."""
    return [
        (
            second,
            dirty,
            used,
            *(None if rate is None else int(10_000 + rate * (second - seconds[0])) for rate in rates),
            size,
            None if promotions is None else int(promotions * (second - seconds[0])),
            written if written is None else int(written * (second - seconds[0])),
        )
        for second in seconds
    ]


# ---------------------------------------------------------------------------------------------------------------------
# Devices


def test_means_are_of_the_window_and_not_of_the_ramp():
    lines = [
        device_line(-5, r_s=1000, rkb_s=4000, util_pct=100, aqu_sz=50, in_flight=50, r_await_ms=9),
        # Three of its five seconds are in the window.
        device_line(3, w_s=100, wkb_s=800, util_pct=40, aqu_sz=2, in_flight=1, w_await_ms=5),
        device_line(8, w_s=20, wkb_s=80, f_s=10, f_await_ms=3, util_pct=20, aqu_sz=1, in_flight=4, w_await_ms=1),
        device_line(13, w_s=50, wkb_s=100, f_s=20, f_await_ms=6, util_pct=60, aqu_sz=3, in_flight=2, w_await_ms=2),
    ]
    lines.insert(1, device_line(-2, r_s=1000, r_await_ms=9))
    [row] = flows(lines).values()
    parts = (3, 5, 2)

    def mean(*values):
        return pytest.approx(sum(value * part for value, part in zip(values, parts)) / 10)

    assert (row["level"], row["device"], row["kind"], row["reads"], row["read_wait"]) == (0, "sda", "disk", 0, None)
    assert (row["writes"], row["flushes"], row["write_bytes"]) == (mean(100, 20, 50), mean(0, 10, 20), mean(800 * 1024, 80 * 1024, 100 * 1024))
    assert (row["use"], row["queue"], row["in_flight"]) == (mean(40, 20, 60), mean(2, 1, 3), mean(1, 4, 2))
    # Each wait counts as often as there were I/Os that waited.
    assert row["write_wait"] == pytest.approx((300 * 5 + 100 * 1 + 100 * 2) / 500) and row["flush_wait"] == pytest.approx((50 * 3 + 40 * 6) / 90)
    assert row["request_bytes"] == pytest.approx((300 * 8 + 100 * 4 + 100 * 2) / 500 * 1024)


def test_the_start_of_fio_does_not_dilute_a_short_measurement():
    # 0.84 s of start and 0.02 s of end beside two seconds: 400 writes and 200 flushes of them, as the demo measures.
    line = device_line(2.02, w_s=400 / 2.86, f_s=200 / 2.86, f_await_ms=5, util_pct=60, aqu_sz=1, in_flight=1)
    [row] = flows([line], window=(0, 2), started=-0.84, around=(-0.8, 2.0)).values()
    assert (row["writes"], row["flushes"], row["flush_wait"], row["in_flight"]) == (pytest.approx(200, 0.01), pytest.approx(100, 0.01), 5, 1)
    assert row["use"] == pytest.approx(85.8, 0.01)
    # A device cannot be busier than all of the time.
    assert next(iter(flows([device_line(2.02, util_pct=100)], window=(0, 2), started=-0.84, around=(-0.8, 2.0)).values()))["use"] == 100


@pytest.mark.parametrize(("started", "around"), [(-0.84, (0, 2)), (-5, (-0.8, 2)), (-0.84, (-0.8, -0.5))], ids=["ramp", "before", "after"])
def test_an_interval_in_which_others_may_have_done_io_is_spread(started, around):
    [row] = flows([device_line(2.02, w_s=100)], window=(0, 2), started=started, around=around).values()
    assert row["writes"] == 100


@pytest.mark.parametrize(
    ("kind", "kernel", "f_s", "f_await", "known"),
    [
        ("disk", "6.1.0-28-amd64", "0.00", "0.00", 0),
        ("disk", "6.1.0-28-amd64", "0.00", "", 0),
        ("disk", "6.1.0-28-amd64", "", "", None),
        # A kernel before 5.5, and a 0 of an earlier version of the collection.
        ("disk", "4.19.0-27-amd64", "0.00", "0.00", None),
        # A distribution that added the counter to an older kernel.
        ("disk", "4.18.0-553.el8", "0.00", "", 0),
        ("disk", "4.18.0-553.el8", "7.00", "0.50", 7),
        ("disk", None, "0.00", "0.00", None),
        ("multipath", "6.1", "0.00", "0.00", 0),
        *((kind, "6.1", "0.00", "0.00", None) for kind in ("lvm", "dm", "crypt", "md", "bcache", "partition", "flashcache", "zram", None)),
    ],
)
def test_flushes_that_nothing_counts_are_not_known(kind, kernel, f_s, f_await, known):
    lines = [device_line(second, f_s=f_s, f_await_ms=f_await) for second in (0, 5, 10)]
    [row] = flows(lines, layers=[layer("sda", kind)], kernel=kernel).values()
    assert (row["flushes"], row["reads"]) == (known, 0)


def test_every_device_of_the_stack_has_a_row():
    layers = [layer("dm-0", "lvm", ["sda"], model=None), layer("sda", model="A", rotational=True), layer("zfs:p", "zfs")]
    found = flows([device_line(second, name, w_s=level) for second in (0, 5, 10) for level, name in enumerate(("dm-0", "sda", "sdz"), 1)], layers=layers)
    assert [(row["level"], row["kind"], row["model"], row["rotational"], row.get("writes")) for row in found.values()] == [
        (0, "lvm", None, None, 1),
        (1, "disk", "A", True, 2),
        (2, "zfs", None, None, None),
    ]


@pytest.mark.parametrize(("last", "known"), [(10, True), (8, True), (7, False)])
def test_device_that_disappears_has_no_mean_of_what_was_seen(last, known):
    lines = [device_line(second, name, w_s=5) for second in range(-2, 11) for name in ("sda", "sdb") if name == "sdb" or second <= last]
    row = flows(lines)["sda"]
    assert (row["writes"], row["use"]) == ((5, 0) if known else (None, None))


@pytest.mark.parametrize(("started", "writes"), [(-1.0, 5), (None, None), (99.0, None)])
def test_one_sample_of_a_short_measurement_counts_from_its_start(started, writes):
    assert flows([device_line(3, w_s=5)], (0, 3), started=started)["sda"]["writes"] == writes


def test_columns_are_read_by_name():
    lines = [f"{START + second},sda,7,{second},ignored,3,0.5" for second in (0, 5, 10)]
    [row] = flows(lines, header="epoch_s,device,w_s,odd,new,f_s,f_await_ms").values()
    assert (row["writes"], row["flushes"], row["reads"], row["request_bytes"]) == (7, 3, None, None)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400", "1e300", "x", ARABIC])
def test_values_that_are_no_figures_are_not_known(value):
    lines = [device_line(second, w_s=value, wkb_s=4, aqu_sz=1) for second in (0, 5, 10)]
    row = flows(["x", "1,2", *lines, "nan,sda" + ",1" * 13, f"{value},sda" + ",1" * 13])["sda"]
    assert (row["queue"], row["write_bytes"], row["request_bytes"]) == (1, 4096, None if value != ARABIC else 4096)
    assert (row["writes"] is None) == (value != ARABIC)


def test_large_figures_do_not_become_infinite():
    lines = [device_line(second, w_s=1e-300, wkb_s=1e15, w_await_ms=1e15, r_s=5e-324, r_await_ms=1) for second in (0, 5, 10)]
    row = flows(lines)["sda"]
    json.dumps(list(row.values()), allow_nan=False)
    assert row["request_bytes"] is None


def test_log_with_another_header_has_no_samples():
    for content in ("", "\n", "a,b\n1,2\n", "epoch_s,disk,r_s\n1,sda,2\n", "epoch_s,device" + ",x" * 50 + "\n1,sda" + ",1" * 50, f"{sampler.COLUMNS}\n"):
        assert read_samples(content, "device", cell_flows.DEVICE_COLUMNS) is None


def test_thousands_of_devices_are_refused():
    lines = [sampler.COLUMNS, *(device_line(0, f"sd{number}") for number in range(10_001))]
    with pytest.raises(ResultsError, match="more than 10000 names"):
        read_samples("\n".join(lines) + "\n", "device", cell_flows.DEVICE_COLUMNS)


def test_long_log_is_the_same_in_parts(monkeypatch):
    content = "\n".join([sampler.COLUMNS, *(device_line(place // 3, f"sd{place % 3}", w_s=place) for place in range(500))]) + "\n"
    whole = read_samples(content, "device", cell_flows.DEVICE_COLUMNS)
    monkeypatch.setattr("ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.series_logs._ROWS", 7)
    parts = read_samples(content, "device", cell_flows.DEVICE_COLUMNS)
    assert whole.places == parts.places and all(np.array_equal(*some, equal_nan=True) for some in zip(whole.values, parts.values))
    assert whole.values[1, whole.places[0, "sd1"]].tolist() == list(range(1, 500, 3))


# ---------------------------------------------------------------------------------------------------------------------
# Caches


def test_rates_and_amounts_of_a_cache():
    rows = counted(*range(-10, 45, 5), rates=(30, 10, 8, 2, 4, 0), promotions=3, written=4096)
    rows = [(second, 1000 + abs(second), GIB // 2 + place, *some[2:]) for place, (second, *some) in enumerate(rows)]
    found, notes = caches(rows)
    row = found["dm-0"]
    assert [row[name] for name in ("read_hits", "read_misses", "write_hits", "write_misses", "bypassed_reads", "bypassed_writes")] == [30, 10, 8, 2, 4, 0]
    assert (row["promoted"], row["written_back"], row["size"], row["level"], row["type"], row["mode"]) == (3, 4096, GIB, 0, "lvm_cache", "writeback")
    assert (row["fast"], row["origin"], notes) == (["sdb"], "sda", [])
    assert [row[f"dirty_{when}"] for when in ("start", "end", "most")] == [1000, 1040, 1040]
    assert [row[f"used_{when}"] - GIB // 2 for when in ("start", "end", "most")] == [2, 10, 10]
    assert CacheFlow(**{**row, "fast": tuple(row["fast"])}).hit_ratio == pytest.approx(0.76)


def test_interval_of_the_ramp_counts_with_its_part():
    rows = [(second, 0, 0, hits, 0, 0, 0, None, None) for second, hits in ((-5, 0), (5, 100), (10, 500))]
    found, _notes = caches(rows, window=(0, 10), header=OLD_CACHES)
    assert found["dm-0"]["read_hits"] == (10 * 5 + 80 * 5) / 10


def test_files_of_earlier_versions_have_no_size():
    rows = [row[:9] for row in counted(*range(-5, 45, 5))]
    found, _notes = caches(rows, header=OLD_CACHES, size=2 * GIB)
    row = found["dm-0"]
    assert (row["size"], row["promoted"], row["written_back"], row["read_hits"], row["state"]) == (2 * GIB, None, None, 10, "warm")


def test_counter_of_32_bits_wraps():
    rows = [(second, 0, 0, (2**32 - 150 + 10 * second) % 2**32, second, second, second, None, None, GIB, 0, None) for second in range(-5, 45, 5)]
    found, notes = caches(rows)
    assert (found["dm-0"]["read_hits"], notes) == (10, [])


@pytest.mark.parametrize("fell", ["read_hits", "promotions", "all"])
def test_counters_that_begin_again_give_no_rate_across_that(fell):
    rows = [list(row) for row in counted(*range(-5, 45, 5))]
    places = {"read_hits": [3], "promotions": [10], "all": [3, 4, 5, 6, 10]}[fell]
    for row in rows:
        for place in places if row[0] >= 20 else ():
            row[place] -= 10_000 if place != 10 else 24
    found, notes = caches(rows)
    row = found["dm-0"]
    # Seven of the eight intervals are known.
    assert (row["read_hits"], row["write_misses"], row["used_end"]) == (10, 10, GIB // 2)
    assert notes == ["The counters of the cache dm-0 began again while it was measured: nothing is concluded from what they counted across that."]


def test_reset_of_a_short_measurement_leaves_no_rate():
    found, notes = caches([counted(-99, -5)[1], *counted(3, 8)], window=(0, 8))
    assert found["dm-0"]["read_hits"] is None and len(notes) == 1


def test_another_cache_with_the_same_name_gives_no_rate():
    rows = [(*row[:9], GIB if row[0] < 20 else 2 * GIB, *row[10:]) for row in counted(*range(-5, 45, 5))]
    rows = [(second, dirty, used, *(value + (10**6 if second >= 20 else 0) for value in some[:4]), *some[4:]) for second, dirty, used, *some in rows]
    found, notes = caches(rows)
    assert (found["dm-0"]["read_hits"], found["dm-0"]["size"], len(notes)) == (10, 2 * GIB, 1)


def test_reset_before_the_measurement_is_not_noted():
    _found, notes = caches([*counted(-30, -20), *counted(-15, *range(-5, 45, 5))])
    assert notes == []


def test_cache_that_disappears_has_no_figures_of_the_rest():
    found, notes = caches(counted(*range(-5, 20, 5)))
    row = found["dm-0"]
    assert notes == ["The cache dm-0 could not be read any more from second 15 of the measurement on."]
    assert {row[name] for name in ("read_hits", "used_end", "used_most", "dirty_start", "state")} == {None} and row["size"] == GIB


ZFS = {"name": "ARC of the host", "layers": [layer("zd0", "zvol", ["zfs:tank"]), layer("zfs:tank", "zfs", ["sda"]), layer("sda")]}


def arc(*seconds, hits=90, size=8 * GIB):
    """Samples of an ARC that is asked 100 times per second."""
    return [(second, None, GIB, *(10**9 + (second - seconds[0]) * rate for rate in (hits, 100 - hits)), *[None] * 4, size, None, None) for second in seconds]


def test_arc_of_the_host_has_rows_of_its_own():
    found, notes = caches(arc(*range(-5, 45, 5)), **ZFS)
    row = found["ARC of the host"]
    assert (row["type"], row["mode"], row["level"], row["size"], row["read_hits"], row["read_misses"]) == ("zfs", None, None, 8 * GIB, 90, 10)
    assert {row[name] for name in ("write_hits", "write_misses", "dirty_start", "written_back", "promoted")} == {None} and notes == []
    assert (row["used_end"], row["state"]) == (GIB, "warm") and CacheFlow(**{**row, "fast": ()}).hit_ratio == pytest.approx(0.9)


def test_arc_whose_module_was_loaded_again_gives_no_rate_across_that():
    again = [(second, *some[:2], *(value - 10**9 for value in some[2:4]), *some[4:]) for second, *some in arc(*range(20, 45, 5))]
    found, notes = caches(arc(*range(-5, 20, 5)) + again, **ZFS)
    assert found["ARC of the host"]["read_hits"] == 90 and "The counters of the cache ARC of the host began again" in notes[0] and len(notes) == 1


def test_arcstats_that_vanish_leave_no_figures():
    found, notes = caches(arc(*range(-5, 20, 5)), **ZFS)
    assert notes == ["The cache ARC of the host could not be read any more from second 15 of the measurement on."]
    assert {found["ARC of the host"][name] for name in ("read_hits", "read_misses", "used_end", "state")} == {None}


def test_counters_that_a_kernel_does_not_have_are_not_known():
    rows = counted(*range(-5, 45, 5), rates=(None,) * 6, promotions=None)
    found, notes = caches(rows, kind="dm_cache")
    row = found["dm-0"]
    assert {row[name] for name in cell_flows._COUNTERS.values()} == {None} and notes == []
    assert (row["used_start"], row["state"]) == (GIB // 2, "warm")


def late(*seconds, rate=100):
    """Samples of counters that grow at once, every 13.6 s, by what was counted since."""
    step = 300 / 22
    return [(second, 0, GIB // 2, *(int(rate * (second // step) * step), 0, None, None, 0, None), GIB, None, None) for second in seconds]


@pytest.mark.parametrize(("length", "known"), [(29, False), (31, True), (60, True), (600, True)])
def test_bcache_is_read_between_its_steps(length, known):
    found, _notes = caches(late(*range(-5, length + 5, 5)), kind="bcache", window=(0, length))
    row = found["dm-0"]
    assert row["read_hits"] == (pytest.approx(100, rel=0.001) if known else None), "a step in the wrong place would be 5 s of 30"
    assert (row["read_misses"], row["bypassed_reads"]) == ((0, 0) if known else (None, None))
    assert (row["write_hits"], row["used_end"]) == (None, GIB // 2)
    flow = CacheFlow(**{**row, "fast": ()})
    assert flow.hit_ratio == (1 if known else None)


def test_bcache_whose_counters_do_not_move_has_no_hits():
    found, _notes = caches(late(*range(-5, 65, 5), rate=0), kind="bcache", window=(0, 60))
    assert found["dm-0"]["read_hits"] is None


@pytest.mark.parametrize(("block_size", "hits"), [(4096, 10), (None, None)])
def test_sectors_of_enhanceio_become_blocks(block_size, hits):
    found, _notes = caches(counted(*range(-5, 45, 5), rates=(80, 8, 80, 8, None, None)), kind="enhanceio", block_size=block_size)
    assert found["dm-0"]["read_hits"] == hits


def test_origin_is_found_by_path_or_as_what_is_no_cache_device():
    by_path = [layer("dm-0", "lvm", ["dm-1", "dm-2"], [block_cache("lvm_cache", origin="/dev/dm-1")]), layer("dm-1", "lvm"), layer("dm-2", "lvm")]
    below = [layer("bcache0", "bcache", ["sda", "sdb"], [block_cache("bcache", origin="/dev/disk/by-id/gone")]), layer("sda"), layer("sdb")]
    doubtful = [layer("dm-0", "dm", ["sda", "sdb", "sdc"], [block_cache("dm_cache", origin=None)])]
    assert [next(iter(caches([], layers=layers)[0].values()))["origin"] for layers in (by_path, below, doubtful)] == ["dm-1", "sda", None]


def test_cache_without_samples_and_one_that_is_not_in_the_stack():
    controller = {"layer": "controller", "ssd_cache": {"write_policy": "writeback"}}
    layers = [
        layer("sda", caches=[controller, {"layer": "drive"}]),
        layer("bcache0", "bcache", ["sda"], [block_cache("bcache", size="big", cache_device_names="x")]),
    ]
    found, _notes = caches(counted(0, 20, 40), layers=layers, name="dm-7")
    assert [(row["device"], row["level"], row["type"], row["size"], row.get("read_hits")) for row in found.values()] == [
        ("sda", 0, "maxcache", None, None),
        ("bcache0", 1, "bcache", None, None),
        ("dm-7", None, None, GIB, 10),
    ]


@pytest.mark.parametrize("settings", [{"dirty_thresh_pct": 20}, {"high_watermark": "x"}, {"high_watermark": 0}, None, 5])
def test_dirty_amount_at_the_threshold_is_full(settings):
    found, _notes = caches(counted(0, 20, 40, dirty=GIB // 5), settings=settings)
    assert found["dm-0"]["state"] == ("full" if settings == {"dirty_thresh_pct": 20} else "warm")


# ---------------------------------------------------------------------------------------------------------------------
# Requests by size


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"512": 10, "4096": 100}, {"512": 15, "4096": 400, "8192": 1}, {512: 5, 4096: 300, 8192: 1}),
        ({}, {"4096": 3}, {4096: 3}),
        ({"4096": 3}, {"4096": 3}, None),
        (None, {"4096": 3}, None),
        ({"4096": 3}, None, None),
        # What is no size or no count is left out.
        ({"512": 1, ARABIC * 3: 1, "-512": 1}, {"512": 2, "4096": True, "1024": "5", "": 3, "9" * 30: 1}, {512: 1}),
        ([], "x", None),
    ],
)
def test_requests_by_size_are_those_of_the_measurement(before, after, expected):
    sides = {side: {"request_sizes": {"dm-0": counts}} if counts is not None else {} for side, counts in (("before", before), ("after", after))}
    found, notes = cell_flows.request_sizes(sides)
    assert ({int(size): count for size, count in json.loads(found["dm-0"]).items()} if found else None, notes) == (expected, [])


def test_counts_of_sizes_that_fall_are_said_and_give_nothing():
    sides = {"before": {"request_sizes": {"dm-0": {"512": 9, "4096": 9}}}, "after": {"request_sizes": {"dm-0": {"512": 1, "4096": 90}}}}
    assert cell_flows.request_sizes(sides) == (
        {},
        ["The counts of requests by size of the cache dm-0 fell while it was measured: they are not used."],
    )


# ---------------------------------------------------------------------------------------------------------------------
# Tables


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = write_campaign(tmp_path_factory.mktemp("results") / "synthetic", 2, cells=4, seconds=20, caches=True)
    ingest(folder, workers=1)
    return folder


@pytest.fixture
def ask(made):
    def requested(query, folder=made):
        with open_tables(folder) as database:
            return database.execute(query).fetchall()

    return requested


def test_columns_of_the_tables_are_the_fields_of_a_flow():
    for table, kind in ((schema.FLOWS, Flow), (schema.CACHE_FLOWS, CacheFlow)):
        assert {column.name for column in table.columns[5:]} == {field.name for field in dataclasses.fields(kind)}


def test_every_measurement_has_its_flows(made, ask):
    assert ask("SELECT count(*), count(DISTINCT (host, variant, cell, repeat)), min(use), max(read_bytes / reads / request_bytes) FROM flows") == [
        (2 * 4 * 3, 8, 99.1, 1.0)
    ]
    assert ask("SELECT DISTINCT device, size, read_hits, write_misses, promoted, bypassed_reads, state FROM cache_flows") == [
        ("dm-0", 2**36, 1000, 250, 0.2, None, "warming")
    ]
    assert ask("SELECT count(*) FILTER (read_hits_s IS NULL), count(DISTINCT seconds), count(*) FROM cache_intervals") == [(8, 1, 8 * 8)]
    with open_tables(made) as database:
        found = read_flows(database)
        assert len(found) == len(list(found)) == 8 and found.get(("host0000", "writeback", "none", 1)) is None
        flows_of = found["host0001", "writeback", "randread-4k-qd1", 1]
    assert [one.device for one in flows_of.devices] == ["dm-0", "sda", "sdb"] and flows_of.devices[1].model == "SAMSUNG MZ7LH960"
    [cache] = flows_of.caches
    assert (cache.fast, cache.hit_ratio, cache.state) == ((), pytest.approx(2000 / 2750), "warming")


def change(place, files=None, **meta):
    for name, text in (files or {}).items():
        (place / name).write_bytes(gzip.compress(text.encode()))
    told = {**json.loads((place / "meta.json").read_text()), **meta}
    told["files"] = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in place.iterdir() if file.name != "meta.json"}
    (place / "meta.json").write_text(json.dumps(told))


@pytest.fixture
def campaign(made, tmp_path):
    return shutil.copytree(made, tmp_path / "synthetic")


PLACE = "host0000/writeback/randread-4k-qd1/1"


def test_only_measurements_that_decide_are_read(campaign):
    change(campaign / PLACE, decides=[])
    change(campaign / PLACE.replace("host0000", "host0001"), decides=None)
    ingest(campaign, workers=1)
    with open_tables(campaign) as database:
        assert len(read_flows(database)) == 7
        assert database.execute("SELECT count(DISTINCT (host, variant, cell)) FROM flows").fetchall() == [(8,)]


def test_flushes_that_were_not_counted_are_null_in_intervals_too(campaign, ask):
    lines = [
        sampler.COLUMNS,
        *(f"{1795000000 + second},{name},1,1,4,4,0,0,0.5,0.5,0.00,0.00,1,50,1" for second in range(0, 200, 5) for name in ("dm-0", "sda")),
    ]
    change(campaign / PLACE, {"device_series.log.gz": "\n".join(lines) + "\n"})
    ingest(campaign, workers=1)
    where = "WHERE host = 'host0000' AND variant = 'writeback' AND cell = 'randread-4k-qd1'"
    assert ask(f"SELECT DISTINCT device, f_s, f_await_ms FROM device_intervals {where} ORDER BY 1", campaign) == [("dm-0", None, None), ("sda", 0, 0)]
    assert ask(f"SELECT device, flushes, flush_wait FROM flows {where} ORDER BY level", campaign) == [
        ("dm-0", None, None),
        ("sda", 0, None),
        ("sdb", None, None),
    ]


@pytest.mark.parametrize(
    ("kind", "stats", "expected"),
    [
        ("flashcache", '{"before": {"request_sizes": {"dm-0": {"4096": 1}}}, "after": {"request_sizes": {"dm-0": {"4096": 5}}}}', '{"4096": 4}'),
        ("flashcache", '{"before": {}, "after": {}}', None),
        ("flashcache", "[", None),
        ("flashcache", '{"before": 1, "after": {"request_sizes": 7}}', None),
        ("lvm_cache", '{"before": {"request_sizes": {"dm-0": {"4096": 1}}}, "after": {"request_sizes": {"dm-0": {"4096": 5}}}}', None),
    ],
)
def test_requests_by_size_are_in_the_flow_of_the_cache(campaign, ask, kind, stats, expected):
    place = campaign / PLACE
    stack = json.loads((place / "stack.json").read_text())
    stack["before"]["layers"][0]["caches"] = [block_cache(kind)]
    (place / "stack.json").write_text(json.dumps(stack))
    (place / "device-stats.json").write_text(stats)
    change(place)
    ingest(campaign, workers=1)
    where = "WHERE host = 'host0000' AND variant = 'writeback' AND cell = 'randread-4k-qd1'"
    assert ask(f"SELECT type, request_sizes, read_hits > 0 FROM cache_flows {where}", campaign) == [(kind, expected, True)]
    with open_tables(campaign) as database:
        [cache] = read_flows(database)["host0000", "writeback", "randread-4k-qd1", 1].caches
    assert cache.request_sizes == expected


def test_samples_of_many_measurements_are_not_mixed_wherever_they_are_parted(campaign, ask, monkeypatch):
    """Those of a host are computed together, as far as they fit into memory."""
    change(campaign / PLACE, io_start=None, io_end=None)
    tables = ("flows", "cache_flows", "device_intervals", "cache_intervals", "cells")
    ingest(campaign, workers=1, force=True)
    at_once = [ask(f"SELECT * FROM {table} ORDER BY ALL", campaign) for table in tables]
    monkeypatch.setattr("ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.host_tables._MOST", 1)
    ingest(campaign, workers=1, force=True)
    assert [repr(ask(f"SELECT * FROM {table} ORDER BY ALL", campaign)) for table in tables] == list(map(repr, at_once)) and all(at_once)
    assert ask("SELECT count(DISTINCT (host, variant, cell)) FROM flows", campaign) == [(7,)], "without a window there are no means"


def test_what_happened_to_a_cache_is_a_note_of_its_cell(campaign, ask):
    text = gzip.decompress((campaign / PLACE / "cache_series.log.gz").read_bytes()).decode().splitlines()
    change(campaign / PLACE, {"cache_series.log.gz": "\n".join(text[:4]) + "\n"})
    ingest(campaign, workers=1)
    assert ask("SELECT notes[1] FROM cells WHERE len(notes) > 0", campaign) == [
        ("The cache dm-0 could not be read any more from second 0 of the measurement on.",)
    ]


HOSTILE = {
    "no samples": "",
    "no text": "\x00" * 5000,
    "infinite": f"{sampler.CACHE_COLUMNS}\n" + "".join(f"1e-{300 + second},dm-0" + ",1e18" * 11 + "\n" for second in range(9)),
    "names": f"{sampler.CACHE_COLUMNS}\n" + "".join(f"1,a\x1b{name},1,1,1,1,1,1,1,1,1,1,1\n" for name in ("z", "'); DROP TABLE cells", "\x01", "")),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_series_of_a_cache_is_stored_as_what_it_is(campaign, ask, hostile):
    change(campaign / PLACE, {"cache_series.log.gz": HOSTILE[hostile]})
    assert ingest(campaign, workers=1).problems == ()
    assert ask("SELECT state, count(*) FROM cells GROUP BY 1", campaign) == [("ok", 8)]
    assert ask("SELECT count(*) FROM cache_flows WHERE read_hits > 0", campaign) == [(7,)]


def test_too_many_caches_make_one_cell_failed(campaign, ask):
    change(campaign / PLACE, {"cache_series.log.gz": f"{sampler.CACHE_COLUMNS}\n" + "".join(f"1,c{name}{',1' * 11}\n" for name in range(10_001))})
    ingest(campaign, workers=1)
    assert ask("SELECT state, reason, count(*) FROM cells WHERE state <> 'ok' GROUP BY ALL", campaign) == [
        ("failed", "the stored result could not be read: a log of samples has more than 10000 names", 1)
    ]


@pytest.mark.parametrize(
    "side", ["x", {"layers": [{"name": 5, "kind": 3, "caches": [{"layer": "block_cache", "type": 4, "settings": 3, "origin": {}}]}, 7]}, None]
)
def test_odd_stack_has_flows_without_what_it_does_not_say(campaign, ask, side):
    (campaign / PLACE / "stack.json").write_text(json.dumps({"before": side, "after": side}))
    change(campaign / PLACE)
    ingest(campaign, workers=1)
    assert ask("SELECT state, count(*) FROM cells GROUP BY 1", campaign) == [("ok", 8)]
