# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Hosts and targets that were measured together: clocks that differ, tails, seconds without I/O, and what may not be added."""

from __future__ import annotations

import datetime
import gzip
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files import store
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.groups import note_group
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import overview, problems
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import aggregate, from_files, table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_files import CampaignFiles, StoredCell
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import rows_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import Span, common, mean_within
from ansible_collections.cachefleet.storage.tests.unit.support.archives import summary

T0 = 1_800_000_000.0
NOW = datetime.datetime(2026, 11, 21, 14, 3, 55, tzinfo=datetime.timezone.utc)


def log(rates, began, direction=1, *, epoch=True):
    """A log of fio: one row for each second in which something was done, at its end."""
    first = began * 1000 if epoch else 0
    return "".join(f"{first + (second + 1) * 1000:.0f}, {rate}, {direction}, 0, 0\n" for second, rate in enumerate(rates) if rate)


def report(bins, *, direction="write", jobs=1):
    latency = {"N": sum(bins.values()), "min": 1, "max": max(bins), "mean": 5.0, "stddev": 0.0, "percentile": {"99.000000": max(bins)}, "bins": bins}
    entry = {"io_bytes": 4096, "total_ios": sum(bins.values()), "iops": 1.0, "bw_bytes": 1, "runtime": 60000, "lat_ns": latency, "clat_ns": latency}
    job = {"jobname": "cell", "groupid": 0, "error": 0, "elapsed": 60, direction: entry}
    return json.dumps({"fio version": "fio-3.33", "jobs": [job] * jobs})


def put(folder, host, *, rates=(), threads=None, start=T0, end=None, ahead=0.0, error=0.0, iops=100.0, bins=None, cell="w", repeat=1, state="ok", **meta):
    """A cell of a host as its folder, measured from ``start`` to ``end`` by the controller's clock."""
    end = start + len(rates) if end is None else end
    threads = [rates] if threads is None else threads
    files = {"job.fio": b"[global]\nrw=randwrite\n", "stack.json": b"{}"}
    for number, one in enumerate(threads, start=1):
        text = log(one, start + ahead)
        if text:
            files[f"series_iops.{number}.log.gz"] = gzip.compress(text.encode())
            files[f"series_bw.{number}.log.gz"] = gzip.compress(log([4 * rate for rate in one], start + ahead).encode())
    files["fio.json.gz"] = gzip.compress(report(bins or {400_000: 20_000}).encode())
    message = {
        "schema": 1,
        "campaign": "c",
        "host": host,
        "variant": "v",
        "cell": cell,
        "repeat": repeat,
        "state": state,
        "reason": "",
        "io_start": start + ahead,
        "io_end": end + ahead,
        "clock": {"offset": ahead, "error": error},
        "synchronised": True,
        "summary": summary(iops, int(iops * (end - start))),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        **meta,
    }
    place = folder / "c" / host / "v" / cell / str(repeat)
    place.mkdir(parents=True)
    for name, data in {**files, "meta.json": json.dumps(message).encode()}.items():
        (place / name).write_bytes(data)


@pytest.fixture
def folder(tmp_path):
    store.open_campaign(tmp_path, "c", now=NOW)
    return tmp_path


def sums(folder):
    return aggregate.aggregates_of(CampaignFiles(store.load_campaign(folder / "c")))


# ---------------------------------------------------------------------------------------------------------------------
# The window


def test_window_is_from_the_last_start_to_the_first_end():
    window = common([Span(0, 60, 0.01), Span(2, 63, 0.02), Span(1, 70, 0.5)])
    assert (window.start, window.end, window.skew, window.tail, window.seconds) == (2, 60, 2, 10, 58)
    assert window.skew_error == pytest.approx(0.03)
    assert window.overlaps


def test_hosts_with_little_overlap_are_not_aggregated():
    assert not common([Span(0, 60), Span(50, 110)]).overlaps
    assert not common([Span(0, 60), Span(100, 160)]).overlaps


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(1, 100)), min_size=1, max_size=8))
def test_every_host_is_active_in_the_common_window(spans):
    window = common([Span(start, start + seconds) for start, seconds in spans])
    if window.overlaps:
        assert all(start <= window.start < window.end <= start + seconds for start, seconds in spans)


