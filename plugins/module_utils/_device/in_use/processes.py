# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which processes have a block device or a file open, mapped, in flight between two of them, or registered with the kernel.

What could not be read is unknown, and unknown is in use: a process counts as ended only if the kernel says that it is not there any more.

Sources: proc(5), ``fd``, ``fdinfo`` (``flags`` is octal, the lowest two bits are the access mode), ``maps``, ``map_files`` and ``task``; net/unix/af_unix.c,
``scm_fds`` of a socket: descriptors that were sent to it and not received, in Linux 5.6 and later; io_uring/fdinfo.c, ``UserFiles``: files that a ring has,
with or without a descriptor.

The positive control of a search for users: a process that has the target open for this purpose only, and that the search has to find.

A search without a result is conclusive only if it finds a process that is known to have the target open. The control is a child of this process: it
inherits one descriptor and waits to be ended, or for the end of its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import os
import re
import signal
import stat
import time
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.view import hidden
from ansible_collections.cachefleet.storage.plugins.module_utils._device.sysfs import read_attribute
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import (
    Unit,
    is_missing_below,
    is_writable,
    processes,
    unescape,
    unit_of,
    unit_of_status,
)


@frozen
class Control:
    """A process that has a target open.

    :param pid: 0 if there is none, below another root.
    :param unit: what it has open; ``None`` if nothing.
    :param problem: why it could not open the target, as a sentence; empty if it could.
    """

    pid: int = 0
    unit: Unit | None = None
    problem: str = ""


@contextlib.contextmanager
def running(root: Path, path: str | None, unit: Unit | None) -> t.Iterator[Control]:
    """A control for one target; below another root, where no process of this host is to be found, there is none.

    :param path: of the device or file; ``None`` for a control that has nothing open.
    :param unit: what the path must lead to.
    """
    if root != Path("/"):
        yield Control()
        return
    descriptor, problem = _opened(path, unit)
    try:
        try:
            pid, writer = _start()
        except OSError as error:
            yield Control(problem=f"no process could be started as the control of the search for its users ({error.strerror}): free memory or processes")
            return
    finally:
        if descriptor is not None:
            os.close(descriptor)
    try:
        yield Control(pid, unit if descriptor is not None else None, problem)
    finally:
        os.close(writer)
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):  # where SIGCHLD is ignored the kernel has removed it
            os.waitpid(pid, 0)


def _opened(path: str | None, unit: Unit | None) -> tuple[int | None, str]:
    if path is None:
        return None, ""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return None, f"{path} cannot be opened as the control of the search for its users ({error.strerror}): check it, and {way_to_see()}"
    if unit_of_status(os.fstat(descriptor)) == unit:
        return descriptor, ""
    os.close(descriptor)
    return None, f"{path} leads to something else than what is examined: check its device node"


def _start() -> tuple[int, int]:
    """Start the process, and what it waits for to be closed. It gets no signal but SIGKILL: the handlers here are not meant for it."""
    reader, writer = os.pipe()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            try:
                os.close(writer)
                # The end of its parent ends it too.
                os.read(reader, 1)
            finally:
                os._exit(0)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reader)
    return pid, writer


#: linux/kcmp.h, and the number of the system call by machine.
_KCMP_FILES = 2
_KCMP = {"x86_64": 312, "aarch64": 272, "riscv64": 272, "loongarch64": 272, "s390x": 343, "ppc64": 354, "ppc64le": 354}

#: Between two readings of what may be in flight: what is received at once is not.
_PAUSE = 0.3
#: A mapping of a file in ``maps``: where, mode, device and inode of the file, path.
_MAPPING = re.compile(rb"^([0-9a-f]+-[0-9a-f]+) (....) [0-9a-f]+ ([0-9a-f]+:[0-9a-f]+) ([1-9][0-9]*) +(.*)$", re.MULTILINE)
_IN_FLIGHT = re.compile(rb"^scm_fds:\s*[1-9]", re.MULTILINE)
_NO_MEMORY = "0 0 0 0 0 0 0"
_ENDED = (FileNotFoundError, ProcessLookupError)


def _way_out() -> str:
    return f"end that process, or {way_to_see()}"


@frozen
class OpenFile:
    """A process that has a unit open."""

    name: str
    pid: int
    writing: bool

    def __str__(self) -> str:
        return f"{self.name} ({self.pid})"


