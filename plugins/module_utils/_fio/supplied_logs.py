# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Logs of I/O that are files: what the controller has copied to this host is checked once, and kept in the spool as fio gets it.

A file may have millions of I/Os, so it is only ever read and written in pieces. Each time the log is used, its SHA-256 is compared.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import typing as t
import zlib
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import new_file
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import replay
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.machine import available_memory

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.replay import Replay
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool

_PIECE = 256 * 1024
#: Bytes of memory that fio takes for each I/O of a log: 113 measured with 3.33.
_MEMORY = 128
_LEVEL = 1


def supply(jobs: t.Mapping[str, t.Any], spool: Spool, files: t.Mapping[str, str]) -> dict[str, t.Any]:
    """Check files, and put what fio gets of them into the spool.

    :param jobs: as the controller sends them, by the names of their cells.
    :param files: their paths on this host, by those on the controller; without any it is only found out which are missing.
    :returns: the result of the module ``fio_runner``.
    :raises StorageError: if one is no log, or another one than was planned, or if it cannot be stored.
    """
    left = _missing(jobs, spool)
    if files:
        spool.require_own()
        spool.make()
        for file, name, log, options in left:
            if file not in files:
                raise BadInput(f"{name}: the log {file} was not copied to this host.", item=name)
            spool.require_space(log.size)
            _store(files[file], replay.LogStream(options, name, replay.MOST_FILE_IOS), log, spool)
        left = []
    return {"changed": bool(files), "actions": [], "runner": {}, "missing": sorted({file for file, *_other in left})}


def _missing(jobs: t.Mapping[str, t.Any], spool: Spool) -> list[tuple[str, str, Replay, t.Mapping[str, t.Any]]]:
    """The logs that are not whole in the spool: file on the controller, name of the cell, log, options of the section."""
    sections = [(name, section, replay.read_replay(section, name)) for name, job in jobs.items() for section in replay.sections_with_log(job)]
    wanted = {log.sha256: (section[replay.LOG]["file"], name, log, section) for name, section, log in sections if log.text is None}
    return [one for one in wanted.values() if not _is_whole(one[2], spool)]


def _store(source: str, stream: replay.LogStream, log: Replay, spool: Spool) -> None:
    draft = spool.home / f".{log.file_name}.new"
    try:
        with os.fdopen(new_file(draft), "wb") as new, gzip.GzipFile("", "wb", _LEVEL, new, 0) as stored:
            for piece in replay.changed_file(source, stream):
                stored.write(piece)
        if stream.replay() != log:
            raise Refused(f"{stream.name}: the log that was copied to this host is not the one that was planned: it was changed since, or damaged on its way.")
        draft.rename(_place(log, spool))
    finally:
        draft.unlink() if draft.exists() else None


def require(jobs: t.Iterable[Job], spool: Spool, root: Path = Path("/")) -> None:
    """:raises Refused: if a log is not whole in the spool, or if fio would take too much memory for those of a cell."""
    of_jobs = [[log for log in job.replays.values() if log.text is None] for job in jobs]
    needed = max((sum(log.ios for log in logs) for logs in of_jobs), default=0) * _MEMORY
    available = available_memory(root) if needed else None
    if available is not None and needed > available // 2:
        raise Refused(
            f"fio would need {format_size(needed)} of memory for the logs that it replays at once, and this host has {format_size(available)} available: "
            f"replay a part of them ({replay.SKIP}), or one after the other."
        )
    for log in {log.sha256: log for logs in of_jobs for log in logs}.values():
        if not _is_whole(log, spool):
            raise Refused(f"The log {log.sha256[:12]} is not in the spool of this host, or damaged: run the playbook again, which copies it.")


def write(log: Replay, spool: Spool, target: str, place: Path) -> None:
    """Write a log for fio.

    :param target: the path of the target, as the job file names it.
    :raises Refused: if the stored log is not the one that was checked.
    """
    if log.text is not None:
        place.write_bytes(replay.on_target(log.text.encode(), target))
        return
    spool.require_space(log.size + log.ios * len(target))
    with open(place, "wb") as file:
        for piece in _pieces(log, spool):
            file.write(replay.on_target(piece, target))
        # Its writing to disk would be part of what is measured.
        file.flush()
        os.fsync(file.fileno())


def _is_whole(log: Replay, spool: Spool) -> bool:
    try:
        for _piece in _pieces(log, spool):
            pass
    except Refused:
        return False
    return True


def _pieces(log: Replay, spool: Spool) -> t.Iterator[bytes]:
    """Whole lines of a stored log.

    :raises Refused: at the end, if they are not those that were checked.
    """
    found = hashlib.sha256()
    try:
        with os.fdopen(os.open(_place(log, spool), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as stored, gzip.GzipFile(fileobj=stored) as file:
            for piece in iter(lambda: file.read(_PIECE) + file.readline(MIB), b""):
                found.update(piece)
                yield piece
    except (OSError, EOFError, zlib.error):
        found.update(b"damaged")
    if found.hexdigest() != log.sha256:
        raise Refused(f"The log {log.sha256[:12]} in the spool of this host is damaged: run the playbook again, which copies it.")


def _place(log: Replay, spool: Spool) -> Path:
    return spool.home / f"{log.file_name}.gz"
