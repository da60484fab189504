# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of all hosts for a terminal, and as Markdown. Pure."""

from __future__ import annotations

import textwrap
import typing as t
from collections import Counter

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import escaped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.hosts import Group, HostPlan, counted_kinds
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, listed

#: The predicate of each outcome, the most urgent first: for one host, for several.
_PREDICATES = {
    "refused": ("would be refused", "would be refused"),
    "unreachable": ("is unreachable", "are unreachable"),
    "in_part": ("would change in part", "would change in part"),
    "changes": ("would change", "would change"),
    "unchanged": ("is configured as described", "are configured as described"),
    "nothing": ("has no cache layer in its variables", "have no cache layer in their variables"),
}
Predicates = t.Mapping[str, t.Tuple[str, str]]

RISKS = {
    "power_loss": "power loss: writes that are acknowledged and not flushed can be lost if the power fails and the cache is not protected",
    "device_loss": "device loss: the cache devices will contain data that the origin does not have; without a mirror, the loss of one is a loss of data",
    "interruption": "interruption: I/O or the network stops for moments",
    "flush": "flush: dirty blocks are written to the origin first, which can take long",
    "overwrite": "overwrite: a device that must be empty is labelled, or a former cache device is wiped",
    "slower_writes": "slower writes: writes are no longer acknowledged by a cache",
}

#: Names of hosts on a line, and columns at least.
NAMED, NARROWEST = 8, 40
#: Lines of the steps of all hosts after a run.
SCREEN = 40


def name_of_risk(risk: str) -> str:
    return risk.replace("_", " ")


def within(predicates: Predicates, layers: t.Sequence[str] | None) -> Predicates:
    """Predicates of a run that tags limit.

    :param layers: those that were selected; None if tags select none and leave none out.
    """
    if layers is None:
        return predicates
    one, several = predicates["unchanged"]
    only = f", limited to {listed(list(layers))}" if layers else ""
    nothing = ("has no variable of the selected layers", "have no variable of the selected layers")
    unseen = ("was not examined, because the tags select no layer", "were not examined, because the tags select no layer")
    return {**predicates, "unchanged": (one + only, several + only), "nothing": nothing if layers else unseen}


def summary(plans: t.Sequence[HostPlan], layers: t.Sequence[str] | None = None) -> str:
    """``200 hosts: 3 would be refused, 180 would change, 17 are configured as described.``

    :param layers: what tags limit the plan to, as in :func:`within`.
    """
    return counted_outcomes([one.outcome for one in plans], within(_PREDICATES, layers))


def counted_outcomes(outcomes: t.Sequence[str], predicates: Predicates) -> str:
    """:param predicates: of each outcome in the order of the sentence, for one host and for several."""
    counts = Counter(outcomes)
    parts = [f"{counts[outcome]} {words[counts[outcome] != 1]}" for outcome, words in predicates.items() if counts[outcome]]
    return f"{counted(len(outcomes), 'host')}: {', '.join(parts) or 'nothing is planned'}."


def as_text(plans: t.Sequence[HostPlan], groups: t.Sequence[Group], width: int, layers: t.Sequence[str] | None = None) -> str:
    """:param width: columns of the terminal."""
    wide = max(width, NARROWEST)
    blocks = [wrapped(summary(plans, layers), wide, "", "  ")]
    blocks += ["\n".join(_lines(group, wide, within(_PREDICATES, layers))) for group in groups]
    risks = _risks(plans)
    if risks:
        blocks.append("\n".join(["Risks:", *(wrapped(line, wide, "  ", "    ") for line in risks)]))
    return "\n\n".join(blocks)


def _risks(plans: t.Sequence[HostPlan]) -> list[str]:
    counts = Counter(risk for one in plans for risk in one.risks)
    return [f"{RISKS[risk]} (on {counted(counts[risk], 'host')})" for risk in RISKS if counts[risk]]


