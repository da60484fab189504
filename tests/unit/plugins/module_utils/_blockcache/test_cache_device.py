# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import errno
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import cache_device
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.cache_device import (
    DeviceUse,
    examine,
    identified,
    require_whole_unit,
    still_empty,
    still_same,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import keep
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import opened, process, write
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner


def test_suspended_device_is_not_read(tmp_path):
    """Reads wait until it is resumed: no command may be run, and none is scripted."""
    write(tmp_path, "sys/class/block/dm-3/dm/suspended", "1\n")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/dm-3").write_bytes(bytes(4096))
    found = examine(ScriptedRunner({}), "/dev/dm-3", tmp_path, sleep=lambda seconds: None)
    assert found.users == ("is suspended, or is on a device that is (/dev/dm-3; dmsetup resume ends that)",)
    assert found.reasons


def test_udev_signatures_are_used_only_if_device_was_not_examined():
    assert DeviceUse().with_signatures("LVM2_member").signatures == ("LVM2_member",)
    assert DeviceUse(examined=True).with_signatures("LVM2_member").signatures == ()


NOTHING = Reply('{"signatures": []}')
SSD, HDD = (BlockDevice(name, f"/dev/{name}", number, size=4096) for name, number in (("sdb", "8:16"), ("sdc", "8:32")))


def host(root, *devices, data=b""):
    for device in devices:
        node = root / device.path.lstrip("/")
        node.parent.mkdir(exist_ok=True)
        node.write_bytes(data.ljust(4096, b"\0"))
    runner = ScriptedRunner({("wipefs",): NOTHING, ("dmsetup", "info"): Reply("1\n"), ("dmsetup", "table"): Reply("")})
    return runner, Neighbourhood(Devices(devices, root), runner, root)


def look_at(root, runner, around, path="/dev/sdb", **how):
    return examine(runner, path, root, lambda _seconds: None, around=around, **how)


def test_empty_device_has_no_reasons(tmp_path):
    assert look_at(tmp_path, *host(tmp_path, SSD)).reasons == []


def test_data_without_a_signature_is_a_reason_only_where_the_device_must_be_empty(tmp_path):
    runner, around = host(tmp_path, SSD, data=b"\0database")
    found = look_at(tmp_path, runner, around)
    assert found.reasons == ["contains data without a known signature, the first that was found at byte 1"]
    assert "blkdiscard /dev/sdb" in found.advice("/dev/sdb")
    assert look_at(tmp_path, runner, around, empty=False).reasons == []
    keep("/dev/sdb", tmp_path)
    assert look_at(tmp_path, runner, around).reasons == [], "a cache of this collection left it"


def test_device_exchanged_while_it_is_examined_is_not_overwritten(tmp_path, monkeypatch):
    runner, around = host(tmp_path, SSD, HDD)
    serial = write(tmp_path, "sys/class/block/sdb/serial", "S-1\n")
    monkeypatch.setattr(cache_device, "read_devices", lambda *_arguments: around.devices)
    with still_empty(runner, "/dev/sdb", "images", tmp_path, lambda _seconds: None):
        assert [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")].count(str(tmp_path / "dev/sdb")) == 1, "its number is kept"
    really = cache_device.examine

    def exchanged(*arguments, **how):
        found = really(*arguments, **how)
        serial.write_text("S-2\n")
        return found

    monkeypatch.setattr(cache_device, "examine", exchanged)
    refused = pytest.raises(Refused, match=r"/dev/sdb is not the device any more that was examined: the serial number was S-1 and is S-2 now\.")
    with refused, still_empty(runner, "/dev/sdb", "images", tmp_path, lambda _seconds: None):
        pytest.fail("it would have been overwritten")


def test_device_that_is_gone_before_it_is_overwritten_is_refused(tmp_path, monkeypatch):
    runner, around = host(tmp_path, SSD)
    monkeypatch.setattr(cache_device, "read_devices", lambda *_arguments: around.devices)
    before = identified(runner, "/dev/sdb", tmp_path)
    (tmp_path / "dev/sdb").unlink()
    refused = pytest.raises(Refused, match=r"images: /dev/sdb cannot be opened now \(No such file or directory\): nothing was written to it")
    with refused, still_same(runner, "/dev/sdb", "images", tmp_path, before):
        pytest.fail("it would have been overwritten")


def test_read_error_is_a_reason(tmp_path, monkeypatch):
    def failing(_node, _places):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(cache_device.contents, "first_data", failing)
    assert look_at(tmp_path, *host(tmp_path, SSD)).reasons == ["cannot be read (Input/output error)"]


@pytest.mark.parametrize(("mode", "word"), [(os.O_RDWR, "writing"), (os.O_RDONLY, "reading")])
@pytest.mark.parametrize("empty", [True, False])
def test_open_device_is_in_use_whatever_it_contains(tmp_path, mode, word, empty):
    runner, around = host(tmp_path, SSD)
    opened(process(tmp_path, 77, comm="qemu\n", maps=""), 3, tmp_path / "dev/sdb", mode)
    assert look_at(tmp_path, runner, around, empty=empty).users == (f"is open for {word} in qemu (77)",)


def test_exported_device_or_its_disk_is_in_use(tmp_path):
    part = dataclasses.replace(SSD, name="sdb1", path="/dev/sdb1", number="8:17", kind="partition", parent="sdb")
    disk = dataclasses.replace(SSD, partitions=("sdb1",))
    namespace = tmp_path / "sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1"
    namespace.mkdir(parents=True)
    (namespace / "device_path").write_text("/dev/sdb\n")
    (namespace / "enable").write_text("1\n")
    runner, around = host(tmp_path, disk, part)
    assert look_at(tmp_path, runner, around).users == ("is served to other hosts by nvmet subsystem nqn.x",)
    shared = "shares its storage with /dev/sdb, which is served to other hosts by nvmet subsystem nqn.x"
    assert look_at(tmp_path, runner, around, "/dev/sdb1").users == (shared,)


def test_mapping_that_the_kernel_has_open_is_in_use(tmp_path):
    mapping = dataclasses.replace(SSD, kind="dm", dm_name="scratch")
    assert "is open according to device-mapper" in look_at(tmp_path, *host(tmp_path, mapping)).users[0]


def test_device_whose_other_path_is_mounted_is_in_use(tmp_path):
    one, other = dataclasses.replace(SSD, wwn="0x1"), dataclasses.replace(HDD, wwn="0x1", mountpoints=("/srv",))
    assert look_at(tmp_path, *host(tmp_path, one, other)).users == ("is also /dev/sdc, which is mounted on /srv",)


def test_own_mirror_is_not_read(tmp_path):
    """It is made of devices that were empty or that a cache has left, which differ."""
    own = dataclasses.replace(SSD, kind="md", properties={"MD_NAME": "any:cachefleet-images"})
    assert look_at(tmp_path, *host(tmp_path, own, data=b"left by a cache")).reasons == []
    theirs = dataclasses.replace(own, properties={"MD_NAME": "host:data"})
    assert look_at(tmp_path, *host(tmp_path, theirs, data=b"a database")).reasons


MAP = BlockDevice("dm-0", "/dev/dm-0", "253:0", kind="multipath", dm_name="mpatha", dm_uuid="mpath-1", slaves=("sdb", "sdc"))
PATH = dataclasses.replace(SSD, wwn="0x1", transport="fc")
TWIN = dataclasses.replace(HDD, wwn="0x1", transport="fc")
SECOND = "sdc are paths to one unit of storage"


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        ([dataclasses.replace(PATH, holders=("dm-0",)), dataclasses.replace(TWIN, holders=("dm-0",)), MAP], "one of the paths to .* /dev/mapper/mpatha"),
        ([PATH, TWIN], f"{SECOND} .*0x1.*: join them with multipath"),
        ([PATH, dataclasses.replace(TWIN, holders=("dm-0",)), MAP], rf"{SECOND} .*: have multipath take it too \(multipath -r\) and name /dev/mapper/mpatha"),
        ([dataclasses.replace(PATH, wwn=None, serial="S", size=9), dataclasses.replace(TWIN, wwn=None, serial="S", size=9, model=SSD.model)], SECOND),
    ],
)
def test_path_to_a_unit_with_several_is_refused(devices, reason):
    with pytest.raises(Refused, match=reason):
        require_whole_unit(Devices(devices), devices[0], "/dev/sdb", "images")


