# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Figures of one report agree with each other, or are withheld."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.consistency import CONTRADICTS, agrees, consistent
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS, parse
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.summary import summarize


def latency(mean, low=None, high=None, **values):
    return {"min_ns": low, "mean_ns": mean, "max_ns": high, "percentiles_ns": {}, "flags": [], "n": 1, **values}


def checked(**values):
    """The reads of a report of 48,000 I/Os of 4 KiB in 1 s, at most 8 at a time, and the notes."""
    usual = {"iops": 48_000.0, "bw_bytes": 48_000 * 4096, "total_ios": 48_000, "io_bytes": 48_000 * 4096, "runtime_ms": 1000, "began_ms": 0, "in_flight": 8}
    found, notes = consistent({"read": {**usual, "lat": latency(160_000.0), "clat": latency(150_000.0), **values}, "write": None, "sync": None}, 2.0)
    return found["read"], notes


def test_figures_that_agree_are_left_as_they_are():
    found, notes = checked()
    assert notes == []
    assert (found["iops"], found["lat"]["mean_ns"], found["clat"]["mean_ns"]) == (48_000, 160_000, 150_000)


def test_latency_of_another_clock_is_withheld_and_the_other_one_kept():
    # io_uring with sqthread_poll: fio 3.33 printed 1.27 s each at 48,091 IOPS with a depth of 8.
    wrong = latency(1.272e9, 113e6, 2.11e9, percentiles_ns={"50": 1_199_570_944})
    found, notes = checked(clat=wrong)
    assert found["clat"] == {**wrong, "min_ns": None, "mean_ns": None, "max_ns": None, "percentiles_ns": {}, "flags": [CONTRADICTS]}
    assert found["lat"]["mean_ns"] == 160_000
    assert notes == ["The latencies clat of read are withheld: 48,000 I/Os of 1.27 s each do not fit into 2 s with at most 8 at a time."]


def test_rate_of_a_time_that_was_not_counted_is_withheld():
    # verify_backlog: 1024 reads of 0.1 ms in "6 ms", of a run of 237 ms.
    values = {"iops": 170_666.0, "bw_bytes": 699_050_666, "total_ios": 1024, "io_bytes": 1024 * 4096, "runtime_ms": 6, "in_flight": 1}
    found, notes = checked(**values, lat=latency(103_308.0), clat=latency(102_519.0))
    assert (found["iops"], found["bw_bytes"], found["runtime_ms"], found["total_ios"]) == (None, None, None, 1024)
    assert found["clat"]["mean_ns"] == 102_519
    assert notes == ["The rates of read are withheld: its 1,024 I/Os took longer than the 6 ms that fio counted for them, with at most 1 at a time."]


def test_of_two_latencies_that_contradict_each_other_neither_is_shown():
    found, notes = checked(lat=latency(90_000.0), clat=latency(120_000.0))
    assert found["lat"]["mean_ns"] is found["clat"]["mean_ns"] is None
    assert notes == ["The latencies of read are withheld: clat, the time from submission to completion, is longer than lat, which includes it."]


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 170_000.0},
        {"high": 100_000.0},
        {"low": 1.0, "high": 200_000.0, "percentiles_ns": {"50": 150_000, "99": 140_000}},
        {"low": 1.0, "high": 200_000.0, "percentiles_ns": {"50": 150_000, "99": 240_000}},
        {"low": 140_000.0, "high": 200_000.0, "percentiles_ns": {"50": 100_000}},
    ],
)
def test_latency_out_of_order_is_withheld(wrong):
    found, notes = checked(lat=latency(160_000.0, **wrong))
    assert (found["lat"]["mean_ns"], found["lat"]["percentiles_ns"], len(notes)) == (None, {}, 1)


