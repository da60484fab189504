# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What hosts, and targets of one host, did together: rates over the seconds in which all were measuring, percentiles of all their I/Os.

Only rates of one and the same time may be added. What the hosts did before the last of them began and after the first had ended is
shown apart, and percentiles come from added histograms, never from averages.
"""

from __future__ import annotations

import contextlib
import statistics
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, OUTPUT_FILE, PLAN_FILE, component, plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json, write_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import CELL_TROUBLE, fio_result, logs
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.compare import Row, number, numbers_of, worst
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.targets_at_once import shared_names
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import Common, Series, Span, common, read_series

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord

_DIRECTION_NUMBERS = {"read": (0,), "write": (1,), "trim": (2,), "mixed": (0, 1, 2)}


@dataclass(frozen=True)
class Together:
    """One measurement of several hosts, or of several targets, at once, in one direction.

    :param group: the hosts that were declared to share an array; empty for all hosts.
    :param hosts: those that have numbers; ``planned``: how many should.
    :param targets: how many targets these have together, where one of them measured several at once; else 0.
    :param added: how many results are in the sum.
    :param iops: the sum over the common window, per second; ``None`` where they did not run together.
    :param bandwidth: likewise, bytes per second.
    :param latency: ns by name of the percentile, of the I/Os of all hosts over their whole runs.
    :param common: the window and what is beside it.
    :param iops_overall: all I/Os, divided by the time from the first start to the last end.
    :param pro_rata: hosts without series, whose average was taken for their rate in the window.
    """

    group: str
    variant: str
    cell: str
    repeat: int
    direction: str
    hosts: tuple[str, ...]
    planned: int
    targets: int
    added: int
    iops: float | None
    bandwidth: float | None
    latency: t.Mapping[str, float | None]
    synced: bool
    common: Common
    iops_overall: float | None
    pro_rata: tuple[str, ...]
    state: str

    @property
    def label(self) -> str:
        """What stands where a row has its host. No host has a blank in its name."""
        if self.targets and not self.group and self.planned > 1:
            return f"all {self.targets} targets"
        who = f"group {self.group}" if self.group else self.hosts[0] if self.planned == 1 else f"all {self.planned} hosts"
        return f"{who}, {self.targets} targets" if self.targets else who

    @property
    def is_partial(self) -> bool:
        """Whether something that was planned is not in it."""
        return self.added < (self.targets or self.planned)

    def as_result(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        window = {name: round(getattr(self.common, name), 6) for name in ("start", "end", "seconds", "skew", "skew_error", "tail")}
        values = {name: value for name, value in vars(self).items() if name not in ("common", "latency")}
        return {**values, "hosts": list(self.hosts), "pro_rata": list(self.pro_rata), "latency_ns": dict(self.latency), "window": window}


# ---------------------------------------------------------------------------------------------------------------------
# Groups


def note_group(campaign: Path, host: str, variant: str, group: str) -> bool:
    """Write down in the plan of a host which array it shares with others.

    :returns: whether that is new.
    """
    path = campaign / component(host, "host") / component(variant, "variant") / PLAN_FILE
    plan = read_json(path)
    if str(plan.get("group") or "") == group:
        return False
    write_json(path, {**plan, "group": component(group, "group") if group else ""})
    return True


def _groups(campaign: Campaign) -> dict[tuple[str, str], str]:
    """The declared groups by host and variant."""
    found = {}
    for host, variant in {(record.host, record.key.variant) for record in campaign.cells}:
        with contextlib.suppress(StorageError):
            path = campaign.path / host / variant / PLAN_FILE
            group = plain(read_json(path).get("group") or "", 60) if path.is_file() else ""
            if group:
                found[host, variant] = group
    return found


# ---------------------------------------------------------------------------------------------------------------------
# Sums


def together(campaign: Campaign) -> list[Together]:
    """Every cell that several hosts, or several targets of a host, measured at once: over all of them, each declared group and each host."""
    groups = _groups(campaign)
    names = shared_names(campaign.cells)
    moments: dict[tuple[str, str, int], list[CellRecord]] = {}
    for record in campaign.cells:
        cell = names.get((record.host, record.key.variant, record.key.cell), record.key.cell)
        moments.setdefault((record.key.variant, cell, record.key.repeat), []).append(record)
    found: list[Together] = []
    for (_variant, cell, _repeat), records in moments.items():
        # One moment after the other: the series of a fleet do not fit into memory.
        measured = {id(record): one for record in records if len(records) > 1 and (one := _measured(record)) is not None}
        for what in _sets(cell, records, groups):
            active = [measured[id(record)] for record in what.records if id(record) in measured]
            if len(active) > 1:
                found += _together(what, active)
    return found


@dataclass(frozen=True)
class _Set:
    """Results that are added.

    :param cell: what the sum is called.
    """

    group: str
    cell: str
    records: t.Sequence[CellRecord]
    targets: int = 0


def _sets(cell: str, records: t.Sequence[CellRecord], groups: t.Mapping[tuple[str, str], str]) -> t.Iterator[_Set]:
    """What of one moment is added: each cell over hosts, and where hosts have several targets, those of each host and of all."""
    cells: dict[str, list[CellRecord]] = {}
    hosts: dict[str, list[CellRecord]] = {}
    for record in records:
        cells.setdefault(record.key.cell, []).append(record)
        hosts.setdefault(record.host, []).append(record)
    for name, same in cells.items():
        yield from (_Set(group, name, members) for group, members in _by_group(same, groups))
    if any(len(own) > 1 for own in hosts.values()):
        yield from (_Set("", cell, own, len(own)) for own in hosts.values() if len(own) > 1)
        if len(hosts) > 1:
            yield from (_Set(group, cell, members, len(members)) for group, members in _by_group(records, groups))


def _by_group(records: t.Sequence[CellRecord], groups: t.Mapping[tuple[str, str], str]) -> t.Iterator[tuple[str, t.Sequence[CellRecord]]]:
    """All, and those of each declared group if it has several hosts."""
    names = {record.host: groups.get((record.host, record.key.variant), "") for record in records}
    # Where all hosts are one group, the line of all hosts has its name.
    yield ("" if len(set(names.values())) > 1 else names[records[0].host]), records
    for name in sorted(filter(None, set(names.values()))) if len(set(names.values())) > 1 else []:
        members = [record for record in records if names[record.host] == name]
        if len({record.host for record in members}) > 1:
            yield name, members


class _Measured:
    """What one host did in one measurement, as far as the sums need it."""

    def __init__(self, record: CellRecord, span: Span, offset: float) -> None:
        self.record = record
        self.span = span
        self.offset = offset
        self.numbers = numbers_of(record)
        self.iops = self._series("iops")
        self.bandwidth = self._series("bw")
        self.bins = _bins_of(record)

    def _series(self, what: str) -> dict[int, Series]:
        folder = t.cast("Path", self.record.path)
        return read_series(logs(sorted(folder.glob(f"series_{what}*.log.gz"))), self.span.start + self.offset)

    def rate(self, series: t.Mapping[int, Series], direction: str, window: Common) -> float | None:
        """The rate in the window from its log, in the log's unit; ``None`` without one."""
        own = (self.span.start + self.offset, self.span.end + self.offset)
        rates = [series[number].rate(window.start + self.offset, window.end + self.offset, own) for number in _DIRECTION_NUMBERS[direction] if number in series]
        return None if not rates or None in rates else sum(t.cast("list[float]", rates))


