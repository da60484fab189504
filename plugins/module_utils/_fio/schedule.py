# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""When each section of a job begins and ends, from how long each of them takes: phases, waits and delays. Pure.

Source: ``run_threads`` in ``backend.c`` of fio 3.33: sections start in their order; ``stonewall`` holds back a section and all behind it
until everything before has ended; ``wait_for`` holds back one section until another has ended; ``startdelay`` counts from the start of
the first one, not from the end of a phase.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import re
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import Job, Section
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Direction, Output
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.output import Job as ReportedJob

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
