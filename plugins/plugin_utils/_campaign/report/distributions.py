# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Latencies of every I/O of a cell, from the added bins of hosts of one class: never from averages of percentiles."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_tables import AddedHistogram, merge_histograms
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import Histogram, percentile_values, samples_needed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.host_classes import HostClass
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows

#: What is drawn, as far as there are I/Os enough.
PERCENTS = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.995, 99.999)


@dataclass(frozen=True)
class Distribution:
    """One variant of one cell on the hosts of one class.

    :param label: of the class.
    :param direction: ``sync`` for the syncs of writes.
    :param hosts: how many were added; ``total``: I/Os.
    :param values: (percent, ns), ascending, only what is known well enough.
    """

    label: str
    hosts: int
    variant: str
    cell: str
    direction: str
    total: int
    values: tuple[tuple[float, float], ...]

    def at(self, percent: float) -> float | None:
        """ns."""
        return dict(self.values).get(percent)


def distributions_of(rows: Rows, classes: t.Sequence[HostClass]) -> list[Distribution]:
    """A cell whose hosts ran different jobs, or whose latencies are of different kinds, has none.

    :param classes: those of the rows.
    """
    jobs = _jobs(rows)
    order = {name: place for place, name in enumerate(rows.variants)}
    kept = [
        (key, found)
        for key, found in _of_classes(rows).items()
        if len(found.kinds) == 1 and not is_probe(key[2]) and len(jobs.get((key[1], key[2]), ())) <= 1 and key[1] in order
    ]
    kept.sort(key=lambda one: (one[0][0], natural(one[0][2]), one[0][3], order[one[0][1]]))
    return [
        Distribution(classes[place].label, len({host for host, _cell in found.members}), variant, cell, direction, found.bins.total, _known(found.bins))
        for (place, variant, cell, direction), found in kept
    ]


def _of_classes(rows: Rows) -> dict[tuple[t.Any, ...], AddedHistogram]:
    """By class, variant, cell and direction."""
    groups: dict[tuple[t.Any, ...], list[AddedHistogram]] = {}
    for (place, variant, cell, _repeat, direction), found in rows.added.items():
        groups.setdefault((place, variant, cell, direction), []).append(found)
    return {key: merge_histograms(found) for key, found in groups.items()}


def _jobs(rows: Rows) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for one in rows.measurements:
        if one.workload_sha256 is not None:
            found.setdefault((one.variant, one.cell), set()).add(one.workload_sha256)
    return found


def _known(of: Histogram) -> tuple[tuple[float, float], ...]:
    values = percentile_values(of, PERCENTS)
    return tuple((percent, float(value)) for percent, value in zip(PERCENTS, values) if of.total >= samples_needed(percent))
