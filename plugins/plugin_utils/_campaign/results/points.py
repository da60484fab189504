# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Repeats put together: medians of what was measured. Repeats are the unit, and nothing that was not measured becomes a number. Pure."""

from __future__ import annotations

import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import STATES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN, Percentile
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import coefficient_of_variation, is_noisy

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement


@dataclass(slots=True)
class Point:
    """One direction of one cell on one host in one variant, over its repeats. Numbers are medians of repeats, ``None`` if not measured.

    :param samples: fewest I/Os of a repeat, of which the latency is known.
    :param state: the worst of the repeats, or ``noisy`` if all of them are ok and they vary too much.
    :param hidden: percentiles that are ``None`` only because a repeat had too few I/Os for them.
    """

    host: str
    variant: str
    cell: str
    direction: str
    runs: list[Measurement]
    state: str
    iops: float | None
    bandwidth: float | None
    latency: dict[str, float | None]
    samples: int | None = None
    hidden: tuple[str, ...] = ()

    @property
    def first(self) -> Measurement:
        return self.runs[0]

    @property
    def verdict(self) -> str | None:
        """As that of a :class:`Row`."""
        return _verdict(self.runs)

    @property
    def mean_latency(self) -> float | None:
        """ns."""
        return median(run.lat_mean_ns for run in self.runs)


@dataclass(frozen=True)
class Row:
    """One line of the table: one point of one host and variant, over its repeats; or of several hosts.

    :param direction: ``read``, ``write``, ``trim`` or ``mixed``; empty if nothing was measured.
    :param spread: (largest - smallest) / median of the IOPS of the repeats; ``None`` with fewer than two.
    :param noise: standard deviation by mean of the IOPS of the repeats, of several hosts the median; ``None`` with fewer than two.
    :param runs: repeats with numbers; ``planned``: all of them.
    :param is_sequential: whether MB/s count, and not IOPS.
    :param state: the worst of the repeats, or ``noisy`` if all of them are ok and they vary too much.
    """

    host: str
    variant: str
    cell: str
    direction: str
    iops: float | None
    bandwidth: float | None
    latency: t.Mapping[str, float | None]
    synced: bool
    spread: float | None
    runs: int
    planned: int
    state: str
    verdict: str | None
    iops_of_runs: tuple[float, ...] = ()
    noise: float | None = None
    is_sequential: bool = False

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        values = dict(vars(self))
        values["latency_ns"] = dict(values.pop("latency"))
        values["iops_of_runs"] = list(self.iops_of_runs)
        del values["is_sequential"]
        return values


def points_of(measurements: t.Iterable[Measurement]) -> list[Point]:
    """Repeats put together. A sync is a direction of its own."""
    groups: dict[tuple[str, str, str, str], list[Measurement]] = {}
    states: dict[tuple[str, str, str], str] = {}
    for one in measurements:
        cell = (one.host, one.variant, one.cell)
        states[cell] = worst((states.get(cell, "ok"), one.state))
        if one.measured and one.direction is not None:
            groups.setdefault((*cell, one.direction), []).append(one)
    return [_point(key, runs, states[key[:3]]) for key, runs in groups.items()]


def _point(key: tuple[str, str, str, str], runs: list[Measurement], state: str) -> Point:
    latency = latency_of(runs)
    hidden = tuple(one.name for one in SHOWN if latency[one.name] is None and any(_has_too_few(run, one) for run in runs))
    return Point(
        *key,
        runs=runs,
        state=state_of([state], known(run.iops for run in runs)),
        iops=median(run.iops for run in runs),
        bandwidth=median(run.bw_bytes for run in runs),
        latency=latency,
        samples=min((run.lat_n for run in runs if run.lat_n is not None), default=None),
        hidden=hidden,
    )


def _has_too_few(run: Measurement, percentile: Percentile) -> bool:
    return run.lat_n is not None and run.lat_n < percentile.needed and getattr(run, percentile.column) is None


def rows_of(measurements: t.Iterable[Measurement]) -> list[Row]:
    """One line for each host, variant, cell and direction, in the order of the measurements; of a write with syncs the latency is theirs."""
    cells: dict[tuple[str, str, str], list[Measurement]] = {}
    for one in measurements:
        cells.setdefault((one.host, one.variant, one.cell), []).append(one)
    rows = []
    for key, of in cells.items():
        points = {point.direction: point for point in points_of(of)}
        for direction in [name for name in DIRECTIONS if name in points] or [""]:
            rows.append(_row(key, direction, points.get(direction), points.get("sync"), of))
    return rows


def _row(key: tuple[str, str, str], direction: str, point: Point | None, sync: Point | None, of: t.Sequence[Measurement]) -> Row:
    runs = point.runs if point else []
    syncs = {run.repeat: run for run in sync.runs if run.has_percentiles} if sync and direction in ("write", "mixed") else {}
    iops = known(run.iops for run in runs)
    # Of a repeat with syncs, what the application waited for is the sync that makes a write durable.
    latency = latency_of([syncs.get(run.repeat, run) for run in runs])
    return Row(
        *key,
        direction,
        iops=median(iops),
        bandwidth=point.bandwidth if point else None,
        latency=latency,
        synced=any(run.repeat in syncs for run in runs),
        spread=spread_of(iops),
        runs=len(runs),
        planned=len({one.repeat for one in of}),
        state=state_of([one.state for one in of], iops),
        verdict=_verdict(of),
        iops_of_runs=tuple(iops),
        noise=coefficient_of_variation(iops),
        is_sequential=bool(runs) and runs[0].is_sequential,
    )


def _verdict(of: t.Sequence[Measurement]) -> str | None:
    """The verdict all repeats agree on, else what it went through."""
    seen = dict.fromkeys(verdict for one in of for verdict in (one.verdict_before, one.verdict_after) if verdict is not None)
    return ">".join(seen) or None


def latency_of(runs: t.Sequence[Measurement]) -> dict[str, float | None]:
    """Percentiles in ns by name. One counts only where every repeat had I/Os enough for it."""
    return {one.name: percentile_of(runs, one) for one in SHOWN}


def percentile_of(runs: t.Sequence[Measurement], percentile: Percentile) -> float | None:
    """The median of the repeats in ns; ``None`` as soon as one of them has none."""
    return median_of_all([getattr(run, percentile.column) for run in runs])


def known(values: t.Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def median(values: t.Iterable[float | None]) -> float | None:
    """Of what is known; ``None`` of nothing."""
    found = known(values)
    if len(found) == 1:
        return found[0]
    return statistics.median(found) if found else None


def median_of_all(values: t.Sequence[float | None]) -> float | None:
    """``None`` as soon as one is unknown."""
    return None if any(value is None for value in values) else median(values)


def spread_of(values: t.Sequence[float]) -> float | None:
    """(largest - smallest) / median; ``None`` of fewer than two."""
    middle = median(values)
    return (max(values) - min(values)) / middle if middle and len(values) > 1 else None


def state_of(states: t.Sequence[str], iops: t.Sequence[float]) -> str:
    """The worst state of repeats; ``noisy`` if all of them are ok and their IOPS vary by more than the noise gate."""
    found = worst(states)
    return "noisy" if found == "ok" and is_noisy(coefficient_of_variation(iops)) else found


def worst(states: t.Iterable[str]) -> str:
    """The most relevant state: ``missing`` before ``failed`` before … ``ok``."""
    return max(states, key=STATES.index)
