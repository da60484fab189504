# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which measurements answer the question of a campaign, and why the others do not. Pure.

A suite sets which of its cells decide, and by which metrics (docs/suites.md). Campaigns whose suite does not set it, or that were measured
before suites could, are answered by every cell that is no fill, discard, probe or upper bound.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import functools
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.draining import NOT_CLEAN, NOT_KNOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point


class Question(t.NamedTuple):
    """One direction of one cell, and what it is judged by: a name of ``results.comparable.METRICS``."""

    cell: str
    direction: str
    metric: str


#: Why a cell of which the series have not settled neither decides nor is compared.
UNSETTLED_MEAN = "its mean depends on how long was measured"


#: The reason of a later version of the collection.
_OTHER = "its host recorded a reason against it"


class Excluded(t.NamedTuple):
    """What does not decide although it has numbers, and why: a clause that can follow its name."""

    cell: str
    direction: str
    reason: str


def without_undecided(points: t.Sequence[Point]) -> tuple[list[Point], list[Excluded]]:
    """The points with the repeats that may decide, and those that their hosts recorded a reason against, such as dirty caches."""
    kept: list[Point] = []
    left_out: dict[tuple[str, str, str], dict[str, None]] = {}
    for one in points:
        runs = [run for run in one.runs if not run.not_deciding]
        if len(runs) == len(one.runs):
            kept.append(one)
            continue
        if runs:
            kept.append(dataclasses.replace(one, runs=runs))
        # What a host wrote is no text for a report.
        for reason in dict.fromkeys(run.not_deciding if run.not_deciding in (NOT_CLEAN, NOT_KNOWN) else _OTHER for run in one.runs if run.not_deciding):
            left_out.setdefault((one.cell, one.direction, reason), {})[one.variant] = None
    return kept, [Excluded(cell, direction, f"{reason}, in {', '.join(variants)}") for (cell, direction, reason), variants in left_out.items()]


def questions_of(
    points: t.Sequence[Point], patterns: t.Sequence[str] = (), doubtful: t.Container[tuple[str, str]] = ()
) -> tuple[list[Question], list[Excluded]]:
    """What decides, in the order in which it was measured, and what does not.

    :param patterns: of cells that the user named; they decide by IOPS, or MB/s where they are sequential, regardless of the suite.
    :param doubtful: cells and directions whose mean depends on how long was measured.
    """
    groups: dict[tuple[str, str], list[Point]] = {}
    for one in points:
        if one.direction != "sync" and one.iops and not is_probe(one.cell):
            groups.setdefault((one.cell, one.direction), []).append(one)
    has_synced_writes = any(one.first.synced for here in groups.values() for one in here)
    is_repeated = any(len(one.runs) > 1 for here in groups.values() for one in here)
    questions, excluded = [], []
    for (cell, direction), here in groups.items():
        if patterns:
            reason = "" if any(fnmatch.fnmatchcase(cell, pattern) for pattern in patterns) else "report_decide_by does not name it"
        else:
            reason = _reason_against(here, has_synced_writes, is_repeated, doubtful)
        recorded = "" if patterns else next((run.decides for one in here for run in one.runs if run.decides), "")
        # They come back from a host, or from a later version of the collection.
        named = [metric for metric in (recorded or "iops").split() if metric in METRICS]
        # Sequential I/O is counted in bytes.
        lead = "bandwidth" if here[0].first.is_sequential else "iops"
        metrics = list(dict.fromkeys(lead if metric == "iops" else metric for metric in named))
        if reason or not metrics:
            excluded.append(Excluded(cell, direction, reason or "no metric by which it decides is known"))
        else:
            questions += [Question(cell, direction, metric) for metric in metrics]
    return questions, excluded


def _reason_against(here: t.Sequence[Point], has_synced_writes: bool, is_repeated: bool, doubtful: t.Container[tuple[str, str]]) -> str:
    """Why a cell does not decide; nothing if it does."""
    first = here[0]
    recorded = {run.decides for one in here for run in one.runs if run.decides is not None}
    if recorded == {""}:
        return "the suite does not decide by it"
    if (first.cell, first.direction) in doubtful:
        return UNSETTLED_MEAN
    if recorded:
        return ""
    if first.direction == "trim":
        return "it discards"
    if _is_fill(here, is_repeated):
        return "it fills the target"
    if has_synced_writes and first.direction in ("write", "mixed") and not first.first.synced:
        return "it is an upper bound, without a sync"
    return ""


def once_only(points: t.Iterable[Point]) -> dict[tuple[str, str], str]:
    """Cells and directions that are no measurement of their own, whatever they are repeated, and why: probes, discards, fills."""
    groups: dict[tuple[str, str], list[Point]] = {}
    for one in points:
        groups.setdefault((one.cell, one.direction), []).append(one)
    is_repeated = any(len(one.runs) > 1 for here in groups.values() for one in here)
    found = {}
    for key, here in groups.items():
        reason = "it is a probe" if is_probe(key[0]) else "it discards" if key[1] == "trim" else "it fills the target" if _is_fill(here, is_repeated) else ""
        if reason:
            found[key] = reason
    return found


def _is_fill(here: t.Sequence[Point], is_repeated: bool) -> bool:
    """A sequential write that is named so, or that ran once where other cells were repeated."""
    first = here[0]
    if first.first.rw != "write":
        return False
    return first.cell.partition(".")[0].partition("-")[0] == "fill" or (is_repeated and all(len(one.runs) == 1 for one in here))


@functools.lru_cache(maxsize=4096)
def is_probe(cell: str) -> bool:
    """A probe of a search or a round: what it belongs to has a cell of its own."""
    start, dot, end = cell.rpartition(".")
    return bool(start and dot) and end.rpartition("-")[2].isdigit() and "-" in end
