# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much a series scatters by itself, whatever its level does, when its noise is autocorrelated.

The mean of n values of independent noise is uncertain by sigma / sqrt(n); where each value takes the share rho of its
neighbour along (an autoregressive series of first order), by sqrt((1 + rho) / (1 - rho)) times that. Both are measured on
differences between neighbours, of which a step in the series touches one only, and that one is left out as an outlier.

Averages of such a series are no autoregressive series of first order: their correlation does not show its autocorrelation. So a long
series is not measured on averages of one length. Half the mean square of the difference of neighbouring averages (the variance
of Allan 1966) is taken for lengths of 1, 2, 4... values, and white noise plus one autoregressive process is fitted to all of
them: what the process must be follows from the exact variance of its averages, at whatever length they are used afterwards.
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

#: The same for averages of five, of which neighbours touch and so are similar even where the memory is short.
_LONGEST_MEMORY_OF_BLOCKS = 0.7

#: Noise is estimated once more in averages of so many values, if at least so many averages come of it; and their memory, if that many.
_BLOCK, _FEWEST_BLOCKS, _BLOCKS = 5, 10, 20

#: From so many values on the model is fitted to averages of all lengths: below, too few of them are long enough.
_MODELLED = 1200

#: Fewest averages of one length for that, and how many time constants are tried.
_FEWEST_AVERAGES, _TIME_CONSTANTS = 30, 48

#: A memory must explain so much more of the scatter than white noise does: the squares of a relative error are about 3 for each length.
_REMEMBERS = 9.0

#: Fewest values around a trend, the degree of its polynomial, and the share of the scatter that it must explain.
_FEWEST_AROUND, _DEGREE, _EXPLAINED = 30, 3, 0.8

#: Two parts are one if the angle between them is less than this (its squared sine).
_ALIKE = 1e-9


@dataclass(frozen=True)
class Noise:
    """Noise around whatever level a series has.

    :param sigma: standard deviation of one value, in the unit of the series.
    :param rho: correlation of neighbours, 0 to 0.95.
    :param long_run: standard deviation of a mean of n values times sqrt(n), for large n: what a change must exceed.
    """

    sigma: float
    rho: float
    long_run: float

    def of_means(self, size: int, floor: float) -> Noise:
        """The noise of averages of ``size`` values each, which cover more than the memory of the noise.

        :param floor: the minimum standard deviation, in the unit of the series.
        """
        if size == 1:
            return self
        long_run = max(self.long_run / math.sqrt(size), floor)
        return Noise(min(self.sigma, long_run), 0.0, long_run)


def noise_of(series: NDArray[t.Any], floor: float) -> Noise:
    """The noise of a series.

    :param series: shape (n,), n >= 4.
    :param floor: the minimum standard deviation, in the unit of the series: quantised series appear noiseless.
    """
    sigma, rho = _of_differences(series, _LONGEST_MEMORY)
    if series.size >= _MODELLED:
        return Noise(max(sigma, floor), rho, max(_fitted_long_run(series), floor))
    long_run = max(sigma, floor) * inflation(rho)
    blocks = series.size // _BLOCK
    if blocks >= _FEWEST_BLOCKS:
        # Noise with a long memory below white noise shows only here. The correlation of averages cannot be estimated from few of them.
        block_sigma, block_rho = _of_differences(block_means(series, _BLOCK), _LONGEST_MEMORY_OF_BLOCKS if blocks >= _BLOCKS else 0.0)
        long_run = max(long_run, block_sigma * inflation(block_rho) * math.sqrt(_BLOCK))
    return Noise(max(sigma, floor), rho, long_run)


def noise_around_trend(series: NDArray[t.Any], floor: float) -> Noise | None:
    """The noise around a smooth trend or one change, if a series has either: what these leave shows the memory of the noise far better than
    the differences of a minute do.

    The trend is a polynomial of third degree. It, or the change, is accepted if it explains most of the scatter, and more of it than one change
    must.

    :param series: shape (n,), without spikes and stalls.
    """
    if series.size < _FEWEST_AROUND:
        return None
    shapes = np.polynomial.legendre.legvander(np.linspace(-1, 1, series.size), _DEGREE)
    trend = shapes @ np.linalg.lstsq(shapes, series, rcond=None)[0]
    found = [_noise_around(series, trend, _DEGREE + 1, floor), _noise_around(series, _one_change(series), 2, floor)]
    return min((one for one in found if one is not None), key=lambda one: one.long_run, default=None)


def _one_change(series: NDArray[t.Any]) -> NDArray[t.Any]:
    """The two levels that leave the least squares, shape (n,)."""
    sums, counts = np.cumsum(series), np.arange(1, series.size)
    before, after = sums[:-1] / counts, (sums[-1] - sums[:-1]) / (series.size - counts)
    explained = (counts * (series.size - counts) * (before - after) ** 2)[_BLOCK - 1 : 1 - _BLOCK]
    at = int(np.argmax(explained)) + _BLOCK
    return np.where(np.arange(series.size) < at, before[at - 1], after[at - 1])


