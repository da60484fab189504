# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How one list of caches is divided among modules, and how a cache device is followed through it."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.cachefleet.storage.plugins.filter.block_caches import (
    block_caches,
    caches_have_moved,
    caches_on_device,
    caches_to_migrate,
    replace_cache_device,
)
from ansible_collections.cachefleet.storage.plugins.filter.replacement_notice import replacement_notice

A, B, C = ("/dev/disk/by-id/ata-" + name for name in "ABC")
IMAGES = {"name": "images", "type": "lvm_cache", "origin": "vg0/images", "cache_devices": [A], "mode": "writeback"}
LOGS = {"name": "logs", "type": "dm_cache", "origin": "/dev/disk/by-id/ata-HDD", "cache_devices": [B]}


def _calls(caches):
    """What the role would call, in its order: (part, type, names)."""
    calls = []
    for part in ("removed", "rest"):
        calls += [(part, call["type"], [item["name"] for item in call["caches"]]) for call in block_caches(caches, part)]
    return calls


def test_each_type_is_called_once_with_all_its_caches_without_role_options():
    caches = [IMAGES, {**IMAGES, "name": "more", "origin": "vg0/more"}, {**LOGS, "migrate": True}]
    assert _calls(caches) == [("rest", "lvm_cache", ["images", "more"]), ("rest", "dm_cache", ["logs"])]
    assert block_caches(caches, "rest")[1] == {
        "type": "dm_cache",
        "has_tools": False,
        "caches": [{name: value for name, value in LOGS.items() if name != "type"}],
    }


def test_removed_caches_precede_those_of_other_types():
    caches = [{**IMAGES, "state": "absent"}, {**LOGS, "cache_devices": [A]}]
    assert _calls(caches) == [("removed", "lvm_cache", ["images"]), ("rest", "dm_cache", ["logs"])]


def test_order_within_one_type_is_left_to_the_module():
    caches = [{**IMAGES, "state": "absent"}, {**IMAGES, "name": "more", "origin": "vg0/more"}]
    assert _calls(caches) == [("rest", "lvm_cache", ["images", "more"])]


def test_only_removed_caches_give_one_call_per_type():
    assert _calls([{**IMAGES, "state": "absent"}, {**LOGS, "state": "absent"}]) == [("rest", "lvm_cache", ["images"]), ("rest", "dm_cache", ["logs"])]


def test_empty_list_calls_nothing():
    assert _calls([]) == []


@pytest.mark.parametrize("caches, part, says", [("x", "rest", "list"), ([{**LOGS, "type": "zfs"}], "rest", "no type zfs"), ([LOGS], "x", "no part x")])
def test_invalid_options_are_rejected(caches, part, says):
    with pytest.raises(AnsibleFilterError, match=says):
        block_caches(caches, part)


def _found(**values):
    return {"type": "flashcache", "name": "images", "origin": "/dev/vg0/images", "cache_devices": [A], "matched": ["vg0/images"], **values}


def test_existing_cache_of_another_type_is_removed_before_migration():
    (leaving,) = caches_to_migrate([{**IMAGES, "migrate": True}], [_found()])
    assert leaving == {
        "type": "flashcache",
        "name": "images",
        "origin": "/dev/vg0/images",
        "cache_devices": [A],
        "mirror": False,
        "state": "absent",
        "release_devices": True,
    }


def test_removed_lvm_cache_has_its_lvm_name():
    requested = {"name": "fc", "type": "flashcache", "origin": "/dev/vg0/images", "cache_devices": [A], "migrate": True}
    (leaving,) = caches_to_migrate([requested], [_found(type="lvm_cache", name="vg0/images", matched=["/dev/vg0/images"])])
    assert (leaving["type"], leaving["name"], leaving["origin"]) == ("lvm_cache", "fc", "vg0/images")


def test_mirror_members_are_released():
    requested = {**IMAGES, "migrate": True, "mirror": True, "cache_devices": [A, B]}
    (leaving,) = caches_to_migrate([requested], [_found(cache_devices=["/dev/disk/by-id/md-uuid-1"])])
    assert (leaving["cache_devices"], leaving["mirror"]) == ([A, B], True)