def rate(rows, start, end, span):
    """The rate in a window, of rows of a log (end of the second, value) of a job that counted from ``span[0]`` to ``span[1]``."""
    log = {"write": [(1000 * (T0 + time), value) for time, value in rows]}
    series = from_files.seconds_of({"iops": [log], "bw": []}, T0 + span[0], T0 + span[1], ["write"])
    return mean_within(series["write"]["iops"], T0 + span[0], T0 + start, T0 + end) if series else None


def test_missing_row_is_a_second_without_io():
    assert rate([(1, 100), (2, 100), (4, 100)], 0, 4, (0, 4)) == 75


def test_incomplete_seconds_at_the_ends_are_not_a_stall():
    # Ran from 0 to 4.9: the last 0.9 s are not logged.
    assert rate([(1, 100), (2, 100), (3, 100), (4, 100)], 0, 4.9, (0, 4.9)) == 100


def test_missing_complete_last_second_is_not_a_stall():
    assert rate([(1.02, 100), (2.02, 100)], 0, 3.1, (0, 3.1)) == 100


def test_stall_at_the_beginning_is_counted():
    assert rate([(4, 100), (5, 100)], 0, 5, (0, 5)) == pytest.approx(200 / 5)


def test_stall_at_the_end_is_counted():
    assert rate([(1, 100), (2, 100)], 0, 10, (0, 10)) == pytest.approx(200 / 9)


def test_partial_seconds_are_weighted():
    assert rate([(1, 100), (2, 300)], 0.5, 1.5, (0, 2)) == 200


def test_window_outside_the_series_is_unknown():
    assert rate([(1, 100), (2, 300)], 5, 6, (0, 2)) is None


def test_rows_of_threads_are_added_and_invalid_rows_ignored():
    threads = [from_files.read_log(text) for text in ("1800000001000, 10, 1, 0\nx\n1,2\n1800000001000, inf, 1, 0\n", "1800000001000, 5, 1, 0, 0\n")]
    assert from_files.seconds_of({"iops": threads}, T0, T0 + 1, ["write"])["write"]["iops"] == [15]


def test_times_relative_to_job_start():
    found = from_files.seconds_of({"iops": [from_files.read_log("1000, 7, 0, 0\n2000, 7, 0, 0\n")]}, T0, T0 + 2, ["read"])
    assert found["read"]["second"] == [0, 1]


@given(st.lists(st.integers(0, 1000), min_size=3, max_size=30), st.floats(0, 3), st.floats(0, 3))
def test_rate_is_always_within_the_range_of_its_seconds(rates, late, early):
    found = rate([(second + 1, rate) for second, rate in enumerate(rates) if rate], late, len(rates) - early, (0, len(rates)))
    if found is not None:
        assert -1e-6 <= found <= max(rates) + 1e-6


# ---------------------------------------------------------------------------------------------------------------------
# Sums


def test_clock_offsets_are_corrected_before_aggregation(folder):
    put(folder, "a", rates=[100] * 60, ahead=0.0, error=0.004)
    put(folder, "b", rates=[200] * 60, ahead=3600.0, error=0.006, start=T0 + 0.030)
    [one] = sums(folder)
    assert (one.label, one.hosts, one.direction, one.state) == ("all 2 hosts", ("a", "b"), "write", "ok")
    assert one.iops == pytest.approx(300)
    assert one.bandwidth == pytest.approx(300 * 4 * 1024)
    assert one.common.skew == pytest.approx(0.030, abs=1e-3)
    assert one.common.skew_error == pytest.approx(0.010)
    assert one.pro_rata == ()


def test_only_the_common_window_is_aggregated_and_the_tail_is_separate(folder):
    # b does twice as much after a has ended: the sum must not see it.
    put(folder, "a", rates=[100] * 60, iops=100)
    put(folder, "b", rates=[200] * 60 + [800] * 30, iops=400)
    [one] = sums(folder)
    assert one.iops == pytest.approx(300)
    assert one.common.tail == pytest.approx(30)
    assert one.iops_overall == pytest.approx((100 * 60 + 400 * 90) / 90)


