# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What fio wrote, from version 2.1.4 to 3.42, in one set of units: nanoseconds, bytes, I/Os, milliseconds of run time.

Sources: ``stat.c`` and ``HOWTO`` of the releases, and files that the releases wrote. A number that fio does not give, or gives
wrong, is ``None`` here, never 0; a direction in which nothing was done is absent. Lines around the JSON objects are told apart. Pure.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import re
import typing as t
from dataclasses import dataclass, replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import KIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import histogram

#: Objects in one output: dumps of ``--status-interval``, one a second for five hours.
_MOST_OBJECTS = 20_000

#: Lines around one object that are kept.
_MOST_LINES = 10_000

#: A string, or a word outside of strings.
_WORD = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"\[\]{},:]+')
_VALUE = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null")


def split(text: str) -> tuple[list[dict[str, t.Any]], list[str], bool]:
    """The JSON objects of a text, the lines around them, and whether one is broken off.

    fio writes errors and notes before, after and instead of its JSON; an object begins with a brace at the beginning of a line.

    :raises NotUnderstood: if the objects together exceed a limit of :data:`json_text.FIO`.
    """
    if len(text) > json_text.FIO.size:
        raise NotUnderstood(f"the output of fio is larger than {format_size(json_text.FIO.size)}")
    decoder: json.JSONDecoder | None = None
    objects: list[dict[str, t.Any]] = []
    between: list[str] = []
    position = values = 0
    truncated = False
    starts = list(itertools.islice(_objects_begin(text), _MOST_OBJECTS + 1))
    if len(starts) > _MOST_OBJECTS:
        raise NotUnderstood(f"the output of fio has more than {_MOST_OBJECTS:,} objects")
    for start, end in zip(starts, [*starts[1:], len(text)]):
        between.append(text[position:start])
        # fio indents what is inside an object, so it ends before the next one begins.
        part = text[start:end]
        values += json_text.check(part, json_text.FIO)
        if values > json_text.FIO.values:
            raise NotUnderstood(f"the output of fio has more than {json_text.FIO.values:,} values")
        if decoder is None:
            # Without hooks the parser is several times faster.
            decoder = json.JSONDecoder(**json_text.hooks(text))
        try:
            found, length = _decoded(decoder, part)
        except (ValueError, RecursionError):
            truncated = True
            position = len(text)
            break
        position = start + length
        objects.append(json_text.without_surrogates(part, found))
    between.append(text[position:])
    lines = [line.rstrip() for part in between for line in itertools.islice(io.StringIO(part), _MOST_LINES)]
    return objects, [line for line in lines if line], truncated


def _objects_begin(text: str) -> t.Iterator[int]:
    """Where a line begins with a brace."""
    place = 0 if text.startswith("{") else text.find("\n{") + 1 or -1
    while place >= 0:
        yield place
        place = text.find("\n{", place) + 1 or -1


def _decoded(decoder: json.JSONDecoder, part: str) -> tuple[t.Any, int]:
    """The object at the beginning of a text, and where it ends. A word in it that is no value of JSON is one that is not known: fio prints
    ``nan``, ``-nan`` and ``inf`` where it divides by 0.

    :raises ValueError: if it is broken in another way.
    """
    try:
        return decoder.raw_decode(part)
    except ValueError:
        end = part.find("\n}") + 2
        if end < 2:
            raise
        return decoder.decode(_WORD.sub(_known, part[:end])), end


def _known(word: t.Match[str]) -> str:
    text = word.group()
    return text if text.startswith('"') or _VALUE.fullmatch(text) else "null"


DIRECTIONS = ("read", "write", "trim", "mixed")

#: What fio's client mode adds up over hosts and over phases that did not overlap.
_ALL_CLIENTS = "All clients"

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?")

#: Counters have 64 bits, and nothing that is measured fills 63 of them.
_LARGEST = 2**63

#: Exceptions of this module where a value is of another type than in any output of fio.
_STRANGE = (AttributeError, TypeError, ValueError, KeyError, IndexError, ArithmeticError, RecursionError)

_OF_A_JOB = (
    "groupid",
    "elapsed",
    "job_start",
    "usr_cpu",
    "sys_cpu",
    "latency_depth",
)
_OF_A_DIRECTION = ("total_ios", "io_bytes", "bw_bytes", "bw", "iops", "runtime")
_OF_A_LATENCY = ("N", "min", "max", "mean", "stddev")


