# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What fio is given of a target that was examined: of a file not its name but the file itself, open.

Between a check and the moment in which fio opens a name, any user who may write to the folder can put something else in its place. So a file is
opened here, without following a link anywhere on its path, compared with what was examined, and inherited by fio, which opens it again as
``/proc/self/fd/<number>`` (proc(5)): that leads to the same inode, whatever becomes of the name.

fio removes a file that is too short and makes it anew, which it could not do through a descriptor (``extend_file`` in filesetup.c). So a
file gets its size here before fio opens it, and fio never needs to.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import os
import resource
import stat
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import folder_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.records import frozen
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB, format_size
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of_status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.extent import files_of, open_at_once
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.file_examination import read_folder

if t.TYPE_CHECKING:
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
    from ansible_collections.cachefleet.storage.plugins.module_utils._fio.sections import Job
    from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget, TargetFacts

#: Descriptors that a process of fio has beside its files.
_OTHER_DESCRIPTORS = 64
#: Bytes that are laid out between two checks whether to stop, and of random contents that are written again and again.
_STRIDE, _CONTENTS = 64 * MIB, MIB
_BLOCK = 4096


@frozen
class Handover:
    """What one fio gets.

    :param facts: as they were examined, with the path that fio opens.
    :param descriptors: what it inherits.
    :param units: what it may write.
    """

    facts: TargetFacts
    descriptors: tuple[int, ...] = ()
    units: frozenset[Unit] = frozenset()

    @property
    def note(self) -> str:
        """A comment for the job file that is kept; empty where fio got a name."""
        if not self.descriptors:
            return ""
        option, what = ("directory", "folder") if self.facts.target.kind == "directory" else ("filename", "file")
        return f"; fio got the open {what} as {option}={self.facts.path}"


@contextlib.contextmanager
def handed_over(
    facts: TargetFacts, job: Job, made: MadeFiles, root: Path = Path("/"), *, stopping: t.Callable[[], bool] = lambda: False
) -> t.Iterator[Handover]:
    """A target as fio gets it; a file is made, or laid out, as large as the job needs it.

    :param made: which files are the collection's own.
    :param stopping: whether to give up; checked while a large file is laid out.
    :raises Refused: if something else is in the file's place than what was examined.
    :raises CommandFailed: if it cannot be made as large as that.
    """
    if facts.target.kind == "directory":
        with _open_folder(facts, made, root) as descriptor:
            require_descriptors(job, facts.path)
            made.take_over(facts.path)
            units = _make_files(descriptor, facts.path, job, facts.target, lambda one, path, size: lay_out(one, path, size, None, stopping))
            yield Handover(dataclasses.replace(facts, path=f"/proc/self/fd/{descriptor}/."), (descriptor,), units)
        return
    if facts.target.kind != "file":
        yield Handover(facts, units=frozenset() if facts.unit is None else frozenset({facts.unit}))
        return
    size = facts.target.size if facts.target.size is not None else facts.size
    writes = job.writes or not facts.exists or size > facts.size
    descriptor = made.make(facts.path) if not facts.exists else open_file(facts, root, writing=writes)
    try:
        if facts.created and not made.has_mark(facts.path, descriptor):
            raise _exchanged(facts)
        if facts.exists and writes:
            # What is only read stays whose it is: if it is changed meanwhile, the next run that would write it is refused.
            made.take_over(facts.path)
        lay_out(descriptor, facts.path, size, job, stopping)
        if not job.writes:
            # Through the one with which it was laid out, fio could write what it is only to read.
            writable, descriptor = descriptor, os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
            os.close(writable)
        yield Handover(dataclasses.replace(facts, path=f"/proc/self/fd/{descriptor}"), (descriptor,), frozenset({unit_of_status(os.fstat(descriptor))}))
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _open_folder(facts: TargetFacts, made: MadeFiles, root: Path) -> t.Iterator[int]:
    """The folder that was examined, or a new one.

    :raises Refused: if another one is in its place by now.
    """
    if not facts.exists:
        made.make_folder(facts.path)
    try:
        with folder_of(facts.path, root) as (above, name):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        raise _exchanged(facts) from None
    try:
        status = os.fstat(descriptor)
        if (facts.exists and unit_of_status(status) != facts.unit) or not made.has_mark(facts.path, descriptor) or status.st_uid != os.geteuid():
            raise _exchanged(facts)
        yield descriptor
    finally:
        os.close(descriptor)


def open_file(facts: TargetFacts, root: Path, *, writing: bool) -> int:
    """A descriptor of the very file that was examined.

    :raises Refused: if there is another one in its place, or a link on its path.
    """
    flags = (os.O_RDWR if writing else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with folder_of(facts.path, root) as (above, name):
            descriptor = os.open(name, flags, dir_fd=above)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENOENT):
            raise _exchanged(facts) from None
        raise Refused(f"{facts.target.path} cannot be opened: {error.strerror}.", item=facts.target.path) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or unit_of_status(status) != facts.unit:
        os.close(descriptor)
        raise _exchanged(facts)
    return descriptor


