# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which measurements are added up: those that several hosts, or several targets of a host, made at the same time. Pure.

What a loader needs of them besides, from files or from tables, is in :class:`SetFigures`; what is made of both is in ``aggregate``.
"""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import DIRECTIONS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import Percentile
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import Common, Span, common

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

#: Host, variant, cell and repeat.
RunKey = t.Tuple[str, str, str, int]

#: Host, variant and cell.
HostVariantCell = t.Tuple[str, str, str]


class Unreadable(Exception):
    """Files of a measurement turned out to be unreadable: the loader has it as failed now, so that the sets are others."""


class Results(t.Protocol):
    """A campaign, loaded from files or from tables.

    :param common_names: what a cell has in common with those of other targets of its host that were measured at the same time.
    """

    @property
    def measurements(self) -> t.Sequence[Measurement]: ...

    @property
    def common_names(self) -> t.Mapping[HostVariantCell, str]: ...

    def figures(self, sets: t.Sequence[RunSet]) -> list[SetFigures]:
        """The figures of each set.

        :raises Unreadable: if one of the measurements is none.
        """


@dataclass(frozen=True)
class Run:
    """One measurement of one host with numbers: its rows by direction, and when it was by the clock of the controller."""

    key: RunKey
    rows: t.Mapping[str, Measurement]
    span: Span

    @property
    def host(self) -> str:
        return self.key[0]

    def span_of(self, direction: str) -> Span:
        """When it did I/O in a direction: in a job with phases that is a part of the measurement. Old results do not have it."""
        row = self.rows[direction]
        if row.began_ms is None or not row.runtime_ms:
            return self.span
        start = min(self.span.start + row.began_ms / 1000, self.span.end)
        return dataclasses.replace(self.span, start=start, end=min(start + row.runtime_ms / 1000, self.span.end))

    def is_synced(self, direction: str) -> bool:
        """Whether an application waits for the sync that makes a write durable, not for the write."""
        return direction in ("write", "mixed") and "sync" in self.rows and self.rows["sync"].has_percentiles


@dataclass(frozen=True)
class RunSet:
    """Measurements that are added up.

    :param group: the hosts that were declared to share an array; empty for all hosts.
    :param host: the one whose targets these are; empty for several hosts.
    :param cell: what the sum is called.
    :param planned: how many hosts should be in it; ``targets``: how many targets these have together, where one of them has several.
    :param state: the worst of all that should be in it.
    :param runs: those with numbers.
    :param moment: the same for sets of the same measurements.
    """

    group: str
    host: str
    variant: str
    cell: str
    repeat: int
    planned: int
    targets: int
    state: str
    runs: tuple[Run, ...]
    window: Common
    moment: int


class Pooled(t.NamedTuple):
    """Percentiles of the added histograms of several measurements in one direction.

    :param runs: how many histograms were added, and ``kinds`` how many kinds of latency they are of.
    :param total: I/Os; ``values``: ns by the name of the percentile, whether there are enough I/Os for it or not.
    """

    runs: int
    kinds: int
    total: int
    values: t.Mapping[str, float | None]

    def shown(self, percentile: Percentile) -> float | None:
        """ns; ``None`` where there are too few I/Os for it."""
        return self.values[percentile.name] if self.total >= percentile.needed else None


@dataclass(frozen=True)
class SetFigures:
    """The facts of a loader about a set.

    :param rates: I/Os and bytes per second in the window of the set by the number of the run and direction; ``None`` without a series.
    :param pooled: by direction, ``sync`` is one of them.
    """

    rates: t.Mapping[tuple[int, str], tuple[float | None, float | None]] = field(default_factory=dict)
    pooled: t.Mapping[str, Pooled] = field(default_factory=dict)


def sets_of(results: Results) -> list[RunSet]:
    """Every set that has a sum: over all hosts, each declared group and each host. Sets of the same measurements follow each other."""
    moments: dict[tuple[str, str, int], dict[RunKey, list[Measurement]]] = {}
    for one in results.measurements:
        name = results.common_names.get((one.host, one.variant, one.cell), one.cell)
        key = (one.host, one.variant, one.cell, one.repeat)
        moments.setdefault((one.variant, name, one.repeat), {}).setdefault(key, []).append(one)
    found = []
    for number, ((variant, cell, repeat), rows) in enumerate(moments.items()):
        if len(rows) > 1:
            runs = {key: run for key, of in rows.items() if (run := _run(key, of)) is not None}
            for group, host, name, keys, targets in _members(cell, {key: of[0] for key, of in rows.items()}):
                members, active = [rows[key][0] for key in keys], [runs[key] for key in keys if key in runs]
                one = _set((group, host, variant, name, repeat), members, active, targets, number)
                found += [] if one is None else [one]
    return found


def _run(key: RunKey, rows: t.Sequence[Measurement]) -> Run | None:
    """``None`` for a measurement without numbers, or of which it is not known when it was."""
    first = rows[0]
    if first.state not in MEASURED or first.direction is None or first.io_start is None or first.io_end is None or first.io_end <= first.io_start:
        return None
    offset = first.clock_offset or 0.0
    span = Span(first.io_start - offset, first.io_end - offset, first.clock_error or 0.0, first.host)
    return Run(key, {one.direction: one for one in rows if one.direction is not None}, span)


def _set(key: tuple[str, str, str, str, int], members: t.Sequence[Measurement], runs: t.Sequence[Run], targets: int, moment: int) -> RunSet | None:
    """``None`` where nothing is to be added, or where they were not requested together."""
    if len(runs) < 2:
        return None
    window = common([run.span for run in runs])
    hosts = {one.host for one in members}
    if not window.overlaps and len(hosts) > 1 and not any(one.synchronised for one in members):
        return None
    return RunSet(*key, len(hosts), targets, worst(one.state for one in members), tuple(runs), window, moment)


_Members = t.Tuple[str, str, str, t.Sequence[RunKey], int]


def _members(cell: str, rows: t.Mapping[RunKey, Measurement]) -> t.Iterator[_Members]:
    """What of one moment is added, as group, host, name, measurements and number of targets.

    That is each cell over hosts, and where hosts have several targets, those of each host and of all.
    """
    cells: dict[str, list[RunKey]] = {}
    hosts: dict[str, list[RunKey]] = {}
    for key in rows:
        cells.setdefault(key[2], []).append(key)
        hosts.setdefault(key[0], []).append(key)
    for name, same in cells.items():
        yield from ((group, "", name, keys, 0) for group, keys in _by_group(same, rows))
    if any(len(own) > 1 for own in hosts.values()):
        yield from (("", host, cell, own, len(own)) for host, own in hosts.items() if len(own) > 1)
        if len(hosts) > 1:
            yield from ((group, "", cell, keys, len(keys)) for group, keys in _by_group(list(rows), rows))


def _by_group(keys: t.Sequence[RunKey], rows: t.Mapping[RunKey, Measurement]) -> t.Iterator[tuple[str, t.Sequence[RunKey]]]:
    """All, and those of each declared group if it has several hosts."""
    names = {key[0]: rows[key].host_group or "" for key in keys}
    different = set(names.values())
    # Where all hosts are one group, the line of all hosts has its name.
    yield ("" if len(different) > 1 else names[keys[0][0]]), keys
    for name in sorted(filter(None, different)) if len(different) > 1 else []:
        members = [key for key in keys if names[key[0]] == name]
        if len({key[0] for key in members}) > 1:
            yield name, members


def directions_of(runs: t.Iterable[Run]) -> list[str]:
    """The directions that any of them has; a sync is part of a write."""
    there = {direction for run in runs for direction in run.rows}
    return [direction for direction in DIRECTIONS if direction in there]
