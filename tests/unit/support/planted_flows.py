# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Flows whose cause is known, because they are made of it: devices that keep requests so long, and caches that hit so often."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CacheFlow, CellFlows, Flow
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

CELL = "randwrite-4k-fdatasync"
MB = 10**6


def disk(name: str = "sda", *, reads: t.Any = (0, 0), writes: t.Any = (0, 0), flushes: t.Any = (0, 0), **changes: t.Any) -> Flow:
    """A disk. :param reads: per second, and ms that each takes, as the others; ``None`` where they are not known."""
    kinds = {"reads": reads or (None, None), "writes": writes or (None, None), "flushes": flushes or (None, None)}
    rates = {kind: rate for kind, (rate, _wait) in kinds.items()}
    waits = {f"{kind.rstrip('s') if kind != 'flushes' else 'flush'}_wait": wait if rate else None for kind, (rate, wait) in kinds.items()}
    known = [rate * wait / 1000 for rate, wait in kinds.values() if rate is not None and wait is not None]
    usual = {
        "level": 2, "kind": "disk", "model": "HDD", "rotational": True, "request_bytes": 4096.0, "queue": sum(known), "in_flight": sum(known),
        "use": min(100.0, 100 * sum(known)), "read_bytes": 4096 * (rates["reads"] or 0.0), "write_bytes": 4096 * (rates["writes"] or 0.0),
    }  # fmt: skip
    return Flow(**{"device": name, **usual, **rates, **waits, **changes})


def cache(mode: str = "writeback", dirty: t.Any = (0, 0), **changes: t.Any) -> CacheFlow:
    """A dm-cache of 1 GB on sdb. :param dirty: MB at its start and end."""
    usual: dict[str, t.Any] = {
        "level": 0, "device": "dm-0", "type": "lvm_cache", "mode": mode, "size": 1000 * MB, "fast": ("sdb",), "origin": "sda", "read_hits": 0.0,
        "read_misses": 0.0, "write_hits": 0.0, "write_misses": 0.0, "bypassed_reads": 0.0, "bypassed_writes": 0.0, "promoted": 0.0, "written_back": 0.0,
        "used_start": 0, "used_end": 0, "used_most": 0, "state": None, "dirty_start": None if dirty is None else dirty[0] * MB,
        "dirty_end": None if dirty is None else dirty[1] * MB, "dirty_most": None if dirty is None else max(dirty) * MB,
    }  # fmt: skip
    return CacheFlow(**{**usual, **changes})


def ssd(**changes: t.Any) -> Flow:
    """The cache device of :func:`cache`."""
    return disk("sdb", **{"rotational": False, "model": "SSD", **changes})


def planted(variant: str, *repeats: t.Any, cell: str = CELL, host: str = "node1", **changes: t.Any) -> tuple[list[t.Any], dict[t.Any, CellFlows]]:
    """Measurements and their flows. :param repeats: IOPS and flows of each; the flows may be missing."""
    started = 1e9 + sum(map(ord, variant)) if "started" not in changes else changes.pop("started")
    usual = {"fdatasync": 1, "iodepth": 1, "lat_mean_ns": None, "started": started, "runtime_ms": 2000, "bw_bytes": None, "target_size": 256 * MB}
    measured, flows = [], {}
    for number, (iops, found) in enumerate(repeats, 1):
        options = {**usual, **changes}
        options["bw_bytes"] = options["bw_bytes"] or 4096.0 * iops
        measured.append(measurement(host, variant, cell, number, iops=iops, **options))
        if found is not None:
            flows[host, variant, cell, number] = found
    return measured, flows


def rows_of(*variants: tuple[list[t.Any], dict[t.Any, CellFlows]], settings: t.Any = None) -> Rows:
    """A campaign of variants as :func:`planted` makes them."""
    return Rows("c", [one for measured, _flows in variants for one in measured], settings=settings or {}, flows={
        key: value for _measured, flows in variants for key, value in flows.items()
    })  # fmt: skip


def demo(*, with_flows: bool = True) -> Rows:
    """The demo of which the answer was 5.7 times without a reason: six variants, four repeats.

    Rates and flushes are those of that run. Its waits were not recorded: a flush takes the slow disk 5 ms, a write without its cache 4.5 ms.
    """
    variants = []
    for place, (variant, measured) in enumerate(_DEMO.items()):
        cached, _dash, word = variant.replace("disk_", "").partition("-")
        repeats = [(iops, _flows_of(cached, word, iops, flushes, dirty) if with_flows else None) for iops, flushes, dirty in measured]
        variants.append(planted(variant, *repeats, started=1e9 + place * 1e4, stack_before=variant, stack_after=variant))
    settings = {("node1", name): [("sda", "drive", "drive", "enabled" if name.endswith("on") else "disabled")] for name in _DEMO}
    return rows_of(*variants, settings=settings)


#: IOPS, flushes per second that the application or the cache sends, and MB that are dirty at start and end, of each repeat.
_DEMO = {
    "bare-disk_on": ((110, 58, None), (157, 112, None), (155, 93, None), (156, 92, None)),
    "bare-disk_off": ((150, 0, None), (141, 0, None), (149, 0, None), (147, 0, None)),
    "writethrough-disk_on": ((118, 80, (0, 0)), (137, 96, (0, 0)), (140, 98, (0, 0)), (131, 90, (0, 0))),
    "writethrough-disk_off": ((157, 113, (0, 0)), (141, 99, (0, 0)), (150, 104, (0, 0)), (145, 101, (0, 0))),
    "writeback-disk_on": ((126, 85, (25, 4)), (258, 175, (38, 3)), (151, 104, (32, 8)), (150, 130, (0, 2))),
    "writeback-disk_off": ((475, 276, (22, 19)), (918, 656, (0, 20)), (834, 560, (0, 25)), (836, 580, (0, 24))),
}


def _flows_of(cached: str, word: str, iops: float, flushes: float, dirty: t.Any) -> CellFlows:
    slow = {"writes": (iops, 1.0 if word == "on" else 4.5), "flushes": (flushes if word == "on" else 0, 5.0)}
    if cached == "bare":
        return CellFlows((disk(level=0, **slow),), ())
    if cached == "writeback":
        slow["writes"] = (60, 5.0)
    return CellFlows((disk(**slow), ssd(writes=(1.2 * iops, 0.2), flushes=(flushes, 0.3))), (cache(cached, dirty),))
