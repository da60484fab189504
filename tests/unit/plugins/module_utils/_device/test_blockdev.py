# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, is_placeholder, is_stable, kernel_name, node_of
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices


def test_regular_file_is_not_a_block_device_on_real_root(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DeviceMissing, match="is not a block device"):
        read_devices(Runner()).resolve(str(tmp_path / "file"))


@pytest.mark.parametrize(("path", "sentence"), [("", "named by an empty path"), ("/dev/a\0b", "does not exist on this host")])
def test_path_that_names_nothing_is_one_sentence(path, sentence):
    with pytest.raises(DeviceMissing, match=sentence):
        Devices([]).resolve(path)


@pytest.mark.parametrize(
    "path",
    [
        "/dev/sda",
        "/dev/sdaa",
        "/dev/sda1",
        "/dev/nvme0n1",
        "/dev/nvme0n1p2",
        "/dev/dm-3",
        "/dev/md0",
        "/dev/vdb",
        "/dev/bcache0",
        "/dev/disk/by-diskseq/9",
        "/dev/block/8:16",
        "//dev/sda",
        "/dev/./sda",
        "/dev/mmcblk0p1",
        "/dev/xvda1",
    ],
)
def test_unstable_names(path):
    assert not is_stable(path)


@pytest.mark.parametrize("path", ["/dev/disk/by-id/ata-X", "/dev/vg0/data", "/dev/mapper/vg0-data", "/dev/md/array", "/dev/etherd/e7.1"])
def test_stable_names(path):
    assert is_stable(path)


def test_slash_in_node_is_exclamation_mark_in_sysfs(tmp_path):
    (tmp_path / "dev/etherd").mkdir(parents=True)
    (tmp_path / "dev/disk").mkdir()
    (tmp_path / "dev/etherd/e7.1").touch()
    (tmp_path / "dev/disk/images").symlink_to("../etherd/e7.1")
    assert node_of("etherd!e7.1") == "/dev/etherd/e7.1"
    assert kernel_name("/dev/etherd/e7.1", tmp_path) == kernel_name("/dev/disk/images", tmp_path) == "etherd!e7.1"
    assert kernel_name("/dev/sdb1", tmp_path) == "sdb1"


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "0", "00000000", "000000000000", "FFFFFFFFFFFF", "xxxxxxxx", "AAAAAAAA", "----", "0000-0000", "1111 1111"),
        *(
            "0123456789ABCDEF",
            "0123456789abcdef",
            "123456789012",
            "1234567890",
            "0123456789",
            "000000123456",
            "12345678",
            "9876543210",
            "ABCDEFGHIJ",
            "FEDCBA98",
        ),
        *("DEADBEEF", "deadbeefdeadbeef", "CAFEBABE", "DD56419883914", "DD564198838E0", "AAAABBBB0007", "012345678904", "QM00001", "QM00013"),
        *(
            "drive-scsi0",
            "drive-virtio1",
            "VMWare NVME_0000",
            "None",
            "N/A",
            "unknown",
            "SERIAL",
            "Serial Number",
            "S/N",
            "To Be Filled By O.E.M.",
            "Default string",
        ),
        *(
            "0x0000000000000000",
            "0x5000000000000000",
            "naa.5000000000000000",
            "eui.0000000000000000",
            "eui.00000000000000000000000000000000",
            "0xffffffffffffffff",
        ),
    ],
)
def test_placeholders_are_no_identity(text):
    assert is_placeholder(text)


@pytest.mark.parametrize("text", ["152D00539000", "201503310007F", "20170331000C3", "202006054D01", "2023061500123"])
def test_numbers_of_bridges_are_placeholders_on_usb_only(text):
    assert is_placeholder(text, usb=True)
    assert not is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "ZA21234",
            "WD-WCC4E0123456",
            "S5GXNF0R123456",
            "BTYF0001",
            "PHYF012345678ABC",
            "CVPF636600YC450RGN",
            "2419E8D193A0",
            "S-B",
            "A",
            "T",
            "vol0123456789abcdef0",
        ),
        *(
            "0x5000c500a1b2c3d4",
            "0x1",
            "naa.600508b1001c1234",
            "eui.0025388b00000001",
            "uuid.6b9c",
            "5000000000000001",
            "VB12345678-9abcdef0",
            "K123456",
            "11:22",
            "1S",
        ),
        *("4341304D5032454B", "0501a3c15c21d5f3", "1831BFBB3E7AF74079240431", "JR10006P0012", "000000ABC123", "MSA1234567"),
    ],
)
def test_serial_numbers_of_drives_are_no_placeholders(text):
    assert not is_placeholder(text)
    assert not is_placeholder(text, usb=True)


def test_partition_of_device_mapper_is_not_its_disk():
    part = BlockDevice("dm-1", "/dev/dm-1", "253:1", kind="dm", serial="S1", wwn="0x5000c500a1b2c3d4", dm_name="mpatha-part1", dm_uuid="part1-mpath-3600")
    devices = Devices([part])
    assert part.identity == "mpatha-part1"
    assert not any(devices.matches_identity(part, text) for text in ("S1", "0x5000c500a1b2c3d4"))
    assert devices.matches_identity(part, "mpatha-part1")
