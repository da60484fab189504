# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A report that is hard to lay out: many variants with long names, noise, figures of every size, sequential cells, and cells with long names."""

from __future__ import annotations

import random

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import page
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import analysis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows, Series
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

#: Of each variant how many times as fast it is.
SPEED = {
    "before": 1.0, "after": 0.98, "writeback-with-drive-cache-and-read-ahead-of-4096-sectors": 0.31, "wt": 12.345, "writearound": 1.002, "wb-4k": 123.4,
}  # fmt: skip
CELLS = {
    "randwrite-4k-fdatasync": ("randwrite", "write", 4096, 150.0),
    "randread-4k-of-a-cell-whose-name-goes-on-and-on-iodepth-64": ("randread", "read", 4096, 9.8e5),
    "seqread-1m": ("read", "read", 2**20, 5123.0), "seqwrite-1m": ("write", "write", 2**20, 0.3),
}  # fmt: skip


def write(path):
    chance = random.Random(11)
    rows = []
    for variant, speed in SPEED.items():
        for cell, (rw, direction, size, rate) in CELLS.items():
            for repeat in range(1, 6):
                iops = rate * speed * abs(chance.gauss(1, 0.3 if variant == "after" else 0.01))
                rows.append(
                    measurement(
                        "host-with-a-long-name.example.com", variant, cell, repeat, rw=rw, direction=direction, bs=str(size), bs_bytes=size, iops=iops,
                        bw_bytes=iops * size, lat_mean_ns=16e9 / iops, p50_ns=15e9 / iops, p99_ns=31e9 / iops, p999_ns=1e11 / iops, started=1e9 + repeat,
                    )
                )  # fmt: skip
    series = []
    for cell in ("seqread-1m", "randwrite-4k-fdatasync"):
        values = [chance.gauss(42000 if second % 60 < 20 else 21000, 300) for second in range(240)]
        series.append(Series("host-with-a-long-name.example.com", "before", cell, 1, CELLS[cell][1], values, [value * CELLS[cell][2] for value in values]))
    found = analysis.analyse(Rows("a campaign", rows, [], {}), series, len(series), [], path.parent, analysis.Options())
    path.write_text(page.render(found, "results/a campaign"))
    return path
