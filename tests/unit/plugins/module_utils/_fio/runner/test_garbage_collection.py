# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later


from __future__ import annotations

import random

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.sampler import COLUMNS
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.pauses import FALL, FILL, collection_rate

TB = 10**12


def shown(rates, *, written=0.0, size=10 * TB, device="sdb", began=100.0, more=()):
    """What a cell with these MB/s, one for each second, shows."""
    chance = random.Random(1)
    rows = [(100 + second, "sdb", rate * 1e6 / 1024 * chance.gauss(1, 0.05)) for second, rate in enumerate(rates)]
    rows += [(row[0], "sdc", 5.0) for row in rows] + list(more)
    text = "\n".join([COLUMNS, *(f"{epoch},{name},0,0,0,{kib:.1f},0,0,0,0,0,0,0,0,0" for epoch, name, kib in rows)])
    return collection_rate(text, device, began, 100.0 + len(rates), block_size=4096, size=size, written=written)


def test_steady_rate_on_partly_filled_device_is_not_garbage_collection():
    found = shown([1700] * 3600)
    assert (found.rate, found.shown_by) == (None, "")
    assert found.reason == (
        "The cell shows no rate of garbage collection: the rate of writing did not fall, and no more than 0 of 1e+13 bytes were written before it."
    )


@pytest.mark.parametrize(("written", "size"), [(9.9 * TB, 10 * TB), (99 * TB, 0)])
def test_partly_filled_device_or_unknown_size_gives_no_rate(written, size):
    assert shown([640] * 3600, written=written, size=size).rate is None


def test_final_rate_after_complete_fill_is_garbage_collection_rate():
    found = shown([640] * 3600, written=10 * TB)
    assert (found.rate, found.shown_by, found.block_size, found.reason) == (pytest.approx(640e6, rel=0.01), FILL, 4096, "")


def test_lasting_rate_drop_gives_garbage_collection_rate():
    found = shown([1700] * 1800 + [640] * 1800)
    assert (found.rate, found.shown_by) == (pytest.approx(640e6, rel=0.01), FALL)
    decayed = shown([640 + 1060 * 0.99**second for second in range(3600)])
    assert (decayed.rate, decayed.shown_by) == (pytest.approx(640e6, rel=0.01), FALL)


def test_recovering_or_continuing_rate_drop_gives_no_rate():
    assert shown([1700] * 1000 + [300] * 1000 + [1700] * 1600).rate is None
    still = shown([1700 - 1500 * second / 3600 for second in range(3600)])
    assert still.rate is None and "still falling" in still.reason
    assert shown([1700 - 1500 * second / 3600 for second in range(3600)], written=20 * TB).rate is None


def test_oscillating_rate_is_not_a_drop():
    assert shown(([2600] * 25 + [800] * 8) * 100).rate is None


def test_too_few_readings_give_no_rate():
    assert "read 19 times" in shown([1700] * 9 + [640] * 10).reason
    assert shown([640] * 3600, written=20 * TB, device="sdd").rate is None


def test_intervals_outside_the_measurement_are_ignored():
    after = [(4000 + second, "sdb", 1.0) for second in range(400)]
    assert shown([640] * 3600, written=20 * TB, more=after).rate == pytest.approx(640e6, rel=0.01)
    assert shown([1700] * 1000 + [640] * 2600, began=1100.0).rate is None, "the fall was in the ramp"
