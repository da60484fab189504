# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices, is_stable, kernel_name, node_of
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
