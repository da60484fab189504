# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Steady state of rounds, as the SNIA Solid State Storage Performance Test Specification 2.0.2 defines it (2.1.24).

In a window of five rounds the tracked variable (a) keeps within 20 % of its average, largest less smallest, and (b) its best
linear fit within 10 %. After 25 rounds without one the last five are reported, as not steady. fio's ``steadystate=`` is another rule.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.numbers import finite

if t.TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

WINDOW = 5
MOST_ROUNDS = 25
EXCURSION = 0.20
SLOPE = 0.10

#: So that a limit that is met exactly is met in floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class SteadyState:
    """Whether rounds became steady.

    :param state: ``steady``; ``not_steady`` after the last round there may be; ``running`` while there may be more.
    :param first: the first round of the window, from 1, ``last`` its last one; both 0 while there are fewer rounds than a window.
    :param average: mean of the window, in the unit of the rounds.
    :param excursion: largest less smallest of the window, by the average.
    :param slope: the same of the best linear fit.
    """

    state: str
    first: int
    last: int
    average: float
    excursion: float
    slope: float

    @property
    def is_steady(self) -> bool:
        """Whether the window is a steady state."""
        return self.state == "steady"


def steady_state(rounds: ArrayLike, *, most: int = MOST_ROUNDS) -> SteadyState:
    """The first window of five rounds that is steady, else the last one there is.

    :param rounds: the tracked variable of each round (IOPS, or any rate), shape (rounds,), in order.
    :param most: rounds after which it is given up; later ones are ignored.
    :raises BadInput: for values that are no numbers, or negative.
    """
    values = finite(rounds, "rounds")[:most]
    if values.size < WINDOW:
        return SteadyState("not_steady" if values.size >= most else "running", 0, 0, 0.0, 0.0, 0.0)
    windows = np.lib.stride_tricks.sliding_window_view(values, WINDOW)
    average, excursion, slope = _measures(windows)
    # A device that does nothing at all is not steady.
    steady = (average > 0) & (excursion <= EXCURSION + _ROUNDING) & (slope <= SLOPE + _ROUNDING)
    at = int(np.argmax(steady)) if steady.any() else windows.shape[0] - 1
    state = "steady" if steady.any() else "not_steady" if values.size >= most else "running"
    return SteadyState(state, at + 1, at + WINDOW, float(average[at]), float(excursion[at]), float(slope[at]))


def _measures(windows: NDArray[t.Any]) -> tuple[NDArray[t.Any], NDArray[t.Any], NDArray[t.Any]]:
    """Average, excursion and slope of windows of shape (windows, 5), each of shape (windows,)."""
    average = windows.mean(axis=1)
    position = np.arange(WINDOW) - (WINDOW - 1) / 2
    rise = np.abs(windows @ position) / (position @ position) * (WINDOW - 1)
    divisor = np.where(average > 0, average, 1.0)
    return average, np.ptp(windows, axis=1) / divisor, rise / divisor
