# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.fstab import Line, bare_mounts, mounts_at_boot, parse_fstab
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
def test_line_that_mounts_origin_without_cache_is_reported(source):
    (sentence,) = bare_mounts(f"/dev/sdz / ext4\n{source} /srv ext4 nofail 0 2\n", ORIGIN, CACHED)
    assert sentence.startswith("Line 2 of /etc/fstab (")
    assert "on /srv) means /dev/disk/by-id/ata-HDD0-part1, the origin of /dev/mapper/images" in sentence
    assert sentence.endswith("write /dev/mapper/images instead.")


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
def test_other_lines_are_not_reported(source):
    assert bare_mounts(f"{source} /srv ext4 defaults 0 2\n", ORIGIN, CACHED) == []


def test_origin_without_signature_matches_no_tags():
    bare = dataclasses.replace(ORIGIN, links=(), signature=None, properties={})
    assert bare_mounts("UUID=7d6f2b6e-1111 /a ext4\nLABEL=my_images /b ext4\nPARTUUID=5f0e11aa-01 /c ext4\n", bare, CACHED) == []
    assert len(bare_mounts("/dev/sda1 /a ext4\n", bare, CACHED)) == 1


def test_logical_volume_matches_by_both_mapper_names():
    volume = BlockDevice(name="dm-3", path="/dev/dm-3", number="253:3", kind="lvm", dm_name="vg-images", dm_uuid="LVM-abc")
    assert len(bare_mounts("/dev/mapper/vg-images /srv ext4\n/dev/mapper/images /srv2 ext4\n", volume, CACHED)) == 1


def test_boot_mounts_what_names_the_device_and_is_not_noauto():
    volume = BlockDevice(name="dm-0", path="/dev/dm-0", number="253:0", kind="lvm", dm_name="vg-data", links=("/dev/vg/data", "/dev/disk/by-uuid/1a"))
    text = (
        "/dev/vg/data /mnt ext4 nofail 0 2\n/dev/mapper/vg-data /srv ext4\nUUID=1A /usb ext4 noauto,user\n/dev/vg/data none swap\n"
        "/dev/vg/other /other ext4\nUUID=1a /by\\040uuid xfs defaults\n"
    )
    assert [(line.number, line.target) for line in mounts_at_boot(text, volume)] == [(1, "/mnt"), (2, "/srv"), (6, "/by uuid")]
