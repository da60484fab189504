# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which variants are measured again, on campaigns whose truth is known. benchmarks/sweep-stopping simulates more of them."""

from __future__ import annotations

import dataclasses
import random

import pytest

pytest.importorskip("numpy", reason="statistics need numpy: pip install -r requirements.txt")

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.state import HostState
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.sweep.stopping import Design, design_of, progress_after
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement
from ansible_collections.cachefleet.storage.tests.unit.support.simulated_sweep import swept

DESIGN = Design(4, 12, 3)
NAMES = ("baseline", "slow", "fast", "unsafe")


def rows(repeats=6, *, hosts=("node1",), cell="randwrite-4k", seed=1, **speeds):
    """Repeats of variants with a noise of 1 %; ``unsafe`` can lose acknowledged writes."""
    chance = random.Random(seed)
    speeds = {"baseline": 1.0, "slow": 0.5, "fast": 1.5, **speeds}
    found = []
    for host in hosts:
        for name, speed in speeds.items():
            changes = {"verdict_before": "at_risk", "verdict_after": "at_risk"} if name == "unsafe" else {}
            for repeat in range(1, repeats + 1):
                rate = 1000 * speed * chance.gauss(1, 0.01)
                found.append(measurement(host, name, cell, repeat, iops=rate, started=1e9 + NAMES.index(name) * 1e4, **changes))
    return Rows("c", found)


def test_equal_variants_have_a_winner_in_at_most_five_of_a_hundred_sweeps():
    chance = random.Random(20261125)
    truth = dict.fromkeys(("baseline", "one", "two"), 1.0)
    found = [swept(lambda: chance.gauss(1, 0.05), truth, Design(4, 7, 2)) for _sweep in range(100)]
    assert sum(one.winner is not None for one in found) <= 5


def test_a_variant_that_is_a_fifth_faster_is_found_with_half_of_the_steps():
    chance = random.Random(20261125)
    truth = {"baseline": 1.0, "one": 1.0, "two": 1.2}
    found = [swept(lambda: chance.gauss(1, 0.05), truth, Design(4, 12, 2)) for _sweep in range(100)]
    assert sum(one.winner == "two" for one in found) >= 90
    assert sum(one.steps for one in found) <= 100 * 3 * 12 / 2


def test_a_slower_variant_is_closed_and_an_undecided_one_is_not():
    [found] = progress_after(rows(5, unsafe=1.55, seed=3), DESIGN, 5)
    assert found.closed["slow"].reason == "shown to be slower than fast"
    assert (found.closed["slow"].after, found.open) == (5, ())
    close = rows(5)
    close.measurements.extend(dataclasses.replace(one, variant="unsafe", iops=1.03 * one.iops) for one in rows(5, seed=9).measurements if one.variant == "fast")
    [found] = progress_after(close, DESIGN, 5)
    assert set(found.closed) == {"slow"}
    assert set(found.open) == {"baseline", "fast", "unsafe"}


def test_nothing_is_closed_by_too_few_repeats():
    [found] = progress_after(rows(4), DESIGN, 4)
    assert found.closed == {}
    [said] = found.leading
    assert said.startswith("randwrite-4k: fast leads, 1.49")
    assert said.endswith(" times as fast as baseline (not shown yet)")


def test_a_leading_variant_that_is_shown_to_be_no_faster_is_not_said_to_be_undecided():
    [found] = progress_after(rows(12, slow=1.0, fast=1.0), DESIGN, 12)
    assert found.leading == ("randwrite-4k: fast leads, as fast as baseline (no difference that matters)",)


def test_no_variant_leads_where_the_baseline_was_not_measured():
    both = rows(6)
    both.measurements.extend(dataclasses.replace(one, kernel="6.12.0") for one in rows(6, hosts=("node2",)).measurements if one.variant != "baseline")
    found = {one.hosts: one.leading for one in progress_after(both, DESIGN, 6, baseline="baseline")}
    assert found[("node2",)] == ("randwrite-4k: baseline was not measured, so nothing is compared with it",)


def test_later_repeats_do_not_change_a_decision():
    """A controller that was killed between a decision and its record makes it again, from the same results or from more."""
    more = rows(9, seed=5)
    until = Rows("c", [one for one in more.measurements if one.repeat <= 5])
    assert progress_after(more, DESIGN, 5) == progress_after(until, DESIGN, 5)


def test_a_closed_variant_stays_closed():
    whole = rows(9, unsafe=1.5)
    [after_5] = progress_after(whole, DESIGN, 5)
    without = Rows("c", [one for one in whole.measurements if one.variant not in after_5.closed or one.repeat <= 5])
    for count in (6, 7, 9):
        [later] = progress_after(without, DESIGN, count)
        assert {name: later.closed[name] for name in after_5.closed} == dict(after_5.closed)


def test_a_variant_is_needed_until_each_workload_is_decided():
    both = rows(5)
    both.measurements.extend(rows(5, cell="randread-4k", slow=1.56, seed=4).measurements)
    [found] = progress_after(both, DESIGN, 5)
    assert "slow" in found.open


def test_classes_of_hosts_are_decided_separately():
    both = rows(5, hosts=("node1",))
    both.measurements.extend(dataclasses.replace(one, kernel="6.12.0") for one in rows(5, hosts=("node2",), slow=1.56, seed=4).measurements)
    found = {one.hosts: set(one.closed) for one in progress_after(both, DESIGN, 5)}
    assert found[("node1",)] == {"baseline", "slow", "fast"}
    assert "slow" not in found[("node2",)]


def test_a_fixed_number_of_repeats_stops_nothing():
    [found] = progress_after(rows(6), Design(6, 6, 2), 6)
    assert found.closed == {}


@pytest.mark.parametrize(("first", "last", "fewest", "in_any_case"), [(4, 12, 5, 5), (8, 12, 8, 8), (1, 3, 4, 3), (4, 4, 4, 4), (2, 0, 4, 2)])
def test_the_repeats_before_which_nothing_stops(first, last, fewest, in_any_case):
    design = Design(first, last, 2)
    assert (design.fewest, design.in_any_case) == (fewest, in_any_case)


def test_the_design_is_that_of_the_host_with_the_most_variants():
    states = [HostState(name, "", "", {}, {}, {key: {} for key in variants}, repeats=4, most_repeats=12) for name, variants in (("a", "xyz"), ("b", "xy"))]
    assert design_of(states) == Design(4, 12, 2)
    assert design_of([]) is None
