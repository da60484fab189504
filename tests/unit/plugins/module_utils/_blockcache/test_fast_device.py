# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which device a cache will lie on, and the mirror that is made for it."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import fast_device, mirror
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import DeviceUse
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.spec import CacheSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

A, B = "/dev/disk/by-id/ata-A", "/dev/disk/by-id/ata-B"
DISKS = (
    BlockDevice(name="sdb", path="/dev/sdb", number="8:16", size=GIB, by_id=(A,), serial="A"),
    BlockDevice(name="sdc", path="/dev/sdc", number="8:32", size=GIB, by_id=(B,), serial="B"),
)
WANTED = CacheSpec("images", "/dev/disk/by-id/ata-HDD", (A,))
MIRRORED = dataclasses.replace(WANTED, cache_devices=(A, B), mirror=True)
UUID = mirror.array_uuid("images", DISKS, "host")


class Named(Devices):
    def resolve(self, path, item=None):
        for device in self:
            if path in (device.path, *device.by_id):
                return device
        raise DeviceMissing(f"{path} does not exist on this host.", item=item)


def array(*, redundant=True, members=("sdb", "sdc"), label="any:cachefleet-images", uuid=UUID):
    return mirror.Array("md127", uuid, label, members, redundant, GIB - 5)


def ground(*arrays, findings=None, disks=DISKS):
    above = [
        BlockDevice(name=one.name, path=f"/dev/{one.name}", number="9:127", kind="md", size=one.size, slaves=one.members, by_id=(one.path,)) for one in arrays
    ]
    members = {name for one in arrays for name in one.members}
    marked = [dataclasses.replace(disk, holders=("md127",)) if disk.name in members else disk for disk in disks]
    return fast_device.HostDevices(Named([*marked, *above]), findings or {}, {one.name: one for one in arrays}, "host")


def choose(host, requested=WANTED, **how):
    return fast_device.choose(host, requested, "dm_cache", **how)


def test_single_device_is_selected():
    fast = choose(ground())
    assert (fast.path, fast.device.name, fast.size, fast.redundancy, fast.steps) == (A, "sdb", GIB, "none", ())


def test_existing_user_array_counts_as_mirrored():
    host = ground(array(label="host:fast"))
    fast = choose(host, dataclasses.replace(WANTED, cache_devices=(array().path,)))
    assert fast.redundancy == "mirrored"


def test_non_empty_device_is_refused_unless_it_holds_the_cache():
    host = ground(findings={"sdb": DeviceUse(("ext4",))})
    with pytest.raises(Refused, match="carries a signature"):
        choose(host)
    assert choose(host, check_empty=False).device.name == "sdb"


def test_device_cannot_be_used_by_two_caches():
    with pytest.raises(BadInput, match="used by a cache before it in the list"):
        choose(ground(), taken={"sdb"})


def test_missing_device_is_reported():
    with pytest.raises(DeviceMissing, match="does not exist"):
        choose(ground(disks=DISKS[1:]))


def test_new_mirror_has_stable_path_before_creation():
    fast = choose(ground(), MIRRORED)
    assert (fast.device, fast.redundancy, fast.path) == (None, "mirrored", f"/dev/disk/by-id/md-uuid-{UUID}")
    assert 0 < fast.size < GIB
    (step,) = fast.steps
    assert step.operation == mirror.CreateMirror((A, B), UUID, "cachefleet-images")


def test_new_mirror_requires_two_empty_devices():
    with pytest.raises(Refused, match="ata-B carries a signature"):
        choose(ground(findings={"sdc": DeviceUse(("xfs",))}), MIRRORED)
    with pytest.raises(BadInput, match="are one device"):
        choose(ground(), dataclasses.replace(MIRRORED, cache_devices=(A, A)))


def test_running_mirror_is_used():
    fast = choose(ground(array()), MIRRORED)
    assert (fast.device.name, fast.path, fast.steps) == ("md127", array().path, ())
    with pytest.raises(Refused, match="carries a signature"):
        choose(ground(array(), findings={"md127": DeviceUse(("ext4",))}), MIRRORED)


def test_stopped_mirror_is_assembled():
    signature = Signature("raid", "linux_raid_member", fast_device._as_blkid(UUID))
    disks = tuple(dataclasses.replace(disk, signature=signature) for disk in DISKS)
    (step,) = choose(ground(disks=disks), MIRRORED).steps
    assert step.operation == mirror.StartMirror((A, B), UUID, "cachefleet-images")


def test_mirror_with_interrupted_creation_is_recreated():
    signature = Signature("raid", "linux_raid_member", fast_device._as_blkid(UUID))
    disks = (dataclasses.replace(DISKS[0], signature=signature), DISKS[1])
    steps = choose(ground(disks=disks, findings={"sdb": DeviceUse(("linux_raid_member",))}), MIRRORED).steps
    assert [step.operation for step in steps] == [mirror.ReleaseMirror("", (A,)), mirror.CreateMirror((A, B), UUID, "cachefleet-images")]
    other = (dataclasses.replace(DISKS[0], signature=Signature("raid", "linux_raid_member", "0-0")), DISKS[1])
    with pytest.raises(Refused, match="ata-A carries a signature"):
        choose(ground(disks=other), MIRRORED)


