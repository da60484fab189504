# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements as they are written, the included profiles, and what is refused."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.accept import requirements as read
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import read_suite

WAL = {"name": "wal", "workload": "etcd_wal", "metric": "p99", "of": "sync", "at_most": "10 ms"}
RATE = {"name": "rate", "workload": "osd_write", "metric": "iops", "of": "write", "at_least": "500 /s"}


def one(item):
    return read.parse([item])[0]


def test_measured_requirement_is_in_base_units():
    found = one({**WAL, "confidence": "99 %", "source": "ours, 2026"})
    assert (found.kind, found.workload, found.metric, found.direction) == ("measured", "etcd_wal", "p99", "sync")
    assert (found.limit, found.unit, found.at_least, found.confidence, found.source) == (10.0, "ms", False, 0.99, "ours, 2026")


@pytest.mark.parametrize(
    ("metric", "limit", "value"),
    [("iops", "1500 IOPS", 1500), ("iops", "500/s", 500), ("bandwidth", "1.5 GB/s", 1.5e9), ("bandwidth", "100 MiB/s", 104857600), ("mean", "250 us", 0.25)],
)
def test_units_are_converted(metric, limit, value):
    assert one({**RATE, "metric": metric, "at_least": limit}).limit == pytest.approx(value)


def test_share_of_seconds_is_kept_and_that_of_a_percentile_is_its_own():
    assert one({**RATE, "share": "99 %"}).share == 0.99
    assert one({**WAL, "share": "99 %"}).share is None


@pytest.mark.parametrize(
    ("item", "kind", "limit", "names"),
    [
        ({"survives": "power_failure"}, "survives_power_failure", None, ()),
        ({"survives": "device_loss"}, "survives_device_loss", None, ()),
        ({"flush": "proved"}, "flush_proved", None, ()),
        ({"siblings": "alike"}, "sibling", None, ()),
        ({"siblings_within": "10 %"}, "sibling", 0.1, ()),
        ({"hit_ratio_at_least": "80 %", "workload": "object_read"}, "hit_ratio", 0.8, ()),
        ({"dirty_at_most": "20 %"}, "dirty", 0.2, ()),
        ({"wear_at_most": "10 %"}, "wear", 0.1, ()),
        ({"link_speed_at_least": "6 Gb/s"}, "link_speed", 6e9, ()),
        ({"firmware_not": ["2.1.0"]}, "firmware", None, ("2.1.0",)),
    ],
)
def test_facts_are_read(item, kind, limit, names):
    found = one({"name": "fact", **item})
    assert (found.kind, found.limit, found.names) == (kind, limit if limit is None else pytest.approx(limit), names)


def test_only_the_workloads_that_are_required_are_measured():
    found = read.parse([WAL, {**WAL, "name": "mean", "metric": "mean"}, {"name": "power", "survives": "power_failure"}, RATE])
    assert read.workloads(found) == ("etcd_wal", "osd_write")


def test_every_profile_has_sources_with_a_date_and_its_workloads_are_in_the_suite():
    assert read.profile_names() == ("boot_disk", "ceph_osd", "etcd", "mysql", "object_store", "postgresql", "vm_host")
    for profile in read.profile_names():
        found = read.parse([], [profile])
        assert all("20" in one.source for one in found)
    every = read.workloads(read.parse([], read.profile_names()))
    assert set(every) == {cell.name for cell in read.included_suite().cells}


def test_own_requirement_replaces_that_of_a_profile():
    stricter = {"name": "etcd_sequential_writes", "workload": "etcd_log", "metric": "iops", "of": "write", "at_least": "500 /s"}
    found = {one.name: one for one in read.parse([stricter], ["etcd"])}
    assert found["etcd_sequential_writes"].limit == 500
    assert found["etcd_wal_fsync"].limit == 10


