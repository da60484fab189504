# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Lists that contradict each other are one sentence that names both, before anything is changed."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._host.conflicts import check
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import read_request
from ansible_collections.cachefleet.storage.plugins.modules.cache_layers import argument_spec
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import NamedDevices

HDD, SSD, OTHER = "/dev/disk/by-id/ata-HDD", "/dev/disk/by-id/ata-SSD", "/dev/disk/by-id/ata-OTHER"
DEVICES = NamedDevices(
    [
        BlockDevice(name="sda", path="/dev/sda", number="8:0", by_id=(HDD,), holders=("dm-0",)),
        BlockDevice(name="sdb", path="/dev/sdb", number="8:16", by_id=(SSD,), links=("/dev/disk/by-path/ssd",)),
        BlockDevice(name="sdc", path="/dev/sdc", number="8:32", by_id=(OTHER,)),
        BlockDevice(name="dm-0", path="/dev/dm-0", number="253:0", kind="dm", dm_name="images", slaves=("sda",), links=("/dev/mapper/images", "/dev/vg/data")),
    ]
)


def request_of(**params):
    return read_request({**{name: option.get("default") for name, option in argument_spec().items()}, **params})


def cache(kind, name, origin, device, **more):
    return {"type": kind, "name": name, "origin": origin, "cache_devices": [device], **more}


def sentence(**params):
    with pytest.raises(StorageError) as failure:
        check(request_of(**params), DEVICES)
    return failure.value


def test_one_device_in_two_caches_under_two_names():
    error = sentence(caches=[cache("bcache", "a", HDD, SSD), cache("lvm_cache", "b", "vg/other", "/dev/disk/by-path/ssd")])
    assert isinstance(error, BadInput)
    assert error.message == f"{SSD} is a cache device of both b (lvm_cache) and a (bcache): remove it from one of them."


def test_one_origin_in_two_caches():
    error = sentence(caches=[cache("lvm_cache", "a", "vg/data", SSD), cache("dm_cache", "b", "/dev/mapper/images", OTHER)])
    assert error.message == "/dev/mapper/images is the origin of both a (lvm_cache) and b (dm_cache): keep one of these caches."


def test_an_origin_that_is_the_cache_device_of_another():
    error = sentence(caches=[cache("bcache", "a", SSD, OTHER), cache("flashcache", "b", HDD, SSD)])
    assert error.message == f"{SSD} is the origin of a (bcache) and a cache device of b (flashcache): name another device in one of them."


@pytest.mark.parametrize("kind", ["lvm_cache", "bcache"])
def test_types_that_share_a_cache_device_may(kind):
    origins = ("vg/data", "vg/more") if kind == "lvm_cache" else (HDD, OTHER)
    check(request_of(caches=[cache(kind, "a", origins[0], SSD), cache(kind, "b", origins[1], SSD)]), DEVICES)


def test_a_cache_that_is_removed_leaves_its_devices_to_another():
    check(request_of(caches=[cache("bcache", "a", HDD, SSD, state="absent"), cache("flashcache", "b", HDD, SSD)]), DEVICES)


def test_a_queue_of_a_device_that_is_removed():
    queue = {"device": "/dev/mapper/images", "scheduler": "none"}
    error = sentence(caches=[cache("flashcache", "images", HDD, SSD, state="absent")], queues=[queue])
    assert error.message == (
        "/dev/mapper/images is listed for block_queue and is the device of the cache images (flashcache), which is removed (state: absent):"
        " remove the entry, or keep the cache."
    )
    check(request_of(caches=[cache("flashcache", "images", HDD, SSD)], queues=[queue]), DEVICES)


def test_a_target_that_is_removed():
    gone = cache("dm_cache", "images", HDD, SSD, state="absent")
    target = {"shelf": 1, "slot": 1, "interface": "eth1", "device": "/dev/vg/data"}
    error = sentence(caches=[gone], network={"aoe_targets": [target]})
    assert error.message == (
        "/dev/vg/data is served over AoE (storage_network) and is the device of the cache images (dm_cache), which is removed (state: absent):"
        " remove the entry, or keep the cache."
    )
    check(request_of(caches=[gone], network={"aoe_targets": [{**target, "state": "absent"}]}), DEVICES)