def _noise_around(series: NDArray[t.Any], fitted: NDArray[t.Any], count: int, floor: float) -> Noise | None:
    """The noise that a fit of ``count`` parameters leaves; ``None`` if it explains too little.

    The memory is corrected for what fitting takes away of it (after Kendall 1954); with it the long run follows from the innovations.
    """
    left = series - fitted
    squares, all_squares = float(left @ left), float(((series - series.mean()) ** 2).sum())
    if squares > (1 - _EXPLAINED) * all_squares or all_squares <= 0:
        return None
    rho = max(float(left[1:] @ left[:-1]) / squares, 0.0) if squares > 0 else 0.0
    rho = min(rho + (count + (count + 2) * rho) / series.size, _LONGEST_MEMORY)
    innovations = left[1:] - rho * left[:-1]
    sigma = math.sqrt(float(innovations @ innovations) / max(series.size - 1 - count, 1))
    long_run = max(sigma / (1 - rho), floor)
    if (all_squares - squares) / long_run**2 <= 6 * math.log(series.size):
        return None
    return Noise(max(sigma / math.sqrt(1 - rho**2), floor), rho, long_run)


def inflation(rho: float) -> float:
    """By how much the memory of the noise makes a mean less certain."""
    return math.sqrt((1 + rho) / (1 - rho))


def block_means(series: NDArray[t.Any], size: int) -> NDArray[t.Any]:
    """Averages of ``size`` values each, shape (n // size,); a rest that does not fill one is left out."""
    blocks = series.size // size
    return series[: blocks * size].reshape(blocks, size).mean(axis=1)


def _fitted_long_run(series: NDArray[t.Any]) -> float:
    """The long-run standard deviation of white noise plus one autoregressive process whose averages scatter as those of the series do;
    0 where no average scatters."""
    sizes, found = [], []
    size = 1
    while series.size // size >= _FEWEST_AVERAGES:
        scatter = _half_square(block_means(series, size))
        if scatter > 0:
            sizes.append(size)
            found.append(scatter)
        size *= 2
    if not sizes:
        return 0.0
    lengths, observed = np.array(sizes, dtype=float), np.array(found)
    rho = np.exp(-1 / np.geomspace(0.3, max(lengths[-1], 1.0), _TIME_CONSTANTS))
    # Relative errors, weighted as many averages as there are of a length.
    weight = np.sqrt(series.size / lengths) / observed
    target = weight * observed
    white, red = weight / lengths, weight * _half_squares_of(rho, lengths)
    parts = _two_parts(white, red, target)
    residual = ((target - parts[:, :1] * white - parts[:, 1:] * red) ** 2).sum(axis=1)
    best = int(np.argmin(residual))
    only_white = white @ target / (white @ white)
    if float(((target - only_white * white) ** 2).sum()) - residual[best] < _REMEMBERS:
        return math.sqrt(only_white)
    return math.sqrt(parts[best, 0] + parts[best, 1] * (1 + rho[best]) / (1 - rho[best]))


def _two_parts(white: NDArray[t.Any], red: NDArray[t.Any], target: NDArray[t.Any]) -> NDArray[t.Any]:
    """The least squares of two parts that are not negative, for each row of ``red``; shape (rows, 2)."""
    own, cross, squares = white @ white, red @ white, (red * red).sum(axis=1)
    of_white, of_red = white @ target, red @ target
    determinant = own * squares - cross**2
    # A memory shorter than the averages is white noise once more: the two cannot be distinguished.
    apart = determinant > _ALIKE * own * squares
    parts = np.stack([squares * of_white - cross * of_red, own * of_red - cross * of_white], axis=1) / np.where(apart, determinant, 1.0)[:, None]
    only_white = np.array([of_white / own, 0.0])
    parts = np.where(apart[:, None], parts, only_white)
    only_red = np.stack([np.zeros_like(of_red), of_red / squares], axis=1)
    return np.where(parts[:, 1:] < 0, only_white, np.where(parts[:, :1] < 0, only_red, parts))


def _half_squares_of(rho: NDArray[t.Any], lengths: NDArray[t.Any]) -> NDArray[t.Any]:
    """Half the mean square of the difference of neighbouring averages of an autoregressive process of variance 1; shape (rho, lengths)."""
    rho = rho[:, None]
    kept = rho**lengths
    scale = (lengths * (1 - rho)) ** 2
    variance = (lengths * (1 - rho**2) - 2 * rho * (1 - kept)) / scale
    return variance - rho * (1 - kept) ** 2 / scale


def _half_square(series: NDArray[t.Any]) -> float:
    """Half the mean square of the differences of neighbours, without those that are changes of the level; 0 where most are none."""
    differences = np.diff(series)
    differences = differences - np.median(differences)
    scale = MAD_TO_SIGMA * float(np.median(np.abs(differences)))
    return float(np.mean(differences[np.abs(differences) <= _JUMP * scale] ** 2)) / 2 if scale > 0 else 0.0


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
