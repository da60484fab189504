# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The answer in sentences: each states what its comparison shows, and no more. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import KEEPS, LOSES
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import (
    DIFFERENCE,
    FEWEST_REPEATS,
    MOST_REPEATS,
    NOISE_GATE,
    repeats_for,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import (
    amount,
    block,
    chance,
    confidence,
    counted,
    factor,
    figure,
    latency,
    listed,
    share,
    span,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import Excluded
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.workload import Result, WorkloadAnswer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

#: What an engineer acts on first.
_ORDER = ("better", "different_hosts", "not_enough_repeats", "undecided", "worse", "same", "not_comparable", "baseline")

#: With more workloads than this a sentence states first in how many of them each variant is better.
_FEW = 3

_KINDS = {"read": "read", "write": "write", "trim": "discard", "mixed": "I/O"}


class Repeats(t.NamedTuple):
    """How repeats are added: the variable, and how many prove a difference."""

    variable: str
    fewest: int


BENCHMARK = Repeats("fio_benchmark_repeats", FEWEST_REPEATS)

NO_ANSWER = "No variant can be recommended: no cell has a number."

NOTHING_NAMED = "No variant can be recommended: no pattern of report_decide_by matches a cell that has a number."


def no_answer(excluded: t.Sequence[Excluded]) -> str:
    """Why nothing decides: no cell has a number, or those that have do not decide."""
    if not excluded:
        return NO_ANSWER
    reasons = [f"{listed([one.cell for one in excluded if one.reason == reason], 3)}: {reason}" for reason in dict.fromkeys(one.reason for one in excluded)]
    return f"No variant can be recommended: no cell decides ({'; '.join(reasons)})."


def sentences(workloads: t.Sequence[WorkloadAnswer], classes: int, repeats: Repeats = BENCHMARK) -> tuple[str, ...]:
    """One for each workload of each class, with its name where there are several; of many workloads a summary first, with what all have in common: where
    a list is cut off, only workloads are."""
    if not workloads:
        return (NO_ANSWER,)
    ordered = in_order(workloads)
    cells = len({one.question for one in workloads})
    safety = list(dict.fromkeys(_safety(one) for one in ordered))
    alone = _alone(ordered)
    first = [f"Only {alone} was measured, so there is nothing to compare it with."] if alone else _summary(ordered, classes) if len(ordered) > _FEW else []
    common = safety if len(safety) == 1 < len(ordered) else []
    found = []
    for one in ordered:
        where = [one.host_class.label] if classes > 1 else []
        where += [workload_name(one)] if cells > 1 else []
        parts = (
            f"{_amount(one, one.results[0].value)}." if alone else _who(one, repeats),
            _limited(one),
            _against(one),
            _left_out(one),
            _without_result(one),
            _noise(one),
            _unsafe(one),
            _safety(one) if len(safety) > 1 or len(ordered) == 1 else "",
        )
        sentences = " ".join(filter(None, parts))
        found.append(f"{', '.join(where)}: {sentences}" if where else sentences)
    unexplained = list(dict.fromkeys(one.recommended for one in ordered if one.recommended and one.because == ""))
    found += [f"Why {listed(unexplained)} {'is' if len(unexplained) == 1 else 'are'} faster is not known: no recorded flow explains it."] if unexplained else []
    return (*first, *common, *found) if first else (*found, *common)


def _limited(workload: WorkloadAnswer) -> str:
    """What limits the only variant; of several the reasons of their difference are said."""
    limit = workload.results[0].limit if len(workload.results) == 1 else None
    if limit is None:
        return ""
    return f"What limits it: {limit}." if limit.text else "What limits it is not known."


def _alone(workloads: t.Sequence[WorkloadAnswer]) -> str:
    """The only variant of several workloads; empty if there are more, or one workload, whose sentence names it."""
    variants = {result.variant for one in workloads for result in one.results}
    return variants.pop() if len(variants) == 1 < len(workloads) else ""


def in_order(workloads: t.Sequence[WorkloadAnswer]) -> list[WorkloadAnswer]:
    """What an engineer acts on first, and of it the largest improvement; the page opens on the first of them too."""
    return sorted(workloads, key=lambda one: (_ORDER.index(verdict_of(one)), -_improvement(one)))


def _summary(workloads: t.Sequence[WorkloadAnswer], classes: int) -> list[str]:
    """In how many workloads each variant is recommended, and by how much it is better there."""
    every = f"{len(workloads)} workloads" if classes == 1 else f"{len(workloads)} combinations of hosts and workload"
    found = []
    for variant in dict.fromkeys(one.recommended for one in workloads if one.recommended):
        gains = [_gain(one, best_of(one, "better")) for one in workloads if one.recommended == variant]
        ends = span(min(gains), max(gains)) if len(gains) > 1 else figure(gains[0])
        bursts = sum(bool(one.burst) for one in workloads if one.recommended == variant)
        lasts = f", in {bursts} of them as a burst" if bursts else ""
        found.append(f"{variant} is shown to be better in {len(gains)} of {every}: {ends} times as fast as {workloads[0].baseline}{lasts}.")
    return found or [f"No variant that can be recommended is shown to be better than {workloads[0].baseline} in any of {every}."]


def verdict_of(one: WorkloadAnswer) -> str:
    """The combined result of the comparisons of a workload, of those variants that may be recommended."""
    if one.recommended is not None:
        return "better"
    others = [result for result in one.results if result.is_allowed and result.variant != one.baseline]
    if others and all(_is_elsewhere(result) for result in others):
        return "different_hosts"
    verdicts = {result.verdict for result in others if not _is_elsewhere(result)}
    return next((verdict for verdict in _ORDER if verdict in verdicts), "baseline")


def _is_elsewhere(result: Result) -> bool:
    """Whether a variant was measured on other hosts than the baseline."""
    return result.comparison is not None and not result.same_hosts


def workload_name(one: WorkloadAnswer) -> str:
    metric = f", {one.question.metric}" if one.question.metric != ("bandwidth" if one.first.is_sequential else "iops") else ""
    direction = f" ({one.question.direction})" if one.first.rw in ("randrw", "rw", "readwrite") else ""
    return f"{one.question.cell}{direction}{metric}"


def _who(one: WorkloadAnswer, repeats: Repeats) -> str:
    verdict = verdict_of(one)
    base = one.result(one.baseline)
    if len(one.results) == 1:
        only = one.results[0]
        return f"Only {only.variant} was measured: {_amount(one, only.value)}."
    if base is None:
        measured = [f"{result.variant} {_amount(one, result.value)}" for result in one.results]
        return f"{one.baseline} was not measured, so nothing is compared with it: {'; '.join(measured)}."
    if verdict == "baseline":
        return f"Keep {one.baseline}: {_amount(one, base.value)}."
    if verdict == "different_hosts":
        return _different_hosts(one)
    best = best_of(one, verdict)
    # Those of the hosts that were compared: medians over other hosts would contradict the ratio.
    before, after = _values(one, base, best)
    where = _where(one, base, best)
    burst = f" {one.burst}" if one.burst else ""
    if verdict == "better":
        rival = f"{burst} {one.rival} is not shown to be slower." if one.rival else burst
        why = f", because {one.because}" if one.because else ""
        if before is None:
            text = f"Use {best.variant}: {_times_as_many(one, best.ratio)} {one.baseline}{where}{_interval(best)}{why}."
            return f"{text}{_ranges(one, [best, base])}{rival}"
        shown = f"{_amount(one, after)}, {_times(one, best.ratio)} {one.baseline} ({_figure(one, before)}){where}{_interval(best)}"
        return f"Use {best.variant}: {shown}{why}.{rival}"
    if verdict == "not_enough_repeats":
        old, new = best.pairing.repeats if best.pairing is not None else (base.repeats, best.repeats)
        who = "" if old == new else f"{one.baseline if old < new else best.variant} "
        measured = f"{who}measured {'once' if min(old, new) == 1 else f'{min(old, new)} times'}"
        numbers = "" if before is None else f" ({_figure(one, after)}, {_figure(one, before)})"
        looks = f"{best.variant} looks {_looks(one, best.ratio)} {one.baseline}{numbers}{where}"
        return f"{looks}; {measured}, so this is no proof. Repeat at least {repeats.fewest} times: -e {repeats.variable}={repeats.fewest}.{burst}"
    if verdict == "undecided":
        names = [f"{name}{'' if value is None else f' ({_figure(one, value)})'}" for name, value in ((one.baseline, before), (best.variant, after))]
        return f"No difference is shown between {' and '.join(names)}{where}{_interval(best)}.{_next_step(one, best)}"
    if verdict == "same":
        return _no_difference(one, base)
    if verdict == "worse":
        if before is None:
            text = f"Keep {one.baseline}: {best.variant} {_does(one)} {_times_as_many(one, best.ratio)} {one.baseline}{where}{_interval(best)}."
            return f"{text}{_ranges(one, [base, best])}"
        return f"Keep {one.baseline}: {_amount(one, before)}; {best.variant} {_does(one)} {factor(best.ratio)} times that{where}{_interval(best)}."
    return f"{best.variant} and {one.baseline} are not comparable: {best.reason or (best.comparison.reason if best.comparison else '')}."


def _values(one: WorkloadAnswer, base: Result, other: Result) -> tuple[float | None, float | None]:
    """Medians of baseline and variant over the compared hosts; none where they contradict the ratio.

    That is the one of hosts with themselves, or the middle of the ratios of all repeats.
    """
    before, after = other.pairing.values if other.pairing is not None else (base.value, other.value)
    if other.pairing is None or not (before and after and other.ratio):
        return before, after
    practical = 1 + METRICS[one.question.metric].percent / 100
    return (before, after) if 1 / practical <= after / before / other.ratio <= practical else (None, None)


def _where(one: WorkloadAnswer, base: Result, other: Result) -> str:
    """On how many of the hosts the two were compared, where it is not all of them, or where the ratio stands alone."""
    compared = 0 if other.pairing is None else len(other.pairing.hosts)
    every = len({*base.hosts, *other.hosts})
    if not compared or every < 2:
        return ""
    if compared < every:
        return f" on {compared} of {every} hosts"
    return f" on {every} hosts" if _values(one, base, other)[0] is None else ""


def _ranges(one: WorkloadAnswer, results: t.Sequence[Result]) -> str:
    """Between what the repeats of variants are, where on one host their values do not agree with the ratio."""
    if any(len(result.hosts) > 1 for result in results):
        return ""
    found = [f"{result.variant} {_figure(one, result.extremes[0])} to {_figure(one, result.extremes[1])}" for result in results if result.extremes]
    return f" Repeats are far apart: {', '.join(found)}." if found else ""


def _next_step(one: WorkloadAnswer, result: Result) -> str:
    """What may decide it: more repeats only where they are what is tested, and where they do not only make hosts surer that contradict each other."""
    is_over_hosts = result.pairing is not None and result.pairing.unit == "hosts"
    # How many of noisy ones are needed follows (_noise).
    is_noisy = any(side is not None and side.is_noisy for side in (one.result(one.baseline), result))
    return "" if is_over_hosts or is_noisy or all(_hosts_apart(one, result)) else " Add repeats."


def _no_difference(one: WorkloadAnswer, base: Result) -> str:
    alike = [result for result in one.results if result.verdict == "same"]
    within = f"within {amount(METRICS[one.question.metric].percent)} of {one.baseline} ({_amount(one, base.value)})"
    names = listed([result.variant for result in alike])
    interval = _interval(alike[0]) if len(alike) == 1 else ""
    return f"No difference that matters: {names} {'is' if len(alike) == 1 else 'are'} {within}{interval}."


def _against(one: WorkloadAnswer) -> str:
    """Hosts on which the sentence does not hold."""
    verdict = verdict_of(one)
    if one.result(one.baseline) is None or verdict not in ("better", "worse", "undecided", "same"):
        return ""
    if verdict == "same":
        return " ".join(filter(None, (_disagreement(one, result) for result in one.results if result.verdict == "same")))
    best = best_of(one, verdict)
    if verdict == "undecided":
        return _disagreement(one, best)
    if best.pairing is None or not best.pairing.against:
        return ""
    return f"Not on {listed([f'{host.host} ({factor(host.ratio)} times)' for host in best.pairing.against], 3)}."


def _disagreement(one: WorkloadAnswer, result: Result) -> str:
    """Hosts that differ by what matters, where all of them together do not."""
    better, worse = _hosts_apart(one, result)
    if result.pairing is None or not better + worse:
        return ""
    parts = [f"{word} on {count}" for word, count in (("better", better), ("worse", worse)) if count]
    return f"Hosts differ: of {len(result.pairing.hosts)}, {result.variant} is {' and '.join(parts)}."


def _hosts_apart(one: WorkloadAnswer, result: Result) -> tuple[int, int]:
    """On how many of several hosts a variant is better, and worse, by what matters."""
    metric = METRICS[one.question.metric]
    ratios = [host.ratio for host in result.pairing.hosts] if result.pairing is not None else []
    if len(ratios) < 2:
        return 0, 0
    higher, lower = sum(ratio >= 1 + metric.percent / 100 for ratio in ratios), sum(ratio <= 1 - metric.percent / 100 for ratio in ratios)
    return (higher, lower) if metric.higher_is_better else (lower, higher)


def _left_out(one: WorkloadAnswer) -> str:
    """Variants that were measured on other hosts, beside those that were compared."""
    if verdict_of(one) == "different_hosts":
        return ""
    names = [result.variant for result in one.results if _is_elsewhere(result)]
    return f"Not compared, because measured on other hosts: {listed(names)}." if names else ""


def _without_result(one: WorkloadAnswer) -> str:
    """Variants of which measurements are missing: what is compared is only what could be measured."""
    missing = [f"{counted(result.without_result, 'measurement')} of {result.variant}" for result in one.results if result.without_result]
    return f"Without a result: {listed(missing)}." if missing else ""


def _noise(one: WorkloadAnswer) -> str:
    """Which variants are noisier than a comparison should be, and how many repeats make up for it."""
    noisy = [result for result in one.results if result.is_noisy]
    if not noisy:
        return ""
    needed = repeats_for(max(result.noise or 0.0 for result in noisy))
    names = listed([f"{result.variant} ({share(result.noise)})" for result in noisy])
    where = ": an idle host is needed" if needed > MOST_REPEATS else " of each variant on one host"
    return f"Noisy: repeats of {names} vary by more than {share(NOISE_GATE)}; a difference of {share(DIFFERENCE)} needs {counted(needed, 'repeat')}{where}."


def best_of(one: WorkloadAnswer, verdict: str) -> Result:
    """The variant that the sentence is about."""
    allowed = [result for result in one.results if result.is_allowed and result.verdict == verdict and not _is_elsewhere(result)]
    if one.recommended is not None:
        return next(result for result in allowed if result.variant == one.recommended)
    return max(allowed, key=lambda result: _gain(one, result))


def _gain(one: WorkloadAnswer, result: Result) -> float:
    """How much better, as a ratio above 1, whatever the metric."""
    ratio = result.ratio or 0.0
    return ratio if METRICS[one.question.metric].higher_is_better else 1 / ratio if ratio else 0.0


def _improvement(one: WorkloadAnswer) -> float:
    return max((_gain(one, result) for result in one.results), default=0.0)


def _unsafe(one: WorkloadAnswer) -> str:
    """Variants that are faster and are not recommended for what they can lose."""
    reference = _gain(one, best_of(one, "better")) if one.recommended is not None else 1.0
    warnings = []
    for result in one.results:
        if result.is_allowed or not result.same_hosts or result.verdict not in ("better", "not_enough_repeats"):
            continue
        if _gain(one, result) <= max(reference, 1 + METRICS[one.question.metric].percent / 100):
            continue
        looks = "is" if result.verdict == "better" else "looks"
        warnings.append(f"{result.variant} {looks} {_looks(one, result.ratio)} {one.baseline}, but {_loss(one, result)}: it is not recommended.")
    return " ".join(warnings)


def _loss(one: WorkloadAnswer, result: Result) -> str:
    """What of it the baseline keeps, or may keep."""
    base = one.result(one.baseline)
    parts = []
    if result.acknowledged != KEEPS and (base is None or base.acknowledged not in (LOSES, result.acknowledged)):
        parts.append("can lose acknowledged writes in a power failure" if result.acknowledged == LOSES else "is not known to survive a power failure")
    if result.safety.device_loss != KEEPS and (base is None or base.safety.device_loss not in (LOSES, result.safety.device_loss)):
        lost = result.safety.device_loss == LOSES
        parts.append("can lose data when one device fails" if lost else "is not known to survive the loss of a device")
    return " and ".join(parts)


_WORDS = {KEEPS: "survives", LOSES: "can lose data"}


def _safety(one: WorkloadAnswer) -> str:
    """Of what is recommended, else of the baseline, else of the only variant."""
    about = one.result(one.recommended or one.baseline) or one.results[0]
    return f"Power failure: {_WORDS.get(about.acknowledged, 'unknown')}; loss of one device: {_WORDS.get(about.safety.device_loss, 'unknown')}."


def _different_hosts(one: WorkloadAnswer) -> str:
    """Variants that no host measured both of: what differs may be the hosts."""
    results = [f"{result.variant} on {listed(result.hosts, 3)}: {_amount(one, result.value)}{_interval(result)}" for result in one.results]
    return f"{'; '.join(results)}. They were measured on different hosts, {one.host_class.label}: no variant can be recommended."


def incomparable(one: WorkloadAnswer) -> t.Iterator[str]:
    """A sentence for each variant that could not be compared, on no host or not on all."""
    for result in one.results:
        found = result.pairing
        if found is None or one.result(one.baseline) is None or not (found.reason or found.not_compared):
            continue
        what = found.reason if found.comparison is None else f"on {listed(found.not_compared, 3)}"
        allowed = f" report_ignore: [{', '.join(found.ignorable)}] compares them all the same." if found.ignorable else ""
        yield f"{workload_name(one)}: {result.variant} and {one.baseline} are not comparable: {what}.{allowed}"


# ---------------------------------------------------------------------------------------------------------------------
# Numbers with their units


def value_of(one: WorkloadAnswer, result: Result | None) -> str:
    """The value of a variant, with its unit."""
    return _figure(one, None if result is None else result.value)


def _figure(one: WorkloadAnswer, value: float | None) -> str:
    if one.question.metric == "iops":
        return f"{figure(value)} IOPS"
    if one.question.metric == "bandwidth":
        return f"{figure(None if value is None else value / 1e6)} MB/s"
    return latency(value)


def _amount(one: WorkloadAnswer, value: float | None) -> str:
    """A value with what it is of: ``1,420 durable random 4 KiB writes per second``."""
    if one.question.metric == "iops":
        return f"{figure(value)} {noun(one.first, one.question.direction)}s per second"
    if one.question.metric == "bandwidth":
        return f"{figure(None if value is None else value / 1e6)} MB/s of {noun(one.first, one.question.direction)}s"
    return f"{latency(value)} {'mean latency' if one.question.metric == 'latency' else one.question.metric} of {noun(one.first, one.question.direction)}s"


def noun(one: Measurement, direction: str) -> str:
    """What is counted: ``durable random 4 KiB write``."""
    order = "random" if (one.rw or "").startswith("rand") else "sequential" if one.is_sequential else ""
    durable = "durable" if one.synced and direction in ("write", "mixed") else ""
    return " ".join(filter(None, (durable, order, block(one.bs_bytes) or one.bs or "", _KINDS.get(direction, direction))))


def _times_as_many(one: WorkloadAnswer, ratio: float | None) -> str:
    """``1.1 times as many random 4 KiB writes per second as``, where there is no value to name."""
    what = noun(one.first, one.question.direction)
    if one.question.metric == "iops":
        return f"{factor(ratio)} times as many {what}s per second as"
    if one.question.metric == "bandwidth":
        return f"{factor(ratio)} times as many bytes per second of {what}s as"
    return f"{factor(ratio)} times the {'mean latency' if one.question.metric == 'latency' else one.question.metric} of {what}s in"


def _times(one: WorkloadAnswer, ratio: float | None) -> str:
    words = {"iops": "times as many as", "bandwidth": "times as much as"}
    return f"{factor(ratio)} {words.get(one.question.metric, 'times that of')}"


def _looks(one: WorkloadAnswer, ratio: float | None) -> str:
    """``9.5 times as fast as``, also of a latency; ``as fast as`` where no digit says otherwise."""
    gain = ratio if METRICS[one.question.metric].higher_is_better else 1 / ratio if ratio else None
    shown = factor(gain)
    return "as fast as" if shown == factor(1.0) else f"{shown} times as fast as"


def _does(one: WorkloadAnswer) -> str:
    return "does" if one.question.metric in ("iops", "bandwidth") else "has"


def _interval(result: Result) -> str:
    found = result.comparison
    if found is None or found.interval is None:
        return ""
    p = f", p = {chance(found.p)}" if found.p is not None and found.p >= 0.001 else ", p < 0.001" if found.p is not None else ""
    return f" (ratio {span(found.interval.low, found.interval.high)}, {confidence(found.interval.confidence)}{p})"
