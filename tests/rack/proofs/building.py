# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Devices that a proof builds and removes again: loop devices, partitions, mounts, volumes, processes that hold them."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import struct
import subprocess
import sys
import time
import typing as t
from pathlib import Path

_NUMBERS = itertools.count(1)


def run(*argv: str, check: bool = True, stdin: str = "") -> str:
    completed = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)
    if check and completed.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {completed.stderr.strip() or completed.stdout.strip()}")
    return completed.stdout.strip()


def settle() -> None:
    run("udevadm", "settle", check=False)


def write_partition_table(device: str, *extents: tuple[int, int]) -> None:
    """A DOS partition table: four entries of 16 bytes at offset 446, first sector and count, then 55 AA."""
    entries = b"".join(struct.pack("<B3sB3sII", 0, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", start, count) for start, count in extents)
    with open(device, "r+b") as disk:
        disk.write(b"\0" * 446 + entries.ljust(64, b"\0") + b"\x55\xaa")
    run("blockdev", "--rereadpt", device)
    settle()
    # A kernel without support for this table gets its partitions one by one.
    for number, (start, count) in enumerate(extents, start=1):
        if not Path(f"/sys/class/block/{partition_of(device, number).removeprefix('/dev/')}").exists():
            run("addpart", device, str(number), str(start), str(count))


def partition_of(device: str, number: int) -> str:
    return f"{device}{'p' if device[-1].isdigit() else ''}{number}"


def sparse_file(folder: Path, megabytes: int) -> Path:
    image = folder / f"{next(_NUMBERS)}.img"
    with open(image, "wb") as file:
        file.truncate(megabytes * 1024**2)
    return image


def loop_over(undo: contextlib.ExitStack, device: str, *options: str) -> str:
    found = run("losetup", "--find", "--show", *options, device)
    undo.callback(run, "losetup", "--detach", found, check=False)
    return found


def loop_device(folder: Path, undo: contextlib.ExitStack, megabytes: int = 64, *options: str) -> str:
    image = sparse_file(folder, megabytes)
    undo.callback(image.unlink, missing_ok=True)
    return loop_over(undo, str(image), *options)


def backing_file(device: str) -> str:
    return run("losetup", "--noheadings", "--output", "BACK-FILE", device)


def mounted_on(folder: Path, undo: contextlib.ExitStack, device: str, *options: str) -> Path:
    point = folder / f"mnt-{next(_NUMBERS)}"
    point.mkdir()
    undo.callback(shutil.rmtree, point, ignore_errors=True)
    run("mount", *options, device, str(point))
    undo.callback(run, "umount", str(point), check=False)
    return point


def volume_group(undo: contextlib.ExitStack, name: str, *devices: str) -> None:
    run("vgcreate", "--quiet", "--yes", name, *devices)
    undo.callback(run, "pvremove", "--force", "--force", "--yes", *devices, check=False)
    undo.callback(run, "vgremove", "--force", "--yes", name, check=False)


def logical_volume(group: str, name: str, size: str, *options: str) -> str:
    """:param options: ``--size`` and ``size`` unless given otherwise, and everything else of lvcreate."""
    run("lvcreate", "--yes", "--quiet", "--wipesignatures", "y", "--zero", "y", "--name", name, "--size", size, *options, group)
    return f"/dev/{group}/{name}"


@contextlib.contextmanager
def python_process(program: str, *arguments: str, user: tuple[int, int] | None = None, name: str | None = None) -> t.Iterator[subprocess.Popen[str]]:
    """A process that runs a program of a few lines; it has begun, and has printed a line, when the block is entered.

    :param user: user and group that it runs as.
    :param name: of the process, as ``ps`` shows it.
    """

    def become() -> None:
        if user is not None:
            os.setgroups([])
            os.setgid(user[1])
            os.setuid(user[0])

    words = [name or sys.executable, "-c", program, *arguments]
    process = subprocess.Popen(words, executable=sys.executable, stdin=-1, stdout=-1, text=True, preexec_fn=become, cwd="/")
    try:
        if not process.stdout.readline():
            raise RuntimeError("a helper process did not start")
        yield process
    finally:
        process.kill()
        process.communicate()


def opened_by_process(path: str, flags: str = "O_RDWR") -> contextlib.AbstractContextManager:
    """A process that has a file or device open, neither exclusively nor locked."""
    return python_process(f"import os, sys\nf = os.open(sys.argv[1], os.{flags})\nprint(1, flush=True)\nsys.stdin.read()", path)


def mapped_by_process(path: str) -> contextlib.AbstractContextManager:
    """A process that has a file or device mapped into its memory for writing, and its descriptor closed."""
    program = (
        "import ctypes, os, sys\n"
        "f = os.open(sys.argv[1], os.O_RDWR)\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.mmap.restype = ctypes.c_void_p\n"
        # PROT_READ | PROT_WRITE, MAP_SHARED. The mmap module of Python would keep a duplicate of the descriptor.
        "place = libc.mmap(None, ctypes.c_size_t(65536), 3, 1, f, ctypes.c_long(0))\n"
        "assert place != 2**64 - 1\n"
        "os.close(f)\nprint(1, flush=True)\nsys.stdin.read()"
    )
    return python_process(program, path)


@contextlib.contextmanager
def namespace_process(script: str, *arguments: str) -> t.Iterator[None]:
    """A process in a mount namespace of its own, in which a shell script has run."""
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", f"{script}\necho ready\nread line", "sh", *arguments]
    process = subprocess.Popen(words, stdin=-1, stdout=-1, stderr=subprocess.STDOUT, text=True)
    try:
        line = process.stdout.readline()
        if line != "ready\n":
            raise RuntimeError(f"a process in a mount namespace of its own did not start: {line.strip()}")
        yield
    finally:
        process.communicate("\n")
        # The namespace, and what is mounted in it, goes a moment after its last process.
        time.sleep(0.2)


def config_folder(undo: contextlib.ExitStack, path: Path) -> Path:
    """A folder of configfs, which is mounted if it is not."""
    if not Path("/sys/kernel/config/target").parent.is_mount():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config")
    path.mkdir()
    undo.callback(path.rmdir)
    return path
