# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""One call of a module in a process of its own that kills itself where it was told to.

What a module changes it changes by a command, or by opening a file for writing (sysfs, a unit, a device). Both pass here: the
first because there is one way to run a command, the second because Python tells every audit hook of it. Nothing depends on
how a layer is written.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import random
import re
import select
import signal
import sys
import threading
import time
import traceback
import typing as t
from dataclasses import dataclass, field

COLLECTION = "ansible_collections.cachefleet.storage.plugins"

#: Right before a change; right after it; in the middle of a command, together with it; in the middle, and the command goes on alone.
BEFORE, AFTER, INSIDE, ORPHAN = "before", "after", "inside", "beside"

#: Commands that never change anything.
_READERS = frozenset(
    [
        "lvs",
        "pvs",
        "vgs",
        "blkid",
        "lsblk",
        "findmnt",
        "bcache-super-show",
        "cache_check",
        "modinfo",
        "lvmconfig",
        "systemd-escape",
        "fuser",
        "df",
        "stat",
        "cat",
        "uname",
    ]
)
#: Of these, the calls that do not.
_READING_WORDS: t.Mapping[str, frozenset[str]] = {
    "dmsetup": frozenset(["table", "status", "info", "ls", "deps", "version", "targets", "splitname"]),
    "udevadm": frozenset(["settle", "info", "test"]),
    "systemctl": frozenset(["is-active", "is-enabled", "is-failed", "show", "cat", "status", "list-units", "list-unit-files", "list-dependencies"]),
    "mdadm": frozenset(["--detail", "-D", "--examine", "-E", "--detail-platform", "--version"]),
    "blockdev": frozenset(["--getsz", "--getsize64", "--getss", "--getpbsz", "--getro", "--report"]),
    "lvm": frozenset(["version", "fullreport", "lvs", "pvs", "vgs"]),
}
_WRITING_WORDS: t.Mapping[str, frozenset[str]] = {"wipefs": frozenset(["-a", "--all", "-o", "--offset"])}

