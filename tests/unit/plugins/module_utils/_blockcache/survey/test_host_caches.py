# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.model import CacheState
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey import host_caches as survey
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.survey.host_caches import Drain, Survey
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.types import TYPES
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import ScriptedRunner


def cache(name="images", kind="lvm_cache", **fields):
    plain = {
        "type": kind,
        "name": name,
        "kind": kind,
        "device": f"/dev/mapper/{name}",
        "device_name": "dm-3",
        "origin": "/dev/disk/by-id/hdd",
        "origin_name": "sda",
        "size": 1000,
        "dirty": 0,
    }
    return CacheState(**{**plain, **fields})


@pytest.fixture
def host(tmp_path):
    """Two disks, one with two links."""
    links = tmp_path / "dev/disk/by-id"
    links.mkdir(parents=True)
    for name in ("sda", "sdb"):
        (tmp_path / "dev" / name).write_text("")
    for link, name in (("hdd", "sda"), ("wwn-1", "sda"), ("ssd", "sdb")):
        os.symlink(tmp_path / "dev" / name, links / link)
    return Devices([BlockDevice(name, f"/dev/{name}", "8:0") for name in ("sda", "sdb")], tmp_path)


@pytest.fixture
def readers(monkeypatch):
    found = {}
    monkeypatch.setattr(survey, "READERS", found)
    return found


def broken(*_arguments):
    raise NotUnderstood("line 3 of /proc/enhanceio could not be parsed.")


def test_failing_reader_does_not_hide_other_readers(readers, tmp_path):
    given = []

    def reader(devices, runner, root):
        given.append((devices, runner, root))
        return (cache(),)

    readers.update(lvm_cache=reader, enhanceio=broken)
    devices = Devices(())
    found = survey.read_caches(devices, "runner", tmp_path)
    assert found.caches == (cache(),)
    assert found.problems == ("The caches of type enhanceio could not be read: line 3 of /proc/enhanceio could not be parsed.",)
    assert given == [(devices, "runner", tmp_path)]


def test_suspended_device_is_a_problem_for_every_cache_type(readers, tmp_path):
    suspended = BlockDevice(name="dm-0", path="/dev/dm-0", number="253:0", kind="lvm", dm_name="vg-data", dm_uuid="LVM-abc", suspended=True)
    (message,) = survey.read_caches(Devices((suspended, dataclasses.replace(suspended, name="dm-1", suspended=False))), "runner", tmp_path).problems
    assert message.startswith("/dev/vg/data is suspended, so that everything that is written to it or read from it waits")
    assert "dmsetup resume vg-data" in message


def test_only_requested_types_are_read(readers):
    readers.update(lvm_cache=broken, bcache=lambda *arguments: (cache(kind="bcache"),))
    assert survey.read_caches(Devices(()), None, types=["bcache"]) == Survey((cache(kind="bcache"),))


def test_caches_are_in_natural_device_order_with_deviceless_last(readers):
    names = ["dm-10", None, "dm-2", "bcache1", "sda", "bcache0"]
    readers["dm_cache"] = lambda *arguments: tuple(cache(str(name), "dm_cache", device_name=name) for name in names)
    readers["bcache"] = lambda *arguments: (cache("dm-2", "bcache", device_name="dm-2"),)
    found = survey.read_caches(Devices(()), None)
    assert [(one.device_name, one.type) for one in found.caches] == [
        ("bcache0", "dm_cache"),
        ("bcache1", "dm_cache"),
        ("dm-2", "bcache"),
        ("dm-2", "dm_cache"),
        ("dm-10", "dm_cache"),
        ("sda", "dm_cache"),
        (None, "dm_cache"),
    ]


@pytest.mark.parametrize("word", ["images", "/dev/mapper/images", "dm-3", "/dev/disk/by-id/hdd", "/dev/disk/by-id/wwn-1", "sda", "/dev/sda"])
def test_cache_is_selected_by_name_device_or_origin(host, word):
    other = cache("other", device="/dev/mapper/other", device_name="dm-4", origin="/dev/disk/by-id/ssd", origin_name="sdb")
    assert survey.select(Survey((cache(), other), ("a",)), [word], host) == Survey((cache(),), ("a",))


@pytest.mark.parametrize("word", ["image", "/dev/disk/by-id/gone", "/dev/sdb", "", "None"])
def test_selector_without_match_is_a_problem(host, word):
    found = survey.select(Survey((cache(), cache("lost", device=None, device_name=None, origin=None, origin_name=None))), [word], host)
    assert found == Survey((), (f"No SSD cache of this host has the name, the device or the origin {word}.",))


