# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Drives, the kernel's view of them, and tools that lie as the real ones do."""

from __future__ import annotations

import dataclasses
import pathlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Outcome, converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._device import udev_rule
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache import providers
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.kernel_view import cache_type_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.drive_cache.layer import DriveSpec, DriveWriteCacheLayer
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

HDD = "/dev/disk/by-id/ata-TESTDISK_HDD0"
SSD = "/dev/disk/by-id/ata-TESTDISK_SSD0"
SAS = "/dev/disk/by-id/scsi-35000c500"
NVME = "/dev/disk/by-id/nvme-TESTDISK_NVME0"
VIRTIO = "/dev/disk/by-id/virtio-VIRT0"
RAID = "/dev/disk/by-id/scsi-36000raid"


class Runner(ScriptedRunner):
    def find(self, name: str) -> str:
        return f"/usr/sbin/{super().find(name)}"


@dataclasses.dataclass
class Drive:
    """One simulated drive and how it misbehaves."""

    on: bool = True
    stubborn: bool = False  # answers with success and stays as it is
    kernel_notices: bool = True
    saves: bool = False
    changeable: bool = True
    vwc: int = 7
    overridden: bool = False  # "temporary …" was written into cache_type
    written_off: bool = False  # "write through" was written into queue/write_cache, on Linux 6.11 or newer
    refuses_kernel: bool = False  # the MODE SELECT of the kernel ends with EINVAL


def _read(path: pathlib.Path) -> str:
    return path.read_text().strip() if path.exists() else ""


