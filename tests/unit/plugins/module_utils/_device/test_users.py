# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device import users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, open_files, unit_of


def write(root, path, text):
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def process(root, number, namespace=None, **files):
    folder = root / "proc" / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "fdinfo").mkdir()
    (folder / "ns").mkdir()
    if namespace:
        (folder / "ns/mnt").symlink_to(f"mnt:[{namespace}]")
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_hard_link_has_the_same_unit_and_a_copy_does_not(tmp_path):
    file = write(tmp_path, "f", "x")
    os.link(file, tmp_path / "g")
    write(tmp_path, "h", "x")
    assert unit_of(file) == unit_of(tmp_path / "g") != unit_of(tmp_path / "h")
    assert unit_of(tmp_path / "missing") is None
    assert Unit("block", os.makedev(8, 17)).number == "8:17"


def test_mounts_of_every_namespace_are_found(tmp_path):
    line = "36 35 {} / /{} rw - ext4 /dev/x rw\n"
    process(tmp_path, "self", namespace=1, mountinfo=line.format("8:1", "here"))
    process(tmp_path, 10, namespace=1, mountinfo=line.format("8:2", "never read: the same namespace"))
    process(tmp_path, 11, namespace=2, mountinfo=line.format("8:1", "again") + line.format("8:3", "hidden\\040place"))
    process(tmp_path, 12, namespace=2)
    assert users.mounts_of_all(tmp_path) == {"8:1": "/here", "8:3": "/hidden place in the mount namespace of process 11"}


def test_members_of_multi_device_file_systems(tmp_path):
    for name in ("sdb", "sdc"):
        (tmp_path / "sys/fs/btrfs/u-1/devices" / name).mkdir(parents=True)
    target = tmp_path / "sys/devices/block/sdd"
    target.mkdir(parents=True)
    (tmp_path / "sys/fs/bcachefs/u-2/dev-0").mkdir(parents=True)
    (tmp_path / "sys/fs/bcachefs/u-2/dev-0/block").symlink_to(target)
    assert users.file_system_members(tmp_path) == {"sdb": "btrfs u-1", "sdc": "btrfs u-1", "sdd": "bcachefs u-2"}


def test_swap_file_is_found_under_every_name(tmp_path):
    file = write(tmp_path, "swap file", "x")
    os.link(file, tmp_path / "other")
    write(tmp_path, "proc/swaps", "Filename Type Size Used Priority\n/swap\\040file file 4 0 -2\n/gone file 4 0 -3\n")
    assert users.swap_units(tmp_path) == {unit_of(tmp_path / "other")}
    assert users.swap_units(tmp_path / "nowhere") == set()


def test_backing_file_of_loop_device(tmp_path):
    file = write(tmp_path, "images/one", "x")
    write(tmp_path, "sys/class/block/loop0/loop/backing_file", "/images/one\n")
    write(tmp_path, "sys/class/block/loop1/loop/backing_file", "/images/one (deleted)\n")
    (tmp_path / "sys/class/block/loop2").mkdir()
    assert users.backing_unit(tmp_path, "loop0") == users.backing_unit(tmp_path, "loop1") == unit_of(file)
    assert users.backing_unit(tmp_path, "loop2") is None


def test_loop_driver_takes_precedence_over_backing_path(tmp_path, monkeypatch):
    file = write(tmp_path, "images/one", "x")
    other = write(tmp_path, "images/two", "x")
    write(tmp_path, "sys/class/block/loop0/loop/backing_file", "/images/one\n")
    status = other.stat()
    monkeypatch.setattr(users, "_ask_loop_driver", lambda node: (status.st_dev, status.st_ino, status.st_dev))
    assert users.backing_unit(tmp_path, "loop0") == unit_of(other) != unit_of(file), "the path has another file by now"
    monkeypatch.setattr(users, "_ask_loop_driver", lambda node: (6, 42, os.makedev(8, 1)))
    assert users.backing_unit(tmp_path, "loop0") == Unit("block", os.makedev(8, 1))


def test_kernel_exports_are_found(tmp_path):
    file = write(tmp_path, "image", "x")
    config = "sys/kernel/config"
    write(tmp_path, f"{config}/nvmet/subsystems/nqn.a/namespaces/1/device_path", "/image\n")
    write(tmp_path, f"{config}/nvmet/subsystems/nqn.a/namespaces/1/enable", "1\n")
    write(tmp_path, f"{config}/target/core/iblock_0/d/udev_path", "/dev/gone\n")
    write(
        tmp_path,
        f"{config}/target/core/iblock_0/d/info",
        "iBlock device: sdb  UDEV PATH: /dev/gone  readonly: 0\n        Major: 8 Minor: 16  CLAIMED: IBLOCK\n",
    )
    write(tmp_path, f"{config}/target/core/fileio_0/f/info", "TCM FILEIO ID: 0        File: /image  Size: 1048576  Mode: O_DSYNC\n")
    write(tmp_path, "sys/kernel/scst_tgt/devices/disk1/filename", "/image\n[key]\n")
    found = users.exported_units(tmp_path)
    assert (unit_of(file), "nvmet subsystem nqn.a") in found
    assert (Unit("block", os.makedev(8, 16)), "LIO backstore iblock_0/d") in found
    assert (unit_of(file), "LIO backstore fileio_0/f") in found
    assert (unit_of(file), "SCST device disk1") in found


