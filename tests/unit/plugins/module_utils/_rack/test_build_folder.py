# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What other users of the host can do while an image is built. Most of it needs two users, so it runs as root only."""

from __future__ import annotations

import errno
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood, Refused
from ansible_collections.cachefleet.storage.plugins.module_utils._core.process import Runner
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import build_folder
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.build_folder import make_build_folder, namespace_root
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.image import ImageLayer, ImageSpec
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.recipe import Recipe
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
RECIPE = Recipe("bookworm", ("fio",), 1024**3)
_STRANGER, _NAMESPACE_ROOT = 65534, 100000

#: Stands in for mmdebstrap: as another user it tries everything that would put that user's code into the build, and notes what worked.
_BOOTSTRAP = """#!{python}
import os, pathlib, sys
tree = pathlib.Path(sys.argv[sys.argv.index("bookworm") + 1])
hooks = [pathlib.Path(word.partition("=")[2]) for word in sys.argv if word.startswith(("--essential-hook=", "--customize-hook="))]
tree.mkdir()
reader, writer = os.pipe()
child = os.fork()
if not child:
    os.setgroups([])
    os.setgid({stranger})
    os.setuid({stranger})
    attempts = {{}}
    for place in (*hooks, tree):
        attempts["read " + place.name] = lambda place=place: os.stat(place)
        attempts["rename " + place.name] = lambda place=place: os.rename(place, str(place) + ".gone")
        attempts["chmod " + place.name] = lambda place=place: os.chmod(place, 0o777)
    for hook in hooks:
        attempts["write " + hook.name] = lambda hook=hook: open(hook, "a")
        attempts["remove " + hook.name] = lambda hook=hook: os.unlink(hook)
    for folder in (tree, tree.parent):
        attempts["create in " + folder.name] = lambda folder=folder: open(folder / "new", "x")
    attempts["list"] = lambda: os.listdir(tree.parent)
    attempts["rename folder"] = lambda: os.rename(tree.parent, str(tree.parent) + ".gone")
    for name, attempt in attempts.items():
        try:
            attempt()
            os.write(writer, (name + "\\n").encode())
        except OSError:
            pass
    os.write(writer, b"tried\\n")
    os._exit(0)
os.close(writer)
os.waitpid(child, 0)
pathlib.Path("{notes}").write_bytes(os.read(reader, 65536))
for name in ("boot/rack-kernel", "boot/rack-initrd", "etc/ssh/ssh_host_ed25519_key.pub"):
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text(name)
"""


@pytest.fixture
def shared():
    """A folder in which every user may make files, as in /var/tmp; that of pytest is closed to other users."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cachefleet-test-", dir="/var/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def _succeeds_as(user, attempt):
    child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)
            attempt()
        except BaseException:  # noqa: BLE001 - the process must not go on as a copy of the tests
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@needs_root
def test_other_users_cannot_access_files_run_by_root(shared, tmp_path, monkeypatch):
    programs = tmp_path / "bin"
    programs.mkdir()
    texts = {
        "mmdebstrap": _BOOTSTRAP.format(python=sys.executable, stranger=_STRANGER, notes=tmp_path / "notes"),
        "mke2fs": "#!/bin/sh\n",
        "qemu-img": '#!/bin/sh\nfor last; do :; done\necho image >"$last"\n',
    }
    for name, text in texts.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    layer = ImageLayer(Runner(), ImageSpec(RECIPE, True), tmp_path / "cache", mirror=["http://mirror.example/debian"], scratch=shared)
    assert converge(layer, check_mode=False).changed
    assert (tmp_path / "notes").read_text() == "tried\n"
    assert list(shared.iterdir()) == []
    assert {oct(path.stat().st_mode & 0o777) for path in layer.folder.iterdir()} == {"0o644"}


@needs_root
def test_only_namespace_root_may_access_the_folder(shared):
    folder = make_build_folder(shared, _NAMESPACE_ROOT)
    assert _succeeds_as(_NAMESPACE_ROOT, (folder / "root").mkdir)
    assert not _succeeds_as(_STRANGER, lambda: os.listdir(folder))
    assert not _succeeds_as(_STRANGER, (folder / "tree").mkdir)
    assert not _succeeds_as(_STRANGER, lambda: os.stat(folder / "root"))
    assert folder.stat().st_mode & 0o007 == 0


def test_folder_without_namespace_is_private_to_its_user(tmp_path):
    assert make_build_folder(tmp_path).stat().st_mode & 0o777 == 0o700


def test_file_system_without_acls_is_refused(tmp_path, monkeypatch):
    def setxattr(*_arguments):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(build_folder.os, "setxattr", setxattr)
    with pytest.raises(Refused, match=r"does not support access control lists .* set scratch_dir"):
        make_build_folder(tmp_path, _NAMESPACE_ROOT)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("below", ["", "folder"])
def test_world_writable_scratch_folder_is_refused(tmp_path, below):
    (tmp_path / "open" / "folder").mkdir(parents=True)
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(Refused, match=f"Every user of this host can replace the contents of {tmp_path}/open"):
        make_build_folder(tmp_path / "open" / below)


def test_namespace_root_is_read_from_its_uid_map():
    runner = ScriptedRunner({("mmdebstrap", "--unshare-helper", "cat"): Reply("         1       7       1\n         0     231072      65536\n")})
    assert namespace_root(runner) == 231072
    with pytest.raises(NotUnderstood, match="could not be read from 'nothing'"):
        namespace_root(ScriptedRunner({("mmdebstrap",): Reply("nothing\n")}))
