# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cache of a volume that the host boots from: only if it is allowed, and if every initramfs can activate it."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import layer as layer_module
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.layer import LvmCacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import HDD, SSD, SSD1, SSD_PATH, FakeLvm, NamedDevices, make_dev

VOLUME = BlockDevice("dm-0", "/dev/dm-0", "253:0", kind="lvm", dm_name="vg-data", dm_uuid="LVM-abc", slaves=("sda",), links=("/dev/vg/data",))
DEBIAN, EL = "6.1.0-56-amd64", "5.14.0-427.el9.x86_64"
MODULES = "usr/lib/modules/{}/kernel/drivers/md/dm-cache.ko\nusr/lib/modules/{}/kernel/drivers/md/dm-cache-smq.ko.xz\n"
WHOLE = "init\n" + MODULES + "usr/sbin/cache_check\n"
SYSTEM_DEVICES = "VERSION=1.1.3\nIDTYPE=sys_wwid IDNAME=naa.5000 DEVNAME=/dev/sda PVID=a\nIDTYPE=sys_wwid IDNAME=naa.5001 DEVNAME=/dev/sdb PVID=b\n"


class Host:
    """A host whose volume vg/data has a role at boot."""

    def __init__(self, tmp_path, monkeypatch):
        make_dev(tmp_path)
        self.root, self.lvm, self.volumes = tmp_path, FakeLvm(), [VOLUME]
        monkeypatch.setattr(layer_module, "read_devices", lambda runner, root: NamedDevices([HDD, SSD, SSD1, *self.volumes]))

    def write(self, path, text):
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)

    def mounted(self, place, *more):
        self.volumes = [dataclasses.replace(VOLUME, mountpoints=(place,)), *more]

    def image(self, text, kernel=DEBIAN, name="initrd.img-{}", tool="lsinitramfs"):
        self.write(f"lib/modules/{kernel}/modules.dep", "")
        self.write(f"boot/{name.format(kernel)}", "")
        self.lvm.images[f"/boot/{name.format(kernel)}"] = text.replace("{}", kernel)
        self.lvm.missing_initramfs.discard(tool)

    def run(self, **fields):
        ticks = itertools.count(0, 30)
        items = read_items([{"name": "images", "origin": "vg/data", "cache_devices": [SSD_PATH], **fields}])
        return converge(LvmCacheLayer(self.lvm, items, self.root, clock=lambda: next(ticks), sleep=lambda seconds: None), check_mode=False)

    def refused(self, text, **fields):
        with pytest.raises(Refused, match=text) as caught:
            self.run(**fields)
        assert self.lvm.changes == []
        assert "\n" not in caught.value.message
        return caught.value.message


@pytest.fixture
def host(tmp_path, monkeypatch):
    return Host(tmp_path, monkeypatch)


@pytest.mark.parametrize("origin", ["vg/data", "/dev/vg/data", "/dev/mapper/vg-data"])
def test_volume_the_host_boots_from_is_known_by_every_name(host, origin):
    host.mounted("/")
    host.image(WHOLE)
    host.refused("is mounted on /: the host boots from it", origin=origin)
    assert host.run(origin=origin, allow_boot_volume=True).changed


@pytest.mark.parametrize("words", [[], ["rd.lvm.lv=vg/top"]])
def test_volume_the_host_boots_from_is_known_below_a_snapshot_or_a_pool(host, words):
    below = dataclasses.replace(VOLUME, dm_name="vg-data-real", dm_uuid="LVM-abc-real", links=(), holders=("dm-1",))
    top = dataclasses.replace(VOLUME, name="dm-1", path="/dev/dm-1", dm_name="vg-top", dm_uuid="LVM-def", slaves=("dm-0",), mountpoints=() if words else ("/",))
    host.volumes = [below, top]
    host.write("proc/cmdline", " ".join(words))
    host.refused("the host boots from it")


@pytest.mark.parametrize("place", ["/", "/usr", "/boot"])
def test_volume_the_host_boots_from_needs_permission(host, place):
    host.mounted(place)
    host.image(WHOLE)
    host.refused(f"^images: vg/data is mounted on {place}: the host boots from it, .* set allow_boot_volume: true for this cache to allow it.$")
    assert host.run(allow_boot_volume=True).changed
    assert not host.run(allow_boot_volume=True).changed
    assert host.run().warnings == (), "a cache that is there needs no permission to stay"


@pytest.mark.parametrize(
    ("file", "text", "role"),
    [
        ("proc/cmdline", "ro resume=/dev/mapper/vg-data quiet\n", r"is named by resume= in /proc/cmdline \(/dev/mapper/vg-data\)"),
        ("proc/cmdline", "root=/dev/vg/data ro\n", "is named by root= in /proc/cmdline"),
        ("proc/cmdline", "ro rd.lvm.lv=vg/data\n", "is activated by the initramfs"),
        ("etc/initramfs-tools/conf.d/resume", "RESUME=/dev/mapper/vg-data\n", "is named by RESUME= in /etc/initramfs-tools/conf.d/resume"),
        ("etc/fstab", "/dev/vg/data / ext4 defaults 0 1\n", "is named by Line 1 of /etc/fstab"),
    ],
)
def test_roles_that_are_not_mounts(host, file, text, role):
    host.write(file, text)
    host.image(WHOLE)
    host.refused(role)


def test_root_on_encryption_on_the_volume_is_found(host):
    host.volumes = [dataclasses.replace(VOLUME, holders=("dm-1",)), BlockDevice("dm-1", "/dev/dm-1", "253:1", kind="crypt", dm_name="c", mountpoints=("/",))]
    host.refused("is mounted on /")


