# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Campaigns as plain rows, seeded: fast and slow variants, one that may lose data, a cliff, a swing, a slow host, and names that bite."""

from __future__ import annotations

import json
import random
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import PERCENTS, Distribution
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band, Drive, Rows, Series
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.aggregate import Aggregate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import Common

VARIANTS = ("none", "writethrough", "writeback")
SPEED = {"none": 1.0, "writethrough": 1.3, "writeback": 2.2}
SLOW = 3

#: What a host may be called, and must stay.
SCRIPT = "<script>window.broken=1</script>"
MARKUP = "<b onmouseover=alert(1)>bold</b>&amp;"

_BLOCKS = {"4k": 4096, "16k": 16384, "128k": 131072}


def host_names(count: int) -> list[str]:
    names = [f"node{number:03d}" for number in range(count)]
    names[0] = SCRIPT
    if count > 1:
        names[1] = MARKUP
    return names


def measurement(host: str = "node1", variant: str = "none", cell: str = "randwrite-4k", repeat: int = 1, **changes: t.Any) -> Measurement:
    """One that is like all others but for its changes."""
    usual: dict[str, t.Any] = {
        "direction": "write", "iops": 1000.0, "bw_bytes": 4096000.0, "lat_n": 60000, "lat_mean_ns": 9e5, "p50_ns": 8e5, "p99_ns": 2e6, "p999_ns": 9e6,
        "rw": "randwrite", "bs": "4k", "bs_bytes": 4096, "ioengine": "libaio", "iodepth": 16, "numjobs": 1, "fdatasync": 0, "fsync": 0, "direct": True,
        "target": "/dev/vg0/scratch", "target_size": 4 * 10**12, "model": "SSD A", "firmware": "F1", "fio_version": "fio-3.33", "behaviour_class": "blocking",
        "kernel": "6.1.0", "started": 1e9 + VARIANTS.index(variant) * 1e4 if variant in VARIANTS else 1e9, "verdict_before": "durable",
        "verdict_after": "durable", "bytes_written": 10**9, "bytes_read": 0, "cpu_bound": False, "synchronised": True,
        "path": f"{host}/{variant}/{cell}/{repeat}",
    }  # fmt: skip
    return Measurement(host, variant, cell, repeat, **{**usual, **changes})


def campaign(hosts: int = 6, repeats: int = 4, seed: int = 7, *, loads: t.Sequence[int] = (1, 4, 16)) -> tuple[Rows, list[Series], list[Band]]:
    """Rows, series and bands of so many hosts: write-back is fastest and is at risk, write-through is the fastest that is safe."""
    chance = random.Random(seed)
    rows: list[Measurement] = []
    drives: list[Drive] = []
    settings: dict[tuple[str, str], list[tuple[str, str, str, str]]] = {}
    for number, host in enumerate(host_names(hosts)):
        own = chance.gauss(1, 0.02) * (0.5 if number == SLOW else 1.0)
        firmware = "F0" if number == SLOW else "F1"
        drives.append(Drive(host, "sda", "SSD A", f"S{number}", firmware, 2.0, 3.0, 10**12, 10**12 + 5 * 10**10, 34.0 + number % 5, 0, True))
        for variant in VARIANTS:
            settings[host, variant] = [("sda", "queue", "scheduler", "bfq" if number == SLOW else "none"), ("dm-0", "block_cache", "policy", variant)]
            verdict = "at_risk" if variant == "writeback" else "durable"
            for rw, direction in (("randread", "read"), ("randwrite", "write")):
                for block, size in _BLOCKS.items():
                    for jobs in loads:
                        for repeat in range(1, repeats + 1):
                            rate = 9000 * own * SPEED[variant] * jobs / (jobs + 6) * (4096 / size) ** 0.6 * chance.gauss(1, 0.01)
                            wait = jobs / rate * 1e9
                            rows.append(
                                measurement(
                                    host,
                                    variant,
                                    f"{rw}-{block}-{jobs}",
                                    repeat,
                                    rw=rw,
                                    direction=direction,
                                    bs=block,
                                    bs_bytes=size,
                                    numjobs=jobs,
                                    iodepth=1,
                                    iops=rate,
                                    bw_bytes=rate * size,
                                    lat_mean_ns=wait,
                                    p50_ns=0.9 * wait,
                                    p99_ns=3 * wait,
                                    p999_ns=8 * wait,
                                    firmware=firmware,
                                    verdict_before=verdict,
                                    verdict_after=verdict,
                                    stack_before=variant,
                                    stack_after=variant,
                                    cpu_bound=direction == "read" and jobs == max(loads) and number == 0,
                                )
                            )
    if hosts > 2:
        rows.append(
            measurement(host_names(hosts)[2], "none", "randtrim-4k", direction=None, state="failed", reason=f"fio ended with {SCRIPT}", iops=None, path=None)
        )
    series = [_cliff(host_names(hosts)[0], chance), _swing(host_names(hosts)[-1], chance), _steady(host_names(hosts)[0], chance)]
    bands = [_band(variant) for variant in VARIANTS]
    return Rows("2026-11-22 <i>night</i>", rows, drives, settings), series, bands