def _exchanged(facts: TargetFacts) -> Refused:
    what = "directory" if facts.target.kind == "directory" else "file"
    return Refused(
        f"{facts.target.path} is no longer the {what} that was examined: it was replaced. Choose a folder in which only root may create files.",
        item=facts.target.path,
    )


def lay_out(descriptor: int, path: str, size: int, job: Job | None, stopping: t.Callable[[], bool] = lambda: False) -> None:
    """Give a file the size that a job needs, as fio would: with contents if it is read or overwritten, else with space only.

    :param size: bytes.
    :param job: ``None`` for any job: with contents.
    :raises CommandFailed: if there is no room, or if the runner is being stopped.
    """
    current = os.fstat(descriptor).st_size
    if size <= current:
        return
    _require_free(descriptor, path, size)
    fill = _write if job is None or _needs_contents(job) else _truncate if _is_sparse(job) else _allocate
    try:
        for offset in range(current, size, _STRIDE):
            if stopping():
                raise CommandFailed(f"{path} was not laid out: the runner is being stopped.", item=path)
            fill(descriptor, offset, min(_STRIDE, size - offset))
    except OSError as error:
        # A full file system harms others: what was added is given back.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, current)
        raise CommandFailed(f"{path} cannot be made {format_size(size)} large on this host: {error.strerror}.", item=path) from None


def _require_free(descriptor: int, path: str, size: int) -> None:
    """Whether there is room for what a file does not have yet; blocks count, for a sparse file has less than its size."""
    space, status = os.fstatvfs(descriptor), os.fstat(descriptor)
    needed, free = size - status.st_blocks * 512, space.f_bavail * space.f_frsize
    if needed > free:
        raise CommandFailed(f"{path} cannot be made {format_size(size)} large on this host: its file system has {format_size(free)} free.", item=path)


def _needs_contents(job: Job) -> bool:
    """Whether any section reads the file, overwrites what is in it, or maps it (fio: ``overwrite``, and engines that cannot extend a file)."""
    return any(
        "read" in section.directions or "mixed" in section.directions or section.value("overwrite") == "1" or section.value("ioengine") == "mmap"
        for section in job.sections
    )


def _is_sparse(job: Job) -> bool:
    return any(section.value("fallocate") in ("none", "0", "truncate") for section in job.sections)


def _allocate(descriptor: int, offset: int, length: int) -> None:
    os.posix_fallocate(descriptor, offset, length)


def _truncate(descriptor: int, offset: int, length: int) -> None:
    os.ftruncate(descriptor, offset + length)


def _write(descriptor: int, offset: int, length: int) -> None:
    """Random contents of which no two blocks are equal: a device that compresses or deduplicates gains nothing."""
    contents = bytearray(os.urandom(min(_CONTENTS, -(-length // _BLOCK) * _BLOCK)))
    end = offset + length
    for start in range(offset, end, _CONTENTS):
        for place in range(0, len(contents), _BLOCK):
            contents[place : place + 8] = (start + place).to_bytes(8, "little")
        part = memoryview(contents)[: end - start]
        written = 0
        while written < len(part):
            written += os.pwrite(descriptor, part[written:], start + written)


def _make_files(folder: int, path: str, job: Job, target: GuardTarget, lay_out: t.Callable[[int, str, int], None]) -> frozenset[Unit]:
    """Make all files of a job in an open folder, each as large as the job needs it.

    :param lay_out: gives an open file its size and contents.
    :returns: what fio may write.
    :raises StorageError: if one is something else by now, or cannot be made.
    """
    units = set()
    there = read_folder(target, folder)
    for name, size in files_of(job).items():
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | (0 if name in there else os.O_CREAT | os.O_EXCL)
        try:
            descriptor = os.open(name, flags, 0o600, dir_fd=folder)
        except OSError as error:
            raise CommandFailed(f"{path}/{name} cannot be made on this host: {error.strerror}.", item=path) from None
        try:
            unit = unit_of_status(os.fstat(descriptor))
            if name in there and unit != unit_of_status(there[name]):
                raise Refused(f"{path}/{name} was replaced since it was examined.", item=path)
            lay_out(descriptor, f"{path}/{name}", size)
            units.add(unit)
        finally:
            os.close(descriptor)
    return frozenset(units)


def require_descriptors(job: Job, path: str) -> None:
    """Let fio open as many files as the job has open at once.

    :raises Refused: if this host does not allow that.
    """
    needed = open_at_once(job) + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY not in (soft, hard) and needed > hard:
        raise Refused(
            f"fio would have {needed} files open in {path} at once, and this host allows {hard} (ulimit -Hn): set openfiles in the job.",
            item=path,
        )
    if soft != resource.RLIM_INFINITY and needed > soft:
        with contextlib.suppress(OSError, ValueError):
            # What fio inherits; the hard limit stays as it is.
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed if hard == resource.RLIM_INFINITY else hard, hard))
