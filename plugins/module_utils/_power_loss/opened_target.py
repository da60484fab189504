# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a power-loss test writes to, open: the device that was examined, or the file or folder that the test makes, recognizes again and removes.

Between two uses of a path any user who may write to one of its folders can put something else in its place. So a path is walked without
following a link, what was made stays open, and everything that is done to it is done to its descriptor, or to its name in a folder that is open.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MARK
from ansible_collections.cachefleet.storage.plugins.module_utils._guard import judge
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.medium import FILE_NAME

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import TargetFacts

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# A FIFO in its place must not block.
_PRESENT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class MadeTarget:
    """The file or folder that a run made.

    :param device: number of its file system, which another one can have after a boot.
    :param mark: that it has (xattr(7)); empty on a file system that has none.
    """

    device: int
    inode: int
    mark: str = ""

    def is_open_as(self, descriptor: int, *, rebooted: bool) -> bool:
        """Whether a descriptor is the very same file or folder."""
        status = os.fstat(descriptor)
        same_file_system = status.st_dev == self.device or (rebooted and self.mark != "")
        return same_file_system and status.st_ino == self.inode and _mark_of(descriptor) == self.mark


Recorder = t.Callable[[MadeTarget], None]


def open_device(facts: TargetFacts, flags: int, runner: Runner) -> int:
    """A descriptor of the device that was examined.

    :raises Refused: if it is another device by now.
    :raises CommandFailed: if it cannot be opened.
    """
    try:
        descriptor = os.open(facts.path, flags | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise CommandFailed(f"{facts.target.path} cannot be opened: {error.strerror}.", item=facts.target.path) from None
    try:
        judge.require_same_device(descriptor, facts, runner)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def make_file(path: Path, size: int, record: Recorder = lambda _made: None) -> int:
    """Make a file that is not there yet, allocate it, and sync it and its folder: its existence must not be what a power cut takes.

    :param size: bytes; 0 for one that grows.
    :param record: called with what was made before anything else is done to it.
    :returns: its descriptor.
    :raises CommandFailed: if it exists already, or there is no space.
    :raises Refused: if there is a link on its path.
    """
    try:
        with folder_of(str(path), Path("/")) as (folder, name):
            descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
            with _closed_on_failure(descriptor):
                record(_marked(descriptor))
                if size:
                    os.posix_fallocate(descriptor, 0, size)
                _sync_up(descriptor, folder)
    except OSError as error:
        raise _failure(path, f"The file {path} of the power-loss test cannot be made", error) from None
    return descriptor


def make_folder(path: Path, record: Recorder = lambda _made: None) -> int:
    """Make a folder that is not there yet, and sync it.

    :param record: see :func:`make_file`.
    :returns: its descriptor.
    :raises CommandFailed: if it exists already.
    :raises Refused: if there is a link on its path, or another folder is in its place at once.
    """
    try:
        with folder_of(str(path), Path("/")) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)
            descriptor = os.open(name, _PRESENT | os.O_DIRECTORY, dir_fd=folder)
            with _closed_on_failure(descriptor):
                # mkdir(2) opens nothing.
                if os.fstat(descriptor).st_uid != os.geteuid() or os.listdir(descriptor):
                    raise replaced(path)
                record(_marked(descriptor))
                _sync_up(descriptor, folder)
    except OSError as error:
        raise _failure(path, f"The folder {path} of the power-loss test cannot be made", error) from None
    return descriptor


def require_in_place(path: Path, descriptor: int) -> None:
    """:raises Refused: if a path leads to something else than what is open."""
    try:
        with _present(path) as (_folder, _name, found):
            if os.path.samestat(os.fstat(found), os.fstat(descriptor)):
                return
    except OSError:
        pass
    raise replaced(path)


def open_left(path: Path, owner: int, *, is_folder: bool) -> int | None:
    """A descriptor for reading of what a run has left; ``None`` if nothing is left.

    :param owner: of what the run made: others cannot make files of this user.
    :raises Refused: if something else is in its place.
    :raises CommandFailed: if it cannot be opened.
    """
    try:
        with _present(path) as (_folder, _name, found):
            status = os.fstat(found)
            right = stat.S_ISDIR(status.st_mode) if is_folder else stat.S_ISREG(status.st_mode)
            if not right or status.st_uid != owner:
                raise Refused(f"{path} is not what the power-loss test made: it is not read.", item=str(path))
            return os.dup(found)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failure(path, f"{path} cannot be opened", error) from None


def remove(path: Path, made: MadeTarget, *, rebooted: bool) -> None:
    """Remove what a run made, if it is still there.

    :param rebooted: whether the host was booted since it was made.
    :raises Refused: if something else is in its place.
    :raises CommandFailed: if it cannot be removed.
    """
    try:
        with _present(path) as (folder, name, found):
            if not made.is_open_as(found, rebooted=rebooted):
                raise Refused(f"{path} is not what the power-loss test made: it is not removed.", item=str(path))
            _unlink(path, folder, name, found)
    except FileNotFoundError:
        # A power cut may have taken it.
        return
    except OSError as error:
        raise _failure(path, f"{path} cannot be removed", error) from None


def replaced(path: Path) -> Refused:
    """The error for a path that leads to something else than it did."""
    return Refused(
        f"{path} or one of its folders was replaced while the power-loss test used it: choose a folder in which only root may create files.", item=str(path)
    )


def _unlink(path: Path, folder: int, name: str, found: int) -> None:
    try:
        if not stat.S_ISDIR(os.fstat(found).st_mode):
            os.unlink(name, dir_fd=folder)
            return
        for block in os.listdir(found):
            if FILE_NAME.match(block):
                os.unlink(block, dir_fd=found)
        os.rmdir(name, dir_fd=folder)
    except FileNotFoundError:
        raise replaced(path) from None
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise Refused(f"{path} has files that the power-loss test did not make: remove it by hand.", item=str(path)) from None


@contextlib.contextmanager
def _present(path: Path) -> t.Iterator[tuple[int, str, int]]:
    """The folder of a path, the name in it, and what has that name, open.

    :raises OSError: ``ELOOP`` or ``ENOTDIR`` for a link.
    """
    with folder_of(str(path), Path("/")) as (folder, name):
        descriptor = os.open(name, _PRESENT, dir_fd=folder)
        try:
            yield folder, name, descriptor
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def _closed_on_failure(descriptor: int) -> t.Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(descriptor)
        raise


def _marked(descriptor: int) -> MadeTarget:
    status = os.fstat(descriptor)
    with contextlib.suppress(OSError):
        os.setxattr(descriptor, MARK, secrets.token_hex(16).encode())
    return MadeTarget(status.st_dev, status.st_ino, _mark_of(descriptor))


def _mark_of(descriptor: int) -> str:
    try:
        return os.getxattr(descriptor, MARK).decode(errors="replace")
    except OSError:
        return ""


def _sync_up(descriptor: int, folder: int) -> None:
    """Sync what was made, the folder that it is in, and the one above."""
    os.fsync(descriptor)
    for name in (".", ".."):
        above = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(above)
        finally:
            os.close(above)


def _failure(path: Path, what: str, error: OSError) -> StorageError:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return replaced(path)
    return CommandFailed(f"{what}: {error.strerror}.", item=str(path))
