# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import pathlib
import re
import subprocess
import tarfile
import threading
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.background_process import boot_id, started_of
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.own_files import read_own
from ansible_collections.cachefleet.storage.plugins.module_utils._fio import spool as fio_spool
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.observation.status import RunnerLog, Status
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.runner import control
from ansible_collections.cachefleet.storage.plugins.module_utils._fio.spool import CellKey, Spool, SpoolError

KEY = CellKey("as_found", "randwrite-4k", 1)


def stored(spool):
    return spool.store(KEY, {"job.fio": b"[a]\n"}, {"state": "ok"})


@pytest.fixture
def spool(tmp_path):
    found = Spool(tmp_path / "spool", "c1")
    with found.opened():
        yield found


def test_finished_cell_is_stored(spool):
    place = spool.store(KEY, {"job.fio": b"[a]\n", "fio.json.gz": b"{}"}, {"schema": 1, "state": "ok"})
    assert place == spool.folder / "c1/as_found/randwrite-4k/1"
    assert sorted(path.name for path in place.iterdir()) == ["fio.json.gz", "job.fio", "meta.json"]
    assert gzip.decompress((place / "fio.json.gz").read_bytes()) == b"{}"
    meta = json.loads((place / "meta.json").read_text())
    assert meta["files"] == {name: hashlib.sha256((place / name).read_bytes()).hexdigest() for name in ("fio.json.gz", "job.fio")}
    assert spool.read_meta(KEY) == meta
    assert not list(spool.home.glob(".cell*"))


def test_changed_file_invalidates_the_result(spool):
    place = stored(spool)
    (place / "job.fio").write_bytes(b"[b]\n")
    assert spool.read_meta(KEY) is None
    assert spool.read_meta(CellKey("as_found", "other", 1)) is None


def test_newer_result_replaces_the_older(spool):
    spool.store(KEY, {"old.log.gz": b"x"}, {"state": "failed"})
    place = stored(spool)
    assert sorted(path.name for path in place.iterdir()) == ["job.fio", "meta.json"]
    assert not list(spool.home.glob(".cell*"))


def test_failed_write_leaves_no_partial_result(spool, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SpoolError, match="is full: free space, collect earlier results, or set spool"):
        stored(spool)
    assert list(spool.home.iterdir()) == []


def test_insufficient_space_is_reported_before_any_run(spool, monkeypatch):
    monkeypatch.setattr(fio_spool, "MINIMUM_FREE", 1024**6)
    with pytest.raises(SpoolError, match="are needed: free space"):
        spool.require_space()


def test_unusable_spool_folder_is_reported(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SpoolError, match="cannot be used: Not a directory"):
        Spool(tmp_path / "file", "c1").opened().__enter__()


def mode_of(path):
    return path.stat().st_mode & 0o7777


def test_existing_folders_keep_their_mode_and_new_ones_are_readable(tmp_path):
    for mode in (0o700, 0o1777):
        mine = tmp_path / f"{mode:o}"
        mine.mkdir()
        mine.chmod(mode)
        umask = os.umask(0o077)
        try:
            with Spool(mine, "c1").opened(), Spool(mine / "deeper/still", "c1").opened():
                pass
        finally:
            os.umask(umask)
        assert mode_of(mine) == mode
        assert {mode_of(mine / name) for name in ("deeper", "deeper/still")} == {0o755}
        # runner.json has a name that is known; nothing else of a campaign has to be found by others.
        assert {mode_of(mine / name) for name in ("c1", "deeper/still/c1")} == {0o711}
    home = tmp_path / "700/c1"
    home.chmod(0o700)
    with Spool(tmp_path / "700", "c1").opened():
        assert mode_of(home) == 0o700


def test_lock_of_a_runner_that_is_about_to_end_is_waited_for(tmp_path):
    with contextlib.ExitStack() as ending:
        ending.enter_context(Spool(tmp_path, "c1").opened())
        timer = threading.Timer(0.2, ending.close)
        timer.start()
        with Spool(tmp_path, "c2").opened():
            assert timer.finished.is_set()
        timer.join()


