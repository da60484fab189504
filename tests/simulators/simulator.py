# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the simulators of tools have in common: a state in a file, faults on demand, a list of calls.

A simulator is a class from a state (plain data) and an argument list to what the real tool would print. The state outlives
the process in a JSON file, as a controller outlives a command. Faults of the state (a failed battery) belong to each
simulator; faults of the process (it hangs, its output is cut) are the same for all and are here.

Emulated machines start these commands often, so that they import little: no dataclasses, no pathlib, no subprocess.
"""

from __future__ import annotations

import abc
import contextlib
import fcntl
import json
import os
import sys
import time
import typing as t

State = t.Dict[str, t.Any]

#: Where the states are, unless the environment variable says otherwise: ``<folder>/<tool>.json`` and ``<tool>.calls``.
STATES = "/var/lib/cachefleet-simulators"
#: The port of a controller, with its number from 0, unless its state names one as ``port``. A controller that once had one is lost without it.
PORTS = "/dev/virtio-ports/cachefleet.controller."
FOLDER_VARIABLE = "CACHEFLEET_SIMULATORS"

#: Faults of the process. ``hang``: never ends. ``truncated``: the second half of the output is missing.
#: ``garbage``: bytes that belong to no text in the middle. ``empty``: nothing is printed.
PROCESS_FAULTS = ("hang", "truncated", "garbage", "empty")
_GARBAGE = b"\x00\xff\xfe\x1b[31m\x07\x80\xc3\x28"


class Answer(t.NamedTuple):
    """What a tool prints, and its exit status."""

    stdout: str
    rc: int = 0
    stderr: str = ""


class Simulator(abc.ABC):
    """One tool with its controllers.

    :param state: plain data, ``{"faults": {name: true or details}, "controllers": […], …}``; changed in place.
    """

    #: The name under which the state is kept, for example ``storcli``.
    name: t.ClassVar[str]
    #: The commands it stands in for, with the paths at which vendors install them, most usual first.
    paths: t.ClassVar[tuple[str, ...]]
    #: Faults that this simulator understands besides :data:`PROCESS_FAULTS`, each with a sentence about what it does.
    faults: t.ClassVar[t.Mapping[str, str]]
    #: Controllers one can ask for: the model, and a function that makes its state (keyword arguments: volumes, drives, …).
    models: t.ClassVar[t.Mapping[str, t.Callable[..., State]]]
    #: The name of the state, where several commands work on one; else that of the command.
    shared_state: t.ClassVar[str] = ""
    #: Whether there is a simulated kernel module behind it: on a real machine it runs in the view of on_machine/view.sh.
    in_view: t.ClassVar[bool] = False
    #: The module that joins its controllers with the model of real ones, see model_port; nothing for a tool that has none.
    binding: t.ClassVar[str] = ""

    def __init__(self, state: State) -> None:
        self.state = state

    @abc.abstractmethod
    def answer(self, words: t.Sequence[str], stdin: str) -> Answer:
        """What the tool prints when it is called with these words (without its own name); may change the state."""

    def has_fault(self, name: str) -> bool:
        """Whether this fault was requested."""
        return bool(self.state.get("faults", {}).get(name))

    def busy(self, given: Answer) -> Answer:
        """What is printed in place of this answer if what was to be changed is being changed."""
        raise NotImplementedError

    @staticmethod
    def fault_of(_controllers: t.Sequence[int]) -> t.Any:
        """The details of a fault that concerns these controllers, counted from 0."""
        return True


def letters(number: int) -> str:
    """What stands after ``sd`` in the kernel's name of the disk with this number: 0 is a, 26 is aa."""
    return (letters(number // 26 - 1) if number >= 26 else "") + chr(ord("a") + number % 26)


def place(name: str) -> str:
    """The path of a file among the states of this host, for example ``storcli.json``."""
    return os.path.join(os.environ.get(FOLDER_VARIABLE, STATES), name)


@contextlib.contextmanager
def opened(name: str) -> t.Iterator[State]:
    """The state of one tool, locked while it is used, and written back if it was changed."""
    path = place(f"{name}.json")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(place(f"{name}.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = _read(path) or '{"faults": {}, "controllers": []}'
        state = json.loads(text)
        yield state
        changed = json.dumps(state, indent=1)
        if changed != text:
            _replaced(path, changed)


def _read(path: str) -> str:
    """The text of a file; nothing if there is no such file."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _replaced(path: str, text: str) -> None:
    """Writes a state as durably as a controller or a superblock would: it is there after a power cut."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.new", path)
    directory = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def calls(name: str) -> list[list[str]]:
    """Every argument list with which a tool was called on this host, oldest first."""
    return [json.loads(line) for line in _read(place(f"{name}.calls")).splitlines()]


def run(kind: type[Simulator], words: t.Sequence[str]) -> int:
    """The body of a simulated command: answers on standard output, returns the exit status."""
    with opened(kind.shared_state or kind.name) as state:
        with open(place(f"{kind.name}.calls"), "a", encoding="utf-8") as journal:
            journal.write(json.dumps(list(words)) + "\n")
        faults = dict(state.get("faults", {}))
        if not faults.get("hang"):
            stdin = "" if sys.stdin is None or sys.stdin.closed or sys.stdin.isatty() else sys.stdin.read()
            given = answered(kind, state, words, stdin)
    if faults.get("hang"):
        while True:
            time.sleep(3600)
    sys.stderr.write(given.stderr)
    sys.stdout.buffer.write(spoiled(given.stdout.encode(), faults))
    sys.stdout.buffer.flush()
    return given.rc


def answered(kind: type[Simulator], state: State, words: t.Sequence[str], stdin: str) -> Answer:
    """What a tool answers; where there is a port, with what is behind it."""
    for number, controller in enumerate(state["controllers"] if kind.binding else ()):
        if os.path.exists(f"{PORTS}{number}"):
            controller.setdefault("port", f"{PORTS}{number}")
        if controller.get("port"):
            from . import model_port

            return model_port.answer(kind, state, words, stdin)
    return kind(state).answer(words, stdin)


def spoiled(output: bytes, faults: t.Mapping[str, t.Any]) -> bytes:
    """The output of a tool with the faults of its process."""
    if faults.get("empty"):
        return b""
    if faults.get("truncated"):
        output = output[: len(output) // 2]
    if faults.get("garbage"):
        middle = len(output) // 2
        output = output[:middle] + _GARBAGE + output[middle:]
    return output
