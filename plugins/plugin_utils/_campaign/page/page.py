# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report as one file of HTML: nothing in it comes from a network, and nothing from a host can become markup or a script."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

import jinja2
from markupsafe import Markup

from ansible_collections.cachefleet.storage.plugins.plugin_utils import _text as text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import plotly_offline
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page import (
    answer_charts,
    charts,
    commands,
    flow_pictures,
    headings,
    hosts,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.tables import noise_of, noise_sentence, tables_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import conditions
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import percentile_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import block_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS, SYNCED_NOTE

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.block_sizes import HeatGroup

_HERE = Path(__file__).parent
_SHADES = 10

#: Ratios have so many shades on either side of 1; the last begins at twice as much, or half.
_RATIO_SHADES = 4

#: A ratio closer to 1 has no shade.
_ALIKE = 0.02

#: plotly makes a style element without text and adds rules to it later.
_EMPTY = ""

#: And one of maps, with this text, as soon as it is loaded.
_STYLE_OF_PLOTLY = re.compile(r"""\.createElement\("style"\);.{0,200}?\.textContent='([^'\\]*)'""")


@dataclass(frozen=True)
class CurveCharts:
    workload: str
    main: charts.Chart
    over: list[charts.Chart]
    note: str


@dataclass(frozen=True)
class Picker:
    """Charts of which one is shown, ``opens`` first; all of them are printed."""

    name: str
    label: str
    choices: list[charts.Chart]
    opens: int = 0

    @property
    def first(self) -> charts.Chart:
        return self.choices[self.opens]


@dataclass(frozen=True)
class Drawn:
    """All charts of a page."""

    answer: list[charts.Chart]
    flows: list[flow_pictures.Picture]
    curves: list[CurveCharts]
    series: list[charts.Chart]
    rounds: list[charts.Chart]
    bands: Picker | None
    latency: Picker | None
    strips: list[hosts.Strip]
    opens_strip: int

    @property
    def lazy(self) -> list[charts.Chart]:
        """Those with a place of their own."""
        return [*self.answer, *(chart for one in self.curves for chart in (one.main, *one.over)), *self.series, *self.rounds]

    @property
    def pickers(self) -> list[Picker]:
        return [one for one in (self.bands, self.latency) if one is not None]


def drawn_of(a: Analysis) -> Drawn:
    """What is drawn of a campaign."""
    strips = hosts.strips(a)
    return Drawn(
        answer=answer_charts.pictures(a),
        flows=flow_pictures.pictures(a),
        curves=_curves(a),
        series=[charts.series(one, a.variants, f"series-{place}") for place, one in enumerate(a.series)],
        rounds=_rounds(a),
        bands=_bands(a),
        latency=_latency(a),
        strips=strips,
        opens_strip=_opens(a, [("", one.cell, one.direction) for one in strips]),
    )


def render(a: Analysis, folder: str) -> str:
    """The whole page.

    :param folder: what the command to make it again should name.
    :raises LibraryMissing: without plotly.
    """
    drawn = drawn_of(a)
    noises = noise_of(a.points, a.answer.classes)
    return rendered(
        _HERE / "report.html.j2",
        _data(a, drawn),
        a=a,
        drawn=drawn,
        warnings=warnings_of(a),
        lead=(headings.lead_of(a) or ("", ""))[1],
        titles=headings.titles_of(a),
        sections=(sections := [(name, label) for name, label in SECTIONS if _is_there(name, a, drawn)]),
        shown=dict(sections),
        directions=sorted({line.direction for line in a.table}),
        models=sorted({line.model for line in a.table}),
        has_parts=any(line.is_part for line in a.table),
        noise_sentence=noise_sentence(a, noises),
        changed_keys=lambda stack: {(layer, key) for layer, key, _before, _after in stack.changed},
        heat=_shade,
        ratio_shade=_ratio_shade,
        block_name=block_name,
        tables=tables_of(a),
        sum_notes=sum_notes_of(a),
        percentile_note=percentile_note(a.table),
        report_command=commands.report_command(folder, a),
        suite=commands.suite_text(a),
        suite_file=commands.SUITE_FILE,
        measuring=commands.measuring_commands(a),
        comparing=commands.comparing_command(folder),
        measuring_notes=commands.measuring_notes(a),
        variant_line=conditions.variant_line,
        is_compared=len(a.variants) > 1,
        has_levels=any(trace.get("name") == charts.LEVELS for chart in drawn.series for trace in chart.data),
        **{name: getattr(text, name) for name in ("count", "counted", "figure", "listed", "size", "times")},
    )


def rendered(template: Path, data: t.Mapping[str, t.Any], **values: t.Any) -> str:
    """A page with charts.

    :param data: what the script draws from: ``charts`` by name, and ``choices``.
    :raises LibraryMissing: without plotly.
    """
    css, js = ((_HERE / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    # Parsers of HTML read a carriage return as a line feed, and the hash is of what they read.
    plotly = str(plotly_offline.get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")
    folders = [template.parent, _HERE]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(folders), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=False)
    return environment.get_template(template.name).render(
        policy=_policy([plotly, js], [css, _EMPTY, *_STYLE_OF_PLOTLY.findall(plotly)]),
        css=Markup(css),
        js=Markup(js),
        plotly=Markup(plotly),
        data=Markup(embedded(data)),
        line_height=flow_pictures.LINE,
        flow_width=flow_pictures.WIDTH,
        **values,
    )


def warnings_of(a: Analysis) -> list[str]:
    """What the answer must be read with."""
    lost = [f"{one.host}: {one.contradiction} ({', '.join(one.models) or one.target})" for one in a.power_loss if one.contradicts]
    changed = [f"{one.where}: {one.text}" for one in a.problems if one.kind == "data" and one.text.startswith("The verdict changed")]
    return [*lost, *a.caveats, *changed]


def sum_notes_of(a: Analysis) -> list[str]:
    """Below the table of sums."""
    has_syncs = any(row is not None and row.synced and row.latency["p99"] is not None for line in a.sums for row in line.cells)
    return [*([SYNCED_NOTE] if has_syncs else []), *a.sum_notes]


def _data(a: Analysis, drawn: Drawn) -> dict[str, t.Any]:
    """What the script draws from."""
    return {
        "charts": {chart.name: chart.to_dict() for chart in drawn.lazy},
        "choices": {picker.name: [chart.to_choice() for chart in picker.choices] for picker in drawn.pickers},
        "hosts": a.hosts,
        "variants": a.variants,
        "marks": [charts.mark_of(a.variants, one) for one in a.variants],
        "outliers": [a.hosts.index(one.host) for one in a.outliers],
        "strips": [{"title": one.title, "values": one.values, "unit": one.rate.unit, "axis": one.rate.axis} for one in drawn.strips],
        "host_rows": hosts.host_rows(a),
    }


#: Names and labels, in their order.
SECTIONS = (
    ("answer", "Answer"), ("comparison", "Comparison"), ("together", "Together"), ("curves", "Curves"), ("heat", "Block sizes"), ("series", "Over time"),
    ("latency", "Latency"), ("rounds", "Precondition"), ("cpu", "CPU"), ("hosts", "Hosts"), ("costs", "Cost"), ("wear", "Wear"), ("problems", "Problems"),
    ("stacks", "Stacks"), ("power_loss", "Power loss"), ("environment", "Environment"), ("commands", "Commands"),
)  # fmt: skip


def _is_there(name: str, a: Analysis, drawn: Drawn) -> bool:
    parts = {
        "together": a.sums, "curves": a.curves, "heat": a.heat_groups, "series": drawn.bands or drawn.series or a.collection, "latency": drawn.latency,
        "rounds": drawn.rounds, "cpu": a.cpu, "hosts": len(a.hosts) > 1, "costs": a.costs, "wear": a.wear, "problems": a.problems, "stacks": a.stacks,
        "power_loss": a.power_loss,
    }  # fmt: skip
    return bool(parts.get(name, True))


def embedded(value: t.Any) -> str:
    """JSON that may stand in a script element: nothing in it can end that element."""
    sentence = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return sentence.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _curves(a: Analysis) -> list[CurveCharts]:
    return [
        CurveCharts(
            f"{one.workload} ({one.direction})",
            charts.latency_over_iops(one, a.variants, f"curve-{place}"),
            charts.over_load(one, a.variants, f"load-{place}"),
            one.note,
        )
        for place, one in enumerate(a.curves)
    ]


def _opens(a: Analysis, keys: t.Sequence[tuple[str, str, str]]) -> int:
    """The place of the cell that the answer is about first; of writes that are synced, of their syncs.

    :param keys: label of a class (empty for all), cell and direction.
    """
    lead = headings.lead_of(a)
    if lead is None:
        return 0
    label, cell, direction = lead
    fitting = [(key[2] != "sync", place) for place, key in enumerate(keys) if key[0] in ("", label) and key[1] == cell and key[2] in (direction, "sync")]
    return min(fitting, default=(True, 0))[1]


def _bands(a: Analysis) -> Picker | None:
    groups: dict[tuple[str, str], list[t.Any]] = {}
    for band in a.bands:
        if not is_probe(band.cell) and charts.is_long(band):
            groups.setdefault((band.cell, band.direction), []).append(band)
    found = [
        charts.bands(sorted(cells, key=lambda one: a.variants.index(one.variant)), a.variants, f"{cell} ({direction})", a.rates.get((cell, direction), IOPS))
        for (cell, direction), cells in groups.items()
    ]
    return Picker("bands", "Cell", found, _opens(a, [("", *key) for key in groups])) if found else None


def _latency(a: Analysis) -> Picker | None:
    found = charts.distributions(a.distributions, a.variants)
    return Picker("percentiles", "Cell", [chart for _key, chart in found], _opens(a, [key for key, _chart in found])) if found else None


def _rounds(a: Analysis) -> list[charts.Chart]:
    groups: dict[tuple[str, str], list[t.Any]] = {}
    for one in a.rounds:
        groups.setdefault((one.cell, one.variant), []).append(one)
    return [charts.rounds(members, a.variants, f"rounds-{place}") for place, members in enumerate(groups.values())]


def _shade(group: HeatGroup, value: float | None) -> str:
    """A class from h0 to h9, on the one logarithmic scale of a workload."""
    if not value:
        return "none"
    low, high = math.log(group.low), math.log(group.high)
    return f"h{min(int((math.log(value) - low) / (high - low) * _SHADES), _SHADES - 1) if high > low else 0}"


def _ratio_shade(ratio: float | None) -> str:
    """A class: ``more1`` to ``more4`` above 1, ``less1`` to ``less4`` below."""
    if not ratio or abs(math.log(ratio)) < _ALIKE:
        return "none"
    step = min(int(abs(math.log2(ratio)) * _RATIO_SHADES) + 1, _RATIO_SHADES)
    return f"{'more' if ratio > 1 else 'less'}{step}"


def _policy(scripts: t.Sequence[str], styles: t.Sequence[str]) -> str:
    """Nothing but what is in this file, identified by its hash."""
    hashes = {"script-src": scripts, "style-src": styles}
    allowed = "; ".join(f"{name} " + " ".join(f"'sha256-{_sha256(one)}'" for one in parts) for name, parts in hashes.items())
    return f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _sha256(content: str) -> str:
    return base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
