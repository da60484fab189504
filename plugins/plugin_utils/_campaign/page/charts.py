# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all charts have in common: plotly's plain data and layout, colours, dashes and marks of variants, ticks. Text colours are the page's.

Charts over the load: latency over IOPS, and IOPS, bandwidth and latency over jobs or queue depth.
Charts of what happened along a run: all hosts of a cell together, single series with their levels, and rounds with their window.
The distribution of latencies of a cell: every percentile that is known, in every variant.
"""

from __future__ import annotations

import html
import math
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import are_of_same_hosts, by_load, load_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import NO_SHARED_HOST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import NamedSeries, every_second, range_sentence, series_sentence
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import FEWEST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import HOVER, counted, figure, in_seconds, latency, listed, rounded, tick_text

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import Distribution
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import CurveSet, LoadValue
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rounds import RoundsRun
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate

#: On the axis, by how many nines they have.
_TICKS = (1.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999)


def distributions(found: t.Sequence[Distribution], variants: t.Sequence[str]) -> list[tuple[tuple[str, str, str], Chart]]:
    """One for each cell of each class that has percentiles, by (label of the class, cell, direction)."""
    groups: dict[tuple[str, str, str], list[Distribution]] = {}
    for one in found:
        if one.values:
            groups.setdefault((one.label, one.cell, one.direction), []).append(one)
    several = len({label for label, _cell, _direction in groups}) > 1
    return [(key, _chart(members, variants, several)) for key, members in groups.items()]


def _chart(members: t.Sequence[Distribution], variants: t.Sequence[str], several: bool) -> Chart:
    data = []
    for one in sorted(members, key=lambda member: variants.index(member.variant)):
        data.append(
            {
                **line_of(variants, one.variant),
                "x": [rounded(value / 1e6) for _percent, value in one.values],
                "y": [rounded(_height(percent)) for percent, _value in one.values],
                "text": [f"p{percent:g}" for percent, _value in one.values],
                "hovertemplate": f"%{{text}}: %{{x{HOVER}}} ms",
            }
        )
    layout = layout_of("latency (ms)", "percentile")
    log_axis(layout["xaxis"], [value for trace in data for value in trace["x"]])
    top = max(percent for one in members for percent, _value in one.values)
    marks = [percent for percent in _TICKS if percent <= top]
    layout["yaxis"].update(tickvals=[_height(percent) for percent in marks], ticktext=[f"{percent:g} %" for percent in marks])
    first = members[0]
    where = f"{first.label}, " if several else ""
    return Chart(f"{where}{first.cell} ({first.direction})", f"{where}{first.cell} ({first.direction}): {_figures(members, variants)}", data, layout)


def _height(percent: float) -> float:
    """How many nines: 1 for 90 %, 2 for 99 %."""
    return -math.log10(1 - percent / 100)


def _figures(members: t.Sequence[Distribution], variants: t.Sequence[str]) -> str:
    """The median and the highest of the usual percentiles that every variant has."""
    known = [percent for percent in (50.0, 99.0, 99.9) if all(one.at(percent) for one in members)]
    shown = known if len(known) < 2 else [known[0], known[-1]]
    if not shown:
        return "too few I/Os for a common percentile"
    ordered = sorted(members, key=lambda one: variants.index(one.variant))
    parts = [f"p{percent:g} {listed([f'{latency(one.at(percent))} in {one.variant}' for one in ordered], 4)}" for percent in shown]
    return "; ".join([*parts, *_left_out(members)])


def _left_out(members: t.Sequence[Distribution]) -> list[str]:
    """Which hosts a chart is of, where it is not all of them."""
    first = members[0]
    if not all(one.is_shared for one in members):
        return [NO_SHARED_HOST]
    return [f"only {first.hosts} of {counted(first.of, 'host')}, which were measured in every variant"] if 0 < first.hosts < first.of else []


#: Points of one line: more than the pixels of a screen cannot be seen.
_MOST_POINTS = 600

#: Marks along one line: enough to see its shape.
_MOST_MARKS = 10

#: A smaller change from beginning to end is none to speak of.
_NOTICED = 0.05

#: Beginning and end are so much of a run: one second says little.
_END = 0.1

#: Levels are drawn in the colour of the text, which is that of no variant; the page replaces it.
INK = "#000000"
LEVELS = "levels found"


def bands(cells: t.Sequence[Band], variants: t.Sequence[str], name: str, rate: Rate = IOPS) -> Chart:
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
                "mode": "lines+markers",
                "marker": {**mark_of(variants, band.variant), "maxdisplayed": _MOST_MARKS},
                "y": [rounded(value) for value in band.middle],
                "name": chart_text(band.variant),
                "line": {"width": 2, **style},
                "hovertemplate": f"%{{x}} s: %{{y{HOVER}}} {rate.unit}",
            }
        )
    layout = layout_of("time since the start (s)", rate.axis)
    layout["yaxis"]["rangemode"] = "tozero"
    hosts = max(band.hosts for band in cells)
    first = cells[0]
    ends = [(band.variant, *_ends(settled)) for band in cells if (settled := _of_all_runs(band))]
    moved = max(ends, key=lambda one: abs(math.log(max(one[2], 1e-9) / max(one[1], 1e-9))), default=None)
    shortest = min((band.common for band in cells if band.common is not None), default=None)
    if moved is None:
        sentence = "no numbers"
    elif abs(moved[2] / max(moved[1], 1e-9) - 1) < _NOTICED:
        sentence = f"{'no variant' if len(cells) > 1 else moved[0]} {'ends' if len(cells) > 1 else 'does not end'} more than 5 % from where it began"
    else:
        sentence = f"from {figure(moved[1])} to {figure(moved[2])} {rate.unit} in {moved[0]}"
    widest = max((_between(settled) for band in cells if (settled := _of_all_runs(band))), key=lambda one: one[1] / max(one[0], 1e-9), default=None)
    if widest is not None and moved is not None and _is_outside(widest, moved[1:]):
        sentence += f", tenths of a run from {figure(widest[0])} to {figure(widest[1])} {rate.unit}"
    if shortest is not None and any(second > shortest for band in cells for second in band.second):
        sentence += f" in the first {in_seconds(shortest)}, when the first run ends"
    spread = f", middle of {counted(hosts, 'host')}; the band holds eight of ten" if hosts > 1 else ""
    return Chart(name, f"{first.cell} ({first.direction}): {sentence}{spread}", data, layout)


def is_long(band: Band) -> bool:
    """Whether its runs are long enough to say anything of how they went."""
    return len(_of_all_runs(band)) >= FEWEST


def _of_all_runs(band: Band) -> list[float]:
    """The middle while all runs are measured: after the end of one the others alone are another level, and no change."""
    return [value for second, value in zip(band.second, band.middle) if band.common is None or second <= band.common]


def _between(values: t.Sequence[float]) -> tuple[float, float]:
    """The lowest and the highest mean of a tenth of a run: what its ends do not show."""
    count = max(1, round(_END * len(values)))
    means = [sum(part) / len(part) for start in range(0, len(values), count) if len(part := values[start : start + count]) == count]
    return min(means), max(means)


def _is_outside(span: tuple[float, float], ends: t.Sequence[float]) -> bool:
    return span[0] < min(ends) * (1 - _NOTICED) or span[1] > max(ends) * (1 + _NOTICED)


def _ends(values: t.Sequence[float]) -> tuple[float, float]:
    """Means of the beginning and of the end."""
    count = max(1, round(_END * len(values)))
    return sum(values[:count]) / count, sum(values[-count:]) / count


def series(one: NamedSeries, variants: t.Sequence[str], name: str) -> Chart:
    """One series with its levels drawn over it, and what it is called."""
    values = every_second(one.series.iops)
    width = max(1, math.ceil(len(values) / _MOST_POINTS))
    blocks = [values[start : start + width] for start in range(0, len(values), width)]
    x = [rounded(start + width / 2 if width > 1 else start) for start in range(0, len(values), width)]
    style = style_of(variants, one.series.variant)
    shown = {"type": "scatter", "mode": "lines", "x": x}
    mean = [rounded(sum(block) / len(block)) for block in blocks]
    data: list[dict[str, t.Any]] = [{**shown, "y": mean, "name": one.rate.unit, "line": {"width": 1.5, "color": style["color"]}, "opacity": 0.85}]
    if width > 1:
        # Averages alone would hide a stall of a second.
        data.append(
            {**shown, "y": [rounded(min(block)) for block in blocks], "name": f"lowest of {width} s", "line": {"width": 1, "color": "#7f7f7f"}, "opacity": 0.5}
        )
    levels = one.finding.levels
    steps_x = [edge for level in levels for edge in (rounded(level.start), rounded(level.end), None)]
    steps_y = [edge for level in levels for edge in (rounded(level.mean), rounded(level.mean), None)]
    if levels:
        data.append({**shown, "x": steps_x, "y": steps_y, "name": LEVELS, "line": {"width": 2.5, "color": INK}})
    layout = layout_of("time since the start (s)", one.rate.axis)
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
    spread = f" ({range_sentence(one.series)})" if one.finding.kind == "steady" else ""
    return Chart(name, f"{series_sentence(one)}{spread}: {where}", data, layout)


def rounds(members: t.Sequence[RoundsRun], variants: t.Sequence[str], name: str) -> Chart:
    """The rounds of one cell in one variant, a line for each host, with the window of the first; values as parts of the average of the window."""
    first = members[0]
    unit, scale = {"latency": ("latency (ms)", 1e6), "bandwidth": ("bandwidth (MB/s)", 1e6)}.get(first.what, ("IOPS (1/s)", 1.0))
    data = []
    for one in members:
        about = chart_text(f"{one.host}, repeat {one.repeat}" if len({run.repeat for run in members}) > 1 else one.host)
        numbers = list(range(1, len(one.values) + 1))
        line = {**line_of(variants, one.variant), "name": about, "x": numbers, "y": [rounded(value / scale) for value in one.values]}
        if one.first is not None:
            line["marker"] = {**line["marker"], "symbol": [_IN_WINDOW if number >= one.first else _BEFORE_WINDOW for number in numbers]}
        data.append({**line, "hovertemplate": f"round %{{x}}: %{{y{HOVER}}}"})
    layout = layout_of("round", f"{unit} of {chart_text(first.track)}s")
    layout["yaxis"]["rangemode"] = "tozero"
    layout["xaxis"].update(tickformat="d", rangemode="tozero")
    layout["shapes"] = _window_shapes(first, scale)
    steady = sum(one.steady for one in members)
    sentence = first.sentence if len(members) == 1 else f"steady on {steady} of {counted(len(members), 'run')}; {first.host}: {first.sentence}"
    return Chart(name, f"{first.cell} in {first.variant}: {sentence}", data, layout)


_IN_WINDOW, _BEFORE_WINDOW = "square", "circle-open"


def _window_shapes(one: RoundsRun, scale: float) -> list[dict[str, t.Any]]:
    """The window: half its allowed range above and below its average."""
    if one.first is None or one.average is None or one.excursion_limit is None:
        return []
    half = one.average * one.excursion_limit / 2
    ends = {"x0": one.first - 0.4, "x1": one.first + one.window - 0.6}
    box = {"type": "rect", "y0": rounded((one.average - half) / scale), "y1": rounded((one.average + half) / scale), "line": {"width": 1, "color": "#7f7f7f"}}
    return [{**box, **ends, "fillcolor": "#7f7f7f", "opacity": 0.2, "layer": "below"}]


#: With more points than this in a chart labels would cover one another; they are shown on hovering, and the table has them.
_MOST_LABELS = 40


def latency_over_iops(curves: CurveSet, variants: t.Sequence[str], name: str) -> Chart:
    """The hockey stick: latency on a logarithmic axis, one mark for each load, the limit as a line."""
    data = []
    is_labelled = sum(len(curve.values) for curve in curves.curves) <= _MOST_LABELS
    for curve in curves.curves:
        known = [value for value in curve.values if value.latency]
        data.append(
            {
                **line_of(variants, curve.variant),
                "x": [rounded(value.iops) for value in known],
                "y": [rounded((value.latency or 0) / 1e6) for value in known],
                **({"mode": "lines+markers+text", "textposition": "top center", "textfont": {"size": 10}, "cliponaxis": False} if is_labelled else {}),
                "text": [load_name(value, curves.load) for value in known],
                "customdata": [counted(value.hosts, "host") for value in known],
                "hovertemplate": f"%{{x{HOVER}}} {curves.rate.unit}, %{{y{HOVER}}} ms<br>{curves.load} %{{text}}, %{{customdata}}",
            }
        )
    layout = layout_of(curves.rate.axis, f"{curves.latency_name} latency (ms)")
    heights = [rounded(value.latency / 1e6) for curve in curves.curves for value in curve.values if value.latency]
    log_axis(layout["yaxis"], [*heights, curves.limit / 1e6 if curves.limit else None])
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
                "text": f"limit {latency(curves.limit)}",
                "showarrow": False,
            }
        ]
    return Chart(name, curves.title, data, layout)


def over_load(curves: CurveSet, variants: t.Sequence[str], name: str) -> list[Chart]:
    """IOPS, bandwidth and latency against jobs or queue depth."""
    charts: tuple[tuple[str, str, t.Callable[[LoadValue], float | None], bool], ...] = (
        *([("iops", "IOPS (1/s)", lambda value: value.iops, False)] if curves.rate is IOPS else []),
        ("bandwidth", "bandwidth (MB/s)", lambda value: value.bandwidth / 1e6 if value.bandwidth is not None else None, False),
        ("latency", f"{curves.latency_name} latency (ms)", lambda value: value.latency / 1e6 if value.latency else None, True),
    )
    found = []
    for what, label, read, is_log in charts:
        data = [
            {
                **line_of(variants, curve.variant),
                "x": [load_name(value, curves.load) for value in curve.values],
                "y": [rounded(read(value)) for value in curve.values],
                "hovertemplate": f"{curves.load} %{{x}}: %{{y{HOVER}}}",
            }
            for curve in curves.curves
        ]
        layout = layout_of(curves.load, label)
        layout["xaxis"].update(type="category", categoryorder="array", categoryarray=_all_loads(curves))
        if is_log:
            log_axis(layout["yaxis"], [value for trace in data for value in trace["y"]])
        else:
            layout["yaxis"]["rangemode"] = "tozero"
        found.append(
            Chart(
                f"{name}-{what}",
                f"{label.partition(' (')[0]} over {curves.load}: {_least_latency(curves) if is_log else _most(curves, what, read)}",
                data,
                layout,
            )
        )
    return found


def _most(curves: CurveSet, what: str, read: t.Callable[[LoadValue], float | None]) -> str:
    """The most there is, and in which variants."""
    tops = {}
    for curve in curves.curves:
        known = [(value, one) for one in curve.values if (value := read(one)) is not None]
        if known:
            tops[curve.variant] = max(known, key=lambda found: found[0])
    if not tops:
        return "not known"
    leader = max(tops, key=lambda variant: tops[variant][0])
    value, at = tops[leader]
    most = f"most is {figure(value)}{' MB/s' if what == 'bandwidth' else ''}"
    compared = [are_of_same_hosts(values) for values in by_load(curves.curves)]
    if not all(compared):
        return f"{most}; {NO_SHARED_HOST}{' at some loads' if any(compared) else ''}"
    # Where nothing is shown, the most is a value and no variant's.
    return f"{most} at {load_name(at, curves.load)}{_in(curves, [leader] if 'iops' in at.leads else [])}"


def _least_latency(curves: CurveSet) -> str:
    """The least at the highest load that every variant was measured at: at unlike loads it would be that of the lowest load."""
    loads = by_load(curves.curves)
    known = [values for values in loads if len(values) == len(curves.curves) and all(one.latency for one in values.values())]
    common = [values for values in known if are_of_same_hosts(values)]
    if not common:
        several = len(curves.curves) > 1
        return NO_SHARED_HOST if known else "no load was measured in every variant" if several else "not known"
    values = common[-1]
    where = load_name(next(iter(values.values())), curves.load)
    highest = "" if values is loads[-1] else ", the highest load of every variant," if len(curves.curves) > 1 else ", the highest load that has one"
    leaders = [variant for variant, one in values.items() if "latency" in one.leads]
    least = f"{latency(min(one.latency or 0.0 for one in values.values()))} at {where}{highest}{_in(curves, leaders)}"
    return f"least is {least}" if len(curves.curves) > 1 else least


def _in(curves: CurveSet, variants: t.Sequence[str]) -> str:
    return f" in {listed(variants, 3)}" if variants and len(curves.curves) > 1 else ""


def _all_loads(curves: CurveSet) -> list[str]:
    values = sorted({(value.load, value.jobs, load_name(value, curves.load)) for curve in curves.curves for value in curve.values})
    return list(dict.fromkeys(name for _load, _jobs, name in values))


def _limit_line(at: float) -> dict[str, t.Any]:
    return {"type": "line", "x0": 0, "x1": 1, "y0": at, "y1": at, "line": {"width": 1.5, "dash": "dash", "color": "#d62728"}}


#: Distinguishable with the common forms of colour blindness, on white and on black (Okabe and Ito 2008, the light ones darker).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8f8412", "#4d9fd6", "#b8860b", "#7f7f7f", "#9467bd", "#e41a1c")
_DASHES = ("solid", "dash", "dot", "dashdot")

#: Distinguishable in black and white too.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross", "star", "pentagon", "hourglass")

#: More ticks than this of one axis are thinned out to powers of ten.
_MOST_TICKS = 10


@dataclass(frozen=True)
class Chart:
    """:param title: the finding; :param data: and ``layout``: as plotly takes them. :param notes: what a reader must know in addition."""

    name: str
    title: str
    data: list[dict[str, t.Any]]
    layout: dict[str, t.Any]
    notes: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, t.Any]:
        return {"data": self.data, "layout": self.layout}

    def to_choice(self) -> dict[str, t.Any]:
        """As one of a picker."""
        return {**self.to_dict(), "title": self.title}


def chart_text(text: str) -> str:
    """Text for plotly, which would take ``<b>`` for markup."""
    return html.escape(text, quote=False)


def style_of(variants: t.Sequence[str], variant: str) -> dict[str, str]:
    """Colour and dash of a variant, the same in every chart."""
    place = variants.index(variant)
    return {"color": COLOURS[place % len(COLOURS)], "dash": _DASHES[place // len(COLOURS) % len(_DASHES)]}


def mark_of(variants: t.Sequence[str], variant: str) -> dict[str, t.Any]:
    """Colour and shape of its marks, likewise."""
    place = variants.index(variant)
    return {"size": 8, "color": COLOURS[place % len(COLOURS)], "symbol": SYMBOLS[place % len(SYMBOLS)]}


def line_of(variants: t.Sequence[str], variant: str) -> dict[str, t.Any]:
    """A trace of lines with marks."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": chart_text(variant),
        "line": {"width": 2, **style_of(variants, variant)},
        "marker": mark_of(variants, variant),
    }