_WATCHED_FILES = ("/sys/", "/etc/", "/dev/", "/var/lib/", "/run/systemd/", "/usr/lib/")
_NOT_A_CHANGE = ("/dev/null", "/dev/tty", "/dev/kmsg", "/dev/urandom", "/dev/shm", "/dev/fd", "/dev/pts")
#: After any of these the change before it has happened.
_LATER = frozenset(("open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "subprocess.Popen", "time.sleep"))


def changes_something(argv: t.Sequence[str]) -> bool:
    """Whether a command can leave the host other than it was; what is not known to be harmless can."""
    name = os.path.basename(argv[0])
    if name in _READERS:
        return False
    words = set(argv[1:])
    if name in _WRITING_WORDS:
        return bool(words & _WRITING_WORDS[name])
    return not words & _READING_WORDS.get(name, frozenset())


def in_words(argv: t.Sequence[str]) -> str:
    """A command as it is named in the report: the same for every run of it."""
    return _described(" ".join([os.path.basename(argv[0]), *argv[1:]]))


def _described(text: str) -> str:
    return re.sub(r"\.cachefleet-\w+\.tmp", ".cachefleet-N.tmp", text)


@dataclass
class KillSpec:
    """Which changes a run shall not survive.

    :param kinds: what is still to be proven of a change, by the change before it and itself; the first of it comes next.
    :param before: the last change of the runs before.
    :param expected: seconds that a command took before, by its name.
    """

    kinds: t.Callable[[str, str], t.Sequence[str]]
    before: str = ""
    expected: t.Mapping[str, float] = field(default_factory=dict)
    chance: random.Random = field(default_factory=random.Random)


@dataclass
class Ending:
    """How a call ended.

    :param result: what the module printed; None if it was killed.
    :param changes: what it changed or was about to, in order; ``seconds`` of commands by their name.
    :param kill: kind, the change before, the change; None if it was not killed.
    :param noise: what it printed that is no result.
    """

    result: dict[str, t.Any] | None
    changes: list[str]
    seconds: dict[str, float]
    kill: tuple[str, str, str] | None
    noise: str = ""


class Trap:
    """Lives in the process that will be killed."""

    def __init__(self, kill_spec: KillSpec | None, notes: int) -> None:
        self.kill_spec = kill_spec
        self.notes = notes
        self.last = kill_spec.before if kill_spec else ""
        self.armed = False
        self.quiet = threading.local()

    def note(self, **facts: t.Any) -> None:
        """Tell the process that watches; what was told before a kill is not lost with it."""
        self.quiet.on = True
        os.write(self.notes, (json.dumps(facts) + "\n").encode())
        self.quiet.on = False

    def change(self, text: str) -> str | None:
        """A change is about to happen: how it shall end, if at all."""
        self.note(change=text)
        kinds = self.kill_spec.kinds(self.last, text) if self.kill_spec else ()
        kind = kinds[0] if kinds else None
        if kind:
            self.note(kill=[kind, self.last, text])
        if kind == BEFORE:
            die()
        self.last = text
        return kind

    def audit(self, event: str, arguments: tuple[t.Any, ...]) -> None:
        """Every opening of a file, among others; the one of :func:`sys.addaudithook`."""
        if getattr(self.quiet, "on", False):
            return
        if self.armed and event in _LATER:
            die()
        if event == "open":
            path, _mode, flags = arguments
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
                self._file(path, "write")
        elif event == "os.rename":
            self._file(arguments[1], "rename to")
        elif event == "os.remove":
            self._file(arguments[0], "remove")

    def _file(self, what: t.Any, verb: str) -> None:
        if isinstance(what, int):
            return
        path = os.fsdecode(what)
        if path.startswith(_WATCHED_FILES) and not path.startswith(_NOT_A_CHANGE):
            # A kill cannot hit inside a write to sysfs: it is too short.
            self.armed = self.change(_described(f"{verb} {path}")) is not None

    def command(self, run: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        """``Runner.run`` that dies where it shall."""

        def trapped(runner: t.Any, argv: t.Sequence[str], **options: t.Any) -> t.Any:
            words = [str(word) for word in argv]
            if self.armed:
                die()
            if not changes_something(words):
                return run(runner, argv, **options)
            kind = self.change(in_words(words))
            self.inside = (kind, os.path.basename(words[0])) if kind in (INSIDE, ORPHAN) else None
            began = time.monotonic()
            try:
                return run(runner, argv, **options)
            finally:
                self.note(command=os.path.basename(words[0]), seconds=time.monotonic() - began)
                if kind:
                    die()

        return trapped

    def start(self, started: t.Callable[..., t.Any]) -> t.Callable[..., t.Any]:
        """The start of a process, with a clock that ends it and us in its middle."""

        def trapped(*arguments: t.Any, **options: t.Any) -> t.Any:
            process = started(*arguments, **options)
            self._set_clock(process.pid)
            return process

        return trapped

    def _set_clock(self, pid: int) -> None:
        inside, self.inside = self.inside, None
        if inside and self.kill_spec:
            kind, name = inside
            delay = self.kill_spec.expected.get(name, 0.8) * self.kill_spec.chance.uniform(0.15, 0.85)
            clock = threading.Timer(delay, self._strike, (pid, kind))
            clock.daemon = True
            clock.start()

    inside: tuple[str, str] | None = None

    def _strike(self, pid: int, kind: str) -> None:
        if kind == INSIDE:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        die()


def die() -> t.NoReturn:
    """As when the power of the controller's session, or the out-of-memory killer, ends a module: no handler, no goodbye."""
    while True:
        os.kill(os.getpid(), signal.SIGKILL)


def call(module: str, caches: t.Sequence[t.Mapping[str, t.Any]], kill_spec: KillSpec | None, limit: float) -> Ending:
    """Run a module in a process of its own, and wait for its end.

    :param limit: seconds after which it counts as hanging.
    :raises TimeoutError: if it hangs; what it was doing is in the message.
    """
    imported(module)
    out_read, out_write = os.pipe()
    notes_read, notes_write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out_read)
        os.close(notes_read)
        _be_the_module(module, caches, kill_spec, out_write, notes_write)
    os.close(out_write)
    os.close(notes_write)
    try:
        output, notes = _read_both(out_read, notes_read, limit)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _pid, status = os.waitpid(pid, 0)
    return _ending(output, notes, status)


def imported(module: str) -> tuple[t.Any, t.Any, t.Callable[[], None]]:
    """What a module is made of. The process that watches imports it too, so that it is read once and not in every fork."""
    basic = importlib.import_module("ansible.module_utils.basic")
    process = importlib.import_module(f"{COLLECTION}.module_utils._core.process")
    return basic, process, importlib.import_module(f"{COLLECTION}.modules.{module}").main


def _be_the_module(module: str, caches: t.Sequence[t.Mapping[str, t.Any]], kill_spec: KillSpec | None, out: int, notes: int) -> t.NoReturn:
    code = 70
    try:
        # A process group of its own: what it starts has one each, as on a real host.
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(out, 1)
        os.dup2(out, 2)
        sys.stdout, sys.stderr = io.TextIOWrapper(os.fdopen(1, "wb", 0), write_through=True), io.TextIOWrapper(os.fdopen(2, "wb", 0), write_through=True)
        basic, process, main = imported(module)
        trap = Trap(kill_spec, notes)
        process.Runner.run = trap.command(process.Runner.run)
        process.start_command = trap.start(process.start_command)
        basic._ANSIBLE_ARGS = json.dumps({"ANSIBLE_MODULE_ARGS": {"caches": list(caches)}}).encode()
        basic._ANSIBLE_PROFILE = "legacy"
        sys.addaudithook(trap.audit)
        main()
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
    os._exit(code)


def _read_both(output: int, notes: int, limit: float) -> tuple[str, str]:
    """Everything until both ends are closed. A command that goes on alone holds neither: Popen closes what it is not given."""
    texts = {output: b"", notes: b""}
    deadline = time.monotonic() + limit
    waiting = [output, notes]
    while waiting:
        ready, _write, _errors = select.select(waiting, [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            raise TimeoutError(f"it did not end within {limit:g} seconds; its changes: {texts[notes].decode(errors='replace')[-600:]}")
        for handle in ready:
            piece = os.read(handle, 65536)
            texts[handle] += piece
            if not piece:
                waiting.remove(handle)
                os.close(handle)
    return texts[output].decode(errors="replace"), texts[notes].decode(errors="replace")


def _ending(output: str, notes: str, status: int) -> Ending:
    ending = Ending(None, [], {}, None)
    for line in notes.splitlines():
        fact = json.loads(line)
        if "change" in fact:
            ending.changes.append(fact["change"])
        elif "kill" in fact:
            ending.kill = tuple(fact["kill"])
        else:
            ending.seconds[fact["command"]] = fact["seconds"]
    if not os.WIFSIGNALED(status):
        ending.kill = None
        lines = [line for line in output.splitlines() if line.strip()]
        try:
            ending.result = json.loads(lines[-1])
        except (IndexError, ValueError):
            ending.result = {"failed": True, "msg": f"the module printed no result: {output[-2000:]}"}
    ending.noise = output if ending.result is None else ""
    return ending