@pytest.mark.parametrize("place", ["/srv", "/boot/efi", "/home", "/var"])
def test_other_volumes_need_no_permission_and_cost_no_command(host, place):
    host.mounted(place)
    host.write("proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/mapper/vg-root ro rd.lvm.lv=vg/root resume=/dev/mapper/vg-swap\n")
    host.write("etc/fstab", "/dev/vg/root / ext4\n/dev/vg/data /srv ext4\n/dev/vg/swap none swap\n")
    host.lvm.missing_initramfs = set()
    assert host.run().changed
    assert not [words for words in host.lvm.calls if words[0].startswith("lsinit")]


@pytest.mark.parametrize(
    ("image", "missing"),
    [
        (MODULES, "cache_check"),
        ("init\nusr/sbin/cache_check\n", "dm-cache, dm-cache-smq"),
        (WHOLE.replace("dm-cache-smq", "dm-cache-mq"), "dm-cache-smq"),
        (WHOLE.replace("usr/sbin/cache_check", "usr/share/doc/cache_check.txt"), "cache_check"),
    ],
)
def test_image_that_lacks_something_is_refused_with_the_command(host, image, missing):
    host.mounted("/")
    host.image(WHOLE, "6.1.0-55-amd64")
    host.image(image)
    message = host.refused(
        f"/boot/initrd.img-{DEBIAN} has no {missing}: add dm-cache dm-cache-smq to /etc/initramfs-tools/modules and run", allow_boot_volume=True
    )
    assert message.endswith("update-initramfs -u -k all, or the host may not boot.")
    host.image(WHOLE)
    assert host.run(allow_boot_volume=True).changed
    host.image(image)
    assert f"has no {missing}" in host.run(allow_boot_volume=True).warnings[0], "read in every run"


def test_dracut_has_its_own_command_and_writecache_its_own_module(host):
    host.mounted("/")
    host.image(WHOLE, EL, "initramfs-{}.img", "lsinitrd")
    message = host.refused("has no dm-writecache", allow_boot_volume=True, kind="writecache", allow_unmirrored_writeback=True)
    assert 'add_drivers+=" dm-writecache "' in message and "dracut -f --regenerate-all" in message
    assert host.run(allow_boot_volume=True).changed


RESOLUTE = 'ID=ubuntu\nVERSION_ID="26.04"\n'
NOBLE = 'ID=ubuntu\nVERSION_ID="24.04"\n'


@pytest.mark.parametrize(
    ("release", "commands", "hooks", "way"),
    [
        (RESOLUTE, {"dracut"}, [], "dracut -f"),
        (RESOLUTE, {"mkinitramfs"}, [], "update-initramfs"),
        (RESOLUTE, {"dracut", "mkinitramfs"}, [], "dracut -f"),
        (RESOLUTE, {"dracut", "mkinitramfs"}, ["initramfs-tools"], "update-initramfs"),
        (NOBLE, {"dracut", "mkinitramfs"}, [], "update-initramfs"),
        (NOBLE, {"dracut", "mkinitramfs"}, ["dracut"], "dracut -f"),
        (NOBLE, {"dracut", "mkinitramfs"}, ["dracut", "initramfs-tools"], "update-initramfs"),
        ("", {"dracut"}, [], "dracut -f"),
    ],
)
@pytest.mark.parametrize("shown_by", [{"lsinitramfs"}, {"lsinitrd"}, {"lsinitramfs", "lsinitrd"}])
def test_way_is_that_of_what_makes_the_images_of_the_host(host, release, commands, hooks, way, shown_by):
    """Ubuntu 26.04 has dracut, and can have lsinitramfs next to it; the image has the same name."""
    host.mounted("/")
    host.write("etc/os-release", release)
    for name in hooks:
        host.write(f"etc/kernel/postinst.d/{name}", "")
    host.image("init\n")
    host.lvm.missing_initramfs = {"lsinitramfs", "lsinitrd", "mkinitramfs", "dracut"} - shown_by - commands
    assert way in host.refused("has no dm-cache", allow_boot_volume=True)


def test_module_that_is_built_in_is_in_every_image(host):
    host.mounted("/")
    host.image("usr/sbin/cache_check\n")
    host.write(f"lib/modules/{DEBIAN}/modules.builtin", "kernel/drivers/md/dm-cache.ko\nkernel/drivers/md/dm-cache-smq.ko\n")
    assert host.run(allow_boot_volume=True).changed


def test_devices_file_in_the_image_must_have_what_the_host_has(host):
    host.mounted("/")
    host.write("etc/lvm/devices/system.devices", SYSTEM_DEVICES)
    host.image(WHOLE + "etc/lvm/devices/system.devices\n", EL, "initramfs-{}.img", "lsinitrd")
    host.lvm.inside = SYSTEM_DEVICES.replace("PVID=b", "PVID=.").replace("/dev/sdb", "/dev/sdx")
    assert host.run(allow_boot_volume=True).changed
    host.lvm.inside = "\n".join(SYSTEM_DEVICES.splitlines()[:2])
    (warning,) = host.run(allow_boot_volume=True).warnings
    assert "the devices file in /boot/initramfs-" in warning and "dracut -f" in warning


@pytest.mark.parametrize("text", [None, ""])
def test_images_that_cannot_be_examined_are_unknown(host, text):
    host.mounted("/")
    if text is not None:
        host.image(text)
    host.refused("could (not )?be examined|could not be read by lsinitramfs", allow_boot_volume=True)
