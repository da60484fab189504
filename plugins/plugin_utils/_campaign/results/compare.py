# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What may be said of two variants on one host: ratios of the medians of their repeats, where the two are comparable. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import MEASURED, plain

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.store import Campaign, CellRecord
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Row

#: With fewer repeats on either side no rank test can reach 5 % (3 against 3: 0.10; 4 against 4: 0.029).
REPEATS_FOR_A_CLAIM = 4

#: Options of a job that say where it ran or how its output is kept, not what the load was.
_PLACE_OPTIONS = frozenset({"filename", "directory", "allow_file_create", "description", "write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log"})


@dataclass(frozen=True)
class Ratio:
    """One point of one host in one variant against the baseline.

    :param ratio: median IOPS against the baseline's; ``None`` if it cannot be said, and ``note`` says why.
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


def ratios_of(campaign: Campaign, rows: t.Sequence[Row], baseline: str = "") -> list[Ratio]:
    """Every other variant against the baseline (the first one planned unless named), host by host, cell by cell."""
    if len(campaign.variants) < 2:
        return []
    base = baseline or campaign.variants[0]
    points = _points(campaign)
    by_point = {(row.host, row.variant, row.cell, row.direction): row for row in rows}
    ratios = []
    for row in rows:
        if row.variant == base or not row.direction:
            continue
        first = by_point.get((row.host, base, row.cell, row.direction))
        differences = _differences(points.get((row.host, base, row.cell), []), points[row.host, row.variant, row.cell])
        ratios.append(_ratio(row, first, base, differences))
    return ratios


def _points(campaign: Campaign) -> dict[tuple[str, str, str], list[CellRecord]]:
    points: dict[tuple[str, str, str], list[CellRecord]] = {}
    for record in campaign.cells:
        points.setdefault((record.host, record.key.variant, record.key.cell), []).append(record)
    return points


def _ratio(row: Row, first: Row | None, base: str, differences: t.Sequence[str]) -> Ratio:
    def sentence(ratio: float | None, note: str) -> Ratio:
        return Ratio(row.host, row.cell, row.direction, base, row.variant, ratio, note)

    if first is None or not first.iops or row.iops is None:
        without = base if first is None or not first.iops else row.variant
        return sentence(None, f"no number of {without}")
    if differences:
        return sentence(None, "not comparable: " + "; ".join(differences))
    counts = f"{first.runs} and {row.runs} repeats"
    if min(first.runs, row.runs) < REPEATS_FOR_A_CLAIM:
        return sentence(row.iops / first.iops, f"{counts}: fewer than {REPEATS_FOR_A_CLAIM}, no significance claimed")
    apart = max(first.iops_of_runs) < min(row.iops_of_runs) or max(row.iops_of_runs) < min(first.iops_of_runs)
    return sentence(row.iops / first.iops, f"{counts}, " + ("no value of one is among the other's" if apart else "their values overlap"))


def _differences(one: t.Sequence[CellRecord], other: t.Sequence[CellRecord]) -> list[str]:
    """What makes two points incomparable. The stack is left out: it is what the variants differ in."""
    keys = [_comparison_key(record) for record in one], [_comparison_key(record) for record in other]
    names = list(dict.fromkeys(name for key in (*keys[0], *keys[1]) for name in key))
    differences = []
    for name in names:
        sides = [list(dict.fromkeys(key.get(name, "unset") for key in side)) for side in keys]
        if all(sides) and (len({*sides[0], *sides[1]}) > 1):
            differences.append(f"{name} {', '.join(sides[0])} / {', '.join(sides[1])}")
    return differences


def _comparison_key(record: CellRecord) -> dict[str, str]:
    """What must be equal in two measurements that are compared; nothing of a cell without numbers."""
    if record.state not in MEASURED:
        return {}
    key = {label: plain(record.meta.get(name), 40) for name, label in (("behaviour_class", "fio behaviour"), ("fio_version", "fio"), ("kernel", "kernel"))}
    key.update({plain(option, 30): plain(value, 40) for option, value in sorted(record.job.items()) if option not in _PLACE_OPTIONS})
    return key
