# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The report as Markdown for a ticket, and as CSV for a spreadsheet."""

from __future__ import annotations

import csv
import io
import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import HIDDEN, percentile_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import (
    counted,
    duration,
    escaped,
    figure,
    listed,
    percent,
    size,
    span,
    times,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import spread_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis

_MOST_LINES = 100
# At the beginning, or behind what separates cells in some countries; the wide forms count in others.
_FORMULA = re.compile(r"(^|[;\t\r\n])([\s\"']*[=+\-@\uff1d\uff0b\uff0d\uff20])")

_COLUMNS = (
    "campaign", "host", "variant", "cell", "direction", "state", "verdict", "model", "firmware", "workload_rw", "bs", "iodepth", "numjobs", "repeats",
    "iops", "bandwidth_bytes_per_second", *(f"{one.name}_ns" for one in SHOWN), "latency_samples",
    "percentiles_hidden", "outlier", "iops_min", "iops_max", "iops_spread", "iops_ratio", "power_failure", "device_loss",
)  # fmt: skip


def markdown(a: Analysis) -> str:
    """What a reader without a browser needs, in the order of the page."""
    parts = [f"# Campaign {escaped(a.campaign)}", "", *(escaped(one) for one in a.answer.sentences), ""]
    states = ", ".join(f"{count} {state}" for state, count in a.states)
    parts += [f"{counted(len(a.hosts), 'host')}, {counted(len(a.variants), 'variant')}; measurements: {states}. Report of {a.made}.", ""]
    heads = ["hosts", "workload", "variant", "value", f"against {a.answer.baseline}", "interval", "claim", "noise", "power failure", "device loss"]
    parts += ["## Answer", "", *_table(heads, _results(a)), ""]
    lines = [one for one in a.table if not one.is_part]
    note = percentile_note(lines)
    parts += [
        "## IOPS by cell",
        "",
        *_table(["backing device", "cell", "direction", *a.variants], ([one.model, one.cell, one.direction, *map(_cell, one.cells)] for one in lines)),
        "",
        *([note, ""] if note else []),
    ]
    if a.sums:
        rows = ([one.who, one.cell, one.direction, *map(_sum, one.cells)] for one in a.sums[:_MOST_LINES])
        parts += ["## Together", "", *_table(["added", "cell", "direction", *a.variants], rows), "", *(f"- {escaped(one)}" for one in a.sum_notes), ""]
    if a.curves:
        parts += ["## Load", "", *(f"- {escaped(one.title)}{' ' + escaped(one.note) if one.note else ''}" for one in a.curves), ""]
    if a.heat_maps:
        parts += ["## Block sizes", "", *(f"- {escaped(one.title)}" for one in a.heat_maps), ""]
    if a.collection:
        rows = ([one.cell, one.block, one.variant, one.model, str(one.hosts), f"{size(one.rate)}/s", ", ".join(one.shown_by)] for one in a.collection)
        parts += ["## Garbage collection", "", *_table(["cell", "block size", "variant", "model", "hosts", "rate", "shown by"], rows), ""]
    parts += ["## Problems", "", *([f"- {escaped(one.where)}: {escaped(one.text)}" for one in a.problems[:_MOST_LINES]] or ["None was found."])]
    if len(a.problems) > _MOST_LINES:
        parts.append(f"- and {len(a.problems) - _MOST_LINES} more")
    if a.costs:
        rows = ([one.variant, figure(one.price), size(one.capacity), figure(one.per_tb)] for one in a.costs)
        parts += ["", f"## Cost ({escaped(a.currency or 'unit of the prices')})", "", *_table(["variant", "a host", "capacity", "per TB"], rows)]
    if a.wear:
        rows = ([one.model, str(one.drives), size(one.written), f"{one.used:.2g} %" if one.used is not None else "-"] for one in a.wear)
        parts += ["", "## Wear", "", *_table(["model", "drives", "written meanwhile", "endurance spent"], rows)]
    if a.differences:
        rows = ([one.label, *one.values] for one in a.differences[:_MOST_LINES])
        parts += ["", "## What was different", "", *_table(["setting", *a.variants], rows)]
    parts += [
        "",
        "## Stacks",
        "",
        *(
            f"- {escaped(one.variant)} on {escaped(listed(one.hosts, 3))}: {escaped(one.verdict_before)}, afterwards {escaped(one.verdict_after)}"
            for one in a.stacks[:_MOST_LINES]
        ),
    ]
    parts += [
        "",
        "## Environment",
        "",
        *(f"- {label}: {escaped(', '.join(f'{value} ({count})' for value, count in values))}" for label, values in a.environment),
    ]
    return "\n".join(parts) + "\n"


def csv_text(a: Analysis) -> str:
    """One line for each direction of each cell of each host; an empty field is what was not measured, or a percentile with too few samples."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_COLUMNS)
    out = {one.host for one in a.outliers}
    baseline = {(one.host, one.cell, one.direction): one.iops for one in a.points if one.variant == a.answer.baseline}
    safety = {one.name: one.safety for one in a.answer.variants}
    for one in a.points:
        first = one.first
        verdict = first.verdict_before if first.verdict_before == first.verdict_after else f"{first.verdict_before}>{first.verdict_after}"
        plain = [a.campaign, one.host, one.variant, one.cell, one.direction, one.state, verdict, first.model, first.firmware, first.rw, first.bs]
        numbers = [first.iodepth, first.numjobs, len(one.runs), one.iops, one.bandwidth, *(one.latency[rank.name] for rank in SHOWN), one.samples]
        iops = [run.iops for run in one.runs if run.iops is not None]
        first_iops = baseline.get((one.host, one.cell, one.direction))
        ratio = one.iops / first_iops if one.iops is not None and first_iops else None
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
            interval = f"{span(found.interval.low, found.interval.high)}, at least {percent(found.interval.confidence)}" if found and found.interval else "-"
            ratio = "1 x" if result.variant == a.answer.baseline else times(result.ratio)
            name = result.variant + (" (recommended)" if result.variant == one.recommended else "")
            claim = f"not comparable: {result.reason}" if result.reason else result.verdict.replace("_", " ")
            value = answer_text.value_of(one, result)
            noise = "-" if result.noise is None else f"{result.noise:.1%}{' noisy' if result.is_noisy else ''}"
            safety = [result.acknowledged, result.safety.device_loss]
            yield [one.host_class.label, answer_text.workload_name(one), name, value, ratio, interval, claim, noise, *safety]


def _sum(row: t.Any) -> str:
    if row is None:
        return "-"
    return f"{figure(row.iops)}, p99 {duration(row.latency['p99'])}{f' {row.state}' if row.state != 'ok' else ''}"


def _cell(cell: t.Any) -> str:
    if cell is None:
        return "-"
    marks = "".join(f" {word}" for word in (cell.verdict if cell.verdict != "durable" else "", cell.state if cell.state != "ok" else "") if word)
    ratio = f", {times(cell.ratio)} {cell.comparison.verdict.replace('_', ' ')}" if cell.comparison is not None else ""
    return f"{figure(cell.iops)}{ratio}, p99 {duration(cell.latency['p99'])}{HIDDEN if 'p99' in cell.hidden else ''}{marks}"
