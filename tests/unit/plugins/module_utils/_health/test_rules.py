# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import STATES
from ansible_collections.cachefleet.storage.plugins.module_utils._device.over_provisioning import Reserve
from ansible_collections.cachefleet.storage.plugins.module_utils._health.diagnosis import Diagnosis
from ansible_collections.cachefleet.storage.plugins.module_utils._health.findings import Finding, Limits, in_order
from ansible_collections.cachefleet.storage.plugins.module_utils._health.hit_rates import CacheActivity
from ansible_collections.cachefleet.storage.plugins.module_utils._health.readings import Readings
from ansible_collections.cachefleet.storage.plugins.module_utils._health.rules import cache_findings, drive_findings, reserve_findings
from ansible_collections.cachefleet.storage.tests.unit.support.health import CACHE, GIB, cache, drive


def of_drive(before=None, limits=None, **changes):
    return [(one.severity, one.check) for one in drive_findings([drive(**changes)], limits or Limits(), before)]


def of_cache(passed=None, average=(None, 0), limits=None, **changes):
    found = cache_findings(cache(**changes), passed or CacheActivity(), Diagnosis(), average, limits or Limits())
    return [(one.severity, one.check) for one in found]


def test_healthy_drive_and_cache_give_no_findings():
    assert of_drive(wear_used_percent=10, spare_percent=100, spare_threshold_percent=10, reallocated=0, pending=0, media_errors=0) == []
    assert of_drive() == []
    assert of_cache() == []
    assert of_cache(mode="writeback", redundancy="mirrored", dirty=10 * GIB) == []


@pytest.mark.parametrize(("used", "severity"), [(79, None), (80, "warning"), (89, "warning"), (90, "critical"), (143, "critical")])
def test_wear_severity_thresholds(used, severity):
    assert of_drive(wear_used_percent=used) == ([] if severity is None else [(severity, "drive_wear")])


def test_message_names_drive_attribute_and_limit():
    worn = drive(wear_used_percent=91, evidence={"wear_used_percent": "Media_Wearout_Indicator (attribute 233, value 9)"})
    (finding,) = drive_findings([worn], Limits())
    assert finding.message.startswith("/dev/disk/by-id/ata-SSD0 (TESTSSD) has used 91% of its rated endurance")
    assert finding.message.endswith("(Media_Wearout_Indicator (attribute 233, value 9); the limit is 90%): replace it.")
    assert (finding.value, finding.limit) == (91, 90)


@pytest.mark.parametrize(("count", "found"), [(99, []), (100, [("critical", "drive_reallocated")])])
def test_one_hundred_reallocated_sectors_are_critical(count, found):
    assert of_drive(reallocated=count) == found


def test_spare_is_compared_with_the_threshold_of_the_drive():
    assert of_drive(spare_percent=11, spare_threshold_percent=10) == []
    assert of_drive(spare_percent=10, spare_threshold_percent=10) == [("critical", "drive_spare")]
    assert of_drive(spare_percent=0) == []


def test_failures_reported_by_the_drive():
    assert of_drive(passed=False) == [("critical", "drive_status")]
    assert of_drive(passed=None) == []
    assert of_drive(failing=("Reallocated_Sector_Ct",)) == [("critical", "drive_attribute")]
    assert of_drive(warnings=("media read-only",)) == [("critical", "drive_warning")]
    assert of_drive(warnings=("temperature out of its limits",)) == [("warning", "drive_warning")]


def test_media_errors_and_pending_sectors_are_warnings():
    assert of_drive(pending=1, media_errors=2) == [("warning", "drive_pending"), ("warning", "drive_media_errors")]


def test_growth_since_the_last_reading_is_reported_below_the_limit():
    before = Readings(drives={"S1": {"reallocated": 3, "media_errors": 1}})
    assert of_drive(before, reallocated=4) == [("warning", "drive_reallocated_grown")]
    assert of_drive(before, reallocated=3) == []
    assert of_drive(before, media_errors=2) == [("warning", "drive_media_errors"), ("warning", "drive_media_errors_grown")]
    assert of_drive(Readings(), reallocated=4) == []


def test_reserve_is_reported_and_missing_reserve_is_not():
    (finding,) = reserve_findings([Reserve("sda", "/dev/a", 240, 1000, hidden=760), Reserve("sdb", "/dev/b", 1000, 1000)])
    assert (finding.severity, finding.value) == ("info", 76.0)


@pytest.mark.parametrize("state", STATES)
def test_every_state_except_ok_is_a_finding(state):
    found = of_cache(state=state, problem="" if state == "ok" else "Something is wrong.")
    assert found == ([] if state == "ok" else [("warning" if state == "inactive" else "critical", "cache_state")])


@pytest.mark.parametrize("state", [one for one in STATES if one != "ok"])
def test_state_without_message_gets_one_with_the_cache_name(state):
    for problem in ("", "Its metadata is damaged."):
        (finding,) = cache_findings(cache(state=state, problem=problem), CacheActivity(), Diagnosis(), (None, 0), Limits())
        assert "vg0/images" in finding.message