@pytest.mark.parametrize(("values", "missing"), [({"iops": 52_000.0}, "iops"), ({"bw_bytes": 100_000_000}, "bw_bytes")])
def test_rate_that_is_not_the_count_by_the_time_is_withheld(values, missing):
    found, notes = checked(**values)
    assert [name for name in ("iops", "bw_bytes", "total_ios") if found[name] is None] == [missing]
    assert len(notes) == 1


def test_syncs_that_do_not_fit_are_withheld():
    usual = {"iops": 1000.0, "bw_bytes": 4_096_000, "total_ios": 1000, "io_bytes": 4_096_000, "runtime_ms": 1000, "in_flight": 1, "lat": None, "clat": None}
    found, notes = consistent({"write": usual, "sync": {**latency(5e6), "n": 1000, "in_flight": 1}})
    assert (found["sync"]["mean_ns"], found["sync"]["n"], len(notes)) == (None, 1000, 1)
    assert consistent({"write": usual, "sync": {**latency(0.5e6), "n": 1000, "in_flight": 1}})[1] == []


def test_summary_of_an_old_version_is_not_compared_with_a_depth_that_it_does_not_have():
    found, notes = checked(in_flight=None, iops=1.0, lat=latency(1e9), clat=latency(0.9e9))
    assert found["iops"] == 1.0 and len(notes) == 1
    assert notes[0].startswith("Whether rates and latencies of read agree was not checked: the result, of an old version, does not have the number of I/Os")
    known, notes = consistent({"read": {**found, "in_flight": None, "lat": latency(1e9), "clat": None}}, 1.0, {"read": 8})
    assert (known["read"]["lat"]["mean_ns"], len(notes)) == (None, 1) and "with at most 8 at a time" in notes[0]


@pytest.mark.parametrize("odd", [[], "x", -1, float("nan"), 10**400, True, {"mean_ns": []}])
def test_values_of_a_host_are_not_trusted(odd):
    for name in ("iops", "total_ios", "runtime_ms", "in_flight", "lat", "clat"):
        checked(**{name: odd})
    for name in ("mean_ns", "min_ns", "max_ns", "percentiles_ns", "flags"):
        checked(lat={**latency(1.0), name: odd})
    consistent({"read": odd, "sync": odd})


@pytest.mark.parametrize(
    ("done", "total", "left_out", "same"),
    [
        (1000, 1000, 0, True),
        (1029, 1000, 0, True),
        (1035, 1000, 0, False),
        (965, 1000, 0, False),
        (900, 1000, 80, True),
        (9939, 1000, 100, False),
        (2, 3, 0, True),
    ],
)
def test_series_and_total(done, total, left_out, same):
    assert agrees(done, total, left_out) is same


# --- no printed figure contradicts another of the same report -------------------------------------------------------

COUNTS = st.one_of(st.integers(0, 10**9), st.sampled_from([0, 1, 2**63, 2**64 - 1, -1]))
RATES = st.one_of(st.floats(0, 1e7), st.sampled_from(["nan", "-nan", "inf", 0.0, -1.0]))
TIMES = st.one_of(st.floats(0, 1e12), st.sampled_from(["-nan", 8.6e18, 0.0, -5.0]))


@st.composite
def latencies(draw):
    found = {"min": draw(TIMES), "max": draw(TIMES), "mean": draw(TIMES), "N": draw(COUNTS)}
    if draw(st.booleans()):
        found["percentile"] = {f"{rank:.6f}": draw(st.integers(0, 10**11)) for rank in (50, 99)}
    return found


@st.composite
def directions(draw):
    total, milliseconds = draw(COUNTS), draw(st.integers(0, 100_000))
    honest = draw(st.booleans()) and 0 < total < 2**40 and milliseconds > 0
    row = {"total_ios": total, "io_bytes": total * 4096 if honest else draw(COUNTS), "io_kbytes": 1, "runtime": milliseconds}
    # A time that is damaged says nothing about the rates.
    row["runtime"] = draw(st.sampled_from([milliseconds, milliseconds, milliseconds, -5, "nan", 2**64 - 1]))
    row["iops"] = total / milliseconds * 1000 if honest else draw(RATES)
    row["bw_bytes"] = int(total * 4096 / milliseconds * 1000) if honest else draw(COUNTS)
    return {**row, **{f"{kind}_ns": draw(latencies()) for kind in ("clat", "lat")}}


