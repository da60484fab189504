# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel of this host gives to others: NVMe, SCSI and USB targets, which have no process, no holder and no exclusive open.

A target driver that is there and whose configuration is not, and an export that leads nowhere, are unknown: it may be of any device or file.

Sources: drivers/nvme/target/configfs.c (``device_path`` and ``enable`` of a namespace and of ``passthru``); drivers/target/target_core_configfs.c
(``udev_path``, ``enable``), target_core_iblock.c and target_core_file.c (``info``); the sysfs interface of SCST (``devices/<name>/filename``, whose further
lines are marks, and ``handler``); Documentation/ABI/testing/configfs-usb-gadget-mass-storage (``lun.*/file``).
"""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._core.kernel_modules import built_in
from ansible_collections.cachefleet.storage.plugins.module_utils._device.aoe.exports import running_exports
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.view import is_configfs
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_at

#: Drivers by the tree in which they show what they export.
_DRIVERS: t.Mapping[str, tuple[str, ...]] = {
    "sys/kernel/config/nvmet": ("nvmet",),
    "sys/kernel/config/target": ("target_core_mod",),
    "sys/kernel/config/usb_gadget": ("usb_f_mass_storage",),
    "sys/kernel/scst_tgt": ("scst",),
}
_CONFIGFS = "sys/kernel/config"
#: Backstores of LIO without a device or file in the kernel: memory, and programs, whose open files are found.
_LIO_WITHOUT_FILE = ("rd_mcp_", "rd_dr_", "user_")
_ENABLED = ("1", "Y", "y")

Exports = t.List[t.Tuple[t.Optional[Unit], str]]


def exported_units(root: Path, unknown: list[str]) -> Exports:
    """What this host gives to others, and by what it is exported.

    :param unknown: gets a sentence for what cannot be read or found.
    """
    unknown += _unseen_drivers(root)
    found = []
    for export in (_nvmet_exports, _nvmet_drives, _lio_exports, _scst_exports, _usb_exports):
        try:
            found += list(export(root))
        except OSError as error:
            unknown.append(f"what this host exports cannot be read ({error.strerror}: {error.filename}): {way_to_see()}")
    unknown += dict.fromkeys(f"what {exporter} exports cannot be found, and may be any device or file: stop it" for unit, exporter in found if unit is None)
    # Of a program the open files are found, whatever its arguments are.
    return found + [(unit_at(root, one.path), f"vblade {one.address} on {one.interface}") for one in running_exports(root)]


def _unseen_drivers(root: Path) -> t.Iterator[str]:
    configfs = root / _CONFIGFS
    mounted = is_configfs(configfs) if root == Path("/") else configfs.is_dir()
    built_in = _built_in(root) if not mounted and configfs.is_dir() else frozenset()
    for tree, drivers in _DRIVERS.items():
        of_configfs = tree.startswith(_CONFIGFS)
        if (root / tree).is_dir() and (mounted or not of_configfs):
            continue
        driver = next((name for name in drivers if (root / "sys/module" / name).exists() or name in built_in), None)
        if driver is not None:
            advice = "mount it (mount -t configfs configfs /sys/kernel/config)" if of_configfs else "run on the host itself"
            yield f"the target driver {driver} is in the kernel and /{tree} is not there, so that what it exports is not known: {advice}, or unload the driver"


def _built_in(root: Path) -> frozenset[str]:
    """Drivers that are part of the kernel, which have no folder in ``/sys/module`` unless they have parameters."""
    found = built_in(root)
    if found is None and root == Path("/"):
        # Nothing says what the kernel has: any of them.
        return frozenset(name for tree, names in _DRIVERS.items() if tree.startswith(_CONFIGFS) for name in names)
    return found or frozenset()


def _nvmet_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    """Such a target opens its device without O_EXCL, has no holder link and no process with a file descriptor."""
    for subsystem in _folders(root / _CONFIGFS / "nvmet/subsystems"):
        for namespace in _folders(subsystem / "namespaces"):
            if _is_enabled(namespace):
                yield unit_at(root, _read(namespace / "device_path")), f"nvmet subsystem {subsystem.name}"


def _nvmet_drives(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    """Whole controllers that are passed through: all their namespaces."""
    for subsystem in _folders(root / _CONFIGFS / "nvmet/subsystems"):
        passthru = subsystem / "passthru"
        if passthru.is_dir() and _is_enabled(passthru):
            controller = os.path.basename(_read(passthru / "device_path"))
            # With native multipathing a path is called nvme0c1n1, and its device nvme0n1.
            names = {re.sub(r"c\d+", "", one.name) for one in _folders(root / "sys/class/nvme" / controller) if re.match(r"nvme\d+(c\d+)?n\d+\Z", one.name)}
            for name in names:
                yield _of_device(root, name), f"nvmet subsystem {subsystem.name} (passthru)"
            if not names:
                yield None, f"nvmet subsystem {subsystem.name} (passthru of {controller})"


def _lio_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    for adapter in _folders(root / _CONFIGFS / "target/core"):
        for backstore in _folders(adapter):
            if not (backstore / "info").exists() and not (backstore / "udev_path").exists():
                continue  # of the folders that every target has
            exporter = f"LIO backstore {adapter.name}/{backstore.name}"
            units = set(_lio_units(root, backstore))
            yield from ((unit, exporter) for unit in sorted(units, key=str))
            enabled = read_attribute(backstore / "enable")
            if not units and enabled != "0" and not adapter.name.startswith(_LIO_WITHOUT_FILE) and (enabled or _read(backstore / "info")):
                yield None, exporter


def _lio_units(root: Path, backstore: Path) -> t.Iterator[Unit]:
    info = _read(backstore / "info")
    numbers = re.search(r"Major: (\d+)\s+Minor: (\d+)", info)
    if numbers:
        yield Unit("block", os.makedev(int(numbers.group(1)), int(numbers.group(2))))
    file = re.search(r"\bFile: (/.*?)\s+Size: \d", info) or re.search(r"\bFile: (/\S+)", info)
    for path in filter(None, (read_attribute(backstore / "udev_path"), file.group(1) if file else "")):
        unit = unit_at(root, path)
        if unit is not None:
            yield unit


def _scst_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    for device in _folders(root / "sys/kernel/scst_tgt/devices"):
        exporter = f"SCST device {device.name}"
        path = (read_attribute(device / "filename") or "").split("\n", 1)[0]
        if path:
            yield unit_at(root, path), exporter
        elif re.match(r"\d+:\d+:\d+:\d+\Z", device.name) and (device / "handler").exists():
            # A SCSI device that is passed through.
            for block in _folders(root / "sys/class/scsi_device" / device.name / "device/block"):
                yield _of_device(root, block.name), exporter


def _usb_exports(root: Path) -> t.Iterator[tuple[Unit | None, str]]:
    for gadget in _folders(root / _CONFIGFS / "usb_gadget"):
        for file in sorted(gadget.glob("functions/mass_storage.*/lun.*/file")):
            path = _read(file)
            if path:
                yield unit_at(root, path), f"USB gadget {gadget.name}"


def _of_device(root: Path, name: str) -> Unit | None:
    major, _colon, minor = (read_attribute(root / "sys/class/block" / name / "dev") or "").partition(":")
    return Unit("block", os.makedev(int(major), int(minor))) if major.isdigit() and minor.isdigit() else None


def _is_enabled(folder: Path) -> bool:
    return _read(folder / "enable") in _ENABLED


def _folders(place: Path) -> list[Path]:
    """The folders in one; none if it is not there.

    :raises OSError: if it cannot be listed.
    """
    try:
        return sorted(place / name for name in os.listdir(place) if (place / name).is_dir())
    except FileNotFoundError:
        return []


def _read(attribute: Path) -> str:
    """:raises OSError: if it is there and cannot be read."""
    try:
        return attribute.read_text(errors="surrogateescape").strip("\n\0 ")
    except FileNotFoundError:
        return ""
