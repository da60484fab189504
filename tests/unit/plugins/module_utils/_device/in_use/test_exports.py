# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.exports import exported_units
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write

CONFIG = "sys/kernel/config"


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


@pytest.mark.parametrize(
    ("driver", "tree"),
    [
        ("nvmet", f"{CONFIG}/nvmet"),
        ("target_core_mod", f"{CONFIG}/target"),
        ("usb_f_mass_storage", f"{CONFIG}/usb_gadget"),
        ("scst", "sys/kernel/scst_tgt"),
    ],
)
@pytest.mark.parametrize("beside", ["", CONFIG])
def test_target_driver_without_its_tree_is_unknown(tmp_path, driver, tree, beside):
    """configfs that is not mounted, another file system in its place, or a tree that is masked."""
    (tmp_path / "sys/module" / driver).mkdir(parents=True)
    (tmp_path / beside).mkdir(parents=True, exist_ok=True)
    unknown = []
    assert exported_units(tmp_path, unknown) == []
    assert [text.split(",")[0] for text in unknown] == [f"the target driver {driver} is in the kernel and /{tree} is not there"]
    (tmp_path / tree).mkdir(parents=True)
    unknown = []
    assert exported_units(tmp_path, unknown) == [] == unknown


def test_host_without_target_drivers_exports_nothing(tmp_path):
    unknown = []
    assert exported_units(tmp_path, unknown) == [] == unknown


@pytest.mark.parametrize(
    ("files", "exporter"),
    [
        (
            {f"{CONFIG}/nvmet/subsystems/nqn.a/namespaces/1/device_path": "/gone", f"{CONFIG}/nvmet/subsystems/nqn.a/namespaces/1/enable": "1"},
            "nvmet subsystem nqn.a",
        ),
        ({f"{CONFIG}/nvmet/subsystems/nqn.a/namespaces/1/enable": "1"}, "nvmet subsystem nqn.a"),
        (
            {f"{CONFIG}/nvmet/subsystems/nqn.a/passthru/device_path": "/dev/nvme7", f"{CONFIG}/nvmet/subsystems/nqn.a/passthru/enable": "1"},
            "nvmet subsystem nqn.a (passthru of nvme7)",
        ),
        (
            {
                f"{CONFIG}/target/core/fileio_0/f/info": "TCM FILEIO ID: 0        File: /gone  Size: 1048576  Mode: O_DSYNC",
                f"{CONFIG}/target/core/fileio_0/f/enable": "1",
            },
            "LIO backstore fileio_0/f",
        ),
        ({f"{CONFIG}/target/core/iblock_0/d/udev_path": "/dev/gone", f"{CONFIG}/target/core/iblock_0/d/enable": "1"}, "LIO backstore iblock_0/d"),
        ({"sys/kernel/scst_tgt/devices/disk1/filename": "/gone\n[key]"}, "SCST device disk1"),
        ({f"{CONFIG}/usb_gadget/g1/functions/mass_storage.0/lun.0/file": "/gone"}, "USB gadget g1"),
    ],
)
def test_export_that_leads_nowhere_is_unknown(tmp_path, files, exporter):
    for path, text in files.items():
        write(tmp_path, path, f"{text}\n")
    unknown = []
    assert exported_units(tmp_path, unknown) == [(None, exporter)]
    assert unknown == [f"what {exporter} exports cannot be found, and may be any device or file: stop it"]


@pytest.mark.parametrize(
    "files",
    [
        {f"{CONFIG}/nvmet/subsystems/nqn.a/namespaces/1/device_path": "/gone", f"{CONFIG}/nvmet/subsystems/nqn.a/namespaces/1/enable": "0"},
        {f"{CONFIG}/target/core/iblock_0/d/udev_path": "/gone", f"{CONFIG}/target/core/iblock_0/d/enable": "0", f"{CONFIG}/target/core/iblock_0/hba_info": "x"},
        {f"{CONFIG}/target/core/rd_mcp_0/r/info": "TCM RAMDISK ID: 0  RAMDISK Makeup: rd_mcp", f"{CONFIG}/target/core/rd_mcp_0/r/enable": "1"},
        {f"{CONFIG}/target/core/user_0/u/info": "Config: rbd/pool/image Size: 1048576", f"{CONFIG}/target/core/user_0/u/enable": "1"},
        {f"{CONFIG}/usb_gadget/g1/functions/mass_storage.0/lun.0/file": ""},
    ],
)
def test_export_that_is_off_or_has_no_file_is_none(tmp_path, files):
    for path, text in files.items():
        write(tmp_path, path, f"{text}\n")
    unknown = []
    assert exported_units(tmp_path, unknown) == [] == unknown


def test_whole_drives_that_are_passed_through_are_found(tmp_path):
    write(tmp_path, f"{CONFIG}/nvmet/subsystems/nqn.a/passthru/device_path", "/dev/nvme0\n")
    write(tmp_path, f"{CONFIG}/nvmet/subsystems/nqn.a/passthru/enable", "1\n")
    (tmp_path / "sys/class/nvme/nvme0/nvme0c0n1").mkdir(parents=True)
    write(tmp_path, "sys/class/block/nvme0n1/dev", "259:3\n")
    (tmp_path / "sys/kernel/scst_tgt/devices/2:0:0:0").mkdir(parents=True)
    (tmp_path / "sys/kernel/scst_tgt/devices/2:0:0:0/handler").symlink_to(tmp_path)
    (tmp_path / "sys/class/scsi_device/2:0:0:0/device/block/sdc").mkdir(parents=True)
    write(tmp_path, "sys/class/block/sdc/dev", "8:32\n")
    unknown = []
    assert exported_units(tmp_path, unknown) == [
        (Unit("block", os.makedev(259, 3)), "nvmet subsystem nqn.a (passthru)"),
        (Unit("block", os.makedev(8, 32)), "SCST device 2:0:0:0"),
    ]
    assert unknown == []


def test_exports_that_cannot_be_read_are_unknown(tmp_path, monkeypatch):
    (tmp_path / CONFIG / "nvmet/subsystems").mkdir(parents=True)
    really = os.listdir

    def failing(path):
        if str(path).endswith("nvmet/subsystems"):
            raise PermissionError(13, os.strerror(13), str(path))
        return really(path)

    monkeypatch.setattr(os, "listdir", failing)
    unknown = []
    exported_units(tmp_path, unknown)
    assert "what this host exports cannot be read (Permission denied" in unknown[0]