def layout_of(x: str, y: str) -> dict[str, t.Any]:
    axis = {"automargin": True, "zeroline": False}
    return {"xaxis": {**axis, "title": {"text": x}}, "yaxis": {**axis, "title": {"text": y, "standoff": 10}}, "hovermode": "closest", "showlegend": True}


def ticks(values: t.Iterable[float | None]) -> list[float]:
    """1, 2, 5, 10... around positive values, for a logarithmic axis; only powers of ten where there are too many."""
    known = [value for value in values if value and value > 0]
    if not known:
        return []
    low, high = math.floor(math.log10(min(known)) + 1e-9), math.ceil(math.log10(max(known)) - 1e-9)
    every = [float(f"{step}e{power}") for power in range(low, high + 1) for step in (1, 2, 5)]
    first = max((place for place, tick in enumerate(every) if tick <= min(known) * (1 + 1e-9)), default=0)
    last = min((place for place, tick in enumerate(every) if tick >= max(known) * (1 - 1e-9)), default=len(every) - 1)
    found = every[first : last + 1]
    return found if len(found) <= _MOST_TICKS else [tick for tick in found if str(tick).lstrip("0.").startswith("1")]


def log_axis(axis: dict[str, t.Any], values: t.Sequence[float | None]) -> None:
    """Make an axis logarithmic, with ticks at 1, 2 and 5 and room for all values."""
    marks = ticks(values)
    axis["type"] = "log"
    if marks:
        known = [value for value in values if value and value > 0]
        ends = math.log10(min(*marks, *known)), math.log10(max(*marks, *known))
        room = 0.04 * (ends[1] - ends[0]) or 0.1
        axis.update(tickvals=marks, ticktext=[tick_text(tick) for tick in marks], range=[ends[0] - room, ends[1] + room])
