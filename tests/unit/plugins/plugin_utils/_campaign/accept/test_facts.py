# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements that are facts. What is not known never passes."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.measured import judged
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.requirements import parse
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Drive, Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CellFlows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._power_loss.evidence import PowerLossResult
from ansible_collections.cachefleet.storage.tests.unit.support.planted_flows import cache, disk, planted, rows_of
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement

CELL = "osd_write"
RATE = {"name": "rate", "workload": CELL, "metric": "iops", "of": "write", "at_least": "100 /s"}
POWER = {"name": "power", "survives": "power_failure"}
LOSS = {"name": "loss", "survives": "device_loss"}
FLUSH = {"name": "flush", "flush": "proved"}
TARGET = "/dev/vg0/scratch"


def facts_of(item, rows=None, facts=None, power_loss=()):
    """The judgements of one fact; a workload beside it makes its cells known."""
    found = judged(rows or Rows("c", []), parse([RATE, item]), facts if facts is not None else {}, power_loss=power_loss)
    return [one for one in found if one.requirement.name == item["name"]]


def measured(**changes):
    return Rows(
        "c",
        [measurement(cell=CELL, stack_before="s", stack_after="s", **changes)],
        settings={("node1", "s"): [("sda", "verdict", "device_loss", "survives")]},
    )


def cut(verdict, contradiction="", target=TARGET):
    return PowerLossResult("cut1", "node1", target, "sync fdatasync", verdict, "10 cuts, nothing was lost", contradiction, ())


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [("durable", "durable", "pass"), ("durable", "at_risk", "fail"), ("unknown", "durable", "not measured"), (None, None, "not measured")],
)
def test_power_failure_is_judged_by_the_worst_stack_of_the_measurements(before, after, state):
    assert [one.state for one in facts_of(POWER, measured(verdict_before=before, verdict_after=after))] == [state]


def test_targets_with_other_stacks_are_judged_by_their_own():
    every = [
        measurement(cell=f"{CELL}.{name}", target=f"/dev/{name}", verdict_before=verdict, verdict_after=verdict)
        for name, verdict in (("sda", "durable"), ("sdb", "at_risk"))
    ]
    assert {one.target: one.state for one in facts_of(POWER, Rows("c", every))} == {"/dev/sda": "pass", "/dev/sdb": "fail"}


def test_power_loss_test_that_contradicts_fails_a_durable_stack():
    found = facts_of(POWER, measured(), power_loss=[cut("at_risk", "Contradiction: flushed writes were lost")])
    assert [(one.state, one.reason) for one in found] == [("fail", "Contradiction: flushed writes were lost")]
    assert [one.state for one in facts_of(POWER, measured(), power_loss=[cut("at_risk", "Contradiction: x", target="/dev/other")])] == ["pass"]


def test_drive_of_a_model_that_lost_flushed_writes_is_not_known_to_keep_them():
    """It may be the drive that was tested, by another name; a test of its own counts more."""
    other = PowerLossResult("cut2", "node1", "/dev/sdb", "sync fsync", "at_risk", "1 cut", "Contradiction: lost", (("SSD A", "1.0"),), accuses_drives=True)
    (found,) = facts_of(POWER, measured(model="SSD A"), power_loss=[other])
    assert found.state == "not measured" and "Flushed writes were lost on SSD A 1.0" in found.reason
    assert [one.state for one in facts_of(POWER, measured(model="SSD A"), power_loss=[other, cut("durable")])] == ["pass"]
    assert [one.state for one in facts_of(POWER, measured(model="SSD B"), power_loss=[other])] == ["pass"]


def test_device_loss_is_judged_by_the_stacks():
    assert [one.state for one in facts_of(LOSS, measured())] == ["pass"]
    settings = [("", "verdict", "device_loss", "loses"), ("", "verdict", "device_loss_reason", "sda is alone.")]
    rows = Rows("c", [measurement(cell=CELL, stack_before="s", stack_after="s")], settings={("node1", "s"): settings})
    assert [(one.state, one.reason) for one in facts_of(LOSS, rows)] == [("fail", "a flushed write may be lost by the loss of a device: sda is alone.")]