@frozen
class OpenFiles:
    """What was found.

    :param unreadable: how many processes have open files that this user may not see.
    :param unknown: what else could not be seen, each as a sentence.
    """

    found: t.Mapping[Unit, tuple[OpenFile, ...]]
    unreadable: int = 0
    unknown: tuple[str, ...] = ()

    def of(self, unit: Unit | None) -> tuple[OpenFile, ...]:
        return self.found.get(unit, ()) if unit is not None else ()


def open_files(
    root: Path,
    units: t.AbstractSet[Unit],
    path: str | None = None,
    unit: Unit | None = None,
    *,
    mapped: bool = True,
    control_only: bool = False,
    pause: t.Callable[[float], None] = time.sleep,
) -> OpenFiles:
    """Who has any of some units open or mapped, and whether all of them can be seen.

    :param path: of the unit that a control opens meanwhile; ``None`` if there is nothing yet that could be open.
    :param unit: what it leads to.
    :param mapped: read mappings too, which takes several times as long.
    :param control_only: of all processes only the control is read.

    A virtual machine, a database or a user-space target opens its disk without O_EXCL; only its descriptor shows it. One that has closed
    its descriptor and kept the mapping shows in its maps.
    """
    with running(root, path, unit) as control:
        problems = [control.problem] if control.problem else []
        if root == Path("/"):
            problems += hidden(control.pid or os.getpid())
        if problems:
            return OpenFiles({}, unknown=tuple(problems))
        search = _Search(root, units, control, mapped)
        search.run(pause, control_only=control_only)
    return search.result()


