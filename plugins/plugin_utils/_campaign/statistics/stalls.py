# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a device stood still for a while: nearly no I/O between two stretches in which there was some."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

#: At most this share of what the series does around it is a stall.
IDLE = 0.05

#: More of the run than this share is a level of its own (one stretch), or what the series is (all of them).
_RARE = 0.1

#: Values on each side that define the series around it.
_AROUND = 15


def stalls_of(series: NDArray[t.Any]) -> tuple[tuple[int, int], ...]:
    """First position and the one after the last of each stall, in order. What begins or ends the series is none: nothing was there before,
    or nothing came back.

    :param series: rates of equal intervals, shape (n,).
    """
    positive = series[series > 0]
    if not positive.size:
        return ()
    idle = np.concatenate(([0], series <= IDLE * np.median(positive), [0])).astype(np.int8)
    turns = np.diff(idle)
    found = [
        (int(first), int(end))
        for first, end in zip(np.flatnonzero(turns == 1), np.flatnonzero(turns == -1))
        if first > 0 and end < series.size and _stands_out(series, int(first), int(end))
    ]
    return tuple(found) if sum(end - first for first, end in found) <= _RARE * series.size else ()


def _stands_out(series: NDArray[t.Any], first: int, end: int) -> bool:
    """Whether a stretch is nearly nothing beside both of its sides: after a cliff a low level is no stall."""
    before, after = series[max(first - _AROUND, 0) : first], series[end : end + _AROUND]
    return float(series[first:end].max()) <= IDLE * min(float(np.median(before)), float(np.median(after)))


def without_stalls(series: NDArray[t.Any], stalls: t.Sequence[tuple[int, int]]) -> NDArray[t.Any]:
    """The series with the values before each stall, mirrored, in its place: their level and their noise. Shape (n,)."""
    if not stalls:
        return series
    filled = series.copy()
    for first, end in stalls:
        length = min(end - first, first)
        # np.resize repeats them where the stall is longer than all that was before it.
        filled[first:end] = np.resize(filled[first - length : first][::-1], end - first)
    return filled
