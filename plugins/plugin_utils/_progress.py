# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How fast something gets less, and how long the rest will take, in words."""

from __future__ import annotations

import collections

from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size
from ansible_collections.cachefleet.storage.plugins.plugin_utils._text import estimate


class Drain:
    """An amount that is watched while it falls.

    :param window: how many readings the rate is taken over: a flush is uneven, and its end is slower than its beginning.
    """

    def __init__(self, window: int = 6) -> None:
        self._readings: collections.deque[tuple[float, int]] = collections.deque(maxlen=window)

    def note(self, seconds: float, amount: int) -> None:
        """One reading: so many bytes at this moment of a monotonic clock."""
        self._readings.append((seconds, amount))

    @property
    def rate(self) -> float | None:
        """Bytes per second by which it falls; None if it does not, or that is not known yet."""
        if len(self._readings) < 2:
            return None
        (before, most), (now, least) = self._readings[0], self._readings[-1]
        return (most - least) / (now - before) if now > before and most > least else None

    def as_text(self) -> str:
        """The rest of a line about it."""
        if not self._readings or not self._readings[-1][1]:
            return ""
        if self.rate is None:
            return ", not decreasing so far" if len(self._readings) > 1 else ""
        return f", {format_size(int(self.rate))}/s, about {estimate(self._readings[-1][1] / self.rate)} left"
