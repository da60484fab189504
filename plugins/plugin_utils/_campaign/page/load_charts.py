# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Charts over the load: latency over IOPS, and IOPS, bandwidth and latency over jobs or queue depth."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.charts import Chart, layout_of, line_of, log_axis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import are_of_same_hosts, by_load, load_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import NO_SHARED_HOST, first_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import HOVER, counted, figure, latency, listed, rounded

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import CurveSet, LoadValue

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
                "hovertemplate": f"%{{x{HOVER}}} IOPS, %{{y{HOVER}}} ms<br>{curves.load} %{{text}}, %{{customdata}}",
            }
        )
    layout = layout_of("IOPS (1/s)", f"{curves.latency_name} latency (ms)")
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
        ("iops", "IOPS (1/s)", lambda value: value.iops, False),
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
    names = first_of([(value, variant) for variant, (value, _one) in tops.items()])
    most = f"most is {figure(max(value for value, _one in tops.values()))}{' MB/s' if what == 'bandwidth' else ''}"
    compared = [are_of_same_hosts(values) for values in by_load(curves.curves)]
    if not all(compared):
        return f"{most}; {NO_SHARED_HOST}{' at some loads' if any(compared) else ''}"
    at: dict[str, list[str]] = {}
    for name in names:
        at.setdefault(load_name(tops[name][1], curves.load), []).append(name)
    return f"{most} {listed([f'at {load}{_in(curves, of)}' for load, of in at.items()])}"


def _least_latency(curves: CurveSet) -> str:
    """The least at the highest load that every variant was measured at: at unlike loads it would be that of the lowest load."""
    loads = by_load(curves.curves)
    known = [values for values in loads if len(values) == len(curves.curves) and all(one.latency for one in values.values())]
    common = [values for values in known if are_of_same_hosts(values)]
    if not common:
        several = len(curves.curves) > 1
        return NO_SHARED_HOST if known else "no load was measured in every variant" if several else "not known"
    values = common[-1]
    figures = [(one.latency or 0.0, variant) for variant, one in values.items()]
    where = load_name(next(iter(values.values())), curves.load)
    highest = "" if values is loads[-1] else ", the highest load of every variant," if len(curves.curves) > 1 else ", the highest load that has one"
    least = f"{latency(min(figures)[0])} at {where}{highest}{_in(curves, first_of(figures, lowest=True))}"
    return f"least is {least}" if len(curves.curves) > 1 else least


def _in(curves: CurveSet, variants: t.Sequence[str]) -> str:
    return f" in {listed(variants, 3)}" if len(curves.curves) > 1 else ""


def _all_loads(curves: CurveSet) -> list[str]:
    values = sorted({(value.load, value.jobs, load_name(value, curves.load)) for curve in curves.curves for value in curve.values})
    return list(dict.fromkeys(name for _load, _jobs, name in values))


def _limit_line(at: float) -> dict[str, t.Any]:
    return {"type": "line", "x0": 0, "x1": 1, "y0": at, "y1": at, "line": {"width": 1.5, "dash": "dash", "color": "#d62728"}}