def test_average_is_used_and_reported_without_a_series(folder):
    put(folder, "a", rates=[100] * 60)
    put(folder, "b", end=T0 + 60, iops=250)
    [one] = sums(folder)
    assert one.iops == pytest.approx(350)
    assert one.pro_rata == ("b",)
    assert any("average of the whole run was taken for: b" in note for note in aggregate.notes_of([one]))


def test_percentiles_are_computed_from_all_ios(folder):
    for number in range(9):
        put(folder, f"fast{number}", rates=[100] * 60, bins={100_352: 20_000})
    put(folder, "slow", rates=[100] * 60, bins={10_027_008: 2_000})
    [one] = sums(folder)
    # 2000 of 182000 are slow: 1.1 %. The mean of ten p99 would be 1.1 ms.
    assert one.latency["p99"] == 10_027_008
    assert one.latency["p50"] == 100_352


def test_percentiles_with_too_few_ios_are_hidden(folder):
    for host in "ab":
        put(folder, host, rates=[100] * 60, bins={100_352: 500})
    assert sums(folder)[0].latency == {"p50": 100_352, "p99": None, "p99.9": None}


def test_hosts_without_overlap_are_not_added(folder):
    put(folder, "a", rates=[100] * 60)
    put(folder, "b", rates=[100] * 60, start=T0 + 55)
    [one] = sums(folder)
    assert (one.iops, one.bandwidth) == (None, None)
    assert "all 2 hosts w/1" in aggregate.notes_of([one])[0]


def test_no_note_without_a_common_measurement(folder):
    put(folder, "a", rates=[100] * 60, synchronised=False)
    put(folder, "b", rates=[100] * 60, start=T0 + 500, synchronised=False)
    assert sums(folder) == []


def test_failed_host_is_excluded_and_sets_the_state(folder):
    put(folder, "a", rates=[100] * 60)
    put(folder, "b", rates=[100] * 60)
    put(folder, "c", rates=[100] * 60, state="failed")
    [one] = sums(folder)
    assert (one.iops, one.state, one.planned, one.hosts) == (pytest.approx(200), "failed", 3, ("a", "b"))
    assert any("Not every host or target is in the sum of: all 3 hosts w" in note for note in aggregate.notes_of([one]))


def test_groups_have_separate_aggregates(folder):
    for host in "abcd":
        put(folder, host, rates=[100] * 60)
        store.write_plan(folder / "c", host, "v", [("w", 1)], now=NOW)
        note_group(folder / "c", host, "v", "left" if host in "ab" else "right")
    assert {one.label: one.iops for one in sums(folder)} == {
        "all 4 hosts": pytest.approx(400),
        "group left": pytest.approx(200),
        "group right": pytest.approx(200),
    }


def test_group_of_all_hosts_is_one_line_with_its_name(folder):
    for host in "ab":
        put(folder, host, rates=[100] * 60)
        store.write_plan(folder / "c", host, "v", [("w", 1)], now=NOW)
        assert note_group(folder / "c", host, "v", "array1")
        assert not note_group(folder / "c", host, "v", "array1")
    assert [one.label for one in sums(folder)] == ["group array1"]


def test_single_host_has_no_aggregate(folder):
    put(folder, "a", rates=[100] * 60)
    assert sums(folder) == []


@pytest.mark.parametrize(
    "meta",
    [
        {"io_start": None},
        {"io_start": "yesterday"},
        {"io_end": 0},
        {"clock": None},
        {"clock": {"offset": "x", "error": None}},
        {"clock": {"offset": 1e300}},
    ],
)
def test_invalid_host_metadata_is_ignored(folder, meta):
    put(folder, "a", rates=[100] * 60)
    put(folder, "b", rates=[100] * 60, **meta)
    for one in sums(folder):
        assert one.iops == pytest.approx(200)


