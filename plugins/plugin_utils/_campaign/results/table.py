# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign as plain text for a terminal, or for a file. Pure: text in, text out, no colours.

IOPS are per second, MB/s are 10^6 bytes, latencies are as fio measured them; ``-`` stands for what was not measured.
What is the same on every line is printed once below. In a narrow terminal a host is a heading, and columns are left out.
"""

from __future__ import annotations

import re
import textwrap
import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import NO_RESULT, STATES, SWEEP_FOLDER
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results import columns
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Column
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Ratio
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Row
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import DIFFERENCE, MOST_REPEATS, NOISE_GATE, repeats_for
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import NOTHING, counted, listed, share, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign

#: Columns where the width of the terminal is not known.
WIDTH = 120
#: Wide enough for anything.
UNLIMITED = 10**6

_NARROWEST = 8
#: A name is not cut below this for a column that can be left out.
_READABLE = 18
#: Sentences of the answer.
_MOST_ANSWERS = 12
#: What is printed once where it is the same on all of so many lines or more.
_DROPPABLE = frozenset({"HOST", "VARIANT", "CELL", "RUNS", "SPREAD", "STATE", "VERDICT"})
_FEWEST_TO_DROP = 3
_NOTE_WIDTH = 60
#: Below so many columns a host is a heading, and these columns are left out, in this order, until a line fits.
_WIDE = 100
_DISPENSABLE = ("p50", "MB/s", "SPREAD", "p99.9", "RUNS")

_LEFT = frozenset({"HOST", "VARIANT", "CELL", "STATE", "VERDICT", "NOTE"})
#: What gives way in a narrow terminal.
_SHRINK = ("CELL", "HOST", "VARIANT")
#: A latency with the mark of rows that were synced; in a narrow terminal none may be left.
_SYNCED = re.compile(r"[0-9] +[nµm]?s\*")
#: The parts of a figure: before the decimal point, after it, unit.
_FIGURE = re.compile(r"(-|[0-9,]+)((?:\.[0-9]+)?)(.*)\Z", re.DOTALL)


def render(
    campaign: Campaign,
    rows: t.Sequence[Row],
    ratios: t.Sequence[Ratio],
    notes: t.Mapping[str, str] | None = None,
    together: t.Sequence[str] = (),
    answers: t.Sequence[str] = (),
    answer: t.Sequence[str] = (),
    caveats: t.Sequence[str] = (),
    *,
    width: int = WIDTH,
    most_rows: int = 0,
) -> str:
    """The whole report, the answer first.

    :param notes: by host, further reasons why results are missing; they may come from a host.
    :param together: the notes on the rows of several hosts.
    :param answers: what searches and rounds have found.
    :param answer: the result of the comparison of variants, by workload.
    :param caveats: what the answer must be read with, however many workloads there are.
    :param width: columns of the terminal; ``UNLIMITED`` for a file.
    :param most_rows: rows of the table; 0 for all.
    """

    def wrapped(line: str) -> str:
        return textwrap.fill(line, width, initial_indent="  ", subsequent_indent="      ", break_long_words=False, break_on_hyphens=False)

    blocks = [f"Campaign {campaign.name}"]
    if answer:
        rest = len(answer) - _MOST_ANSWERS
        more = [f"and {counted(rest, 'more workload')}, in the report"] if len(answer) > _MOST_ANSWERS else []
        blocks.append("Answer:\n" + "\n".join(wrapped(plain(line, 1000)) for line in [*answer[:_MOST_ANSWERS], *more, *caveats]))
    shown = rows[:most_rows] if most_rows else rows
    # The end of a sweep has its own reasons.
    sweep = (campaign.path / SWEEP_FOLDER).is_dir()
    unplanned = "Nothing was planned and nothing was measured: no host has fio_benchmark_file or fio_benchmark_targets."
    nothing = "Nothing was measured." if notes or sweep else unplanned
    blocks.append(_laid_out(_columns(_mixed(shown)), shown, width) if rows else nothing)
    if len(shown) < len(rows):
        blocks[-1] += f"\nand {counted(len(rows) - len(shown), 'more row')}: -e report_rows=all prints them"
    if _SYNCED.search(blocks[-1]):
        blocks[-1] += f"\n{columns.SYNCED_NOTE}"
    noisy = _noise(rows, campaign.name, "sweep_repeats" if sweep else "fio_benchmark_repeats")
    if noisy:
        blocks.append(wrapped(noisy).lstrip())
    if answers:
        blocks.append("Searches and rounds:\n" + "\n".join(wrapped(plain(line, 400)) for line in answers))
    if together:
        blocks.append("All at once:\n" + "\n".join(wrapped(plain(line, 400)) for line in together))
    if ratios:
        in_order = {row.cell for row in rows if row.is_sequential}
        blocks.append(_ratios(ratios[:most_rows] if most_rows else ratios, width, in_order))
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
            reason = plain(notes[record.host], 300) if record.reason == NO_RESULT and notes.get(record.host) else record.reason
            shared.setdefault((record.host, record.key.variant, record.state, reason), []).append(f"{record.key.cell}/{record.key.repeat}")
    lines = [f"{host} {variant} {listed(cells, 4)}: {state}" + (f": {reason}" if reason else "") for (host, variant, state, reason), cells in shared.items()]
    return lines + [f"{plain(host)}: {plain(note, 300)}" for host, note in notes.items() if host not in missing]


def count(campaign: Campaign) -> str:
    """``8 cells: 7 ok, 1 missing``."""
    states = [record.state for record in campaign.cells]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
    return f"{counted(len(states), 'cell')}" + (f": {counts}" if counts else "")


def _noise(rows: t.Sequence[Row], campaign: str, variable: str) -> str:
    """Which rows are noisy, and how many repeats the noisiest needs, by the variable of the playbook that measured them."""
    noisy = [row for row in rows if row.state == "noisy"]
    if not noisy:
        return ""
    most = max(noisy, key=lambda row: row.noise or 0.0)
    what = f"Noisy: the repeats of {len(noisy)} of {len(rows)} rows vary by more than {share(NOISE_GATE)} (standard deviation by mean)"
    where = f"most those of {plain(most.host)} {plain(most.variant)} {plain(most.cell)}: {share(most.noise)}."
    needed = repeats_for(most.noise or 0.0)
    enough = f"A difference of {share(DIFFERENCE)} needs {counted(needed, 'repeat')}"
    if needed > MOST_REPEATS:
        return f"{what}, {where} {enough}: an idle host is needed, find what else runs there."
    if all(row.runs >= needed for row in noisy):
        return f"{what}, {where} {enough}, which were measured."
    again = f"-e fio_benchmark_campaign={plain(campaign)} -e {variable}={needed}"
    return f"{what}, {where} {enough}: measure the same suite and variants again, on idle hosts, with {again}."


def _columns(several: t.Container[tuple[str, str, str]]) -> tuple[Column, ...]:
    """:param several: the points that have more than one direction."""
    return (
        Column("HOST", lambda row: plain(row.host)),
        Column("VARIANT", lambda row: plain(row.variant)),
        _cell_column(several),
        *columns.MEASURED,
        Column("RUNS", lambda row: f"{row.runs}/{row.planned}"),
        Column("SPREAD", lambda row: row.spread, share),
        Column("STATE", lambda row: row.state),
        Column("VERDICT", lambda row: plain(row.verdict, 24) if row.verdict else NOTHING),
    )


def _cell_column(several: t.Container[tuple[str, str, str]]) -> Column:
    return Column("CELL", lambda row: plain(row.cell) + (f" ({row.direction})" if _identity(row) in several else ""))


def _laid_out(of: t.Sequence[Column], rows: t.Sequence[Row | Ratio], width: int) -> str:
    """Columns that differ, in the width of the terminal; what is the same on every line is printed once below."""
    texts = {one.title: [one.text(row) for row in rows] for one in of}
    same = [name for name in texts if name in (*_DROPPABLE, "NOTE") and len(rows) >= _FEWEST_TO_DROP and len(set(texts[name])) == 1]
    notes = [f"{name.lower()} {texts[name][0]}" if name != "NOTE" else texts[name][0] for name in same if texts[name][0] != NOTHING]
    empty = [one.name for one in SHOWN if set(texts.get(one.name, [""])) == {NOTHING}]
    figures = {one.title for one in of if one.style == "n"}
    kept = {name: _pointed(values) if name in figures else values for name, values in texts.items() if name not in (*same, *empty)}
    is_narrow = width < _WIDE
    hosts = kept.pop("HOST") if is_narrow and "HOST" in kept else None
    left_out = []
    # Sequential I/O is counted in MB/s.
    kept_rate = {"MB/s"} if any(getattr(row, "is_sequential", False) for row in rows) else frozenset()
    for name in [one for one in _DISPENSABLE if one not in kept_rate] if is_narrow else ():
        if _least(kept) <= width - (2 if hosts else 0):
            break
        if kept.pop(name, None) is not None:
            left_out.append(name)
    text = _aligned(kept, width, hosts)
    remarks = [f"On every line: {', '.join(notes)}."] if notes else []
    remarks += [f"Not measured, or of too few I/Os: {', '.join(empty)}."] if empty else []
    remarks += [f"Not shown below {_WIDE} columns: {', '.join(left_out)}."] if left_out else []
    return "\n".join([text, *(line for one in remarks for line in textwrap.wrap(one, width, break_long_words=False))])


def _least(columns: t.Mapping[str, t.Sequence[str]]) -> int:
    """Characters of a line whose names are cut as far as they can still be read."""
    widths = {name: max(len(name), *map(len, values)) for name, values in columns.items()}
    return sum(min(wide, _READABLE) if name in _SHRINK else wide for name, wide in widths.items()) + 2 * (len(columns) - 1)


def _pointed(values: t.Sequence[str]) -> list[str]:
    """Figures with their decimal points, and their units, below each other."""
    parts = [match.groups() if (match := _FIGURE.match(value)) else (value, "", "") for value in values]
    whole, fraction, unit = (max(len(part[place]) for part in parts) for place in range(3))
    return [f"{part[0].rjust(whole)}{part[1].ljust(fraction)}{part[2].ljust(unit)}" for part in parts]


def _identity(row: Row | Ratio) -> tuple[str, str, str]:
    return row.host, row.variant, row.cell


def _mixed(rows: t.Sequence[Row | Ratio]) -> set[tuple[str, str, str]]:
    """The points that have more than one direction."""
    return {point for point, lines in Counter(map(_identity, rows)).items() if lines > 1}


def _ratios(ratios: t.Sequence[Ratio], width: int, in_order: t.Container[str]) -> str:
    """:param in_order: cells with sequential I/O, whose ratio is that of their MB/s too."""
    shown = (
        Column("HOST", lambda row: plain(row.host)),
        _cell_column(_mixed(ratios)),
        Column("VARIANT", lambda row: plain(row.variant)),
        Column("RATIO", lambda row: row.ratio, times, style="n"),
        Column("NOTE", lambda row: plain(row.note, 1000)),
    )
    kinds = {one.cell in in_order for one in ratios}
    what = "MB/s" if kinds == {True} else "IOPS, of sequential cells MB/s," if True in kinds else "IOPS"
    return f"{what} against variant {plain(ratios[0].baseline)} (median ratio of the repeats)\n{_laid_out(shown, ratios, width)}"


def _aligned(columns: t.Mapping[str, t.Sequence[str]], width: int, headings: t.Sequence[str] | None = None) -> str:
    """Columns two spaces apart that fit into a line, unless different names would be cut to the same text; a note has its lines below each other.

    :param headings: one for each line; each is printed once, above the lines that have it.
    """
    names = list(columns)
    room = width - (2 if headings else 0)
    folded = [_folded(note, room) for note in columns.get("NOTE", ())]
    shown = {name: [note[0] for note in folded] if name == "NOTE" else values for name, values in columns.items()}
    lines = [names, *([values[place] for values in shown.values()] for place in range(len(next(iter(columns.values())))))]
    shrink = [names.index(name) for name in _SHRINK if name in names]
    widths = widths_of(lines, shrink, room)
    if "NOTE" in names:
        widths[-1] = max(len(line) for note in folded for line in note)
    for column in shrink:
        distinct = {line[column] for line in lines}
        while len({cut(name, widths[column]) for name in distinct}) < len(distinct):
            widths[column] += 1
    indent = "  " if headings else ""
    text, before = [indent + _line(lines[0], names, widths)], None
    for place, line in enumerate(lines[1:]):
        if headings and headings[place] != before:
            before = headings[place]
            text.append(before)
        text.append(indent + _line(line, names, widths))
        text += [indent + " " * (sum(widths[:-1]) + 2 * (len(widths) - 1)) + more for more in (folded[place][1:] if folded else ())]
    return "\n".join(text)


def _line(cells: t.Sequence[str], names: t.Sequence[str], widths: t.Sequence[int]) -> str:
    texts = (cut(text, wide).ljust(wide) if name in _LEFT else text.rjust(wide) for text, name, wide in zip(cells, names, widths, strict=True))
    return "  ".join(texts).rstrip()


def _folded(note: str, width: int) -> list[str]:
    return textwrap.wrap(note, min(_NOTE_WIDTH, max(width // 2, _NARROWEST))) or [""]


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
