# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What is read off over a load: curves of latency over IOPS, threads, block sizes, with the finding that becomes their title."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import key_of, places
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, duration, figure, listed, size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import BY_NAME
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.limit import (
    Knee,
    LoadPoint,
    UnderLimit,
    best_block_size,
    iops_under_limit,
    saturation,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: Within this share of one another variants have the same rate.
_SAME = 0.02

#: Limits in ns, one of which is drawn where none is given: the first that in every chart some load keeps and another does not.
_USUAL_LIMITS = (1e6, 3e6, 10e6, 30e6, 100e6, 1e9)


@dataclass(frozen=True)
class LoadValue:
    """Medians over hosts at one load. ``latency``: ns, of ``CurveSet.latency_name``."""

    jobs: int
    depth: int
    iops: float
    bandwidth: float | None
    latency: float | None
    hosts: int

    @property
    def load(self) -> int:
        """I/Os that may wait at once."""
        return self.jobs * self.depth


@dataclass(frozen=True)
class Curve:
    """One variant over all loads.

    :param under: IOPS under the limit; :param knee: where more load brings nothing."""

    variant: str
    values: tuple[LoadValue, ...]
    under: UnderLimit | None
    knee: Knee | None


@dataclass(frozen=True)
class CurveSet:
    """One workload in every variant.

    :param load: what was varied: ``jobs``, ``queue depth`` or ``jobs x queue depth``.
    :param limit: ns.
    :param note: why another latency than p99 is drawn; nothing where it is p99.
    :param leader: the variant with the most IOPS at every load that all were measured at; empty if there is none."""

    workload: str
    direction: str
    load: str
    latency_name: str
    limit: float | None
    curves: tuple[Curve, ...]
    title: str
    note: str = ""
    leader: str = ""


@dataclass(frozen=True)
class HeatMap:
    """IOPS by block size (rows) and load (columns) in one variant; ``None`` where nothing was measured."""

    workload: str
    direction: str
    variant: str
    load: str
    blocks: tuple[int, ...]
    loads: tuple[int, ...]
    iops: tuple[tuple[float | None, ...], ...]
    title: str


def workload_of(one: Measurement, *, with_block: bool = True) -> str:
    """The workload of the storage, without how much of it at once: ``randwrite 4k, fdatasync, libaio``."""
    parts = [f"{one.rw or '?'} {one.bs or '?'}" if with_block else str(one.rw or "?")]
    if one.rwmixread is not None:
        parts.append(f"{one.rwmixread} % reads")
    parts += [name if every == 1 else f"{name} every {every}" for name, every in (("fdatasync", one.fdatasync), ("fsync", one.fsync)) if every]
    if one.direct is False:
        parts.append("through the page cache")
    if one.ioengine:
        parts.append(one.ioengine)
    return ", ".join(parts)


Merged = t.Mapping[t.Tuple[str, str, str], t.Mapping[str, t.Optional[float]]]


def curve_sets(points: t.Sequence[Point], variants: t.Sequence[str], merged: Merged, limit: float | None = None) -> list[CurveSet]:
    """Every workload that was measured at two loads or more, apart for each place (:func:`places.places`).

    :param merged: percentiles of the added bins of all hosts, by variant, cell and direction.
    :param limit: ns; without one a usual limit that separates the loads of every workload is taken, or none.
    """
    measured = [one for one in points if one.direction != "sync" and one.iops and one.first.iodepth and one.first.numjobs]
    name_of = _names(measured)
    groups: dict[tuple[str, str], list[Point]] = {}
    for one in measured:
        groups.setdefault((name_of(one, with_block=True), one.direction), []).append(one)
    tables = {key: _tables(members, merged) for key, members in groups.items() if len({(one.first.numjobs, one.first.iodepth) for one in members}) > 1}
    limit = limit or _common_limit(list(tables.values()))
    return [_curve_set(*key, groups[key], variants, *tables[key], limit) for key in tables]


_Tables = t.Dict[str, t.Tuple[LoadValue, ...]]


def _tables(members: t.Sequence[Point], merged: Merged) -> tuple[str, _Tables]:
    """What latency is drawn, and the values of each variant in the order of the loads."""
    name = next((name for name in ("p99", "p50") if all(one.latency.get(name) for one in members)), "mean")
    by_variant: dict[str, dict[tuple[int, int], list[Point]]] = {}
    for one in members:
        by_variant.setdefault(one.variant, {}).setdefault((one.first.numjobs or 1, one.first.iodepth or 1), []).append(one)
    return name, {
        variant: tuple(sorted((_value(at, here, name, merged) for at, here in loads.items()), key=lambda value: (value.load, value.jobs)))
        for variant, loads in by_variant.items()
    }


def _common_limit(tables: t.Sequence[tuple[str, _Tables]]) -> float | None:
    """The first usual limit that separates the loads of all workloads; none of unlike latencies."""
    if len({name for name, _values in tables}) != 1:
        return None
    spans = []
    for _name, by_variant in tables:
        latencies = [value.latency for values in by_variant.values() for value in values if value.latency]
        if not latencies:
            return None
        spans.append((min(latencies), max(latencies)))
    return next((one for one in _USUAL_LIMITS if all(low <= one < high for low, high in spans)), None)


def _curve_set(
    workload: str, direction: str, members: t.Sequence[Point], variants: t.Sequence[str], name: str, tables: _Tables, limit: float | None
) -> CurveSet:
    curves = tuple(_curve(variant, tables[variant], limit) for variant in variants if variant in tables)
    jobs, depths = ({getattr(one.first, column) for one in members} for column in ("numjobs", "iodepth"))
    load = "jobs x queue depth" if len(jobs) > 1 and len(depths) > 1 else "jobs" if len(jobs) > 1 else "queue depth"
    leaders = {leader for _load, leader in _leaders(curves, load)}
    leader = leaders.pop() if len(leaders) == 1 and len(curves) > 1 else ""
    title = _title(workload, direction, name, limit, curves, load)
    return CurveSet(workload, direction, load, name, limit, curves, title, _note(name, members), leader)


def _note(name: str, members: t.Sequence[Point]) -> str:
    if name == "p99":
        return ""
    few = sum("p99" in one.hidden for one in members)
    why = f"{few} of {counted(len(members), 'measurement')} had fewer than {BY_NAME['p99'].needed:,} I/Os" if few else "not every measurement has it"
    return f"The {'mean' if name == 'mean' else 'median (p50)'} is drawn, not p99: {why}."


def _value(at: tuple[int, int], here: t.Sequence[Point], name: str, merged: Merged) -> LoadValue:
    # One cell on all hosts: percentiles of added bins. Else the median over hosts, of means too.
    cells = {(one.variant, one.cell, one.direction) for one in here}
    added = merged.get(next(iter(cells)), {}).get(name) if len(cells) == 1 else None
    latency = [added] if added else [median(run.lat_mean_ns for run in one.runs) if name == "mean" else one.latency.get(name) for one in here]
    return LoadValue(*at, median(one.iops for one in here) or 0.0, median(one.bandwidth for one in here), median(latency), len({one.host for one in here}))


def _curve(variant: str, values: tuple[LoadValue, ...], limit: float | None) -> Curve:
    loads = [LoadPoint(float(value.load), value.iops, value.latency) for value in values if value.latency and value.iops]
    if len(loads) < 2:
        return Curve(variant, values, None, None)
    return Curve(variant, values, iops_under_limit(loads, limit) if limit else None, saturation(loads))


def _title(workload: str, direction: str, name: str, limit: float | None, curves: t.Sequence[Curve], load: str) -> str:
    """What holds along all of the curves, then what they do under the limit, and where they are saturated."""
    sentences = [_along(curves, load)]
    kept = [(one.under, one.variant) for one in curves if one.under is not None and one.under.iops]
    if limit and kept:
        rates = [
            f"{'at least ' if under.state == 'at_least' else ''}{figure(under.iops)}{f' in {variant}' if len(curves) > 1 else ''}" for under, variant in kept
        ]
        sentences.append(f"IOPS under {duration(limit)} ({name}): {listed(rates, 4)}")
    elif limit and curves:
        sentences.append(f"none stays under {duration(limit)} ({name})" if len(curves) > 1 else f"not under {duration(limit)} ({name}) at any load")
    knees = [one for one in curves if one.knee is not None and one.knee.state == "found"]
    if knees:
        sentences.append(listed([f"{one.variant} is saturated at {load} {_load_at(one, one.knee.at, load)}" for one in knees if one.knee], 2))
    return f"{workload} ({direction}): {'; '.join(sentences)}"


def _along(curves: t.Sequence[Curve], load: str) -> str:
    """Which variant has the most IOPS at each load that all of them have."""
    first = curves[0]
    if len(curves) == 1:
        rates = [value.iops for value in first.values]
        return f"{figure(min(rates))} to {figure(max(rates))} IOPS"
    found = _leaders(curves, load)
    leaders = [leader for _load, leader in found]
    if not leaders:
        return "no load was measured in every variant"
    if len(set(leaders)) == 1:
        return f"{leaders[0]} has the most IOPS at every load" if leaders[0] else f"no variant has {_SAME:.0%} more IOPS than the next at any load"
    changes = [place for place in range(1, len(leaders)) if leaders[place] != leaders[place - 1]]
    if len(changes) == 1 and all(leaders):
        return f"{leaders[0]} has the most IOPS below {load} {found[changes[0]][0]}, {leaders[-1]} from there on"
    return f"which has the most IOPS depends on the load: {listed(list(dict.fromkeys(one or 'none of them' for one in leaders)))}"


def _leaders(curves: t.Sequence[Curve], load: str) -> list[tuple[str, str]]:
    """Each load at which every variant was measured, and the variant with the most IOPS there."""
    values = [{(value.jobs, value.depth): value for value in one.values} for one in curves]
    names = [one.variant for one in curves]
    common = [key for key in values[0] if all(key in of for of in values)]
    return [(load_name(values[0][key], load), _leader([of[key].iops for of in values], names)) for key in common]


def _leader(rates: t.Sequence[float], names: t.Sequence[str]) -> str:
    """The variant with the most; empty where the next is as fast."""
    ordered = sorted(zip(rates, names), reverse=True)
    return ordered[0][1] if len(ordered) < 2 or ordered[0][0] > (1 + _SAME) * ordered[1][0] else ""


def load_name(value: LoadValue, load: str) -> str:
    """What a load is called beside a point."""
    if load == "jobs":
        return str(value.jobs)
    return str(value.depth) if load == "queue depth" else f"{value.jobs} x {value.depth}"


def _load_at(curve: Curve, at: float, load: str) -> str:
    """What was varied, at a load of a curve, which is always the product of jobs and queue depth."""
    return f"{at:.0f}" if load == "jobs x queue depth" else load_name(next(value for value in curve.values if value.load == at), load)


def heat_maps(points: t.Sequence[Point], variants: t.Sequence[str]) -> list[HeatMap]:
    """Every workload with two block sizes and two loads or more."""
    name_of = _names(points)
    groups: dict[tuple[str, str, str], dict[tuple[int, int], list[float]]] = {}
    jobs_of: dict[tuple[str, str, str], set[int]] = {}
    for one in points:
        first = one.first
        if one.direction != "sync" and one.iops and first.bs_bytes and one.iops * first.bs_bytes <= LARGEST and first.numjobs and first.iodepth:
            key = (name_of(one, with_block=False), one.direction, one.variant)
            groups.setdefault(key, {}).setdefault((first.bs_bytes, first.numjobs * first.iodepth), []).append(one.iops)
            jobs_of.setdefault(key, set()).add(first.numjobs)
    found = []
    for (workload, direction, variant), cells in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1], variants.index(item[0][2]))):
        blocks, loads = sorted({key[0] for key in cells}), sorted({key[1] for key in cells})
        if len(blocks) < 2 or len(loads) < 2:
            continue
        values = {key: median(iops) for key, iops in cells.items()}
        load = "jobs" if sorted(jobs_of[workload, direction, variant]) == loads else "jobs x queue depth"
        rows = tuple(tuple(values.get((block, here)) for here in loads) for block in blocks)
        most = max((iops, key) for key, iops in values.items() if iops)
        title = (
            f"{workload} ({direction}) in {variant}: most IOPS with {_block(most[1][0])} at {load} {most[1][1]} ({figure(most[0])} IOPS), "
            f"most bandwidth {_best_block(values, load)}"
        )
        found.append(HeatMap(workload, direction, variant, load, tuple(blocks), tuple(loads), rows, title))
    return found


def _best_block(values: t.Mapping[tuple[int, int], float | None], load: str) -> str:
    """Where the most bandwidth is, at the load that has it: other loads have a best block size of their own."""
    widest = max(((iops or 0.0) * block, at) for (block, at), iops in values.items())[1]
    blocks = [(block, iops) for (block, at), iops in values.items() if at == widest and iops]
    best = best_block_size(blocks)
    smallest = int(best.at)
    where = f"with {_block(smallest)}" if smallest == max(block for block, _iops in blocks) else f"from {_block(smallest)} on"
    return f"{where} at {load} {widest} ({size(best.most)}/s)"


def _names(points: t.Sequence[Point]) -> t.Callable[..., str]:
    """What a workload is called: with its place, where there are several."""
    where = places(points)
    several = len(set(where.values())) > 1

    def name_of(one: Point, *, with_block: bool) -> str:
        workload = workload_of(one.first, with_block=with_block)
        return f"{workload} on {where[key_of(one)]}" if several else workload

    return name_of


def _block(count: int) -> str:
    for power, unit in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count % power == 0:
            return f"{count // power} {unit}"
    return f"{count} B"


block_name = _block
