# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real machine below the simulated kernel modules: its commands, its boots, and the list of loaded modules in the view (view.sh)."""

from __future__ import annotations

import os
import subprocess
import typing as t
from pathlib import Path

from ..simulator import Answer

#: A file that only exists in the view.
VIEW = Path("/proc/cachefleet-view")
DMSETUP = "/run/cachefleet-simulators/real/dmsetup"
BLOCKDEV, MODPROBE, SYSCTL, TEST = "/sbin/blockdev", "/sbin/modprobe", "/sbin/sysctl", "/usr/bin/test"
_MODULES = Path("/proc/modules")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def run(command: str, words: t.Sequence[str], stdin: str = "") -> Answer:
    """What a command of the machine prints."""
    done = subprocess.run([command, *words], input=stdin, capture_output=True, text=True, check=False)
    return Answer(done.stdout, done.returncode, done.stderr)


def is_real(root: Path) -> bool:
    """Whether a root is that of the machine; only in the view, where nothing of the machine's own /proc can be written over."""
    return root == Path("/") and VIEW.exists()


def boot() -> str:
    """What differs from boot to boot."""
    return _BOOT.read_text().strip()


def sectors(node: str | Path) -> int:
    """The size of a block device."""
    return int((Path("/sys/class/block") / Path(node).name / "size").read_text())


def show_module(name: str) -> None:
    """Make a simulated module one of the loaded ones."""
    if not any(line.split(" ", 1)[0] == name for line in _MODULES.read_text().splitlines()):
        with _MODULES.open("a") as file:
            file.write(f"{name} 131072 0 - Live 0x0000000000000000 (OE)\n")


def write(node: str | Path, offset: int, content: bytes) -> None:
    """Write to a device, past the page cache as a kernel module does."""
    handle = os.open(node, os.O_WRONLY)
    try:
        os.pwrite(handle, content, offset)
        os.fsync(handle)
    finally:
        os.close(handle)
