# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The folder of what outlives a reboot of a host, and how files of its former place are read and moved there."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import make_folder, sync_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.lock import exclusive

FOLDER = "var/lib/cachefleet"
#: Of version 0.4: journals of a run that was killed before an update may be there.
FORMER = "var/lib/cachefleet.storage"
#: Ending of a file that was there and differs from the present one.
SET_ASIDE = ".former"


def place_of(name: str, root: Path = Path("/")) -> Path:
    """Where a file is written."""
    return root / FOLDER / name


def former_place(name: str, root: Path = Path("/")) -> Path:
    """Where it was written before."""
    return root / FORMER / name


def present_place(name: str, root: Path = Path("/")) -> Path:
    """Where a file is read: the former place as long as it is only there."""
    place, former = place_of(name, root), former_place(name, root)
    return former if former.exists() and not place.exists() else place


def conflict_of(name: str, root: Path = Path("/")) -> str:
    """A sentence if a file is at both places with different contents; nothing is changed.

    :raises CommandFailed: if one cannot be read.
    """
    place, former = place_of(name, root), former_place(name, root)
    try:
        if not (place.exists() and former.exists()) or place.read_bytes() == former.read_bytes():
            return ""
    except OSError as error:
        raise CommandFailed(f"{place} and {former} cannot be compared: {error.strerror}.", item=str(place)) from None
    return f"{former} differs from {place}, which is used: it is kept as {place}{SET_ASIDE}, examine it and delete it."


def adopt(name: str, root: Path = Path("/")) -> None:
    """Move a file of the former folder to its place, once; before it is written there. A different file is not replaced, but put beside it.

    Killed at any moment, the file is at one of both places, or at both with the same content.

    :raises CommandFailed: if it cannot be moved.
    """
    former = former_place(name, root)
    if not former.exists():
        return
    with exclusive("state_folder", root):
        try:
            _move(former, place_of(name, root))
        except FileNotFoundError:
            return  # Another run was faster.
        except OSError as error:
            raise CommandFailed(f"{former} cannot be moved to {place_of(name, root)}: {error.strerror}.", item=str(former)) from None
        remove_empty(former.parent, root)


def _move(former: Path, place: Path) -> None:
    make_folder(place.parent)
    for target in (place, *(place.with_name(f"{place.name}{SET_ASIDE}{number}") for number in ("", *range(2, 100)))):
        # Unlike a rename, a link never replaces what is there.
        with contextlib.suppress(FileExistsError):
            _link(former, target)
        if os.path.samefile(former, target) or former.read_bytes() == target.read_bytes():
            break
    else:
        raise OSError(errno.EEXIST, "there are too many files of this name")
    sync_folder(place.parent)
    former.unlink()
    sync_folder(former.parent)


def _link(former: Path, target: Path) -> None:
    try:
        os.link(former, target)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP):
            raise
        _link_copy(former, target)


def _link_copy(former: Path, target: Path) -> None:
    """The folders are on different file systems: a complete copy gets the name."""
    handle, temporary = tempfile.mkstemp(prefix=".cachefleet-", suffix=".tmp", dir=str(target.parent))
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(former.read_bytes())
            stream.flush()
            os.fchmod(stream.fileno(), former.stat().st_mode & 0o7777)
            os.fsync(stream.fileno())
        os.link(temporary, target)
    finally:
        os.unlink(temporary)


def remove_empty(folder: Path, root: Path = Path("/")) -> None:
    """Remove a folder in the former one, and those above it up to the former one itself, as far as nothing is in them."""
    with contextlib.suppress(OSError):
        while folder != (root / FORMER).parent:
            folder.rmdir()
            folder = folder.parent
