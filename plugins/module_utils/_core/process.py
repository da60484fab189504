# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

"""The one way to run a command: an argument list, the C locale, a time limit, never a shell."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
import typing as t
from dataclasses import dataclass

from ansible.module_utils.common.process import get_bin_path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    CommandFailed,
    TimedOut,
    ToolMissing,
)

#: Debian, Ubuntu and RHEL package that carries a command, where its name is not the command's own.
PACKAGES = {
    "bcache-super-show": "bcache-tools",
    "blkdiscard": "util-linux",
    "blkid": "util-linux",
    "blockdev": "util-linux",
    "cache_check": "thin-provisioning-tools (device-mapper-persistent-data on RHEL)",
    "dmsetup": "dmsetup (device-mapper on RHEL)",
    "lvchange": "lvm2",
    "lvconvert": "lvm2",
    "lvcreate": "lvm2",
    "lvm": "lvm2",
    "lvremove": "lvm2",
    "lvs": "lvm2",
    "make-bcache": "bcache-tools",
    "modprobe": "kmod",
    "nvme": "nvme-cli",
    "pvcreate": "lvm2",
    "pvremove": "lvm2",
    "pvs": "lvm2",
    "sfdisk": "fdisk (util-linux on RHEL)",
    "smartctl": "smartmontools",
    "udevadm": "udev (systemd-udev on RHEL)",
    "vgextend": "lvm2",
    "vgreduce": "lvm2",
    "vgs": "lvm2",
    "wipefs": "util-linux",
}


@dataclass(frozen=True)
class Completed:
    """What one command did. ``seconds`` is wall time."""

    argv: tuple[str, ...]
    rc: int
    stdout: str
    stderr: str
    seconds: float = 0.0

    @property
    def command_line(self) -> str:
        """The command as one could paste it into a shell."""
        return " ".join(shlex.quote(word) for word in self.argv)

    @property
    def last_words(self) -> str:
        """The last line the command printed, errors first: usually the reason."""
        for text in (self.stderr, self.stdout):
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            if lines:
                return lines[-1]
        return "it printed nothing"


class Runner:
    """Runs commands and remembers them.

    :param timeout: seconds a command may take unless its caller says otherwise.
    :param vendor_dirs: directories outside the system's usual ones, searched first by :meth:`find`.
        Never a standard directory: a tool that was put first on PATH on purpose must win.
    """

    def __init__(self, timeout: float = 60.0, vendor_dirs: t.Sequence[str] = ()) -> None:
        self.timeout = timeout
        self.vendor_dirs = list(vendor_dirs)
        self.history: list[Completed] = []

    def find(self, name: str) -> str:
        """The absolute path of a command.

        :raises ToolMissing: naming the package to install.
        """
        if os.sep in name:
            if os.access(name, os.X_OK) and not os.path.isdir(name):
                return name
            raise ToolMissing(f"{name} does not exist or cannot be executed on this host.", item=name)
        try:
            return get_bin_path(name, opt_dirs=self.vendor_dirs)
        except ValueError:
            package = PACKAGES.get(name, name)
            raise ToolMissing(f"The command {name} is missing on this host: install the package {package}.", item=name) from None

    def has(self, name: str) -> bool:
        """Whether a command is there."""
        try:
            self.find(name)
        except ToolMissing:
            return False
        return True

    def run(
        self,
        argv: t.Sequence[str],
        *,
        ok: t.Container[int] | None = (0,),
        timeout: float | None = None,
        stdin: str = "",
        item: str | None = None,
        watch: t.Callable[[], t.Any] | None = None,
        interval: float = 5.0,
        patience: float = 2.0,
        cwd: str | None = None,
    ) -> Completed:
        """Run one command to its end.

        :param argv: the command and its arguments; the first word is looked up with :meth:`find`.
        :param ok: exit statuses that are no failure; ``None`` accepts every one.
        :param timeout: seconds, after which the whole process group is stopped.
        :param item: named in the error.
        :param watch: called every ``interval`` seconds while the command runs; if it raises, the command is stopped.
        :param patience: seconds between asking a command to stop and forcing it to.
        :param cwd: the folder in which it runs.
        :raises ToolMissing: if the command is not installed.
        :raises TimedOut: if the time limit passed.
        :raises CommandFailed: if the exit status is not in ``ok``.
        """
        limit = self.timeout if timeout is None else timeout
        words = (self.find(argv[0]), *(str(word) for word in argv[1:]))
        completed = self._completed(words, limit=limit, stdin=stdin, item=item, watch=watch, interval=interval, patience=patience, cwd=cwd)
        if ok is not None and completed.rc not in ok:
            raise CommandFailed(f"{completed.command_line} failed with exit status {completed.rc}: {completed.last_words}", item=item, completed=completed)
        return completed

    def _completed(
        self,
        words: tuple[str, ...],
        *,
        limit: float,
        stdin: str,
        item: str | None,
        watch: t.Callable[[], t.Any] | None,
        interval: float,
        patience: float,
        cwd: str | None,
    ) -> Completed:
        """One command in a process of its own, to its end, whatever its exit status: see :meth:`run`."""
        started = time.monotonic()
        with start_command(words, environment(), cwd, item) as process:
            try:
                out, err = _communicate(process, stdin.encode(), started + limit, watch, interval)
            except subprocess.TimeoutExpired:
                out, err = stop_group(process, patience)
                raise self._timed_out(self._remember(words, process.returncode, out, err, started), limit, item) from None
            except BaseException:
                stop_group(process, patience)
                raise
        return self._remember(words, process.returncode, out, err, started)

    @staticmethod
    def _timed_out(completed: Completed, limit: float, item: str | None) -> TimedOut:
        return TimedOut(f"{completed.command_line} did not end within {limit:g} seconds and was stopped.", item=item, completed=completed)

    def _remember(self, argv: tuple[str, ...], rc: int, out: bytes, err: bytes, started: float) -> Completed:
        completed = Completed(argv, rc, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - started)
        self.history.append(completed)
        return completed


def environment() -> dict[str, str]:
    """What a command finds around it: everything that this process has, and messages in English."""
    return {**os.environ, "LC_ALL": "C", "LANGUAGE": "C", "LVM_SUPPRESS_FD_WARNINGS": "1"}


def start_command(
    words: tuple[str, ...], variables: t.Mapping[str, str], cwd: str | None, item: str | None, pass_fds: t.Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """A command that begins to run.

    :raises ToolMissing: if it is there and cannot be started.
    """
    try:
        # AnsibleModule.run_command has no time limit and needs a module.
        return subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=variables,
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolMissing(
            f"{words[0]} is there and cannot be started ({error.strerror}): is it for another architecture, or is its interpreter or loader missing?",
            item=item or words[0],
        ) from None


def _communicate(process: subprocess.Popen[bytes], stdin: bytes, deadline: float, watch: t.Callable[[], t.Any] | None, interval: float) -> tuple[bytes, bytes]:
    """Wait for a process, calling ``watch`` from time to time."""
    to_send: bytes | None = stdin
    while True:
        left = max(deadline - time.monotonic(), 0.0)
        patience = min(left, interval) if watch else left
        try:
            return process.communicate(to_send, timeout=patience)
        except subprocess.TimeoutExpired:
            if watch is None or patience >= left:
                raise
            # Popen keeps the input of the first call and refuses another.
            to_send = None
            watch()


def stop_group(process: subprocess.Popen[bytes], patience: float) -> tuple[bytes, bytes]:
    """End a process and its children: first asked, after ``patience`` seconds forced."""
    for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, 5.0)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=wait)
    return b"", b""