def test_what_the_host_reports_counts_where_nothing_was_measured_and_where_it_is_worse():
    checks = [{"path": TARGET, "verdict": "at_risk", "reason": "sda ignores flushes.", "device_loss": "survives"}]
    assert [one.state for one in facts_of(POWER, measured(), {"node1": {"checks": checks}})] == ["fail"]
    alone = judged(Rows("c", []), parse([POWER, LOSS]), {"node1": {"checks": checks}, "node2": {"verdicts": {"/dev/sda": {"verdict": "durable"}}}})
    assert [(one.host, one.target, one.requirement.name, one.state) for one in alone] == [
        ("node1", TARGET, "power", "fail"),
        ("node1", TARGET, "loss", "pass"),
        ("node2", "", "loss", "not measured"),
        ("node2", "/dev/sda", "power", "pass"),
    ]
    assert alone[0].reason == "a flushed write may be lost by a power failure: sda ignores flushes."


@pytest.mark.parametrize(
    ("facts", "power_loss", "state"),
    [
        ({}, (), "not measured"),
        ({"checks": [{"path": TARGET, "state": "proved", "reason": "all arrived"}]}, (), "pass"),
        ({"checks": [{"path": TARGET, "state": "not_needed"}]}, (), "pass"),
        ({"checks": [{"path": TARGET, "state": "disproved"}]}, (), "fail"),
        ({"checks": [{"path": TARGET, "state": "unproven"}]}, (), "not measured"),
        ({"checks": "nothing"}, (), "not measured"),
        ({}, (cut("durable"),), "pass"),
        ({}, (cut("at_risk"),), "fail"),
        ({}, (cut("unknown"),), "not measured"),
        ({"checks": [{"path": TARGET, "state": "disproved"}]}, (cut("durable"),), "fail"),
    ],
)
def test_flushes_are_proved_by_cuts_and_by_counting(facts, power_loss, state):
    assert [one.state for one in facts_of(FLUSH, measured(), {"node1": facts}, power_loss)] == [state]


def flows(*hits, **changes):
    return rows_of(planted("none", *[(200, CellFlows((disk(),), (cache(read_hits=hit, read_misses=100 - hit, **changes),))) for hit in hits], cell=CELL))


@pytest.mark.parametrize(("hits", "state"), [((90, 95), "pass"), ((90, 70), "undecided"), ((10, 20), "fail")])
def test_hit_ratio_of_every_repeat_counts(hits, state):
    found = facts_of({"name": "hits", "hit_ratio_at_least": "80 %", "workload": CELL}, flows(*hits))
    assert [(one.state, one.low, one.looks) for one in found] == [(state, pytest.approx(min(hits) / 100), 2)]


@pytest.mark.parametrize(("dirty", "state"), [((0, 100), "pass"), ((0, 500), "fail"), (None, "not measured")])
def test_dirty_part_of_the_cache_has_a_limit(dirty, state):
    assert [one.state for one in facts_of({"name": "dirty", "dirty_at_most": "20 %"}, flows(90, dirty=dirty))] == [state]


def test_host_without_a_cache_has_no_hit_ratio():
    rows = rows_of(planted("none", (200, CellFlows((disk(),), ())), cell=CELL))
    found = facts_of({"name": "hits", "hit_ratio_at_least": "80 %"}, rows)
    assert [(one.state, one.reason) for one in found] == [("not measured", "the hit ratio is not known: no cache was seen")]


DRIVES = [
    {"path": "/dev/disk/by-id/a", "firmware": "2.1.0", "wear_used_percent": 3, "link_speed": 3e9},
    {"path": "/dev/disk/by-id/b", "firmware": "2.2.0", "wear_used_percent": 12, "link_speed": 6e9},
    {"path": "/dev/disk/by-id/c", "firmware": None, "wear_used_percent": None, "media": "hdd", "link_speed": None},
    {"path": "/dev/disk/by-id/d", "wear_used_percent": "much"},
]


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ({"name": "worn", "wear_at_most": "10 %"}, ["pass", "fail", "pass", "not measured"]),
        ({"name": "firmware", "firmware_not": ["2.1.*"]}, ["fail", "pass", "not measured", "not measured"]),
        ({"name": "link", "drive_link_speed_at_least": "6 Gb/s"}, ["fail", "pass"]),
    ],
)
def test_every_drive_is_judged(item, expected):
    assert [one.state for one in facts_of(item, facts={"node1": {"drives": DRIVES}})] == expected


def test_drives_of_the_campaign_count_where_the_host_reports_none():
    rows = measured()
    rows.drives = [Drive("node1", "sda", "SSD A", "S1", "2.1.0", 3.0, 11.0, 0, 0, 30.0, 0, True)]
    found = facts_of({"name": "worn", "wear_at_most": "10 %"}, rows)
    assert [(one.target, one.state, one.reason) for one in found] == [("sda", "fail", "11 % of the rated endurance used, required at most 10 %")]


