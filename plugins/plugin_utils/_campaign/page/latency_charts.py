# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The distribution of latencies of a cell: every percentile that is known, in every variant."""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.charts import Chart, layout_of, line_of, log_axis
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import NO_SHARED_HOST
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import HOVER, counted, latency, listed, rounded

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.distributions import Distribution

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
