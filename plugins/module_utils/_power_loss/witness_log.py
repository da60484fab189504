# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The log of a witness: one line for each event, with a checksum; only ever appended to.

``H`` is who writes, as JSON; ``A`` an acknowledged write; ``P`` writes under way; ``E`` an event by name. A line that was being written
when the witness ended has no end, and is the last of its session: it was not acknowledged. The last line of a complete log is the end of
its session: without it, the witness itself has ended unexpectedly, and what it did not record is not known.
"""

from __future__ import annotations

import json
import os
import typing as t
import zlib
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import require_path, sync_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss import messages

#: Events: the power is about to be cut; the writer ended by itself; its connection ended; the witness was stopped; the writer sent what its
#: load cannot have written.
CUT, ENDED, LOST, STOPPED, IMPOSSIBLE = "cut", "ended", "connection_lost", "stopped", "impossible"
_ENDS = (ENDED, LOST, STOPPED, IMPOSSIBLE)

#: Bytes of a log, for about ten million writes. Both the witness and the verifier hold to it.
LOG_LIMIT = 512 * MIB
#: Of a line: the header may be as long as a greeting.
_LINE_LIMIT = 128 * 1024
_HEADER = json_text.Limits(size=_LINE_LIMIT, depth=8, values=200, containers=20)


@frozen
class Acknowledged:
    """A write that the host reported as done. ``time`` in ns of the host's monotonic clock."""

    sequence: int
    offset: int
    length: int
    time: int


@frozen
class WitnessLog:
    """What a witness noted of one run, in its order.

    :param writer: who wrote, and where to.
    :param active_after_cut: whether the writer was heard of after the power was about to be cut.
    :param complete: whether the witness recorded the end of the session. If not, the witness was killed, and the log proves nothing.
    """

    writer: t.Mapping[str, t.Any]
    acknowledged: tuple[Acknowledged, ...] = ()
    events: tuple[str, ...] = field(default_factory=tuple)
    active_after_cut: bool = False
    complete: bool = True


class LogFile:
    """A log that is being written.

    :param path: of the file.
    """

    def __init__(self, path: Path) -> None:
        new = not path.exists()
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self._descriptor).st_size
        # Begins a new line where a witness was killed within one.
        self._start = "\n" if self.size and os.pread(self._descriptor, 1, self.size - 1) != b"\n" else ""
        if new:
            sync_folder(path.parent)

    def free(self) -> int:
        """Bytes that are free on its disk."""
        status = os.fstatvfs(self._descriptor)
        return status.f_bavail * status.f_frsize

    def append(self, lines: t.Iterable[str]) -> None:
        """Append lines as one write, and return once they are on the disk."""
        data = (self._start + "".join(map(checked_line, lines))).encode()
        self._start = ""
        while data:
            data = data[os.write(self._descriptor, data) :]
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        os.close(self._descriptor)


def checked_line(line: str) -> str:
    """A line as it is in the log, with its checksum."""
    return f"{line} {zlib.crc32(line.encode()):08x}\n"


def line_of(message: messages.Message) -> str:
    """The line for a message of a writer."""
    if message.kind == messages.ACKNOWLEDGED:
        return f"A {message.sequence} {message.offset} {message.length} {message.time}"
    return "P" if message.kind == messages.PROGRESS else f"E {ENDED}"


def header_line(greeting: t.Mapping[str, t.Any]) -> str:
    return f"H {json.dumps(greeting, sort_keys=True)}"


def note_event(path: Path, name: str) -> None:
    """Append an event to the log of a run, while the witness may be writing to it."""
    log = LogFile(path)
    try:
        log.append([f"E {name}"])
    finally:
        log.close()


def read_log(path: Path, run: str) -> WitnessLog:
    """Read a log.

    :param run: id of the run that it must be of.
    :raises BadInput: if it cannot be a path.
    :raises NotUnderstood: if there is none, or it is damaged elsewhere than where a witness was cut off.
    :raises Refused: if it is the log of another run.
    """
    require_path(path, "log")
    writer: dict[str, t.Any] | None = None
    acknowledged: list[Acknowledged] = []
    events: list[str] = []
    active = False
    complete = False
    incomplete = False
    for number, line in enumerate(_lines(path), 1):
        text = _checked(line)
        if text is None:
            incomplete = line != ""
            complete = complete and not incomplete
            continue
        kind, _blank, rest = text.partition(" ")
        if incomplete and kind != "H" and kind != "E":
            raise NotUnderstood(f"The log of the witness {path} is damaged at line {number - 1}: repeat the run.", item=str(path))
        incomplete = False
        complete = kind == "E" and rest in _ENDS
        try:
            if kind == "H":
                writer = _same_run(writer, json_text.loads(rest, _HEADER), run, path)
            elif kind == "A":
                acknowledged.append(Acknowledged(*(int(word) for word in rest.split())))
            elif kind == "E":
                events.append(rest)
        except (NotUnderstood, ValueError, TypeError):
            raise NotUnderstood(f"The log of the witness {path} is damaged at line {number}: repeat the run.", item=str(path)) from None
        active = active or (kind in "AP" and CUT in events)
    if writer is None:
        raise NotUnderstood(f"The log of the witness {path} names no writer: no writer of this run has reached the witness.", item=str(path))
    return WitnessLog(writer, tuple(acknowledged), tuple(events), active, complete)


def _lines(path: Path) -> t.Iterator[str]:
    """The lines of a log, one after the other."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace", newline="\n") as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > LOG_LIMIT + _LINE_LIMIT:
                raise NotUnderstood(f"The log of the witness {path} is larger than {format_size(LOG_LIMIT)}: repeat the run.", item=str(path))
            while True:
                line = stream.readline(_LINE_LIMIT)
                if not line:
                    return
                yield line[:-1] if line.endswith("\n") else line
    except OSError as error:
        raise NotUnderstood(f"The log of the witness {path} cannot be read: {error.strerror}.", item=str(path)) from None


def _checked(line: str) -> str | None:
    text, _blank, checksum = line.rpartition(" ")
    return text if text and checksum == f"{zlib.crc32(text.encode()):08x}" else None


def _same_run(before: dict[str, t.Any] | None, found: t.Any, run: str, path: Path) -> dict[str, t.Any]:
    if not isinstance(found, dict):
        raise NotUnderstood("The header is not an object.")
    if found.get("run") != run:
        raise Refused(f"The log of the witness {path} is of the run {str(found.get('run'))[:80]}, not of {run}.", item=str(path))
    if before is not None and before != found:
        raise Refused(f"The log of the witness {path} was written by two different writers: repeat the run.", item=str(path))
    return found
