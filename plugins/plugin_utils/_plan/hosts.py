# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan of each host, from the result of ``cache_layers`` in check mode, and hosts with equal plans. Pure.

A result comes from a host: types are checked, and text is made safe for a terminal.
"""

from __future__ import annotations

import re
import typing as t
from collections import Counter
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.module_utils._host.risks import RISKS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._failure import failure_reason

#: The states of a host, the most urgent first.
OUTCOMES = ("refused", "unreachable", "in_part", "changes", "unchanged", "nothing")

#: Characters of a sentence, and steps of a host, at most.
_LONGEST, _MOST_STEPS = 1000, 10_000

#: What names a device of one host: a path, with its kernel name in parentheses behind it.
_DEVICE = re.compile(r"/dev/[^\s,;()]*[^\s,;:()]( \([a-z0-9!]+\))?")
#: What names one host in a message of a connection: after these words, or an address; and folders that are made for one task.
_ADDRESS = re.compile(r"(?<=connect to host )\S+|(?<=resolve hostname )[^\s:]+|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])")
_TASK_FOLDER = re.compile(r"ansible-tmp-[\d.-]+")


def alike(sentence: str, host: str) -> str:
    """A sentence without what differs between hosts with the same problem: devices, addresses, and the name of the host."""
    for pattern, word in ((_DEVICE, "DEVICE"), (_ADDRESS, "HOST"), (_TASK_FOLDER, "ansible-tmp-*")):
        sentence = pattern.sub(word, sentence)
    return re.sub(rf"(?<![\w.-]){re.escape(host)}(?![\w-])", "HOST", sentence)


@dataclass(frozen=True)
class PlannedStep:
    """:param risks: names of ``cache_layers``, in its order."""

    layer: str
    action: str
    risks: tuple[str, ...]

    @property
    def kind(self) -> PlannedStep:
        """The same step of any device."""
        return PlannedStep(self.layer, _DEVICE.sub("DEVICE", self.action), self.risks)


@dataclass(frozen=True)
class HostPlan:
    """What would happen to a host, or has happened.

    :param outcome: one of :data:`OUTCOMES`; ``in_part`` if layers are left out, and others change; ``nothing`` if no variable describes a layer of it.
    :param reason: why it or a part of it is refused, or it is unreachable, else empty.
    :param pending: roles that have to replace or configure something first; ``undetermined``: layers whose steps depend on others, with the reason.
    """

    host: str
    outcome: str
    reason: str = ""
    steps: tuple[PlannedStep, ...] = ()
    pending: tuple[str, ...] = ()
    undetermined: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def risks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(risk for step in self.steps for risk in step.risks))

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data for the result of the task and for ``plan.json``."""
        return {
            "host": self.host,
            "outcome": self.outcome,
            "reason": self.reason,
            "steps": [{"layer": step.layer, "action": step.action, "risks": list(step.risks)} for step in self.steps],
            "pending": list(self.pending),
            "undetermined": dict(self.undetermined),
            "warnings": list(self.warnings),
            "risks": list(self.risks),
        }


@dataclass(frozen=True)
class Group:
    """Hosts with equal plans, apart from the names of their devices.

    :param steps: in their order. If they differ between the hosts, with ``DEVICE`` for devices, and how many there are of each on a host.
    """

    hosts: tuple[HostPlan, ...]
    steps: tuple[tuple[PlannedStep, int], ...]

    @property
    def first(self) -> HostPlan:
        return self.hosts[0]

    @property
    def names(self) -> list[str]:
        return [one.host for one in self.hosts]

    @property
    def reason(self) -> str:
        """Why they are refused or unreachable; without what differs between the hosts."""
        return self.first.reason if len({one.reason for one in self.hosts}) == 1 else alike(self.first.reason, self.first.host)


def read_plans(results: t.Mapping[str, t.Any]) -> list[HostPlan]:
    """The plans of all hosts, in natural order of their names."""
    return [_read(plain(host), result if isinstance(result, dict) else {}) for host, result in sorted(results.items(), key=lambda item: natural(str(item[0])))]