def test_processes_with_file_open_or_mapped_are_found(tmp_path):
    """Real processes: one that writes, one that reads, one that has closed the file and kept its mapping."""
    file = write(tmp_path, "f", "x" * 8192)
    programs = {
        "r+b": True,
        "rb": False,
        "mapped": True,
    }
    mapped = "import mmap; f = open({0!r}, 'r+b'); m = mmap.mmap(f.fileno(), 0); f.close()"
    opened = "f = open({0!r}, {1!r})"
    children = []
    try:
        for mode in programs:
            text = (mapped if mode == "mapped" else opened).format(str(file), mode)
            child = subprocess.Popen([sys.executable, "-c", text + "; print(1, flush=True); input()"], stdin=-1, stdout=-1)
            children.append(child)
            child.stdout.readline()
        rows = open_files(users.Path("/"), {unit_of(file)}).of(unit_of(file))
        assert {row.pid: row.writing for row in rows} == dict(zip((child.pid for child in children), programs.values()))
    finally:
        for child in children:
            child.communicate(b"\n")
    assert open_files(users.Path("/"), {unit_of(file)}).of(unit_of(file)) == ()


def test_unreadable_processes_are_counted(tmp_path, monkeypatch):
    process(tmp_path, 10)
    process(tmp_path, 11)
    really = os.listdir

    def refused(path):
        if str(path).endswith("/11/fd"):
            raise PermissionError(13, "Permission denied")
        return really(path)

    monkeypatch.setattr(os, "listdir", refused)
    found = open_files(tmp_path, {Unit("file", 1, 2)})
    assert (found.unreadable, dict(found.found)) == (1, {})


@pytest.mark.parametrize(("text", "plain"), [("a\\040b", "a b"), ("\\134", "\\"), ("plain", "plain")])
def test_octal_escapes_are_decoded(text, plain):
    assert users.unescape(text) == plain


def thread(process, number, *descriptors, target=None):
    folder = process / "task" / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "fdinfo").mkdir()
    for descriptor in descriptors:
        (folder / "fd" / str(descriptor)).symlink_to(target)
        (folder / "fdinfo" / str(descriptor)).write_text(f"flags:\t{os.O_RDWR:o}\n")
    return folder


def test_descriptors_of_threads_are_found_where_the_main_thread_has_ended(tmp_path):
    file = write(tmp_path, "disk", "x")
    leader = process(tmp_path, 10, maps="", comm="qemu\n")
    thread(leader, 10)
    last = thread(leader, 11, 3, target=file)
    (last / "maps").write_text(f"7f0 rw-s 00000000 00:00 {os.stat(file).st_ino} {file}\n")
    found = open_files(tmp_path, {unit_of(file)}).of(unit_of(file))
    assert [(one.pid, one.writing) for one in found] == [(10, True)]


def test_thread_with_its_own_table_is_found_and_the_others_are_not_read(tmp_path, monkeypatch):
    file, other = write(tmp_path, "disk", "x"), write(tmp_path, "other", "x")
    leader = process(tmp_path, 10, maps="", comm="qemu\n")
    (leader / "fd/3").symlink_to(other)
    (leader / "fdinfo/3").write_text(f"flags:\t{os.O_RDWR:o}\n")
    thread(leader, 10, 3, target=other)
    thread(leader, 11, 3, target=other)
    thread(leader, 12, 3, 4, target=file)
    read = []
    really = users.unit_of
    monkeypatch.setattr(users, "unit_of", lambda path: (read.append(str(path)), really(path))[1])
    assert [one.pid for one in open_files(tmp_path, {really(file)}).of(really(file))] == [10]
    assert not [path for path in read if "/task/11/" in path]


_THREADS = {
    "leader ended": "threading.Thread(target=time.sleep, args=(30,)).start(); os.open(PATH, os.O_RDWR); print(flush=True); libc.pthread_exit(None)",
    "own table": (
        "run = lambda: (libc.unshare(0x400), os.open(PATH, os.O_RDWR), print(flush=True), time.sleep(30));"
        " thread = threading.Thread(target=run); thread.start(); thread.join()"
    ),
}


@pytest.mark.parametrize("kind", _THREADS)
def test_real_threads_with_the_only_descriptor_are_found(tmp_path, kind):
    file = write(tmp_path, "disk", "x")
    code = f"import ctypes, os, threading, time; PATH = {str(file)!r}; libc = ctypes.CDLL(None); " + _THREADS[kind]
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as running:
        try:
            running.stdout.readline()
            for _attempt in range(50):
                found = open_files(users.Path("/"), {unit_of(file)}).of(unit_of(file))
                if [one.pid for one in found] == [running.pid]:
                    break
                time.sleep(0.05)
            assert [(one.pid, one.writing) for one in found] == [(running.pid, True)]
        finally:
            running.kill()