def test_lock_file_is_neither_truncated_nor_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    os.link(precious, tmp_path / ".lock")
    with Spool(tmp_path, "c1").opened():
        assert precious.read_text() == "kept"
    (tmp_path / ".lock").unlink()
    (tmp_path / ".lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpoolError, match=r"cannot be used: Too many levels of symbolic links \(.*/\.lock\)"), Spool(tmp_path, "c1").opened():
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_archive_is_not_written_through_a_link(spool, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    (spool.folder / ".c1.tar.new").symlink_to(precious)
    stored(spool)
    assert tarfile.is_tarfile(spool.pack()["path"])
    assert precious.read_text() == "kept"


def test_world_writable_spool_parent_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(SpoolError, match=r"Every user may replace the folder .*: remove write permission for others \(chmod o-w\) from"), Spool(
        tmp_path / "spool", "c1"
    ).opened():
        pass
    assert not (tmp_path / "spool").exists()


def test_campaign_named_like_a_world_writable_folder_is_refused(tmp_path):
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    with pytest.raises(SpoolError, match="Every user may write to the spool's folder"), Spool(tmp_path, "tmp").opened():
        pass
    assert mode_of(tmp_path / "tmp") == 0o1777


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("kind", ["folder", "link", "link on the way"])
def test_folders_of_other_users_in_world_writable_places_are_refused(tmp_path, kind):
    shared, elsewhere = tmp_path / "shared", tmp_path / "elsewhere"
    shared.mkdir()
    shared.chmod(0o1777)
    elsewhere.mkdir()
    trap = shared / "spool"
    if kind == "folder":
        trap.mkdir()
    else:
        trap.symlink_to(elsewhere)
    os.chown(trap, 65534, 65534, follow_symlinks=False)
    with pytest.raises(SpoolError, match="belongs to the user with UID 65534"), Spool(trap / "x" if "way" in kind else trap, "c1").opened():
        pass
    assert list(elsewhere.iterdir()) == []
    os.chown(trap, 0, 0, follow_symlinks=False)
    with Spool(trap, "c1").opened():
        assert (trap / "c1").is_dir()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_spool_below_a_folder_of_another_user_is_refused(tmp_path, depth):
    """The owner may rename a folder of root below it, and put another in its place."""
    places = [tmp_path / "home", tmp_path / "home/of", tmp_path / "home/of/spool"]
    places[-1].mkdir(parents=True)
    os.chown(places[depth], 65534, 65534)
    with pytest.raises(SpoolError, match=f"folder {places[depth]} on this host belongs to the user with UID 65534.*, or set spool to another folder"), Spool(
        places[-1], "c1"
    ).opened():
        pass
    assert not (places[-1] / "c1").exists()
    os.chown(places[depth], 0, 0)
    with Spool(places[-1], "c1").opened():
        pass


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a..b", "a b", "x\n", "a" * 200])
def test_invalid_folder_names_are_rejected(name, tmp_path):
    with pytest.raises(BadInput, match="cannot be the name of a campaign"):
        Spool(tmp_path, name)
    with pytest.raises(BadInput, match="cannot be the name of a cell"):
        Spool(tmp_path, "c1").place(CellKey("as_found", name, 1))


def test_concurrent_run_is_refused(spool):
    other = Spool(spool.folder, "c2")
    (other.home / ".cell.new").mkdir(parents=True)
    with pytest.raises(SpoolError, match="Another run is measuring on this host"), other.opened():
        pass


def test_leftovers_of_a_killed_run_are_removed(tmp_path):
    spool = Spool(tmp_path, "c1")
    (spool.home / ".cell.new/x").mkdir(parents=True)
    with spool.opened():
        assert not list(spool.home.glob(".cell*"))
    with spool.opened():
        pass


def test_work_folder_is_removed_afterwards(spool):
    with spool.workplace() as folder:
        (folder / "fio.json").write_text("{}")
    assert not folder.exists()


def test_archive_contents(spool):
    stored(spool)
    spool.store(CellKey("v" * 128, "c" * 128, 12), {"fio.json.gz": b"{}"}, {"state": "failed"})
    spool.note_progress({"cell": 1})
    found = spool.pack()
    archive = Path(found["path"])
    assert found == {"path": str(spool.folder / "c1.tar"), "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(), "size": archive.stat().st_size}
    assert oct(archive.stat().st_mode)[-3:] == "644"
    with tarfile.open(archive) as tar:
        members = {member.name: member for member in tar}
    assert set(members) == {
        "as_found/randwrite-4k/1/job.fio",
        "as_found/randwrite-4k/1/meta.json",
        f"{'v' * 128}/{'c' * 128}/12/fio.json.gz",
        f"{'v' * 128}/{'c' * 128}/12/meta.json",
    }
    assert all(member.isreg() and (member.uid, member.uname, member.mode) == (0, "", 0o644) for member in members.values())
    assert subprocess.run(["tar", "tf", archive], capture_output=True, check=True).stdout.count(b"\n") == 4


def test_no_archive_without_cells(spool):
    assert spool.pack() == {}
    assert not spool.archive.exists()


def test_version_matches_galaxy_yml():
    galaxy = (Path(__file__).resolve().parents[5] / "galaxy.yml").read_text()
    assert re.search(r"^version: (\S+)", galaxy, re.MULTILINE).group(1) == fio_spool.COLLECTION_VERSION


def everything_below(folder):
    return {str(path.relative_to(folder)): mode_of(path) for path in folder.rglob("*")}


def test_only_archive_and_status_are_world_readable(tmp_path):
    umask = os.umask(0)
    try:
        spool = Spool(tmp_path / "spool", "c1")
        with spool.opened():
            stored(spool)
            spool.note_progress({"cell": 1})
            control.order_journal(spool).write({})
            Status(spool.home).update(state="measuring")
            RunnerLog(spool.home).write("started")
            with spool.workplace() as folder:
                assert mode_of(folder) == 0o700
            spool.pack()
    finally:
        os.umask(umask)
    place = spool.place(KEY).relative_to(spool.folder)
    found = everything_below(spool.folder)
    public = {"c1": 0o711, "c1.tar": 0o644, "c1/runner.json": 0o644, "c1/progress.json": 0o644}
    assert {name: mode for name, mode in found.items() if mode & 0o077} == public
    assert found[f"{place}/job.fio"] == 0o600


def test_new_folders_are_never_temporarily_open(tmp_path, monkeypatch):
    made = []
    mkdir = os.mkdir

    def watched(path, mode=0o777, **how):
        mkdir(path, mode, **how)
        made.append(os.stat(path).st_mode & 0o7777)

    umask = os.umask(0)
    try:
        monkeypatch.setattr(os, "mkdir", watched)
        # Until Python 3.9 pathlib keeps a reference of its own.
        monkeypatch.setattr(getattr(pathlib, "_normal_accessor", pathlib), "mkdir", watched, raising=False)
        spool = Spool(tmp_path / "a/b", "c1")
        with spool.opened(), spool.workplace():
            stored(spool)
    finally:
        os.umask(umask)
    assert set(made) == {0o700}


@pytest.mark.parametrize("kind", ["symbolic link", "hard link"])
@pytest.mark.parametrize("name", ["order.json", ".progress.json"])
def test_temporary_file_is_not_written_through_a_link(spool, tmp_path, kind, name):
    precious = tmp_path / "precious"
    precious.write_text("kept")
    precious.chmod(0o640)
    (spool.home / name).symlink_to(precious) if kind == "symbolic link" else os.link(precious, spool.home / name)
    control.order_journal(spool).write({})
    spool.note_progress({"cell": 1})
    assert (precious.read_text(), mode_of(precious)) == ("kept", 0o640)
    assert json.loads((spool.home / "order.json").read_text()) == {}


def test_log_is_not_written_through_a_link(tmp_path):
    (tmp_path / "runner.log").symlink_to(tmp_path / "elsewhere")
    RunnerLog(tmp_path).write("started")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_foreign_status_file_in_world_writable_folder_ends_no_process(tmp_path):
    tmp_path.chmod(0o1777)
    spool = Spool(tmp_path / "spool", "c1")
    spool.home.mkdir(parents=True)
    with subprocess.Popen(["sleep", "300"]) as victim:
        try:
            status = {"pid": victim.pid, "pid_started": started_of(victim.pid), "boot_id": boot_id(), "state": "measuring"}
            (spool.home / "runner.json").write_text(json.dumps(status))
            for path in (spool.home / "runner.json", spool.home, spool.folder):
                os.chown(path, 65534, 65534)
            for work in (control.stop, control.pack):
                with pytest.raises(SpoolError, match="belongs to the user with UID 65534"):
                    work(spool, check_mode=False)
            assert victim.poll() is None
        finally:
            victim.kill()


def test_files_of_other_users_are_not_read(tmp_path):
    mine, link, pipe = tmp_path / "mine", tmp_path / "link", tmp_path / "pipe"
    mine.write_text("text")
    assert read_own(mine) == "text"
    link.symlink_to(mine)
    os.mkfifo(pipe)
    mine.chmod(0o646)
    for path in (mine, link, pipe):
        with pytest.raises(OSError):
            read_own(path)
    mine.chmod(0o644)
    if os.geteuid() == 0:
        os.chown(mine, 65534, 65534)
        with pytest.raises(PermissionError):
            read_own(mine)
