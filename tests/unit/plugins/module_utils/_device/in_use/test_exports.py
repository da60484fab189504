# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.exports import exported_units
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of

CONFIG = "sys/kernel/config"


def write(root, path, text):
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def test_kernel_exports_are_found(tmp_path):
    file = write(tmp_path, "image", "x")
    config = "sys/kernel/config"
    write(tmp_path, f"{config}/nvmet/subsystems/nqn.a/namespaces/1/device_path", "/image\n")
    write(tmp_path, f"{config}/nvmet/subsystems/nqn.a/namespaces/1/enable", "1\n")
    write(tmp_path, f"{config}/target/core/iblock_0/d/udev_path", "/dev/gone\n")
    write(
        tmp_path,
        f"{config}/target/core/iblock_0/d/info",
        "iBlock device: sdb  UDEV PATH: /dev/gone  readonly: 0\n        Major: 8 Minor: 16  CLAIMED: IBLOCK\n",
    )
    write(tmp_path, f"{config}/target/core/fileio_0/f/info", "TCM FILEIO ID: 0        File: /image  Size: 1048576  Mode: O_DSYNC\n")
    write(tmp_path, "sys/kernel/scst_tgt/devices/disk1/filename", "/image\n[key]\n")
    found = exported_units(tmp_path, [])
    assert (unit_of(file), "nvmet subsystem nqn.a") in found
    assert (Unit("block", os.makedev(8, 16)), "LIO backstore iblock_0/d") in found
    assert (unit_of(file), "LIO backstore fileio_0/f") in found
    assert (unit_of(file), "SCST device disk1") in found
