# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import errno
import json
import os
import stat
import struct
import types

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._device import users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.room import Room
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import examination
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import judge as guard
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, Neighbour, TargetFacts
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import judge, require
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import opened, process, write
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

GIB = 1024**3


def disk(name, number, **values):
    return BlockDevice(name=name, path=f"/dev/{name}", number=number, size=GIB, **values)


def kinds(objections):
    return {objection.kind for objection in objections}


def texts(objections):
    return " | ".join(objection.text for objection in objections)


# --- judge: pure decisions -------------------------------------------------------------------------------------------

EMPTY = TargetFacts(target=GuardTarget("/dev/sdb"), path="/dev/sdb", size=GIB, identity="S1", neighbours=(Neighbour("itself", "/dev/sdb"),))


def with_target(facts, **values):
    facts = dataclasses.replace(facts, target=dataclasses.replace(facts.target, **values))
    if "identity" in values:
        facts = dataclasses.replace(facts, identity_matches=values["identity"] == facts.identity)
    return facts


def around(**values):
    return dataclasses.replace(EMPTY, neighbours=(Neighbour("itself", "/dev/sdb", **values),))


def test_empty_unused_device_is_writable_without_permission():
    assert judge(EMPTY, writing=True) == []


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        (around(mountpoints=("/data",)), "is mounted on /data"),
        (around(swap=True), "swap space"),
        (around(holders_outside=("/dev/md0",)), "is part of /dev/md0"),
        (around(exports=("nvmet subsystem nqn.x",)), "is exported by nvmet subsystem nqn.x"),
        (around(busy="Device or resource busy"), "cannot be opened exclusively"),
        (dataclasses.replace(EMPTY, writers=("qemu-system-x86 (42)",)), "open for writing in qemu-system-x86 (42)"),
        (dataclasses.replace(EMPTY, neighbours=(Neighbour("partition of it", "/dev/sdb1", mountpoints=("/boot",)),)), "/dev/sdb1 (partition of it) is mounted"),
        (dataclasses.replace(EMPTY, neighbours=(Neighbour("below it", "/dev/sda", mountpoints=("/",)),)), "/dev/sda (below it) is mounted"),
        (dataclasses.replace(EMPTY, neighbours=(Neighbour("the same storage", "/dev/sdc", swap=True),)), "/dev/sdc (the same storage) is swap"),
    ],
)
def test_device_in_use_is_never_written_with_any_permission(facts, word):
    permitted = with_target(facts, allow_data_loss=True, identity="S1")
    for one in (facts, permitted):
        objections = judge(one, writing=True)
        assert kinds(objections) == {"in_use"}
        assert word in texts(objections)
    with pytest.raises(Refused, match="no variable overrules a device in use"):
        require(permitted, writing=True)


def test_overwriting_data_requires_permission_and_matching_identity():
    facts = around(signatures=("ext4 (data)",))
    assert kinds(judge(facts, writing=True)) == {"data"}
    assert kinds(judge(with_target(facts, allow_data_loss=True), writing=True)) == {"data"}
    assert kinds(judge(with_target(facts, identity="S1"), writing=True)) == {"data"}
    assert judge(with_target(facts, allow_data_loss=True, identity="S1"), writing=True) == []


def test_refusal_names_both_options_and_the_identity():
    with pytest.raises(Refused) as caught:
        require(around(signatures=("ext4 (data)",)), writing=True)
    assert 'allow_data_loss: true and identity: "S1"' in caught.value.message
    assert "ext4 (data)" in caught.value.message
    assert caught.value.to_dict()["objections"] == [{"kind": "data", "text": "/dev/sdb contains ext4 (data)"}]


def test_device_without_identity_cannot_be_permitted():
    facts = dataclasses.replace(around(signatures=("xfs",)), identity=None)
    with pytest.raises(Refused, match="no serial, WWN or name"):
        require(facts, writing=True)


@pytest.mark.parametrize(
    "signature", ["xfs", "swap", "LVM2_member", "linux_raid_member", "bcache", "zfs_member", "ceph_bluestore", "crypto_LUKS", "gpt", "flashcache metadata"]
)
@pytest.mark.parametrize("relation", ["itself", "partition of it", "below it"])
def test_related_device_with_a_signature_is_refused(signature, relation):
    facts = dataclasses.replace(EMPTY, neighbours=(Neighbour(relation, "/dev/sdx", signatures=(signature,)),))
    assert kinds(judge(facts, writing=True)) == {"data"}


def test_wrong_identity_is_refused_also_for_reading_and_with_permission():
    facts = with_target(EMPTY, allow_data_loss=True, identity="OTHER")
    for writing in (True, False):
        assert kinds(judge(facts, writing=writing)) == {"identity"}
    with pytest.raises(Refused, match="does not have the identity OTHER: it is S1"):
        require(facts, writing=False)


def test_identity_shared_by_two_devices_is_ambiguous():
    facts = dataclasses.replace(with_target(EMPTY, identity="S1"), same_identity=("/dev/sdc",))
    assert "ambiguous: /dev/sdc" in texts(judge(facts, writing=False))


def test_reading_does_not_require_an_empty_device():
    facts = dataclasses.replace(around(mountpoints=("/",), swap=True, signatures=("ext4",)), read_only=True, writers=("x (1)",))
    assert judge(facts, writing=False) == []


def test_read_only_empty_small_and_unreadable_devices_are_refused():
    assert "read-only" in texts(judge(dataclasses.replace(EMPTY, read_only=True), writing=True))
    assert "no medium" in texts(judge(dataclasses.replace(EMPTY, size=0), writing=False))
    assert "less than the requested size 2 GiB" in texts(judge(with_target(EMPTY, size=2 * GIB), writing=False))
    assert "Input/output error" in texts(judge(dataclasses.replace(EMPTY, unreadable="Input/output error"), writing=False))


FILE = TargetFacts(target=GuardTarget("/data/f", kind="file", size=GIB), path="/data/f", size=GIB, free=10 * GIB, neighbours=(Neighbour("itself", "/data/f"),))


def test_existing_file_requires_permission_unless_created_by_this_run():
    assert kinds(judge(FILE, writing=True)) == {"data"}
    assert judge(dataclasses.replace(FILE, created=True), writing=True) == []
    assert judge(with_target(FILE, allow_data_loss=True), writing=True) == []
    assert judge(FILE, writing=False) == []
    with pytest.raises(Refused, match="set allow_data_loss: true"):
        require(FILE, writing=True)


def test_reading_a_too_short_file_is_refused():
    assert kinds(judge(dataclasses.replace(FILE, size=4096), writing=False)) == {"data"}


def test_new_file_requires_size_and_free_space():
    new = dataclasses.replace(FILE, size=0, exists=False, neighbours=())
    assert judge(new, writing=True) == []
    assert "needs a size" in texts(judge(with_target(new, size=None), writing=True))
    assert "would need 1 GiB" in texts(judge(dataclasses.replace(new, free=1024), writing=True))


