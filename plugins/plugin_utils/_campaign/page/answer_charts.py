# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The picture of the answer: for each workload that decides the variants side by side, as bars with their intervals, on one scale."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.charts import Chart, chart_text, layout_of, mark_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import KEEPS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import HOVER, confidence, counted, figure, listed, rounded, span, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.analysis import Analysis
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Result, WorkloadAnswer

#: Workloads in one picture.
_MOST = 12

#: Of the height of a workload, all its bars together.
_FILLED = 0.8

_BAR_HEIGHT, _EDGES = 24, 120


class Bar(t.NamedTuple):
    """How many times as fast as the baseline, with the ends of its interval where it has one; whatever the metric, more is better."""

    value: float
    low: float | None
    high: float | None


def bar_of(one: WorkloadAnswer, result: Result) -> Bar | None:
    """``None`` for what could not be compared, or only with other hosts."""
    if result.variant == one.baseline:
        return Bar(1.0, None, None)
    ratio, found = result.ratio, result.comparison
    if not ratio or found is None or not result.same_hosts:
        return None
    ends = (found.interval.low, found.interval.high) if found.interval is not None else (None, None)
    if METRICS[one.question.metric].higher_is_better:
        return Bar(ratio, *ends)
    low, high = ends
    return Bar(1 / ratio, 1 / high if high else None, 1 / low if low else None)


def pictures(a: Analysis) -> list[Chart]:
    """One for each class of hosts, or more where it has many workloads; none of a campaign with one variant."""
    if len(a.variants) < 2:
        return []
    groups: dict[str, list[WorkloadAnswer]] = {}
    for one in a.answer.workloads:
        if any(bar_of(one, result) is not None for result in one.results if result.variant != one.baseline):
            groups.setdefault(one.host_class.label, []).append(one)
    parts = [(label, members[start : start + _MOST]) for label, members in groups.items() for start in range(0, len(members), _MOST)]
    return [
        _picture(a, members, label if len(groups) > 1 else "", f"answer-{place}", is_part=len(members) < len(groups[label]))
        for place, (label, members) in enumerate(parts)
    ]


def _picture(a: Analysis, workloads: t.Sequence[WorkloadAnswer], label: str, name: str, *, is_part: bool) -> Chart:
    shown = [variant for variant in a.variants if any(one.result(variant) is not None for one in workloads)]
    width = _FILLED / len(shown)
    data = []
    for place, variant in enumerate(shown):
        bars = [(row, one, result, drawn) for row, one in enumerate(workloads) if (result := one.result(variant)) and (drawn := bar_of(one, result))]
        if bars:
            ys = [row + (place - (len(shown) - 1) / 2) * width for row, *_rest in bars]
            data += _traces(a, variant, bars, ys, width)
    layout = layout_of(f"times as fast as {chart_text(a.answer.baseline)}", "")
    names = [chart_text(answer_text.workload_name(one)) for one in workloads]
    layout["yaxis"].update(tickvals=list(range(len(names))), ticktext=names, range=[len(names) - 0.5, -0.5], showgrid=False)
    known = [drawn for one in workloads for result in one.results if (drawn := bar_of(one, result))]
    layout["xaxis"].update(range=[0, 1.3 * max(max(drawn.value, drawn.high or 0.0) for drawn in known)])
    layout["shapes"] = [{"type": "line", "yref": "paper", "y0": 0, "y1": 1, "x0": 1, "x1": 1, "line": {"width": 1, "dash": "dot", "color": "#7f7f7f"}}]
    layout["height"] = _EDGES + max(44, _BAR_HEIGHT * len(shown)) * len(workloads)
    return Chart(name, f"{label}{': ' if label else ''}{_title(workloads, is_part=is_part)}", data, layout)


