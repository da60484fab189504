# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A sweep whose truth is known: repeats are drawn, and variants are measured again as the sweep decides. For tests and the benchmark."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.answer import answer_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.points import points_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import Design, progress_after
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement


class Outcome(t.NamedTuple):
    """:param winner: the variant that is recommended, if any. :param repeats: of each variant. :param closed: by variant, with the reason."""

    winner: str | None
    repeats: dict[str, int]
    closed: dict[str, t.Any]

    @property
    def steps(self) -> int:
        return sum(self.repeats.values())


def swept(draw: t.Callable[[], float], truth: t.Mapping[str, float], design: Design, *, hosts: int = 1) -> Outcome:
    """One sweep.

    :param draw: the error of one repeat, around 1.
    :param truth: the speed of each variant; the first is the baseline.
    """
    measured: list[t.Any] = []
    repeats = dict.fromkeys(truth, 0)
    closed: dict[str, t.Any] = {}
    for repeat in range(1, design.last + 1):
        for place, name in enumerate(truth):
            if name not in closed:
                repeats[name] = repeat
                for host in range(hosts):
                    measured.append(measurement(f"node{host}", name, repeat=repeat, iops=1000 * truth[name] * draw(), started=1e9 + place))
        if design.is_sequential and repeat >= design.in_any_case:
            [progress] = progress_after(Rows("simulated", measured), design, repeat)
            closed = dict(progress.closed)
            if not progress.open:
                break
    [workload] = answer_of(Rows("simulated", measured), points_of(measured), levels=design.levels).workloads
    return Outcome(workload.recommended, repeats, closed)
