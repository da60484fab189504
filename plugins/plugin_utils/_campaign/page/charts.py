# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Charts as plotly's plain data and layout: what is drawn where, with units. Colours of page and text are the page's, light or dark."""

from __future__ import annotations

import html
import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import NamedSeries, series_sentence
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.text import counted, duration, figure

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import CurveSet, LoadValue
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band

#: Told apart by most people who see colours in another way, on white and on black (Okabe and Ito 2008, the light ones darker).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8f8412", "#4d9fd6", "#b8860b", "#7f7f7f", "#9467bd", "#e41a1c")
_DASHES = ("solid", "dash", "dot", "dashdot")

#: Points of one line: more than a screen is wide helps nobody.
_MOST_POINTS = 600

_SIGNIFICANT = 4

#: A smaller change from beginning to end is none to speak of.
_NOTICED = 0.05


@dataclass(frozen=True)
class Chart:
    """:param title: the finding; :param data: and ``layout``: as plotly takes them."""

    name: str
    title: str
    data: list[dict[str, t.Any]]
    layout: dict[str, t.Any]

    def to_dict(self) -> dict[str, t.Any]:
        return {"data": self.data, "layout": self.layout}


def chart_text(text: str) -> str:
    """Text for plotly, which would take ``<b>`` for markup."""
    return html.escape(text, quote=False)


def rounded(value: float | None) -> float | None:
    """To four digits: what is drawn needs no more, and a page with 200 hosts has many of them."""
    if value is None or not math.isfinite(value) or value == 0:
        return None if value is None or not math.isfinite(value) else 0
    short = float(f"{value:.{_SIGNIFICANT}g}")
    return int(short) if short.is_integer() else short