def test_file_in_use_is_never_written():
    for use in ({"swap": True}, {"holders_outside": ("/dev/loop3",)}):
        facts = dataclasses.replace(with_target(FILE, allow_data_loss=True), neighbours=(Neighbour("itself", "/data/f", **use),))
        assert kinds(judge(facts, writing=True)) == {"in_use"}


# --- examine: facts from a host written into a folder -----------------------------------------------------------------


class Host:
    """A host of files: device nodes are plain files, wipefs answers from a table."""

    def __init__(self, root, devices, signatures=(), links=()):
        self.root = root
        self.devices = Devices(devices, root)
        signatures = dict(signatures)
        for device in devices:
            node = root / device.path.lstrip("/")
            node.parent.mkdir(parents=True, exist_ok=True)
            with open(node, "wb") as file:
                file.truncate(device.size)
        for link, target in links:
            (root / link.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
            (root / link.lstrip("/")).symlink_to(root / target.lstrip("/"))
        (root / "proc/1").mkdir(parents=True, exist_ok=True)

        def wipefs(words):
            rows = [{"device": "x", "offset": "0x0", "type": kind, "uuid": None, "label": None} for kind in signatures.get(words[-1], ())]
            return Reply(json.dumps({"signatures": rows}))

        nothing = {("dmsetup", "table"): Reply(""), ("dmsetup", "status"): Reply(""), ("dmsetup", "info"): Reply("0\n")}
        self.runner = ScriptedRunner({("wipefs", "--no-act", "--json"): wipefs, **nothing})

    def examine(self, path, **values):
        writing = values.pop("writing", True)
        return examine(self.devices, GuardTarget(path, **values), self.runner, self.root, writing=writing, pause=lambda seconds: None)

    def judge(self, path, writing=True, **values):
        return judge(self.examine(path, writing=writing, **values), writing=writing)


def test_missing_device_is_reported(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0")])
    with pytest.raises(DeviceMissing, match="/dev/sdz does not exist"):
        host.examine("/dev/sdz")
    assert not (tmp_path / "dev/sdz").exists()


def test_regular_file_in_dev_is_rejected(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0")])
    (tmp_path / "dev/nvme9n9").write_bytes(b"left behind by fio")
    with pytest.raises(DeviceMissing, match="not a block device"):
        host.examine("/dev/nvme9n9")


def test_links_are_followed(tmp_path):
    device = disk("sda", "8:0", mountpoints=("/data",))
    host = Host(tmp_path, [device], links=[("/dev/disk/by-id/ata-X_1", "/dev/sda"), ("/dev/benchmark", "/dev/disk/by-id/ata-X_1")])
    facts = host.examine("/dev/benchmark")
    assert facts.path == "/dev/sda"
    assert "mounted on /data" in texts(judge(facts, writing=True))


def test_disk_with_partitions_is_refused(tmp_path):
    devices = [disk("sda", "8:0", partitions=("sda1",)), disk("sda1", "8:1", kind="partition", parent="sda")]
    host = Host(tmp_path, devices, {"/dev/sda": ["gpt", "PMBR"], "/dev/sda1": ["xfs"]})
    assert texts(host.judge("/dev/sda")) == "/dev/sda contains gpt, PMBR | /dev/sda1 (partition of it) contains xfs"
    # The partition table of its disk is no objection to writing into one partition.
    assert texts(host.judge("/dev/sda1")) == "/dev/sda1 contains xfs"


def test_mounted_partition_blocks_its_disk_but_not_its_sibling(tmp_path):
    devices = [
        disk("sda", "8:0", partitions=("sda1", "sda2")),
        disk("sda1", "8:1", kind="partition", parent="sda", mountpoints=("/",)),
        disk("sda2", "8:2", kind="partition", parent="sda"),
    ]
    host = Host(tmp_path, devices, {"/dev/sda": ["gpt"]})
    assert "/dev/sda1 (partition of it) is mounted on /" in texts(host.judge("/dev/sda", allow_data_loss=True))
    assert host.judge("/dev/sda2") == []


def test_signature_on_whole_disk_blocks_its_partition(tmp_path):
    devices = [disk("sda", "8:0", partitions=("sda1",)), disk("sda1", "8:1", kind="partition", parent="sda")]
    host = Host(tmp_path, devices, {"/dev/sda": ["dos", "LVM2_member"]})
    assert texts(host.judge("/dev/sda1")) == "/dev/sda (below it) contains LVM2_member"


def lvm_host(root, **mounted):
    devices = [
        disk("sdb", "8:16", partitions=("sdb1",)),
        disk("sdb1", "8:17", kind="partition", parent="sdb", holders=("dm-0", "dm-1")),
        disk("dm-0", "253:0", kind="lvm", dm_name="vg0-scratch", dm_uuid="LVM-a", slaves=("sdb1",)),
        disk("dm-1", "253:1", kind="lvm", dm_name="vg0-data", dm_uuid="LVM-b", slaves=("sdb1",), mountpoints=("/srv",)),
    ]
    return Host(root, devices, {"/dev/sdb": ["gpt"], "/dev/sdb1": ["LVM2_member"], "/dev/dm-1": ["xfs"]})


def test_unused_logical_volume_beside_a_mounted_one_is_accepted(tmp_path):
    host = lvm_host(tmp_path)
    assert host.judge("/dev/dm-0") == []
    assert host.judge("/dev/dm-0", identity="vg0/scratch") == []


def test_physical_volume_of_active_volumes_is_in_use(tmp_path):
    host = lvm_host(tmp_path)
    objections = host.judge("/dev/sdb1", allow_data_loss=True)
    assert "is part of /dev/dm-0, /dev/dm-1" in texts(objections)
    assert "/dev/dm-1 (built on it) is mounted on /srv" in texts(objections)
    assert "/dev/sdb1 (partition of it) is part of /dev/dm-0" in texts(host.judge("/dev/sdb"))


def test_components_of_a_cached_volume_are_accepted(tmp_path):
    devices = [
        disk("sdb", "8:16", holders=("dm-1",)),
        disk("sdc", "8:32", holders=("dm-2", "dm-3")),
        disk("dm-0", "253:0", kind="lvm", dm_name="vg0-images", dm_uuid="LVM-i", slaves=("dm-1", "dm-2", "dm-3")),
        disk("dm-1", "253:1", kind="lvm", dm_name="vg0-images_corig", dm_uuid="LVM-c", slaves=("sdb",), holders=("dm-0",)),
        disk("dm-2", "253:2", kind="lvm", dm_name="vg0-fast_cvol-cdata", dm_uuid="LVM-d", slaves=("sdc",), holders=("dm-0",)),
        disk("dm-3", "253:3", kind="lvm", dm_name="vg0-fast_cvol-cmeta", dm_uuid="LVM-m", slaves=("sdc",), holders=("dm-0",)),
    ]
    host = Host(tmp_path, devices, {"/dev/sdb": ["LVM2_member"], "/dev/sdc": ["LVM2_member"], "/dev/dm-1": ["ext4"]})
    assert host.judge("/dev/dm-0") == []
    assert "is part of /dev/dm-0" in texts(host.judge("/dev/dm-1"))


def test_linear_mapping_over_a_file_system_is_refused(tmp_path):
    devices = [disk("sdb", "8:16", holders=("dm-0",)), disk("dm-0", "253:0", kind="dm", dm_name="slice", slaves=("sdb",))]
    assert texts(Host(tmp_path, devices, {"/dev/sdb": ["ext4"]}).judge("/dev/dm-0")) == "/dev/sdb (below it) contains ext4"


def test_raid_array_is_accepted_and_its_member_refused(tmp_path):
    devices = [disk("sdb", "8:16", holders=("md0",)), disk("md0", "9:0", kind="md", slaves=("sdb",))]
    host = Host(tmp_path, devices, {"/dev/sdb": ["linux_raid_member"]})
    assert host.judge("/dev/md0") == []
    assert kinds(host.judge("/dev/sdb", allow_data_loss=True)) == {"in_use", "data"}


def test_bcache_device_is_accepted_and_its_components_refused(tmp_path):
    devices = [
        disk("sdb", "8:16", holders=("bcache0",)),
        disk("nvme0n1", "259:0", holders=("bcache0",)),
        disk("bcache0", "252:0", kind="bcache", slaves=("sdb", "nvme0n1")),
    ]
    host = Host(tmp_path, devices, {"/dev/sdb": ["bcache"], "/dev/nvme0n1": ["bcache"]})
    assert host.judge("/dev/bcache0") == []
    assert "is part of /dev/bcache0" in texts(host.judge("/dev/nvme0n1"))


def test_mount_below_a_loop_device_is_detected(tmp_path):
    host = Host(tmp_path, [disk("sda1", "8:1", kind="partition", mountpoints=("/",)), disk("loop0", "7:0", kind="loop")])
    lay_loop(tmp_path, "loop0", "/dev/sda1")
    assert "/dev/sda1 (below it) is mounted on /" in texts(host.judge("/dev/loop0"))


def test_two_loop_devices_on_one_file_are_the_same_storage(tmp_path):
    host = Host(tmp_path, [disk("loop0", "7:0", kind="loop"), disk("loop1", "7:1", kind="loop", mountpoints=("/mnt",))])
    for name in ("loop0", "loop1"):
        lay_loop(tmp_path, name, "/images/one.img")
    assert "/dev/loop1 (the same storage) is mounted on /mnt" in texts(host.judge("/dev/loop0"))


def lay_loop(root, name, on):
    write(root, f"sys/class/block/{name}/loop/backing_file", f"{on}\n")
    if on.startswith("/images/"):
        # A loop device of which nothing is found that it could lie on may lie on anything.
        (root / "images").mkdir(exist_ok=True)
        (root / on.lstrip("/")).touch()


def looped_host(root, on, *more):
    devices = [
        disk("sda", "8:0", partitions=("sda1", "sda2")),
        *(disk(f"sda{n}", f"8:{n}", kind="partition", parent="sda") for n in (1, 2)),
        *(disk(f"loop{n}", f"7:{n}", kind="loop") for n in (0, 1)),
        *more,
    ]
    host = Host(root, devices, links=[("/dev/disk/by-id/x", "/dev/sda")])
    lay_loop(root, "loop0", on)
    return host


@pytest.mark.parametrize("on", ["/dev/sda", "/dev/disk/by-id/x", "/dev/sda (deleted)"])
def test_device_below_a_loop_device_is_in_use(tmp_path, on):
    host = looped_host(tmp_path, on)
    for permission in ({}, {"allow_data_loss": True}):
        objections = host.judge("/dev/sda", **permission)
        assert kinds(objections) == {"in_use"}
        assert texts(objections) == "/dev/sda is part of /dev/loop0"
    assert texts(host.judge("/dev/sda1")) == "/dev/sda (below it) is part of /dev/loop0"
    assert host.judge("/dev/sda", writing=False) == []
    assert host.judge("/dev/loop0") == [], "a loop device is no objection to itself"
    assert host.judge("/dev/loop1") == [], "nor to one that lies nowhere"


def test_loop_device_over_partition_blocks_its_disk_but_not_its_sibling(tmp_path):
    host = looped_host(tmp_path, "/dev/sda1")
    assert texts(host.judge("/dev/sda1")) == "/dev/sda1 is part of /dev/loop0"
    assert texts(host.judge("/dev/sda")) == "/dev/sda1 (partition of it) is part of /dev/loop0"
    assert host.judge("/dev/sda2") == []


def test_devices_built_on_loop_devices_are_found_at_any_level(tmp_path):
    mapping = disk("dm-0", "253:0", kind="dm", slaves=("loop1",), mountpoints=("/far",))
    host = looped_host(tmp_path, "/dev/sda1", mapping)
    lay_loop(tmp_path, "loop1", "/dev/loop0")
    host.devices = Devices([dataclasses.replace(one, holders=("dm-0",)) if one.name == "loop1" else one for one in host.devices], tmp_path)
    for target in ("/dev/sda", "/dev/sda1"):
        assert "/dev/dm-0 (built on it) is mounted on /far" in texts(host.judge(target))
    assert texts(host.judge("/dev/dm-0")) == "/dev/dm-0 is mounted on /far", "its own stack is no objection"


def test_loop_device_below_a_logical_volume(tmp_path):
    host = lvm_host(tmp_path)
    host.devices = Devices([*host.devices, disk("loop0", "7:0", kind="loop")], tmp_path)
    lay_loop(tmp_path, "loop0", "/dev/sdb1")
    assert texts(host.judge("/dev/dm-0")) == "/dev/sdb1 (below it) is part of /dev/loop0"


def configured(root, **values):
    for place, content in values.items():
        write(root, f"sys/kernel/config/{place}", content)


NVMET = "nvmet/subsystems/nqn.a/namespaces/1"


@pytest.mark.parametrize("named", ["/dev/sda", "/dev/disk/by-id/x"])
@pytest.mark.parametrize(
    ("place", "more", "exporter"),
    [
        (f"{NVMET}/device_path", {f"{NVMET}/enable": "1\n"}, "nvmet subsystem nqn.a"),
        ("target/core/iblock_0/disk1/udev_path", {"target/core/alua/lu_gps": ""}, "LIO backstore iblock_0/disk1"),
    ],
)
def test_device_exported_by_kernel_is_in_use(tmp_path, named, place, more, exporter):
    host = looped_host(tmp_path, "/images/one.img")
    configured(tmp_path, **{place: f"{named}\n", **more})
    objections = host.judge("/dev/sda", allow_data_loss=True)
    assert kinds(objections) == {"in_use"}
    assert texts(objections) == f"/dev/sda is exported by {exporter}"
    assert texts(host.judge("/dev/sda2")) == f"/dev/sda (below it) is exported by {exporter}"
    assert host.judge("/dev/sda", writing=False) == []


@pytest.mark.parametrize("options", [(), ("-r",), ("-d", "-s")])
def test_device_served_by_aoe_target_is_in_use(tmp_path, options):
    host = looped_host(tmp_path, "/images/one.img")
    write(tmp_path, "proc/4711/cmdline", "\0".join(("/usr/sbin/vblade", "7", "1", "eth1", "/dev/sda2", *options)) + "\0")
    assert texts(host.judge("/dev/sda2", allow_data_loss=True)) == "/dev/sda2 is exported by vblade e7.1 on eth1"
    assert texts(host.judge("/dev/sda")) == "/dev/sda2 (partition of it) is exported by vblade e7.1 on eth1"
    assert host.judge("/dev/sda1") == []


def test_exported_partition_blocks_its_disk_but_not_its_sibling(tmp_path):
    host = looped_host(tmp_path, "/images/one.img")
    configured(tmp_path, **{f"{NVMET}/device_path": "/dev/sda1\n", f"{NVMET}/enable": "1\n"})
    assert texts(host.judge("/dev/sda")) == "/dev/sda1 (partition of it) is exported by nvmet subsystem nqn.a"
    assert host.judge("/dev/sda2") == []


def test_export_of_a_device_built_on_it_is_found(tmp_path):
    host = lvm_host(tmp_path)
    configured(tmp_path, **{"target/core/iblock_0/d/udev_path": "/dev/dm-1\n"})
    assert "/dev/dm-1 (built on it) is exported by LIO backstore iblock_0/d" in texts(host.judge("/dev/sdb"))


def test_disabled_and_unrelated_exports_are_ignored(tmp_path):
    host = looped_host(tmp_path, "/images/one.img")
    configured(tmp_path, **{f"{NVMET}/device_path": "/dev/sda\n", f"{NVMET}/enable": "0\n", "target/core/fileio_0/f/udev_path": "\n"})
    configured(tmp_path, **{"nvmet/subsystems/nqn.b/namespaces/2/device_path": "/images/one.img\n", "nvmet/subsystems/nqn.b/namespaces/2/enable": "1\n"})
    assert host.judge("/dev/sda") == []


@pytest.mark.parametrize("kind", ["device", "file"])
def test_export_that_leads_nowhere_may_be_of_any_target(tmp_path, kind):
    host = looped_host(tmp_path, "/images/one.img")
    (tmp_path / "f").write_bytes(b"x")
    configured(tmp_path, **{"nvmet/subsystems/nqn.b/namespaces/2/device_path": "/dev/gone\n", "nvmet/subsystems/nqn.b/namespaces/2/enable": "1\n"})
    path = "/dev/sda" if kind == "device" else "/f"
    objections = host.judge(path, kind=kind, allow_data_loss=True)
    assert (kinds(objections), texts(objections)) == (
        {"in_use"},
        f"{path} may be in use: what nvmet subsystem nqn.b exports cannot be found, and may be any device or file: stop it",
    )


def test_way_out_of_what_cannot_be_seen_is_to_make_it_visible():
    with pytest.raises(Refused, match=r"/dev/sdb may be in use: it is dark\. What cannot be seen is in use, and no variable overrules this"):
        require(with_target(dataclasses.replace(EMPTY, unknown=("it is dark",)), allow_data_loss=True, identity="S1"), writing=True)
    require(dataclasses.replace(EMPTY, unknown=("it is dark",)), writing=False)


def test_file_exported_by_kernel_is_in_use(tmp_path):
    host = Host(tmp_path, [])
    (tmp_path / "image").write_bytes(b"x" * 4096)
    configured(tmp_path, **{"target/core/fileio_0/f/udev_path": "/image\n"})
    assert texts(host.judge("/image", kind="file", allow_data_loss=True)) == "/image is exported by LIO backstore fileio_0/f"


# --- claimed: holding a device ----------------------------------------------------------------------------------------


def in_sysfs(root, name, **attributes):
    """Attributes of a device; ``__`` in a name is a slash."""
    for attribute, text in attributes.items():
        write(root, f"sys/class/block/{name}/{attribute.replace('__', '/')}", f"{text}\n")


def test_device_is_claimed_and_released(tmp_path, monkeypatch):
    host = Host(tmp_path, [disk("sda", "8:0")])
    facts = host.examine("/dev/sda")
    seen = []
    really = os.open
    monkeypatch.setattr(os, "open", lambda path, flags, *rest, **more: seen.append(flags) or really(path, flags, *rest, **more))
    with guard.claimed(facts, host.runner, tmp_path):
        assert open_here(tmp_path / "dev/sda")
    assert not open_here(tmp_path / "dev/sda")
    assert seen[0] & os.O_EXCL and seen[0] & os.O_CLOEXEC and not seen[0] & (os.O_CREAT | os.O_ACCMODE)


def open_here(path):
    return any(os.path.realpath(f"/proc/self/fd/{name}") == str(path) for name in os.listdir("/proc/self/fd"))


def test_device_busy_since_examination_is_refused_after_retries(tmp_path, monkeypatch):
    host = Host(tmp_path, [disk("sda", "8:0")])
    facts = host.examine("/dev/sda")
    pauses = []

    def busy(path, flags, *rest, **more):
        raise OSError(errno.EBUSY, "busy")

    monkeypatch.setattr(os, "open", busy)
    claim = guard.claimed(facts, host.runner, tmp_path, pause=pauses.append)
    with pytest.raises(Refused, match="cannot be opened exclusively now: Device or resource busy"), claim:
        pytest.fail("fio would have run")
    assert len(pauses) == 2


@pytest.mark.parametrize(
    ("mode", "word"), [(stat.S_IFBLK, "the device number was 8:0 and is 8:16 now"), (stat.S_IFREG, "it was a block device and is none now")]
)
def test_path_now_belonging_to_another_device_is_refused(tmp_path, monkeypatch, mode, word):
    in_sysfs(tmp_path, "sda", dev="8:0")
    host = Host(tmp_path, [disk("sda", "8:0")])
    facts = dataclasses.replace(host.examine("/dev/sda"), path=str(tmp_path / "dev/sda"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", lambda descriptor: types.SimpleNamespace(st_mode=mode, st_rdev=os.makedev(8, 16)))
        held = guard.claimed(facts, host.runner)
        refused = None
        try:
            held.__enter__()
        except Refused as error:
            refused = error
    assert "/dev/sda is not the device any more that was examined" in refused.message
    assert word in refused.message
    assert not open_here(tmp_path / "dev/sda")


def test_regular_file_is_not_claimed(tmp_path):
    facts = TargetFacts(target=GuardTarget("/data/f", kind="file"), path="/data/f")
    with guard.claimed(facts, ScriptedRunner({}), tmp_path):
        pass


def test_two_paths_to_one_lun_are_the_same_storage(tmp_path):
    host = Host(
        tmp_path,
        [disk("sda", "8:0", wwn="0x5000"), disk("sdb", "8:16", wwn="0x5000", partitions=("sdb1",)), disk("sdb1", "8:17", parent="sdb", mountpoints=("/x",))],
    )
    assert "/dev/sdb1 (the same storage) is mounted on /x" in texts(host.judge("/dev/sda"))


def test_drives_with_the_same_serial_are_ambiguous(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0", serial="DUP", wwn="0x1"), disk("sdb", "8:16", serial="DUP", wwn="0x2")])
    assert "ambiguous: /dev/sdb" in texts(host.judge("/dev/sda", identity="DUP", writing=False))
    assert host.judge("/dev/sda", identity="0x1") == []


def partitioned(root, **of_first):
    links = {n: (f"/dev/disk/by-id/ata-X_S1-part{n}",) for n in (1, 2)}
    udev = {"ID_SERIAL": "X_S1", "ID_SERIAL_SHORT": "S1", "ID_WWN": "0x5000c500a1b2c3d4"}
    common = {"kind": "partition", "parent": "sda", "serial": "S1", "wwn": "0x5000c500a1b2c3d4"}
    first = {"partition": 1, "by_id": links[1], "properties": {**udev, **of_first}}
    devices = [
        disk("sda", "8:0", serial="S1", wwn="0x5000c500a1b2c3d4", properties=udev, by_id=("/dev/disk/by-id/ata-X_S1",), partitions=("sda1", "sda2")),
        disk("sda1", "8:1", **common, **first),
        disk("sda2", "8:2", **common, partition=2, by_id=links[2], properties={**udev, "ID_PART_ENTRY_UUID": "aaaa-2"}),
    ]
    return Host(root, devices, {"/dev/sda1": ["xfs"], "/dev/sda2": ["xfs"]})


@pytest.mark.parametrize(
    "identity", ["S1", "X_S1", "0x5000c500a1b2c3d4", "0X5000C500A1B2C3D4", "ata-X_S1", "/dev/disk/by-id/ata-X_S1", "S1-part2", "ata-X_S1-part2"]
)
@pytest.mark.parametrize("own", [{}, {"ID_PART_ENTRY_UUID": "aaaa-1"}, {"ID_PART_ENTRY_UUID": "00000000-01"}])
def test_partition_is_not_permitted_by_the_identity_of_its_disk(tmp_path, identity, own):
    host = partitioned(tmp_path, **own)
    name = own.get("ID_PART_ENTRY_UUID") if own.get("ID_PART_ENTRY_UUID") == "aaaa-1" else "S1-part1"
    objections = host.judge("/dev/sda1", allow_data_loss=True, identity=identity)
    assert kinds(objections) == {"identity", "data"}
    assert f"/dev/sda1 does not have the identity {identity}: it is {name}" in texts(objections)
    assert host.judge("/dev/sda1", allow_data_loss=True, identity=name) == []


@pytest.mark.parametrize("identity", ["aaaa-1", "S1-part1", "0x5000c500a1b2c3d4-part1", "ata-X_S1-part1", "/dev/disk/by-id/ata-X_S1-part1"])
def test_partition_is_permitted_by_each_of_its_own_names(tmp_path, identity):
    host = partitioned(tmp_path, ID_PART_ENTRY_UUID="aaaa-1")
    assert host.judge("/dev/sda1", allow_data_loss=True, identity=identity) == []
    assert "identity" in kinds(host.judge("/dev/sda2", allow_data_loss=True, identity=identity))
    assert "identity" in kinds(host.judge("/dev/sda", allow_data_loss=True, identity=identity))


def test_refusal_shows_the_identity_of_the_partition(tmp_path):
    facts = partitioned(tmp_path).examine("/dev/sda1")
    with pytest.raises(Refused, match='set both allow_data_loss: true and identity: "S1-part1" on this target'):
        require(facts, writing=True)


def test_device_with_a_placeholder_is_permitted_by_nothing_else_than_its_wwn(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0", placeholder="0123456789ABCDEF")], {"/dev/sda": ["xfs"]})
    facts = host.examine("/dev/sda", allow_data_loss=True, identity="0123456789ABCDEF")
    assert kinds(judge(facts, writing=True)) == {"identity", "data"}
    with pytest.raises(Refused, match=r"the serial number that it reports \(0123456789ABCDEF\) is a placeholder, which many devices report"):
        require(facts, writing=True)
    with pytest.raises(Refused, match=r"\(0123456789ABCDEF\) is a placeholder, .* that could confirm a permission: wipe it by hand"):
        require(host.examine("/dev/sda"), writing=True)
    named = Host(tmp_path / "other", [disk("sda", "8:0", placeholder="0123456789ABCDEF", wwn="0x5000c500a1b2c3d4")], {"/dev/sda": ["xfs"]})
    assert named.judge("/dev/sda", allow_data_loss=True, identity="0x5000c500a1b2c3d4") == []


@pytest.mark.parametrize("identity", ["S1", None])
def test_identity_read_while_udev_was_busy_permits_nothing(tmp_path, identity):
    host = Host(tmp_path, [disk("sda", "8:0", serial="S1")])
    host.devices = Devices(list(host.devices), tmp_path, settled=False)
    objections = host.judge("/dev/sda", allow_data_loss=True, identity=identity)
    assert kinds(objections) == ({"identity"} if identity else set())
    assert identity is None or "while udev is processing events" in texts(objections)


def test_partition_of_a_loop_device_is_not_permitted_by_the_backing_file(tmp_path):
    devices = [
        disk("loop5", "7:5", kind="loop", partitions=("loop5p1",)),
        disk("loop5p1", "259:0", kind="partition", parent="loop5", partition=1),
    ]
    host = Host(tmp_path, devices, {"/dev/loop5p1": ["xfs"]})
    (tmp_path / "image").write_bytes(b"")
    lay_loop(tmp_path, "loop5", "/image")
    assert "it is /image-part1" in texts(host.judge("/dev/loop5p1", allow_data_loss=True, identity="/image"))
    assert host.judge("/dev/loop5p1", allow_data_loss=True, identity="/image-part1") == []


def test_mount_only_in_namespace_of_the_first_process_is_found(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0")])
    (tmp_path / "proc/1/mountinfo").write_text("36 35 8:0 / /hidden rw - ext4 /dev/sda rw\n")
    assert "is mounted on /hidden in the mount namespace of process 1" in texts(host.judge("/dev/sda"))


def test_exclusively_held_device_is_in_use(tmp_path, monkeypatch):
    host = Host(tmp_path, [disk("sda", "8:0")])
    really = os.open
    flags_seen = []

    def busy(path, flags, *rest, **more):
        if str(path).endswith("/dev/sda"):
            flags_seen.append(flags)
            if flags & os.O_EXCL:
                raise OSError(errno.EBUSY, "busy")
        return really(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", busy)
    assert texts(host.judge("/dev/sda")) == "/dev/sda cannot be opened exclusively: Device or resource busy"
    assert not any(flags & os.O_CREAT for flags in flags_seen)


@pytest.mark.parametrize(
    ("name", "offset", "form", "value"),
    [
        ("dm-cache metadata", 32, "<Q", 0o6142003),
        ("dm-thin metadata", 32, "<Q", 27022010),
        ("dm-writecache metadata", 0, "<I", 0x23489321),
        ("flashcache metadata", 16, "<I", 0xFACECAFE),
        ("EnhanceIO metadata", 16, "<I", 0xACCEDED1),
        ("EnhanceIO metadata", 65536 + 16, "<I", 0x55DADDEE),
    ],
)
def test_superblocks_unsupported_by_libblkid_are_detected(tmp_path, name, offset, form, value):
    host = Host(tmp_path, [disk("sda", "8:0")])
    head = bytearray(1 << 17)
    struct.pack_into(form, head, offset, value)
    (tmp_path / "dev/sda").write_bytes(head)
    assert texts(host.judge("/dev/sda")) == f"/dev/sda contains {name}"
    (tmp_path / "dev/sda").write_bytes(head[: offset + 4096])
    assert texts(host.judge("/dev/sda")) == f"/dev/sda contains {name}"


def test_blkid_is_used_if_wipefs_fails():
    old = {("wipefs",): Reply(rc=1, stderr="unrecognized option '--json'")}
    nothing = ScriptedRunner({**old, ("blkid",): Reply(rc=2)})
    assert examination.read_signatures(nothing, "/dev/sda") == ()
    several = ScriptedRunner({("blkid",): Reply(rc=8)}, missing={"wipefs"})
    assert examination.read_signatures(several, "/dev/sda") == ("several signatures",)
    one = ScriptedRunner({("blkid",): Reply("DEVNAME=/dev/sda\nUUID=u-1\nTYPE=xfs\nPTTYPE=dos\n")}, missing={"wipefs"})
    assert examination.read_signatures(one, "/dev/sda") == ("xfs (u-1)", "dos (u-1)")
    with pytest.raises(ToolMissing, match="util-linux"):
        examination.read_signatures(ScriptedRunner({}, missing={"wipefs", "blkid"}), "/dev/sda")


def test_writing_process_is_found_by_its_descriptor(tmp_path):
    image = tmp_path / "disk.img"
    image.write_bytes(b"x")
    for number, flags in (("10", "0100002"), ("11", "0100000")):
        process = tmp_path / "proc" / number
        (process / "fd").mkdir(parents=True)
        (process / "fdinfo").mkdir()
        (process / "comm").write_text("qemu\n")
        (process / "fd/7").symlink_to(image)
        (process / "fdinfo/7").write_text(f"pos:\t0\nflags:\t{flags}\nmnt_id:\t1\n")
    unit = users.unit_of(image)
    rows = open_files(tmp_path, {unit}).of(unit)
    assert [(str(row), row.writing) for row in rows] == [("qemu (10)", True), ("qemu (11)", False)]


# --- what no signature shows ------------------------------------------------------------------------------------------


def fill(root, path, offset, content):
    with open(root / path.lstrip("/"), "r+b") as node:
        node.seek(offset)
        node.write(content)


@pytest.mark.parametrize("offset", [0, 700_000, GIB - 5])
def test_data_without_a_signature_is_detected(tmp_path, offset):
    host = Host(tmp_path, [disk("sda", "8:0", serial="S1")])
    fill(tmp_path, "/dev/sda", offset, b"text")
    objections = host.judge("/dev/sda")
    assert kinds(objections) == {"data"}
    assert "contains data without a known signature, the first that was found at byte" in texts(objections)
    assert kinds(host.judge("/dev/sda", allow_data_loss=True)) == {"data"}, "a permission names the device"
    assert host.judge("/dev/sda", allow_data_loss=True, identity="S1") == []
    assert host.judge("/dev/sda", writing=False) == []


def test_unreadable_contents_are_refused(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0", serial="S1")])
    os.truncate(tmp_path / "dev/sda", 4096)
    objections = host.judge("/dev/sda")
    assert kinds(objections) == {"unfit"}
    assert "the contents of /dev/sda cannot be read" in texts(objections)


def test_suspended_device_is_neither_read_nor_written(tmp_path):
    devices = [disk("dm-0", "253:0", kind="dm", dm_name="a", slaves=("dm-1",)), disk("dm-1", "253:1", kind="dm", dm_name="b", holders=("dm-0",))]
    host = Host(tmp_path, devices)
    write(tmp_path, "sys/class/block/dm-1/dm/suspended", "1\n")
    (tmp_path / "sys/class/block/dm-0/slaves/dm-1").mkdir(parents=True)
    assert texts(host.judge("/dev/dm-0")) == "/dev/dm-1 is suspended: every read waits until it is resumed (dmsetup resume)"
    assert not any(call[0] == "wipefs" for call in host.runner.calls)


def test_mapping_open_in_kernel_is_in_use(tmp_path):
    host = Host(tmp_path, [disk("dm-0", "253:0", kind="dm", dm_name="a")])
    host.runner.replies["dmsetup", "info"] = Reply("1\n")
    assert "is open according to device-mapper" in texts(host.judge("/dev/dm-0", allow_data_loss=True))


@pytest.mark.parametrize(("source", "opened", "refused"), [("/dev/dm-0", 1, False), ("/dev/dm-0", 2, True), ("/dev/sda", 1, True), ("/dev/gone", 1, True)])
def test_running_enhanceio_cache_explains_one_open_of_its_origin(tmp_path, source, opened, refused):
    host = Host(tmp_path, [disk("dm-0", "253:0", kind="dm", dm_name="a"), disk("sda", "8:0")])
    host.runner.replies["dmsetup", "info"] = Reply(f"{opened}\n")
    write(tmp_path, "proc/enhanceio/images/config", f"src_name   {source}\nssd_name   /dev/dm-0\nsrc_size   100\n")
    assert ("is open according to device-mapper" in texts(host.judge("/dev/dm-0", allow_data_loss=True))) is refused


@pytest.mark.parametrize(
    ("values", "kind", "word"),
    [
        ({"readers": ("backup (7)",)}, "in_use", "is open for reading in backup (7)"),
        ({"unseen": 40}, "unfit", "the open files of 40 processes cannot be read: run on the host itself, "),
        ({"opened": 2}, "in_use", "dmsetup info"),
        ({"suspended": "/dev/dm-1"}, "unfit", "suspended"),
        ({"unread": "Input/output error"}, "unfit", "contents of /dev/sdb cannot be read: Input/output error"),
        (
            {"rooms": (Room("the thin pool p", 0, "it would be lost"),)},
            "room",
            "the thin pool p has 0 B free and the job can use 1 GiB of it: it would be lost",
        ),
        ({"neighbours": (Neighbour("itself", "/dev/sdb", file_system="btrfs u-1"),)}, "in_use", "belongs to the mounted file system btrfs u-1"),
        ({"device": disk("sdb", "8:16", signature=Signature(type="mpath_member"))}, "in_use", "is a path of a multipath device"),
    ],
)
def test_devices_in_use_are_refused_with_any_permission(values, kind, word):
    facts = dataclasses.replace(EMPTY, **values)
    for one in (facts, with_target(facts, allow_data_loss=True, identity="S1")):
        if kind == "unfit" and "unread" in values and one.target.allow_data_loss:
            continue
        assert kinds(judge(one, writing=True)) == {kind}
        assert word in texts(judge(one, writing=True))
    assert judge(facts, writing=False) == []


def test_free_space_is_checked_for_the_write_extent():
    facts = dataclasses.replace(EMPTY, rooms=(Room("the thin pool p", GIB // 2, "x"),))
    assert kinds(judge(facts, writing=True)) == {"room"}
    assert judge(facts, writing=True, extent=GIB // 4) == []
    assert judge(with_target(facts, size=GIB // 4), writing=True) == []
    with pytest.raises(Refused, match="Free space there, or give the target a smaller size"):
        require(facts, writing=True)


@pytest.mark.parametrize(
    ("device", "accepted"),
    [
        (disk("sdb", "8:16"), True),
        (disk("sdb1", "8:17", kind="partition", parent="sdb"), False),
        (disk("dm-0", "253:0", kind="lvm"), False),
        (disk("dm-0", "253:0", kind="multipath"), False),
        (disk("md0", "9:0", kind="md"), False),
        (disk("loop0", "7:0", kind="loop"), False),
        (None, False),
    ],
)
def test_drive_commands_are_allowed_only_on_whole_disks(device, accepted):
    facts = dataclasses.replace(EMPTY, device=device)
    for writing in (True, False):
        objections = judge(facts, writing=writing, engines=("sg",))
        assert (objections == []) is accepted
        assert accepted or "ioengine=sg sends commands to the drive" in texts(objections)


def test_device_is_verified_again_before_each_cell(tmp_path):
    host = Host(tmp_path, [disk("sda", "8:0")])
    in_sysfs(tmp_path, "sda", dev="8:0", size=GIB // 512)
    facts = host.examine("/dev/sda")
    guard.require_unchanged(facts, host.runner, tmp_path)
    in_sysfs(tmp_path, "sda", size=1)
    with pytest.raises(Refused, match="the size was 2097152 sectors of 512 bytes and is 1 sectors of 512 bytes now"):
        guard.require_unchanged(facts, host.runner, tmp_path)
    in_sysfs(tmp_path, "sda", dev="8:16", size=GIB // 512)
    with pytest.raises(Refused, match="is not the device any more that was examined: the device number was 8:0 and is 8:16 now"):
        guard.require_unchanged(facts, host.runner, tmp_path)
    in_sysfs(tmp_path, "sda", dev="8:0")
    opened(process(tmp_path, 77, comm="qemu\n"), 3, tmp_path / "dev/sda")
    with pytest.raises(Refused, match=r"has been opened for writing by qemu \(77\)"):
        guard.require_unchanged(facts, host.runner, tmp_path)
    assert "/dev/sda is open for writing in qemu (77)" in texts(host.judge("/dev/sda"))
    (tmp_path / "dev/sda").rename(tmp_path / "dev/old")
    (tmp_path / "dev/sda").touch()
    with pytest.raises(Refused, match="is not the device any more"):
        guard.require_unchanged(facts, host.runner, tmp_path)


@pytest.mark.parametrize(("name", "pauses", "accepted"), [("(udev-worker)", 5, True), ("(udev-worker)", 99, False), ("backup", 5, False)])
def test_udev_reads_after_a_write_are_awaited(tmp_path, name, pauses, accepted):
    host = Host(tmp_path, [disk("sda", "8:0")])
    reader = process(tmp_path, 77, comm=f"{name}\n")
    opened(reader, 3, tmp_path / "dev/sda", os.O_RDONLY)
    waited = []

    def pause(seconds):
        waited.append(seconds)
        if len(waited) == pauses:
            (reader / "fd/3").unlink()

    objections = judge(examine(host.devices, GuardTarget("/dev/sda"), host.runner, tmp_path, pause=pause), writing=True)
    assert (objections == []) is accepted
    assert accepted or f"is open for reading in {name} (77)" in texts(objections)


def test_hard_link_of_a_loop_backing_file_is_in_use(tmp_path):
    host = Host(tmp_path, [])
    (tmp_path / "image").write_bytes(b"x" * 4096)
    os.link(tmp_path / "image", tmp_path / "other")
    lay_loop(tmp_path, "loop5", "/image")
    assert texts(host.judge("/other", kind="file", allow_data_loss=True)) == "/other is part of /dev/loop5"


# --- examine: plain files ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/dev/nvme9n9", "/dev/shm/f", "/proc/f", "/sys/f"])
def test_no_file_is_created_in_kernel_file_systems(tmp_path, path):
    host = Host(tmp_path, [])
    (tmp_path / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
    with pytest.raises(Refused, match="no file may be made there"):
        host.examine(path, kind="file", size=GIB)
    assert not (tmp_path / path.lstrip("/")).exists()


def test_link_into_dev_is_resolved_before_the_check(tmp_path):
    host = Host(tmp_path, [])
    (tmp_path / "dev").mkdir()
    (tmp_path / "data").symlink_to(tmp_path / "dev")
    with pytest.raises(Refused, match="is in dev"):
        host.examine("/data/f", kind="file", size=GIB)


@pytest.mark.parametrize(
    ("mounted", "path", "is_refused"),
    [
        pytest.param((), "/mnt/data/f", True, id="nothing is mounted"),
        pytest.param(("/mnt/data",), "/mnt/data/f", False, id="it is mounted"),
        pytest.param(("/mnt",), "/mnt/data/f", True, id="only what is above it"),
        pytest.param((), "/mnt/database", False, id="a name that begins in the same way"),
        pytest.param(("/mnt/my images",), "/mnt/my images/f", False, id="with a blank"),
    ],
)
def test_file_below_a_mount_point_of_fstab_is_refused_while_nothing_is_mounted_there(tmp_path, mounted, path, is_refused):
    host = Host(tmp_path, [disk("sda", "8:0")])
    (tmp_path / path.lstrip("/")).parent.mkdir(parents=True)
    (tmp_path / "etc").mkdir()
    lines = [
        "/dev/vda / ext4 defaults 0 1",
        "/dev/vg0/data /mnt/data/ ext4 nofail 0 2",
        "/dev/sdc /mnt/my\\040images xfs defaults 0 0",
        "/swapfile none swap sw 0 0",
    ]
    (tmp_path / "etc/fstab").write_text("\n".join(lines) + "\n")
    (tmp_path / "proc/self").mkdir(parents=True)
    rows = [f"30 1 8:1 / {point.replace(' ', chr(92) + '040')} rw - ext4 /dev/sda1 rw\n" for point in mounted]
    (tmp_path / "proc/self/mountinfo").write_text("".join(rows))
    if not is_refused:
        assert host.judge(path, kind="file", size=4096) == []
        return
    with pytest.raises(Refused, match=r"/mnt/data/f is below /mnt/data, where nothing is mounted although line 2 of /etc/fstab mounts /dev/vg0/data there"):
        host.examine(path, kind="file", size=4096)


@pytest.mark.parametrize(("enabled", "mounted"), [(True, False), (True, True), (False, False)])
def test_file_below_a_mount_unit_is_refused_while_nothing_is_mounted_there(tmp_path, enabled, mounted):
    host = Host(tmp_path, [disk("sda", "8:0")])
    units = tmp_path / "etc/systemd/system"
    (units / "local-fs.target.wants").mkdir(parents=True)
    (units / "mnt-data.mount").write_text("[Unit]\nAfter=a.service\n[Mount]\nWhat=/dev/vg0/data\nWhere = /mnt/my data/ \n")
    if enabled:
        (units / "local-fs.target.wants/mnt-data.mount").symlink_to("/etc/systemd/system/mnt-data.mount")
    (tmp_path / "mnt/my data").mkdir(parents=True)
    write(tmp_path, "proc/self/mountinfo", "36 1 253:0 / /mnt/my\\040data rw - ext4 /dev/vg0/data rw\n" if mounted else "")
    if not enabled or mounted:
        assert host.judge("/mnt/my data/f", kind="file", size=4096) == []
        return
    with pytest.raises(
        Refused, match=r"/mnt/my data/f is below /mnt/my data, where nothing is mounted although the unit mnt-data.mount mounts /dev/vg0/data there"
    ):
        host.examine("/mnt/my data/f", kind="file", size=4096)


def test_file_requires_an_existing_folder_and_an_absolute_path(tmp_path):
    host = Host(tmp_path, [])
    with pytest.raises(DeviceMissing, match="does not exist on this host"):
        host.examine("/nodir/f", kind="file", size=GIB)
    with pytest.raises(DeviceMissing, match="absolute"):
        host.examine("f", kind="file", size=GIB)
    (tmp_path / "folder").mkdir()
    with pytest.raises(DeviceMissing, match="neither a plain file"):
        host.examine("/folder", kind="file", size=GIB)
    assert host.judge("/folder/new", kind="file", size=4096) == []


def test_swap_file_and_loop_backing_file_are_in_use(tmp_path):
    host = Host(tmp_path, [])
    (tmp_path / "swapfile").write_bytes(b"x" * 4096)
    (tmp_path / "image").write_bytes(b"x" * 4096)
    (tmp_path / "proc/swaps").write_text("Filename Type Size Used Priority\n/swapfile file 4 0 -2\n")
    lay_loop(tmp_path, "loop5", "/image")
    assert "swap space" in texts(host.judge("/swapfile", kind="file", allow_data_loss=True))
    assert "part of /dev/loop5" in texts(host.judge("/image", kind="file", allow_data_loss=True))


def test_partition_with_a_mounted_one_inside_is_in_use(tmp_path):
    """A BSD slice, or a table that was edited by hand."""
    devices = [
        disk("sda", "8:0", partitions=("sda1", "sda2", "sda5"), serial="S1"),
        disk("sda1", "8:1", kind="partition", parent="sda"),
        disk("sda2", "8:2", kind="partition", parent="sda", serial="S1", partition=2),
        disk("sda5", "8:5", kind="partition", parent="sda", holders=("dm-0",)),
        disk("dm-0", "253:0", kind="crypt", dm_name="secret", slaves=("sda5",), mountpoints=("/srv",)),
    ]
    host = Host(tmp_path, devices, {"/dev/sda": ["dos"], "/dev/sda2": ["bsd"]})
    for name, start, size in (("sda1", 2048, 2048), ("sda2", 4096, 200000), ("sda5", 6144, 100000)):
        in_sysfs(tmp_path, name, start=start, size=size)
    objections = host.judge("/dev/sda2", allow_data_loss=True, identity="S1-part2")
    assert "/dev/sda5 (the same storage) is part of /dev/dm-0" in texts(objections)
    assert "/dev/dm-0 (the same storage) is mounted on /srv" in texts(objections)
    assert host.judge("/dev/sda1") == []


@pytest.mark.parametrize(
    ("rows", "overlaps"),
    [
        ("slice: 0 1000 linear 8:16 0\nother: 0 1000 linear 8:16 500\n", True),
        ("slice: 0 1000 linear 8:16 0\nother: 0 1000 linear 8:16 1000\n", False),
        ("slice: 0 1000 linear 8:16 0\nother: 0 1000 linear 8:32 0\n", False),
        ("slice: 0 1000 linear 8:16 0\nother: 0 100 crypt aes-xts-plain64 :64:logon:x 0 8:16 900\n", True),
        ("slice: 0 1000 linear 8:16 0\nother: 0 2000 striped 2 128 8:32 0 8:16 999\n", True),
        ("slice: 0 1000 linear 8:16 0\nother: 0 2000 striped 2 128 8:16 1000 8:32 0\n", False),
    ],
)
def test_mapping_that_shares_a_range_with_a_mounted_one_is_in_use(tmp_path, rows, overlaps):
    devices = [
        disk("sdb", "8:16", holders=("dm-0", "dm-1")),
        disk("dm-0", "253:0", kind="dm", dm_name="slice", slaves=("sdb",)),
        disk("dm-1", "253:1", kind="dm", dm_name="other", slaves=("sdb",), mountpoints=("/srv",)),
    ]
    host = Host(tmp_path, devices)
    dmsetup = {("dmsetup", "table"): Reply(rows), ("dmsetup", "status"): Reply(""), ("dmsetup", "info"): Reply("0\n")}
    host.runner = ScriptedRunner({("wipefs",): Reply('{"signatures": []}'), **dmsetup})
    found = texts(host.judge("/dev/dm-0", allow_data_loss=True, identity="slice"))
    assert found == ("/dev/dm-1 (the same storage) is mounted on /srv" if overlaps else "")
