# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the measurements of a campaign to judgements."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept.measured import judged, judgements
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.report.rows import Rows
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.results.flows import CellFlows
from ansible_collections.cachefleet.storage.tests.unit.support.planted_fleet import REQUIREMENT
from ansible_collections.cachefleet.storage.tests.unit.support.planted_flows import disk, rows_of
from ansible_collections.cachefleet.storage.tests.unit.support.planted_flows import planted as flowing
from ansible_collections.cachefleet.storage.tests.unit.support.report_rows import measurement
from ansible_collections.cachefleet.storage.tests.unit.support.synthetic_campaign import write_campaign

CELL = "osd_write"
#: Six hosts that repeat within 1 %, and others beside them.
CLASS = {f"node{number}": (1300, 1310, 1290, 1305) for number in range(6)}


def rows(hosts=None, cell=CELL, variant="none", **changes):
    every = {**CLASS, **(hosts or {})}
    return [
        measurement(host, variant, cell, repeat, iops=float(iops), **changes) for host, values in every.items() for repeat, iops in enumerate(values, start=1)
    ]


def states(found):
    return {(one.host, one.target): one.state for one in found}


def test_hosts_are_judged_with_the_noise_of_their_class():
    found = judged(Rows("c", rows({"slow": (700, 705), "near": (1010, 1030), "once": (1300,)})), [REQUIREMENT])
    by_host = {one.host: one for one in found}
    assert {host: one.state for host, one in by_host.items() if host not in CLASS} == {"slow": "fail", "near": "undecided", "once": "undecided"}
    assert {by_host[host].state for host in CLASS} == {"pass"}
    assert (by_host["slow"].looks, by_host["slow"].target) == (2, "/dev/vg0/scratch")
    assert by_host["slow"].low < by_host["slow"].value < by_host["slow"].high < 1000


def test_targets_of_a_host_are_judged_one_by_one():
    two = [one for name in ("sda", "sdb") for one in rows(cell=f"{CELL}.{name}", target=f"/dev/{name}")]
    slow = rows({"other": (500, 505, 495)}, cell=f"{CELL}.sdc", target="/dev/sdc")
    found = states(judged(Rows("c", two + slow), [REQUIREMENT]))
    assert found["node1", "/dev/sda"] == found["node1", "/dev/sdb"] == "pass"
    assert found["other", "/dev/sdc"] == "fail"


def test_latencies_are_in_milliseconds_and_syncs_are_a_direction():
    limit = dataclasses.replace(REQUIREMENT, metric="p99", direction="sync", limit=10.0, unit="ms", at_least=False)
    found = judged(Rows("c", rows() + rows(direction="sync", p99_ns=7_000_000)), [limit])
    assert {one.state for one in found} == {"pass"}
    assert found[0].value == pytest.approx(7.0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"state": "failed", "reason": "fio exited with 1\x1b[31m", "direction": None}, "fio exited with 1"),
        ({"state": "missing", "direction": None}, "missing"),
        ({"not_deciding": "its caches were not clean"}, "its caches were not clean"),
        ({"iops": None}, "osd_write has no iops of write: 60,000 I/Os may be too few for it"),
    ],
)
def test_what_has_no_figure_is_not_measured_and_says_why(changes, reason):
    found = judged(Rows("c", [measurement("node1", "none", CELL, 1, **changes)]), [REQUIREMENT])
    assert [(one.state, one.value, one.reason) for one in found] == [("not measured", None, reason)]


def test_host_without_any_result_is_not_measured():
    found = judged(Rows("c", rows()), [REQUIREMENT], {"silent": {}})
    assert [(one.state, one.reason) for one in found if one.host == "silent"] == [("not measured", "osd_write was not measured")]


def test_workload_that_one_target_lacks_is_not_measured_there():
    other = dataclasses.replace(REQUIREMENT, name="log", workload="etcd_log")
    found = judged(Rows("c", rows() + rows({}, cell="etcd_log")[:4]), [REQUIREMENT, other])
    assert [one.state for one in found if one.requirement.name == "log"].count("not measured") == 5
    assert len(found) == 12


def test_last_variant_counts():
    before = rows(dict.fromkeys(CLASS, (500, 500, 500, 500)), variant="writethrough")
    found = judged(Rows("c", before + rows(variant="writeback")), [REQUIREMENT])
    assert {one.state for one in found} == {"pass"}


def test_cause_is_named_where_a_host_does_not_pass():
    flows = CellFlows((disk("sda", level=0, writes=(90, 1.0), flushes=(90, 10.0)),), ())
    found = judged(rows_of(flowing("none", *[(90, flows)] * 4, cell=CELL)), [REQUIREMENT])
    assert found[0].state == "fail"
    assert found[0].reason.endswith("; limited by flushes: sda: 90 flushes per second of 10 ms")


def test_campaign_folder_is_judged_with_shares_of_its_seconds(tmp_path):
    load = ("randwrite", "4k", 16)
    folder = write_campaign(tmp_path / "synthetic", 6, cells=8, seconds=20, loads=[load])
    rate = dataclasses.replace(REQUIREMENT, workload="randwrite-4k-qd16", limit=5000.0)
    seconds = dataclasses.replace(rate, name="seconds", share=0.9)
    latency = dataclasses.replace(rate, name="latency", metric="p90", limit=1000.0, unit="ms", at_least=False)
    absent = dataclasses.replace(rate, name="absent", workload="etcd_wal")
    found = judgements(folder, [rate, seconds, latency, absent])
    by_name = {name: [one for one in found if one.requirement.name == name] for name in ("rate", "seconds", "latency", "absent")}
    assert [len(some) for some in by_name.values()] == [6, 6, 6, 6]
    assert {one.state for name in ("rate", "seconds", "latency") for one in by_name[name]} == {"pass"}
    assert {one.state for one in by_name["absent"]} == {"not measured"}
    # Nine seconds of ten reach less than the mean of all.
    assert all(0.85 < less.value / all_of.value < 0.99 for less, all_of in zip(by_name["seconds"], by_name["rate"], strict=True))
