# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Heat maps of one workload side by side: every variant on one scale, and the ratio of each to the baseline. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import figure, span, times

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.loads import HeatMap
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.columns import Rate

_Value = t.TypeVar("_Value")

Grid = t.Tuple[t.Tuple[t.Optional[float], ...], ...]


@dataclass(frozen=True)
class RatioMap:
    """IOPS of a variant by those of the baseline, in the blocks and loads of its group; ``None`` where they were not measured on the same hosts."""

    variant: str
    ratios: Grid
    title: str


@dataclass(frozen=True)
class HeatGroup:
    """One workload.

    :param maps: its variants, all with the same blocks and loads.
    :param titles: the finding of each, and which hosts are left out.
    :param low: of the whole group, ``high`` too: the ends of its one scale.
    """

    workload: str
    direction: str
    load: str
    blocks: tuple[int, ...]
    loads: tuple[int, ...]
    variants: tuple[str, ...]
    maps: tuple[Grid, ...]
    titles: tuple[str, ...]
    low: float
    high: float
    ratios: tuple[RatioMap, ...]
    rate: Rate

    @property
    def title(self) -> str:
        return f"{self.workload} ({self.direction}): {figure(self.low)} to {figure(self.high)} {self.rate.unit}"


def groups_of(maps: t.Sequence[HeatMap], baseline: str) -> list[HeatGroup]:
    """Maps of one workload together, in their order."""
    groups: dict[tuple[str, str], list[HeatMap]] = {}
    for one in maps:
        groups.setdefault((one.workload, one.direction), []).append(one)
    return [_group(members, baseline) for members in groups.values()]


def _group(members: t.Sequence[HeatMap], baseline: str) -> HeatGroup:
    blocks = tuple(sorted({block for one in members for block in one.blocks}))
    loads = tuple(sorted({load for one in members for load in one.loads}))
    grids = {one.variant: _grid(one, one.iops, blocks, loads) for one in members}
    hosts = {one.variant: _grid(one, one.hosts, blocks, loads) for one in members}
    known = [value for grid in grids.values() for row in grid for value in row if value]
    first = members[0]
    ratios = tuple(_ratio_map(variant, grids, hosts, baseline) for variant in grids if baseline in grids and variant != baseline)
    load = first.load if len({one.load for one in members}) == 1 else "jobs x queue depth"
    titles = (*(one.title for one in members), *([first.note] if first.note else []))
    return HeatGroup(
        first.workload, first.direction, load, blocks, loads, tuple(grids), tuple(grids.values()), titles, min(known), max(known), ratios, first.rate
    )


def _grid(one: HeatMap, rows: t.Sequence[t.Sequence[_Value]], blocks: t.Sequence[int], loads: t.Sequence[int]) -> tuple[tuple[_Value | None, ...], ...]:
    values = {(block, load): value for block, row in zip(one.blocks, rows) for load, value in zip(one.loads, row)}
    return tuple(tuple(values.get((block, load)) for load in loads) for block in blocks)


def _ratio_map(variant: str, grids: t.Mapping[str, Grid], hosts: t.Mapping[str, t.Any], baseline: str) -> RatioMap:
    ratios = tuple(
        tuple(new / old if new is not None and old and own == others else None for new, old, own, others in zip(*row))
        for row in zip(grids[variant], grids[baseline], hosts[variant], hosts[baseline])
    )
    known = [value for row in ratios for value in row if value is not None]
    about = f"{variant} by {baseline}"
    if not known:
        return RatioMap(variant, ratios, f"{about}: no block size and load was measured in both on the same hosts")
    # Differences of the last digit are those of the arithmetic.
    ends = f"{span(min(known), max(known))} x" if times(min(known)) != times(max(known)) else times(known[0])
    return RatioMap(variant, ratios, f"{about}: {ends}")
