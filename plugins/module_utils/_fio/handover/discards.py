# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Jobs that discard: whether their target takes discards at all. fio itself notices at the first one that fails, hours later perhaps."""

from __future__ import annotations

import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell import Cell
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts


def discards(job: Job) -> bool:
    """Whether any section of a job discards."""
    return any(section.discards for section in job.sections)


def largest_discard(facts: TargetFacts, root: Path) -> int | None:
    """Bytes of the largest discard that a device takes, 0 if it takes none; ``None`` if the kernel does not report it.

    Source: Documentation/ABI/stable/sysfs-block, ``queue/discard_max_bytes``; a partition has the queue of its disk.
    """
    if facts.device is None:
        return None
    for name in filter(None, (facts.device.name, facts.device.parent)):
        try:
            return int((root / "sys/class/block" / name / "queue/discard_max_bytes").read_text())
        except (OSError, ValueError):
            continue
    return None


def require_discard(facts: TargetFacts, cells: t.Sequence[Cell], root: Path) -> None:
    """:raises Refused: if a cell discards and its target is a file or takes no discards."""
    names = [cell.key.cell for cell in cells if discards(cell.job)]
    if not names:
        return
    if facts.device is None:
        why = "it is a file, and fio discards only on block devices"
    elif largest_discard(facts, root) == 0:
        why = "the device takes no discards (its queue/discard_max_bytes is 0)"
    else:
        return
    raise Refused(
        f"fio will not discard on {facts.target.path} for the cell {names[0]}: {why}. Leave the cell out or choose another target.", item=facts.target.path
    )
