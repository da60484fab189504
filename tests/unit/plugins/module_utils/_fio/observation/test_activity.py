# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation import activity
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Direction, Job, Output, Version


def job(runtime_ms=5000, group=0, **values):
    found = Direction(total_ios=1, io_bytes=values.pop("io_bytes", 4096), iops=1.0, bw_bytes=1, runtime_ms=runtime_ms)
    return Job("w", group, 0, None, values.pop("options", {}), {"write": found}, **values)


def output(*jobs, **values):
    return Output(Version(3, 33), jobs, (), 1, False, **values)


def test_io_start_reported_by_fio():
    assert activity.window(output(job(start_ms=1_000_000, options={"ramp_time": "10"})), 9999) == (1010.0, 1015.0)


def test_observed_io_start():
    assert activity.window(output(job(options={"ramp_time": "10"}), timestamp_ms=1_020_000), 1020.4, 1000.25) == (1010.25, 1015.25)
    assert activity.window(output(job(start_ms=1_000_000)), 9999, 1000.25) == (1000.25, 1005.25)
    assert activity.window(output(job(), job(3000, group=1), timestamp_ms=1_020_000), 1020.4, 1000.25) == (1012.0, 1020.0)


def test_missing_io_start_is_estimated_from_report_time():
    assert activity.window(output(job(), timestamp_ms=1_020_000), 1020.4) == (1015.0, 1020.0)
    assert activity.window(output(job()), 1020.4) == (1015.4, 1020.4)
    assert activity.window(output(job(), timestamp_ms=5_000), 1020.4) == (1015.4, 1020.4), "a clock that was set"


def test_consecutive_phases():
    assert activity.window(output(job(), job(3000, group=1, start_ms=7), timestamp_ms=1_020_000), 1020.4) == (1012.0, 1020.0)
    assert activity.window(output(job(0)), 1020.4) == (None, None)


def test_bytes_moved():
    stats = [{"sdb": {"write_sectors": count, "read_sectors": 0}} for count in (8, 24)]
    assert activity.moved("sdb", *stats, None) == (16 * 512, 0)
    assert activity.moved(None, *stats, output(job(), job())) == (8192, 0), "others may use the device below a file"
    assert activity.moved("sdb", *stats[::-1], output(job(io_bytes=None))) == (None, 0)
    assert activity.moved(None, {}, {}, None) == (None, None)


def test_bytes_moved_on_each_of_several_targets():
    sections = [{"name": "a", "rw": "read", "target": "x"}, {"name": "b", "rw": "write"}, {"name": "c", "rw": "write"}]
    alone = read_job({"jobs": sections}, "c")
    numbers = {"a": {"read": 1}, "b": {"write": 20, "read": 300}, "c": {"write": 4000}}

    def report(**entries):
        found = [
            Job(
                name,
                0,
                0,
                None,
                {},
                {direction: Direction(total_ios=1, io_bytes=count, iops=1.0, bw_bytes=1, runtime_ms=1) for direction, count in one.items()},
            )
            for name, one in entries.items()
        ]
        return output(*found)

    # What a section reads back to verify it is read on its target.
    assert [activity.moved(None, {}, {}, report(**numbers), alone, alone.on(name)) for name in (None, "x")] == [(4020, 300), (0, 1)]
    assert activity.moved(None, {}, {}, report(**numbers), alone, alone) == (4020, 301)
    # One entry for all of them tells directions apart, and nothing else.
    grouped = read_job({"global": {"group_reporting": True}, "jobs": sections}, "c")
    assert [activity.moved(None, {}, {}, report(a={"read": 7, "write": 8}), grouped, grouped.on(name)) for name in (None, "x")] == [(8, 0), (0, 7)]
    both = read_job({"global": {"group_reporting": True}, "jobs": [{**sections[0], "rw": "write"}, sections[1]]}, "c")
    assert [activity.moved(None, {}, {}, report(a={"write": 8}), both, both.on(name)) for name in (None, "x")] == [(None, 0), (None, 0)]
    assert (activity.added([1, None]), activity.added([1, 2])) == (None, 3)
    assert activity.written_to_each({"targets": [{"bytes_written": 1}, {"bytes_written": None}]}) == [1, None]
    assert activity.written_to_each({"targets": None, "bytes_written": 5}) == [5]


@pytest.mark.parametrize(
    ("usr", "sys", "host", "bound", "words"),
    [(10.0, 20.0, 30.0, False, None), (40.0, 58.0, 30.0, True, "98 % of a CPU for each of its 4 threads"), (1.0, 1.0, 99.0, True, "99 % busy")],
)
def test_cpu_limit_is_noted(usr, sys, host, bound, words):
    found = activity.cpu(output(job(user_cpu=usr, system_cpu=sys)), host)
    assert (found["cpu_bound"], found["fio_usr"]) == (bound, usr)
    note = activity.cpu_note(found, read_job({"rw": "read", "numjobs": 4}, "w"))
    assert words in note if words else note == ""


def test_one_thread_at_its_limit_is_cpu_bound():
    assert activity.cpu(output(job(user_cpu=99.0, system_cpu=0.0), job(user_cpu=1.0, system_cpu=0.0)), None)["cpu_bound"]
    assert activity.cpu(None, None) == {"fio_usr": None, "fio_sys": None, "host_busy": None, "cpu_bound": False}
