# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a removed cache has left on an SSD, noted so that a later run goes on to empty that and nothing else.

A cache that wrote through leaves no superblock, but copies of blocks of its origin. The note outlives a reboot, and so may a
run that was killed be followed by another use of the SSD: what it carries is compared before it is emptied.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import journal
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none_if_damaged
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB

#: Most signatures lie at the beginning of a device, the others (GPT, MD 1.0) at its end.
_PART = MIB
#: O_DIRECT requires whole logical blocks.
_ALIGNED = 4096
#: ``cache_sb_state``: flashcache_destroy changes nothing else (flashcache_destroy.c).
_STATE = slice(16, 20)


@frozen
class Remains:
    """The remains of one cache.

    :param device: a path that names the SSD after a reboot too.
    :param digest: of :func:`digest_of`; empty while the cache is being removed and may still write.
    """

    device: str = ""
    digest: str = ""


def place_of(item: str, root: Path = Path("/")) -> Path:
    """The file with the note of one cache."""
    return journal.place_of(f"flashcache-{item}.emptying", root)


def read_remains(item: str, root: Path = Path("/")) -> Remains:
    """What is noted; empty if nothing is, or if the file is damaged.

    :raises CommandFailed: if it is there and cannot be read.
    """
    return _journal(item, root).read() or Remains()


def _journal(item: str, root: Path) -> Journal[Remains]:
    return Journal(place_of(item, root), lambda noted: Remains(str(noted.get("device", "")), str(noted.get("digest", ""))), counts_as_none_if_damaged)


def note_remains(item: str, remains: Remains | None, root: Path = Path("/")) -> None:
    """Note it, in a way that survives a power cut; None when nothing is left.

    :raises CommandFailed: if it cannot be written.
    """
    if remains is not None and remains.device:
        _journal(item, root).write({"device": remains.device, "digest": remains.digest})
    else:
        _journal(item, root).remove()


def digest_of(path: str, root: Path = Path("/")) -> str:
    """SHA-256 of the first and the last MiB of a device, past the page cache; empty if it cannot be read.

    The state in a superblock is left out, so that it is the same before and after flashcache_destroy.
    """
    for flags in (os.O_DIRECT, 0):
        with contextlib.suppress(OSError):
            handle = os.open(root / path.lstrip("/"), os.O_RDONLY | os.O_CLOEXEC | flags)
            try:
                return _digest(handle)
            finally:
                os.close(handle)
    return ""


def _digest(handle: int) -> str:
    digest = hashlib.sha256()
    end = os.lseek(handle, 0, os.SEEK_END)
    with contextlib.closing(mmap.mmap(-1, _PART)) as memory:
        for start in (0, *([(end - _PART) // _ALIGNED * _ALIGNED] if end > _PART else [])):
            part = bytearray(memory[: os.preadv(handle, [memory], start)])
            if start == 0:
                part[_STATE] = bytes(4)
            digest.update(part)
    return digest.hexdigest()


def altered_sentence(item: str, ssd: str, reasons: t.Sequence[str], root: Path = Path("/")) -> str:
    """Why an SSD is not made empty that carries something else than what the cache has left."""
    return (
        f"{item}: {ssd} {' and '.join(reasons)}, and is not as the cache left it, so it was not wiped: if it is in use now, delete"
        f" {place_of(item, root)} and run again; if nothing on it is needed, wipe it manually (wipefs -a {ssd})."
    )
