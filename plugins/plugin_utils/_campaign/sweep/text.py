# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.
"""A sweep as a person reads it: the plan of a host before it, the progress, and the end. Pure."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.order import SweepStep
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import DONE, FAILED, REFUSED, HostState


def duration(seconds: float) -> str:
    """A duration with the precision that an estimate has."""
    if seconds < 120:
        return f"{round(seconds)} s"
    return f"{round(seconds / 60)} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def plan_text(host: str, steps: t.Sequence[SweepStep], left_out: t.Sequence[SweepStep], refused: t.Mapping[str, str], state: HostState | None) -> str:
    """What the sweep would do on a host."""
    names = list(dict.fromkeys(step.variant for step in steps))
    done = sum(state is not None and state.state_of(step.key) == DONE for step in steps)
    total = sum(step.seconds for step in steps)
    lines = [
        f"{host}: {_counted(len(names), 'variant')}, {_counted(len(steps), 'step')}, about {duration(total)},"
        f" writes at most {format_size(sum(step.written for step in steps))}"
    ]
    if done:
        lines[0] += f"; {done} steps are done"
    passes: dict[int, list[str]] = {}
    for step in steps:
        passes.setdefault(step.repeat, []).append(step.variant)
    lines += [f"  repeat {number}: {' → '.join(variants)}" for number, variants in passes.items()]
    lines += [f"  refused: {variant}: {reason}" for variant, reason in refused.items()]
    if left_out:
        lines.append(f"  left out by sweep_budget: {', '.join(step.key for step in left_out)}")
    return "\n".join(lines)


def progress_text(state: HostState, key: str, seconds_left: float) -> str:
    """After a step."""
    variant, _slash, repeat = key.rpartition("/")
    step = state.steps[key]
    place = state.order.index(key) + 1 if key in state.order else len(state.steps)
    reason = f" ({step['reason']})" if step["reason"] else ""
    return f"{state.host}: step {place} of {len(state.order)}, {variant}, repeat {repeat}: {step['state']}{reason}; about {duration(seconds_left)} left"


def end_text(states: t.Sequence[HostState]) -> str:
    """The end of a sweep, host by host."""
    lines = []
    for state in states:
        done = sum(state.state_of(key) == DONE for key in state.order)
        words = "is restored and verified" if state.restored else f"IS NOT RESTORED: {state.problem or 'run the playbook again with --tags restore'}"
        lines.append(f"{state.host}: {done} of {_counted(len(state.order), 'step')} are done, the host {words}")
        lines += [f"  refused: {variant}: {reason}" for variant, reason in state.refused.items()]
        lines += [f"  failed: {key}: {one['reason']}" for key, one in state.steps.items() if one["state"] == FAILED]
        if state.left_out:
            lines.append(f"  left out by sweep_budget: {', '.join(state.left_out)}")
    return "\n".join(lines)


def problems_of(states: t.Sequence[HostState], only: t.Collection[str]) -> list[str]:
    """Why a sweep is not complete, one sentence each; refused variants are no problem.

    :param only: the hosts of the play.
    """
    found = []
    for state in states:
        if state.host not in only:
            continue
        if not state.restored:
            found.append(f"{state.host} is not restored: {state.problem or 'run the playbook again with --tags restore'}")
        missing = [key for key in state.order if state.state_of(key) not in (DONE, REFUSED) and key.rpartition("/")[0] not in state.refused]
        if missing:
            found.append(f"{state.host}: {_counted(len(missing), 'step')} not measured, the first is {missing[0]}")
    return found


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
