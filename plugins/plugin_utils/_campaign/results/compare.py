# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The comparison of two variants on one host: ratios of the medians of their repeats, where the two are comparable. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.comparable import KEYS_OF_VARIANTS, differences
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Row


@dataclass(frozen=True)
class Ratio:
    """One point of one host in one variant against the baseline.

    :param ratio: median IOPS against the baseline's; ``None`` if not comparable, and ``note`` is why.
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


def ratios_of(variants: t.Sequence[str], rows: t.Sequence[Row], measurements: t.Iterable[Measurement], baseline: str = "") -> list[Ratio]:
    """Every other variant against the baseline (the first one planned unless named), host by host, cell by cell.

    :param measurements: those of the rows.
    """
    if len(variants) < 2:
        return []
    base = baseline or variants[0]
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
        sides = (runs.get((row.host, variant, row.cell), []) for variant in (base, row.variant))
        ratios.append(_ratio(row, first, base, differences(*sides, KEYS_OF_VARIANTS)))
    return ratios


def _ratio(row: Row, first: Row | None, base: str, different: t.Sequence[str]) -> Ratio:
    def sentence(ratio: float | None, note: str) -> Ratio:
        return Ratio(row.host, row.cell, row.direction, base, row.variant, ratio, note)

    if first is None or not first.iops or row.iops is None:
        without = base if first is None or not first.iops else row.variant
        return sentence(None, f"no number of {without}")
    if different:
        return sentence(None, "not comparable: " + "; ".join(different))
    counts = f"{first.runs} and {row.runs} repeats"
    if min(first.runs, row.runs) < FEWEST_REPEATS:
        return sentence(row.iops / first.iops, f"{counts}: fewer than {FEWEST_REPEATS}, no significance claimed")
    apart = max(first.iops_of_runs) < min(row.iops_of_runs) or max(row.iops_of_runs) < min(first.iops_of_runs)
    return sentence(row.iops / first.iops, f"{counts}, " + ("no value of one is among the other's" if apart else "their values overlap"))
