# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""File systems of a made-up host that become full or read-only at any change: before a file, folder, link or rename, in an fsync, or in a tool.

From that moment on every change below them fails with the error of the kernel, whoever makes it: the module, or a tool of the host. The hook of
the interpreter (PEP 578) sees each of them, however it is made; only writing itself has none, so that a full file system cuts a file at its fsync.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
import re
import sys
import typing as t
from pathlib import Path
from unittest import mock

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, StorageError
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Completed

#: What is one file system, by the folder that names it.
AREAS = {"etc": ("etc", "var", "spool"), "run": ("run",)}
#: Changes of each run that are struck, unless every one is wanted. In /run all are the same check.
_SAMPLES = {"etc": 3, "run": 2}
_LONG = bool(os.environ.get("CACHEFLEET_LONG"))
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
#: Events with the positions of the paths that are changed, and whether that needs space.
_EVENTS = {
    "open": ((0,), True),
    "os.mkdir": ((0,), True),
    "os.symlink": ((1,), True),
    "os.link": ((1,), True),
    "os.rename": ((0, 1), True),
    "os.remove": ((0,), False),
    "os.rmdir": ((0,), False),
}
#: LVM keeps the metadata of a group in /etc/lvm before it changes them; what is printed then is that of LVM 2.03.16.
_ARCHIVING = ("lvcreate", "lvconvert", "lvremove", "lvchange", "vgextend", "vgreduce")
_LVM_WORDS = {
    errno.EROFS: "  Cannot archive volume group metadata for vg to read-only filesystem.\n",
    errno.ENOSPC: "  /etc/lvm/archive/.lvm_host_2401_1286834590: write error failed: No space left on device\n",
}
_SYSTEMD_WORDS = {number: f"Failed to create symlink /etc/systemd/system: {os.strerror(number)}\n" for number in (errno.EROFS, errno.ENOSPC)}
_REASONS = {errno.EROFS: re.compile("read-only file ?system", re.IGNORECASE), errno.ENOSPC: re.compile("No space left on device")}
#: Of a cache that is made anew in each run.
_UUID = re.compile(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_active: Faults | None = None
_hooked = False


def _hook(event: str, arguments: tuple[t.Any, ...]) -> None:
    if _active is not None and event in _EVENTS:
        _active.notice(event, arguments)


class Faults:
    """While it is entered, one file system of a host fails from a change on.

    :param at: the number of that change; 0 only counts them.
    """

    def __init__(self, host: t.Any, area: str, number: int = 0, at: int = 0) -> None:
        global _hooked
        if not _hooked:
            sys.addaudithook(_hook)
            _hooked = True
        self.root = Path(os.path.abspath(host.root))
        self.folders = tuple(f"{self.root / name}/" for name in AREAS[area])
        self.host, self.area, self.number, self.at, self.count = host, area, number, at, 0
        #: What failed, and what of it not in a tool, whose effect the module reads back.
        self.failed: list[str] = []
        self.failed_itself: list[str] = []
        self._in_tool = False
        #: Every content that a file below /etc has had, so far as nothing failed.
        self.contents: dict[str, set[bytes]] = {}

    @property
    def failing(self) -> bool:
        """Whether it is full or read-only: nothing notices that before the first change that fails."""
        return bool(self.failed)

    def __enter__(self) -> Faults:
        global _active
        self.note_contents()
        self._patches = [mock.patch.object(os, "fsync", self._fsync)]
        runner = getattr(self.host, "runner", self.host)
        self._patches.append(mock.patch.object(runner, "run", self._tool(runner.run)))
        for patch in self._patches:
            patch.start()
        _active = self
        return self

    def __exit__(self, *_error: object) -> None:
        global _active
        _active = None
        for patch in self._patches:
            patch.stop()
        self.note_contents()

    def note_contents(self) -> None:
        for path, content in files(self.root).items():
            self.contents.setdefault(path, set()).add(content)

    def notice(self, event: str, arguments: tuple[t.Any, ...]) -> None:
        places, needs_space = _EVENTS[event]
        for place in places:
            path = self._below(arguments[place])
            if path and (self._changes(path, arguments[2]) if event == "open" else event != "os.mkdir" or not os.path.isdir(path)):
                self._count(path, needs_space=needs_space)
                return

    def _below(self, path: t.Any) -> str:
        if isinstance(path, int):
            return ""
        text = os.path.abspath(os.fsdecode(path))
        return text if text.startswith(self.folders) else ""

    def _changes(self, path: str, flags: int) -> bool:
        # A full file system opens what is there.
        return bool(flags & _WRITING) and (self.number == errno.EROFS or bool(flags & os.O_TRUNC) or not os.path.lexists(path))

    def _count(self, path: str, *, needs_space: bool = True) -> None:
        self.count += 1
        if self.at == 0:
            self.note_contents()
        if 0 < self.at <= self.count and (needs_space or self.number == errno.EROFS):
            self.failed.append(path)
            self.failed_itself += [] if self._in_tool else [path]
            raise OSError(self.number, os.strerror(self.number), path)

    def _fsync(self, handle: int) -> None:
        path = self._below(os.readlink(f"/proc/self/fd/{handle}"))
        if path and self.number != errno.EROFS:
            try:
                self._count(path)
            except OSError:
                if os.path.isfile(path):
                    os.truncate(path, os.stat(path).st_size // 2)
                raise

    def _tool(self, run: t.Callable[..., Completed]) -> t.Callable[..., Completed]:
        def run_with_faults(argv: t.Sequence[str], *, ok: t.Container[int] | None = (0,), item: str | None = None, **how: t.Any) -> Completed:
            words = tuple(str(word) for word in argv)
            assert not (self.area == "run" and self.failing and _waits_for_udev(words)), f"{words} would wait for udev for ever"
            message = ""
            told = self._what_it_writes(words) if self.area == "etc" else None
            if told is not None:
                self.count += 1
                message = told.get(self.number, "") if 0 < self.at <= self.count else ""
                self.failed += [words[0]] if message else []
            self._in_tool = True
            try:
                if not message:
                    return run(argv, ok=ok, item=item, **how)
            except OSError as error:
                message = f"Failed to write {error.filename}: {error.strerror}\n"
            finally:
                self._in_tool = False
                self._fill_after(words)
            completed = Completed(words, 5, "", message)
            if ok is not None and completed.rc not in ok:
                raise CommandFailed(f"{completed.command_line} failed with exit status 5: {completed.last_words}", item=item, completed=completed)
            return completed

        return run_with_faults

    def _fill_after(self, words: tuple[str, ...]) -> None:
        """What udev records of the devices that a tool has made may be what fills /run."""
        if self.area == "run" and _waits_for_udev(words):
            self.count += 1
            self.failed += [words[0]] if self.count == self.at else []

    @staticmethod
    def _what_it_writes(words: tuple[str, ...]) -> t.Mapping[int, str] | None:
        """What a tool prints that would write below /etc, where the made-up ones do not."""
        if words[0] in _ARCHIVING and not set(words) & {"--refresh", "--activate"}:
            return _LVM_WORDS
        if words[:2] in (("systemctl", "enable"), ("systemctl", "disable")) and "vblade@" in words[-1]:
            return _SYSTEMD_WORDS if words[1] == "enable" else {errno.EROFS: _SYSTEMD_WORDS[errno.EROFS]}
        return None


def _waits_for_udev(words: tuple[str, ...]) -> bool:
    if words[0] == "dmsetup":
        return words[1] in ("create", "remove", "resume", "rename") and "--noudevsync" not in words
    return words[0] in ("lvcreate", "lvconvert", "lvremove", "lvchange", "flashcache_create", "flashcache_load")


def files(root: Path) -> dict[str, bytes]:
    """Every file below /etc and /var; of a record, which has times, whether it is whole."""
    places = (path for name in AREAS["etc"] for path in (root / name).rglob("*"))
    return {str(path.relative_to(root)): _comparable(path) for path in places if path.is_file()}


def _drafts(root: Path) -> list[Path]:
    return [path for names in AREAS.values() for name in names for path in (root / name).rglob(".cachefleet-*")]


def _comparable(path: Path) -> bytes:
    content = path.read_bytes()
    with contextlib.suppress(ValueError):
        return b"whole" if path.suffix == ".json" and json.loads(content) is not None else _UUID.sub(b"UUID", content)
    return content


def strike_everywhere(
    fresh: t.Callable[[], t.Any],
    carry_out: t.Callable[[t.Any], t.Any],
    check: t.Callable[[t.Any], None] = lambda host: None,
    *,
    areas: t.Sequence[str] = tuple(AREAS),
    at_least: int = 3,
) -> None:
    """Have each file system fail from each change of a run on, once full and once read-only, and run again after that.

    The error has to be one sentence with the reason; no file may be half, and none may be left; the next run has to converge.

    :param fresh: makes the host before the run; it has a ``root`` and, unless its tools write nothing there, a ``run``.
    :param carry_out: the run.
    :param check: what must be true of the host after every run, whatever failed: nothing is lost.
    :param at_least: changes that the run makes.
    """
    changes = 0
    for area in areas:
        whole, _host, _error = _struck(fresh, carry_out, area)
        changes += whole.count
        for at, number in _points(whole.count, _SAMPLES[area]):
            faults, host, error = _struck(fresh, carry_out, area, number, at)
            what = f"/{area}: {os.strerror(number)} from change {at} of {whole.count} on, {faults.failed[:2]}: {error}"
            if error is not None:
                assert faults.failed, what
                assert _REASONS[number].search(error.message) and "\n" not in error.message and "Errno" not in error.message, what
                assert "Errno" not in str(error.facts), what
            else:
                assert not faults.failed_itself, what
            torn = [path for path, content in files(host.root).items() if content not in whole.contents.get(path, {b"whole"})]
            # Nobody can remove a file of a file system that became read-only while it was written; a log grows by lines.
            assert [path for path in torn if not path.endswith("/log") and (number == errno.ENOSPC or not path.endswith(".tmp"))] == [], what
            check(host)
            assert not _changed(carry_out(host)) or error is not None, what
            check(host)
            assert not _changed(carry_out(host)), what
            assert number == errno.EROFS or not _drafts(host.root), what
    assert changes >= at_least, "there was nothing to strike"


def _changed(outcome: t.Any) -> bool:
    return bool((outcome[0] if isinstance(outcome, tuple) else outcome).changed)


def _struck(fresh: t.Callable[[], t.Any], carry_out: t.Callable[[t.Any], t.Any], area: str, number: int = 0, at: int = 0) -> tuple[Faults, t.Any, t.Any]:
    host = fresh()
    (host.root / "run/udev").mkdir(parents=True, exist_ok=True)
    for left in _drafts(host.root):
        left.unlink()
    error = None
    with Faults(host, area, number, at) as faults:
        try:
            carry_out(host)
        except StorageError as raised:
            if not at:
                raise
            error = raised
    return faults, host, error


def _points(total: int, samples: int) -> list[tuple[int, int]]:
    """The changes from which on a file system fails, and how."""
    if _LONG:
        return list(itertools.product(range(1, total + 1), _REASONS))
    some = sorted({1 + number * (total - 1) // (samples - 1) for number in range(samples)}) if total else []
    return list(zip(some, itertools.cycle(_REASONS)))
