# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One family of errors: a sentence with what, where and what to do, and its evidence, usually what a command did."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import typing as t

from ansible_collections.cachefleet.storage.plugins.module_utils._core.printable import printable
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen

#: Characters of a command's output that a failed task returns; of more, the beginning and the end.
_OUTPUT = 20_000

#: What the kernel answers a write to a full or read-only file system (strerror(3)), and LVM's own words for it.
_UNWRITTEN = re.compile(r"^.*(?:no space left on device|read-only file ?system|disk quota exceeded|not enough space available).*$", re.I | re.M)

#: Names of further values that a failed task of this collection may have: the controller accepts no others from a host.
FURTHER = frozenset(
    {
        "actions",
        "broke_off",
        "differences",
        "dirty_blocks",
        "done",
        "end",
        "free",
        "identity",
        "layer",
        "left_out",
        "links_before",
        "needed",
        "not_done",
        "not_in_force",
        "objections",
        "option",
        "put_back",
        "refusals",
        "value",
    }
)


@frozen
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
        """The last line that is no hint at help, errors first: usually the reason; with the line about a full or read-only file system."""
        lines = [line.strip() for text in (self.stdout, self.stderr) for line in text.splitlines() if line.strip() and "--help" not in line]
        last = lines[-1] if lines else "it printed nothing"
        return f"{last} ({self.unwritten})" if self.unwritten and not _UNWRITTEN.search(last) else last

    @property
    def unwritten(self) -> str:
        """The first line that reports a full or read-only file system; empty if there is none."""
        return found.group().strip() if (found := _UNWRITTEN.search(f"{self.stderr}\n{self.stdout}")) else ""

    def failure(self, item: str | None = None, begin: str = "") -> CommandFailed:
        """The error that it is if it failed; ``begin`` is what its sentence begins with."""
        return CommandFailed(f"{begin}{self.command_line} failed with exit status {self.rc}: {self.last_words}", item=item, completed=self)

    def require(self, ok: t.Container[int] | None, item: str | None = None) -> Completed:
        """The same command.

        :param ok: exit statuses that are no failure; ``None`` accepts every one.
        :raises CommandFailed: if its own is not among them.
        """
        if ok is not None and self.rc not in ok:
            raise self.failure(item)
        return self


class StorageError(Exception):
    """Anything this collection can explain.

    :param message: one sentence: what went wrong, where, and what to do about it.
    :param item: how the user named the thing (a device, a volume, a list entry).
    :param completed: the command whose outcome is the evidence, when there is one.
    :param facts: further plain values for the result of the failed task, with names of :data:`FURTHER` or of what the module returns.

    Characters of the message that are not printable are replaced: names of processes, labels and output of tools are part of it.
    """

    kind = "error"

    def __init__(self, message: str, *, item: str | None = None, completed: Completed | None = None, **facts: t.Any) -> None:
        self.message = printable(message)
        super().__init__(self.message)
        self.item = item
        self.completed = completed
        self.facts = facts

    def to_dict(self) -> dict[str, t.Any]:
        """The keyword arguments for ``module.fail_json``."""
        result: dict[str, t.Any] = {"msg": self.message, "error": self.kind}
        if self.item is not None:
            result["item"] = self.item
        if self.completed is not None:
            result.update(
                cmd=list(self.completed.argv),
                rc=self.completed.rc,
                stdout=_shortened(self.completed.stdout),
                stderr=_shortened(self.completed.stderr),
            )
        result.update(self.facts)
        return result


def abbreviated(value: t.Any) -> str:
    """A value for a message: what a user wrote may be long, or not be text, or have characters that cannot be encoded."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:76]}...{text[-1]}"


def _shortened(text: str) -> str:
    if len(text) <= _OUTPUT:
        return text
    half = _OUTPUT // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


class BadInput(StorageError):
    """The request is contradictory or invalid."""

    kind = "bad_input"


class DeviceMissing(StorageError):
    """The named device is not there, or is not a block device."""

    kind = "device_missing"


class ToolMissing(StorageError):
    """A command this layer needs is not installed on the host."""

    kind = "tool_missing"


class CommandFailed(StorageError):
    """A command ended with an exit status that its caller does not accept."""

    kind = "command_failed"


class TimedOut(StorageError):
    """A command did not end within its time limit and was stopped."""

    kind = "timed_out"


class TooMuchOutput(StorageError):
    """A command printed more than is taken from it and was stopped."""

    kind = "too_much_output"


class NotUnderstood(StorageError):
    """The output of a tool is not what its parser supports; the message quotes the line."""

    kind = "not_understood"


class Refused(StorageError):
    """A step would risk data; the message names the option of the item that allows it."""

    kind = "refused"


class NotEffective(StorageError):
    """Every step was carried out and yet the state read back is not the wanted one."""

    kind = "not_effective"


@contextlib.contextmanager
def failing(module: t.Any) -> t.Iterator[None]:
    """What this collection can explain fails a module with its sentence and its evidence."""
    try:
        yield
    except StorageError as error:
        module.fail_json(**error.to_dict())


def way_to_see() -> str:
    """What to do where something of a host could not be read; root is not told to become root."""
    if os.geteuid() == 0:
        return "run on the host itself, outside of containers (this task is root, and is denied it by a namespace or a security module)"
    return "run on the host itself, as root (become: true)"
