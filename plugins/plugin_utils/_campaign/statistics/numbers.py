# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Numbers as they come, checked, as arrays."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.libraries import numpy as np

if t.TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

#: Larger ones were never measured, and their squares would not be numbers.
LARGEST = 1e18


def finite_list(values: t.Iterable[t.Any], what: str) -> list[float]:
    """The same as plain numbers: of a few of them, arrays would cost more than what is computed.

    :raises BadInput: as :func:`finite`.
    """
    try:
        found = [float(value) for value in values]
    except (TypeError, ValueError):
        raise BadInput(f"{what}: every value must be a number.") from None
    if not all(0 <= value <= LARGEST for value in found):
        finite(found, what)
    return found


def finite(values: ArrayLike, what: str, *, positive: bool = False) -> NDArray[t.Any]:
    """One row of float64 of which every value is finite, not negative and at most 1e18.

    :param what: what the values are, for the message.
    :param positive: whether 0 is refused as well, as for what a logarithm is taken of.
    :raises BadInput: naming the first value that is none.
    """
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"{what}: every value must be a number.") from None
    if array.ndim != 1:
        raise BadInput(f"{what}: one row of numbers is expected, not {array.ndim} dimensions.")
    wrong = np.flatnonzero(~(array <= LARGEST) | (array < 0) | (positive & (array == 0)))
    if wrong.size:
        allowed = "above 0" if positive else "from 0"
        raise BadInput(f"{what}: number {wrong[0] + 1} is {array[wrong[0]]:g}; it must be {allowed} and at most {LARGEST:g}.")
    return array
