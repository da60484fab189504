# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a job makes its figures other than its reader may expect, said with each of them; and whether the rate was reached to which it limits itself. Pure.

Source: ``HOWTO`` of fio: ``buffered``, ``offset_increment`` and ``randrepeat`` (on by default); io_submit(2): buffered I/O is done before it returns.
``HOWTO`` and ``backend.c`` of fio: ``rate`` and ``rate_iops`` are limits of one thread, in each direction by itself.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import phases_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section

#: The order of the parts of a value for each direction.
_ORDER = ("read", "write", "trim")

#: A rate that is below what was requested by more than this share was not reached.
_REACHED = 0.95

#: By option what of a summary it limits, and how that is called.
_LIMITS = (("rate_iops", "iops", "IOPS"), ("rate", "bw_bytes", "bytes per second"))


def by_direction(text: str | None) -> dict[str, int]:
    """A limit as fio reads it: one number for all directions, or one for each of them, of which any may be left out.

    :raises BadInput: if a part of it is no number.
    """
    parts = (text or "").split(",")
    values = parts * len(_ORDER) if len(parts) == 1 else parts
    sizes = {direction: parse_size(value) for direction, value in zip(_ORDER, values) if value.strip()}
    return {direction: size for direction, size in sizes.items() if size}


def compare_rates(job: Job, summary: t.Mapping[str, t.Any]) -> tuple[bool, list[str]]:
    """Whether a job was as fast as it may be, and which of its rates it did not reach, as sentences.

    Nothing is compared in a direction whose sections did not run at the same time, or of which only some are limited.
    """
    reached, notes = [], []
    for option, figure, unit in _LIMITS:
        for direction in _ORDER:
            figures = summary.get(direction) or {}
            found, asked = figures.get(figure), _asked(job, option, direction)
            if found is None or asked is None or not figures.get("at_once"):
                continue
            reached.append(found >= _least(job, figures.get("total_ios")) * asked)
            if not reached[-1]:
                notes.append(f"{direction} reached {found:,.0f} of the {asked:,} {unit} that {option} of the job requests.")
    return bool(reached) and all(reached), notes


def compare_pace(job: Job, seconds: float) -> list[str]:
    """Whether logs took longer than when they were recorded, as sentences.

    :param seconds: from the first I/O to the last.
    """
    recorded = max((section.replay.seconds or 0.0 for section in job.sections if section.replay is not None), default=0.0)
    if not recorded or seconds <= recorded / _REACHED + 1:
        return []
    return [f"The log took {seconds:,.0f} seconds instead of {recorded:,.0f}: the target or fio fell behind, so that the load was lower than recorded."]


def _least(job: Job, total_ios: int | None) -> float:
    """The part of a rate from which on it was reached; one by chance (``rate_process=poisson``) has the deviation of a count, of which three are none."""
    if total_ios and any(section.value("rate_process") == "poisson" for section in job.sections):
        return min(_REACHED, 1 - 3 / math.sqrt(total_ios))
    return _REACHED


def _asked(job: Job, option: str, direction: str) -> int | None:
    active = [section for section in job.sections if direction in section.directions]
    try:
        limits = [by_direction(section.value(option)).get(direction) for section in active]
    except BadInput:
        return None
    if not limits or None in limits:
        return None
    return sum(limit * int(section.value("numjobs") or 1) for section, limit in zip(active, limits) if limit is not None)


_DOING = {"read": "read", "write": "write", "trim": "trim", "mixed": "read and write"}


def cautions(job: Job, repeat: int) -> list[str]:
    """A sentence for each, of whatever sections it is.

    :param repeat: the number of this one, from 1.
    """
    sections = [section for section in job.sections if section.replay is None and section.value("ioengine") != "null"]
    parted = [
        f"The sections that {_DOING[direction]} are separated by a stonewall: they have no rate and no latency together."
        for direction in _DOING
        if sum(any(direction in section.directions for section in phase) for phase in phases_of(job.sections)) > 1
    ]
    return parted + [
        sentence
        for sentence, applies in (
            (
                "Reads without direct=1 may be served by the page cache of the host: the rate is not that of the storage.",
                lambda section: section.is_buffered and "read" in section.directions,
            ),
            (
                "The reads of a section that only writes are those of verify: their rate is not that of a workload, and with verify_backlog none is known.",
                _reads_to_verify,
            ),
            (
                "A startdelay that is a range is drawn by fio, which does not report it: the end of the range is taken for it, so rates may be wrong.",
                lambda section: "-" in (section.value("startdelay") or ""),
            ),
            (
                "libaio without direct=1 does one I/O at a time: the depth is 1, whatever iodepth is.",
                lambda section: section.is_buffered and section.value("ioengine") == "libaio" and int(section.value("iodepth") or 1) > 1,
            ),
            (
                "All jobs of a section begin at one offset and read or write the same blocks: set offset_increment, so that each has its own.",
                _shares_its_blocks,
            ),
            (
                "Every repeat does its random I/O at the same blocks, which a cache may hold by now: set randrepeat=0, and no randseed.",
                lambda section: repeat > 1 and repeats_its_blocks(section),
            ),
        )
        if any(applies(section) for section in sections)
    ]


def _reads_to_verify(section: Section) -> bool:
    verifies = section.value("verify") not in (None, "0", "none", "null") and section.value("do_verify") != "0"
    return verifies and "write" in section.directions and "read" not in section.directions


def _is_random(section: Section) -> bool:
    return (section.value("rw") or "read").startswith("rand")


def _shares_its_blocks(section: Section) -> bool:
    return not _is_random(section) and int(section.value("numjobs") or 1) > 1 and section.value("offset_increment") is None


def repeats_its_blocks(section: Section) -> bool:
    """Whether every run of a section does its random I/O at the same blocks, in the same order."""
    repeats = section.value("randrepeat") != "0" or section.value("allrandrepeat") not in (None, "0") or section.value("randseed") is not None
    return _is_random(section) and repeats
