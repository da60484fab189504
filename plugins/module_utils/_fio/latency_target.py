# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""fio's own search for the queue depth that keeps a latency, and whether it ended a job before its time; pure.

With ``latency_target`` fio tries queue depths, each for one ``latency_window``, until the one is found at which ``latency_percentile``
of all I/Os are within the target. It then resets its counters, measures one more window at that depth and ends: the report is
of the last window. ``latency_run`` (3.20 and later) keeps it going. If no depth is sufficient it runs to its end without reporting that.

Sources: ``HOWTO`` (I/O latency) and ``lat_target_check`` in ``io_u.c`` of fio; reports that 3.16, 3.33 and 3.42 wrote.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import parse_time

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Direction, Job, Latency
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Section

#: fio reads its clock between I/Os and prints whole milliseconds: a window is never shorter than this part of it.
_OF_A_WINDOW = 0.98


@frozen
class LatencyTarget:
    """What a job requests.

    :param limit: ns.
    :param window: ns.
    :param percentile: percent of all I/Os that must be within the limit.
    """

    limit: int
    window: int
    percentile: float


def target_that_ends(section: Section) -> LatencyTarget | None:
    """The target that ends a job when it is met; ``None`` if it has none or goes on after it."""
    limit = _nanoseconds(section.value("latency_target"))
    if not limit or section.value("latency_run") not in (None, "0") or _is_flag(section, "latency_run"):
        return None
    try:
        percentile = float(section.value("latency_percentile") or 100)
    except ValueError:
        return None
    return LatencyTarget(limit, _nanoseconds(section.value("latency_window")) or 0, percentile)


def _is_flag(section: Section, option: str) -> bool:
    return option in section.options and section.options[option] is None


def _nanoseconds(text: str | None) -> int | None:
    """A time of these options, in µs without a unit; ``None`` if there is none."""
    if text is None:
        return None
    try:
        return round(parse_time(text, "us") * 1e9)
    except (BadInput, ValueError):
        return None


def is_met(target: LatencyTarget, entry: Job) -> bool:
    """Whether the report of a job shows what it shows after a target was met: a whole window, and enough I/Os within the limit."""
    directions = list(entry.directions.values())
    longest = max((one.runtime_ms or 0 for one in directions), default=0) * 10**6
    if not directions or longest < _OF_A_WINDOW * target.window:
        return False
    shares = [_share(one, target) for one in directions]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares):
        return False
    return sum(within for within, _all in known) >= target.percentile / 100 * sum(count for _within, count in known)


def _share(direction: Direction, target: LatencyTarget) -> tuple[float, float] | None:
    """How many I/Os were within the limit, and how many there were; ``None`` if that is not in the report.

    fio counts from the submission (``lat``). Where only the time from there to the completion has a distribution (``clat``), that of
    the completion stands for it: it is never longer.
    """
    late = direction.lat.max is not None and direction.lat.max > target.limit
    for latency in (direction.lat, direction.clat):
        count = float(latency.n or direction.total_ios or 1)
        if latency.max is not None and latency.max <= target.limit:
            # At least the one that took longest was late, whatever its completion took.
            return (count - 1 if late else count), count
        if latency.bins:
            last = histogram.bin_index(target.limit)
            within = sum(number for value, number in latency.bins.items() if histogram.bin_index(value) <= last)
            return float(within), float(histogram.total(latency.bins))
        percent = _percent_within(latency, target)
        if percent is not None:
            return count * percent / 100, count
    return None


def _percent_within(latency: Latency, target: LatencyTarget) -> float | None:
    """The largest percentile that is within the limit; ``None`` if none shows whether the wanted one is."""
    last = histogram.bin_index(target.limit)
    within = [percent for percent, value in latency.percentiles.items() if histogram.bin_index(value) <= last]
    if not any(percent >= target.percentile for percent in latency.percentiles):
        return None
    return max(within, default=0.0)