def test_link_of_several_paths_is_no_ambiguous_name(tmp_path):
    """Seen on the rack: of a unit that multipath had not joined at boot, its WWN was refused with the advice to use its WWN."""
    link = "/dev/disk/by-id/wwn-0x1"
    (tmp_path / "dev/disk/by-id").mkdir(parents=True)
    (tmp_path / "dev/sdb").touch()
    (tmp_path / link.lstrip("/")).symlink_to("../../sdb")
    paths = [dataclasses.replace(one, by_id=(link,)) for one in (PATH, TWIN)]
    with pytest.raises(Refused, match=f"{SECOND} .*: join them with multipath"):
        cache_device.resolve_stable(Devices(paths, tmp_path), link, "images")


@pytest.mark.parametrize(
    "devices",
    [
        [PATH],
        [PATH, dataclasses.replace(TWIN, wwn="0x2", serial=SSD.serial)],
        # A disk of a PC with the serial number of another, and a unit of the same array.
        [dataclasses.replace(PATH, wwn=None, serial="S", transport="sata"), dataclasses.replace(TWIN, wwn=None, serial="S", transport="sata", model=SSD.model)],
        [dataclasses.replace(PATH, wwn=None, serial="S", size=8), dataclasses.replace(TWIN, wwn=None, serial="S", size=9, model=SSD.model)],
        [MAP, dataclasses.replace(PATH, holders=("dm-0",)), dataclasses.replace(TWIN, holders=("dm-0",))],
    ],
)
def test_whole_unit_is_accepted(devices):
    require_whole_unit(Devices(devices), devices[0], "/dev/sdb", "images")


def test_partition_of_a_path_is_refused():
    part = dataclasses.replace(SSD, name="sdb1", path="/dev/sdb1", number="8:17", kind="partition", parent="sdb", wwn=None)
    with pytest.raises(Refused, match="name that device, or its partition, in place of it"):
        require_whole_unit(Devices([part, dataclasses.replace(PATH, holders=("dm-0",)), TWIN, MAP]), part, "/dev/sdb1", "images")