def test_read_only_target_fits_profiles_that_only_read():
    read.check_target(read.parse([], ["object_store", "postgresql"]), read_only=True)
    read.check_target(read.parse([], ["etcd"]))
    with pytest.raises(BadInput, match="etcd_wal_fsync: its workload etcd_wal writes, and accept_read_only is true"):
        read.check_target(read.parse([], ["etcd"]), read_only=True)


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ({**WAL, "at_most": "10"}, "'at_most' is 10 without a unit: write for example '10 ms'"),
        ({**WAL, "at_most": 10}, "'at_most' is 10 without a unit"),
        ({**WAL, "at_most": "10 MB/s"}, "'at_most' has the unit 'MB/s': use ms, s, us, µs"),
        ({**WAL, "at_most": "fast"}, "'at_most' is 'fast': write a number with its unit"),
        ({**WAL, "at_least": "1 ms"}, "it needs either 'at_least' or 'at_most'"),
        ({**WAL, "at_most": "0 ms"}, "no measurement can decide it: every drive is on the same side of a limit of 0"),
        ({**WAL, "workload": "redis"}, "there is no workload 'redis': the suite accept has boot_write"),
        ({**WAL, "metric": "p98"}, "there is no metric 'p98'"),
        ({**WAL, "of": "flush"}, "'of' must be read, sync, write, not 'flush'"),
        ({**WAL, "of": "read"}, "no measurement can decide it: etcd_wal has no reads"),
        ({**WAL, "workload": "object_read"}, "no measurement can decide it: object_read has neither fsync nor fdatasync"),
        ({**WAL, "metric": "bandwidth", "at_most": "1 MB/s"}, "no measurement can decide it: a sync has no bandwidth"),
        ({**WAL, "share": "95 %"}, "no measurement can decide it: p99 has its own share of the I/Os"),
        ({**WAL, "metric": "mean", "share": "95 %"}, "no measurement can decide it: fio logs no syncs of each second"),
        ({**RATE, "share": "0 %"}, "'share' must be above 0 %"),
        ({**RATE, "share": "120 %"}, "'share' is 120 %, and at most 100 % is possible"),
        ({**RATE, "confidence": "100 %"}, "'confidence' must be from 50 % to below 100 %"),
        ({**RATE, "limit": "1 ms"}, "'limit' is not supported; supported are at_least"),
        ({"name": "empty"}, "'workload' is missing"),
        ({"name": "power", "survives": "fire"}, "'survives' must be power_failure or device_loss, not 'fire'"),
        ({"name": "two", "survives": "power_failure", "flush": "proved"}, "write two requirements"),
        ({"name": "firmware", "firmware_not": "2.1.0"}, "'firmware_not' must be a list of texts"),
        ({"name": "worn", "wear_at_most": "10 ms"}, "'wear_at_most' has the unit 'ms': use %"),
        ({"name": "worn", "wear_at_most": "10 %", "workload": "etcd_wal"}, "'workload' is not supported; supported are name, source, wear_at_most"),
        ({"name": "../x", "survives": "power_failure"}, "each requirement needs a 'name' of letters"),
        ({"survives": "power_failure"}, "each requirement needs a 'name' of letters"),
        ({"name": "power", "survives": "power_failure", "source": 7}, "'source' must be a text"),
    ],
)
def test_invalid_requirements_are_one_sentence(item, sentence):
    with pytest.raises(BadInput) as caught:
        one(item)
    assert sentence in caught.value.message
    assert caught.value.message.startswith("accept_requirements")
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("items", "profiles", "sentence"),
    [
        ([WAL, WAL], [], "two requirements are named wal"),
        ([], [], "Nothing is required: set accept_profile to one of boot_disk"),
        ([], ["oracle"], "There is no profile 'oracle': accept_profile takes boot_disk"),
        ("etcd", [], "accept_requirements must be a list of dictionaries"),
        (["wal"], [], "accept_requirements must be a list of dictionaries"),
    ],
)
def test_invalid_lists_are_one_sentence(items, profiles, sentence):
    with pytest.raises(BadInput) as caught:
        read.parse(items, profiles)
    assert sentence in caught.value.message


def test_profiles_with_different_limits_of_one_name_are_refused(monkeypatch):
    lines = {"a": [one(WAL)], "b": [one({**WAL, "at_most": "5 ms"})]}
    monkeypatch.setattr(read, "_of_profile", lambda profile, _suite: lines[profile])
    with pytest.raises(BadInput, match="two profiles have different limits for wal: write this requirement in accept_requirements"):
        read.parse([], ["a", "b"])
    assert read.parse([WAL], ["a", "b"])[0].limit == 10


def test_fill_of_another_suite_decides_nothing():
    suite = read_suite("own", {"own": {"cells": [{"name": "fill", "fill": True, "job": {"rw": "write", "bs": "1m"}}]}})
    with pytest.raises(BadInput, match="no measurement can decide it: fill is a fill"):
        read.parse([{**RATE, "workload": "fill"}], suite=suite)
