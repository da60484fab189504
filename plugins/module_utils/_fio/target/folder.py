# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A folder as a target: one that the collection has made and marked, and in which nothing but its files is.

No permission makes another folder a target: what lies in a folder of a user is not examined file by file, but left alone. fio gets the open folder, and not
its name: ``directory=/proc/self/fd/<number>/.`` leads to the same inode whatever becomes of the name (proc(5)). fio requires a directory that is
none by a link (``lstat`` in ``str_directory_cb``, ``options.c``), hence the dot.
"""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import os
import resource
import stat
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import OpenFiles, open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of_status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import FILE_NAME, files_of, open_at_once

if t.TYPE_CHECKING:
    from pathlib import Path

    from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.neighbourhood import Neighbourhood
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import Job
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.target_facts import FioTarget

#: Descriptors that a process of fio has beside its files.
_OTHER_DESCRIPTORS = 64
#: Names that a refusal has.
_NAMED = 3


def require_folder(target: FioTarget, real: Path, status: os.stat_result, *, ours: bool) -> None:
    """:raises StorageError: if what lies in the place of a folder is not one that the collection has made."""
    if not stat.S_ISDIR(status.st_mode):
        raise DeviceMissing(f"{target.path} is not a directory: name one that does not exist yet.", item=target.path)
    if not ours:
        raise Refused(
            f"fio will not write in {target.path}: the collection did not make this directory, or it was changed since. "
            "Name one that does not exist yet; no variable overrules this.",
            item=target.path,
        )
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise Refused(f"fio will not write in {target.path}: other users can use this directory now. Name one that does not exist yet.", item=target.path)
    if status.st_dev != os.lstat(real.parent).st_dev:
        raise Refused(f"fio will not write in {target.path}: a file system is mounted there. Unmount it or name another directory.", item=target.path)


def read_folder(target: FioTarget, place: Path | int) -> dict[str, os.stat_result]:
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
            f"fio will not write in {target.path}: it contains {', '.join(sorted(others)[:_NAMED])}{more}, which the collection did not make there. "
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


def make_files(folder: int, path: str, job: Job, target: FioTarget, lay_out: t.Callable[[int, str, int], None]) -> frozenset[Unit]:
    """Make all files of a job in an open folder, each as large as the job needs it.

    :param lay_out: gives an open file its size and contents.
    :returns: what fio may write.
    :raises StorageError: if one is something else by now, or cannot be made.
    """
    units = set()
    there = read_folder(target, folder)
    for name, size in files_of(job).items():
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (0 if name in there else os.O_CREAT | os.O_EXCL)
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise CommandFailed(f"{path}/{name} cannot be made on this host: {error.strerror}.", item=path) from None
        try:
            unit = unit_of_status(os.fstat(descriptor))
            if name in there and unit != unit_of_status(there[name]):
                raise Refused(f"{path}/{name} was replaced since it was examined.", item=path)
            lay_out(descriptor, f"{path}/{name}", size)
            units.add(unit)
        finally:
            os.close(descriptor)
    return frozenset(units)


def require_descriptors(job: Job, path: str) -> None:
    """Let fio open as many files as the job has open at once.

    :raises Refused: if this host does not allow that.
    """
    needed = open_at_once(job) + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard) and needed > hard:
        raise Refused(
            f"fio would have {needed} files open in {path} at once, and this host allows {hard} (ulimit -Hn): set openfiles in the job.",
            item=path,
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        with contextlib.suppress(OSError, ValueError):
            # What fio inherits; the hard limit stays as it is.
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else hard, hard))