@pytest.mark.parametrize(
    "requested, found",
    [
        (IMAGES, _found()),
        ({**IMAGES, "migrate": True}, _found(type="lvm_cache", name="vg0/images")),
        ({**IMAGES, "migrate": True, "state": "absent"}, _found()),
        ({**IMAGES, "migrate": "no"}, _found()),
        ({**IMAGES, "migrate": True}, _found(matched=["vg0/other"])),
    ],
)
def test_no_cache_is_replaced_without_migrate_or_with_the_same_type(requested, found):
    assert caches_to_migrate([requested], [found]) == []


def test_migrate_that_is_not_true_or_false_is_rejected():
    with pytest.raises(AnsibleFilterError, match="images: migrate must be true or false, not 'perhaps'"):
        caches_to_migrate([{**IMAGES, "migrate": "perhaps"}], [_found()])


def test_bcache_cannot_be_migrated():
    with pytest.raises(AnsibleFilterError, match="header of its own"):
        caches_to_migrate([{**IMAGES, "migrate": True}], [_found(type="bcache")])


def test_caches_on_a_device_are_found():
    caches = [IMAGES, {**LOGS, "cache_devices": [A, B], "mirror": True}, {**LOGS, "name": "gone", "cache_devices": [A], "state": "absent"}]
    assert [item["name"] for item in caches_on_device(caches, A)] == ["images", "logs"]
    assert [item["cache_devices"] for item in replace_cache_device(caches, A, C)] == [[C], [C, B], [C]]
    assert caches[0]["cache_devices"] == [A]


@pytest.mark.parametrize(
    "devices, state, new, moved",
    [
        ([B], "ok", B, True),
        ([B], "ok", "B", True),
        ([B, C], "ok", B, True),
        ([B + "-part1"], "ok", B, True),
        ([B + "-part1"], "ok", "B", True),
        ([A + "-part1"], "ok", "B", False),
        ([A], "ok", B, False),
        ([A, B], "ok", B, False),
        ([B], "needs_check", B, False),
        ([B], "ok", "", False),
        ([A], "ok", A, False),
        (["/dev/disk/by-id/md-uuid-1"], "ok", B, False),
    ],
)
def test_completed_replacement_is_detected(devices, state, new, moved):
    assert caches_have_moved([_found(cache_devices=devices, state=state)], [IMAGES], A, new) is moved


def test_missing_cache_has_not_moved():
    assert caches_have_moved([], [IMAGES], A, B) is False
    assert caches_have_moved([_found(cache_devices=[B], state="ok")], [IMAGES, LOGS], A, B) is False


def _cache(**values):
    return {"type": "lvm_cache", "name": "vg0/images", "origin": "/dev/vg0/images", "mode": "writeback", "state": "ok", "dirty": 3 * 1024**3, **values}


def test_notice_reports_dirty_data_and_duration():
    measured = [{"type": "lvm_cache", "name": "vg0/images", "bytes_per_second": 10.0 * 1024**2}]
    first, second, last = replacement_notice([_cache(hit_ratio=0.93)], measured, A, "50M")
    assert first == "vg0/images (lvm_cache, writeback): 3 GiB dirty, about 5 min to flush at the 10 MiB/s measured now."
    assert "93 % of the requests" in second and "speed of /dev/vg0/images" in second
    assert A in last
    assert "about 61 s" in replacement_notice([_cache()], [], A, "50M")[0] and "not measured" in replacement_notice([_cache()], [], A, "50M")[0]


def test_notice_of_clean_broken_and_unknown_caches():
    assert "nothing is dirty" in replacement_notice([_cache(dirty=0)], [], A, "50M")[0]
    assert "could not be read" in replacement_notice([_cache(dirty=None)], [], A, "50M")[0]
    assert any("a person" in line for line in replacement_notice([_cache(state="needs_check", problem="a person looks")], [], A, "50M"))
    assert "an earlier run has detached it, or it was never made" in replacement_notice([], [], A, "50M")[0]


def test_flashcache_unmount_is_part_of_the_notice():
    lines = replacement_notice([_cache(type="flashcache", name="images", device="/dev/mapper/images")], [], A, "50M")
    assert any("unmount /dev/mapper/images" in line for line in lines)
    assert not any("stay in use" in line for line in lines)


@pytest.mark.parametrize("rate", ["fast", "0", 0])
def test_invalid_rate_is_rejected(rate):
    with pytest.raises(AnsibleFilterError, match="replacement_notice"):
        replacement_notice([], [], A, rate)


def test_text_from_host_is_sanitized():
    assert "\x1b" not in "".join(replacement_notice([_cache(name="x\x1b[31m")], [], A, "50M"))
