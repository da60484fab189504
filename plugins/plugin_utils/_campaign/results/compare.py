# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The comparison of variants on one host, as the terminal shows it: ratios of their repeats, and what they show. Pure."""

from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import LibraryMissing
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import METRICS, differences, keys_without
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.pairing import MEASURED_0, pair
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import confidence, span

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Row
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import Comparison


@dataclass(frozen=True)
class Ratio:
    """One point of one host in one variant against the baseline.

    :param ratio: of IOPS, the median of the ratios of each repeat to each of the baseline, as in all comparisons (:mod:`two_variants`); ``None`` if
        not comparable, and ``note`` is why.
    """

    host: str
    cell: str
    direction: str
    baseline: str
    variant: str
    ratio: float | None
    note: str

    def to_dict(self) -> dict[str, t.Any]:
        """Plain data for the result of a task."""
        return dict(vars(self))


def ratios_of(
    variants: t.Sequence[str], rows: t.Sequence[Row], measurements: t.Iterable[Measurement], baseline: str = "", ignore: t.Collection[str] = ()
) -> list[Ratio]:
    """Every other variant against the baseline (the first one planned unless named), host by host, cell by cell.

    :param measurements: those of the rows.
    :param ignore: what may differ between variants, of ``KEYS_OF_VARIANTS``.
    """
    if len(variants) < 2:
        return []
    base = baseline or variants[0]
    keys = keys_without(ignore)
    runs: dict[tuple[str, str, str], list[Measurement]] = {}
    for one in measurements:
        if one.measured:
            runs.setdefault((one.host, one.variant, one.cell), []).append(one)
    by_point = {(row.host, row.variant, row.cell, row.direction): row for row in rows}
    ratios = []
    for row in rows:
        if row.variant == base or not row.direction:
            continue
        first = by_point.get((row.host, base, row.cell, row.direction))
        sides = tuple(runs.get((row.host, variant, row.cell), []) for variant in (base, row.variant))
        ratios.append(Ratio(row.host, row.cell, row.direction, base, row.variant, *_compared(row, first, base, sides, keys)))
    return ratios


def _compared(row: Row, first: Row | None, base: str, sides: tuple[list[Measurement], ...], keys: t.Sequence[str]) -> tuple[float | None, str]:
    """The ratio, and what it shows or why there is none."""
    if first is None or not first.iops or row.iops is None:
        return None, f"no number of {base if first is None or not first.iops else row.variant}"
    different = differences(*sides, keys)
    if different:
        return None, "not comparable: " + "; ".join(different)
    if min(*first.iops_of_runs, *row.iops_of_runs) <= 0:
        return None, f"not comparable: {MEASURED_0}"
    counts = f"{first.runs} and {row.runs} repeats"
    if min(first.runs, row.runs) < FEWEST_REPEATS:
        return _median_ratio(first, row), f"{counts}: fewer than {FEWEST_REPEATS}, no significance claimed"
    old, new = ({row.host: [one for one in side if one.direction == row.direction]} for side in sides)
    try:
        both = pair(METRICS["iops"], old, new, keys)
    except LibraryMissing:
        return _median_ratio(first, row), f"{counts}: no significance claimed, because numpy and scipy are not installed"
    return (None, f"not comparable: {both.reason}") if both.comparison is None else (both.ratio, claim_of(both.comparison))


def _median_ratio(first: Row, row: Row) -> float:
    """As :mod:`two_variants` estimates it, without its libraries, of repeats above 0."""
    return math.exp(statistics.median(math.log(new / old) for old in first.iops_of_runs for new in row.iops_of_runs))


def claim_of(comparison: Comparison) -> str:
    """``better, 1.31 to 1.62, at least 97 %``; why there is no ratio."""
    if comparison.verdict == "not_comparable":
        return f"not comparable: {comparison.reason}"
    found = comparison.interval
    between = f", {span(found.low, found.high)}, {confidence(found.confidence)}" if found else ""
    return comparison.verdict.replace("_", " ") + between
