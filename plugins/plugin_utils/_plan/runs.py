# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run has done on each host of a fleet, from the results of ``cache_layers``, and its failures by reason. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._failure import failure_reason
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.hosts import alike
from ansible_collections.cachefleet.storage.plugins.plugin_utils._plan.text import NAMED, NARROWEST, counted_outcomes, wrapped
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
_LATER = "A task after the planning of its layers failed, or the host could not be reached any more: see its message above."


@dataclass(frozen=True)
class HostRun:
    """:param outcome: ``failed``, ``unreachable``, ``changed``, ``would_change`` (in check mode), ``unchanged``, or ``nothing`` if no variable
    describes a layer of the host.
    :param reason: of a failure, else empty.
    """

    host: str
    outcome: str
    reason: str = ""


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
    return [_read(host, results[host] if isinstance(results[host], dict) else {}, is_active=host in active, check_mode=check_mode) for host in hosts]


def _read(host: str, result: t.Mapping[str, t.Any], *, is_active: bool, check_mode: bool) -> HostRun:
    name = plain(host)
    if result.get("unreachable"):
        return HostRun(name, "unreachable", failure_reason(result))
    if result.get("failed"):
        return HostRun(name, "failed", failure_reason(result))
    if not is_active or not result:
        return HostRun(name, "failed", _LATER)
    if result.get("skipped"):
        return HostRun(name, "nothing")
    changed = "would_change" if check_mode else "changed"
    return HostRun(name, changed if result.get("changed") or result.get("pending") else "unchanged")


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


def summary(runs: t.Sequence[HostRun]) -> str:
    """``200 hosts: 4 failed, 10 are unreachable, 6 were changed, 180 are configured as described.``"""
    return counted_outcomes([one.outcome for one in runs], _PREDICATES)


def as_text(runs: t.Sequence[HostRun], failures: t.Sequence[Failure], width: int) -> str:
    """:param width: columns of the terminal."""
    wide = max(width, NARROWEST)
    blocks = [wrapped(summary(runs), wide, "", "  ")]
    for one in failures:
        several = len(one.hosts) > 1
        names = f"{counted(len(one.hosts), 'host')} {_PREDICATES[one.outcome][1]}: {listed(list(one.hosts), NAMED)}"
        title = names if several else f"{one.hosts[0]} {_PREDICATES[one.outcome][0]}"
        blocks.append("\n".join([wrapped(title, wide, "", "    "), wrapped(one.reason, wide, "  ", "  ")]))
    return "\n\n".join(blocks)
