# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host made of files: /sys, /proc and /dev below a temporary folder, and the udev database to match."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply

#: Where sysfs hangs a disk of each kind; {name} is the kernel name, {n} a running number.
_PLACES = {
    "sata": "devices/pci0000:00/0000:00:1f.2/ata{n}/host{n}/target{n}:0:0/{n}:0:0:0/block/{name}",
    "nvme": "devices/pci0000:00/0000:00:05.0/nvme/nvme{n}/{name}",
    "virtio": "devices/pci0000:00/0000:00:04.0/virtio{n}/block/{name}",
    "sas": "devices/pci0000:00/0000:00:06.0/host{n}/port-{n}:0/end_device-{n}:0/target{n}:0:0/{n}:0:0:0/block/{name}",
    "raid": "devices/pci0000:00/0000:00:07.0/host{n}/target{n}:2:0/{n}:2:0:0/block/{name}",
    "usb": "devices/pci0000:00/0000:00:08.0/usb1/1-1/1-1:1.0/host{n}/target{n}:0:0/{n}:0:0:0/block/{name}",
    "virtual": "devices/virtual/block/{name}",
}
_DRIVERS = {"sata": "ahci", "nvme": "nvme", "virtio": "virtio_blk", "sas": "mpt3sas", "raid": "megaraid_sas", "usb": "usb-storage"}


def in_etc(root: Path) -> dict[str, bytes]:
    """Every file below /etc with its content; of a link where it leads."""
    found = {}
    for path in (root / "etc").rglob("*"):
        if path.is_symlink() or not path.is_dir():
            found[str(path.relative_to(root))] = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    return found


class FakeHost:
    """Builds one device after another; ``udev_reply`` answers ``udevadm info`` for all of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.records: list[str] = []
        self.count = 0
        self.write("proc/self/mountinfo", "")
        self.write("proc/swaps", "Filename Type Size Used Priority\n")

    def write(self, path: str, text: str) -> Path:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    def disk(
        self,
        name: str,
        transport: str = "sata",
        *,
        size: int = 8 << 20,
        rotational: bool = False,
        write_cache: str = "write back",
        serial: str | None = None,
        wwn: str | None = None,
        model: str = "TESTDISK",
        dm_name: str | None = None,
        dm_uuid: str | None = None,
        slaves: t.Sequence[str] = (),
        driver: str | None = None,
        **udev: str,
    ) -> Path:
        """One whole device; ``slaves`` are kernel names that must exist already."""
        self.count += 1
        place = self.root / "sys" / _PLACES[transport].format(name=name, n=self.count)
        relative = str(place.relative_to(self.root))
        number = f"{8 + self.count}:0"
        for file, text in {
            "dev": number,
            "size": str(size // 512),
            "ro": "0",
            "removable": "0",
            "queue/rotational": str(int(rotational)),
            "queue/write_cache": write_cache,
            "queue/scheduler": "[mq-deadline] none",
            "queue/logical_block_size": "512",
            "queue/physical_block_size": "4096",
            "queue/nr_requests": "64",
            "queue/fua": "0",
            "device/model": model,
        }.items():
            self.write(f"{relative}/{file}", text + "\n")
        (place / "slaves").mkdir()
        (place / "holders").mkdir()
        if transport == "sata":
            self.write(f"{relative}/device/vendor", "ATA     \n")
        if transport in ("sata", "sas", "raid", "usb"):
            self.write(f"{relative}/device/scsi_disk/{self.count}:0:0:0/cache_type", write_cache + "\n")
        if transport == "virtio":
            self.write(f"{relative}/cache_type", write_cache + "\n")
        if dm_name is not None:
            self.write(f"{relative}/dm/name", dm_name + "\n")
            self.write(f"{relative}/dm/uuid", (dm_uuid or "") + "\n")
            self.write("dev/mapper/control", "")
        if transport in _DRIVERS or driver:
            driver_folder = self.root / "sys/bus/drivers" / (driver or _DRIVERS[transport])
            driver_folder.mkdir(parents=True, exist_ok=True)
            if not (place.parents[1] / "driver").is_symlink():
                (place.parents[1] / "driver").symlink_to(driver_folder)
        self._publish(place, name)
        (self.root / "sys/block").mkdir(exist_ok=True)
        (self.root / "sys/block" / name).symlink_to(place)
        for slave in slaves:
            below = self.root / "sys/class/block" / slave
            (place / "slaves" / slave).symlink_to(os.path.realpath(below))
            (Path(os.path.realpath(below)) / "holders" / name).symlink_to(place)
        properties = {"DEVTYPE": "disk", **udev}
        if serial is not None:
            properties.update(ID_SERIAL=f"{model}_{serial}", ID_SERIAL_SHORT=serial)
        if wwn is not None:
            properties.update(ID_WWN=wwn)
        self._record(place, name, properties)
        return place

    def partition(self, disk: str, number: int, size: int = 1 << 20, **udev: str) -> str:
        parent = Path(os.path.realpath(self.root / "sys/class/block" / disk))
        name = f"{disk}{number}"
        place = parent / name
        relative = str(place.relative_to(self.root))
        major = (parent / "dev").read_text().split(":")[0]
        for file, text in {"dev": f"{major}:{number}", "size": str(size // 512), "ro": "0", "partition": str(number)}.items():
            self.write(f"{relative}/{file}", text + "\n")
        (place / "holders").mkdir()
        self._publish(place, name)
        self._record(place, name, {"DEVTYPE": "partition", **udev})
        return name

    def mount(self, name: str, point: str, fstype: str = "ext4") -> None:
        number = (self.root / "sys/class/block" / name / "dev").read_text().strip()
        file = self.root / "proc/self/mountinfo"
        file.write_text(file.read_text() + f"30 1 {number} / {point} rw,relatime shared:1 - {fstype} /dev/{name} rw\n")

    def swap_on(self, name: str) -> None:
        file = self.root / "proc/swaps"
        file.write_text(file.read_text() + f"/dev/{name} partition 1024 0 -2\n")

    def link(self, path: str, name: str) -> None:
        """A symbolic link in /dev, as udev makes them."""
        place = self.root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(self.root / "dev" / name)

    @property
    def udev_reply(self) -> Reply:
        return Reply("\n\n".join(self.records) + "\n")

    def _publish(self, place: Path, name: str) -> None:
        folder = self.root / "sys/class/block"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(place)
        self.write(f"dev/{name.replace('!', '/')}", "")

    def _record(self, place: Path, name: str, properties: t.Mapping[str, str]) -> None:
        lines = [f"P: /{place.relative_to(self.root / 'sys')}", f"N: {name}", "E: SUBSYSTEM=block", f"E: DEVNAME=/dev/{name}"]
        self.records.append("\n".join(lines + [f"E: {key}={value}" for key, value in properties.items()]))
        for link in properties.get("DEVLINKS", "").split():
            if not (self.root / link.lstrip("/")).is_symlink():
                self.link(link, name)
