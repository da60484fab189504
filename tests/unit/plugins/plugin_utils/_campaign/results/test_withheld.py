# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Figures that contradict each other are not shown, whoever stored them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import parse
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.summary import summarize
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import consistent_summary, histograms_of, measurements_of

#: io_uring with sqthread_poll and a depth of 8, as fio 3.33 reported it.
BINS = {"1199570944": 90_000, "2105540608": 6230}
CLAT = {"min": 113296745, "max": 2110692749, "mean": 1272888711.96, "N": 96230, "percentile": {"50.000000": 1199570944, "99.000000": 2105540608}, "bins": BINS}
READ = {
    "io_bytes": 394158080,
    "io_kbytes": 384920,
    "bw_bytes": 196980549,
    "iops": 48090.95,
    "runtime": 2001,
    "total_ios": 96230,
    "clat_ns": CLAT,
    "lat_ns": {"min": 19643, "max": 15962767, "mean": 165663.49, "N": 96230},
}
OUTPUT = parse(json.dumps({"fio version": "fio-3.33", "jobs": [{"jobname": "a", "groupid": 0, "error": 0, "elapsed": 3, "read": READ}]}))
OPTIONS = {"rw": "randread", "ioengine": "io_uring", "iodepth": "8"}


UNCHECKED = (
    "Whether rates and latencies of read agree was not checked: the result, of an old version, does not have the number of I/Os that may be under way "
    "at one time."
)


def row_of(summary, options=None):
    options = OPTIONS if options is None else options
    record = CellRecord("h", CellKey("v", "a", 1), "ok", "", None, {"summary": summary, "elapsed": 3.0, "notes": ["first"]}, options)
    consistent = consistent_summary(record)
    (row,) = measurements_of(record, consistent, lambda: histograms_of(record, OUTPUT, consistent[0]), {})
    return record, row


@pytest.mark.parametrize(
    ("job", "sent", "lat", "words"),
    [
        (read_job(OPTIONS, "a"), OPTIONS, 165663.49, ["The latencies clat of read are withheld: 96,230 I/Os of 1.27 s each"]),
        # A summary of an older version has no depth: the job that was sent has it.
        (None, OPTIONS, 165663.49, ["The latencies clat of read are withheld: 96,230 I/Os of 1.27 s each"]),
        # Without the job it is not known which of the two is wrong.
        (None, {}, None, ["The latencies of read are withheld", UNCHECKED]),
        (None, {**OPTIONS, "iodepth": "deep"}, None, ["The latencies of read are withheld", UNCHECKED]),
    ],
)
def test_withheld_latency_does_not_come_back_from_its_histogram(job, sent, lat, words):
    record, row = row_of(summarize(OUTPUT, job), sent)
    assert (row.iops, row.lat_mean_ns, row.p50_ns, row.p99_ns) == (48090.95, lat, None, None)
    assert row.notes[0] == "first" and len(row.notes) == 1 + len(words)
    assert all(note.startswith(expected) for note, expected in zip(row.notes[1:], words, strict=True))
    assert histograms_of(record, OUTPUT, consistent_summary(record)[0]) == {}
    json.dumps(row.notes)


def test_depth_of_an_old_summary_is_that_of_the_sections_of_its_direction():
    # Two sections of 4 and 3 x 2 reads, and a writer: ten at a time do not take 1 s each at 48,000 per second.
    sections = [
        {"ioengine": "libaio", "iodepth": "4"},
        {"ioengine": "psync", "iodepth": "9", "numjobs": "6"},
        {"rw": "write", "ioengine": "libaio", "iodepth": "64"},
    ]
    summary = {"read": {"iops": 10.0, "total_ios": 100, "io_bytes": 409600, "bw_bytes": 40960, "runtime_ms": 10000, "lat": {"n": 100, "mean_ns": 2e9}}}
    record = CellRecord("h", CellKey("v", "a", 1), "ok", "", None, {"summary": summary, "elapsed": 10.0}, {}, sections=tuple(sections))
    (row,) = measurements_of(record, consistent_summary(record), dict, {})
    assert row.notes == ["The latencies lat of read are withheld: 100 I/Os of 2 s each do not fit into 10 s with at most 10 at a time."]
