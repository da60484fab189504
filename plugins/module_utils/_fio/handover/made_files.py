# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Plain files that the collection has made for fio: overwriting them loses nothing."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import typing as t
from dataclasses import asdict, replace
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal, counts_as_none
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen, has_types
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool

#: Beside the campaigns, whose own folders go when their results are collected.
FILE = ".made_files.json"
#: The extended attribute of what the collection has made.
MARK = "user.cachefleet.storage"


@frozen
class _Made:
    """One file.

    :param campaign: the last that wrote it.
    :param mark: what it carries.
    :param size: bytes, and ``ctime_ns`` the time of its last change (which cannot be set back), when fio was done with it; ``None`` while
        fio writes it.
    """

    campaign: str
    mark: str
    size: int | None = None
    ctime_ns: int | None = None


def _rows_of(found: t.Any) -> dict[str, _Made]:
    rows: dict[str, _Made] = {}
    for name, row in found.items():
        with contextlib.suppress(TypeError):
            made = _Made(**row)
            rows.update({name: made} if has_types(made) else {})
    return rows


class MadeFiles:
    """Files that a campaign may write again, also after its runner was killed: its own, and those of other campaigns that have not been
    changed since.

    A file is recognized only while it is the very same one. Its inode is not sufficient: the next file in its place may have it too. So it carries
    a mark (xattr(7)); on a file system that keeps none, it is recognized only as long as the runner that made it runs.
    """

    def __init__(self, spool: Spool, root: Path = Path("/")) -> None:
        self._journal = Journal(spool.folder / FILE, _rows_of, counts_as_none, limits=json_text.FIO, own=True)
        self.campaign = spool.campaign
        self.root = root
        self._own: dict[str, Unit | None] = {}
        self._made = self._journal.read() or {}

    def paths(self) -> frozenset[str]:
        own = {path for path, unit in self._own.items() if unit is not None and unit_of(self._place(path)) == unit}
        return frozenset(own | {path for path, made in self._made.items() if self._is_free(path, made)})

    def recorded(self) -> frozenset[str]:
        """All that was made, whatever has become of it."""
        return frozenset(self._made)

    def make(self, path: str) -> int:
        """Make an empty file that is then laid out.

        :returns: its descriptor.
        :raises CommandFailed: if it cannot be made, or is there by now.
        """
        mark = secrets.token_hex(16)
        try:
            with folder_of(path, self.root) as (folder, name):
                descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        except OSError as error:
            raise CommandFailed(f"{path} cannot be made on this host: {error.strerror}.", item=path) from None
        try:
            os.setxattr(descriptor, MARK, mark.encode())
        except OSError:
            # No marks on this file system: as long as this runner runs and holds no other, its inode is used.
            self._own[path] = unit_of(descriptor)
        self._keep(path, _Made(self.campaign, mark), durable=True)
        return descriptor

    def make_folder(self, path: str) -> None:
        """Make an empty folder for the files of jobs. On a file system that keeps no mark it is not made.

        :raises CommandFailed: if it cannot be made, or is there by now.
        """
        mark = secrets.token_hex(16)
        try:
            with folder_of(path, self.root) as (above, name):
                os.mkdir(name, 0o700, dir_fd=above)
                descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
                try:
                    os.setxattr(descriptor, MARK, mark.encode())
                except OSError as error:
                    os.rmdir(name, dir_fd=above)
                    reason = "its file system keeps no extended attributes, by which it would be recognised"
                    raise CommandFailed(f"{path} is not made on this host: {reason} ({error.strerror}).", item=path) from None
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise CommandFailed(f"{path} cannot be made on this host: {error.strerror}.", item=path) from None
        try:
            self._keep(path, _Made(self.campaign, mark), durable=True)
        except CommandFailed:
            # Without its record it would never be recognised.
            with contextlib.suppress(OSError), folder_of(path, self.root) as (above, name):
                os.rmdir(name, dir_fd=above)
            raise

    def has_mark(self, path: str, descriptor: int) -> bool:
        """Whether an open file is the one that was made under this path: names can be exchanged, this cannot."""
        if path in self._own:
            return self._own[path] == unit_of(descriptor)
        made = self._made.get(path)
        try:
            return made is not None and os.getxattr(descriptor, MARK).decode(errors="replace") == made.mark
        except OSError:
            return False

    def take_over(self, path: str) -> None:
        """Before fio writes a file that is there: if it is what another campaign has left, it is this one's from now on, whatever becomes of it.

        :raises CommandFailed: if that cannot be noted.
        """
        made = self._made.get(path)
        if made is not None and made.campaign != self.campaign and self._is_free(path, made):
            self._keep(path, _Made(self.campaign, made.mark), durable=True)

    def leave(self, measured: t.Iterable[tuple[str, bool]]) -> None:
        """Note how fio left files, now that it is done with them: as long as they stay so, the next campaign may write them too.

        :param measured: paths, and whether fio was to write them. What it has only read it has changed once at most, to lay it out:
            whatever else is in it by now is not fio's.
        """
        for path, writes in measured:
            made = self._made.get(path)
            if made is None or made.campaign != self.campaign or (made.size is not None and not writes):
                continue
            if self._mark_of(path) == made.mark:
                size, ctime_ns = self._state_of(path)
                # If this is lost the next campaign requires a permission, and nothing else happens.
                with contextlib.suppress(CommandFailed):
                    self._keep(path, replace(made, size=size, ctime_ns=ctime_ns), durable=False)

    def _keep(self, path: str, made: _Made, *, durable: bool) -> None:
        self._made[path] = made
        there = {name: asdict(one) for name, one in self._made.items() if self._mark_of(name) == one.mark or name in self._own}
        self._journal.write(there, durable=durable)

    def _is_free(self, path: str, made: _Made) -> bool:
        """Whether what lies there may be overwritten."""
        if not made.mark or self._mark_of(path) != made.mark:
            return False
        return made.campaign == self.campaign or (made.size is not None and (made.size, made.ctime_ns) == self._state_of(path))

    def _state_of(self, path: str) -> tuple[int | None, int | None]:
        try:
            found = os.lstat(self._place(path))
        except OSError:
            return None, None
        if not stat.S_ISDIR(found.st_mode):
            return found.st_size, found.st_ctime_ns
        try:
            with os.scandir(self._place(path)) as entries:
                inside = [entry.stat(follow_symlinks=False) for entry in entries]
        except OSError:
            return None, None
        return sum(one.st_size for one in inside), max([found.st_ctime_ns, *(one.st_ctime_ns for one in inside)])

    def _mark_of(self, path: str) -> str:
        try:
            return os.getxattr(self._place(path), MARK, follow_symlinks=False).decode(errors="replace")
        except OSError:
            return ""

    def _place(self, path: str) -> Path:
        return self.root / path.lstrip("/")
