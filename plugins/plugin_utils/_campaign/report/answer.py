# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answer: for each class of hosts and each workload that decides, which variant to use, by how much it is better, and how sure that is.

Hosts are compared with themselves (statistics/fleet.py), with every repeat that they have. Nothing is averaged over unlike hosts or unlike
workloads. A variant that can lose what the baseline keeps is never recommended.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text, causes
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import Excluded, Question, questions_of, without_undecided
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import USUAL_FACTS, HostClass, host_classes, labels_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import (
    KEEPS,
    LOSES,
    Safety,
    SafetyOfHosts,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Result, WorkloadAnswer
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS, keys_without
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair, values_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import pooled_noise

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point


@dataclass(frozen=True)
class Variant:
    """One variant over all hosts. :param safety: the worst of its verdicts."""

    name: str
    hosts: int
    safety: Safety

    @property
    def is_safe(self) -> bool:
        """Whether a flushed write survives a power failure."""
        return self.safety.flushed == KEEPS


@dataclass(frozen=True)
class Answer:
    """:param sentences: one for each workload of each class, those that recommend something first.
    :param excluded: what has numbers and does not decide.
    :param incomparable: what could not be compared between variants, one sentence each.
    :param levels: of :func:`pairing.pair`.
    :param keys: what must be equal in two variants that are compared.
    :param classes: the class of each host, where there are several."""

    baseline: str
    variants: tuple[Variant, ...]
    workloads: tuple[WorkloadAnswer, ...]
    sentences: tuple[str, ...]
    excluded: tuple[Excluded, ...]
    incomparable: tuple[str, ...]
    levels: t.Mapping[int, float] | None = None
    keys: tuple[str, ...] = ()
    classes: t.Mapping[str, str] = field(default_factory=dict)

    @property
    def deciding(self) -> tuple[Question, ...]:
        return tuple(dict.fromkeys(one.question for one in self.workloads))


def answer_of(
    rows: Rows,
    points: t.Sequence[Point],
    *,
    baseline: str = "",
    decide_by: t.Sequence[str] = (),
    doubtful: t.Container[tuple[str, str]] = (),
    ignore: t.Sequence[str] = (),
    facts: t.Sequence[str] = USUAL_FACTS,
    levels: t.Mapping[int, float] | None = None,
    repeats: answer_text.Repeats = answer_text.BENCHMARK,
) -> Answer:
    """:param decide_by: patterns of cells; none for the suite's choice.
    :param doubtful: cells and directions whose mean depends on how long was measured.
    :param ignore: what may differ between variants, of ``KEYS_OF_VARIANTS``.
    :param facts: what distinguishes classes of hosts.
    :param levels: of :func:`pairing.pair`. :param repeats: how more of them are measured.
    """
    names = rows.variants
    base = baseline or (names[0] if names else "")
    able, left_out = (points, []) if decide_by else without_undecided(points)
    questions, excluded = questions_of(able, decide_by, doubtful)
    excluded += left_out
    keys = keys_without(ignore)
    runs: dict[tuple[str, str], dict[str, dict[str, list[Measurement]]]] = {}
    for one in able:
        runs.setdefault((one.cell, one.direction), {}).setdefault(one.variant, {})[one.host] = one.runs
    known = SafetyOfHosts(rows)
    observed = causes.Observed(rows)
    failed = _without_result(rows)
    classes = _with_pairs(host_classes(rows, facts), names, points)
    workloads = []
    for host_class in classes:
        hosts = frozenset(host_class.hosts)
        safety = {name: known.of(hosts, name) for name in names}
        for question in questions:
            of_class = {
                name: {host: here for host, here in by_host.items() if host in hosts}
                for name, by_host in runs.get((question.cell, question.direction), {}).items()
            }
            sides = {name: of_class[name] for name in (base, *names) if of_class.get(name)}
            if sides:
                workload = _workload(host_class, question, sides, base, safety, keys, levels)
                workloads.append(_with_failures(observed.explained(workload, sides), failed))
    every = frozenset(rows.hosts)
    hosts_of = {name: len({one.host for one in points if one.variant == name}) for name in names}
    variants = tuple(Variant(name, hosts_of[name], known.of(every, name)) for name in names)
    incomparable = tuple(dict.fromkeys(text for one in workloads for text in answer_text.incomparable(one)))
    if questions:
        sentences = answer_text.sentences(workloads, len(classes), repeats)
    else:
        sentences = (answer_text.NOTHING_NAMED if decide_by else answer_text.no_answer(excluded),)
    return Answer(base, variants, tuple(workloads), sentences, tuple(excluded), incomparable, levels, tuple(keys), labels_of(classes))


def _without_result(rows: Rows) -> dict[tuple[str, str, str], int]:
    """Repeats that were planned and have no result, by host, variant and cell."""
    planned: dict[tuple[str, str, str], set[int]] = {}
    measured: dict[tuple[str, str, str], set[int]] = {}
    for one in rows.measurements:
        (measured if one.measured else planned).setdefault((one.host, one.variant, one.cell), set()).add(one.repeat)
    return {key: len(repeats - measured.get(key, set())) for key, repeats in planned.items()}


def _with_failures(workload: WorkloadAnswer, failed: t.Mapping[tuple[str, str, str], int]) -> WorkloadAnswer:
    """The answer with the measurements that have no result."""
    if not failed:
        return workload
    hosts, cell = workload.host_class.hosts, workload.question.cell
    results = [replace(one, without_result=sum(failed.get((host, one.variant, cell), 0) for host in hosts)) for one in workload.results]
    return replace(workload, results=tuple(results))


def _with_pairs(classes: list[HostClass], names: t.Sequence[str], points: t.Sequence[Point]) -> list[HostClass]:
    """The classes; all hosts as one more where variants were measured on different classes only, and nothing else can compare them."""
    variants_of: dict[str, set[str]] = {}
    for one in points:
        variants_of.setdefault(one.host, set()).add(one.variant)
    if len(classes) < 2 or any(len(set().union(*(variants_of.get(host, set()) for host in one.hosts))) > 1 for one in classes):
        return classes
    every = tuple(host for one in classes for host in one.hosts)
    return [HostClass(" / ".join(one.label for one in classes), every, {})] if len(names) > 1 else classes


def _workload(
    host_class: HostClass,
    question: Question,
    sides: t.Mapping[str, t.Mapping[str, list[Measurement]]],
    base: str,
    safety: t.Mapping[str, Safety],
    keys: t.Sequence[str],
    levels: t.Mapping[int, float] | None,
) -> WorkloadAnswer:
    first = next(iter(next(iter(sides.values())).values()))[0]
    results = [_result(question, name, sides, base, safety, keys, levels) for name in sides]
    better = [one for one in results if one.is_allowed and one.same_hosts and one.verdict == "better"]
    higher = METRICS[question.metric].higher_is_better
    ranked = sorted(better, key=lambda one: (one.ratio or 0.0) if higher else -(one.ratio or 0.0), reverse=True)
    rival = None
    for other in ranked[1:]:
        if pair(METRICS[question.metric], sides[other.variant], sides[ranked[0].variant], keys, levels).verdict != "better":
            rival = other.variant
            break
    return WorkloadAnswer(host_class, question, first, base, tuple(results), ranked[0].variant if ranked else None, rival)


def _result(
    question: Question,
    name: str,
    sides: t.Mapping[str, t.Mapping[str, list[Measurement]]],
    base: str,
    safety: t.Mapping[str, Safety],
    keys: t.Sequence[str],
    levels: t.Mapping[int, float] | None,
) -> Result:
    column = METRICS[question.metric].column
    own = sides[name]
    first = next(iter(own.values()))[0]
    never_flushes = needs_no_flush(question.direction, first)
    return Result(
        variant=name,
        hosts=tuple(own),
        value=median(median(values_of(here, column)) for here in own.values()),
        repeats=min(len(here) for here in own.values()),
        noise=pooled_noise([values_of(here, column) for here in own.values()]),
        pairing=None if name == base else pair(METRICS[question.metric], sides.get(base, {}), own, keys, levels),
        safety=safety[name],
        acknowledged=safety[name].acknowledged(needs_no_flush=never_flushes),
        is_allowed=name == base or base not in safety or is_allowed(safety[name], safety[base], never_flushes),
        extremes=_extremes([value for here in own.values() for value in values_of(here, column)]),
    )


def _extremes(values: t.Sequence[float]) -> tuple[float, float] | None:
    return (min(values), max(values)) if values else None


def _as_safe(candidate: str, baseline: str) -> bool:
    """Whether nothing is lost that the baseline keeps, or may keep."""
    return baseline == LOSES or candidate in (KEEPS, baseline)


def needs_no_flush(direction: str, first: Measurement) -> bool:
    """Whether a workload writes and never flushes."""
    return direction in ("write", "mixed", "trim") and not first.synced


def is_allowed(candidate: Safety, baseline: Safety, never_flushes: bool) -> bool:
    """Whether a variant keeps what the baseline keeps, for a workload that flushes or not."""
    kept, required = (one.acknowledged(needs_no_flush=never_flushes) for one in (candidate, baseline))
    return _as_safe(kept, required) and _as_safe(candidate.device_loss, baseline.device_loss)
