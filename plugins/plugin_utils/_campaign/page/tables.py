# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The tables of a report, once for the page and for Markdown: what their columns are, how their values are written, and which rows they have.

How much repeats vary, for each line of the table of all cells.
"""

from __future__ import annotations

import statistics
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import hosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text, costs, safety
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import backing_models, key_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS, Badge, Cell, Column, Table, figures, measured_cell
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import NOISE_GATE, is_noisy, pooled_noise
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import (
    NOTHING,
    amount,
    chance,
    confidence,
    counted,
    figure,
    listed,
    megabytes,
    money,
    share,
    size,
    span,
    times,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis, TableCell
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Result, WorkloadAnswer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison

#: Backing device, cell, direction and variant.
LineKey = t.Tuple[str, str, str, str]


def noise_of(points: t.Sequence[Point], classes: t.Mapping[str, str] | None = None) -> dict[LineKey, float]:
    """Standard deviation by mean of the IOPS of repeats, of several hosts the median; nothing of what was measured once."""
    models = backing_models(points, classes)
    groups: dict[LineKey, list[t.Any]] = {}
    for one in points:
        rates = [run.iops for run in one.runs if run.iops is not None]
        if len(rates) > 1 and one.direction != "sync" and not is_probe(one.cell):
            groups.setdefault((models[key_of(one)], one.cell, one.direction, one.variant), []).append(rates)
    pooled = {key: pooled_noise(values) for key, values in groups.items()}
    return {key: noise for key, noise in pooled.items() if noise is not None}


def noise_sentence(a: Analysis, noises: t.Mapping[LineKey, float]) -> str:
    """Over all cells."""
    if not noises:
        return "Noise is not known: nothing was measured twice."
    (_model, cell, _direction, variant), most = max(noises.items(), key=lambda item: item[1])
    noisy = sum(is_noisy(noise) for noise in noises.values())
    where = f"{cell} in {variant}" if len(a.variants) > 1 else cell
    return (
        f"Noise is the standard deviation of the repeats by their mean: {share(statistics.median(noises.values()), 1)} in the median, "
        f"at most {share(most, 1)} ({where}); "
        f"{noisy or 'none'} of {len(noises)} values {'is' if noisy == 1 else 'are'} noisy, with more than {share(NOISE_GATE)}."
    )


#: Behind what is claimed of a variant that no host measured beside the baseline.
OTHER_HOSTS = ", on different hosts"

_BADGES = {safety.KEEPS: Badge("survives", "durable"), safety.LOSES: Badge("can lose data", "at_risk"), safety.UNKNOWN: Badge("unknown", "unknown")}
_NOISY = Badge("noisy", "unknown")


def tables_of(a: Analysis) -> dict[str, Table]:
    """Every table by its name; those without rows too."""
    tables = (
        _answer(a),
        _comparison(a),
        Table("searches", _SEARCHES, a.searches),
        Table("sums", [*_WHERE_ADDED, *(_variant_column(a, place) for place in range(len(a.variants)))], a.sums, most=300),
        Table("collection", _COLLECTION, a.collection),
        Table("cpu", _CPU, a.cpu),
        Table("outliers", _OUTLIERS, a.outliers, rest="and {} more, in the CSV."),
        Table("hosts", _HOSTS, hosts.host_rows(a) if len(a.hosts) > 1 else (), most=len(a.hosts)),
        _costs(a),
        Table("wear", _WEAR, a.wear),
        Table("differences", _differences(a), a.differences, rest="and {} more settings."),
        Table("power_loss", _POWER_LOSS, a.power_loss),
        Table("environment", _ENVIRONMENT, a.environment),
    )
    return {one.name: one for one in tables}


def _named(title: str, name: str, style: str = "", *, is_head: bool = False) -> Column:
    """Text that a row has under this name."""
    return Column(title, lambda row: getattr(row, name) or NOTHING, style=style, is_head=is_head)


# -- the answer


class _Line(t.NamedTuple):
    """One variant of one workload of one class of hosts."""

    one: WorkloadAnswer
    result: Result

    @property
    def is_baseline(self) -> bool:
        return self.result.variant == self.one.baseline

    @property
    def interval(self) -> str | Cell:
        found = self.result.comparison
        if found is None or found.interval is None:
            return NOTHING
        return Cell(span(found.interval.low, found.interval.high), (confidence(found.interval.confidence),))

    @property
    def claim(self) -> str:
        result = self.result
        if result.comparison is None:
            return f"not comparable: {result.reason}" if result.reason else "baseline"
        return f"{result.verdict.replace('_', ' ')}{'' if result.same_hosts else OTHER_HOSTS}"


def _noise_notes(noise: float | None) -> tuple[str | Badge, ...]:
    return () if noise is None else (f"noise {share(noise, 1)}", *((_NOISY,) if is_noisy(noise) else ()))


def _variant_of(line: _Line) -> Cell:
    result = line.result
    measured = f"{counted(len(result.hosts), 'host')}, {counted(result.repeats, 'repeat')}"
    return Cell(result.variant, (measured, *_noise_notes(result.noise)), "best" if result.variant == line.one.recommended else "")


def _workload_of(line: _Line) -> Cell:
    return Cell(answer_text.workload_name(line.one), (f"{answer_text.noun(line.one.first, line.one.question.direction)}s",))


def _limit_of(result: Result) -> Cell:
    return Cell(result.limit.name, (result.limit.text,) if result.limit.text else ()) if result.limit else Cell(NOTHING)


def _as_it_is(value: t.Any) -> t.Any:
    return value


def _answer(a: Analysis) -> Table:
    lines = [_Line(one, result) for one in a.answer.workloads for result in one.results]
    has_classes = len({line.one.host_class.label for line in lines}) > 1
    compared = [
        Column(
            f"against {a.answer.baseline}",
            lambda line: "1 x" if line.is_baseline else times(line.result.ratio if line.result.comparison else None),
            style="n ratio",
        ),
        Column("interval", lambda line: line.interval, _as_it_is, style="n"),
        Column("p", lambda line: line.result.comparison.p if line.result.comparison else None, chance, style="n"),
        Column("claim", lambda line: line.claim),
    ]
    columns = [
        *([Column("hosts", lambda line: line.one.host_class.label, style="group")] if has_classes else []),
        Column("workload", _workload_of, _as_it_is, style="group"),
        Column("variant", _variant_of, _as_it_is, is_head=True),
        Column("measured", lambda line: answer_text.value_of(line.one, line.result), style="n"),
        *(compared if len(a.variants) > 1 else []),
        *([Column("limit", lambda line: _limit_of(line.result), _as_it_is)] if any(line.result.limit for line in lines) else []),
        Column("power failure", lambda line: _BADGES[line.result.acknowledged], Cell),
        Column("device loss", lambda line: _BADGES[line.result.safety.device_loss], Cell),
    ]
    return Table("answer", columns, lines, has_cards=True, most=len(lines))


# -- every cell


def _compared_cell(cell: TableCell | None, noise: float | None, ratio: tuple[str, ...]) -> Cell:
    """:param ratio: how it compares with the baseline."""
    if cell is None:
        return Cell(NOTHING)
    written = megabytes if cell.is_sequential else figure
    between = f"{written(cell.low)} to {written(cell.high)}, {counted(cell.hosts, 'host')}" if cell.hosts > 1 else ""
    marks = [Badge(cell.verdict, cell.verdict)] if cell.verdict != "durable" else []
    marks += [Badge(cell.state, "unknown")] if cell.state not in ("ok", "noisy") else []
    return measured_cell(cell, *ratio, *_noise_notes(noise), *marks, between=between, style="best" if cell.is_better else "risky" if cell.is_risky else "")


def _ratio_notes(cell: TableCell | None) -> tuple[str, ...]:
    if cell is None or cell.comparison is None:
        return (f"not comparable: {cell.reason}",) if cell is not None and cell.reason else ()
    found: Comparison = cell.comparison
    interval = f" ({span(found.interval.low, found.interval.high)})" if found.interval else ""
    return f"{times(cell.ratio)}{interval}", f"{found.verdict.replace('_', ' ')}{'' if cell.same_hosts else OTHER_HOSTS}"


def _comparison(a: Analysis) -> Table:
    noises = noise_of(a.points, a.answer.classes)

    def measured(place: int) -> Column:
        key = a.variants[place]

        def cell(line: t.Any) -> Cell:
            found = line.cells[place]
            ratio = () if key == a.answer.baseline else _ratio_notes(found)
            return _compared_cell(found, noises.get((line.model, line.cell, line.direction, key)), ratio)

        return Column(key, cell, _as_it_is, style="n ratio")

    columns = [
        Column("workload", lambda line: Cell(line.cell, (line.workload,)), _as_it_is, style="group"),
        _named("direction", "direction", "group"),
        *([_named("backing device", "model", "group")] if len({line.model for line in a.table}) > 1 else []),
        *map(measured, range(len(a.variants))),
    ]
    return Table(
        "comparison",
        columns,
        a.table,
        has_cards=True,
        most=len(a.table),
        attributes=lambda line: {"data-direction": line.direction, "data-model": line.model, **({"data-part": "yes"} if line.is_part else {})},
    )


def _variant_column(a: Analysis, place: int) -> Column:
    def cell(line: t.Any) -> Cell:
        row = line.cells[place]
        return measured_cell(row, *([Badge(row.state, "unknown")] if row is not None and row.state != "ok" else []))

    return Column(a.variants[place], cell, _as_it_is, style="n")


_WHERE_ADDED = (_named("added", "who", "who", is_head=True), _named("cell", "cell"), _named("direction", "direction"))

_SEARCHES = (
    _named("search", "cell", is_head=True),
    _named("variant", "variant"),
    _named("limit", "limit"),
    Column("answer", lambda one: ", ".join(f"{said.replace('_', ' ')} ({counted(count, 'time')})" for said, count in one.answers)),
    *figures(("load", lambda one: f"{one.over} {figure(one.value)}", str), ("IOPS", lambda one: one.iops, figure)),
)

_COLLECTION = (
    _named("cell", "cell", is_head=True),
    _named("block size", "block"),
    _named("variant", "variant"),
    _named("model", "model"),
    *figures(
        ("hosts", lambda one: one.hosts, str),
        ("rate", lambda one: one.rate, lambda rate: f"{size(rate)}/s"),
        ("from", lambda one: one.low, size),
        ("to", lambda one: one.high, size),
    ),
    Column("shown by", lambda one: ", ".join(one.shown_by)),
)

_CPU = (
    _named("cell", "cell", is_head=True),
    _named("direction", "direction"),
    _named("variant", "variant"),
    *figures(
        ("rate", lambda one: f"{one.rate.text(one.iops)} {one.rate.unit}", str),
        ("CPU of a thread of fio", lambda one: one.fio, amount),
        ("CPUs of the host busy", lambda one: one.busy, amount),
    ),
    Column("hosts", lambda one: f"{len(one.hosts)} of {one.of}: {listed(one.hosts, 3)}", style="wrap"),
)

_OUTLIERS = (
    _named("host", "host", is_head=True),
    *figures(("by the median of like hosts", lambda one: one.scores[0].ratio, times)),
    Column("where it is farthest", lambda one: one.scores[0].cell),
    *figures(("cells", lambda one: len(one.scores), str)),
    Column(
        "facts that differ (the others)",
        lambda one: "; ".join(f"{fact.fact}: {fact.value} ({fact.usual})" for fact in one.differences) or "none that is known",
        style="wrap",
    ),
)

#: Of the rows of :func:`hosts.host_rows`, which the script of the page prints.
_HOSTS = tuple(
    Column(title, lambda row, place=place: NOTHING if row[place] in (None, "") else row[place], style="n" if place > 3 else "")
    for place, title in enumerate(("host", "drives", "verdict", "outlier", "by the median of like hosts", "cells measured", "cells not ok"))
)

_WEAR = (
    _named("model", "model", is_head=True),
    *figures(
        ("drives", lambda one: one.drives, str),
        ("written meanwhile", lambda one: one.written, size),
        ("endurance spent", lambda one: one.used, amount),
        ("most worn now", lambda one: one.worn, amount),
        ("hottest", lambda one: one.hottest, lambda value: amount(value, "°C")),
    ),
    Column("failing", lambda one: listed(one.failing) or "none"),
)

_POWER_LOSS = (
    _named("host", "host", is_head=True),
    Column("verdict", lambda one: Badge(one.verdict, one.verdict), Cell),
    _named("cuts", "sentence", "wrap"),
    _named("contradiction", "contradiction", "wrap"),
    _named("target", "target", "wrap"),
    _named("written with", "load"),
    Column("drives", lambda one: listed(one.models) or NOTHING, style="wrap"),
    _named("test", "test"),
)

_ENVIRONMENT = (
    Column("what", lambda one: one[0], is_head=True),
    Column("value (hosts)", lambda one: ", ".join(f"{value} ({count})" for value, count in one[1]), style="wrap"),
)


def _differences(a: Analysis) -> list[Column]:
    values = [Column(name, lambda one, place=place: one.values[place], style="wrap") for place, name in enumerate(a.variants)]
    return [_named("setting", "label", is_head=True), *values]


def _costs(a: Analysis) -> Table:
    """A row is its label, and what every variant has in it."""

    def paid(value: float | None) -> str:
        return money(value, a.currency)

    rows = [
        ("price of a host, as given", [", ".join(money(price, a.currency, as_given=True) for price in one.prices) for one in a.costs]),
        ("capacity of a host", [", ".join(map(size, one.capacities)) or NOTHING for one in a.costs]),
        ("per TB", [paid(one.per_tb) for one in a.costs]),
    ]
    has_classes = len({one.host_class.label for one in a.answer.workloads}) > 1
    for key in costs.keys_of(a.answer):
        rate = a.rates.get((key.cell, key.direction), IOPS)
        label = f"per {rate.unit} of {key.cell} ({key.direction}){f', {key.label}' if has_classes else ''}"
        rows.append((label, [paid(None if (price := one.per_iops.get(key)) is None else price / rate.scale) for one in a.costs]))
    variants = [
        Column(one.variant, lambda row, place=place: row[1][place], style="n", about=f"{counted(one.hosts, 'host')} with a price")
        for place, one in enumerate(a.costs)
    ]
    return Table("costs", [Column("what", lambda row: row[0], is_head=True), *variants], rows if a.costs else (), most=len(rows))
