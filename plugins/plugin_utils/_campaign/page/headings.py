# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The finding of each section, which is its heading; and which cell the answer is about first."""

from __future__ import annotations

import math
import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text, costs
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import are_of_same_hosts, block_name, by_load
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import NO_SHARED_HOST, first_of, is_shown_first, leader_of, runs_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import every_second, most_alike
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import FEWEST_ALIKE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import WORST_FIRST

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import Distribution
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement


def lead_of(a: Analysis) -> tuple[str, str, str] | None:
    """The label of the class, cell and direction that the answer is about first."""
    if not a.answer.workloads:
        return None
    first = answer_text.in_order(a.answer.workloads)[0]
    return first.host_class.label, first.question.cell, first.question.direction


def titles_of(a: Analysis) -> dict[str, str]:
    """The finding of each section."""
    safe = [one.name for one in a.answer.variants if one.is_safe]
    changed = sum(bool(one.changed) or one.verdict_before != one.verdict_after for one in a.stacks)
    written = sum(one.written for one in a.wear if one.written) if any(one.written is not None for one in a.wear) else None
    return {
        "answer": _title_of_answer(a, safe),
        "comparison": _title_of_comparison(a),
        "together": _title_of_sums(a),
        "curves": _title_of_curves(a),
        "heat": _title_of_heat_maps(a),
        "series": _title_of_series(a),
        "latency": _title_of_latency(a),
        "rounds": _title_of_rounds(a),
        "cpu": _title_of_cpu(a),
        "hosts": f"{text.counted(len(a.outliers), 'host')} unlike the others: {text.listed([one.host for one in a.outliers])}"
        if a.outliers
        else _no_outlier(a),
        "stacks": f"{text.counted(len(a.stacks), 'state')} of the layers below the targets, "
        + (f"{changed} of them changed meanwhile" if changed else "none changed meanwhile"),
        "problems": f"{text.counted(len(a.problems), 'problem')} found",
        "costs": _title_of_costs(a),
        "wear": f"{text.size(written)} went to the drives" if written is not None else "The drives do not report the written bytes",
        "power_loss": _title_of_power_loss(a),
        "commands": "How to measure it again",
        "environment": "What it ran on",
    }


def _title_of_power_loss(a: Analysis) -> str:
    counts = Counter(one.verdict for one in a.power_loss)
    words = {"at_risk": "lost acknowledged writes", "durable": "lost nothing", "unknown": "prove nothing"}
    return "Power-loss tests: " + text.listed([f"{counts[verdict]} {result}" for verdict, result in words.items() if counts[verdict]])


def _title_of_answer(a: Analysis, safe: t.Sequence[str]) -> str:
    shown = sum(one.recommended is not None for one in a.answer.workloads)
    has_classes = len({one.host_class.label for one in a.answer.workloads}) > 1
    workloads = _workloads(a)
    if len(a.variants) == 1:
        return f"{workloads}, one variant: there is nothing to compare it with"
    which = f" that keeps what {a.answer.baseline} keeps" if any(one.has_risky_gain for one in a.answer.workloads) else ""
    if not a.answer.workloads:
        better = "No cell decides"
    elif shown:
        better = f"A variant is shown to be better in {shown} of {workloads}"
    else:
        better = f"No variant{which} is shown to be better" + (f" in any of {workloads}" if len(a.answer.workloads) > 1 else "")
    where = " on all hosts" if has_classes else ""
    kept = f"flushed writes survive a power failure with {text.listed(safe)}" if safe else "no variant is known to keep flushed writes in a power failure"
    return f"{better}; {kept}{where}"


def _workloads(a: Analysis) -> str:
    """What the answers are counted in: of several classes of hosts, or several metrics of a cell, workloads alone are fewer."""
    questions = {one.question for one in a.answer.workloads}
    if len(questions) < len(a.answer.workloads):
        return f"{len(a.answer.workloads)} combinations of hosts and workload"
    if len({(one.cell, one.direction) for one in questions}) < len(questions):
        return f"{len(questions)} combinations of workload and metric"
    return text.counted(len(questions), "workload")