@pytest.mark.parametrize(
    ("name", "content"), [("fio.json.gz", b'{"fio version": "fio-3.33", "jobs": [' + b"[" * 90_000), ("series_iops.1.log.gz", b"1,1,1\n" * 5_000_001)]
)
def test_cell_exceeding_a_limit_is_failed_and_excluded(folder, name, content):
    for host in "abc":
        put(folder, host, rates=[100] * 60)
    place = next(folder.rglob("b/*/*/1"))
    (place / name).write_bytes(gzip.compress(content, 1))
    meta = json.loads((place / "meta.json").read_text())
    meta["files"][name] = hashlib.sha256((place / name).read_bytes()).hexdigest()
    (place / "meta.json").write_text(json.dumps(meta))
    [one] = sums(folder)
    assert (one.iops, one.hosts, one.planned) == (pytest.approx(200), ("a", "c"), 3)
    states = {record.host: (record.state, name in record.reason) for record in store.load_campaign(folder / "c", contents=True).cells}
    assert states == {"a": ("ok", False), "b": ("failed", True), "c": ("ok", False)}


def test_repeats_are_merged_into_one_row(folder):
    for repeat, rate in ((1, 100), (2, 120), (3, 110)):
        for host in "ab":
            put(folder, host, rates=[rate] * 60, start=T0 + 100 * repeat, repeat=repeat)
    [row] = aggregate.rows_of(sums(folder))
    assert (row.host, row.cell, row.iops, row.runs, row.planned) == ("all 2 hosts", "w", pytest.approx(220), 3, 3)
    assert row.spread == pytest.approx(40 / 220)


def test_sum_of_fewer_hosts_is_no_repeat_of_a_sum_of_more(folder):
    # Three hosts of 100; one of them has one repeat less, and one failed once.
    for repeat in range(1, 6):
        for host in "abc":
            if (host, repeat) != ("c", 5):
                state = "failed" if (host, repeat) == ("b", 4) else "ok"
                put(folder, host, rates=[100] * 60, start=T0 + 100 * repeat, repeat=repeat, state=state)
    found = sums(folder)
    [row] = aggregate.rows_of(found)
    assert (row.iops, row.runs, row.planned, row.spread, row.noise) == (pytest.approx(300), 3, 5, pytest.approx(0), pytest.approx(0))
    notes = aggregate.notes_of(found)
    assert "Left out, for other repeats add more results: all 2 hosts w/5 and all 3 hosts w/4." in notes
    assert "Left out, for other repeats add more results: w write." in overview.brief_notes_of(found)


def test_reads_and_writes_are_aggregated_separately(folder):
    numbers = {**summary(100, 6000), "read": summary(50, 3000, direction="read")["read"]}
    for host in "ab":
        put(folder, host, end=T0 + 60, summary=numbers)
    assert {one.direction: one.iops for one in sums(folder)} == {"read": 100, "write": 200}


def test_report_has_a_line_for_all_hosts_with_start_skew(folder):
    put(folder, "a", rates=[100] * 60, error=0.002)
    put(folder, "b", rates=[200] * 60, start=T0 + 0.020, error=0.003)
    campaign = store.load_campaign(folder / "c")
    files = CampaignFiles(campaign)
    moments = aggregate.aggregates_of(files)
    text = table.render(campaign, [*rows_of(files.measurements), *aggregate.rows_of(moments)], [], None, aggregate.notes_of(moments))
    [line] = [line for line in text.splitlines() if line.startswith("all 2 hosts")]
    assert line.split()[3] == "300" and "On every line: variant" in text
    assert "The starts were at most 20 ms apart (known to 5 ms), the ends 0.0 s." in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 120 + len(str(folder))


# ---------------------------------------------------------------------------------------------------------------------
# Several targets of a host


def put_targets(folder, host, disks="abc", *, cell="w", step=3, rate=100, **meta):
    """A cell on several targets of a host at once, as a runner stores it."""
    for disk in disks:
        own = {"step": step, "order_sha256": "1" * 64, "target": {"path": f"/dev/sd{disk}"}, **meta}
        put(folder, host, rates=[rate] * 60, cell=f"{cell}.sd{disk}", **own)


