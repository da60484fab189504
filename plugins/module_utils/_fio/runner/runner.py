# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The process that measures an order on a host: step by step, by the clock where other hosts take part, until it is done or stopped.

It needs no controller: it continues alone at a barrier that is not released, what it has measured is in the spool at once, and what it was
doing when it was killed is done again by the next one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
import traceback
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import CACHE_TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell, MeasuredHost, describe_target, devices_below
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.fingerprint import measurement_sha256
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.activity import written_to_each
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.cache_samples import CacheSamples
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import Status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.run import Decision
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import pauses, rounds, search, warming
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.barriers import BarrierResult, Barriers
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.draining import NOT_CLEAN, Draining, Left
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.measuring import Measuring, Metas, StartTime, all_names
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import RequestedCell, RunStep, probe, round_of, seconds_left, warming_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.other_caches import OtherCaches, Settled
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.outcomes import Outcomes
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.preparation import Prepared
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.snapshots import Snapshots
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination, judge

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import RunnerLog
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.waiting import Waiter
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.left_devices import LeftDevices

#: Kinds of cached devices whose hits are counted some seconds late.
_COUNT_LATE = frozenset(kind.kernel_kind for kind in CACHE_TYPES.values() if kind.counts_late)


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
        self.draining = Draining(self.caches, status, waiter)
        self.other_caches = OtherCaches(host, self.snapshots, status, waiter)
        self.barriers = Barriers(spool.home, host.clock, waiter, self.order.pace.barrier_timeout)
        self.outcomes = Outcomes(spool, self.order.sha256)
        self.passed = BarrierResult()
        #: Since the last pause, and what cells have shown of garbage collection; both by target and block size.
        self.written: dict[str, dict[int | None, float]] = {}
        self.rates: dict[str, dict[int | None, float]] = {}
        self.failed = False
        #: Whether it was noted that there is no cache to warm.
        self._said = False

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
            state = self._bring_about(step, due) if due else StartTime()
            if step.barrier and self._anything_due(number):
                self._pass(step)
            else:
                # Not before the state is brought about: a runner that pauses or warms caches would be taken for one that is past its barrier.
                self.status.update(segment=step.segment)
            if due and not self.waiter.stopping:
                self._step(step, due, self._start_time(step, state), last)

    # -- what is done already

    def _hashes(self, step: RunStep) -> dict[CellKey, str]:
        what = step.rounds.to_dict() if step.rounds else vars(step.search) if step.search else None
        return {one.cell.key: self._hash(one.cell, {"warm": one.warm} if one.warm != warming.NONE else what) for one in step.cells}

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

    def _start_time(self, step: RunStep, state: StartTime) -> StartTime:
        """:param state: what the step begins with, as :meth:`_bring_about` returns it."""
        begins = self.passed.start if step.barrier and step.offset is None else None
        start = self.passed.start + step.offset if step.offset is not None else begins
        synchronised = self.passed.synchronised and start is not None
        if not step.barrier and state.waited and start is not None and self.host.clock() > start:
            # The other hosts did not have to wait for their caches.
            start, synchronised = None, False
        return dataclasses.replace(
            state,
            step=step.number,
            segment=step.segment,
            start=start,
            synchronised=synchronised,
            clock=self.passed.clock,
            notes=(*self.passed.notes, *state.notes),
        )

    def _bring_about(self, step: RunStep, due: t.Sequence[RequestedCell]) -> StartTime:
        """Its pause, warm caches, and nothing left to write back."""
        note = self._pause(step)
        warmed, noted = self._warm(step, [one for one in due if one.warm == warming.STEADY])
        most = _longest_drain(step, due)
        left = self._drain(step, most)
        settled = self.other_caches.settle(self._names_of(due, tops=True), most) if most else Settled()
        waited = bool(warmed) or left is not None or settled.waited
        if waited or step.pause is not None:
            # The settings may have been changed while nothing was measured.
            self.snapshots.refreshed()
        notes = tuple(filter(None, (note, noted, left.sentence if left else "", *settled.sentences)))
        return StartTime(notes=notes, warm=warmed, not_deciding=self._why_not_deciding(due, left) or settled.not_deciding, waited=waited)

    def _pause(self, step: RunStep) -> str:
        """Wait as long as the step requires before it begins; the note about it."""
        pause = step.pause
        if pause is None or pause.kind == pauses.CLEAN or not any(sum(by_block.values()) for by_block in self.written.values()):
            return ""
        seconds, note = pauses.length_of(pause, self.written, self.rates)
        self.written = {}
        self.status.update(state="pausing", cell=None, target=None, until=self.host.clock() + seconds)
        self.log.write(f"pausing for {seconds:.1f} s")
        self.waiter.for_seconds(seconds)
        return note

    def _drain(self, step: RunStep, most: float) -> Left | None:
        """Wait for clean caches, as the step requires or before a cell that decides; ``None`` if they are clean already."""
        if _is_until_clean(step):
            self.written = {}
        if not most or self.caches.dirty(self.names) == 0:
            return None
        self.log.write(f"waiting for clean caches for at most {most:g} s")
        left = self.draining.wait(self.names, most)
        self.status.update(message="")
        return left

    def _why_not_deciding(self, due: t.Sequence[RequestedCell], left: Left | None) -> str:
        # What caches of other targets keep does no harm, unless they write it back.
        clean = left is None or left.dirty == 0 or (not left.pace and self.caches.dirty(self._names_of(due)) == 0)
        return "" if clean else NOT_CLEAN

    def _names_of(self, requested: t.Iterable[RequestedCell], *, tops: bool = False) -> set[str]:
        return all_names([one.cell for one in requested], self.prepared, self.host.root)[0 if tops else 1]

    def _warm(self, step: RunStep, wanting: t.Sequence[RequestedCell]) -> tuple[dict[str, t.Any] | None, str]:
        """Warm the caches by rounds of the cells: what became of it, and the note about it."""
        if not wanting:
            return None, ""
        names, began, number = self._names_of(wanting), time.monotonic(), 0
        late = any(device is not None and device.kind in _COUNT_LATE for device in map(self.prepared.devices.get, names))
        ratios: dict[str, list[float]] = {}
        steady, ended = False, ""
        before = self.caches.read(names)
        has_hits = warming.counts_hits(before)
        while has_hits and not steady and not ended and number < warming.MOST and not self.waiter.stopping:
            number += 1
            rows = [warming_of(step, number, one, counts_late=late) for one in wanting]
            metas = self.measuring.measure(rows, {}, StartTime(step.number, step.segment), keep=False)
            self._note_written(rows, metas)
            ended = next((f"round {number} was {meta['state']}" for meta in metas.values() if meta["state"] not in ("ok", "not_steady")), "")
            after = self.caches.read(names)
            for name, ratio in warming.hit_ratios(before, after).items():
                ratios.setdefault(name, []).append(ratio)
            before = after
            if not ratios and number >= warming.LEAST:
                ended = "no cache looked anything up"
            steady = bool(ratios) and all(warming.is_steady(values, time.monotonic() - began) for values in ratios.values())
        self.log.write(f"{number} rounds warmed the caches, {'steady' if steady else 'not steady'}: {ratios}")
        found = {"rounds": number, "seconds": round(time.monotonic() - began, 1), "steady": steady if has_hits else None, "hit_ratios": ratios}
        return found, "" if steady else self._why_not_warm(has_hits, ended, ratios, number)

    def _why_not_warm(self, has_hits: bool, ended: str, ratios: t.Mapping[str, t.Sequence[float]], number: int) -> str:
        if not has_hits:
            said, self._said = self._said, True
            return "" if said else "No cache below the target counts hits: nothing was warmed."
        if ended:
            return f"The warm-up ended early: {ended}."
        last = "; ".join(f"{name} {', '.join(f'{ratio:.1f}' for ratio in values[-3:])} %" for name, values in ratios.items())
        return f"The hit ratio of the caches was not steady after {number} rounds: {last} in the last three."

    # -- what

    def _step(self, step: RunStep, due: t.Sequence[RequestedCell], start_time: StartTime, last: bool) -> None:
        hashes = self._hashes(step)
        due = [one for one in due if not self._refused(one, hashes, start_time)]
        if not due:
            return
        self.log.write(f"step {step.number}: {', '.join(str(requested.cell.key) for requested in due)}")
        if step.search is not None:
            self._search(step, due[0], hashes, start_time)
        elif step.rounds is not None:
            self._rounds(step, due, hashes, start_time)
        else:
            self._measure(due, hashes, start_time, last=last)

    def _refused(self, requested: RequestedCell, hashes: t.Mapping[CellKey, str], start_time: StartTime) -> bool:
        """Whether a cell needs empty caches that are not known to be so."""
        if requested.warm != warming.EMPTY:
            return False
        names, found = self._names_of([requested]), self.prepared.facts_of_all(requested.cell)
        size = sum(warming.region_of(part.job, facts.target.size or facts.size) for part, facts in zip(requested.cell.parts, found))
        why = warming.why_not_empty(self.caches.read(names), size)
        if not why and self.caches.dirty(names) is None:
            why = "Whether the caches below the target are empty could not be read."
        if why:
            self.measuring.store_unmeasured(requested, hashes, start_time, Decision("refused", why), self.host.clock())
            self._note(requested.cell.key, "refused", reason=why)
        return bool(why)

    def _measure(self, due: t.Sequence[RequestedCell], hashes: t.Mapping[CellKey, str], start_time: StartTime, *, last: bool = False) -> Metas:
        self.status.update(state="waiting" if start_time.start else "measuring", until=start_time.start)
        metas = self.measuring.measure(due, hashes, start_time, last=last)
        self._note_written(due, metas)
        for key, meta in metas.items():
            self._record_rate(meta)
            self._note(key, meta["state"], reason=meta["reason"])
        return metas

    def _note_written(self, requested: t.Sequence[RequestedCell], metas: Metas) -> None:
        for one in requested:
            for part, written in zip(one.cell.parts, written_to_each(metas.get(one.cell.key, {}))):
                by_block = self.written.setdefault(part.target.path, {})
                by_block[part.job.block_size] = by_block.get(part.job.block_size, 0.0) + (written or 0)

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
    return dataclasses.replace(start_time, start=None, synchronised=False, notes=())


def _is_until_clean(step: RunStep) -> bool:
    return step.pause is not None and step.pause.kind == pauses.CLEAN


def _longest_drain(step: RunStep, due: t.Sequence[RequestedCell]) -> float:
    """Seconds that caches may take before a step to write back; 0 if they are not waited for."""
    if step.pause is not None and _is_until_clean(step):
        return step.pause.most
    return max((one.drain for one in due if one.may_decide), default=0.0)
