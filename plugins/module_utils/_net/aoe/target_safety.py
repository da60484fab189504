# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which AoE targets would lose writes that they have acknowledged.

vblade takes a flush, answers it and does nothing (``atacmd`` of ata.c). So what an initiator has synced is worth what vblade made
of the write itself, as counted with ``/sys/block/*/stat``: with ``-s`` each write is followed by a flush of the drive, with ``-d``
alone none is, and without both even the write comes later.
"""

from __future__ import annotations

import dataclasses
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.stack import DURABLE, Stack, read_stack
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.volatile import volatile_below

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._net.aoe.target_spec import AoeTargetSpec


def swallowed_by(
    runner: Runner, specs: t.Sequence[AoeTargetSpec], root: Path = Path("/"), protected: t.Sequence[str] = (), flushed: t.Sequence[str] = ()
) -> dict[str, list[str]]:
    """By item, what would lose acknowledged writes, each as a clause; the stack is read once, and only on demand."""
    if not specs:
        return {}
    stack = _without_exports(read_stack(runner, root, protected, flushed=flushed))
    return {spec.item: judge(stack, spec) for spec in specs}


def judge(stack: Stack, spec: AoeTargetSpec) -> list[str]:
    """The clauses of one target; ``stack`` is that of the host without its targets."""
    if not spec.sync and not spec.direct:
        return ["a write waits in the page cache of this host when it is acknowledged (neither direct nor sync)"]
    if not spec.sync:
        return volatile_below(stack, spec.device)
    try:
        verdict = stack.verdict(stack.devices.resolve(spec.device))
    except DeviceMissing:
        return []
    return [] if verdict.verdict == DURABLE else [verdict.reason[0].lower() + verdict.reason[1:].rstrip(".")]


def _without_exports(stack: Stack) -> Stack:
    """A target that runs with other options does not show the effect of the requested one."""
    facts = {name: [one for one in found if "aoe_target" not in one.state] for name, found in stack.facts.items()}
    return dataclasses.replace(stack, facts=facts)
