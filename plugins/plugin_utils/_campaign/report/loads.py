# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is read off over a load: curves of latency over IOPS, threads, block sizes, with the finding that becomes their title."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import (
    NO_SHARED_HOST,
    Compared,
    hosts_note,
    is_shown_first,
    key_of,
    on_shared_hosts,
    places,
    runs_of,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.added_bins import AddedBins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS, rate_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS_OF_VARIANTS
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
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count, counted, figure, latency, listed, size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.added_bins import Added
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: Limits in ns, one of which is drawn where none is given: the first that in every chart some load keeps and another does not.
_USUAL_LIMITS = (1e6, 3e6, 10e6, 30e6, 100e6, 1e9)


@dataclass(frozen=True)
class LoadValue:
    """Medians over hosts at one load. ``iops``: in what its set is counted in; ``latency``: ns, of ``CurveSet.latency_name``; ``who``: the hosts.

    :param leads: of ``iops`` and ``latency`` what this variant is shown to be the best in at this load.
    """

    jobs: int
    depth: int
    iops: float
    bandwidth: float | None
    latency: float | None
    who: frozenset[str]
    leads: frozenset[str] = frozenset()

    @property
    def hosts(self) -> int:
        return len(self.who)

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
    """One workload in every variant, on the hosts that have every variant.

    :param load: what was varied: ``jobs``, ``queue depth`` or ``jobs x queue depth``.
    :param limit: ns.
    :param note: which hosts are left out, why another latency than p99 is drawn, and how that of several hosts was made.
    :param rate: what its values are in.
    :param leader: the variant with the most IOPS at every load; empty if there is none, and where a variant was not measured at one of them."""

    workload: str
    direction: str
    load: str
    latency_name: str
    limit: float | None
    curves: tuple[Curve, ...]
    title: str
    note: str = ""
    leader: str = ""
    rate: Rate = IOPS


@dataclass(frozen=True)
class HeatMap:
    """IOPS, or MB/s where the I/O is sequential, by block size (rows) and load (columns) in one variant; ``None`` where nothing was measured.

    :param hosts: those of each value.
    :param note: which hosts are left out."""

    workload: str
    direction: str
    variant: str
    load: str
    blocks: tuple[int, ...]
    loads: tuple[int, ...]
    iops: tuple[tuple[float | None, ...], ...]
    title: str
    hosts: tuple[tuple[frozenset[str], ...], ...] = ()
    note: str = ""
    rate: Rate = IOPS


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


def curve_sets(
    points: t.Sequence[Point],
    variants: t.Sequence[str],
    added: Added,
    limit: float | None = None,
    keys: t.Sequence[str] = KEYS_OF_VARIANTS,
    levels: t.Mapping[int, float] | None = None,
) -> list[CurveSet]:
    """Every workload that was measured at two loads or more, apart for each place (:func:`places.places`).

    :param added: bins of several hosts.
    :param limit: ns; without one a usual limit that separates the loads of every workload is taken, or none.
    :param keys: and ``levels``: of :func:`pairing.pair`.
    """
    measured = [one for one in points if one.direction != "sync" and one.iops and one.first.iodepth and one.first.numjobs]
    name_of = _names(measured)
    groups: dict[tuple[str, str], dict[_At, dict[str, list[Point]]]] = {}
    for one in measured:
        loads = groups.setdefault((name_of(one, with_block=True), one.direction), {})
        loads.setdefault((one.first.numjobs or 1, one.first.iodepth or 1), {}).setdefault(one.variant, []).append(one)
    bins = AddedBins(added)
    tables = {key: _table(on_shared_hosts(loads), bins, keys, levels) for key, loads in groups.items() if len(loads) > 1}
    limit = limit or _common_limit(list(tables.values()))
    return [_curve_set(*key, variants, table, limit) for key, table in tables.items()]


_At = t.Tuple[int, int]


class _Table(t.NamedTuple):
    """The values of each variant in the order of the loads; ``name``: the latency that is drawn."""

    name: str
    values: dict[str, tuple[LoadValue, ...]]
    note: str
    rate: Rate


