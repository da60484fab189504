# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The percentiles that results have: their names, columns, ranks, and how many I/Os each of them needs. There is no other list of them."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.percentiles import PERCENTS, samples_needed


class Percentile(t.NamedTuple):
    """One percentile of a latency.

    :param name: in reports and options: ``p99.9``.
    :param column: in tables, in ns: ``p999_ns``.
    :param rank: its key in the summary of a measurement: ``99.9``.
    :param needed: fewest I/Os with which it is known well enough to be shown (:func:`samples_needed`).
    """

    name: str
    percent: float
    column: str
    rank: str
    needed: int


def _percentile(percent: float) -> Percentile:
    rank = f"{percent:g}"
    return Percentile(f"p{rank}", percent, f"p{rank.replace('.', '')}_ns", rank, samples_needed(percent))


#: All that a measurement has, in ascending order.
PERCENTILES = tuple(map(_percentile, PERCENTS))

BY_NAME = {one.name: one for one in PERCENTILES}

#: Those that the terminal and the report show, and that sums of several hosts have.
SHOWN = tuple(BY_NAME[name] for name in ("p50", "p99", "p99.9"))
