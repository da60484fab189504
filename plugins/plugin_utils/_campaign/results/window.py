# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The seconds in which several hosts measured at once, and what each of them did in those. Pure.

Times are seconds since the epoch of the controller's clock, unless said otherwise.
"""

from __future__ import annotations

import bisect
import io
import typing as t
from dataclasses import dataclass

#: A common window shorter than this part of the shortest run says nothing of all hosts together.
_ENOUGH = 0.5

#: fio averages over one second (log_avg_msec=1000), and does not log the last one if it is not whole.
_STEP = 1.0

#: Times in a log above this are milliseconds since 1970; below, since the job began to count.
_EPOCH_MS = 1e12


@dataclass(frozen=True)
class Span:
    """When a host measured, and how wrong that can be, in seconds: its clock is known only so well.

    :param clock: whose clock it was. Two spans of one clock are apart as far as it says, however wrong it goes; empty for nobody knows.
    """

    start: float
    end: float
    error: float = 0.0
    clock: str = ""

    @property
    def seconds(self) -> float:
        return self.end - self.start


@dataclass(frozen=True)
class Common:
    """What several spans have in common.

    :param skew: seconds between the first start and the last; ``skew_error``: how wrong that can be.
    :param tail: seconds between the first end and the last.
    :param overlaps: whether there is enough in common to speak of hosts together.
    """

    start: float
    end: float
    first_start: float
    last_end: float
    skew_error: float
    overlaps: bool

    @property
    def seconds(self) -> float:
        return max(self.end - self.start, 0.0)

    @property
    def skew(self) -> float:
        return self.start - self.first_start

    @property
    def tail(self) -> float:
        return self.last_end - self.end


def common(spans: t.Sequence[Span]) -> Common:
    """The window in which all were active: from the last start to the first end."""
    first, last = min(spans, key=lambda span: span.start), max(spans, key=lambda span: span.start)
    end = min(span.end for span in spans)
    enough = end - last.start >= _ENOUGH * min(span.seconds for span in spans) > 0
    one_clock = first is last or (first.clock != "" and first.clock == last.clock)
    error = 0.0 if one_clock else first.error + last.error
    return Common(last.start, end, first.start, max(span.end for span in spans), error, enough)


class Series:
    """A rate second by second, in the time of the host's clock.

    :param rows: the end of each second and its value; several rows of one second, those of several threads, are added.
    """

    def __init__(self, rows: t.Iterable[tuple[float, float]]) -> None:
        added: dict[float, float] = {}
        for end, value in rows:
            added[end] = added.get(end, 0.0) + value
        self.ends = sorted(added)
        self.values = [added[end] for end in self.ends]

    def rate(self, start: float, end: float, span: tuple[float, float]) -> float | None:
        """The average in a window; a second without a row is a second in which nothing was done.

        :param span: when the host measured. What it did in the parts of seconds at its beginning and end is not in its log, so these
            parts are left out instead of being taken for a stall.
        :returns: ``None`` if nothing of the window is covered.
        """
        if not self.ends:
            return None
        # The first row stands for a whole second, and the last second has none even if it was whole.
        first, last = self.ends[0] - _STEP, self.ends[-1]
        start = max(start, first if first - span[0] < _STEP else span[0])
        end = min(end, last if span[1] - last < 2 * _STEP else span[1] - _STEP)
        if end <= start:
            return None
        done = 0.0
        for place in range(bisect.bisect_right(self.ends, start), len(self.ends)):
            began = self.ends[place] - _STEP
            if began >= end:
                break
            done += self.values[place] * max(min(self.ends[place], end) - max(began, start), 0.0)
        return done / (end - start)


def read_series(texts: t.Iterable[str], began: float) -> dict[int, Series]:
    """The series in fio's logs, by data direction (0 read, 1 write, 2 trim).

    Rows are ``time in ms, value, direction, …`` (fio HOWTO, Log File Formats); of further columns there are more in later versions.

    :param texts: one log for each thread, or one for all.
    :param began: when the job began to count, by the host's clock: logs without the time of day count from there.
    """
    rows: dict[int, list[tuple[float, float]]] = {}
    for text in texts:
        for line in io.StringIO(text):
            columns = line.split(",", 3)
            try:
                time, value, direction = float(columns[0]), float(columns[1]), int(columns[2])
            except (ValueError, IndexError):
                continue
            if not (0 <= time < 1e15 and 0 <= value < 1e18 and 0 <= direction <= 2):
                continue
            end = time / 1000 if time > _EPOCH_MS else began + time / 1000
            rows.setdefault(direction, []).append((end, value))
    return {direction: Series(found) for direction, found in rows.items()}