def _table(compared: t.Mapping[_At, Compared], bins: AddedBins, keys: t.Sequence[str], levels: t.Mapping[int, float] | None) -> _Table:
    members = [one for here in compared.values() for points in here.points.values() for one in points]
    name = next((name for name in ("p99", "p50") if all(one.latency.get(name) for one in members)), "mean")
    loads = sorted(compared, key=lambda at: (at[0] * at[1], at[0]))
    latency, is_added = _latencies({(variant, at): points for at in loads for variant, points in compared[at].points.items()}, name, bins)
    values: dict[str, list[LoadValue]] = {}
    for at in loads:
        runs = {variant: runs_of(points) for variant, points in compared[at].points.items()}
        first = {
            what: leader
            for what, metric, figures in (
                ("iops", "iops", [(median(one.iops for one in points) or 0.0, variant) for variant, points in compared[at].points.items()]),
                ("latency", "latency" if name == "mean" else name, [(-(latency[variant, at] or 0.0), variant) for variant in runs]),
            )
            if len(runs) > 1 and is_shown_first(runs, leader := max(figures)[1], metric, keys, levels)
        }
        for variant, points in compared[at].points.items():
            rates = median(one.iops for one in points) or 0.0, median(one.bandwidth for one in points)
            values.setdefault(variant, []).append(
                LoadValue(
                    *at,
                    *rates,
                    latency[variant, at],
                    frozenset(one.host for one in points),
                    frozenset(what for what, leader in first.items() if leader == variant),
                )
            )
    rate = rate_of(members[0].first)
    if rate is not IOPS:
        values = {variant: [replace(one, iops=one.iops * rate.scale) for one in of] for variant, of in values.items()}
    notes = hosts_note(list(compared.values()), "loads"), _latency_note(name, members), "" if is_added else _median_note(name)
    return _Table(name, {variant: tuple(of) for variant, of in values.items()}, " ".join(filter(None, notes)), rate)


def _latencies(groups: t.Mapping[t.Any, t.Sequence[Point]], name: str, bins: AddedBins) -> tuple[dict[t.Any, float | None], bool]:
    """Of each group of points, all made in one way; and whether that is by adding bins, where there are several hosts."""
    if name == "mean":
        return {key: median(one.mean_latency for one in points) for key, points in groups.items()}, False
    found = {key: points[0].latency.get(name) if len(points) == 1 else bins.percentiles(points)[name] for key, points in groups.items()}
    if all(found.values()):
        return found, True
    return {key: median(one.latency.get(name) for one in points) for key, points in groups.items()}, not any(
        len({one.host for one in points}) > 1 for points in groups.values()
    )


def _common_limit(tables: t.Sequence[_Table]) -> float | None:
    """The first usual limit that separates the loads of all workloads; none of unlike latencies."""
    if len({one.name for one in tables}) != 1:
        return None
    spans = []
    for one in tables:
        latencies = [value.latency for values in one.values.values() for value in values if value.latency]
        if not latencies:
            return None
        spans.append((min(latencies), max(latencies)))
    return next((one for one in _USUAL_LIMITS if all(low <= one < high for low, high in spans)), None)


def _curve_set(workload: str, direction: str, variants: t.Sequence[str], table: _Table, limit: float | None) -> CurveSet:
    curves = tuple(_curve(variant, table.values[variant], limit) for variant in variants if variant in table.values)
    jobs, depths = ({at(value) for one in curves for value in one.values} for at in (lambda value: value.jobs, lambda value: value.depth))
    load = "jobs x queue depth" if len(jobs) > 1 and len(depths) > 1 else "jobs" if len(jobs) > 1 else "queue depth"
    title = _title(workload, direction, table.name, limit, curves, load, table.rate.unit)
    return CurveSet(workload, direction, load, table.name, limit, curves, title, table.note, _leader_everywhere(curves), table.rate)


def _latency_note(name: str, members: t.Sequence[Point]) -> str:
    if name == "p99":
        return ""
    few = sum("p99" in one.hidden for one in members)
    why = f"{few} of {counted(len(members), 'measurement')} had fewer than {count(BY_NAME['p99'].needed)} I/Os" if few else "not every measurement has it"
    return f"The {'mean' if name == 'mean' else 'median (p50)'} is drawn, not p99: {why}."


def _median_note(name: str) -> str:
    return "" if name == "mean" else f"The {name} of several hosts is the median of theirs: their histograms cannot be added."


