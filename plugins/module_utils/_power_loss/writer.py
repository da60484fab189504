# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: writes blocks, syncs each as requested, and only then reports it to the witness.

For each write in flight there is a process, which writes one block at a time (:mod:`lanes`); no two write the same place, so that the last
acknowledged write of a place is its newest one.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import socket
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.lanes import Done, Lane, LaneProcesses, StopFlag, failed_write
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import Medium
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Record

_PROGRESS_SECONDS = 0.5


@frozen
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
        self._stop = StopFlag()
        self._written = 0

    def run(self) -> int:
        """Write until the load ends.

        :returns: how many blocks were written.
        :raises StorageError: if a write fails, or the witness is gone: from then on nothing could be proved.
        """
        load = self._load
        deadline = time.monotonic() + load.seconds
        lanes = [Lane(load, index, self._stop, deadline) for index in range(load.depth)]
        try:
            if load.bulk:
                self._bulk(lanes[0])
            else:
                # Also with one lane: it would wait while something is sent.
                self._together(lanes)
        except OSError as error:
            raise failed_write(error) from None
        self._send([messages.Message(messages.ENDED)])
        return self._written

    def stop(self) -> None:
        """Have :meth:`run` return after the writes that are under way."""
        self._stop.set()

    def _together(self, lanes: t.Sequence[Lane]) -> None:
        processes = LaneProcesses(lanes, self._medium, self._blocks, self._stop, self._connection.close)
        try:
            for several in processes.done():
                self._acknowledge(several)
        finally:
            processes.end()

    def _bulk(self, lane: Lane) -> None:
        load = self._load
        buffers = self._blocks.buffers()
        while True:
            written: list[Record] = []
            reported = 0.0
            while len(written) < load.places:
                record = lane.next()
                if record is None:
                    return
                self._medium.write(record.offset // load.block_size, buffers.fill(record))
                written.append(record)
                if time.monotonic() - reported > _PROGRESS_SECONDS:
                    reported = time.monotonic()
                    self._send([messages.Message(messages.PROGRESS)])
            self._medium.sync()
            now = time.monotonic_ns()
            self._acknowledge([Done(record.sequence, record.offset, now) for record in written])

    def _acknowledge(self, several: t.Sequence[Done]) -> None:
        self._written += len(several)
        self._send([messages.Message(messages.ACKNOWLEDGED, done.sequence, done.offset, self._load.block_size, done.time) for done in several])

    def _send(self, several: t.Sequence[messages.Message]) -> None:
        try:
            self._connection.sendall(b"".join([self._session.pack(message) for message in several]))
        except OSError as error:
            raise CommandFailed(f"The witness is gone ({error.strerror or error}): the run is ended, since nothing more could be proved.") from None


def connect(address: str, port: int, secret: bytes, greeting: t.Mapping[str, t.Any], patience: float = 10.0) -> tuple[socket.socket, messages.Session]:
    """Connect to a witness.

    :raises BadInput: if its address is not one.
    :raises CommandFailed: if it cannot be reached.
    :raises Refused: if it does not accept this writer.
    """
    try:
        connection = socket.create_connection((address, port), timeout=patience)
    except ValueError:
        raise BadInput(f"witness_address {abbreviated(address)} is neither an IP address nor the name of a host.", item="witness_address") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CommandFailed(f"The witness at {address} port {port} cannot be reached: {reason}. Check its address, and firewalls.", item=address) from None
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = messages.greet(connection, secret, greeting, patience)
        # A witness that takes nothing any more ends the run.
        connection.settimeout(60.0)
    except OSError as error:
        connection.close()
        raise CommandFailed(f"The witness at {address} port {port} ended the connection: {error.strerror or error}.", item=address) from None
    except BaseException:
        connection.close()
        raise
    return connection, session