def test_targets_of_a_host_are_added(folder):
    put_targets(folder, "a", error=0.5)
    [one] = sums(folder)
    assert (one.label, one.cell, one.hosts, one.targets, one.added) == ("a, 3 targets", "w", ("a",), 3, 3)
    assert one.iops == pytest.approx(300)
    # They have one clock: how wrong it goes says nothing of how far apart they began.
    assert one.common.skew_error == 0
    assert not one.is_partial


def test_targets_of_several_hosts_are_added_per_host_and_for_all(folder):
    put_targets(folder, "a", "abc")
    put_targets(folder, "b", "ab")
    found = {(one.label, one.cell): one.iops for one in sums(folder)}
    assert found == {
        ("all 2 hosts", "w.sda"): pytest.approx(200),
        ("all 2 hosts", "w.sdb"): pytest.approx(200),
        ("a, 3 targets", "w"): pytest.approx(300),
        ("b, 2 targets", "w"): pytest.approx(200),
        ("all 5 targets", "w"): pytest.approx(500),
    }


def test_host_with_one_target_is_included_in_the_total(folder):
    put_targets(folder, "a", "ab")
    put(folder, "b", rates=[50] * 60, step=3, order_sha256="2" * 64, target={"path": "/dev/sda"})
    found = {(one.label, one.cell): one.iops for one in sums(folder)}
    assert found == {("a, 2 targets", "w"): pytest.approx(200), ("all 3 targets", "w"): pytest.approx(250)}


def test_groups_with_several_targets_have_separate_aggregates(folder):
    for host in "abcd":
        put_targets(folder, host, "ab")
        store.write_plan(folder / "c", host, "v", [("w.sda", 1), ("w.sdb", 1)], now=NOW)
        note_group(folder / "c", host, "v", "left" if host in "ab" else "right")
    found = {one.label: one.iops for one in sums(folder) if one.cell == "w"}
    assert found["group left, 4 targets"] == found["group right, 4 targets"] == pytest.approx(400)
    assert found["all 8 targets"] == pytest.approx(800)


def test_sequential_targets_are_not_added(folder):
    for step, disk in enumerate("abc"):
        put_targets(folder, "a", disk, step=step)
    assert sums(folder) == []


def test_search_probes_sharing_a_step_are_not_added(folder):
    for depth in (1, 2, 4):
        put(folder, "a", rates=[100] * 60, cell=f"w.iodepth-{depth}", step=3, order_sha256="1" * 64, target={"path": "/dev/sda"})
    assert sums(folder) == []


def test_target_measured_again_later_is_not_added(folder):
    put_targets(folder, "a", "ab")
    put_targets(folder, "a", "c", start=T0 + 500)
    [one] = sums(folder)
    assert (one.iops, one.targets) == (None, 3)
    assert any("not measured at the same time: a, 3 targets w/1" in note for note in aggregate.notes_of([one]))


@pytest.mark.parametrize("lost", ["failed", "missing"])
def test_target_without_result_is_excluded_and_reported(folder, lost):
    put_targets(folder, "a", "ab")
    if lost == "failed":
        put_targets(folder, "a", "c", state="failed")
    else:
        store.write_plan(folder / "c", "a", "v", [("w.sda", 1), ("w.sdb", 1), ("w.sdc", 1), ("w.sync.sda", 1), ("other", 1)], now=NOW)
    [one] = [one for one in sums(folder) if one.cell == "w"]
    assert (one.iops, one.targets, one.added, one.state) == (pytest.approx(200), 3, 2, lost)
    assert any("Not every host or target is in the sum of: a, 3 targets w" in note for note in aggregate.notes_of([one]))


@pytest.mark.parametrize("meta", [{"step": "x"}, {"order_sha256": 7}, {"target": "sda"}, {"target": {"path": ["x"]}}, {"step": None}])
def test_invalid_step_metadata_is_ignored(folder, meta):
    put_targets(folder, "a", "ab", **meta)
    assert sums(folder) == []