def _measured(record: CellRecord) -> _Measured | None:
    """``None`` for a measurement without numbers, or of which it is not known when it was."""
    start, end = number(record.meta.get("io_start")), number(record.meta.get("io_end"))
    if record.state not in MEASURED or record.path is None or start is None or end is None or end <= start or not numbers_of(record):
        return None
    clock = record.meta.get("clock")
    clock = clock if isinstance(clock, dict) else {}
    offset = clock.get("offset")
    offset = float(offset) if isinstance(offset, (int, float)) and not isinstance(offset, bool) and abs(offset) < 1e11 else 0.0
    try:
        return _Measured(record, Span(start - offset, end - offset, number(clock.get("error")) or 0.0, record.host), offset)
    except CELL_TROUBLE:
        # The report has this cell as failed: see store.load_campaign.
        return None


def _together(what: _Set, measured: t.Sequence[_Measured]) -> list[Together]:
    window = common([one.span for one in measured])
    hosts = {record.host for record in what.records}
    if not window.overlaps and len(hosts) > 1 and not any(record.meta.get("synchronised") is True for record in what.records):
        # Nobody wanted them together.
        return []
    directions = dict.fromkeys(direction for one in measured for direction in one.numbers)
    found = []
    for direction in directions:
        active = [one for one in measured if direction in one.numbers]
        iops, bandwidth, pro_rata = _rates(active, direction, window)
        latency, synced = _percentiles(active, direction)
        total = _added([_ios(one.record, direction) for one in active])
        seconds = window.last_end - window.first_start
        key = what.records[0].key
        found.append(
            Together(
                group=what.group,
                variant=key.variant,
                cell=what.cell,
                repeat=key.repeat,
                direction=direction,
                hosts=tuple(dict.fromkeys(one.record.host for one in active)),
                planned=len(hosts),
                targets=what.targets,
                added=len(active),
                iops=iops,
                bandwidth=bandwidth,
                latency=latency,
                synced=synced,
                common=window,
                iops_overall=None if total is None or seconds <= 0 else total / seconds,
                pro_rata=pro_rata,
                state=worst(record.state for record in what.records),
            )
        )
    return found


def _rates(active: t.Sequence[_Measured], direction: str, window: Common) -> tuple[float | None, float | None, tuple[str, ...]]:
    """IOPS, bytes per second, and the hosts whose average had to do."""
    if not window.overlaps:
        return None, None, ()
    pro_rata = []
    iops: list[float | None] = []
    bandwidth: list[float | None] = []
    for one in active:
        said = one.numbers[direction]
        rates = one.rate(one.iops, direction, window), one.rate(one.bandwidth, direction, window)
        if rates[0] is None:
            pro_rata.append(one.record.host)
        iops.append(said.iops if rates[0] is None else rates[0])
        # fio logs KiB per second.
        bandwidth.append(said.bandwidth if rates[1] is None else rates[1] * KIB)
    return _added(iops), _added(bandwidth), tuple(dict.fromkeys(pro_rata))


