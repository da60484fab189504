# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The report as one file of HTML: nothing in it comes from a network, and nothing a host said can become markup or a script."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import shlex
import statistics
import typing as t
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import plotly_offline
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import charts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text, conditions, safety, text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import HIDDEN, percentile_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import block_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.outliers import FEWEST_ALIKE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import WORST_FIRST

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis

_HERE = Path(__file__).parent
_SHADES = 10
_MOST_COST_CELLS = 6
_MOST_SUMS = 300

#: plotly makes a style element without text and adds rules to it later.
_EMPTY = ""

#: And one of maps, with this text, as soon as it is loaded.
_STYLE_OF_PLOTLY = re.compile(r"""\.createElement\("style"\);.{0,200}?\.textContent='([^'\\]*)'""")


@dataclass(frozen=True)
class Strip:
    """IOPS of every host in one cell: for each variant values in the order of the hosts, or nothing."""

    name: str
    title: str
    values: list[list[float | None] | None]


@dataclass(frozen=True)
class CurveCharts:
    workload: str
    main: charts.Chart
    over: list[charts.Chart]
    note: str


def render(a: Analysis, folder: str) -> str:
    """The whole page.

    :param folder: what the command to make it again should name.
    :raises LibraryMissing: without plotly.
    """
    curves = [
        CurveCharts(
            f"{one.workload} ({one.direction})",
            charts.latency_over_iops(one, a.variants, f"curve-{place}"),
            charts.over_load(one, a.variants, f"load-{place}"),
            one.note,
        )
        for place, one in enumerate(a.curves)
    ]
    series = [charts.series(one, a.variants, f"series-{place}") for place, one in enumerate(a.series)]
    bands = _bands(a)
    strips = _strips(a)
    lazy = {chart.name: chart.to_dict() for one in curves for chart in (one.main, *one.over)} | {chart.name: chart.to_dict() for chart in series}
    data = {
        "charts": lazy,
        "bands": [{**chart.to_dict(), "title": chart.title} for chart in bands],
        "hosts": a.hosts,
        "variants": a.variants,
        "colours": [charts.style_of(a.variants, one)["color"] for one in a.variants],
        "outliers": [a.hosts.index(one.host) for one in a.outliers],
        "strips": [vars(one) for one in strips],
        "host_rows": _host_rows(a),
    }
    css, js = ((_HERE / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    # Parsers of HTML read a carriage return as a line feed, and the hash is of what they read.
    plotly = str(plotly_offline.get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")
    titles = titles_of(a)
    cost_cells = list(dict.fromkeys((cell, direction) for one in a.costs for cell, direction, _price in one.per_iops))[:_MOST_COST_CELLS]
    return _template().render(
        a=a,
        policy=_policy([plotly, js], [css, _EMPTY, *_STYLE_OF_PLOTLY.findall(plotly)]),
        css=Markup(css),
        js=Markup(js),
        plotly=Markup(plotly),
        data=Markup(embedded(data)),
        titles=titles,
        sections=[(name, label) for name, label in _SECTIONS if _is_there(name, a)],
        curves=curves,
        series=series,
        bands=bands,
        strips=strips,
        directions=sorted({line.direction for line in a.table}),
        models=sorted({line.model for line in a.table}),
        has_parts=any(line.is_part for line in a.table),
        cost_cells=cost_cells,
        most_sums=_MOST_SUMS,
        cost_of=lambda one, key: next((price for cell, direction, price in one.per_iops if (cell, direction) == key), None),
        changed_keys=lambda stack: {(layer, key) for layer, key, _before, _after in stack.changed},
        heat=_shade,
        block_name=block_name,
        hidden=HIDDEN,
        percentile_note=percentile_note(a.table),
        command=command_of(folder, a),
        variant_line=conditions.variant_line,
        has_classes=len({one.host_class.label for one in a.answer.workloads}) > 1,
        badges={safety.KEEPS: "durable", safety.LOSES: "at_risk", safety.UNKNOWN: "unknown"},
        safety_words={safety.KEEPS: "survives", safety.LOSES: "can lose data", safety.UNKNOWN: "unknown"},
        **{name: getattr(answer_text, name) for name in ("noun", "value_of", "workload_name")},
        **{name: getattr(text, name) for name in ("chance", "counted", "duration", "figure", "listed", "percent", "size", "span", "times")},
    )


_SECTIONS = (
    ("answer", "Answer"), ("comparison", "Comparison"), ("together", "Together"), ("curves", "Curves"), ("heat", "Block sizes"), ("series", "Over time"),
    ("hosts", "Hosts"), ("stacks", "Stacks"), ("problems", "Problems"), ("costs", "Cost"), ("wear", "Wear"), ("commands", "Commands"),
    ("environment", "Environment"),
)  # fmt: skip


def _is_there(name: str, a: Analysis) -> bool:
    parts = {"together": a.sums, "curves": a.curves, "heat": a.heat_maps, "series": a.bands or a.series or a.collection, "costs": a.costs, "wear": a.wear}
    return bool(parts.get(name, True))


def embedded(value: t.Any) -> str:
    """JSON that may stand in a script element: nothing in it can end that element."""
    sentence = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return sentence.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def command_of(folder: str, a: Analysis) -> str:
    """How to make this report again."""
    more = f" -e report_baseline={shlex.quote(a.answer.baseline)}" if a.answer.baseline and a.answer.baseline != (a.variants or ("",))[0] else ""
    files = shlex.quote('{"report_files": ["html", "markdown", "csv"]}')
    return f"ansible-playbook cachefleet.storage.report -e report_campaign={shlex.quote(folder)}{more} -e {files}"


def titles_of(a: Analysis) -> dict[str, str]:
    """The finding of each section."""
    safe = [one.name for one in a.answer.variants if one.is_safe]
    kinds = dict(a.kinds)
    strange = ", ".join(f"{kinds[kind]} {kind}" for kind in WORST_FIRST if kind != "steady" and kinds.get(kind))
    strange += f"{', ' if strange else ''}{a.stalled} with stalls" if a.stalled else ""
    changed = sum(bool(one.changed) or one.verdict_before != one.verdict_after for one in a.stacks)
    written = sum(one.written for one in a.wear if one.written) if any(one.written is not None for one in a.wear) else None
    return {
        "answer": _title_of_answer(a, safe),
        "comparison": _title_of_comparison(a),
        "together": _title_of_sums(a),
        "curves": _title_of_curves(a),
        "heat": _title_of_heat_maps(a),
        "series": f"Along the run: {strange}"
        if strange
        else "Along the run nothing fell, swung, drifted or stalled"
        if a.series_looked_at
        else "Along the run",
        "hosts": f"{text.counted(len(a.outliers), 'host')} unlike the others: {text.listed([one.host for one in a.outliers])}"
        if a.outliers
        else _no_outlier(a),
        "stacks": f"{text.counted(len(a.stacks), 'state')} of the layers below the targets, "
        + (f"{changed} of them changed meanwhile" if changed else "none changed meanwhile"),
        "problems": f"{text.counted(len(a.problems), 'problem')} found" if a.problems else "No problem found",
        "costs": _title_of_costs(a),
        "wear": f"{text.size(written)} went to the drives" if written is not None else "The drives do not report the written bytes",
        "commands": "How to do it again",
        "environment": "What it ran on",
    }


def _title_of_answer(a: Analysis, safe: t.Sequence[str]) -> str:
    shown = sum(one.recommended is not None for one in a.answer.workloads)
    workloads = text.counted(len(a.answer.workloads), "workload")
    if len(a.variants) == 1:
        return f"{workloads}, one variant: there is nothing to compare it with"
    better = f"A variant is shown to be better in {shown} of {workloads}" if shown else f"No variant is shown to be better in any of {workloads}"
    kept = f"flushed writes survive a power failure with {text.listed(safe)}" if safe else "no variant is known to keep flushed writes in a power failure"
    return f"{better}; {kept}"


def _title_of_comparison(a: Analysis) -> str:
    """What the comparisons of the lines show, of the variant that is better in most of them, and of the one that is better and loses data."""
    whole = [line for line in a.table if not line.is_part and line.direction != "sync"]
    won, risky = (
        Counter(variant for line in whole for variant, cell in zip(a.variants, line.cells) if cell is not None and wins(cell))
        for wins in (lambda cell: cell.is_better, lambda cell: cell.is_risky)
    )
    lines = text.counted(len(whole), "line")
    sentences = [f"{name} is shown to be better than {a.answer.baseline} in {count} of {lines}" for name, count in won.most_common(1)]
    sentences += [f"{name} is in {count}, and can lose what {a.answer.baseline} keeps" for name, count in risky.most_common(1)]
    if not sentences and len(a.variants) > 1:
        return f"No variant is shown to be better than {a.answer.baseline} in any of {lines}"
    return "; ".join(sentences) or "What was measured"


def _safety(a: Analysis, variant: str) -> str:
    """As the verdict of a stack says it."""
    words = {"keeps": "durable", "loses": "at_risk"}
    return next(words.get(one.safety.flushed, "unknown") for one in a.answer.variants if one.name == variant)


def _title_of_costs(a: Analysis) -> str:
    known = [(one.per_tb, one.variant) for one in a.costs if one.per_tb]
    if not known:
        return "Cost"
    price, variant = min(known)
    sentence = " ".join(filter(None, [a.currency, text.figure(price), "per TB"]))
    return (
        f"{variant} costs least for its capacity: {sentence}" if price < 0.99 * max(known)[0] else f"Every variant costs the same for its capacity: {sentence}"
    )


def _title_of_curves(a: Analysis) -> str:
    won: Counter[str] = Counter()
    for curves in a.curves:
        kept = [(one.under.iops, one.variant) for one in curves.curves if one.under is not None and one.under.iops]
        won.update([max(kept)[1]] if kept and len(curves.curves) > 1 else [])
    for name, count in won.most_common(1):
        risk = "" if _safety(a, name) == "durable" else f" ({_safety(a, name)})"
        return f"Under a limit of latency {name}{risk} does most in {count} of {text.counted(len(a.curves), 'workload')}"
    return f"What more load brings: {text.counted(len(a.curves), 'workload')}"


def _title_of_sums(a: Analysis) -> str:
    """The most that everything did together in a variant that is safe; else in any."""
    rows = [row for line in a.sums for row in line.cells if row is not None and row.iops]
    if not rows:
        return "Nothing was measured at the same time"
    safe = [row for row in rows if _safety(a, row.variant) == "durable"]
    most = max(safe or rows, key=lambda row: row.iops or 0.0)
    risk = "" if safe else f" ({_safety(a, most.variant)})"
    return f"Together: {most.host} reach {text.figure(most.iops)} IOPS in {most.cell} ({most.direction}), {most.variant}{risk}"


def _title_of_heat_maps(a: Analysis) -> str:
    places = [
        (iops, block, load, one)
        for one in a.heat_maps
        for block, row in zip(one.blocks, one.iops)
        for load, iops in zip(one.loads, row)
        if iops and (_safety(a, one.variant) == "durable" or not any(known.is_safe for known in a.answer.variants))
    ]
    if not places:
        return "Block size against load"
    iops, block, load, one = max(places, key=lambda place: place[0])
    safe = "safe " if any(known.is_safe for known in a.answer.variants) and len(a.variants) > 1 else ""
    return f"Block sizes: most {safe}IOPS with {block_name(block)} at {one.load} {load} in {one.variant}: {text.figure(iops)} ({one.workload}, {one.direction})"


def _no_outlier(a: Analysis) -> str:
    return "No host is unlike the others" if len(a.hosts) >= FEWEST_ALIKE else f"{text.counted(len(a.hosts), 'host')}: too few to call one unlike the others"


def _bands(a: Analysis) -> list[charts.Chart]:
    groups: dict[tuple[str, str], list[t.Any]] = {}
    for band in a.bands:
        if not is_probe(band.cell):
            groups.setdefault((band.cell, band.direction), []).append(band)
    return [
        charts.bands(sorted(cells, key=lambda one: a.variants.index(one.variant)), a.variants, f"{cell} ({direction})")
        for (cell, direction), cells in groups.items()
    ]


def _strips(a: Analysis) -> list[Strip]:
    if len(a.hosts) < 2:
        return []
    place = {host: number for number, host in enumerate(a.hosts)}
    groups: dict[tuple[str, str], dict[str, list[float | None]]] = {}
    for one in a.points:
        if one.iops is not None and one.direction != "sync" and not is_probe(one.cell):
            by_variant = groups.setdefault((one.cell, one.direction), {})
            by_variant.setdefault(one.variant, [None] * len(a.hosts))[place[one.host]] = charts.rounded(one.iops)
    out: dict[str, int] = {}
    for host in a.outliers:
        for score in host.scores:
            out[score.cell] = out.get(score.cell, 0) + 1
    found = []
    for (cell, direction), by_variant in groups.items():
        count = sum(out.get(f"{cell} ({direction}) in {variant}", 0) for variant in by_variant)
        spread = [(max(known) / min(known), variant) for variant, values in by_variant.items() if (known := [value for value in values if value])]
        widest = max(spread, default=None)
        sentences = [text.counted(count, "outlier")] if count else ["no outlier"] if len(a.hosts) >= FEWEST_ALIKE else []
        sentences += [f"the fastest host does {text.times(widest[0])} the slowest in {widest[1]}"] if widest else []
        found.append(
            (-count, Strip(f"{cell} ({direction})", f"{cell} ({direction}): {'; '.join(sentences)}", [by_variant.get(variant) for variant in a.variants]))
        )
    return [strip for _order, strip in sorted(found, key=lambda one: (one[0], one[1].name))]


def _host_rows(a: Analysis) -> list[list[t.Any]]:
    """Host, model, worst verdict, outlier, ratio to like hosts, cells measured, cells not ok."""
    like: dict[tuple[t.Any, ...], list[float]] = {}
    for one in a.points:
        if one.iops and one.direction != "sync":
            like.setdefault((one.cell, one.direction, one.variant, one.first.model), []).append(one.iops)
    medians = {key: statistics.median(values) for key, values in like.items()}
    logs: dict[str, list[float]] = {}
    seen: dict[str, list[t.Any]] = {}
    for one in a.points:
        seen.setdefault(one.host, []).append(one)
        if one.iops and one.direction != "sync":
            logs.setdefault(one.host, []).append(math.log(one.iops / medians[one.cell, one.direction, one.variant, one.first.model]))
    out = {one.host for one in a.outliers}
    rows = []
    for host in a.hosts:
        points = seen.get(host, [])
        verdicts = {verdict or "unknown" for one in points for verdict in (one.first.verdict_before, one.first.verdict_after)}
        verdict = next((one for one in ("at_risk", "unknown", "durable") if one in verdicts), "-")
        middle = median(logs.get(host, ()))
        bad = len({(one.variant, one.cell) for one in points if one.state != "ok"})
        cells = len({(one.variant, one.cell) for one in points})
        model = text.listed(sorted({one.first.model or "unknown model" for one in points})) or "-"
        rows.append([host, model, verdict, "outlier" if host in out else "", text.times(math.exp(middle)) if middle is not None else None, cells, bad])
    return sorted(rows, key=lambda row: (row[3] == "", row[0]))


def _shade(heat_map: t.Any, value: float | None) -> str:
    """A class from h0 to h9, on a logarithmic scale within one map."""
    known = [one for row in heat_map.iops for one in row if one]
    if not value or not known:
        return "none"
    low, high = math.log(min(known)), math.log(max(known))
    return f"h{min(int((math.log(value) - low) / (high - low) * _SHADES), _SHADES - 1) if high > low else 0}"


def _policy(scripts: t.Sequence[str], styles: t.Sequence[str]) -> str:
    """Nothing but what is in this file, told by its hash."""
    hashes = {"script-src": scripts, "style-src": styles}
    allowed = "; ".join(f"{name} " + " ".join(f"'sha256-{_sha256(one)}'" for one in parts) for name, parts in hashes.items())
    return f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _sha256(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def _template() -> jinja2.Template:
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=False)
    return environment.get_template("report.html.j2")
