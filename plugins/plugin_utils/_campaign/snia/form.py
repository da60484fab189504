# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fields and tables of the report page, for each device under test, the same for HTML and Markdown. Pure.

A field that the results do not have is ``not recorded``. Deviations from the specification have a section of their own.

The tests of SNIA's Performance Test Specification as a campaign has them: rounds over several cells, their window, and what it shows. Pure.

Sources: SNIA Solid State Storage Performance Test Specification 2.0.2, sections 2.1.24 (steady state), 3.2 (reporting requirements), 7 (IOPS), 8 (throughput),
9 (latency) and 10 (write saturation).
"""

from __future__ import annotations

import datetime
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rounds import RoundsRun, run_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.checked import mapping, number
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics import percentiles
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import samples_needed
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import (
    NOTHING,
    amount,
    count,
    counted,
    figure,
    in_seconds,
    latency,
    megabytes,
    share,
    size,
    times,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.snia.tested import Row, Tested

TITLES = {"iops": "IOPS test", "bandwidth": "Throughput test", "latency": "Latency test"}

#: The percentile that the latency test reports.
PERCENT = 99.999
_SATURATION = "saturation"
_FILL = "fill"


@dataclass(frozen=True)
class CellResult:
    """One cell over the rounds of the window. Rates are averages of the rounds, in 1/s, bytes per second and ns.

    :param tail: 99.999th percentile of all I/Os of the window; ``None`` with fewer than ``needed`` of them.
    """

    cell: str
    block_size: int | None
    reads: int | None
    iops: float | None
    bandwidth: float | None
    latency: float | None
    slowest: float | None
    tail: int | None
    samples: int
    state: str


@dataclass(frozen=True)
class RoundsTest:
    """One test in rounds.

    :param run: of the cell that decides; :param first: one of its measurements, for the job.
    """

    what: str
    run: RoundsRun
    results: tuple[CellResult, ...]
    first: Row | None

    @property
    def title(self) -> str:
        return TITLES[self.what]

    @property
    def window(self) -> range:
        """The numbers of its rounds, from 1; empty without a window."""
        return range(0) if self.run.first is None else range(self.run.first, self.run.first + self.run.window)


@dataclass(frozen=True)
class Saturation:
    """One write saturation test; ``minutes`` as in :class:`tested.Tested`."""

    row: Row
    minutes: tuple[tuple[int, float, float, float], ...]


def tests_of(tested: Tested) -> list[RoundsTest]:
    """The tests in rounds, in the order in which they ended."""
    found = []
    for row in tested.rows:
        rounds = row.found
        decided_by = rounds.get("decided_by")
        if not rounds or decided_by not in (None, row.cell):
            continue
        run = run_of(row.host, row.variant, row.cell, row.repeat, rounds)
        if run is None:
            continue
        cells = [one for one in tested.rows if one.found and one.found.get("decided_by") == decided_by] if decided_by else [row]
        results = tuple(_result(tested, one, run) for one in cells)
        first = next((one for one in tested.rows if one.cell.startswith(f"{row.cell}.round-") and one.direction in ("read", "write")), None)
        found.append(RoundsTest(run.what, run, results, first))
    return found


def _result(tested: Tested, conclusion: Row, run: RoundsRun) -> CellResult:
    rounds: dict[int, list[Row]] = {}
    for row in tested.rows:
        start, _dot, end = row.cell.rpartition(".round-")
        if start == conclusion.cell and end.isdigit() and row.direction in ("read", "write"):
            rounds.setdefault(int(end), []).append(row)
    window = [] if run.first is None else [rounds.get(place, []) for place in range(run.first, run.first + run.window)]
    parts = [row for one in window for row in one]
    first = next((row for one in rounds.values() for row in one), conclusion)
    bins: dict[int, int] = {}
    for name in {row.cell for row in parts}:
        for bin_ns, done in tested.bins.get(name, {}).items():
            bins[bin_ns] = bins.get(bin_ns, 0) + done
    [tail] = percentiles.percentiles(percentiles.histogram(bins), (PERCENT,))
    return CellResult(
        cell=conclusion.cell,
        block_size=first.bs_bytes,
        reads=first.reads,
        iops=_average([_total(one, "iops") for one in window]),
        bandwidth=_average([_total(one, "bandwidth") for one in window]),
        # As its host tracked it: what the application waits, also where the tables have the time from submission to completion.
        latency=number(conclusion.found.get("average")) if run.what == "latency" else None,
        slowest=max((row.lat_max_ns for row in parts if row.lat_max_ns is not None), default=None),
        tail=tail.value,
        samples=tail.samples,
        state=conclusion.state,
    )


def _total(rows: t.Sequence[Row], what: str) -> float | None:
    """Reads and writes of one round together."""
    if not rows:
        return None
    rates = [row.iops if what == "iops" else row.bw_bytes for row in rows]
    return None if None in rates else sum(t.cast("list[float]", rates))


def _average(values: t.Sequence[float | None]) -> float | None:
    """Of all rounds of the window, or of none."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def saturations_of(tested: Tested) -> list[Saturation]:
    """Cells that are named so, without rounds."""
    rows = [row for row in tested.rows if row.cell.startswith(_SATURATION) and row.direction == "write" and ".round-" not in row.cell]
    return [Saturation(row, tuple(tested.minutes.get(row.cell, ()))) for row in rows]


