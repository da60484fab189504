# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fleets whose hosts are known to meet a limit or not, measured as an acceptance does: again, as long as it is not decided."""

from __future__ import annotations

import typing as t

import numpy as np

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.judge import decide, errors, noise_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.model import MEASURED, Requirement

LIMIT = 1000.0
MOST = 12
REQUIREMENT = Requirement("rate", MEASURED, "osd_write", "iops", "write", LIMIT, "/s", True, None, 0.95, "planted")

#: Of normal noise, and of noise with tails, both with a variance of 1.
NORMAL = np.random.Generator.standard_normal


def tails(generator, shape):
    return generator.standard_t(5, shape) / np.sqrt(5 / 3)


class Fleet(t.NamedTuple):
    """:param truth: of each host, by the limit. :param over: logarithms of repeats by the limit, shape (hosts, repeats)."""

    truth: np.ndarray
    over: np.ndarray


def fleet(generator, hosts, *, good=(1.2, 1.6), bad=0.0, by=(0.05, 0.5), noise=0.05, memory=0.0, differing=0.0, draw=NORMAL, most=MOST) -> Fleet:
    """Hosts of one class.

    :param good: how much of the limit the class reaches, between these; hosts differ by 2 %.
    :param bad: share of hosts that miss the limit, ``by`` a share between these.
    :param noise: standard deviation by mean of repeats; hosts differ in it by the factor exp(``differing`` x a normal value).
    :param memory: correlation of a repeat with the one before.
    """
    truth = np.exp(generator.uniform(*np.log(good)) + 0.02 * np.clip(generator.standard_normal(hosts), -2, 2))
    which = generator.random(hosts) < bad
    truth = np.where(which, 1 - generator.uniform(*by, hosts), truth)
    steps = draw(generator, (hosts, most))
    for place in range(1, most):
        steps[:, place] = memory * steps[:, place - 1] + np.sqrt(1 - memory**2) * steps[:, place]
    own = np.sqrt(np.log1p(noise**2)) * np.exp(differing * generator.standard_normal(hosts))
    return Fleet(truth, np.log(truth)[:, None] + own[:, None] * steps)


def judged(planted: Fleet) -> tuple[np.ndarray, np.ndarray]:
    """What hosts are (1 pass, -1 fail, 0 undecided), and after how many repeats; a host that is decided is not measured again."""
    hosts, most = planted.over.shape
    states, looks = np.zeros(hosts, dtype=int), np.full(hosts, most)
    for count in range(2, most + 1):
        active = states == 0
        if not active.any():
            break
        noise = noise_of(row[: min(count, last)] for row, last in zip(planted.over, looks, strict=True))
        found = decide(planted.over[active, :count], noise, most, *errors(REQUIREMENT))
        states[active] = found.passed.astype(int) - found.failed.astype(int)
        looks[active & (states != 0)] = count
    return states, looks


def judged_once(planted: Fleet, repeats: int) -> np.ndarray:
    """The same for a plan of so many repeats that is judged at its end."""
    some = planted.over[:, :repeats]
    found = decide(some, noise_of(some), repeats, *errors(REQUIREMENT), first=repeats)
    return found.passed.astype(int) - found.failed.astype(int)
