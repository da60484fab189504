# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which block devices of this host running AoE targets serve to others, and how.

``vblade [options] shelf slot interface path`` (vblade(8); options may also come last, as the unit of Debian has them), from
the argument lists in ``/proc``. A target opens its device without O_EXCL and leaves no holder: nothing else shows it. Every user may
start a process of that name with any arguments, so a process counts only if it has open what its arguments name.
"""

from __future__ import annotations

import getopt
import os
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices

#: The options of vblade 25 that take a value (``getopt`` in ``main`` of aoe.c).
_OPTIONS = "b:dsrm:o:l:"
#: Frames that fit into its socket, unless configured otherwise (``Bufcount`` of dat.h).
DEFAULT_BUFFERS = 16


@frozen
class AoeExport:
    """One target: what it serves, on which interface, under which address.

    :param path: of the device or file, absolute.
    :param direct: whether it passes by the page cache (``-d``); ``sync``: whether each write is on the medium before it is acknowledged (``-s``).
    :param buffers: frames that its socket should hold.
    :param macs: of the initiators that it answers; empty: all.
    :param other: options that this collection does not set.
    """

    shelf: int
    slot: int
    interface: str
    path: str
    direct: bool = False
    sync: bool = False
    read_only: bool = False
    buffers: int = DEFAULT_BUFFERS
    macs: tuple[str, ...] = ()
    other: tuple[tuple[str, str], ...] = field(default=())
    pid: int = 0

    @property
    def address(self) -> str:
        """What an initiator calls it: ``e7.1``."""
        return f"e{self.shelf}.{self.slot}"

    @property
    def words(self) -> list[str]:
        """The argument list of a vblade that serves it, without its own name."""
        words = [name for name, given in (("-d", self.direct), ("-s", self.sync), ("-r", self.read_only)) if given]
        if self.buffers != DEFAULT_BUFFERS:
            words += ["-b", str(self.buffers)]
        if self.macs:
            words += ["-m", ",".join(self.macs)]
        return [*words, *(word for option in self.other for word in option), str(self.shelf), str(self.slot), self.interface, self.path]


def parse_arguments(words: t.Sequence[str], pid: int = 0) -> AoeExport | None:
    """The arguments of a vblade, without its own name; None if it would not run with them."""
    try:
        options, rest = getopt.gnu_getopt(list(words), _OPTIONS)
        shelf, slot, interface, path = rest
        given = dict(options)
        return AoeExport(
            shelf=int(shelf),
            slot=int(slot),
            interface=interface,
            path=path,
            direct="-d" in given,
            sync="-s" in given,
            read_only="-r" in given,
            buffers=int(given.get("-b", DEFAULT_BUFFERS)),
            macs=tuple(mac.lower() for mac in given.get("-m", "").split(",") if mac),
            other=tuple((name, value) for name, value in options if name in ("-o", "-l")),
            pid=pid,
        )
    except (getopt.GetoptError, ValueError):
        return None


def running_exports(root: Path = Path("/")) -> list[AoeExport]:
    """Every vblade that runs and has its device or file open, by process id."""
    found = []
    for process in sorted((root / "proc").glob("[0-9]*"), key=lambda place: int(place.name) if place.name.isdigit() else 0):
        try:
            words = [os.fsdecode(word) for word in (process / "cmdline").read_bytes().split(b"\0") if word]
        except OSError:
            continue  # the process has ended meanwhile
        # A script that stands in for vblade has its interpreter as first word.
        place = next((place for place, word in enumerate(words[:2]) if os.path.basename(word) == "vblade"), None)
        if place is None:
            continue
        export = parse_arguments(words[place + 1 :], int(process.name))
        if export is not None:
            absolute = _absolute(export, process)
            if _has_open(process, absolute.path, root):
                found.append(absolute)
    return found


def _has_open(process: Path, path: str, root: Path) -> bool:
    """Whether a process has open what a path names; yes where its open files cannot be read.

    Compared are device numbers and inodes. The path may be one in the root of the process, which is another one in a container.
    """
    try:
        opened = list((process / "fd").iterdir())
    except OSError:
        return True
    named = {unit for place in (root, process / "root") for unit in [_unit(place / path.lstrip("/"))] if unit is not None}
    return any(_unit(one) in named for one in opened)


def _absolute(export: AoeExport, process: Path) -> AoeExport:
    if export.path.startswith("/"):
        return export
    try:
        folder = os.readlink(process / "cwd")
    except OSError:
        folder = "/"
    return AoeExport(**{**vars(export), "path": os.path.join(folder, export.path)})


def served_devices(devices: Devices, root: Path = Path("/"), exports: t.Sequence[AoeExport] | None = None) -> dict[str, list[AoeExport]]:
    """By kernel name, the block devices that targets serve, themselves or as a file on their file system.

    :param exports: as :func:`running_exports` returns them; read if not given.
    """
    served: dict[str, list[AoeExport]] = {}
    for export in running_exports(root) if exports is None else exports:
        try:
            names = {devices.resolve(export.path).name}
        except DeviceMissing:
            names = _file_system_of(devices, root / export.path.lstrip("/"))
        for name in names:
            served.setdefault(name, []).append(export)
    return served


def _file_system_of(devices: Devices, path: Path) -> set[str]:
    try:
        number = path.stat().st_dev
    except OSError:
        return set()
    return {device.name for device in devices if device.number == f"{os.major(number)}:{os.minor(number)}"}


def _unit(node: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(node)
    except OSError:
        return None
    return (-1, status.st_rdev) if stat.S_ISBLK(status.st_mode) else (status.st_dev, status.st_ino)
