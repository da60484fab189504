# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the answer must be read with. Pure.

The CPU may have been the limit and not the storage; and variants that were measured one after the other, and not interleaved, differ by a drift of the hosts
too, however small the p-value is.
"""

from __future__ import annotations

import math
import re
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import IOPS, rate_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, listed, share

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: Seconds since 1970 at which the first and the last repeat of a cell began, by host, variant, cell and direction.
_Times = t.Dict[t.Tuple[str, str, str, str], t.Tuple[float, float]]

#: Fewer comparisons need no word about chance, nor does one that is less likely than this.
#: How the runner ends a note on the CPU (``_fio/observation/activity.py``).
CPU_NOTE = "the device may be faster than this."

#: Notes of deciding cells that stand with the answer; all of them are in the report. They are alike if only their numbers differ.
_MOST_NOTES = 5
_NUMBER = re.compile(r"[0-9][0-9.,]*")
#: What says nothing about figures: which parts of a job are not sent.
_OF_THE_JOB_FILE = re.compile(r"\bwas left out: |^Sections were renamed")

_MANY, _LIKELY = 8, 0.1
#: With so many times more than chance would show, it is not chance.
_FEW = 5


@dataclass(frozen=True)
class CpuLine:
    """One variant of one cell, of those hosts on which its CPUs may have been the limit.

    :param of: hosts that measured it.
    :param iops: median over these hosts; ``fio`` and ``busy`` too: percent of one CPU that a thread of fio used, and of all CPUs of the host.
    """

    cell: str
    direction: str
    variant: str
    hosts: tuple[str, ...]
    of: int
    iops: float | None
    fio: float | None
    busy: float | None
    rate: Rate = IOPS


def cpu_lines(points: t.Sequence[Point]) -> list[CpuLine]:
    """Every cell in which a repeat was limited so, the variants of a cell together."""
    groups: dict[tuple[str, str, str], list[Point]] = {}
    for one in points:
        if one.direction != "sync" and not is_probe(one.cell):
            groups.setdefault((one.cell, one.direction, one.variant), []).append(one)
    found = []
    for (cell, direction, variant), here in groups.items():
        bound = [one for one in here if any(run.cpu_bound for run in one.runs)]
        if bound:
            runs = [run for one in bound for run in one.runs]
            fio = median(run.cpu_usr + run.cpu_sys for run in runs if run.cpu_usr is not None and run.cpu_sys is not None)
            hosts = tuple(one.host for one in bound)
            found.append(
                CpuLine(
                    cell, direction, variant, hosts, len(here), median(one.iops for one in bound), fio, median(run.host_busy for run in runs), rate_of(runs[0])
                )
            )
    return sorted(found, key=lambda one: (natural(one.cell), one.direction))


def cpu_sentence(lines: t.Sequence[CpuLine], answer: Answer) -> str:
    """What the answer must be read with; empty where the CPU limited nothing that decides."""
    hosts_of: dict[tuple[str, str], set[str]] = {}
    for one in answer.workloads:
        hosts_of.setdefault((one.question.cell, one.question.direction), set()).update(one.host_class.hosts)
    cells: dict[str, set[str]] = {}
    for line in lines:
        concerned = hosts_of.get((line.cell, line.direction), set()) & set(line.hosts)
        if concerned:
            cells.setdefault(line.variant, set()).add(line.cell)
    if not cells:
        return ""
    where = "; ".join(f"{variant} in {listed(sorted(names), 3)}" for variant, names in cells.items())
    count = counted(len(set().union(*cells.values())), "deciding cell")
    other = ", and the differences may be other than those that were measured" if len(answer.variants) > 1 else ""
    return f"The CPU may have been the limit, not the storage, in {count}: {where}. The storage may be faster there{other}."


def rate_sentence(answer: Answer) -> str:
    """Which deciding cells do not do as much as the storage can; empty where none is limited so."""
    cells: dict[str, set[str]] = {}
    for one in answer.workloads:
        if one.first.rate_limit and one.question.metric in ("iops", "bandwidth"):
            cells.setdefault(one.first.rate_limit, set()).add(one.question.cell)
    if not cells:
        return ""
    where = "; ".join(f"{limit} in {listed(sorted(names), 3)}" for limit, names in cells.items())
    count = counted(len(set().union(*cells.values())), "deciding cell")
    meaning = "As many IOPS there only mean that all variants reached it; what differs is the latency."
    return f"The job limits its own rate in {count}: {where}. {meaning if len(answer.variants) > 1 else 'The storage may be faster there.'}"


def note_sentences(measurements: t.Iterable[Measurement], answer: Answer) -> list[str]:
    """The notes of deciding cells on their figures, each once with its cells: what was not reached, withheld or served by a cache."""
    deciding = {(one.question.cell, one.question.direction) for one in answer.workloads}
    found: dict[str, tuple[str, set[str]]] = {}
    for one in measurements:
        if not one.notes or (one.cell, one.direction) not in deciding:
            continue
        for note in one.notes:
            if not (one.cpu_bound and note.endswith(CPU_NOTE)) and not _OF_THE_JOB_FILE.search(note):
                found.setdefault(_NUMBER.sub("#", note), (note, set()))[1].add(one.cell)
    lines = [f"{listed(sorted(cells), 3)}: {note}" for note, cells in found.values()]
    rest = len(lines) - _MOST_NOTES
    return lines[:_MOST_NOTES] + ([f"{counted(rest, 'more note')} on the figures of deciding cells: see the report."] if rest > 0 else [])


def chance_sentence(answer: Answer) -> str:
    """How likely it is that chance alone shows a variant to be better, where few of many comparisons do; else empty."""
    results = [
        (result.verdict, result.comparison.interval.confidence)
        for one in answer.workloads
        for result in one.results
        if result.same_hosts and result.comparison is not None and result.comparison.interval is not None
    ]
    shown = sum(verdict == "better" for verdict, _confidence in results)
    chances = [(1 - confidence) / 2 for _verdict, confidence in results]
    likely = 1 - math.prod(1 - one for one in chances)
    if len(results) < _MANY or likely < _LIKELY or not 0 < shown <= _FEW * sum(chances):
        return ""
    return (
        f"{shown} of {len(results)} comparisons {'shows' if shown == 1 else 'show'} a better variant. If no variant differed from {answer.baseline}, one would "
        f"still be shown to be better in up to {share(likely)} of such campaigns: measure it again."
    )


def order_sentence(points: t.Sequence[Point], answer: Answer) -> str:
    """What the answer must be read with; empty where each variant that is shown to differ was interleaved with the baseline on some host."""
    times: _Times = {}
    for one in points:
        began = [run.started for run in one.runs if run.started is not None]
        if began:
            times[one.host, one.variant, one.cell, one.direction] = (min(began), max(began))
    found: set[str] = set()
    for workload in answer.workloads:
        question = workload.question
        for result in workload.results:
            if result.verdict not in ("better", "worse") or not result.same_hosts:
                continue
            pairs = [
                (times.get((host, answer.baseline, question.cell, question.direction)), times.get((host, result.variant, question.cell, question.direction)))
                for host in workload.host_class.hosts
            ]
            known = [(base, other) for base, other in pairs if base and other]
            if known and all(base[1] < other[0] or other[1] < base[0] for base, other in known):
                found.add(result.variant)
    if not found:
        return ""
    names = listed([answer.baseline, *(one.name for one in answer.variants if one.name in found)], 4)
    return (
        f"{names} were measured one after the other, not interleaved: whatever else changed on the hosts in between, such as other load, "
        "is part of the difference. The playbook sweep interleaves them."
    )
