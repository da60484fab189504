# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.room import Room, rooms_below
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

MIB, GIB = 1024**2, 1024**3

DISK = BlockDevice("sdb", "/dev/sdb", "8:16", size=8 * GIB)
POOL = BlockDevice("dm-2", "/dev/dm-2", "253:2", kind="lvm", dm_name="vg0-my--pool-tpool", dm_uuid="LVM-p-tpool", slaves=("dm-0", "dm-1"))
THIN = BlockDevice("dm-3", "/dev/dm-3", "253:3", kind="lvm", size=GIB, dm_name="vg0-scratch", dm_uuid="LVM-t", slaves=("dm-2",))
REAL = BlockDevice("dm-4", "/dev/dm-4", "253:4", kind="lvm", dm_name="vg0-data-real", dm_uuid="LVM-d-real", slaves=("sdb",))
ORIGIN = BlockDevice("dm-5", "/dev/dm-5", "253:5", kind="lvm", dm_name="vg0-data", dm_uuid="LVM-d", slaves=("dm-4",))
COW = BlockDevice("dm-6", "/dev/dm-6", "253:6", kind="lvm", dm_name="vg0-snap-cow", dm_uuid="LVM-s-cow", slaves=("sdb",))
SNAPSHOT = BlockDevice("dm-7", "/dev/dm-7", "253:7", kind="lvm", dm_name="vg0-snap", dm_uuid="LVM-s", slaves=("dm-4", "dm-6"))
VDO = BlockDevice("dm-8", "/dev/dm-8", "253:8", kind="dm", dm_name="vdo0", slaves=("sdb",))
ALL = Devices([DISK, POOL, THIN, REAL, ORIGIN, COW, SNAPSHOT, VDO])

TABLE = """\
vg0-my--pool-tpool: 0 4194304 thin-pool 253:0 253:1 128 0 1 skip_block_zeroing
vg0-scratch: 0 2097152 thin 253:2 1
vg0-data-real: 0 2097152 linear 8:16 2048
vg0-data: 0 2097152 snapshot-origin 253:4
vg0-snap-cow: 0 204800 linear 8:16 4196352
vg0-snap: 0 2097152 snapshot 253:4 253:6 P 8
vdo0: 0 2097152 vdo V4 /dev/sdb 262144 4096 32768 16380
"""


def status(pool="1 20/4096 8192/32768 - rw no_discard_passdown queue_if_no_space - 1024", thin="524288 2097151", snapshot="4096/204800 16"):
    return (
        f"vg0-my--pool-tpool: 0 4194304 thin-pool {pool}\nvg0-scratch: 0 2097152 thin {thin}\nvg0-data: 0 2097152 snapshot-origin \n"
        f"vg0-snap: 0 2097152 snapshot {snapshot}\nvdo0: 0 2097152 vdo /dev/sdb normal - online online 1000 5096\n"
    )


def rooms(device, lvs="  scratch|\n  my-pool|\n", **lines):
    runner = ScriptedRunner(
        {("dmsetup", "table"): Reply(TABLE), ("dmsetup", "status"): Reply(status(**lines)), ("lvs",): Reply(lvs) if lvs is not None else Reply(rc=5)}
    )
    return rooms_below(ALL, device, runner)


def test_plain_disk_runs_no_space_checks():
    assert rooms_below(ALL, DISK, ScriptedRunner({})) == []


def test_thin_volume_needs_space_for_unmapped_blocks():
    (room,) = rooms(THIN)
    # 24576 of 32768 blocks of 64 KiB are free, and 524288 of 2097152 sectors have their place.
    assert room == Room("the thin pool vg0/my-pool", 24576 * 65536, "every volume of a full pool loses writes", 1572864 * 512)
    assert room.problem(GIB) is None
    assert rooms(THIN, thin="0 0")[0].problem(GIB) is None
    (full,) = rooms(THIN, pool="1 20/4096 32000/32768 - rw no_discard_passdown queue_if_no_space - 1024")
    assert full.problem(GIB) == "the thin pool vg0/my-pool has 48 MiB free and the job can use 768 MiB of it: every volume of a full pool loses writes"
    assert full.problem(32 * MIB) is None, "what the job can write at most counts"
    assert rooms(THIN, thin="2097152 2097151", pool="1 20/4096 32768/32768 - rw - - -")[0].problem(GIB) is None, "all of it has its place"


@pytest.mark.parametrize(
    "lvs",
    ["  scratch|\n  old|scratch\n", "  scratch|base\n", "  scratch|\n  [hidden]|[scratch]\n", "", None],
    ids=["origin", "snapshot", "hidden", "silent", "failed"],
)
def test_blocks_shared_with_a_snapshot_need_space_when_written(lvs):
    (room,) = rooms(THIN, lvs=lvs, thin="2097152 2097151", pool="1 20/4096 32000/32768 - rw - - -")
    assert room.unmapped is None
    assert "the job can use 1 GiB of it" in room.problem(GIB)


@pytest.mark.parametrize(
    ("pool", "free"),
    [
        ("1 4090/4096 8192/32768 - rw - - -", 6 * 64 * 65536),
        ("1 20/4096 8192/32768 - out_of_data_space - - -", 0),
        ("1 20/4096 8192/32768 - ro - - -", 0),
        ("Fail", None),
        ("Error", None),
        ("1 x/y z/w - rw - - -", None),
    ],
    ids=["metadata", "no space", "read-only", "failed", "error", "strange"],
)
def test_pools_with_little_free_space(pool, free):
    (room,) = rooms(THIN, pool=pool)
    assert room.free == free
    if free is None:
        assert "an unknown amount free" in room.problem(GIB)


def test_writing_to_origin_fills_its_snapshots():
    (room,) = rooms(ORIGIN)
    assert room.what == "the snapshot vg0/snap"
    # 200704 sectors are left, in chunks of 8, of which one in 257 holds exceptions.
    assert 97 * MIB < room.free < 98 * MIB
    assert "a snapshot that is full is lost" in room.problem(GIB)
    assert room.problem(64 * MIB) is None


def test_snapshot_target_fills_only_itself():
    assert [room.what for room in rooms(SNAPSHOT)] == ["the snapshot vg0/snap"]


@pytest.mark.parametrize(("message", "problem"), [("Invalid", False), ("Overflow", False), ("Merge failed", True), ("x", True)])
def test_invalid_or_unreadable_snapshots(message, problem):
    (room,) = rooms(ORIGIN, snapshot=message)
    assert bool(room.problem(GIB)) is problem


def test_vdo_volume():
    (room,) = rooms(VDO)
    assert room.free == 4096 * 4096
    assert "VDO volume vdo0" in room.problem(GIB)


def test_file_needs_space_for_growth_or_all_of_it_if_blocks_are_shared():
    own = Room("the thin pool p", 10 * MIB, "x", unmapped=0)
    shared = Room("the thin pool p", 10 * MIB, "x")
    assert own.problem(GIB, grows=5 * MIB) is None
    assert own.problem(GIB, grows=11 * MIB)
    assert own.problem(GIB, grows=0) is None
    assert shared.problem(GIB, grows=0)
