# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Percentiles of all I/Os of several hosts, of exactly those that are asked about."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_tables import AddedHistogram, merge_histograms
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import SHOWN
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import median_of_all

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import Point

#: By number of a part of the hosts, variant, cell, repeat and direction.
Added = t.Mapping[t.Tuple[t.Any, ...], AddedHistogram]


class AddedBins:
    """The bins of parts of the hosts.

    :param added: each part has hosts of its own.
    """

    def __init__(self, added: Added) -> None:
        self._of_cells: dict[tuple[str, str, str], dict[int, list[AddedHistogram]]] = {}
        for (_part, variant, cell, repeat, direction), one in added.items():
            self._of_cells.setdefault((variant, cell, direction), {}).setdefault(repeat, []).append(one)

    def percentiles(self, points: t.Sequence[Point]) -> dict[str, float | None]:
        """In ns by name, the median of the repeats. ``None`` where the bins of these hosts are only known together with those of others, where hosts ran
        different jobs or have latencies of different kinds, and where there are too few I/Os.

        :param points: of one variant and direction.
        """
        merged = self._repeats(points)
        return {one.name: median_of_all([repeat.shown(one) for repeat in merged]) if merged else None for one in SHOWN}

    def _repeats(self, points: t.Sequence[Point]) -> list[t.Any]:
        first, hosts = points[0], {one.host for one in points}
        jobs = {run.workload_sha256 for one in points for run in one.runs} - {None}
        if len({one.cell for one in points}) > 1 or len(jobs) > 1:
            return []
        repeats, covered = [], set()
        for parts in self._of_cells.get((first.variant, first.cell, first.direction), {}).values():
            own = [part for part in parts if {host for host, _cell in part.members} <= hosts]
            if own:
                covered.update(host for part in own for host, _cell in part.members)
                repeats.append(merge_histograms(own))
        if covered != hosts or any(len(one.kinds) > 1 for one in repeats):
            return []
        return [one.pooled for one in repeats]
