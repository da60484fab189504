# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Series as devices make them, seeded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.signal import lfilter


def autoregressive(generator, count, *, sigma, rho=0.0):
    """Noise of which each value takes the share rho of its neighbour along."""
    return lfilter([1], [1, -rho], generator.standard_normal(count + 200) * sigma * np.sqrt(1 - rho * rho))[200:]


def noisy(generator, levels, *, variation, rho=0.0):
    """Levels with noise of that coefficient of variation; nothing is below 0."""
    return np.maximum(levels * (1 + autoregressive(generator, len(levels), sigma=variation, rho=rho)), 0.0)


def fall(count, at, before, after):
    """A cliff at one second."""
    levels = np.full(count, float(before))
    levels[at:] = after
    return levels


def swinging(count, high_for, high, low_for, low):
    """High and low in turn."""
    return np.resize(np.concatenate((np.full(high_for, float(high)), np.full(low_for, float(low)))), count)


def square_wave(count, period, high, low, *, duty=0.7, phase=0.0):
    """High and low in turn, with any period: what a counter that is read every second makes of it."""
    edges = (np.arange(count + 1) + phase) / period
    # High seconds until each edge: whole periods, and what of the last one is high.
    done = (np.floor(edges) * duty + np.minimum(edges % 1, duty)) * period
    return low + (high - low) * np.diff(done)


def decaying(count, start, level, time_constant):
    """Nearer and nearer to a level."""
    return level + (start - level) * np.exp(-np.arange(count) / time_constant)


def stalled(series, stalls):
    """The series with nothing for some seconds: how many, by the first of them."""
    series = series.copy()
    for first, length in stalls.items():
        series[first : first + length] = 0
    return series


#: What was published of devices: name, series of 1 s without noise, and the kind it is.
CASES = {
    "intel_545s": (swinging(300, 25, 2600, 8, 800), "oscillating"),
    "intel_545s_180s": (swinging(180, 25, 2600, 8, 800), "oscillating"),
    "intel_320": (fall(300, 120, 20_000, 14_000), "cliff"),
    "intel_320_60s": (fall(60, 25, 20_000, 14_000), "cliff"),
    "all_flash_array": (fall(1800, 900, 90_000, 28_000), "cliff"),
    "fall_over_a_minute": (np.interp(np.arange(600), [200, 260], [20_000, 10_000]), "cliff"),
    "step_of_10_percent": (fall(300, 100, 10_000, 9_000), "step"),
    "drift_of_20_percent": (np.linspace(11_000, 9_000, 300), "drifting"),
    "waves_of_20_s": (10_000 * (1 + 0.2 * np.sin(np.arange(300) * 2 * np.pi / 20)), "oscillating"),
    "stall_every_30_s": (swinging(300, 29, 10_000, 1, 0), "oscillating"),
    "intel_545s_3600s": (swinging(3600, 25, 2600, 8, 800), "oscillating"),
    "fresh_drive": (decaying(1200, 60_000, 20_000, 400), "decaying"),
    "stall_of_5_s": (stalled(np.full(600, 20_000.0), {100: 5}), "steady"),
    "stall_of_30_s": (stalled(np.full(600, 20_000.0), {100: 30}), "steady"),
    "two_seconds_each": (swinging(300, 2, 12_000, 2, 8_000), "oscillating"),
}


@dataclass(frozen=True)
class Planted:
    """A series of 1 s with a known kind in it.

    :param high: the level that a step, a cliff or a decay begins with; of an oscillation the higher one. ``low``: the other one.
    :param certainty: what is to be found (the change, or 5 % of a level), in standard errors of the means that show it.
    :param place: seconds: the first of the new level, the period, or the time constant.
    :param stalls: lengths by their first second.
    """

    kind: str
    values: np.ndarray
    variation: float
    rho: float
    high: float
    low: float
    certainty: float
    place: float = 0.0
    stalls: dict = field(default_factory=dict)


PLANTED = ("steady", "step", "steady", "oscillating", "cliff", "decaying", "steady", "step", "stalled", "oscillating")

#: Seconds of the shortest and of the longest: three days.
_SHORTEST, _LONGEST = 60, 259_200


