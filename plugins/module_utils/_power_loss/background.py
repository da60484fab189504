# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""A writer or a witness that runs in the background: what it does is kept in a file that survives a power cut, and it holds a lock while it runs."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core import json_text
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput, CommandFailed, NotUnderstood, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.files import exchangeable, replace_file, require_path
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import read_own
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import daemon
from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.witness import log_path

_STOPPING_SECONDS = 30.0
#: Of what is known about a run, as far as it is known.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("run", "address", "boot_id", "state", "message"), (str,)),
    **dict.fromkeys(("port", "pid"), (int,)),
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
        self._path = folder / f"{run}.json"
        self._lock = folder / f"{run}.lock"

    def read(self) -> dict[str, t.Any]:
        """The state of the run; empty if it was never started here.

        :raises NotUnderstood: if its file is damaged.
        """
        try:
            found = json_text.loads(read_own(self._path))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, StorageError):
            found = None
        if not isinstance(found, dict) or found.get("run") != self.run or not all(isinstance(found[key], _TYPES[key]) for key in _TYPES if key in found):
            raise NotUnderstood(f"{self._path} cannot be read: remove it by hand.", item=str(self._path))
        return found

    def write(self, state: t.Mapping[str, t.Any]) -> None:
        replace_file(self._path, json.dumps(state, sort_keys=True), mode=0o600)

    def update(self, **changes: t.Any) -> None:
        self.write({**self.read(), **changes})

    def remove(self) -> None:
        replace_file(self._path, "")
        with contextlib.suppress(FileNotFoundError):
            self._lock.unlink()

    def is_alive(self) -> bool:
        """Whether its process runs: the kernel takes the lock from a process that was killed."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def start(self, work: t.Callable[[t.Callable[[], None]], None], keep: t.Collection[int] = ()) -> None:
        """Run something in a process of its own, which holds the lock.

        :param work: and ``keep``, see :func:`daemon.start`.
        """
        daemon.start(lambda under_way: self._locked(work, under_way), keep)

    def _locked(self, work: t.Callable[[t.Callable[[], None]], None], under_way: t.Callable[[], None]) -> None:
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"The run {self.run} was started twice at the same time.", item=self.run) from None
        self.update(pid=os.getpid())
        work(under_way)

    def stop(self) -> bool:
        """End the process and wait for its end.

        :returns: whether it was running.
        :raises CommandFailed: if it does not end.
        """
        if not self.is_alive():
            return False
        pid = self.read().get("pid")
        for number in (signal.SIGTERM, signal.SIGKILL):
            if isinstance(pid, int) and self.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if self._wait_for_end():
                return True
        raise CommandFailed(f"The process {pid} of the run {self.run} does not end.", item=self.run)

    def _wait_for_end(self) -> bool:
        deadline = time.monotonic() + _STOPPING_SECONDS
        while self.is_alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True
