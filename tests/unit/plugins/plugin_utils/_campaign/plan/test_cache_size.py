# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The size of the cache in front of the targets, from answers of hosts of which the answer is known, and of hosts that answer anything."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.cache_size import cache_size_of
from ansible_collections.cachefleet.storage.plugins.plugin_utils._campaign.plan.suites import needs_cache_size

GIB = 1 << 30


def block_cache(name, size):
    return {"layer": "block_cache", "name": name, "size": size}


def device(*caches, **values):
    return {"layers": [{"name": "top", "caches": [{"layer": "queue"}]}, {"name": "below", "caches": list(caches)}], **values}


DEVICES = {
    "sda": device(path="/dev/sda", mountpoints=["/"]),
    "vg0/a": device(block_cache("vg0/a", 8 * GIB), path="/dev/dm-1", links=["/dev/mapper/vg0-a"], by_id=["/dev/disk/by-id/dm-name-vg0-a"]),
    "vg0/b": device(block_cache("vg0/b", 8 * GIB), path="/dev/dm-2", stable_path="/dev/b", mountpoints=["/srv/data"]),
    "bcache0": device(block_cache("bcache0", 16 * GIB), path="/dev/bcache0"),
    "md0": device(block_cache("one", GIB), block_cache("two", GIB), path="/dev/md0"),
    "bcache1": device({"layer": "block_cache"}, path="/dev/bcache1"),
    "sdc": device({"layer": "controller", "ssd_cache": {"write": "enabled"}}, path="/dev/sdc"),
}


def size_of(*targets, **answer):
    return cache_size_of(targets, answer.get("devices", DEVICES), "cache_read")


@pytest.mark.parametrize("path", ["/dev/vg0/a", "/dev/dm-1", "/dev/mapper/vg0-a", "/dev/disk/by-id/dm-name-vg0-a", "/dev/b"])
def test_cache_is_found_by_any_path_of_its_device(path):
    assert size_of({"device": path}) == 8 * GIB


@pytest.mark.parametrize("target", [{"file": "/srv/data/fio"}, {"directory": "/srv/data/sub/files"}])
def test_cache_of_a_file_is_that_of_its_file_system(target):
    assert size_of(target) == 8 * GIB


def test_targets_with_caches_of_one_size_have_this_size():
    assert size_of({"device": "/dev/vg0/a"}, {"file": "/srv/data/fio"}) == 8 * GIB


@pytest.mark.parametrize(
    ("targets", "why"),
    [
        ([{"device": "/dev/sda"}], "in front of /dev/sda no SSD cache with a known size was found"),
        ([{"file": "/srv/database"}], "in front of /srv/database no SSD cache"),
        ([{"device": "/dev/bcache1"}], "in front of /dev/bcache1 no SSD cache with a known size"),
        ([{"device": "/dev/sdc"}], "in front of /dev/sdc no SSD cache with a known size"),
        ([{"device": "/dev/gone"}], "in front of /dev/gone no SSD cache"),
        ([{"device": "/dev/vg0/a"}, {"device": "/dev/sda"}], "in front of /dev/sda no SSD cache"),
        ([{"device": "/dev/md0"}], "in front of /dev/md0 are 2 caches"),
        ([{"device": "/dev/vg0/a"}, {"device": "/dev/bcache0"}], "those of the targets have several sizes (8 GiB"),
        ([], "there is no target"),
        (["text"], "no SSD cache"),
    ],
)
def test_no_size_or_several_name_the_variable(targets, why):
    with pytest.raises(BadInput) as error:
        size_of(*targets)
    assert why in error.value.message and "suite cache_read: its sizes are multiples of the cache, and " in error.value.message
    assert error.value.message.endswith("set fio_benchmark_cache_size to the size of this host's cache, for example 10g.")


@pytest.mark.parametrize(
    "devices",
    [None, [], {"vg0/a": None}, {"vg0/a": {"layers": "x"}}, {"vg0/a": {"layers": [{"caches": [block_cache("a", "8g")]}]}}]
    + [{"vg0/a": {"layers": [{"caches": [block_cache("a", size)]}]}} for size in (0, -1, True, 10**30)],
)
def test_answers_that_are_none_are_no_size(devices):
    with pytest.raises(BadInput, match="set fio_benchmark_cache_size"):
        size_of({"device": "/dev/vg0/a"}, devices=devices)


@pytest.mark.parametrize("points", [None, "/srv", [None, 1, "/other"]])
def test_mount_points_that_are_none_are_passed_over(points):
    with pytest.raises(BadInput, match="in front of /srv/fio no SSD cache"):
        size_of({"file": "/srv/fio"}, devices={"a": device(block_cache("a", GIB), mountpoints=points)})


def test_suites_with_multiples_need_a_size():
    suites = {
        "plain": {"cells": [{"name": "a", "job": {"rw": "read", "size": "1g"}}]},
        "cached": {"matrix": {"axes": {"of": {"half": {"size": "0.5 x cache"}}}}},
        "same": {"extends": "cached"},
        "over": {"extends": "cached", "matrix": {"axes": {"of": {"half": {"size": "1g"}}}}},
    }
    assert [needs_cache_size(name, suites) for name in (*suites, "none")] == [False, True, True, False, False]