class _Search:
    """One search through all processes."""

    def __init__(self, root: Path, units: t.AbstractSet[Unit], control: Control, mapped: bool) -> None:
        self.root = root
        self.units = units
        # Compared are numbers: most descriptors are none of these.
        self.blocks = {unit.device for unit in units if unit.kind == "block"}
        self.files = {(unit.device, unit.inode) for unit in units if unit.kind == "file"}
        self.control = control
        self.mapped = mapped
        self.found: dict[Unit, list[OpenFile]] = {}
        self.unreadable = 0
        self.unknown: list[str] = []
        self.controlled = control.unit is None
        #: Sockets with descriptors in flight: their fdinfo, and of which process.
        self.in_flight: list[tuple[str, str]] = []
        #: What is behind the mappings of files: each is mapped by many processes.
        self.mappings: dict[tuple[bytes, bytes], tuple[Unit, ...]] = {}

    def run(self, pause: t.Callable[[float], None], *, control_only: bool) -> None:
        try:
            for process in processes(self.root):
                if not control_only or process.name == str(self.control.pid):
                    self._examine(process)
        except OSError as error:
            if is_missing_below(self.root, error):
                return
            self.unknown.append(f"the list of processes cannot be read ({error.strerror}): {_way_out()}")
            return
        if not self.controlled:
            self.unknown.append(
                f"the search for its users did not find process {self.control.pid}, which has it open for this purpose: {self.root / 'proc'} does not show what"
                f" processes have open; {way_to_see()}"
            )
        if self.in_flight:
            pause(_PAUSE)
            self.unknown += dict.fromkeys(
                f"{label} has been sent a file descriptor over a socket and has not received it, which may be of any file: {_way_out()}"
                for fdinfo, label in self.in_flight
                if _in_flight(fdinfo)
            )

    def result(self) -> OpenFiles:
        return OpenFiles({unit: tuple(rows) for unit, rows in self.found.items()}, self.unreadable, tuple(dict.fromkeys(self.unknown)))

    def _examine(self, process: Path, *, again: bool = False) -> None:
        try:
            uses = self._uses(process)
        except PermissionError:
            self.unreadable += 1
            return
        except ValueError as error:
            self.unknown.append(f"what {_label(process)} has mapped is not understood ({error}): {_way_out()}")
            return
        except OSError as error:
            if isinstance(error, _ENDED) and _has_ended(process):
                return
            if isinstance(error, _ENDED) and not again:
                # Between the two it may have ended, and its number been given to another one.
                self._examine(process, again=True)
                return
            self.unknown.append(f"what {_label(process)} has open cannot be read ({error.strerror}: {error.filename}): {_way_out()}")
            return
        if process.name == str(self.control.pid):
            self.controlled = self.controlled or self.control.unit in uses
            return
        for unit, writing in uses.items():
            self.found.setdefault(unit, []).append(OpenFile(_name(process), int(process.name), writing))

    def _uses(self, process: Path) -> dict[Unit, bool]:
        """Which units a process uses, and whether it may write there."""
        threads = _threads(process)
        uses = self._mapped(threads[0]) if self.mapped else {}
        for thread in threads:
            self._add_opened(thread, process, uses)
        return uses

    # -- descriptors

    def _add_opened(self, thread: Path, process: Path, uses: dict[Unit, bool]) -> None:
        folder = f"{thread}/fd"
        for descriptor in os.listdir(folder) if thread == process else _descriptors(thread):
            try:
                status = os.stat(f"{folder}/{descriptor}")
            except _ENDED:
                if _is_there(f"{folder}/{descriptor}"):
                    raise
                continue  # closed meanwhile
            if status.st_rdev in self.blocks if stat.S_ISBLK(status.st_mode) else (status.st_dev, status.st_ino) in self.files:
                unit = unit_of_status(status)
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    uses[unit] = uses.get(unit, False) or is_writable(thread / "fdinfo" / descriptor)
            elif stat.S_ISSOCK(status.st_mode):
                fdinfo = f"{thread}/fdinfo/{descriptor}"
                if _may_carry_descriptors(f"{folder}/{descriptor}") and _in_flight(fdinfo):
                    self.in_flight.append((fdinfo, _label(process)))
            elif not stat.S_IFMT(status.st_mode):
                self._add_registered(thread, descriptor, process, uses)

    def _add_registered(self, thread: Path, descriptor: str, process: Path, uses: dict[Unit, bool]) -> None:
        """The files of a ring: a program registers them and closes its descriptors, or opens them there and never has one."""
        if _link(thread / "fd" / descriptor) != "anon_inode:[io_uring]":
            return
        names = _registered(thread / "fdinfo" / descriptor)
        if names is None:
            self.unknown.append(f"the files that {_label(process)} has registered with io_uring cannot be read: {_way_out()}")
        for name in names or ():
            if name.startswith(("socket:", "pipe:", "anon_inode:", "/memfd:")):
                continue
            unit = unit_of(process / "root" / name.lstrip("/")) if name.startswith("/") else None
            if unit is None:
                self.unknown.append(f"{name}, which {_label(process)} has registered with io_uring, cannot be found, and may be any file: {_way_out()}")
            elif unit in self.units:
                uses[unit] = True

    # -- mappings

    def _mapped(self, process: Path) -> dict[Unit, bool]:
        found: dict[Unit, bool] = {}
        try:
            text = _read(f"{process}/maps")
        except _ENDED:
            if _is_real(process) and read_attribute(process / "statm") != _NO_MEMORY:
                raise
            return found  # a thread of the kernel, or one that has ended
        for place, mode, device, inode, path in _MAPPING.findall(text):
            units = self.mappings.get((device, inode))
            if units is None:
                units = self.mappings[device, inode] = self._units_of_mapping(process, place, (device, inode), os.fsdecode(path))
            for unit in units:
                found[unit] = found.get(unit, False) or mode[1:2] == b"w"
        return found

    def _units_of_mapping(self, process: Path, place: bytes, numbers: tuple[bytes, bytes], path: str) -> tuple[Unit, ...]:
        """Which units are mapped: by the kernel's link, which leads there whatever the file is called, and where that is not allowed by its path.

        By the numbers of the line too: those of some file systems (btrfs) are not those of stat(2).
        """
        major, minor = (int(part, 16) for part in numbers[0].split(b":"))
        name = "-".join(part.lstrip("0") or "0" for part in place.decode().split("-"))
        linked = unit_of(process / "map_files" / name) or unit_of(process / "root" / path.lstrip("/")) or unit_of(path)
        units = {Unit("file", os.makedev(major, minor), int(numbers[1])), linked}
        return tuple(unit for unit in units if unit in self.units and unit is not None)


