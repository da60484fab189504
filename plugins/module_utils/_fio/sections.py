# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a job is: its sections with their options, and when each of them begins and ends. Pure.

When follows from how long each section takes: phases, waits and delays. Source: ``run_threads`` in ``backend.c`` of fio 3.33: sections start in
their order; ``stonewall`` holds back a section and all behind it until everything before has ended; ``wait_for`` holds back one section until
another has ended; ``startdelay`` counts from the start of the first one, not from the end of a phase.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
from dataclasses import replace

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job_options import DIRECTIONS, ENGINES, canonical
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.replay import Replay

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Direction, Output
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Job as ReportedJob

#: What fio itself calls reading; every other value of ``rw`` writes or trims.
_READING = frozenset({"read", "randread"})

#: Seconds from the start of the first section: begin and end.
Span = t.Tuple[float, float]

#: Spans are of one time if their starts and ends are no further apart than this share of the longest.
_AT_ONCE = 0.05

_TIME = re.compile(r"^([0-9]+(?:\.[0-9]+)?)(us|usec|ms|msec|s|m|h|d)?$")
_UNITS = {"s": "seconds", "us": "microseconds"}
#: Every option that is a time, and the unit of a number without one (FIO_OPT_STR_VAL_TIME, is_time and is_seconds in options.c).
_TIMES = {
    **dict.fromkeys(("runtime", "ramp_time", "startdelay", "thinktime_iotime", "steadystate_duration", "steadystate_ramp_time"), "s"),
    "steadystate_check_interval": "s",
    **dict.fromkeys(("thinktime", "thinktime_spin", "max_latency", "latency_target", "latency_window"), "us"),
}
_SECONDS = {"us": 1e-6, "usec": 1e-6, "ms": 1e-3, "msec": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


@frozen
class Section:
    """One job of the file. ``options`` are rendered texts, ``None`` for a flag; those of the global section are merged in.

    :param replay: the log whose I/Os it does; they replace those of ``rw`` and the other options.
    :param target: the name of the target that it runs on; ``None``: that of the cell.
    """

    name: str
    options: t.Mapping[str, str | None]
    replay: Replay | None = None
    target: str | None = None

    def value(self, *names: str) -> str | None:
        """The value of an option, however it is spelled."""
        canonical_names = {canonical(name) for name in names}
        return next((value for name, value in self.options.items() if canonical(name) in canonical_names), None)

    @property
    def directions(self) -> frozenset[str]:
        """In which directions I/O must have been done afterwards."""
        if self.replay is not None:
            return self.replay.directions
        mode = (self.value("rw") or "read").split(":")[0]
        directions = set(DIRECTIONS.get(mode, ()))
        if directions == {"read", "write"}:
            # A mix of 100 % leaves one direction without I/O.
            directions = {0.0: {"write"}, 1.0: {"read"}}.get(self.read_share, directions)
        unified = self.value("unified_rw_reporting")
        return frozenset({"mixed"}) if unified in ("1", "mixed") else frozenset(directions)

    @property
    def read_share(self) -> float:
        """The part of a mix that it reads; of ``rwmixread`` and ``rwmixwrite`` the last one counts."""
        name, value = self._last("rwmixread", "rwmixwrite")
        share = int(value or 50) / 100
        return 1 - share if name == "rwmixwrite" else share

    @property
    def discards(self) -> bool:
        """Whether it may discard."""
        return "trim" in ((self.value("rw") or "") if self.replay is None else self.replay.directions)

    @property
    def writes(self) -> bool:
        """Whether it may change its target; what fio would not call reading writes."""
        return (self.value("rw") or "read").split(":")[0] not in _READING if self.replay is None else self.replay.writes

    @property
    def is_buffered(self) -> bool:
        """Whether its I/O goes through the page cache. ``direct`` and ``buffered`` are one switch for fio: the last one counts."""
        name, value = self._last("direct", "buffered")
        return name is None or (value == "0") == (name == "direct")

    @property
    def has_size(self) -> bool:
        """Whether it sets how much of its target it uses: fio takes a size of 0 for all of it, as of 100 %."""
        return self.replay is None and (self.value("filesize") is not None or not re.match(r"(?:0*\D*|100%)\Z", self.value("size") or "0"))

    @property
    def in_flight(self) -> int:
        """I/Os at most that are under way at one time: an engine without a queue has one for each of its threads."""
        depth = int(self.value("iodepth") or 1) if ENGINES[self.value("ioengine") or "psync"].queues else 1
        return depth * int(self.value("numjobs") or 1)

    @property
    def asked_runtime(self) -> float | None:
        """Seconds that the measurement must last; ``None`` if it may end by itself earlier."""
        if not self.has_flag("time_based") or self.value("number_ios"):
            return None
        return self._seconds("runtime")

    @property
    def longest(self) -> float | None:
        """Seconds from its start after which it must have ended, with its ramp and the pause that it may be in; ``None`` if nothing limits it."""
        runtime = self._seconds("runtime")
        if runtime is None:
            return None
        # A pause that has begun is not cut short.
        return runtime + self.ramp + pause(self.value("thinktime"))

    @property
    def ramp(self) -> float:
        """Seconds before anything counts."""
        return self._seconds("ramp_time") or 0.0

    @property
    def delay(self) -> float:
        """Seconds from the start of the first section before which it does not begin."""
        return self._seconds("startdelay") or 0.0

    @property
    def is_alone(self) -> bool:
        """Whether it waits until everything before it has ended."""
        return self.has_flag("stonewall") or self.has_flag("wait_for_previous")

    def has_flag(self, name: str) -> bool:
        """Whether an option without a value is switched on."""
        return name in self.options and self.options[name] != "0"

    def _last(self, *names: str) -> tuple[str | None, str | None]:
        """Of options that set the same thing the one that fio reads last: those of the global section come first."""
        return next(((name, value) for name, value in reversed(list(self.options.items())) if name in names), (None, None))

    def _seconds(self, *names: str) -> float | None:
        return None if (value := self.value(*names)) is None else parse_time(end_of_range(value))


@frozen
class Job:
    """A checked job: its sections, and the lines of the user in their order.

    :param notes: what of the job is not sent, as sentences.
    :param threads_elsewhere: how many processes or threads of the cell run on other targets.
    """

    sections: tuple[Section, ...]
    global_lines: tuple[str, ...]
    section_lines: tuple[tuple[str, tuple[str, ...]], ...]
    has_percentiles: bool
    notes: tuple[str, ...] = ()
    threads_elsewhere: int = 0

    @property
    def target_names(self) -> tuple[str, ...]:
        """The other targets that its sections name."""
        return tuple(dict.fromkeys(section.target for section in self.sections if section.target is not None))

    def on(self, target: str | None) -> Job:
        """What of it runs on one of its targets; ``None``: that of the cell."""
        if not self.target_names:
            return self
        here = [number for number, section in enumerate(self.sections) if section.target == target]
        part = replace(self, sections=tuple(self.sections[number] for number in here), section_lines=tuple(self.section_lines[number] for number in here))
        return replace(part, threads_elsewhere=self.threads - part.threads)

    @property
    def writes(self) -> bool:
        """Whether any section may change its target."""
        return any(section.writes for section in self.sections)

    @property
    def replays(self) -> dict[str, Replay]:
        """The logs that its sections replay, by the file names in the job file."""
        return {section.replay.file_name: section.replay for section in self.sections if section.replay is not None}

    @property
    def longest(self) -> float | None:
        """Seconds until everything must have ended: phases, sections that wait for others and delays one after the other."""
        spans = spans_of(self.sections, lambda section: section.longest)
        return None if spans is None else covered(spans)[1]

    @property
    def block_size(self) -> int | None:
        """Bytes of every I/O; ``None`` if they are not all of one size. fio before 2.1.14 does not count its I/Os."""
        found: set[str] = set()
        for section in self.sections:
            if section.replay is not None:
                if section.replay.block_size is None:
                    return None
                found.add(str(section.replay.block_size))
                continue
            if any(section.value(name) is not None for name in ("bssplit", "bsrange")):
                return None
            found.add(section.value("bs") or "4k")
        try:
            return parse_size(found.pop()) if len(found) == 1 else None
        except BadInput:
            return None

    @property
    def is_buffered(self) -> bool:
        """Whether any section may be served from the page cache."""
        return any(section.is_buffered for section in self.sections)

    @property
    def reads_back_between_writes(self) -> bool:
        """Whether all that it reads is what it wrote a moment before (``verify_backlog``)."""
        backlog = any(section.value("verify_backlog") not in (None, "0") for section in self.sections)
        return backlog and not any("read" in section.directions for section in self.sections)

    @property
    def threads(self) -> int:
        """How many processes or threads measure."""
        return sum(int(section.value("numjobs") or 1) for section in self.sections)

    def in_flight(self, direction: str) -> int:
        """I/Os at most that are under way at one time in one direction; what is read back to be verified is of the sections that write."""
        active = [section for section in self.sections if direction in section.directions]
        return sum(section.in_flight for section in active or self.sections)

    @property
    def engines(self) -> tuple[str, ...]:
        return tuple(sorted({section.value("ioengine") or "psync" for section in self.sections}))

    @property
    def engines_past_the_block_layer(self) -> tuple[str, ...]:
        """Engines whose commands reach the whole disk, wherever the partition or volume that is opened begins and ends."""
        return tuple(engine for engine in self.engines if ENGINES[engine].past_the_block_layer)

    @property
    def workload_sha256(self) -> str:
        """What distinguishes two workloads, whatever they run on."""
        places = {section.name: [f"target={section.target}"] if section.target is not None else [] for section in self.sections}
        text = "\n".join((*self.global_lines, *(line for name, lines in self.section_lines for line in (f"[{name}]", *lines, *places[name]))))
        return hashlib.sha256(text.encode()).hexdigest()


def parse_time(text: str, unit: str = "s") -> float:
    """fio's times, as seconds: ``30``, ``1m``, ``500ms``.

    :param unit: of a number without one.
    :raises BadInput: if it is no time.
    """
    match = _TIME.match(text.strip().lower())
    if not match:
        # Seen with fio 3.33: 2sec and 1min are accepted and end at once.
        raise BadInput(f"'{text}' is not a time: use {_UNITS[unit]}, or a number with us, ms, s, m, h or d; fio takes any other unit for microseconds.")
    return float(match.group(1)) * _SECONDS[match.group(2) or unit]


def end_of_range(value: str) -> str:
    """A range of start delays (``1-5``) is as long as its end."""
    return value.split("-")[-1].split(",")[-1]


def check_times(section: Section, name: str) -> None:
    """:raises BadInput: if one of the times of a section is none; ``name`` is that of the cell."""
    for option, unit in _TIMES.items():
        value = section.value(option)
        if value is not None:
            try:
                parse_time(end_of_range(value) if option == "startdelay" else value, unit)
                if "." in value:
                    # Seen with fio 3.33: of 1.5s it takes 1 s, and of 1.5ms 1 us.
                    raise BadInput(f"'{value}' must be a whole number, with a smaller unit if needed: fio cuts it off at its point, and the unit with it.")
            except BadInput as error:
                raise BadInput(f"{name}: {option}: {error.message}", item=name, option=option, value=value) from None


def pause(thinktime: str | None) -> float:
    """Seconds of one ``thinktime``, which is in µs without a unit."""
    return parse_time(thinktime or "0", "us")


def spans_of(sections: t.Sequence[Section], seconds: t.Callable[[Section], t.Optional[float]]) -> list[Span] | None:
    """Begin and end of each section, in their order; ``None`` as soon as something that matters has no length.

    :param seconds: how long a section takes from its start, its ramp included; ``None`` if that is not known.
    """
    found: list[Span] = []
    ends: dict[str, float] = {}
    earliest = 0.0
    for section in sections:
        if section.is_alone:
            earliest = max([earliest, *(end for _begin, end in found)])
        begin = max(earliest, section.delay, ends.get(section.value("wait_for") or "", 0.0))
        if section.is_alone:
            earliest = begin
        taken = seconds(section)
        if taken is None:
            return None
        found.append((begin, begin + taken))
        ends[section.name] = begin + taken
    return found


def phases_of(sections: t.Sequence[Section]) -> list[list[Section]]:
    """Sections that no ``stonewall`` separates."""
    phases: list[list[Section]] = []
    for section in sections:
        if section.is_alone or not phases:
            phases.append([])
        phases[-1].append(section)
    return phases


def are_of_one_phase(job: Job | None, entries: t.Container[str]) -> bool:
    """Whether no ``stonewall`` separates some entries of a report: fio numbers groups of ``new_group`` too, which run at the same time.

    :param entries: their names.
    """
    if job is None:
        return False
    names = reported_as(job.sections)
    return sum(any(names[section.name] in entries for section in phase) for phase in phases_of(job.sections)) == 1


def are_at_once(spans: t.Sequence[Span], tolerance: float = 0.0) -> bool:
    """Whether starts and ends are so close to each other that rates may be added.

    :param tolerance: seconds by which they may be wrong.
    """
    longest = max(end - begin for begin, end in spans)
    begins, ends = [begin for begin, _end in spans], [end for _begin, end in spans]
    return max(max(begins) - min(begins), max(ends) - min(ends)) <= _AT_ONCE * longest + tolerance


def covered(spans: t.Sequence[Span]) -> Span:
    """From the first start to the last end."""
    return min(begin for begin, _end in spans), max(end for _begin, end in spans)


def reported_as(sections: t.Sequence[Section]) -> dict[str, str]:
    """The name under which the report has each section: with ``group_reporting`` all sections of a group are one entry, called like the first."""
    names: dict[str, str] = {}
    leader: str | None = None
    for section in sections:
        if leader is None or section.is_alone or section.has_flag("new_group") or not section.has_flag("group_reporting"):
            leader = section.name
        names[section.name] = leader
    return names


def measured_spans(job: Job, output: Output) -> dict[str, list[Span]]:
    """When each section did I/O in each direction, ramps excluded, in seconds from the start of the first section.

    From the times that the report has, in the order that the job requests. A section that shares its entry with others took as long as it
    should, or as the longest of them.
    """
    found: dict[str, list[Span]] = {}
    for section, (begin, end) in zip(job.sections, started_spans(job, output)):
        begin += section.ramp
        for one in _entries(job, output, section):
            for name, direction in one.directions.items():
                if _seconds(direction):
                    found.setdefault(name, []).append((begin, min(begin + _seconds(direction), end)))
    return found


def started_spans(job: Job, output: Output) -> list[Span]:
    """Begin and end of each section, its ramp included, by the times that the report has."""

    def taken(section: Section) -> float:
        own = _entries(job, output, section)
        longest = max([_seconds(direction) for one in own for direction in one.directions.values()], default=0.0)
        names = reported_as(job.sections)
        shared = sum(name == names[section.name] for name in names.values()) > 1
        return section.ramp + (min(longest, section.asked_runtime or longest) if shared else longest)

    return spans_of(job.sections, taken) or []


def _entries(job: Job, output: Output, section: Section) -> list[ReportedJob]:
    name = reported_as(job.sections)[section.name]
    return [one for one in output.jobs if one.name == name]


def _seconds(direction: Direction) -> float:
    return (direction.runtime_ms or 0) / 1000
