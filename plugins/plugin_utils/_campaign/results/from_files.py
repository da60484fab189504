# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A campaign loaded from its results tree: each measurement is read from its files, and nothing but the standard library is needed.

A measurement second by second, from fio's logs.

fio's logs (HOWTO, "Log File Formats"): ``time in ms, value, direction, block size, …``, one row for each second and direction in which
something ended. A second without a row is one in which nothing was done, so it gets a row with 0. The last second, if it was not
whole, has none, and gets none. A series begins with the first job of its direction and ends with the last: before and after them, in other
phases of the measurement, nothing stood still. What does not add up to the total that fio reports is no series.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import math
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.consistency import agrees, series_note
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.groups import group_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, OUTPUT_FILE, STACK_FILE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.reading import read_json
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.untrusted import CELL_TROUBLE, fio_result, logs, trouble
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, number, optional_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.figures import Histograms, consistent_summary, histograms_of, measurements_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.sets import (
    Pooled,
    Run,
    RunKey,
    RunSet,
    SetFigures,
    Unreadable,
    directions_of,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import (
    SIDES,
    attachment_of,
    common_text,
    drives_of,
    serial_of,
    stack_name,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.targets_at_once import shared_names
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.window import mean_within
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import LARGEST

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord

#: fio averages over one second: the collection sets log_avg_msec=1000.
_STEP_MS = 1000.0

#: Times above this are ms since 1970; below, since the job began to count.
_EPOCH_MS = 1e12

#: More seconds than this in one measurement are a broken clock: 60 days.
_LONGEST = 60 * 86400

#: Seconds without a row that a series has at most beside those that have one.
_LONGEST_STALL = 86400

#: Times in ms and values from these on are no measurement.
_LATEST_MS = 1e15
_LARGEST_VALUE = 1e18

#: Columns of one line; fio has less than half of them.
_MOST_COLUMNS = 40

#: Characters of a log that are worked on at once.
_PART = 1 << 20

_DIRECTIONS = ("read", "write", "trim")

#: Time in ms and value of each row of one log of one thread, by direction.
Log = t.Dict[str, t.List[t.Tuple[float, float]]]

#: A value by second.
Seconds = t.Dict[int, float]


#: The lists of a series: ``second``, ``iops``, ``bw_bytes``, ``lat_ns``.
Series = t.Dict[str, t.List[t.Any]]


@dataclass(frozen=True)
class Total:
    """What a report has of one direction.

    :param began: seconds from the beginning of the measurement; ``None`` in results of old versions.
    :param seconds: in which it was done.
    :param one_size: whether all I/Os were of one size.
    """

    total_ios: float | None = None
    io_bytes: float | None = None
    began: float | None = None
    seconds: float | None = None
    one_size: bool = False


def series_of(
    folder: Path, names: t.Iterable[str], start: float | None, end: float | None, directions: dict[str, Total], *, latency: bool = True
) -> tuple[dict[str, Series], list[str]]:
    """The series of a measurement by direction, from its folder.

    :param names: its files.
    :param directions: those with numbers.
    :param latency: read the logs of the latency too.
    :returns: the series, and why there is none of a direction, as sentences.
    :raises ResultsError: if the logs cannot be read, or are too long together.
    """
    names = sorted(names)
    chosen = {what: _log_names(names, what) for what in ("iops", "bw", *(["lat"] if latency else []))}
    if latency and not chosen["lat"]:
        chosen["lat"] = _log_names(names, "clat")
    texts = logs(f"{folder}/{name}" for some in chosen.values() for name in some)
    found = {what: [read_log(next(texts)) for _name in some] for what, some in chosen.items()}
    every, notes = seconds_of(found, start, end, directions), []
    for direction in list(every):
        logs_of_it = _of_direction(found, direction, directions)
        if not _agrees(every[direction], logs_of_it, directions[direction]):
            del every[direction]
            notes.append(series_note(direction))
            continue
        every[direction].update(_whole_seconds(every[direction], logs_of_it, start))
    return every, notes


def _whole_seconds(series: Series, logs: t.Mapping[str, t.Sequence[t.Sequence[tuple[float, float]]]], start: float | None) -> Series:
    """The rates without the seconds of which the log of a thread has no row although it may have done I/O: its last one, if that was not whole.

    The others' rates alone would be a fall.
    """
    found: Series = {}
    for what, name in (("iops", "iops"), ("bw", "bw_bytes")):
        unknown = _not_logged(logs.get(what, ()), _zero([time for rows in logs.get(what, ()) for time, _value in rows], start))
        found[name] = [None if second in unknown else value for second, value in zip(series["second"], series[name], strict=True)]
    return found if any(value is not None for value in found["iops"]) else {}


def _log_names(names: t.Iterable[str], what: str) -> list[str]:
    return [name for name in names if name.startswith((f"series_{what}.", f"series_{what}_")) and name.endswith(".log.gz")]


def read_log(content: str) -> Log:
    """The rows of one log by direction; what is no row is left out."""
    rows: Log = {}
    for part in _parts(content):
        columns = _whole_log(part)
        if columns and _is_of_one_direction(*columns):
            rows.setdefault(_DIRECTIONS[int(columns[2][0])], []).extend(zip(*columns[:2]))
            continue
        for time, value, kind in zip(*columns) if columns else _lines(part):
            if 0 <= time < _LATEST_MS and 0 <= value < _LARGEST_VALUE and 0 <= kind < len(_DIRECTIONS):
                rows.setdefault(_DIRECTIONS[int(kind)], []).append((time, value))
    return rows


def _is_of_one_direction(times: t.Sequence[float], values: t.Sequence[float], numbers: t.Sequence[float]) -> bool:
    """Whether no row is to be left out, and all are of one direction. A sum shows what is not a number, which no comparison does."""
    if numbers[0] not in range(len(_DIRECTIONS)) or numbers.count(numbers[0]) != len(numbers) or math.isnan(sum(times) + sum(values)):
        return False
    return min(times) >= 0 and max(times) < _LATEST_MS and min(values) >= 0 and max(values) < _LARGEST_VALUE


def _parts(content: str) -> t.Iterator[str]:
    """Whole lines, some at a time: split into words a text takes thirty times its size."""
    start = 0
    while start < len(content):
        end = content.find("\n", start + _PART) + 1 or len(content)
        yield content[start:end]
        start = end


def _whole_log(content: str) -> list[list[float]] | None:
    """Times, values and directions of all rows at once, if each of them is as it should be: many times faster than one by one."""
    width = content.partition("\n")[0].count(",") + 1
    words = content.replace(",", " ").split() if 3 <= width <= _MOST_COLUMNS else []
    if not words or len(words) != width * content.count("\n"):
        return None
    try:
        return [list(map(float, words[place::width])) for place in range(3)]
    except ValueError:
        return None


def _lines(content: str) -> t.Iterator[tuple[float, float, float]]:
    for line in content.splitlines():
        columns = line.split(",", 3)
        try:
            yield float(columns[0]), float(columns[1]), int(columns[2])
        except (ValueError, IndexError):
            continue


def seconds_of(found: t.Mapping[str, t.Sequence[Log]], start: float | None, end: float | None, directions: t.Collection[str]) -> dict[str, Series]:
    """The series of a measurement by direction.

    :param found: ``iops``, ``bw`` (KiB per second) and ``lat`` (ns), of each of them one log for each thread, in one order.
    :param start: when the job began to count, and ``end`` when it ended, in s since 1970; ``None`` in results of old versions.
    :param directions: those with numbers, and where it is known what the report has of each. With ``mixed`` alone every row of the logs is of it.
    """
    totals = directions if isinstance(directions, dict) else {}
    every = {}
    for direction in (*_DIRECTIONS, "mixed"):
        if direction in directions:
            every[direction] = _series(_of_direction(found, direction, directions), start, end, totals.get(direction, Total()))
    return {direction: series for direction, series in every.items() if series}


def _of_direction(found: t.Mapping[str, t.Sequence[Log]], direction: str, directions: t.Container[str]) -> dict[str, list[list[tuple[float, float]]]]:
    """The rows of each thread."""
    return {what: [_of(log, direction, directions) for log in some] for what, some in found.items()}


def _agrees(series: Series, logs: t.Mapping[str, t.Sequence[t.Sequence[tuple[float, float]]]], total: Total) -> bool:
    """Whether a series adds up to what the report has. A rate that does not is replaced, if the other one shows it, or left out."""
    ios = _adds_up(series["iops"], logs.get("iops", ()), total.total_ios, 1, total.seconds)
    bytes_ = _adds_up(series["bw_bytes"], logs.get("bw", ()), total.io_bytes, KIB, total.seconds)
    if not ios and bytes_ and total.one_size and total.io_bytes and total.total_ios and any(series["bw_bytes"]):
        # fio logs whole I/Os per second, cut off: of a few of them too much is lost, of their KiB it is not.
        series["iops"] = [None if value is None else value * total.total_ios / total.io_bytes for value in series["bw_bytes"]]
        return True
    if ios and not bytes_:
        series["bw_bytes"] = [None] * len(series["second"])
    return ios


def _adds_up(values: t.Sequence[t.Any], logs: t.Sequence[t.Sequence[tuple[float, float]]], total: float | None, unit: int, seconds: float | None) -> bool:
    known = [value for value in values if value is not None]
    if total is None or seconds is None or not known:
        return True
    # Each thread has no row for its last second, if that was not whole.
    last = sum(max(_added([rows], 0.0).values(), default=0.0) for rows in logs) * unit
    return agrees(sum(known), total, last + max(seconds - len(values), 0.0) * max(known))


def _of(log: Log, direction: str, directions: t.Container[str]) -> list[tuple[float, float]]:
    if direction != "mixed":
        return log.get(direction, [])
    if any(name in directions for name in _DIRECTIONS):
        # unified_rw_reporting=both: each direction has a series of its own already.
        return []
    return [row for rows in log.values() for row in rows]


def _series(logs: t.Mapping[str, t.Sequence[t.Sequence[tuple[float, float]]]], start: float | None, end: float | None, total: Total) -> Series:
    times = [time for some in logs.values() for rows in some for time, _value in rows]
    if not times:
        return {}
    zero = _zero(times, start)
    iops = _added(logs.get("iops", ()), zero)
    bandwidth = _added(logs.get("bw", ()), zero)
    latency = _weighted(logs.get("lat", ()), logs.get("iops", ()), zero)
    count = max((second for values in (iops, bandwidth) for second in values), default=-1) + 1
    # Each second takes memory, also one without a row, so a row far away from all others must not be worth weeks.
    longest = min(_LONGEST, _LONGEST_STALL + 2 * len(times))
    if not 0 < count < longest or max([*iops.values(), *(value * KIB for value in bandwidth.values())]) > LARGEST:
        return {}
    first = 0
    if start is not None and end is not None:
        began, ends = _phase(total, end - start, (*iops, *bandwidth))
        if ends - count >= 2:
            # Neither was anything done in the end: only the last second has no row although it was whole.
            count = int(min(ends - 1, longest))
        first = min(max(math.floor(began + 0.5), 0), count - 1)
    seconds = range(first, count)
    return {
        "second": list(seconds),
        "iops": _every_second(iops, seconds, _not_logged(logs.get("iops", ()), zero), 1),
        "bw_bytes": _every_second(bandwidth, seconds, _not_logged(logs.get("bw", ()), zero), KIB),
        "lat_ns": [latency.get(second) for second in seconds],
    }


def _zero(times: t.Sequence[float], start: float | None) -> float:
    """The time in a log at which a measurement began."""
    if not times or times[0] <= _EPOCH_MS:
        return 0.0
    return start * 1000 if start is not None else min(times) - _STEP_MS


def _every_second(values: Seconds, seconds: t.Iterable[int], not_logged: t.Container[int], unit: int) -> list[float | None]:
    """A value for each second, nothing where there is no log."""
    if not values:
        return [None for _second in seconds]
    return [values[second] * unit if second in values else None if second in not_logged else 0.0 for second in seconds]


def _not_logged(logs: t.Sequence[t.Sequence[tuple[float, float]]], zero: float) -> set[int]:
    """Seconds after the last row of a thread: if others follow it, these are none in which nothing was done. Nor is what lies between two threads that
    follow each other, as the ramp of the second."""
    every = [_seconds(rows, zero) for rows in logs if rows]
    if len(every) == 1 and len(set(every[0])) == len(every[0]):
        # One thread.
        return set()
    spans = [(min(seconds), max(seconds)) for seconds in every]
    found = {end + 1 for _begin, end in spans if end < max(end for _begin, end in spans)}
    # Of threads that share a log, some may have no row of the last second.
    counts = [collections.Counter(seconds) for seconds in every]
    found.update(end for count in counts if (end := max(count)) and count[end] < max(count.values()))
    last = None
    for begin, end in sorted(spans):
        if last is not None and begin > last + 1:
            found.update(range(last + 1, begin))
        last = end if last is None else max(last, end)
    return found


def _phase(total: Total, length: float, rows: t.Iterable[int]) -> tuple[float, float]:
    """When a direction began and ended, in seconds from the beginning of the measurement."""
    if total.began is not None and total.seconds is not None:
        return total.began, min(total.began + total.seconds, length)
    if total.seconds is not None and length - total.seconds >= 2:
        # A result of an old version: the other phases are where it has no rows.
        return min(rows), max(rows) + 1
    return 0.0, length


def _added(logs: t.Iterable[t.Sequence[tuple[float, float]]], zero: float) -> Seconds:
    """Rates of threads are added up, second by second."""
    found: Seconds = {}
    for rows in logs:
        seconds = _seconds(rows, zero)
        if not found and (alone := _once(seconds, rows)) is not None:
            found = alone
            continue
        for second, (_time, value) in zip(seconds, rows):
            if second >= 0:
                found[second] = found.get(second, 0.0) + value
    return found


def _once(seconds: t.Sequence[int], rows: t.Sequence[tuple[float, float]]) -> Seconds | None:
    """Values by second; ``None`` if a second has several."""
    found = {second: 0.0 + value for second, (_time, value) in zip(seconds, rows)}
    if len(found) < len(seconds):
        return None
    return found if min(found, default=0) >= 0 else {second: value for second, value in found.items() if second >= 0}


def _seconds(rows: t.Sequence[tuple[float, float]], zero: float) -> list[int]:
    """A row stands for the second before its time, give or take the scheduler."""
    floor = math.floor
    return [floor((time - zero) / _STEP_MS + 0.5) - 1 for time, _value in rows]


def _weighted(latencies: t.Sequence[t.Sequence[tuple[float, float]]], rates: t.Sequence[t.Sequence[tuple[float, float]]], zero: float) -> Seconds:
    """Means of threads, each weighted with the I/Os it did in that second; equally where that is not known."""
    if len(latencies) == 1 and (found := _once(_seconds(latencies[0], zero), latencies[0])) is not None:
        return found
    weighted: Seconds = {}
    weights: Seconds = {}
    for thread, rows in enumerate(latencies):
        done = _added([rates[thread]], zero) if len(rates) == len(latencies) and len(latencies) > 1 else {}
        for second, (_time, value) in zip(_seconds(rows, zero), rows):
            weight = done.get(second, 0.0) if done else 1.0
            if second >= 0 and weight > 0:
                weighted[second] = weighted.get(second, 0.0) + value * weight
                weights[second] = weights.get(second, 0.0) + weight
    return {second: value / weights[second] for second, value in weighted.items()}


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
    def consistent(self) -> tuple[dict[str, t.Any], list[str]]:
        return consistent_summary(self.record)

    @functools.cached_property
    def histograms(self) -> Histograms:
        record = self.record
        there = record.path is not None and record.state in MEASURED and record.meta.get("summary") and OUTPUT_FILE in self.files
        return histograms_of(record, fio_result(record.path), self.consistent[0]) if there and record.path is not None else {}

    @functools.cached_property
    def measurements(self) -> list[Measurement]:
        record = self.record
        beside: dict[str, t.Any] = {"host_group": self.group, "path": None if record.path is None else f"{record.host}/{record.key}"}
        if record.meta:
            # Of a cell with several targets each direction has its own; here are those of all.
            drives, target = drives_of(self.stack.get("before")), {} if record.meta.get("targets") else mapping(record.meta.get("target"))
            beside.update({name: optional_text(target.get(name)) or common_text(drives, name) for name in ("model", "firmware")})
            beside.update({"attachment": attachment_of(drives), "drive": serial_of(drives)})
            beside.update({f"stack_{side}": name for side, name in self.stack_names.items()})
        return measurements_of(record, self.consistent, lambda: self.histograms, beside)

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
