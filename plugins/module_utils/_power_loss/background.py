# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A writer or a witness that runs in the background: what it does is kept in a file that survives a power cut."""

from __future__ import annotations

import contextlib
import fcntl
import os
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import (
    BackgroundProcess,
    Work,
    end_process,
    is_alive,
    process_identity,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import exchangeable, require_path
from ansible_collections.cachefleet.storage.plugins.module_utils._core.journal import Journal
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import log_path

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

_STOPPING_SECONDS = 30.0
#: Of what is known about a run, as far as it is known.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "address", "boot_id", "state", "message"), (str,)),
    **dict.fromkeys(("port", "pid", "pid_started"), (int,)),
    "spec": (dict,),
    "permitted": (bool,),
}


def make_private_folder(folder: Path) -> None:
    """Make a folder of this user, if it is not there.

    :raises CommandFailed: if it cannot be made, or other users can write to it.
    """
    require_path(folder, "folder")
    reason = exchangeable(folder)
    if reason:
        raise CommandFailed(f"{reason}, or name another folder.", item=str(folder))
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except PermissionError:
        raise CommandFailed(f"The folder {folder} cannot be made by user {os.geteuid()}: set become: true.", item=str(folder)) from None
    except OSError as error:
        raise CommandFailed(f"The folder {folder} cannot be made: {error.strerror}.", item=str(folder)) from None
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise CommandFailed(f"The folder {folder} must be a folder of this user to which other users cannot write.", item=str(folder))


class BackgroundRun:
    """The process of one run, and what is known about it.

    :param folder: of this kind of process; see :func:`make_private_folder`.
    :param run: id of the run, 32 hexadecimal digits.
    """

    def __init__(self, folder: Path, run: str) -> None:
        require_path(folder, "folder")
        # Checks that the id is a file name.
        log_path(folder, run)
        self.folder = folder
        self.run = run
        self._journal = Journal(folder / f"{run}.json", self._checked, self._unusable, own=True)
        self._lock = folder / f"{run}.lock"

    def _checked(self, found: t.Any) -> dict[str, t.Any]:
        if found.get("run") != self.run or not all(isinstance(found[key], _TYPES[key]) for key in _TYPES if key in found):
            raise ValueError
        return dict(found)

    def _unusable(self, _error: StorageError) -> t.NoReturn:
        raise NotUnderstood(f"{self._journal.path} cannot be read: remove it by hand.", item=str(self._journal.path))

    def read(self) -> dict[str, t.Any]:
        """The state of the run; empty if it was never started here.

        :raises NotUnderstood: if its file is damaged.
        """
        return self._journal.read() or {}

    def write(self, state: t.Mapping[str, t.Any]) -> None:
        self._journal.write(state)

    def update(self, **changes: t.Any) -> None:
        self.write({**self.read(), **changes})

    def remove(self) -> None:
        self._journal.remove()
        with contextlib.suppress(FileNotFoundError):
            self._lock.unlink()

    def is_alive(self) -> bool:
        """Whether its process runs."""
        return is_alive(self.read())

    def start(self, process: BackgroundProcess, work: Work, runner: Runner, keep: t.Collection[int] = ()) -> None:
        """Run something in a process of its own, which holds a lock that a second one does not get.

        :param work: ``runner`` and ``keep``, see :meth:`BackgroundProcess.start`.
        """
        process.start(lambda under_way: self._locked(work, under_way), runner, keep)

    def _locked(self, work: Work, under_way: t.Callable[[], None]) -> None:
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"The run {self.run} was started twice at the same time.", item=self.run) from None
        self.update(**process_identity())
        work(under_way)

    def stop(self) -> bool:
        """End the process and wait for its end.

        :returns: whether it was running.
        :raises CommandFailed: if it does not end.
        """
        state = self.read()
        running = is_alive(state)
        if running and not end_process(state, _STOPPING_SECONDS):
            raise CommandFailed(f"The process {state['pid']} of the run {self.run} does not end.", item=self.run)
        return running
