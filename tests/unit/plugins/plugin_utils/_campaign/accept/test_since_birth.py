# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has changed since birth, with planted changes: it is worse or better only outside of the noise of both certificates."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.certificate import Certificate, Figure
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.context import context_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.since_birth import compare
from ansible_collections.cachefleet.storage.tests.unit.support.judged import POWER, WAL, device, judgement, measured
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement


def certificate(*some, devices=(), verdicts=(), **changes):
    made = Certificate("drive", "S1", "node1", "now", "accept1", "a", "b", tuple(devices) or (device(),), tuple(verdicts), some or (measured(),), ())
    return replace(made, **changes)


def states(old, new):
    return [(one.what, one.state) for one in compare(old, new)]


P99 = "etcd_wal (sync) p99"


@pytest.mark.parametrize(
    ("metric", "then", "now", "state"),
    [
        ("p99", (5.0, 4.5, 5.5), (5.0, 4.5, 5.5), "same"),
        ("p99", (5.0, 4.9, 5.1), (7.0, 6.9, 7.1), "worse"),
        ("p99", (7.0, 6.9, 7.1), (5.0, 4.9, 5.1), "better"),
        ("iops", (100.0, 99.0, 101.0), (80.0, 79.0, 81.0), "worse"),
        ("iops", (80.0, 79.0, 81.0), (100.0, 99.0, 101.0), "better"),
        ("mean", (1.0, 0.99, 1.01), (2.0, 1.9, 2.1), "worse"),
        # As much slower, within the noise.
        ("p99", (5.0, 3.0, 7.0), (7.0, 5.0, 9.0), "same"),
        # The intervals overlap, and that of the difference does not have 0.
        ("iops", (100.0, 96.0, 104.0), (94.0, 90.0, 98.0), "worse"),
        # Certain, and less than what matters.
        ("iops", (100.0, 99.9, 100.1), (98.0, 97.9, 98.1), "same"),
        ("p99", (5.0, None, None), (7.0, 6.9, 7.1), "not comparable"),
        ("p99", (5.0, 4.9, 5.1), (0.0, 0.0, 0.0), "not comparable"),
        ("p99", (5.0, -1.0, 5.1), (7.0, 6.9, 7.1), "not comparable"),
        ("magic", (5.0, 4.9, 5.1), (7.0, 6.9, 7.1), "not comparable"),
        ("p99", (1e-300, 1e-300, 1e-300), (1e300, 1e300, 1e300), "worse"),
    ],
)
def test_figures_differ_only_outside_of_the_noise(metric, then, now, state):
    old, new = (certificate(measured(**{metric: Figure(*side, 3)})) for side in (then, now))
    (change,) = compare(old, new)
    assert (change.what, change.state, change.old, change.new) == (f"etcd_wal (sync) {metric}", state, then[0], now[0])
    assert change.reason


SLOWER = {"p99": Figure(9.0, 8.9, 9.1, 3)}


@pytest.mark.parametrize("conditions", [{"firmware": "F2"}, {"kernel": "6.12"}, {"fio_version": "fio-3.36"}])
def test_firmware_and_kernel_are_named_and_compared(conditions):
    (change,) = compare(certificate(), certificate(measured(conditions=conditions, **SLOWER)))
    ((name, value),) = conditions.items()
    assert change.state == "worse" and change.reason.endswith(f"/ {value}") and name.replace("_", " ") in change.reason


def test_other_details_of_the_stack_are_named():
    old, new = (certificate(measured(conditions={"stack_sha256": value}, **SLOWER)) for value in "ab")
    (change,) = compare(old, new)
    assert change.state == "same" and change.reason.endswith("; other details of the stack")


@pytest.mark.parametrize("conditions", [{"bs": "4k"}, {"ioengine": "libaio"}, {"workload_sha256": "bb"}])
def test_other_measurements_are_not_compared(conditions):
    (change,) = compare(certificate(), certificate(measured(conditions=conditions, **SLOWER)))
    ((name, value),) = conditions.items()
    assert change.state == "not comparable" and f"{name.replace('_', ' ')} " in change.reason and f"/ {value}" in change.reason


def test_other_settings_are_not_compared():
    (change,) = compare(certificate(), certificate(measured(**SLOWER), devices=[device(settings={"drive write cache": "enabled"})]))
    assert (change.state, change.reason) == ("not comparable", "measured differently: drive write cache disabled / enabled")


def test_condition_that_is_not_known_on_one_side_is_no_difference():
    assert states(certificate(), certificate(measured(conditions={"bs": None}, **SLOWER))) == [(P99, "worse")]


def test_another_drive_is_not_compared():
    assert states(certificate(), certificate(name="S2")) == [("certificate", "not comparable")]


def test_drive_that_was_moved_is_compared():
    moved = certificate(measured("node2", "/dev/sdq", **SLOWER), devices=[device("node2", target="/dev/sdq")], host="node2")
    assert states(certificate(), moved) == [(P99, "worse")]


def test_devices_of_a_host_are_compared_one_by_one():
    both = [device(), device(serial="S2", target="/dev/sdb")]
    old = certificate(measured(), measured(target="/dev/sdb"), devices=both, kind="host")
    new = certificate(measured(), measured(target="/dev/sdb", **SLOWER), devices=both, kind="host")
    assert [(one.target, one.state) for one in compare(old, new)] == [("/dev/sdb", "worse"), ("/dev/sda", "same")]


def test_what_only_one_certificate_has_is_named():
    other = replace(measured(), workload="boot")
    found = {one.what: one.reason for one in compare(certificate(), certificate(other))}
    assert found == {"boot (sync)": "the earlier certificate does not have it", "etcd_wal (sync)": "the later certificate does not have it"}


@pytest.mark.parametrize(
    ("then", "now", "expected"),
    [
        ("pass", "fail", [("power", "worse")]),
        ("fail", "pass", [("power", "better")]),
        ("fail", "fail", [("power", "same")]),
        ("pass", "not measured", []),
        ("undecided", "fail", []),
    ],
)
def test_facts_are_compared_where_both_were_decided(then, now, expected):
    old, new = (certificate(verdicts=[judgement(state=state, requirement=POWER)]) for state in (then, now))
    assert [one for one in states(old, new) if one[0] != P99] == expected


def test_facts_of_another_requirement_are_not_compared():
    old = certificate(verdicts=[judgement(requirement=replace(POWER, kind="wear", limit=0.1))])
    new = certificate(verdicts=[judgement(state="fail", requirement=replace(POWER, kind="wear", limit=0.05))])
    assert states(old, new)[0] == ("power", "not comparable")


def test_limits_of_figures_are_no_facts():
    old, new = (certificate(verdicts=[judgement(state=state, requirement=WAL)]) for state in ("pass", "fail"))
    assert states(old, new) == [(P99, "same")]


@pytest.mark.parametrize(("slower", "low", "high"), [(1.0, 0, 12), (0.7, 380, 400)])
def test_planted_changes_of_400_drives(tmp_path, slower, low, high):
    """Four repeats with 5 % noise each time: those that are equal are hardly ever worse, those that are 30 % slower nearly always."""
    chance = random.Random(48)

    def figures(level):
        runs = [measurement(repeat=number, target="/dev/sda", iops=level * chance.lognormvariate(0, 0.05)) for number in range(4)]
        (found,) = context_of(tmp_path, "now", runs, {}).measured
        return certificate(replace(found, figures={"iops": found.figures["iops"]}))

    worse = sum(compare(figures(1000.0), figures(1000.0 * slower))[0].state == "worse" for _drive in range(400))
    assert low <= worse <= high