def _curve(variant: str, values: tuple[LoadValue, ...], limit: float | None) -> Curve:
    loads = [LoadPoint(float(value.load), value.iops, value.latency) for value in values if value.latency and value.iops]
    under = iops_under_limit(loads, limit) if limit and loads else None
    return Curve(variant, values, under, saturation(loads) if len(loads) > 1 else None)


def _title(workload: str, direction: str, name: str, limit: float | None, curves: t.Sequence[Curve], load: str, unit: str) -> str:
    """What holds along all of the curves, then what they do under the limit, and where they are saturated."""
    sentences = [_along(curves, load, unit)]
    kept = [(one.under, one.variant) for one in curves if one.under is not None and one.under.iops]
    if limit and kept:
        rates = [
            f"{'at least ' if under.state == 'at_least' else ''}{figure(under.iops)}{f' in {variant}' if len(curves) > 1 else ''}" for under, variant in kept
        ]
        sentences.append(f"{unit} under {latency(limit)} ({name}): {listed(rates, 4)}")
    elif limit and curves:
        sentences.append(f"none stays under {latency(limit)} ({name})" if len(curves) > 1 else f"not under {latency(limit)} ({name}) at any load")
    knees = [one for one in curves if one.knee is not None and one.knee.state == "found"]
    if knees:
        sentences.append(listed([f"{one.variant} is saturated at {load} {_load_at(one, one.knee.at, load)}" for one in knees if one.knee], 2))
    return f"{workload} ({direction}): {'; '.join(sentences)}"


def _along(curves: t.Sequence[Curve], load: str, unit: str) -> str:
    """Which variant has the most IOPS at each load that all of them have, and at which others another one has."""
    if len(curves) == 1:
        rates = [value.iops for value in curves[0].values]
        return f"{figure(min(rates))} to {figure(max(rates))} {unit}"
    found = _leaders(curves, load)
    common, others = [one for one in found if one.is_of_all], [one for one in found if not one.is_of_all]
    leaders = [one.leader for one in common]
    alone = leaders[0] if len(set(leaders)) == 1 else ""
    sentence = _along_common(common, load, len(by_load(curves)), unit)
    if not common and any(not are_of_same_hosts(values) for values in by_load(curves)):
        sentence = NO_SHARED_HOST
    elsewhere: dict[str, list[str]] = {}
    for one in others:
        if one.leader not in ("", alone):
            elsewhere.setdefault(one.leader, []).append(one.load)
    if not elsewhere:
        return sentence
    return f"{sentence}; among those measured, {listed([f'{leader} at {listed(at, 3)}' for leader, at in elsewhere.items()], 3)}"


def _along_common(common: t.Sequence[_LoadLeader], load: str, loads: int, unit: str) -> str:
    """:param common: the loads that every variant was measured at, of ``loads``."""
    leaders = [one.leader for one in common]
    if not leaders:
        return "no load was measured in every variant"
    is_whole = len(common) == loads
    only = f"{load} {common[0].load}, the only load" if len(common) == 1 else f"the {len(common)} of {loads} loads"
    where = f"at {only} measured in every variant"
    if len(set(leaders)) == 1:
        if leaders[0]:
            return f"{leaders[0]} has the most {unit} {'at every load' if is_whole else where}"
        return f"no variant is shown to have more {unit} than the others {'at any load' if is_whole else where}"
    suffix = "" if is_whole else f", {where}"
    changes = [place for place in range(1, len(leaders)) if leaders[place] != leaders[place - 1]]
    if len(changes) == 1 and all(leaders):
        return f"{leaders[0]} has the most {unit} below {load} {common[changes[0]].load}, {leaders[-1]} from there on{suffix}"
    return f"which has the most {unit} depends on the load: {listed(list(dict.fromkeys(one or 'none of them' for one in leaders)))}{suffix}"


class _LoadLeader(t.NamedTuple):
    """A load, the variant with the most IOPS there, and whether all variants were measured at it."""

    load: str
    leader: str
    is_of_all: bool


def _leaders(curves: t.Sequence[Curve], load: str) -> list[_LoadLeader]:
    """Each load at which several variants were measured on the same hosts."""
    found = []
    for values in by_load(curves):
        if len(values) > 1 and are_of_same_hosts(values):
            leader = next((variant for variant, value in values.items() if "iops" in value.leads), "")
            found.append(_LoadLeader(load_name(next(iter(values.values())), load), leader, len(values) == len(curves)))
    return found


