# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Cells that start together: prepared one after the other, started within milliseconds, and each stored with a state of its own."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import shutil
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.record import read_record
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import job as fio_job
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import run as fio_run
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import summary as fio_summary
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import supplied_logs
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import (
    describe_cell,
    describe_target,
    devices_below,
    files_of,
    is_read_only,
    time_before,
    time_limit,
    to_json,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.consistency import consistent
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import covers_target
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.held import handed_over
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.opened import other_files_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.machine import describe_machine
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation import activity
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cautions import cautions, compare_pace, compare_rates
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.sampler import DEVICE_SERIES, Sampler, Watched, busy_percent, read_cpu
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.room import growth
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import pauses
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.process import LEAD, OPTION, FioProcess, Gate, fits
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import SCHEMA, CellKey, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.versions import notes_on
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import Status
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import RequestedCell
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.preparation import Prepared
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.snapshots import Snapshot, Snapshots
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts

#: Seconds after its start at which the open files of a fio are checked, and how long to wait at most between two checks.
_CHECKS, _FIRST_CHECKS = (0.2, 1.0, 5.0), 0.25
_DROP_CACHES = "proc/sys/vm/drop_caches"
#: Seconds for what is dirty on the whole host: a slow disk takes several minutes for a large memory.
_LONGEST_SYNC = 600.0
#: A cell that began this much later than requested has a note, in seconds.
_LATE = 0.05
#: So long before the instant everything is read that is read before.
_READ = 0.25

Metas = t.Dict[CellKey, t.Dict[str, t.Any]]


@frozen
class StartTime:
    """When cells start. Times of the host's clock in seconds since the epoch.

    :param start: ``None``: at once.
    :param synchronised: whether the instant was agreed with other hosts.
    :param clock: what the controller measured of this host's clock.
    :param notes: remarks about the start, as sentences.
    :param warm: how the caches were warmed, if they were.
    :param not_deciding: why its cells do not decide, as a clause; empty if they do.
    :param waited: whether the caches were waited for or warmed before it.
    """

    step: int = 0
    segment: int = 0
    start: float | None = None
    synchronised: bool = False
    clock: t.Mapping[str, t.Any] | None = None
    notes: tuple[str, ...] = ()
    warm: t.Mapping[str, t.Any] | None = None
    not_deciding: str = ""
    waited: bool = False


@frozen
class _Place:
    """One target of a cell.

    :param part: the cell with the sections that run there.
    :param top: kernel name of the target, for a file of the device that its file system is on.
    :param names: kernel names of everything below, with ``top``.
    :param units: what fio may write there; none if it is not to write.
    """

    part: Cell
    facts: TargetFacts
    top: str | None
    names: tuple[str, ...]
    units: frozenset[Unit] = frozenset()

    @property
    def device(self) -> str | None:
        """The kernel name of the target itself; a file has none, since others may use the device below it."""
        return self.top if self.facts.device is not None else None


@dataclass
class _Ready:
    """A cell that can start."""

    requested: RequestedCell
    places: tuple[_Place, ...]
    text: str
    folder: Path
    process: FioProcess
    gate: Gate | None = None
    late: float = 0.0
    checked: int = 0
    other_files: str = ""
    notes: list[str] = dataclasses.field(default_factory=list)

    @property
    def names(self) -> tuple[str, ...]:
        """Kernel names of all devices of all targets."""
        return tuple(dict.fromkeys(name for place in self.places for name in place.names))

    @property
    def tops(self) -> dict[str | None, bool]:
        return _tops(self.places)


@frozen
class _HostState:
    """What was read of the host before or after."""

    time: float
    stats: t.Mapping[str, t.Mapping[str, int]]
    snapshot: Snapshot
    sizes: t.Mapping[str, t.Mapping[int, int]]
    busy: float | None = None


class Measuring:
    """Measures cells of one order on one host.

    :param hashes: gives the measurement hash of a cell.
    """

    def __init__(
        self, prepared: Prepared, spool: Spool, host: MeasuredHost, snapshots: Snapshots, caches: CacheSamples, status: Status, waiter: Waiter, made: MadeFiles
    ) -> None:
        self.prepared = prepared
        self.spool = spool
        self.host = host
        self.snapshots = snapshots
        self.caches = caches
        self.status = status
        self.waiter = waiter
        self.made = made
        #: Bytes written to each target since it was discarded last, by the cells of the order that go over all of it.
        self.written: dict[str, float] = {}
        self._keep = True

    def note_written(self, requested: RequestedCell, meta: t.Mapping[str, t.Any]) -> None:
        """Count what a cell wrote to its targets. After a discard the device is empty again; writes to a part of it do not fill it."""
        for part, written in zip(requested.cell.parts, activity.written_to_each(meta)):
            path = part.target.path
            if any(section.discards for section in part.job.sections):
                self.written[path] = 0.0
            elif written and covers_target(part.job, part.target.size):
                self.written[path] = self.written.get(path, 0.0) + written

    def measure(
        self, requested: t.Sequence[RequestedCell], hashes: t.Mapping[CellKey, str], start_time: StartTime, *, last: bool = False, keep: bool = True
    ) -> Metas:
        """Measure cells that start together; those that could not be are stored with the reason.

        :param last: nothing is measured after these: the stack is read once more.
        :param keep: whether they are stored at all.
        :returns: what was stored. Nothing if the runner was stopped before they began.
        """
        metas: Metas = {}
        self._keep = keep
        self.spool.require_space()
        with contextlib.ExitStack() as held:
            ready = []
            for number, one in enumerate(requested):
                began = self.host.clock()
                try:
                    ready.append(self._prepare(one, held.enter_context(self.spool.workplace(number)), start_time, held))
                except StorageError as error:
                    if error.kind == "spool":
                        raise
                    state = "refused" if isinstance(error, Refused) or error.kind == "device_missing" else "failed"
                    metas[one.cell.key] = self.store_unmeasured(one, hashes, start_time, Decision(state, error.message), began)
            if ready:
                metas.update(self._run(ready, hashes, start_time, last))
        return metas

    def _prepare(self, requested: RequestedCell, folder: Path, start_time: StartTime, held: contextlib.ExitStack) -> _Ready:
        """Check the targets again, open them, and write the job file."""
        cell = requested.cell
        found = [(part, self._facts_now(part)) for part in cell.parts]
        facts = found[0][1]
        pace, fio = self.prepared.order.pace, self.prepared.fio
        # A fio that does not support the option would not wait, and begin long before the instant.
        waits = start_time.start is not None and fits(cell.job) and "exec_prerun" not in fio.abilities.without and shutil.which("flock")
        gate = Gate(folder) if waits else None
        if gate is not None:
            held.callback(gate.shut)
        read_only = all(is_read_only(part, one) for part, one in found)
        given = [held.enter_context(handed_over(one, part.job, self.made, self.host.root, stopping=lambda: self.waiter.stopping)) for part, one in found]
        text = self._job_file(cell, [one.facts for one in given], gate)
        (folder / "job.fio").write_text(text)
        for (part, _facts), one in zip(found, given):
            for name, log in part.job.replays.items():
                supplied_logs.write(log, self.spool, one.facts.path, folder / name)
        if any(one.note for one in given):
            text = "\n".join([self._job_file(cell, [one for _part, one in found], gate).rstrip("\n"), *(one.note for one in given if one.note), ""])
        report = folder / "fio.json"
        long = (cell.job.longest or pace.timeout) > fio_run.LONG_RUN
        arguments = fio_run.arguments(report, long=long, read_only=read_only, output_format=fio.abilities.output_format)
        argv = [*self.prepared.command, *arguments[1:], str(folder / "job.fio")]
        limit = time_limit(cell.job, facts, pace.timeout, pace.slack) + sum(time_before(part.job, one) for part, one in found[1:])
        if cell.job.is_buffered:
            drop_page_cache(self.host.runner, self.host.root)
        process = FioProcess(argv, report, limit, self.host.clock, descriptors=[number for one in given for number in one.descriptors])
        places = tuple(self._place(part, facts, one.units if part.job.writes or len(found) == 1 else frozenset()) for (part, facts), one in zip(found, given))
        return _Ready(requested, places, text, folder, process, gate)

    def _place(self, part: Cell, facts: TargetFacts, units: frozenset[Unit]) -> _Place:
        below = devices_below(self.prepared.devices, facts, self.host.root)
        return _Place(part, facts, below[0].name if below else None, tuple(device.name for device in below), units)

    def _job_file(self, cell: Cell, found: t.Sequence[TargetFacts], gate: Gate | None) -> str:
        own, *others = found
        series, added = ("series" if self.prepared.order.pace.series else None), ([OPTION] if gate else ())
        without = self.prepared.fio.abilities.without
        return fio_job.render(cell.job, own, others=dict(zip(cell.others, others)), series=series, without=without, added=added)

    def _facts_now(self, cell: Cell) -> TargetFacts:
        """What is true of a target right before a cell: a device is held since the order began, a file is not."""
        if cell.target.kind == "device":
            facts = self.prepared.facts[cell.target, cell.job.writes]
            if cell.job.writes:
                judge.require_unchanged(facts, self.host.runner, self.host.root)
            return facts
        facts = examination.examine(self.prepared.devices, cell.target, self.host.runner, self.host.root, writing=cell.job.writes, created=self.made.paths())
        judge.require(facts, writing=cell.job.writes, extent=growth(cell, facts) if cell.target.kind == "directory" else None)
        return facts

    def _run(self, ready: list[_Ready], hashes: t.Mapping[CellKey, str], start_time: StartTime, last: bool) -> Metas:
        names = sorted({name for one in ready for name in one.names})
        watched = [Watched(tuple(top for top in one.tops if top), one.names, one.folder) for one in ready]
        pace = self.prepared.order.pace
        ramps = {section.ramp for one in ready for section in one.requested.cell.job.sections}
        sampler = Sampler(watched, pace.sample_interval, self._report_figures, self.caches.rows, self.host.root, self.host.clock, ramps)
        snapshot = self.snapshots.last
        gated = [one for one in ready if one.gate is not None]
        if start_time.start is not None and not self.waiter.until(start_time.start - (LEAD if gated else _READ), self.host.clock):
            return {}
        if self.waiter.stopping:
            return {}
        self._announce(ready)
        self._start(gated)
        if start_time.start is not None and gated:
            self.waiter.until(start_time.start - _READ, self.host.clock)
        ticks = read_cpu(self.host.root)
        sizes = self.caches.request_sizes(names)
        before = _HostState(self.host.clock(), fio_run.read_device_stats(names, self.host.root), snapshot, sizes)
        sampler.begin()
        self._go(ready, start_time)
        self._await(ready)
        busy = busy_percent(ticks, read_cpu(self.host.root))
        after_stats, ended = fio_run.read_device_stats(names, self.host.root), self.host.clock()
        sampler.end()
        sizes = self.caches.request_sizes(names)
        self.made.leave((place.facts.path, place.part.job.writes) for one in ready for place in one.places)
        after = _HostState(ended, after_stats, self.snapshots.read() if last or self.waiter.stopping else self.snapshots.refreshed(), sizes, busy)
        return {one.requested.cell.key: self._store(one, hashes, start_time, before, after) for one in ready}

    @staticmethod
    def _start(ready: t.Iterable[_Ready]) -> None:
        for one in ready:
            # One that cannot be started has no report, which its state shows.
            try:
                one.process.start()
            except StorageError as error:
                one.notes.append(error.message)

    def _go(self, ready: t.Sequence[_Ready], start_time: StartTime) -> None:
        """At the instant: those that wait at their gates first, then the others are started."""
        if start_time.start is not None and not self.waiter.until(start_time.start, self.host.clock):
            return
        for one in ready:
            if one.gate is not None:
                one.gate.open(self.host.clock)
        self._start(one for one in ready if one.gate is None)
        for one in ready:
            began = one.process.started if one.gate is None else one.gate.opened
            if start_time.start is not None and began:
                one.late = began - start_time.start

    def _await(self, ready: t.Sequence[_Ready]) -> None:
        while True:
            # Every one is polled each time: each has a time limit of its own.
            running = [one for one in ready if not one.process.has_ended()]
            if not running:
                return
            for one in running:
                _kill_on_other_files(one)
            if self.waiter.stopping:
                for one in running:
                    one.process.ask_to_end()
            longest = _FIRST_CHECKS if any(one.checked < len(_CHECKS) for one in running) else 1.0
            self.waiter.wait(min(longest, *(one.process.seconds_left() + 0.01 for one in running), 1.0))

    def _announce(self, ready: t.Sequence[_Ready]) -> None:
        cells = [one.requested.cell for one in ready]
        longest = max((cell.job.longest or 0.0 for cell in cells), default=0.0)
        self.status.update(
            state="measuring",
            cell=", ".join(cell.key.cell for cell in cells),
            repeat=cells[0].key.repeat,
            target=", ".join(part.target.path for cell in cells for part in cell.parts),
            until=self.host.clock() + longest if longest else None,
            # Those of the cell before are not this one's.
            iops=None,
            bandwidth=None,
            latency_ms=None,
        )

    def _report_figures(self, figures: t.Mapping[str, float | None]) -> None:
        self.status.update(**figures)

    def _store(self, one: _Ready, hashes: t.Mapping[CellKey, str], start_time: StartTime, before: _HostState, after: _HostState) -> dict[str, t.Any]:
        run = one.process.run()
        cell = one.requested.cell
        output = fio_run.read_output(run, cell.job.block_size)
        decision = fio_run.decide(cell.job, run, output)
        if one.other_files:
            decision = Decision("failed", one.other_files)
        elif self.waiter.stopping and decision.state != "ok":
            decision = Decision("interrupted", "The runner was stopped.")
        meta = self._meta(one.requested, one.places[0].facts, decision, run.started, run.finished, hashes, start_time)
        meta["job_sha256"] = hashlib.sha256(one.text.encode()).hexdigest()
        # A run that was not whole has figures in its files, but none that could stand beside those of whole runs.
        if output is not None and decision.state in ("ok", "not_steady"):
            meta["summary"], withheld = consistent(fio_summary.summarize(output, cell.job), run.finished - run.started)
            meta["notes"] += [*withheld, *activity.series_notes(one.folder, meta["summary"], cell.job.block_size)]
            meta["io_start"], meta["io_end"] = activity.window(output, run.finished, one.gate.passed(run.finished) if one.gate else None, cell.job)
            meta["notes"] += compare_pace(cell.job, (meta["io_end"] or 0.0) - (meta["io_start"] or 0.0))
        moved = [activity.moved(place.device, before.stats, after.stats, output, cell.job, place.part.job) for place in one.places]
        meta["bytes_written"], meta["bytes_read"] = (activity.added(values) for values in zip(*moved))
        if None in (meta["bytes_written"], meta["bytes_read"]):
            meta["bytes_written"], meta["bytes_read"] = activity.moved(None, before.stats, after.stats, output)
        meta["targets"] = _describe_places(one, moved)
        meta["cpu"] = activity.cpu(output, after.busy)
        at_its_rate, not_reached = compare_rates(cell.job, meta["summary"] or {})
        # What is as fast as it may be is limited by nothing else.
        meta["cpu"]["cpu_bound"] = meta["cpu"]["cpu_bound"] and not at_its_rate
        meta["notes"] += not_reached
        meta["stack_sha256"] = before.snapshot.sha256_of_all(one.tops)
        meta["drives"] = {side: self.snapshots.drives_of(snapshot, one.names) for side, snapshot in (("before", before.snapshot), ("after", after.snapshot))}
        if one.requested.measures_garbage_collection and decision.state in ("ok", "not_steady"):
            shown = self._collection(one, meta["io_start"] or run.started, meta["io_end"] or run.finished)
            meta["garbage_collection"] = shown.to_dict()
            meta["notes"] += [shown.reason] if shown.reason else []
        self.note_written(one.requested, meta)
        meta["notes"] += [*cell.job.notes, *one.notes, *self._findings(one, start_time, meta, after)]
        files = files_of(run, one.text, one.folder)
        logs = enumerate(cell.job.replays.values(), start=1)
        files.update({f"replay_{number}.log.gz": log.text.encode() for number, log in logs if log.text is not None})
        sides = (("before", before), ("after", after))
        stats = {side: {"time": found.time, "devices": {name: found.stats[name] for name in one.names if name in found.stats}} for side, found in sides}
        for side, found in sides:
            sizes = {name: counts for name, counts in found.sizes.items() if name in one.names}
            stats[side].update({"request_sizes": sizes} if sizes else {})
        files["device-stats.json"] = to_json({"schema": SCHEMA, **stats})
        files["stack.json"] = to_json({"schema": SCHEMA, **{side: found.snapshot.stack_of_all(one.tops) for side, found in sides}})
        if self._keep:
            self.spool.store(cell.key, files, meta)
        return meta

    def _collection(self, one: _Ready, began: float, ended: float) -> pauses.CollectionRate:
        cell, series, top = one.requested.cell, one.folder / DEVICE_SERIES, one.places[0].device
        block_size = cell.job.block_size
        if not top or not series.exists():
            return pauses.no_series(block_size)
        before = self.written.get(cell.target.path, 0.0)
        return pauses.collection_rate(series.read_text(), top, began, ended, block_size=block_size, size=one.places[0].facts.size, written=before)

    @staticmethod
    def _findings(one: _Ready, start_time: StartTime, meta: t.Mapping[str, t.Any], after: _HostState) -> list[str]:
        cell = one.requested.cell
        notes = [activity.cpu_note(meta["cpu"], cell.job), *cautions(cell.job, cell.key.repeat)] if meta["summary"] else []
        if start_time.start is not None and one.late > _LATE:
            notes.append(f"It began {one.late:.2f} seconds later than requested.")
        if meta["targets"]:
            places = [f"{', '.join(place['sections'])} on {place['path']}" for place in meta["targets"]]
            notes.append(f"Its sections ran on {len(places)} targets at once: {'; '.join(places)}.")
        if after.snapshot.sha256_of_all(one.tops) != meta["stack_sha256"]:
            notes.append("The settings of the layers below the target have changed since this cell began: see stack.json.")
        return [note for note in notes if note]

    def store_unmeasured(
        self, requested: RequestedCell, hashes: t.Mapping[CellKey, str], start_time: StartTime, decision: Decision, began: float
    ) -> dict[str, t.Any]:
        """A cell that could not be measured, with the reason."""
        meta = self._meta(requested, None, decision, began, self.host.clock(), hashes, start_time)
        if self._keep:
            self.spool.store(requested.cell.key, {}, meta)
        return meta

    def store_conclusion(
        self, requested: RequestedCell, hashes: t.Mapping[CellKey, str], start_time: StartTime, decision: Decision, began: float, **found: t.Any
    ) -> dict[str, t.Any]:
        """The cell with the result of a search or of rounds; it has no run of its own."""
        facts = self.prepared.facts_of_all(requested.cell)
        meta = {**self._meta(requested, facts[0], decision, began, self.host.clock(), hashes, start_time), **found}
        places = [self._place(part, one, frozenset()) for part, one in zip(requested.cell.parts, facts)]
        tops = _tops(places)
        snapshot = self.snapshots.last
        meta["stack_sha256"] = snapshot.sha256_of_all(tops)
        stack = snapshot.stack_of_all(tops)
        self.spool.store(requested.cell.key, {"stack.json": to_json({"schema": SCHEMA, "before": stack, "after": stack})}, meta)
        return meta

    def _meta(
        self,
        requested: RequestedCell,
        facts: TargetFacts | None,
        decision: Decision,
        began: float,
        ended: float,
        hashes: t.Mapping[CellKey, str],
        start_time: StartTime,
    ) -> dict[str, t.Any]:
        order, fio = self.prepared.order, self.prepared.fio
        purge = read_record(facts.identity if facts else None, self.host.root)
        not_deciding = start_time.not_deciding if requested.may_decide else ""
        return {
            **describe_cell(order.campaign, order.host, fio.version, requested.cell, facts, decision, began, ended),
            "measurement_sha256": hashes.get(requested.cell.key),
            "stack_sha256": None,
            "order_sha256": order.sha256,
            "replaces": requested.done_as,
            "decides": [] if not_deciding else None if requested.decides is None else list(requested.decides),
            "not_deciding": not_deciding or None,
            "warm": None if start_time.warm is None else dict(start_time.warm),
            "step": start_time.step,
            "segment": start_time.segment,
            "synchronised": start_time.synchronised,
            "asked_start": start_time.start,
            "clock": dict(start_time.clock) if start_time.clock else None,
            "io_start": None,
            "io_end": None,
            "bytes_written": None,
            "bytes_read": None,
            "cpu": None,
            "drives": None,
            "machine": describe_machine(self.host.root),
            "purge": purge.to_dict() if purge is not None else None,
            "notes": [*notes_on(fio.version, fio.abilities), *start_time.notes, *decision.notes],
        }


def _tops(places: t.Iterable[_Place]) -> dict[str | None, bool]:
    """Kernel names of targets, in the order of the parts of their cell, and whether each is written."""
    found: dict[str | None, bool] = {}
    for place in places:
        found[place.top] = found.get(place.top, False) or place.part.job.writes
    return found


def _kill_on_other_files(one: _Ready) -> None:
    """Whatever fio has open for writing must be its target: if it is not, it is killed before it does more."""
    pid = one.process.pid
    # A fio at its gate has opened nothing yet.
    began = one.process.running_for if one.gate is None or one.gate.opened else 0.0
    units = frozenset(unit for place in one.places for unit in place.units)
    if not units or pid is None or one.checked >= len(_CHECKS) or began < _CHECKS[one.checked]:
        return
    one.checked += 1
    found = other_files_of(pid, units, one.folder)
    if found:
        one.process.kill()
        one.other_files = f"fio had {', '.join(found[:3])} open for writing, which is not its target, and was killed."


def _describe_places(one: _Ready, moved: t.Sequence[tuple[int | None, int | None]]) -> list[dict[str, t.Any]] | None:
    """Each target of a cell that has several, with its sections and what they moved; ``None`` for a single target."""
    if len(one.places) == 1:
        return None
    names = (None, *one.requested.cell.others)
    return [
        {
            **describe_target(place.part.target, place.facts),
            "name": name,
            "sections": [section.name for section in place.part.job.sections],
            "directions": sorted({direction for section in place.part.job.sections for direction in section.directions}),
            "bytes_written": written,
            "bytes_read": read,
        }
        for name, place, (written, read) in zip(names, one.places, moved)
    ]


def drop_page_cache(runner: Runner, root: Path) -> None:
    """Write out what is dirty and drop the page cache (Documentation/admin-guide/sysctl/vm.rst), so that a buffered job starts with a cold cache.

    In a process of its own: with a device that answers nothing any more a sync never comes back.

    :raises TimedOut: if a device of this host does not take what is dirty.
    """
    runner.run(["sync"], ok=None, timeout=_LONGEST_SYNC)
    with contextlib.suppress(OSError):
        (root / _DROP_CACHES).write_text("3\n")


def all_names(cells: t.Iterable[Cell], prepared: Prepared, root: Path) -> tuple[set[str], set[str]]:
    """Kernel names of the targets of some cells, and of everything below them."""
    tops: set[str] = set()
    names: set[str] = set()
    for cell in cells:
        for facts in prepared.facts_of_all(cell):
            below = [device.name for device in devices_below(prepared.devices, facts, root)]
            tops |= set(below[:1])
            names |= set(below)
    return tops, names
