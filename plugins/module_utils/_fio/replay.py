# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O that fio has recorded (``write_iolog``), read, checked, and written anew for the one target of a cell.

fio opens and writes whatever files a log names, at whatever offsets. So fio never gets the log of the user: it gets one that is written
here from the checked I/Os, all of them on the target of the cell. ``replay_redirect`` alone would not be enough: fio 2 ignores it in such
a log. The SHA-256 of the log, without the path of the target, is its file name, so that it is part of the job.

Source: fio's HOWTO (Trace file format) and ``iolog.c`` of 3.33. A line is ``[TIME] FILE ACTION [OFFSET LENGTH]``; version 3 begins
with a time in microseconds, of which fio waits for the difference to the line before, unless that one is 0. In version 2 the time of
``wait`` is in milliseconds since fio started, and not as the HOWTO describes it (github.com/axboe/fio, issue 756).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import typing as t
import zlib

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size, parse_size

if t.TYPE_CHECKING:
    pass

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
#: Of all I/Os together, in seconds: 7 days.
_LONGEST = 7 * 86400
_PACKED = "packed:"
#: What stands for the target in a log that is stored; fio reads names of at most 256 bytes.
_TARGET, _LONGEST_PATH = "target", 255
_BLKTRACE = re.compile("\\A(?:\x07tae|eat\x07)|\ufffdtae")
_HEADER = re.compile(r"fio version ([0-9]+) iolog\Z")
_FILE_ACTIONS = frozenset({"add", "open", "close"})
_IO_ACTIONS = ("read", "write", "trim")
_SYNC_ACTIONS = ("sync", "datasync")
_NUMBER = re.compile(r"[0-9]{1,19}\Z")


class LoggedIo(t.NamedTuple):
    """One line of a log. ``time`` in microseconds, 0 in a log without times; offset and length in bytes."""

    time: int
    action: str
    offset: int
    length: int


@frozen
class Replay:
    """What a section replays.

    :param text: the log that is stored, and that fio gets with the path of its target (:meth:`on_target`).
    :param directions: of its I/Os.
    :param end: the first byte behind all of its I/Os; syncs reach nowhere.
    :param ios: how many there are, without syncs.
    :param moved: bytes by direction.
    :param block_size: bytes of every I/O; ``None`` if they are not all of one size.
    :param seconds: from the first I/O to the last; ``None`` if fio does not wait between them.
    """

    text: str
    directions: frozenset[str]
    end: int
    ios: int
    moved: t.Mapping[str, int]
    block_size: int | None
    seconds: float | None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def file_name(self) -> str:
        """How the job file names it, in the folder of the run."""
        return f"{self.sha256}.iolog"

    def on_target(self, path: str) -> str:
        """The log that fio gets.

        :param path: of the target, as the job file names it.
        :raises BadInput: if a line of a log cannot carry it.
        """
        if len(path.encode()) > _LONGEST_PATH or path.split() != [path]:
            raise BadInput(f"The path {path!r} contains blanks or is too long for a log of I/O ({LOG}).", item=path)
        header, *lines = self.text.splitlines()
        return "\n".join([header, *(line.replace(_TARGET, path, 1) for line in lines)]) + "\n"

    @property
    def writes(self) -> bool:
        return bool(self.directions - {"read"})


def read_replay(options: t.Mapping[str, t.Any], name: str) -> Replay:
    """The log of a section, with the options that change it.

    :param options: those of the section as a user writes them; ``read_iolog`` is the content of the log.
    :param name: of the cell.
    :raises BadInput: naming the option or the line, and what is wrong.
    """
    ios, timed = parse_log(_unpacked(options[LOG], name), name)
    ios = _changed(ios, options, name)
    no_stall = _yes(options.get(NO_STALL), NO_STALL, name)
    ios = _timed(ios, 100 if no_stall else _whole(options.get(TIME_SCALE, 100), TIME_SCALE, name, 1, 10_000)) if timed and not no_stall else _untimed(ios)
    data = [one for one in ios if one.action in _IO_ACTIONS]
    if not data:
        raise _bad(name, LOG, f"the log has no I/O{' that is left' if options.get(SKIP) else ''}: it needs at least one read, write or trim")
    sizes = {one.length for one in data}
    return Replay(
        text=_log_text(ios, timed=timed and not no_stall),
        directions=frozenset(one.action for one in data),
        end=max(one.offset + one.length for one in data),
        ios=len(data),
        moved={action: sum(one.length for one in data if one.action == action) for action in _IO_ACTIONS},
        block_size=sizes.pop() if len(sizes) == 1 else None,
        seconds=(ios[-1].time - ios[0].time) / 1e6 if timed and not no_stall else None,
    )


def parse_log(text: str, name: str) -> tuple[list[LoggedIo], bool]:
    """The I/Os of a log, and whether it has times. Pure.

    :raises BadInput: naming the line and what is wrong with it.
    """
    lines = text.splitlines()
    header = _HEADER.match(lines[0].strip()) if lines else None
    if header is None or header.group(1) not in ("2", "3"):
        raise _bad(name, LOG, _why_no_log(text))
    timed = header.group(1) == "3"
    found: list[LoggedIo] = []
    files: dict[str, None] = {}
    for number, line in enumerate(lines[1:], start=2):
        words = line.split()
        if not words:
            continue
        one = _line(words, timed, f"{name}: line {number} of the log in {LOG}")
        files[words[1 if timed else 0]] = None
        if len(files) > 1:
            raise _bad(name, LOG, f"line {number} of the log is of another file than those before: a cell has one target, so keep the lines of one file only")
        if one is not None:
            found.append(one)
        if len(found) > MOST_IOS:
            raise _bad(name, LOG, f"the log has more than {MOST_IOS} I/Os: replay a part of it")
    return found, timed