def _added(values: t.Sequence[float | None]) -> float | None:
    """The sum; a sum of which a part is not known is not known."""
    return None if not values or None in values else sum(t.cast("t.Sequence[float]", values))


def _ios(record: CellRecord, direction: str) -> float | None:
    summary = record.meta.get("summary")
    said = summary.get(direction) if isinstance(summary, dict) else None
    return number(said.get("total_ios")) if isinstance(said, dict) else None


# ---------------------------------------------------------------------------------------------------------------------
# Percentiles

_Bins = t.Mapping[t.Tuple[str, str], t.Mapping[int, int]]


def _bins_of(record: CellRecord) -> _Bins:
    """The histograms of a measurement: by direction and kind of latency, and of syncs under (``sync``, ``lat``)."""
    folder = t.cast("Path", record.path)
    if not (folder / OUTPUT_FILE).exists():
        return {}
    output = fio_result(folder)
    parts: dict[tuple[str, str], list[t.Mapping[int, int]]] = {}
    for job in output.jobs:
        for direction, values in job.directions.items():
            for kind in ("lat", "clat"):
                parts.setdefault((direction, kind), []).append(getattr(values, kind).bins)
        if job.sync is not None:
            parts.setdefault(("sync", "lat"), []).append(job.sync.bins)
    # A thread without a histogram would be missing in the sum.
    return {key: histogram.merge(found) for key, found in parts.items() if all(found)}


def _percentiles(active: t.Sequence[_Measured], direction: str) -> tuple[dict[str, float | None], bool]:
    """Percentiles of all I/Os of all hosts, and whether they are those of syncs."""
    nothing: dict[str, float | None] = {one.name: None for one in SHOWN}
    synced = any(one.numbers[direction].synced for one in active)
    for key in [("sync", "lat")] if synced else [(direction, "lat"), (direction, "clat")]:
        if all(one.bins.get(key) for one in active):
            bins = histogram.merge(one.bins[key] for one in active)
            count = histogram.total(bins)
            return {one.name: histogram.percentile(bins, one.percent) if count >= one.needed else None for one in SHOWN}, synced
    return nothing, synced


# ---------------------------------------------------------------------------------------------------------------------
# For the report


def rows_of(moments: t.Sequence[Together]) -> list[Row]:
    """One row for each cell, direction and set of hosts, over its repeats, beside the rows of single hosts."""
    points: dict[tuple[str, str, str, str], list[Together]] = {}
    for one in moments:
        points.setdefault((one.label, one.variant, one.cell, one.direction), []).append(one)
    rows = []
    for (label, variant, cell, direction), runs in points.items():
        iops = [one.iops for one in runs if one.iops is not None]
        middle = statistics.median(iops) if iops else None
        bandwidth = [one.bandwidth for one in runs if one.bandwidth is not None]
        rows.append(
            Row(
                host=label,
                variant=variant,
                cell=cell,
                direction=direction,
                iops=middle,
                bandwidth=statistics.median(bandwidth) if bandwidth else None,
                latency={rank.name: _middle([one.latency[rank.name] for one in runs]) for rank in SHOWN},
                synced=any(one.synced for one in runs),
                spread=(max(iops) - min(iops)) / middle if middle and len(iops) > 1 else None,
                runs=len(iops),
                planned=len(runs),
                state=worst(one.state for one in runs),
                verdict=None,
                iops_of_runs=tuple(iops),
            )
        )
    return rows


def _middle(values: t.Sequence[float | None]) -> float | None:
    return None if not values or None in values else statistics.median(t.cast("t.Sequence[float]", values))


def notes_of(moments: t.Sequence[Together]) -> list[str]:
    """What has to be known of the sums: how far apart hosts were, and which could not be added."""
    running = [one for one in moments if one.common.overlaps]
    notes = []
    if running:
        skew = max(running, key=lambda one: one.common.skew)
        tail = max(running, key=lambda one: one.common.tail)
        notes.append(
            f"Sums are over the seconds in which everything in them was measured. The starts were at most {skew.common.skew * 1000:.0f} ms apart"
            f" (known to {skew.common.skew_error * 1000:.0f} ms), the ends {tail.common.tail:.1f} s."
        )
    estimated = sorted({host for one in running for host in one.pro_rata})
    if estimated:
        notes.append(f"Without a series by the second, the average of the whole run was taken for: {_some(estimated)}.")
    partial = sorted({f"{one.label} {one.cell}" for one in running if one.is_partial})
    if partial:
        notes.append(f"Not every host or target is in the sum of: {_some(partial)}.")
    apart = sorted({f"{one.label} {one.cell}/{one.repeat}" for one in moments if not one.common.overlaps})
    if apart:
        notes.append(f"Not added up, for they were not measured at the same time: {_some(apart)}.")
    return notes


def _some(names: t.Sequence[str], most: int = 4) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
