# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The one way to run a command: an argument list, the C locale, a time limit, never a shell."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import typing as t

from ansible.module_utils.common.process import get_bin_path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import (
    Completed,
    TimedOut,
    ToolMissing,
    TooMuchOutput,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size

Result = t.TypeVar("Result")

#: The most bytes of standard output, and of standard error, that are kept of one command.
MOST_OUTPUT = 16 * MIB
#: Seconds between SIGKILL and giving up on a process.
_FORCED = 5.0
#: Seconds between two checks of the processes of a group that is being stopped.
_LOOK = 0.2
#: epoll takes no more than 24 days at once.
_LONGEST_SELECT = 3600.0
_CHUNK = 1 << 16
#: The most bytes that a pipe takes at once without blocking when it is reported as writable (pipe(7), PIPE_BUF).
_WRITE = 4096
#: Commands that a runner records.
_REMEMBERED = 64


class Runner:
    """Runs commands and records them.

    :param timeout: seconds a command may take unless its caller sets another limit.
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
        path = self._path_of(name)
        if path:
            return path
        if os.sep in name:
            raise ToolMissing(f"{name} does not exist or cannot be executed on this host: set the path of an executable file.", item=name)
        from ansible_collections.cachefleet.storage.plugins.module_utils._core.distributions import package_advice

        raise ToolMissing(f"The command {name} is missing on this host: {package_advice(name)}.", item=name)

    def has(self, name: str) -> bool:
        """Whether a command is there."""
        return bool(self._path_of(name))

    def _path_of(self, name: str) -> str:
        if os.sep in name:
            # os.path.isfile, unlike os.access, takes a path with a null character.
            return name if os.path.isfile(name) and os.access(name, os.X_OK) else ""
        try:
            return str(get_bin_path(name, opt_dirs=self.vendor_dirs))
        except ValueError:
            return ""

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
        pass_fds: t.Sequence[int] = (),
        max_output: int = MOST_OUTPUT,
    ) -> Completed:
        """Run one command to its end.

        A process that cannot be killed is left running: the call returns at most 5 seconds after ``timeout`` and ``patience``.

        :param argv: the command and its arguments; the first word is looked up with :meth:`find`.
        :param ok: exit statuses that are no failure; ``None`` accepts every one.
        :param timeout: seconds, after which the whole process group is stopped.
        :param item: named in the error.
        :param watch: called every ``interval`` seconds while the command runs; if it raises, the command is stopped.
        :param patience: seconds between SIGTERM and SIGKILL for a command.
        :param cwd: the folder in which it runs.
        :param pass_fds: open files that the command inherits under the same numbers.
        :param max_output: bytes of standard output, and of standard error, after which the command is stopped.
        :raises ToolMissing: if the command is not installed.
        :raises TimedOut: if the time limit passed.
        :raises TooMuchOutput: if it printed more than ``max_output``.
        :raises CommandFailed: if the exit status is not in ``ok``.
        """
        limit = self.timeout if timeout is None else timeout
        words = (self.find(argv[0]), *(str(word) for word in argv[1:]))
        started = time.monotonic()
        process = start_command(words, cwd, item, pass_fds)
        with _Exchange(process, stdin.encode(), max_output) as exchange:
            try:
                done = _follow(exchange, started + limit, watch, interval)
            except BaseException:
                exchange.stop(patience)
                raise
            # Called before it is stopped, which ends it in any case.
            only_output = not done and _is_over(process.pid)
            left = () if done else exchange.stop(patience)
        completed = self._remember(words, -1 if process.returncode is None else process.returncode, exchange.out, exchange.err, started)
        if exchange.too_much:
            raise _too_much(completed, max_output, item, left)
        if not done:
            raise _timed_out(completed, limit, item, left, only_output=only_output)
        return completed.require(ok, item)

    def _remember(self, argv: tuple[str, ...], rc: int, out: bytes | bytearray, err: bytes | bytearray, started: float) -> Completed:
        completed = Completed(argv, rc, out.decode(errors="replace"), err.decode(errors="replace"), time.monotonic() - started)
        self.history.append(completed)
        # A runner that measures for days must not keep the output of every command.
        del self.history[:-_REMEMBERED]
        return completed


@frozen
class Running:
    """A process that did not end on SIGKILL. ``state`` is the letter of proc(5)."""

    pid: int
    name: str
    state: str

    def __str__(self) -> str:
        if self.state == "D":
            return f"process {self.pid} ({self.name}) is in uninterruptible sleep and ends when its device answers"
        return f"process {self.pid} ({self.name}) did not end on SIGKILL"


def _how_stopped(left: t.Sequence[Running]) -> str:
    return f"and could not be stopped: {', '.join(map(str, left))}" if left else "and was stopped"


def _left_running(left: t.Sequence[Running]) -> dict[str, list[int]]:
    return {"left_running": [process.pid for process in left]} if left else {}


def _timed_out(completed: Completed, limit: float, item: str | None, left: t.Sequence[Running], *, only_output: bool) -> TimedOut:
    if only_output:
        what = f"{completed.command_line} ended, but a process that it started kept its output open for more than {limit:g} seconds"
    else:
        what = f"{completed.command_line} did not end within {limit:g} seconds"
    return TimedOut(f"{what} {_how_stopped(left)}.", item=item, completed=completed, **_left_running(left))


def _too_much(completed: Completed, most: int, item: str | None, left: t.Sequence[Running]) -> TooMuchOutput:
    message = f"{completed.command_line} printed more than {format_size(most)} {_how_stopped(left)}."
    return TooMuchOutput(message, item=item, completed=completed, **_left_running(left))


def start_command(words: tuple[str, ...], cwd: str | None, item: str | None, pass_fds: t.Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """A command that begins to run, with everything that this process has around it, and messages in English.

    :raises ToolMissing: if it is there and cannot be started.
    """
    try:
        # AnsibleModule.run_command has no time limit and needs a module.
        return subprocess.Popen(  # pylint: disable=ansible-bad-function,consider-using-with
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "LC_ALL": "C", "LANGUAGE": "C", "LVM_SUPPRESS_FD_WARNINGS": "1"},
            cwd=cwd,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    except OSError as error:
        raise ToolMissing(
            f"{words[0]} is there and cannot be started ({error.strerror}): is it for another architecture, or is its interpreter or loader missing?",
            item=item or words[0],
        ) from None


class _Exchange:
    """What goes to a process and what comes from it, of each stream at most ``max_output`` bytes.

    ``Popen.communicate`` keeps everything, and ``Popen`` as a context waits for the end of a process without a limit.
    """

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, max_output: int) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.too_much = False
        self._process = process
        self._to_send = memoryview(stdin)
        self._max_output = max_output
        self._selector = selectors.DefaultSelector()
        for stream, kept in ((process.stdout, self.out), (process.stderr, self.err)):
            if stream is not None and not stream.closed:
                self._selector.register(stream, selectors.EVENT_READ, kept)
        if stdin and process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin, selectors.EVENT_WRITE)
        else:
            self._close(process.stdin)

    def __enter__(self) -> _Exchange:
        return self

    def __exit__(self, *_error: object) -> None:
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            self._close(stream)

    @staticmethod
    def _close(stream: t.IO[bytes] | None) -> None:
        # What was not taken any more cannot be flushed.
        with contextlib.suppress(OSError):
            if stream is not None:
                stream.close()

    def go_on(self, deadline: float) -> bool:
        """Exchange data; whether the process has ended and closed its output. It returns at the deadline, and when there is too much output.

        :param deadline: of :func:`time.monotonic`.
        """
        known = self.too_much
        while self._selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for key, _events in self._selector.select(min(left, _LONGEST_SELECT)):
                self._send() if key.fileobj is self._process.stdin else self._receive(key)
            if self.too_much and not known:
                return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(max(deadline - time.monotonic(), 0.0))
        return self._process.returncode is not None

    def _send(self) -> None:
        stream = t.cast("t.IO[bytes]", self._process.stdin)
        try:
            self._to_send = self._to_send[os.write(stream.fileno(), self._to_send[:_WRITE]) :]
        except BlockingIOError:
            return
        except OSError:
            # It does not read on; its exit status shows whether that is a failure.
            self._to_send = self._to_send[:0]
        if not self._to_send:
            self._selector.unregister(stream)
            self._close(stream)

    def _receive(self, key: selectors.SelectorKey) -> None:
        read = os.read(key.fd, _CHUNK)
        room = self._max_output - len(key.data)
        key.data.extend(read[:room])
        if len(read) > room:
            self.too_much = True
        if not read:
            self._selector.unregister(key.fileobj)

    def stop(self, patience: float) -> tuple[Running, ...]:
        """End the process and its children: first by SIGTERM, after ``patience`` seconds forced, after a few more left behind.

        :returns: what is still running.
        """
        if self._process.returncode is not None:
            # Its number may belong to another process by now.
            return ()
        for number, wait in ((signal.SIGTERM, patience), (signal.SIGKILL, _FORCED)):
            # What runs as another user may not be stopped by this one.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            if self._await_end(time.monotonic() + wait):
                return ()
        return running_in_group(self._process.pid)

    def _await_end(self, deadline: float) -> bool:
        """Whether no process of the group runs any more; a process outside of it may keep the output open."""
        while True:
            now = time.monotonic()
            ended = self.go_on(min(deadline, now + _LOOK))
            if (ended or _is_over(self._process.pid)) and not running_in_group(self._process.pid):
                self._process.poll()
                return True
            if now >= deadline:
                return False
            if ended:
                time.sleep(_LOOK)


def _follow(exchange: _Exchange, deadline: float, watch: t.Callable[[], t.Any] | None, interval: float) -> bool:
    """Wait for a process, calling ``watch`` from time to time; whether it ended before the deadline, with no more output than is taken."""
    while True:
        now = time.monotonic()
        until = min(deadline, now + interval) if watch else deadline
        if exchange.go_on(until):
            return not exchange.too_much
        if watch is None or exchange.too_much or until >= deadline:
            return False
        watch()


def _is_over(pid: int) -> bool:
    """Whether a child has ended. It is not reaped, so that its number, which is that of its group, is not given to another process."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def running_in_group(group: int) -> tuple[Running, ...]:
    """The processes of a group that have not ended.

    Source: proc(5), ``/proc/pid/stat``: the name may contain blanks and parentheses; the fields after it are state, parent and group.
    """
    found = []
    for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stream:
                before, _parenthesis, after = stream.read().rpartition(")")
        except OSError:
            continue
        fields = after.split()
        if len(fields) > 2 and fields[2] == str(group) and fields[0] not in ("Z", "X"):
            found.append(Running(pid, before.partition("(")[2], fields[0]))
    return tuple(found)


class Background(t.Generic[Result]):
    """Begins to call a function in a thread of its own; for reading only, since nothing orders it against what the caller does.

    :param function: called once, without arguments.
    """

    def __init__(self, function: t.Callable[[], Result]) -> None:
        self._function = function
        self._answers: list[Result] = []
        self._error: BaseException | None = None
        # As a daemon it does not keep a module alive that failed in the meantime.
        self._thread = threading.Thread(target=self._call, daemon=True)
        self._thread.start()

    def _call(self) -> None:
        try:
            self._answers.append(self._function())
        except BaseException as error:  # noqa: BLE001 - any error is raised where the result is read
            self._error = error

    def answer(self) -> Result:
        """Wait for the function.

        :raises BaseException: what the function raised.
        """
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answers[0]