def packed(job: t.Any) -> t.Any:
    """A job whose logs take less room, for the orders and plans in which a cell is listed once for each repeat."""
    if not isinstance(job, dict):
        return job
    packed_job = dict(job)
    if isinstance(packed_job.get(LOG), str) and not packed_job[LOG].startswith(_PACKED):
        packed_job[LOG] = _PACKED + base64.b64encode(zlib.compress(packed_job[LOG].encode(), 9)).decode()
    if "global" in packed_job:
        packed_job["global"] = packed(packed_job["global"])
    if isinstance(packed_job.get("jobs"), list):
        packed_job["jobs"] = [packed(section) for section in packed_job["jobs"]]
    return packed_job


def _unpacked(given: t.Any, name: str) -> str:
    if not isinstance(given, str):
        raise _bad(name, LOG, f"{_why_no_log('')}")
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


def _why_no_log(text: str) -> str:
    if _BLKTRACE.search(text[:64]):
        return "a binary trace of blktrace is not supported: record the I/O with fio's write_iolog, or convert the trace to its format"
    return (
        "it must be the content of a log that fio recorded (write_iolog) in format version 2 or 3, and not its path: "
        "use \"{{ lookup('ansible.builtin.file', 'oltp.log') }}\""
    )


def _line(words: t.Sequence[str], timed: bool, where: str) -> LoggedIo | None:
    """One line; ``None`` if it only opens or closes the file."""
    time, rest = (words[0], words[1:]) if timed else ("0", words)
    if not _NUMBER.match(time) or len(rest) not in (2, 4):
        form = "TIME FILE ACTION OFFSET LENGTH" if timed else "FILE ACTION OFFSET LENGTH"
        raise BadInput(f"{where} is not '{form}', or without offset and length for add, open and close.", option=LOG)
    action = rest[1]
    if len(rest) == 2 and action in _FILE_ACTIONS:
        return None
    if action == "wait":
        raise BadInput(f"{where} is a wait, whose time fio does not interpret as documented: record with fio 3.31 or later, or remove the line.", option=LOG)
    if len(rest) == 2 or action not in (*_IO_ACTIONS, *_SYNC_ACTIONS):
        raise BadInput(f"{where} has the action {action[:20]!a}: supported are {', '.join((*_IO_ACTIONS, *_SYNC_ACTIONS))}, add, open and close.", option=LOG)
    if not all(_NUMBER.match(number) for number in rest[2:]):
        raise BadInput(f"{where} has an offset or a length that is not a whole number of bytes.", option=LOG)
    offset, length = map(int, rest[2:])
    if action in _SYNC_ACTIONS:
        return LoggedIo(int(time), action, 0, 0)
    if not 0 < length <= LARGEST_IO:
        raise BadInput(f"{where} has a length of {length} bytes: it must be from 1 to {LARGEST_IO} ({format_size(LARGEST_IO)}).", option=LOG)
    if offset + length > _LARGEST_OFFSET:
        raise BadInput(f"{where} has an offset of {offset} bytes, which is larger than any device.", option=LOG)
    return LoggedIo(int(time), action, offset, length)


def _changed(ios: t.Iterable[LoggedIo], options: t.Mapping[str, t.Any], name: str) -> list[LoggedIo]:
    """As ``replay_skip``, ``replay_scale`` and ``replay_align`` request it: fio divides an offset and rounds it down (``iolog.c``)."""
    skipped = [word.strip() for word in str(options.get(SKIP) or "").split(",") if word.strip()]
    unknown = [word for word in skipped if word not in (*_IO_ACTIONS, "sync")]
    if unknown:
        raise _bad(name, SKIP, f"it has {ascii(unknown[0])[:40]}: supported are {', '.join((*_IO_ACTIONS, 'sync'))}")
    left_out = {*skipped, *(_SYNC_ACTIONS if "sync" in skipped else ())}
    scale = _whole(options.get(SCALE, 1), SCALE, name, 1, 2**31 - 1)
    align = parse_size(str(options.get(ALIGN) or 1), item=name, option=ALIGN)
    if align < 1 or align & (align - 1) or align > LARGEST_IO:
        raise _bad(name, ALIGN, f"it must be a power of two from 1 to {LARGEST_IO}")
    return [one._replace(offset=one.offset // scale // align * align) for one in ios if one.action not in left_out]


def _timed(ios: t.Sequence[LoggedIo], percent: int) -> list[LoggedIo]:
    """With times that begin at 1 and never go back: fio does not wait after a line whose time is 0."""
    found: list[LoggedIo] = []
    first = latest = ios[0].time if ios else 0
    for one in ios:
        latest = max(latest, one.time)
        found.append(one._replace(time=1 + (latest - first) * 100 // percent))
    if found and found[-1].time > _LONGEST * 1_000_000:
        raise BadInput(f"{LOG}: the I/Os of the log take more than 7 days: set {NO_STALL}, or {TIME_SCALE} above {percent}.", option=LOG)
    return found


def _untimed(ios: t.Iterable[LoggedIo]) -> list[LoggedIo]:
    return [one._replace(time=0) for one in ios]


def _log_text(ios: t.Sequence[LoggedIo], *, timed: bool) -> str:
    """A log of version 3, or of version 2, which every fio reads, if it has no times."""
    rows = [(ios[0].time, "add"), (ios[0].time, "open"), *((one.time, f"{one.action} {one.offset} {one.length}") for one in ios), (ios[-1].time, "close")]
    lines = [f"{time} {_TARGET} {rest}" if timed else f"{_TARGET} {rest}" for time, rest in rows]
    return "\n".join([f"fio version {3 if timed else 2} iolog", *lines]) + "\n"


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
