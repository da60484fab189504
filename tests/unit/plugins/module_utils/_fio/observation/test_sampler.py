# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation import sampler
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import read_device_stats

BEFORE = "   8      16 sdb 100 10 800 50 200 20 1600 100 0 1000 150 0 0 0 0 5 10\n   8 17 sdb1 1 0 8 1 0 0 0 0 0 1 1\n"
AFTER = "   8      16 sdb 300 30 4800 450 700 120 9600 1600 3 3000 2150 0 0 0 0 15 60\n"


def counters(text, name="sdb"):
    return sampler.parse_diskstats(text, {name})[name]


def test_rates_match_iostat():
    found = sampler.rates(counters(BEFORE), counters(AFTER), 4.0)
    assert (found.reads, found.writes, found.read_kib, found.written_kib) == (50, 125, 500, 1000)
    assert (found.read_merges, found.write_merges, found.read_await, found.write_await) == (5, 25, 2.0, 3.0)
    assert (found.flushes, found.flush_await, found.queue, found.util, found.in_flight) == (2.5, 5.0, 0.5, 50.0, 3)
    assert found.row.count(",") + 3 == len(sampler.COLUMNS.split(","))


def test_unchanged_counters_give_zero_rates():
    found = sampler.rates(counters(BEFORE), counters(BEFORE), 1.0)
    assert (found.reads, found.read_await, found.write_await, found.util) == (0, None, None, 0)
    assert (found.flushes, found.flush_await) == (0, None), "none was sent, which is known"
    assert found.row == "0.00,0.00,0.00,0.00,0.00,0.00,,,0.00,,0.00,0.00,0"
    assert sampler.figures([found])["latency_ms"] is None


def test_old_kernel_without_flush_counters():
    short = "8 16 sdb 1 0 8 1 0 0 0 0 0 1 1"
    found = sampler.rates(counters(short), counters(short), 1.0)
    assert (found.flushes, found.flush_await) == (None, None) and found.row.split(",")[8:10] == ["", ""]