def _title_of_comparison(a: Analysis) -> str:
    """What the comparisons of the lines show, of the variant that is better in most of them, and of the one that is better and loses data."""
    whole = [line for line in a.table if not line.is_part and line.direction != "sync"]
    won, risky = (
        Counter(variant for line in whole for variant, cell in zip(a.variants, line.cells) if cell is not None and wins(cell))
        for wins in (lambda cell: cell.is_better, lambda cell: cell.is_risky)
    )
    lines = text.counted(len(whole), "line")
    sentences = [f"{name} is shown to be better than {a.answer.baseline} in {count} of {lines}" for name, count in won.most_common(1)]
    sentences += [f"{name} is shown to be better in {count} of {lines}, but can lose what {a.answer.baseline} keeps" for name, count in risky.most_common(1)]
    if not sentences and len(a.variants) > 1:
        return f"No variant is shown to be better than {a.answer.baseline}" + (f" in any of {lines}" if len(whole) > 1 else "")
    return "; ".join(sentences) or "What was measured"


def _safety(a: Analysis, variant: str) -> str:
    """As the verdict of a stack says it."""
    words = {"keeps": "durable", "loses": "at_risk"}
    return next(words.get(one.safety.flushed, "unknown") for one in a.answer.variants if one.name == variant)


def _title_of_costs(a: Analysis) -> str:
    """Which variant costs least for its capacity, and is shown to for its IOPS in how many rows."""
    keys = costs.keys_of(a.answer)
    rows = []
    for key in keys:
        row = {one.variant: (one.per_iops[key], one.iops_hosts.get(key)) for one in a.costs if key in one.per_iops}
        if len(row) > 1:
            lowest = _lowest(row, len(a.costs))
            rows.append(lowest if lowest.leader and _is_shown_cheapest(a, key, lowest.leader, row) else lowest._replace(leader=""))
    leads = _leads(rows)
    found = _cost_of_capacity(a)
    if leads.names:
        found.append(
            f"{_names(a, leads.names)} {'costs' if len(leads.names) == 1 else 'each cost'} least for its IOPS in {leads.count} of "
            f"{text.counted(len(keys), 'row')}{'' if leads.is_whole else ', of the variants measured there'}"
        )
    elif leads.is_unlike:
        found.append(NO_SHARED_HOST)
    return f"Cost: {'; '.join(dict.fromkeys(found))}" if found else "Cost"


def _is_shown_cheapest(a: Analysis, key: costs.CostKey, leader: str, row: t.Mapping[str, tuple[float, t.Any]]) -> bool:
    """Whether it costs less for its IOPS wherever in its interval the ratio of the IOPS is."""
    runs = _runs(a, *key, row)
    for variant, (cost, _hosts) in row.items():
        if variant != leader:
            found = pair(METRICS["iops"], runs[variant], runs[leader], a.answer.keys, a.answer.levels).comparison
            if found is None or found.interval is None or not found.ratio or row[leader][0] / cost * found.ratio / found.interval.low >= 1:
                return False
    return True


def _runs(a: Analysis, label: str, cell: str, direction: str, variants: t.Iterable[str]) -> dict[str, dict[str, list[Measurement]]]:
    """Measurements of one cell on the hosts of a class, by variant and host."""
    hosts = next((one.host_class.hosts for one in a.answer.workloads if one.host_class.label == label), a.hosts)
    here = [one for one in a.points if one.cell == cell and one.direction == direction and one.host in hosts]
    return {variant: runs_of(one for one in here if one.variant == variant) for variant in variants}


