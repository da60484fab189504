# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Series as devices make them, seeded."""

from __future__ import annotations

import numpy as np


def autoregressive(generator, count, *, sigma, rho=0.0):
    """Noise of which each value takes the share rho of its neighbour along."""
    steps = generator.standard_normal(count + 200) * sigma * np.sqrt(1 - rho * rho)
    noise = np.empty(steps.size)
    noise[0] = steps[0]
    for index in range(1, steps.size):
        noise[index] = rho * noise[index - 1] + steps[index]
    return noise[200:]


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
    "two_seconds_each": (swinging(300, 2, 12_000, 2, 8_000), "oscillating"),
}
