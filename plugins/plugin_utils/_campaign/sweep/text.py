# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sweep as a person reads it: the plan of a host before it, the progress, and the end. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.endurance import written_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.drain import drain_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.order import SweepStep
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import DONE, FAILED, REFUSED, HostState
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import amount, counted, estimate, listed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import ClassProgress, Design


def plan_text(
    host: str, steps: t.Sequence[SweepStep], left_out: t.Sequence[SweepStep], refused: t.Mapping[str, str], state: HostState | None, design: Design
) -> str:
    """What the sweep would do on a host."""
    names = list(dict.fromkeys(step.variant for step in steps))
    done = sum(state is not None and state.state_of(step.key) == DONE for step in steps)
    certain = [step for step in steps if step.repeat <= design.in_any_case]
    more = len(certain) < len(steps)
    total = sum(step.seconds for step in certain)
    lines = [
        f"{host}: {counted(len(names), 'variant')}, {counted(len(certain), 'step')}{f' to {len(steps)}' if more else ''}, about {estimate(total)}"
        f"{f' to {estimate(sum(step.seconds for step in steps))}' if more else ''},"
        f" {written_text(sum(step.written for step in steps), sum(step.assumed for step in steps))}{_worn(sum(step.worn for step in steps))}"
    ]
    if done:
        lines[0] += f"; {done} steps are done"
    passes: dict[int, list[str]] = {}
    for step in certain:
        passes.setdefault(step.repeat, []).append(step.variant)
    orders: dict[tuple[str, ...], list[int]] = {}
    for number, variants in passes.items():
        orders.setdefault(tuple(variants), []).append(number)
    lines += [f"  repeat{'' if len(of) == 1 else 's'} {', '.join(map(str, of))}: {' → '.join(variants)}" for variants, of in orders.items()]
    lines += _looks(design, {step.repeat for step in steps})
    lines += [f"  refused: {variant}: {reason}" for variant, reason in refused.items()]
    if left_out:
        lines.append(f"  left out by sweep_budget: {', '.join(step.key for step in left_out)}")
    return "\n".join(lines)


def joined_plans(texts: t.Iterable[str]) -> str:
    """The plans of several hosts, equal ones once."""
    hosts: dict[str, list[str]] = {}
    for one in texts:
        host, _colon, plan = one.partition(": ")
        hosts.setdefault(plan, []).append(host)
    return "\n".join(f"{listed(of)}: {plan}" for plan, of in hosts.items())


def progress_text(state: HostState, key: str, seconds_left: float) -> str:
    """After a step."""
    variant, _slash, repeat = key.rpartition("/")
    step = state.steps[key]
    variants = [one.rpartition("/")[0] for one in state.order if one.endswith(f"/{repeat}")]
    place = f"variant {variants.index(variant) + 1} of {len(variants)}" if variant in variants else "variant"
    most = max(state.most_repeats, state.repeats)
    of = f"{state.repeats} to {most}" if most > state.repeats else f"{state.repeats}"
    reason = f" ({step['reason']})" if step["reason"] else ""
    left = f"; {'at most' if most > state.repeats else 'about'} {estimate(seconds_left)} left" if seconds_left > 0 else ""
    return f"{state.host}: repeat {repeat} of {of}, {place}, {variant}: {step['state']}{reason}{left}"


def round_text(found: t.Sequence[ClassProgress], repeats: int) -> str:
    """After a repeat of all variants, class by class."""
    lines = []
    for one in found:
        who = f"{one.label}, after {counted(repeats, 'repeat')}"
        lines += [f"{who}: {sentence}" for sentence in one.leading]
        lines += [f"{who}: {name} is not measured again: {closed.reason}" for name, closed in one.closed.items() if closed.after == repeats and one.open]
        if one.closed and not one.open:
            lines.append(f"{who}: all variants are decided")
    return "\n".join(lines)


