# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host measures, as the action benchmark_plan returns it. Pure."""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.dry_run import WIDTH, describe_claims, describe_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.endurance import check_wear, wear_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import Plan, make_plan


def host_plan(
    targets: t.Sequence[t.Any],
    suite: str,
    suites: t.Mapping[str, t.Any],
    *,
    runtime: int = 0,
    repeats: int = 0,
    synchronise: bool = True,
    gap: float = 2.0,
    wear_budget: float = 0.0,
    only: t.Sequence[t.Any] = (),
    host: str = "",
    dry_run: bool = False,
    group: str = "",
    repeat: int = 0,
    refill: bool = False,
    file: str = "",
    claims: bool = False,
) -> dict[str, t.Any]:
    """The options and the result are those of the documentation of ``benchmark_plan``.

    :param claims: add to the text what a comparison of the repeats can show. It needs numpy, which is not imported for an ordinary plan.
    :raises BadInput: naming the variable that is wrong.
    :raises Refused: if the wear exceeds the budget, and it is no dry run.
    """
    plan = make_plan(
        suite,
        suites,
        targets,
        runtime=runtime,
        repeats=repeats,
        synchronise=synchronise,
        gap=gap,
        only=only,
        group=group,
        repeat=repeat,
        refill=refill,
        file=file,
    )
    wears = wear_of(plan)
    text = "\n".join([describe_plan(plan, host), *(_claims(plan) if claims and not repeat else [])])
    try:
        check_wear(wears, wear_budget)
    except Refused as error:
        if not dry_run:
            raise
        text = "\n".join([text, *textwrap.wrap(f"A real run would be refused. {error.message}", WIDTH)])
    return {
        "steps": [step.to_dict() for step in plan.steps],
        "cells": [{"name": run.name, "repeat": run.repeat} for run in plan.runs],
        "patterns": [pattern.to_dict() for pattern in plan.patterns],
        "seconds": plan.seconds,
        "limit": plan.limit,
        "timeout": plan.timeout,
        "barrier_timeout": plan.barrier_timeout,
        "segments": plan.segments,
        "bytes_written": sum(wear.written for wear in wears),
        "wear": [wear.to_dict() for wear in wears],
        "purge": [dict(drive) for drive in plan.purge],
        "text": text,
    }


def _claims(plan: Plan) -> list[str]:
    try:
        text = describe_claims(plan)
    except LibraryMissing as error:
        return textwrap.wrap(f"What the repeats can show is not computed: {error.message}", WIDTH)
    return [text] if text else []
