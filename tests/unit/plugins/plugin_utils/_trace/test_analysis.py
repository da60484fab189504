# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report of a trace is made of, and traces as loads for fio."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import replay
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import analysis, contents
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace.trace import Trace, TraceError
from ansible_collections.cachefleet.storage.tests.unit.support.recorded_loads import LOADS, SECTORS, recorded, write


def log_of(trace: Trace, device: int = 0) -> str:
    return gzip.decompress(analysis.replay_log(trace, device, contents.contents_of(trace).devices[device])).decode()


def test_a_whole_trace_is_a_log_that_a_cell_replays() -> None:
    trace = recorded([8, 0, 64, 8], 8, [1, 0, 0, 1], seconds=4)
    trace.requests["operation"][2:] = [3, 2]
    log = log_of(trace)
    found = replay.read_replay({"read_iolog": log}, "cell")
    assert log.splitlines()[3:] == ["0 target write 4096 4096", "1000000 target read 0 4096", f"2000000 target trim {64 * 512} 4096", "3000000 target sync 0 0"]
    assert (found.ios, found.seconds, found.end) == (3, 3.0, 64 * 512 + 4096)


def test_discards_of_any_length_are_parts_that_fio_can_do() -> None:
    trace = recorded([0], 8, [0])
    trace.requests["operation"], trace.requests["sectors"] = 3, 2 * replay.LARGEST_IO // 512 + 8
    found = replay.read_replay({"read_iolog": log_of(trace)}, "cell")
    assert (found.ios, found.moved["trim"]) == (3, 2 * replay.LARGEST_IO + 4096)


def test_devices_are_sections_of_one_cell_and_keep_their_distance_in_time(tmp_path: Path) -> None:
    trace = of_two_devices()
    paths = {}
    for place in (0, 1):
        paths[place] = str(tmp_path / f"replay-{place}.log.gz")
        Path(paths[place]).write_bytes(analysis.replay_log(trace, place, contents.contents_of(trace).devices[place]))
    assert [log_of(trace, place).splitlines()[3].split()[0] for place in (0, 1)] == ["0", "1000000"]
    variables = analysis.replay_suite(contents.contents_of(trace), paths, "r")
    (cell,) = read_suite("r", variables["fio_benchmark_suites"]).cells
    job = cell.checked_job()
    assert [(section.name, section.target, section.replay and section.replay.ios) for section in job.sections] == [
        ("vg0-data", "vg0-data", 2),
        ("sdb", "sdb", 2),
    ]
    assert [section.replay and section.replay.seconds for section in job.sections] == [2.0, 3.0]
    alone = analysis.replay_suite(contents.contents_of(trace), {1: paths[1]}, "r")["fio_benchmark_suites"]["r"]["cells"][0]["job"]["jobs"]
    assert alone == [{"name": "sdb", "read_iolog": paths[1]}], "on whatever target there is"


def of_two_devices() -> Trace:
    trace = recorded([8, 0, 64, 8], 8, [1, 0, 0, 1], seconds=4)
    trace.requests["device"] = [0, 1, 0, 1]
    devices = tuple(dataclasses.replace(trace.devices[0], name=name) for name in ("/dev/vg0/data", "/dev/sdb"))
    return dataclasses.replace(trace, devices=devices)


def test_what_cannot_be_replayed_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    sector = np.arange(3000) * 4096
    for trace in (recorded(sector, 8, 0, part=2), dataclasses.replace(recorded(sector, 8, 0), lost=1)):
        with pytest.raises(TraceError, match="cannot be replayed: the trace does not have every request at its place"):
            log_of(trace)
    monkeypatch.setattr(replay, "MOST_FILE_IOS", 2999)
    with pytest.raises(TraceError, match=r"has 3,000 requests, and a cell replays 1 to 2,999: use the fitted job"):
        log_of(recorded(sector, 8, 0))


def test_sizes_are_up_to_the_accessed_data_unless_given() -> None:
    trace = LOADS["hot and cold"](4000)
    found = analysis.analyse(trace, [1 << 20])
    assert {one.size for one in found.points} == {1 << 20} and len(found.fitted) == 1 and not found.not_fitted
    largest = max(one.size for one in analysis.analyse(trace).points)
    accessed = found.contents.devices[0].working_set[-1].cumulative
    assert accessed <= largest < 2 * max(accessed, 1 << 24)


def test_a_region_may_have_only_ends_of_requests() -> None:
    sector = (np.arange(40) + 1) * 4 * SECTORS - 1
    assert analysis.analyse(recorded(sector, 8, 0), [1 << 20]).points


def test_a_device_without_a_job_says_why() -> None:
    found = analysis.analyse(recorded(np.arange(1000) * 8, 8, 0))
    assert not found.fitted and "record longer" in found.not_fitted[0]


def test_folders_of_one_host_of_all_and_of_none(tmp_path: Path) -> None:
    trace = recorded([0], 8, 0)
    for host in ("db2", "db1"):
        write(tmp_path / "monday" / host, trace)
    assert [one.name for one in analysis.folders_of(tmp_path / "monday")] == ["db1", "db2"]
    assert analysis.folders_of(tmp_path / "monday/db2") == [tmp_path / "monday/db2"]
    with pytest.raises(TraceError, match=r"There is no trace in .*trace_report_folder must be"):
        analysis.folders_of(tmp_path)
