# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A clock that a test turns, as the waiter, the status and the clock of a host."""

from __future__ import annotations


class TurnedClock:
    """Seconds since its beginning in ``now``, what was displayed in ``said``; asked to stop from ``stops_at``."""

    def __init__(self, stops_at=1e9):
        self.now, self.stops_at, self.said = 0.0, stops_at, []

    @property
    def stopping(self):
        return self.now >= self.stops_at

    def for_seconds(self, seconds):
        assert seconds > 0
        self.now += seconds

    def clock(self):
        return 1000.0 + self.now

    def update(self, **values):
        self.said.append(values)