@pytest.mark.parametrize(
    "item",
    [
        {"name": "worn", "wear_at_most": "10 %"},
        {"name": "firmware", "firmware_not": ["1"]},
        {"name": "l", "link_speed_at_least": "6 Gb/s"},
        {"name": "l", "drive_link_speed_at_least": "6 Gb/s"},
    ],
)
def test_host_that_reports_nothing_does_not_pass(item):
    assert [one.state for one in facts_of(item, facts={"node1": {}})] == ["not measured"]


def test_links_of_drives_and_of_networks_are_judged_apart():
    links = [
        {"kind": "network", "name": "eth1", "speed": 1e9},
        {"kind": "network", "name": "eth2", "speed": 10e9},
        {"kind": "network", "name": "eth3", "speed": None},
        {"kind": "drive", "name": "/dev/disk/by-id/a", "speed": 6e9},
    ]
    facts = {"node1": {"links": links, "drives": DRIVES}}
    found = facts_of({"name": "link", "link_speed_at_least": "10 Gb/s"}, facts=facts)
    assert [(one.target, one.state) for one in found] == [("eth1", "fail"), ("eth2", "pass"), ("eth3", "not measured")]
    assert found[0].reason == "link of 1 Gb/s, required at least 10 Gb/s"
    # What the kernel says of a drive counts more than SMART.
    found = facts_of({"name": "link", "drive_link_speed_at_least": "6 Gb/s"}, facts=facts)
    assert [(one.target, one.state) for one in found] == [("/dev/disk/by-id/a", "pass"), ("/dev/disk/by-id/b", "pass")]


@pytest.mark.parametrize(
    ("values", "state", "reason"),
    [
        (["disabled", "disabled"], "pass", "no write cache of a drive is enabled"),
        (["disabled", "enabled"], "fail", "the write cache of sdb is enabled"),
        (["disabled", "unknown"], "not measured", "whether the write cache of its drives is enabled is not known"),
        ([], "not measured", "whether the write cache of its drives is enabled is not known"),
    ],
)
def test_drive_caches_that_must_be_off(values, state, reason):
    settings = {("node1", "s"): [("sda", "queue", "write_cache", "enabled"), *zip(("sda", "sdb"), ["drive"] * 2, ["drive"] * 2, values, strict=False)]}
    rows = Rows("c", [measurement(cell=CELL, stack_before="s", stack_after="s")], settings=settings)
    assert [(one.state, one.reason) for one in facts_of({"name": "cache", "drive_cache": "disabled"}, rows)] == [(state, reason)]


def test_drive_cache_that_was_on_in_one_stack_or_not_read_does_not_pass():
    def judged_with(before, after):
        settings = {("node1", "s1"): before, ("node1", "s2"): after}
        rows = Rows("c", [measurement(cell=CELL, stack_before="s1", stack_after="s2")], settings=settings)
        return [one.state for one in facts_of({"name": "cache", "drive_cache": "disabled"}, rows)]

    on, off = [("sda", "drive", "drive", "enabled")], [("sda", "drive", "drive", "disabled")]
    assert judged_with(on, off) == judged_with(off, on) == ["fail"]
    assert judged_with(off, off) == ["pass"]
    # A drive below the target of which there is no row.
    assert judged_with(off, [*off, ("sda", "device", "below", "[]"), ("sdb", "device", "below", "[]")]) == ["not measured"]


def fleet(*rates):
    return Rows("c", [measurement(f"node{number}", cell=CELL, repeat=repeat, iops=rate + repeat) for number, rate in enumerate(rates) for repeat in (1, 2)])


def test_target_unlike_its_siblings_fails():
    found = facts_of({"name": "alike", "siblings": "alike"}, fleet(1000, 1005, 995, 1010, 990, 1000, 700))
    assert [one.state for one in found] == ["pass"] * 6 + ["fail"]
    assert found[-1].reason == "iops of osd_write is 0.70 x that of 6 siblings, required within 10 %"


def test_siblings_beyond_the_limit_that_are_not_out_are_undecided():
    found = facts_of({"name": "alike", "siblings_within": "5 %"}, fleet(1000, 1020, 980, 1040, 960, 1070, 930))
    assert {one.state for one in found} == {"pass", "undecided"}


def test_few_siblings_say_nothing():
    found = facts_of({"name": "alike", "siblings": "alike"}, fleet(1000, 700))
    assert {one.state for one in found} == {"not measured"}
