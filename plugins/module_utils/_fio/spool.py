# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where finished cells wait on a host until they are collected: ``<spool>/<campaign>/<variant>/<cell>/<repeat>/``.

A cell is written under a temporary name and renamed, so a folder is either whole or not there. ``meta.json`` has the hash of
every other file. All cells of a campaign are packed into one tar for the journey.

The user of the connection reads the archive and ``runner.json``; everything else is for the user who measures. Files are made anew and
never through a link, so that nothing is written elsewhere when the spool lies where every user may write.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import stat
import tarfile
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import exchangeable, sync_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import (
    READABLE,
    new_file,
    write_new,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.cell_key import CellKey, component

#: The version of meta.json.
SCHEMA = 1

#: Of this collection, as galaxy.yml has it: no module can read its release.
COLLECTION_VERSION = "1.0.0"

#: Options of modules that measure, and of those that read or collect what was measured.
CAMPAIGN_OPTION: t.Mapping[str, t.Mapping[str, t.Any]] = {"campaign": {"type": "str", "required": True}}
SPOOL_OPTION: t.Mapping[str, t.Mapping[str, t.Any]] = {"spool": {"type": "str", "default": "/var/lib/cachefleet/spool"}}
MEASUREMENT_OPTIONS: t.Mapping[str, t.Mapping[str, t.Any]] = {
    **CAMPAIGN_OPTION,
    "variant": {"type": "str", "default": "as_found"},
    "spool": {**SPOOL_OPTION["spool"], "type": "path"},
    "keep_going": {"type": "bool", "default": True},
    "slack": {"type": "float", "default": 120},
    "timeout": {"type": "float", "default": 21600},
}

#: The least that must be free before a cell begins. In bytes.
MINIMUM_FREE = 16 * MIB

#: Seconds for which a runner may still have the lock after its last status was collected: a busy host needs time to end a process.
UNLOCKING = 10.0

META = "meta.json"
PROGRESS_FILE = "progress.json"

#: How often cells are packed anew when one was replaced meanwhile.
_ATTEMPTS = 5


class _Moved(Exception):
    """A cell was replaced by a newer one while it was being packed."""


class SpoolError(StorageError):
    """The spool cannot be written."""

    kind = "spool"


class Spool:
    """The waiting results of one campaign on this host.

    :raises BadInput: if the name of the campaign cannot be a folder.
    """

    def __init__(self, folder: Path, campaign: str) -> None:
        self.folder = folder
        self.campaign = component(campaign, "campaign")
        self.home = folder / self.campaign
        self.archive = folder / f"{self.campaign}.tar"

    def place(self, key: CellKey) -> Path:
        """The folder of a finished cell."""
        return CellKey.checked(key.variant, key.cell, key.repeat).below(self.home)

    def make(self) -> None:
        """Make the campaign's folder, in which the fetching user can read files by name: see :meth:`opened`."""
        with self._explained():
            _make_folders(self.home)

    def require_own(self) -> None:
        """:raises SpoolError: if the campaign's folder is there, and another user could have put into it what they like."""
        with self._explained():
            if self.home.exists():
                _require_protected(self.home)

    @contextlib.contextmanager
    def opened(self) -> t.Iterator[None]:
        """Make the campaign's folder, readable for the user that fetches, lock the spool, and check the free space.

        Folders that are there already keep their modes: they may be used for something else too.

        :raises SpoolError: if that cannot be done, if another user could put a link in its place, or if another run is
            measuring on this host.
        """
        with contextlib.ExitStack() as held:
            self.make()
            with self._explained():
                lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
                held.callback(os.close, lock)
            if not _locked(lock):
                raise SpoolError(f"Another run is measuring on this host with the spool {self.folder}: wait for its end.", item=str(self.folder))
            with self._explained():
                # What a run left that was killed while it wrote.
                for leftover in self.home.glob(".cell.*"):
                    shutil.rmtree(leftover)
            self.require_space()
            yield

    def is_free(self) -> bool:
        """Whether no run measures with this spool now."""
        try:
            lock = os.open(self.folder / ".lock", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return True
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        finally:
            os.close(lock)
        return True

    def require_space(self, more: int = 0) -> None:
        """:raises SpoolError: if there is no free space, for so many further bytes."""
        with self._explained():
            found = os.statvfs(self.home)
        free = found.f_bavail * found.f_frsize
        if free < MINIMUM_FREE + more:
            raise SpoolError(
                f"The file system of the spool {self.folder} on this host has {format_size(free)} free and {format_size(MINIMUM_FREE + more)} are needed: "
                "free space, collect earlier results, or set spool to another folder.",
                item=str(self.folder),
            )

    @contextlib.contextmanager
    def workplace(self, number: int = 0) -> t.Iterator[Path]:
        """A new folder on the spool's file system in which a cell is measured; gone afterwards.

        :param number: of the cell among those that run at once.
        """
        folder = self.home / (f".cell.work-{number}" if number else ".cell.work")
        with self._explained():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def store(self, key: CellKey, files: t.Mapping[str, bytes], meta: t.Mapping[str, t.Any]) -> Path:
        """Put a finished cell in its place. An older result of the same cell is replaced.

        :param files: by name; those that end in ``.gz`` are given unpacked.
        :param meta: without ``files``, which is added.
        :raises SpoolError: if it cannot be written; then nothing is there.
        """
        place = self.place(key)
        new = self.home / ".cell.new"
        with self._explained():
            shutil.rmtree(new, ignore_errors=True)
            try:
                new.mkdir(mode=0o700)
                packed = {name: gzip.compress(content, mtime=0) if name.endswith(".gz") else content for name, content in files.items()}
                hashes = {name: hashlib.sha256(content).hexdigest() for name, content in sorted(packed.items())}
                packed[META] = _json({**meta, "files": hashes})
                for name, content in packed.items():
                    write_new(new / name, content)
                sync_folder(new)
                for folder in (place.parent.parent, place.parent):
                    folder.mkdir(mode=0o700, exist_ok=True)
                if place.exists():
                    old = self.home / ".cell.old"
                    shutil.rmtree(old, ignore_errors=True)
                    place.rename(old)
                    new.rename(place)
                    shutil.rmtree(old)
                else:
                    new.rename(place)
                # The names of the cell, its repeat and its variant are entries of the folders above them.
                for folder in (place.parent, place.parent.parent, self.home):
                    sync_folder(folder)
            finally:
                shutil.rmtree(new, ignore_errors=True)
        return place

    def read_meta(self, key: CellKey) -> dict[str, t.Any] | None:
        """``meta.json`` of a finished cell whose files are whole; ``None`` if there is none."""
        place = self.place(key)
        try:
            meta = json_text.read_json(place / META)
            whole = all(hashlib.sha256((place / name).read_bytes()).hexdigest() == sha256 for name, sha256 in meta["files"].items())
        except (OSError, ValueError, KeyError, AttributeError, TypeError, StorageError):
            return None
        return meta if whole else None

    def note_progress(self, progress: t.Mapping[str, t.Any]) -> None:
        """Write into ``progress.json`` which cell is being measured.

        :raises SpoolError: if it cannot be written.
        """
        with self._explained():
            draft = self.home / f".{PROGRESS_FILE}"
            write_new(draft, _json(progress), durable=False, mode=READABLE)
            draft.rename(self.home / PROGRESS_FILE)

    def pack(self) -> dict[str, t.Any]:
        """All finished cells of the campaign in one tar of ``<variant>/<cell>/<repeat>/<file>``.

        A runner may put further cells in place meanwhile.

        :returns: ``{path, sha256, size}``; empty if there is no cell.
        :raises SpoolError: if it cannot be written.
        """
        for _attempt in range(_ATTEMPTS):
            try:
                return self._pack()
            except _Moved:
                continue
        raise SpoolError(f"The results of {self.campaign} in {self.folder} on this host change faster than they can be packed: try again.", item=str(self.home))

    def _pack(self) -> dict[str, t.Any]:
        cells = sorted(path.parent for path in self.home.glob(f"[!.]*/*/*/{META}"))
        if not cells:
            return {}
        draft = self.folder / f".{self.campaign}.tar.new"
        with self._explained():
            try:
                with os.fdopen(new_file(draft), "wb") as new, tarfile.open(fileobj=new, mode="w", format=tarfile.PAX_FORMAT) as tar:
                    for cell in cells:
                        self._add_cell(tar, cell)
                    os.fchmod(new.fileno(), READABLE)
                draft.rename(self.archive)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    draft.unlink()
            return {"path": str(self.archive), "sha256": sha256_of(self.archive), "size": self.archive.stat().st_size}

    def _add_cell(self, tar: tarfile.TarFile, cell: Path) -> None:
        """:raises _Moved: if another folder took its place meanwhile: its files would not belong together."""
        try:
            before = cell.stat().st_ino
            for file in sorted(cell.iterdir()):
                _add(tar, file, str(file.relative_to(self.home)))
            after = cell.stat().st_ino
        except FileNotFoundError:
            raise _Moved from None
        if before != after:
            raise _Moved

    @contextlib.contextmanager
    def _explained(self) -> t.Iterator[None]:
        """Turn an error of the operating system into a sentence."""
        try:
            yield
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                what = "is full: free space, collect earlier results, or set spool to another folder."
                raise SpoolError(f"The file system of the spool {self.folder} on this host {what}", item=str(self.folder)) from None
            raise SpoolError(
                f"The spool {self.folder} on this host cannot be used: {error.strerror} ({error.filename}). Correct it or set spool to another folder.",
                item=str(self.folder),
            ) from None


def _locked(lock: int) -> bool:
    """Whether the lock could be had."""
    ends = time.monotonic() + UNLOCKING
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= ends:
                return False
            time.sleep(0.05)


def _make_folders(home: Path) -> None:
    """Make a campaign's folder and those above it. Every user may read the list of campaigns, and enter one; existing folders are not changed.

    :raises SpoolError: if another user could have made one of them, or could exchange it: root would write where they choose.
    """
    absolute = Path(os.path.abspath(home))
    for folder in (*reversed(absolute.parents), absolute):
        _require_unexchangeable(folder)
        try:
            folder.mkdir(mode=0o700)
        except OSError:
            # Not every system reports that an existing folder exists: the error may be that it is read-only as well.
            if folder.exists() and not folder.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
            if not folder.exists():
                raise
        else:
            folder.chmod(0o711 if folder == absolute else 0o755)
    _require_protected(home)


def _require_protected(home: Path) -> None:
    """:raises SpoolError: if another user could have made a campaign's folder, or one above it, or may exchange or write to it."""
    _require_unexchangeable(home)
    if os.stat(home).st_mode & stat.S_IWOTH:
        raise SpoolError(
            f"Every user may write to the spool's folder {home} on this host: remove write permission for others (chmod o-w), "
            "or give the campaign another name.",
            item=str(home),
        )


def _require_unexchangeable(folder: Path) -> None:
    reason = exchangeable(folder)
    if reason:
        raise SpoolError(f"{reason}, or set spool to another folder.", item=str(folder))


def _json(content: t.Any) -> bytes:
    return (json.dumps(content, indent=1, sort_keys=False, allow_nan=False) + "\n").encode()


def _add(tar: tarfile.TarFile, file: Path, name: str) -> None:
    """Without the owner and modes of the host."""
    with open(file, "rb") as content:
        entry = tar.gettarinfo(arcname=name, fileobj=content)
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mode = 0o644
        # A fraction of a second would cost a header of its own for every file.
        entry.mtime = int(entry.mtime)
        tar.addfile(entry, content)


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(MIB), b""):
            found.update(block)
    return found.hexdigest()
