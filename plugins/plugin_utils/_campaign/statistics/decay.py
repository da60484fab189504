# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a series comes nearer and nearer to a level, as a fresh SSD or a cache that fills does.

``level + distance * exp(-time / time_constant)`` is fitted by least squares. It describes a series if it leaves clearly less than
the levels of the series, and than a straight line, do: it costs as much as one change.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import noise_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.segments import SAME_LEVEL, SHORTEST, levels_along, misfit, segments_of

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.noise import Noise
    from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.segments import Segment

#: Time constants that are tried, in each of two rounds.
_TRIED = 48

#: It must explain so many squares of the noise more than anything else does: three standard deviations.
_CLEARLY = 9.0

#: If it leaves no more than this share of the scatter, what it leaves is the noise: a decay within a minute changes so much from one second
#: to the next that the differences of neighbours are those of the decay.
_LEAVES = 0.1


@dataclass(frozen=True)
class Decay:
    """An approach to a level.

    :param time_constant: in values: after it 37 % of the distance are left.
    :param start: where the series begins, ``level``: where it goes to, both in the unit of the series.
    """

    time_constant: float
    start: float
    level: float

    @property
    def settled(self) -> float:
        """Values from the start until it is within 5 % of the level."""
        far = abs(self.start - self.level) / (SAME_LEVEL * self.level)
        return self.time_constant * math.log(far) if far > 1 else 0.0


def decay_of(series: NDArray[t.Any], segments: t.Sequence[Segment], line: NDArray[t.Any], noise: Noise, floor: float) -> Decay | None:
    """The decay of a series, if that describes it best.

    :param series: shape (n,), without spikes and stalls.
    :param segments: its levels.
    :param line: the straight line through it, shape (n,).
    :param floor: the minimum standard deviation, in the unit of the series.
    """
    # One that takes longer than the run has not shown where it goes to.
    longest = float(series.size)
    tried = np.geomspace(SHORTEST, longest, _TRIED)
    near = tried[1] / tried[0]
    for _round in range(2):
        time_constant, fitted = _best(series, tried)
        tried = np.geomspace(time_constant / near, min(time_constant * near, longest), _TRIED)
    shape = np.exp(-(np.arange(series.size) + 0.5) / time_constant)
    distance = float(fitted[0] - fitted[-1]) / float(shape[0] - shape[-1])
    level = float(fitted[-1]) - distance * float(shape[-1])
    found = Decay(time_constant, level + distance, level)
    if float(((series - fitted) ** 2).sum()) <= _LEAVES * float(((series - series.mean()) ** 2).sum()):
        left = noise_of(series - fitted, floor)
        if left.long_run < noise.long_run:
            noise, segments = left, segments_of(series, left)
    others = min(misfit(series, levels_along(segments), noise, len(segments) - 1), misfit(series, line, noise, 1))
    is_it = (
        min(found.start, found.level) > 0
        and time_constant < 0.98 * longest
        and abs(float(fitted[-1] - fitted[0])) >= SAME_LEVEL * float(fitted.max())
        and misfit(series, fitted, noise, 1) < others - _CLEARLY
    )
    return found if is_it else None


def _best(series: NDArray[t.Any], tried: NDArray[t.Any]) -> tuple[float, NDArray[t.Any]]:
    """The time constant with the least squares, and the series as it describes it."""
    shapes = np.exp(-(np.arange(series.size) + 0.5) / tried[:, None])
    shapes = shapes - shapes.mean(axis=1, keepdims=True)
    along, squares = shapes @ (series - series.mean()), np.einsum("ij,ij->i", shapes, shapes)
    best = int(np.argmax(along**2 / squares))
    return float(tried[best]), series.mean() + along[best] / squares[best] * shapes[best]