def style_of(variants: t.Sequence[str], variant: str) -> dict[str, str]:
    """Colour and dash of a variant, the same in every chart."""
    place = variants.index(variant)
    return {"color": COLOURS[place % len(COLOURS)], "dash": _DASHES[place // len(COLOURS) % len(_DASHES)]}


def latency_over_iops(curves: CurveSet, variants: t.Sequence[str], name: str) -> Chart:
    """The hockey stick: latency on a logarithmic axis, one mark for each load, the limit as a line."""
    data = []
    for curve in curves.curves:
        known = [value for value in curve.values if value.latency]
        data.append(
            {
                **_line(variants, curve.variant),
                "x": [rounded(value.iops) for value in known],
                "y": [rounded((value.latency or 0) / 1e6) for value in known],
                "text": [f"{curves.load} {_load(value, curves.load)}, {counted(value.hosts, 'host')}" for value in known],
                "hovertemplate": "%{x:,.4r} IOPS, %{y:.4r} ms<br>%{text}",
            }
        )
    layout = _layout("IOPS (1/s)", f"{curves.latency_name} latency (ms)")
    layout["yaxis"]["type"] = "log"
    layout["xaxis"]["rangemode"] = "tozero"
    if curves.limit:
        layout["shapes"] = [{**_limit_line(curves.limit / 1e6), "xref": "paper"}]
        layout["annotations"] = [
            {
                "xref": "paper",
                "x": 0,
                "xanchor": "left",
                "y": math.log10(curves.limit / 1e6),
                "yanchor": "bottom",
                "text": f"limit {duration(curves.limit)}",
                "showarrow": False,
            }
        ]
    return Chart(name, curves.title, data, layout)


def over_load(curves: CurveSet, variants: t.Sequence[str], name: str) -> list[Chart]:
    """IOPS, bandwidth and latency against jobs or queue depth."""
    charts: tuple[tuple[str, str, t.Callable[[LoadValue], float | None], bool], ...] = (
        ("iops", "IOPS (1/s)", lambda value: value.iops, False),
        ("bandwidth", "bandwidth (MB/s)", lambda value: value.bandwidth / 1e6 if value.bandwidth is not None else None, False),
        ("latency", f"{curves.latency_name} latency (ms)", lambda value: value.latency / 1e6 if value.latency else None, True),
    )
    found = []
    for what, label, read, is_log in charts:
        data = [
            {
                **_line(variants, curve.variant),
                "x": [_load(value, curves.load) for value in curve.values],
                "y": [rounded(read(value)) for value in curve.values],
                "hovertemplate": f"{curves.load} %{{x}}: %{{y:,.4r}}",
            }
            for curve in curves.curves
        ]
        layout = _layout(curves.load, label)
        layout["xaxis"].update(type="category", categoryorder="array", categoryarray=_all_loads(curves))
        layout["yaxis"].update(type="log") if is_log else layout["yaxis"].update(rangemode="tozero")
        found.append(Chart(f"{name}-{what}", f"{label.partition(' (')[0]} over {curves.load}: {_most(curves, what, read)}", data, layout))
    return found


def _most(curves: CurveSet, what: str, read: t.Callable[[LoadValue], float | None]) -> str:
    """The finding of one of them: the most there is, or the least latency at the most load."""
    several = len(curves.curves) > 1
    if what != "latency":
        known = [(value, one, curve.variant) for curve in curves.curves for one in curve.values if (value := read(one)) is not None]
        if not known:
            return "not known"
        value, one, variant = max(known, key=lambda found: found[0])
        unit = " MB/s" if what == "bandwidth" else ""
        return f"most is {figure(value)}{unit} at {_load(one, curves.load)}" + (f" in {variant}" if several else "")
    ends = [(one.latency, one, curve.variant) for curve in curves.curves if curve.values and (one := curve.values[-1]).latency]
    if not ends:
        return "not known"
    latency, one, variant = min(ends, key=lambda found: found[0] or 0.0)
    return f"{'least is ' if several else ''}{duration(latency)} at {_load(one, curves.load)}" + (f" in {variant}" if several else "")


def bands(cells: t.Sequence[Band], variants: t.Sequence[str], name: str) -> Chart:
    """One cell along its run in every variant: the middle host, and where eight of ten are."""
    data: list[dict[str, t.Any]] = []
    for band in cells:
        style = style_of(variants, band.variant)
        group = {"x": [rounded(value) for value in band.second], "legendgroup": chart_text(band.variant), "mode": "lines", "type": "scatter"}
        if band.hosts > 1:
            edge = {**group, "line": {"width": 0, "color": style["color"]}, "showlegend": False, "hoverinfo": "skip"}
            data.append({**edge, "y": [rounded(value) for value in band.low]})
            data.append({**edge, "y": [rounded(value) for value in band.high], "fill": "tonexty", "fillcolor": f"{style['color']}33"})
        data.append(
            {
                **group,
                "y": [rounded(value) for value in band.middle],
                "name": chart_text(band.variant),
                "line": {"width": 2, **style},
                "hovertemplate": "%{x} s: %{y:,.4r} IOPS",
            }
        )
    layout = _layout("time since the start (s)", "IOPS (1/s)")
    layout["yaxis"]["rangemode"] = "tozero"
    hosts = max(band.hosts for band in cells)
    first = cells[0]
    ends = [(band.variant, band.middle[0], band.middle[-1]) for band in cells if band.middle]
    moved = max(ends, key=lambda one: abs(math.log(max(one[2], 1e-9) / max(one[1], 1e-9))), default=None)
    if moved is None:
        sentence = "no numbers"
    elif abs(moved[2] / max(moved[1], 1e-9) - 1) < _NOTICED:
        sentence = f"{'no variant' if len(cells) > 1 else moved[0]} {'ends' if len(cells) > 1 else 'does not end'} more than 5 % from where it began"
    else:
        sentence = f"from {figure(moved[1])} to {figure(moved[2])} IOPS in {moved[0]}"
    spread = f", middle of {counted(hosts, 'host')}; the band holds eight of ten" if hosts > 1 else ""
    return Chart(name, f"{first.cell} ({first.direction}): {sentence}{spread}", data, layout)


def series(one: NamedSeries, variants: t.Sequence[str], name: str) -> Chart:
    """One series with its levels drawn over it, and what it is called."""
    values = [value or 0.0 for value in one.series.iops]
    width = max(1, math.ceil(len(values) / _MOST_POINTS))
    blocks = [values[start : start + width] for start in range(0, len(values), width)]
    x = [rounded(start + width / 2 if width > 1 else start) for start in range(0, len(values), width)]
    style = style_of(variants, one.series.variant)
    shown = {"type": "scatter", "mode": "lines", "x": x}
    mean = [rounded(sum(block) / len(block)) for block in blocks]
    data: list[dict[str, t.Any]] = [{**shown, "y": mean, "name": "IOPS", "line": {"width": 1.5, "color": style["color"]}, "opacity": 0.85}]
    if width > 1:
        # Averages alone would hide a stall of a second.
        data.append(
            {**shown, "y": [rounded(min(block)) for block in blocks], "name": f"lowest of {width} s", "line": {"width": 1, "color": "#7f7f7f"}, "opacity": 0.5}
        )
    levels = one.finding.levels
    steps_x = [edge for level in levels for edge in (rounded(level.start), rounded(level.end), None)]
    steps_y = [edge for level in levels for edge in (rounded(level.mean), rounded(level.mean), None)]
    data.append(
        {**shown, "x": steps_x, "y": steps_y, "name": "levels found", "line": {"width": 3, "color": "#d55e00" if style["color"] != "#d55e00" else "#0072b2"}}
    )
    layout = _layout("time since the start (s)", "IOPS (1/s)")
    layout["yaxis"]["rangemode"] = "tozero"
    if one.finding.change is not None:
        layout["shapes"] = [
            {
                "type": "line",
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "x0": one.finding.change.at,
                "x1": one.finding.change.at,
                "line": {"width": 1, "dash": "dot", "color": "#7f7f7f"},
            }
        ]
    where = f"{one.series.host}, {one.series.cell} ({one.series.direction}), {one.series.variant}, repeat {one.series.repeat}"
    return Chart(name, f"{series_sentence(one.finding)}: {where}", data, layout)


def _line(variants: t.Sequence[str], variant: str) -> dict[str, t.Any]:
    style = style_of(variants, variant)
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": chart_text(variant),
        "line": {"width": 2, **style},
        "marker": {"size": 7, "color": style["color"]},
    }


def _load(value: LoadValue, load: str) -> str:
    if load == "jobs":
        return str(value.jobs)
    return str(value.depth) if load == "queue depth" else f"{value.jobs} x {value.depth}"


def _all_loads(curves: CurveSet) -> list[str]:
    values = sorted({(value.load, value.jobs, value) for curve in curves.curves for value in curve.values}, key=lambda one: one[:2])
    return list(dict.fromkeys(_load(value, curves.load) for _load_of, _jobs, value in values))


def _limit_line(at: float) -> dict[str, t.Any]:
    return {"type": "line", "x0": 0, "x1": 1, "y0": at, "y1": at, "line": {"width": 1.5, "dash": "dash", "color": "#d62728"}}


def _layout(x: str, y: str) -> dict[str, t.Any]:
    axis = {"automargin": True, "zeroline": False}
    return {"xaxis": {**axis, "title": {"text": x}}, "yaxis": {**axis, "title": {"text": y, "standoff": 10}}, "hovermode": "closest", "showlegend": True}
