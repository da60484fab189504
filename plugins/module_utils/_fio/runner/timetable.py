# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long an order still takes, as far as that can be said. Pure."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import pauses
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.search import most_likely

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import Order, RunStep

#: What a cell takes beside its job, in seconds.
_BESIDE = 1.0


def seconds_of(step: RunStep) -> float:
    """What a step takes: what is known of its jobs, and its fixed pause. A job without a limit counts as nothing."""
    longest = max(asked.cell.job.longest or 0.0 for asked in step.cells) + _BESIDE
    count = most_likely(step.search) if step.search else (step.rounds.window + step.rounds.most) / 2 if step.rounds else 1
    pause = step.pause.seconds if step.pause and step.pause.kind == pauses.FIXED else 0.0
    return longest * count + pause


def seconds_left(order: Order) -> list[float]:
    """From the beginning of each step to the end of all; a timetable stretches what is shorter than it says."""
    starts: list[float] = []
    now, segment_at = 0.0, 0.0
    for step in order.steps:
        if step.barrier:
            segment_at = now
        if step.offset is not None:
            now = max(now, segment_at + step.offset)
        starts.append(now)
        now += seconds_of(step)
    return [now - start for start in starts]
