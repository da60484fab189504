# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, DeviceMissing, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import Devices
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import unit_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.held import handed_over, lay_out, open_file
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.made_files import MadeFiles
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.handover.opened import other_files_of
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.job import read_job, render
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import Spool
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.examination import examine
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.facts import GuardTarget
from ansible_collections.cachefleet.storage.plugins.module_utils._guard.judge import require
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import opened, process

MIB = 1024**2
WRITE, READ = read_job({"rw": "randwrite", "bs": "4k"}, "w"), read_job({"rw": "randread", "bs": "4k"}, "r")


@pytest.fixture
def made(tmp_path):
    (tmp_path / "spool").mkdir()
    return MadeFiles(Spool(tmp_path / "spool", "c1"), tmp_path)


def look(root, made, path="/data/f", size=MIB, writing=True, **values):
    (root / "data").mkdir(exist_ok=True)
    return examine(Devices([], root), GuardTarget(path, kind="file", size=size, **values), Runner(), root, writing=writing, created=made.paths())


def test_new_file_is_private_to_root_and_preallocated(tmp_path, made):
    with handed_over(look(tmp_path, made), WRITE, made, tmp_path) as given:
        assert given.facts.path == f"/proc/self/fd/{given.descriptors[0]}"
        assert given.units == {unit_of(tmp_path / "data/f")}
        status = (tmp_path / "data/f").stat()
        assert (status.st_size, oct(status.st_mode & 0o777)) == (MIB, "0o600")
        assert "filename=/proc/self/fd/" in render(WRITE, given.facts)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(given.descriptors[0])


def test_file_that_is_laid_out_to_be_read_cannot_be_written_through_its_descriptor(tmp_path, made):
    with handed_over(look(tmp_path, made, writing=False), READ, made, tmp_path) as given:
        (descriptor,) = given.descriptors
        assert len(os.pread(descriptor, MIB, 0)) == MIB
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(descriptor, b"x", 0)
    with handed_over(look(tmp_path, made), WRITE, made, tmp_path) as given:
        os.pwrite(given.descriptors[0], b"x", 0)


@pytest.mark.parametrize("how", ["link", "file", "hard link", "gone", "folder", "fifo", "link above"])
def test_replaced_file_is_not_handed_over(tmp_path, made, how):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "data").mkdir()
    place = tmp_path / "data/f"
    place.write_bytes(b"x" * MIB)
    facts = look(tmp_path, made, allow_data_loss=True)
    require(facts, writing=True)
    place.rename(tmp_path / "data/old")
    if how == "link":
        place.symlink_to(victim)
    elif how == "file":
        place.write_bytes(b"other")
    elif how == "hard link":
        os.link(victim, place)
    elif how == "folder":
        place.mkdir()
    elif how == "fifo":
        os.mkfifo(place)
    elif how == "link above":
        (tmp_path / "data").rename(tmp_path / "moved")
        (tmp_path / "moved/old").rename(tmp_path / "moved/f")
        (tmp_path / "data").symlink_to(tmp_path / "moved")
    with pytest.raises(Refused, match=r"is no longer the file that was examined|cannot be opened"), handed_over(facts, WRITE, made, tmp_path):
        pytest.fail("fio would have run")
    assert victim.read_bytes() == b"precious"


def test_new_file_is_not_created_through_a_link(tmp_path, made):
    facts = look(tmp_path, made)
    (tmp_path / "data/f").symlink_to(tmp_path / "victim")
    with pytest.raises(CommandFailed, match="cannot be made"), handed_over(facts, WRITE, made, tmp_path):
        pytest.fail("fio would have run")
    assert not (tmp_path / "victim").exists()


def test_file_replaced_after_listing_is_refused(tmp_path, made):
    """Between the list of files that are ours and the look at this one it was exchanged."""
    with handed_over(look(tmp_path, made), WRITE, made, tmp_path):
        pass
    ours = made.paths()
    if ours != {"/data/f"} or "user.cachefleet.storage" not in os.listxattr(tmp_path / "data/f"):
        pytest.skip("this file system keeps no extended attributes")
    (tmp_path / "data/f").unlink()
    (tmp_path / "data/f").write_bytes(b"p" * MIB)
    facts = examine(Devices([], tmp_path), GuardTarget("/data/f", kind="file", size=MIB), Runner(), tmp_path, created=ours)
    require(facts, writing=True)
    with pytest.raises(Refused, match="is no longer the file"), handed_over(facts, WRITE, made, tmp_path):
        pytest.fail("fio would have run")
    assert (tmp_path / "data/f").read_bytes() == b"p" * MIB


def swap_for_ever(place, victim, stop):
    spare = place.with_name("spare")
    link = place.with_name("link")
    while not stop.is_set():
        link.symlink_to(victim)
        os.rename(place, spare)
        os.rename(link, place)
        os.rename(spare, place)