@dataclass(frozen=True, order=True)
class Version:
    """A release of fio; ``text`` is how it reports itself, for example ``fio-3.42-135-gd7e5``."""

    major: int
    minor: int
    patch: int = 0
    text: str = dataclasses.field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + (f".{self.patch}" if self.patch else "")


def parse_version(text: str) -> Version:
    """The version in ``fio --version`` or in the key ``fio version``.

    :raises NotUnderstood: if there is none.
    """
    match = _VERSION.search(text)
    if not match:
        raise NotUnderstood(f"'{text.strip()[:80]}' is not a version of fio.")
    return Version(int(match.group(1)), int(match.group(2)), int(match.group(3) or 0), text.strip()[:80])


def behaviour_class(version: Version) -> str:
    """Which results of two versions may be compared: until 3.40 libaio waits for a sync, from 3.41 it queues it (twice the IOPS)."""
    return "libaio_sync_queued" if version >= Version(3, 41) else "libaio_sync_blocking"


@frozen
class Latency:
    """One kind of latency, in ns. ``flags`` are what was dropped and why."""

    n: int | None = None
    min: float | None = None
    max: float | None = None
    mean: float | None = None
    stddev: float | None = None
    percentiles: t.Mapping[float, int] = field(default_factory=dict)
    bins: t.Mapping[int, int] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


@frozen
class Direction:
    """What one job did in one direction. ``runtime_ms`` is that of its longest thread, without the ramp."""

    total_ios: int | None
    io_bytes: int | None
    iops: float | None
    bw_bytes: int | None
    runtime_ms: int | None
    slat: Latency = field(default_factory=Latency)
    clat: Latency = field(default_factory=Latency)
    lat: Latency = field(default_factory=Latency)


@frozen
class Job:
    """One entry of the report: a thread, or a group of them under group_reporting.

    :param options: as fio echoes them, those of the global section below its own. Flags are missing before 3.39, and one of two
        equal keys is lost: what was really requested is in the job file that was sent.
    :param elapsed: seconds, with ramp and layout; ``None`` before 2.2.9.
    :param is_steady: whether fio's own steady state was attained; ``None`` if it was not asked for.
    :param host: in client mode the name that the client was given for the server, and its port.
    """

    name: str
    group: int | None
    error: int
    elapsed: int | None
    options: t.Mapping[str, str]
    directions: t.Mapping[str, Direction]
    sync: Latency | None = None
    is_steady: bool | None = None
    start_ms: int | None = None
    user_cpu: float | None = None
    system_cpu: float | None = None
    latency_depth: int | None = None
    host: str | None = None


@frozen
class Output:
    """Everything one run of fio wrote.

    :param messages: the lines around the JSON, in their order.
    :param objects: how many whole JSON objects there were; several are dumps of ``--status-interval``, the last one counts.
    :param truncated: the text ends, or breaks, inside an object.
    """

    version: Version | None
    jobs: tuple[Job, ...]
    messages: tuple[str, ...]
    objects: int
    truncated: bool
    timestamp_ms: int | None = None
    client_mode: bool = False


def parse(text: str, *, block_size: int | None = None) -> Output:
    """One output of fio in the formats json or json+, with whatever stands around it.

    :param block_size: bytes; serves versions before 2.1.14, which do not count their I/Os.
    :raises NotUnderstood: if a whole JSON object is not one of fio's. No object at all is no error: see ``objects``.
    """
    objects, messages, truncated = split(text)
    try:
        return _read(objects, messages, truncated, block_size)
    except _STRANGE as error:
        raise NotUnderstood(f"The JSON has a value of a type or size that fio does not write ({type(error).__name__}).") from None


def _read(objects: t.Sequence[dict[str, t.Any]], messages: t.Sequence[str], truncated: bool, block_size: int | None) -> Output:
    if not objects:
        return Output(None, (), tuple(messages), 0, truncated)
    last = objects[-1]
    version = parse_version(str(last.get("fio version", "")))
    client_mode = "client_stats" in last
    rows = last.get("client_stats" if client_mode else "jobs")
    if not isinstance(rows, list):
        raise NotUnderstood(f"The JSON of {version.text} has neither jobs nor client_stats.")
    reader = _Reader(version, last.get("global options") or {}, block_size, _counts_in_microseconds(version, objects))
    return Output(
        version=version,
        jobs=tuple(reader.job(row) for row in rows if row.get("jobname") != _ALL_CLIENTS),
        messages=tuple(messages),
        objects=len(objects),
        truncated=truncated,
        timestamp_ms=_number(last, "timestamp_ms"),
        client_mode=client_mode,
    )


