# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host with drives, a volume group that can be cached, and block queues, for what concerns several layers at once."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed
from ansible_collections.cachefleet.storage.plugins.module_utils._host.converge import HostConvergence, HostOutcome
from ansible_collections.cachefleet.storage.plugins.module_utils._host.layers import Host
from ansible_collections.cachefleet.storage.plugins.module_utils._host.request import GROUPS, read_request
from ansible_collections.cachefleet.storage.plugins.module_utils._host.runner import HostRunner
from ansible_collections.cachefleet.storage.plugins.modules.cache_layers import argument_spec
from ansible_collections.cachefleet.storage.tests.unit.support.drive_machine import Machine
from ansible_collections.cachefleet.storage.tests.unit.support.fake_lvm import FakeLvm
from ansible_collections.cachefleet.storage.tests.unit.support.fake_modules import load_modules
from ansible_collections.cachefleet.storage.tests.unit.support.fake_queues import FakeQueues

HDD, SSD, SPARE = "/dev/disk/by-id/ata-HDD0", "/dev/disk/by-id/ata-SSD0", "/dev/disk/by-id/ata-SSD1"
DISKS = {"sda": (HDD, True), "sdb": (SSD, False), "sdc": (SPARE, False)}
#: A request for every layer of this host.
DRIVES = [{"device": HDD, "write_cache": "disabled"}]
CACHES = [{"name": "images", "type": "lvm_cache", "origin": "vg/data", "cache_devices": [SSD]}]
QUEUES = [{"device": SPARE, "scheduler": "none", "persistent": False}]


class HostRig:
    """/dev/sda with the volume ``vg/data``, and two empty SSDs.

    :param missing: commands that are not installed.
    """

    def __init__(self, root: pathlib.Path, monkeypatch: pytest.MonkeyPatch, missing: tuple[str, ...] = (), lvm: FakeLvm | None = None) -> None:
        self.root = root
        self.missing = missing
        self.lvm = lvm or FakeLvm()
        load_modules(root)
        self.machine = Machine(root, monkeypatch, missing)
        self.queues = FakeQueues(root, monkeypatch)
        self.machine.host = self.queues.host
        for name, (link, rotational) in DISKS.items():
            self.add(name, link, rotational)
        (root / "dev/vg").mkdir()
        (root / "dev/vg/data").write_bytes(bytes(4096))
        self.scripted = self.machine.runner
        self.calls: list[tuple[str, ...]] = []
        self.history: list[Completed] = []

    def add(self, name: str, link: str, rotational: bool = False) -> None:
        """A SATA disk with a queue and a write cache that is on."""
        self.queues.disk(name, rotational=rotational, size=512 << 20, serial=link.rsplit("-", 1)[1], DEVLINKS=link)
        self.machine.adopt(name)
        (self.root / "dev" / name).write_bytes(bytes(4096))

    # -- as Runner

    def find(self, name: str) -> str:
        return self.scripted.find(name)

    def has(self, name: str) -> bool:
        return name not in self.missing

    def run(self, argv: t.Sequence[str], **how: t.Any) -> Completed:
        name = str(argv[0])
        if name in self.missing:
            raise ToolMissing(f"The command {name} is missing on this host: install it.", item=name)
        self.calls.append(tuple(map(str, argv)))
        of_lvm = name not in ("udevadm", "hdparm") and hasattr(self.lvm, f"_{name}")
        return (self.lvm if of_lvm else self.scripted).run(argv, **how)

    # -- as a host

    def request(self, **params: t.Any) -> t.Any:
        """What the module makes of its parameters."""
        defaults = {name: option.get("default") for name, option in argument_spec().items()}
        return read_request({**defaults, **params})

    def converge(self, *, check_mode: bool = False, groups: t.Collection[str] = GROUPS, **params: t.Any) -> HostOutcome:
        host = Host(HostRunner(t.cast("t.Any", self)), self.root, sleep=lambda seconds: None)
        return HostConvergence(host, self.request(**params), check_mode=check_mode, groups=groups).run()

    @property
    def changes(self) -> list[str]:
        """Everything that was changed, in order of the kinds: commands of LVM, drives, and files of sysfs."""
        drives = [" ".join(words) for words in self.calls if words[0] == "hdparm" and words[1] != "-W"]
        return [*self.lvm.changes, *drives, *(f"{name}/{place}={value}" for name, place, value in self.queues.writes)]
