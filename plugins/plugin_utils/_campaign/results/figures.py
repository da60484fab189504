# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures in the files of one measurement: its rows and its histograms. Every figure of a measurement is made here and nowhere else.

Everything here comes from a host: every value is checked, and what is no number becomes ``None``.
"""

from __future__ import annotations

import json
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import output as fio_output
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.consistency import CONTRADICTS, consistent, flags_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import DIRECTIONS, ENGINES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import (
    LARGEST_INTEGER,
    flag,
    mapping,
    number,
    optional_integer,
    optional_text,
    text,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement, noted
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import PERCENTILES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.histogram import Bins
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import CellRecord

_Values = t.Dict[str, t.Any]

#: Above it an INTEGER has no room, or the product of jobs and queue depth is none that statistics take.
_LARGEST_OPTION = 10**9

#: fio's defaults (HOWTO, "Job file parameters").
_DEFAULTS = {"rw": "read", "bs": "4k", "ioengine": "psync", "iodepth": "1", "numjobs": "1", "fdatasync": "0", "fsync": "0", "direct": "0"}
_LOG, _HASH = "read_iolog", 12
#: An option that is not the same in all sections.
_VARIOUS = "various"
_OTHER_NAMES = {"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange"}
#: Of options that set the same thing fio takes the last one.
_SAME_SWITCH, _SAME_MIX = ("direct", "buffered"), ("rwmixread", "rwmixwrite")
_MIXES = re.compile(r"(?:rand)?rw|readwrite")

#: By direction the kind of latency and its bins.
Histograms = t.Dict[str, t.Tuple[str, "Bins"]]


# ---------------------------------------------------------------------------------------------------------------------
# Histograms


def histograms_of(record: CellRecord, output: fio_output.Output | None, summary: t.Mapping[str, t.Any]) -> Histograms:
    """The kind of latency and its bins by direction, of a measurement with numbers.

    Threads that ran together are added up. There is none where a thread has none, or where a stonewall parts the threads.

    :param summary: of :func:`consistent_summary`.
    """
    if output is None or record.state not in MEASURED:
        return {}
    found: Histograms = {}
    for direction in fio_output.DIRECTIONS:
        active = [job for job in output.jobs if direction in job.directions]
        if not active or _are_parted(active, mapping(summary.get(direction))):
            continue
        for kind in ("lat", "clat"):
            parts = [getattr(job.directions[direction], kind).bins for job in active]
            if all(parts) and not _is_withheld(mapping(mapping(summary.get(direction)).get(kind))):
                found[direction] = kind, parts[0] if len(parts) == 1 else histogram.merge(parts)
                break
    syncs = [job.sync.bins for job in output.jobs if job.sync is not None]
    if syncs and all(syncs) and not _is_withheld(mapping(summary.get("sync"))):
        found["sync"] = "sync", syncs[0] if len(syncs) == 1 else histogram.merge(syncs)
    return {direction: (kind, bins) for direction, (kind, bins) in found.items() if _has_room(bins)}


def _are_parted(jobs: t.Sequence[fio_output.Job], figures: t.Mapping[str, t.Any]) -> bool:
    """Whether a stonewall parts some jobs: then their summary has no latency. fio numbers groups of ``new_group`` too, which run at the same time."""
    return len({job.group for job in jobs}) > 1 and not any(isinstance(figures.get(kind), dict) for kind in ("lat", "clat"))


def _is_withheld(latency: t.Mapping[str, t.Any]) -> bool:
    return CONTRADICTS in flags_of(latency)


def consistent_summary(record: CellRecord) -> tuple[_Values, list[str]]:
    """The summary of a measurement without what contradicts itself, and why that is withheld: older versions did not check it."""
    if record.state not in MEASURED:
        return {}, []
    summary = mapping(record.meta.get("summary"))
    old = [name for name, found in summary.items() if isinstance(found, dict) and found.get("in_flight") is None]
    depths = {name: depth for name in old if (depth := _in_flight("write" if name == "sync" else name, record)) is not None}
    return consistent(summary, number(record.meta.get("elapsed")), depths)


def _in_flight(direction: str, record: CellRecord) -> int | None:
    """I/Os that may be under way at one time by the job that was sent; ``None`` where it is not known, or has a number that is none."""
    sections = [{**_DEFAULTS, **{_OTHER_NAMES.get(name, name): value for name, value in one.items()}} for one in record.sections or [record.job] if one]
    active = [one for one in sections if direction in DIRECTIONS.get(one["rw"].split(":")[0], ())] or sections
    found = []
    for one in active:
        engine, depth, jobs = ENGINES.get(one["ioengine"]), _integer(one["iodepth"]), _integer(one["numjobs"])
        if engine is None or not depth or not jobs:
            return None
        found.append(jobs * (depth if engine.queues else 1))
    return sum(found) or None


def _has_room(bins: Bins) -> bool:
    """Whether all of its values are counts and durations that a table has room for."""
    counts = bins.values()
    return min(bins) >= 0 and max(bins) <= LARGEST and min(counts) > 0 and max(counts) < LARGEST_INTEGER


# ---------------------------------------------------------------------------------------------------------------------
# Cells


def measurements_of(
    record: CellRecord, consistent: tuple[_Values, list[str]], histograms: t.Callable[[], Histograms], beside: t.Mapping[str, t.Any]
) -> list[Measurement]:
    """The rows of one measurement: one for each direction that has numbers, else one without.

    :param consistent: see :func:`consistent_summary`.
    :param histograms: reads them; only called for a measurement whose summary has no percentiles.
    :param beside: further facts of the measurement, by column: its stack, its models, its group.
    """
    key = (record.host, record.key.variant, record.key.cell, record.key.repeat)
    columns = {**_recorded(record), **_requested(record.job), **beside}
    rows = [
        Measurement(*key, direction, **{**columns, **_requested(_job_of(record, direction)), **beside, **_targets_of(record, direction)}, **numbers)
        for direction, numbers in _numbers(consistent[0], histograms).items()
    ]
    return [noted(one, consistent[1]) for one in rows] or [Measurement(*key, **columns)]


def _recorded(record: CellRecord) -> _Values:
    meta = record.meta
    target, clock, cpu = mapping(meta.get("target")), mapping(meta.get("clock")), mapping(meta.get("cpu"))
    collection = mapping(meta.get("garbage_collection"))
    decides = meta.get("decides")
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
        "clock_offset": float(offset) if isinstance(offset, (int, float)) and not isinstance(offset, bool) and abs(offset) < 1e11 else None,
        "clock_error": number(clock.get("error")),
        "collection_rate": number(collection.get("rate")),
        "collection_shown_by": optional_text(collection.get("shown_by")) or None,
        "cpu_usr": number(cpu.get("fio_usr")),
        "cpu_sys": number(cpu.get("fio_sys")),
        "host_busy": number(cpu.get("host_busy")),
        "cpu_bound": flag(cpu.get("cpu_bound")),
        "decides": " ".join(filter(None, map(optional_text, decides))) if isinstance(decides, list) else None,
        "not_deciding": optional_text(meta.get("not_deciding")) or None,
        "notes": [text(str(note)) for note in notes] if isinstance(notes, list) else None,
        "synchronised": flag(meta.get("synchronised")),
        **{
            name: optional_text(meta.get(name))
            for name in ("fio_version", "behaviour_class", "kernel", "stack_sha256", "measurement_sha256", "workload_sha256")
        },
        **{name: number(meta.get(name)) for name in ("started", "finished", "io_start", "io_end", "asked_runtime")},
        **{name: optional_integer(meta.get(name)) for name in ("bytes_written", "bytes_read")},
        **{name: json.dumps(meta[name], sort_keys=True) if isinstance(meta.get(name), dict) else None for name in ("search", "rounds")},
    }


def _targets_of(record: CellRecord, direction: str) -> _Values:
    """The targets of the sections that do I/O in a direction, where a cell has several; nothing where it has one."""
    every = [mapping(one) for one in record.meta.get("targets") or ()] if isinstance(record.meta.get("targets"), list) else []
    wanted = {"write"} if direction == "sync" else {direction}
    here = [one for one in every if isinstance(one.get("directions"), list) and wanted.intersection(map(str, one["directions"]))] or every
    if not here:
        return {}
    sizes = [optional_integer(one.get("size") if one.get("used_size") is None else one.get("used_size")) for one in here]
    texts = {name: [optional_text(one.get(name)) for one in here] for name in ("path", "identity", "model", "firmware")}
    common = {name: ", ".join(sorted({text for text in values if text})) for name, values in texts.items() if all(values)}
    return {
        "target": common.get("path"),
        "target_identity": common.get("identity"),
        **{name: common[name] for name in ("model", "firmware") if name in common},
        "target_size": None if None in sizes else sum(size for size in sizes if size is not None),
    }


#: Options with which a job does not do as much as the storage can.
_RATE_LIMITS = ("rate", "rate_iops", "thinktime", "latency_target")


def _job_of(record: CellRecord, direction: str) -> t.Mapping[str, str]:
    """The options of the sections that do I/O in a direction; of one that is not the same in all of them, that it is not."""
    if len(record.sections) < 2:
        return record.job
    effective = [{**_DEFAULTS, **{_OTHER_NAMES.get(name, name): value for name, value in section.items()}} for section in record.sections]
    own = [section for section in effective if direction in DIRECTIONS.get(section["rw"].split(":")[0], ())] or effective
    names = dict.fromkeys(name for section in own for name in section)
    return {name: own[0].get(name, _VARIOUS) if len({section.get(name) for section in own}) == 1 else _VARIOUS for name in names}


def _requested(job: t.Mapping[str, str]) -> _Values:
    """The options of the job, with fio's defaults; nothing where there was no job."""
    if not job:
        return {}
    options = {**_DEFAULTS, **{_OTHER_NAMES.get(name, name): value for name, value in job.items()}}
    if _LOG in job:
        # Its directions and sizes are in the log, whose hash is in its name: another log is another workload.
        options = {**options, "rw": f"replay {job[_LOG][:_HASH]}", "bs": "recorded"}
    # Sizes of a split or a range are what fio does, whatever bs says.
    options["bs"] = options.get("bssplit") or options.get("bsrange") or options["bs"]
    mixed = _MIXES.match(options["rw"])
    return {
        "rw": _same(options["rw"]),
        "bs": _same(options["bs"]),
        "bs_bytes": _bytes(options["bs"]),
        "ioengine": text(options["ioengine"]),
        "rwmixread": _mix(job) if mixed else None,
        "rate_limit": " ".join(f"{name}={text(options[name])}" for name in _RATE_LIMITS if options.get(name, "0") != "0") or None,
        # An option without a value is switched on.
        "direct": _is_direct(job),
        **{name: _integer(options[name]) for name in ("iodepth", "numjobs", "fdatasync", "fsync")},
    }


