# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a number of repeats can show before anything is measured, by the distribution with which variants are compared. Pure."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.repeats import FEWEST_REPEATS
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.statistics.two_variants import CONFIDENCE, null_of_one, place_of_limit


@dataclass(frozen=True)
class Claim:
    """What a comparison of two variants on one host can show.

    :param repeats: of each variant.
    :param pairs: a repeat of one with a repeat of the other.
    :param agreeing: pairs that must have the same direction for the interval of the ratio to exclude 1.
    :param confidence: of that interval.
    """

    repeats: int
    pairs: int
    agreeing: int
    confidence: float


def claim_of(repeats: int, confidence: float = CONFIDENCE) -> Claim | None:
    """``None`` if so few repeats cannot show a difference, however large it is.

    :raises LibraryMissing: without numpy.
    """
    if repeats < FEWEST_REPEATS:
        return None
    tails = np.cumsum(null_of_one(repeats, repeats))
    place = place_of_limit(tails, confidence)
    # The limit of the interval is the ratio at this place, so one pair less may contradict.
    return Claim(repeats, repeats**2, repeats**2 - place + 1, float(1 - 2 * tails[place - 1])) if place else None


def fewest_repeats(confidence: float = CONFIDENCE) -> int:
    """The smallest number of repeats of each variant that can show a difference.

    :raises LibraryMissing: without numpy.
    """
    return next(count for count in itertools.count(FEWEST_REPEATS) if claim_of(count, confidence) is not None)
