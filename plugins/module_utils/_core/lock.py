# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One at a time: what an earlier run, whose controller has ended, is still doing must not be crossed by the next."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed

#: Emptied at boot, and no run outlives one.
FOLDER = "run/cachefleet.storage"


@contextlib.contextmanager
def exclusive(name: str, root: Path = Path("/")) -> t.Iterator[None]:
    """Hold the lock of a layer of this host; waits for its holder.

    The wait has no limit of its own: who holds it flushes, and gives up by itself when nothing moves any more. The kernel
    takes the lock from a process that was killed.

    :raises CommandFailed: if the lock cannot be made.
    """
    path = root / FOLDER / f"{name}.lock"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        advice = ""
        if error.errno in (errno.EACCES, errno.EPERM):
            root_too = f" Root may not either: {path.parent} has an attribute (lsattr), is on a network file system, or a security module forbids it."
            advice = root_too if os.geteuid() == 0 else " Does the task run as root (become: true)?"
        raise CommandFailed(f"{path} cannot be made: {error.strerror}.{advice}", item=name) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
