# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The witness: keeps on another host what a writer reported as written, so that a power cut of the writer's host cannot take it along."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import re
import resource
import selectors
import socket
import threading
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import spec_of
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness_log import (
    IMPOSSIBLE,
    LOG_LIMIT,
    LOST,
    STOPPED,
    LogFile,
    checked_line,
    header_line,
    line_of,
)

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.spec import RunSpec

#: Writes of one lane in a second. Each is two system calls and a checksum in Python: writes to memory, without a sync, were measured at 136,000.
LANE_RATE = 500_000
#: Seconds for the writes that were under way at the end of the load.
_AFTER = 60.0
#: The share of the free space on the disk of the log that one run may use.
_SHARE = 4


class Allowance:
    """What one connection of the writer of a run may send: the writes that its load can have made by then, and no more than the log has room for.

    The host under test has the secret of its run, so without a limit it could fill the disk of the witness.

    :param logged: bytes that the log of the run has.
    :param free: bytes that are free on its disk.
    """

    def __init__(self, spec: RunSpec, logged: int, free: int, clock: t.Callable[[], float] = time.monotonic) -> None:
        self._spec = spec
        self._clock = clock
        self._began = clock()
        self._room = min(LOG_LIMIT - logged, free // _SHARE)
        self._acknowledged = 0
        self._progress = 0

    def use(self, size: int) -> None:
        """Use so many bytes of the log.

        :raises Refused: if there are not as many left.
        """
        self._room -= size
        if self._room < 0:
            raise Refused("The log of the run is full.")

    def take(self, message: messages.Message) -> None:
        """:raises Refused: if the load of the run cannot have sent the message by now."""
        seconds = min(self._clock() - self._began, self._spec.seconds + _AFTER) + 1
        possible = True
        if message.kind == messages.PROGRESS:
            # At most one for each write of a bulk load.
            self._progress += 1
            possible = self._progress <= self._most(seconds)
        elif message.kind == messages.ACKNOWLEDGED:
            self._acknowledged += 1
            possible = self._acknowledged <= self._most(seconds) and self._is_block(message)
        if not possible:
            raise Refused("The writer sent what its load cannot have written.")

    def _most(self, seconds: float) -> float:
        made = LANE_RATE * self._spec.depth * seconds
        return min(made, self._spec.places) if self._spec.layout == "append" else made

    def _is_block(self, message: messages.Message) -> bool:
        size = self._spec.block_size
        return message.length == size and message.offset % size == 0 and message.offset < self._spec.places * size and message.sequence > 0


_RUN = re.compile(r"[0-9a-f]{32}")
#: Many writers that begin at once on a busy host take long to answer.
_GREETING_SECONDS = 60.0
_MOST_AT_ONCE = 65536 // messages.MESSAGE_BYTES * messages.MESSAGE_BYTES
#: After a power cut no packet says that the connection has ended; its writer is not waited for longer than this.
_SILENCE_SECONDS = 600.0
#: Connections that have not shown the secret yet, of all addresses and of one. One host may have many writers.
_MOST_GREETINGS = 256
_MOST_GREETINGS_OF_ADDRESS = 64
#: Seconds until the next attempt after accept(2) has failed, so that a lack of descriptors or memory costs no processor time.
_PAUSE = 0.2
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
#: Errors of accept(2) that concern one connection, which is then gone.
_GONE = (
    *(errno.EAGAIN, errno.EINTR, errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENETDOWN, errno.ENOPROTOOPT, errno.EHOSTDOWN, errno.ENONET),
    *(errno.EHOSTUNREACH, errno.EOPNOTSUPP, errno.ENETUNREACH, errno.ETIMEDOUT),
)
#: Seconds for the connections to record their end when the witness is stopped.
_STOPPING_SECONDS = 10.0


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
            self._listener.listen(1024)
        except OSError as error:
            self._listener.close()
            raise CommandFailed(f"The witness cannot listen on {address} port {port}: {error.strerror}.", item=address) from None
        self.port: int = self._listener.getsockname()[1]
        # A connection that is gone before it is accepted must not stop the others (select(2), bugs).
        self._listener.setblocking(False)
        self._stopping = threading.Event()
        self._active: set[str] = set()
        self._greetings: dict[socket.socket, str] = {}
        self._sessions: dict[socket.socket, threading.Thread] = {}
        self._lock = threading.Lock()

    def fileno(self) -> int:
        """The descriptor that it listens on, which a process that serves keeps open."""
        return self._listener.fileno()

    def close(self) -> None:
        """Listen no more in this process."""
        self._listener.close()

    def stop(self) -> None:
        """Have :meth:`serve` return; it records the end of the connections that are open."""
        self._stopping.set()

    def serve(self) -> None:
        """Accept writers until :meth:`stop`."""
        most = _room_for_greetings()
        with self._listener, selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._stopping.is_set():
                if not selector.select(_PAUSE):
                    continue
                try:
                    connection, peer = self._listener.accept()
                except OSError as error:
                    # The writers that are connected go on, whatever it is.
                    if error.errno in _EXHAUSTED:
                        self._drop_greeting()
                    if error.errno not in _GONE:
                        self._stopping.wait(_PAUSE)
                    continue
                self._begin(connection, str(peer[0]), most)
        self._end_sessions()

    def _begin(self, connection: socket.socket, peer: str, most: int) -> None:
        if not self._is_accepted(peer):
            connection.close()
            return
        with self._lock:
            of_peer = sum(one == peer for one in self._greetings.values())
            full = len(self._greetings) >= most
        if of_peer >= min(_MOST_GREETINGS_OF_ADDRESS, most):
            self._drop_greeting(peer)
        elif full:
            self._drop_greeting()
        with self._lock:
            self._greetings[connection] = peer
        try:
            threading.Thread(target=self._attend, args=(connection,), daemon=True).start()
        except RuntimeError:
            # No more threads: see pthread_create(3), EAGAIN.
            self._forget(connection)
            connection.close()
            self._drop_greeting()
            self._stopping.wait(_PAUSE)

    def _is_accepted(self, peer: str) -> bool:
        try:
            return _address(peer) in self._hosts
        except BadInput:
            return False

    def _drop_greeting(self, peer: str | None = None) -> None:
        """End the oldest connection without the secret, of one address, or of the address that has the most of them: a flood ends its own."""
        with self._lock:
            peers = list(self._greetings.values())
            if peer is None and peers:
                peer = max(peers, key=peers.count)
            oldest = next((one for one, its_peer in self._greetings.items() if its_peer == peer), None)
            if oldest is None:
                return
            del self._greetings[oldest]
            # Its thread waits for it, and closes it.
            with contextlib.suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)

    def _forget(self, connection: socket.socket) -> bool:
        with self._lock:
            return self._greetings.pop(connection, None) is not None

    def _attend(self, connection: socket.socket) -> None:
        # What is wrong with one connection ends that connection only.
        with contextlib.closing(connection), contextlib.suppress(StorageError, OSError):
            try:
                session, greeting = messages.accept(connection, self._secrets.get, _GREETING_SECONDS)
            finally:
                was_dropped = not self._forget(connection)
            run = greeting["run"]
            spec = spec_of(greeting)
            with self._claimed(run, connection):
                if was_dropped or self._stopping.is_set():
                    return
                log = LogFile(log_path(self._folder, run))
                try:
                    allowance = Allowance(spec, log.size, log.free())
                    header = header_line(greeting)
                    allowance.use(len(checked_line(header)))
                    log.append([header])
                    self._record(connection, session, log, allowance)
                finally:
                    log.close()

    def _record(self, connection: socket.socket, session: messages.Session, log: LogFile, allowance: Allowance) -> None:
        end = LOST
        try:
            connection.sendall(messages.WELCOME)
            connection.settimeout(_SILENCE_SECONDS)
            end = _record(connection, session, log, allowance)
        finally:
            if end == LOST and self._stopping.is_set():
                end = STOPPED
            if end is not None:
                log.append([f"E {end}"])

    def _end_sessions(self) -> None:
        """A log whose session has no end would prove nothing."""
        with self._lock:
            threads = list(self._sessions.values())
            for connection in self._sessions:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        deadline = time.monotonic() + _STOPPING_SECONDS
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))

    @contextlib.contextmanager
    def _claimed(self, run: str, connection: socket.socket) -> t.Iterator[None]:
        with self._lock:
            if run in self._active:
                raise Refused(f"A second writer connected for the run {run}.")
            self._active.add(run)
            self._sessions[connection] = threading.current_thread()
        try:
            yield
        finally:
            with self._lock:
                self._active.discard(run)
                del self._sessions[connection]


