# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run has done on each host of a fleet, from the results of ``cache_layers``, and its failures by reason. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._failure import failure_reason
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.hosts import (
    Group,
    HostPlan,
    PlannedStep,
    alike,
    groups_of,
    has_nothing,
    steps_of,
    texts_of,
)
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.text import NAMED, NARROWEST, Predicates, counted_outcomes, screenful, within, wrapped
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted, listed

#: The states of a host, the most urgent first, with the predicate for one host and for several.
_PREDICATES = {
    "failed": ("failed", "failed"),
    "unreachable": ("is unreachable", "are unreachable"),
    "changed": ("was changed", "were changed"),
    "would_change": ("would change", "would change"),
    "unchanged": ("is configured as described", "are configured as described"),
    "nothing": ("has no cache layer in its variables", "have no cache layer in their variables"),
}
_NOTHING_LEFT = ("has nothing of this collection", "have nothing of this collection")
#: The predicates of hosts with their steps, after a run and in check mode.
_STEPS: t.Mapping[bool, Predicates] = {
    False: {"changes": ("was changed", "were changed"), "in_part": ("was changed in part", "were changed in part")},
    True: {"changes": ("would change", "would change"), "in_part": ("would change in part", "would change in part")},
}
_MOST_WARNINGS = 20
_LATER = "A task after the planning of its layers failed, or the host could not be reached any more: see its message above."


@dataclass(frozen=True)
class HostRun:
    """:param outcome: ``failed``, ``unreachable``, ``changed``, ``would_change`` (in check mode), ``unchanged``, or ``nothing`` if no variable
    describes a layer of the host.
    :param reason: of a failure, else empty.
    :param changes: its steps, if it has any.
    :param warnings: what it warned of.
    """

    host: str
    outcome: str
    reason: str = ""
    changes: HostPlan | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """Hosts that failed for one reason, apart from the names of their devices and their addresses."""

    outcome: str
    reason: str
    hosts: tuple[str, ...]

    def to_dict(self) -> dict[str, t.Any]:
        return {"outcome": self.outcome, "reason": self.reason, "hosts": list(self.hosts)}


def read_runs(results: t.Mapping[str, t.Any], active: t.Collection[str], *, check_mode: bool) -> list[HostRun]:
    """What was done on all hosts, in natural order of their names.

    :param active: hosts without a failure so far.
    """
    hosts = sorted(results, key=natural)
    answers = {host: results[host] if isinstance(results[host], dict) else {} for host in hosts}
    runs = [_read(host, answer, is_active=host in active, check_mode=check_mode) for host, answer in answers.items()]
    return [replace(run, warnings=tuple(texts_of(answer.get("warnings")))) for run, answer in zip(runs, answers.values())]


def _read(host: str, result: t.Mapping[str, t.Any], *, is_active: bool, check_mode: bool) -> HostRun:
    name = plain(host)
    if result.get("unreachable"):
        return HostRun(name, "unreachable", failure_reason(result))
    changes = _changes(name, result, check_mode=check_mode, in_part=bool(result.get("failed")) or not is_active)
    if result.get("failed"):
        return HostRun(name, "failed", failure_reason(result), changes)
    if not is_active or not result:
        return HostRun(name, "failed", _LATER, changes)
    if has_nothing(result):
        return HostRun(name, "nothing")
    changed = "would_change" if check_mode else "changed"
    return HostRun(name, changed if result.get("changed") or result.get("pending") else "unchanged", changes=changes)


def _changes(name: str, result: t.Mapping[str, t.Any], *, check_mode: bool, in_part: bool) -> HostPlan | None:
    """What was done; of a host that failed only if something was."""
    steps = steps_of(result) if result.get("changed") or check_mode else ()
    pending = [plain(one, 40) for one in result["pending"]] if isinstance(result.get("pending"), list) else []
    roles = () if in_part else tuple(PlannedStep(layer, "several steps, which are those of the tasks of its role above", ()) for layer in pending)
    return HostPlan(name, "in_part" if in_part else "changes", steps=(*steps, *roles)) if steps or roles else None


def failures_of(runs: t.Iterable[HostRun]) -> list[Failure]:
    """Each reason once: failures before hosts that are unreachable, then the most hosts first."""
    groups: dict[tuple[str, str], list[HostRun]] = {}
    for one in runs:
        if one.reason:
            groups.setdefault((one.outcome, alike(one.reason, one.host)), []).append(one)
    found = [
        Failure(outcome, members[0].reason if len({one.reason for one in members}) == 1 else kind, tuple(one.host for one in members))
        for (outcome, kind), members in groups.items()
    ]
    return sorted(found, key=lambda one: (one.outcome != "failed", -len(one.hosts), natural(one.hosts[0])))


def changes_of(runs: t.Iterable[HostRun]) -> list[Group]:
    """The steps of all hosts, those with equal ones together."""
    return groups_of(one.changes for one in runs if one.changes is not None)


def summary(runs: t.Sequence[HostRun], layers: t.Sequence[str] | None = None, *, removal: bool = False) -> str:
    """``200 hosts: 4 failed, 10 are unreachable, 6 were changed, 180 are configured as described.``

    :param layers: what tags limit the run to, as in :func:`within`.
    :param removal: whether the run removed what the collection has put on hosts.
    """
    predicates = {**_PREDICATES, "unchanged": _NOTHING_LEFT} if removal else within(_PREDICATES, layers)
    return counted_outcomes([one.outcome for one in runs], predicates)


def as_text(
    runs: t.Sequence[HostRun],
    failures: t.Sequence[Failure],
    width: int,
    layers: t.Sequence[str] | None = None,
    *,
    check_mode: bool = False,
    removal: bool = False,
) -> str:
    """:param width: columns of the terminal; ``layers`` and ``removal``: see :func:`summary`."""
    wide = max(width, NARROWEST)
    blocks = [wrapped(summary(runs, layers, removal=removal), wide, "", "  ")]
    for one in failures:
        several = len(one.hosts) > 1
        names = f"{counted(len(one.hosts), 'host')} {_PREDICATES[one.outcome][1]}: {listed(list(one.hosts), NAMED)}"
        title = names if several else f"{one.hosts[0]} {_PREDICATES[one.outcome][0]}"
        blocks.append("\n".join([wrapped(title, wide, "", "    "), wrapped(one.reason, wide, "  ", "  ")]))
    warnings = [wrapped(line, wide, "  ", "    ") for line in _warned(runs)]
    warned = ["\n".join(["Warnings:", *warnings])] if warnings else []
    return "\n\n".join([*blocks, *screenful(changes_of(runs), wide, _STEPS[check_mode]), *warned])


def _warned(runs: t.Iterable[HostRun]) -> list[str]:
    """Each warning once, with its hosts: Ansible prints it without them. What names its host, as those of Ansible do, is left out."""
    found: dict[str, list[str]] = {}
    for one in runs:
        for text in dict.fromkeys(one.warnings):
            if not re.search(rf"(?<![\w.-]){re.escape(one.host)}(?![\w.-])", text):
                found.setdefault(text, []).append(one.host)
    lines = [f"{listed(hosts, NAMED)}: {text}" for text, hosts in found.items()]
    more = len(lines) - _MOST_WARNINGS
    return [*lines[:_MOST_WARNINGS], *([f"and {counted(more, 'more warning')}, which are above."] if more > 0 else [])]
