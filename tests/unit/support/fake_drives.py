# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""SSDs that live in memory and in files: divided, discarded and read like real ones, and cut off at any command."""

from __future__ import annotations

import contextlib
import json
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import keep
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices, Signature

MIB = 1024**2
SATA, NVME, VOLUME = "/dev/disk/by-id/ata-SSD_S1", "/dev/disk/by-id/nvme-FAST_SSD_N1", "/dev/disk/by-id/scsi-VD1"
#: What of a drive that was used before happens to be zeroes, at both ends.
_HEAD = 8192
_HALF = 64 * 1024
_NAMES = {"sda": SATA, "nvme0n1": NVME, "sdc": VOLUME}
_SIZES = {"sda": 64 * MIB, "nvme0n1": 64 * MIB, "sdc": 32 * MIB}


class Killed(BaseException):
    """The process is gone; nothing may catch it."""


class FakeDrives:
    """One SATA SSD, one NVMe SSD with namespace management and one volume of a RAID controller, all empty.

    :param root: a folder that gets /dev and the parts of /sys that are read.
    :param kill: the number of the command at which the process is killed, counted from 0; ``moment``: ``before`` its effect,
        ``half`` way (what is on the drive has changed, the kernel does not know it yet), or ``after`` it.
    """

    def __init__(self, root: Path, kill: int | None = None, moment: str = "before") -> None:
        self.root, self.kill, self.moment = root, kill, moment
        self.calls: list[tuple[str, ...]] = []
        self.history: list[Completed] = []
        self.missing: set[str] = set()
        self.signatures: dict[str, str] = {}
        self.holders: dict[str, tuple[str, ...]] = {}
        #: The table on the drive, and what the kernel has read of it: the size of the one partition.
        self.tables: dict[str, dict[str, t.Any]] = {}
        self.kernel: dict[str, int] = {}
        self.hpa = {"visible": 64 * MIB // 512, "native": 64 * MIB // 512, "kernel": 64 * MIB, "changed": False, "frozen": False}
        self.namespaces: dict[int, dict[str, t.Any]] = {1: {"size": 64 * MIB, "attached": True}}
        self.nvme = {"tnvmcap": 64 * MIB, "oacs": 0x1F, "cmic": 0}
        #: What reading a discarded drive returns, and whether the drives promise it.
        self.zeroes, self.promised, self.discards = True, True, {"sda", "nvme0n1"}
        self._make()

    def _make(self) -> None:
        (self.root / "dev/disk/by-id").mkdir(parents=True, exist_ok=True)
        for name, link in _NAMES.items():
            # What a cache has left there, between the places where signatures are.
            (self.root / "dev" / name).write_bytes(bytes(_HEAD) + b"old data" * (1024 * 8) + bytes(_HEAD))
            with contextlib.suppress(FileExistsError):
                (self.root / link.lstrip("/")).symlink_to(self.root / "dev" / name)
            self._write(f"sys/class/block/{name}/queue/discard_max_bytes", "2147483136" if name in self.discards else "0")
            keep(link, self.root)
        self._write("sys/class/nvme/nvme0/model", "FAST SSD\n")
        self._write("sys/class/nvme/nvme0/serial", "N1\n")
        (self.root / "sys/class/block/nvme0n1/device").symlink_to(self.root / "sys/class/nvme/nvme0")

    def _write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def again(self) -> FakeDrives:
        """The same drives for the next run, which is not killed."""
        self.kill, self.calls = None, []
        return self

    def power_cycle(self) -> None:
        self.hpa.update(kernel=self.hpa["visible"] * 512, changed=False)

    @property
    def changes(self) -> list[str]:
        """The commands that changed something, by their first words."""
        reading = ("udevadm", "--no-act", "--json", "-I", "id-ctrl", "list-ns", "id-ns")
        return [" ".join(words) for words in self.calls if not set(words) & set(reading) and words[:2] != ("hdparm", "-N")]

    # -- what the kernel says

    def devices(self, _runner: t.Any = None, _root: t.Any = None) -> Devices:
        found = []
        for name, link in _NAMES.items():
            if name == "nvme0n1" and not any(space["attached"] for space in self.namespaces.values()):
                continue
            size = self.hpa["kernel"] if name == "sda" else _SIZES[name]
            if name == "nvme0n1":
                size = next(space["size"] for space in self.namespaces.values() if space["attached"])
            part = f"{name}p1" if name.startswith("nvme") else f"{name}1"
            signature = Signature(partition_table="gpt") if name in self.tables else None
            if name in self.signatures:
                signature = Signature(usage="filesystem", type=self.signatures[name])
            transport = {"sda": "sata", "nvme0n1": "nvme", "sdc": "raid"}[name]
            partitions = (part,) if name in self.kernel else ()
            holders = self.holders.get(name, ())
            found.append(
                BlockDevice(
                    name, f"/dev/{name}", "8:0", size=size, transport=transport, by_id=(link,), partitions=partitions, signature=signature, holders=holders
                )
            )
            if name in self.kernel:
                inner = Signature(type=self.signatures[part]) if part in self.signatures else None
                held = self.holders.get(part, ())
                found.append(
                    BlockDevice(
                        part, f"/dev/{part}", "8:1", "partition", self.kernel[name], parent=name, by_id=(f"{link}-part1",), signature=inner, holders=held
                    )
                )
                (self.root / "dev" / part).write_bytes(bytes(4096))
        return _Named(found)

    def _name(self, path: str) -> str:
        name = next((name for name, link in _NAMES.items() if path == link), path.rsplit("/", 1)[-1])
        if name == "nvme0n1" and not any(space["attached"] for space in self.namespaces.values()):
            raise CommandFailed(f"{path}: No such file or directory")
        return name

    # -- commands

    def find(self, name: str) -> str:
        if name in self.missing:
            raise ToolMissing(f"The command {name} is missing on this host: install the package {name}.", item=name)
        return name

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), stdin: str = "", item: str | None = None, **_how: t.Any) -> Completed:
        words = tuple(str(word) for word in argv)
        self.find(words[0])
        now = len(self.calls) == self.kill
        self.calls.append(words)
        if now and self.moment == "before":
            raise Killed
        handler = getattr(self, "_" + words[0])
        rc, out, err = handler(words[1:], stdin, now and self.moment == "half")
        if now:
            raise Killed
        completed = Completed(words, rc, out, err)
        self.history.append(completed)
        return completed.require(ok, item)

    def _udevadm(self, _words: tuple[str, ...], _stdin: str, _half: bool) -> tuple[int, str, str]:
        return 0, "", ""

    def _wipefs(self, words: tuple[str, ...], _stdin: str, half: bool) -> tuple[int, str, str]:
        name = self._name(words[-1])
        if "--no-act" in words:
            types = ["gpt"] if name in self.tables else []
            types += [self.signatures[name]] if name in self.signatures else []
            return 0, json.dumps({"signatures": [{"type": one} for one in types]}), ""
        self.tables.pop(name, None)
        self.signatures.pop(name, None)
        if not half:
            self.kernel.pop(name, None)
        return 0, "", ""

    def _blkdiscard(self, words: tuple[str, ...], _stdin: str, half: bool) -> tuple[int, str, str]:
        # This process holds the drive.
        assert words[-1] == "--force"
        words = words[:-1]
        name = self._name(words[-1])
        node = self.root / "dev" / name
        if name not in self.discards:
            return 1, "", f"blkdiscard: {words[-1]}: BLKDISCARD ioctl failed: Operation not supported"
        if self.zeroes:
            old = node.read_bytes()
            node.write_bytes(bytes(_HALF) + old[_HALF:] if half else bytes(len(old)))
        return 0, "", ""

    def _sfdisk(self, words: tuple[str, ...], stdin: str, half: bool) -> tuple[int, str, str]:
        name = self._name(words[-1])
        if "--json" in words:
            if name not in self.tables:
                return 1, "", f"sfdisk: failed to dump partition table: {words[-1]}: does not contain a recognized partition table"
            return 0, json.dumps({"partitiontable": self.tables[name]}), ""
        label, row = stdin.strip().split("\n")
        values = dict(part.strip().split("=") for part in row.split(","))
        start, size = (int(values[key].replace("MiB", "")) * MIB for key in ("start", "size"))
        assert start + size + MIB <= _SIZES[name], "no room for the second copy of the table"
        rows = [{"node": f"/dev/{name}1", "start": start // 512, "size": size // 512, "name": values["name"].strip('"')}]
        self.tables[name] = {"label": label.split(": ")[1], "unit": "sectors", "sectorsize": 512, "partitions": rows}
        if not half:
            self.kernel[name] = size
        return 0, "", ""

    def _blockdev(self, words: tuple[str, ...], _stdin: str, _half: bool) -> tuple[int, str, str]:
        name = self._name(words[-1])
        self.kernel.pop(name, None)
        if name in self.tables:
            self.kernel[name] = self.tables[name]["partitions"][0]["size"] * 512
        return 0, "", ""

    def _hdparm(self, words: tuple[str, ...], _stdin: str, _half: bool) -> tuple[int, str, str]:
        if words[0] == "-I":
            star = "*" if self.promised else " "
            return (
                0,
                f"\n{words[1]}:\n\n\t   {star}\tData Set Management TRIM supported (limit 8 blocks)\n\t   {star}\tDeterministic read ZEROs after TRIM\n",
                "",
            )
        if words[0].startswith("--yes"):
            if self.hpa["changed"] or self.hpa["frozen"]:
                # The exit status is 0 all the same.
                return 0, "", "SG_IO: bad/missing sense data, sb[]:  70 00 05"
            self.hpa.update(visible=int(words[1][3:]), changed=True)
        visible, native = self.hpa["visible"], self.hpa["native"]
        return 0, f"\n{words[-1]}:\n max sectors   = {visible}/{native}, HPA is {'disabled' if visible == native else 'enabled'}\n", ""

    def _nvme(self, words: tuple[str, ...], _stdin: str, _half: bool) -> tuple[int, str, str]:
        options = {key: value for key, _sign, value in (word.partition("=") for word in words[2:])}
        used = sum(space["size"] for space in self.namespaces.values())
        if words[0] == "id-ctrl":
            return 0, json.dumps({**self.nvme, "tnvmcap": str(self.nvme["tnvmcap"]), "unvmcap": str(self.nvme["tnvmcap"] - used), "cntlid": 7}), ""
        if words[0] == "list-ns":
            return 0, json.dumps({"nsid_list": [{"nsid": number} for number, space in self.namespaces.items() if "--all" in options or space["attached"]]}), ""
        if words[0] == "ns-rescan":
            return 0, "", ""
        number = int(options.get("--namespace-id", 1))
        if words[0] == "id-ns":
            lbafs = [{"ds": 9}, {"ds": 12}]
            return 0, json.dumps({"nsze": self.namespaces[number]["size"] // 512, "flbas": 0, "lbafs": lbafs, "dlfeat": int(self.promised)}), ""
        if words[0] == "delete-ns":
            del self.namespaces[number]
        elif words[0] == "create-ns":
            assert options["--nsze"] == options["--ncap"]
            size = int(options["--nsze"]) * 512
            if size > self.nvme["tnvmcap"] - used:
                return 1, "", "NVMe status: Namespace Insufficient Capacity(0x2115)"
            self.namespaces[min(set(range(1, 9)) - set(self.namespaces))] = {"size": size, "attached": False}
        elif words[0] == "attach-ns":
            assert options["--controllers"] == "7"
            self.namespaces[number]["attached"] = True
        return 0, "", ""


class _Named(Devices):
    """Devices that are found by their own path and their links."""

    def resolve(self, path: str, item: str | None = None) -> BlockDevice:
        for device in self:
            if path in (device.path, *device.by_id, *device.links):
                return device
        raise DeviceMissing(f"{path} does not exist on this host.", item=item or path)