def _read(host: str, result: t.Mapping[str, t.Any]) -> HostPlan:
    if result.get("unreachable"):
        return HostPlan(host, "unreachable", failure_reason(result))
    if not result:
        return HostPlan(host, "refused", "no plan was made for this host")
    if has_nothing(result):
        return HostPlan(host, "nothing")
    failed, steps, pending, undetermined = bool(result.get("failed")), steps_of(result), tuple(texts_of(result.get("pending"))), _reasons(result)
    changes = bool(steps or pending or undetermined)
    outcome = ("in_part" if changes else "refused") if failed else "changes" if changes else "unchanged"
    reason = failure_reason(result) if failed else ""
    return HostPlan(host, outcome, reason, steps, pending, undetermined, tuple(texts_of(result.get("warnings"))))


def has_nothing(result: t.Mapping[str, t.Any]) -> bool:
    """Whether no variable of a host describes one of the layers that were selected."""
    if result.get("failed"):
        return False
    some = any(result.get(name) for name in ("changed", "pending", "waiting", "undetermined", "steps"))
    return bool(result.get("skipped")) or (result.get("done") == [] and not some)


def steps_of(result: t.Mapping[str, t.Any]) -> tuple[PlannedStep, ...]:
    """The steps of a call; those of a failed one are in its diff, which Ansible does not print."""
    diff = result.get("diff")
    return tuple(_steps(diff.get("steps") if result.get("failed") and isinstance(diff, dict) else result.get("steps")))


def _steps(value: t.Any) -> t.Iterator[PlannedStep]:
    for entry in value[:_MOST_STEPS] if isinstance(value, list) else ():
        if isinstance(entry, dict):
            risks = tuple(risk for risk in texts_of(entry.get("risks")) if risk in RISKS)
            yield PlannedStep(plain(entry.get("layer") or "", 40), plain(entry.get("action") or "", _LONGEST), risks)


def texts_of(value: t.Any) -> list[str]:
    """The texts in an answer of a host, which may be anything. ansible-core 2.19 keeps a warning as an object with its text in an event."""
    return [plain(getattr(getattr(one, "event", None), "msg", one), _LONGEST) for one in value[:_MOST_STEPS]] if isinstance(value, list) else []


def _reasons(result: t.Mapping[str, t.Any]) -> tuple[tuple[str, str], ...]:
    value = result.get("undetermined")
    return tuple((plain(layer, 40), plain(reason, _LONGEST)) for layer, reason in value.items()) if isinstance(value, dict) else ()


def groups_of(plans: t.Iterable[HostPlan]) -> list[Group]:
    """Hosts with equal plans together: the most urgent first, of the same urgency the largest group."""
    equal: dict[t.Any, list[HostPlan]] = {}
    for one in plans:
        sentences = tuple(alike(text, one.host) for text in (one.reason, *one.warnings, *(f"{layer} {reason}" for layer, reason in one.undetermined)))
        equal.setdefault((one.outcome, tuple(step.kind for step in one.steps), one.pending, sentences), []).append(one)
    groups = [Group(tuple(members), _counted(members)) for members in equal.values()]
    return sorted(groups, key=lambda group: (OUTCOMES.index(group.first.outcome), -len(group.hosts), natural(group.first.host)))


def _counted(members: t.Sequence[HostPlan]) -> tuple[tuple[PlannedStep, int], ...]:
    """Steps in their order; the same step of several devices of a host is one, at the place of the first of them."""
    steps = members[0].steps
    if len({one.steps for one in members}) == 1:
        return tuple((step, 1) for step in steps)
    return counted_kinds(steps)


def counted_kinds(steps: t.Iterable[PlannedStep]) -> tuple[tuple[PlannedStep, int], ...]:
    """Steps in their order, the same of several devices once."""
    return tuple(Counter(step.kind for step in steps).items())
