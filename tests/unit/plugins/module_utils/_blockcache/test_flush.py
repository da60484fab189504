# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a flush is waited for."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import INTERVAL, STANDSTILL, FlushWatch
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotEffective, TimedOut


class Time:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def _watch(time, looks, **options):
    """A watch over a cache whose dirty count follows a function of the time."""
    return FlushWatch("images", "vg0/images", lambda: looks(time.now), clock=time, **options)


def test_progressing_flush_is_awaited_without_limit():
    time = Time()
    _watch(time, lambda now: max(100_000 - int(now), 0)).until_clean(time.sleep)
    assert 100_000 <= time.now <= 100_000 + INTERVAL


def test_stalled_flush_fails_with_advice():
    time = Time()
    with pytest.raises(NotEffective, match=r"7 dirty blocks .* nothing is lost") as error:
        _watch(time, lambda now: max(60 - int(now), 7)).until_clean(time.sleep)
    assert error.value.facts["dirty_blocks"] == 7
    assert STANDSTILL < time.now < STANDSTILL + 70


def test_user_defined_flush_timeout_takes_precedence():
    time = Time()
    with pytest.raises(TimedOut, match=r"flush_timeout .30 seconds"):
        _watch(time, lambda now: 1000 - int(now), limit=30).until_clean(time.sleep)


def test_intermittent_read_failures_do_not_fail_flush():
    time = Time()

    def looks(now):
        if int(now) % 4 == 0:
            raise CommandFailed("dmsetup: the table is being replaced")
        return max(50 - int(now), 0)

    _watch(time, looks).until_clean(time.sleep, interval=1)
    assert time.now < 60


def test_unreadable_dirty_count_fails_flush():
    time = Time()
    with pytest.raises(NotEffective, match="could not be read"):
        _watch(time, lambda _now: None).until_clean(time.sleep)


def test_clean_cache_does_not_wait():
    time = Time()
    _watch(time, lambda _now: 0).until_clean(time.sleep)
    assert time.now == 0


def test_what_is_clean_soon_is_seen_soon():
    time = Time()
    _watch(time, lambda now: 0 if now >= 0.7 else 1).until_clean(time.sleep)
    assert time.now == 0.25 + 0.5
