# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What one host measures, as the action benchmark_plan returns it. Pure.

A plan as text: what would be measured, how long it takes, and what it costs the devices.
"""

from __future__ import annotations

import textwrap
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.endurance import Wear, check_wear, wear_of, written_text
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.steps import Plan, PlanStep, Run, make_plan
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.targets import ASSUMED_IOPS, ASSUMED_RATE
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.claims import claim_of, fewest_repeats
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import PRACTICAL
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import amount, duration, share, size

#: Characters of a line at most.
WIDTH = 120

#: What a write-back cache may take, which only its host knows of.
_DRAINED = "A cache with dirty data is written back before each cell that decides: at most {}, and no time without one."

_HEADINGS = ("CELL", "TARGET", "RUNS", "TIME", "PAUSE BEFORE", "WRITES EACH", "OF RATED")
_LEFT = {0, 1, 4}
#: Characters that a name of a cell may have at most; of a target, the end of its path is more specific than its beginning.
_LONGEST_CELL, _LONGEST_TARGET = 46, 22


def describe_plan(plan: Plan, host: str = "") -> str:
    """Every cell with its time, the bytes that it writes and their share of the rated endurance, and the totals.

    :param host: its name, for the first line.
    """
    start = f"{host}: " if host else ""
    if not plan.steps:
        return f"{start}nothing is measured: there are no targets."
    wears = wear_of(plan)
    lines = [f"{start}suite {plan.suite.name}" + (f", {plain(plan.suite.description, WIDTH)}" if plan.suite.description else "")]
    lines += _table([_HEADINGS, *_rows(plan)])
    lines += ["", *_totals(plan), *(_wear_line(wear) for wear in wears), *_notes(plan, wears)]
    return "\n".join(line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in lines)


def describe_claims(plan: Plan) -> str:
    """Which difference to another variant with as many repeats this plan can show on one host; empty if no cell decides.

    :raises LibraryMissing: without numpy.
    """
    repeats: dict[str, int] = {}
    for run in plan.runs:
        # Without 'decides' in the suite, everything but fills and discards is compared.
        if run.cell.decides is None or run.cell.decides:
            repeats[run.name] = repeats.get(run.name, 0) + 1
    groups: dict[int, list[str]] = {}
    for name, count in repeats.items():
        groups.setdefault(count, []).append(name)
    lines = [line for count, names in sorted(groups.items()) for line in _claim_lines(count, names if len(groups) > 1 else [])]
    return "\n".join(lines)


def _claim_lines(count: int, names: t.Sequence[str]) -> list[str]:
    """:param names: of the cells, if others have another number of repeats."""
    cells = f" ({', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''})" if names else ""
    start = f"{count} {'repeat' if count == 1 else 'repeats'} of each variant{cells}"
    claim, fewest = claim_of(count), fewest_repeats()
    if claim is None:
        return textwrap.wrap(f"{start} cannot show a difference: at least {fewest} are needed, for example with fio_benchmark_repeats={fewest}.", WIDTH)
    pairs = f"all {claim.pairs}" if claim.agreeing == claim.pairs else f"at least {claim.agreeing} of {claim.pairs}"
    text = (
        f"{start}: a difference of at least {share(PRACTICAL)} is shown with {share(claim.confidence, 1)} confidence if {pairs} pairs of repeats, one of each "
        f"variant, have the same direction. Fewer than {fewest} repeats cannot show one."
    )
    return textwrap.wrap(text, WIDTH)


def _rows(plan: Plan) -> list[tuple[str, ...]]:
    """A line for every cell, in the order in which they run first."""
    pauses: dict[str, str] = {}
    runs: dict[str, list[Run]] = {}
    for step in plan.steps:
        for run in step.runs:
            runs.setdefault(run.name, []).append(run)
            # The first step of a plan has none, though its repeats do.
            pauses[run.name] = max(pauses.get(run.name, "-"), _pause(step), key=len)
    return [
        (
            _shortened(name, _LONGEST_CELL),
            _end(same[0].target.path, _LONGEST_TARGET) + (f" +{len(same[0].others)}" if same[0].others else ""),
            str(len(same)),
            _time(same[0]),
            pauses[name],
            _writes(same[0]),
            _share(same),
        )
        for name, same in runs.items()
    ]


def _time(run: Run) -> str:
    if run.estimate.seconds is None:
        return "unknown"
    if run.runs > 1:
        return f"{run.runs} x {duration(run.estimate.seconds)}"
    bound = "" if run.estimate.known else "<= " if run.estimate.seconds == run.estimate.longest else "~ "
    # Less than a second is not given as an exact time.
    return duration(run.estimate.seconds) if run.estimate.seconds < 1 else f"{bound}{duration(run.estimate.seconds)}"


def _pause(step: PlanStep) -> str:
    if step.warms:
        return f"warm, <= {duration(step.longest_pause)}"
    if step.pause is None:
        return "-"
    if "seconds" in step.pause:
        return duration(step.pause["seconds"])
    what = "clean" if "until" in step.pause else "collected"
    return f"{what}, <= {duration(step.pause['most'])}"


def _writes(run: Run) -> str:
    """Of one run; bounds are marked as such."""
    written = run.whole.written
    if written is None:
        return "unknown"
    if not written:
        return "-"
    return size(written) if run.whole.exact and run.runs == 1 else f"<= {size(written)}"


def _share(same: t.Sequence[Run]) -> str:
    """Of the rated endurance, all repeats together."""
    endurance = same[0].target.endurance
    if endurance is None or not same[0].whole.written:
        return "-"
    return amount(100 * sum(run.whole.written or 0 for run in same) / endurance)


def _totals(plan: Plan) -> list[str]:
    count = len(plan.runs)
    unknown = sum(step.seconds is None for step in plan.steps)
    rest = [f"and pauses of at most {duration(plan.open_pauses)}"] if plan.open_pauses else []
    rest += [f"and {unknown} of unknown length"] if unknown else []
    together = ", several targets at once" if plan.suite.together and len(plan.targets) > 1 else ""
    total = " ".join([f"{count} {'cell' if count == 1 else 'cells'}{together}: {duration(plan.seconds)}", *rest])
    if plan.suite.apart and not plan.segments:
        return [total, "The hosts are not synchronised: each runs independently."]
    return [total, *([f"The hosts wait for one another {plan.segments} times."] if plan.segments > 1 else [])]


def _wear_line(wear: Wear) -> str:
    line = f"{_end(wear.path, 50)}: {written_text(wear.written, wear.assumed)}"
    if wear.unknown:
        line += f", without {len(wear.unknown)} cells of which that is not known"
    return f"{line}, {amount(wear.percent)} of its rated {size(wear.endurance)}" if wear.percent is not None and wear.endurance else line


def _notes(plan: Plan, wears: t.Sequence[Wear]) -> list[str]:
    notes = []
    assumed = dict.fromkeys(name for target in plan.targets for name in target.assumed)
    values = {"write_rate": f"{size(ASSUMED_RATE)}/s", "write_iops": f"{ASSUMED_IOPS} writes/s"}
    if assumed and any(wear.written for wear in wears):
        notes.append(f"Assumed where a target does not set it: {', '.join(f'{name} {values[name]}' for name in assumed)}.")
    if any(wear.unknown for wear in wears):
        notes.append("Give the targets a size or their capacity, and all that is written is known.")
    discarding = list(dict.fromkeys(run.name for run in plan.runs if run.cell.discards))
    if discarding:
        notes.append(f"{', '.join(discarding[:3])} discards its target, and a host whose device takes no discards is refused before anything runs;")
        notes.append("leave the cell out there with fio_benchmark_only. Every repeat keeps the order of the cells.")
    unfilled = _unfilled(plan)
    if unfilled:
        notes.append(f"No cell fills the target before {', '.join(unfilled[:3])}: the rate of garbage collection is measured")
        notes.append("only if the rate of writing falls there and stays low; otherwise pauses that wait for it take their maximum.")
    if plan.purge:
        notes.append(f"Purged before the first cell: {', '.join(str(drive['device']) for drive in plan.purge)}.")
    if any(step.longest_drain for step in plan.steps) and any(wear.written for wear in wears):
        notes.append(_DRAINED.format(duration(max(step.longest_drain for step in plan.steps))))
    if any(run.runs > 1 for run in plan.runs):
        notes.append("A search or rounds are shown with the most that they can take.")
    return notes


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    half = (longest - 2) // 2
    return f"{text[: longest - 2 - half]}..{text[-half:]}"


def _end(text: str, longest: int) -> str:
    text = plain(text, 4096)
    return text if len(text) <= longest else f"..{text[-(longest - 2) :]}"


def _table(rows: t.Sequence[t.Sequence[str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(text.ljust(width) if column in _LEFT else text.rjust(width) for column, (text, width) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in rows
    ]


def _unfilled(plan: Plan) -> list[str]:
    """Cells whose rate pauses wait by, without a fill since the beginning or since the last discard."""
    if not any(step.pause and step.pause.get("garbage_collection") == "measured" for step in plan.steps):
        return []
    found: dict[str, None] = {}
    filled: set[str] = set()
    for run in plan.runs:
        if run.cell.discards:
            filled.discard(run.target.path)
        elif run.cell.fill:
            filled.add(run.target.path)
        elif run.cell.measures_garbage_collection and run.target.path not in filled:
            found[run.name] = None
    return list(found)


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
    cache_size: str = "",
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
        cache_size=cache_size,
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
