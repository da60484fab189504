# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that measures an order on a host: step by step, by the clock where other hosts take part, until it is done or stopped.

It needs no controller: it continues alone at a barrier that is not released, what it has measured is in the spool at once, and what it was
doing when it was killed is done again by the next one.
"""

from __future__ import annotations

import contextlib
import time
import traceback
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost, describe_target, devices_below
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.fingerprint import measurement_sha256
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.activity import written_to_each
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import Status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import pauses, rounds, search
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.barriers import BarrierResult, Barriers
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.measuring import Measuring, Metas, StartTime, all_names
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import RequestedCell, RunStep, probe, round_of, seconds_left
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.outcomes import Outcomes
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.preparation import Prepared
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.snapshots import Snapshots
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import RunnerLog
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices

#: Seconds between two readings of caches that become clean.
_LOOK = 2.0


class HostRun:
    """One order on this host. The caller holds the spool's lock.

    :param prepared: the validated order.
    """

    def __init__(
        self, prepared: Prepared, spool: Spool, host: MeasuredHost, status: Status, waiter: Waiter, log: RunnerLog, made: MadeFiles, left: LeftDevices
    ) -> None:
        self.prepared = prepared
        self.order = prepared.order
        self.spool = spool
        self.host = host
        self.status = status
        self.waiter = waiter
        self.log = log
        self.left = left
        self.tops, self.names = all_names([requested.cell for requested in self.order.requested], prepared, host.root)
        self.snapshots = Snapshots(host, prepared.devices, self.tops, self.names)
        self.caches = CacheSamples(prepared.devices, host.runner, host.root)
        self.measuring = Measuring(prepared, spool, host, self.snapshots, self.caches, status, waiter, made)
        self.barriers = Barriers(spool.home, host.clock, waiter, self.order.pace.barrier_timeout)
        self.outcomes = Outcomes(spool, self.order.sha256)
        self.passed = BarrierResult()
        #: Since the last pause, and what cells have shown of garbage collection; both by target and block size.
        self.written: dict[str, dict[int | None, float]] = {}
        self.rates: dict[str, dict[int | None, float]] = {}
        self.failed = False

    @contextlib.contextmanager
    def claims(self) -> t.Iterator[None]:
        """Hold every device that is written, for the whole order: it can neither be mounted nor built on.

        :raises Refused: if one is in use by now, or was written to since it was examined.
        """
        with contextlib.ExitStack() as held:
            claimed = set()
            for (target, writing), facts in self.prepared.facts.items():
                if writing and target.kind == "device" and facts.path not in claimed:
                    claimed.add(facts.path)
                    held.enter_context(judge.claimed(facts, self.host.runner, self.host.root))
                    judge.require_contents(examination.examined_again(facts, self.host.runner, self.host.root, self.left))
                    self.left.begin(facts)
                    held.callback(self.left.leave, facts, self.host.root)
            yield

    def run(self) -> None:
        """Carry the order out and write how it ended."""
        state, message, kind = "finished", "", None
        try:
            self._all_steps()
        except StorageError as error:
            state, message, kind = "failed", error.message, error.kind
        except Exception as error:  # noqa: BLE001 - it would not be reported anywhere else
            message = f"Internal error in the runner ({type(error).__name__}: {error}): see runner.log in {self.spool.home} on this host."
            state, kind = "failed", StorageError.kind
            self.log.write(traceback.format_exc())
        if state == "finished" and self.waiter.stopping:
            state, message = "stopped", "The runner was stopped."
        self.log.write(f"{state}: {message or 'nothing is left to measure'}")
        self.status.update(
            state=state,
            message=message,
            error=kind,
            cell=None,
            repeat=None,
            target=None,
            until=None,
            all_until=None,
            iops=None,
            bandwidth=None,
            latency_ms=None,
            archive=self._packed() if state == "finished" else {},
        )

    def _packed(self) -> dict[str, t.Any]:
        """The archive of all results, for a controller that polls: a call of the module would cost it seconds. It can be packed again at any time."""
        try:
            return self.spool.pack()
        except (StorageError, OSError) as error:
            self.log.write(f"the results are not packed: {error}")
            return {}

    def _all_steps(self) -> None:
        self.passed = BarrierResult(start=self.host.clock())
        left = seconds_left(self.order)
        for number, step in enumerate(self.order.steps):
            if self.waiter.stopping or (self.failed and not self.order.pace.keep_going):
                return
            last = number == len(self.order.steps) - 1
            self.status.update(step=number, all_until=self.host.clock() + left[number])
            hashes = self._hashes(step)
            due = [requested for requested in step.cells if not self._is_kept(requested, hashes)]
            notes = self._pause(step) if due else []
            if step.barrier and self._anything_due(number):
                self._pass(step)
            else:
                # Not before the pause: a runner that pauses would be taken for one that is past its barrier.
                self.status.update(segment=step.segment)
            if due and not self.waiter.stopping:
                self._step(step, due, hashes, self._start_time(step, notes), last)

    # -- what is done already

    def _hashes(self, step: RunStep) -> dict[CellKey, str]:
        what = step.rounds.to_dict() if step.rounds else vars(step.search) if step.search else None
        return {requested.cell.key: self._hash(requested.cell, what) for requested in step.cells}

    def _hash(self, cell: Cell, kind: t.Any = None) -> str:
        found = self.prepared.facts_of_all(cell)
        tops = [next((device.name for device in devices_below(self.prepared.devices, facts, self.host.root)), None) for facts in found]
        stack = self.snapshots.last.sha256_of_all(dict.fromkeys(tops))
        own, *others = (describe_target(part.target, facts) for part, facts in zip(cell.parts, found))
        return measurement_sha256(cell.job.workload_sha256, own, self.prepared.fio.version, stack, kind, others)

    def _is_kept(self, requested: RequestedCell, hashes: t.Mapping[CellKey, str]) -> bool:
        """Whether a valid result exists already, here or on the controller; noted once."""
        key = requested.cell.key
        known = self.outcomes.kept(key)
        if known is not None:
            return known
        if self.prepared.kept is not None:
            if key in self.prepared.kept:
                self._note(key, "ok", kept=True)
            return key in self.prepared.kept
        meta = self._stored(requested, hashes[key])
        if meta is not None:
            self._record_rate(meta)
            self.measuring.note_written(requested, meta)
            self._note(key, "ok", kept=True, where="spool")
        elif requested.done_as == hashes[key] and not self.order.pace.replace:
            self._note(key, "ok", kept=True, where="controller")
        return bool(self.outcomes.kept(key))

    def _stored(self, requested: RequestedCell, sha256: str) -> dict[str, t.Any] | None:
        """The result in the spool, if it is one of this very measurement that the controller does not have."""
        meta = self.spool.read_meta(requested.cell.key)
        if meta is None or meta.get("state") != "ok" or meta.get("measurement_sha256") != sha256:
            return None
        # What is to be replaced on the controller was measured again already if this result replaces it.
        return None if self.order.pace.replace and meta.get("replaces") != requested.done_as else meta

    def _anything_due(self, number: int) -> bool:
        """Whether anything is left in the segment that begins with a step."""
        segment = self.order.steps[number].segment
        return any(
            not self._is_kept(requested, self._hashes(step)) for step in self.order.steps[number:] if step.segment == segment for requested in step.cells
        )

    def _note(self, key: CellKey, state: str, *, kept: bool = False, reason: str = "", where: str = "spool") -> None:
        self.outcomes.note(key, state, kept=kept, reason=reason, where=where)
        self.failed = self.failed or state not in (("ok", "not_steady") if self.order.pace.accept_not_steady else ("ok",))
        self.log.write(f"{key}: {state}{' (kept)' if kept else ''} {reason}".rstrip())
        self.status.update(done=self.outcomes.done, failed=self.outcomes.failed)

    # -- when

    def _pass(self, step: RunStep) -> None:
        self.status.update(state="waiting", segment=step.segment, cell=None, target=None, until=self.host.clock() + self.barriers.patience_now)
        self.log.write(f"waiting at the barrier {step.segment}")
        self.passed = self.barriers.wait(step.segment)
        if self.passed.alone:
            self.log.write(self.passed.notes[0])

    def _start_time(self, step: RunStep, notes: t.Sequence[str]) -> StartTime:
        begins = self.passed.start if step.barrier and step.offset is None else None
        start = self.passed.start + step.offset if step.offset is not None else begins
        synchronised = self.passed.synchronised and start is not None
        return StartTime(step.number, step.segment, start, synchronised, self.passed.clock, (*self.passed.notes, *notes))

    def _pause(self, step: RunStep) -> list[str]:
        """Wait as the step requires before it begins; the note about it."""
        pause = step.pause
        if pause is None or (pause.kind != pauses.CLEAN and not any(sum(by_block.values()) for by_block in self.written.values())):
            return []
        seconds, note = pauses.length_of(pause, self.written, self.rates)
        self.written = {}
        self.status.update(state="pausing", cell=None, target=None, until=self.host.clock() + seconds)
        self.log.write(f"pausing for {'at most ' if pause.kind == pauses.CLEAN else ''}{seconds:.1f} s")
        if pause.kind == pauses.CLEAN:
            note = self._await_clean(seconds)
        else:
            self.waiter.for_seconds(seconds)
        # The settings may have been changed while nothing ran.
        self.snapshots.refreshed()
        return [note] if note else []

    def _await_clean(self, most: float) -> str:
        ends = time.monotonic() + most
        dirty = self.caches.dirty(self.names)
        while dirty != 0 and time.monotonic() < ends and not self.waiter.stopping:
            self.waiter.for_seconds(min(_LOOK, most))
            dirty = self.caches.dirty(self.names)
        if dirty == 0:
            return ""
        return f"The caches below the target were not clean after {most:g} seconds: {'an unknown number of' if dirty is None else dirty} bytes were dirty."

    # -- what

    def _step(self, step: RunStep, due: t.Sequence[RequestedCell], hashes: dict[CellKey, str], start_time: StartTime, last: bool) -> None:
        if step.pause is not None:
            hashes = self._hashes(step)
        self.log.write(f"step {step.number}: {', '.join(str(requested.cell.key) for requested in due)}")
        if step.search is not None:
            self._search(step, due[0], hashes, start_time)
        elif step.rounds is not None:
            self._rounds(step, due, hashes, start_time)
        else:
            self._measure(due, hashes, start_time, last=last)

    def _measure(self, due: t.Sequence[RequestedCell], hashes: t.Mapping[CellKey, str], start_time: StartTime, *, last: bool = False) -> Metas:
        self.status.update(state="waiting" if start_time.start else "measuring", until=start_time.start)
        metas = self.measuring.measure(due, hashes, start_time, last=last)
        parts = {requested.cell.key: requested.cell.parts for requested in due}
        for key, meta in metas.items():
            for part, written in zip(parts[key], written_to_each(meta)):
                by_block = self.written.setdefault(part.target.path, {})
                by_block[part.job.block_size] = by_block.get(part.job.block_size, 0.0) + (written or 0)
            self._record_rate(meta)
            self._note(key, meta["state"], reason=meta["reason"])
        return metas

    def _record_rate(self, meta: t.Mapping[str, t.Any]) -> None:
        """How fast the target collects its garbage, if a cell has shown that."""
        shown = meta.get("garbage_collection") or {}
        if shown.get("rate"):
            self.rates.setdefault(meta["target"]["path"], {})[shown.get("block_size")] = shown["rate"]

    def _one(self, requested: RequestedCell, start_time: StartTime) -> dict[str, t.Any] | None:
        """A probe or a round: the result that is there, or a new one; ``None`` if stopped."""
        sha256 = self._hash(requested.cell)
        stored = self._stored(requested, sha256)
        if stored is not None:
            self._note(requested.cell.key, "ok", kept=True)
            return stored
        return None if self.waiter.stopping else self._measure([requested], {requested.cell.key: sha256}, start_time).get(requested.cell.key)

    def _search(self, step: RunStep, requested: RequestedCell, hashes: t.Mapping[CellKey, str], start_time: StartTime) -> None:
        wanted, began = t.cast(search.Search, step.search), self.host.clock()
        probes: list[search.Probe] = []
        value = search.next_value(wanted, probes)
        while value is not None:
            meta = self._one(probe(step, value), start_time)
            if meta is None or (self.waiter.stopping and meta["state"] == "interrupted"):
                return
            probes.append(search.probe_of(wanted, value, meta))
            start_time = _without_start(start_time)
            value = search.next_value(wanted, probes)
        decision = Decision("ok")
        if probes and search.has_failed(probes[-1]):
            decision = _unfinished(probes[-1].state, f"The search ended early: {wanted.over} {probes[-1].value} was {probes[-1].state} or has no latency.")
        self._conclude(requested, hashes, start_time, decision, began, search=search.conclude(wanted, probes))

    def _rounds(self, step: RunStep, due: t.Sequence[RequestedCell], hashes: t.Mapping[CellKey, str], start_time: StartTime) -> None:
        wanted, began = t.cast(rounds.Rounds, step.rounds), self.host.clock()
        decides = next((one.cell.key for one in step.cells if one.cell.key.cell == wanted.decided_by), step.cells[0].cell.key)
        values: list[float] = []
        others: dict[CellKey, list[float | None]] = {one.cell.key: [] for one in step.cells}
        decision = Decision("ok")
        while not rounds.is_over(values, wanted):
            metas = self._round(step, len(values) + 1, start_time)
            if metas is None:
                return
            for key, meta in metas.items():
                others[key].append(rounds.total_of(meta, wanted.what))
            value = rounds.value_of(metas[decides], wanted)
            if value is None:
                state = metas[decides]["state"]
                decision = _unfinished(state, f"The rounds ended early: round {len(values) + 1} was {state} or did no {wanted.track}.")
                break
            values.append(value)
            start_time = _without_start(start_time)
        found = rounds.conclude(values, wanted)
        if decision.state == "ok" and not found["steady"]:
            decision = Decision("not_steady", f"The {wanted.what} of {wanted.track} did not become steady in {len(values)} rounds.")
        for requested in due:
            key = requested.cell.key
            own = found if key == decides else rounds.follow(others[key], wanted, found)
            missing = found["average"] is not None and own["average"] is None
            concluded = Decision("failed", "It has no figures in at least one round of the window.") if missing else decision
            self._conclude(requested, hashes, start_time, concluded, began, rounds=own)

    def _round(self, step: RunStep, number: int, start_time: StartTime) -> dict[CellKey, dict[str, t.Any]] | None:
        """One round over all cells of a step; ``None`` if the runner was stopped in it."""
        metas = {}
        for requested in step.cells:
            meta = self._one(round_of(step, number, requested), start_time)
            if meta is None or (self.waiter.stopping and meta["state"] == "interrupted"):
                return None
            metas[requested.cell.key] = meta
            start_time = _without_start(start_time)
        return metas

    def _conclude(
        self, requested: RequestedCell, hashes: t.Mapping[CellKey, str], start_time: StartTime, decision: Decision, began: float, **found: t.Any
    ) -> None:
        self.snapshots.refreshed()
        self.measuring.store_conclusion(requested, hashes, start_time, decision, began, **found)
        self._note(requested.cell.key, decision.state, reason=decision.reason)


def _unfinished(state: str, reason: str) -> Decision:
    """What becomes of a search or of rounds whose last cell has no figures."""
    return Decision(state if state in ("interrupted", "refused") else "failed", reason)


def _without_start(start_time: StartTime) -> StartTime:
    """The same step after its first cell: what follows begins when it can, and by itself."""
    return StartTime(start_time.step, start_time.segment, None, False, start_time.clock, ())
