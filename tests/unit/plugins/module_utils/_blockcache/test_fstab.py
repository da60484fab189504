# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fstab import Line, mounts_at_boot, names, parse_fstab
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Signature

CACHED = "/dev/mapper/images"
ORIGIN = BlockDevice(
    name="sda1",
    path="/dev/sda1",
    number="8:1",
    kind="partition",
    by_id=("/dev/disk/by-id/ata-HDD0-part1",),
    links=("/dev/disk/by-uuid/7d6f2b6e-1111", "/dev/disk/by-label/my\\x20images", "/dev/disk/by-partlabel/p1", "/dev/disk/by-path/pci-0-ata-1-part1"),
    signature=Signature("filesystem", "ext4", "7d6f2b6e-1111", "my_images"),
    properties={"ID_PART_ENTRY_UUID": "5f0e11aa-01"},
)


def test_lines_are_parsed_like_mount_does():
    text = "# UUID=1 /a ext4\n\n  # x y\n/dev/sda1\t/srv/my\\040images ext4 defaults 0 2\nproc\nLABEL=a\\011b none swap\n"
    assert parse_fstab(text) == (Line(4, "/dev/sda1", "/srv/my images", ("defaults",)), Line(6, "LABEL=a\tb", "none"))


@pytest.mark.parametrize(
    "source",
    [
        "UUID=7d6f2b6e-1111",
        'UUID="7d6f2b6e-1111"',
        "UUID='7D6F2B6E-1111'",
        "LABEL=my_images",
        "LABEL=my\\040images",
        'LABEL="my\\040images"',
        "PARTUUID=5f0e11aa-01",
        "PARTLABEL=p1",
        "ID=ata-HDD0-part1",
        "/dev/sda1",
        "/dev//sda1",
        "/dev/disk/by-id/ata-HDD0-part1",
        "/dev/disk/by-path/pci-0-ata-1-part1",
        "/dev/disk/by-uuid/7d6f2b6e-1111",
    ],
)
def test_source_names_device(source):
    (line,) = parse_fstab(f"{source} /srv ext4 nofail 0 2\n")
    assert names(line.source, ORIGIN)


@pytest.mark.parametrize(
    "source",
    [
        CACHED,
        "#UUID=7d6f2b6e-1111",
        "UUID=7d6f2b6e-2222",
        "UUID=",
        'LABEL="',
        "LABEL=images",
        "PARTUUID=7d6f2b6e-1111",
        "/dev/sda",
        "/dev/sda11",
        "nas:/dev/sda1",
        "tmpfs",
        "ZFS=7d6f2b6e-1111",
    ],
)
def test_source_names_another_device(source):
    assert not any(names(line.source, ORIGIN) for line in parse_fstab(f"{source} /srv ext4 defaults 0 2\n"))


def test_device_without_signature_matches_no_tags():
    bare = dataclasses.replace(ORIGIN, links=(), signature=None, properties={})
    assert not any(names(source, bare) for source in ("UUID=7d6f2b6e-1111", "LABEL=my_images", "PARTUUID=5f0e11aa-01"))
    assert names("/dev/sda1", bare)


def test_logical_volume_matches_by_its_mapper_name_unless_that_is_the_cached_device():
    volume = BlockDevice(name="dm-3", path="/dev/dm-3", number="253:3", kind="lvm", dm_name="vg-images", dm_uuid="LVM-abc")
    assert names("/dev/mapper/vg-images", volume, without=CACHED)
    assert not names("/dev/mapper/images", volume)
    assert not names("/dev/mapper/vg-images", volume, without="/dev/mapper/vg-images")


def test_boot_mounts_what_names_the_device_and_is_not_noauto():
    volume = BlockDevice(name="dm-0", path="/dev/dm-0", number="253:0", kind="lvm", dm_name="vg-data", links=("/dev/vg/data", "/dev/disk/by-uuid/1a"))
    text = (
        "/dev/vg/data /mnt ext4 nofail 0 2\n/dev/mapper/vg-data /srv ext4\nUUID=1A /usb ext4 noauto,user\n/dev/vg/data none swap\n"
        "/dev/vg/other /other ext4\nUUID=1a /by\\040uuid xfs defaults\n"
    )
    assert [(line.number, line.target) for line in mounts_at_boot(text, volume)] == [(1, "/mnt"), (2, "/srv"), (6, "/by uuid")]
