# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the files of a rack are."""

from __future__ import annotations

import pathlib

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.machine import Disk, Machine

#: The kernel's ``sockaddr_un`` has 108 bytes for a path and its end.
SOCKET_PATH_LIMIT = 107


@frozen
class RackPaths:
    """Where the files of a rack are."""

    rack: pathlib.Path

    def folder(self, machine: str) -> pathlib.Path:
        return self.rack / machine

    def root_disk(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "root.qcow2"

    def disk(self, machine: str, disk: Disk) -> pathlib.Path:
        return self.folder(machine) / disk.file

    def disk_socket(self, machine: str, disk: Disk) -> pathlib.Path:
        """Of the process that serves a disk."""
        return pathlib.Path(disk.nbd) if disk.nbd else self.folder(machine) / f"{disk.name}.nbd"

    def console(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "console.log"

    def monitor(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "qmp.sock"

    def pid_file(self, machine: str) -> pathlib.Path:
        return self.folder(machine) / "pid"

    def network_socket(self, network: str, machine: str) -> pathlib.Path:
        return self.folder(machine) / f"{network}.net"

    @property
    def key(self) -> pathlib.Path:
        return self.rack / "id_ed25519"

    @property
    def known_hosts(self) -> pathlib.Path:
        return self.rack / "known_hosts"

    @property
    def state(self) -> pathlib.Path:
        return self.rack / "rack.json"

    @property
    def lock(self) -> pathlib.Path:
        return self.rack / ".lock"

    def sockets(self, machine: Machine) -> list[pathlib.Path]:
        """Every unix-domain socket of a machine."""
        return [
            self.monitor(machine.name),
            *(self.network_socket(nic.network, machine.name) for nic in machine.networks),
            *(self.disk_socket(machine.name, disk) for disk in machine.disks if disk.served),
            *(pathlib.Path(port.socket) for port in machine.serial_ports),
        ]

    def check_sockets(self, machine: Machine) -> None:
        """
        :raises BadInput: if the rack's folder has so long a path that a socket cannot be made in it.
        """
        for path in self.sockets(machine):
            if len(str(path).encode()) > SOCKET_PATH_LIMIT:
                raise BadInput(
                    f"The path {path} is longer than the {SOCKET_PATH_LIMIT} bytes that a socket may have: choose a shorter directory for the rack.",
                    item=machine.name,
                )
