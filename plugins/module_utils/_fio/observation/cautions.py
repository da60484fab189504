# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a job makes its figures other than its reader may expect, said with each of them. Pure.

Source: ``HOWTO`` of fio: ``buffered``, ``offset_increment`` and ``randrepeat`` (on by default); io_submit(2): buffered I/O is done before it returns.
"""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import phases_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job, Section

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
                lambda section: repeat > 1 and _repeats_its_blocks(section),
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


def _repeats_its_blocks(section: Section) -> bool:
    repeats = section.value("randrepeat") != "0" or section.value("allrandrepeat") not in (None, "0") or section.value("randseed") is not None
    return _is_random(section) and repeats
