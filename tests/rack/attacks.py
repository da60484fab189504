#!/usr/bin/env python
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attacks on the data and the machine of a host, through the whole path of a measurement.

``attacks.py --pack FILE`` writes one self-contained file on a controller; ``python3 FILE --scratch DISK`` runs it as root on a
machine whose DISK (SCSI or SATA) may be overwritten. Each attack is an order that the runner of the collection gets, and something
that must be the same afterwards, byte for byte. ``held`` or ``broken`` is printed for each with the reason; the exit status is the
number of those that are broken or could not be built.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
import pwd
import resource
import subprocess
import sys
import tempfile
import threading
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent))

from proofs.building import (
    backing_file,
    logical_volume,
    loop_device,
    loop_over,
    mounted_on,
    opened_by_process,
    partition_of,
    python_process,
    run,
    settle,
    sparse_file,
    volume_group,
    write_partition_table,
)
from proofs.orders import Outcome, carry_out
from proofs.packing import pack
from proofs.proof import in_a_child

_MIB = 1024**2
_WRITE: t.Mapping[str, t.Any] = {"rw": "write", "bs": "64k", "ioengine": "psync"}


class Broken(Exception):
    """The attack has reached what it wanted."""


@dataclass
class Laboratory:
    """Where attacks are built.

    :param scratch: a disk that may be overwritten, if there is one.
    """

    folder: Path
    scratch: str | None

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    def loop(self, undo: contextlib.ExitStack, megabytes: int = 64) -> str:
        return loop_device(self.folder, undo, megabytes)

    def disk(self) -> str:
        if self.scratch is None:
            raise RuntimeError("it needs --scratch")
        return os.path.realpath(self.scratch)

    def write(self, target: t.Mapping[str, t.Any], **job: t.Any) -> Outcome:
        return carry_out(self.spool, {"target": target, "job": {**_WRITE, **job}})

    def accepts(self, target: t.Mapping[str, t.Any], **job: t.Any) -> Outcome:
        """What the check of an order says; nothing runs."""
        return carry_out(self.spool, {"target": target, "job": {**_WRITE, **job}}, check_mode=True)


def digest(path: str, offset: int = 0, length: int | None = None) -> str:
    """SHA-256 of what lies on the medium, past every cache."""
    count = [] if length is None else [f"count={length // _MIB}"]
    words = ["dd", f"if={path}", "bs=1M", f"skip={offset // _MIB}", *count, "iflag=direct", "status=none"]
    completed = subprocess.run(words, capture_output=True, check=False)
    if completed.returncode:
        raise RuntimeError(f"{path} could not be read: {completed.stderr.decode(errors='replace').strip()}")
    return hashlib.sha256(completed.stdout).hexdigest()


@contextlib.contextmanager
def unchanged(*victims: str, offset: int = 0, length: int | None = None) -> t.Iterator[None]:
    """:raises Broken: if a victim is not the same afterwards."""
    run("sync")
    before = [digest(path, offset, length) for path in victims]
    yield
    for path, content in zip(victims, before):
        if digest(path, offset, length) != content:
            raise Broken(f"{path} was overwritten")


def refused(outcome: Outcome) -> str:
    """:raises Broken: if an order was not refused, though nothing was damaged this time."""
    if not outcome.refused:
        raise Broken(f"the order was accepted: {outcome.text}")
    return outcome.text


def fill(path: str, content: t.Callable[[int], bytes] = os.urandom, size: int = 64 * _MIB) -> None:
    with open(path, "r+b") as stream:
        stream.write(content(size))
        os.fsync(stream.fileno())


