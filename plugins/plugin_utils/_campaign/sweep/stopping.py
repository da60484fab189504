# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which variants of a sweep are measured again: those that are not decided. Pure.

The comparison is that of the report, made after each repeat of all variants, with a confidence that is corrected for the number of times
(``statistics/looks.py``). A variant is closed once it is decided in every workload of its class of hosts, and stays so. Everything follows from the
results: whoever makes the decision after a number of repeats, whenever, makes the same one.
"""

from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import answer_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS_OF_VARIANTS, METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.looks import first_decision, levels_of, planned_looks
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import factor

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Result, WorkloadAnswer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.looks import Look
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState

#: Repeats of the measurements of a variant by host.
Side = t.Mapping[str, "list[Measurement]"]

#: What settles a pair; what cannot be compared does not become comparable by repeats.
_SETTLED = ("better", "worse", "same", "not_comparable")

#: How the lead of a variant is reported, by verdict, where it is shown.
_PROOFS = {"better": "shown", "same": "no difference that matters"}

#: Of one variant. More show what needs no sweep, and their exact distribution takes long.
MOST_REPEATS = 50


@dataclass(frozen=True)
class Design:
    """How often the variants of a sweep are repeated.

    :param first: repeats in any case; ``last``: at most.
    :param comparisons: variants beside the baseline.
    """

    first: int
    last: int
    comparisons: int

    @property
    def is_sequential(self) -> bool:
        return self.last > self.first

    @functools.cached_property
    def looks(self) -> tuple[Look, ...]:
        return planned_looks(self.first, self.last, self.comparisons) if self.is_sequential else ()

    @property
    def levels(self) -> dict[int, float] | None:
        """Confidence by repeats; ``None`` for a fixed number, which is compared once."""
        return levels_of(self.looks) or None

    @property
    def fewest(self) -> int:
        """After how many repeats a comparison can be decided, at least."""
        if not self.is_sequential:
            return FEWEST_REPEATS
        return first_decision(self.looks) or next(
            (last for last in range(self.last + 1, MOST_REPEATS) if first_decision(planned_looks(self.first, last, self.comparisons))), MOST_REPEATS
        )

    @property
    def in_any_case(self) -> int:
        """Repeats before which nothing can stop."""
        return min(max(self.first, self.fewest), self.last) if self.is_sequential else self.first


def design_of(states: t.Iterable[HostState]) -> Design | None:
    """That of a campaign: of its hosts the most repeats and variants; ``None`` if it is no sweep."""
    found = list(states)
    if not found:
        return None
    comparisons = max(len(one.variables) for one in found) - 1
    return Design(max(one.repeats for one in found), max(one.most_repeats for one in found), max(comparisons, 1))


@dataclass(frozen=True)
class Closed:
    """A variant that is not measured again. :param after: its repeats."""

    after: int
    reason: str


@dataclass(frozen=True)
class ClassProgress:
    """What is known of a class of hosts.

    :param closed: by variant. :param leading: a sentence for each workload.
    """

    label: str
    hosts: tuple[str, ...]
    closed: t.Mapping[str, Closed]
    open: tuple[str, ...]
    leading: tuple[str, ...]


class _Workload(t.NamedTuple):
    answer: WorkloadAnswer
    sides: t.Mapping[str, Side]


def progress_after(
    rows: Rows, design: Design, repeats: int, *, baseline: str = "", doubtful_after: t.Callable[[int], t.Container[tuple[str, str]]] | None = None
) -> list[ClassProgress]:
    """What the first repeats of a campaign show, class by class. Later repeats, where there are some, are not used.

    :param baseline: the variant with which others are compared; empty: the first that was measured.
    :param doubtful_after: cells and directions whose mean depends on how long was measured, after a number of repeats.
    """
    closed: dict[str, dict[str, Closed]] = {}
    found: list[ClassProgress] = []
    looks = [one.repeats for one in design.looks if one.error and one.repeats <= repeats]
    for count in dict.fromkeys([*looks, repeats]):
        found = []
        for label, hosts, workloads in _classes(rows, design, count, baseline, doubtful_after):
            known = {name: one for name, one in closed.get(hosts[0], {}).items() if all(name in closed.get(host, {}) for host in hosts)}
            variants = tuple(dict.fromkeys(result.variant for one in workloads for result in one.answer.results))
            if count in looks:
                known = {**known, **_newly_closed(workloads, [name for name in variants if name not in known], design, count, known)}
            closed.update(dict.fromkeys(hosts, known))
            leading = tuple(_leading_sentence(one) for one in workloads)
            found.append(ClassProgress(label, hosts, known, tuple(name for name in variants if name not in known), leading))
    return found


def _classes(
    rows: Rows, design: Design, repeats: int, baseline: str, doubtful_after: t.Callable[[int], t.Container[tuple[str, str]]] | None
) -> t.Iterator[tuple[str, tuple[str, ...], list[_Workload]]]:
    until = replace(rows, measurements=[one for one in rows.measurements if one.repeat <= repeats])
    points = points_of(until.measurements)
    answer = answer_of(until, points, baseline=baseline, doubtful=doubtful_after(repeats) if doubtful_after else (), levels=design.levels)
    runs: dict[tuple[str, str], dict[str, dict[str, list[Measurement]]]] = {}
    for one in points:
        runs.setdefault((one.cell, one.direction), {}).setdefault(one.variant, {})[one.host] = one.runs
    classes: dict[tuple[str, ...], list[WorkloadAnswer]] = {}
    for one in answer.workloads:
        classes.setdefault(one.host_class.hosts, []).append(one)
    for hosts, workloads in classes.items():
        members = frozenset(hosts)
        whole = [
            _Workload(
                one,
                {
                    name: {host: here for host, here in of.items() if host in members}
                    for name, of in runs[one.question.cell, one.question.direction].items()
                    if members & of.keys()
                },
            )
            for one in workloads
        ]
        yield workloads[0].host_class.label, hosts, whole


def _newly_closed(workloads: t.Sequence[_Workload], candidates: t.Sequence[str], design: Design, repeats: int, closed: t.Collection[str]) -> dict[str, Closed]:
    """Those of the candidates that no workload needs again, with the reason."""
    needed: set[str] = set()
    slower: dict[str, list[str]] = {}
    for one in workloads:
        undecided, behind = _undecided(one, design, closed)
        needed |= undecided
        for name, leader in behind.items():
            slower.setdefault(name, []).append(leader)
    found = {}
    for name in candidates:
        if name not in needed:
            leaders = list(dict.fromkeys(slower.get(name, [])))
            is_slower = len(slower.get(name, [])) == len(workloads)
            found[name] = Closed(repeats, f"shown to be slower than {' and '.join(leaders)}" if is_slower else "decided")
    return found


def _undecided(workload: _Workload, design: Design, closed: t.Collection[str]) -> tuple[set[str], dict[str, str]]:
    """The variants that a workload needs again, and those that are shown to be slower, with what they are slower than."""
    answer, sides = workload
    metric = METRICS[answer.question.metric]
    leader = leading(answer, closed)
    needed: set[str] = set()
    behind = {}
    for result in answer.results:
        name = result.variant
        if name == leader or name in closed:
            continue
        if not result.is_allowed:
            # It is never recommended, whatever it does beside the leading one; how fast it is compared with the baseline is reported.
            if result.verdict not in _SETTLED:
                needed |= {name, answer.baseline}
            continue
        verdict = pair(metric, sides[name], sides[leader], KEYS_OF_VARIANTS, design.levels).verdict
        if verdict == "better":
            behind[name] = leader
        elif verdict not in ("same", "not_comparable"):
            needed |= {name, leader}
    # The report compares with the baseline, at the same time.
    return (needed | {answer.baseline} if needed else needed), behind


def leading(answer: WorkloadAnswer, closed: t.Collection[str] = ()) -> str:
    """The best of the variants that may be recommended, by what is estimated so far. Of those that are closed only if nothing is open."""
    allowed = [one for one in answer.results if one.is_allowed and one.same_hosts]
    of = [one for one in allowed if one.variant not in closed] or allowed or list(answer.results)
    return max(of, key=lambda one: _gain(answer, one)).variant


def _gain(answer: WorkloadAnswer, result: Result) -> float:
    if result.variant == answer.baseline:
        return 1.0
    ratio = result.ratio or 0.0
    return ratio if METRICS[answer.question.metric].higher_is_better else 1 / ratio if ratio else 0.0


def _leading_sentence(workload: _Workload) -> str:
    answer = workload.answer
    name = leading(answer)
    result = answer.result(name)
    where = answer_text.workload_name(answer)
    if answer.result(answer.baseline) is None:
        return f"{where}: {answer.baseline} was not measured, so nothing is compared with it"
    if result is None or name == answer.baseline:
        return f"{where}: {name} leads"
    proof = _PROOFS.get(result.verdict, "not shown yet")
    shown = factor(_gain(answer, result))
    return f"{where}: {name} leads, {'' if shown == factor(1.0) else f'{shown} times '}as fast as {answer.baseline} ({proof})"
