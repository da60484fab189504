# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a cell: what all jobs of a report did together, in each direction and for syncs. Pure.

Rates are added where their jobs ran at the same time. Jobs that did not (one waits for another, or ends long before it) have the I/Os of all
of them, divided by the time from the first start to the last end, unless a ``stonewall`` separates them: then they have no rate together.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram, sections
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Job, Latency, Output
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job as RequestedJob

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)


def summarize(output: Output, job: RequestedJob | None = None) -> dict[str, t.Any]:
    """The figures of a cell as plain data: ``{read: {iops, bw_bytes, total_ios, runtime_ms, began_ms, clat, lat}, …, sync: …}``.

    ``runtime_ms`` is from the first start to the last end, and ``began_ms`` is when that start was, both of this direction, the latter from
    the first I/O of the cell. ``at_once`` is whether the rates of its jobs were added. A direction without I/O is ``None``.

    :param job: what was requested, which shows what ran at the same time; without it all jobs of a group are taken to.
    """
    spans = {} if job is None else sections.measured_spans(job, output)
    first = min((begin for some in spans.values() for begin, _end in some), default=0.0)
    summary: dict[str, t.Any] = {name: _summarize_direction(output.jobs, name, spans.get(name), first, job) for name in DIRECTIONS}
    syncs = [job.sync for job in output.jobs if job.sync is not None]
    summary["sync"] = _summarize_latency(syncs) if syncs else None
    for name, found in summary.items():
        if found is not None and job is not None:
            found["in_flight"] = job.in_flight("write" if name == "sync" else name)
    return summary


def _summarize_direction(
    jobs: t.Sequence[Job], name: str, spans: t.Sequence[sections.Span] | None, first: float, requested: RequestedJob | None
) -> dict[str, t.Any] | None:
    active = [job for job in jobs if name in job.directions]
    if not active:
        return None
    of_one_phase = len({job.group for job in active}) == 1 or sections.are_of_one_phase(requested, {job.name for job in active})
    parts = [job.directions[name] for job in active]
    spans = spans or [(0.0, (part.runtime_ms or 0) / 1000) for part in parts if part.runtime_ms] or [(0.0, 0.0)]
    begin, end = sections.covered(spans)
    together = of_one_phase and sections.are_at_once(spans)
    total_ios, io_bytes = _added([part.total_ios for part in parts]), _added([part.io_bytes for part in parts])
    # Of what is read back between the writes fio counts a part of the time only.
    is_timed = name != "read" or requested is None or not requested.reads_back_between_writes
    together = together and is_timed
    in_turn = end - begin if is_timed and of_one_phase and not together and all(part.runtime_ms for part in parts) else None
    return {
        "iops": _added([part.iops for part in parts]) if together else _rate(total_ios, in_turn),
        "bw_bytes": _added([part.bw_bytes for part in parts]) if together else _rate(io_bytes, in_turn, whole=True),
        "total_ios": total_ios,
        "io_bytes": io_bytes,
        "runtime_ms": round((end - begin) * 1000) or None,
        "began_ms": round((begin - first) * 1000),
        "at_once": together,
        "clat": _summarize_latency([part.clat for part in parts]) if of_one_phase else None,
        "lat": _summarize_latency([part.lat for part in parts]) if of_one_phase else None,
    }


def _rate(count: int | None, seconds: float | None, *, whole: bool = False) -> t.Any:
    if not count or not seconds:
        return None
    return (round(count / seconds) or None) if whole else count / seconds


def _added(values: t.Sequence[t.Any]) -> t.Any:
    return None if any(value is None for value in values) else sum(values)


def _summarize_latency(parts: t.Sequence[Latency]) -> dict[str, t.Any]:
    """In ns. Percentiles of several threads come from their added bins; without bins there are none."""
    n = _added([part.n for part in parts])
    means = [part.mean for part in parts]
    pooled = sum(part.mean * part.n for part in parts) / n if n and None not in means else None  # type: ignore[operator]
    bins = histogram.merge(part.bins for part in parts) if all(part.bins for part in parts) else {}
    found = histogram.percentiles(bins, PERCENTILES) if bins else dict(parts[0].percentiles) if len(parts) == 1 else {}
    return {
        "n": n,
        "min_ns": min((part.min for part in parts if part.min is not None), default=None),
        "max_ns": None if any(part.max is None for part in parts) else max(part.max for part in parts),  # type: ignore[type-var]
        "mean_ns": pooled,
        "percentiles_ns": {f"{percent:g}": value for percent, value in sorted(found.items())},
        "flags": sorted({flag for part in parts for flag in part.flags}),
    }
