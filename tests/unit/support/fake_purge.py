# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives that can be purged, in files: stateful stand-ins for hdparm, nvme, sg_sanitize and blkdiscard, with faults, and killed at any command."""

from __future__ import annotations

import json
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.purge.held import read_sameness
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, Neighbour, TargetFacts

SIZE = 3 * 1024**2
SATA, NVME, SAS, VOLUME = "/dev/sda", "/dev/nvme0n1", "/dev/sdb", "/dev/sdc"
_TRANSPORTS = {"sda": "sata", "nvme0n1": "nvme", "sdb": "sas", "sdc": "raid"}


class Killed(BaseException):
    """The process is gone; nothing may catch it."""


class FakePurge:
    """One SATA, one NVMe, one SAS SSD and one volume of a RAID controller, all with data.

    :param root: a folder that gets /dev and the parts of /sys that are read.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.calls: list[tuple[str, ...]] = []
        self.missing: set[str] = set()
        #: The beginning of a command at which the process is killed after it had its effect, with all that follows.
        self.kill: tuple[str, ...] = ()
        #: Of the drive: it says that it erases and does not.
        self.ignores = False
        self.aborts = False
        self.keeps_password = False
        self.fill = 0
        #: Of each erase, whether the device was held then.
        self.held: list[bool] = []
        self.security = {"supported": True, "enabled": False, "locked": False, "frozen": False, "expired": False, "enhanced": True}
        self.password = ""
        self.nvme = {"oacs": 0x2, "fna": 0x4, "sanicap": 0x3, "cntlid": 0, "tnvmcap": SIZE, "unvmcap": 0, "cmic": 0}
        self.namespaces = 1
        self.knows_force = True
        #: What the next readings of the sanitize log say: status and progress.
        self.sanitize: list[tuple[int, int]] = [(0, 65535)]
        self.sanitizes: list[tuple[int, int]] = [(2, 1000), (2, 40000), (1, 65535)]
        self.signatures: tuple[str, ...] = ()
        self.mountpoints: tuple[str, ...] = ()
        self.rotational = False
        self.partitions: tuple[str, ...] = ()
        (root / "dev").mkdir(parents=True)
        for name in _TRANSPORTS:
            self.write(name, b"user data" * (SIZE // 9 + 1))
            queue = root / "sys/class/block" / name / "queue"
            queue.mkdir(parents=True)
            self.set_serial(name, f"S-{name}")
            (queue / "discard_max_bytes").write_text("2147483136\n" if name != "sdb" else "0\n")
        (root / "sys/class/nvme/nvme0").mkdir(parents=True)
        (root / "sys/class/block/nvme0n1/device").symlink_to(root / "sys/class/nvme/nvme0")

    def set_serial(self, name: str, serial: str) -> None:
        """What the kernel reports now."""
        (self.root / "sys/class/block" / name / "serial").write_text(serial + "\n")

    def write(self, name: str, data: bytes) -> None:
        (self.root / "dev" / name).write_bytes(data[:SIZE])

    def read(self, name: str) -> bytes:
        return (self.root / "dev" / name).read_bytes()

    @property
    def changes(self) -> list[str]:
        """The commands that changed something."""
        reading = ("-I", "id-ctrl", "list-ns", "id-ns", "sanitize-log", "settle")
        return [" ".join(words) for words in self.calls if not set(words) & set(reading)]

    # -- what the kernel and the guard say

    def devices(self, *_arguments: t.Any) -> Devices:
        return Devices([self._device(name) for name in _TRANSPORTS])

    def _device(self, name: str) -> BlockDevice:
        return BlockDevice(
            name, f"/dev/{name}", "8:0", size=SIZE, transport=_TRANSPORTS[name], serial=f"S-{name}", model="SSD", rotational=self.rotational,
            mountpoints=self.mountpoints, partitions=self.partitions,
        )  # fmt: skip

    def examine(self, _devices: Devices, target: GuardTarget, *_arguments: t.Any, **_options: t.Any) -> TargetFacts:
        device = self._device(target.path.rsplit("/", 1)[-1])
        permitted = target.identity == device.serial
        empty = not self.read(device.name).strip(b"\0")
        itself = Neighbour("itself", device.path, signatures=self.signatures, mountpoints=self.mountpoints)
        return TargetFacts(
            target, device.path, SIZE, identity=device.serial, identity_matches=None if target.identity is None else permitted, neighbours=(itself,),
            data_at=None if empty or (permitted and target.allow_data_loss) else 0, device=device,
            sameness=read_sameness(device.name, t.cast("t.Any", self), self.root), unit=unit_of(self.root / "dev" / device.name),
        )  # fmt: skip

    # -- commands

    def find(self, name: str) -> str:
        if name in self.missing:
            raise ToolMissing(f"The command {name} is missing on this host: install the package {name}.", item=name)
        return name

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **_how: t.Any) -> Completed:
        words = tuple(str(word) for word in argv)
        self.find(words[0])
        self.calls.append(words)
        rc, out, err = getattr(self, f"_{words[0]}")(words)
        if self.kill and words[: len(self.kill)] == self.kill:
            raise Killed
        return Completed(words, rc, out, err).require(ok, item)

    def erase(self, name: str) -> None:
        self.held.append((self.root / "dev" / name) in {Path(os.path.realpath(place)) for place in Path("/proc/self/fd").iterdir()})
        if not self.ignores:
            self.write(name, bytes([self.fill]) * SIZE)

    def _udevadm(self, _words: tuple[str, ...]) -> tuple[int, str, str]:
        return 0, "", ""

    def _blockdev(self, _words: tuple[str, ...]) -> tuple[int, str, str]:
        self.partitions = ()
        return 0, "", ""

    def _blkdiscard(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        if "--force" in words and not self.knows_force:
            return 1, "", "blkdiscard: unrecognized option '--force'"
        self.erase(next(word for word in words[1:] if word.startswith("/dev/")).rsplit("/", 1)[-1])
        return 0, "", ""

    def _sg_sanitize(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        if self.aborts:
            return 5, "", "sanitize failed: Illegal request, Invalid opcode"
        self.erase(words[-1].rsplit("/", 1)[-1])
        return 0, "", ""

    def _hdparm(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        if words[1] == "-I":
            return 0, self.identity(), ""
        option, password = words[3], words[4]
        failed = (5, "", "SECURITY_ERASE: Input/output error")
        state = self.security
        if state["frozen"]:
            return failed
        if option == "--security-set-pass":
            self.password = password
            state["enabled"] = True
        elif password != self.password:
            return failed
        elif option == "--security-unlock":
            state["locked"] = False
        elif option == "--security-disable":
            state["enabled"] = self.keeps_password
        elif self.aborts or state["locked"]:
            return failed
        else:
            self.erase("sda")
            state["enabled"] = self.keeps_password
        return 0, f'security_password: "{password}"\n', ""

    def identity(self) -> str:
        state = self.security

        def line(name: str) -> str:
            return f"{'' if state[name] else 'not'}\t{name}" if name != "expired" else f"{'' if state[name] else 'not'}\texpired: security count"

        rows = ["", "/dev/sda:", "", "ATA device, with non-removable media", "Security: ", "\tMaster password revision code = 65534"]
        rows += ["\t\tsupported"] if state["supported"] else ["\tnot\tsupported"]
        rows += [f"\t{line(name)}" for name in ("enabled", "locked", "frozen", "expired")]
        rows += ["\t\tsupported: enhanced erase"] if state["enhanced"] else []
        rows += ["\t2min for SECURITY ERASE UNIT. 8min for ENHANCED SECURITY ERASE UNIT.", "Checksum: correct"]
        return "\n".join(rows)

    def power_cycle(self) -> None:
        self.kill = ()
        self.security["locked"] = self.security["enabled"]

    def _nvme(self, words: tuple[str, ...]) -> tuple[int, str, str]:
        verb = words[1]
        if verb == "id-ctrl":
            return 0, json.dumps(self.nvme), ""
        if verb == "list-ns":
            return 0, json.dumps({"nsid_list": [{"nsid": number + 1} for number in range(self.namespaces)]}), ""
        if verb == "id-ns":
            return 0, json.dumps({"nsze": SIZE // 512, "flbas": 1, "lbafs": [{"ds": 12}, {"ds": 9}], "dlfeat": 1}), ""
        if verb == "sanitize-log":
            status, progress = self.sanitize.pop(0) if len(self.sanitize) > 1 else self.sanitize[0]
            return 0, json.dumps({"nvme0": {"sprog": progress, "sstat": {"global_erased": 1, "status": f"({status}) text"}}}), ""
        if verb == "format":
            if "--force" in words and not self.knows_force:
                return 1, "", "format: unrecognized option '--force'"
            if self.aborts:
                return 1, "", "NVMe status: Invalid Format: The LBA Format specified is not supported(0x10a)"
            self.erase("nvme0n1")
            return 0, "Success formatting namespace:1", ""
        self.sanitize = list(self.sanitizes)
        self.erase("nvme0n1")
        return 0, "", ""
