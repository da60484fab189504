# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is done to test volumes, from their description and what was found; and what is refused."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import Objection
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.plan import plan
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.report import Group, Volume, parse_report
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.spec import VOLUME_OPTIONS, read_volumes
from ansible_collections.cachefleet.storage.plugins.module_utils._volumes.state import CREATING, REMOVING, TAG, Array, Member, VolumeState

MIB, GIB = 1024**2, 1024**3
DISKS = ["/dev/disk/by-id/a", "/dev/disk/by-id/b"]
FREE = tuple(Member(path, name) for path, name in zip(DISKS, ("sda", "sdb")))
DEVICE = BlockDevice("dm-0", "/dev/dm-0", "253:0", kind="lvm", size=GIB, dm_name="test_t-t", dm_uuid="LVM-x")
MOUNTED = dataclasses.replace(DEVICE, mountpoints=("/mnt/t",))
STRIPED = Volume("t", "striped", GIB, 2, MIB)
GROUP = Group("test_t", (TAG,), GIB, 4 * MIB, ("/dev/sda", "/dev/sdb"), (STRIPED,))
THERE = VolumeState(FREE, GROUP, ("sda", "sdb"), device=DEVICE)
DATA, USED = Objection("data", "it contains xfs"), Objection("in_use", "it is part of /dev/md0")


def item(**options):
    known = {name: option.get("default") for name, option in VOLUME_OPTIONS.items()}
    return {**known, "name": "t", "devices": DISKS, "type": "striped", **options}


def steps(found, /, **options):
    (spec,) = read_volumes([item(**options)])
    (planned,) = plan([spec], {"t": found})
    return list(planned.tasks)


def refusal(found, /, **options):
    with pytest.raises((Refused, BadInput)) as failed:
        steps(found, **options)
    assert failed.value.item == "t"
    assert failed.value.message.startswith("t: ")
    return failed.value.message


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["create_group", "create_volume"]),
        ({"type": "linear", "filesystem": "xfs"}, ["create_group", "create_volume", "make_filesystem"]),
        ({"type": "thin", "size": "1G"}, ["create_group", "create_pool", "create_volume"]),
        ({"type": "raid1", "filesystem": "ext4", "mount": "/mnt/t"}, ["create_array", "make_filesystem", "mount"]),
        ({"state": "absent"}, []),
    ],
)
def test_volume_on_empty_devices_is_created_in_order(options, expected):
    assert steps(VolumeState(FREE), **options) == expected


def test_volume_as_described_is_not_changed():
    assert steps(THERE) == []
    assert steps(THERE, size="1020M") == [], "LVM rounds up to whole extents on every stripe"
    mounted = dataclasses.replace(THERE, device=MOUNTED, filesystem="xfs", fstab=("/dev/test_t/t", "defaults,nofail"), mounted_there="/dev/dm-0")
    assert steps(mounted, filesystem="xfs", mount="/mnt/t") == []
    assert steps(mounted, filesystem="xfs", mount="/mnt/t", mount_options="noatime") == ["mount"]


def test_cache_of_a_volume_does_not_change_its_layout():
    cached = (Volume("t", "cache", GIB), dataclasses.replace(STRIPED, name="t_corig", hidden=True))
    state = dataclasses.replace(THERE, group=dataclasses.replace(GROUP, volumes=cached), group_members=("sda", "sdb", "nvme0n1"))
    assert steps(state) == []
    assert "remove its cache first" in refusal(state, state="absent", allow_data_loss=True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"stripe_size": "64k"}, "stripe_size 1 MiB instead of 64 KiB"),
        ({"type": "linear"}, "type striped instead of linear"),
        ({"size": "512M"}, "size 1 GiB instead of 512 MiB"),
    ],
)
def test_existing_volume_that_differs_is_refused(options, words):
    assert words in refusal(THERE, **options)


def test_group_without_the_mark_is_neither_used_nor_removed():
    foreign = dataclasses.replace(THERE, group=dataclasses.replace(GROUP, tags=()))
    assert "was not created by this role" in refusal(foreign)
    assert "was not created by this role" in refusal(foreign, state="absent", allow_data_loss=True)


@pytest.mark.parametrize("found", [("sda",), ("sda", "sdc"), ("sda", "sdb", "sdc")])
def test_group_on_other_devices_is_neither_used_nor_removed(found):
    other = dataclasses.replace(THERE, group_members=found)
    assert "is on other devices" in refusal(other)
    assert "is on other devices" in refusal(other, state="absent", allow_data_loss=True)


