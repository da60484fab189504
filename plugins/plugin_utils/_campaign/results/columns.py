# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Columns and tables, once for their four renderers: the terminal (``results/table.py``), Markdown (here), CSV (``page/twins.py``)
and HTML (``report.html.j2``).

:data:`MEASURED` are the figures of whatever was measured: a new one there is in the table of the terminal, in each cell of the comparison and of the sums
on the page and in Markdown, and a field of the CSV.
"""

from __future__ import annotations

import operator
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import NOTHING, figure, latency, megabytes, rounded

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

#: Marks percentiles of too few I/Os, and latencies of the sync that makes a write durable.
HIDDEN, SYNCED = "†", "*"

#: Explains the second mark.
SYNCED_NOTE = f"{SYNCED} latency of the sync that makes the write durable, not of the write"


class Badge(t.NamedTuple):
    """A word in a frame; ``kind``: ``durable``, ``at_risk`` or ``unknown``, its colour on the page."""

    text: str
    kind: str

    def __str__(self) -> str:
        return self.text


class Cell(t.NamedTuple):
    """What a table has in one place.

    :param notes: smaller below it on the page, behind it in Markdown. :param style: ``best`` or ``risky``, which have a star.
    """

    text: str | Badge
    notes: tuple[str | Badge, ...] = ()
    style: str = ""


@dataclass(frozen=True)
class Column:
    """One column.

    :param title: its heading; a figure that has its ``unit`` behind it does not need the title in a sentence.
    :param value: of a row, as it is; programs read that in CSV.
    :param write: how it is displayed: by a function of ``_text``, or as a :class:`Cell`.
    :param mark: of a row, what stands behind the text.
    :param field: the name in CSV; without one it is not there.
    :param is_brief: whether it stands in cells of the page and of Markdown that have several figures.
    :param style: classes of the page: ``n`` for figures, ``group`` for what is printed once for equal rows below each other, ``wrap`` for sentences.
    :param is_head: whether it names the row. :param about: smaller below the title.
    """

    title: str
    value: t.Callable[[t.Any], t.Any]
    write: t.Callable[[t.Any], str | Cell] = str
    unit: str = ""
    mark: t.Callable[[t.Any], str] = lambda _row: ""
    field: str = ""
    is_brief: bool = False
    style: str = ""
    is_head: bool = False
    about: str = ""

    def text(self, row: t.Any) -> str:
        """As the terminal has it."""
        return f"{self.write(self.value(row))}{self.mark(row)}"

    def phrase(self, row: t.Any) -> str:
        """Between other figures: ``5.82 MB/s``, ``p99 2 ms``."""
        return f"{self.text(row)} {self.unit}" if self.unit else f"{self.title} {self.text(row)}"

    def cell(self, row: t.Any) -> Cell:
        found = self.write(self.value(row))
        return found if isinstance(found, Cell) else Cell(found)


def figures(*columns: tuple[str, t.Callable[[t.Any], t.Any], t.Callable[[t.Any], str]]) -> list[Column]:
    """Columns of numbers: title, value, formatter of each."""
    return [Column(title, value, write, style="n") for title, value, write in columns]


@dataclass(frozen=True)
class Table:
    """A table of the page and of Markdown.

    :param name: its place in the page; ``has_cards``: a row is a card on a phone.
    :param most: rows that are printed; ``rest``: what is said of the others.
    :param attributes: of a row in HTML, for filters.
    """

    name: str
    columns: t.Sequence[Column]
    rows: t.Sequence[t.Any]
    has_cards: bool = False
    most: int = 100
    rest: str = "and {} more."
    attributes: t.Callable[[t.Any], t.Mapping[str, str]] = lambda _row: {}

    @property
    def lines(self) -> t.Iterator[list[Cell]]:
        return ([column.cell(row) for column in self.columns] for row in self.rows[: self.most])

    @property
    def remark(self) -> str:
        return self.rest.format(len(self.rows) - self.most) if len(self.rows) > self.most else ""

    @property
    def grouped(self) -> t.Iterator[tuple[t.Mapping[str, str], list[tuple[Column, Cell]]]]:
        """The lines of the page, without what the line above has in the same groups, and their attributes."""
        before: list[Cell] = []
        for row, cells in zip(self.rows, self.lines):
            same = bool(before)
            shown = []
            for place, (column, cell) in enumerate(zip(self.columns, cells)):
                same = same and column.style == "group" and before[place] == cell and not self.attributes(row)
                shown.append((column, Cell("") if same else cell))
            yield self.attributes(row), shown
            before = cells


#: In Markdown before what the page marks.
_STARS = {"best": "★ ", "risky": "☆ "}


def markdown_table(table: Table) -> list[str]:
    """Without rows there is none; what the page has below a text stands behind it."""
    rows = [["; ".join(map(str, (f"{_STARS.get(cell.style, '')}{cell.text}", *cell.notes))) for cell in line] for line in table.lines]
    return [*markdown_lines([column.title for column in table.columns], rows), *(["", table.remark] if table.remark else [])] if rows else []


def markdown_lines(heads: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(escaped(cell) for cell in row)} |" for row in (heads, *rows)]
    return [lines[0], f"|{' --- |' * len(heads)}", *lines[1:]]


def _hidden(name: str) -> t.Callable[[t.Any], str]:
    def mark(row: t.Any) -> str:
        if row.latency[name] is not None:
            return SYNCED if getattr(row, "synced", False) else ""
        return HIDDEN if name in getattr(row, "hidden", ()) else ""

    return mark


def _percentile(name: str) -> Column:
    """The page shows one of them: the others are in its charts of distributions."""
    return Column(name, lambda row: row.latency[name], latency, mark=_hidden(name), field=f"{name}_ns", is_brief=name == "p99", style="n")


#: What was measured, of a row of the terminal, of a point, of a cell of the comparison and of a sum, which have the same names. The first one leads,
#: the second one where the I/O is sequential.
MEASURED: tuple[Column, ...] = (
    Column("IOPS", operator.attrgetter("iops"), figure, unit="IOPS", field="iops", is_brief=True, style="n"),
    Column("MB/s", operator.attrgetter("bandwidth"), megabytes, unit="MB/s", field="bandwidth_bytes_per_second", is_brief=True, style="n"),
    *(_percentile(one.name) for one in SHOWN),
)


class Rate(t.NamedTuple):
    """What a workload is counted in: I/Os per second, or MB/s where it is sequential.

    :param axis: of a picture. :param scale: of IOPS to it.
    """

    unit: str
    axis: str
    scale: float

    def text(self, iops: float | None) -> str:
        """Of IOPS."""
        return figure(None if iops is None else iops * self.scale)

    def drawn(self, iops: float | None) -> float | None:
        return rounded(None if iops is None else iops * self.scale)


IOPS = Rate("IOPS", "IOPS (1/s)", 1.0)


def rate_of(one: Measurement) -> Rate:
    return Rate("MB/s", "bandwidth (MB/s)", one.bs_bytes / 1e6) if one.is_sequential and one.bs_bytes else IOPS


def measured_cell(row: t.Any, *notes: str | Badge, between: str = "", style: str = "") -> Cell:
    """The figures of what was measured, in one cell; ``-`` of nothing.

    :param between: of several hosts, behind the first figure.
    """
    if row is None:
        return Cell(NOTHING)
    iops, bandwidth, *rest = (column for column in MEASURED if column.is_brief)
    lead, others = (bandwidth, rest) if row.is_sequential else (iops, [bandwidth, *rest])
    figures_of = "; ".join(column.phrase(row) for column in others if column.text(row) != NOTHING)
    return Cell(lead.phrase(row), tuple(one for one in (between, figures_of, *notes) if one), style)
