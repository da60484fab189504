# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Latencies of every I/O of a cell, from the added bins of hosts of one class: never from averages of percentiles."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.layout import natural
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.deciding import is_probe
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.from_tables import AddedHistogram, merge_histograms
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import Histogram, percentile_values, samples_needed

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import HostClass, Rows

#: What is drawn, as far as there are I/Os enough.
PERCENTS = (1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 98.0, 99.0, 99.5, 99.8, 99.9, 99.95, 99.98, 99.99, 99.995, 99.999)


@dataclass(frozen=True)
class Distribution:
    """One variant of one cell on the hosts of one class.

    :param label: of the class.
    :param direction: ``sync`` for the syncs of writes.
    :param hosts: how many were added; ``total``: I/Os.
    :param values: (percent, ns), ascending, only what is known well enough.
    :param of: how many hosts measured the cell in any variant; ``hosts`` are those that did in every variant.
    :param is_shared: whether the other variants are of the same hosts.
    """

    label: str
    hosts: int
    variant: str
    cell: str
    direction: str
    total: int
    values: tuple[tuple[float, float], ...]
    of: int = 0
    is_shared: bool = True

    @property
    def who(self) -> str:
        """The class, and how many of its hosts these are."""
        return f"{self.label}: {self.hosts} of {self.of}" if 0 < self.hosts < self.of else self.label

    def at(self, percent: float) -> float | None:
        """ns."""
        return dict(self.values).get(percent)


def distributions_of(rows: Rows, classes: t.Sequence[HostClass]) -> list[Distribution]:
    """On the hosts that measured a cell in every variant; on its own hosts, where there are none.

    A cell whose hosts ran different jobs, or whose latencies are of different kinds, has none.

    :param classes: those of the rows.
    """
    jobs = _jobs(rows)
    groups: dict[tuple[int, str, str], _Parts] = {}
    for (place, variant, cell, direction), parts in _of_classes(rows, classes).items():
        if variant in rows.variants and not is_probe(cell) and len(jobs.get((variant, cell), ())) <= 1:
            groups.setdefault((place, cell, direction), {})[variant] = parts
    found = []
    for (place, cell, direction), by_variant in sorted(groups.items(), key=lambda item: (item[0][0], natural(item[0][1]), item[0][2])):
        shared = _shared_parts(by_variant)
        every = len({host for parts in by_variant.values() for one in parts.values() for host in _hosts(one)})
        for variant in sorted(by_variant, key=rows.variants.index):
            added = merge_histograms([one for part, one in by_variant[variant].items() if not shared or part in shared])
            if len(added.kinds) == 1:
                of = classes[place].label, len(_hosts(added)), variant, cell, direction
                found.append(Distribution(*of, added.bins.total, _known(added.bins), every, bool(shared)))
    return found


#: By variant and number of a part of a class.
_Parts = t.Dict[str, t.Dict[int, AddedHistogram]]


def _shared_parts(by_variant: _Parts) -> set[int]:
    """The parts of a class that have the same hosts in every variant."""
    common = set.intersection(*(set(parts) for parts in by_variant.values()))
    return {part for part in common if len({_hosts(parts[part]) for parts in by_variant.values()}) == 1}


def _hosts(of: AddedHistogram) -> frozenset[str]:
    return frozenset(host for host, _cell in of.members)


def _of_classes(rows: Rows, classes: t.Sequence[HostClass]) -> dict[tuple[int, str, str, str], dict[int, AddedHistogram]]:
    """By class, variant, cell and direction the histograms of the parts of the class."""
    class_of = {host: place for place, one in enumerate(classes) for host in one.hosts}
    groups: dict[tuple[int, str, str, str], dict[int, list[AddedHistogram]]] = {}
    for (part, variant, cell, _repeat, direction), found in rows.added.items():
        place = class_of[min(found.members)[0]]
        groups.setdefault((place, variant, cell, direction), {}).setdefault(part, []).append(found)
    return {key: {part: merge_histograms(found) for part, found in parts.items()} for key, parts in groups.items()}


def _jobs(rows: Rows) -> dict[tuple[str, str], set[str]]:
    found: dict[tuple[str, str], set[str]] = {}
    for one in rows.measurements:
        if one.workload_sha256 is not None:
            found.setdefault((one.variant, one.cell), set()).add(one.workload_sha256)
    return found


def _known(of: Histogram) -> tuple[tuple[float, float], ...]:
    values = percentile_values(of, PERCENTS)
    return tuple((percent, float(value)) for percent, value in zip(PERCENTS, values) if of.total >= samples_needed(percent))
