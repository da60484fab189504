# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One variant beside the baseline, on the hosts that measured both. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import differences, differing_keys
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.fleet import compare_fleet
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import CONFIDENCE

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import Metric
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.fleet import HostRatio
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison


#: A repeat that measured nothing is not left out: without it the others would be all there is.
MEASURED_0 = "a repeat measured 0, of which there is no ratio"


@dataclass(frozen=True)
class Pairing:
    """The comparison of a variant with the baseline.

    :param comparison: ``None`` where ``reason`` is why there is none.
    :param reason: a clause; empty where there is a comparison.
    :param same_hosts: whether hosts are compared with themselves; else one side's hosts with the other's.
    :param values: medians over the compared hosts of baseline and variant, in the unit of the column of the metric.
    :param against: hosts on which the ratio is on the other side of 1, by a difference that matters.
    :param not_compared: hosts whose measurements are not comparable, or too few, with the reason, as ``node2: kernel 6.1 / 6.12``.
    :param ignorable: what ``report_ignore`` has to name so that nothing is left out.
    :param repeats: fewest of a compared host, of baseline and variant.
    :param hosts: the ratio of each host that was compared with itself, lowest first.
    :param unit: what was tested: ``hosts``, or ``repeats`` where they are too few.
    """

    comparison: Comparison | None
    reason: str
    same_hosts: bool
    values: tuple[float | None, float | None]
    against: tuple[HostRatio, ...] = ()
    not_compared: tuple[str, ...] = ()
    ignorable: tuple[str, ...] = ()
    repeats: tuple[int, int] = (0, 0)
    hosts: tuple[HostRatio, ...] = ()
    unit: str = "repeats"

    @property
    def verdict(self) -> str:
        return "not_comparable" if self.comparison is None else self.comparison.verdict

    @property
    def ratio(self) -> float | None:
        """Of the baseline; of the medians where there are too few repeats for an estimate."""
        found = self.comparison
        return None if found is None else found.ratio if found.ratio is not None else found.ratio_of_medians


def pair(
    metric: Metric,
    old: t.Mapping[str, list[Measurement]],
    new: t.Mapping[str, list[Measurement]],
    keys: t.Sequence[str],
    levels: t.Mapping[int, float] | None = None,
) -> Pairing:
    """Two variants by one metric.

    :param old: the measurements of the baseline by host, ``new``: those of the variant.
    :param keys: what must be equal, of ``comparable.KEYS``.
    :param levels: the confidence by the number of repeats, where repeats were added until variants were decided. Only the repeats that both were
        measured in are compared then: the last look at them is the one that decided, and a drift of the host affects both.
    """
    confidence = CONFIDENCE
    if levels:
        shared = min(max((one.repeat for runs in side.values() for one in runs), default=0) for side in (old, new))
        old, new = ({host: [one for one in runs if one.repeat <= shared] for host, runs in side.items()} for side in (old, new))
        confidence = levels.get(min(max(shared, min(levels)), max(levels)), CONFIDENCE)
    both = [host for host in old if host in new]
    sides = {host: (old[host], new[host]) for host in both}
    if not both:
        # Different hosts: nothing cancels out, and the repeats of all hosts of a side are taken together.
        sides = {"": tuple([one for here in side.values() for one in here] for side in (old, new))}  # type: ignore[dict-item]
    usable, not_compared, reasons, ignorable = {}, [], [], []
    for host, (before, after) in sides.items():
        different = differences(before, after, keys)
        values = values_of(before, metric.column), values_of(after, metric.column)
        if different:
            reasons += different
            ignorable += differing_keys(before, after, keys)
            not_compared.append(f"{host}: {'; '.join(different)}" if host else "; ".join(different))
        elif any(0 in side for side in values):
            reasons.append(MEASURED_0)
            not_compared.append(f"{host}: {MEASURED_0}" if host else MEASURED_0)
        elif all(values):
            usable[host] = values
    if not usable:
        reason = "; ".join(dict.fromkeys(reasons)) or _without_numbers(metric, old, new)
        return Pairing(None, reason, bool(both), (None, None), (), tuple(not_compared), tuple(dict.fromkeys(ignorable)))
    found = compare_fleet(usable, higher_is_better=metric.higher_is_better, practical=metric.percent / 100, confidence=confidence)
    short = {host: min(map(len, values)) for host, values in usable.items() if min(map(len, values)) < FEWEST_REPEATS}
    if found.overall.verdict == "not_enough_repeats" and both and 0 < len(short) < len(usable):
        # A host with too few repeats must not keep the others from being compared.
        usable = {host: values for host, values in usable.items() if host not in short}
        not_compared += [f"{host}: {repeats} repeats on a side, at least {FEWEST_REPEATS} are needed" for host, repeats in short.items()]
        found = compare_fleet(usable, higher_is_better=metric.higher_is_better, practical=metric.percent / 100, confidence=confidence)
    medians = median(median(one) for one, _other in usable.values()), median(median(other) for _one, other in usable.values())
    fewest = min(len(one) for one, _other in usable.values()), min(len(other) for _one, other in usable.values())
    return Pairing(
        comparison=found.overall,
        reason="",
        same_hosts=bool(both),
        values=medians,
        against=found.against,
        not_compared=tuple(not_compared),
        ignorable=tuple(dict.fromkeys(ignorable)),
        repeats=fewest,
        hosts=found.hosts if both else (),
        unit=found.unit,
    )


def _without_numbers(metric: Metric, old: t.Mapping[str, list[Measurement]], new: t.Mapping[str, list[Measurement]]) -> str:
    missing = [name for name, side in (("the baseline", old), ("the variant", new)) if not any(side.values())]
    return f"{missing[0]} has no measurement of it" if missing else f"there are too few I/Os for its {metric.column.removesuffix('_ns')}"


def values_of(runs: t.Iterable[Measurement], column: str) -> list[float]:
    """The description of a column."""
    return [value for one in runs if (value := getattr(one, column)) is not None]
