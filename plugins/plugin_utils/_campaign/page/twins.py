# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as Markdown for a ticket, and as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import functools
import io
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import commands, headings, hosts, noise, page
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text, conditions, costs
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import HIDDEN, percentile_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import block_name, load_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import differing_keys
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import spread_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import chance, confidence, counted, figure, latency, listed, size, span, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import LoadValue
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

_MOST_LINES = 100

#: Of the distribution of latencies.
_PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)

# At the beginning, or behind what separates cells in some countries; the wide forms count in others.
_FORMULA = re.compile(r"(^|[;\t\r\n])([\s\"']*[=+\-@\uff1d\uff0b\uff0d\uff20])")

#: Behind what is claimed of a variant that no host measured beside the baseline.
OTHER_HOSTS = ", on different hosts"

_COLUMNS = (
    "campaign", "host", "variant", "cell", "direction", "state", "verdict", "model", "firmware", "workload_rw", "bs", "iodepth", "numjobs", "repeats",
    "iops", "bandwidth_bytes_per_second", *(f"{one.name}_ns" for one in SHOWN), "latency_samples",
    "percentiles_hidden", "outlier", "iops_min", "iops_max", "iops_spread", "iops_ratio", "power_failure", "device_loss",
)  # fmt: skip


def markdown(a: Analysis, folder: str = "") -> str:
    """What a reader without a browser needs: the sections of the page, in its order, with numbers for its charts.

    :param folder: what the command to make it again should name; the name of the campaign by default.
    """
    drawn = page.drawn_of(a)
    titles = headings.titles_of(a)
    sections = (
        ("answer", _answer(a)),
        ("comparison", _comparison(a)),
        ("together", _sums(a)),
        ("curves", _curves(a)),
        ("heat", _block_sizes(a)),
        ("series", _series(a, drawn)),
        ("latency", _latency(a)),
        ("rounds", [f"- {escaped(f'{one.host}, {one.cell} in {one.variant}: {one.sentence}')}" for one in a.rounds]),
        ("cpu", _cpu(a)),
        ("hosts", _hosts(a)),
        ("costs", _costs(a)),
        ("wear", _wear(a)),
        ("problems", [f"- {escaped(one.where)}: {escaped(one.text)}" for one in a.problems] or ["None was found."]),
        ("stacks", _stacks(a)),
        ("power_loss", _power_loss(a)),
        ("environment", [f"- {label}: {escaped(', '.join(f'{value} ({count})' for value, count in values))}" for label, values in a.environment]),
        ("commands", _commands(a, folder or a.campaign)),
    )
    labels = dict(page.SECTIONS)
    parts = _beginning(a)
    for name, lines in sections:
        if lines:
            # The answer is above.
            finding = [] if name in ("answer", "commands", "environment") else [escaped(titles[name]) + ".", ""]
            parts += [f"## {labels[name]}", "", *finding, *lines, ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _beginning(a: Analysis) -> list[str]:
    states = ", ".join(f"{count} {state}" for state, count in a.states)
    lines = [f"# Campaign {escaped(a.campaign)}", "", *(escaped(one) for one in a.answer.sentences), ""]
    lines += [f"**{escaped(one)}**\n" for one in page.warnings_of(a)]
    lines_of_variants = [(name, conditions.variant_line(a.differences, place)) for place, name in enumerate(a.variants)] if len(a.variants) > 1 else []
    lines += [f"- {escaped(f'{name}: {line}')}" for name, line in lines_of_variants if line]
    lines += [""] if any(line for _name, line in lines_of_variants) else []
    return [*lines, f"{counted(len(a.hosts), 'host')}, {counted(len(a.variants), 'variant')}; measurements: {states}. Report of {a.made}.", ""]


def _answer(a: Analysis) -> list[str]:
    heads = [
        "hosts",
        "workload",
        "variant",
        "value",
        f"against {a.answer.baseline}",
        "interval",
        "p",
        "claim",
        "hosts and repeats",
        "noise",
        "power failure",
        "device loss",
    ]
    compared = heads[4:8]
    places = [place for place, head in enumerate(heads) if len(a.variants) > 1 or head not in compared]
    lines = _table([heads[place] for place in places], ([row[place] for place in places] for row in _results(a)))
    if a.answer.excluded:
        lines += ["", "Not deciding:", "", *(f"- {escaped(f'{one.cell} ({one.direction}): {one.reason}')}" for one in a.answer.excluded)]
    return lines


def _comparison(a: Analysis) -> list[str]:
    noises = noise.noise_of(a.points)
    heads = ["workload", "direction", "backing device"]
    for variant in a.variants:
        heads += [variant] if variant == a.answer.baseline else [variant, f"{variant} by {a.answer.baseline}"]
    lines = [line for line in a.table if not line.is_part]
    rows = []
    for line in lines:
        row = [line.cell, line.direction, line.model]
        for variant, cell in zip(a.variants, line.cells):
            row.append(_cell(cell, noises.get((line.model, line.cell, line.direction, variant))))
            row += [] if variant == a.answer.baseline else [_ratio(cell)]
        rows.append(row)
    note = percentile_note(lines)
    searches = [
        f"- {escaped(f'{one.cell} in {one.variant}: {one.limit}, {one.over} {figure(one.value)}, {figure(one.iops)} IOPS')}: "
        + ", ".join(f"{escaped(said.replace('_', ' '))} ({counted(count, 'time')})" for said, count in one.answers)
        for one in a.searches
    ]
    found = ["", "### Most load under a latency limit", "", *searches] if searches else []
    return [*_table(heads, rows), "", escaped(noise.noise_sentence(a, noises)), *(["", note] if note else []), *found]


def _sums(a: Analysis) -> list[str]:
    if not a.sums:
        return []
    rows = ([one.who, one.cell, one.direction, *map(_sum, one.cells)] for one in a.sums[:_MOST_LINES])
    return [*_table(["added", "cell", "direction", *a.variants], rows), "", *(f"- {escaped(one)}" for one in a.sum_notes)]


def _curves(a: Analysis) -> list[str]:
    lines: list[str] = []
    for one in a.curves:
        lines += [f"### {escaped(one.title)}", ""]
        points = {curve.variant: {load_name(value, one.load): value for value in curve.values} for curve in one.curves}
        loads = list(dict.fromkeys(name for values in points.values() for name in values))
        heads = [one.load, *(f"{variant}: IOPS, {one.latency_name}" for variant in points)]
        rows = ([load, *(_load_point(values.get(load)) for values in points.values())] for load in loads)
        lines += [*_table(heads, rows), "", *([escaped(one.note), ""] if one.note else [])]
    return lines


def _load_point(value: LoadValue | None) -> str:
    return "-" if value is None else f"{figure(value.iops)}, {latency(value.latency)}"


def _block_sizes(a: Analysis) -> list[str]:
    lines: list[str] = []
    for group in a.heat_groups:
        lines += [f"### {escaped(group.title)}", ""]
        grids = [(variant, grid, figure) for variant, grid in zip(group.variants, group.maps)] + [(one.title, one.ratios, times) for one in group.ratios]
        for label, grid, written in grids:
            rows = ([block_name(block), *(written(value) for value in row)] for block, row in zip(group.blocks, grid))
            lines += [*_table([label, *(f"{group.load} {load}" for load in group.loads)], rows), ""]
        lines += [*(f"- {escaped(title)}" for title in group.titles), ""]
    return lines


def _series(a: Analysis, drawn: page.Drawn) -> list[str]:
    kinds = ", ".join(f"{count} {'too short to say' if kind == 'unknown' else kind}" for kind, count in a.kinds)
    of = f" (those that vary most of {a.series_total:,})" if a.series_total > a.series_looked_at else ""
    lines = (
        [f"Series that were analysed one by one: {a.series_looked_at:,}{of}: {kinds}{f'; {a.stalled} with stalls' if a.stalled else ''}.", ""]
        if a.series_looked_at
        else []
    )
    lines += [f"- {escaped(chart.title)}" for chart in [*(drawn.bands.choices if drawn.bands else []), *drawn.series]]
    if a.collection:
        rows = (
            [one.cell, one.block, one.variant, one.model, str(one.hosts), f"{size(one.rate)}/s", size(one.low), size(one.high), ", ".join(one.shown_by)]
            for one in a.collection
        )
        lines += ["", "### Garbage collection", "", *_table(["cell", "block size", "variant", "model", "hosts", "rate", "from", "to", "shown by"], rows)]
    return lines


def _latency(a: Analysis) -> list[str]:
    known = [one for one in a.distributions if one.values]
    if not known:
        return []
    heads = ["hosts", "cell", "direction", "variant", "I/Os", *(f"p{percent:g}" for percent in _PERCENTS)]
    rows = (
        [one.who, one.cell, one.direction, one.variant, f"{one.total:,}", *(latency(one.at(percent)) for percent in _PERCENTS)]
        for one in known
    )  # fmt: skip
    return _table(heads, rows)


def _cpu(a: Analysis) -> list[str]:
    heads = ["cell", "direction", "variant", "IOPS", "CPU of a thread of fio", "CPUs of the host busy", "hosts"]
    rows = [
        [
            one.cell,
            one.direction,
            one.variant,
            figure(one.iops),
            _percents(one.fio),
            _percents(one.busy),
            f"{len(one.hosts)} of {one.of}: {listed(one.hosts, 3)}",
        ]
        for one in a.cpu
    ]
    return _table(heads, rows) if rows else []


def _percents(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} %"


def _hosts(a: Analysis) -> list[str]:
    rows = [
        [one.host, times(one.scores[0].ratio), one.scores[0].cell, str(len(one.scores)),
         "; ".join(f"{fact.fact}: {fact.value} ({fact.usual})" for fact in one.differences) or "none that is known"]
        for one in a.outliers
    ]  # fmt: skip
    heads = ["host", "by the median of like hosts", "where it is farthest", "cells", "facts that differ (the others)"]
    differing = ["", "### What is different about them", "", *_table(heads, rows)] if rows else []
    every = [[str(value) if value not in (None, "") else "-" for value in row] for row in hosts.host_rows(a)] if len(a.hosts) > 1 else []
    heads = ["host", "drives", "verdict", "outlier", "by the median of like hosts", "cells measured", "cells not ok"]
    all_of_them = ["", "### All hosts", "", *_table(heads, every)] if every else []
    return [*(f"- {escaped(one.title)}" for one in hosts.strips(a)), *differing, *all_of_them] or ["-"]


def _costs(a: Analysis) -> list[str]:
    if not a.costs:
        return []
    rows = [
        ["price of a host, as given", *(", ".join(costs.money(price, a.currency, as_given=True) for price in one.prices) for one in a.costs)],
        ["capacity of a host", *(", ".join(size(room) for room in one.capacities) or "-" for one in a.costs)],
        ["per TB", *(costs.money(one.per_tb, a.currency) for one in a.costs)],
    ]
    for key in costs.keys_of(a.answer):
        label = f"per IOPS of {key.cell} ({key.direction}), {key.label}"
        rows.append([label, *(costs.money(one.per_iops.get(key), a.currency) for one in a.costs)])
    return [*_table(["what", *(one.variant for one in a.costs)], rows), "", costs.HOSTS_NOTE]


def _wear(a: Analysis) -> list[str]:
    rows = [
        [one.model, str(one.drives), size(one.written), f"{one.used:.2g} %" if one.used is not None else "-",
         f"{one.worn:.3g} %" if one.worn is not None else "-", f"{one.hottest:.0f} °C" if one.hottest is not None else "-", listed(one.failing) or "none"]
        for one in a.wear
    ]  # fmt: skip
    return _table(["model", "drives", "written meanwhile", "endurance spent", "most worn now", "hottest", "failing"], rows) if rows else []


def _power_loss(a: Analysis) -> list[str]:
    rows = [[one.host, one.verdict, one.sentence, one.contradiction or "-", one.target, one.load, listed(one.models) or "-", one.test] for one in a.power_loss]
    return _table(["host", "verdict", "cuts", "contradiction", "target", "written with", "drives", "test"], rows) if rows else []


def _stacks(a: Analysis) -> list[str]:
    lines = []
    if a.differences:
        lines += ["### What was different", "", *_table(["setting", *a.variants], ([one.label, *one.values] for one in a.differences[:_MOST_LINES])), ""]
    for one in a.stacks[:_MOST_LINES]:
        lines.append(f"- {escaped(f'{one.variant} on {listed(one.hosts, 3)}: {one.verdict_before}, afterwards {one.verdict_after}. {one.reason}')}")
        lines += [f"  - changed: {escaped(f'{layer} {key}: {before}, afterwards {after}')}" for layer, key, before, after in one.changed]
        moved = {(layer, key) for layer, key, _before, _after in one.changed}
        lines += [f"  - {escaped(f'{layer} {key}: {value}')}" for layer, key, value in one.settings if (layer, key) not in moved]
    return lines or ["No measurement says what its stack was."]


def _commands(a: Analysis, folder: str) -> list[str]:
    lines = [f"- {escaped(note)}" for note in commands.measuring_notes(a)]
    suite = commands.suite_text(a)
    if suite:
        lines += ["", f"### {commands.SUITE_FILE}: the cells as they were measured", "", *_code(suite), ""]
        lines += ["### Measure each variant", "", *_code("\n".join(command for _variant, command in commands.measuring_commands(a)))]
    else:
        lines += ["", "The plans of the campaign have no jobs, so there is no suite to measure it again."]
    lines += ["", "### Make this report again", "", *_code(commands.report_command(folder, a))]
    if a.jobs:
        lines += ["", "What fio was given in each cell (fio --output-format=json+ job.fio):"]
    for one in a.jobs:
        lines += ["", f"- {escaped(one.cell)}, as {escaped(one.host)} got it:", "", *(f"    {line}" for line in _code(one.text))]
    return lines


def _code(content: str) -> list[str]:
    """As an indented block, which no text can end."""
    return ["    " + "".join(sign if sign.isprintable() else "?" for sign in line) for line in content.split("\n") if line]


def csv_text(a: Analysis) -> str:
    """One line for each direction of each cell of each host; an empty field is what was not measured, or a percentile with too few samples."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    out = {one.host for one in a.outliers}
    baseline = {(one.host, one.cell, one.direction): one for one in a.points if one.variant == a.answer.baseline}
    safety = {one.name: one.safety for one in a.answer.variants}
    for one in a.points:
        first = one.first
        plain = [a.campaign, one.host, one.variant, one.cell, one.direction, one.state, one.verdict, first.model, first.firmware, first.rw, first.bs]
        numbers = [first.iodepth, first.numjobs, len(one.runs), one.iops, one.bandwidth, *(one.latency[rank.name] for rank in SHOWN), one.samples]
        iops = [run.iops for run in one.runs if run.iops is not None]
        ratio = _ratio_of(one, baseline.get((one.host, one.cell, one.direction)), a.answer.keys)
        more = [min(iops, default=None), max(iops, default=None), spread_of(iops), ratio]
        kept = safety[one.variant]
        needs_no_flush = one.direction in ("write", "mixed", "trim") and not first.synced
        writer.writerow(
            [
                *map(_field, plain),
                *("" if value is None else value for value in numbers),
                " ".join(one.hidden),
                "yes" if one.host in out else "no",
                *("" if value is None else value for value in more),
                kept.acknowledged(needs_no_flush=needs_no_flush),
                kept.device_loss,
            ]
        )
    return file.getvalue()


def _ratio_of(one: Point, first: Point | None, keys: t.Sequence[str]) -> float | None:
    """:returns: ``None`` if there is nothing to compare with, or what is not comparable."""
    if one.iops is None or first is None or not first.iops or differing_keys(first.runs, one.runs, keys):
        return None
    return one.iops / first.iops


@functools.lru_cache(maxsize=65_536)
def _field(value: str | None) -> str:
    """Text that no spreadsheet takes for a formula, wherever it splits a line into cells."""
    content = "" if value is None else str(value)
    return _FORMULA.sub(r"\1'\2", content)


def _table(heads: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(escaped(cell) for cell in row)} |" for row in (heads, *rows)]
    return [lines[0], f"|{' --- |' * len(heads)}", *lines[1:]]


def _results(a: Analysis) -> t.Iterator[list[str]]:
    """One line for each variant of each workload of each class of hosts."""
    for one in a.answer.workloads:
        for result in one.results:
            found = result.comparison
            interval = f"{span(found.interval.low, found.interval.high)}, {confidence(found.interval.confidence)}" if found and found.interval else "-"
            ratio = "1 x" if result.variant == a.answer.baseline else times(result.ratio)
            name = result.variant + (" (recommended)" if result.variant == one.recommended else "")
            claim = f"not comparable: {result.reason}" if result.reason else result.verdict.replace("_", " ")
            claim += "" if result.same_hosts else OTHER_HOSTS
            value = answer_text.value_of(one, result)
            noise = "-" if result.noise is None else f"{result.noise:.1%}{' noisy' if result.is_noisy else ''}"
            measured = f"{counted(len(result.hosts), 'host')}, {counted(result.repeats, 'repeat')}"
            safety = [result.acknowledged, result.safety.device_loss]
            yield [
                one.host_class.label,
                answer_text.workload_name(one),
                name,
                value,
                ratio,
                interval,
                chance(found.p if found else None),
                claim,
                measured,
                noise,
                *safety,
            ]


def _sum(row: t.Any) -> str:
    if row is None:
        return "-"
    return f"{figure(row.iops)}, p99 {latency(row.latency['p99'])}{f' {row.state}' if row.state != 'ok' else ''}"


def _cell(cell: t.Any, vary: float | None) -> str:
    if cell is None:
        return "-"
    marks = "".join(f" {word}" for word in (cell.verdict if cell.verdict != "durable" else "", cell.state if cell.state not in ("ok", "noisy") else "") if word)
    about = "" if vary is None else f", noise {vary:.1%}{' noisy' if noise.is_noisy(vary) else ''}"
    between = f" ({figure(cell.iops_low)} to {figure(cell.iops_high)} on {counted(cell.hosts, 'host')})" if cell.hosts > 1 else ""
    return f"{figure(cell.iops)}{between}, p99 {latency(cell.latency['p99'])}{HIDDEN if 'p99' in cell.hidden else ''}{about}{marks}"


def _ratio(cell: t.Any) -> str:
    if cell is None or cell.comparison is None:
        return f"not comparable: {cell.reason}" if cell is not None and cell.reason else "-"
    found = cell.comparison
    interval = f" ({span(found.interval.low, found.interval.high)})" if found.interval else ""
    star = "★ " if cell.is_better else "☆ " if cell.is_risky else ""
    return f"{star}{times(cell.ratio)}{interval}, {found.verdict.replace('_', ' ')}{'' if cell.same_hosts else OTHER_HOSTS}"