def _cost_of_capacity(a: Analysis) -> list[str]:
    known = {one.variant: (one.per_tb, one.tb_hosts) for one in a.costs if one.per_tb}
    if not known:
        return []
    figures = [(price, name) for name, (price, _hosts) in known.items()]
    sentence = f"{text.money(min(figures)[0], a.currency)} per TB"
    if len(known) == 1:
        return [f"{figures[0][1]} costs {sentence}"]
    cheapest = first_of(figures, lowest=True)
    if len(cheapest) == len(known):
        return [f"every variant costs {sentence}"]
    if len({hosts for _price, hosts in known.values()}) > 1:
        return [NO_SHARED_HOST]
    return [f"{text.listed(cheapest)} {'costs' if len(cheapest) == 1 else 'each cost'} least for its capacity, {sentence}"]


class _Row(t.NamedTuple):
    """Which variant leads in a row; ``is_whole``: every variant is in it; ``is_unlike``: its variants are of different hosts."""

    leader: str
    is_whole: bool
    is_unlike: bool


class _Leads(t.NamedTuple):
    """The variants that lead in most rows, in how many each.

    :param is_whole: whether every variant is in those rows; ``is_unlike``: in no row its variants are of the same hosts.
    """

    names: list[str]
    count: int
    is_whole: bool
    is_unlike: bool


def _lowest(row: t.Mapping[str, tuple[float, t.Any]], variants: int) -> _Row:
    """:param row: of each variant its figure, and what it is of: the hosts."""
    is_unlike = len({hosts for _value, hosts in row.values()}) > 1
    leader = "" if is_unlike else leader_of([(value, name) for name, (value, _hosts) in row.items()], lowest=True)
    return _Row(leader, len(row) == variants, is_unlike)


def _leads(rows: t.Sequence[_Row]) -> _Leads:
    won = Counter(one.leader for one in rows if one.leader)
    most = max(won.values(), default=0)
    names = [name for name, count in won.items() if count == most]
    is_whole = all(one.is_whole for one in rows if one.leader in names)
    return _Leads(names, most, is_whole, bool(rows) and all(one.is_unlike for one in rows))


def _names(a: Analysis, names: t.Sequence[str]) -> str:
    """Of variants, with what a power failure does to those that are not safe."""
    return text.listed([name if _safety(a, name) == "durable" else f"{name} ({_safety(a, name)})" for name in names], 3)


def _title_of_curves(a: Analysis) -> str:
    workloads = text.counted(len(a.curves), "workload")
    won = Counter(one.leader for one in a.curves if one.leader)
    leads = [name for name, count in won.items() if count == max(won.values())]
    if leads:
        units = dict.fromkeys(one.rate.unit for one in a.curves if one.leader in leads)
        have = "has" if len(leads) == 1 else "each have"
        return f"{_names(a, leads)} {have} the most {' or '.join(units)} at every load in {won[leads[0]]} of {workloads}"
    compared = [one for one in a.curves if len(one.curves) > 1]
    is_unlike = compared and not any(are_of_same_hosts(values) for one in compared for values in by_load(one.curves) if len(values) > 1)
    return f"What more load brings: {workloads}" + (f"; {NO_SHARED_HOST}" if is_unlike else "")


def _title_of_sums(a: Analysis) -> str:
    """The most that everything did together in a variant that is safe; else in any."""
    rows = [row for line in a.sums for row in line.cells if row is not None and row.iops and row.bandwidth]
    rows = [row for row in rows if not row.is_sequential] or rows
    if not rows:
        return "Nothing was measured at the same time"
    safe = [row for row in rows if _safety(a, row.variant) == "durable"]
    most = max(safe or rows, key=lambda row: row.iops or 0.0)
    risk = "" if safe else f" ({_safety(a, most.variant)})"
    rate = f"{text.megabytes(most.bandwidth)} MB/s" if most.is_sequential else f"{text.figure(most.iops)} IOPS"
    return f"Together: {most.host} reach {rate} in {most.cell} ({most.direction}), {most.variant}{risk}"


