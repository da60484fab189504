# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Traces that hosts have recorded."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import numpy as np
import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._trace import format as trace_format
from ansible_collections.cachefleet.storage.plugins.plugin_utils._trace import trace as trace_files

DESCRIPTION: dict[str, t.Any] = {
    "schema": 1,
    "name": "monday",
    "host": "db1",
    "seconds": 60.0,
    "limit": trace_format.HASHES,
    "lost": 0,
    "devices": [{"name": "/dev/vg0/data", "bytes": 1 << 30}, {"name": "/dev/sdb", "bytes": 1 << 30}],
}


def written(folder: Path, *records: tuple[int, ...], **changed: t.Any) -> Path:
    (folder / trace_format.TRACE_FILE).write_text(json.dumps({**DESCRIPTION, **changed}))
    (folder / trace_format.REQUESTS_FILE).write_bytes(b"".join(trace_format.RECORD.pack(*record) for record in records))
    return folder


def test_a_request_is_an_access_to_each_of_its_blocks(tmp_path: Path) -> None:
    trace = trace_files.read_trace(written(tmp_path, (5, 4, 8, 8, 1, 1, trace_format.WRITE, 0), (3, 0, 8, 8, 1, 0, trace_format.READ, 0)))
    found = trace.accesses(4096)
    assert [(int(one["time"]), int(one["block"]), int(one["bytes"])) for one in found] == [(3, 0, 4096), (5, 1 << 48, 2048), (5, (1 << 48) + 1, 2048)]
    assert [int(one["block"]) for one in trace.accesses(65536, devices=[1])] == [1 << 48]


def test_only_blocks_of_sampled_regions_count(tmp_path: Path) -> None:
    records = [(number, number * trace_format.REGION_SECTORS, 8, 8, 1, 0, trace_format.READ, 0) for number in range(4000)]
    trace = trace_files.read_trace(written(tmp_path, *records, limit=trace_format.HASHES // 4))
    assert abs(len(trace.accesses(4096)) - 1000) < 100
    across = trace_files.read_trace(written(tmp_path, (0, trace_format.REGION_SECTORS - 8, 16, 16, 1, 0, 0, 0), limit=trace_format.HASHES // 2))
    hashes = [trace_format.region_hash(0, region) for region in (0, 1)]
    assert len(across.accesses(4096)) == sum(one < trace_format.HASHES // 2 for one in hashes)


def test_the_hash_of_arrays_is_that_of_the_host() -> None:
    regions = np.array([0, 1, 2, 10**6, 2**40])
    for device in range(3):
        found = trace_files.region_hashes(np.full(len(regions), device), regions)
        assert [int(one) for one in found] == [trace_format.region_hash(device, int(region)) for region in regions]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"schema": 2}, "schema 2"),
        ({"seconds": 0}, "does not state its duration"),
        ({"limit": trace_format.HASHES + 1}, "does not state its duration"),
        ({"devices": []}, "its devices"),
        ({"lost": None}, "its lost events"),
        ({"devices": [{"name": "/dev/sda"}]}, "that it does not name"),
        ({"record": (0, 1 << 48, 8, 8, 1, 1, 0, 0)}, "at an offset or of a size"),
        ({"record": (0, 0, 1 << 22, 8, 1, 1, 0, 0)}, "at an offset or of a size"),
    ],
)
def test_a_trace_that_contradicts_itself_is_refused(tmp_path: Path, changed: dict[str, t.Any], message: str) -> None:
    with pytest.raises(trace_files.TraceError, match=message):
        trace_files.read_trace(written(tmp_path, changed.pop("record", (0, 0, 8, 8, 1, 1, 0, 0)), **changed))


def test_missing_and_cut_files(tmp_path: Path) -> None:
    with pytest.raises(trace_files.TraceError, match=r"could not be read"):
        trace_files.read_trace(tmp_path)
    folder = written(tmp_path, (0, 0, 8, 8, 1, 0, 0, 0), (1, 0, 8, 8, 1, 0, 0, 0))
    path = folder / trace_format.REQUESTS_FILE
    path.write_bytes(path.read_bytes()[:-1])
    assert len(trace_files.read_trace(folder).requests) == 1
