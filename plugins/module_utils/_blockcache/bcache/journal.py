# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What would otherwise be lost if a run is killed: sets that are between two states, and settings changed for a flush."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal as JournalFile
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import counts_as_none_if_damaged, place_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import field, frozen

#: Survives a reboot, as a cache set does.
SETS_FILE = "bcache-sets.json"
#: Discarded at boot, as the settings themselves are.
FLUSH_FILE = "run/cachefleet.storage/bcache-flush.json"


@frozen
class Between:
    """A set that exists for the sake of a backing device, which may not be attached to it.

    :param detaching: whether a detach may have been requested from the kernel, which it does in its own time.
    """

    set: str
    detaching: bool = False


@frozen
class Journal:
    """Both by the UUID of a backing device; ``flushing`` holds the settings to put back, as the kernel takes them."""

    between: t.Mapping[str, Between] = field(default_factory=dict)
    flushing: t.Mapping[str, t.Mapping[str, str]] = field(default_factory=dict)


def read_journal(root: Path = Path("/")) -> Journal:
    """What earlier runs noted; a file that is damaged counts as none.

    :raises CommandFailed: if a file is there and cannot be read.
    """
    between = {uuid: Between(str(entry.get("set", "")), bool(entry.get("detaching"))) for uuid, entry in _read(place_of(SETS_FILE, root)).items()}
    flushing = {uuid: {key: str(value) for key, value in entry.items()} for uuid, entry in _read(root / FLUSH_FILE).items()}
    return Journal(between, flushing)


def note_between(backing: str, between: Between | None, root: Path = Path("/")) -> None:
    """Note it before it begins; None when it is over."""
    _note(place_of(SETS_FILE, root), backing, None if between is None else {"set": between.set, "detaching": between.detaching})


def forget_set(cset: str, root: Path = Path("/")) -> None:
    """A set is gone, regardless of its purpose."""
    place = place_of(SETS_FILE, root)
    entries = _read(place)
    _write(place, {uuid: entry for uuid, entry in entries.items() if entry.get("set") != cset}, entries)


def note_flushing(backing: str, settings: t.Mapping[str, str] | None, root: Path = Path("/")) -> None:
    """Note what a flush is going to change; None when it is put back."""
    _note(root / FLUSH_FILE, backing, None if settings is None else dict(settings))


def _note(path: Path, key: str, entry: dict[str, t.Any] | None) -> None:
    before = _read(path)
    after = {uuid: old for uuid, old in before.items() if uuid != key}
    if entry is not None:
        after[key] = entry
    _write(path, after, before)


def _write(path: Path, entries: t.Mapping[str, t.Any], before: t.Mapping[str, t.Any]) -> None:
    if entries == before:
        return
    if entries:
        _journal(path).write(entries)
    else:
        _journal(path).remove()


def _read(path: Path) -> dict[str, dict[str, t.Any]]:
    return _journal(path).read() or {}


def _journal(path: Path) -> JournalFile[dict[str, dict[str, t.Any]]]:
    return JournalFile(path, lambda entries: {str(key): entry for key, entry in entries.items() if isinstance(entry, dict)}, counts_as_none_if_damaged)
