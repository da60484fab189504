# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report page of SNIA's Performance Test Specification as two files: HTML without scripts, and Markdown."""

from __future__ import annotations

import base64
import hashlib
import math
import typing as t
from pathlib import Path

import jinja2
from markupsafe import Markup

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.page.write import write_files
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia import form, tested
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.form import Form, Line, Table
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.tables.views import read_tables
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted

#: The format, as a user names it.
FORM = "snia"

TITLE = "Report page by SNIA's Performance Test Specification 2.0.2"

_HERE = Path(__file__).parent
#: Pages in one file; a fleet is reported device by device, by its hosts.
_MOST_PAGES = 100
_WIDTH, _HEIGHT, _LEFT, _BELOW, _ABOVE = 880, 260, 78, 34, 26
_TICKS = 4


def write_form(campaign: Path) -> dict[str, str]:
    """Write the pages of all devices of a campaign, from its tables; the files by format.

    :raises ResultsError: if there are no tables, or a file cannot be written.
    :raises LibraryMissing: without duckdb or numpy.
    """
    devices = read_tables(campaign, lambda database: tested.read_tested(database, campaign))
    pages = [form.form_of(one, campaign.name) for one in devices[:_MOST_PAGES]]
    left_out = len(devices) - len(pages)
    files = write_files(campaign, {"snia.html": lambda: render(pages, campaign.name, left_out), "snia.md": lambda: markdown(pages, campaign.name, left_out)})
    return {FORM: files["snia.html"], f"{FORM}_markdown": files["snia.md"]}


def _left_out(count: int) -> str:
    return f"{counted(count, 'further device')} of this campaign have no page here: at most {_MOST_PAGES} are written." if count else ""


def render(pages: t.Sequence[Form], campaign: str, left_out: int = 0) -> str:
    """One file of HTML; nothing in it comes from a network, and no script runs in it."""
    css = (_HERE / "snia.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("snia.html.j2").render(
        title=TITLE,
        campaign=plain(campaign),
        pages=pages,
        left_out=_left_out(left_out),
        summary=form.summary,
        chart=lambda line: Markup(chart(line)),
        css=Markup(css),
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
    )


def chart(line: Line) -> str:
    """A chart as SVG. Its numbers are in the tables too, so it is one picture for those who cannot see it."""
    values = [value for _place, value in line.points]
    if not values:
        return ""
    bounds = [*values, *([line.average + line.limit] if line.average is not None and line.limit is not None else [])]
    # From 0: a range of 20 % must not look like one of 100 %.
    high = _TICKS * _step((max(bounds) or 1.0) / _TICKS)
    first, last = line.points[0][0], max(line.points[-1][0], line.points[0][0] + 1)

    def across(place: float) -> float:
        return round(_LEFT + (place - first) / (last - first) * (_WIDTH - _LEFT - 12), 1)

    def up(value: float) -> float:
        return round(_HEIGHT - _BELOW - value / high * (_HEIGHT - _BELOW - _ABOVE), 1)

    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{Markup.escape(line.title)}">']
    if line.window is not None:
        left, right = across(line.window[0]), across(line.window[1])
        wide = round(right - left, 1)
        parts.append(f'<rect class="window" x="{left}" y="{_ABOVE}" width="{wide}" height="{_HEIGHT - _BELOW - _ABOVE}"/>')
    for tick in range(_TICKS + 1):
        value = high * tick / _TICKS
        parts.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - 12}" y1="{up(value)}" y2="{up(value)}"/>')
        parts.append(f'<text class="left" x="{_LEFT - 8}" y="{up(value) + 4}">{form.rate(value) if tick else "0"}</text>')
    step = max(1, -(-len(line.points) // 13))
    for place, _value in line.points[::step]:
        parts.append(f'<text class="below" x="{across(place)}" y="{_HEIGHT - 16}">{place:g}</text>')
    if line.window is not None and line.average is not None:
        left, right = across(line.window[0]), across(line.window[1])
        levels = [("average", line.average)]
        levels += [("limit", line.average + sign * line.limit) for sign in (-1, 1)] if line.limit is not None else []
        parts += [f'<line class="{name}" x1="{left}" x2="{right}" y1="{up(value)}" y2="{up(value)}"/>' for name, value in levels]
        if line.fit is not None:
            parts.append(f'<line class="fit" x1="{left}" x2="{right}" y1="{up(line.fit[0])}" y2="{up(line.fit[1])}"/>')
    parts.append(f'<polyline class="data" points="{" ".join(f"{across(place)},{up(value)}" for place, value in line.points)}"/>')
    if len(line.points) <= 30:
        parts += [f'<circle class="point" cx="{across(place)}" cy="{up(value)}" r="3"/>' for place, value in line.points]
    parts.append(f'<text class="axis" x="{_WIDTH - 12}" y="{_HEIGHT - 2}">{Markup.escape(line.across)}</text>')
    parts.append(f'<text class="unit" x="4" y="12">{Markup.escape(line.unit)}</text></svg>')
    return "".join(parts)


def _step(value: float) -> float:
    """The next round number: 1, 2, 2.5 or 5 with zeroes."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= value)


def markdown(pages: t.Sequence[Form], campaign: str, left_out: int = 0) -> str:
    """The same without charts."""
    lines = [f"# {TITLE}", "", f"Campaign {escaped(plain(campaign))}.", ""]
    lines += [] if pages else ["Nothing was measured.", ""]
    lines += [f"- {escaped(one.title)}: {form.summary(one)}" for one in pages] + ([""] if pages else [])
    lines += [_left_out(left_out), ""] if left_out else []
    for one in pages:
        lines += [f"## {escaped(one.title)}", ""]
        for section in one.sections:
            lines += [f"### {escaped(section.title)}", ""]
            lines += _table(Table("", ("Field", "Value"), section.fields)) if section.fields else []
            for found in section.tables:
                lines += [f"{escaped(found.title)}:", "", *_table(found)]
            lines += [f"- {escaped(note)}" for note in section.notes] + ([""] if section.notes else [])
    return "\n".join(lines).rstrip("\n") + "\n"


def _table(found: Table) -> list[str]:
    rows = [found.heads, tuple("---" for _head in found.heads)]
    heads = ["| " + " | ".join(escaped(cell) for cell in rows[0]) + " |", "| " + " | ".join(rows[1]) + " |"]
    return [*heads, *("| " + " | ".join(escaped(cell) for cell in row) + " |" for row in found.rows), ""]
