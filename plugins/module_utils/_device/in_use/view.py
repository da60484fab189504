# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether this process sees everything that may use a device: all processes, all mounts, sysfs as the kernel has it.

What cannot be seen is in use. Each problem is a sentence: what is not visible, why, and what to do.

Sources: proc(5) (``hidepid`` and ``subset`` of the mount, ``mountinfo``, ``loadavg``: its fourth field ends with the number of tasks of the kernel,
whatever this process may see; ``stat``: ``processes`` is the number of tasks that were made since boot); include/linux/proc_ns.h and
include/uapi/linux/magic.h for the numbers; capabilities(7).
"""

from __future__ import annotations

import ctypes
import os
import re
import typing as t
from pathlib import Path

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import way_to_see
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Mount, read_mounts

#: The inodes of the first PID namespace and the first user namespace, in every kernel since 3.8 (``PROC_PID_INIT_INO``, ``PROC_USER_INIT_INO``).
_INITIAL_PID, _INITIAL_USER = 0xEFFFFFFC, 0xEFFFFFFD
#: ``PROC_SUPER_MAGIC``, ``SYSFS_MAGIC``, ``CONFIGFS_MAGIC``.
_PROC, _SYSFS, _CONFIGFS = 0x9FA0, 0x62656572, 0x62656570
#: ``PROC_ROOT_INO``: a part of /proc that is mounted there has another one.
_PROC_ROOT = 1
_CAP_SYS_PTRACE = 19

#: What is read here and must not be covered. Others are covered by many container engines (/proc/kcore, /sys/firmware), and are not needed.
_NEEDED = re.compile(
    r"/proc/(?:\d+|self|thread-self|swaps|mounts|loadavg|stat|modules|net)(?:/|\Z)"
    r"|/sys/(?:block|bus|class|dev|module)(?:/|\Z)|/sys/(?:kernel|fs|devices)\Z|/sys/devices/(?!system/|virtual/powercap)"
    r"|/sys/kernel/(?:config/|scst_tgt(?:/|\Z))|/sys/fs/(?:btrfs|bcachefs|bcache)(?:/|\Z)"
)


def hidden(control: int, proc: Path = Path("/proc")) -> list[str]:
    """Why users of a device may exist that this process does not see; empty if it sees all of them.

    :param control: a process in the mount namespace of this one, which nothing can have been mounted over because it is new.
    """
    if file_system_type(proc) != _PROC or os.stat(proc).st_ino != _PROC_ROOT:
        return [f"{proc} is not the proc file system of the kernel: mount it there (mount -t proc proc /proc)"]
    try:
        problem = _namespace_problem(proc)
        if problem:
            return [problem]
        mounts = read_mounts(proc / str(control) / "mountinfo")
        # Only where nothing else explains what is missing is it counted.
        return [*_hidden_processes(proc, mounts), *_covered(mounts), *_sysfs_problems(mounts)] or list(_missing_tasks(proc))
    except (OSError, ValueError, IndexError) as error:
        return [f"{proc} cannot be read ({_reason(error)}): {way_to_see()}"]


def _reason(error: Exception) -> str:
    return f"{error.strerror}: {error.filename}" if isinstance(error, OSError) and error.strerror else str(error)


def file_system_type(path: Path) -> int | None:
    """The magic number of the file system at a path; ``None`` if there is nothing. Source: statfs(2), whose first field it is."""
    buffer = ctypes.create_string_buffer(512)
    if ctypes.CDLL(None).statfs(os.fsencode(path), buffer) != 0:
        return None
    kind = ctypes.c_uint if os.uname().machine == "s390x" else ctypes.c_long
    return kind.from_buffer(buffer).value & 0xFFFFFFFF


def _namespace_problem(proc: Path) -> str:
    """A PID namespace shows the processes in it and none beside it. In another one's /proc this process has another number, or none."""
    try:
        own = os.readlink(proc / "self")
    except FileNotFoundError:
        own = ""
    if own != str(os.getpid()) or os.stat(proc / "self/ns/pid").st_ino != _INITIAL_PID:
        return "this process is in a PID namespace of its own, or /proc is that of another one, so that other processes are hidden: run on the host itself"
    return ""


def _hidden_processes(proc: Path, mounts: t.Sequence[Mount]) -> t.Iterator[str]:
    options = [option for one in mounts if one.point == str(proc) for option in one.options]
    hiding = sorted({option for option in options if re.match(r"hidepid=(?!0\Z|off\Z)", option)})
    if hiding and not _sees_all(proc):
        yield f"/proc is mounted with {hiding[0]} and this process lacks the capability CAP_SYS_PTRACE: {way_to_see()}"
    partial = [option for option in options if option.startswith("subset=")]
    if partial:
        yield f"/proc is mounted with {partial[0]}, which hides a part of it: remount it without (mount -o remount,subset= /proc), or mount another one"


def _sees_all(proc: Path) -> bool:
    """Whether this process has CAP_SYS_PTRACE, and not only in a user namespace of its own."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", (proc / "self/status").read_text(), re.MULTILINE)
    if match is None or not int(match.group(1), 16) & 1 << _CAP_SYS_PTRACE:
        return False
    try:
        return os.stat(proc / "self/ns/user").st_ino == _INITIAL_USER
    except FileNotFoundError:
        return True  # a kernel without user namespaces


def _covered(mounts: t.Sequence[Mount]) -> t.Iterator[str]:
    parts = [one.point for one in mounts if one.point == "/sys/kernel/config" and (one.kind, one.root) != ("configfs", "/")]
    for point in dict.fromkeys([*(one.point for one in mounts if _NEEDED.match(one.point)), *parts]):
        yield f"{point} is covered by something that is mounted there, which hides what the kernel shows: unmount it, or run outside of the container"


def _sysfs_problems(mounts: t.Sequence[Mount]) -> t.Iterator[str]:
    whole = [one for one in mounts if one.point == "/sys"]
    if file_system_type(Path("/sys")) != _SYSFS or (whole and whole[-1].root != "/"):
        yield "/sys is not the sysfs of the kernel: mount it there (mount -t sysfs sysfs /sys)"


def is_configfs(path: Path) -> bool:
    """Whether the file system at a path is the configfs of the kernel."""
    return file_system_type(path) == _CONFIGFS


def _missing_tasks(proc: Path) -> t.Iterator[str]:
    """Tasks that the kernel has and /proc does not show, by number: a check that needs no option, mount or name that hides them to be known.

    What is alive from before the count to after it is at least what is alive after it without what was made meanwhile.
    """
    if _tasks_shown(proc) >= _tasks_alive(proc):
        return
    before = _tasks_made(proc)
    shown = _tasks_shown(proc)
    alive = _tasks_alive(proc)
    missing = alive - (_tasks_made(proc) - before) - shown
    if missing > 0:
        yield f"{missing} tasks that the kernel has are not shown in /proc: {way_to_see()}"


def _tasks_shown(proc: Path) -> int:
    """Tasks of all processes that are shown. The folder ``task`` of a process has a link for each, and two more (fs/proc/base.c)."""
    shown = 0
    for name in os.listdir(proc):
        if name.isdigit():
            try:
                shown += os.stat(f"{proc}/{name}/task").st_nlink - 2
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended, or is missing in the sum
    return shown


def _tasks_alive(proc: Path) -> int:
    return int((proc / "loadavg").read_text().split()[3].split("/")[1])


def _tasks_made(proc: Path) -> int:
    match = re.search(r"^processes (\d+)$", (proc / "stat").read_text(), re.MULTILINE)
    if match is None:
        raise ValueError("/proc/stat does not have the number of processes")
    return int(match.group(1))
