# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign loaded from its results tree: each measurement is read from its files, and nothing but the standard library is needed."""

from __future__ import annotations

import contextlib
import functools
import itertools
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.groups import group_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, OUTPUT_FILE, STACK_FILE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import CELL_TROUBLE, fio_result, trouble
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, number, optional_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import Histograms, histograms_of, measurements_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.seconds import Series, Total, series_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.sets import (
    Pooled,
    Run,
    RunKey,
    RunSet,
    SetFigures,
    Unreadable,
    directions_of,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import SIDES, common_text, drives_of, stack_name
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.targets_at_once import shared_names
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import mean_within

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord

_T = t.TypeVar("_T")

#: I/Os are of the size of the job up to this share of their bytes.
_ONE_SIZE = 0.01


class StoredCell:
    """The files of one measurement, read when they are needed. Each of its parts may raise one of :data:`CELL_TROUBLE`.

    :param group: the array that its host shares with others.
    """

    def __init__(self, record: CellRecord, group: str | None = None) -> None:
        self.record = record
        self.group = group
        self.files = mapping(record.meta.get("files"))

    @functools.cached_property
    def stack(self) -> dict[str, t.Any]:
        folder = self.record.path
        if self.record.stack is not None:
            return self.record.stack
        return read_json(folder / STACK_FILE) if folder is not None and self.record.meta and (folder / STACK_FILE).exists() else {}

    @functools.cached_property
    def stack_names(self) -> dict[str, str | None]:
        """What the stack is called on each side."""
        return {side: stack_name(self.stack.get(side)) for side in SIDES}

    @functools.cached_property
    def histograms(self) -> Histograms:
        record = self.record
        there = record.path is not None and record.state in MEASURED and record.meta.get("summary") and OUTPUT_FILE in self.files
        return histograms_of(record, fio_result(record.path)) if there and record.path is not None else {}

    @functools.cached_property
    def measurements(self) -> list[Measurement]:
        record = self.record
        beside: dict[str, t.Any] = {"host_group": self.group, "path": None if record.path is None else f"{record.host}/{record.key}"}
        if record.meta:
            # Of a cell with several targets each direction has its own; here are those of all.
            drives, target = drives_of(self.stack.get("before")), {} if record.meta.get("targets") else mapping(record.meta.get("target"))
            beside.update({name: optional_text(target.get(name)) or common_text(drives, name) for name in ("model", "firmware")})
            beside.update({f"stack_{side}": name for side, name in self.stack_names.items()})
        return measurements_of(record, lambda: self.histograms, beside)

    def series(self, *, latency: bool = True) -> tuple[dict[str, Series], list[str]]:
        """The series by direction, none of a measurement without numbers; and why there is none, as sentences."""
        first = self.measurements[0]
        directions = {one.direction: _total(self.record, one) for one in self.measurements if one.direction is not None}
        if not directions or self.record.path is None:
            return {}, []
        return series_of(self.record.path, self.files, first.io_start, first.io_end, directions, latency=latency)


def _total(record: CellRecord, one: Measurement) -> Total:
    raw = mapping(mapping(record.meta.get("summary")).get(one.direction))
    if raw.get("io_bytes") is None:
        return Total()
    total_ios, io_bytes, began, length = (number(raw.get(name)) for name in ("total_ios", "io_bytes", "began_ms", "runtime_ms"))
    asked = (one.bs_bytes or 0) * (total_ios or 0)
    one_size = bool(asked and io_bytes) and abs(t.cast("float", io_bytes) / asked - 1) < _ONE_SIZE
    return Total(total_ios, io_bytes, None if began is None else began / 1000, length / 1000 if length else None, one_size)


def read_cell(record: CellRecord, group: str | None, read: t.Callable[[StoredCell], _T]) -> _T:
    """What ``read`` makes of a measurement; one whose files cannot be read is failed, and the others go on."""
    try:
        return read(StoredCell(record, group))
    except CELL_TROUBLE as error:
        return read(StoredCell(_failed(record, error), group))


def _failed(record: CellRecord, error: BaseException) -> CellRecord:
    reason = f"the stored result could not be read: {trouble(error)}"
    return replace(record, state="failed", reason=reason, meta={}, job={}, verdicts=(None, None), stack=None)


class CampaignFiles:
    """A campaign that was read from its folder: see :class:`sets.Results`."""

    def __init__(self, campaign: Campaign) -> None:
        self.common_names = shared_names(campaign.cells)
        self._groups: dict[tuple[str, str], str | None] = {}
        self._campaign = campaign
        self._records = {(one.host, one.key.variant, one.key.cell, one.key.repeat): one for one in campaign.cells}
        self._rows = {key: read_cell(one, self._group(one), lambda cell: cell.measurements) for key, one in self._records.items()}

    @property
    def measurements(self) -> list[Measurement]:
        return [one for rows in self._rows.values() for one in rows]

    def _group(self, record: CellRecord) -> str | None:
        key = (record.host, record.key.variant)
        if key not in self._groups:
            self._groups[key] = None
            with contextlib.suppress(StorageError):
                self._groups[key] = group_of(self._campaign.path / record.host / record.key.variant)
        return self._groups[key]

    def figures(self, sets: t.Sequence[RunSet]) -> list[SetFigures]:
        """The figures of each set.

        :raises Unreadable: if files of a measurement are not what they should be; it is failed then.
        """
        found: list[SetFigures] = []
        readable = True
        # One moment after the other: the series of a fleet do not fit into memory.
        for _moment, some in itertools.groupby(sets, key=lambda one: one.moment):
            at_once = list(some)
            cells = {run.key: self._read(run.key) for one in at_once for run in one.runs}
            whole = {key: cell for key, cell in cells.items() if cell is not None}
            readable = readable and len(whole) == len(cells)
            found += [_figures(one, whole) for one in at_once] if readable else []
        if not readable:
            raise Unreadable
        return found

    def _read(self, key: RunKey) -> _Read | None:
        record = self._records[key]
        try:
            cell = StoredCell(record)
            return _Read(cell.series(latency=False)[0], cell.histograms)
        except CELL_TROUBLE as error:
            self._records[key] = _failed(record, error)
            self._rows[key] = StoredCell(self._records[key], self._group(record)).measurements
            return None


class _Read(t.NamedTuple):
    series: dict[str, Series]
    histograms: Histograms


def _figures(of: RunSet, cells: t.Mapping[RunKey, _Read]) -> SetFigures:
    rates = {
        (place, direction): _rates(cells[run.key].series[direction], run, of)
        for place, run in enumerate(of.runs)
        for direction in cells[run.key].series
        if of.window.overlaps
    }
    pooled = {direction: _pooled([cells[run.key].histograms.get(direction) for run in of.runs]) for direction in (*directions_of(of.runs), "sync")}
    return SetFigures(rates, {direction: found for direction, found in pooled.items() if found is not None})


def _rates(series: Series, run: Run, of: RunSet) -> tuple[float | None, float | None]:
    window = (run.span.start + series["second"][0], of.window.start, of.window.end)
    return mean_within(series["iops"], *window), mean_within(series["bw_bytes"], *window)


def _pooled(histograms: t.Sequence[tuple[str, t.Mapping[int, int]] | None]) -> Pooled | None:
    there = [one for one in histograms if one is not None]
    if not there:
        return None
    bins = histogram.merge(bins for _kind, bins in there)
    values = {one.name: histogram.percentile(bins, one.percent) for one in SHOWN}
    return Pooled(len(there), len({kind for kind, _bins in there}), histogram.total(bins), values)
