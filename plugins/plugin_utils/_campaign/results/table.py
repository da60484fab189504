# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""A campaign as plain text for a terminal, or for a file. Pure: text in, text out, no colours.

IOPS are per second, MB/s are 10^6 bytes, latencies are as fio measured them; ``-`` stands for what was not measured.
"""

from __future__ import annotations

import textwrap
import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import STATES, plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Ratio
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Row

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign

#: Columns where the width of the terminal is not known.
WIDTH = 120
#: Wide enough for anything.
UNLIMITED = 10**6

_NOTHING = "-"
_NARROWEST = 8
#: Sentences of the answer.
_MOST_ANSWERS = 12
#: What is printed once where it is the same on all of so many lines or more.
_DROPPABLE = frozenset({"VARIANT", "RUNS", "SPREAD", "STATE", "VERDICT"})
_FEWEST_TO_DROP = 3
_NOTE_WIDTH = 60


def render(
    campaign: Campaign,
    rows: t.Sequence[Row],
    ratios: t.Sequence[Ratio],
    notes: t.Mapping[str, str] | None = None,
    together: t.Sequence[str] = (),
    answers: t.Sequence[str] = (),
    answer: t.Sequence[str] = (),
    *,
    width: int = WIDTH,
    most_rows: int = 0,
) -> str:
    """The whole report, the answer first.

    :param notes: by host, further reasons why results are missing; they may come from a host.
    :param together: the notes on the rows of several hosts.
    :param answers: what searches and rounds have found.
    :param answer: the result of the comparison of variants, by workload.
    :param width: columns of the terminal; ``UNLIMITED`` for a file.
    :param most_rows: rows of the table; 0 for all.
    """

    def wrapped(line: str) -> str:
        return textwrap.fill(line, width, initial_indent="  ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)

    blocks = [f"Campaign {campaign.name}"]
    if answer:
        more = [f"and {len(answer) - _MOST_ANSWERS} more workloads, in the report"] if len(answer) > _MOST_ANSWERS else []
        blocks.append("Answer:\n" + "\n".join(wrapped(plain(line, 1000)) for line in [*answer[:_MOST_ANSWERS], *more]))
    shown = rows[:most_rows] if most_rows else rows
    blocks.append(_table(shown, width))
    if len(shown) < len(rows):
        blocks[-1] += f"\nand {len(rows) - len(shown)} more rows: -e report_rows=all prints them"
    if any(row.synced for row in rows):
        blocks[-1] += "\n* latency of the sync that makes the write durable, not of the write"
    if answers:
        blocks.append("Searches and rounds:\n" + "\n".join(wrapped(plain(line, 400)) for line in answers))
    if together:
        blocks.append("All at once:\n" + "\n".join(wrapped(plain(line, 400)) for line in together))
    if ratios:
        blocks.append(_ratios(ratios[:most_rows] if most_rows else ratios, width))
    trouble = troubles(campaign, notes or {})
    if trouble:
        blocks.append("Not ok:\n" + "\n".join(map(wrapped, trouble)))
    if campaign.problems:
        blocks.append("Left out:\n" + "\n".join(wrapped(plain(line, 300)) for line in campaign.problems))
    blocks.append(f"{count(campaign)}. Results: {campaign.path}")
    return "\n\n".join(blocks)


def troubles(campaign: Campaign, notes: t.Mapping[str, str]) -> list[str]:
    """One line for every measurement that is not ok: which, and why. Repeats and cells with one reason share a line.

    A host with a note and nothing missing has a line too: whatever stopped it may have stopped it before it had a plan.
    """
    shared: dict[tuple[str, str, str, str], list[str]] = {}
    missing = {record.host for record in campaign.cells if record.state == "missing"}
    for record in campaign.cells:
        if record.state != "ok":
            reason = plain(notes[record.host], 300) if record.state == "missing" and notes.get(record.host) else record.reason
            shared.setdefault((record.host, record.key.variant, record.state, reason), []).append(f"{record.key.cell}/{record.key.repeat}")
    lines = [f"{host} {variant} {_abbreviate(cells)}: {state}" + (f": {reason}" if reason else "") for (host, variant, state, reason), cells in shared.items()]
    return lines + [f"{plain(host)}: {plain(note, 300)}" for host, note in notes.items() if host not in missing]


def count(campaign: Campaign) -> str:
    """``8 cells: 7 ok, 1 missing``."""
    states = [record.state for record in campaign.cells]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
    return f"{len(states)} {'cell' if len(states) == 1 else 'cells'}" + (f": {counts}" if counts else "")


def format_count(value: float | None) -> str:
    """IOPS or MB/s with as many digits as mean something."""
    if value is None:
        return _NOTHING
    return f"{value:.0f}" if value >= 100 or value == 0 else f"{value:.3g}"


def format_latency(nanoseconds: float | None) -> str:
    """``812 us``, ``45.1 ms``, ``1.2 s``."""
    if nanoseconds is None:
        return _NOTHING
    for unit, name in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        # From 999.5 on three digits would round up to the next unit's 1.
        if nanoseconds >= unit * 0.9995:
            return f"{_digits(nanoseconds / unit)} {name}"
    return f"{nanoseconds:.0f} ns"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def _table(rows: t.Sequence[Row], width: int) -> str:
    if not rows:
        return "Nothing was planned and nothing was measured: no host has fio_benchmark_targets."
    several = _mixed(rows)
    header = ["HOST", "VARIANT", "CELL", "IOPS", "MB/s", *(one.name for one in SHOWN), "RUNS", "SPREAD", "STATE", "VERDICT"]
    lines = [
        [
            plain(row.host),
            plain(row.variant),
            plain(row.cell) + (f" ({row.direction})" if _identity(row) in several else ""),
            format_count(row.iops),
            format_count(None if row.bandwidth is None else row.bandwidth / 1e6),
            *(format_latency(row.latency[one.name]) + ("*" if row.synced and row.latency[one.name] is not None else "") for one in SHOWN),
            f"{row.runs}/{row.planned}",
            _NOTHING if row.spread is None else f"{row.spread:.0%}",
            row.state,
            plain(row.verdict, 24) if row.verdict else _NOTHING,
        ]
        for row in rows
    ]
    left = {"HOST", "VARIANT", "CELL", "STATE", "VERDICT"}
    same = [column for column, name in enumerate(header) if name in _DROPPABLE and len(lines) >= _FEWEST_TO_DROP and len({line[column] for line in lines}) == 1]
    kept = [column for column in range(len(header)) if column not in same]
    note = ", ".join(f"{header[column].lower()} {lines[0][column]}" for column in same if lines[0][column] != _NOTHING)
    cells = [[line[column] for column in kept] for line in (header, *lines)]
    places = {header[column]: place for place, column in enumerate(kept)}
    shrink = [places[name] for name in ("CELL", "HOST", "VARIANT") if name in places]
    text = _aligned(cells, {place for name, place in places.items() if name in left}, shrink, width)
    return text + (f"\nOn every line: {note}." if note else "")


def _identity(row: Row | Ratio) -> tuple[str, str, str]:
    return row.host, row.variant, row.cell


def _mixed(rows: t.Sequence[Row | Ratio]) -> set[tuple[str, str, str]]:
    """The points that have more than one direction."""
    return {point for point, lines in Counter(map(_identity, rows)).items() if lines > 1}


def _ratios(ratios: t.Sequence[Ratio], width: int) -> str:
    mixed = _mixed(ratios)
    lines = [["HOST", "CELL", "VARIANT", "RATIO", "NOTE"]]
    for ratio in ratios:
        first, *more = textwrap.wrap(plain(ratio.note, 1000), _NOTE_WIDTH)
        cell = plain(ratio.cell) + (f" ({ratio.direction})" if _identity(ratio) in mixed else "")
        lines.append([plain(ratio.host), cell, plain(ratio.variant), _format_ratio(ratio.ratio), first])
        lines += [["", "", "", "", line] for line in more]
    title = f"IOPS against variant {plain(ratios[0].baseline)} (ratio of the medians)"
    return title + "\n" + _aligned(lines, {0, 1, 2, 4}, (1, 0, 2), width)


def _format_ratio(ratio: float | None) -> str:
    if ratio is None:
        return _NOTHING
    return f"{ratio:.2f}x" if ratio < 9.995 else f"{ratio:.1f}x"


def _aligned(lines: list[list[str]], left: t.Container[int], shrink: t.Sequence[int], width: int) -> str:
    """Columns two spaces apart that fit into a line, unless different names would be cut to the same text."""
    widths = widths_of(lines, shrink, width)
    for column in shrink:
        names = {line[column] for line in lines}
        while len({cut(name, widths[column]) for name in names}) < len(names):
            widths[column] += 1
    return "\n".join(
        "  ".join(
            cut(text, width).ljust(width) if column in left else text.rjust(width) for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def widths_of(lines: t.Sequence[t.Sequence[str]], shrink: t.Sequence[int], width: int) -> list[int]:
    """The widths of columns two spaces apart; those in ``shrink`` give way, widest first, until a line fits."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    while sum(widths) + 2 * (len(widths) - 1) > width:
        widest = max(shrink, key=lambda column: widths[column])
        if widths[widest] <= _NARROWEST:
            break
        widths[widest] -= 1
    return widths


def cut(text: str, width: int) -> str:
    """The text, or its two ends with ``~`` between: names of one fleet often differ at the end."""
    if len(text) <= width:
        return text
    tail = (width - 1) // 2
    return text[: width - 1 - tail] + "~" + text[len(text) - tail :]


def _abbreviate(names: t.Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