def fills_of(tested: Tested) -> list[Row]:
    """The workload-independent preconditioning: sequential writes that are no part of a test."""
    return [row for row in tested.rows if row.cell.startswith(_FILL) or (row.rw == "write" and ".round-" not in row.cell and row.direction == "write")]


NOT_RECORDED = "not recorded"

#: What the specification requires.
_ROUND, _MOST, _WINDOW, _RANGE, _SLOPE = 60.0, 25, 5, 0.20, 0.10
_BLOCKS = {"iops": (1024, 128, 64, 32, 16, 8, 4, 0.5), "bandwidth": (1024, 128), "latency": (8, 4, 0.5)}
_MIXES = {"iops": (100, 95, 65, 50, 35, 5, 0), "bandwidth": (100, 0), "latency": (100, 65, 0)}
_KIB = 1024
_SATURATED, _DAY = 4.0, 86400.0
#: What drives differ in by rounding of their capacity.
_NEARLY = 0.99
_MOST_MINUTES = 60


@dataclass(frozen=True)
class Table:
    """``rows`` are as long as ``heads``."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Line:
    """A chart: values over numbers, with the window that is marked, its average, its limits and its fitted line.

    :param fit: values of the fitted line at both ends of the window.
    """

    title: str
    unit: str
    across: str
    points: tuple[tuple[float, float], ...]
    window: tuple[float, float] | None = None
    average: float | None = None
    limit: float | None = None
    fit: tuple[float, float] | None = None


@dataclass(frozen=True)
class Section:
    """One part of a page: fields, tables, charts, notes, in this order."""

    title: str
    fields: tuple[tuple[str, str], ...] = ()
    lines: tuple[Line, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Form:
    """The page of one device under test."""

    title: str
    sections: tuple[Section, ...] = field(default=())


def form_of(tested: Tested, campaign: str) -> Form:
    """The page of one device."""
    tests, saturations, fills = tests_of(tested), saturations_of(tested), fills_of(tested)
    sections = [
        Section("Device under test", _device(tested)),
        Section("Test host", _host(tested)),
        Section("Purge", _purge(tested, campaign)),
        Section("Preconditioning", _preconditioning(tested, tests, fills)),
        *(_test(tested, one) for one in tests),
        *(_saturation(tested, one) for one in saturations),
    ]
    deviations = _deviations(tested, campaign, tests, saturations, fills)
    notes = tuple(deviations) or ("None was found in what was recorded.",)
    sections.insert(0, Section("Deviations from the specification", notes=notes))
    return Form(f"{tested.target} of {tested.host}, variant {tested.variant}", tuple(sections))


# -- fields


def _known(value: t.Any) -> str:
    text = plain(value) if value is not None else ""
    return text or NOT_RECORDED


def _joined(values: t.Iterable[t.Any]) -> str:
    return ", ".join(dict.fromkeys(plain(value) for value in values if value not in (None, ""))) or NOT_RECORDED


def _first(tested: Tested, name: str) -> t.Any:
    return next((getattr(row, name) for row in tested.rows if getattr(row, name) is not None), None)


def _capacity(tested: Tested) -> int | None:
    """Of the device: what the host saw of the whole target, else of the one drive below it, also below a file."""
    target = mapping(tested.meta.get("target"))
    whole = number(target.get("size"))
    if whole and target.get("kind") != "file":
        return int(whole)
    return tested.drives[0].size if len(tested.drives) == 1 else None


def _device(tested: Tested) -> tuple[tuple[str, str], ...]:
    capacity, used = _capacity(tested), _first(tested, "target_size")
    target = mapping(tested.meta.get("target"))
    range_ = NOT_RECORDED
    if used and capacity:
        range_ = f"{size(used)}, {amount(100 * used / capacity)} of the capacity"
    return (
        ("Device", _known(tested.target)),
        ("Model", _joined([_first(tested, "model"), *(drive.model for drive in tested.drives)])),
        ("Serial number or identity", _joined([target.get("serial"), _first(tested, "target_identity"), *(drive.serial for drive in tested.drives)])),
        ("Firmware", _joined([_first(tested, "firmware"), *(drive.firmware for drive in tested.drives)])),
        ("Capacity", f"{size(capacity)} ({count(capacity)} bytes)" if capacity else NOT_RECORDED),
        ("Interface", _joined(drive.transport for drive in tested.drives)),
        ("Active range", range_),
        *((label, _settings(tested, label)) for label in ("Write cache of the drive", "Write cache of the block queue")),
    )


def _settings(tested: Tested, label: str) -> str:
    return _joined(value for name, value in tested.settings if name == label)


def _host(tested: Tested) -> tuple[tuple[str, str], ...]:
    machine = mapping(tested.meta.get("machine"))
    cpus, memory = number(machine.get("cpus")), number(machine.get("memory"))
    controller = [value for label, value in tested.settings if label == "Controller"] or [value for label, value in tested.settings if label == "Driver"]
    return (
        ("Host", _known(tested.host)),
        ("Manufacturer and model", " ".join(plain(machine[key]) for key in ("vendor", "product") if machine.get(key)) or NOT_RECORDED),
        ("CPU", _known(machine.get("cpu"))),
        ("Logical CPUs", f"{int(cpus)}" if cpus else NOT_RECORDED),
        ("Memory", size(memory) if memory else NOT_RECORDED),
        ("Operating system kernel", _known(_first(tested, "kernel"))),
        ("Controller or driver", _joined(controller)),
        ("Scheduler", _settings(tested, "Scheduler")),
        ("Test software", _known(_first(tested, "fio_version"))),
        ("I/O engine", _joined(row.ioengine for row in tested.rows if row.direction)),
    )


def _moment(seconds: t.Any) -> str:
    value = number(seconds)
    if value is None or value > 1e11:
        return NOT_RECORDED
    return datetime.datetime.fromtimestamp(value, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _purged(tested: Tested, campaign: str) -> bool:
    """Whether the device was purged for this campaign and variant before its first measurement."""
    purge = mapping(tested.meta.get("purge"))
    return purge.get("state") == "done" and str(purge.get("once") or "").startswith(f"{campaign}/{tested.variant}/")


def _purge(tested: Tested, campaign: str) -> tuple[tuple[str, str], ...]:
    purge = mapping(tested.meta.get("purge"))
    if not purge:
        return (("Purge", NOT_RECORDED),)
    state = plain(purge.get("state"), 20)
    ended = {"done": "done", "failed": f"failed: {plain(purge.get('message'))}", "running": "interrupted: it has begun and not ended"}.get(state, state)
    return (
        ("Purge", ended if _purged(tested, campaign) or state != "done" else "not for this campaign; the last one of the drive is below"),
        ("Method", _known(purge.get("method"))),
        ("Begun", _moment(purge.get("started"))),
        ("Ended", _moment(purge.get("finished"))),
        ("Read back", f"the drive {plain(purge['reads'])}" if purge.get("reads") else NOT_RECORDED),
    )


def _preconditioning(tested: Tested, tests: t.Sequence[RoundsTest], fills: t.Sequence[Row]) -> tuple[tuple[str, str], ...]:
    independent = [("Workload independent", _fill(tested, row)) for row in fills] or [("Workload independent", NOT_RECORDED)]
    dependent = [("Workload dependent", f"{one.title}: {_rounds_text(one)}") for one in tests] or [("Workload dependent", NOT_RECORDED)]
    return (*independent, *dependent)


def _fill(tested: Tested, row: Row) -> str:
    written, capacity = _written(row), _capacity(tested)
    amount = "an amount that was not recorded" if written is None else size(written) + (f", {times(written / capacity)} the capacity" if capacity else "")
    took = f" in {in_seconds(row.finished - row.started)}" if row.finished is not None and row.started is not None else ""
    job = f"sequential writes of {_kib(row.bs_bytes)}, {_load(row)}"
    return f"{row.cell}: {job}: {amount}{took}" + ("" if row.state == "ok" else f" ({row.state})")


def _written(row: Row) -> float | None:
    """Bytes: what the device counted, else what fio did."""
    if row.bytes_written:
        return row.bytes_written
    return row.bw_bytes * row.runtime_ms / 1000 if row.bw_bytes is not None and row.runtime_ms is not None else None


def _kib(size_in_bytes: int | None) -> str:
    """A block size as the specification writes it."""
    return f"{size_in_bytes / _KIB:g} KiB" if size_in_bytes else NOT_RECORDED


def _load(row: Row | None) -> str:
    if row is None or row.iodepth is None or row.numjobs is None:
        return NOT_RECORDED
    return f"{counted(row.numjobs, 'thread')}, {row.iodepth} outstanding I/Os each, {row.iodepth * row.numjobs} in total"


def _pattern(tested: Tested) -> str:
    """What the job writes. fio fills its buffers with random data unless an option sets something else (HOWTO, "Buffers and memory")."""
    options = dict(line.partition("=")[::2] for line in (raw.strip() for raw in tested.job.splitlines()) if line and not line.startswith("["))
    if not options:
        return NOT_RECORDED
    special = [name for name in ("zero_buffers", "buffer_pattern", "buffer_compress_percentage", "dedupe_percentage") if name in options]
    if special:
        return ", ".join(f"{name} {plain(options[name])}".strip() for name in special)
    return "random, new for every write" if "refill_buffers" in options else "random, repeated"


# -- tests


def _tracked(what: str, value: float | None) -> str:
    if value is None:
        return NOTHING
    return {"latency": latency(value), "bandwidth": f"{megabytes(value)} MB/s"}.get(what, figure(value))


def _rounds_text(one: RoundsTest) -> str:
    text = f"{counted(len(one.run.values), 'round')}, {'steady' if one.run.steady else 'not steady'}"
    return f"{text}, measurement window: rounds {one.window[0]} to {one.window[-1]}" if one.window else text


def _percent(value: float | None) -> str:
    return NOT_RECORDED if value is None else share(value, 1)


def _test(tested: Tested, one: RoundsTest) -> Section:
    run, what = one.run, one.what
    name = {"iops": "IOPS", "bandwidth": "Throughput", "latency": "Mean latency"}[what]
    reached = "reached" if run.steady else "not reached"
    fields = (
        ("Steady state", f"{reached} after {counted(len(run.values), 'round')}"),
        ("Tracked", f"{name} of {run.cell}"),
        ("Measurement window", f"rounds {one.window[0]} to {one.window[-1]}, {run.window} rounds" if one.window else "none: too few rounds"),
        ("Average in the window", _tracked(what, run.average)),
        ("Range in the window", f"{_percent(run.excursion)} of the average (limit {_percent(run.excursion_limit)})"),
        ("Slope in the window", f"{_percent(run.slope)} of the average (limit {_percent(run.slope_limit)})"),
        ("Round", f"{one.first.asked_runtime:g} s for each cell" if one.first is not None and one.first.asked_runtime else NOT_RECORDED),
        ("Load", _load(one.first)),
        ("Data pattern", _pattern(tested)),
    )
    tables = _results(one)
    rounds = Table(
        f"{name} in each round, of {run.cell}",
        ("Round", name, "In the window"),
        tuple((str(place), _tracked(what, value), "yes" if place in one.window else "no") for place, value in enumerate(run.values, start=1)),
    )
    notes = [f"{result.cell}: {result.state}" for result in one.results if result.state not in ("ok", "not_steady")]
    if what == "latency" and one.first is not None and one.first.latency_kind == "clat":
        notes.append("The maximum and the percentile are from submission to completion; the mean includes the submission (fio's lat_percentiles was not set).")
    return Section(f"{one.title}: {run.cell}", fields, (_line(one, name),), (*tables, rounds), tuple(notes))


def _line(one: RoundsTest, name: str) -> Line:
    run = one.run
    unit, scale = {"iops": ("IOPS", 1.0), "bandwidth": ("MB/s", 1e6), "latency": ("µs", 1e3)}[one.what]
    points = tuple((float(place), value / scale) for place, value in enumerate(run.values, start=1))
    if not one.window or run.average is None:
        return Line(f"{name} by round", unit, "round", points)
    average, slope = run.average / scale, run.slope or 0.0
    return Line(
        f"{name} by round",
        unit,
        "round",
        points,
        window=(float(one.window[0]), float(one.window[-1])),
        average=average,
        # The range is between two values: half of it lies on either side of the average.
        limit=None if run.excursion_limit is None else average * run.excursion_limit / 2,
        fit=(average * (1 - slope / 2), average * (1 + slope / 2)) if run.slope is not None else None,
    )


def _results(one: RoundsTest) -> list[Table]:
    if one.what == "iops":
        return [_matrix("IOPS, average of the window: block size by reads/writes in %", one, lambda result: _tracked("iops", result.iops))]
    if one.what == "bandwidth":
        return [_matrix("Throughput, average of the window: block size by reads/writes in %", one, lambda result: _tracked("bandwidth", result.bandwidth))]
    return [
        _matrix("Mean latency, average of the window", one, lambda result: latency(result.latency)),
        _matrix(f"{PERCENT:g} % latency of all I/Os of the window", one, _tail),
        _matrix("Maximum latency in the window", one, lambda result: latency(result.slowest)),
    ]


def _tail(result: CellResult) -> str:
    if result.tail is not None:
        return latency(result.tail)
    return f"too few I/Os ({count(result.samples)} of {count(samples_needed(PERCENT))})" if result.samples else NOT_RECORDED


def _matrix(title: str, one: RoundsTest, shown: t.Callable[[CellResult], str]) -> Table:
    """Block sizes, largest first, by mixes, most reads first."""
    mixes = sorted({result.reads for result in one.results if result.reads is not None}, reverse=True)
    blocks = sorted({result.block_size for result in one.results if result.block_size}, reverse=True)
    values = {(result.block_size, result.reads): shown(result) for result in one.results}
    rows = tuple((_kib(bs), *(values.get((bs, mix), NOTHING) for mix in mixes)) for bs in blocks)
    return Table(title, ("Block size", *(f"{mix}/{100 - mix}" for mix in mixes)), rows)


def _saturation(tested: Tested, one: Saturation) -> Section:
    row, capacity = one.row, _capacity(tested)
    written = _written(row)
    fields = (
        ("State", row.state),
        ("Written", NOT_RECORDED if written is None else size(written) + (f", {times(written / capacity)} the capacity" if capacity else "")),
        ("Duration", in_seconds(row.runtime_ms / 1000) if row.runtime_ms is not None else NOT_RECORDED),
        ("Block size", _kib(row.bs_bytes)),
        ("Load", _load(row)),
        ("Data pattern", _pattern(tested)),
        ("Average IOPS of the whole test", _tracked("iops", row.iops)),
        ("Mean latency of the whole test", latency(row.lat_mean_ns) if row.lat_mean_ns is not None else NOT_RECORDED),
        ("Maximum latency", latency(row.lat_max_ns) if row.lat_max_ns is not None else NOT_RECORDED),
    )
    if not one.minutes:
        return Section(f"Write saturation test: {row.cell}", fields, notes=("Its series was not recorded.",))
    total, rows = 0.0, []
    # A day has 1440 minutes: the table has every so many of them, the chart has all.
    every = -(-len(one.minutes) // _MOST_MINUTES)
    for place, (minute, iops, bandwidth, moved) in enumerate(one.minutes):
        total += moved
        if place % every == 0 or place == len(one.minutes) - 1:
            rows.append((str(minute + 1), figure(iops), f"{megabytes(bandwidth)} MB/s", size(total)))
    table = Table("IOPS and throughput, average of each minute", ("Minute", "IOPS", "Throughput", "Written so far, about"), tuple(rows))
    line = Line("IOPS by minute", "IOPS", "minute", tuple((float(minute + 1), iops) for minute, iops, _bandwidth, _moved in one.minutes))
    notes = (f"The table has every {every}th minute.",) if every > 1 else ()
    return Section(f"Write saturation test: {row.cell}", fields, (line,), (table,), notes)


# -- what differs from the specification


def _deviations(tested: Tested, campaign: str, tests: t.Sequence[RoundsTest], saturations: t.Sequence[Saturation], fills: t.Sequence[Row]) -> t.Iterator[str]:
    capacity, used = _capacity(tested), _first(tested, "target_size")
    if not tests and not saturations:
        yield "No test of the specification was measured: use the suites snia_iops, snia_throughput, snia_latency and snia_write_saturation."
    if not capacity:
        yield "The capacity is not recorded, so the active range and the written amounts cannot be compared with it."
    if mapping(tested.meta.get("target")).get("kind") == "file":
        yield "The target is a file, not a device."
    if not _purged(tested, campaign):
        yield "It is not recorded that the device was purged for this campaign."
    if capacity and used and used < _NEARLY * capacity:
        yield f"The active range is {amount(100 * used / capacity)} of the capacity; 100 % is required."
    if tests:
        amounts = [_written(row) for row in fills]
        if not fills:
            yield "There is no workload-independent preconditioning; twice the capacity is required."
        elif capacity and any(amount is None or amount < 2 * _NEARLY * capacity for amount in amounts):
            yield "The workload-independent preconditioning wrote less than twice the capacity, or its amount is not recorded."
    for one in tests:
        yield from _rounds_deviations(one)
    for one in saturations:
        written, seconds = _written(one.row), (one.row.runtime_ms or 0) / 1000
        if capacity and (written or 0) < _SATURATED * _NEARLY * capacity and seconds < _NEARLY * _DAY:
            yield f"{one.row.cell}: less than four times the capacity was written, in less than 24 hours."


def _rounds_deviations(one: RoundsTest) -> t.Iterator[str]:
    run, where = one.run, f"{one.title} ({one.run.cell})"
    if not run.steady:
        yield f"{where}: steady state was not reached in {counted(len(run.values), 'round')}" + (
            "." if len(run.values) >= _MOST else f"; up to {_MOST} rounds are required."
        )
    if (run.window, run.excursion_limit, run.slope_limit) != (_WINDOW, _RANGE, _SLOPE):
        yield (
            f"{where}: the window was {run.window} rounds with limits of {_percent(run.excursion_limit)} and {_percent(run.slope_limit)}; "
            f"{_WINDOW} rounds, {_percent(_RANGE)} and {_percent(_SLOPE)} are required."
        )
    seconds = one.first.asked_runtime if one.first is not None else None
    if seconds != _ROUND:
        yield f"{where}: a round was {f'{seconds:g}' if seconds else 'an unrecorded number of'} s for each cell; {_ROUND:g} s are required."
    measured = {(result.block_size, result.reads) for result in one.results}
    # Throughput is measured by one block size at a time.
    blocks = _BLOCKS[one.what] if one.what != "bandwidth" else [(bs or 0) / _KIB for bs in {result.block_size for result in one.results}]
    missing = [f"{kib:g} KiB {mix}/{100 - mix}" for mix in _MIXES[one.what] for kib in blocks if (int(kib * _KIB), mix) not in measured]
    if missing:
        shown = ", ".join(missing[:4] + (["and more"] if len(missing) > 4 else []))
        yield f"{where}: {len(missing)} of {len(_MIXES[one.what]) * len(blocks)} cells are missing: {shown}."


def summary(form: Form) -> str:
    """How many deviations a page has, for the beginning of a file with several."""
    notes = form.sections[0].notes
    return "as specified, as far as recorded" if notes[0].startswith("None") else counted(len(notes), "deviation")


def rate(value: float | None) -> str:
    """A value of an axis."""
    return figure(value)