def planted(number, seed=20261123):
    """The series of that number, the same every time: lengths of a minute to three days, noise of 1 to 10 % with a memory of 0 to 0.95."""
    generator = np.random.default_rng([seed, number])
    count = round(np.exp(generator.uniform(np.log(_SHORTEST), np.log(_LONGEST))))
    variation, rho = generator.uniform(0.01, 0.1), generator.uniform(0, 0.95)
    of_a_mean = variation * np.sqrt((1 + rho) / (1 - rho) / count)
    kind = PLANTED[number % len(PLANTED)]
    high = low = 10_000.0
    levels, certainty, place, stalls = np.full(count, high), 0.05 / of_a_mean, 0.0, {}
    if kind in ("step", "cliff"):
        before = generator.uniform(0.25, 0.75)
        low = high * (0.85 if kind == "step" else generator.uniform(0.3, 0.7))
        place = round(count * before)
        levels = fall(count, place, high, low)
        if kind == "step" and generator.integers(2):
            levels, high, low = levels[::-1], low, high
            place = count - place
        certainty = abs(1 - min(high, low) / max(high, low)) / (of_a_mean * np.sqrt(1 / before + 1 / (1 - before)))
    elif kind == "oscillating":
        place = np.exp(generator.uniform(np.log(12), np.log(count / 5)))
        duty, low = generator.uniform(0.35, 0.65), high * generator.uniform(0.3, 0.7)
        levels = square_wave(count, place, high, low, duty=duty, phase=generator.uniform(0, place))
        certainty *= np.sqrt(min(duty, 1 - duty))
    elif kind == "decaying":
        place, high = count * generator.uniform(0.05, 0.25), low * generator.uniform(2, 4)
        levels = decaying(count, high, low, place)
    values = noisy(generator, levels, variation=variation, rho=rho)
    if kind == "stalled":
        kind, firsts = "steady", (np.array([0.2, 0.5, 0.8])[: generator.integers(1, 4)] * count).astype(int)
        stalls = {int(first): int(generator.integers(1, max(count // 50, 1) + 1)) for first in firsts}
        values = stalled(values, stalls)
    return Planted(kind, values, variation, rho, high, low, certainty, place, stalls)


#: What a series does, and what it may be called.
BEHAVIOURS = {
    "steady": {"steady"},
    "drift": {"drifting"},
    "step": {"step"},
    "cliff": {"cliff"},
    "recovering": {"step", "oscillating"},
    "oscillation": {"oscillating"},
    "decay": {"decaying"},
    "stairs": {"step", "cliff", "drifting", "decaying"},
    "bimodal": {"steady"},
    "heavy tails": {"steady"},
    "remembering": {"steady"},
    "slow": {"steady"},
    "short trend": {"drifting", "step", "cliff", "decaying"},
}


@dataclass(frozen=True)
class Behaviour:
    """A series of one to thirty minutes that does one thing.

    :param falls: whether it loses at least a tenth at some time.
    """

    name: str
    values: np.ndarray
    falls: bool

    @property
    def kinds(self):
        return BEHAVIOURS[self.name]


def behaviour(number, seed=20261128):
    """The series of that number, the same every time; noise of 0.5 to 5 % with a memory of 0 to 0.95."""
    generator = np.random.default_rng([seed, number])
    name = list(BEHAVIOURS)[number % len(BEHAVIOURS)]
    uniform = generator.uniform
    count = round(np.exp(uniform(np.log(120), np.log(1800))))
    if name == "slow":
        rate = uniform(0.7, 3.3)
        if generator.integers(2):
            return Behaviour(name, generator.poisson(rate, count).astype(float), False)
        pauses = np.maximum((1 + generator.choice([0.0, 0.05, 0.3]) * generator.standard_normal(round(2 * rate * count) + 9)) / rate, 0.01)
        return Behaviour(name, np.histogram(np.cumsum(pauses), np.arange(count + 1))[0].astype(float), False)
    place, variation, rho = np.arange(count), uniform(0.005, 0.05), uniform(0, 0.95)
    levels, lost = np.ones(count), 0.0
    if name in ("drift", "step", "stairs"):
        variation = uniform(0.005, 0.03)
    if name == "drift":
        lost = uniform(0.12, 0.4) * generator.choice([-1, 1])
        levels = np.linspace(1 + lost / 2, 1 - lost / 2, count)
    elif name in ("step", "cliff"):
        lost = uniform(0.1, 0.18) if name == "step" else uniform(0.25, 0.8)
        levels = fall(count, round(count * uniform(0.2, 0.8)), 1, 1 - lost)
        if name == "step" and generator.integers(2):
            levels, lost = levels[::-1], 0.0
    elif name == "recovering":
        lost, first, last = uniform(0.25, 0.7), round(count * uniform(0.2, 0.45)), round(count * uniform(0.55, 0.85))
        levels[first:last], levels[last:] = 1 - lost, generator.choice([1.0, 0.95, 0.9])
    elif name == "oscillation":
        lost = uniform(0.2, 0.6)
        levels = square_wave(count, uniform(10, count / 5), 1, 1 - lost, duty=uniform(0.35, 0.65), phase=uniform(0, 9))
    elif name == "decay":
        lost = uniform(0.5, 2)
        levels = decaying(count, 1 + lost, 1, count * uniform(0.08, 0.25))
    elif name == "stairs":
        steps = int(generator.integers(3, 5))
        lost = uniform(0.08, 0.15) * (steps - 1)
        levels = 1 - place * steps // count * lost / (steps - 1)
    elif name == "bimodal":
        levels = np.where(generator.random(count) < uniform(0.3, 0.7), 1.0, uniform(0.5, 0.8))
    elif name == "heavy tails":
        return Behaviour(name, np.maximum(20_000 * (1 + variation * generator.standard_t(2.5, count)), 0), False)
    elif name == "short trend":
        lost, variation = uniform(0.12, 0.4), 0.01
        levels = np.linspace(1, 1 - lost, int(generator.integers(60, 121)))
    return Behaviour(name, noisy(generator, 20_000 * levels, variation=variation, rho=rho), lost >= 0.1)
