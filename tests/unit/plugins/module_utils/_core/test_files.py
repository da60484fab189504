# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core import files
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput


@pytest.fixture
def synced(monkeypatch):
    """The folders whose entries were made to survive a power cut, in order."""
    folders = []
    monkeypatch.setattr(files, "sync_folder", folders.append)
    return folders


def test_new_folder_is_synced_for_power_cuts(tmp_path, synced):
    path = tmp_path / "var/lib/cachefleet/record"
    files.replace_file(path, "text\n")
    assert path.read_text() == "text\n"
    assert synced == [tmp_path, tmp_path / "var", tmp_path / "var/lib", tmp_path / "var/lib/cachefleet"]


def test_existing_folder_is_synced_once(tmp_path, synced):
    files.replace_file(tmp_path / "record", "text\n")
    files.replace_file(tmp_path / "record", "")
    assert not (tmp_path / "record").exists()
    assert synced == [tmp_path, tmp_path]


def test_new_folders_are_not_world_writable_with_any_umask(tmp_path):
    umask = os.umask(0)
    try:
        files.replace_file(tmp_path / "a/b/file", "text")
    finally:
        os.umask(umask)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/file")] == [0o755, 0o755, 0o644]


@pytest.mark.parametrize(("name", "words"), [("a\0b", "a null character"), ("\ud800", "cannot be encoded"), ("x" * 3000, "too long")])
def test_text_that_cannot_be_a_path_is_rejected(tmp_path, name, words):
    with pytest.raises(BadInput, match=rf"^spool '.*is not a path: it .*{words}") as caught:
        files.require_path(tmp_path / name, "spool")
    assert len(caught.value.message.encode()) < 200
    files.require_path(tmp_path / "not there" / "x", "spool")


#: Real file systems, in a mount namespace of its own: what each attempt reports, what is left in its folder, and what the file contains.
ON_REAL_FILE_SYSTEMS = """
import contextlib, json, os, subprocess, sys
from pathlib import Path
from ansible_collections.cachefleet.storage.plugins.module_utils._core import files, lock
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
root = Path(sys.argv[1])
found = {}

def mount(name, options):
    (root / name).mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(root / name)], check=True)
    return root / name

def attempt(name, function, *arguments):
    try:
        with contextlib.ExitStack() as stack:
            result = function(*arguments)
            if hasattr(result, "__enter__"):
                stack.enter_context(result)
        found[name] = "done"
    except CommandFailed as error:
        found[name] = error.message.replace(str(root), "")

def fill(folder):
    with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as stream:
        while True:
            stream.write(bytes(4096))

full = mount("full", "size=64k")
(full / "record").write_text("old")
fill(full)
attempt("full", files.replace_file, full / "record", "new" * 3000)
attempt("short write", files.replace_file, full / "record", "n" * 5)
found["full left"] = [sorted(path.name for path in full.iterdir()), (full / "record").read_text()]
(full / "filler").unlink()
attempt("half full", files.replace_file, full / "record", "n" * 100000)
found["half full left"] = [sorted(path.name for path in full.iterdir()), (full / "record").read_text()]
attempt("after it", files.replace_file, full / "record", "new")
inodes = mount("inodes", "nr_inodes=2")
(inodes / "record").write_text("old")
attempt("no inode", files.replace_file, inodes / "record", "new")
attempt("no inode for a folder", files.replace_file, inodes / "a/b/record", "new")
attempt("removed while full", files.replace_file, inodes / "record", "")
(root / "run").mkdir()
udev = mount("run/udev", "size=64k")
attempt("small /run", files.require_room, root)
subprocess.run(["mount", "-o", "remount,size=1m", str(udev)], check=True)
attempt("large /run", files.require_room, root)
attempt("lock", lock.exclusive, "x", root)
for folder in (full, inodes, udev):
    subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
subprocess.run(["mount", "--bind", str(full), str(root / "run")], check=True)
attempt("read-only", files.replace_file, full / "record", "newer")
attempt("removed while read-only", files.replace_file, full / "record", "")
attempt("folder while read-only", files.replace_file, full / "a/record", "newer")
found["read-only left"] = [sorted(path.name for path in full.iterdir()), (full / "record").read_text()]
attempt("read-only lock", lock.exclusive, "x", root)
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def on_real_file_systems(tmp_path_factory):
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("mount namespaces are not allowed here")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [*alone, sys.executable, "-c", ON_REAL_FILE_SYSTEMS, str(tmp_path_factory.mktemp("root"))]
    return json.loads(subprocess.run(command, capture_output=True, check=True, env=environment, text=True).stdout)


def test_full_file_system_keeps_the_old_file_and_leaves_no_other(on_real_file_systems):
    found = on_real_file_systems
    for name in ("full", "short write", "half full"):
        assert found[name] == "/full/record cannot be written: No space left on device.", name
    assert found["full left"] == [["filler", "record"], "old"]
    assert found["half full left"] == [["record"], "old"]
    assert found["after it"] == found["removed while full"] == "done"
    assert found["no inode"] == "/inodes/record cannot be written: No space left on device."
    assert found["no inode for a folder"] == "/inodes/a/b/record cannot be written: No space left on device."


def test_read_only_file_system_is_named_as_the_reason(on_real_file_systems):
    found = on_real_file_systems
    assert found["read-only"] == found["removed while read-only"] == "/full/record cannot be written: Read-only file system."
    assert found["folder while read-only"] == "/full/a/record cannot be written: Read-only file system."
    assert found["read-only left"] == [["record"], "new"]
    assert found["read-only lock"] == "/run/cachefleet.storage/x.lock cannot be made: Read-only file system."


def test_full_run_is_refused_with_its_reason(on_real_file_systems):
    found = on_real_file_systems
    assert found["small /run"] == (
        "/run/udev cannot be written: No space left on device; udev needs 256 KiB there, else commands that wait for it do not end: check df and mount."
    )
    assert found["large /run"] == found["lock"] == "done"


def test_host_without_udev_needs_no_room(tmp_path):
    (tmp_path / "run").mkdir()
    files.require_room(tmp_path)
    files.require_room(Path("/nonexistent"))
