# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: writes blocks, syncs each as requested, and only then reports it to the witness.

Several threads write at once, each one block at a time; no two write the same place, so that the last acknowledged write of a place is
its newest one.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import mmap
import random
import socket
import threading
import time
import typing as t
from dataclasses import dataclass

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks, Record

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import Medium

_PROGRESS_SECONDS = 0.5


@dataclass(frozen=True)
class Load:
    """What is written.

    :param block_size: bytes.
    :param places: how many blocks the range has.
    :param order: ``random`` or ``sequential``; a sequential one begins again at its end.
    :param depth: blocks under way at once, 1 to 32.
    :param seconds: how long at most.
    :param writes: how many at most; ``None`` for no limit.
    :param bulk: write the whole range, sync once, and report all of it; over and over.
    :param once: a place is written at most once: the load ends with the range (``append``).
    """

    block_size: int
    places: int
    order: str = "random"
    depth: int = 1
    seconds: float = 3600.0
    writes: int | None = None
    bulk: bool = False
    once: bool = False

    def __post_init__(self) -> None:
        if self.order not in ("random", "sequential"):
            raise BadInput(f"'{self.order}' is not a supported order: use random or sequential.", item="order")
        if not 1 <= self.depth <= 32:
            raise BadInput("depth must be between 1 and 32.", item="depth")
        if self.places < 2 * self.depth:
            raise BadInput(
                f"The range has {self.places} blocks; a depth of {self.depth} needs at least {2 * self.depth}: give the target a larger size.", item="size"
            )
        if (self.bulk or self.once) and (self.order != "sequential" or self.depth != 1):
            raise BadInput("A bulk or appending load is sequential and has a depth of 1.", item="order")


class Writer:
    """One load on one medium.

    :param connection: to the witness, which has accepted this writer.
    """

    def __init__(self, medium: Medium, blocks: Blocks, load: Load, connection: socket.socket, session: messages.Session) -> None:
        self._medium = medium
        self._blocks = blocks
        self._load = load
        self._connection = connection
        self._session = session
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        self._sequence = 0
        self._under_way: set[int] = set()
        self._random = random.Random()
        self._deadline = 0.0
        self._stopped = threading.Event()
        self._error: BaseException | None = None

    def run(self) -> int:
        """Write until the load ends.

        :returns: how many blocks were written.
        :raises StorageError: if a write fails, or the witness is gone: from then on nothing could be proved.
        """
        self._deadline = time.monotonic() + self._load.seconds
        work = self._bulk if self._load.bulk else self._each
        threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for _thread in range(self._load.depth)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._error is not None:
            raise self._error
        self._send(messages.Message(messages.ENDED))
        return self._sequence

    def stop(self) -> None:
        """Have :meth:`run` return after the writes that are under way."""
        self._stopped.set()

    def _guarded(self, work: t.Callable[[mmap.mmap], None]) -> None:
        try:
            with mmap.mmap(-1, self._load.block_size) as buffer:
                work(buffer)
        except StorageError as error:
            self._error = error
        except OSError as error:
            self._error = CommandFailed(f"A write of the power-loss test failed: {error.strerror}.")
        except BaseException as error:  # noqa: BLE001 - raised again where the threads are waited for
            self._error = error
        finally:
            self._stopped.set()

    def _each(self, buffer: mmap.mmap) -> None:
        while True:
            record = self._begin()
            if record is None:
                return
            self._write(record, buffer)
            self._acknowledge(record)
            with self._lock:
                self._under_way.discard(record.offset)

    def _bulk(self, buffer: mmap.mmap) -> None:
        while True:
            written: list[Record] = []
            reported = 0.0
            while len(written) < self._load.places:
                record = self._begin()
                if record is None:
                    return
                self._write(record, buffer)
                self._under_way.discard(record.offset)
                written.append(record)
                if time.monotonic() - reported > _PROGRESS_SECONDS:
                    reported = time.monotonic()
                    self._send(messages.Message(messages.PROGRESS))
            self._medium.sync()
            for record in written:
                self._acknowledge(record)

    def _begin(self) -> Record | None:
        """The next write; ``None`` at the end of the load."""
        load = self._load
        with self._lock:
            done = self._sequence
            if self._stopped.is_set() or time.monotonic() > self._deadline or (load.writes is not None and done >= load.writes):
                return None
            if load.once and done >= load.places:
                return None
            place = done % load.places if load.order == "sequential" else self._random.randrange(load.places)
            # Of a sequential range the next free place: one that is under way for long must not be overtaken.
            while place * load.block_size in self._under_way:
                place = (place + 1) % load.places if load.order == "sequential" else self._random.randrange(load.places)
            self._sequence += 1
            self._under_way.add(place * load.block_size)
            return Record(self._sequence, place * load.block_size, time.monotonic_ns())

    def _write(self, record: Record, buffer: mmap.mmap) -> None:
        buffer[:] = self._blocks.make(record)
        self._medium.write(record.offset // self._load.block_size, buffer)

    def _acknowledge(self, record: Record) -> None:
        self._send(messages.Message(messages.ACKNOWLEDGED, record.sequence, record.offset, self._load.block_size, time.monotonic_ns()))

    def _send(self, message: messages.Message) -> None:
        # The codes are numbered: they are made in the order in which they are sent.
        with self._sending:
            try:
                self._connection.sendall(self._session.pack(message))
            except OSError as error:
                raise CommandFailed(f"The witness is gone ({error.strerror or error}): the run is ended, since nothing more could be proved.") from None


def connect(address: str, port: int, secret: bytes, greeting: t.Mapping[str, t.Any], patience: float = 10.0) -> tuple[socket.socket, messages.Session]:
    """Connect to a witness.

    :raises CommandFailed: if it cannot be reached.
    :raises Refused: if it does not accept this writer.
    """
    try:
        connection = socket.create_connection((address, port), timeout=patience)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandFailed(f"The witness at {address} port {port} cannot be reached: {reason}. Check its address, and firewalls.", item=address) from None
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = messages.greet(connection, secret, greeting)
        # A witness that takes nothing any more ends the run.
        connection.settimeout(60.0)
    except OSError as error:
        connection.close()
        raise CommandFailed(f"The witness at {address} port {port} ended the connection: {error.strerror or error}.", item=address) from None
    except BaseException:
        connection.close()
        raise
    return connection, session
