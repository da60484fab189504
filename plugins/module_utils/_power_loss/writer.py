# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The writer: writes blocks, syncs each as requested, and only then reports it to the witness.

For each write in flight there is a process, which writes one block at a time; no two write the same place, so that the last
acknowledged write of a place is its newest one.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import socket
import struct
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, StorageError, abbreviated
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks, Record

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import Medium

#: Sequence, offset, and the time at which the sync had returned. Shorter than PIPE_BUF: it is never mixed with that of another lane (pipe(7)).
_DONE = struct.Struct("=QQQ")
_READ = 65536 // _DONE.size * _DONE.size
_MOST_MESSAGE = 1000


class Done(t.NamedTuple):
    """A write whose sync has returned. ``time`` in ns of the monotonic clock."""

    sequence: int
    offset: int
    time: int


class StopFlag:
    """Whether the load is to end, for all its processes."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 1)

    def set(self) -> None:
        self._memory[0] = 1

    def is_set(self) -> bool:
        return self._memory[0] != 0


class Lane:
    """Lane ``index`` of a load writes the places ``index``, ``index + depth``, and so on, with sequences of its own.

    :param deadline: of the monotonic clock.
    """

    def __init__(self, load: Load, index: int, stop: StopFlag, deadline: float) -> None:
        self._load = load
        self._index = index
        self._stop = stop
        self._deadline = deadline
        self._places = range(index, load.places, load.depth)
        self._done = 0
        self._random = random.Random()

    def next(self) -> Record | None:
        """The next write; ``None`` at the end of the load."""
        load, done = self._load, self._done
        sequence = done * load.depth + self._index + 1
        if self._stop.is_set() or time.monotonic() > self._deadline or (load.writes is not None and sequence > load.writes):
            return None
        if load.once and done >= len(self._places):
            return None
        place = self._places[done % len(self._places)] if load.order == "sequential" else self._random.choice(self._places)
        self._done += 1
        return Record(sequence, place * load.block_size, time.monotonic_ns())

    def write(self, medium: Medium, blocks: Blocks, report: t.Callable[[Done], None]) -> None:
        """Write until the load ends.

        :param report: called with each write once its sync has returned.
        """
        buffers = blocks.buffers()
        while True:
            record = self.next()
            if record is None:
                return
            medium.write(record.offset // self._load.block_size, buffers.fill(record))
            report(Done(record.sequence, record.offset, time.monotonic_ns()))


class LaneProcesses:
    """All lanes of a load, each in a process of its own.

    :param lanes: of one load.
    :param close: what belongs to the starting process only.
    """

    def __init__(self, lanes: t.Sequence[Lane], medium: Medium, blocks: Blocks, stop: StopFlag, close: t.Callable[[], None]) -> None:
        self._stop = stop
        self._reader, writer = os.pipe()
        self._errors, errors = os.pipe()
        self._pids: list[int] = []
        try:
            for lane in lanes:
                pid = os.fork()
                if not pid:
                    _lane_main(lane, medium, blocks, writer, errors, (self._reader, self._errors), stop, close)
                self._pids.append(pid)
        except OSError as error:
            self.end()
            raise CommandFailed(f"A process of the writer cannot be started: {error.strerror}.") from None
        finally:
            os.close(writer)
            os.close(errors)

    def done(self) -> t.Iterator[list[Done]]:
        """What was written, as it comes, until all lanes have ended.

        :raises CommandFailed: if a write of one has failed.
        """
        rest = b""
        while True:
            data = os.read(self._reader, _READ)
            if not data:
                break
            data = rest + data
            whole = len(data) // _DONE.size * _DONE.size
            rest = data[whole:]
            yield list(map(Done._make, _DONE.iter_unpack(data[:whole])))
        message = os.read(self._errors, _MOST_MESSAGE).decode(errors="replace")
        if message:
            raise CommandFailed(message)
        if not all(self._wait()):
            raise CommandFailed("A process of the writer was killed.")

    def end(self) -> None:
        """End the lanes that still write, after their present writes."""
        self._stop.set()
        # A lane that reports then gets EPIPE and ends.
        for descriptor in (self._reader, self._errors):
            with contextlib.suppress(OSError):
                os.close(descriptor)
        self._wait()

    def _wait(self) -> list[bool]:
        """Whether each has ended by itself."""
        ended = []
        while self._pids:
            _pid, status = os.waitpid(self._pids.pop(), 0)
            ended.append(status == 0)
        return ended


def _lane_main(
    lane: Lane, medium: Medium, blocks: Blocks, writer: int, errors: int, foreign: t.Iterable[int], stop: StopFlag, close: t.Callable[[], None]
) -> t.NoReturn:
    """The process of a lane from beginning to end."""
    status = 1
    try:
        for descriptor in foreign:
            os.close(descriptor)
        close()
        lane.write(medium, blocks, lambda done: _report(writer, done))
        status = 0
    except BrokenPipeError:
        status = 0
    except (StorageError, OSError) as error:
        stop.set()
        message = error.message if isinstance(error, StorageError) else failed_write(error).message
        os.write(errors, message.encode()[:_MOST_MESSAGE])
        status = 0
    finally:
        os._exit(status)


def _report(writer: int, done: Done) -> None:
    os.write(writer, _DONE.pack(*done))


def failed_write(error: OSError) -> CommandFailed:
    return CommandFailed(f"A write of the power-loss test failed: {error.strerror}.")


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