def end_text(states: t.Sequence[HostState]) -> str:
    lines = []
    for state in states:
        due = [key for key in state.order if _is_due(state, key)]
        done = sum(state.state_of(key) == DONE for key in due)
        # A host all of whose variants are refused, or left out, was only described.
        restored = "is restored and verified" if state.steps or set(state.order) - set(state.left_out) else "was not changed"
        words = restored if state.restored else f"IS NOT RESTORED: {state.problem or 'run the playbook again with --tags restore'}"
        lines.append(f"{state.host}: {done} of {counted(len(due), 'step')} {'is' if len(due) == 1 else 'are'} done, the host {words}")
        lines += [f"  refused: {variant}: {reason}" for variant, reason in state.refused.items()]
        lines += [f"  failed: {key}: {one['reason']}" for key, one in state.steps.items() if one["state"] == FAILED]
        lines += [skipped_text(state.skipped)] if state.skipped else []
        lines += [f"  measured although {warning}: {key}" for key, one in state.steps.items() if (warning := drain_text(one.get("drain") or {}))]
        lines += [f"  stopped: {variant} after {counted(int(one['after']), 'repeat')}: {one['reason']}" for variant, one in state.closed.items()]
        if state.left_out:
            lines.append(f"  left out by sweep_budget: {', '.join(state.left_out)}")
        lines += _undecided(state)
    return "\n".join(lines)


def skipped_text(skipped: t.Iterable[str]) -> str:
    """The variants that are not tried again."""
    return f"  not tried again, because the target is refused: {', '.join(skipped)}"


def problems_of(states: t.Sequence[HostState], only: t.Collection[str]) -> list[str]:
    """Why a sweep is not complete, one sentence each; a refused variant is no problem as long as anything was measured.

    :param only: the hosts of the play.
    """
    found = []
    played = [state for state in states if state.host in only]
    if any(state.refused for state in played) and not any(_is_due(state, key) for state in played for key in state.order):
        found.append("nothing was measured, because every variant is refused on every host")
    for state in played:
        if not state.restored:
            found.append(f"{state.host} is not restored: {state.problem or 'run the playbook again with --tags restore'}")
        missing = [key for key in state.order if _is_due(state, key) and state.state_of(key) != DONE and key not in state.left_out]
        if missing:
            found.append(f"{state.host}: {counted(len(missing), 'step')} not measured, the first is {missing[0]}")
    return found


def _worn(percent: float) -> str:
    return f" ({amount(percent)} of the rated endurance)" if percent else ""


def _is_due(state: HostState, key: str) -> bool:
    """Whether a step had to be taken: repeats in any case, and those that were begun."""
    variant, _slash, repeat = key.rpartition("/")
    if variant in state.refused or state.state_of(key) == REFUSED:
        return False
    return not state.repeats or int(repeat) <= state.repeats or state.state_of(key) != ""


def _undecided(state: HostState) -> t.Iterator[str]:
    """Variants that ran out of repeats or of time."""
    if state.most_repeats <= state.repeats:
        return
    last: dict[str, int] = {}
    for key in state.order:
        variant, _slash, repeat = key.rpartition("/")
        if variant not in state.refused and variant not in state.closed and state.state_of(key) == DONE:
            last[variant] = int(repeat)
    for after in dict.fromkeys(last.values()):
        names = ", ".join(name for name, repeat in last.items() if repeat == after)
        why = "sweep_max_repeats is reached" if after >= state.most_repeats else "left out by sweep_budget, or interrupted"
        yield f"  not decided after {counted(after, 'repeat')}: {names} ({why})"


def _looks(design: Design, repeats: t.Container[int]) -> t.Iterator[str]:
    """From when on a sequential sweep can stop."""
    if not design.is_sequential:
        return
    if design.fewest > design.last:
        variants = counted(design.comparisons + 1, "variant")
        yield f"  with {variants}, nothing can be decided by {design.last} repeats: set sweep_max_repeats to {design.fewest} or more"
    elif design.in_any_case + 1 in repeats:
        yield f"  repeats {design.in_any_case + 1} to {design.last}: only variants that are not decided, which is possible from repeat {design.fewest} on"
