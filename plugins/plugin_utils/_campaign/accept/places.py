# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The targets of hosts in a campaign, and what was measured of each. Pure."""

from __future__ import annotations

import functools
import typing as t
from dataclasses import dataclass, field

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import Judgement, Requirement
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.percentiles import BY_NAME

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.measurement import Measurement

#: By host, variant, cell, repeat and the name of a requirement.
SharesOfSeconds = t.Mapping[t.Tuple[str, str, str, int, str], float]

#: A reason has the words of a host in it.
_LONGEST = 600


@dataclass
class Place:
    """One target of one host.

    :param suffix: what follows the name of a workload in those of its cells. :param target: the path; the suffix where it is not known.
    :param runs: of each workload, all directions.
    """

    host: str
    suffix: str
    target: str = ""
    runs: dict[str, list[Measurement]] = field(default_factory=dict)

    def of(self, workload: str | None, direction: str | None = None) -> list[Measurement]:
        """Repeats that have numbers and may decide, in their order; of all workloads without a name."""
        runs = [one for name, some in self.runs.items() if workload in (None, name) for one in some]
        return sorted((one for one in runs if one.measured and not one.not_deciding and direction in (None, one.direction)), key=lambda one: one.repeat)

    def without_result(self, workload: str | None) -> str:
        """Why there is none, as a clause."""
        runs = [one for name, some in self.runs.items() if workload in (None, name) for one in some]
        reasons = [one.not_deciding or one.reason or one.state for one in runs if one.not_deciding or not one.measured]
        return reasons[-1] if reasons else f"{workload or 'nothing'} was not measured"

    @property
    def alike(self) -> str:
        """What targets must share to be compared."""
        return next((f"{one.model}, {one.attachment}" for some in self.runs.values() for one in some if one.measured), "")

    def judgement(self, requirement: Requirement, state: str, reason: str, value: float | None = None, **interval: t.Any) -> Judgement:
        found = {"low": None, "high": None, "looks": 0, **interval}
        return Judgement(self.host, plain(self.target, _LONGEST), requirement, state, value, reason=plain(reason, _LONGEST), **found)


def places_of(measurements: t.Iterable[Measurement], workloads: t.Collection[str], hosts: t.Iterable[str] = ()) -> list[Place]:
    """Every target of every host, in the order of their names.

    :param hosts: that are there even if nothing was measured on them.
    """
    workload_of = functools.lru_cache(maxsize=None)(functools.partial(_workload_of, tuple(sorted(workloads, key=len, reverse=True))))
    found: dict[tuple[str, str], Place] = {}
    for one in measurements:
        name = workload_of(one.cell)
        if name is not None:
            suffix = one.cell[len(name) :]
            place = found.setdefault((one.host, suffix), Place(one.host, suffix))
            place.target = one.target or place.target or suffix.removeprefix(".")
            place.runs.setdefault(name, []).append(one)
    for host in {*hosts} - {host for host, _suffix in found}:
        found[host, ""] = Place(host, "")
    return [place for _key, place in sorted(found.items())]


def _workload_of(workloads: t.Sequence[str], cell: str) -> str | None:
    return next((name for name in workloads if cell == name or cell.startswith(f"{name}.")), None)


def value_of(one: Measurement, requirement: Requirement, shares: SharesOfSeconds) -> float | None:
    """The figure of a requirement in base units; ``None`` if the measurement does not have it."""
    if requirement.share is not None:
        value = shares.get((one.host, one.variant, one.cell, one.repeat, requirement.name))
    else:
        value = getattr(one, column_of(requirement))
    return value if value is None or requirement.metric in ("iops", "bandwidth") else value / 1e6


def column_of(requirement: Requirement) -> str:
    """The column of a measurement with the figure."""
    columns = {"iops": "iops", "bandwidth": "bw_bytes", "mean": "lat_mean_ns"}
    return columns.get(requirement.metric or "") or BY_NAME[requirement.metric or ""].column
