# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Several commands of LVM in one process: most of a short one is the start of the process and its search for devices.

``lvm`` without arguments reads commands from its standard input. With the command profile that LVM ships for its D-Bus daemon
every command answers with one JSON object on the descriptor in ``LVM_REPORT_FD``: its report, if it has one, and a log whose
last status is the command's return code (1 is success). The profile's ``command_log_selection`` keeps all other messages out of that log, and the
shell prints none of them: the command ``lastlog`` with a selection of its own shows them. Sources: lvm(8), ``lvmreport(7)``, ``lvmdbusd.profile``.

Only reports and ``lvchange`` use it, and only until devices change: the process keeps their state.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import threading
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import (
    MOST_OUTPUT,
    Completed,
    HowToRun,
    Runner,
    Running,
    environment,
    start_command,
    stop_group,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import format_size

#: LVM searches there, and refuses to start where the requested profile is missing.
PROFILE = "etc/lvm/profile/lvmdbusd.profile"

_SUCCESS = 1
#: All messages of the command before it, also of what was done for single volumes. A selection without the last row prints JSON with a comma too many.
_MESSAGES = "lastlog -S log_seq_num>0"
#: Seconds that it may take: what the command did is known without it.
_MESSAGES_TIMEOUT = 10.0
#: What LVM cuts a line at, or takes as a quote, stays out of it.
_WORD = re.compile(r"^[A-Za-z0-9_+./:,@%=\[\]-]+( [A-Za-z0-9_+./:,@%=\[\]-]+)*$")
_CHUNK = 1 << 16


class ShellBroken(Exception):
    """The process ended, or answered with something that is no answer; ``message`` is what it wrote to its standard error."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Reply(t.NamedTuple):
    """What one command answered. ``report`` is its JSON, ``log`` the log in it, and ``code`` LVM's own return code, None if the log has none."""

    report: str
    log: list[dict[str, t.Any]]
    code: int | None
    out: str
    err: str


class LvmShell:
    """One process ``lvm`` that takes commands.

    :param program: the path of ``lvm``.
    :raises ToolMissing: if it cannot be started.
    """

    def __init__(self, program: str) -> None:
        reading, writing = os.pipe()
        try:
            # With a home it would add every command to root's history file.
            variables = {**environment(), "LVM_REPORT_FD": str(writing), "LVM_COMMAND_PROFILE": Path(PROFILE).stem, "HOME": "/nonexistent"}
            self._process = start_command((program,), variables, None, None, (writing,))
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        self._reports = reading

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def ask(self, line: str, deadline: float, watch: t.Callable[[], t.Any] | None = None, interval: float = 5.0, max_output: int = MOST_OUTPUT) -> Reply:
        """Have one command done.

        :param deadline: of :func:`time.monotonic`.
        :param watch: called every ``interval`` seconds meanwhile.
        :param max_output: bytes of its report and of each other stream that are taken.
        :raises ShellBroken: if there is no answer any more, or a longer one.
        :raises subprocess.TimeoutExpired: if there was none until the deadline.
        """
        process = self._process
        texts: dict[t.Any, bytes] = {"report": b"", "out": b"", "err": b""}
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise ShellBroken("")
        with selectors.DefaultSelector() as selector:
            for descriptor, name in ((self._reports, "report"), (process.stdout.fileno(), "out"), (process.stderr.fileno(), "err")):
                selector.register(descriptor, selectors.EVENT_READ, name)
            try:
                process.stdin.write(f"{line}\n".encode())
                process.stdin.flush()
            except OSError:
                raise ShellBroken("it has ended") from None
            next_look = time.monotonic() + interval
            answer = None
            while answer is None:
                now = time.monotonic()
                if now >= deadline:
                    raise subprocess.TimeoutExpired(line, deadline)
                ready = selector.select(min(deadline, next_look) - now if watch else deadline - now)
                for key, _events in ready:
                    read = os.read(key.fd, _CHUNK)
                    if not read:
                        raise ShellBroken(texts["err"].decode(errors="replace"))
                    texts[key.data] += read
                    if len(texts[key.data]) > max_output:
                        raise ShellBroken(f"it printed more than {format_size(max_output)}")
                if watch and time.monotonic() >= next_look:
                    next_look = time.monotonic() + interval
                    watch()
                answer = _whole(texts["report"])
            # Its messages were written before its report.
            for key, _events in selector.select(0):
                texts[key.data] += os.read(key.fd, _CHUNK)
        report, out, err = (text.decode(errors="replace") for text in texts.values())
        rows = answer.get("log")
        log = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return Reply(report, log, _return_code(log), out, err)

    def close(self) -> tuple[Running, ...]:
        """End the process; what it was doing is stopped.

        :returns: what could not be stopped.
        """
        left = stop_group(self._process, 2.0)
        os.close(self._reports)
        return left


def _whole(text: bytes) -> dict[str, t.Any] | None:
    """The JSON object, if it has come to its end."""
    stripped = text.strip()
    if not stripped.endswith(b"}"):
        return None
    try:
        found = json.loads(stripped)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _return_code(log: t.Sequence[t.Mapping[str, t.Any]]) -> int | None:
    """Of the command, from the last line of its log that is a status; None if there is none."""
    codes = [row.get("log_ret_code") for row in log if row.get("log_type") == "status"]
    return int(codes[-1]) if codes and str(codes[-1]).isdigit() else None


def _messages(log: t.Sequence[t.Mapping[str, t.Any]], kinds: t.Container[str]) -> str:
    found = dict.fromkeys(row.get("log_message") for row in log if row.get("log_type") in kinds)
    return "".join(f"  {message}\n" for message in found if isinstance(message, str))


class LvmRunner(Runner):
    """A runner that keeps one process of LVM for reports and ``lvchange``, and starts every other command as usual.

    Where that process cannot be had, everything is as usual.

    :param root: below which LVM's profile is searched.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__()
        self._root = root
        self._shell: LvmShell | None = None
        self._given_up = False
        self._one_at_a_time = threading.Lock()

    def forget_devices(self) -> None:
        """Devices come or go from now on: every command reads them itself."""
        with self._one_at_a_time:
            self._give_up()

    def _give_up(self) -> tuple[Running, ...]:
        """What could not be stopped of it."""
        self._given_up = True
        shell, self._shell = self._shell, None
        return shell.close() if shell is not None else ()

    def _completed(self, words: tuple[str, ...], how: HowToRun) -> Completed:
        line = None if how.stdin or how.cwd or how.pass_fds else line_of(words)
        completed = None
        if line is not None:
            with self._one_at_a_time:
                completed = self._ask_shell(words, line, how)
        return completed if completed is not None else super()._completed(words, how)

    def _ask_shell(self, words: tuple[str, ...], line: str, how: HowToRun) -> Completed | None:
        """What the process of LVM answered; None if the command has to be started, and nothing was done."""
        if self._given_up or not (self._root / PROFILE).exists():
            return None
        started = time.monotonic()
        is_report = line.startswith("fullreport")
        try:
            if self._shell is None:
                self._shell = LvmShell(self.find("lvm"))
            answer = self._shell.ask(line, started + how.limit, how.watch, how.interval, how.max_output)
            if answer.code is None:
                raise ShellBroken(answer.err)
            log = [] if is_report else self._messages_of_the_last()
        except StorageError:
            self._give_up()
            return None
        except ShellBroken as broken:
            self._give_up()
            # Whether a change was made only another report shows.
            return None if is_report else self._remember(words, -1, b"", broken.message.encode(), started)
        except subprocess.TimeoutExpired:
            left = self._give_up()
            raise self._timed_out(self._remember(words, -1, b"", b"", started), how.limit, how.item, left) from None
        except BaseException:
            self._give_up()
            raise
        rc = 0 if answer.code == _SUCCESS else answer.code or -1
        if is_report and rc:
            # The messages of a process of its own have the reason, for example a field that this LVM does not have.
            return None
        out = answer.report if is_report else answer.out + _messages(log, ("print",))
        return self._remember(words, rc, out.encode(), (answer.err + _messages(log, ("warn", "error"))).encode(), started)

    def _messages_of_the_last(self) -> list[dict[str, t.Any]]:
        """What the last command had to say; empty if this cannot be had, which takes nothing from what it did."""
        try:
            return self._shell.ask(_MESSAGES, time.monotonic() + _MESSAGES_TIMEOUT).log if self._shell is not None else []
        except (ShellBroken, subprocess.TimeoutExpired):
            self._give_up()
            return []


def _without_format(words: t.Sequence[str]) -> list[str]:
    """A report's words without its format: the profile sets it, and a shell of 2.03.31 refuses the option."""
    words = list(words)
    if "--reportformat" in words:
        position = words.index("--reportformat")
        del words[position : position + 2]
    return words


def line_of(words: t.Sequence[str]) -> str | None:
    """The line for LVM's own process; None for a command that does not go there."""
    name = os.path.basename(words[0])
    requested = _without_format(words[1:]) if name == "lvm" and list(words[1:2]) == ["fullreport"] else [name, *words[1:]] if name == "lvchange" else []
    if not requested or not all(_WORD.match(word) for word in requested):
        return None
    return " ".join(f"'{word}'" if " " in word else word for word in requested)
