# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What one measurement says in numbers: rows for the tables ``cells`` and ``histograms``.

Everything here was said by a host: every value is checked, and what is no number becomes NULL.
"""

from __future__ import annotations

import functools
import json
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import PERCENTILES

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import Bins
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord

Row = t.Dict[str, t.Any]

#: Above it a BIGINT has no room.
_LARGEST = 2**63 - 1
_LARGEST_INTEGER = 2**31 - 1

#: What fio does if a job does not say (HOWTO, "Job file parameters").
_DEFAULTS = {"rw": "read", "bs": "4k", "ioengine": "psync", "iodepth": "1", "numjobs": "1", "fdatasync": "0", "fsync": "0", "direct": "0"}
_OTHER_NAMES = {"readwrite": "rw", "blocksize": "bs"}
_MIXES = re.compile(r"(?:rand)?rw|readwrite")

Histograms = t.Dict[str, t.Tuple[str, "Bins"]]


@functools.lru_cache(maxsize=4096)
def text(value: t.Any) -> str | None:
    """Text of a host, in one line and without control characters; ``None`` for nothing."""
    return None if value is None else plain(value, 1000)


def optional_text(value: t.Any) -> str | None:
    """Likewise, and ``None`` for what is no text."""
    return text(value) if isinstance(value, str) else None


def optional_integer(value: t.Any, largest: int = _LARGEST) -> int | None:
    """A whole number that is not negative and has room in its column."""
    found = number(value)
    return int(found) if found is not None and found < largest else None


def flag(value: t.Any) -> bool | None:
    return value if isinstance(value, bool) else None


def mapping(value: t.Any) -> t.Mapping[str, t.Any]:
    """An object of JSON; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


# ---------------------------------------------------------------------------------------------------------------------
# Histograms


def histograms_of(record: CellRecord, output: fio_output.Output | None) -> Histograms:
    """The kind of latency and its bins by direction, of a measurement with numbers.

    Threads that ran together are added up. There is none where a thread has none, or where a stonewall parts the threads.
    """
    if output is None or record.state not in MEASURED:
        return {}
    found: Histograms = {}
    for direction in fio_output.DIRECTIONS:
        active = [job for job in output.jobs if direction in job.directions]
        if not active or len({job.group for job in active}) > 1:
            continue
        for kind in ("lat", "clat"):
            parts = [getattr(job.directions[direction], kind).bins for job in active]
            if all(parts):
                found[direction] = kind, parts[0] if len(parts) == 1 else histogram.merge(parts)
                break
    syncs = [job.sync.bins for job in output.jobs if job.sync is not None]
    if syncs and all(syncs):
        found["sync"] = "sync", syncs[0] if len(syncs) == 1 else histogram.merge(syncs)
    return found


def histogram_rows(key: Row, histograms: Histograms) -> t.Iterator[Row]:
    """One series for each direction, shortest latency first."""
    for direction, (kind, bins) in histograms.items():
        values = sorted(bins)
        if not (values[0] >= 0 and values[-1] < _LARGEST and 0 < max(bins.values()) < _LARGEST and min(bins.values()) > 0):
            continue
        yield {**key, "direction": direction, "latency_kind": kind, "bin_ns": values, "count": [bins[value] for value in values]}


# ---------------------------------------------------------------------------------------------------------------------
# Cells


def cell_rows(record: CellRecord, key: Row, common: Row, histograms: Histograms) -> list[Row]:
    """The rows of one measurement: one for each direction that has numbers, else one without.

    :param common: what the caller knows of the measurement besides: its stack, its models, its group.
    """
    told = {**key, **_told(record), **_asked(record.job), **common}
    rows = [{**told, **numbers, "direction": direction} for direction, numbers in _numbers(record, histograms).items()]
    return rows or [told]


def _told(record: CellRecord) -> Row:
    meta = record.meta
    target, clock, cpu = mapping(meta.get("target")), mapping(meta.get("clock")), mapping(meta.get("cpu"))
    collection = mapping(meta.get("garbage_collection"))
    used = target.get("used_size") if target.get("used_size") is not None else target.get("size")
    notes = meta.get("notes")
    offset = clock.get("offset")
    return {
        "state": record.state,
        "reason": text(record.reason) or None,
        "target": optional_text(target.get("path")),
        "target_identity": optional_text(target.get("identity")),
        "target_size": optional_integer(used),
        "verdict_before": record.verdicts[0],
        "verdict_after": record.verdicts[1],
        "clock_offset": float(offset) if isinstance(offset, (int, float)) and abs(offset) < 1e11 else None,
        "collection_rate": number(collection.get("rate")),
        "collection_shown_by": optional_text(collection.get("shown_by")) or None,
        "cpu_usr": number(cpu.get("fio_usr")),
        "cpu_sys": number(cpu.get("fio_sys")),
        "host_busy": number(cpu.get("host_busy")),
        "cpu_bound": flag(cpu.get("cpu_bound")),
        "notes": [text(str(note)) for note in notes] if isinstance(notes, list) else None,
        "synchronised": flag(meta.get("synchronised")),
        **{name: optional_text(meta.get(name)) for name in ("fio_version", "behaviour_class", "kernel", "stack_sha256", "measurement_sha256")},
        **{name: number(meta.get(name)) for name in ("started", "finished", "io_start", "io_end", "asked_runtime")},
        **{name: optional_integer(meta.get(name)) for name in ("bytes_written", "bytes_read")},
        **{name: json.dumps(meta[name], sort_keys=True) if isinstance(meta.get(name), dict) else None for name in ("search", "rounds")},
    }


