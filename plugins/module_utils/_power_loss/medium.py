# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a power-loss test writes to: a block device, a file, or a folder whose files are replaced as journals and databases do it.

A block of the test has a place, numbered from 0. Every medium writes one place at a time, and returns once the sync that was requested
has returned.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed

#: How a write is made durable. ``fua`` is a write with RWF_DSYNC, which becomes a forced unit access where the device has it.
SYNCS = ("fsync", "fdatasync", "o_dsync", "fua", "none")

#: ``in_place`` overwrites blocks of a device or file; ``append`` writes each block once, at the end of a file, which grows; ``rename``
#: writes each block to a new file, which then takes the place of the old one, and syncs the folder.
LAYOUTS = ("in_place", "append", "rename")

#: A file of the layout ``rename``, or the new one that takes its place.
FILE_NAME = re.compile(r"\.?block-\d+(\.new)?$")


class InPlace:
    """Blocks of a block device or of a file.

    :param path: of a device, or of a file that exists and is large enough (``append``: that is empty).
    :param size: of a block, in bytes.
    :param direct: whether the page cache is bypassed (O_DIRECT).
    :param descriptor: of what is written, whatever the path leads to by now.
    """

    def __init__(self, path: Path, size: int, sync: str, *, direct: bool, readable: bool = False, descriptor: int | None = None) -> None:
        if sync not in SYNCS:
            raise BadInput(f"'{sync}' is not a supported sync: use one of {', '.join(SYNCS)}.", item="sync")
        self._size = size
        self._sync = sync
        self._flags = os.RWF_DSYNC if sync == "fua" else 0
        flags = os.O_RDONLY if readable else os.O_WRONLY
        flags |= (os.O_DIRECT if direct else 0) | (os.O_DSYNC if sync == "o_dsync" else 0)
        try:
            self._descriptor = os.open(_opened(path, descriptor), flags | os.O_CLOEXEC)
        except OSError as error:
            raise CommandFailed(f"{path} cannot be opened: {error.strerror}.", item=str(path)) from None

    def write(self, place: int, data: mmap.mmap) -> None:
        """Write a block and sync it. ``data`` is aligned to a page, as O_DIRECT needs it."""
        if os.pwritev(self._descriptor, [data], place * self._size, self._flags) != self._size:
            raise CommandFailed(f"A block was written in part: there is no space left at byte {place * self._size}.")
        if self._sync == "fsync":
            os.fsync(self._descriptor)
        elif self._sync == "fdatasync":
            os.fdatasync(self._descriptor)

    def sync(self) -> None:
        """Sync everything that was written."""
        os.fsync(self._descriptor)

    def read(self, place: int) -> bytes:
        """A block; shorter at the end of a file."""
        data = mmap.mmap(-1, self._size)
        with data:
            count = os.preadv(self._descriptor, [data], place * self._size)
            return data[:count]

    def close(self) -> None:
        os.close(self._descriptor)


class Renamed:
    """One file for each place; a write replaces it by a new one.

    :param folder: of its own, only for this test.
    :param descriptor: of it, whatever the path leads to by now.
    """

    def __init__(self, folder: Path, size: int, sync: str, *, descriptor: int | None = None) -> None:
        if sync not in ("fsync", "fdatasync", "none"):
            raise BadInput(f"With layout rename, sync must be fsync, fdatasync or none, not {sync}.", item="sync")
        self._folder = folder
        self._size = size
        self._sync = sync
        self._descriptor = os.open(_opened(folder, descriptor), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def write(self, place: int, data: mmap.mmap) -> None:
        """Write a new file, sync it, rename it and sync the folder."""
        name, draft = _file(place), f".{_file(place)}.new"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._descriptor)
        try:
            if os.pwrite(descriptor, data, 0) != self._size:
                raise CommandFailed(f"A block was written in part: there is no space left in {self._folder}.", item=str(self._folder))
            if self._sync == "fsync":
                os.fsync(descriptor)
            elif self._sync == "fdatasync":
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(draft, name, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        if self._sync != "none":
            os.fsync(self._descriptor)

    def sync(self) -> None:
        os.fsync(self._descriptor)

    def read(self, place: int) -> bytes:
        """What the file of a place has; nothing if there is none."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(_file(place), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self._descriptor)
            try:
                return os.pread(descriptor, self._size, 0)
            finally:
                os.close(descriptor)
        return b""

    def close(self) -> None:
        os.close(self._descriptor)


Medium = t.Union[InPlace, Renamed]


def _file(place: int) -> str:
    return f"block-{place:08d}"


def _opened(path: Path, descriptor: int | None) -> Path:
    """A path that leads to an open file (proc(5)); one that is opened again has flags of its own."""
    return path if descriptor is None else Path(f"/proc/self/fd/{descriptor}")
