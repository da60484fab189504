# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder as a target: one that the collection has made and marked, and in which nothing but its files is.

No permission makes another folder a target: what lies in a folder of a user is not examined file by file, but left alone. fio gets the open folder, and not
its name: ``directory=/proc/self/fd/<number>/.`` leads to the same inode whatever becomes of the name (proc(5)). fio requires a directory that is
none by a link (``lstat`` in ``str_directory_cb``, ``options.c``), hence the dot.
"""

from __future__ import annotations

import os
import re
import stat
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import OpenFiles, open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of_status

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget

#: What a file may be called that the collection makes in a folder.
FILE_NAME = re.compile(r"s\d{1,4}\.\d{1,4}\.\d{1,5}\Z")
#: Names that a refusal has.
_NAMED = 3


def _refusal(target: GuardTarget) -> str:
    return f"{target.caller} will not write in {target.path}"


def require_folder(target: GuardTarget, real: Path, status: os.stat_result, *, ours: bool) -> None:
    """:raises StorageError: if what lies in the place of a folder is not one that the collection has made."""
    if not stat.S_ISDIR(status.st_mode):
        raise DeviceMissing(f"{target.path} is not a directory: name one that does not exist yet.", item=target.path)
    if not ours:
        raise Refused(
            f"{_refusal(target)}: the collection did not make this directory, or it was changed since. "
            "Name one that does not exist yet; no variable overrules this.",
            item=target.path,
        )
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Refused(f"{_refusal(target)}: other users can use this directory now. Name one that does not exist yet.", item=target.path)
    if status.st_dev != os.lstat(real.parent).st_dev:
        raise Refused(f"{_refusal(target)}: a file system is mounted there. Unmount it or name another directory.", item=target.path)


def read_folder(target: GuardTarget, place: Path | int) -> dict[str, os.stat_result]:
    """The files in a folder of the collection, none of which is followed anywhere.

    :param place: its path, or an open descriptor.
    :raises Refused: if anything else lies in it, which is named.
    """
    found: dict[str, os.stat_result] = {}
    others: list[str] = []
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                plain = stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and status.st_uid == os.geteuid()
                if plain and FILE_NAME.match(entry.name):
                    found[entry.name] = status
                else:
                    others.append(repr(entry.name)[1:-1])
    except OSError as error:
        raise DeviceMissing(f"{target.path} cannot be read: {error.strerror}.", item=target.path) from None
    if others:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        raise Refused(
            f"{_refusal(target)}: it contains {', '.join(sorted(others)[:_NAMED])}{more}, which the collection did not make there. "
            "Move it away, or name a directory that does not exist yet; no variable overrules this.",
            item=target.path,
        )
    return found


def openers_of_folder(real: Path, files: t.Mapping[str, os.stat_result], around: Neighbourhood, root: Path, *, again: bool) -> OpenFiles:
    """Who has any of the files open, and what could not be seen of that."""
    if not files:
        return OpenFiles({})
    name, status = next(iter(files.items()))
    units = {unit_of_status(one) for one in files.values()}
    found = open_files(root, units, str(real / name), unit_of_status(status), mapped=not again)
    return OpenFiles(found.found, found.unreadable, (*around.unknown, *found.unknown))
