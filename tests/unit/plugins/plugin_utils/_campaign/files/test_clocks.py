# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""Two clocks and a connection between them that is slow in one direction."""

from __future__ import annotations

import subprocess
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.files.clocks import Bounds, decide, question, read_answer, together

EPOCH = 1_800_000_000.0


def test_local_clock_response_has_fractions_and_process_start():
    requested = time.time()
    answer = subprocess.run(["/bin/sh", "-c", question()], capture_output=True, text=True, check=True)
    bounds = read_answer(answer.stdout, requested, time.time())
    assert answer.stdout.startswith("CLOCK ")
    assert bounds.low <= 0 <= bounds.high


@given(ahead=st.floats(-1e5, 1e5), until_begun=st.floats(0, 2), begun=st.floats(0, 2), back=st.floats(0, 2))
def test_true_offset_is_always_within_the_bounds(ahead, until_begun, begun, back):
    forked = EPOCH + until_begun
    looked = forked + begun
    uptime = 4000.0
    # The kernel cuts both off to hundredths.
    text = f"CLOCK {int(uptime * 100) / 100} {int((uptime - begun) * 100)}\n{looked + ahead:.9f}\n"
    bounds = read_answer(text, EPOCH, looked + back)
    assert bounds.low - 1e-3 <= ahead <= bounds.high + 1e-3
    assert bounds.high - bounds.low <= until_begun + back + 0.04


def test_impossible_age_is_ignored():
    bounds = read_answer(f"CLOCK 5000.00 0\n{EPOCH + 0.5:.9f}\n", EPOCH, EPOCH + 0.6)
    assert (bounds.low, bounds.high) == pytest.approx((-0.1, 0.5))


def test_exchanges_narrow_the_bounds():
    found = together([Bounds(-1.0, 0.4), Bounds(0.1, 2.0)])
    assert (found.low, found.high, found.error) == pytest.approx((0.1, 0.4, 0.15))


def test_clock_set_between_exchanges_uses_the_latest_bounds():
    assert together([Bounds(0, 0.1), Bounds(0, 0.1), Bounds(5, 5.3), Bounds(5, 5.1)]) == Bounds(5, 5.1)


def test_no_exchanges_give_no_bounds():
    assert together([]) is None


def test_synchronised_clocks_have_offset_zero_if_possible():
    assert decide(Bounds(-0.1, 0.3), synchronised=True).to_dict() == {"offset": 0.0, "error": 0.3}
    assert decide(Bounds(-0.1, 0.3), synchronised=False).to_dict() == {"offset": 0.1, "error": 0.2}
    assert decide(Bounds(0.1, 0.3), synchronised=True).offset == pytest.approx(0.2)
