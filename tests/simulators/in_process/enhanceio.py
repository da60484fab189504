# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with simulated EnhanceIO: a hard disk and three SSDs made of files, the driver, and the commands of the layer.

A command can be struck: the run ends before or after its effect, as by a kill. Time passes during a sleep.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache import boot_unit
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot as enhanceio_boot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.mirror import PREFIX
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio import EioCli, Sysctl
from ansible_collections.cachefleet.storage.tests.simulators.enhanceio_driver import FAST_REMOVE, Driver, new_state
from ansible_collections.cachefleet.storage.tests.simulators.simulator import Answer
from ansible_collections.cachefleet.storage.tests.unit.support.fake_host import FakeHost
from ansible_collections.cachefleet.storage.tests.unit.support.unit_links import disable_unit, enable_unit

GIB = 1 << 30
HDD, SSD, SSD2, SSD3 = (f"/dev/disk/by-id/ata-{name}" for name in ("HDD_1", "SSD_1", "SSD_2", "SSD_3"))
_NAMES = {"sda": HDD, "sdb": SSD, "sdc": SSD2, "sdd": SSD3}
_MD = "md127"


class Killed(BaseException):
    """The end of a process that was killed: nothing catches it."""


class SimulatedEnhanceIO:
    """A runner, and the host it runs on.

    :param root: an empty folder.
    :param module: ``loaded``, ``available`` or ``absent``.
    :param drain: blocks that are written back in one sleep.
    """

    def __init__(self, root: Path, *, module: str = "loaded", drain: int = 1000) -> None:
        self.root = root
        self.host = FakeHost(root)
        (root / "sys/module/raid1").mkdir(parents=True)
        for name, link in _NAMES.items():
            size = 100 * GIB if name == "sda" else 10 * GIB
            self.host.disk(name, "sata", size=size, rotational=name == "sda", serial=link.rsplit("_", 1)[-1], DEVLINKS=link)
        self.host.write("proc/sys/kernel/osrelease", "4.19.0-27-amd64\n")
        self.host.write("etc/machine-id", "0123456789abcdef\n")
        self.start = {"module": module, "drain": drain}
        self.missing: set[str] = set()
        self.vendor_dirs: list[str] = []
        self.reset()

    def reset(self) -> None:
        """The same host as it was at the beginning; its disks, if none was lost, are empty."""
        if (self.root / "dev" / _MD).exists():
            self._forget_array()
        for folder in ("proc/enhanceio", "proc/sys/dev/enhanceio", "etc/systemd", "etc/udev"):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        for name in _NAMES:
            os.truncate(self.root / "dev" / name, 0)
            os.truncate(self.root / "dev" / name, 1 << 20)
        self.state = {"faults": {}, "controllers": [new_state(str(self.root), **self.start)]}
        self.driver.publish()
        self.calls: list[tuple[str, ...]] = []
        #: The number of the next change that is struck, and whether it works before.
        self.strike: tuple[int, bool] | None = None
        self.changes = 0

    @property
    def driver(self) -> Driver:
        driver = EioCli(self.state).driver
        assert driver is not None
        return driver

    @property
    def caches(self) -> dict[str, t.Any]:
        """The caches that run."""
        found: dict[str, t.Any] = self.driver.state["caches"]
        return found

    def sleep(self, seconds: float) -> None:
        self.driver.tick()

    # -- as Runner

    def find(self, name: str) -> str:
        base = os.path.basename(name)
        if base in self.missing or not hasattr(self, f"_{base}"):
            raise ToolMissing(f"The command {name} is missing on this host.", item=name)
        return name if name.startswith("/") else f"/sbin/{name}"

    def has(self, name: str) -> bool:
        with contextlib.suppress(ToolMissing):
            return bool(self.find(name))
        return False

    def run(self, argv, *, ok=(0,), timeout=None, stdin="", item=None, watch=None, interval=5.0, patience=2.0, cwd=None):
        words = tuple(str(word) for word in argv)
        handler: t.Callable[[t.Sequence[str]], Answer] = getattr(self, f"_{os.path.basename(self.find(words[0]))}")
        self.calls.append(words)
        answer = handler(words[1:]) if _only_reads(words) else self._change(lambda: handler(words[1:]))
        return Completed(words, answer.rc, answer.stdout, answer.stderr).require(ok, item)

    def strikable(self, function: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        """The same function as something that a kill can come before or after, as it can around a command."""
        return lambda *arguments, **named: self._change(lambda: function(*arguments, **named))

    def _change(self, effect: t.Callable[[], t.Any]) -> t.Any:
        struck, works = self.strike is not None and self.strike[0] == self.changes, True
        self.changes += 1
        if struck and self.strike is not None:
            works, self.strike = self.strike[1], None
        answer = effect() if works else None
        if struck:
            raise Killed
        return answer

    # -- commands

    def _eio_cli(self, words: t.Sequence[str]) -> Answer:
        return EioCli(self.state).answer(words, "")

    def _sysctl(self, words: t.Sequence[str]) -> Answer:
        return Sysctl(self.state).answer(words, "")

    def _sh(self, words: t.Sequence[str]) -> Answer:
        """The scripts of the unit; ``test_boot.py`` runs them in a shell."""
        _c, script, _zero, tool, assignment, *further = words
        key, _equals, value = assignment.partition("=")
        self._sysctl(["-w", assignment])
        if script == enhanceio_boot.SET:
            found = self._sysctl(["-n", key]).stdout.strip()
            return Answer("") if found == value else Answer("", 1, f"{assignment} is not in effect: it is {found}\n")
        assert (script, tool) == (enhanceio_boot.FORGET, "/sbin/sysctl")
        if self.caches[further[2]]["flags"] & FAST_REMOVE:
            return Answer("")
        self._eio_cli(["disable", "-c", further[2]])
        return Answer("", 1, f"{further[2]} would keep its contents\n")

    def _modprobe(self, words: t.Sequence[str]) -> Answer:
        if self.driver.state["module"] == "absent" or words[-1] != "enhanceio":
            return Answer("", 1, f"modprobe: FATAL: Module {words[-1]} not found in directory /lib/modules/4.19.0-27-amd64\n")
        if "--dry-run" not in words:
            self.driver.load()
        return Answer("")

    def _test(self, words: t.Sequence[str]) -> Answer:
        place = self.root / words[1].lstrip("/")
        return Answer("", 0 if (place.is_dir() if words[0] == "-d" else place.exists()) else 1)

    def _udevadm(self, words: t.Sequence[str]) -> Answer:
        return Answer(self.host.udev_reply.stdout if words[0] == "info" else "")

    def _wipefs(self, words: t.Sequence[str]) -> Answer:
        return Answer("")

    def _systemctl(self, words: t.Sequence[str]) -> Answer:
        if words[0] == "enable":
            enable_unit(self.root / boot_unit.FOLDER, words[1])
        elif words[0] == "disable":
            disable_unit(self.root / boot_unit.FOLDER, words[1])
        return Answer("")

    def _mdadm(self, words: t.Sequence[str]) -> Answer:
        if words[0] in ("--create", "--assemble"):
            members = [os.path.basename(os.path.realpath(self.root / word.lstrip("/"))) for word in words if word.startswith("/dev/disk/")]
            uuid = next(word.split("=", 1)[1] for word in words if word.startswith("--uuid="))
            label = words[1].rsplit("/", 1)[-1]
            assert label.startswith(PREFIX)
            link = f"/dev/disk/by-id/md-uuid-{uuid}"
            self.host.disk(_MD, "virtual", size=9 * GIB, slaves=members, MD_UUID=uuid, MD_NAME=f"any:{label}", DEVLINKS=link)
            os.truncate(self.root / "dev" / _MD, 1 << 20)
            for file, text in {"level": "raid1", "raid_disks": "2", "degraded": "0"}.items():
                self.host.write(f"sys/devices/virtual/block/{_MD}/md/{file}", text + "\n")
        elif words[0] == "--stop":
            self._forget_array()
        return Answer("")

    def _forget_array(self) -> None:
        place = Path(os.path.realpath(self.root / "sys/class/block" / _MD))
        for slave in (place / "slaves").iterdir():
            (Path(os.path.realpath(slave)) / "holders" / _MD).unlink()
        for link in (self.root / "sys/class/block" / _MD, self.root / "sys/block" / _MD, *(self.root / "dev/disk/by-id").glob("md-uuid-*")):
            link.unlink()
        (self.root / "dev" / _MD).unlink()
        shutil.rmtree(place)
        self.host.records = [record for record in self.host.records if f"N: {_MD}" not in record]

    # -- what happens to the host

    def lose(self, path: str) -> None:
        """A disk is pulled."""
        self.driver.lose(path)
        name = os.path.basename(os.path.realpath(self.root / path.lstrip("/")))
        (self.root / path.lstrip("/")).unlink()
        (self.root / "sys/class/block" / name).unlink()
        self.host.records = [record for record in self.host.records if f"N: {name}\n" not in record]

    def hidden(self, name: str) -> bool:
        """Whether the rule of a cache keeps its origin from systemd at this moment."""
        rule = self.root / enhanceio_boot.RULE.format(name=name)
        return rule.exists() and 'ENV{SYSTEMD_READY}="0"' in rule.read_text() and not (self.root / f"proc/enhanceio/{name}").is_dir()

    def boot(self, *, orderly: bool = True) -> dict[str, bool]:
        """The machine goes down and comes up: every enabled unit is started as systemd would, and those that a rule calls.

        Returns whether each succeeded.
        """
        if orderly:
            self.driver.shut_down()
        else:
            self.driver.power_cut()
        folder = self.root / boot_unit.FOLDER
        units = {link.name for link in (folder / "sysinit.target.wants").glob("*")}
        for rule in (self.root / "etc/udev/rules.d").glob("62-*"):
            units |= {word.rstrip('"\n') for word in rule.read_text().split() if word.startswith("cachefleet-enhanceio-")}
        return {unit: self._start(folder / unit) for unit in sorted(units)}

    def _start(self, unit: Path) -> bool:
        if not unit.exists():
            return False
        lines = unit.read_text().splitlines()
        required = next((line for line in lines if line.startswith("Requires=")), "")
        for device in required.partition("=")[2].split():
            path = "/" + device[: -len(".device")].replace("-", "/").replace("\\x2d", "-")
            if not (self.root / path.lstrip("/")).exists() or any(self.hidden(name) and path == HDD for name in ("images",)):
                return False
        # systemd.service(5), "COMMAND LINES".
        found = [line.partition("=")[2].replace("$$", "$").replace("%%", "%") for line in lines if line.startswith(("ExecStartPre=", "ExecStart="))]
        commands = [shlex.split(line) for line in found]
        return all(self.run(command, ok=None).rc == 0 for command in commands)


def _only_reads(words: t.Sequence[str]) -> bool:
    command = os.path.basename(words[0])
    return command in ("wipefs", "blkid", "test", "dmsetup") or (command == "udevadm") or "--dry-run" in words