def text(size: int) -> bytes:
    return (b"everything that was decided\n" * (size // 28 + 1))[:size]


# -- engines that go past the block device


def sg_on_a_partition(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    disk = laboratory.disk()
    undo.callback(clear, disk)
    write_partition_table(disk, (2048, 16384), (18432, 110592))
    settle()
    run("mkfs.ext4", "-q", "-F", partition_of(disk, 1))
    mounted_on(laboratory.folder, undo, partition_of(disk, 1), "-o", "ro")
    with unchanged(disk, length=9 * _MIB):
        return laboratory.write({"device": partition_of(disk, 2)}, ioengine="sg", size="48m").text


def sg_on_a_volume(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    disk = laboratory.disk()
    undo.callback(clear, disk)
    # If the attack succeeds LVM does not find the label any more.
    undo.callback(run, "dmsetup", "remove", "--retry", "attacksg-neighbour", "attacksg-target", check=False)
    volume_group(undo, "attacksg", disk)
    neighbour, target = logical_volume("attacksg", "neighbour", "8m"), logical_volume("attacksg", "target", "52m")
    run("mkfs.ext4", "-q", "-F", neighbour)
    mounted_on(laboratory.folder, undo, neighbour, "-o", "ro")
    with unchanged(disk, length=9 * _MIB):
        return laboratory.write({"device": target}, ioengine="sg", size="48m").text


def clear(disk: str) -> None:
    run("wipefs", "--all", "--force", disk, check=False)
    run("dd", "if=/dev/zero", f"of={disk}", "bs=1M", "count=66", "oflag=direct", "status=none", check=False)
    run("blockdev", "--rereadpt", disk, check=False)


# -- files

#: Waits until the fio of this laboratory runs, and puts a link in the place of the file that it is about to open.
_SWAPPER = """
import os, sys, time
place, victim, spool = sys.argv[1:]
print(1, flush=True)
while True:
    time.sleep(0.02)
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as stream:
                words = stream.read().split(b"\\0")
        except OSError:
            continue
        if not any(word.startswith(f"--output={spool}".encode()) for word in words):
            continue
        try:
            os.symlink(victim, place + ".new")
            os.rename(place + ".new", place)
        except OSError:
            pass
"""


def swapped_file(laboratory: Laboratory, undo: contextlib.ExitStack, victim: str) -> str:
    nobody = pwd.getpwnam("nobody")
    folder = laboratory.folder / f"open-{Path(victim).name}"
    folder.mkdir()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    place = folder / "data"
    messages = []
    for _attempt in range(2):
        place.unlink(missing_ok=True)
        place.write_bytes(bytes(_MIB))
        os.chown(place, nobody.pw_uid, nobody.pw_gid)
        with python_process(_SWAPPER, str(place), victim, str(laboratory.spool), user=(nobody.pw_uid, nobody.pw_gid)), unchanged(victim):
            messages.append(laboratory.write({"file": str(place), "size": _MIB, "allow_data_loss": True}).text)
    return messages[-1]


def file_swapped_for_a_link_to_a_file(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    victim = laboratory.folder / "secret"
    victim.write_bytes(text(_MIB))
    victim.chmod(0o600)
    return swapped_file(laboratory, undo, str(victim))


def file_swapped_for_a_link_to_a_device(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo, 8)
    os.chmod(device, 0o600)
    fill(device, size=8 * _MIB)
    return swapped_file(laboratory, undo, device)


def blank_at_the_end_of_a_path(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    run("mkfs.ext4", "-q", device)
    mounted_on(laboratory.folder, undo, device, "-o", "ro")
    image = backing_file(device)
    undo.callback(Path(f"{image} ").unlink, missing_ok=True)
    with unchanged(image):
        return laboratory.write({"file": f"{image} ", "size": 8 * _MIB}).text


def backing_file_by_a_hard_link(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    image = mounted_image(laboratory, undo)
    link = laboratory.folder / "link"
    os.link(image, link)
    undo.callback(link.unlink)
    with unchanged(image):
        return laboratory.write({"file": str(link), "size": 8 * _MIB, "allow_data_loss": True}).text


def backing_file_through_a_bind_mount(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    image = mounted_image(laboratory, undo)
    bound = laboratory.folder / "bound"
    bound.mkdir()
    undo.callback(bound.rmdir)
    run("mount", "--bind", str(laboratory.folder), str(bound))
    undo.callback(run, "umount", str(bound))
    with unchanged(image):
        return laboratory.write({"file": str(bound / Path(image).name), "size": 8 * _MIB, "allow_data_loss": True}).text


def mounted_image(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    run("mkfs.ext4", "-q", device)
    mounted_on(laboratory.folder, undo, device, "-o", "ro")
    return backing_file(device)


def offset_that_lets_a_file_grow(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    return grown_file(laboratory, offset="44m")


def offset_increment_that_lets_a_file_grow(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    return grown_file(laboratory, offset_increment="11m", numjobs=4)


def grown_file(laboratory: Laboratory, **job: t.Any) -> str:
    file = laboratory.folder / "grown"
    outcome = laboratory.write({"file": str(file), "size": _MIB}, **job)
    size = file.stat().st_size if file.exists() else 0
    file.unlink(missing_ok=True)
    if size > _MIB:
        raise Broken(f"1 MiB was requested, and the file has {size / _MIB:.0f} MiB")
    return outcome.text


def two_files_that_fill_a_file_system(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    run("mkfs.ext4", "-q", "-m", "0", device)
    point = mounted_on(laboratory.folder, undo, device)
    room = os.statvfs(point).f_bavail * os.statvfs(point).f_frsize
    cells = [{"target": {"file": str(point / name), "size": room * 6 // 10}, "job": _WRITE} for name in ("first", "second")]
    outcome = carry_out(laboratory.spool, *cells)
    left = os.statvfs(point).f_bavail * os.statvfs(point).f_frsize
    if left < room // 20:
        raise Broken(f"of {room // _MIB} MiB, {left // _MIB} MiB are left: {outcome.text}")
    return outcome.text


# -- data


def disk_of_text(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    fill(device, text)
    with unchanged(device):
        return laboratory.write({"device": device}).text


def volume_that_is_read(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    volume_group(undo, "attackdata", laboratory.loop(undo, 128))
    volume = logical_volume("attackdata", "ro", "64m")
    fill(volume)
    with opened_by_process(volume, "O_RDONLY"), unchanged(volume):
        return laboratory.write({"device": volume}).text


def loop_over_random_data(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    file = sparse_file(laboratory.folder, 64)
    undo.callback(file.unlink)
    fill(str(file))
    device = loop_over(undo, str(file))
    with unchanged(device):
        return laboratory.write({"device": device}).text


def identity_in_other_case(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    volume_group(undo, "attackvg", laboratory.loop(undo, 128))
    volume = logical_volume("attackvg", "raw", "64m")
    fill(volume)
    with unchanged(volume):
        return laboratory.write({"device": volume, "allow_data_loss": True, "identity": "ATTACKVG/RAW"}).text


def size_and_offset_on_a_device(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    with unchanged(device, offset=_MIB):
        return laboratory.write({"device": device, "size": _MIB}, offset="4m").text


def buffer_pattern_with_a_file(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo, 8)
    outcome = laboratory.write({"device": device}, buffer_pattern="'/etc/passwd'")
    with open(device, "rb") as stream:
        if b"root:x:" in stream.read():
            raise Broken("/etc/passwd is on the target")
    return outcome.text


# -- room below a volume


def thin_pool_that_is_filled(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    volume_group(undo, "attackthin", laboratory.loop(undo, 128))
    run("lvcreate", "--yes", "--quiet", "--type", "thin-pool", "--name", "pool", "--size", "64m", "attackthin")
    # Otherwise what does not fit waits for a minute.
    run("lvchange", "--errorwhenfull", "y", "attackthin/pool")
    for name, size in (("neighbour", "48m"), ("target", "96m")):
        run("lvcreate", "--yes", "--quiet", "--thin", "--virtualsize", size, "--name", name, "attackthin/pool")
    run("mkfs.ext4", "-q", "-E", "nodiscard", "/dev/attackthin/neighbour")
    mounted_on(laboratory.folder, undo, "/dev/attackthin/neighbour")
    outcome = laboratory.write({"device": "/dev/attackthin/target"})
    used = float(run("lvs", "--noheadings", "--options", "data_percent", "attackthin/pool"))
    if used > 99:
        raise Broken(f"the pool is full to {used:g} %: {outcome.text}")
    return outcome.text


def snapshot_that_becomes_invalid(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    volume_group(undo, "attacksnap", laboratory.loop(undo, 128))
    origin = logical_volume("attacksnap", "origin", "48m")
    run("lvcreate", "--yes", "--quiet", "--snapshot", "--size", "8m", "--name", "kept", "attacksnap/origin")
    outcome = laboratory.write({"device": origin})
    if " Invalid" in run("dmsetup", "status", "attacksnap-kept"):
        raise Broken(f"the snapshot is invalid: {outcome.text}")
    return outcome.text


# -- jobs


def rw_and_readwrite(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    fill(device)
    job = {"global": {"rw": "read", "readwrite": "read", "ioengine": "psync"}, "jobs": [{"name": "a", "rw": "write"}]}
    with unchanged(device):
        return refused(carry_out(laboratory.spool, {"target": {"device": device}, "job": job}))


def section_named_global(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    job = {"jobs": [{"name": "global settings", **_WRITE}, {"name": "b", "rw": "read", "ioengine": "psync"}]}
    return refused(carry_out(laboratory.spool, {"target": {"device": device}, "job": job}, check_mode=True))


def jobs_without_number(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    """Only its check: the fio of an accepted order would fork until the machine has no memory."""
    return refused(laboratory.accepts({"device": laboratory.loop(undo)}, numjobs=0))


def buffers_in_a_file(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    return refused(laboratory.accepts({"device": laboratory.loop(undo)}, mem="mmapshared:buffers"))


def alias_of_a_refused_option(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    return refused(laboratory.accepts({"device": laboratory.loop(undo)}, nr_files=3))


# -- who runs it, and beside whom


def not_root(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    """A user of the group disk opens the device, and does not see that a virtual machine has it open."""
    device = laboratory.loop(undo)
    user = (pwd.getpwnam("nobody").pw_uid, os.stat(device).st_gid)
    spool = laboratory.folder / "spool-of-a-user"
    spool.mkdir()
    os.chown(spool, *user)
    cell = {"target": {"device": device}, "job": {**_WRITE, "buffer_pattern": "0x61"}}
    with opened_by_process(device), unchanged(device):
        return in_a_child(lambda: [("text", carry_out(spool, cell).text)], 120, user)[0][1]


def process_named_vblade(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    nobody = pwd.getpwnam("nobody")
    with vblade_lookalike(device, (nobody.pw_uid, nobody.pw_gid)):
        outcome = laboratory.accepts({"device": device})
    if outcome.refused:
        raise Broken(f"the device cannot be measured: {outcome.text}")
    return outcome.text


@contextlib.contextmanager
def vblade_lookalike(device: str, user: tuple[int, int]) -> t.Iterator[None]:
    """A shell with the arguments of a vblade: with ``-s``, which both accept, it reads its program from its standard input."""
    process = subprocess.Popen(
        ["vblade", "-s", "0", "0", "lo", device], executable="/bin/sh", stdin=-1, stdout=-1, text=True, cwd="/", user=user[0], group=user[1], extra_groups=[]
    )
    try:
        process.stdin.write("echo ready; read line; exit\n")
        process.stdin.flush()
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def process_that_cannot_be_killed(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    """A writer on a frozen file system sleeps until it is thawed, whatever signal it gets."""
    device = laboratory.loop(undo)
    run("mkfs.ext4", "-q", device)
    point = mounted_on(laboratory.folder, undo, device)
    thaw = threading.Timer(20, run, ("fsfreeze", "--unfreeze", str(point)), {"check": False})
    undo.callback(run, "fsfreeze", "--unfreeze", str(point), check=False)
    run("fsfreeze", "--freeze", str(point))
    thaw.start()
    undo.callback(thaw.join)
    undo.callback(thaw.cancel)
    began = time.monotonic()
    message = limited_command(["dd", "if=/dev/zero", f"of={point}/new", "bs=4k", "count=1"], timeout=1)
    seconds = time.monotonic() - began
    if seconds > 10:
        raise Broken(f"the limit of 1 s lasted {seconds:.1f} s")
    return f"after {seconds:.1f} s: {message}"


def limited_command(words: t.Sequence[str], **options: t.Any) -> str:
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import StorageError
    from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner

    try:
        return f"{len(Runner().run(words, **options).stdout)} bytes"
    except StorageError as error:
        return error.message


def command_that_prints_300_megabytes(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    def memory() -> list[tuple[str, str]]:
        # The machine is small: what takes more than this is stopped before the kernel has to.
        resource.setrlimit(resource.RLIMIT_AS, (512 * _MIB, 512 * _MIB))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        try:
            message = limited_command(["head", "-c", "300000000", "/dev/zero"], timeout=100)
        except MemoryError:
            return [("512", "it was stopped at 512 MiB")]
        return [(str((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024), message)]

    used, message = in_a_child(memory, 120)[0]
    if int(used) > 128:
        raise Broken(f"{used} MiB of memory: {message}")
    return f"{used} MiB of memory: {message}"


# -- ways of not seeing who uses a device


def from_inside(laboratory: Laboratory, device: str, setup: str, *unshare: str, privileges: t.Sequence[str] = ()) -> str:
    """An order for a device that a process has open, by a process of its own after a shell has hidden something; ``{pid}`` is the one that has it open."""
    with opened_by_process(device, "O_RDWR") as user, unchanged(device):
        words = ["unshare", "--mount", *unshare, "sh", "-e", "-c", setup.replace("{pid}", str(user.pid)) + '\nexec "$@"', "sh", *privileges]
        program = [sys.executable, str(HERE.parent) if HERE.parent.is_file() else str(HERE), "--order", device, "--spool", str(laboratory.spool)]
        completed = subprocess.run([*words, *program], capture_output=True, text=True, check=False)
    if completed.returncode != 1:
        raise Broken(f"the order was not refused: {completed.stdout.strip()} {completed.stderr.strip()}")
    return completed.stdout.strip()


def order_of(device: str, spool: str) -> int:
    """Check an order for one device; 1 if it was refused."""
    outcome = carry_out(Path(spool), {"target": {"device": device}, "job": _WRITE}, check_mode=True)
    print(outcome.text)
    return int(outcome.refused)


#: What is done before the order, options of unshare, and what runs the order with less than root has.
_WITHOUT_PTRACE = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")
NOT_SEEING: t.Mapping[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "another PID namespace": ("", ("--pid", "--fork", "--mount-proc"), ()),
    "another PID namespace with the proc of the host": ("", ("--pid", "--fork"), ()),
    "the proc of another PID namespace": ("unshare --pid --fork mount -t proc proc /proc", (), ()),
    "hidepid": ("mount -t proc -o hidepid=2 proc /proc", (), _WITHOUT_PTRACE),
    "proc absent": ("umount -l /proc", (), ()),
    "proc empty": ("mount -t tmpfs none /proc", (), ()),
    "process masked": ("mount -t tmpfs none /proc/{pid}", (), ()),
    "process masked by another": ("mount --bind /proc/1 /proc/{pid}", (), ()),
    "descriptors masked": ("mount -t tmpfs none /proc/{pid}/fd", (), ()),
    "descriptors masked by others": ("mount --bind /proc/1/fd /proc/{pid}/fd", (), ()),
}


def not_seeing_processes(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    messages = []
    for way, (setup, unshare, privileges) in NOT_SEEING.items():
        try:
            messages.append(f"{way}: {from_inside(laboratory, device, setup, *unshare, privileges=privileges)}")
        except Broken as error:
            raise Broken(f"{way}: {error}") from None
    return " | ".join(messages)


def descriptor_in_flight(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    device = laboratory.loop(undo)
    code = (
        "import array, os, socket, sys; one, other = socket.socketpair(); f = os.open(sys.argv[1], os.O_RDWR);"
        " one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [f]))]); os.close(f); print(1, flush=True); sys.stdin.read()"
    )
    with python_process(code, device), unchanged(device):
        return refused(laboratory.write({"device": device}))


def file_under_a_loop_device_without_a_node(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    """The loop device is mounted, its node is gone from this /dev, and what sysfs calls its file is covered."""
    covered, seen = laboratory.folder / "covered", laboratory.folder / "seen"
    for folder in (covered, seen):
        folder.mkdir()
    image = sparse_file(covered, 64)
    device = loop_over(undo, str(image))
    number = os.stat(device).st_rdev
    run("mkfs.ext4", "-q", device)
    mounted_on(laboratory.folder, undo, device, "-o", "ro")
    # Private: what is mounted over the one folder must not appear on the other.
    for words in (("--bind", "--make-private", str(covered), str(seen)), ("-t", "tmpfs", "none", str(covered))):
        run("mount", *words)
        undo.callback(run, "umount", words[-1])
    os.unlink(device)
    undo.callback(os.mknod, device, 0o60660, number)
    with unchanged(str(seen / image.name)):
        return refused(laboratory.write({"file": str(seen / image.name), "allow_data_loss": True}))


def target_driver_without_its_tree(laboratory: Laboratory, undo: contextlib.ExitStack) -> str:
    """nvmet and LIO export a device, and configfs is not mounted any more; without the modules it cannot be built."""
    device = laboratory.loop(undo)
    run("modprobe", "nvmet")
    if not Path("/sys/kernel/config/nvmet").is_dir():
        run("mount", "-t", "configfs", "none", "/sys/kernel/config")
    subsystem = Path("/sys/kernel/config/nvmet/subsystems/nqn.2026-11.test:attack")
    for folder in (subsystem, subsystem / "namespaces/1"):
        folder.mkdir()
        undo.callback(folder.rmdir)
    (subsystem / "namespaces/1/device_path").write_text(device)
    (subsystem / "namespaces/1/enable").write_text("1")
    undo.callback((subsystem / "namespaces/1/enable").write_text, "0")
    undo.callback(run, "mount", "-t", "configfs", "none", "/sys/kernel/config")
    run("umount", "-l", "/sys/kernel/config")
    with unchanged(device):
        return refused(laboratory.write({"device": device}))


ATTACKS = (
    sg_on_a_partition,
    sg_on_a_volume,
    file_swapped_for_a_link_to_a_file,
    file_swapped_for_a_link_to_a_device,
    blank_at_the_end_of_a_path,
    backing_file_by_a_hard_link,
    backing_file_through_a_bind_mount,
    offset_that_lets_a_file_grow,
    offset_increment_that_lets_a_file_grow,
    two_files_that_fill_a_file_system,
    disk_of_text,
    volume_that_is_read,
    loop_over_random_data,
    identity_in_other_case,
    size_and_offset_on_a_device,
    buffer_pattern_with_a_file,
    thin_pool_that_is_filled,
    snapshot_that_becomes_invalid,
    rw_and_readwrite,
    section_named_global,
    jobs_without_number,
    buffers_in_a_file,
    alias_of_a_refused_option,
    not_root,
    process_named_vblade,
    process_that_cannot_be_killed,
    command_that_prints_300_megabytes,
    not_seeing_processes,
    descriptor_in_flight,
    file_under_a_loop_device_without_a_node,
    target_driver_without_its_tree,
)


def carried_out(attack: t.Callable[[Laboratory, contextlib.ExitStack], str], laboratory: Laboratory) -> tuple[str, str]:
    """``held``, ``broken`` or ``unbuilt``, and the reason."""
    try:
        with contextlib.ExitStack() as undo:
            return "held", attack(laboratory, undo)
    except Broken as error:
        return "broken", str(error)
    except (RuntimeError, OSError) as error:
        return "unbuilt", str(error)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pack", metavar="FILE")
    parser.add_argument("--scratch", metavar="DISK", help="a disk that may be overwritten")
    parser.add_argument("--only", action="append", default=[], metavar="ATTACK")
    parser.add_argument("--order", metavar="DEVICE", help=argparse.SUPPRESS)
    parser.add_argument("--spool", metavar="FOLDER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.order:
        return order_of(arguments.order, arguments.spool)
    if arguments.pack:
        pack(arguments.pack, HERE)
        return 0
    results: list[str] = []
    with tempfile.TemporaryDirectory(prefix="attacks") as folder:
        # Users of other attacks pass through it to their own folders.
        os.chmod(folder, 0o755)
        for attack in ATTACKS:
            if not arguments.only or attack.__name__ in arguments.only:
                began = time.monotonic()
                result, reason = carried_out(attack, Laboratory(Path(folder), arguments.scratch))
                results.append(result)
                print(f"{result:7} {attack.__name__.replace('_', ' ')} ({time.monotonic() - began:.1f} s): {reason}", flush=True)
    print(", ".join(f"{results.count(word)} {word}" for word in ("held", "broken", "unbuilt")))
    return len(results) - results.count("held")


if __name__ == "__main__":
    sys.exit(main())