def _leader_everywhere(curves: t.Sequence[Curve]) -> str:
    """The variant with the most IOPS at every load, all of which were measured in every variant."""
    found = _leaders(curves, "")
    leaders = {one.leader for one in found if one.is_of_all}
    is_whole = len(curves) > 1 and len(found) == len(by_load(curves)) and all(one.is_of_all for one in found)
    return leaders.pop() if is_whole and len(leaders) == 1 else ""


def by_load(curves: t.Sequence[Curve]) -> list[dict[str, LoadValue]]:
    """In the order of the loads the value of each variant that was measured there."""
    found: dict[tuple[int, int], dict[str, LoadValue]] = {}
    for one in curves:
        for value in one.values:
            found.setdefault((value.load, value.jobs), {})[one.variant] = value
    return [found[key] for key in sorted(found)]


def are_of_same_hosts(values: t.Mapping[str, LoadValue]) -> bool:
    """Whether the variants may be compared."""
    return len({one.who for one in values.values()}) == 1


def load_name(value: LoadValue, load: str) -> str:
    """What a load is called beside a point."""
    if load == "jobs":
        return str(value.jobs)
    return str(value.depth) if load == "queue depth" else f"{value.jobs} x {value.depth}"


def _load_at(curve: Curve, at: float, load: str) -> str:
    """What was varied, at a load of a curve, which is always the product of jobs and queue depth."""
    return str(round(at)) if load == "jobs x queue depth" else load_name(next(value for value in curve.values if value.load == at), load)


def heat_maps(points: t.Sequence[Point], variants: t.Sequence[str]) -> list[HeatMap]:
    """Every workload with two block sizes and two loads or more, on the hosts that have every variant."""
    name_of = _names(points)
    groups: dict[tuple[str, str], dict[tuple[int, int], dict[str, list[Point]]]] = {}
    for one in points:
        first = one.first
        if one.direction != "sync" and one.iops and first.bs_bytes and one.iops * first.bs_bytes <= LARGEST and first.numjobs and first.iodepth:
            places_of = groups.setdefault((name_of(one, with_block=False), one.direction), {})
            places_of.setdefault((first.bs_bytes, first.numjobs * first.iodepth), {}).setdefault(one.variant, []).append(one)
    found = []
    for (workload, direction), measured in sorted(groups.items(), key=lambda item: item[0]):
        compared = on_shared_hosts(measured)
        note = hosts_note(list(compared.values()), "block sizes and loads")
        for variant in variants:
            cells = {key: here.points[variant] for key, here in compared.items() if here.points.get(variant)}
            if all(len({key[place] for key in cells}) > 1 for place in (0, 1)):
                found.append(_heat_map(workload, direction, variant, cells, note))
    return found


def _heat_map(workload: str, direction: str, variant: str, cells: t.Mapping[tuple[int, int], t.Sequence[Point]], note: str) -> HeatMap:
    """:param cells: by block size and load."""
    blocks, loads = (tuple(sorted({key[place] for key in cells})) for place in (0, 1))
    values = {key: median(one.iops for one in here) for key, here in cells.items()}
    load = "jobs" if sorted({one.first.numjobs or 1 for here in cells.values() for one in here}) == list(loads) else "jobs x queue depth"
    most = max((iops, key) for key, iops in values.items() if iops)
    rate = rate_of(next(iter(cells.values()))[0].first)
    bandwidth = f"most bandwidth {_best_block(values, load)}"
    title = f"{workload} ({direction}) in {variant}: " + (
        f"most IOPS with {_block(most[1][0])} at {load} {most[1][1]} ({figure(most[0])} IOPS), {bandwidth}" if rate is IOPS else bandwidth
    )
    if rate is not IOPS:
        values = {key: iops and iops * key[0] / 1e6 for key, iops in values.items()}
    rows = tuple(tuple(values.get((block, here)) for here in loads) for block in blocks)
    hosts = tuple(tuple(frozenset(one.host for one in cells.get((block, here), ())) for here in loads) for block in blocks)
    return HeatMap(workload, direction, variant, load, blocks, loads, rows, title, hosts, note, rate)


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
