# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The witness: keeps on another host what a writer reported as written, so that a power cut of the writer's host cannot take it along."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import ipaddress
import re
import selectors
import socket
import threading
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import LOST, LogFile, header_line, line_of

_RUN = re.compile(r"[0-9a-f]{32}")
#: Many writers that begin at once on a busy host take long to answer.
_GREETING_SECONDS = 60.0
_MOST_AT_ONCE = 65536 // messages.MESSAGE_BYTES * messages.MESSAGE_BYTES
#: After a power cut no packet says that the connection has ended; its writer is not waited for longer than this.
_SILENCE_SECONDS = 600.0


def log_path(folder: Path, run: str) -> Path:
    """Where the log of a run is.

    :raises BadInput: if the id could be anything else than a file name.
    """
    if not _RUN.fullmatch(run):
        raise BadInput(f"'{run[:80]}' is not the id of a run: it has 32 hexadecimal digits.", item="run")
    return folder / f"{run}.log"


class Witness:
    """Listens on one address.

    :param folder: of the logs; one for each run.
    :param secrets: of the runs, by their ids.
    :param hosts: IP addresses from which a connection is accepted.
    :param address: IP address to listen on; one address of this host, not all of them.
    :param port: 0 chooses a free one, see :attr:`port`.
    :raises BadInput: if an address is not one.
    :raises CommandFailed: if it cannot listen there.
    """

    def __init__(self, folder: Path, secrets: t.Mapping[str, bytes], hosts: t.Iterable[str], address: str, port: int = 0) -> None:
        self._folder = folder
        self._secrets = dict(secrets)
        self._hosts = {_address(host) for host in hosts}
        own = _address(address)
        if own.is_unspecified:
            raise BadInput(f"{address} stands for all addresses of the witness: name the one that the hosts reach it at.", item="address")
        for run in self._secrets:
            log_path(folder, run)
        self._listener = socket.socket(socket.AF_INET6 if own.version == 6 else socket.AF_INET)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._listener.bind((address, port))
            self._listener.listen(64)
        except OSError as error:
            self._listener.close()
            raise CommandFailed(f"The witness cannot listen on {address} port {port}: {error.strerror}.", item=address) from None
        self.port: int = self._listener.getsockname()[1]
        self._stopping = threading.Event()
        self._active: set[str] = set()
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """The descriptor that it listens on, which a process that serves keeps open."""
        return self._listener.fileno()

    def close(self) -> None:
        """Listen no more in this process."""
        self._listener.close()

    def stop(self) -> None:
        """Have :meth:`serve` return; connections that are open end with their writers."""
        self._stopping.set()

    def serve(self) -> None:
        """Accept writers until :meth:`stop`."""
        with self._listener, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._stopping.is_set():
                if not selector.select(0.2):
                    continue
                connection, peer = self._listener.accept()
                if _address(peer[0]) not in self._hosts:
                    connection.close()
                    continue
                threading.Thread(target=self._attend, args=(connection,), daemon=True).start()

    def _attend(self, connection: socket.socket) -> None:
        # What is wrong with one connection ends that connection only.
        with connection, contextlib.suppress(StorageError, OSError):
            connection.settimeout(_GREETING_SECONDS)
            session, greeting = messages.accept(connection, self._secrets.get)
            run = greeting["run"]
            with self._claimed(run):
                log = LogFile(log_path(self._folder, run))
                try:
                    log.append([header_line(greeting)])
                    connection.sendall(messages.WELCOME)
                    connection.settimeout(_SILENCE_SECONDS)
                    _record(connection, session, log)
                finally:
                    log.close()

    @contextlib.contextmanager
    def _claimed(self, run: str) -> t.Iterator[None]:
        with self._lock:
            if run in self._active:
                raise Refused(f"A second writer connected for the run {run}.")
            self._active.add(run)
        try:
            yield
        finally:
            with self._lock:
                self._active.discard(run)


def _record(connection: socket.socket, session: messages.Session, log: LogFile) -> None:
    """Write down what a writer sends until it ends."""
    pending = b""
    ended = False
    try:
        while not ended:
            data = connection.recv(_MOST_AT_ONCE)
            if not data:
                break
            pending += data
            whole = len(pending) // messages.MESSAGE_BYTES * messages.MESSAGE_BYTES
            parts = [pending[start : start + messages.MESSAGE_BYTES] for start in range(0, whole, messages.MESSAGE_BYTES)]
            pending = pending[whole:]
            lines: list[str] = []
            try:
                for part in parts:
                    message = session.unpack(part)
                    ended = ended or message.kind == messages.ENDED
                    lines.append(line_of(message))
            finally:
                if lines:
                    log.append(lines)
    finally:
        if not ended:
            log.append([f"E {LOST}"])


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise BadInput(f"'{text}' is not an IP address.", item="address") from None