def test_report_has_a_line_for_the_targets_of_a_host(folder):
    put_targets(folder, "node1", "ab", error=0.002)
    campaign = store.load_campaign(folder / "c")
    files = CampaignFiles(campaign)
    moments = aggregate.aggregates_of(files)
    text = table.render(campaign, [*rows_of(files.measurements), *aggregate.rows_of(moments)], [], None, aggregate.notes_of(moments))
    [line] = [line for line in text.splitlines() if line.startswith("node1, 2 targets")]
    assert line.split()[3:5] == ["w", "200"]


# ---------------------------------------------------------------------------------------------------------------------
# Phases, and series that are not those of the report


def figures(total_ios, *, began=0, seconds=12, iops=200.0):
    """The summary of writes of one host, as the runner stores it."""
    found = summary(iops or 0, total_ios)
    writes = {
        "io_bytes": total_ios * 4096,
        "iops": iops,
        "bw_bytes": iops and iops * 4096,
        "began_ms": began * 1000,
        "runtime_ms": seconds * 1000,
        "in_flight": 16,
    }
    return {**found, "write": {**found["write"], **writes, "clat": None, "lat": None}}


def test_series_of_a_phase_begins_and_ends_with_its_jobs(folder):
    # 11 s of something else, then 11 s of writes at 200 per second; fio has no row for the last second.
    for host in ("a", "b"):
        put(folder, host, rates=[0] * 11 + [200] * 10, end=T0 + 22, summary=figures(2200, began=11, seconds=11))
    (one,) = [one for one in sums(folder) if one.direction == "write"]
    assert (one.iops, one.pro_rata) == (400, ())


@pytest.mark.parametrize(
    ("began", "expected"),
    [
        # Each did 200 per second for 60 s. Right values are counted: 24,000 I/Os by the time from the first of them to the last.
        ((0, 2), 400),
        ((0, 10), 24_000 / 70),
        ((0, 50), 24_000 / 110),
        ((10, 70), 24_000 / 120),
    ],
)
@pytest.mark.parametrize("logged", [True, False])
def test_phases_of_hosts_are_added_only_if_they_were_at_the_same_time(folder, began, expected, logged):
    for host, first in zip("ab", began, strict=True):
        put(folder, host, rates=[0] * first + [200] * 60 if logged else (), end=T0 + 130, summary=figures(12_000, began=first, seconds=60))
    (one,) = sums(folder)
    assert one.iops == pytest.approx(expected, rel=0.001)
    assert one.bandwidth == pytest.approx(expected * 4096, rel=0.001)
    assert one.in_turn is (expected != 400)
    assert any("Not done at the same time" in note and "all 2 hosts w write" in note for note in aggregate.notes_of([one])) is one.in_turn
    assert any("Not done at the same time" in note and note.endswith(": w write.") for note in overview.brief_notes_of([one])) is one.in_turn


def test_averages_of_hosts_that_began_at_different_times_are_not_added(folder):
    put(folder, "a", rates=[200] * 60, summary=figures(12_000, seconds=60))
    put(folder, "b", start=T0 + 20, end=T0 + 80, summary=figures(12_000, seconds=60))
    (one,) = sums(folder)
    assert (one.iops, one.in_turn, one.pro_rata) == (pytest.approx(24_000 / 80), True, ())


def test_phase_is_not_a_cliff():
    found = {what: [from_files.read_log(log([200 * factor] * 10, T0))] for what, factor in (("iops", 1), ("bw", 4))}
    series = from_files.seconds_of(found, T0, T0 + 22, {"write": from_files.Total(2200, 2200 * 4096, 0.0, 11.0, True)})["write"]
    assert (series["second"], set(series["iops"])) == (list(range(10)), {200})
    # A result of an old version has no beginning of its phases.
    old = from_files.seconds_of(found, T0, T0 + 22, {"write": from_files.Total(2200, 2200 * 4096, None, 11.0, True)})["write"]
    assert old["second"] == list(range(10))
    # But a phase that stands still until its end has done nothing in it.
    still = from_files.seconds_of(found, T0, T0 + 22, {"write": from_files.Total(2000, 2000 * 4096, 0.0, 22.0, True)})["write"]
    assert (len(still["second"]), still["iops"][-1]) == (21, 0)