def _threads(process: Path) -> list[Path]:
    """The folders of a process and of its threads with which all of its descriptors are found, in most cases the first alone.

    The main thread may have ended before the others, and then has no descriptors and no memory; and a thread may have a table of its own
    (unshare(2), CLONE_FILES). Source: proc(5), ``task``.
    """
    try:
        names = os.listdir(f"{process}/task")
    except FileNotFoundError:
        if _is_real(process):
            raise
        names = [process.name]
    if process.name not in names and _is_real(process):
        raise FileNotFoundError(errno.ENOENT, "its threads are not shown", f"{process}/task")
    others = [name for name in names if name != process.name]
    if not others:
        return [process]
    first = next((one for one in (process, *(process / "task" / name for name in others)) if _descriptors(one)), None)
    if first is None:
        # Without any descriptor; only a thread that has not ended shows what is mapped.
        first = process if read_attribute(process / "statm") != _NO_MEMORY else process / "task" / others[-1]
    return [first, *_with_own_table(first, process, others)]


def _with_own_table(first: Path, process: Path, others: t.Iterable[str]) -> t.Iterator[Path]:
    """The threads that do not share their descriptors with the first; where kcmp(2) cannot tell, those that have other numbers open."""
    ask = _kcmp() if _is_real(process) else None
    known = int(first.name)
    for name in others:
        # A host may have 100,000 threads: no path is made of most.
        answer = ask(known, int(name)) if ask is not None else -1
        if answer > 0 or (answer < 0 and _descriptors(process / "task" / name) != _descriptors(first)):
            yield process / "task" / name


def _descriptors(thread: Path) -> list[str]:
    try:
        return os.listdir(f"{thread}/fd")
    except _ENDED:
        if _is_real(thread) and _is_there(str(thread)):
            raise
        return []


@functools.lru_cache(maxsize=None)
def _kcmp() -> t.Callable[[int, int], int] | None:
    """kcmp(2) of two threads by number: 0 if they have one table of descriptors, less than 0 if that cannot be determined."""
    number = _KCMP.get(os.uname().machine)
    if number is None:
        return None
    call = ctypes.CDLL(None).syscall
    return lambda one, other: int(call(number, one, other, _KCMP_FILES, 0, 0))


def _may_carry_descriptors(socket: str) -> bool:
    """Whether a socket is one of the host itself (unix(7)), or of a kind that is not known. Source: net/socket.c, ``system.sockprotoname``."""
    try:
        return os.getxattr(socket, "system.sockprotoname").startswith(b"UNIX")
    except OSError:
        return True


def _in_flight(fdinfo: str) -> bool:
    """Whether descriptors were sent to a socket and not received: the kernel has them open, and no process. Before Linux 5.6 that is not shown."""
    try:
        # Without the object of a file: a host has thousands of sockets.
        descriptor = os.open(fdinfo, os.O_RDONLY | os.O_CLOEXEC)
    except _ENDED:
        return False  # closed meanwhile
    try:
        return _IN_FLIGHT.search(os.read(descriptor, 4096)) is not None
    except _ENDED:
        return False
    finally:
        os.close(descriptor)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as stream:
        return stream.read()


def _registered(fdinfo: Path) -> list[str] | None:
    """The files of a ring as the kernel calls them; ``None`` if it does not say, as it does while the ring is busy, and before Linux 5.6."""
    for _attempt in range(5):
        try:
            text = fdinfo.read_text(errors="surrogateescape")
        except _ENDED:
            return []  # closed meanwhile
        match = re.search(r"^UserFiles:\s*(\d+)\n((?:\s*\d+: .*\n)*)", text, re.MULTILINE)
        names = [unescape(line.split(": ", 1)[1]) for line in match.group(2).splitlines()] if match else []
        if match and (names or match.group(1) == "0"):
            return [name for name in names if name != "<none>"]
        time.sleep(0.01)
    return None


def _has_ended(process: Path) -> bool:
    """Whether the kernel says that a process is not there any more."""
    if not _is_real(process):
        return True
    try:
        os.kill(int(process.name), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def _is_real(process: Path) -> bool:
    """Whether a process is one of this host; those of a host that is made of files have only what they need."""
    return process.parts[1] == "proc"


def _is_there(path: str) -> bool:
    try:
        os.lstat(path)
    except _ENDED:
        return False
    return True


def _name(process: Path) -> str:
    return read_attribute(process / "comm") or "a process"


def _label(process: Path) -> str:
    return f"{_name(process)} ({process.name})"


def _link(path: Path) -> str | None:
    with contextlib.suppress(OSError):
        return os.readlink(path)
    return None
