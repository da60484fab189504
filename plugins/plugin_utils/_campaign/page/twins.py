# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as Markdown for a ticket, and as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import operator
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import commands, headings, hosts, page
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.tables import noise_of, noise_sentence, tables_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import conditions, costs
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import percentile_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import block_name, load_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import columns as columns_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Column, Table, markdown_lines, markdown_table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import differing_keys
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import known, spread_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import count, counted, figure, latency, listed, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import LoadValue
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

_MOST_LINES = 100

#: Of the distribution of latencies.
_PERCENTS = (50.0, 90.0, 99.0, 99.9, 99.99)

# At the beginning, or behind what separates cells in some countries; the wide forms count in others.
_FORMULA = re.compile(r"(^|[;\t\r\n])([\s\"']*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def markdown(a: Analysis, folder: str = "") -> str:
    """What a reader without a browser needs: the sections of the page, in its order, with numbers for its charts.

    :param folder: what the command to make it again should name; the name of the campaign by default.
    """
    drawn = page.drawn_of(a)
    titles = headings.titles_of(a)
    tables = tables_of(a)
    sections = (
        (
            "answer",
            [*markdown_table(tables["answer"]), *_items("Not deciding:", [f"{one.cell} ({one.direction}): {one.reason}" for one in a.answer.excluded])]
            or ["No cell decides."],
        ),
        ("comparison", _comparison(a, tables)),
        ("together", [*markdown_table(tables["sums"]), *_items("", page.sum_notes_of(a))] if a.sums else []),
        ("curves", _curves(a)),
        ("heat", _block_sizes(a)),
        ("series", _series(a, drawn, tables)),
        ("latency", _latency(a)),
        ("rounds", [f"- {escaped(f'{one.host}, {one.cell} in {one.variant}: {one.sentence}')}" for one in a.rounds]),
        ("cpu", markdown_table(tables["cpu"])),
        ("hosts", _hosts(a, tables)),
        ("costs", [*markdown_table(tables["costs"]), "", costs.HOSTS_NOTE] if a.costs else []),
        ("wear", markdown_table(tables["wear"])),
        ("problems", [f"- {escaped(one.where)}: {escaped(one.text)}" for one in a.problems]),
        ("stacks", _stacks(a, tables)),
        ("power_loss", markdown_table(tables["power_loss"])),
        ("environment", markdown_table(tables["environment"])),
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
    lines = [f"# Campaign {escaped(a.campaign)}", "", *(escaped(one) for one in (*a.answer.sentences, *a.conclusions)), ""]
    lines += [f"**{escaped(one)}**\n" for one in page.warnings_of(a)]
    lines_of_variants = [(name, conditions.variant_line(a.differences, place)) for place, name in enumerate(a.variants)] if len(a.variants) > 1 else []
    lines += [f"- {escaped(f'{name}: {line}')}" for name, line in lines_of_variants if line]
    lines += [""] if any(line for _name, line in lines_of_variants) else []
    return [*lines, f"{counted(len(a.hosts), 'host')}, {counted(len(a.variants), 'variant')}; measurements: {states}. Report of {a.made}.", ""]


def _items(title: str, sentences: t.Sequence[str]) -> list[str]:
    return ["", *([title, ""] if title else []), *(f"- {escaped(one)}" for one in sentences)] if sentences else []


def _titled(title: str, table: Table) -> list[str]:
    return ["", f"### {title}", "", *markdown_table(table)] if table.rows else []


def _comparison(a: Analysis, tables: t.Mapping[str, Table]) -> list[str]:
    whole = tables["comparison"]
    whole = dataclasses.replace(whole, rows=[line for line in whole.rows if not line.is_part])
    note = percentile_note(whole.rows)
    sentences = ["", escaped(noise_sentence(a, noise_of(a.points, a.answer.classes))), *(["", note] if note else [])]
    return [*markdown_table(whole), *sentences, *_titled("Most load under a latency limit", tables["searches"])]


def _hosts(a: Analysis, tables: t.Mapping[str, Table]) -> list[str]:
    strips = [f"- {escaped(one.title)}" for one in hosts.strips(a)]
    return [*strips, *_titled("What is different about them", tables["outliers"]), *_titled("All hosts", tables["hosts"])]


def _curves(a: Analysis) -> list[str]:
    lines: list[str] = []
    for one in a.curves:
        lines += [f"### {escaped(one.title)}", ""]
        points = {curve.variant: {load_name(value, one.load): value for value in curve.values} for curve in one.curves}
        loads = list(dict.fromkeys(name for values in points.values() for name in values))
        heads = [one.load, *(f"{variant}: {one.rate.unit}, {one.latency_name}" for variant in points)]
        rows = ([load, *(_load_point(values.get(load)) for values in points.values())] for load in loads)
        lines += [*markdown_lines(heads, rows), "", *([escaped(one.note), ""] if one.note else [])]
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
            lines += [*markdown_lines([label, *(f"{group.load} {load}" for load in group.loads)], rows), ""]
        lines += [*(f"- {escaped(title)}" for title in group.titles), ""]
    return lines


def _series(a: Analysis, drawn: page.Drawn, tables: t.Mapping[str, Table]) -> list[str]:
    kinds = ", ".join(f"{count} {'not classified' if kind == 'unknown' else kind}" for kind, count in a.kinds)
    of = f" (those that vary most of {count(a.series_total)})" if a.series_total > a.series_looked_at else ""
    lines = (
        [f"Series that were analysed one by one: {count(a.series_looked_at)}{of}: {kinds}{f'; {a.stalled} with stalls' if a.stalled else ''}.", ""]
        if a.series_looked_at
        else []
    )
    lines += [f"- {escaped(chart.title)}" for chart in [*(drawn.bands.choices if drawn.bands else []), *drawn.series]]
    return [*lines, *_titled("Garbage collection", tables["collection"])]


def _latency(a: Analysis) -> list[str]:
    known = [one for one in a.distributions if one.values]
    if not known:
        return []
    heads = ["hosts", "cell", "direction", "variant", "I/Os", *(f"p{percent:g}" for percent in _PERCENTS)]
    rows = (
        [one.who, one.cell, one.direction, one.variant, count(one.total), *(latency(one.at(percent)) for percent in _PERCENTS)]
        for one in known
    )  # fmt: skip
    return markdown_lines(heads, rows)


def _stacks(a: Analysis, tables: t.Mapping[str, Table]) -> list[str]:
    lines = [*_titled("What was different", tables["differences"])[1:], *([""] if a.differences else [])]
    for one in a.stacks[:_MOST_LINES]:
        lines.append(f"- {escaped(f'{one.variant} on {listed(one.hosts, 3)}: {one.verdict_before}, afterwards {one.verdict_after}. {one.reason}')}")
        lines += [f"  - changed: {escaped(f'{layer} {key}: {before}, afterwards {after}')}" for layer, key, before, after in one.changed]
        moved = {(layer, key) for layer, key, _before, _after in one.changed}
        lines += [f"  - {escaped(f'{layer} {key}: {value}')}" for layer, key, value in one.settings if (layer, key) not in moved]
    return lines


def _commands(a: Analysis, folder: str) -> list[str]:
    lines = [f"- {escaped(note)}" for note in commands.measuring_notes(a)]
    suite = commands.suite_text(a)
    if suite:
        lines += ["", f"### {commands.SUITE_FILE}: the cells as they were measured", "", *_code(suite)]
    lines += ["", "### Measure each variant", "", *_code("\n".join(command for _variant, command in commands.measuring_commands(a)))]
    lines += ["", "### Compare it with this campaign", "", *_code(commands.comparing_command(folder))]
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
    columns = [one for one in (*_fields_of(a), *columns_of.MEASURED, *_more_fields_of(a)) if one.field]
    writer.writerow([one.field for one in columns])
    for point in a.points:
        writer.writerow([_field(value) if isinstance(value := one.value(point), str) else "" if value is None else value for one in columns])
    return file.getvalue()


def _fields_of(a: Analysis) -> list[Column]:
    """What a line is about."""
    values: dict[str, t.Callable[[Point], t.Any]] = {"campaign": lambda _point: a.campaign}
    values |= {name: operator.attrgetter(name) for name in ("host", "variant", "cell", "direction", "state", "verdict")}
    named = {"model": "model", "firmware": "firmware", "workload_rw": "rw", "bs": "bs", "iodepth": "iodepth", "numjobs": "numjobs"}
    values |= {name: operator.attrgetter(f"first.{source}") for name, source in named.items()}
    values["repeats"] = lambda point: len(point.runs)
    return [Column("", value, field=name) for name, value in values.items()]


def _more_fields_of(a: Analysis) -> list[Column]:
    """How far its repeats are apart, and how it compares."""
    out = {one.host for one in a.outliers}
    baseline = {(one.host, one.cell, one.direction): one for one in a.points if one.variant == a.answer.baseline}
    safety = {one.name: one.safety for one in a.answer.variants}
    results = {
        (host, one.question.cell, one.question.direction, result.variant): (result.limit or "", one.because if result.variant == one.recommended else "")
        for one in a.answer.workloads
        for result in one.results
        for host in one.host_class.hosts
    }

    def cause(point: Point) -> tuple[t.Any, str | None]:
        return results.get((point.host, point.cell, point.direction, point.variant), ("", ""))

    def iops(point: Point) -> list[float]:
        return known(run.iops for run in point.runs)

    def acknowledged(point: Point) -> str:
        needs_no_flush = point.direction in ("write", "mixed", "trim") and not point.first.synced
        return safety[point.variant].acknowledged(needs_no_flush=needs_no_flush)

    values: dict[str, t.Callable[[Point], t.Any]] = {
        "latency_samples": lambda point: point.samples,
        "percentiles_hidden": lambda point: " ".join(point.hidden),
        "outlier": lambda point: "yes" if point.host in out else "no",
        "iops_min": lambda point: min(iops(point), default=None),
        "iops_max": lambda point: max(iops(point), default=None),
        "iops_spread": lambda point: spread_of(iops(point)),
        "iops_ratio": lambda point: _ratio_of(point, baseline.get((point.host, point.cell, point.direction)), a.answer.keys),
        "power_failure": acknowledged,
        "device_loss": lambda point: safety[point.variant].device_loss,
        "limit": lambda point: str(cause(point)[0]),
        "because": lambda point: cause(point)[1],
    }
    return [Column("", value, field=name) for name, value in values.items()]


def _ratio_of(one: Point, first: Point | None, keys: t.Sequence[str]) -> float | None:
    """:returns: ``None`` if there is nothing to compare with, or what is not comparable."""
    if one.iops is None or first is None or not first.iops or differing_keys(first.runs, one.runs, keys):
        return None
    return one.iops / first.iops


@functools.lru_cache(maxsize=65_536)
def _field(value: str) -> str:
    """Text that no spreadsheet takes for a formula, wherever it splits a line into cells."""
    return _FORMULA.sub(r"\1'\2", value)
