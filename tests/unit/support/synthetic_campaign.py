# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Campaigns of any size as the collection leaves them on the controller, seeded: json+ with histograms, logs by the second, stacks.

Every file of a cell is there with its hash. The figures are made up, and hang together: I/Os, their histogram, and the logs.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import typing as t
from pathlib import Path

import numpy as np

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import summary as fio_summary
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import bin_midpoint
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job

SEED = 20261122
CAMPAIGN = "synthetic"
VARIANTS = ("writethrough", "writeback")
CREATED = "2026-11-22T06:00:00.000000Z"
BEGAN = 1_795_000_000

#: 48 cells: 2 variants of 24.
CELLS = tuple((rw, bs, depth) for rw in ("randread", "randwrite", "randrw", "write") for bs in ("4k", "64k", "1m") for depth in (1, 16))
_BS = {"4k": 4096, "64k": 65536, "1m": 1 << 20}
_MIDPOINTS = np.array([bin_midpoint(index) for index in range(29 * 64)], dtype=np.float64)
_WIDTHS = np.gradient(_MIDPOINTS)
_MODELS = (("INTEL SSDSC2BB080G4", "D2010370"), ("SAMSUNG MZ7LH960", "HXT7904Q"), ("MICRON 5300 MTFDDAK", "D3MU001"))
_OPTIONS = {"rw": "randwrite", "bs": "4k", "ioengine": "libaio", "iodepth": "16", "numjobs": "1", "direct": "1", "time_based": "", "runtime": "60"}
_DIRECTION_NUMBER = {"read": 0, "write": 1}


class Truth(t.NamedTuple):
    """What a variant is. :param speed: beside the others. :param stack: one side of the ``stack.json`` of its cells."""

    speed: float
    stack: t.Mapping[str, t.Any]