@st.composite
def reports(draw):
    jobs = draw(st.integers(1, 3))
    options = [
        {"name": f"j{number}", **draw(st.sampled_from([{}, {"wait_for": "j0"}, {"stonewall": True}, {"startdelay": 3}, {"new_group": True}]))}
        for number in range(jobs)
    ]
    options[0] = {"name": "j0"}
    depth = draw(st.sampled_from([1, 8]))
    job = read_job({"global": {"rw": "randrw", "ioengine": "libaio", "iodepth": depth}, "jobs": options}, "c")
    entries, group = [], 0
    for number, one in enumerate(options):
        group += "stonewall" in one or "new_group" in one
        entry = {"jobname": f"j{number}", "groupid": group, "error": 0, "elapsed": draw(st.integers(0, 200))}
        entries.append({**entry, **{name: draw(directions()) for name in draw(st.sets(st.sampled_from(["read", "write"]), min_size=1))}})
    text = json.dumps({"fio version": "fio-3.33", "jobs": entries}, indent=1)
    for word in ("-nan", "nan", "inf"):
        text = text.replace(f'"{word}"', word)
    return job, text


@given(reports())
@settings(max_examples=300, deadline=None)
def test_no_figure_contradicts_another(report):
    job, text = report
    output = parse(text)
    assert (output.objects, output.truncated) == (1, False)
    found, _notes = consistent(summarize(output, job))
    json.dumps(found, allow_nan=False)
    longest = max([(found[name] or {}).get("runtime_ms") or 0 for name in DIRECTIONS])
    for name in DIRECTIONS:
        one = found[name]
        if one is None:
            continue
        seconds, in_flight = (one["runtime_ms"] or 0) / 1000, one["in_flight"]
        for rate, count in (("iops", "total_ios"), ("bw_bytes", "io_bytes")):
            if one[rate] is not None and one[count] is not None and seconds >= 1:
                assert abs(one[rate] - one[count] / seconds) <= 0.07 * one[count] / seconds + (1 if rate == "iops" else 1024)
            assert one[rate] is None or one[rate] > 0 or not one[count]
        phase, phases = 0, set()
        for section, entry in zip(job.sections, output.jobs):
            phase += "stonewall" in section.options
            phases |= {phase} if name in entry.directions else set()
        if len(phases) > 1:
            assert (one["iops"], one["bw_bytes"], one["lat"], one["clat"], one["at_once"]) == (None, None, None, None, False)
        kinds = [kind for kind in ("clat", "lat") if one[kind]]
        means = {kind: one[kind]["mean_ns"] for kind in kinds if one[kind]["mean_ns"] is not None}
        if len(means) == 2:
            assert means["clat"] <= means["lat"] * 1.011 + 1001
        for kind in kinds:
            this = one[kind]
            ordered = [value for value in (this["min_ns"], this["mean_ns"], this["max_ns"]) if value is not None]
            assert all(one <= other * 1.011 + 1001 for one, other in zip(ordered, ordered[1:]))
            ranks = [value for _rank, value in sorted(this["percentiles_ns"].items(), key=lambda item: float(item[0]))]
            assert all(one <= other * 1.011 + 1001 for one, other in zip(ranks, ranks[1:]))
            if kind in means and one["total_ios"] and longest:
                room = seconds if one["iops"] is not None and seconds else longest / 1000
                assert one["total_ios"] * means[kind] / 1e9 <= in_flight * (1.07 * room + 0.01 + min((this["max_ns"] or 0) / 1e9, room))
    # Nothing of what is left contradicts the rest.
    assert consistent(found)[1] == []
