# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What hosts, and targets of one host, did together: rates over the seconds in which all were measuring, percentiles of all their I/Os.

Only rates of one and the same time may be added. What the hosts did before the last of them began and after the first had ended is
shown apart, and percentiles come from added histograms, never from averages. Pure: what it needs comes from a loader.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._fio import sections
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Row, known, median, median_of_all, spread_of, state_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.sets import (
    Results,
    Run,
    RunSet,
    SetFigures,
    Unreadable,
    directions_of,
    sets_of,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import Common, common
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import coefficient_of_variation
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import in_seconds, latency, listed


@dataclass(frozen=True)
class Aggregate:
    """One measurement of several hosts, or of several targets, at once, in one direction.

    :param group: the hosts that were declared to share an array; empty for all hosts.
    :param host: the one whose targets these are; empty for several hosts.
    :param cell: its name, or what the measurements of several targets of a host have in common.
    :param hosts: those that have numbers; ``planned``: how many should.
    :param targets: how many targets these have together, where one of them measured several at once; else 0.
    :param added: how many results are in the sum.
    :param iops: the sum over the common window, per second; ``None`` where they did not run together, and where ``in_turn`` all I/Os by the time
        from the first of them to the last.
    :param bandwidth: likewise, bytes per second.
    :param latency: ns by name of the percentile, of the I/Os of all hosts over their whole runs.
    :param common: the window and what is beside it.
    :param iops_overall: all I/Os, divided by the time from the first start to the last end.
    :param in_turn: whether they ran together but did not do their I/O in this direction at the same time, so that their rates are not added.
    :param pro_rata: the host of each result without series, whose average was taken for its rate in the window.
    """

    group: str
    host: str
    variant: str
    cell: str
    repeat: int
    direction: str
    hosts: tuple[str, ...]
    planned: int
    targets: int
    added: int
    iops: float | None
    bandwidth: float | None
    latency: t.Mapping[str, float | None]
    synced: bool
    common: Common
    iops_overall: float | None
    in_turn: bool
    pro_rata: tuple[str, ...]
    state: str

    @property
    def label(self) -> str:
        """What stands where a row has its host. No host has a blank in its name."""
        if self.targets and not (self.group or self.host):
            return f"all {self.targets} targets"
        who = f"group {self.group}" if self.group else self.host or f"all {self.planned} hosts"
        return f"{who}, {self.targets} targets" if self.targets else who

    @property
    def is_partial(self) -> bool:
        """Whether something that was planned is not in it."""
        return self.added < (self.targets or self.planned)

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        window = {name: round(getattr(self.common, name), 6) for name in ("start", "end", "seconds", "skew", "skew_error", "tail")}
        values = {name: value for name, value in vars(self).items() if name not in ("host", "common", "latency")}
        pro_rata = list(dict.fromkeys(self.pro_rata))
        return {**values, "hosts": list(self.hosts), "pro_rata": pro_rata, "latency_ns": dict(self.latency), "window": window}

    def to_brief_dict(self) -> dict[str, t.Any]:
        """Likewise of a fleet, whose names would be most of it: numbers of hosts and results instead."""
        names = ("group", "host", "variant", "cell", "repeat", "direction", "planned", "targets", "added", "iops", "bandwidth")
        counts = {"hosts": len(self.hosts), "pro_rata": len(self.pro_rata), "skew": self.common.skew, "tail": self.common.tail}
        return {**{name: getattr(self, name) for name in names}, **counts}


def aggregates_of(results: Results) -> list[Aggregate]:
    """Every cell that several hosts, or several targets of a host, measured at once: over all of them, each declared group and each host."""
    while True:
        sets = sets_of(results)
        try:
            figures = results.figures(sets)
        except Unreadable:
            continue
        return [one for of, known_of_it in zip(sets, figures) for one in _aggregates(of, known_of_it)]


def _aggregates(of: RunSet, figures: SetFigures) -> t.Iterator[Aggregate]:
    for direction in directions_of(of.runs):
        active = {place: run for place, run in enumerate(of.runs) if direction in run.rows}
        iops, bandwidth, pro_rata = _rates(active, direction, figures) if of.window.overlaps else (None, None, ())
        in_turn = of.window.overlaps and not _may_be_added(list(active.values()), direction, pro_rata)
        if in_turn:
            iops, bandwidth, pro_rata = *_rates_in_turn(list(active.values()), direction), ()
        synced = any(run.is_synced(direction) for run in active.values())
        seconds = of.window.last_end - of.window.first_start
        total = _added([run.rows[direction].total_ios for run in active.values()])
        yield Aggregate(
            group=of.group,
            host=of.host,
            variant=of.variant,
            cell=of.cell,
            repeat=of.repeat,
            direction=direction,
            hosts=tuple(dict.fromkeys(run.host for run in active.values())),
            planned=of.planned,
            targets=of.targets,
            added=len(active),
            iops=iops,
            bandwidth=bandwidth,
            latency=_percentiles(figures, "sync" if synced else direction, len(active)),
            synced=synced,
            common=of.window,
            iops_overall=None if total is None or seconds <= 0 else total / seconds,
            in_turn=in_turn,
            pro_rata=pro_rata,
            state=of.state,
        )


def _may_be_added(runs: t.Sequence[Run], direction: str, pro_rata: t.Sequence[str]) -> bool:
    """Whether all did their I/O in this direction in the same seconds. Series show the rates in the seconds that whole measurements have in common;
    of a phase of a measurement, and without a series, there is only the rate of all of its own time."""
    spans = [run.span_of(direction) for run in runs]
    is_whole = all(sections.are_at_once([(run.span.start, run.span.end), (span.start, span.end)]) for run, span in zip(runs, spans, strict=True))
    return (is_whole and not pro_rata) or sections.are_at_once([(span.start, span.end) for span in spans], tolerance=common(spans).skew_error)


def _rates_in_turn(runs: t.Sequence[Run], direction: str) -> tuple[float | None, float | None]:
    """All I/Os, and all bytes, by the time from the first of them to the last."""
    first, last = sections.covered([(span.start, span.end) for span in (run.span_of(direction) for run in runs)])
    rows = [run.rows[direction] for run in runs]
    ios = _added([None if row.iops is None else row.total_ios for row in rows])
    sizes = _added([None if row.bw_bytes is None or row.runtime_ms is None else row.bw_bytes * row.runtime_ms / 1000 for row in rows])
    return tuple(None if count is None else count / (last - first) for count in (ios, sizes))  # type: ignore[return-value]


def _rates(active: t.Mapping[int, Run], direction: str, figures: SetFigures) -> tuple[float | None, float | None, tuple[str, ...]]:
    """IOPS, bytes per second, and the hosts whose average had to do."""
    pro_rata = []
    iops: list[float | None] = []
    bandwidth: list[float | None] = []
    for place, run in active.items():
        row, (its_iops, its_bandwidth) = run.rows[direction], figures.rates.get((place, direction), (None, None))
        if its_iops is None:
            pro_rata.append(run.host)
        # Of jobs that did not run together a host has no rate, whatever its series adds up to.
        iops.append(row.iops if its_iops is None or row.iops is None else its_iops)
        bandwidth.append(row.bw_bytes if its_bandwidth is None or row.bw_bytes is None else its_bandwidth)
    return _added(iops), _added(bandwidth), tuple(pro_rata)


def _added(values: t.Sequence[float | None]) -> float | None:
    """The sum; a sum of which a part is not known is not known."""
    return None if not values or None in values else sum(t.cast("t.Sequence[float]", values))


def _percentiles(figures: SetFigures, direction: str, runs: int) -> dict[str, float | None]:
    """Percentiles of all I/Os, if every result has a histogram of the same kind and they have I/Os enough."""
    pooled = figures.pooled.get(direction)
    if pooled is None or pooled.runs != runs or pooled.kinds != 1:
        return {one.name: None for one in SHOWN}
    return {one.name: pooled.shown(one) for one in SHOWN}


# ---------------------------------------------------------------------------------------------------------------------
# For the report


def rows_of(aggregates: t.Iterable[Aggregate]) -> list[Row]:
    """One row for each cell, direction and set of hosts, over its repeats, beside the rows of single hosts.

    A repeat in which fewer results could be added is none of the same sum: where some have more, it has no figures.
    """
    rows = []
    for (_group, _host, variant, cell, direction), runs in _points(aggregates).items():
        whole = _whole(runs)
        iops = known(one.iops for one in whole)
        rows.append(
            Row(
                host=max(runs, key=lambda one: (one.planned, one.targets)).label,
                variant=variant,
                cell=cell,
                direction=direction,
                iops=median(iops),
                bandwidth=median(one.bandwidth for one in whole),
                latency={rank.name: median_of_all([one.latency[rank.name] for one in whole]) for rank in SHOWN},
                synced=any(one.synced for one in whole),
                spread=spread_of(iops),
                runs=len(iops),
                planned=len(runs),
                state=state_of([one.state for one in runs], iops),
                verdict=None,
                iops_of_runs=tuple(iops),
                noise=coefficient_of_variation(iops),
            )
        )
    return rows


def _points(aggregates: t.Iterable[Aggregate]) -> dict[tuple[str, ...], list[Aggregate]]:
    """The repeats of each sum."""
    points: dict[tuple[str, ...], list[Aggregate]] = {}
    for one in aggregates:
        points.setdefault((one.group, one.host, one.variant, one.cell, one.direction), []).append(one)
    return points


def with_fewer(aggregates: t.Iterable[Aggregate]) -> list[Aggregate]:
    """Sums that add fewer results than other repeats of the same."""
    return [one for runs in _points(aggregates).values() for one in runs if one.added < max(other.added for other in runs)]


def _whole(runs: t.Sequence[Aggregate]) -> list[Aggregate]:
    """The repeats with the most results in their sum."""
    most = max(one.added for one in runs)
    return [one for one in runs if one.added == most]


def notes_of(aggregates: t.Sequence[Aggregate]) -> list[str]:
    """The notes on the sums: how far apart hosts were, and which could not be added."""
    running = [one for one in aggregates if one.common.overlaps]
    notes = []
    if running:
        skew = max(running, key=lambda one: one.common.skew)
        notes.append(window_note(running, f" (known to {latency(skew.common.skew_error * 1e9)})"))
    estimated = sorted({host for one in running for host in one.pro_rata})
    if estimated:
        notes.append(f"Without a series by the second, the average of the whole run was taken for: {listed(estimated, 4)}.")
    in_turn = sorted({f"{one.label} {one.cell} {one.direction}" for one in running if one.in_turn})
    if in_turn:
        notes.append(f"Not done at the same time, so that the rate is all I/Os by the time from the first to the last: {listed(in_turn, 4)}.")
    partial = sorted({f"{one.label} {one.cell}" for one in running if one.is_partial})
    fewer = sorted({f"{one.label} {one.cell}/{one.repeat}" for one in with_fewer(running)})
    if fewer:
        notes.append(f"Left out, for other repeats add more results: {listed(fewer, 4)}.")
    if partial:
        notes.append(f"Not every host or target is in the sum of: {listed(partial, 4)}.")
    unrated = sorted({f"{one.label} {one.cell} {one.direction}" for one in running if one.iops is None})
    if unrated:
        notes.append(f"Not added up, for a host has no rate there: {listed(unrated, 4)}.")
    apart = sorted({f"{one.label} {one.cell}/{one.repeat}" for one in aggregates if not one.common.overlaps})
    if apart:
        notes.append(f"Not added up, for they were not measured at the same time: {listed(apart, 4)}.")
    return notes


def window_note(running: t.Sequence[Aggregate], known_to: str = "") -> str:
    """How far apart the starts and ends were."""
    skew, tail = max(one.common.skew for one in running), max(one.common.tail for one in running)
    return (
        f"Sums are over the seconds in which everything in them was measured. The starts were at most {latency(skew * 1e9)} apart{known_to},"
        f" the ends {in_seconds(tail, 1)}."
    )