class Machine:
    """Drives, the kernel's view of them, and the tools; every write to sysfs is remembered."""

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...] = ()) -> None:
        self.host = FakeHost(root)
        self.release("6.1.0-test")
        self.root = root
        self.drives: dict[str, Drive] = {}
        self.writes: list[tuple[str, str, str]] = []
        self.dm_tables: list[str] = []
        self.loaded_again: list[str] = []
        self.refused_tables: set[str] = set()
        self.missing = missing
        monkeypatch.setattr(providers, "write_sysfs", self._write)

    def add(self, name: str, transport: str = "sata", link: str | None = None, drive: Drive | None = None, **more: str) -> Drive:
        links = {"DEVLINKS": link} if link else {}
        drive = drive or Drive()
        self.host.disk(name, transport, write_cache="write back" if drive.on else "write through", **links, **more)
        if transport != "virtual":
            self.drives[name] = drive
        if transport in ("sata", "sas", "usb", "raid"):
            self._place(name).joinpath("device/rescan").write_text("")
        return drive

    def release(self, release: str) -> None:
        """That of the kernel."""
        self.host.write("proc/sys/kernel/osrelease", release + "\n")

    def adopt(self, name: str) -> None:
        """A SATA disk that the host has already."""
        self.drives[name] = Drive()
        self._place(name).joinpath("device/rescan").write_text("")

    def _place(self, name: str) -> pathlib.Path:
        return self.root / "sys/class/block" / name

    def view(self, name: str, on: bool) -> None:
        """What the kernel shall believe."""
        word = "write back" if on else "write through"
        for path in (self._place(name) / "queue/write_cache", *cache_type_files(name, self.root)):
            path.write_text(("write through" if path.name == "write_cache" and self.drives[name].written_off else word) + "\n")

    def _write(self, path: pathlib.Path, value: str, item: str) -> None:
        name = path.relative_to(self.root / "sys/class/block").parts[0]
        self.writes.append((name, path.name, value))
        drive = self.drives[name]
        if path.name == "cache_type":
            assert not value.startswith("temporary")
            if drive.refuses_kernel:
                raise CommandFailed(f"{item}: the kernel refused '{value}' for {path}: Invalid argument.", item=item)
            if not drive.stubborn:
                drive.on, drive.overridden = value.startswith("write back"), False
                self.view(name, drive.on)
                path.write_text(value + "\n")
        elif path.name == "rescan" and not drive.overridden and drive.kernel_notices:
            self.view(name, drive.on)
        else:
            assert path.name in ("rescan", "rescan_controller"), f"nothing may write {path}"

    def _hdparm(self, words: tuple[str, ...]) -> Reply:
        text = ""
        for node in words[2:]:
            drive = self.drives[node.rsplit("/", 1)[-1]]
            text += f"\n{node}:\n"
            if words[1] != "-W":
                text += f" setting drive write-caching to {words[1][2]} ({'on' if words[1] == '-W1' else 'off'})\n"
                self._tell(node, words[1] == "-W1")
            text += f" write-caching =  {int(drive.on)} ({'on' if drive.on else 'off'})\n"
        return Reply(text)

    def _sdparm(self, words: tuple[str, ...]) -> Reply:
        node = words[-1]
        drive = self.drives[node.rsplit("/", 1)[-1]]
        if words[1] == "--get=WCE":
            return Reply("".join(self._caching_page(node) for node in words[2:]), rc=5)
        if "--save" in words and not drive.saves:
            return Reply(rc=97, stderr="change_mode_page: mode page indicates it is not saveable but\n    '--save' option given (try without it)\n")
        self._tell(node, words[1] == "--set=WCE")
        return Reply()

    def _caching_page(self, node: str) -> str:
        drive = self.drives[node.rsplit("/", 1)[-1]]
        return f"    {node}: SEAGATE   ST600MM0006       0003\nWCE           {int(drive.on)}  [cha: {'y' if drive.changeable else 'n'}, def:  1]\n"

    def _nvme(self, words: tuple[str, ...]) -> Reply:
        drive = self.drives[words[2].rsplit("/", 1)[-1]]
        if words[1] == "id-ctrl":
            return Reply(f'{{"vwc":{drive.vwc}}}')
        if words[1] == "get-feature":
            return Reply(f"get-feature:0x06 (Volatile Write Cache), Current value:{'0x00000001' if drive.on else '00000000'}\n")
        if "--save" in words:
            return Reply(rc=1, stderr="NVMe status: Feature Identifier Not Saveable(0x410d)\n")
        drive.on = "--value=1" in words  # the kernel's view of an NVMe drive does not follow
        return Reply()

    def _dmsetup(self, words: tuple[str, ...]) -> Reply:
        """A table takes what the devices below say of flushes at the moment in which it is loaded."""
        if words[1] == "table":
            rows = [row for row in self.dm_tables if len(words) < 3 or row.startswith(f"{words[2]}: ")]
            return Reply("".join(row if len(words) < 3 else row.partition(": ")[2] for row in rows))
        if words[1] == "info":
            return Reply("Active\n")
        if words[1] == "resume":
            name = words[-1]
            if name in self.refused_tables:
                return Reply(rc=1, stderr="device-mapper: resume ioctl failed: Invalid argument")
            place = next(path for path in (self.root / "sys/class/block").iterdir() if _read(path / "dm/name") == name)
            below = {_read(self._place(slave.name) / "queue/write_cache") for slave in (place / "slaves").iterdir()}
            (place / "queue/write_cache").write_text("write back\n" if "write back" in below else "write through\n")
            self.loaded_again.append(name)
        return Reply()

    def _tell(self, node: str, on: bool) -> None:
        name = node.rsplit("/", 1)[-1]
        drive = self.drives[name]
        if not drive.stubborn:
            drive.on = on
            if drive.kernel_notices and not drive.overridden:
                self.view(name, on)

    @property
    def runner(self) -> Runner:
        return Runner(
            {
                ("udevadm", "info"): self.host.udev_reply,
                ("udevadm", "control"): Reply(),
                ("dmsetup",): self._dmsetup,
                ("hdparm",): self._hdparm,
                ("sdparm",): self._sdparm,
                ("nvme",): self._nvme,
            },
            missing=self.missing,
        )

    def converge(self, *specs: DriveSpec, check_mode: bool = False, runner: Runner | None = None) -> Outcome:
        return converge(DriveWriteCacheLayer(runner or self.runner, specs, self.root), check_mode=check_mode)

    @property
    def rules(self) -> str:
        return udev_rule.read_rules(self.root)
