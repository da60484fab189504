# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""How many members an array can still lose, from sysfs and from the status lines of device-mapper."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._stack.readers import dm_facts, md_facts


def _md(level, disks, **state):
    device = BlockDevice("md0", "/dev/md0", "9:0", kind="md", slaves=tuple(f"sd{letter}" for letter in "abcdefgh"[:disks]))
    return md_facts(device, {"level": level, "degraded": "0", "raid_disks": str(disks), "sync_action": "idle", **state})


@pytest.mark.parametrize(
    ("level", "disks", "state", "tolerance"),
    [
        ("raid1", 2, {}, 1),
        ("raid1", 3, {}, 2),
        ("raid1", 2, {"raid_disks": "3", "degraded": "1"}, 1),
        ("raid1", 1, {}, 0),
        # While it is reshaped.
        ("raid1", 3, {"raid_disks": "3 (2)"}, 2),
        ("raid4", 3, {}, 1),
        ("raid5", 3, {}, 1),
        ("raid5", 3, {"degraded": "1"}, 0),
        ("raid5", 3, {"sync_action": "resync"}, 0),
        ("raid5", 3, {"sync_action": "check"}, 1),
        ("raid6", 4, {}, 2),
        ("raid6", 4, {"degraded": "2"}, 0),
        # Two near copies, three near copies, two far copies.
        ("raid10", 4, {"layout": "258"}, 1),
        ("raid10", 4, {"layout": "259"}, 2),
        ("raid10", 4, {"layout": "513"}, 1),
        ("raid10", 4, {"layout": "258", "degraded": "1"}, 0),
        ("raid1", 2, {"degraded": "?"}, None),
    ],
)
def test_failure_tolerance_of_md_arrays(level, disks, state, tolerance):
    assert [group.tolerance for group in _md(level, disks, **state).groups] == [tolerance]


@pytest.mark.parametrize("level", ["raid0", "linear"])
def test_array_without_redundancy_requires_every_member(level):
    facts = _md(level, 2)
    assert [group.members for group in facts.groups] == [(("sda",),), (("sdb",),)]


def test_failed_and_spare_members_hold_no_data():
    members = {
        "sda": {"state": "in_sync", "slot": "0"},
        "sdb": {"state": "faulty", "slot": "none"},
        "sdc": {"state": "spare", "slot": "none"},
        "sdd": {"state": "spare", "slot": "1"},
    }
    facts = _md("raid1", 4, raid_disks="2", degraded="1", members=members)
    assert facts.media == ("sda",)
    assert facts.groups[0].members == (("sda",),)


def test_array_without_members_is_unknown():
    facts = _md("raid1", 0, raid_disks="2")
    assert (facts.volatile, facts.device_loss) == (None, "unknown")


def _dm(words, names):
    below = [BlockDevice(f"dm-{number}", f"/dev/dm-{number}", f"253:{number}", dm_name=name) for number, name in enumerate(names)]
    device = BlockDevice("dm-9", "/dev/dm-9", "253:9", slaves=tuple(one.name for one in below))
    return dm_facts(device, Devices([*below, device]), words.split())


_IMAGES = [name for number in range(3) for name in (f"vg-lv_rmeta_{number}", f"vg-lv_rimage_{number}")]


@pytest.mark.parametrize(
    ("words", "images", "tolerance", "media"),
    [
        ("0 8 raid raid1 2 AA 8/8 idle 0 0 -", 2, 1, 4),
        ("0 8 raid raid1 2 Aa 4/8 recover 0 0 -", 2, 0, 4),
        ("0 8 raid raid1 2 aa 4/8 resync 0 0 -", 2, 0, 4),
        ("0 8 raid raid1 2 DA 8/8 idle 0 0 -", 2, 0, 2),
        ("0 8 raid raid1 3 AAD 8/8 idle 0 0 -", 3, 1, 4),
        ("0 8 raid raid5_ls 3 AAA 8/8 idle 0 0 -", 3, 1, 6),
        ("0 8 raid raid5_ls 3 AAA 4/8 resync 0 0 -", 3, 0, 6),
        ("0 8 raid raid6_zr 3 AAA 8/8 check 0 0 -", 3, 2, 6),
        ("0 8 raid raid10 2 AA 8/8 idle 0 0 -", 2, 1, 4),
    ],
)
def test_failure_tolerance_of_lvm_arrays(words, images, tolerance, media):
    facts = _dm(words, _IMAGES[: 2 * images])
    assert facts.groups[0].tolerance == tolerance
    assert len(facts.media) == media


@pytest.mark.parametrize(
    "words",
    ["", "0 8 raid", "0 8 raid raid1", "0 8 raid raid1 x AA", "0 8 raid raid1 2 A 8/8 idle 0 0 -", "0 8 raid raid1 3 AAA 8/8 idle 0 0 -"],
)
def test_array_with_unreported_state_is_unknown(words):
    facts = _dm(words, _IMAGES[:4])
    assert facts.groups[0].tolerance is None
    assert "does not report whether it is whole" in facts.groups[0].why


def test_lvm_stripe_requires_every_image():
    assert [group.tolerance for group in _dm("0 8 raid raid0 2 AA 8/8 idle 0 0 -", _IMAGES[:4]).groups] == [0, 0]


@pytest.mark.parametrize(
    ("words", "tolerance"),
    [
        ("0 8 mirror 2 253:0 253:1 4/4 1 AA 3 disk 253:2 A", 1),
        ("0 8 mirror 2 253:0 253:1 4/4 1 AD 3 disk 253:2 A", 0),
        ("0 8 mirror 2 253:0 253:1 2/4 1 AA 1 core", 0),
        ("0 8 mirror 2 253:0 253:7 4/4 1 AA 1 core", None),
    ],
)
def test_dm_mirror_failure_tolerance(words, tolerance):
    assert _dm(words, ["vg-lv_mimage_0", "vg-lv_mimage_1", "vg-lv_mlog"]).groups[0].tolerance == tolerance


@pytest.mark.parametrize(("degraded", "journal", "torn"), [("A", "-", False), ("D", "-", True), ("D", "A", False)])
def test_lvm_array_with_possible_write_hole(degraded, journal, torn):
    assert _dm(f"0 8 raid raid5_ls 3 AA{degraded} 8/8 idle 0 0 {journal}", _IMAGES).loses == torn