def _traces(
    a: Analysis, variant: str, bars: t.Sequence[tuple[int, WorkloadAnswer, Result, Bar]], ys: t.Sequence[float], width: float
) -> list[dict[str, t.Any]]:
    """Bars, solid where acknowledged writes survive a power failure and hatched elsewhere; and marks with intervals at their ends."""
    mark = mark_of(a.variants, variant)
    values = [rounded(drawn.value) for _row, _one, _result, drawn in bars]
    group = {"legendgroup": chart_text(variant), "name": chart_text(variant)}
    solid = [result.acknowledged == KEEPS for _row, _one, result, _bar in bars]
    pattern = {"shape": ["" if kept else "/" for kept in solid], "fillmode": "overlay", "fgcolor": "#ffffff", "fgopacity": 1, "size": 7, "solidity": 0.4}
    marker = {"color": mark["color"], "opacity": 0.6, "pattern": pattern}
    about = [chart_text(f"{answer_text.value_of(one, result)}, {result.verdict.replace('_', ' ')}, {_interval(result)}") for _row, one, result, _bar in bars]
    labels = [chart_text(_label(one, result, drawn)) for _row, one, result, drawn in bars]
    error = {
        "type": "data", "symmetric": False, "thickness": 1.6, "width": 4,
        "array": [rounded((drawn.high or drawn.value) - drawn.value) for *_rest, drawn in bars],
        "arrayminus": [rounded(drawn.value - (drawn.low or drawn.value)) for *_rest, drawn in bars],
    }  # fmt: skip
    silent = {"showlegend": False, "hoverinfo": "skip"}
    ends = [rounded(max(drawn.high or 0.0, drawn.value)) for *_rest, drawn in bars]
    bodies = {**group, **silent, "type": "bar", "orientation": "h", "x": values, "y": list(ys), "width": width * 0.9, "marker": marker}
    marks = {**group, "type": "scatter", "mode": "markers", "x": values, "y": list(ys), "marker": mark, "error_x": error, "text": about}
    written = {**group, **silent, "type": "scatter", "mode": "text", "x": ends, "y": list(ys), "text": labels}
    return [
        bodies,
        {**marks, "hovertemplate": f"%{{x{HOVER}}} times as fast<br>%{{text}}"},
        {**written, "textposition": "middle right", "textfont": {"size": 11}, "cliponaxis": False},
    ]


def _label(one: WorkloadAnswer, result: Result, drawn: Bar) -> str:
    """Behind the bar: the ratio, and what must be seen with it."""
    star = " \u2605" if result.variant == one.recommended else ""
    return f"  {times(drawn.value)}{star}{' noisy' if result.is_noisy else ''}"


def _interval(result: Result) -> str:
    found = result.comparison
    if found is None or found.interval is None:
        return "no interval"
    return f"ratio {span(found.interval.low, found.interval.high)}, {confidence(found.interval.confidence)}"


def _title(workloads: t.Sequence[WorkloadAnswer], *, is_part: bool) -> str:
    """Which variants are recommended in how many of these workloads, and by how much."""
    gains: dict[str, list[float]] = {}
    for one in workloads:
        result = one.result(one.recommended) if one.recommended else None
        drawn = bar_of(one, result) if result is not None else None
        if drawn is not None and result is not None:
            gains.setdefault(result.variant, []).append(drawn.value)
    metrics = len({(one.question.cell, one.question.direction) for one in workloads}) < len(workloads)
    count = f"{'these ' if is_part else ''}{counted(len(workloads), 'comparison' if metrics else 'workload')}"
    base = workloads[0].baseline
    if not gains:
        which = f" that keeps what {base} keeps" if any(one.has_risky_gain for one in workloads) else ""
        return f"no variant{which} is shown to be better than {base} in {'this workload' if len(workloads) == 1 else f'any of {count}'}"
    bursts = {one.recommended for one in workloads if one.burst}
    gains_of_variants = [
        f"{variant} is better in {len(found)} of {count}, {_ends(found)} times as fast as {base}{' (a burst)' if variant in bursts else ''}"
        for variant, found in gains.items()
    ]
    return listed(gains_of_variants, 4)


def _ends(gains: t.Sequence[float]) -> str:
    return span(min(gains), max(gains)) if min(gains) < max(gains) else figure(gains[0])
