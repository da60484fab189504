# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What all charts have in common: plotly's plain data and layout, colours, dashes and marks of variants, ticks. Text colours are the page's."""

from __future__ import annotations

import html
import math
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import tick_text

#: Distinguishable with the common forms of colour blindness, on white and on black (Okabe and Ito 2008, the light ones darker).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8f8412", "#4d9fd6", "#b8860b", "#7f7f7f", "#9467bd", "#e41a1c")
_DASHES = ("solid", "dash", "dot", "dashdot")

#: Distinguishable in black and white too.
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "cross", "star", "pentagon", "hourglass")

#: More ticks than this of one axis are thinned out to powers of ten.
_MOST_TICKS = 10


@dataclass(frozen=True)
class Chart:
    """:param title: the finding; :param data: and ``layout``: as plotly takes them. :param notes: what a reader must know beside it."""

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