@pytest.mark.parametrize("disks", [DISKS, DISKS[:1]])
def test_degraded_mirror_remains_in_use(disks):
    fast = choose(ground(array(redundant=False, members=("sdb",)), disks=disks), MIRRORED)
    assert (fast.device.name, fast.redundancy) == ("md127", "degraded")


def test_incomplete_unused_mirror_is_recreated():
    host = ground(array(redundant=False, members=("sdb",)), findings={"md127": DeviceUse()})
    fast = choose(host, MIRRORED)
    assert [step.operation for step in fast.steps] == [mirror.ReleaseMirror("md127", (A,)), mirror.CreateMirror((A, B), UUID, "cachefleet-images")]
    assert choose(host, MIRRORED, check_empty=False).redundancy == "degraded"
    used = ground(array(redundant=False, members=("sdb",)), findings={"md127": DeviceUse((), ("dm-cache metadata",))})
    assert choose(used, MIRRORED).redundancy == "degraded"


@pytest.mark.parametrize("check_empty", [True, False])
def test_mirror_half_is_refused_without_wipe_advice(check_empty):
    new = "/dev/disk/by-id/ata-C"
    disks = (*DISKS, BlockDevice(name="sdd", path="/dev/sdd", number="8:48", size=GIB, by_id=(new,), serial="C"))
    host = ground(array(), disks=disks, findings={"sdb": DeviceUse(("linux_raid_member",))})
    for requested in (dataclasses.replace(MIRRORED, cache_devices=(new, A)), WANTED):
        with pytest.raises(Refused, match=r"ata-A is a half of the mirror cachefleet-images.*replace_cache_device") as refused:
            choose(host, requested, check_empty=check_empty)
        assert "wipefs" not in str(refused.value)
    # The whole pair, in whichever order, is what the cache lies on.
    assert choose(host, dataclasses.replace(MIRRORED, cache_devices=(B, A)), check_empty=False).path == array().path


def test_mirror_no_longer_used_by_cache_is_released():
    new = tuple(
        BlockDevice(name=name, path=f"/dev/{name}", number=f"8:{number}", size=GIB, by_id=(f"/dev/disk/by-id/ata-{name}",), serial=name)
        for name, number in (("sdd", 48), ("sde", 64))
    )
    requested = dataclasses.replace(MIRRORED, cache_devices=tuple(disk.by_id[0] for disk in new))
    idle, busy = ground(array(), disks=(*DISKS, *new), findings={"md127": DeviceUse()}), ground(array(), disks=(*DISKS, *new))
    (step,) = fast_device.retire(idle, requested, "dm_cache")
    assert step.operation == mirror.ReleaseMirror("md127", (A, B))
    # What has not been looked at is in use, and goes only if the steps before free it.
    assert fast_device.retire(busy, requested, "dm_cache") == []
    assert fast_device.retire(busy, requested, "dm_cache", {"md127"}) == [step]
    # The own mirror, and that of another cache, stay.
    assert fast_device.retire(idle, MIRRORED, "dm_cache", {"md127"}) == []
    assert fast_device.retire(idle, dataclasses.replace(requested, name="mail"), "dm_cache", {"md127"}) == []


def test_mirror_is_released_only_if_requested_and_present():
    assert fast_device.release(ground(array()), WANTED, "dm_cache") == []
    assert fast_device.release(ground(), MIRRORED, "dm_cache") == []
    (step,) = fast_device.release(ground(array()), MIRRORED, "dm_cache")
    assert step.operation == mirror.ReleaseMirror("md127", (A, B))
    assert fast_device.release(ground(array(label="host:mine")), MIRRORED, "dm_cache") == []


def test_release_removes_mirror_remains_of_killed_run():
    signature = Signature("raid", "linux_raid_member", fast_device._as_blkid(UUID))
    disks = (DISKS[0], dataclasses.replace(DISKS[1], signature=signature))
    (step,) = fast_device.release(ground(disks=disks), MIRRORED, "dm_cache")
    assert step.operation == mirror.ReleaseMirror("", (B,))


def test_only_requested_devices_are_examined(tmp_path, monkeypatch):
    (tmp_path / "dev").mkdir()
    for name in ("sdb", "sdc", "md127"):
        (tmp_path / "dev" / name).write_bytes(bytes(4096))
    runner = ScriptedRunner({("wipefs",): Reply()})
    monkeypatch.setattr(mirror, "read_arrays", lambda devices, root: {})
    found = fast_device.read_host_devices(runner, Named(DISKS), [A, B, "/dev/gone"], in_use={"sdc"}, root=tmp_path)
    assert set(found.findings) == {"sdb"}
    monkeypatch.setattr(mirror, "read_arrays", lambda devices, root: {"md127": array()})
    found = fast_device.read_host_devices(runner, Named(DISKS), [A, B], root=tmp_path)
    assert set(found.findings) == {"md127"}
    assert runner.calls[-1][-1] == "/dev/md127"
