# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a plan writes to each target, and what that is of its rated endurance. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.estimate import Estimate
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import Plan, Run
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import amount, size

#: Cells that a refusal names: those that write the most.
_NAMED = 3


@dataclass(frozen=True)
class Wear:
    """What one target has to bear.

    :param written: bytes at most, all repeats together; what cannot be known is left out and named in ``unknown``.
    :param cells: bytes by cell, all its repeats together.
    :param endurance: bytes that may be written in its lifetime, if given.
    :param assumed: of ``written``, what only the rate bounds that is assumed of a target without one.
    """

    path: str
    written: int
    cells: t.Mapping[str, int]
    repeats: t.Mapping[str, int]
    unknown: tuple[str, ...]
    endurance: int | None
    assumed: int = 0

    @property
    def percent(self) -> float | None:
        """Of its rated endurance."""
        return None if not self.endurance else 100 * self.written / self.endurance

    def to_dict(self) -> dict[str, t.Any]:
        percent = None if self.percent is None else round(self.percent, 4)
        return {"target": self.path, "bytes_written": self.written, "endurance": self.endurance, "percent": percent, "unknown": list(self.unknown)}


def written_text(written: int, assumed: int) -> str:
    """What is written, in words: a bound that nothing but an assumed rate gives is no figure."""
    if not assumed:
        return f"writes at most {size(written)}" if written else "writes nothing"
    exact = f"at most {size(written - assumed)}, and " if written > assumed else ""
    return f"writes {exact}what the target takes in timed cells (no write_rate is set)"


def wear_of(plan: Plan) -> list[Wear]:
    """Of every target that is measured, in their order."""
    return [
        _wear(path, [(run, cost) for run in plan.runs if (cost := run.cost_on(path)) is not None])
        for path in dict.fromkeys(target.path for target in plan.targets)
    ]


def check_wear(wears: t.Sequence[Wear], budget: float) -> None:
    """Whether every target can bear its part.

    :param budget: percent of the rated endurance that the campaign may use, all repeats together; 0 for no limit.
    :raises Refused: naming the target, the cells that write the most, and the variable that allows it.
    """
    if budget <= 0:
        return
    for wear in wears:
        if wear.endurance is None:
            continue
        if wear.unknown:
            raise Refused(
                f"{wear.path}: how much {wear.unknown[0]} would write cannot be determined before it is measured, so its wear cannot be limited: "
                "give the target a 'size' or its 'capacity', or set fio_benchmark_wear_budget to 0.",
                item=wear.path,
            )
        if wear.percent is not None and wear.percent > budget:
            most = sorted(wear.cells.items(), key=lambda one: -one[1])[:_NAMED]
            sums = ", ".join(f"{name} {size(written)}{_times(wear.repeats[name])}" for name, written in most if written)
            raise Refused(
                f"{wear.path}: this campaign would write up to {size(wear.written)}, {amount(wear.percent)} of the {size(wear.endurance)} that the "
                f"device is rated for, and {amount(budget)} are allowed ({sums}): shorten it, set capacity, write_rate and write_iops of the "
                "target to its real values, or raise fio_benchmark_wear_budget.",
                item=wear.path,
            )


def _times(repeats: int) -> str:
    return f" in {repeats} repeats" if repeats > 1 else ""


def _wear(path: str, runs: t.Sequence[tuple[Run, Estimate]]) -> Wear:
    cells: dict[str, int] = {}
    repeats: dict[str, int] = {}
    for run, cost in runs:
        cells[run.name] = cells.get(run.name, 0) + (cost.written or 0)
        repeats[run.name] = repeats.get(run.name, 0) + 1
    unknown = tuple(dict.fromkeys(run.name for run, cost in runs if cost.written is None))
    targets = [target for run, _cost in runs for target in run.targets if target.path == path]
    endurance = next((target.endurance for target in targets if target.endurance is not None), None)
    # One of the two rates is a bound, whatever the other one is.
    unbounded = endurance is None and any(len(target.assumed) > 1 for target in targets)
    assumed = sum(cost.written or 0 for _run, cost in runs if unbounded and not cost.exact)
    return Wear(path, sum(cells.values()), cells, repeats, unknown, endurance, assumed)
