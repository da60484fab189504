# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Files of this user in folders that others may write to: never through a link, and none that another user has put there."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import LARGEST

#: Modes of files: for the user who measures, and for the user who fetches as well.
PRIVATE, READABLE = 0o600, 0o644
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_own(path: Path) -> str:
    """The text of a file that this user or root has written, never through a link: others may put files into a spool in /tmp.

    :raises OSError: if it cannot be read or is too large, or is the file of another user or may be written by every user.
    """
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), encoding="utf-8") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_uid not in (0, os.geteuid()) or found.st_mode & stat.S_IWOTH:
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(path))
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), str(path))
    return content


def append_line(path: Path, line: str) -> None:
    """Add a line to a file that is this user's alone, never through a link.

    :raises OSError: if it cannot be written.
    """
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE), "a") as file:
        file.write(f"{line}\n")


def new_file(path: Path) -> int:
    """A new file in the place of whatever a run left that was killed, for this user alone.

    :raises OSError: if it cannot be made; also if it is made by another process at the same time.
    """
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, PRIVATE)


def write_new(path: Path, content: bytes, *, durable: bool = True, mode: int = PRIVATE) -> None:
    with os.fdopen(new_file(path), "wb") as file:
        file.write(content)
        if mode != PRIVATE:
            file.flush()
            os.fchmod(file.fileno(), mode)
        if durable:
            file.flush()
            os.fsync(file.fileno())


@contextlib.contextmanager
def folder_of(path: str, root: Path) -> t.Iterator[tuple[int, str]]:
    """The folder of a file, open, and the file's name in it; no part of the path may be a link.

    :raises OSError: ``ELOOP`` or ``ENOTDIR`` for a link.
    """
    *folders, name = path.strip("/").split("/")
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for one in folders:
            above, descriptor = descriptor, os.open(one, _FOLDER, dir_fd=descriptor)
            os.close(above)
        yield descriptor, name
    finally:
        os.close(descriptor)
