# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host with the simulated flashcache: its /sys, /proc, /dev and /etc below a folder, its commands in this process or real ones."""

from __future__ import annotations

import json
import re
import shutil
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.layer import FlashcacheLayer
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache.spec import read_items
from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import Outcome, converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed, Runner
from ansible_collections.cachefleet.storage.tests.simulators import flashcache, flashcache_kernel, simulator
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.unit_links import disable_unit, enable_unit

MIB = 1024**2
SSD, SSD2, DISK = "/dev/disk/by-id/ata-SSD_S1", "/dev/disk/by-id/ata-SSD_S2", "/dev/disk/by-id/ata-HDD_H1"
#: The same cache in every test: what is written differs.
ITEM = {"name": "fc0", "origin": DISK, "cache_devices": [SSD]}
BACK = {"mode": "writeback", "allow_unmirrored_writeback": True}
_UNITS = "etc/systemd/system"


class Killed(BaseException):
    """The process was killed at this point."""


def changes(words: tuple[str, ...]) -> bool:
    """Whether a command is no mere question."""
    asking = (
        "udevadm",
        "dmsetup table",
        "dmsetup info",
        "wipefs --no-act",
        "systemctl show",
        "systemctl daemon-reload",
        "blockdev",
        "modprobe --dry-run",
        "pvs",
        "lvmconfig",
    )
    return not " ".join(words).startswith(asking)


