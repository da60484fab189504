# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The figures of a cell: what all jobs of a report did together, in each direction and for syncs. Pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Job, Latency, Output

PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)


def summarize(output: Output) -> dict[str, t.Any]:
    """The figures of a cell as plain data: ``{read: {iops, bw_bytes, total_ios, runtime_ms, clat, lat}, …, sync: …}``.

    Threads that ran together are added up; groups that a stonewall separates did not run together, so their rates are not. A
    direction without I/O is ``None``.
    """
    summary: dict[str, t.Any] = {name: _summarize_direction(output.jobs, name) for name in DIRECTIONS}
    syncs = [job.sync for job in output.jobs if job.sync is not None]
    summary["sync"] = _summarize_latency(syncs) if syncs else None
    return summary


def _summarize_direction(jobs: t.Sequence[Job], name: str) -> dict[str, t.Any] | None:
    active = [job for job in jobs if name in job.directions]
    if not active:
        return None
    together = len({job.group for job in active}) == 1
    parts = [job.directions[name] for job in active]
    return {
        "iops": _added([part.iops for part in parts]) if together else None,
        "bw_bytes": _added([part.bw_bytes for part in parts]) if together else None,
        "total_ios": _added([part.total_ios for part in parts]),
        "io_bytes": _added([part.io_bytes for part in parts]),
        "runtime_ms": max((part.runtime_ms for part in parts if part.runtime_ms is not None), default=None),
        "clat": _summarize_latency([part.clat for part in parts]) if together else None,
        "lat": _summarize_latency([part.lat for part in parts]) if together else None,
    }


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
