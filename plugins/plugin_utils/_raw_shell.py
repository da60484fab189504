# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Commands without Python: what polling a host may cost while it measures."""

# Note that this module util is **PRIVATE** to the collection. It can have breaking changes at any time.

from __future__ import annotations

import contextlib
import signal
import threading
import typing as t
from dataclasses import dataclass

from ansible.errors import AnsibleConnectionFailure, AnsibleError

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import plain
from ansible_collections.cachefleet.storage.plugins.plugin_utils._limited_answer import COMMAND_ANSWER, limited_answer, require_short


@dataclass(frozen=True)
class ShellReply:
    """What a command on a host left."""

    rc: int
    stdout: str
    stderr: str


class _Hanging(BaseException):
    """No ``Exception``: connection plugins catch those and try again."""


class RawShell:
    """Runs shell commands on the host of an action plugin, over its connection.

    A command runs as the user of the connection, which is the cheapest. Where that user is refused and the task has become, this and
    every later one runs through become.

    No answer is kept that is longer than ``COMMAND_ANSWER``: each method raises TooMuchOutput then.

    :param action: the action plugin.
    :param host: its name, for messages.
    :param limit: seconds after which a connection that does not answer is closed. A cut connection does not report it.
    """

    def __init__(self, action: t.Any, host: str, limit: float = 60.0) -> None:
        self._action = action
        self._host = host
        self._limit = limit
        self._through_become = False

    def ask(self, command: str) -> ShellReply:
        """Run a command that changes nothing.

        :raises AnsibleConnectionFailure: if the host is not in reach.
        """
        if not self._through_become:
            # Without a shell of Ansible's around the one that the connection starts anyway.
            answer = self._run(command, become=False, executable="")
            if answer.rc == 0 or getattr(self._action._connection, "become", None) is None:
                return answer
        answer = self._run(command, become=True)
        # What fails for root too, a file that is not there for example, does not depend on permissions.
        self._through_become = self._through_become or answer.rc == 0
        return answer

    def ask_plainly(self, command: str) -> ShellReply:
        """Run a command as the user of the connection, with nothing around it that takes time.

        :raises AnsibleConnectionFailure: if the host is not in reach.
        """
        return self._run(command, become=False, executable="")

    def do(self, command: str) -> ShellReply:
        """Run a command that changes something, with become if the task has it.

        :raises AnsibleConnectionFailure: if the host is not in reach.
        """
        return self._run(command, become=True)

    def _run(self, command: str, *, become: bool, executable: str | None = None) -> ShellReply:
        try:
            with _alarm(self._limit), limited_answer(self._host, COMMAND_ANSWER):
                reply = self._action._low_level_execute_command(command, sudoable=become, executable=executable)
        except _Hanging:
            self.renew()
            raise AnsibleConnectionFailure(f"no answer within {self._limit:g} seconds") from None
        require_short(reply, self._host, COMMAND_ANSWER)
        return ShellReply(int(reply.get("rc") or 0), str(reply.get("stdout", "")), str(reply.get("stderr", "")))

    def renew(self) -> None:
        """Close a connection that is kept open, so that the next command begins from nothing."""
        with contextlib.suppress(AnsibleError, NotImplementedError, AttributeError, OSError, _Hanging), _alarm(self._limit):
            self._action._connection.reset()


def why(error: BaseException) -> str:
    """The message for a failed connection."""
    return plain(str(error), 160)


@contextlib.contextmanager
def _alarm(seconds: float) -> t.Iterator[None]:
    """Raise :class:`_Hanging` after so many seconds, unless the alarm is in use already, as the keyword timeout of a task does."""
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def ring(_number: int, _frame: t.Any) -> None:
        raise _Hanging

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