def _same(value: str) -> str | None:
    return None if value == _VARIOUS else text(value)


def _last(job: t.Mapping[str, str], names: t.Sequence[str]) -> str:
    return next((name for name in reversed(list(job)) if name in names), names[0])


def _mix(job: t.Mapping[str, str]) -> int | None:
    name = _last(job, _SAME_MIX)
    share = _integer(job.get(name, "50"))
    return share if share is None or name == "rwmixread" else max(100 - share, 0)


def _is_direct(job: t.Mapping[str, str]) -> bool | None:
    if _VARIOUS in (job.get("direct"), job.get("buffered")):
        return None
    name = _last(job, _SAME_SWITCH)
    return (job.get(name, "0") not in ("0", "false")) == (name == "direct")


def _integer(raw: str) -> int | None:
    return int(raw) if raw.isascii() and raw.isdigit() and int(raw) <= _LARGEST_OPTION else None


def _bytes(raw: str) -> int | None:
    try:
        return optional_integer(parse_size(raw))
    except StorageError:
        return None


def _numbers(summary: _Values, histograms: t.Callable[[], Histograms]) -> dict[str, _Values]:
    """What was measured, by direction."""
    found: dict[str, _Values] = {}
    for direction in fio_output.DIRECTIONS:
        raw = mapping(summary.get(direction))
        if number(raw.get("total_ios")):
            found[direction] = {
                "iops": number(raw.get("iops")),
                "bw_bytes": number(raw.get("bw_bytes")),
                "total_ios": optional_integer(raw.get("total_ios")),
                "began_ms": optional_integer(raw.get("began_ms")),
                "runtime_ms": optional_integer(raw.get("runtime_ms")),
                **_latency_of(direction, raw, histograms),
            }
    sync = mapping(summary.get("sync"))
    syncs = number(sync.get("n"))
    if found and syncs:
        runtime = max((row["runtime_ms"] for row in found.values() if row["runtime_ms"]), default=None)
        rate = number(syncs / runtime * 1000) if runtime else None
        found["sync"] = {"iops": rate, "total_ios": optional_integer(syncs), "runtime_ms": runtime, **_latency("sync", sync, "sync", histograms)}
    return found


