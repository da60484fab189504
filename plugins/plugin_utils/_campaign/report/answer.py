# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The answer: which variant is the fastest of those that lose nothing in a power cut, by how much, and how sure that is.

The rate of a variant on a host is the geometric mean of IOPS over the cells that decide: those that every variant has a number
for, without the ones whose mean depends on how long was measured. Hosts are paired with themselves (statistics/fleet.py).
"""

from __future__ import annotations

import fnmatch
import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import chance, counted, figure, listed, times
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.fleet import FleetComparison, compare_fleet

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point


@dataclass(frozen=True)
class Variant:
    """One variant over the fleet.

    :param safety: ``durable`` if every verdict of it is, else the worst that was said: ``at_risk``, ``unknown``.
    :param against: compared with the baseline; ``None`` for the baseline itself.
    """

    name: str
    hosts: int
    safety: str
    verdicts: tuple[str, ...]
    against: FleetComparison | None

    @property
    def is_safe(self) -> bool:
        return self.safety == "durable"


@dataclass(frozen=True)
class Answer:
    """:param sentences: three of them.
    :param deciding: cells and directions that decide."""

    baseline: str
    variants: tuple[Variant, ...]
    fastest_safe: str | None
    sentences: tuple[str, str, str]
    deciding: tuple[tuple[str, str], ...]


def answer_of(
    rows: Rows, points: t.Sequence[Point], *, baseline: str = "", decide_by: t.Sequence[str] = (), doubtful: t.Container[tuple[str, str]] = ()
) -> Answer:
    """:param decide_by: patterns of cells; none for all of them.
    :param doubtful: cells and directions that decide nothing.
    """
    names = rows.variants
    base = baseline or (names[0] if names else "")
    deciding = _deciding(points, names, decide_by, doubtful)
    rates = {name: _rates(points, name, deciding) for name in names}
    sentence = _verdicts(rows)
    variants = []
    for name in names:
        against = _compared(rates[base], rates[name]) if name != base and deciding else None
        verdicts = tuple(sorted(sentence.get(name, ())))
        hosts = len({one.host for one in points if one.variant == name})
        variants.append(Variant(name, hosts, _safety(verdicts), verdicts, against))
    ranked = sorted((one for one in variants if _ratio(one, base) is not None), key=lambda one: -(_ratio(one, base) or 0))
    safe = [one for one in ranked if one.is_safe]
    fastest = safe[0] if safe else None
    other = next((one for one in safe if fastest is not None and one.name != fastest.name), None)
    rival = base if fastest is not None and fastest.name != base else other.name if other else None
    duel = _compared(rates[rival], rates[fastest.name]) if fastest is not None and rival else None
    sentences = (
        _who(fastest, ranked, points, deciding, base),
        _ratio_sentence(fastest, rival, duel, len(deciding)),
        _confidence_sentence(fastest, other if other is not None and other.name != rival else None, rates, duel),
    )
    return Answer(base, tuple(variants), fastest.name if fastest else None, sentences, tuple(sorted(deciding)))


def _deciding(points: t.Sequence[Point], names: t.Sequence[str], patterns: t.Sequence[str], doubtful: t.Container[tuple[str, str]]) -> set[tuple[str, str]]:
    having: dict[tuple[str, str], set[str]] = {}
    for one in points:
        complete = not patterns or any(fnmatch.fnmatchcase(one.cell, pattern) for pattern in patterns)
        if one.direction != "sync" and one.iops and complete and (one.cell, one.direction) not in doubtful and not _is_probe(one.cell):
            having.setdefault((one.cell, one.direction), set()).add(one.variant)
    return {key for key, variants in having.items() if len(variants) == len(names)}


def _is_probe(cell: str) -> bool:
    """A probe of a search or a round: what it belongs to has a cell of its own."""
    start, dot, end = cell.rpartition(".")
    return bool(start and dot) and end.rpartition("-")[2].isdigit() and "-" in end


is_probe = _is_probe


def _rates(points: t.Sequence[Point], variant: str, deciding: t.Container[tuple[str, str]]) -> dict[str, list[float]]:
    """By host, one geometric mean for each repeat that has all the deciding cells of that host."""
    logs: dict[str, dict[int, dict[tuple[str, str], float]]] = {}
    complete: dict[str, set[tuple[str, str]]] = {}
    for point in points:
        key = (point.cell, point.direction)
        if point.variant != variant or key not in deciding:
            continue
        complete.setdefault(point.host, set()).add(key)
        for run in point.runs:
            if run.iops:
                logs.setdefault(point.host, {}).setdefault(run.repeat, {})[key] = math.log(run.iops)
    return {
        host: [math.exp(sum(values.values()) / len(values)) for _repeat, values in sorted(repeats.items()) if set(values) == complete[host] and values]
        for host, repeats in logs.items()
        if len(complete[host]) == len(t.cast("set[t.Any]", deciding))
    }


def _compared(one: t.Mapping[str, t.Sequence[float]], other: t.Mapping[str, t.Sequence[float]]) -> FleetComparison:
    return compare_fleet({host: (values, other[host]) for host, values in one.items() if host in other})


def _verdicts(rows: Rows) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in rows.measurements:
        if one.measured:
            found.setdefault(one.variant, set()).update((one.verdict_before or "unknown", one.verdict_after or "unknown"))
    return found


def _safety(verdicts: t.Sequence[str]) -> str:
    return next((worst for worst in ("at_risk", "unknown") if worst in verdicts), "durable" if verdicts else "unknown")


def _ratio(one: Variant, base: str) -> float | None:
    if one.name == base:
        return 1.0
    overall = one.against.overall if one.against else None
    return None if overall is None else overall.ratio if overall.ratio is not None else overall.ratio_of_medians


def _who(fastest: Variant | None, ranked: t.Sequence[Variant], points: t.Sequence[Point], deciding: t.Collection[tuple[str, str]], base: str) -> str:
    if not ranked or not deciding:
        return "No variant can be called the fastest: no cell has a number in every variant."
    if fastest is None:
        return f"No variant is known to keep everything in a power cut; the fastest of those that may lose data is {ranked[0].name} ({ranked[0].safety})."
    if len(ranked) == 1:
        sentence = f"{fastest.name} is the only variant that was measured, and what it acknowledges survives a power cut"
    else:
        sentence = f"{fastest.name} is the fastest of the {counted(sum(one.is_safe for one in ranked), 'variant')} that lose nothing in a power cut"
    cell, direction = _telling(deciding, points)
    iops = median(one.iops for one in points if (one.variant, one.cell, one.direction) == (fastest.name, cell, direction))
    unsafe = [one.name for one in ranked if not one.is_safe and (_ratio(one, base) or 0) > (_ratio(fastest, base) or 0)]
    faster = f"; faster but not safe: {listed(unsafe)}" if unsafe else ""
    return f"{sentence}: {figure(iops)} IOPS in {cell} ({direction}){faster}."


def _telling(deciding: t.Collection[tuple[str, str]], points: t.Sequence[Point]) -> tuple[str, str]:
    """The cell to quote: a write that is made durable, else a random write; of several the one with the most IOPS."""
    synced, rates = set(), {}
    for one in points:
        key = (one.cell, one.direction)
        rates[key] = max(rates.get(key, 0.0), one.iops or 0.0)
        if one.first.synced:
            synced.add(key)
    return min(deciding, key=lambda key: (key not in synced, key[1] != "write", "randwrite" not in key[0], -rates[key], key))


def _ratio_sentence(fastest: Variant | None, rival: str | None, duel: FleetComparison | None, cells: int) -> str:
    if fastest is None:
        return "Speeds are not compared if no variant is known to be safe."
    if duel is None or rival is None:
        return "There is no second variant to compare it with."
    overall = duel.overall
    ratio = overall.ratio if overall.ratio is not None else overall.ratio_of_medians
    if ratio is None:
        return f"Against {rival} no ratio can be given: {overall.reason}."
    between = f" ({overall.interval.confidence:.1%} between {times(overall.interval.low)} and {times(overall.interval.high)})" if overall.interval else ""
    return f"It does {times(ratio)} the IOPS of {rival}{between}, as the geometric mean over {counted(cells, 'cell')}."


def _confidence_sentence(
    fastest: Variant | None, other: Variant | None, rates: t.Mapping[str, t.Mapping[str, t.Sequence[float]]], duel: FleetComparison | None
) -> str:
    if fastest is None or duel is None:
        return "Nothing is claimed about which variant is better."
    overall = duel.overall
    hosts = counted(len(duel.hosts), "host")
    p = f", p {chance(overall.p)}" if overall.p is not None else ""
    words = {
        "better": f"That is shown: {hosts}, each paired with itself{p}",
        "worse": f"It is slower than the baseline, which is not safe: {hosts}{p}",
        "same": f"The difference is shown to be under 5 %: {hosts}{p}",
        "undecided": f"That is not decided yet: {hosts}{p}; more repeats are needed",
        "not_enough_repeats": f"That is not sure: {overall.reason}",
        "not_comparable": f"That cannot be determined: {overall.reason}",
    }
    sentence = words[overall.verdict]
    if other is not None and other.name in rates:
        second = _compared(rates[other.name], rates[fastest.name]).overall
        if second.verdict != "better":
            sentence += f"; the next best safe variant, {other.name}, is not shown to be slower ({second.verdict.replace('_', ' ')})"
    if duel.against:
        sentence += f"; it is the other way on {listed([one.host for one in duel.against])}"
    return sentence + "."