def _title_of_heat_maps(a: Analysis) -> str:
    """Where the most IOPS are; in which variant is not compared here."""
    is_safe = any(one.is_safe for one in a.answer.variants)
    cells: dict[tuple[str, str, str, int, int], dict[str, tuple[float, frozenset[str]]]] = {}
    # What is counted otherwise cannot be the most.
    rate = next((one.rate for one in a.heat_maps if one.rate is IOPS), a.heat_maps[0].rate if a.heat_maps else IOPS)
    for one in a.heat_maps:
        if one.rate.unit == rate.unit and (not is_safe or _safety(a, one.variant) == "durable"):
            for block, row, hosts in zip(one.blocks, one.iops, one.hosts):
                for load, iops, who in zip(one.loads, row, hosts):
                    if iops:
                        cells.setdefault((one.workload, one.direction, one.load, block, load), {})[one.variant] = (iops, who)
    if not cells:
        return "Block size against load"
    most, (workload, direction, name, block, load) = max((max(found.values(), key=lambda one: one[0])[0], key) for key, found in cells.items())
    found = cells[workload, direction, name, block, load]
    is_alike = len({who for _iops, who in found.values()}) == 1
    safe = "safe " if is_safe and len(a.variants) > 1 else ""
    title = f"Block sizes: most {safe}{rate.unit} with {block_name(block)} at {name} {load}: {text.figure(most)} ({workload}, {direction})"
    return title if is_alike else f"{title}; {NO_SHARED_HOST}"


def _title_of_series(a: Analysis) -> str:
    kinds = dict(a.kinds)
    strange = [f"{kinds[kind]} {kind}" for kind in WORST_FIRST if kind != "steady" and kinds.get(kind)]
    strange += [f"{a.stalled} with stalls"] if a.stalled else []
    strange += [f"{kinds['unknown']} not classified"] if "unknown" in kinds else []
    if strange:
        return f"Along the run: {', '.join(strange)}"
    return f"Along the run: {text.count(a.series_looked_at)} series steady{_widest(a)}" if a.series_looked_at else "Along the run"


def _widest(a: Analysis) -> str:
    """How far apart the seconds of steady series are, which the classification allows."""
    ends = [(min(known), max(known), one.rate.unit) for one in a.series if (known := every_second(one.series.iops))]
    if not ends:
        return ""
    low, high, unit = max(ends, key=lambda one: one[1] / one[0] if one[0] else math.inf)
    return f", with seconds from {text.figure(low)} to {text.figure(high)} {unit} in one of them"


def _title_of_latency(a: Analysis) -> str:
    """Which variant is shown to have the lowest p99, of those that a cell has it of."""
    groups: dict[tuple[str, str, str], list[Distribution]] = {}
    for one in a.distributions:
        groups.setdefault((one.label, one.cell, one.direction), []).append(one)
    count = text.counted(len(groups), "distribution")
    rows = []
    for (label, cell, direction), members in groups.items():
        row = {one.variant: (value, one.is_shared or one.variant) for one in members if (value := one.at(99.0))}
        if len(row) > 1:
            found = _lowest(row, len(a.variants))
            runs = _runs(a, label, cell, direction, row)
            rows.append(found if found.leader and is_shown_first(runs, found.leader, "p99", a.answer.keys, a.answer.levels) else found._replace(leader=""))
    leads = _leads(rows)
    if leads.names:
        those = "" if leads.is_whole else ", of the variants that have one there"
        return f"Latency: {_names(a, leads.names)} {'has' if len(leads.names) == 1 else 'each have'} the lowest p99 in {leads.count} of {count}{those}"
    return f"Latency of every I/O: {count}" + (f"; {NO_SHARED_HOST}" if leads.is_unlike else "")


def _title_of_rounds(a: Analysis) -> str:
    steady = sum(one.steady for one in a.rounds)
    return f"Precondition: steady in {steady} of {text.counted(len(a.rounds), 'run')}"


def _title_of_cpu(a: Analysis) -> str:
    cells = {(one.cell, one.direction) for one in a.cpu}
    return f"The CPU may have been the limit in {text.counted(len(cells), 'cell')}"


def _no_outlier(a: Analysis) -> str:
    if most_alike(a.points) >= FEWEST_ALIKE:
        return "No host is unlike the others"
    return f"{text.counted(len(a.hosts), 'host')}: too few with equal drives to call one unlike the others"
