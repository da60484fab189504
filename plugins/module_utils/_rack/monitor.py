# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""QEMU's control protocol: one JSON object a line, over the unix-domain socket of a running machine.

Source: docs/interop/qmp-spec of QEMU.
"""

from __future__ import annotations

import json
import pathlib
import socket
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import places
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Disk
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.qemu import backend, disk_device

#: The run state of a machine that QEMU paused because a write found no space on the host. It remains so until it is continued by a command.
OUT_OF_SPACE = "io-error"

#: Bytes that must be free before such a machine is continued; with less it would stop again at once.
ROOM = 64 * MIB


class Monitor:
    """A connection to one machine; a context manager.

    :param path: the socket.
    :param item: name of the machine, for errors.
    """

    def __init__(self, path: pathlib.Path, item: str, timeout: float = 20.0) -> None:
        self.item = item
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise StorageError(f"{item}: the control socket {path} does not answer: {error.strerror}.", item=item) from None
        self._lines = self._socket.makefile("r")

    def __enter__(self) -> Monitor:
        self._receive()
        self.execute("qmp_capabilities")
        return self

    def __exit__(self, *_details: object) -> None:
        self._lines.close()
        self._socket.close()

    def execute(self, command: str, **arguments: t.Any) -> t.Any:
        """One command and its answer.

        :raises StorageError: with QEMU's own words if it refuses.
        """
        self._socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = self._receive()
            if "error" in answer:
                raise StorageError(f"{self.item}: QEMU refused {command}: {answer['error'].get('desc')}", item=self.item)
            if "return" in answer:
                return answer["return"]

    def has_device(self, name: str) -> bool:
        """Whether the machine has a device with this id."""
        return any(entry["name"] == name for entry in self.execute("qom-list", path="/machine/peripheral"))

    def _receive(self) -> dict[str, t.Any]:
        try:
            line = self._lines.readline()
        except OSError:
            line = ""
        if not line:
            raise StorageError(f"{self.item}: the machine ended while a command was running.", item=self.item)
        return json.loads(line)


def is_out_of_space(path: pathlib.Path, item: str) -> bool:
    """Whether QEMU paused a machine because the disk of the host was full; not if QEMU does not answer.

    :param path: the control socket.
    """
    try:
        with Monitor(path, item, timeout=5.0) as monitor:
            return monitor.execute("query-status")["status"] == OUT_OF_SPACE
    except StorageError:
        return False


def continue_with_room(path: pathlib.Path, item: str) -> None:
    """Continue a machine that QEMU paused because the disk of the host was full; one that runs is not touched.

    :param path: the control socket, next to the files of the disks.
    :raises Refused: if there still is no space.
    """
    if not is_out_of_space(path, item):
        return
    have = places.free_bytes(path.parent)
    if have < ROOM:
        raise Refused(
            f"{item} is paused, because the disk of the host was full when it wrote to one of its disks: {format_size(have)} are free in {path.parent};"
            f" free at least {format_size(ROOM)} and run this again, which continues it, or cut its power.",
            item=item,
        )
    with Monitor(path, item) as monitor:
        monitor.execute("cont")


def unplug(monitor: Monitor, disk: Disk, patience: float = 60.0) -> None:
    """Pull a disk out; the guest is requested to release it first.

    :raises TimedOut: if the guest keeps it.
    """
    name = f"disk-{disk.name}"
    deadline = time.monotonic() + patience
    if monitor.has_device(name):
        monitor.execute("device_del", id=name)
    while monitor.has_device(name):
        if time.monotonic() > deadline:
            raise TimedOut(f"{monitor.item}: the guest did not release the disk {disk.name} within {patience:g} seconds.", item=monitor.item)
        time.sleep(0.1)


def plug(monitor: Monitor, disk: Disk, path: pathlib.Path) -> None:
    """Plug a disk in.

    :raises StorageError: if QEMU refuses it.
    """
    if monitor.has_device(f"disk-{disk.name}"):
        return
    # QEMU keeps what was behind an NVMe drive that was pulled; the answer is a complaint where it did not.
    monitor.execute("human-monitor-command", **{"command-line": f"drive_del drive-{disk.name}"})
    # QMP has no -drive of its own; this keeps one description of what is behind a disk for both ways in.
    reply = monitor.execute("human-monitor-command", **{"command-line": f"drive_add 0 {backend(disk, path)}"})
    if reply.strip() != "OK":
        raise StorageError(f"{monitor.item}: QEMU refused the disk {disk.name}: {reply.strip()}", item=monitor.item)
    driver, _comma, rest = disk_device(disk).partition(",")
    monitor.execute("device_add", driver=driver, **dict(pair.split("=", 1) for pair in rest.split(",")))