def test_writeback_on_one_drive_or_degraded_mirror():
    assert of_cache(mode="writeback", redundancy="none") == [("warning", "cache_redundancy")]
    assert of_cache(mode="writeback", redundancy="degraded") == [("critical", "cache_redundancy")]
    assert of_cache(mode="writethrough", redundancy="degraded") == []


@pytest.mark.parametrize(
    ("dirty", "average", "found"),
    [
        (29, (None, 0), []),
        (30, (None, 0), [("warning", "cache_dirty")]),
        (60, (0.2, 5), []),
        (5, (0.31, 24), [("warning", "cache_dirty")]),
        (70, (0.1, 24), [("critical", "cache_dirty")]),
        (100, (None, 0), [("critical", "cache_dirty")]),
        (0, (0.9, 24), []),
    ],
)
def test_dirty_share_limits_for_average_and_maximum(dirty, average, found):
    assert of_cache(dirty=dirty * GIB, average=average) == found


@pytest.mark.parametrize(("used", "size", "found"), [(79, 100, False), (80, 100, True), (100, 100, True), (None, 100, False), (9, None, False), (0, 0, False)])
def test_metadata_that_is_nearly_full_is_a_warning(used, size, found):
    assert of_cache(metadata_used=used, metadata_size=size) == ([("warning", "cache_metadata")] if found else [])
    assert of_cache(metadata_used=used, metadata_size=size, limits=Limits(metadata=101)) == []


def test_message_about_metadata_states_amount_and_consequence():
    (finding,) = cache_findings(cache(metadata_used=7 << 20, metadata_size=8 << 20), CacheActivity(), Diagnosis(), (None, 0), Limits())
    assert finding.message.startswith("lvm_cache vg0/images uses 87.5% of the 8 MiB for its metadata (the limit is 80%): when it is full, the cache becomes")
    assert (finding.value, finding.limit) == (87.5, 80)


@pytest.mark.parametrize("changes", [{"dirty": None}, {"size": None, "dirty": 5}])
def test_unknown_dirty_share_gives_no_finding(changes):
    assert of_cache(**changes) == []


def test_new_errors_are_critical_and_old_errors_a_warning():
    counters = {"cache_errors": 3, "origin_errors": 1}
    assert of_cache(counters=counters) == [("warning", "cache_errors"), ("warning", "origin_errors")]
    happened = CacheActivity("measured", 60.0, {"cache_errors": 1, "origin_errors": 0})
    assert of_cache(happened, counters=counters) == [("critical", "cache_errors"), ("warning", "origin_errors")]


def test_low_hit_rate_with_enough_requests_is_a_warning():
    assert of_cache(CacheActivity("measured", 60.0, {"read_hits": 100, "read_misses": 900})) == [("warning", "cache_hits")]
    assert of_cache(CacheActivity("measured", 60.0, {"read_hits": 200, "read_misses": 800})) == []
    assert of_cache(CacheActivity("measured", 60.0, {"read_hits": 10, "read_misses": 90})) == []
    assert of_cache(CacheActivity("measured", 60.0, {"read_hits": 10, "read_misses": 90}), limits=Limits(requests=100)) == [("warning", "cache_hits")]


@pytest.mark.parametrize("changes", [{"kind": "writecache", "mode": "writeback", "redundancy": "mirrored"}, {"mode": "passthrough"}, {"mode": "none"}])
def test_cache_not_used_for_reads_is_not_judged_by_read_hits(changes):
    assert of_cache(CacheActivity("measured", 60.0, {"read_hits": 0, "read_misses": 9000}), **changes) == []


def test_every_limit_is_used_by_a_rule():
    """A limit that nothing reads would be an option without effect."""
    cases = {
        "wear_used": lambda limits: of_drive(limits=limits, wear_used_percent=85),
        "wear_used_soon": lambda limits: of_drive(limits=limits, wear_used_percent=79),
        "reallocated": lambda limits: of_drive(limits=limits, reallocated=50),
        "dirty": lambda limits: of_cache(limits=limits, dirty=65 * GIB, average=(0.0, 5)),
        "dirty_average": lambda limits: of_cache(limits=limits, dirty=29 * GIB),
        "metadata": lambda limits: of_cache(limits=limits, metadata_used=70, metadata_size=100),
        "read_hits": lambda limits: of_cache(CacheActivity("measured", 60.0, {"read_hits": 0, "read_misses": 9000}), limits=limits),
        "uncacheable": lambda limits: list(cache_findings(CACHE, CacheActivity(), Diagnosis(requests=9000, uncacheable_percent=10.0), (None, 0), limits)),
        "requests": lambda limits: of_cache(CacheActivity("measured", 60.0, {"read_hits": 0, "read_misses": 500}), limits=limits),
    }
    assert set(cases) == {one.name for one in dataclasses.fields(Limits)}
    for name, look in cases.items():
        assert look(Limits()) != look(Limits(**{name: 5 if name != "read_hits" else 0})), name


def test_findings_are_ordered_by_severity_without_duplicates():
    findings = [Finding("info", "a", "x", "1"), Finding("critical", "b", "x", "2"), Finding("warning", "a", "x", "3"), Finding("critical", "b", "x", "2")]
    assert [one.message for one in in_order(findings)] == ["2", "3", "1"]
