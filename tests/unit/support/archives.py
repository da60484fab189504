# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Archives as the fio module packs them, and everything that a host with bad intentions might pack instead."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import typing as t
from pathlib import Path

CAMPAIGN = "2026-11-21T1403Z"
JOB = "[global]\nrw=randwrite\nbs=4k\nioengine=libaio\niodepth=16\ndirect=1\n\n[cell]\nfilename=/dev/vdb\n"


def summary(iops: float = 1500.0, total_ios: int = 90000, *, sync: bool = False, direction: str = "write") -> dict[str, t.Any]:
    """What the module says of one run."""
    percentiles = {"50": 400_000, "99": 2_500_000, "99.9": 45_100_000}
    empty = {"n": total_ios, "mean_ns": 510_000.0, "percentiles_ns": {}}
    values = {
        "iops": iops,
        "bw_bytes": iops * 4096,
        "total_ios": total_ios,
        "runtime_ms": 60000,
        "clat": {"n": total_ios, "mean_ns": 500_000.0, "percentiles_ns": percentiles},
        "lat": empty,
    }
    said: dict[str, t.Any] = {"read": None, "write": None, "trim": None, "mixed": None, "sync": None}
    said[direction] = values
    if sync:
        said["sync"] = {"n": total_ios, "mean_ns": 700_000.0, "percentiles_ns": {name: 2 * value for name, value in percentiles.items()}}
    return said


def cell(
    name: str = "randwrite-4k",
    *,
    variant: str = "before",
    repeat: int = 1,
    host: str = "node1",
    state: str = "ok",
    reason: str = "",
    job: str = JOB,
    verdict: tuple[str, str] = ("durable", "durable"),
    numbers: dict[str, t.Any] | None = None,
    content: bytes = b"fio's output",
    **meta: t.Any,
) -> dict[str, bytes]:
    """The files of one cell by their name in the archive."""
    files = {
        "job.fio": job.encode(),
        "fio.json.gz": gzip.compress(content, mtime=0),
        "stack.json": json.dumps({"before": {"verdict": verdict[0]}, "after": {"verdict": verdict[1]}}).encode(),
        "device-stats.json": b"{}",
    }
    said = {
        "schema": 1,
        "campaign": CAMPAIGN,
        "host": host,
        "variant": variant,
        "cell": name,
        "repeat": repeat,
        "state": state,
        "reason": reason,
        "fio_version": "3.33",
        "behaviour_class": "libaio-sync-in-submitter",
        "kernel": "6.1.0",
        "summary": summary() if numbers is None else numbers,
        "files": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
        **meta,
    }
    return {f"{variant}/{name}/{repeat}/{file}": data for file, data in {**files, "meta.json": json.dumps(said).encode()}.items()}


def pack(path: Path, *cells: dict[str, bytes]) -> Path:
    """An honest archive of these cells."""
    with tarfile.open(path, "w:", format=tarfile.PAX_FORMAT) as tar:
        for files in cells:
            for name, data in files.items():
                add(tar, name, data)
    return path


def add(tar: tarfile.TarFile, name: str, data: bytes = b"", **fields: t.Any) -> None:
    """One member with any field a host may choose."""
    member = tarfile.TarInfo(name)
    member.size = len(data)
    for field, value in fields.items():
        setattr(member, field, value)
    tar.addfile(member, io.BytesIO(data) if data else None)


def said_of(path: Path) -> dict[str, t.Any]:
    """What the module returns for an archive."""
    return {"path": str(path), "sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size}