def screenful(groups: t.Sequence[Group], width: int, predicates: Predicates) -> list[str]:
    """The steps of all hosts, a block for each group, in :data:`SCREEN` lines: with the name of each device if there is room for it."""
    whole = [_lines(group, width, predicates, "steps") for group in groups]
    if sum(map(len, whole)) + len(whole) > SCREEN:
        short = [Group(group.hosts, counted_kinds(group.first.steps)) for group in groups]
        whole = [_lines(group, width, predicates, "steps") for group in short]
    room, blocks = SCREEN, []
    for place, lines in enumerate(whole):
        if len(lines) + 1 > room and (blocks or len(lines) > SCREEN):
            kept = lines[: max(room - 1, 0)] if not blocks else []
            others = sum(len(group.hosts) for group in groups[place + bool(kept) :])
            rest = [f"{len(lines) - len(kept)} more lines of steps"] if kept else []
            rest += [f"{counted(others, 'more host')} with other steps"] if others else []
            last = f"Not shown: {' and '.join(rest)}; --diff prints the changes of each host."
            return [*blocks, "\n".join([*kept, wrapped(last, width, "", "  ")])]
        blocks.append("\n".join(lines))
        room -= len(lines) + 1
    return blocks


def _title(group: Group, predicates: Predicates, name: str) -> str:
    several = len(group.hosts) > 1
    predicate = predicates[group.first.outcome][several]
    if not several:
        return f"{group.first.host} {predicate}"
    alike = f" with equal {name}" if group.steps else ""
    return f"{len(group.hosts)} hosts{alike} {predicate}: {listed(group.names, NAMED)}"


def _lines(group: Group, width: int, predicates: Predicates, name: str = "plans") -> list[str]:
    lines = [wrapped(_title(group, predicates, name), width, "", "    ")]
    if group.reason:
        lines.append(wrapped(group.reason, width, "  ", "  "))
    layers = max((len(step.layer) for step, _count in group.steps), default=0)
    for number, (step, count) in enumerate(group.steps, start=1):
        beginning = f"  {number:2}. {step.layer.ljust(layers)}  "
        lines.append(wrapped(_step(step, count), width, beginning, " " * len(beginning)))
    lines += [wrapped(line, width, "  ", "    ") for line in _rest(group.first)]
    return "\n".join(lines).splitlines()


def _step(step: t.Any, count: int) -> str:
    often = f"{count} x: " if count > 1 else ""
    risks = f" [{', '.join(map(name_of_risk, step.risks))}]" if step.risks else ""
    return f"{often}{step.action}{risks}"


def _rest(one: HostPlan) -> t.Iterator[str]:
    """What is not known, and what was warned of."""
    if one.pending:
        yield f"First, several steps of {listed(list(one.pending))}: what comes after them is not planned."
    for layer, reason in one.undetermined:
        yield f"{layer}: known only after the layers before it have changed: {reason}"
    yield from (f"Warning: {text}" for text in one.warnings)


def wrapped(text: str, width: int, first: str, others: str) -> str:
    """Lines with their indentation; words are not broken."""
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False)


def as_markdown(plans: t.Sequence[HostPlan], groups: t.Sequence[Group], layers: t.Sequence[str] | None = None) -> str:
    predicates = within(_PREDICATES, layers)
    lines = ["# Plan", "", escaped(summary(plans, layers)), ""]
    for group in groups:
        several = len(group.hosts) > 1
        lines += [f"## {escaped(f'{len(group.hosts)} hosts' if several else group.first.host)} {predicates[group.first.outcome][several]}", ""]
        lines += [escaped(", ".join(group.names)), ""] if several else []
        lines += [escaped(group.reason), ""] if group.reason else []
        lines += [*_markdown_table(group), ""] if group.steps else []
        lines += [line for text in _rest(group.first) for line in (f"- {escaped(text)}", "")]
    risks = _risks(plans)
    return "\n".join([*lines, *(["## Risks", "", *(f"- {line}" for line in risks), ""] if risks else [])])


def _markdown_table(group: Group) -> t.Iterator[str]:
    yield "| | layer | action | risks |"
    yield "|---|---|---|---|"
    for number, (step, count) in enumerate(group.steps, start=1):
        often = f"{count} x: " if count > 1 else ""
        yield f"| {number} | {escaped(step.layer)} | {often}{escaped(step.action)} | {', '.join(map(name_of_risk, step.risks))} |"