def test_concurrently_replaced_file_is_never_written(tmp_path, made):
    """The attack: a folder that everybody may write to, the file exchanged for a link again and again. The real fio is to write 40 times."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 512)
    (tmp_path / "data").mkdir()
    (tmp_path / "data/f").write_bytes(b"x" * MIB)
    (tmp_path / "data").chmod(0o777)
    stop = threading.Event()
    attacker = threading.Thread(target=swap_for_ever, args=(tmp_path / "data/f", victim, stop))
    attacker.start()
    written = 0
    try:
        for attempt in range(400):
            # On a busy machine the attacker may come in between each time.
            if attempt >= 40 and written:
                break
            folder = tmp_path / f"work{attempt}"
            folder.mkdir()
            try:
                facts = look(tmp_path, made, allow_data_loss=True)
                require(facts, writing=True)
                with handed_over(facts, WRITE, made, tmp_path) as given:
                    (folder / "job.fio").write_text(render(read_job({"rw": "write", "bs": "64k", "ioengine": "psync"}, "w"), given.facts))
                    subprocess.run(["fio", "job.fio"], cwd=folder, pass_fds=given.descriptors, check=True, capture_output=True)
                    written += 1
            except (Refused, CommandFailed):
                pass
            except Exception as error:  # noqa: BLE001 - a path that is gone for the moment is no success of the attack
                assert type(error).__name__ == "DeviceMissing", error
    finally:
        stop.set()
        attacker.join()
    assert victim.read_bytes() == b"precious" * 512
    assert written, "fio never ran, and this proves nothing"


@pytest.mark.parametrize("where", ["last", "above"])
@pytest.mark.parametrize(("mode", "accepted"), [(0o755, True), (0o777, False), (0o775, False), (0o1777, True)])
def test_links_that_other_users_could_replace_are_not_followed(tmp_path, made, where, mode, accepted):
    """A permission to overwrite a path is none for what another user lets it lead to."""
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim/f").write_bytes(b"precious")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/link").symlink_to(tmp_path / "victim/f" if where == "last" else "../victim")
    (tmp_path / "data").chmod(mode)
    path = "/data/link" if where == "last" else "/data/link/f"
    if accepted:
        facts = look(tmp_path, made, path=path, size=8, allow_data_loss=True)
        assert facts.path == "/victim/f"
    else:
        with pytest.raises(Refused, match=r"leads through the symbolic link .*/data/link, which another user can create or replace"):
            look(tmp_path, made, path=path, size=8, allow_data_loss=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("what", ["folder", "link"])
def test_links_of_another_user_are_not_followed(tmp_path, made, what):
    (tmp_path / "victim").write_bytes(b"precious")
    (tmp_path / "data").mkdir()
    (tmp_path / "data/f").symlink_to("../victim")
    os.chown(tmp_path / ("data" if what == "folder" else "data/f"), 65534, 65534, follow_symlinks=False)
    with pytest.raises(Refused, match="which another user can create or replace"):
        look(tmp_path, made, size=8, allow_data_loss=True)


def test_link_loop_is_rejected(tmp_path, made):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/f").symlink_to("f")
    with pytest.raises(DeviceMissing, match="Too many levels of symbolic links"):
        look(tmp_path, made, size=8)


@pytest.mark.parametrize(
    ("job", "filled"),
    [
        ({"rw": "randwrite"}, False),
        ({"rw": "randwrite", "fallocate": "none"}, False),
        ({"rw": "randwrite", "overwrite": 1}, True),
        ({"rw": "read"}, True),
        ({"rw": "randrw"}, True),
        ({"rw": "randwrite", "ioengine": "mmap"}, True),
    ],
)
def test_file_is_filled_with_data_if_the_job_reads(tmp_path, made, job, filled):
    with handed_over(look(tmp_path, made, size=MIB + 4096), read_job({"bs": "4k", **job}, "c"), made, tmp_path):
        contents = (tmp_path / "data/f").read_bytes()
    assert len(contents) == MIB + 4096
    blocks = [contents[place : place + 4096] for place in range(0, len(contents), 4096)]
    assert len(set(blocks)) == (len(blocks) if filled else 1), "no two blocks are equal"


def test_too_short_file_is_extended_without_overwriting(tmp_path, made):
    with handed_over(look(tmp_path, made, size=MIB), READ, made, tmp_path):
        pass
    before = (tmp_path / "data/f").read_bytes()
    with handed_over(look(tmp_path, made, size=2 * MIB), READ, made, tmp_path):
        pass
    after = (tmp_path / "data/f").read_bytes()
    assert (after[:MIB], len(after)) == (before, 2 * MIB)


def test_preallocation_stops_on_full_disk_and_on_request(tmp_path, monkeypatch):
    with open(tmp_path / "f", "w+b") as file:
        with pytest.raises(CommandFailed, match="was not laid out: the runner is being stopped"):
            lay_out(file.fileno(), "/f", 10 * MIB, WRITE, lambda: True)
        with pytest.raises(CommandFailed, match=r"cannot be made 4096 PiB large on this host: its file system has .* free"):
            lay_out(file.fileno(), "/f", 2**62, WRITE)
        assert os.fstat(file.fileno()).st_blocks == 0, "nothing was tried"

        def full(descriptor, offset, length):
            os.ftruncate(descriptor, offset + length // 2)
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "posix_fallocate", full)
        with pytest.raises(CommandFailed, match="No space left on device"):
            lay_out(file.fileno(), "/f", 10 * MIB, WRITE)
        assert os.fstat(file.fileno()).st_size == 0, "what was added is given back"


def test_file_is_opened_read_only_for_reading_jobs(tmp_path, made):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/f").write_bytes(b"x" * MIB)
    facts = look(tmp_path, made, size=None, writing=False)
    descriptor = open_file(facts, tmp_path, writing=False)
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.write(descriptor, b"x")
    finally:
        os.close(descriptor)
    made_now = MadeFiles(Spool(tmp_path / "spool", "c1"), tmp_path)
    with handed_over(facts, READ, made_now, tmp_path) as given:
        assert given.descriptors


@pytest.mark.skipif(shutil.which("fio") is None, reason="there is no fio")
@pytest.mark.parametrize("engine", ["psync", "libaio", "mmap", "posixaio"])
@pytest.mark.parametrize("thread", [0, 1])
@pytest.mark.parametrize("mode", ["randwrite", "randread", "write"])
def test_real_fio_accepts_a_descriptor(tmp_path, made, engine, thread, mode):
    job = read_job({"rw": mode, "bs": "4k", "ioengine": engine, "numjobs": 2, **({"thread": True} if thread else {})}, "w")
    place = tmp_path / "data/f"
    with handed_over(look(tmp_path, made), job, made, tmp_path) as given:
        inode = place.stat().st_ino
        (tmp_path / "job.fio").write_text(render(job, given.facts))
        place.rename(tmp_path / "data/elsewhere")
        place.write_bytes(b"somebody's")
        completed = subprocess.run(["fio", "job.fio"], cwd=tmp_path, pass_fds=given.descriptors, check=False, capture_output=True, text=True)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert place.read_bytes() == b"somebody's"
    assert (tmp_path / "data/elsewhere").stat().st_ino == inode
    assert len(set((tmp_path / "data/elsewhere").read_bytes()[:4096])) > 1 or mode == "randread"


def test_open_files_beside_the_target_are_found(tmp_path):
    for name in ("target", "stranger", "read", "folder"):
        (tmp_path / name).mkdir() if name == "folder" else (tmp_path / name).write_bytes(b"x")
    text = (
        f"files = [open({str(tmp_path / 'target')!r}, 'r+b'), open({str(tmp_path / 'stranger')!r}, 'ab'), open({str(tmp_path / 'read')!r}, 'rb'),"
        f" open({str(tmp_path / 'folder/log')!r}, 'wb')]; print(1, flush=True); input()"
    )
    # What a child of it has open counts too.
    child = subprocess.Popen(["/bin/sh", "-c", 'python3 -c "$0"; true', text], stdin=-1, stdout=-1)
    try:
        child.stdout.readline()
        target = unit_of(tmp_path / "target")
        # Whoever runs the tests may have given it further open files.
        found = [path for path in other_files_of(child.pid, {target}, tmp_path / "folder") if path.startswith(str(tmp_path))]
        assert found == [str(tmp_path / "stranger")]
        assert not any(str(tmp_path) in path for path in other_files_of(child.pid, {unit_of(tmp_path / "stranger")}, tmp_path))
        assert other_files_of(2**22 + 1, {target}, tmp_path, Path("/proc")) == []
    finally:
        child.communicate(b"\n")


@pytest.mark.parametrize("error", [FileNotFoundError, ProcessLookupError])
def test_process_ending_while_its_threads_are_listed_is_ignored(tmp_path, monkeypatch, error):
    place = tmp_path / "proc/77"
    (place / "fd").mkdir(parents=True)
    (place / "task/77").mkdir(parents=True)
    real = os.listdir

    def listdir(path):
        if str(path).endswith("/task"):
            raise error(2, "No such file or directory")
        return real(path)

    monkeypatch.setattr("os.listdir", listdir)
    (tmp_path / "target").write_bytes(b"x")
    assert other_files_of(77, {unit_of(tmp_path / "target")}, tmp_path, tmp_path / "proc") == []


@pytest.mark.parametrize("moment", ["fdinfo", "again"])
def test_concurrently_closed_descriptor_is_ignored(tmp_path, monkeypatch, moment):
    """A library is opened and closed while fio loads it; its number is another file right afterwards."""
    (tmp_path / "library").write_bytes(b"x")
    (tmp_path / "log").write_bytes(b"x")
    place = process(tmp_path, 77)
    opened(place, 5, tmp_path / "library")
    target = unit_of(tmp_path / "log")
    assert other_files_of(77, {target}, tmp_path / "work", tmp_path / "proc") == [str(tmp_path / "library")]
    if moment == "fdinfo":
        (place / "fdinfo/5").unlink()
    else:
        links = [str(tmp_path / "library"), str(tmp_path / "log")]
        monkeypatch.setattr("os.readlink", lambda path: links.pop(0))
    assert other_files_of(77, {target}, tmp_path / "work", tmp_path / "proc") == []
