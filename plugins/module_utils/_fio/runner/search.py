# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The most that a device does under a latency limit: a ladder, then bisection. Pure.

The first rung is ``first``, each next one ``factor`` times as much, the last one ``last``. Between the last good and the first bad
value the middle is tried until what is left between them is a small part of the good one, or nothing.
"""

from __future__ import annotations

import dataclasses
import math
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

METRICS = ("mean", "p50", "p90", "p95", "p99", "p99.9", "p99.99")
OVER = ("iodepth", "numjobs", "rate_iops")
DIRECTIONS = ("read", "write", "mixed")

FOUND, AT_LEAST, NOT_REACHABLE = "found", "at_least", "not_reachable"

#: States of a probe whose figures count.
_MEASURED = ("ok", "not_steady")
#: No search needs more.
MOST_PROBES = 64


@frozen
class Search:
    """What is searched for.

    :param metric: one of :data:`METRICS`.
    :param limit: of the latency, in ns.
    :param direction: whose latency counts; ``None``: the worst of those that the job has.
    :param over: the option of the job that is varied.
    :param bracket: the part of the good value that may be left between it and the bad one.
    """

    metric: str
    limit: int
    over: str
    first: int
    last: int
    direction: str | None = None
    factor: float = 2.0
    bracket: float = 0.10


@frozen
class Probe:
    """One measured point. ``latency_ns`` and ``iops`` are ``None`` if there are no figures."""

    value: int
    iops: float | None
    latency_ns: float | None
    state: str = "ok"

    def to_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def read_search(row: t.Any, cell: str) -> Search:
    """Check what a user requested.

    :raises BadInput: naming the cell and what is wrong.
    """
    if not isinstance(row, dict):
        raise BadInput(f"{cell}: search must be a dictionary with metric, limit, over, first and last.", item=cell)
    unknown = sorted(map(str, set(row) - {one.name for one in dataclasses.fields(Search)}))
    if unknown:
        raise BadInput(f"{cell}: {abbreviated(unknown[0])} is not supported in search.", item=cell)
    found = Search(
        metric=str(row.get("metric", "p99")),
        limit=_whole(row, "limit", cell),
        over=str(row.get("over", "iodepth")),
        first=_whole(row, "first", cell, 1),
        last=_whole(row, "last", cell),
        direction=row.get("direction"),
        factor=_real(row, "factor", cell, 2.0),
        bracket=_real(row, "bracket", cell, 0.10),
    )
    for name, value, known in (("metric", found.metric, METRICS), ("over", found.over, OVER), ("direction", found.direction or "read", DIRECTIONS)):
        if value not in known:
            raise BadInput(f"{cell}: {name} of a search must be one of {', '.join(known)}, not {abbreviated(value)}.", item=cell)
    if found.first > found.last or not 1.1 <= found.factor < math.inf or not 0 < found.bracket < 1:
        raise BadInput(f"{cell}: first of a search must not exceed last, factor must be at least 1.1, and bracket must be between 0 and 1.", item=cell)
    return found


def _whole(row: t.Mapping[str, t.Any], name: str, cell: str, default: int | None = None) -> int:
    value = row.get(name, default)
    if isinstance(value, bool) or not re.match(r"[1-9][0-9]{0,17}\Z", str(value)):
        raise BadInput(f"{cell}: {name} of a search must be a whole number above 0, not {value!r}.", item=cell)
    return int(t.cast(t.Any, value))


def _real(row: t.Mapping[str, t.Any], name: str, cell: str, default: float) -> float:
    try:
        return float(row.get(name, default))
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{cell}: {name} of a search must be a number, not {row.get(name)!r}.", item=cell) from None


def is_good(search: Search, probe: Probe) -> bool:
    """Whether a probe stays under the limit."""
    return probe.state in _MEASURED and probe.latency_ns is not None and probe.latency_ns <= search.limit


def has_failed(probe: Probe) -> bool:
    """Whether a probe has no result, neither good nor bad."""
    return probe.state not in _MEASURED or probe.latency_ns is None


def next_value(search: Search, probes: t.Sequence[Probe]) -> int | None:
    """What to try next; ``None`` if there is an answer, or if the last probe failed."""
    if len(probes) >= MOST_PROBES or (probes and has_failed(probes[-1])):
        return None
    good, bad = _edges(search, probes)
    if bad is None:
        return search.first if good is None else _rung(search, good.value)
    if good is None or bad.value - good.value <= 1 or (bad.value - good.value) / good.value <= search.bracket:
        return None
    return (good.value + bad.value) // 2


def _rung(search: Search, value: int) -> int | None:
    if value >= search.last:
        return None
    return min(max(value + 1, int(value * search.factor)), search.last)


def _edges(search: Search, probes: t.Sequence[Probe]) -> tuple[Probe | None, Probe | None]:
    """The greatest good value below every bad one, and the least bad one."""
    bad = min((probe for probe in probes if not is_good(search, probe) and not has_failed(probe)), key=lambda probe: probe.value, default=None)
    below = [probe for probe in probes if is_good(search, probe) and (bad is None or probe.value < bad.value)]
    return max(below, key=lambda probe: probe.value, default=None), bad


def conclude(search: Search, probes: t.Sequence[Probe]) -> dict[str, t.Any]:
    """The answer as plain data: ``value`` and ``iops`` are those of the good probe, ``None`` if there is none.

    ``best`` is the good probe with the most IOPS: past saturation more depth brings none.
    """
    good, bad = _edges(search, probes)
    answer = NOT_REACHABLE if good is None else AT_LEAST if bad is None else FOUND
    candidates = [probe for probe in probes if is_good(search, probe) and probe.iops is not None]
    best = max(candidates, key=lambda probe: t.cast(float, probe.iops), default=None)
    return {
        **dataclasses.asdict(search),
        "answer": answer,
        "value": good.value if good else None,
        "iops": good.iops if good else None,
        "good": good.to_dict() if good else None,
        "bad": bad.to_dict() if bad else None,
        "best": best.to_dict() if best else None,
        "probes": [probe.to_dict() for probe in probes],
    }


def most_likely(search: Search) -> int:
    """About how many probes a search takes, for estimates of time."""
    rungs, value = 1, search.first
    while value < search.last and rungs < MOST_PROBES:
        value = t.cast(int, _rung(search, value))
        rungs += 1
    return max(2, (rungs + 1) // 2 + 3)


def probe_of(search: Search, value: int, meta: t.Mapping[str, t.Any]) -> Probe:
    """The probe of a ``meta.json``."""
    summary = meta.get("summary") or {}
    names = [search.direction] if search.direction in ("read", "write") else ["mixed"] if summary.get("mixed") else ["read", "write"]
    active = [summary[name] for name in names if summary.get(name)]
    rates = [one.get("iops") for one in active]
    latencies = [latency_of(one, search.metric) for one in active]
    return Probe(
        value,
        sum(rates) if rates and None not in rates else None,
        max(latencies) if latencies and None not in latencies else None,  # type: ignore[type-var]
        str(meta.get("state")),
    )


def latency_of(direction: t.Mapping[str, t.Any], metric: str) -> float | None:
    """One figure of a summary's direction, in ns; of ``lat`` where it has percentiles, since that is the application's latency, else of ``clat``."""
    total, completion = direction.get("lat") or {}, direction.get("clat") or {}
    if metric == "mean":
        return total.get("mean_ns") or completion.get("mean_ns")
    for kind in (total, completion):
        value = (kind.get("percentiles_ns") or {}).get(metric[1:])
        if value is not None:
            return value
    return None