def _room_for_greetings() -> int:
    """How many connections without the secret there may be: half of the descriptors are left for those with it, and for their logs."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MOST_GREETINGS
    return max(1, min(_MOST_GREETINGS, (soft - len(os.listdir("/proc/self/fd"))) // 2))


def _record(connection: socket.socket, session: messages.Session, log: LogFile, allowance: Allowance) -> str | None:
    """Write down what a writer sends until it ends.

    :returns: the end that is still to be recorded.
    """
    pending = b""
    while True:
        data = connection.recv(_MOST_AT_ONCE)
        if not data:
            return LOST
        pending += data
        whole = len(pending) // messages.MESSAGE_BYTES * messages.MESSAGE_BYTES
        parts = [pending[start : start + messages.MESSAGE_BYTES] for start in range(0, whole, messages.MESSAGE_BYTES)]
        pending = pending[whole:]
        lines: list[str] = []
        try:
            for part in parts:
                message = session.unpack(part)
                line = line_of(message)
                try:
                    allowance.take(message)
                    allowance.use(len(checked_line(line)))
                except Refused:
                    return IMPOSSIBLE
                lines.append(line)
                if message.kind == messages.ENDED:
                    return None
        finally:
            if lines:
                log.append(lines)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        raise BadInput(f"'{text}' is not an IP address.", item="address") from None
