# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lanes of a load: each has places of its own, and writes one block at a time.

Each is a process: threads of one interpreter would wait for each other. What a lane has written and synced it sends through a pipe to the
process that started it, and ends when that is gone.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import mmap
import os
import random
import struct
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import Blocks, Record

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import Medium
    from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.writer import Load

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
