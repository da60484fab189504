# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use import processes
from ansible_collections.cachefleet.storage.plugins.module_utils._device.in_use.processes import open_files
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import Unit, unit_of
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import opened, process, write


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
        rows = open_files(Path("/"), {unit_of(file)}).of(unit_of(file))
        assert {row.pid: row.writing for row in rows} == dict(zip((child.pid for child in children), programs.values()))
    finally:
        for child in children:
            child.communicate(b"\n")
    assert open_files(Path("/"), {unit_of(file)}).of(unit_of(file)) == ()


def test_unreadable_processes_are_counted(tmp_path, monkeypatch):
    process(tmp_path, 10, maps="")
    process(tmp_path, 11, maps="")
    really = os.listdir

    def refused(path):
        if str(path).endswith("/11/fd"):
            raise PermissionError(13, "Permission denied")
        return really(path)

    monkeypatch.setattr(os, "listdir", refused)
    found = open_files(tmp_path, {Unit("file", 1, 2)})
    assert (found.unreadable, dict(found.found)) == (1, {})


def thread(process, number, *descriptors, target=None):
    folder = process / "task" / str(number)
    (folder / "fd").mkdir(parents=True)
    (folder / "fdinfo").mkdir()
    for descriptor in descriptors:
        opened(folder, descriptor, target)
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
    opened(leader, 3, other)
    thread(leader, 10, 3, target=other)
    thread(leader, 11, 3, target=other)
    thread(leader, 12, 3, 4, target=file)
    read = []
    unit, really = unit_of(file), os.stat
    monkeypatch.setattr(os, "stat", lambda path, **how: (read.append(str(path)), really(path, **how))[1])
    assert [one.pid for one in open_files(tmp_path, {unit}).of(unit)] == [10]
    assert [path for path in read if "/task/12/" in path]
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
                found = open_files(Path("/"), {unit_of(file)}).of(unit_of(file))
                if [one.pid for one in found] == [running.pid]:
                    break
                time.sleep(0.05)
            assert [(one.pid, one.writing) for one in found] == [(running.pid, True)]
        finally:
            running.kill()


@pytest.mark.parametrize(
    ("first", "second", "is_unknown"), [("scm_fds: 1", "scm_fds: 2", True), ("scm_fds: 1", "scm_fds: 0", False), ("scm_fds: 0", "", False)]
)
def test_descriptors_in_flight_are_unknown_if_they_are_there_twice(tmp_path, monkeypatch, first, second, is_unknown):
    """With the real ``/proc``: ``test_not_seen``, in make test-long, and ``tests/rack/attacks.py``."""
    one, other = socket.socketpair()
    with one, other:
        folder = process(tmp_path, 7, comm="sender")
        (folder / "fd/3").symlink_to(f"/proc/self/fd/{one.fileno()}")
        fdinfo = folder / "fdinfo/3"
        fdinfo.write_text(f"flags: 02\n{first}\n")
        monkeypatch.setattr(processes, "_may_carry_descriptors", lambda path: True)
        paused = []
        found = open_files(tmp_path, set(), pause=lambda seconds: (paused.append(seconds), fdinfo.write_text(f"flags: 02\n{second}\n")))
    assert len(paused) == (1 if first.endswith("1") else 0)
    assert [text.split(" has been", 1)[0] for text in found.unknown] == (["sender (7)"] if is_unknown else [])
