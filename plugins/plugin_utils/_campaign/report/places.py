# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""What was measured where: the drives that all variants have in common, and targets of one host apart. Pure."""

from __future__ import annotations

import functools
import typing as t

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

UNKNOWN_MODEL = "unknown model"

#: Host, cell and direction.
PlaceKey = t.Tuple[str, str, str]


def key_of(one: Point) -> PlaceKey:
    return one.host, one.cell, one.direction


def backing_models(points: t.Iterable[Point]) -> dict[PlaceKey, str]:
    """The drives that every variant has: an SSD cache adds one."""
    seen: dict[PlaceKey, dict[str, None]] = {}
    for one in points:
        seen.setdefault(key_of(one), {})[one.first.model or UNKNOWN_MODEL] = None
    return {key: _common_models(tuple(models)) for key, models in seen.items()}


@functools.lru_cache(maxsize=1024)
def _common_models(of_variants: tuple[str, ...]) -> str:
    """Those that all have; of the first if none is common."""
    models = [frozenset(one.split(", ")) for one in of_variants]
    return ", ".join(sorted(frozenset.intersection(*models) or models[0]))


def places(points: t.Sequence[Point]) -> dict[PlaceKey, str]:
    """What the figures of a cell may be put together with: those of the same drives, and of the same target where a host measured several."""
    models = backing_models(points)
    targets: dict[str, set[str | None]] = {}
    for one in points:
        targets.setdefault(one.host, set()).add(one.first.target)
    several = any(len(paths) > 1 for paths in targets.values())
    return {key_of(one): f"{models[key_of(one)]}, {one.first.target}" if several else models[key_of(one)] for one in points}
