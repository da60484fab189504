# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.order import SweepStep, in_order, within

STEPS = [SweepStep(variant, repeat, 10) for variant, repeat in in_order(["A", "B", "C"], 3)]


def keys(steps):
    return [one.key for one in steps]


def test_repeats_are_interleaved_and_every_second_pass_is_reversed():
    assert in_order(["A", "B"], 3) == [("A", 1), ("B", 1), ("B", 2), ("A", 2), ("A", 3), ("B", 3)]


def test_whole_passes_are_kept_within_a_budget():
    kept, left_out = within(STEPS, 65)

    assert keys(kept) == ["A/1", "B/1", "C/1", "C/2", "B/2", "A/2"]
    assert keys(left_out) == ["A/3", "B/3", "C/3"]


def test_the_beginning_of_the_first_pass_is_kept_if_a_whole_one_does_not_fit():
    kept, left_out = within(STEPS, 25)

    assert keys(kept) == ["A/1", "B/1"]
    assert len(left_out) == 7


def test_without_a_budget_nothing_is_left_out():
    assert within(STEPS, None) == (STEPS, [])
