# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Everything in a report, as plain data. What draws it decides nothing.

The table of all cells: a line for each cell on each backing device, with every variant beside the baseline and what their comparison shows.
"""

from __future__ import annotations

import datetime
import typing as t
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import STATES, ResultsError, natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import parse_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import block_sizes, caveats, conclusions, costs, loads, problems, rounds
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import conditions as setup
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer, answer_of, is_allowed, needs_no_flush
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer_text import BENCHMARK, Repeats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.costs import Cost, Wear
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import UNSETTLED_MEAN, is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import Distribution
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.overview import brief_notes_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import backing_models, key_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import NamedSeries, Problem
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import USUAL_FACTS, Band, Rows, Series
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import SafetyOfHosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.added_bins import AddedBins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.aggregate import rows_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import HIDDEN, IOPS, rate_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS, keys_without
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import BY_NAME, SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point, Row, median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import OutlierHost
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import FEWEST, WORST_FIRST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult, of_hosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count, counted, latency, listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import Pairing
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison


@dataclass(frozen=True)
class TableCell:
    """One variant in one line: medians over ``hosts``; ``low`` and ``high`` of them, of IOPS or, if it ``is_sequential``, of bytes per second.

    :param latency: ns by percentile, of the added bins of several hosts, ``None`` where they cannot be added; ``verdict``: the worst of those hosts.
    :param hidden: percentiles that are not known because of too few I/Os.
    :param comparison: of the IOPS with the baseline; ``None`` for the baseline, and where ``reason`` is why there is none.
    :param is_better: whether it is shown to be better, on the same hosts, and keeps what the baseline keeps on them.
    :param is_risky: whether it is shown to be better and can lose what the baseline keeps.
    :param same_hosts: whether hosts were compared with themselves."""

    iops: float | None
    bandwidth: float | None
    low: float | None
    high: float | None
    latency: t.Mapping[str, float | None]
    hosts: int
    state: str
    verdict: str
    hidden: tuple[str, ...] = ()
    comparison: Comparison | None = None
    reason: str = ""
    is_better: bool = False
    is_risky: bool = False
    same_hosts: bool = True
    is_sequential: bool = False

    @property
    def ratio(self) -> float | None:
        found = self.comparison
        return None if found is None else found.ratio if found.ratio is not None else found.ratio_of_medians


@dataclass(frozen=True)
class TableLine:
    """One cell on one backing device in every variant, in the order of the variants; ``None`` where it was not measured."""

    model: str
    cell: str
    direction: str
    workload: str
    cells: tuple[TableCell | None, ...]
    is_part: bool = False


def lines_of(points: t.Sequence[Point], rows: Rows, answer: Answer, ignore: t.Sequence[str] = ()) -> t.Iterator[TableLine]:
    """Every line, cells in natural order."""
    models = backing_models(points, answer.classes)
    groups: dict[tuple[str, str, str], dict[str, list[Point]]] = {}
    for one in points:
        model = models[key_of(one)]
        groups.setdefault((one.cell, one.direction, model), {}).setdefault(one.variant, []).append(one)
    bins = AddedBins(rows.added)
    keys = keys_without(ignore)
    compare = _Comparisons(answer, keys, rows)
    for (cell, direction, model), by_variant in sorted(groups.items(), key=lambda item: (natural(item[0][0]), *item[0][1:])):
        line = []
        for variant in rows.variants:
            here = by_variant.get(variant)
            line.append(None if here is None else _cell(here, by_variant.get(answer.baseline), bins.percentiles(here) if len(here) > 1 else {}, compare))
        first, *_others = by_variant.values()
        typical = first[0].first
        yield TableLine(model, cell, direction, f"{loads.workload_of(typical)}{_load(typical)}", tuple(line), is_probe(cell))


def _lead(one: Measurement) -> str:
    """The metric of a line."""
    return "bandwidth" if one.is_sequential else "iops"


class _Comparisons:
    """Of the IOPS of variants, or their bytes per second where I/O is sequential, with the baseline; those of the answer are not made again."""

    def __init__(self, answer: Answer, keys: t.Sequence[str], rows: Rows) -> None:
        self.answer = answer
        self.disproved = rows.disproved
        self.unsettled = {(one.cell, one.direction) for one in answer.excluded if one.reason == UNSETTLED_MEAN}
        self._safety = SafetyOfHosts(rows)
        self._keys = keys
        self._known: dict[tuple[t.Any, ...], Pairing] = {}
        for one in answer.workloads:
            base = one.result(one.baseline)
            for result in one.results if base is not None and one.question.metric == _lead(one.first) else ():
                if base is not None and result.pairing is not None:
                    key = one.question.cell, one.question.direction, result.variant, frozenset(base.hosts), frozenset(result.hosts)
                    self._known[key] = result.pairing

    def pairing(self, baseline: t.Sequence[Point], here: t.Sequence[Point]) -> Pairing:
        """:param here: a variant in one cell; ``baseline``: likewise."""
        old, new = ({one.host: one.runs for one in side} for side in (baseline, here))
        known = self._known.get((here[0].cell, here[0].direction, here[0].variant, frozenset(old), frozenset(new)))
        return known or pair(METRICS[_lead(here[0].first)], old, new, self._keys, self.answer.levels)

    def keeps_as_much(self, baseline: t.Sequence[Point], here: t.Sequence[Point]) -> bool:
        """Whether a variant keeps what the baseline keeps, on the hosts at hand."""
        base, own = (self._safety.of(frozenset(one.host for one in side), side[0].variant) for side in (baseline, here))
        return is_allowed(own, base, needs_no_flush(here[0].direction, here[0].first))


def _cell(here: t.Sequence[Point], baseline: t.Sequence[Point] | None, merged: t.Mapping[str, float | None], compare: _Comparisons) -> TableCell:
    iops = [one.iops for one in here if one.iops is not None]
    in_order = here[0].first.is_sequential
    rates = [one.bandwidth for one in here if one.bandwidth is not None] if in_order else iops
    latency = merged if len(here) > 1 else {rank.name: here[0].latency.get(rank.name) for rank in SHOWN}
    variant = here[0].variant
    comparison, reason, better, keeps, same_hosts = None, "", False, True, True
    if baseline is not None and variant != compare.answer.baseline:
        if (here[0].cell, here[0].direction) in compare.unsettled:
            reason = UNSETTLED_MEAN
        else:
            found = compare.pairing(baseline, here)
            comparison, reason, same_hosts = found.comparison, found.reason, found.same_hosts
            better = same_hosts and found.verdict == "better"
            keeps = compare.keeps_as_much(baseline, here)
    return TableCell(
        iops=median(iops),
        bandwidth=median(one.bandwidth for one in here),
        low=min(rates, default=None),
        high=max(rates, default=None),
        is_sequential=in_order,
        latency=latency,
        hosts=len(here),
        state=max((one.state for one in here), key=STATES.index),
        verdict=_worst_verdict(here, compare.disproved),
        hidden=tuple(name for name, value in latency.items() if value is None and any(name in one.hidden for one in here)),
        comparison=comparison,
        reason=reason,
        is_better=better and keeps,
        is_risky=better and not keeps,
        same_hosts=same_hosts,
    )


def _worst_verdict(here: t.Sequence[Point], disproved: t.Container[str]) -> str:
    verdicts = {verdict or "unknown" for one in here for run in one.runs for verdict in (run.verdict_before, run.verdict_after)}
    verdicts |= {"unknown" for one in here if one.host in disproved}
    return next((one for one in ("at_risk", "unknown") if one in verdicts), "durable")


def _load(one: t.Any) -> str:
    parts = [counted(one.numjobs, "job") if one.numjobs else "", f"queue depth {one.iodepth}" if one.iodepth else ""]
    return "".join(f", {part}" for part in parts if part)


#: Series that are drawn one by one, and of one kind in one cell.
_MOST_DRAWN = 60
_MOST_ALIKE = 2


#: Of these kinds a few are drawn, to be seen at all.
_QUIET = ("steady", "unknown")


@dataclass(frozen=True)
class Options:
    """:param baseline: variant; empty: the first that was measured. :param decide_by: patterns of cells; none for the suite's choice.
    :param ignore: what may differ between variants that are compared. :param host_class: what distinguishes hosts.
    :param limit: ns; ``None``: chosen by workload. :param currency: printed before prices.
    :param levels: :param repeats: of :func:`answer.answer_of`. :param power_loss: results of power-loss tests."""

    baseline: str = ""
    decide_by: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    host_class: tuple[str, ...] = USUAL_FACTS
    limit: float | None = None
    prices: tuple[costs.Price, ...] = ()
    currency: str = ""
    levels: t.Mapping[int, float] | None = None
    repeats: Repeats = BENCHMARK
    power_loss: tuple[PowerLossResult, ...] = ()


@dataclass(frozen=True)
class SumLine:
    """One cell of several hosts, or of several targets, together, in every variant, in the order of the variants.

    :param who: whose rates are added.
    :param cells: ``None`` where they did not measure it.
    """

    who: str
    cell: str
    direction: str
    cells: tuple[Row | None, ...]


@dataclass(frozen=True)
class SearchResult:
    """What a search for the most load under a limit has found, over hosts.

    :param limit: such as ``p99 3 ms``; :param over: the option that was varied, ``value`` is of it.
    """

    cell: str
    variant: str
    limit: str
    answers: tuple[tuple[str, int], ...]
    over: str
    value: float | None
    iops: float | None


@dataclass(frozen=True)
class CollectionLine:
    """How fast drives of one model make room for writes of one block size. Rates in bytes per second.

    :param rate: median over hosts and repeats.
    :param shown_by: ``fall``, ``fill``, or both (``_fio/garbage_collection.py``).
    """

    cell: str
    block: str
    variant: str
    model: str
    hosts: int
    rate: float | None
    low: float
    high: float
    shown_by: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """One campaign. ``points`` is all of it that has numbers; the rest describes it.

    :param options: that it was made with.
    :param rates: what each cell and direction is counted in, as its series and bands are.
    :param not_ok: how many cells of each host are not ok in a repeat, also those without numbers.
    """

    campaign: str
    options: Options
    made: str
    hosts: tuple[str, ...]
    variants: tuple[str, ...]
    states: tuple[tuple[str, int], ...]
    not_ok: t.Mapping[str, int]
    answer: Answer
    table: tuple[TableLine, ...]
    sums: tuple[SumLine, ...]
    sum_notes: tuple[str, ...]
    searches: tuple[SearchResult, ...]
    curves: tuple[loads.CurveSet, ...]
    heat_maps: tuple[loads.HeatMap, ...]
    heat_groups: tuple[block_sizes.HeatGroup, ...]
    distributions: tuple[Distribution, ...]
    rounds: tuple[rounds.RoundsRun, ...]
    cpu: tuple[caveats.CpuLine, ...]
    cpu_note: str
    conclusions: tuple[str, ...]
    order_note: str
    chance_note: str
    rate_note: str
    figure_notes: tuple[str, ...]
    bands: tuple[Band, ...]
    series: tuple[NamedSeries, ...]
    series_looked_at: int
    series_total: int
    stalled: int
    collection: tuple[CollectionLine, ...]
    kinds: tuple[tuple[str, int], ...]
    outliers: tuple[OutlierHost, ...]
    stacks: tuple[setup.Stack, ...]
    differences: tuple[setup.Difference, ...]
    problems: tuple[Problem, ...]
    costs: tuple[Cost, ...]
    currency: str
    wear: tuple[Wear, ...]
    bytes_written: int | None
    power_loss: tuple[PowerLossResult, ...]
    environment: tuple[tuple[str, list[tuple[str, int]]], ...]
    jobs: tuple[setup.Job, ...]
    points: tuple[Point, ...]
    rates: t.Mapping[tuple[str, str], Rate] = field(default_factory=dict)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What the answer must be read with, in the terminal as in the report."""
        return tuple(filter(None, (self.order_note, self.cpu_note, self.rate_note, *self.figure_notes, self.chance_note)))


