# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files and folders of the rack: locks, atomic writes, free space."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import time
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, Refused, StorageError, TimedOut
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import READABLE
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size


@contextlib.contextmanager
def exclusive(path: pathlib.Path, *, patience: float, what: str) -> t.Iterator[None]:
    """Hold a lock file while something is changed.

    The lock goes away with the process that holds it, so that a killed run blocks no other.

    :param patience: seconds to wait for another holder.
    :param what: named in the error, for example ``the rack demo``.
    :raises TimedOut: if another process still holds it then.
    """
    deadline = time.monotonic() + patience
    while True:
        make_folder(path.parent)
        try:
            # Through a link that another user has put there, root would make files elsewhere.
            handle = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644), "r+")
        except FileNotFoundError:  # its holder has just removed the folder
            continue
        except OSError as error:
            raise StorageError(f"The lock file {path} cannot be opened: {error.strerror}.", item=str(path)) from None
        with handle:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimedOut(
                            f"Another process has been working on {what} for more than {patience:g} seconds (lock file {path}): wait for it or end it.",
                            item=str(path),
                        ) from None
                    time.sleep(0.2)
            # Its folder may have been removed, and made anew, while this process waited for the old lock file.
            if _same_file(path, handle.fileno()):
                yield
                return


def _same_file(path: pathlib.Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def make_folder(path: pathlib.Path) -> None:
    """Make a folder and its parents.

    :raises StorageError: if that cannot be done, with the reason.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        # It was there, and another process removed it before Python could see that it is a folder.
        if isinstance(error, FileExistsError) and not path.exists():
            make_folder(path)
            return
        raise StorageError(f"The folder {path} cannot be made: {error.strerror}.", item=str(path)) from None


def remove_folder(path: pathlib.Path) -> None:
    """Remove a folder with everything in it, also while another process makes its lock file in it to wait there."""
    for patience in (5, 4, 3, 2, 1, 0):
        try:
            shutil.rmtree(path)
            return
        except FileNotFoundError:
            if not path.exists():
                return
        except OSError as error:
            if error.errno != errno.ENOTEMPTY or not patience:
                raise StorageError(f"The folder {path} cannot be removed: {error.strerror}.", item=str(path)) from None


def write_json(path: pathlib.Path, value: t.Any) -> None:
    """Write a JSON file so that a reader gets the old or the new contents, never half of one."""
    _journal(path).write(value)


def read_json(path: pathlib.Path) -> t.Any:
    """The value of a JSON file, ``None`` if the file is not there.

    :raises StorageError: if the file is damaged.
    """
    return _journal(path).read()


def _journal(path: pathlib.Path) -> Journal[t.Any]:
    def unusable(error: StorageError) -> t.NoReturn:
        if not isinstance(error, NotUnderstood):
            raise error
        raise StorageError(f"{path} is damaged: remove it and what belongs to it, then run again.", item=str(path))

    return Journal(path, lambda value: value, unusable, mode=READABLE)


def free_bytes(path: pathlib.Path) -> int:
    """Bytes that an ordinary user may still write at a place that need not exist yet."""
    while not path.exists():
        path = path.parent
    status = os.statvfs(path)
    return status.f_bavail * status.f_frsize


def require_free(path: pathlib.Path, need: int, purpose: str) -> None:
    """Refuse early what would fail half-way for lack of space.

    :raises Refused: naming what is needed and what is there.
    """
    have = free_bytes(path)
    if have < need:
        raise Refused(f"Not enough disk space: {purpose} needs {format_size(need)} in {path}, and {format_size(have)} are free.", item=str(path))


def last_lines(path: pathlib.Path, count: int) -> str:
    """The end of a text file that may be large or missing."""
    try:
        with path.open("rb") as handle:
            handle.seek(0, os.SEEK_END)
            handle.seek(max(0, handle.tell() - 16384))
            text = handle.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
    return "\n".join(line.rstrip() for line in text.splitlines()[-count:])