@pytest.mark.parametrize("objection", [DATA, USED])
def test_device_that_is_not_empty_is_refused(objection):
    members = (FREE[0], dataclasses.replace(FREE[1], objections=(objection,)))
    assert objection.text in refusal(VolumeState(members))


def test_label_of_an_unfinished_run_is_no_data_but_use_is():
    ours = tuple(dataclasses.replace(one, objections=(DATA,), begun=CREATING, is_ours=True) for one in FREE)
    assert steps(VolumeState(ours)) == ["create_group", "create_volume"]
    assert "part of /dev/md0" in refusal(VolumeState((dataclasses.replace(ours[0], objections=(USED,)), ours[1])))


def test_unfinished_creation_is_completed():
    begun = tuple(dataclasses.replace(one, begun=CREATING) for one in FREE)
    empty = dataclasses.replace(GROUP, volumes=())
    assert steps(VolumeState(begun, empty, ("sda", "sdb"))) == ["create_volume", "record"]
    half = dataclasses.replace(THERE, members=begun, objections=(DATA,))
    assert steps(half, filesystem="xfs") == ["make_filesystem", "record"]


def test_file_system_is_not_created_on_data():
    assert "it contains xfs" in refusal(dataclasses.replace(THERE, objections=(DATA,)), filesystem="xfs")
    assert "filesystem ext4 instead of xfs" in refusal(dataclasses.replace(THERE, filesystem="ext4"), filesystem="xfs")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"fstab": ("/dev/sdz1", "defaults")}, "the mount point of /dev/sdz1 in /etc/fstab"),
        ({"mounted_there": "/dev/sdz1"}, "/dev/sdz1 is mounted on /mnt/t"),
        ({"mount_is_empty": False}, "is not empty"),
    ],
)
def test_mount_point_of_something_else_is_refused(found, words):
    assert words in refusal(VolumeState(FREE, **found), filesystem="xfs", mount="/mnt/t")


def test_removal_needs_permission_only_for_data():
    assert steps(THERE, state="absent") == ["remove_volume", "remove_group", "remove_labels", "release"]
    full = dataclasses.replace(THERE, objections=(DATA,))
    assert "allow_data_loss: true" in refusal(full, state="absent")
    assert steps(full, state="absent", allow_data_loss=True)[0] == "remove_volume"
    mounted = dataclasses.replace(THERE, device=MOUNTED, filesystem="xfs", objections=(USED, DATA), fstab=("/dev/test_t/t", "defaults"))
    assert steps(mounted, state="absent", mount="/mnt/t", allow_data_loss=True)[0] == "unmount"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        ({"device": MOUNTED}, "is mounted on /mnt/t"),
        ({"device": dataclasses.replace(DEVICE, holders=("bcache0",))}, "used by bcache0"),
        ({"objections": (USED,)}, "no variable overrules this"),
        ({"group": dataclasses.replace(GROUP, volumes=(STRIPED, Volume("other", "linear", GIB)))}, "did not create (other)"),
    ],
)
def test_volume_in_use_is_not_removed_whatever_is_allowed(found, words):
    assert words in refusal(dataclasses.replace(THERE, **found), state="absent", allow_data_loss=True)


def test_unfinished_removal_is_completed():
    begun = tuple(dataclasses.replace(one, begun=REMOVING) for one in FREE)
    assert steps(VolumeState(begun), state="absent") == ["release"]
    labelled = tuple(dataclasses.replace(one, is_ours=True) for one in begun)
    assert steps(VolumeState(labelled), state="absent") == ["remove_labels", "release"]


def test_array_that_differs_or_does_not_run_is_refused():
    array = Array("md127", "raid1", 0, ("sda", "sdb"), GIB)
    state = VolumeState(FREE, array=array, device=BlockDevice("md127", "/dev/md127", "9:127", kind="md", size=GIB))
    assert steps(state, type="raid1") == []
    assert "type raid1 instead of raid10" in refusal(state, type="raid10")
    assert "does not run" in refusal(VolumeState(FREE, array=dataclasses.replace(array, size=0)), type="raid1")
    assert steps(state, type="raid1", state="absent") == ["stop_array", "remove_labels", "release"]