def _counts_in_microseconds(version: Version, objects: t.Sequence[t.Mapping[str, t.Any]]) -> bool:
    """Whether the last object is a status dump of 2.1.x: the run time of a running job is in µs there, of a finished one in ms."""
    if version >= Version(2, 2) or len(objects) < 2:
        return False
    return _longest(objects[-1]) >= _longest(objects[-2])


def _longest(report: t.Mapping[str, t.Any]) -> int:
    return max((_number(job[name], "runtime") or 0 for job in report.get("jobs", ()) for name in DIRECTIONS if name in job), default=0)


def _number(row: t.Mapping[str, t.Any], name: str) -> t.Any:
    """``None`` for what is no number that fio can count to: a counter that it subtracted too much from is negative, or nearly 2^64.

    :raises TypeError: if the value is no number at all: this is not what fio writes.
    """
    value = row.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
        raise TypeError(name)
    return value if value is not None and 0 <= value < _LARGEST else None


def _with_numbers(row: t.Mapping[str, t.Any], names: t.Iterable[str]) -> dict[str, t.Any]:
    """A row without those of its numbers that are none: one of them says nothing about the others."""
    return {**row, **{name: _number(row, name) for name in names if name in row}}


class _Reader:
    """Reads the jobs of one report; what differs by version is decided here and nowhere else."""

    def __init__(self, version: Version, global_options: t.Any, block_size: int | None, microseconds: bool) -> None:
        self.version = version
        self.global_options = global_options
        self.block_size = block_size
        self.slowdown = 1000 if microseconds else 1

    def job(self, row: t.Mapping[str, t.Any]) -> Job:
        row = _with_numbers(row, _OF_A_JOB)
        options = {**self._globals_of(row), **(row.get("job options") or {})}
        elapsed = row.get("elapsed")
        directions = {name: self._direction(row[name], elapsed) for name in DIRECTIONS if _did_io(row.get(name))}
        steady = row.get("steadystate")
        return Job(
            name=str(row.get("jobname", "")),
            group=row.get("groupid"),
            error=int(row.get("error", 0)),
            elapsed=elapsed,
            options=options,
            directions=directions,
            sync=self._sync(row.get("sync"), options, elapsed),
            is_steady=steady.get("attained") == 1 if steady else None,
            start_ms=row.get("job_start") or None,
            user_cpu=row.get("usr_cpu"),
            system_cpu=row.get("sys_cpu"),
            latency_depth=row.get("latency_depth"),
            host=f"{row['hostname']}:{row.get('port')}" if "hostname" in row else None,
        )

    def _globals_of(self, row: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """One object, or since 3.39 in client mode a list with one object for each server."""
        if isinstance(self.global_options, dict):
            return self.global_options
        for one in self.global_options:
            if (one.get("hostname"), one.get("port")) == (row.get("hostname"), row.get("port")):
                return {key: value for key, value in one.items() if key not in ("hostname", "port")}
        return {}

    def _direction(self, row: t.Mapping[str, t.Any], elapsed: int | None) -> Direction:
        row = _with_numbers(row, _OF_A_DIRECTION)
        io_bytes = row.get("io_bytes")
        # The key says it: builds between 2.20 and 2.21 have bytes already, and with them a key for KiB.
        if io_bytes is not None and "io_kbytes" not in row and self.version < Version(2, 21):
            io_bytes *= KIB
        bw_bytes = row.get("bw_bytes")
        if bw_bytes is None and row.get("bw") is not None:
            bw_bytes = int(row["bw"]) * KIB * self.slowdown
        total_ios = row.get("total_ios")
        if total_ios is None and io_bytes is not None and self.block_size:
            total_ios = io_bytes // self.block_size
        runtime = row.get("runtime")
        iops = row.get("iops")
        # A rate that is not known is printed as 0, as is the time that it is of. A time that is no number says nothing about the rate.
        iops = float(iops) * self.slowdown if iops and runtime != 0 else None
        bw_bytes = bw_bytes if bw_bytes and runtime != 0 else None
        limit = _limit(elapsed, runtime)
        return Direction(
            total_ios=total_ios,
            io_bytes=io_bytes,
            iops=iops,
            bw_bytes=bw_bytes,
            runtime_ms=None if runtime is None else runtime // self.slowdown,
            slat=self._latency(row, "slat", total_ios, limit),
            clat=self._latency(row, "clat", total_ios, limit),
            lat=self._latency(row, "lat", total_ios, limit),
        )

    def _latency(self, row: t.Mapping[str, t.Any], name: str, total_ios: int | None, limit: float | None) -> Latency:
        """``X_ns`` since 3.0, ``X`` in µs before; ``null`` is treated as a missing key.

        Without ``N`` (before 3.18) the number of I/Os stands for it, unless fio measured nothing: then it prints 0 for everything, as
        for ``slat`` of engines that submit and complete in one call.
        """
        values, unit = (row[f"{name}_ns"] or {}, 1) if f"{name}_ns" in row else (row.get(name) or {}, 1000)
        values = _with_numbers(values, _OF_A_LATENCY)
        bins, percentiles = _bins(values.get("bins") or {}, unit), _percentiles(values.get("percentile") or {}, unit)
        n = values.get("N")
        if n is None:
            n = histogram.total(bins) or total_ios
            if not bins and not any(values.get(key) for key in ("min", "max", "mean", "stddev")) and not any(percentiles.values()):
                return Latency()
        if n == 0:
            return Latency(n=0)
        found = Latency(
            n=n,
            percentiles=percentiles,
            bins=bins,
            **{key: None if values.get(key) is None else float(values[key]) * unit for key in ("min", "max", "mean", "stddev")},
        )
        if limit is not None and found.max is not None and found.max > limit:
            # A garbage sample ruins everything but the percentiles below it.
            return replace(
                found,
                min=found.min if found.min is not None and found.min <= limit else None,
                max=None,
                mean=None,
                stddev=None,
                percentiles={percent: value for percent, value in found.percentiles.items() if value <= limit},
                bins={value: count for value, count in found.bins.items() if value <= limit},
                flags=("max_above_elapsed",),
            )
        return found

    def _sync(self, row: t.Mapping[str, t.Any] | None, options: t.Mapping[str, str], elapsed: int | None) -> Latency | None:
        """fsync and fdatasync. ``total_ios`` counts only fsync, so N or the bins come first."""
        if not row:
            return None
        found = self._latency(row, "lat", _number(row, "total_ios"), _limit(elapsed, None))
        if not found.n:
            return None
        if options.get("ioengine") == "libaio" and self.version < Version(3, 31):
            return Latency(n=found.n, flags=("libaio_sync_latency_wrong_before_3.31",))
        return found


def _did_io(row: t.Mapping[str, t.Any] | None) -> bool:
    return row is not None and any(row.get(name) for name in ("total_ios", "io_bytes"))


def _limit(elapsed: int | None, runtime_ms: int | None) -> float | None:
    """ns that no single I/O can have taken; ``elapsed`` is in whole seconds, rounded up."""
    if elapsed is not None:
        return (elapsed + 1) * 1e9
    return (runtime_ms + 1000) * 1e6 if runtime_ms is not None else None


def _bins(cells: t.Mapping[str, t.Any], unit: int) -> dict[int, int]:
    """None at all if one of them is no number: the others would be percentiles of other I/Os."""
    counts = cells.values()
    if None in counts or (counts and (min(counts) < 0 or max(counts) >= _LARGEST)):
        return {}
    # One of the three keys before 2.20 that are no bins.
    indexed = "FIO_IO_U_PLAT_BITS" in cells
    return histogram.from_indexed(cells, unit) if indexed else histogram.from_durations(cells, unit)


def _percentiles(values: t.Mapping[str, t.Any], unit: int) -> dict[float, int]:
    """2.x and 3.1 pad their list with keys ``0.00``; Python's parser has already made one of them."""
    return {float(key): histogram.duration(value) * unit for key in values if 0 < float(key) <= 100 and (value := _number(values, key)) is not None}