def _latency_of(direction: str, raw: t.Mapping[str, t.Any], histograms: t.Callable[[], Histograms]) -> _Values:
    """What the application waited for, if fio has its percentiles, else from submission to completion."""
    kind = next((kind for kind in ("lat", "clat") if mapping(mapping(raw.get(kind)).get("percentiles_ns"))), "")
    if not kind:
        kind = histograms().get(direction, ("lat", {}))[0]
    return _latency(kind, mapping(raw.get(kind)), direction, histograms)


def _latency(kind: str, raw: t.Mapping[str, t.Any], direction: str, histograms: t.Callable[[], Histograms]) -> _Values:
    count = optional_integer(raw.get("n"))
    if count is None:
        return {}
    given = mapping(raw.get("percentiles_ns"))
    found = {one.column: optional_integer(given.get(one.rank)) for one in PERCENTILES}
    if any(value is None for value in found.values()):
        # The job had percentiles of its own: the bins contain all of them.
        its_kind, bins = histograms().get(direction, ("", {}))
        if its_kind == kind:
            found = {one.column: histogram.percentile(bins, one.percent) for one in PERCENTILES}
    return {
        "latency_kind": kind,
        "lat_n": count,
        "lat_mean_ns": number(raw.get("mean_ns")),
        "lat_min_ns": number(raw.get("min_ns")),
        "lat_max_ns": number(raw.get("max_ns")),
        **{one.column: found[one.column] if count >= one.needed else None for one in PERCENTILES},
    }
