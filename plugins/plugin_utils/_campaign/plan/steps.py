# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host measures, in steps: order, repeats, pauses, barriers, timetable, and what it costs. Pure.

Repeats are interleaved and every second pass runs backwards (A B B A): a drift of the host then falls on all cells alike. A suite that
discards a target keeps its order, and so does one that measures caches as it left them: what comes before and after are measurements of other states.

A step begins with its pause, then waits at its barrier if it has one, then for its offset. The first step has a barrier, and so
has every step after one whose length is not known beforehand, and every step whose own pause is of unknown length: there the
hosts find together again. Between two barriers every step starts at a known number of seconds after the release.
"""

from __future__ import annotations

import fnmatch
import math
import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size, parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import component
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import OPTIONS_OF_FILES
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import check_target, read_job, size_of_file
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import canonical
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import warming
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.probes import Pattern
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.conditions import Rounds
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.estimate import Estimate, estimate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import Suite, SuiteCell, in_rounds, read_suite
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import CampaignTarget, read_targets

#: Seconds that a job without a time limit may take, at least: what the module that measures allows it.
UNLIMITED = 21600
#: Seconds that the controller grants a host beside what the jobs need: at all, and for each cell.
GRACE, GRACE_OF_A_CELL = 300, 30
#: Seconds that a host waits at a barrier for the others, beside what their steps may differ.
BARRIER = 900
#: Bytes per second at which a plain file is surely laid out before it is measured.
_LAYOUT_RATE = 10 * 1024**2
#: How much slower than estimated a device may be before a job without a time limit is given up.
_SLOWER = 10


@dataclass(frozen=True)
class OtherTarget:
    """A target that sections of a cell name.

    :param estimate: what these sections take there.
    """

    name: str
    target: CampaignTarget
    estimate: Estimate


@dataclass(frozen=True)
class Run:
    """One cell of a suite on one target, in one repeat."""

    name: str
    repeat: int
    cell: SuiteCell
    target: CampaignTarget
    job: t.Mapping[str, t.Any]
    estimate: Estimate
    others: tuple[OtherTarget, ...] = ()

    @property
    def targets(self) -> list[CampaignTarget]:
        """All that it measures at once, its own first."""
        return [self.target, *(one.target for one in self.others)]

    def cost_on(self, path: str) -> Estimate | None:
        """What its target of this path bears, all its probes or rounds together; ``None`` if it has none."""
        costs = [one.estimate for one in self.others if one.target.path == path]
        if self.target.path == path:
            elsewhere = [one.estimate.written for one in self.others]
            costs += [replace(self.estimate, written=_difference(self.estimate.written, elsewhere))]
        return None if not costs else self._all(costs[0])

    @property
    def runs(self) -> int:
        """How often its job runs, at most."""
        if self.cell.search:
            return self.cell.search.most_probes
        return self.cell.rounds.most if self.cell.rounds else 1

    @property
    def whole(self) -> Estimate:
        """What all its probes or rounds take together, and what the rounds write that warm its caches."""
        return self._all(self.estimate)

    def _all(self, one: Estimate) -> Estimate:
        if self.cell.warm == warming.STEADY:
            # A round is no longer than the cell, or than its own limit.
            share = warming.ROUND / max(one.longest or one.seconds or warming.ROUND, warming.ROUND)
            written = None if one.written is None else round(one.written * (1 + warming.MOST * share))
            return replace(one, written=written, exact=one.exact and not written)
        return one if self.runs == 1 else one.times(self.runs)

    def as_step(self) -> dict[str, t.Any]:
        return {
            "name": self.name,
            "repeat": self.repeat,
            "target": dict(self.target.given),
            **({"targets": {one.name: dict(one.target.given) for one in self.others}} if self.others else {}),
            "job": dict(self.job),
            "done_as": None,
            "measures_garbage_collection": self.cell.measures_garbage_collection,
            **({} if self.cell.decides is None else {"decides": list(self.cell.decides)}),
            **({} if self.cell.warm == warming.NONE else {"warm": self.cell.warm}),
            **({} if self.cell.drain is None else {"drain": self.cell.drain}),
            **({} if self.estimate.seconds is None or self.estimate.seconds == self.estimate.longest else {"expected": round(self.estimate.seconds, 1)}),
        }


@dataclass(frozen=True)
class PlanStep:
    """What starts together, and what is waited for before. Times in seconds; see the head of this file."""

    number: int
    runs: tuple[Run, ...]
    pause: dict[str, t.Any] | None
    barrier: bool
    offset: float | None

    @property
    def kind(self) -> str:
        cell = self.runs[0].cell
        return "search" if cell.search else "rounds" if cell.rounds else "cells"

    @property
    def known(self) -> bool:
        """Whether every host is done with it after the same time."""
        return self.kind == "cells" and all(run.estimate.known for run in self.runs)

    @property
    def seconds(self) -> float | None:
        """The time it is expected to take, gaps between probes or rounds left out."""
        times = [run.whole.seconds for run in self.runs]
        known = [one for one in times if one is not None]
        return None if len(known) < len(times) else sum(known) if self.kind == "rounds" else max(known)

    @property
    def warms(self) -> bool:
        """Whether the caches are warmed before it."""
        return any(run.cell.warm == warming.STEADY for run in self.runs)

    @property
    def longest_pause(self) -> float:
        """Seconds, with warming rounds."""
        return (0.0 if self.pause is None else float(self.pause.get("seconds", self.pause.get("most", 0)))) + self.warms * warming.LONGEST

    @property
    def open_pause(self) -> float:
        """Those not known before."""
        return self.longest_pause - (float(self.pause.get("seconds", 0.0)) if self.pause else 0.0)

    @property
    def longest_drain(self) -> float:
        """Seconds for dirty caches; a pause until they are clean is that already."""
        return 0.0 if self.pause and "until" in self.pause else max((run.cell.longest_drain for run in self.runs), default=0.0)

    def to_dict(self) -> dict[str, t.Any]:
        """As the runner on the host reads it."""
        common = {"number": self.number, "kind": self.kind, "barrier": self.barrier, "offset": self.offset, "pause": self.pause}
        cell = self.runs[0].cell
        if cell.search:
            return {**common, "cell": self.runs[0].as_step(), "search": cell.search.as_step(), "done": {}}
        if cell.rounds and cell.rounds.decided_by:
            decides = next(run for run in self.runs if run.cell.name == cell.rounds.decided_by)
            rounds = t.cast(Rounds, decides.cell.rounds).as_step(decides.name)
            return {**common, "cells": [run.as_step() for run in self.runs], "rounds": rounds, "done": {}}
        if cell.rounds:
            return {**common, "cell": self.runs[0].as_step(), "rounds": cell.rounds.as_step(), "done": {}}
        return {**common, "cells": [run.as_step() for run in self.runs]}


@dataclass(frozen=True)
class Plan:
    """What one host measures.

    :param gap: seconds between two cells of the timetable.
    """

    suite: Suite
    targets: tuple[CampaignTarget, ...]
    steps: tuple[PlanStep, ...] = ()
    gap: float = 0.0

    @property
    def purge(self) -> list[t.Mapping[str, t.Any]]:
        """The drives that are purged before anything is measured, as the module ``purge`` reads them."""
        return [target.purge for target in self.targets if target.purge is not None] if self.suite.purge and self.steps else []

    @property
    def runs(self) -> list[Run]:
        return [run for step in self.steps for run in step.runs]

    @property
    def segments(self) -> int:
        return sum(step.barrier for step in self.steps)

    @property
    def patterns(self) -> list[Pattern]:
        """Of the cells whose names are not known yet."""
        found: dict[str, Pattern] = {}
        for run in self.runs:
            repeats = (*found[run.name].repeats, run.repeat) if run.name in found else (run.repeat,)
            if run.cell.search:
                found[run.name] = Pattern(run.name, repeats, run.cell.search.over, run.cell.search.first, run.cell.search.last)
            elif run.cell.rounds:
                found[run.name] = Pattern(run.name, repeats, "", 1, run.cell.rounds.most)
        return list(found.values())

    def expected(self, name: str) -> bool:
        """Whether a cell of this name may come out of it."""
        return any(run.name == name for run in self.runs) or any(pattern.matches(name) for pattern in self.patterns)

    @property
    def seconds(self) -> int:
        """What it is expected to take: jobs with their ramps, pauses of fixed length, gaps. Steps of which nothing is known count nothing."""
        fixed = sum(float(step.pause["seconds"]) for step in self.steps if step.pause and "seconds" in step.pause)
        return round(sum(step.seconds or 0.0 for step in self.steps) + fixed + self.gap * max(0, len(self.steps) - 1))

    @property
    def open_pauses(self) -> int:
        """Seconds that pauses of unknown length may take together, at most."""
        return round(sum(step.open_pause for step in self.steps))

    @property
    def timeout(self) -> int:
        """Seconds after which a job that nothing limits is given up."""
        free = [run.estimate.seconds for run in self.runs if run.estimate.longest is None]
        return round(max([UNLIMITED, *(_SLOWER * seconds for seconds in free if seconds is not None)]))

    @property
    def limit(self) -> int:
        """Seconds after which a host is surely lost, and not merely slow."""
        if not self.steps:
            return 0
        files = {target.path: target.region or 0 for run in self.runs for target in run.targets if target.is_file}
        timeout = self.timeout
        return round(GRACE + sum(self._longest(step, timeout) for step in self.steps) + sum(files.values()) / _LAYOUT_RATE)

    @property
    def barrier_timeout(self) -> int:
        """Seconds that a host should wait for the others at a barrier: they may be as much slower as a segment is uncertain."""
        apart, worst, timeout = 0.0, 0.0, self.timeout
        for step in self.steps:
            if step.barrier:
                # One host may have a dirty cache, and another none. Later in a segment, its cells are late instead.
                worst, apart = max(worst, apart + step.open_pause + step.longest_drain), 0.0
            apart += 0.0 if step.known else self._longest(step, timeout)
        return round(BARRIER + worst)

    def _longest(self, step: PlanStep, timeout: float) -> float:
        times = [run.runs * (GRACE_OF_A_CELL + (timeout if run.estimate.longest is None else 1.5 * run.estimate.longest)) for run in step.runs]
        return step.longest_pause + step.longest_drain + self.gap + (sum(times) if step.kind == "rounds" else max(times))


def make_plan(
    suite_name: str,
    suites: t.Mapping[str, t.Any],
    targets: t.Sequence[t.Mapping[str, t.Any]],
    *,
    runtime: int = 0,
    repeats: int = 0,
    synchronise: bool = True,
    gap: float = 2.0,
    only: t.Sequence[str] = (),
    group: str = "",
    repeat: int = 0,
    refill: bool = False,
    file: str = "",
    cache_size: str = "",
) -> Plan:
    """Every measurement of one host: the cells of a suite on each target, each as often as it should be repeated.

    :param runtime: seconds for every cell instead of the suite's; 0 keeps the suite's. A fill takes the time it takes.
    :param repeats: repeats of every cell instead of the suite's; 0 keeps the suite's. A fill runs once, unless ``refill`` is set.
    :param synchronise: whether hosts wait for one another.
    :param gap: seconds between two cells of the timetable.
    :param only: patterns of the names of cells, the others are left out; ``cell@target`` for a cell on one of several targets.
    :param repeat: the only repeat that is measured, for one pass of several; 0 measures all.
    :param refill: run the fills of the suite in every repeat: the cache of the targets was made or changed since.
    :param file: a file to measure with default options, instead of ``targets``.
    :param cache_size: of the cache of the host, for suites whose sizes are multiples of it.
    :param group: the array that the host shares with others. A host that shares none does not wait for others where the suite lets hosts be apart.
    :raises BadInput: if the suite, a target or a number is not usable.
    """
    suite = read_suite(suite_name, suites, only, parse_size(cache_size, item=suite_name, option="fio_benchmark_cache_size") if cache_size else None)
    if runtime < 0 or repeats < 0 or not 0 <= gap < math.inf:
        raise BadInput("fio_benchmark_runtime, fio_benchmark_repeats and fio_benchmark_timing.gap are numbers from 0 on; 0 keeps the value of the suite.")
    if not 0 <= repeat <= 9999:
        raise BadInput("fio_benchmark_only_repeat must be between 0 and 9999; 0 measures all repeats.")
    if repeats > 9999:
        raise BadInput("fio_benchmark_repeats is at most 9999.")
    places = read_targets(targets, suite, file)
    chosen = ([one for one in group if _is_chosen(*one, only)] for group in _groups(suite, places))
    groups = [[_run(cell, target, runtime, places) for cell, target in group] for group in chosen if group]
    timetable = _Timetable(synchronise and not (suite.apart and not group), gap)
    # What is measured as the cells before it left its caches is measured after them.
    keeps_order = any(cell.discards or cell.drain == 0 for cell in suite.cells)
    # A suite that only fills has nothing for which it would be repeated.
    counts = [_count(group[0].cell, repeats) for group in groups]
    last = max(counts, default=0)
    for number in range(1, last + 1):
        due = [
            group for group, count in zip(groups, counts, strict=True) if number <= (last if refill and group[0].cell.fill else count) and repeat in (0, number)
        ]
        for group in due if number % 2 or keeps_order else _backwards(due):
            timetable.add([_repeated(run, number) for run in group])
    return Plan(suite, tuple(places), tuple(timetable.steps), gap)


def _groups(suite: Suite, targets: t.Sequence[CampaignTarget]) -> t.Iterator[list[tuple[SuiteCell, CampaignTarget]]]:
    """The cells of each step. Searches and rounds are led by their results, so each has its target for itself."""
    if suite.together and targets:
        for cells in in_rounds(suite.cells):
            if cells[0].search or cells[0].rounds:
                yield from ([(cell, target) for cell in cells] for target in _own_targets_of_all(cells, targets))
            else:
                yield [(cells[0], target) for target in _own_targets(cells[0], targets)]
    else:
        groups = [(cells, _own_targets_of_all(cells, targets)) for cells in in_rounds(suite.cells)]
        yield from ([(cell, target) for cell in cells] for target in targets for cells, own in groups if target in own)


def _is_chosen(cell: SuiteCell, target: CampaignTarget, only: t.Sequence[str]) -> bool:
    parts = [str(pattern).partition("@") for pattern in only]
    return not parts or any(fnmatch.fnmatchcase(cell.name, name) and (not at or fnmatch.fnmatchcase(target.label, label)) for name, at, label in parts)


def _own_targets_of_all(cells: t.Sequence[SuiteCell], targets: t.Sequence[CampaignTarget]) -> list[CampaignTarget]:
    """Where cells of the same rounds are measured.

    :raises BadInput: if that is not the same for all of them.
    """
    own = _own_targets(cells[0], targets)
    for cell in cells[1:]:
        if _own_targets(cell, targets) != own:
            raise BadInput(f"{cell.name}: its sections name other targets than those of {cells[0].name}, with which it is measured in the same rounds.")
    return own


def _own_targets(cell: SuiteCell, targets: t.Sequence[CampaignTarget]) -> list[CampaignTarget]:
    """Where a cell is measured: on every target that none of its sections names, or once, where each of them names one.

    :raises BadInput: if a section names a target that the host does not have, or none is left for the others.
    """
    if "jobs" not in cell.job or not targets:
        return list(targets)
    sections = cell.checked_job().sections
    named = {section.target: section.name for section in sections if section.target is not None}
    labels = [target.label for target in targets]
    for name, section in named.items():
        if name not in labels:
            raise BadInput(
                f"{cell.name}: its section {section} runs on the target '{name}', and no target of this host is named so (fio_benchmark_targets: "
                f"{', '.join(label or 'one without a name' for label in labels)}): give the target that 'name', or leave the cell out with fio_benchmark_only."
            )
    if all(section.target is not None for section in sections):
        return [target for target in targets if target.label == sections[0].target]
    own = [target for target in targets if target.label not in named]
    if not own:
        rest = next(section.name for section in sections if section.target is None)
        raise BadInput(f"{cell.name}: its sections name all targets of this host, so none is left for its section {rest}: give it a 'target' too.")
    return own


def _backwards(groups: t.Sequence[list[Run]]) -> t.Iterator[list[Run]]:
    """In reverse order, with each fill still before the cells that follow it."""
    parts: list[tuple[list[list[Run]], list[list[Run]]]] = []
    for group in groups:
        is_fill = group[0].cell.fill
        if not parts or (is_fill and parts[-1][1]):
            parts.append(([], []))
        parts[-1][0 if is_fill else 1].append(group)
    for fills, cells in reversed(parts):
        yield from (*fills, *reversed(cells))


def _count(cell: SuiteCell, repeats: int) -> int:
    return 1 if cell.fill else repeats or cell.repeats


def _run(cell: SuiteCell, target: CampaignTarget, runtime: int, places: t.Sequence[CampaignTarget]) -> Run:
    # '@' is not allowed in the names of folders that hosts can choose, so the target follows a dot.
    name = component(f"{cell.name}.{target.label}" if target.label else cell.name, "cell")
    if cell.search or cell.rounds:
        component(f"{name}.{cell.search.over if cell.search else 'round'}-{cell.search.last if cell.search else 99}", "cell")
    given = _on_own_target(_with_files_of_folders(cell, target, places), target.label)
    job = given if cell.fill or cell.discards else with_runtime(given, runtime)
    checked = read_job(job, name)
    target = target.of_size(size_of_file(checked.on(None))).share(cell.share, name)
    others = [(one, next(place for place in places if place.label == one)) for one in checked.target_names]
    others = [(one, place.of_size(size_of_file(checked.on(one)))) for one, place in others]
    if others and cell.share != 100:
        raise BadInput(f"{name}: 'share' is not supported for a cell whose sections run on several targets: give each target a 'size'.")
    for one in (target, *(place for _label, place in others)):
        if cell.discards and one.is_file:
            raise BadInput(
                f"{name}: it discards its target, and {one.path} is a file: give the target a 'device', or leave the cell out with fio_benchmark_only."
            )
    cost = estimate(checked, target, name, dict(others))
    if cell.share != 100 and "size" not in target.given:
        job = _with(job, {"size": f"{cell.share}%"})
    size = parse_size(target.given["size"], item=name) if "size" in target.given else None
    check_target(read_job(job, name).on(None), target.kind, size, name)
    elsewhere = [OtherTarget(one, place, estimate(checked.on(one), place, name)) for one, place in others]
    for one in elsewhere:
        size = parse_size(one.target.given["size"], item=name) if "size" in one.target.given else None
        check_target(checked.on(one.name), one.target.kind, size, name)
    for label, place in ((None, target), *others) if cell.share == 100 else ():
        _require_capacity(checked.on(label), place, name)
    return Run(name, 1, cell, target, job, cost, tuple(elsewhere))


def _require_capacity(job: Job, target: CampaignTarget, name: str) -> None:
    """:raises BadInput: if a device of which the user gives the capacity, and no size to use, is smaller than what the job sets."""
    if target.is_file or "size" in target.given or target.region is None:
        return
    for section in job.sections:
        values = [section.value(option) or "0" for option in ("offset", "size")]
        end = 0 if any(value.endswith("%") for value in values) else sum(map(parse_size, values))
        if section.has_size and end > target.region:
            raise BadInput(
                f"{name}: its job ends at byte {end} ({format_size(end)}), but the target {target.path} has a capacity of {target.region} bytes "
                f"({format_size(target.region)}): give the job a smaller size, or leave the cell out with fio_benchmark_only.",
                item=name,
                option="size",
            )


def _with_files_of_folders(cell: SuiteCell, target: CampaignTarget, places: t.Sequence[CampaignTarget]) -> t.Mapping[str, t.Any]:
    """The job of a job file, in which several files only mean something for sections that run in a directory; what is left out, as a note."""
    if not cell.from_file:
        return cell.job
    kinds = {place.label: place.kind for place in places}
    rows = [(row, kinds[row["target"]] if "target" in row else target.kind) for row in cell.job["jobs"]]
    common = cell.job.get("global") or {}
    if any(kind == "directory" for _row, kind in rows):
        # Where some of them run elsewhere, each has its own.
        shared = {key: value for key, value in common.items() if canonical(key) in OPTIONS_OF_FILES}
        rows = [({**(shared if kind == "directory" else {}), **row}, kind) for row, kind in rows]
    taken = sorted({key for part in (common, *(row for row, kind in rows if kind != "directory")) for key in part if canonical(key) in OPTIONS_OF_FILES})
    if not taken:
        return cell.job
    kept = [row if kind == "directory" else {key: value for key, value in row.items() if canonical(key) not in OPTIONS_OF_FILES} for row, kind in rows]
    job = {**cell.job, "global": {key: value for key, value in common.items() if canonical(key) not in OPTIONS_OF_FILES}, "jobs": kept}
    if all(kind == "directory" for _row, kind in rows):
        return job
    return {**job, "notes": [*job.get("notes", ()), f"{', '.join(taken)} of the job file was left out: a target that is no directory is one file for fio."]}


def _on_own_target(job: t.Mapping[str, t.Any], label: str) -> dict[str, t.Any]:
    """The job with sections that do not name the target on which the cell is measured anyway."""
    if not label or "jobs" not in job:
        return dict(job)
    rows = [{key: value for key, value in row.items() if key != "target" or str(value) != label} for row in job["jobs"]]
    return {**job, "jobs": rows}


def _difference(whole: int | None, parts: t.Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return None if whole is None or len(known) < len(parts) else max(0, whole - sum(known))


def _repeated(run: Run, number: int) -> Run:
    return replace(run, repeat=number)


def with_runtime(job: t.Mapping[str, t.Any], runtime: int) -> dict[str, t.Any]:
    """The job, with another runtime if one is requested."""
    # Without time_based a short job ends when its size is done, regardless of its runtime.
    return _with(job, {"runtime": runtime, "time_based": 1}) if runtime else dict(job)


def _with(job: t.Mapping[str, t.Any], options: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    if "jobs" in job:
        return {**job, "jobs": [{**section, **options} for section in job["jobs"]]}
    return {**job, **options}


@dataclass
class _Timetable:
    """Steps as they are added, with the clock of their segment."""

    synchronise: bool
    gap: float
    steps: list[PlanStep] = field(default_factory=list)
    clock: float = 0.0
    #: Whether something was written that no pause has waited for yet, and whether a cell has shown the rate to wait by.
    written: bool = False
    rate_known: bool = False

    def add(self, runs: list[Run]) -> None:
        last = self.steps[-1] if self.steps else None
        pause = self._pause(runs[0].cell)
        fixed = float(pause["seconds"]) if pause and "seconds" in pause else 0.0
        waits = any(run.cell.warm == warming.STEADY for run in runs) or (pause is not None and "seconds" not in pause)
        barrier = self.synchronise and (last is None or not last.known or waits)
        self.clock = 0.0 if barrier else self.clock + fixed
        offset = round(self.clock, 3) if self.synchronise else None
        step = PlanStep(len(self.steps), tuple(runs), pause, barrier, offset)
        self.steps.append(step)
        self.clock += (step.seconds or 0.0) + self.gap
        self.written = self.written or any(run.estimate.written != 0 for run in runs)
        self.rate_known = self.rate_known or runs[0].cell.measures_garbage_collection

    def _pause(self, cell: SuiteCell) -> dict[str, t.Any] | None:
        pause = cell.pause
        if pause is None or (not self.steps and not pause.until_clean):
            # Nothing was done yet that one would have to recover from, but caches may hold what was written before.
            return None
        if pause.garbage_collection is not None:
            if not self.written or (pause.measured and not self.rate_known):
                return None
            self.written = False
        return pause.as_step()


def jobs_of(steps: t.Iterable[t.Mapping[str, t.Any]]) -> dict[str, t.Mapping[str, t.Any]]:
    """The job of each cell in the steps of a plan, by name."""
    return {row["name"]: row["job"] for step in steps for row in _rows(step)}


def _rows(step: t.Mapping[str, t.Any]) -> list[t.Mapping[str, t.Any]]:
    return step["cells"] if "cells" in step else [step["cell"]]


def mark_done(steps: t.Sequence[t.Mapping[str, t.Any]], stored: t.Mapping[tuple[str, int], str]) -> list[dict[str, t.Any]]:
    """The steps, with what the results folder has already.

    :param stored: the ``measurement_sha256`` of each ``ok`` result, by name and repeat; probes and rounds among them.
    """
    return [_marked(step, stored) for step in steps]


def _marked(step: t.Mapping[str, t.Any], stored: t.Mapping[tuple[str, int], str]) -> dict[str, t.Any]:
    rows = _rows(step)
    marked = [{**row, "done_as": stored.get((row["name"], row["repeat"]))} for row in rows]
    known = {**step, "cells": marked} if "cells" in step else {**step, "cell": marked[0]}
    search, rounds = step.get("search"), step.get("rounds")
    if not search and not rounds:
        return known
    limits = (search["over"], search["first"], search["last"]) if search else ("", 1, rounds["most"])
    patterns = [(Pattern(row["name"], (row["repeat"],), *limits), row["repeat"]) for row in rows]
    return {**known, "done": {name: sha for (name, repeat), sha in stored.items() if any(repeat == own and one.matches(name) for one, own in patterns)}}
