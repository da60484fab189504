# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rate to which a job limits itself, and whether it was reached. Pure.

Source: ``HOWTO`` and ``backend.c`` of fio: ``rate`` and ``rate_iops`` are limits of one thread, in each direction by itself.
"""

from __future__ import annotations

import math
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import parse_size

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job

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
