# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts of what happened along a run: all hosts of a cell together, single series with their levels, and rounds with their window."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.charts import Chart, chart_text, layout_of, line_of, mark_of, style_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.problems import NamedSeries, every_second, range_sentence, series_sentence
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.series import FEWEST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import HOVER, counted, figure, in_seconds, rounded

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rounds import RoundsRun
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Band

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
                "mode": "lines+markers",
                "marker": {**mark_of(variants, band.variant), "maxdisplayed": _MOST_MARKS},
                "y": [rounded(value) for value in band.middle],
                "name": chart_text(band.variant),
                "line": {"width": 2, **style},
                "hovertemplate": f"%{{x}} s: %{{y{HOVER}}} IOPS",
            }
        )
    layout = layout_of("time since the start (s)", "IOPS (1/s)")
    layout["yaxis"]["rangemode"] = "tozero"
    hosts = max(band.hosts for band in cells)
    first = cells[0]
    ends = [(band.variant, *_ends(settled)) for band in cells if (settled := _of_all_runs(band))]
    moved = max(ends, key=lambda one: abs(math.log(max(one[2], 1e-9) / max(one[1], 1e-9))), default=None)
    longest = max(len(_of_all_runs(band)) for band in cells)
    shortest = min((band.common for band in cells if band.common is not None), default=None)
    if moved is None:
        sentence = "no numbers"
    elif longest < FEWEST:
        sentence = f"too short to say: {longest} s of at least {FEWEST} s"
    elif abs(moved[2] / max(moved[1], 1e-9) - 1) < _NOTICED:
        sentence = f"{'no variant' if len(cells) > 1 else moved[0]} {'ends' if len(cells) > 1 else 'does not end'} more than 5 % from where it began"
    else:
        sentence = f"from {figure(moved[1])} to {figure(moved[2])} IOPS in {moved[0]}"
    if shortest is not None and any(second > shortest for band in cells for second in band.second):
        sentence += f" in the first {in_seconds(shortest)}, when the first run ends"
    spread = f", middle of {counted(hosts, 'host')}; the band holds eight of ten" if hosts > 1 else ""
    return Chart(name, f"{first.cell} ({first.direction}): {sentence}{spread}", data, layout)


def _of_all_runs(band: Band) -> list[float]:
    """The middle while all runs are measured: after the end of one the others alone are another level, and no change."""
    return [value for second, value in zip(band.second, band.middle) if band.common is None or second <= band.common]


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
    # A line of one point cannot be seen.
    shown = {"type": "scatter", "mode": "lines" if len(x) > 1 else "markers", "x": x}
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
    if levels:
        data.append({**shown, "mode": "lines", "x": steps_x, "y": steps_y, "name": LEVELS, "line": {"width": 2.5, "color": INK}})
    layout = layout_of("time since the start (s)", "IOPS (1/s)")
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
    return Chart(name, f"{series_sentence(one.finding)}{spread}: {where}", data, layout)


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