def test_a_cache_on_a_cache_that_is_removed():
    error = sentence(caches=[cache("dm_cache", "images", HDD, SSD, state="absent"), cache("bcache", "b", "/dev/mapper/images", OTHER)])
    assert error.message.startswith("/dev/mapper/images is the origin of b (bcache) and is the device of the cache images (dm_cache), which is removed")


def test_a_queue_of_a_device_that_stays_without_its_cache():
    request = request_of(caches=[cache("bcache", "images", HDD, SSD, state="absent")], queues=[{"device": "/dev/bcache/by-label/images", "scheduler": "none"}])
    check(request, DEVICES)


def test_a_queue_of_a_device_that_another_cache_makes_again():
    caches = [cache("dm_cache", "images", HDD, SSD, state="absent"), cache("flashcache", "images", HDD, SSD)]
    check(request_of(caches=caches, queues=[{"device": "/dev/mapper/images", "scheduler": "none"}]), DEVICES)


@pytest.mark.parametrize(
    ("served", "role", "instead"),
    [(HDD, "the origin", "serve /dev/mapper/images instead"), (SSD, "a cache device", "serve the cached device instead")],
)
def test_a_device_that_is_served_past_its_cache(served, role, instead):
    target = {"shelf": 1, "slot": 1, "interface": "eth1", "device": served}
    error = sentence(caches=[cache("flashcache", "images", HDD, SSD)], network={"aoe_targets": [target]})
    assert error.message == f"{served} is served over AoE (storage_network) and is {role} of the cache images (flashcache): {instead}."
    check(request_of(caches=[cache("flashcache", "images", HDD, SSD)], network={"aoe_targets": [{**target, "device": "/dev/mapper/images"}]}), DEVICES)


def test_a_write_cache_below_a_cache_that_ignores_flushes():
    drive = {"device": HDD, "write_cache": "enabled"}
    error = sentence(drives=[drive], caches=[cache("flashcache", "b", "/dev/vg/data", SSD)])
    assert isinstance(error, Refused)
    assert error.message.startswith(f"{HDD} has write_cache: enabled (drive_write_cache) and is below b (flashcache), which passes no flushes on to it:")
    check(request_of(drives=[{**drive, "write_cache": "disabled"}], caches=[cache("flashcache", "b", "/dev/vg/data", SSD)]), DEVICES)
    check(request_of(drives=[{**drive, "allow_ignored_flushes": True}], caches=[cache("flashcache", "b", "/dev/vg/data", SSD)]), DEVICES)


def test_a_write_cache_that_a_match_enables_below_a_cache_that_ignores_flushes():
    devices = NamedDevices([dataclasses.replace(one, size=1 << 30, transport="sata") for one in DEVICES])
    everything = {"match": {"transport": "sata"}, "write_cache": "enabled"}
    lists = {"caches": [cache("flashcache", "b", "/dev/vg/data", SSD)]}
    with pytest.raises(Refused, match=rf"^{HDD} has write_cache: enabled \(drive_write_cache\) and is below b \(flashcache\)"):
        check(request_of(drives=[everything], **lists), devices)
    # What decides is the entry of each drive: one that names it, or the last match.
    off = [{"device": HDD, "write_cache": "disabled"}, {"device": SSD, "write_cache": "disabled"}]
    check(request_of(drives=[everything, *off], **lists), devices)
    check(request_of(drives=[everything, {"match": {"kind": "disk"}, "write_cache": "disabled"}], **lists), devices)


def test_devices_that_are_not_there_are_compared_by_their_paths():
    gone = "/dev/disk/by-id/ata-GONE"
    error = sentence(caches=[cache("bcache", "a", HDD, gone), cache("dm_cache", "b", OTHER, gone)])
    assert f"{gone} is a cache device of both" in error.message
    assert dataclasses.asdict(request_of())["drives"] == []
