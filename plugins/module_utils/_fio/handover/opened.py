# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a running fio has open for writing, compared with what it may write: the last line of defence behind the guard."""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import is_writable, unit_of_status

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit

#: What has no name on any file system: memory (memfd_create(2)), and what the kernel makes.
_NAMELESS = ("/memfd:", "anon_inode:")


def other_files_of(pid: int, targets: t.Container[Unit], folder: Path, proc: Path = Path("/proc")) -> list[str]:
    """Paths of block devices and files that a process or one of its children has open for writing and that are none of its targets.

    :param folder: in which it works; what is in there is its own.
    """
    found = []
    for process in _family(pid, proc):
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(process / "fd"):
                path = _written(process, descriptor, targets, folder)
                if path is not None:
                    found.append(path)
    return list(dict.fromkeys(found))


def _written(process: Path, descriptor: str, targets: t.Container[Unit], folder: Path) -> str | None:
    """The path of a descriptor that is open for writing and is no target; ``None`` if it is anything else, or closed meanwhile."""
    try:
        path = os.readlink(process / "fd" / descriptor)
        status = os.stat(process / "fd" / descriptor)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISBLK(status.st_mode)) or unit_of_status(status) in targets:
            return None
        if path.startswith((*_NAMELESS, f"{folder}/")) or not is_writable(process / "fdinfo" / descriptor):
            return None
        # A number is given again at once: between two readings it may have become another file.
        return path if os.readlink(process / "fd" / descriptor) == path else None
    except OSError:
        return None


def _family(pid: int, proc: Path) -> t.Iterator[Path]:
    """A process and all that come from it. Source: proc(5), ``/proc/pid/task/tid/children``."""
    queue = [pid]
    while queue:
        place = proc / str(queue.pop(0))
        yield place
        # A process may end between any two of these lines: it has opened nothing any more.
        with contextlib.suppress(OSError):
            for thread in os.listdir(place / "task"):
                with contextlib.suppress(OSError, ValueError):
                    queue += [int(word) for word in (place / "task" / thread / "children").read_text().split()]
