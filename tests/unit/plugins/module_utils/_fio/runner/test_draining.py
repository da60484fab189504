# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Waiting for clean caches, by a clock that the test turns: as long as needed, at most so long, and not in vain."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import draining
from ansible_collections.cachefleet.storage.tests.unit.support.turned_clock import TurnedClock

MIB = 1024**2


class Host(TurnedClock):
    """Caches whose dirty bytes are a function of the time, with their clock, status and waiter."""

    def __init__(self, dirty, monkeypatch, stops_at=1e9):
        super().__init__(stops_at)
        self.of = dirty
        monkeypatch.setattr(draining.time, "monotonic", lambda: self.now)
        self.draining = draining.Draining(self, self, self)

    def dirty(self, names):
        assert set(names) == {"c0"}
        return self.of(self.now)

    def wait(self, most=1800.0):
        began = self.now
        left = self.draining.wait(["c0"], most)
        return left, self.now - began


def falling(start, pace, begins=0.0, floor=0):
    return lambda now: max(floor, int(start - pace * max(0.0, now - begins)))


def test_clean_cache_is_not_waited_for(monkeypatch):
    host = Host(lambda now: 0, monkeypatch)
    assert host.wait() == (draining.Left(), 0.0) and not host.said


def test_wait_ends_when_all_is_written_back(monkeypatch):
    host = Host(falling(1000 * MIB, MIB), monkeypatch)
    assert host.wait() == (draining.Left(), 1000.0)


def test_status_shows_what_is_left_and_how_long_it_takes(monkeypatch):
    host = Host(falling(1000 * MIB, MIB), monkeypatch)
    host.wait()
    assert host.said[0] == {"state": "pausing", "cell": None, "target": None, "until": 1000.0 + 1800, "message": "1000 MiB dirty"}
    assert host.said[100]["until"] == pytest.approx(1000.0 + 1000, abs=1)
    assert host.said[100]["message"] == "800 MiB dirty"


def test_wait_is_limited(monkeypatch):
    host = Host(falling(50 * MIB, MIB), monkeypatch)
    left, seconds = host.wait(30.0)
    assert (left.dirty, left.pace, seconds) == (20 * MIB, MIB, 30.0)
    assert left.sentence == f"The caches below the target were not clean after 30 seconds: {20 * MIB} bytes were dirty."


def test_what_a_cache_keeps_is_not_waited_for_in_vain(monkeypatch):
    host = Host(falling(100 * MIB, 10 * MIB, floor=40 * MIB), monkeypatch)
    left, seconds = host.wait()
    assert (left.dirty, left.pace) == (40 * MIB, 0.0) and 60 <= seconds <= 70
    assert "None of them were written back in the last minute" in left.sentence
    again, seconds = host.wait()
    assert (again.dirty, seconds) == (40 * MIB, 0.0) and "keeps them, as it did before an earlier cell" in again.sentence


def test_more_than_a_cache_kept_is_waited_for(monkeypatch):
    host = Host(lambda now: 40 * MIB, monkeypatch)
    host.wait()
    began = host.now
    host.of = falling(90 * MIB, MIB, begins=began, floor=40 * MIB)
    left, seconds = host.wait()
    assert left.dirty <= 42 * MIB and seconds >= 48, "until it is down to what it keeps"


def test_bcache_that_writes_back_when_idle_is_waited_for(monkeypatch):
    host = Host(falling(1000 * MIB, 10 * MIB, begins=35.0), monkeypatch)
    left, seconds = host.wait()
    assert left == draining.Left() and 135 <= seconds <= 137


def test_pace_that_cannot_meet_the_limit_ends_the_wait(monkeypatch):
    host = Host(falling(100_000 * MIB, MIB), monkeypatch)
    left, seconds = host.wait()
    assert left.pace == pytest.approx(MIB) and 60 <= seconds <= 62
    assert left.sentence.endswith("At 1 MiB/s they would not be written back within the limit of 1800 seconds: set 'drain' in the suite.")
    _left, seconds = host.wait()
    assert seconds >= 60, "what is written back is no amount that the cache keeps"


def test_what_cannot_be_read_is_not_clean(monkeypatch):
    host = Host(lambda now: None, monkeypatch)
    left, seconds = host.wait()
    assert left.dirty is None and "an unknown number of bytes were dirty" in left.sentence and 60 <= seconds <= 62
    assert host.wait()[1] == 0.0


def test_reading_that_fails_once_does_not_end_the_wait(monkeypatch):
    host = Host(lambda now: None if 10 <= now < 20 else falling(100 * MIB, MIB)(now), monkeypatch)
    assert host.wait() == (draining.Left(), 100.0)


def test_stopped_runner_waits_no_longer(monkeypatch):
    host = Host(lambda now: MIB, monkeypatch, stops_at=10.0)
    assert host.wait() == (draining.Left(), 10.0)
