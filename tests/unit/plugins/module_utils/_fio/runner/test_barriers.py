# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a runner waits for a controller that does not come, barrier after barrier."""

from __future__ import annotations

import json
import types

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import barriers

EPOCH = 1_800_000_000.0


class Waiter:
    """Time that passes only during a wait."""

    def __init__(self):
        self.now, self.stopping = 0.0, False

    def wait(self, seconds):
        self.now += seconds

    def clock(self):
        return EPOCH + self.now


@pytest.fixture
def waiter(monkeypatch):
    found = Waiter()
    monkeypatch.setattr(barriers, "time", types.SimpleNamespace(monotonic=lambda: found.now))
    return found


def waited(waiter, gate, segment):
    began = waiter.now
    passed = gate.wait(segment)
    return passed, waiter.now - began


def test_barrier_timeout_halves_with_every_unreleased_barrier(tmp_path, waiter):
    gate = barriers.Barriers(tmp_path, waiter.clock, waiter, 4500.0)
    times = [waited(waiter, gate, segment)[1] for segment in range(9)]
    assert times == [pytest.approx(seconds, abs=0.2) for seconds in (4500, 2250, 1125, 562.5, 281.25, 140.625, 70.3, 60, 60)]


def test_barrier_timeout_is_reset_when_the_controller_returns(tmp_path, waiter):
    gate = barriers.Barriers(tmp_path, waiter.clock, waiter, 900.0)
    for segment in range(3):
        passed, _seconds = waited(waiter, gate, segment)
        assert passed.alone and not passed.synchronised
    barriers.release_file(tmp_path, 3).write_text(json.dumps({"start": waiter.clock() + 5, "clock": {"offset": 0.0}}))
    passed, seconds = waited(waiter, gate, 3)
    assert passed.synchronised and seconds == 0
    passed, seconds = waited(waiter, gate, 4)
    assert seconds == pytest.approx(900, abs=0.2)
    assert passed.notes == ("The barrier 4 was not released within 900 seconds, so this host continued alone.",)


def test_barrier_timeout_below_one_minute_is_unchanged(tmp_path, waiter):
    gate = barriers.Barriers(tmp_path, waiter.clock, waiter, 20.0)
    assert [waited(waiter, gate, segment)[1] for segment in range(3)] == [pytest.approx(20, abs=0.2)] * 3
