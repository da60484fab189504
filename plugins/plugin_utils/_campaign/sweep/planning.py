# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host measures in a sweep: the plans of its variants as steps. Pure."""

from __future__ import annotations

import functools
import hashlib
import json
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.endurance import wear_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import Plan, make_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.on_host import HostSweep, refilled
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.order import OVERHEAD, SweepStep, in_order
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.variants import TARGETS, Variant


def steps_of(
    given: t.Mapping[str, t.Any], variants: t.Sequence[Variant], planned: HostSweep, repeats: int, settle: float
) -> tuple[list[SweepStep], dict[str, str]]:
    """All steps of a host, with their expected duration, and a hash of what each variant measures.

    :param given: the variables of the benchmark, as the module ``sweep`` accepts them in ``measurement``.
    :param settle: seconds before each measurement.
    :raises BadInput: if nothing would be measured, or for a variable that is invalid.
    """
    targets_of = {one.name: one.variables.get(TARGETS, given["targets"]) for one in variants}

    @functools.cache
    def cost(name: str, number: int, refill: bool) -> tuple[float, int, int, float]:
        plan = plan_of(given, targets_of[name], repeats, number, refill)
        if not plan.runs and number == 1:
            raise BadInput("Nothing would be measured: set fio_benchmark_file or fio_benchmark_targets, or select cells of the suite with fio_benchmark_only.")
        wears = wear_of(plan)
        worn = max((wear.percent or 0.0 for wear in wears), default=0.0)
        return plan.seconds + OVERHEAD + settle, sum(wear.written for wear in wears), sum(wear.assumed for wear in wears), worn

    for name in targets_of:
        cost(name, 1, False)
    passes = in_order([one.name for one in variants if one.name in planned.variables], repeats)
    # Passes after the second cost what one of them does: a fill is in the first, the order is reversed in the second.
    steps = [
        SweepStep(name, number, *cost(name, min(number, 2), refills), refills)
        for (name, number), refills in zip(passes, refilled(planned, passes), strict=True)
    ]
    return steps, {name: _sha256_of(plan_of(given, targets_of[name], repeats, 1)) for name in planned.variables}


def plan_of(given: t.Mapping[str, t.Any], targets: t.Any, repeats: int, number: int, refill: bool = False) -> Plan:
    """What one repeat measures.

    :raises BadInput: for a variable that is invalid.
    """
    return make_plan(
        given["suite"],
        given["suites"],
        targets,
        file=str(given.get("file", "")),
        cache_size=str(given.get("cache_size", "")),
        runtime=int(_seconds("fio_benchmark_runtime", given["runtime"])),
        repeats=repeats,
        synchronise=False,
        gap=_seconds("gap of fio_benchmark_timing", given["gap"]),
        only=given["only"],
        repeat=number,
        refill=refill,
    )


def _sha256_of(plan: Plan) -> str:
    """Of the measurements of a repeat: the same for the same jobs on the same targets, whatever is permitted there or known of them."""
    runs = [
        [
            run.name,
            dict(run.job),
            *({key: one.given.get(key) for key in ("device", "file", "directory", "size") if key != "directory" or key in one.given} for one in run.targets),
        ]
        for run in plan.runs
    ]
    return hashlib.sha256(json.dumps(runs, sort_keys=True, default=str).encode()).hexdigest()


def _seconds(name: str, value: t.Any) -> float:
    """:raises BadInput: for what is no number of seconds; the role that checks it runs later."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise BadInput(f"{name} must be a number of seconds, at least 0.")
    return seconds