class FlashcacheHost:
    """A disk, two SSDs and a kernel with flashcache; nothing is cached yet.

    :param installed: the tools of flashcache that are there.
    """

    def __init__(self, root: Path, *, ssd: int = 128 * MIB, disk: int = 1024 * MIB, memory: int = 8 << 30, module: str = "loaded") -> None:
        self.root = root
        self.fake = FakeHost(root)
        for name, size, serial, link, rotational in (("sda", disk, "H1", DISK, True), ("sdb", ssd, "S1", SSD, False), ("sdc", ssd, "S2", SSD2, False)):
            model = "HDD" if rotational else "SSD"
            self.fake.disk(name, size=size, serial=serial, model=model, rotational=rotational, write_cache="write through", ID_BUS="ata", DEVLINKS=link)
            (root / "dev" / name).write_bytes(bytes(8192))
        (root / "dev/mapper").mkdir(parents=True)
        (root / "dev/mapper/control").write_text("")
        self.fake.write("proc/meminfo", f"MemTotal:       {memory // 1024} kB\nMemFree:        1024 kB\n")
        (root / "sys/module/raid1").mkdir(parents=True)
        if module == "loaded":
            (root / "sys/module/flashcache").mkdir(parents=True)
        self.state: simulator.State = {"faults": {}, "controllers": [flashcache_kernel.host(root=str(root), memory=memory, module=module)]}
        self.kinds = {kind.paths[0].rsplit("/", 1)[1]: kind for kind in flashcache.KINDS}
        self.missing: set[str] = set()
        self.signatures: dict[str, list[dict[str, str]]] = {}
        self.active: set[str] = set()
        self.volatile: dict[str, list[str]] = {}
        #: Whether the configuration of LVM rejects every disk.
        self.lvm_rejects = False
        self.calls: list[tuple[str, ...]] = []
        #: Called with the words of every command before and after it does its work.
        self.before: t.Callable[[tuple[str, ...]], None] = lambda words: None
        self.after: t.Callable[[tuple[str, ...]], None] = lambda words: None

    # -- what tests look at and change

    @property
    def machine(self) -> simulator.State:
        return self.state["controllers"][0]

    @property
    def kernel(self) -> flashcache_kernel.Kernel:
        return flashcache_kernel.Kernel(self.machine, self.state["faults"])

    @property
    def cache(self) -> simulator.State:
        """The one cache that runs."""
        return self.machine["caches"]["fc0"]

    @property
    def changes(self) -> list[str]:
        """The commands that are no questions."""
        return [" ".join(words) for words in self.calls if changes(words)]

    @property
    def unit(self) -> str:
        place = self.root / _UNITS / "cachefleet-flashcache-fc0.service"
        return place.read_text() if place.exists() else ""

    def sysctl(self, key: str) -> int:
        self.kernel.settle()
        return self.kernel.sysctl(self.cache, key, -1)

    def mount(self, name: str = "fc0") -> None:
        self.fake.mount(f"dm-{self.machine['caches'][name]['minor']}", "/srv")

    def unmount(self) -> None:
        self.fake.write("proc/self/mountinfo", "")

    def pull(self, name: str) -> None:
        """A drive that is not there any more."""
        record = next(record for record in self.fake.records if f"N: {name}\n" in record)
        for link in re.findall(r"^S: (.+)$|DEVLINKS=(.+)$", record, re.MULTILINE):
            for path in " ".join(link).split():
                (self.root / "dev" / path.replace("/dev/", "", 1)).unlink(missing_ok=True)
        place = (self.root / "sys/class/block" / name).resolve()
        (self.root / "sys/class/block" / name).unlink()
        shutil.rmtree(place)
        (self.root / "dev" / name).unlink(missing_ok=True)
        self.fake.records.remove(record)

    def crash(self) -> None:
        """The power goes and comes back: units are started by the boot, /run is empty."""
        self.kernel.crash()
        self.active.clear()
        self.unmount()
        for file in (self.root / "run/cachefleet.storage").glob("*"):
            file.unlink()

    # -- the layer

    def layer(self, items: t.Sequence[t.Mapping[str, t.Any]], runner: t.Any = None) -> FlashcacheLayer:
        clock = iter(range(0, 10**9, 2))

        def tick(_seconds: float) -> None:
            self.kernel.tick()

        def volatile(path: str, _drives: t.Mapping[str, str]) -> list[str]:
            return self.volatile.get(path, [])

        return FlashcacheLayer(
            runner or self, read_items(items), self.root, volatile_below=volatile, release="3.16.0-sim", clock=lambda: float(next(clock)), sleep=tick
        )

    def run_layer(self, *, check_mode: bool = False, **fields: t.Any) -> Outcome:
        items = [{**ITEM, **fields}]
        return converge(self.layer(items), check_mode=check_mode)

    # -- as Runner

    def find(self, name: str) -> str:
        if name in self.missing:
            raise ToolMissing(f"The command {name} is missing on this host: install the package {name}.", item=name)
        return f"/sbin/{name}"

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv, *, ok=(0,), timeout=None, stdin="", item=None, watch=None, interval=5.0, patience=2.0, cwd=None):
        self.find(argv[0])
        words = tuple(str(word) for word in argv)
        self.calls.append(words)
        self.before(words)
        kind = self.kinds.get(words[0])
        answer = kind(self.state).answer(words[1:], stdin) if kind is not None else self.host_command(words)
        self.after(words)
        return Completed(words, answer.rc, answer.stdout, answer.stderr).require(ok, item)

    def host_command(self, words: tuple[str, ...]) -> simulator.Answer:
        """What belongs to every host."""
        return getattr(self, f"_{words[0]}")(list(words[1:]))

    def _udevadm(self, words: list[str]) -> simulator.Answer:
        """udev knows a cache as any other device from the moment it is there to the moment it goes."""
        if words[:1] != ["info"]:
            return simulator.Answer("")
        known = self.fake.udev_reply.stdout
        mapped = sorted(place.name for place in (self.root / "sys/class/block").glob("dm-*"))
        made = [f"\nP: /devices/virtual/block/{name}\nN: {name}\nE: SUBSYSTEM=block\nE: DEVNAME=/dev/{name}\nE: DEVTYPE=disk\n" for name in mapped]
        return simulator.Answer(known + "".join(made))

    def _wipefs(self, words: list[str]) -> simulator.Answer:
        key = self.kernel.node(words[-1]).name
        if words[0] == "--all":
            if self.kernel.held(words[-1]):
                return simulator.Answer("", 1, f"wipefs: error: {words[-1]}: probing initialization failed: Device or resource busy\n")
            self.signatures.pop(key, None)
            head = self.kernel.head(words[-1])
            if head.startswith(b"XFSB"):
                self.kernel.write_head(words[-1], bytes(4) + head[4:])
            return simulator.Answer("")
        found = list(self.signatures.get(key, []))
        if self.kernel.head(words[-1]).startswith(b"XFSB"):
            found.append({"type": "xfs", "uuid": "1-2-3"})
        return simulator.Answer(json.dumps({"signatures": found}) if found else "")

    def _blkid(self, words: list[str]) -> simulator.Answer:
        """A file system on the cached device is read through it; ``signatures`` has what udev does not know."""
        found = self.signatures.get(self.kernel.node(words[-1]).name, [])
        return simulator.Answer("".join(f"{key.upper()}={value}\n" for key, value in found[0].items())) if found else simulator.Answer("", 2)

    def _pvs(self, words: list[str]) -> simulator.Answer:
        if self.lvm_rejects:
            return simulator.Answer("", 5, f'  Failed to find device "{words[-1]}".\n')
        return simulator.Answer(f"  {words[-1]}\n")

    def _lvmconfig(self, _words: list[str]) -> simulator.Answer:
        return simulator.Answer('global_filter=["a|^/dev/mapper/|","r|.*|"]\nfilter=["a|.*|"]\nuse_devicesfile=0\n')

    def _systemctl(self, words: list[str]) -> simulator.Answer:
        if words[0] == "show":
            blocks = [f"Id={unit}\nActiveState={'active' if unit in self.active else 'inactive'}\n" for unit in words[2:]]
            return simulator.Answer("\n".join(blocks))
        if words[0] == "enable":
            enable_unit(self.root / _UNITS, words[1])
        if words[0] == "disable":
            disable_unit(self.root / _UNITS, words[1])
        if words[0] == "start":
            return self.start(words[1])
        return simulator.Answer("")

    def _mdadm(self, words: list[str]) -> simulator.Answer:
        given = dict(word.partition("=")[::2] for word in words if word.startswith("--"))
        if words[0] == "--create":
            members = [self.kernel.node(path).name for path in words[-2:]]
            link = f"/dev/disk/by-id/md-uuid-{given['--uuid']}"
            size = self.kernel.sectors(words[-1]) * 512 - 2 * MIB
            place = self.fake.disk(
                "md127", "virtual", size=size, write_cache="write through", DEVLINKS=link, MD_UUID=given["--uuid"], MD_NAME=given["--name"], slaves=members
            )
            for file, content in {"level": "raid1", "raid_disks": "2", "degraded": "0"}.items():
                self.fake.write(f"{place.relative_to(self.root)}/md/{file}", content + "\n")
            (self.root / "dev/md127").write_bytes(bytes(8192))
        if words[0] == "--stop":
            place = (self.root / "sys/class/block/md127").resolve()
            for slave in (place / "slaves").iterdir():
                (slave.resolve() / "holders/md127").unlink()
            (self.root / "sys/class/block/md127").unlink()
            shutil.rmtree(place)
            (self.root / "dev/md127").unlink()
            self.fake.records = [record for record in self.fake.records if "N: md127" not in record]
        return simulator.Answer("")

    def start(self, unit: str) -> simulator.Answer:
        """What systemd does with the commands of a unit; each is taken apart and answered as the shell would."""
        for line in (self.root / _UNITS / unit).read_text().splitlines():
            key, _equals, value = line.partition("=")
            if key not in ("ExecStartPre", "ExecStart"):
                continue
            answer = self._shell(_unquoted(value.lstrip("-")))
            if answer.rc and not value.startswith("-"):
                return answer
        self.active.add(unit)
        return simulator.Answer("")

    def _shell(self, words: list[str]) -> simulator.Answer:
        if words[0] == "/bin/sh" and words[2].startswith("[ -e"):
            _sh, _c, _script, _zero, node, *command = words
            return simulator.Answer("") if (self.root / node.lstrip("/")).exists() else self._shell(command)
        if words[0] == "/bin/sh":
            _sh, _c, script, _zero, value, path = words
            assert script.startswith('echo "$1" >"$2" && read -r found')
            place = self.root / path.lstrip("/")
            if not place.exists():
                return simulator.Answer("", 2, f"/bin/sh: 1: cannot create {path}: Directory nonexistent\n")
            place.write_text(value + "\n")
            return simulator.Answer("")
        kind = self.kinds[words[0].rsplit("/", 1)[1]]
        return kind(self.state).answer(words[1:], "")


class ProcessRunner(Runner):
    """Starts the installed simulators as processes; the other commands of the host are answered in this one."""

    def __init__(self, host: FlashcacheHost, folder: Path) -> None:
        super().__init__(vendor_dirs=[str(folder)])
        self.host = host
        self.started: list[str] = []

    def run(self, argv, **how):
        if argv[0] in self.host.kinds:
            self.started.append(argv[0])
            return super().run(argv, **how)
        with simulator.opened("flashcache") as state:
            self.host.state = state
            return self.host.run(argv, **how)

    def find(self, name: str) -> str:
        return super().find(name) if name in self.host.kinds else self.host.find(name)

    def has(self, name: str) -> bool:
        return super().has(name) if name in self.host.kinds else self.host.has(name)


def _unquoted(line: str) -> list[str]:
    """The words of ExecStart=, as systemd.service(5) quotes them."""
    words = [quoted if quoted or not plain else plain for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|(\S+)', line)]
    return [re.sub(r"\\(.)", r"\1", word).replace("$$", "$").replace("%%", "%") for word in words]
