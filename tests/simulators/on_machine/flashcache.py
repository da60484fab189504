# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The simulated flashcache on a real machine: its caches are device-mapper devices of the real kernel.

A cache is a device of the target ``delay`` without a delay, which sends reads and writes to the disk and flushes to the SSD: it can be
used, and both devices have it as their holder. What flashcache would keep on the SSD beside its superblock is a number.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..flashcache_kernel import Kernel, Rejected, State
from . import machine


class MachineKernel(Kernel):
    """The flashcache of the machine that this runs on.

    :param host: its state, changed in place.
    :param faults: of the simulator.
    """

    def __init__(self, host: State, faults: t.Mapping[str, t.Any]) -> None:
        super().__init__(host, faults)
        boot = machine.boot()
        if host.get("boot") not in (None, boot):
            self.crash()
            host["module"] = "installed"
        host["boot"] = boot
        if host["module"] == "loaded":
            self._show_module()

    def _show_module(self) -> None:
        machine.show_module("flashcache")

    def write_head(self, path: str, content: bytes) -> None:
        machine.write(self.node(path), 0, content)

    def forget_pages(self, path: str) -> None:
        super().forget_pages(path)
        machine.run(machine.BLOCKDEV, ["--flushbufs", path])

    def opened(self, cache: State) -> int:
        shown = machine.run(machine.DMSETUP, ["info", "--columns", "--noheadings", "-o", "open", cache["name"]])
        return int(shown.stdout) if shown.rc == 0 else 0

    def _publish_device(self, cache: State) -> None:
        table = f"0 {cache['sectors']} delay {cache['disk']} 0 0 {cache['disk']} 0 0 {cache['ssd']} 0 0"
        made = machine.run(machine.DMSETUP, ["create", cache["name"], "--table", table])
        if made.rc:
            del self.host["caches"][cache["name"]]
            self._conceal(cache)
            raise Rejected(made.stderr.strip().replace("{", "(").replace("}", ")"))
        shown = machine.run(machine.DMSETUP, ["info", "--columns", "--noheadings", "-o", "minor", cache["name"]])
        cache["minor"] = int(shown.stdout)

    def _withdraw(self, cache: State) -> None:
        machine.run(machine.DMSETUP, ["remove", "--retry", cache["name"]])

    def _unlink_device(self, cache: State) -> None:
        """The name goes with the device."""


def kernel_of(host: State, faults: t.Mapping[str, t.Any]) -> Kernel:
    """The flashcache of a host: of a folder, or of this machine."""
    return MachineKernel(host, faults) if machine.is_real(Path(host["root"])) else Kernel(host, faults)