def test_host_whose_series_is_that_of_other_log_options_is_added_by_its_report(folder):
    tenths = [rate for _second in range(12) for rate in [200] * 10]
    rows = "".join(f"{T0 * 1000 + (number + 1) * 100:.0f}, {rate}, 1, 0, 0\n" for number, rate in enumerate(tenths))
    for host in ("a", "b"):
        put(folder, host, rates=[200] * 12, summary=figures(2400))
        (folder / "c" / host / "v/w/1/series_iops.1.log.gz").write_bytes(gzip.compress(rows.encode()))
        meta = folder / "c" / host / "v/w/1/meta.json"
        found = json.loads(meta.read_text())
        content = (meta.parent / "series_iops.1.log.gz").read_bytes()
        found["files"]["series_iops.1.log.gz"] = hashlib.sha256(content).hexdigest()
        meta.write_text(json.dumps(found))
    (one,) = sums(folder)
    assert one.iops == 400


def test_there_is_no_sum_where_a_host_has_no_rate(folder):
    # Two phases of a stonewall in one direction: they have no rate together, whatever the series adds up to.
    for host in ("a", "b"):
        put(folder, host, rates=[200] * 12, summary=figures(2400, iops=None))
    (one,) = sums(folder)
    assert (one.iops, one.bandwidth) == (None, None)
    for notes in (aggregate.notes_of([one]), overview.brief_notes_of([one])):
        assert any(note.startswith("Not added up, for a host has no rate there: ") for note in notes), notes


def test_last_second_of_threads_that_have_no_row_of_it_is_not_a_fall(folder):
    # Four threads of 100 per second; two of them have no row for their last second.
    threads = [[100] * 12, [100] * 11, [100] * 12, [100] * 11]
    put(folder, "a", threads=threads, end=T0 + 12, summary=figures(4800, iops=400))
    found = StoredCell(store.load_campaign(folder / "c").cells[0]).series()[0]["write"]
    assert found["iops"] == [400] * 11 + [None] and found["bw_bytes"] == [400 * 4096] * 11 + [None]


def test_last_second_of_a_log_that_threads_share_is_not_a_fall(folder):
    put(folder, "a", rates=[400] * 12, end=T0 + 12, summary=figures(4800, iops=400))
    rows = "".join(f"{(T0 + second + 1) * 1000:.0f}, 100, 1, 0, 0\n" for second in range(12) for _thread in range(4 if second < 11 else 3))
    logs = {"iops": [from_files.read_log(rows)], "bw": []}
    series = from_files.seconds_of(logs, T0, T0 + 12, {"write": from_files.Total(4800, None, 0.0, 12.0)})["write"]
    known = from_files._whole_seconds(series, {what: [log["write"] for log in some] for what, some in logs.items()}, T0)
    assert known["iops"] == [400] * 11 + [None]


def test_ramp_of_a_thread_that_follows_another_is_not_a_stall(folder):
    # The second one waits for the first, and then ramps for 5 s, of which fio logs nothing.
    put(folder, "a", threads=[[100] * 8, [0] * 13 + [100] * 8], end=T0 + 22, summary=figures(1800, seconds=22, iops=1800 / 22))
    found = StoredCell(store.load_campaign(folder / "c").cells[0]).series()[0]["write"]
    assert found["iops"] == [100] * 8 + [None] * 5 + [100] * 8


def test_second_between_two_threads_that_follow_each_other_is_not_a_stall():
    # fio has no row for the last second of the first one.
    logs = [from_files.read_log(log([200] * 5, T0)), from_files.read_log(log([0] * 6 + [200] * 5, T0))]
    total = {"write": from_files.Total(2400, None, 0.0, 12.0)}
    series = from_files.seconds_of({"iops": logs}, T0, T0 + 12, total)["write"]
    assert series["iops"] == [200] * 5 + [None] + [200] * 5
    assert problems.every_second(series["iops"]) == [200] * 11
    # A thread that stands still has rows later.
    still = [from_files.read_log(log([200] * 5 + [0] + [200] * 5, T0))]
    assert from_files.seconds_of({"iops": still}, T0, T0 + 12, total)["write"]["iops"][5] == 0
