# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The error that each look at one mean may spend, where repeats are added until it is decided. Pure. :mod:`looks` is for ranks.

The sum after n of N repeats is (n / N)^2 of the whole (Kim and DeMets 1987). What a look may spend follows from the joint distribution of all looks
(Armitage, McPherson and Rowe 1969).
"""

from __future__ import annotations

import functools
import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import scipy_special

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

_POWER = 2

#: Points of the integration, and standard deviations that it covers.
_POINTS, _WIDTH = 300, 9.0


@functools.lru_cache(maxsize=256)
def nominal_errors(information: tuple[float, ...], error: float, first: int) -> tuple[float, ...]:
    """The one-sided error that each look takes for itself; 0 before the ``first``, counted from 1.

    :param information: that the mean has after each look, as a number of independent repeats; rising.
    :param error: of all looks together.
    """
    looks = len(information)
    found, spent = [0.0] * (first - 1), 0.0
    edges: NDArray[t.Any] | None = None
    for look in range(first, looks + 1):
        allowed, now = error * (look / looks) ** _POWER, information[look - 1]
        if edges is None:
            limit = float(-scipy_special.ndtri(allowed)) * math.sqrt(now)
            edges = _grid(limit, information)
            density = _normal(edges, now)
        else:
            width = now - information[look - 2]
            limit = _limit(edges, density, width, allowed - spent, information)
            further = _grid(limit, information)
            density = (density * _weights(edges)) @ _normal(further[None, :] - edges[:, None], width)
            edges = further
        spent = allowed
        found.append(float(scipy_special.ndtr(-limit / math.sqrt(now))))
    return tuple(found)


def _grid(limit: float, information: t.Sequence[float]) -> NDArray[t.Any]:
    """Scores that have not been decided."""
    return np.linspace(-_WIDTH * math.sqrt(information[-1]), limit, _POINTS)


def _weights(edges: NDArray[t.Any]) -> NDArray[t.Any]:
    weights = np.full(edges.size, edges[1] - edges[0])
    weights[[0, -1]] /= 2
    return weights


def _normal(values: NDArray[t.Any], variance: float) -> NDArray[t.Any]:
    return np.exp(-(values**2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)


def _limit(edges: NDArray[t.Any], density: NDArray[t.Any], width: float, allowed: float, information: t.Sequence[float]) -> float:
    """The score that is exceeded with the probability ``allowed`` after one more repeat."""
    limits = np.linspace(0, _WIDTH * math.sqrt(information[-1]), 2 * _POINTS)
    exceeded = (density * _weights(edges)) @ scipy_special.ndtr((edges[:, None] - limits[None, :]) / math.sqrt(width))
    return float(np.interp(-allowed, -exceeded, limits))
