# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O that fio has recorded (``write_iolog``), read, checked, and written anew for the one target of a cell.

fio opens and writes whatever files a log names, at whatever offsets. So fio never gets the log of the user: it gets one that is written
here from the checked I/Os, all of them on the target of the cell. ``replay_redirect`` alone would not be enough: fio 2 ignores it in such
a log. The SHA-256 of the log, without the path of the target, is its file name, so that it is part of the job, whether the log is the value of
an option or a file (``supplied_logs.py``).

Source: fio's HOWTO (Trace file format) and ``iolog.c`` of 3.33. A line is ``[TIME] FILE ACTION [OFFSET LENGTH]``; version 3 begins
with a time in microseconds, of which fio waits for the difference to the line before, unless that one is 0; lines that open a file have one too.
In version 2 the time of ``wait`` is in milliseconds since fio started, and not as the HOWTO describes it (github.com/axboe/fio, issue 756).
"""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import itertools
import re
import typing as t
import zlib
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size, parse_size

#: The option that has the log, and those by which the collection changes its I/Os. fio gets only the first.
LOG, SCALE, ALIGN, SKIP, NO_STALL, TIME_SCALE = ("read_iolog", "replay_scale", "replay_align", "replay_skip", "replay_no_stall", "replay_time_scale")
OPTIONS = frozenset({LOG, SCALE, ALIGN, SKIP, NO_STALL, TIME_SCALE})
#: What else a section that replays may have: nothing that adds I/Os, repeats them, moves them or checks their contents.
BESIDE = frozenset(
    {
        *("ioengine", "iodepth", "direct", "buffered", "runtime", "invalidate", "thread", "nice", "prio", "prioclass", "cpus_allowed"),
        *("description", "group_reporting", "new_group", "stonewall", "wait_for_previous", "exitall", "exitall_on_error", "percentile_list"),
        *("clat_percentiles", "lat_percentiles", "slat_percentiles", "significant_figures", "gtod_reduce", "hipri", "fixedbufs", "registerfiles"),
    }
)
#: mmap maps what the options of a job request, sg sends commands past partitions, null does no I/O.
ENGINES_NOT_FOR_REPLAY = frozenset({"mmap", "sg", "null"})

#: Limits of a log: bytes of its text, its I/Os, and bytes of one of them, for which fio allocates a buffer for each place in the queue.
MOST_TEXT, MOST_IOS, LARGEST_IO = 16 * MIB, 100_000, 64 * MIB
_LARGEST_OFFSET = 2**63 - 1
#: Of a log that is a file: fio has each of its I/Os in memory while it runs.
MOST_FILE_TEXT, MOST_FILE_IOS = 1024 * MIB, 10_000_000
_OR_A_FILE = ", or name its file in a suite"
_BLOCK, _LONGEST_LINE, _AT_ONCE = 65536, 4096, 4096
#: Of all I/Os together, in seconds: 7 days.
_LONGEST = 7 * 86400
_PACKED = "packed:"
#: What a packed file begins with.
GZIP = b"\x1f\x8b"
#: What stands for the target in a log that is stored; fio reads names of at most 256 bytes.
_TARGET, _LONGEST_PATH = b"target", 255
_BLKTRACE = re.compile(b"\\A(?:\x07tae|eat\x07)|\xef\xbf\xbdtae")
_HEADER = re.compile(rb"fio version ([23]) iolog\Z")
_FILE_ACTIONS = frozenset({b"add", b"open", b"close"})
_IO_ACTIONS = ("read", "write", "trim")
_SYNC_ACTIONS = ("sync", "datasync")
_MOVING = frozenset(map(str.encode, _IO_ACTIONS))
_ACTIONS = _MOVING.union(map(str.encode, _SYNC_ACTIONS))


@frozen
class Replay:
    """What a section replays.

    :param text: the log that is stored, and that fio gets with the path of its target (:meth:`on_target`); ``None`` if it is a file of the host.
    :param sha256: of that log, and ``size`` its bytes.
    :param directions: of its I/Os.
    :param end: the first byte behind all of its I/Os; syncs reach nowhere.
    :param ios: how many there are, without syncs.
    :param moved: bytes by direction.
    :param block_size: bytes of every I/O; ``None`` if they are not all of one size.
    :param seconds: from its first line to the last I/O; ``None`` if fio does not wait between them.
    """

    sha256: str
    size: int
    end: int
    ios: int
    moved: t.Mapping[str, int]
    block_size: int | None
    seconds: float | None
    text: str | None = None

    @property
    def directions(self) -> frozenset[str]:
        return frozenset(action for action, moved in self.moved.items() if moved)

    @property
    def file_name(self) -> str:
        """How the job file names it, in the folder of the run."""
        return f"{self.sha256}.iolog"

    @property
    def writes(self) -> bool:
        return bool(self.directions - {"read"})

    def to_dict(self, path: str) -> dict[str, t.Any]:
        """What stands for a log that is a file in a job.

        :param path: of the file on the controller.
        """
        return {_FILE: path, **{name: getattr(self, name) for name in _FACTS}}


_FILE, _FACTS = "file", ("sha256", "size", "end", "ios", "moved", "block_size", "seconds")


def on_target(lines: bytes, path: str) -> bytes:
    """Whole lines of a log as fio gets them.

    :param path: of the target, as the job file names it.
    :raises BadInput: if a line of a log cannot carry it.
    """
    if len(path.encode()) > _LONGEST_PATH or path.split() != [path]:
        raise BadInput(f"The path {path!r} contains blanks or is too long for a log of I/O ({LOG}).", item=path)
    # Beside it a line has numbers and an action.
    return lines.replace(_TARGET, path.encode())


def read_replay(options: t.Mapping[str, t.Any], name: str) -> Replay:
    """The log of a section, with the options that change it.

    :param options: those of the section as a user writes them; ``read_iolog`` is the content of the log, or what was found in a file (:meth:`Replay.to_dict`).
    :param name: of the cell.
    :raises BadInput: naming the option or the line, and what is wrong.
    """
    if isinstance(options[LOG], dict):
        return _found_before(options[LOG], name)
    stream = LogStream(options, name, MOST_IOS)
    text = b"".join(stream.changed(iter(_unpacked(options[LOG], name).encode("utf-8", "replace").split(b"\n"))))
    return replace(stream.replay(), text=text.decode())


class LogStream:
    """A log on its way to fio, line by line: checked, changed as the options of its section request, and counted.

    fio divides an offset by ``replay_scale`` and rounds it down (``iolog.c``).

    :raises BadInput: for the options.
    """

    def __init__(self, options: t.Mapping[str, t.Any], name: str, most: int) -> None:
        self.name, self.most = name, most
        skipped = [word.strip() for word in str(options.get(SKIP) or "").split(",") if word.strip()]
        unknown = [word for word in skipped if word not in (*_IO_ACTIONS, "sync")]
        if unknown:
            raise _bad(name, SKIP, f"it has {ascii(unknown[0])[:40]}: supported are {', '.join((*_IO_ACTIONS, 'sync'))}")
        self._skipped = {word.encode() for word in (*skipped, *(_SYNC_ACTIONS if "sync" in skipped else ()))}
        self._scale = _whole(options.get(SCALE, 1), SCALE, name, 1, 2**31 - 1)
        self._align = parse_size(str(options.get(ALIGN) or 1), item=name, option=ALIGN)
        if self._align < 1 or self._align & (self._align - 1) or self._align > LARGEST_IO:
            raise _bad(name, ALIGN, f"it must be a power of two from 1 to {LARGEST_IO}")
        self._percent = None if _yes(options.get(NO_STALL), NO_STALL, name) else _whole(options.get(TIME_SCALE, 100), TIME_SCALE, name, 1, 10_000)
        self._hash = hashlib.sha256()
        self._size = self._end = self._ios = self._last = 0
        self._moved = dict.fromkeys(map(str.encode, _IO_ACTIONS), 0)
        self._lengths: set[int] = set()
        self._timed = False

    def changed(self, lines: t.Iterator[bytes]) -> t.Iterator[bytes]:
        """Some lines of the log at a time, of version 3, or of version 2, which every fio reads, if it has no times.

        :raises BadInput: naming the line and what is wrong with it.
        """
        found = self._changed(lines)
        for piece in iter(lambda: b"".join(itertools.islice(found, _AT_ONCE)), b""):
            self._hash.update(piece)
            self._size += len(piece)
            yield piece

    def replay(self) -> Replay:
        """What is in the log, once all of its lines were read; without its text."""
        return Replay(
            sha256=self._hash.hexdigest(),
            size=self._size,
            end=self._end,
            ios=self._ios,
            moved={action.decode(): moved for action, moved in self._moved.items()},
            block_size=next(iter(self._lengths)) if len(self._lengths) == 1 else None,
            seconds=(self._last - 1) / 1e6 if self._timed else None,
        )

    def _changed(self, lines: t.Iterator[bytes]) -> t.Iterator[bytes]:
        first = next(lines, b"")
        header = _HEADER.match(first.strip())
        if header is None:
            raise _bad(self.name, LOG, _why_no_log(first))
        has_times = header.group(1) == b"3"
        self._timed = has_times and self._percent is not None
        prefix = b"1 " if self._timed else b""
        yield b"fio version %d iolog\n%b%b add\n%b%b open\n" % (3 if self._timed else 2, prefix, _TARGET, prefix, _TARGET)
        for moment, action, offset, length in self._checked(lines, has_times):
            self._last = moment
            if length:
                offset = offset // self._scale // self._align * self._align
                self._ios += 1
                self._end = max(self._end, offset + length)
                self._moved[action] += length
                if len(self._lengths) < 2:
                    self._lengths.add(length)
            yield b"%d %b %b %d %d\n" % (moment, _TARGET, action, offset, length) if self._timed else b"%b %b %d %d\n" % (_TARGET, action, offset, length)
        if not self._ios:
            raise _bad(self.name, LOG, f"the log has no I/O{' that is left' if self._skipped else ''}: it needs at least one read, write or trim")
        yield b"%d %b close\n" % (self._last, _TARGET) if self._timed else b"%b close\n" % _TARGET

    def _checked(self, lines: t.Iterator[bytes], has_times: bool) -> t.Iterator[tuple[int, bytes, int, int]]:
        """Time in microseconds, which begins at 1 and never goes back: fio does not wait after a line whose time is 0; action, offset, length."""
        file, began, latest, count = None, None, 0, 0
        for number, line in enumerate(lines, start=2):
            words = line.split()
            if not words:
                continue
            one = _line(words, has_times, f"{self.name}: line {number}")
            if file is None:
                file, began = one[1], one[0]
            elif file != one[1]:
                what = "of another file than those before: a section has one target, so keep the lines of one file only"
                raise _bad(self.name, LOG, f"line {number} of the log is {what}")
            if not one[2]:
                continue
            count += 1
            if count > self.most:
                raise _bad(self.name, LOG, f"the log has more than {self.most} I/Os: replay a part of it{_OR_A_FILE if self.most == MOST_IOS else ''}")
            if one[2] in self._skipped:
                continue
            latest = max(latest, one[0] - began)
            moment = 1 + latest * 100 // (self._percent or 100)
            if self._timed and moment > _LONGEST * 1_000_000:
                raise BadInput(f"{LOG}: the I/Os of the log take more than 7 days: set {NO_STALL}, or {TIME_SCALE} above {self._percent}.", option=LOG)
            yield moment, one[2], one[3], one[4]


def lines_of(file: t.BinaryIO, name: str) -> t.Iterator[bytes]:
    """The lines of a log that may be of any size.

    :raises BadInput: if it is too large, or has a line that no log has.
    """
    rest, size, number = b"", 0, 0
    for block in iter(lambda: file.read(_BLOCK), b""):
        size += len(block)
        if size > MOST_FILE_TEXT:
            raise _bad(name, LOG, f"the log is larger than {format_size(MOST_FILE_TEXT)}: replay a part of it")
        *lines, rest = (rest + block).split(b"\n")
        number += len(lines)
        if len(rest) > _LONGEST_LINE:
            raise _bad(name, LOG, f"line {number + 1} of the log is longer than {_LONGEST_LINE} bytes")
        yield from lines
    yield rest


def changed_file(path: str, stream: LogStream) -> t.Iterator[bytes]:
    """What :meth:`LogStream.changed` makes of a log that is a file, packed by gzip or not; never all of it is in memory.

    :raises BadInput: also if it cannot be read, or was cut off.
    """
    try:
        with open(path, "rb") as raw:
            file = gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == GZIP else raw
            yield from stream.changed(lines_of(t.cast(t.BinaryIO, file), stream.name))
    except (OSError, EOFError, zlib.error) as error:
        raise _bad(stream.name, LOG, f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def sections_with_log(job: t.Any) -> list[dict[str, t.Any]]:
    """Every part of a job that has a log."""
    found: list[dict[str, t.Any]] = []
    with_logs(job, found.append)
    return found


def with_logs(job: t.Any, change: t.Callable[[dict[str, t.Any]], t.Any]) -> t.Any:
    """A job with other values of its logs.

    :param change: gives the value for a section that has one.
    """
    if not isinstance(job, dict):
        return job
    changed = {**job, LOG: change(job)} if LOG in job else dict(job)
    if "global" in changed:
        changed["global"] = with_logs(changed["global"], change)
    if isinstance(changed.get("jobs"), list):
        changed["jobs"] = [with_logs(section, change) for section in changed["jobs"]]
    return changed


def packed(job: t.Any) -> t.Any:
    """A job whose logs take less room, for the orders and plans in which a cell is listed once for each repeat."""
    return with_logs(job, lambda section: _packed(section[LOG]))


def _packed(log: t.Any) -> t.Any:
    return _PACKED + base64.b64encode(zlib.compress(log.encode(), 9)).decode() if isinstance(log, str) and not log.startswith(_PACKED) else log


def _unpacked(given: t.Any, name: str) -> str:
    if not isinstance(given, str):
        raise _bad(name, LOG, _why_no_log(b""))
    text = given
    if given.startswith(_PACKED):
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(base64.b64decode(given[len(_PACKED) :], validate=True), MOST_TEXT + 1).decode()
        except (binascii.Error, zlib.error, UnicodeDecodeError):
            raise _bad(name, LOG, "the packed log is damaged") from None
    if len(text) > MOST_TEXT:
        raise _bad(name, LOG, f"the log is larger than {format_size(MOST_TEXT)}: replay a part of it")
    return text


def _found_before(given: dict[t.Any, t.Any], name: str) -> Replay:
    """What the controller found in a log that is a file; a host compares it with the file."""
    moved = given.get("moved")
    numbers = [given.get(fact) for fact in ("size", "end", "ios")] + [moved.get(action) if isinstance(moved, dict) else None for action in _IO_ACTIONS]
    numbers += [given[fact] for fact in ("block_size", "seconds") if given.get(fact) is not None]
    whole = all(isinstance(one, (int, float)) and not isinstance(one, bool) and 0 <= one <= _LARGEST_OFFSET for one in numbers)
    if set(given) != {_FILE, *_FACTS} or not whole or not re.match(r"[0-9a-f]{64}\Z", str(given["sha256"])):
        raise _bad(name, LOG, _why_no_log(b""))
    return Replay(**{fact: given[fact] for fact in _FACTS})


def _why_no_log(first: bytes) -> str:
    if _BLKTRACE.search(first[:64]):
        return "a binary trace of blktrace is not supported: record the I/O with fio's write_iolog, or convert the trace to its format"
    return (
        "it must be the content of a log that fio recorded (write_iolog) in format version 2 or 3, or in a suite the path of one on the controller: "
        "use \"{{ lookup('ansible.builtin.file', 'oltp.log') }}\" elsewhere"
    )


def _line(words: t.Sequence[bytes], timed: bool, where: str) -> tuple[int, bytes, bytes, int, int]:
    """Time, file, action, offset and length; without an action if the line only opens or closes the file."""
    time, rest = (words[0], words[1:]) if timed else (b"0", words)
    if not _is_number(time) or len(rest) not in (2, 4):
        form = "TIME FILE ACTION OFFSET LENGTH" if timed else "FILE ACTION OFFSET LENGTH"
        what = f"is not '{form}', or without offset and length for add, open and close."
    elif len(rest) == 2 and rest[1] in _FILE_ACTIONS:
        return int(time), rest[0], b"", 0, 0
    elif rest[1] == b"wait":
        what = "is a wait, whose time fio does not interpret as documented: record with fio 3.31 or later, or remove the line."
    elif len(rest) == 2 or rest[1] not in _ACTIONS:
        action = ascii(rest[1][:20].decode("utf-8", "replace"))
        what = f"has the action {action}: supported are {', '.join((*_IO_ACTIONS, *_SYNC_ACTIONS))}, add, open and close."
    elif not (_is_number(rest[2]) and _is_number(rest[3])):
        what = "has an offset or a length that is not a whole number of bytes."
    else:
        file, action, offset, length = rest[0], rest[1], int(rest[2]), int(rest[3])
        if action not in _MOVING:
            return int(time), file, action, 0, 0
        if 0 < length <= LARGEST_IO and offset + length <= _LARGEST_OFFSET:
            return int(time), file, action, offset, length
        what = f"has an offset of {offset} bytes, which is larger than any device."
        if not 0 < length <= LARGEST_IO:
            what = f"has a length of {length} bytes: it must be from 1 to {LARGEST_IO} ({format_size(LARGEST_IO)})."
    raise BadInput(f"{where} of the log in {LOG} {what}", option=LOG)


def _is_number(word: bytes) -> bool:
    return word.isdigit() and len(word) < 20


def _whole(value: t.Any, option: str, name: str, low: int, high: int) -> int:
    if isinstance(value, bool) or not str(value).isascii() or not str(value).isdigit() or not low <= int(str(value)[:20]) <= high:
        raise _bad(name, option, f"it must be a whole number from {low} to {high}")
    return int(value)


def _yes(value: t.Any, option: str, name: str) -> bool:
    if value is None or value is False or str(value) == "0":
        return False
    if value is True or str(value) == "1":
        return True
    raise _bad(name, option, "it must be true or false")


def _bad(name: str, option: str, what: str) -> BadInput:
    return BadInput(f"{name}: the option {option} is refused: {what}.", item=name, option=option)
