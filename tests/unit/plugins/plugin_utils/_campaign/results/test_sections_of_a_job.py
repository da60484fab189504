# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a row says of its workload is what the sections did that have I/O in its direction."""

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord, job_options
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import consistent_summary, measurements_of

JOB = """\
[global]
ioengine=libaio
iodepth=2
; added by cachefleet.storage
size=64m

[reader]
rw=randread
direct

[writer]
readwrite=write
bs=64k
iodepth=8
direct=1
"""
SUMMARY = {name: {"iops": 100.0, "bw_bytes": 1e6, "total_ios": 1000, "runtime_ms": 10000} for name in ("read", "write")}


def rows(tmp_path, text):
    (tmp_path / "job.fio").write_text(text)
    job, sections = job_options(tmp_path)
    record = CellRecord("node1", CellKey("v", "c", 1), "ok", "", tmp_path, {"summary": SUMMARY}, job, sections=sections)
    found = measurements_of(record, consistent_summary(record), dict, {})
    return {one.direction: (one.rw, one.bs, one.bs_bytes, one.iodepth, one.direct, one.ioengine) for one in found}


def test_each_direction_has_the_options_of_its_section(tmp_path):
    assert rows(tmp_path, JOB) == {
        "read": ("randread", "4k", 4096, 2, True, "libaio"),
        "write": ("write", "64k", 65536, 8, True, "libaio"),
    }


def test_what_differs_between_sections_of_one_direction_is_not_one_value(tmp_path):
    found = rows(tmp_path, f"{JOB}\n[second]\nrw=randrw\nbs=4k\niodepth=2\n")
    assert found["read"] == (None, "4k", 4096, 2, None, "libaio")
    assert found["write"] == (None, None, None, None, None, "libaio")


def test_one_section_is_as_before(tmp_path):
    assert rows(tmp_path, "[global]\nrw=randrw\nbs=8k\n\n[c]\niodepth=4\n")["read"] == ("randrw", "8k", 8192, 4, False, "psync")


def test_sizes_of_a_split_and_the_last_of_two_switches_are_what_fio_did(tmp_path):
    # fio does the sizes of bssplit whatever bs is, and of direct and buffered it takes the last one.
    assert rows(tmp_path, "[global]\nbs=8k\ndirect=1\n\n[c]\nbssplit=4k/50:64k/50\nbuffered=1\n")["read"][1:5] == ("4k/50:64k/50", None, 1, False)
    assert rows(tmp_path, "[global]\nbuffered=0\n\n[c]\nblocksize_range=4k-64k\n")["read"][1:5] == ("4k-64k", None, 1, True)


def test_each_direction_has_the_targets_of_its_sections(tmp_path):
    (tmp_path / "job.fio").write_text(JOB)
    job, sections = job_options(tmp_path)
    places = [
        {"path": "/dev/sdb", "identity": "B", "model": "disk b", "size": 100, "used_size": 40, "directions": ["write"]},
        {"path": "/dev/sdc", "identity": "C", "model": "disk c", "size": 300, "used_size": None, "directions": ["read"]},
    ]
    meta = {"summary": {**SUMMARY, "mixed": SUMMARY["read"]}, "target": places[0], "targets": places}
    record = CellRecord("node1", CellKey("v", "c", 1), "ok", "", tmp_path, meta, job, sections=sections)
    found = measurements_of(record, consistent_summary(record), dict, {"model": "disk b, disk c"})
    assert {one.direction: (one.target, one.target_identity, one.target_size, one.model) for one in found} == {
        "read": ("/dev/sdc", "C", 300, "disk c"),
        "write": ("/dev/sdb", "B", 40, "disk b"),
        "mixed": ("/dev/sdb, /dev/sdc", "B, C", 340, "disk b, disk c"),
    }
