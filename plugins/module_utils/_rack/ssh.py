# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ports on the loopback interface and the one ssh connection the rack itself makes to its machines."""

from __future__ import annotations

import contextlib
import pathlib
import socket
import time
import typing as t
import zlib

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

HOST = "127.0.0.1"

#: Below the range from which Linux gives out ports by itself (32768 and above).
PORTS = range(22200, 23200)


def port_is_free(port: int) -> bool:
    """Whether a port of the loopback interface can be listened on now."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as listener:
        # QEMU sets this too: a connection that is still being closed does not keep the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


def choose_port(requested: int | None, remembered: int | None, who: str, taken: t.Container[int] = (), free: t.Callable[[int], bool] | None = None) -> int:
    """The port under which a machine is reached.

    :param requested: what the user fixed; then it is this one or an error.
    :param remembered: what the machine had last time; kept if it still can be.
    :param who: rack and machine; racks side by side begin their search at different places.
    :param taken: ports of the rack's other machines.
    :raises Refused: if the fixed port, or every port, is taken.
    """
    free = free or port_is_free
    if requested is not None:
        if requested in taken or not free(requested):
            raise Refused(f"{who}: port {requested} is used by another process on {HOST}: choose another ssh_port or leave it out.", item=who)
        return requested
    first = zlib.crc32(who.encode()) % len(PORTS)
    candidates = [*([remembered] if remembered else []), *PORTS[first:], *PORTS[:first]]
    for port in candidates:
        if port not in taken and free(port):
            return port
    raise Refused(f"{who}: every port from {PORTS[0]} to {PORTS[-1]} on {HOST} is used: set ssh_port.", item=who)


def known_hosts_text(host_keys: t.Mapping[int, str]) -> str:
    """The known_hosts lines of the machines of a rack.

    :param host_keys: for each port the public key of the image that answers there.
    """
    return "".join(f"[{HOST}]:{port} {' '.join(key.split()[:2])}\n" for port, key in sorted(host_keys.items()))


def ssh_options(known_hosts: pathlib.Path) -> list[str]:
    """The options that every ssh connection to a rack needs; they leave nothing in the user's own files."""
    return ["-o", f"UserKnownHostsFile={known_hosts}", "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]


def ssh_arguments(port: int, key: pathlib.Path, known_hosts: pathlib.Path, command: t.Sequence[str], patience: float = 10.0) -> list[str]:
    """A command on a machine, as root.

    :param patience: seconds for the server's answer to a connection.
    """
    return [
        "ssh", "-F", "none", *ssh_options(known_hosts),
        "-o", "BatchMode=yes", "-o", "ControlPath=none", "-o", f"ConnectTimeout={patience:.0f}", "-o", "LogLevel=ERROR",
        "-i", str(key), "-p", str(port), f"root@{HOST}", *command,
    ]  # fmt: skip


def greets(port: int, patience: float = 1.0) -> bool:
    """Whether an ssh server answers. QEMU accepts connections long before its guest does, so only the banner counts."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as connection:
        connection.settimeout(patience)
        try:
            connection.connect((HOST, port))
            return connection.recv(4) == b"SSH-"
        except OSError:
            return False


def logs_in(runner: Runner, port: int, key: pathlib.Path, known_hosts: pathlib.Path, patience: float = 15.0) -> bool:
    """Whether a command can be run on the machine."""
    try:
        runner.run(ssh_arguments(port, key, known_hosts, ["true"], patience), timeout=patience)
    except (CommandFailed, TimedOut):
        return False
    return True


def wait_for_login(runner: Runner, port: int, key: pathlib.Path, known_hosts: pathlib.Path, deadline: float, alive: t.Callable[[], bool]) -> bool:
    """Wait until a command can be run on the machine, it ends, or the time (:func:`time.monotonic`) is over.

    The longer it takes, the longer one attempt may take: on a busy host the server needs seconds for a connection, and one that is
    given up leaves it with a process, so that impatience alone can keep it from ever answering.
    """
    began = time.monotonic()
    while alive() and time.monotonic() < deadline:
        waited = time.monotonic() - began
        if greets(port, max(1.0, waited / 5)) and logs_in(runner, port, key, known_hosts, max(15.0, waited / 2)):
            return True
        time.sleep(0.1)
    return False
