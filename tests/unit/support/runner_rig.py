# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host of files with two empty disks and a fake fio on PATH, on which real runners are started, killed and asked."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import stat
import sys
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import is_alive
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice, Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import MeasuredHost
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import read_status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control, measuring
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner.order import read_order
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool

from . import fake_fio

#: Long enough for the slowest machine; nothing waits for it unless something is wrong.
_LIMIT = 300.0

#: What device-mapper reports of a cache with blocks of 64 KiB.
CACHE = "c0: 0 2097152 cache 8 27/2048 128 {used}/1600 {hits} {misses} 0 0 0 5 {dirty} 1 writeback 2 migration_threshold 2048 smq 0 rw -"

JOB = {"rw": "randwrite", "bs": "4k", "direct": 1, "time_based": True, "runtime": "100ms"}


class Stack:
    """The layers of a device, with one setting that a test may change."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def describe(self, name: str) -> dict[str, t.Any]:
        return {"name": name, "layers": [{"kind": "disk", "caches": [{"layer": "drive", "drive": self.mode, "dirty": time.time()}]}]}


class RunnerRig:
    def __init__(self, root: Path, monkeypatch: t.Any) -> None:
        self.root = root
        self._monkeypatch = monkeypatch
        self.behaviour = root / "fake_fio.json"
        self.mode = "writeback"
        self.spool = Spool(root / "spool", "c1")
        self.disks = [
            BlockDevice(name=f"sd{letter}", path=f"/dev/sd{letter}", number=f"8:{16 * number}", size=2**30, serial=f"S-{letter}")
            for number, letter in enumerate("bc", start=1)
        ]
        for disk in self.disks:
            node = root / disk.path.lstrip("/")
            node.parent.mkdir(exist_ok=True)
            with open(node, "wb") as file:
                file.truncate(disk.size)
        _program(root / "bin/fio", f"#!{sys.executable} -I\n" + Path(fake_fio.__file__).read_text())
        _program(root / "bin/wipefs", "#!/bin/sh\necho '{\"signatures\": []}'\n")
        monkeypatch.setenv("PATH", f"{root / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setenv("FAKE_FIO", str(self.behaviour))
        self.behave()

    @property
    def host(self) -> MeasuredHost:
        return MeasuredHost(Runner(), lambda _devices: Stack(self.mode), self.root, lambda runner, root: Devices(self.disks, root))

    def behave(self, **how: t.Any) -> None:
        """What the fake fio does from its next run on."""
        if "does" in how:
            # A file of a test that is open for writing at that instant would be a reason to kill the fake fio.
            self._monkeypatch.setattr(measuring, "_CHECKS", ())
        self.behaviour.write_text(json.dumps(how))

    def cache(self, status: str = "", **counts: t.Any) -> None:
        """The first disk is a cached device from now on, with these counts of blocks and of I/Os."""
        self.disks[0] = dataclasses.replace(self.disks[0], kind="dm", dm_name="c0", dm_targets=("cache",))
        place = self.root / "status"
        # The runner may read it now.
        (self.root / "status.new").write_text(status or CACHE.format(**{"used": 40, "hits": 10, "misses": 20, "dirty": 0, **counts}))
        (self.root / "status.new").rename(place)
        if not (self.root / "bin/dmsetup").exists():
            _program(self.root / "bin/dmsetup", f"#!/bin/sh\n[ $1 = status ] && cat {place}\n[ $1 = info ] && echo 0\nexit 0\n")

    def order(self, *steps: t.Mapping[str, t.Any], **settings: t.Any) -> t.Any:
        return read_order({"campaign": "c1", "variant": "v", "host": "node1", "sample_interval": 0.5, "steps": list(steps), **settings})

    def start(self, *steps: t.Mapping[str, t.Any], check_mode: bool = False, **settings: t.Any) -> dict[str, t.Any]:
        return control.start(self.order(*steps, **settings), self.spool, self.host, check_mode=check_mode)

    def finish(self, *steps: t.Mapping[str, t.Any], **settings: t.Any) -> list[dict[str, t.Any]]:
        """Start and wait for the end; the outcomes."""
        self.start(*steps, **settings)
        self.await_end()
        return self.packed()["cells"]

    def packed(self) -> dict[str, t.Any]:
        return control.pack(self.spool, check_mode=False)

    @property
    def status(self) -> dict[str, t.Any]:
        return read_status(self.spool.home)

    def await_status(self, wanted: t.Callable[[dict[str, t.Any]], bool]) -> dict[str, t.Any]:
        return _await(lambda: self.status, wanted)

    def await_state(self, name: str) -> dict[str, t.Any]:
        return self.await_status(lambda status: status["state"] == name)

    def await_end(self) -> dict[str, t.Any]:
        return self.await_status(lambda status: bool(status) and not is_alive(status))

    def await_run(self, number: int) -> dict[str, t.Any]:
        """Until the fake fio runs for the so many-th time."""
        return _await(lambda: self.runs, lambda runs: len(runs) >= number)[number - 1]

    @property
    def runs(self) -> list[dict[str, t.Any]]:
        try:
            return [json.loads(os.readlink(link)) for link in sorted(Path(f"{self.behaviour}.runs").iterdir())]
        except FileNotFoundError:
            return []

    def kill(self, number: int = signal.SIGKILL) -> None:
        os.kill(self.status["pid"], number)

    def meta(self, cell: str = "w", repeat: int = 1) -> dict[str, t.Any]:
        found = self.spool.read_meta(CellKey("v", cell, repeat))
        assert found is not None, f"nothing whole is stored of {cell}/{repeat}"
        return found

    def end(self) -> None:
        """Nothing may outlive a test."""
        if is_alive(self.status):
            self.kill()
        for run in self.runs:
            if _carries(run["pid"], str(self.root)):
                os.kill(run["pid"], signal.SIGKILL)


def step(name: str = "w", device: str = "/dev/sdb", **values: t.Any) -> dict[str, t.Any]:
    """A step with one cell; what belongs to the cell goes there."""
    own = {key: values.pop(key) for key in ("repeat", "job", "done_as", "measures_garbage_collection", "decides", "warm", "drain") if key in values}
    return {"cells": [{"name": name, "target": {"device": device}, "job": JOB, **own}], **values}


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def await_gone(pid: int) -> None:
    _await(lambda: is_running(pid), lambda running: not running)


def _carries(pid: int, text: str) -> bool:
    try:
        return text in Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return False


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def _await(look: t.Callable[[], t.Any], wanted: t.Callable[[t.Any], bool]) -> t.Any:
    ends = time.monotonic() + _LIMIT
    while True:
        found = look()
        if wanted(found):
            return found
        assert time.monotonic() < ends, f"it did not come to that: {found}"
        time.sleep(0.02)