def _asked(job: t.Mapping[str, str]) -> Row:
    """What the job asked for, with fio's defaults; nothing where there was no job."""
    if not job:
        return {}
    options = {**_DEFAULTS, **{_OTHER_NAMES.get(name, name): value for name, value in job.items()}}
    mixed = _MIXES.match(options["rw"])
    return {
        "rw": text(options["rw"]),
        "bs": text(options["bs"]),
        "bs_bytes": _bytes(options["bs"]),
        "ioengine": text(options["ioengine"]),
        "rwmixread": _mix(options) if mixed else None,
        # An option without a value is switched on.
        "direct": options["direct"] not in ("0", "false"),
        **{name: _integer(options[name]) for name in ("iodepth", "numjobs", "fdatasync", "fsync")},
    }


def _mix(options: t.Mapping[str, str]) -> int | None:
    if "rwmixwrite" in options and "rwmixread" not in options:
        written = _integer(options["rwmixwrite"])
        return None if written is None else max(100 - written, 0)
    return _integer(options.get("rwmixread", "50"))


def _integer(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdigit() and int(said) <= _LARGEST_INTEGER else None


def _bytes(said: str) -> int | None:
    try:
        return optional_integer(parse_size(said))
    except StorageError:
        return None


def _numbers(record: CellRecord, histograms: Histograms) -> dict[str, Row]:
    """What was measured, by direction."""
    summary = mapping(record.meta.get("summary"))
    if record.state not in MEASURED:
        return {}
    found: dict[str, Row] = {}
    for direction in fio_output.DIRECTIONS:
        said = mapping(summary.get(direction))
        if not number(said.get("total_ios")):
            continue
        kind = _kind(said, histograms.get(direction))
        found[direction] = {
            "iops": number(said.get("iops")),
            "bw_bytes": number(said.get("bw_bytes")),
            "total_ios": optional_integer(said.get("total_ios")),
            "runtime_ms": optional_integer(said.get("runtime_ms")),
            **_latency(kind, mapping(said.get(kind)), histograms.get(direction)),
        }
    sync = mapping(summary.get("sync"))
    syncs = number(sync.get("n"))
    if found and syncs:
        runtime = max((row["runtime_ms"] for row in found.values() if row["runtime_ms"]), default=None)
        rate = syncs / runtime * 1000 if runtime else None
        found["sync"] = {"iops": rate, "total_ios": optional_integer(syncs), "runtime_ms": runtime, **_latency("sync", sync, histograms.get("sync"))}
    return found


def _kind(said: t.Mapping[str, t.Any], histogram_of: tuple[str, Bins] | None) -> str:
    """What the application waited for, if fio has its percentiles, else from submission to completion."""
    if histogram_of is not None:
        return histogram_of[0]
    return next((kind for kind in ("lat", "clat") if mapping(mapping(said.get(kind)).get("percentiles_ns"))), "lat")


def _latency(kind: str, said: t.Mapping[str, t.Any], histogram_of: tuple[str, Bins] | None) -> Row:
    count = optional_integer(said.get("n"))
    given = mapping(said.get("percentiles_ns"))
    found = {one.column: optional_integer(given.get(one.rank)) for one in PERCENTILES}
    if histogram_of is not None and any(value is None for value in found.values()):
        # The job had percentiles of its own: the bins know all of them.
        found = {one.column: histogram.percentile(histogram_of[1], one.percent) for one in PERCENTILES}
    if count is None:
        return {}
    return {
        "latency_kind": kind,
        "lat_n": count,
        "lat_mean_ns": number(said.get("mean_ns")),
        "lat_min_ns": number(said.get("min_ns")),
        "lat_max_ns": number(said.get("max_ns")),
        **{one.column: found[one.column] if count >= one.needed else None for one in PERCENTILES},
    }
