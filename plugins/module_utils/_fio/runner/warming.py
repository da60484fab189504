# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Caches in a known state before a cell: warmed by rounds of its own load until their hit ratio is steady, or empty of its blocks. Pure.

While a cache warms up, each doubling of the time gains at most as much as the doubling before. So the hit ratio is steady if what the last doubling
gained, times the doublings in one more hour, is at most 3 points. The source is a simulation, not a standard: of an LRU cache under uniform and zipf
loads over 0.5 to 4 times its size, one more hour changed what was steady by less than 1 point (``test_warming.py``).
"""

from __future__ import annotations

import copy
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, parse_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import Sample
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job

#: What a cell can request. Without one the caches are as what ran before left them.
NONE, STEADY, EMPTY = "none", "until_steady", "empty"
WARM = (NONE, STEADY, EMPTY)

#: Seconds of a round at most; over bcache at least, which adds its hits every 13.6 seconds.
ROUND = 30.0
#: Rounds that are needed to judge, and after which it is given up.
LEAST, MOST = 6, 40
#: Seconds that all rounds of one cell may take, with their starts, for estimates.
LONGEST = MOST * (ROUND + 5)
#: Points of the hit ratio (percent) that count as no change, and the seconds for which it must hold.
_POINTS, _AHEAD = 3.0, 3600.0
#: Share of the blocks of a cell that an empty cache may hold: its own metadata.
_RESIDUE = 0.01


def read_warm(value: t.Any, where: str) -> str:
    """:raises BadInput: if it is not one of :data:`WARM`."""
    found = NONE if value is None else value
    if not isinstance(found, str) or found not in WARM:
        raise BadInput(f"{where}: warm must be one of {', '.join(WARM)}, not {abbreviated(value)}.")
    return found


def round_job(job: t.Mapping[str, t.Any], runtime: float | None, *, counts_late: bool) -> dict[str, t.Any]:
    """The job of one round: that of the cell, no longer than a round.

    :param runtime: seconds of the cell; ``None`` if it ends by its size.
    :param counts_late: whether a cache adds its hits only every few seconds.
    """
    seconds = ROUND if runtime is None or counts_late else min(runtime, ROUND)
    return dict(job) if seconds == runtime else with_option(job, "runtime", f"{round(1000 * seconds)}ms")


def with_option(job: t.Mapping[str, t.Any], option: str, value: t.Any) -> dict[str, t.Any]:
    """A job with an option of all its sections set."""
    changed = copy.deepcopy(dict(job))
    if "jobs" not in changed and "global" not in changed:
        return {**changed, option: value}
    for section in changed.get("jobs") or []:
        section.pop(option, None)
    changed["global"] = {**(changed.get("global") or {}), option: value}
    return changed


def hit_ratios(before: t.Iterable[Sample], after: t.Iterable[Sample]) -> dict[str, float]:
    """The hit ratio of each cache between two readings, in percent; without those that count nothing, or counted nothing meanwhile."""
    earlier = {sample.name: sample.counters for sample in before}
    found = {}
    for sample in after:
        grown = {name: count - earlier.get(sample.name, {}).get(name, count) for name, count in sample.counters.items()}
        hits = grown.get("read_hits", 0) + grown.get("write_hits", 0)
        looked_up = hits + grown.get("read_misses", 0) + grown.get("write_misses", 0)
        # Counters that fell belong to a cache that was made anew.
        if looked_up > 0 and min(grown.values()) >= 0:
            found[sample.name] = 100 * hits / looked_up
    return found


def counts_hits(samples: t.Iterable[Sample]) -> bool:
    return any("read_hits" in sample.counters or "write_hits" in sample.counters for sample in samples)


def is_steady(ratios: t.Sequence[float], seconds: float) -> bool:
    """Whether one more hour of the same load would change the hit ratio by no more than 3 points.

    :param ratios: percent of each round so far.
    :param seconds: of all rounds so far.
    """
    count = len(ratios)
    if count < LEAST or max(ratios[-3:]) - min(ratios[-3:]) > _POINTS:
        return False
    half, quarter = count // 2, count // 4
    gained = abs(_mean(ratios[half:]) - _mean(ratios[quarter:half]))
    # The middle of the later half is at three quarters of the time.
    return gained * math.log2((1 + _AHEAD / seconds if seconds else math.inf) / 0.75) <= _POINTS


def _mean(values: t.Sequence[float]) -> float:
    return sum(values) / len(values)


def region_of(job: Job, size: int) -> int:
    """Bytes that a job uses of a target of this size."""
    found = [section.value("size") for section in job.sections]
    return max((size if one is None or one.endswith("%") else min(size, parse_size(one)) for one in found), default=size)


def why_not_empty(samples: t.Iterable[Sample], region: int) -> str:
    """Why caches are not known to be empty of what a cell uses; nothing if they are. A cache that holds next to nothing holds none of it.

    :param region: bytes that the cell uses.
    """
    for sample in samples:
        if sample.used is None or sample.used > _RESIDUE * region:
            holds = "may hold data: how full it is could not be read" if sample.used is None else f"holds {format_size(sample.used)}"
            return (
                f"The cache {sample.name} {holds}, and a cache cannot be emptied without destroying it: create it anew and measure this cell before any other, "
                "or set warm to none or until_steady."
            )
    return ""