def distributions(rows: Rows) -> list[Distribution]:
    """Of one cell: the faster a variant, the shorter its latencies; p99.9 is not known of the slowest."""
    found = []
    for variant in VARIANTS:
        percents = [percent for percent in PERCENTS if percent < 99.9 or variant != "none"]
        values = tuple((percent, 1e5 / (SPEED[variant] * (1 - percent / 100))) for percent in percents)
        found.append(Distribution(f"{len(rows.hosts)} hosts", len(rows.hosts), variant, "randwrite-4k-1", "write", 10**6, values))
    return found


def rounds(host: str = "node1", *, steady: bool = True, **changes: t.Any) -> Measurement:
    """A precondition, as the runner of a host reports it."""
    values = [90000.0, 60000.0, 41000.0, 40000.0, 40500.0, 39800.0, 40200.0]
    found = {
        "window": values[2:], "what": "iops", "track": "write", "values": values, "steady": steady, "first_of_window": 3, "average": 40300.0,
        "excursion": 0.0298, "slope": -0.0144, "limits": {"range": 0.2, "slope": 0.1, "window": 5},
    }  # fmt: skip
    return measurement(host, "none", "precondition", direction=None, iops=None, rounds=json.dumps({**found, **changes}), decides="")


def sums(rows: Rows) -> list[Aggregate]:
    """What all hosts, two of them that share an array, and two targets of one did together."""
    found = []
    for one in rows.measurements:
        if one.host != rows.hosts[-1] or one.iops is None or not one.cell.startswith("randwrite"):
            continue
        for group, host, planned, targets in (("", "", len(rows.hosts), 0), (MARKUP, "", 2, 0), ("", SCRIPT, 1, 2)):
            parts = targets or planned
            if parts > 1:
                found.append(
                    Aggregate(
                        group=group,
                        host=host,
                        variant=one.variant,
                        cell=one.cell,
                        repeat=one.repeat,
                        direction="write",
                        hosts=tuple(rows.hosts[:planned]),
                        planned=planned,
                        targets=targets,
                        added=parts,
                        iops=parts * one.iops,
                        bandwidth=parts * (one.bw_bytes or 0.0),
                        latency={"p50": one.p50_ns, "p99": one.p99_ns, "p99.9": None},
                        synced=False,
                        common=Common(1e9, 1e9 + 60, 1e9 - 0.012, 1e9 + 60.4, 0.0, True),
                        iops_overall=None,
                        in_turn=False,
                        pro_rata=(),
                        state=one.state,
                    )
                )
    return found


def _cliff(host: str, chance: random.Random) -> Series:
    iops: list[float | None] = [chance.gauss(90000 if second < 900 else 28000, 900) for second in range(1800)]
    return Series(host, "none", "randwrite-4k-16", 1, "write", iops, [4096 * (value or 0) for value in iops])


def _swing(host: str, chance: random.Random) -> Series:
    iops: list[float | None] = [chance.gauss(2600 if second % 33 < 25 else 800, 30) for second in range(300)]
    return Series(host, "none", "randwrite-16k-16", 1, "write", iops, [16384 * (value or 0) for value in iops])


def _steady(host: str, chance: random.Random) -> Series:
    iops: list[float | None] = [chance.gauss(5000, 60) for _second in range(180)]
    return Series(host, "writethrough", "randread-4k-1", 1, "read", iops, [4096 * (value or 0) for value in iops])


def _band(variant: str) -> Band:
    low, middle, high = ([rate * SPEED[variant]] * 60 for rate in (900.0, 1000.0, 1100.0))
    return Band(variant, "randwrite-4k-1", "write", 6, [float(second) for second in range(60)], low, middle, high)
