# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a flush is waited for."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flush import STANDSTILL, FlushWatch
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


def test_a_flush_that_moves_is_waited_for_however_long_it_takes():
    time = Time()
    _watch(time, lambda now: max(100_000 - int(now), 0)).until_clean(time.sleep)
    assert time.now == 100_000


def test_one_that_stands_still_is_given_up_and_reports_what_to_do():
    time = Time()
    with pytest.raises(NotEffective, match=r"7 dirty blocks .* nothing is lost") as error:
        _watch(time, lambda now: max(60 - int(now), 7)).until_clean(time.sleep)
    assert error.value.facts["dirty_blocks"] == 7
    assert STANDSTILL < time.now < STANDSTILL + 70


def test_the_users_own_limit_comes_first():
    time = Time()
    with pytest.raises(TimedOut, match=r"flush_timeout .30 seconds"):
        _watch(time, lambda now: 1000 - int(now), limit=30).until_clean(time.sleep)


def test_a_reading_that_fails_now_and_then_is_no_failure():
    time = Time()

    def looks(now):
        if int(now) % 4 == 0:
            raise CommandFailed("dmsetup: the table is being replaced")
        return max(50 - int(now), 0)

    _watch(time, looks).until_clean(time.sleep, interval=1)
    assert time.now < 60


def test_a_figure_that_never_comes_is_not_waited_for_for_ever():
    time = Time()
    with pytest.raises(NotEffective, match="could not be read"):
        _watch(time, lambda _now: None).until_clean(time.sleep)


def test_a_clean_cache_is_no_wait():
    time = Time()
    _watch(time, lambda _now: 0).until_clean(time.sleep)
    assert time.now == 0
