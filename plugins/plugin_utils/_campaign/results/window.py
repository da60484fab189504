# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seconds in which several hosts measured at once, and what each of them did in those. Pure.

Times are seconds since the epoch of the controller's clock, unless noted otherwise.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

#: A common window shorter than this part of the shortest run does not represent all hosts together.
_ENOUGH = 0.5


@dataclass(frozen=True)
class Span:
    """When a host measured, and how wrong that can be, in seconds: its clock is known only so well.

    :param clock: whose clock it was. Two spans of one clock are exactly as far apart as it shows, whatever its error; empty if unknown.
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
    :param overlaps: whether there is enough in common to aggregate hosts.
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


def mean_within(values: t.Sequence[float | None], began: float, opens: float, closes: float) -> float | None:
    """The rate in a window: the mean of its seconds, of those at its ends the parts that lie in it. The tables compute the same in SQL.

    :param values: the rate in each second from ``began`` on. Seconds that are missing in a log are not in it, so they are left out instead
        of being taken for a stall; ``None`` throughout where there is no log.
    :returns: ``None`` if nothing of the window is covered.
    """
    done = covered = 0.0
    for second in range(max(math.floor(opens - began), 0), min(math.ceil(closes - began), len(values))):
        value, part = values[second], min(began + second + 1, closes) - max(began + second, opens)
        if value is not None and part > 0:
            done += value * part
            covered += part
    return done / covered if covered else None