def test_cache_matched_twice_is_reported_once(host):
    assert survey.select(Survey((cache(),)), ["images", "sda"], host) == Survey((cache(),))


def test_no_selector_selects_all(host):
    assert survey.select(Survey((cache(),), ("a",)), [], host) == Survey((cache(),), ("a",))


@pytest.mark.parametrize(
    ("was", "now", "pace", "left"),
    [
        (3000, 1000, 200.0, 5.0),
        (1000, 1000, 0.0, None),
        (1000, 2000, -100.0, None),
        (1000, 0, 100.0, 0.0),
        (0, 0, 0.0, 0.0),
        (None, 1000, None, None),
        (1000, None, None, None),
        (None, 0, None, 0.0),
    ],
)
def test_drain_rate_and_remaining_time(was, now, pace, left):
    drains = survey.drain_of(Survey((cache(dirty=was),)), Survey((cache(dirty=now),)), 10.0)
    assert drains == (Drain("images", "lvm_cache", now, pace, left),)


def test_new_cache_has_no_drain_rate_and_removed_cache_is_omitted():
    before = Survey((cache(dirty=500), cache(kind="bcache", dirty=500)))
    after = Survey((cache("new", dirty=100), cache(kind="bcache", dirty=400)))
    assert survey.drain_of(before, after, 1.0) == (Drain("new", "lvm_cache", 100, None, None), Drain("images", "bcache", 400, 100.0, 4.0))


def test_sample_uses_the_measured_elapsed_time():
    surveys = iter([Survey((cache(dirty=3000),)), Survey((cache(dirty=1000),))])
    clock = iter([100.0, 120.0])
    slept = []
    found, drains = survey.sample(lambda: next(surveys), 5, lambda: next(clock), slept.append)
    assert (found.caches[0].dirty, slept) == (1000, [5])
    assert drains == (Drain("images", "lvm_cache", 1000, 100.0, 10.0),)


def test_clean_caches_are_not_read_twice():
    surveys = iter([Survey((cache(dirty=0),))])
    assert survey.sample(lambda: next(surveys), 5, lambda: 0.0, pytest.fail) == (Survey((cache(dirty=0),)), (Drain("images", "lvm_cache", 0, 0.0, 0.0),))


@pytest.mark.parametrize(("dirty", "problems"), [(None, ()), (1, ()), (0, ("lvs failed",))])
def test_caches_that_may_be_dirty_are_read_twice(dirty, problems):
    readings = [Survey((cache(dirty=dirty),), problems)] * 2
    slept = []
    survey.sample(iter(readings).__next__, 5, lambda: 0.0, slept.append)
    assert slept == [5]


@pytest.mark.parametrize("seconds", [0, -3])
def test_zero_seconds_takes_one_reading(seconds):
    surveys = iter([Survey((cache(),))])
    assert survey.sample(lambda: next(surveys), seconds, lambda: 0.0, pytest.fail) == (Survey((cache(),)), ())


@pytest.mark.parametrize(
    ("fields", "share"), [({"dirty": 250}, 0.25), ({"dirty": 0}, 0.0), ({"dirty": None}, None), ({"size": None}, None), ({"size": 0}, None)]
)
def test_dirty_share(fields, share):
    assert survey.dirty_share(cache(**fields)) == share


@pytest.mark.parametrize(
    ("counters", "ratio"),
    [
        ({"read_hits": 3, "read_misses": 1}, 0.75),
        ({"read_hits": 3, "read_misses": 1, "write_hits": 1, "write_misses": 5}, 0.4),
        ({"read_hits": 3, "read_misses": 1, "write_hits": 100}, 0.75),
        ({"read_hits": 0, "read_misses": 4}, 0.0),
        ({"read_hits": 0, "read_misses": 0}, None),
        ({"read_hits": 5}, None),
        ({}, None),
    ],
)
def test_hit_ratio_requires_hits_and_misses(counters, ratio):
    assert survey.hit_ratio(cache(counters=counters)) == (pytest.approx(ratio) if ratio is not None else None)


def test_dict_includes_computed_values():
    plain = survey.cache_to_dict(cache(dirty=100, counters={"read_hits": 1, "read_misses": 1}))
    assert (plain["name"], plain["dirty_share"], plain["hit_ratio"]) == ("images", 0.1, 0.5)


def test_every_type_has_a_reader():
    assert tuple(survey.READERS) == TYPES


def test_host_without_caches_and_tools_reports_nothing(tmp_path):
    """Nothing there is nothing to tell, and no problem."""
    runner = ScriptedRunner({}, missing={"lvm", "lvs", "pvs", "dmsetup", "udevadm"})
    assert survey.read_caches(Devices([], tmp_path), runner, tmp_path) == Survey()
    assert runner.calls == []
