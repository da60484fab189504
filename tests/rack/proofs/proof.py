# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The judgement of the guard on one target, compared with what must be found."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import typing as t
from pathlib import Path

from proofs.building import loop_device, settle

KINDS = ("in_use", "unfit", "identity", "data", "room", "device_missing", "refused")

Objections = t.List[t.Tuple[str, str]]


def plain_files_in_dev() -> set[str]:
    """What must never become more; device nodes come and go while others work on the same machine."""
    return {entry.name for entry in Path("/dev").iterdir() if entry.is_file() and not entry.is_symlink()}


def objections_to(path: str, kind: str, writing: bool, **permission: object) -> Objections:
    """Every objection of the guard, as kind and text."""
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
    from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import read_devices
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import judge

    runner = Runner()
    try:
        facts = examine(read_devices(runner), GuardTarget(path, kind=kind, **permission), runner, writing=writing)
        return [(one.kind, one.text) for one in judge(facts, writing=writing)]
    except StorageError as error:
        return [(error.kind, error.message)]


def in_a_child(function: t.Callable[[], Objections], limit: float, user: tuple[int, int] | None = None) -> Objections:
    """What a function returns in a process of its own, as another user or group if one is given.

    :raises RuntimeError: if it does not return in time.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _report(function, writer, user)
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        ready = select.select([stream], [], [], limit)[0]
        text = stream.read() if ready else b""
    if not ready:
        os.kill(child, signal.SIGKILL)
        raise RuntimeError(f"no answer within {limit:g} seconds")
    os.waitpid(child, 0)
    return [(str(kind), str(message)) for kind, message in json.loads(text)]


def _report(function: t.Callable[[], Objections], writer: int, user: tuple[int, int] | None) -> t.NoReturn:
    try:
        if user is not None:
            os.setgroups([])
            os.setgid(user[1])
            os.setuid(user[0])
        found = function()
    except Exception as error:  # noqa: BLE001 - the parent reports it as a failure
        found = [("error", f"{type(error).__name__}: {error}")]
    os.write(writer, json.dumps(found).encode())
    os._exit(0)


class Proof:
    """Runs cases, counts failures, and undoes what each case built, last first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.failures = 0
        self.proven = 0
        self.skipped: list[str] = []

    def loop(self, undo: contextlib.ExitStack, megabytes: int = 64, *options: str) -> str:
        return loop_device(self.folder, undo, megabytes, *options)

    def expect(self, what: str, path: str, *expected: str, writing: bool = True, kind: str = "device", **permission: object) -> None:
        """Judge a target. ``expected``: kinds of objections (exactly these; none for a target that may be used), then texts."""
        settle()
        before = plain_files_in_dev()
        objections = objections_to(path, kind, writing, **permission)
        kinds = {one[0] for one in objections}
        expected_now = {word for word in expected if word in KINDS}
        words = [word for word in expected if word not in expected_now]
        text = "; ".join(one[1] for one in objections)
        good = kinds == expected_now and all(word in text for word in words) and plain_files_in_dev() == before
        self._count(what, good, text or "may be used", f"   (expected {expected})")

    def expect_use(self, what: str, path: str, kind: str = "device") -> None:
        """Judge a target that must be refused as in use, whatever else is found of it."""
        settle()
        objections = objections_to(path, kind, True)
        self._count(what, "in_use" in {one[0] for one in objections}, "; ".join(one[1] for one in objections) or "may be used", "   (expected in_use)")

    def expect_refusal(self, what: str, path: str, *, limit: float, user: tuple[int, int] | None = None, **permission: object) -> None:
        """Judge a target in a process of its own: it must be refused, for whatever reason, and within the limit."""
        settle()
        try:
            objections = in_a_child(lambda: objections_to(path, "device", True, **permission), limit, user)
        except RuntimeError as error:
            self._count(what, False, str(error))
            return
        good = bool(objections) and all(kind != "error" for kind, text in objections)
        self._count(what, good, "; ".join(text for kind, text in objections) or "may be used", "   (expected a refusal)")

    def expect_true(self, what: str, good: bool, text: str = "") -> None:
        """One more proven case, or one failure."""
        self._count(what, good, text)

    def _count(self, what: str, good: bool, text: str, expected: str = "") -> None:
        self.proven += good
        self.failures += not good
        print(f"{'ok  ' if good else 'FAIL'} {what}{': ' if text else ''}{text}{'' if good else expected}", flush=True)

    def lacks(self, what: str) -> None:
        """Something that this kernel was built without; no case that could be built."""
        print(f"note {what}", flush=True)

    def case(self, function: t.Callable[[Proof, contextlib.ExitStack], None]) -> None:
        try:
            with contextlib.ExitStack() as undo:
                function(self, undo)
        except (RuntimeError, OSError) as error:
            self.skipped.append(f"{function.__name__}: {error}")
            print(f"skip {function.__name__}: {error}", flush=True)
