# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How much the repeats of a cell vary, and whether they are enough.

Standard library only: the terminal shows it on controllers without numpy too.
"""

from __future__ import annotations

import math
import statistics
import typing as t
from dataclasses import dataclass

#: With three repeats on each side p cannot be under 0.10, with four it can be 0.029.
FEWEST_REPEATS = 4

#: Repeats whose standard deviation is above this share of their mean are noisy.
NOISE_GATE = 0.05

#: Repeats that may be added to quieten a cell: with more, what disturbs it has to be found.
EXTRA_REPEATS = 5


@dataclass(frozen=True)
class NoiseGate:
    """Whether repeats are quiet enough.

    :param state: ``quiet``, ``repeat`` (measure ``more`` times), ``noisy`` (no repeats are left), ``too_few`` (the same, never measured twice).
    :param noise: coefficient of variation; ``None`` with fewer than two repeats or a mean of 0.
    :param gate: the share it was held against, to be kept with the result.
    """

    state: str
    noise: float | None
    gate: float
    more: int

    @property
    def is_noisy(self) -> bool:
        return self.noise is not None and self.noise > self.gate


def noise_gate(repeats: t.Sequence[float], *, gate: float = NOISE_GATE, planned: int = FEWEST_REPEATS, extra: int = EXTRA_REPEATS) -> NoiseGate:
    """Whether a cell was repeated often enough for its noise.

    :param repeats: one value for each repeat that was measured; those that failed are no noise and not in it.
    :param planned: repeats that are measured in any case.
    :param extra: repeats that may be added to them.
    """
    return gate_of(coefficient_of_variation(repeats), len(repeats), gate=gate, planned=planned, extra=extra)


def gate_of(noise: float | None, repeats: int, *, gate: float = NOISE_GATE, planned: int = FEWEST_REPEATS, extra: int = EXTRA_REPEATS) -> NoiseGate:
    """The same for a noise that is known, as that of several hosts.

    :param repeats: how many there are, of the host with the fewest.
    """
    if noise is not None and noise <= gate and repeats >= planned:
        return NoiseGate("quiet", noise, gate, 0)
    if repeats < planned + extra:
        return NoiseGate("repeat", noise, gate, max(planned - repeats, 1))
    return NoiseGate("too_few" if noise is None else "noisy", noise, gate, 0)


def coefficient_of_variation(values: t.Sequence[float]) -> float | None:
    """Standard deviation of the sample by its mean; ``None`` of fewer than two values, or with a mean of 0."""
    mean = math.fsum(values) / len(values) if len(values) > 1 else 0.0
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)) / mean if mean else None


def pooled_noise(sides: t.Iterable[t.Sequence[float]]) -> float | None:
    """That of repeats; of several hosts the median, since one noisy host is not a noisy fleet. ``None`` where nothing was repeated."""
    known = [noise for noise in map(coefficient_of_variation, sides) if noise is not None]
    return statistics.median(known) if known else None
