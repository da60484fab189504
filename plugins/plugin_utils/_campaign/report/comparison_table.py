# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The table of all cells: a line for each cell on each backing device, with every variant beside the baseline and what their comparison shows."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import STATES, natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report import loads
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import is_allowed, needs_no_flush
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import UNSETTLED_MEAN, is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.places import backing_models, key_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.safety import SafetyOfHosts
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.added_bins import AddedBins
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS, keys_without
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import counted

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import Answer
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import Pairing
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison


@dataclass(frozen=True)
class TableCell:
    """One variant in one line: medians over ``hosts``; ``iops_low`` and ``iops_high`` of them.

    :param latency: ns by percentile, of the added bins of several hosts, ``None`` where they cannot be added; ``verdict``: the worst of those hosts.
    :param hidden: percentiles that are not known because of too few I/Os.
    :param comparison: of the IOPS with the baseline; ``None`` for the baseline, and where ``reason`` is why there is none.
    :param is_better: whether it is shown to be better, on the same hosts, and keeps what the baseline keeps on them.
    :param is_risky: whether it is shown to be better and can lose what the baseline keeps.
    :param same_hosts: whether hosts were compared with themselves."""

    iops: float | None
    bandwidth: float | None
    iops_low: float | None
    iops_high: float | None
    latency: t.Mapping[str, float | None]
    hosts: int
    state: str
    verdict: str
    hidden: tuple[str, ...] = ()
    comparison: Comparison | None = None
    reason: str = ""
    is_better: bool = False
    is_risky: bool = False
    same_hosts: bool = True

    @property
    def ratio(self) -> float | None:
        found = self.comparison
        return None if found is None else found.ratio if found.ratio is not None else found.ratio_of_medians


@dataclass(frozen=True)
class TableLine:
    """One cell on one backing device in every variant, in the order of the variants; ``None`` where it was not measured."""

    model: str
    cell: str
    direction: str
    workload: str
    cells: tuple[TableCell | None, ...]
    is_part: bool = False


def lines_of(points: t.Sequence[Point], rows: Rows, answer: Answer, ignore: t.Sequence[str] = ()) -> t.Iterator[TableLine]:
    """Every line, cells in natural order."""
    models = backing_models(points)
    groups: dict[tuple[str, str, str], dict[str, list[Point]]] = {}
    for one in points:
        model = models[key_of(one)]
        groups.setdefault((one.cell, one.direction, model), {}).setdefault(one.variant, []).append(one)
    bins = AddedBins(rows.added)
    keys = keys_without(ignore)
    compare = _Comparisons(answer, keys, rows)
    for (cell, direction, model), by_variant in sorted(groups.items(), key=lambda item: (natural(item[0][0]), *item[0][1:])):
        line = []
        for variant in rows.variants:
            here = by_variant.get(variant)
            line.append(None if here is None else _cell(here, by_variant.get(answer.baseline), bins.percentiles(here) if len(here) > 1 else {}, compare))
        first, *_others = by_variant.values()
        typical = first[0].first
        yield TableLine(model, cell, direction, f"{loads.workload_of(typical)}{_load(typical)}", tuple(line), is_probe(cell))


class _Comparisons:
    """Of the IOPS of variants with the baseline; those of the answer are not made again."""

    def __init__(self, answer: Answer, keys: t.Sequence[str], rows: Rows) -> None:
        self.answer = answer
        self.disproved = rows.disproved
        self.unsettled = {(one.cell, one.direction) for one in answer.excluded if one.reason == UNSETTLED_MEAN}
        self._safety = SafetyOfHosts(rows)
        self._keys = keys
        self._known: dict[tuple[t.Any, ...], Pairing] = {}
        for one in answer.workloads:
            base = one.result(one.baseline)
            for result in one.results if base is not None and one.question.metric == "iops" else ():
                if base is not None and result.pairing is not None:
                    key = one.question.cell, one.question.direction, result.variant, frozenset(base.hosts), frozenset(result.hosts)
                    self._known[key] = result.pairing

    def pairing(self, baseline: t.Sequence[Point], here: t.Sequence[Point]) -> Pairing:
        """:param here: a variant in one cell; ``baseline``: likewise."""
        old, new = ({one.host: one.runs for one in side} for side in (baseline, here))
        known = self._known.get((here[0].cell, here[0].direction, here[0].variant, frozenset(old), frozenset(new)))
        return known or pair(METRICS["iops"], old, new, self._keys, self.answer.levels)

    def keeps_as_much(self, baseline: t.Sequence[Point], here: t.Sequence[Point]) -> bool:
        """Whether a variant keeps what the baseline keeps, on the hosts at hand."""
        base, own = (self._safety.of(frozenset(one.host for one in side), side[0].variant) for side in (baseline, here))
        return is_allowed(own, base, needs_no_flush(here[0].direction, here[0].first))


def _cell(here: t.Sequence[Point], baseline: t.Sequence[Point] | None, merged: t.Mapping[str, float | None], compare: _Comparisons) -> TableCell:
    iops = [one.iops for one in here if one.iops is not None]
    latency = merged if len(here) > 1 else {rank.name: here[0].latency.get(rank.name) for rank in SHOWN}
    variant = here[0].variant
    comparison, reason, better, keeps, same_hosts = None, "", False, True, True
    if baseline is not None and variant != compare.answer.baseline:
        if (here[0].cell, here[0].direction) in compare.unsettled:
            reason = UNSETTLED_MEAN
        else:
            found = compare.pairing(baseline, here)
            comparison, reason, same_hosts = found.comparison, found.reason, found.same_hosts
            better = same_hosts and found.verdict == "better"
            keeps = compare.keeps_as_much(baseline, here)
    return TableCell(
        iops=median(iops),
        bandwidth=median(one.bandwidth for one in here),
        iops_low=min(iops, default=None),
        iops_high=max(iops, default=None),
        latency=latency,
        hosts=len(here),
        state=max((one.state for one in here), key=STATES.index),
        verdict=_worst_verdict(here, compare.disproved),
        hidden=tuple(name for name, value in latency.items() if value is None and any(name in one.hidden for one in here)),
        comparison=comparison,
        reason=reason,
        is_better=better and keeps,
        is_risky=better and not keeps,
        same_hosts=same_hosts,
    )


def _worst_verdict(here: t.Sequence[Point], disproved: t.Container[str]) -> str:
    verdicts = {verdict or "unknown" for one in here for run in one.runs for verdict in (run.verdict_before, run.verdict_after)}
    verdicts |= {"unknown" for one in here if one.host in disproved}
    return next((one for one in ("at_risk", "unknown") if one in verdicts), "durable")


def _load(one: t.Any) -> str:
    parts = [counted(one.numjobs, "job") if one.numjobs else "", f"queue depth {one.iodepth}" if one.iodepth else ""]
    return "".join(f", {part}" for part in parts if part)