def test_device_of_two_volumes_is_refused():
    specs = read_volumes([item(), item(name="u", devices=["/dev/disk/by-id/c"], type="linear")])
    with pytest.raises(BadInput, match="u and t both use /dev/sda"):
        plan(specs, {"t": VolumeState(FREE), "u": VolumeState((Member("/dev/disk/by-id/c", "sda"),))})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "a-b"}, "Invalid volume name 'a-b'"),
        ({"devices": []}, "t: devices must list"),
        ({"stripes": 3}, "t: stripes must be between 2 and"),
        ({"type": "linear", "stripes": 2}, "t: stripes is not supported for type linear"),
        ({"type": "raid1", "stripe_size": "1M"}, "t: stripe_size is not supported for type raid1"),
        ({"stripe_size": "3M"}, "t: stripe_size must be a power of two"),
        ({"type": "raid10", "size": "1G"}, "t: size is not supported for type raid10"),
        ({"type": "thin"}, "t: type thin needs a size"),
        ({"size": "12.5%"}, "t: size must be a whole percentage"),
        ({"mount": "/mnt/t"}, "t: mount needs a filesystem"),
        ({"filesystem": "xfs", "mount": "/"}, "t: mount must be an absolute path"),
        ({"filesystem": "xfs", "mount": "/mnt/a b"}, "t: mount must be an absolute path"),
    ],
)
def test_invalid_options_are_rejected(options, words):
    with pytest.raises(BadInput) as failed:
        read_volumes([item(**options)])
    assert words in failed.value.message


def test_two_volumes_with_one_mount_point_are_rejected():
    with pytest.raises(BadInput, match="Two volumes have the mount /mnt/t"):
        read_volumes([item(filesystem="xfs", mount="/mnt/t"), item(name="u", filesystem="xfs", mount="/mnt/t/")])


def test_plan_has_the_values_for_the_tasks():
    (planned,) = plan(read_volumes([item(stripe_size="64k", size="50%")]), {"t": VolumeState(FREE)})
    found = planned.to_dict()
    assert (found["device"], found["label"], found["size"]) == ("/dev/test_t/t", "test_t", "50%FREE")
    assert found["lvol_options"] == "--wipesignatures y --type striped --stripes 2 --stripesize 64k"


# Printed by lvm2 2.03.16 on a machine of the rack.
REPORT = """{"report": [
  {"vg": [{"vg_name":"test_images", "vg_tags":"cachefleet_test_volume", "vg_size":"264241152", "vg_extent_size":"4194304"}],
   "pv": [{"pv_name":"/dev/nvme8n1", "vg_name":"test_images"}],
   "lv": [{"lv_name":"images"}, {"lv_name":"[lvol0_pmspare]"}, {"lv_name":"pool"}, {"lv_name":"[pool_tdata]"}, {"lv_name":"[pool_tmeta]"}],
   "pvseg": [{"pvseg_start":"0"}, {"pvseg_start":"1"}, {"pvseg_start":"62"}],
   "seg": [
     {"lv_name":"[lvol0_pmspare]", "segtype":"linear", "stripes":"1", "stripe_size":"0", "lv_size":"4194304"},
     {"lv_name":"images", "segtype":"thin", "stripes":"0", "stripe_size":"0", "lv_size":"1073741824"},
     {"lv_name":"pool", "segtype":"thin-pool", "stripes":"1", "stripe_size":"0", "lv_size":"255852544"},
     {"lv_name":"[pool_tmeta]", "segtype":"linear", "stripes":"1", "stripe_size":"0", "lv_size":"4194304"},
     {"lv_name":"[pool_tdata]", "segtype":"linear", "stripes":"1", "stripe_size":"0", "lv_size":"255852544"}]}]}"""


def test_report_of_lvm_is_parsed():
    group = parse_report(REPORT).group("test_images")
    assert (group.tags, group.devices, group.size, group.extent) == ((TAG,), ("/dev/nvme8n1",), 264241152, 4 * MIB)
    assert group.volume("images") == Volume("images", "thin", GIB, stripes=0)
    assert [volume.name for volume in group.volumes if not volume.hidden] == ["images", "pool"]


def test_other_output_than_a_report_is_quoted():
    with pytest.raises(NotUnderstood, match="WARNING: no report"):
        parse_report("WARNING: no report")