def analyse(
    rows: Rows,
    series: t.Sequence[Series],
    total: int,
    bands: t.Sequence[Band],
    folder: Path,
    options: Options,
    now: datetime.datetime | None = None,
    points: t.Sequence[Point] | None = None,
    distributions: t.Sequence[Distribution] = (),
) -> Analysis:
    """The whole analysis of a campaign.

    :param total: series that there are; ``series`` are those of them that vary most.
    :param points: of the rows, where they were put together already.
    :raises BadInput: for a baseline that is no variant of it.
    """
    variants = rows.variants
    if options.baseline and options.baseline not in variants:
        raise BadInput(f"There is no variant '{options.baseline}' in {rows.campaign}: give one of {', '.join(variants)} as the baseline.")
    points = rows.points() if points is None else points
    power_loss = of_hosts(options.power_loss, rows.hosts)
    rows = replace(rows, disproved=frozenset(one.host for one in power_loss if one.contradicts))
    rates = {(one.cell, one.direction): rate_of(one.first) for one in points}
    named = problems.named_series(series, rates)
    # Of what is too short nothing is known.
    told = [one for one in named if one.finding.kind != "unknown" or one.finding.count >= FEWEST]
    out = problems.outlier_hosts(rows, points)
    answer = answer_of(
        rows,
        points,
        baseline=options.baseline,
        decide_by=options.decide_by,
        doubtful=problems.doubtful_cells(named),
        ignore=options.ignore,
        facts=options.host_class,
        levels=options.levels,
        repeats=options.repeats,
    )
    stacks = tuple(setup.stacks_of(rows))
    heat_maps = tuple(loads.heat_maps(points, variants))
    cpu_lines = tuple(caveats.cpu_lines(points))
    written = [one.bytes_written for one in _once(rows) if one.bytes_written is not None]
    return Analysis(
        campaign=rows.campaign,
        options=options,
        made=(now or datetime.datetime.now(datetime.timezone.utc)).strftime("%Y-%m-%d %H:%M UTC"),
        hosts=tuple(rows.hosts),
        variants=tuple(variants),
        states=tuple(Counter(one.state for one in _once(rows)).most_common()),
        not_ok=Counter(host for host, _variant, _cell in {(one.host, one.variant, one.cell) for one in rows.measurements if one.state not in ("ok", "noisy")}),
        answer=answer,
        table=tuple(lines_of(points, rows, answer, options.ignore)),
        sums=tuple(_sum_lines(rows, variants)),
        sum_notes=tuple(brief_notes_of(rows.aggregates)),
        searches=tuple(_searches(rows)),
        curves=tuple(loads.curve_sets(points, variants, rows.added, options.limit, answer.keys, answer.levels)),
        heat_maps=heat_maps,
        heat_groups=tuple(block_sizes.groups_of(heat_maps, answer.baseline)),
        distributions=tuple(distributions),
        rounds=tuple(rounds.rounds_of(rows)),
        cpu=cpu_lines,
        cpu_note=caveats.cpu_sentence(cpu_lines, answer),
        conclusions=conclusions.conclusions_of(points, answer),
        order_note=caveats.order_sentence(points, answer),
        chance_note=caveats.chance_sentence(answer),
        rate_note=caveats.rate_sentence(answer),
        figure_notes=tuple(caveats.note_sentences(rows.measurements, answer)),
        bands=tuple(problems.band_in(one, rates.get((one.cell, one.direction), IOPS)) for one in bands),
        series=tuple(_to_draw(told)),
        series_looked_at=len(told),
        series_total=total - len(named) + len(told),
        collection=tuple(_collection(rows)),
        stalled=sum(bool(one.finding.stalls) for one in told),
        kinds=tuple(Counter(one.finding.kind for one in told).most_common()),
        outliers=out,
        stacks=stacks,
        differences=tuple(setup.differences_of(stacks, variants)),
        problems=tuple(problems.problems_of(rows, points, named, out, answer.incomparable)),
        costs=tuple(costs.costs_of(points, variants, options.prices, answer)),
        currency=options.currency,
        wear=tuple(costs.wear_of(rows)),
        bytes_written=sum(written) if written else None,
        power_loss=power_loss,
        environment=tuple(setup.environment_of(rows)),
        jobs=tuple(setup.jobs_of(rows, folder)),
        points=tuple(points),
        rates=rates,
    )


