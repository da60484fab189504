# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.confidence import summary, upper_bound
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import SECTOR, Blocks, Record
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.verifier import verify
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import Acknowledged, WitnessLog

SIZE = 4096
BLOCKS = Blocks(b"r" * 16, SIZE)


class Device:
    """Places with what was written to them, and the log of what was acknowledged. The clock ticks twice for each write."""

    def __init__(self):
        self.places = {}
        self.log = []
        self.sequence = 0

    def write(self, place, acknowledged=True, kept=True):
        self.sequence += 1
        data = BLOCKS.make(Record(self.sequence, place * SIZE, 2 * self.sequence * 10**9))
        if kept:
            self.places[place] = data
        if acknowledged:
            self.log.append(Acknowledged(self.sequence, place * SIZE, SIZE, (2 * self.sequence + 1) * 10**9))
        return data

    def verify(self, *, events=("cut",), active=True, rebooted=True):
        log = WitnessLog({}, tuple(self.log), events, active)
        return verify(log, BLOCKS, lambda place: self.places.get(place, bytes(SIZE)), rebooted=rebooted).to_dict()


@pytest.fixture
def device():
    device = Device()
    for place in range(4):
        device.write(place)
    return device


def kinds(result):
    return {key: result[key] for key in ("lost", "stale", "torn", "misplaced", "reordered") if result[key]}


def test_acknowledged_and_later_unacknowledged_writes_are_kept(device):
    device.write(1, acknowledged=False)
    result = device.verify()
    assert (result["verdict"], result["acknowledged"], result["damaged"]) == ("kept", 4, 0)


def test_unacknowledged_write_may_be_lost(device):
    device.write(7, acknowledged=False, kept=False)
    assert device.verify()["verdict"] == "kept"


def test_lost_last_writes_are_counted_with_their_age(device):
    device.write(8, kept=False)
    device.write(9, kept=False)
    result = device.verify()
    assert (result["verdict"], kinds(result)) == ("lost", {"lost": 2})
    assert (result["first_damaged_sequence"], result["oldest_damage_seconds"]) == (5, 2.0)


def test_older_write_in_place_of_the_acknowledged_one_is_stale(device):
    device.write(1, kept=False)
    assert kinds(device.verify()) == {"stale": 1}


def test_block_of_two_writes_is_torn(device):
    new = device.write(1, kept=False)
    device.places[1] = new[:SECTOR] + device.places[1][SECTOR:]
    assert kinds(device.verify()) == {"torn": 1}


def test_acknowledged_block_torn_by_an_unacknowledged_write_is_torn(device):
    new = device.write(1, acknowledged=False, kept=False)
    device.places[1] = new[:SECTOR] + device.places[1][SECTOR:]
    assert kinds(device.verify())["torn"] == 1


def test_block_of_another_place_is_misplaced(device):
    device.places[3] = device.places[0]
    assert kinds(device.verify()) == {"misplaced": 1}


def test_loss_before_a_write_that_survived_is_reordered(device):
    device.write(8, kept=False)
    device.write(9)
    assert kinds(device.verify()) == {"lost": 1, "reordered": 1}


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"rebooted": False}, "has not booted"),
        ({"events": ()}, "not notified of the power cut"),
        ({"events": ("ended", "cut")}, "had ended before"),
        ({"active": False}, "Nothing was in flight"),
    ],
)
def test_run_in_which_nothing_could_be_lost_proves_nothing(device, how, reason):
    result = device.verify(**how)
    assert result["verdict"] == "proves_nothing"
    assert reason in result["reason"]


def test_run_without_acknowledged_writes_proves_nothing():
    assert Device().verify()["verdict"] == "proves_nothing"


def test_damage_counts_also_if_nothing_was_in_flight(device):
    device.places.clear()
    assert device.verify(active=False)["verdict"] == "lost"


def test_unreadable_block_is_an_error_and_not_kept(device):
    def read(place):
        raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(NotUnderstood, match="does not count as kept"):
        verify(WitnessLog({}, tuple(device.log), ("cut",), True), BLOCKS, read, rebooted=True)


@pytest.mark.parametrize(("losses", "cuts", "bound"), [(0, 5, 0.4507), (0, 1, 0.95), (0, 59, 0.0495), (1, 10, 0.3942), (3, 3, 1.0)])
def test_upper_bound_is_the_exact_binomial_one(losses, cuts, bound):
    assert upper_bound(losses, cuts) == pytest.approx(bound, abs=1e-4)


@pytest.mark.parametrize(
    ("verdicts", "verdict", "sentence"),
    [
        (["kept"] * 5, "durable", "0 of 5 cuts lost anything: with 95 % confidence fewer than 45.1 % of cuts do."),
        (["kept", "lost"], "at_risk", "1 of 2 cuts lost acknowledged writes."),
        (["proves_nothing"], "unknown", "No cut proves anything. 1 more prove nothing."),
        ([], "unknown", "No cut proves anything."),
    ],
)
def test_verdict_over_several_cuts(verdicts, verdict, sentence):
    result = summary(verdicts)
    assert (result["verdict"], result["sentence"]) == (verdict, sentence)