def write_campaign(
    folder: Path,
    hosts: int | t.Iterable[int],
    *,
    cells: int = 48,
    seconds: int = 60,
    campaign: str = CAMPAIGN,
    variants: t.Mapping[str, Truth] | None = None,
    loads: t.Sequence[tuple[str, str, int]] = (),
    caches: bool = False,
) -> Path:
    """A campaign with hosts ``host0000``…, each the same wherever and whenever it is made.

    :param hosts: how many, or which numbers.
    :param cells: of each host, over all variants.
    :param variants: instead of ``VARIANTS``. :param loads: instead of ``CELLS``.
    :param caches: whether each cell has the series of a cache that becomes warm.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "campaign.json").write_text(json.dumps({"schema": 1, "campaign": campaign, "created": CREATED}))
    for number in range(hosts) if isinstance(hosts, int) else hosts:
        _write_host(folder, number, cells, seconds, campaign, variants or {}, loads or CELLS)
        for place in (folder / f"host{number:04d}").glob("*/*/*/meta.json") if caches else ():
            meta = json.loads(place.read_text())
            content = _packed(_cache_series(meta["io_start"], meta["io_end"]))
            place.with_name("cache_series.log.gz").write_bytes(content)
            place.write_text(json.dumps({**meta, "files": {**meta["files"], "cache_series.log.gz": hashlib.sha256(content).hexdigest()}}, indent=1))
    return folder


def _write_host(
    folder: Path, number: int, cells: int, seconds: int, campaign: str, variants: t.Mapping[str, Truth], loads: t.Sequence[tuple[str, str, int]]
) -> None:
    random = np.random.default_rng([SEED, number])
    host = f"host{number:04d}"
    speed = random.lognormal(0, 0.03)
    names = tuple(variants) or VARIANTS
    for index in range(cells):
        variant = names[index % len(names)]
        truth = variants.get(variant) or Truth(1.4 if variant == "writeback" else 1.0, _stack(number, variant))
        rw, bs, depth = loads[index // len(names) % len(loads)]
        repeat = index // len(names) // len(loads) + 1
        name = f"{rw}-{bs}-qd{depth}"
        place = folder / host / variant / name / str(repeat)
        place.mkdir(parents=True)
        key = {"campaign": campaign, "host": host, "variant": variant, "cell": name, "repeat": repeat}
        _write_cell(place, key, random, truth.stack, (rw, bs, depth), speed * truth.speed, BEGAN + 70 * index, seconds)
    for variant in names:
        if (folder / host / variant).is_dir():
            planned = {cell.name: sorted(int(one.name) for one in cell.iterdir()) for cell in sorted((folder / host / variant).iterdir())}
            plan = {"schema": 1, "campaign": campaign, "host": host, "variant": variant, "created": CREATED, "cells": planned}
            (folder / host / variant / "plan.json").write_text(json.dumps(plan))


def _write_cell(
    place: Path,
    key: dict[str, t.Any],
    random: np.random.Generator,
    stack: t.Mapping[str, t.Any],
    load: tuple[str, str, int],
    speed: float,
    began: float,
    seconds: int,
) -> None:
    rw, bs, depth = load
    start = began + 10.5
    names = ("read", "write") if rw == "randrw" else ("read",) if rw == "randread" else ("write",)
    rate = 4000.0 * speed * depth**0.7 * (4096 / _BS[bs]) ** 0.6 / len(names)
    series = {name: np.maximum(rate * (1 + 0.05 * random.standard_normal(seconds)), 1).astype(np.int64) for name in names}
    directions = {name: _direction(random, series[name], seconds, _BS[bs], depth) for name in names}
    synced = rw == "randwrite" and depth == 1
    options = {**_OPTIONS, "rw": rw, "bs": bs, "iodepth": str(depth), "runtime": str(seconds), **({"fdatasync": "1"} if synced else {})}
    job = _job(options, directions, random if synced else None, seconds)
    text = json.dumps(_report(job, start + seconds), indent=2)
    # The median of the latencies is what the depth allows. Their mean is above it, which a deeper queue explains.
    requested = read_job({"rw": rw, "bs": bs, "ioengine": "libaio", "iodepth": 2 * depth, "time_based": True, "runtime": seconds}, "cell")
    files = {
        "job.fio": (
            "[global]\nfilename=/dev/vg0/data\nallow_file_create=0\n\n[cell]\n" + "\n".join(f"{name}={value}".rstrip("=") for name, value in options.items())
        ).encode(),
        "fio.json.gz": _packed(text),
        "device-stats.json": json.dumps(
            {"schema": 1, **{side: {"time": began, "devices": {"dm-0": {"write_ios": 1}}} for side in ("before", "after")}}
        ).encode(),
        "stack.json": json.dumps({"schema": 1, **{side: {**stack, "read_at": began} for side in ("before", "after")}}).encode(),
        "device_series.log.gz": _packed(_device_series(series, start, seconds, _BS[bs])),
        **{f"series_{what}.1.log.gz": _packed(_log(what, series, start, _BS[bs], depth, random)) for what in ("bw", "iops", "lat", "clat", "slat")},
    }
    written = int(series["write"].sum()) * _BS[bs] if "write" in series else 0
    number = int("".join(filter(str.isdigit, key["host"])) or 0)
    wear = {"temperature_c": 31.0 + number % 9, "wear_used_percent": 2, "written_bytes": 10**12 + written, "power_on_hours": 9000, "passed": True}
    meta = {
        "schema": 1,
        "state": "ok",
        "reason": "",
        **key,
        "fio_version": "fio-3.33",
        "behaviour_class": "libaio_sync_blocking",
        "engines": ["libaio"],
        "target": {
            "kind": "device",
            "path": "/dev/vg0/data",
            "kernel_path": "/dev/dm-0",
            "kernel_name": "dm-0",
            "stable_path": "/dev/vg0/data",
            "identity": "vg0/data",
            "serial": None,
            "wwn": None,
            "model": None,
            "firmware": None,
            "size": 2**36,
            "used_size": 2**35,
        },
        "kernel": "6.1.0-28-amd64",
        "started": began,
        "finished": start + seconds + 0.5,
        "elapsed": seconds + 11.0,
        "asked_runtime": float(seconds),
        "summary": fio_summary.summarize(fio_output.parse(text), requested),
        **{name: hashlib.sha256(f"{name} {load}".encode()).hexdigest() for name in ("workload_sha256", "measurement_sha256", "stack_sha256", "order_sha256")},
        "collection_version": "0.4.0",
        "replaces": None,
        "step": 0,
        "segment": 0,
        "synchronised": True,
        "decides": ["iops"],
        "asked_start": began,
        "clock": {"offset": 0.004, "error": 0.005},
        "io_start": start,
        "io_end": start + seconds,
        "bytes_written": written,
        "bytes_read": 0,
        "cpu": {"fio_usr": 4.5, "fio_sys": 11.2, "host_busy": 12.0, "cpu_bound": False},
        "drives": {side: dict.fromkeys(("sda", "sdb"), wear) for side in ("before", "after")},
        "notes": [],
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    for name, content in files.items():
        (place / name).write_bytes(content)
    (place / "meta.json").write_text(json.dumps(meta, indent=1))


def _packed(text: str) -> bytes:
    return gzip.compress(text.encode(), 6, mtime=0)


def _bins(random: np.random.Generator, count: int, median: float) -> dict[str, int]:
    """Log-normal latencies with a tail, as fio counts them."""
    sharp = np.exp(-(np.log(np.maximum(_MIDPOINTS, 1) / median) ** 2) / 0.18) / np.maximum(_MIDPOINTS, 1)
    tail = np.exp(-(np.log(np.maximum(_MIDPOINTS, 1) / (8 * median)) ** 2) / 0.5) / np.maximum(_MIDPOINTS, 1)
    share = (sharp + 0.02 * tail) * _WIDTHS
    counts = random.multinomial(count, share / share.sum())
    return {str(int(_MIDPOINTS[place])): int(counts[place]) for place in np.flatnonzero(counts)}


def _latency(bins: dict[str, int]) -> dict[str, t.Any]:
    values, counts = np.array([int(value) for value in bins]), np.array(list(bins.values()))
    total, mean = int(counts.sum()), float((values * counts).sum() / counts.sum())
    reached = np.cumsum(counts)
    percents = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
    found = {f"{percent:.6f}": int(values[min(np.searchsorted(reached, percent / 100.0 * total), len(values) - 1)]) for percent in percents}
    deviation = float(np.sqrt((((values - mean) ** 2) * counts).sum() / max(total - 1, 1)))
    return {"min": int(values[0]), "max": int(values[-1]), "mean": mean, "stddev": deviation, "N": total, "percentile": found, "bins": bins}


def _direction(random: np.random.Generator, series: t.Any, seconds: int, size: int, depth: int) -> dict[str, t.Any]:
    count = int(series.sum())
    clat = _latency(_bins(random, count, 1e9 * depth * seconds / count))
    plain = {name: value for name, value in clat.items() if name not in ("percentile", "bins")}
    return {
        "io_bytes": count * size,
        "io_kbytes": count * size // 1024,
        "bw_bytes": count * size // seconds,
        "bw": count * size // seconds // 1024,
        "iops": count / seconds,
        "runtime": 1000 * seconds,
        "total_ios": count,
        "short_ios": 0,
        "drop_ios": 0,
        "slat_ns": {"min": 900, "max": 30000, "mean": 2100.5, "stddev": 800.1, "N": count},
        "clat_ns": clat,
        "lat_ns": plain,
        **{f"{what}_{name}": 0.0 for what in ("bw", "iops") for name in ("min", "max", "mean", "stddev", "samples")},
    }


def _job(options: dict[str, str], directions: dict[str, t.Any], sync: np.random.Generator | None, seconds: int) -> dict[str, t.Any]:
    nothing = {
        "io_bytes": 0,
        "io_kbytes": 0,
        "bw_bytes": 0,
        "bw": 0,
        "iops": 0.0,
        "runtime": 0,
        "total_ios": 0,
        "slat_ns": {"N": 0},
        "clat_ns": {"N": 0},
        "lat_ns": {"N": 0},
    }
    syncs = _latency(_bins(sync, directions["write"]["total_ios"], 900_000)) if sync is not None else {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    return {
        "jobname": "cell",
        "groupid": 0,
        "error": 0,
        "eta": 0,
        "elapsed": seconds + 11,
        "job options": options,
        **{name: directions.get(name, nothing) for name in ("read", "write", "trim")},
        "sync": {"total_ios": 0, "lat_ns": syncs},
        "job_runtime": 1000 * seconds,
        "usr_cpu": 4.5,
        "sys_cpu": 11.2,
        "ctx": 240000,
        "majf": 0,
        "minf": 20,
        **{name: {str(place): 0.0 for place in (1, 2, 4, 8, 16, 32, 64)} for name in ("iodepth_level", "iodepth_submit", "iodepth_complete")},
        **{name: {str(place): 0.0 for place in (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)} for name in ("latency_ns", "latency_us", "latency_ms")},
        "latency_depth": 16,
        "latency_target": 0,
        "latency_percentile": 100.0,
        "latency_window": 0,
    }


def _report(job: dict[str, t.Any], ended: float) -> dict[str, t.Any]:
    disks = [{"name": name, "read_ios": 1, "write_ios": 1, "read_merges": 0, "write_merges": 0, "in_queue": 9, "util": 99.5} for name in ("dm-0", "sda", "sdb")]
    moment = {"fio version": "fio-3.33", "timestamp": int(ended), "timestamp_ms": int(ended * 1000), "time": "Sun Nov 22 06:15:43 2026"}
    return {**moment, "global options": {"filename": "/dev/vg0/data", "size": "32g"}, "jobs": [job], "disk_util": disks}


def _log(what: str, series: dict[str, t.Any], start: float, size: int, depth: int, random: np.random.Generator) -> str:
    lines = []
    for second in range(len(next(iter(series.values())))):
        for name, rates in series.items():
            rate = int(rates[second])
            value = {"iops": rate, "bw": rate * size // 1024, "slat": 2100}.get(what, int(1e9 * depth / rate))
            lines.append(f"{int((start + second + 1) * 1000)}, {value}, {_DIRECTION_NUMBER[name]}, 0, 0")
    return "\n".join(lines) + "\n"


def _device_series(series: dict[str, t.Any], start: float, seconds: int, size: int) -> str:
    lines = ["epoch_s,device,r_s,w_s,rkb_s,wkb_s,rrqm_s,wrqm_s,r_await_ms,w_await_ms,f_s,f_await_ms,aqu_sz,util_pct,in_flight"]
    reads, writes = series.get("read"), series.get("write")
    for second in range(5, seconds + 1, 5):
        r = 0 if reads is None else int(reads[second - 1])
        w = 0 if writes is None else int(writes[second - 1])
        for name in ("dm-0", "sda", "sdb"):
            lines.append(f"{start + second:.3f},{name},{r}.00,{w}.00,{r * size // 1024}.00,{w * size // 1024}.00,0.00,0.00,0.40,0.41,1.00,0.90,14.20,99.10,16")
    return "\n".join(lines) + "\n"


def _cache_series(start: float, end: float) -> str:
    lines = [
        "epoch_s,cache,dirty_bytes,used_bytes,read_hits,read_misses,write_hits,write_misses,bypassed_reads,bypassed_writes,"
        "size_bytes,promotions,written_back_bytes"
    ]
    for place in range(int(end - start) // 5 + 4):
        read = 5000 * place
        lines.append(f"{start - 10 + 5 * place:.3f},dm-0,{place << 20},{place << 24},{read},{read // 2},{read},{read // 4},,,{2**36},{place},")
    return "\n".join(lines) + "\n"


def _stack(number: int, variant: str) -> dict[str, t.Any]:
    model, firmware = _MODELS[number % len(_MODELS)]
    queue = {
        "scheduler": "mq-deadline",
        "schedulers": ["mq-deadline", "none"],
        "nr_requests": 64,
        "nomerges": 0,
        "read_ahead_kb": 128,
        "write_cache": "write back",
    }
    top = {
        "name": "dm-0",
        "path": "/dev/vg0/data",
        "kind": "lvm",
        "size": 2**36,
        "rotational": False,
        "transport": "virtual",
        "driver": None,
        "model": None,
        "serial": None,
        "firmware": None,
        "queue": {**queue, "scheduler": "none"},
        "below": ["sda", "sdb"],
        "caches": [{"layer": "block_cache", "policy": variant, "dirty": 0}],
    }
    drives = [
        {
            "name": name,
            "path": f"/dev/disk/by-id/ata-{number}-{name}",
            "kind": "disk",
            "size": 480 * 10**9,
            "rotational": False,
            "transport": "sata",
            "driver": "ahci",
            "model": model,
            "serial": f"S{number:06d}{name}",
            "firmware": firmware,
            "queue": queue,
            "below": [],
            "caches": [{"layer": "drive", "drive": "enabled", "kernel": "write back", "kernel_agrees": True, "provider": "ata"}],
        }
        for name in ("sda", "sdb")
    ]
    said = {"path": "/dev/dm-0", "identity": "vg0/data", "verdict": "durable", "reason": "Every flush reaches the drives.", "unflushed": "may_be_lost"}
    return {**said, "device_loss": "loses", "layers": [top, *drives]}


def change(folder: Path, **meta: t.Any) -> None:
    """A host says something else of a cell."""
    path = folder / "meta.json"
    message = {**json.loads(path.read_text()), **meta}
    message["files"] = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if file != path}
    path.write_text(json.dumps(message))