def percentile_note(table: t.Iterable[TableLine]) -> str:
    """Why some of the 99th percentiles of a table are not there; nothing if none is hidden."""
    hidden = sum("p99" in cell.hidden for line in table for cell in line.cells if cell is not None)
    if not hidden:
        return ""
    return (
        f"{HIDDEN} p99 is not shown of {counted(hidden, 'value')}: with fewer than {count(BY_NAME['p99'].needed)} I/Os in a repeat its rank would be known to "
        "less than half a percent. Measure longer, or with more load."
    )


def _once(rows: Rows) -> list[t.Any]:
    """Each measurement once, whatever its directions."""
    return list({(one.host, one.variant, one.cell, one.repeat): one for one in rows.measurements}.values())


def _sum_lines(rows: Rows, variants: t.Sequence[str]) -> list[SumLine]:
    """All hosts first, then groups, then the targets of each host."""
    groups: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows_of(rows.aggregates):
        if not is_probe(row.cell):
            groups.setdefault((row.host, row.cell, row.direction), {})[row.variant] = row
    in_order = {one.cell for one in rows.measurements if one.is_sequential}
    found = [
        SumLine(*key, tuple(replace(row, is_sequential=key[1] in in_order) if (row := by_variant.get(variant)) is not None else None for variant in variants))
        for key, by_variant in groups.items()
    ]
    return sorted(found, key=lambda one: (_breadth(one.who), natural(one.who), natural(one.cell), one.direction))


