# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The record of the last purge of each drive, a file for each, written before a purge begins and when it is over.

A file with the state ``running`` without a process behind it is a purge that was killed. The runner of measurements copies the file into its results.
"""

from __future__ import annotations

import hashlib
import typing as t
from dataclasses import asdict, replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen, has_types

FOLDER = "var/lib/cachefleet/purges"
RUNNING, DONE, FAILED = "running", "done", "failed"
_LIMITS = json_text.Limits(size=64 * 1024, depth=4, values=100, containers=10)
#: Characters of what the drive or a tool said.
_LONGEST_MESSAGE = 2000


@frozen
class PurgeRecord:
    """One purge. Times in seconds since the epoch.

    :param identity: serial number, WWN or name of the drive.
    :param once: what it was made for, for example a campaign; empty if it was for nothing in particular.
    :param state: ``running``, ``done`` or ``failed``; ``message``: how it ended.
    :param reads: what the drive returned afterwards.
    """

    identity: str
    device: str
    method: str
    once: str
    state: str
    started: float
    finished: float | None = None
    reads: str = ""
    message: str = ""

    def to_dict(self) -> dict[str, t.Any]:
        return asdict(self)


def write_record(record: PurgeRecord, root: Path = Path("/")) -> None:
    """:raises CommandFailed: if it cannot be written."""
    record = replace(record, message=record.message[:_LONGEST_MESSAGE], reads=record.reads[:_LONGEST_MESSAGE])
    _journal(record.identity, root).write(record.to_dict())


def read_record(identity: str | None, root: Path = Path("/")) -> PurgeRecord | None:
    """The last purge of a drive; ``None`` if none is known, or the file is damaged."""
    if not identity:
        return None
    record = _journal(identity, root).read()
    return record if record is not None and has_types(record) and record.identity == identity else None


def _journal(identity: str, root: Path) -> Journal[PurgeRecord]:
    def content(found: t.Any) -> PurgeRecord:
        return PurgeRecord(**{name: found[name] for name in PurgeRecord.__dataclass_fields__})

    return Journal(_path(identity, root), content, counts_as_none, limits=_LIMITS)


def _path(identity: str, root: Path) -> Path:
    return root / FOLDER / f"{hashlib.sha256(identity.encode()).hexdigest()[:32]}.json"
