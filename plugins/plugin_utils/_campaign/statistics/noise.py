# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this plugin util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""How much a series scatters by itself, whatever its level does, when its noise remembers what it was.

The mean of n values of independent noise is uncertain by sigma / sqrt(n); where each value takes the share rho of its
neighbour along (an autoregressive series of first order), by sqrt((1 + rho) / (1 - rho)) times that. Both are measured on
differences between neighbours, of which a step in the series touches one only, and that one is left out as an outlier.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np

if t.TYPE_CHECKING:
    from numpy.typing import NDArray

#: From the median absolute deviation to the standard deviation of a normal distribution.
MAD_TO_SIGMA = 1.482602218505602

#: Differences further out than this many standard deviations are changes of the level, not noise.
_JUMP = 4.0

#: Above it a series is as well a random walk, and no length of it would show a change.
_LONGEST_MEMORY = 0.95

#: The same for averages of five, of which neighbours touch and so look alike even where the memory is short.
_LONGEST_MEMORY_OF_BLOCKS = 0.7

#: Noise is looked at once more in averages of so many values, if at least so many averages come of it; and their memory, if that many.
_BLOCK, _FEWEST_BLOCKS, _BLOCKS = 5, 10, 20


@dataclass(frozen=True)
class Noise:
    """Noise around whatever level a series has.

    :param sigma: standard deviation of one value, in the unit of the series.
    :param rho: correlation of neighbours, 0 to 0.95.
    :param long_run: standard deviation of a mean times sqrt(n): what a change must exceed.
    """

    sigma: float
    rho: float
    long_run: float


def noise_of(series: NDArray[t.Any], floor: float) -> Noise:
    """The noise of a series.

    :param series: shape (n,), n >= 4.
    :param floor: the least standard deviation believed, in the unit of the series: quantised series look noiseless.
    """
    sigma, rho = _of_differences(series, _LONGEST_MEMORY)
    long_run = max(sigma, floor) * inflation(rho)
    blocks = series.size // _BLOCK
    if blocks >= _FEWEST_BLOCKS:
        # Noise with a long memory below white noise shows only here. What averages share is not to be told from few of them.
        block_sigma, block_rho = _of_differences(block_means(series, _BLOCK), _LONGEST_MEMORY_OF_BLOCKS if blocks >= _BLOCKS else 0.0)
        long_run = max(long_run, block_sigma * inflation(block_rho) * math.sqrt(_BLOCK))
    return Noise(max(sigma, floor), rho, long_run)


def inflation(rho: float) -> float:
    """By how much the memory of the noise makes a mean less certain."""
    return math.sqrt((1 + rho) / (1 - rho))


def block_means(series: NDArray[t.Any], size: int) -> NDArray[t.Any]:
    """Averages of ``size`` values each, shape (n // size,); a rest that does not fill one is left out."""
    blocks = series.size // size
    return series[: blocks * size].reshape(blocks, size).mean(axis=1)


def _of_differences(series: NDArray[t.Any], longest: float) -> tuple[float, float]:
    """Standard deviation and correlation of neighbours, both from first differences: those have the variance
    2 sigma² (1 - rho), and neighbours among them the correlation -(1 - rho) / 2."""
    differences = np.diff(series)
    differences = differences - np.median(differences)
    scale = MAD_TO_SIGMA * float(np.median(np.abs(differences)))
    if scale <= 0:
        return 0.0, 0.0
    kept = np.abs(differences) <= _JUMP * scale
    inside = differences[kept]
    variance = float(np.mean(inside**2))
    both = kept[:-1] & kept[1:]
    count = int(both.sum())
    if count < 3 or variance <= 0:
        return math.sqrt(variance / 2), 0.0
    products = differences[:-1] * differences[1:]
    rho = 1 + 2 * float(np.mean(products[both])) / variance
    # To the safe side by half its own standard error: too little memory is what invents steps.
    rho = min(max(rho + 0.5 / math.sqrt(count), 0.0), longest)
    return math.sqrt(variance / (2 * (1 - rho))), rho