@pytest.mark.parametrize("has_requests", [True, False])
def test_flushes_of_a_device_without_requests_are_not_known(tmp_path, has_requests):
    """A partition, MD, bcache and most of device-mapper print a 0, whatever passes them."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/diskstats").write_text(BEFORE)
    if has_requests:
        (tmp_path / "sys/class/block/sdb/mq").mkdir(parents=True)
    one = sampler.Sampler([sampler.Watched(("sdb",), ("sdb",), tmp_path)], 60, lambda figures: None, None, tmp_path)
    one.begin()
    time.sleep(0.25)
    (tmp_path / "proc/diskstats").write_text(AFTER)
    one.end()
    [row] = csv.DictReader((tmp_path / "device_series.log").read_text().splitlines())
    assert float(row["r_s"]) > 0 and (row["f_s"] != "", row["f_await_ms"]) == (has_requests, "5.00" if has_requests else "")


def test_stored_counters_have_no_flushes_that_were_not_counted(tmp_path):
    for name, folder in (("sdb", "mq"), ("dm-0", "dm")):
        (tmp_path / "sys/class/block" / name / folder).mkdir(parents=True)
        (tmp_path / "sys/class/block" / name / "stat").write_text(" ".join(map(str, range(17))))
    found = read_device_stats(["sdb", "dm-0", "sdz"], tmp_path)
    assert found["sdb"]["flush_ios"] == 15 and found["sdb"].keys() - found["dm-0"].keys() == {"flush_ios", "flush_ticks"} and len(found) == 2


def test_counter_wraparound_is_handled_and_decreasing_counters_are_ignored():
    late = {**counters(BEFORE), "io_ticks": 2**32 - 100}
    wrapped = {**late, "io_ticks": 400}
    assert sampler.rates(late, wrapped, 1.0).util == 50.0
    assert sampler.rates(counters(AFTER), counters(BEFORE), 1.0) is None
    assert sampler.rates(counters(BEFORE), counters(AFTER), 0.0) is None


def test_figures_of_several_targets():
    one = sampler.rates(counters(BEFORE), counters(AFTER), 4.0)
    found = sampler.figures([one, one])
    assert found == {"iops": 350, "bandwidth": 2 * 1500 * 1024, "latency_ms": round((50 * 2 + 125 * 3) / 175, 3)}
    assert sampler.figures([])["iops"] is None


def test_device_below_another_target_is_counted_once():
    folder = Path()
    volume, disk, other = (sampler.Watched((top,), names, folder) for top, names in (("dm-1", ("dm-1", "sdb")), ("sdb", ("sdb",)), ("sdc", ("sdc",))))
    assert sampler.counted_once([volume, disk, other]) == {"dm-1", "sdc"}
    assert sampler.counted_once([disk, disk, sampler.Watched((), ("sdd",), folder)]) == {"sdb"}


@pytest.mark.parametrize(
    ("before", "after", "percent"),
    [("cpu  10 0 10 100 0 0 0 0 0 0", "cpu  60 0 10 150 0 0 0 0 0 0", 50.0), ("cpu  1 0 0 9 5 0 0 3 0 0", "cpu  1 0 0 9 5 0 0 3 0 0", None)],
)
def test_host_cpu_utilization(before, after, percent):
    assert sampler.busy_percent(sampler.parse_cpu(before + "\ncpu0 1 1 1 1\n"), sampler.parse_cpu(after)) == percent


def test_iowait_is_idle_and_steal_is_busy():
    before, after = sampler.parse_cpu("cpu  0 0 0 0 0 0 0 0"), sampler.parse_cpu("cpu  0 0 0 0 50 0 0 50")
    assert sampler.busy_percent(before, after) == 50.0


def test_sampler_writes_series_and_reports_figures(tmp_path):
    (tmp_path / "proc").mkdir()
    stats = tmp_path / "proc/diskstats"
    stats.write_text(BEFORE)
    reported = []
    watched = sampler.Watched(("sdb",), ("sdb", "sdz"), tmp_path)
    one = sampler.Sampler([watched], 0.05, reported.append, lambda names: ["bcache0,10,20,1,2,3,4,,,1000,7,"] if "sdb" in names else [], tmp_path)
    one.begin()
    stats.write_text(AFTER)
    ends = time.monotonic() + 30
    while len(reported) < 3 and time.monotonic() < ends:
        time.sleep(0.01)
    one.end()
    rows = list(csv.DictReader((tmp_path / "device_series.log").read_text().splitlines()))
    assert {row["device"] for row in rows} == {"sdb"} and len(rows) >= 3
    assert sum(float(row["r_s"]) > 0 for row in rows) == 1, "what happened is counted once"
    assert any(figures["iops"] for figures in reported)
    caches = list(csv.DictReader((tmp_path / "cache_series.log").read_text().splitlines()))
    columns = ("cache", "dirty_bytes", "bypassed_reads", "size_bytes", "promotions", "written_back_bytes")
    row = ("bcache0", "10", "", "1000", "7", "")
    assert [tuple(map(row.get, columns)) for row in caches] == [row] * 2, "at the beginning and at the end, however long ago the devices were read"


def test_an_interval_that_is_partly_a_ramp_is_short(tmp_path, monkeypatch):
    """The clock stands still but for what is waited."""
    now = [100.0]
    monkeypatch.setattr(sampler.time, "monotonic", lambda: now[0])
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/diskstats").write_text(BEFORE)
    one = sampler.Sampler([sampler.Watched(("sdb",), ("sdb",), tmp_path)], 5, lambda figures: None, None, tmp_path, lambda: now[0], (0.0, 7.0, 11.0))

    def wait(seconds):
        now[0] += seconds
        return now[0] > 116

    monkeypatch.setattr(one._over, "wait", wait)
    one.begin()
    one._thread.join(30)
    times = [float(line.split(",")[0]) for line in (tmp_path / "device_series.log").read_text().splitlines()[1:]]
    assert times == [105, 107, 108, 110, 111, 112, 115, 120]


def test_sampler_without_counters_writes_only_a_header(tmp_path):
    one = sampler.Sampler([sampler.Watched((), (), tmp_path)], 0.05, lambda figures: None, None, tmp_path)
    one.begin()
    one.end()
    assert (tmp_path / "device_series.log").read_text() == sampler.COLUMNS + "\n"
    assert not (tmp_path / "cache_series.log").exists()