def _breadth(who: str) -> int:
    return 0 if who.startswith("all ") else 1 if who.startswith("group ") else 2


def _searches(rows: Rows) -> t.Iterator[SearchResult]:
    groups: dict[tuple[str, str], list[dict[str, t.Any]]] = {}
    for one in _once(rows):
        if one.search:
            try:
                reported = parse_json(one.search)
            except ResultsError:
                # Tables may have been copied from elsewhere.
                continue
            else:
                groups.setdefault((one.cell, one.variant), []).append(reported)
    for (cell, variant), found in sorted(groups.items()):
        numbers = {name: median(_number(one.get(name)) for one in found) for name in ("value", "iops")}
        answers = tuple(Counter(str(one.get("answer"))[:40] for one in found).most_common())
        limits = sorted({(plain(one.get("metric") or "latency", 20), _number(one.get("limit"))) for one in found}, key=str)
        limit = listed([f"{metric} {latency(value)}" for metric, value in limits])
        over = listed(sorted({plain(one.get("over") or "load", 20) for one in found}))
        yield SearchResult(cell, variant, limit, answers, over, numbers["value"], numbers["iops"])


def _number(value: t.Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _collection(rows: Rows) -> t.Iterator[CollectionLine]:
    """Where cells have shown garbage collection; those that were to measure it and did not record it in their notes."""
    groups: dict[tuple[str, str, str, str], list[t.Any]] = {}
    for one in _once(rows):
        if one.measured and one.collection_rate:
            groups.setdefault((one.cell, one.bs or "", one.variant, one.model or "unknown model"), []).append(one)
    for (cell, block, variant, model), found in sorted(groups.items(), key=lambda item: (natural(item[0][0]), item[0][1:])):
        rates = [one.collection_rate for one in found]
        shown_by = tuple(sorted({one.collection_shown_by or "" for one in found}))
        yield CollectionLine(cell, block, variant, model, len({one.host for one in found}), median(rates), min(rates), max(rates), shown_by)


def _to_draw(named: t.Sequence[problems.NamedSeries]) -> t.Iterator[problems.NamedSeries]:
    """The most important first: cliffs, swings, decays, drifts, steps, and then steady ones, a few of each cell; with stalls before those without."""
    drawn: Counter[tuple[str, ...]] = Counter()
    stalled_first = sorted(named, key=lambda one: not one.finding.stalls)
    for kind in (*WORST_FIRST, "unknown"):
        for one in stalled_first:
            key = (kind, one.series.cell, one.series.direction, one.series.variant)
            most = 0 if kind in _QUIET and sum(drawn.values()) >= 12 else 1 if kind in _QUIET else _MOST_ALIKE
            if one.finding.kind == kind and drawn[key] < most and sum(drawn.values()) < _MOST_DRAWN:
                drawn[key] += 1
                yield one
