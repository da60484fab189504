# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What cells show beside the answer: a limit that targets or hosts share, an attachment, free space, asynchronous I/O. Pure.

The rules are :data:`RULES`. Each finds pairs of cells that differ in one thing; what they show is decided as everywhere (``results/pairing.py``), and what
is not shown is said to be not known.
"""

from __future__ import annotations

import bisect
import collections
import itertools
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer_text import noun
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import without_undecided
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import rate_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import Pairing, pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.stacks import UNKNOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import confidence, counted, factor, listed, share, size, span

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

    #: What is compared with itself (host and target, or a drive), and its repeats.
    Side = t.Dict[str, t.List[Measurement]]

#: Sentences of one rule, and hosts up to which hosts at once are searched.
_MOST, _HOSTS = 3, 20

#: Share of a measurement in which others run for it to be at once with them; below the second it was alone.
_AT_ONCE, _ALONE = 0.9, 0.05

#: Seconds from which a write is sustained, and shares of a target that leave it room.
_SUSTAINED, _PARTS = 1800.0, (0.5, 0.95)

#: Sizes of the targets of one drive in two attachments: a controller keeps some of it.
_SAME_SIZE = 1.05

#: Drives on a side from which different drives are compared.
_FEWEST_DRIVES = 4

_SYNCHRONOUS, _ASYNCHRONOUS = {"sync", "psync", "vsync", "pvsync", "pvsync2"}, {"libaio", "io_uring", "posixaio"}

_JOB = ("variant", "direction", "rw", "bs", "rwmixread", "fdatasync", "fsync", "direct", "rate_limit", "model", "attachment")


def _first_of(side: Side) -> Measurement:
    return next(iter(side.values()))[0]


class Contrast(t.NamedTuple):
    """Two sides that differ in one thing.

    :param names: what each side is called. :param ignored: of the comparison key, what they differ in. :param texts: more for the sentence.
    :param count: targets or hosts at once. :param is_paired: whether a side is compared with itself; otherwise each of its keys is one value.
    """

    names: tuple[str, str]
    old: Side
    new: Side
    ignored: t.Collection[str] = ()
    texts: t.Mapping[str, t.Any] = {}
    count: int = 1
    is_paired: bool = True

    @property
    def first(self) -> Measurement:
        return _first_of(self.old)


class Rule(t.NamedTuple):
    """:param head: before the figures.
    :param differs: what a difference shows, :param lower: what only a lower rate shows, :param same: what none shows; empty: not said.
    :param source: where its fact is from."""

    name: str
    head: str
    differs: str
    lower: str
    same: str
    source: str
    finds: t.Callable[[t.Sequence[Measurement]], t.Iterable[Contrast]]


# ---------------------------------------------------------------------------------------------------------------------
# At once and alone


def _targets_at_once(runs: t.Sequence[Measurement]) -> t.Iterator[Contrast]:
    """Of each host, one target alone and several of them at once."""
    by_host: dict[str, list[Measurement]] = {}
    for one in runs:
        by_host.setdefault(one.host, []).append(one)
    yield from _at_once([(here, {}) for here in by_host.values()], "target", lambda one: one.target)


def _hosts_at_once(runs: t.Sequence[Measurement]) -> t.Iterator[Contrast]:
    """One host alone and several of them at once; with several targets at a time it is not known which of both is the limit."""
    hosts = {one.host for one in runs}
    if 1 < len(hosts) <= _HOSTS:
        own = {}
        for host in hosts:
            own.update(_beside([one for one in runs if one.host == host], lambda one: one.target))
        yield from _at_once([(runs, own)], "host", lambda one: one.host)


def _at_once(
    groups: t.Iterable[tuple[t.Sequence[Measurement], t.Mapping[int, int]]], word: str, member: t.Callable[[Measurement], t.Any]
) -> t.Iterator[Contrast]:
    found: dict[tuple[t.Any, ...], dict[int, Side]] = {}
    for runs, others in groups:
        beside = _beside(runs, member)
        for one in runs:
            count = beside.get(id(one))
            if count is not None and one.workload_sha256 and others.get(id(one), 0) == 0:
                key = one.variant, one.workload_sha256, one.direction, one.model, one.attachment, one.target_size
                found.setdefault(key, {}).setdefault(count + 1, {}).setdefault(f"{one.host} {one.target}", []).append(one)
    for sides in found.values():
        most = max(sides)
        if most > 1 and 1 in sides and sides[1].keys() & sides[most].keys():
            yield Contrast((f"one {word} alone", f"each of {counted(most, word)} at once"), sides[1], sides[most], texts={"word": word}, count=most)


def _beside(runs: t.Sequence[Measurement], member: t.Callable[[Measurement], t.Any]) -> dict[int, int]:
    """Of each measurement how many others ran at once with it; not of those that others ran beside for a part only, or at an unknown time."""
    spans = sorted(
        ((_start(one), _start(one) + (one.io_end or 0.0) - (one.io_start or 0.0), one) for one in runs if one.io_start and one.io_end), key=lambda x: x[:2]
    )
    longest = max((end - start for start, end, _one in spans), default=0.0)
    starts = [start for start, _end, _one in spans]
    found = {}
    for start, end, one in spans:
        parts: dict[t.Any, float] = {}
        # What began so long before has ended.
        first = bisect.bisect_left(starts, start - longest)
        nearby = spans[first : bisect.bisect_left(starts, end)]
        for begin, finish, other in nearby:
            if member(other) != member(one):
                part = (min(end, finish) - max(start, begin)) / (end - start or 1.0)
                parts[member(other)] = max(parts.get(member(other), 0.0), part)
        together = sum(part >= _AT_ONCE for part in parts.values())
        if all(part >= _AT_ONCE or part <= _ALONE for part in parts.values()):
            found[id(one)] = together
    return found


def _start(one: Measurement) -> float:
    """By the clock of the controller."""
    return (one.io_start or 0.0) - (one.clock_offset or 0.0)


# ---------------------------------------------------------------------------------------------------------------------
# Attachments


def _attachments(runs: t.Sequence[Measurement]) -> t.Iterator[Contrast]:
    """One drive in two attachments, in one variant or, if each attachment has one, in two; otherwise drives of one model."""
    groups: dict[tuple[t.Any, ...], dict[str, list[Measurement]]] = {}
    for one in runs:
        if one.drive and one.attachment and UNKNOWN not in one.attachment:
            groups.setdefault((one.cell.partition(".")[0], one.direction), {}).setdefault(one.attachment, []).append(one)
    for here in groups.values():
        for names in itertools.combinations(sorted(here), 2):
            sides = [here[name] for name in names]
            yield from _moved(names, sides) or _different_drives(names, sides)


def _moved(names: tuple[str, str], sides: t.Sequence[t.Sequence[Measurement]]) -> list[Contrast]:
    variants = [{one.variant for one in side} for side in sides]
    pairs = [(name, name) for name in sorted(variants[0] & variants[1])]
    if not pairs and all(len(one) == 1 for one in variants):
        pairs = [(min(variants[0]), min(variants[1]))]
    found = []
    for pair_of in pairs:
        old, new = (_by([one for one in side if one.variant == variant], "drive") for side, variant in zip(sides, pair_of))
        both = [drive for drive in old if drive in new and _are_of_a_size(old[drive][0], new[drive][0])]
        if both:
            of = f" with {'the same drive' if len(both) == 1 else f'the same {len(both)} drives'} ({listed(both, 3)})"
            where = "" if pair_of[0] == pair_of[1] else f", of which {names[0]} is variant {pair_of[0]} and {names[1]} {pair_of[1]}"
            sides_of = ({drive: side[drive] for drive in both} for side in (old, new))
            found.append(Contrast(names, *sides_of, ignored=("target_size",), texts={"drives": of + where}))
    return found


def _different_drives(names: tuple[str, str], sides: t.Sequence[t.Sequence[Measurement]]) -> t.Iterator[Contrast]:
    for variant, model in sorted({(one.variant, one.model or "") for one in sides[0]} & {(one.variant, one.model or "") for one in sides[1]}):
        old, new = (_by([one for one in side if (one.variant, one.model or "") == (variant, model)], "drive") for side in sides)
        if _are_of_a_size(_first_of(old), _first_of(new)):
            of = f" with different drives ({len(old)} and {len(new)} {model})"
            yield Contrast(names, old, new, ("target_size",), {"drives": of}, is_paired=False)


def _by(runs: t.Iterable[Measurement], name: str) -> Side:
    found: Side = {}
    for one in runs:
        found.setdefault(getattr(one, name), []).append(one)
    return found


def _are_of_a_size(*of: Measurement) -> bool:
    sizes = [one.target_size for one in of if one.target_size]
    return len(sizes) == len(of) and max(sizes) <= _SAME_SIZE * min(sizes)


# ---------------------------------------------------------------------------------------------------------------------
# Free space, and engines


def _free_space(runs: t.Sequence[Measurement]) -> t.Iterator[Contrast]:
    """Sustained random writes to a part of a target, and to all of it."""
    jobs: dict[tuple[t.Any, ...], dict[int, Side]] = {}
    whole: dict[tuple[str, str], int] = {}
    for one in runs:
        if one.target and one.target_size:
            whole[one.host, one.target] = max(whole.get((one.host, one.target), 0), one.target_size)
            if one.direction == "write" and one.rw == "randwrite" and (one.runtime_ms or 0) >= 1000 * _SUSTAINED:
                jobs.setdefault((*_job(one), one.ioengine, one.iodepth, one.numjobs), {}).setdefault(one.target_size, {})
                jobs[(*_job(one), one.ioengine, one.iodepth, one.numjobs)][one.target_size].setdefault(f"{one.host} {one.target}", []).append(one)
    for sizes in jobs.values():
        by_share: dict[float, Side] = {}
        for used, side in sizes.items():
            for name, here in side.items():
                by_share.setdefault(round(used / whole[here[0].host, here[0].target or ""], 2), {})[name] = here
        for part in sorted(by_share):
            if _PARTS[0] <= part <= _PARTS[1] and 1.0 in by_share and by_share[part].keys() & by_share[1.0].keys():
                names = f"100 % of the target ({size(max(one[0].target_size or 0 for one in by_share[1.0].values()))})", share(part)
                yield Contrast(names, by_share[1.0], by_share[part], ("target_size", "workload_sha256"))


def _asynchronous(runs: t.Sequence[Measurement]) -> t.Iterator[Contrast]:
    """With as many I/Os in flight: jobs of a synchronous engine, and fewest jobs of an asynchronous one."""
    loads: dict[tuple[t.Any, ...], dict[int, dict[bool, dict[int, Side]]]] = {}
    for one in runs:
        jobs = one.numjobs or 1
        if one.ioengine in _SYNCHRONOUS or (one.ioengine in _ASYNCHRONOUS and (one.iodepth or 1) > 1):
            is_sync = one.ioengine in _SYNCHRONOUS
            by_jobs = loads.setdefault(_job(one), {}).setdefault(jobs if is_sync else jobs * (one.iodepth or 1), {}).setdefault(is_sync, {})
            by_jobs.setdefault(jobs, {}).setdefault(f"{one.host} {one.target} {one.target_size}", []).append(one)
    ignored = ("ioengine", "iodepth", "numjobs", "workload_sha256")
    for by_load in loads.values():
        for load in sorted(by_load, reverse=True):
            sides = by_load[load]
            if len(sides) == 2:
                old, new = sides[True][load], sides[False][min(sides[False])]
                if old.keys() & new.keys():
                    first = _first_of(new)
                    names = f"synchronous I/O by {counted(load, 'job')}", f"{first.ioengine} by {counted(first.numjobs or 1, 'job')} at depth {first.iodepth}"
                    yield Contrast(names, old, new, ignored)
                    break


def _job(one: Measurement) -> tuple[t.Any, ...]:
    return tuple(getattr(one, name) for name in _JOB)


# ---------------------------------------------------------------------------------------------------------------------

_LIMIT = "so {word}s {effect}: together they do {total} times one alone{within}"

RULES: tuple[Rule, ...] = (
    Rule("targets", "", "", _LIMIT, "", "field case: several disks of one host at once", _targets_at_once),
    Rule("hosts", "", "", _LIMIT, "", "field case: two servers on one array", _hosts_at_once),
    Rule("attachment", "{old} or {new}?", "{drives}", "", "{drives}", "field case A: SATA or RAID", _attachments),
    Rule(
        "free space",
        "",
        "sustained, if the rest was discarded",
        "",
        "sustained, if the rest was discarded",
        "field case E, group 1: 70 % of the array (suite write_cliff)",
        _free_space,
    ),
    Rule(
        "asynchronous",
        "",
        "with as many I/Os in flight",
        "",
        "with as many I/Os in flight",
        "field case E, group 2: sync and libaio (suite array_matrix)",
        _asynchronous,
    ),
)


class _Shown(t.NamedTuple):
    rule: Rule
    contrast: Contrast
    found: Pairing


def conclusions_of(points: t.Sequence[Point], answer: Answer) -> tuple[str, ...]:
    """A sentence for each conclusion from cells that decide."""
    deciding = {(one.cell, one.direction) for one in answer.deciding}
    runs = [run for one in without_undecided(points)[0] if (one.cell, one.direction) in deciding for run in one.runs if run.iops]
    sentences = []
    for rule in RULES:
        shown = [_Shown(rule, one, _compare(one, answer)) for one in rule.finds(runs)]
        said = [one for one in shown if _meaning(one) is not None]
        said.sort(key=lambda one: (_is_open(one), -abs(math.log(one.found.ratio or 1.0))))
        sentences += [_sentence(one) for one in said[:_MOST]]
        if said[_MOST:]:
            verdicts = collections.Counter("not known" if _is_open(one) else one.found.verdict for one in said[_MOST:])
            counts = listed([f"{number} {verdict}" for verdict, number in verdicts.most_common()])
            sentences.append(f"{counted(len(said) - _MOST, 'more comparison')} of this kind ({said[0].contrast.names[1]}): {counts}.")
    return tuple(sentences)


def _compare(one: Contrast, answer: Answer) -> Pairing:
    keys = [key for key in answer.keys if key not in one.ignored]
    if one.is_paired:
        return pair(METRICS["iops"], one.old, one.new, keys, answer.levels)
    # Of different drives the drive is the unit, and each has one value.
    if min(len(one.old), len(one.new)) < _FEWEST_DRIVES:
        reason = f"different drives, of which at least {_FEWEST_DRIVES} on each side are needed"
        old, new = (median(median(run.iops for run in runs) for runs in side.values()) for side in (one.old, one.new))
        return Pairing(None, reason, False, (old, new))
    middle = [[sorted(runs, key=lambda run: run.iops or 0.0)[len(runs) // 2] for runs in side.values()] for side in (one.old, one.new)]
    return pair(METRICS["iops"], {"old": middle[0]}, {"new": middle[1]}, keys)


def _is_open(one: _Shown) -> bool:
    return one.found.verdict not in ("better", "worse", "same")


def _meaning(one: _Shown) -> str | None:
    """What is said of it; ``None``: nothing, for what would be shown is not there."""
    rule, verdict = one.rule, one.found.verdict
    if _is_open(one):
        return ""
    template = rule.same if verdict == "same" else rule.differs or (rule.lower if verdict == "worse" else "")
    return template.format(**_figures(one)) if template else None


def _figures(one: _Shown) -> dict[str, t.Any]:
    interval, count = one.found.comparison.interval if one.found.comparison else None, one.contrast.count
    is_one = interval is not None and count * interval.low > 0.95 and count * interval.high < 1.05
    within = ", within 5 %" if is_one else ""
    # A limit is what they do together, however many they are: less than half of what more of them could add.
    is_limit = interval is not None and count * interval.high <= (1 + count) / 2
    return {
        **one.contrast.texts,
        "old": one.contrast.names[0],
        "new": one.contrast.names[1],
        "total": factor(count * (one.found.ratio or 0.0)),
        "within": within,
        "effect": "share a limit" if is_limit else "slow one another",
    }


def _sentence(one: _Shown) -> str:
    contrast, found = one.contrast, one.found
    first, rate = contrast.first, rate_of(contrast.first)
    old, new = contrast.names
    workload = f"{noun(first, first.direction or '')}s in {first.variant}"
    head = " ".join(filter(None, (one.rule.head.format(**_figures(one)), workload[:1].upper() + workload[1:])))
    values = [rate.text(value) if value is not None else "" for value in found.values]
    figures = [f" ({value} {rate.unit})" if value else "" for value in values]
    if _is_open(one):
        why = found.reason or (found.comparison.reason if found.comparison else "")
        return f"{head}: whether {new}{figures[1]} and {old}{figures[0]} differ is not known{contrast.texts.get('drives', '')}: {why}."
    meaning = _meaning(one) or ""
    interval = found.comparison.interval if found.comparison else None
    between = f" (ratio {span(interval.low, interval.high)}, {confidence(interval.confidence)})" if interval else ""
    does = (
        f"does as much as {old}{figures[0]}, within 5 %" if found.verdict == "same" else f"does {factor(found.ratio or 0.0)} times as much as {old}{figures[0]}"
    )
    return f"{head}: {new}{figures[1]} {does}{between}{'' if meaning.startswith(' ') else ', '}{meaning}."
