# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import pathlib
import threading

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._core.convergence import converge
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import Refused, StorageError, ToolMissing
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import image as images
from ansible_collections.cachefleet.storage.plugins.module_utils._rack import places
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.image import (
    ImageLayer,
    ImageSpec,
    has_subordinate_ids,
    parse_index_targets,
    require_tools,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._rack.recipe import Recipe
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import write
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

RECIPE = Recipe("bookworm", ("fio",), 1024**3)

TARGETS = """\
http://mirror.example/debian/ bookworm bookworm main Debian
http://mirror.example/debian/ bookworm bookworm contrib Debian
http://mirror.example/debian/ bookworm-updates bookworm-updates main Debian
http://mirror.example/debian-security/ bookworm-security bookworm-security main Debian
http://mirror.example/tools/ bookworm bookworm main Somebody
http://mirror.example/debian/ trixie trixie main Debian
"""


def bootstrap(words):
    """What mmdebstrap would leave behind, as far as the layer looks at it."""
    tree = pathlib.Path(words[words.index("bookworm") + 1])
    for name, text in (("boot/rack-kernel", "kernel"), ("boot/rack-initrd", "initrd"), ("etc/ssh/ssh_host_ed25519_key.pub", "ssh-ed25519 AAAA")):
        write(tree, name, text)
    return Reply()


def convert(words):
    pathlib.Path(words[-1]).write_text("qcow2")
    return Reply()


def scripted(**replies):
    known = {
        ("mmdebstrap", "--mode=auto"): bootstrap,
        ("mmdebstrap", "--unshare-helper"): Reply(),
        ("mmdebstrap", "--unshare-helper", "cat"): Reply("         0     100000      65536\n"),
        ("mke2fs",): Reply(),
        ("qemu-img", "convert"): convert,
        ("rm",): Reply(),
        ("apt-get", "indextargets"): Reply(TARGETS),
    }
    return ScriptedRunner({**known, **replies.pop("replies", {})}, **replies)


@pytest.fixture
def layer(tmp_path, monkeypatch):
    monkeypatch.setattr(images.os, "geteuid", lambda: 0)
    monkeypatch.setattr(images.os, "fchown", lambda *_: None)
    monkeypatch.setattr(places, "free_bytes", lambda _path: 1024**4)
    (tmp_path / "scratch").mkdir()

    def make(runner=None, cache="cache", present=True):
        return ImageLayer(runner or scripted(), ImageSpec(RECIPE, present), tmp_path / cache, scratch=tmp_path / "scratch", root=tmp_path)

    return make


def test_image_is_built_once(layer):
    first = converge(layer(), check_mode=False)
    again = layer()
    second = converge(again, check_mode=False)
    assert (first.changed, second.changed) == (True, False)
    assert again.runner.calls == []
    assert all(pathlib.Path(again.paths()[key]).is_file() for key in ("base", "kernel", "initrd", "host_key"))


def test_check_mode_predicts_run_and_creates_nothing(layer, tmp_path):
    outcome = converge(layer(), check_mode=True)
    assert outcome.to_dict()["actions"] == [f"Build the image {RECIPE.name}"]
    assert not (tmp_path / "cache").exists()


def test_absent_removes_the_folder(layer):
    converge(layer(), check_mode=False)
    there = layer(present=False)
    outcome = converge(there, check_mode=False)
    assert outcome.changed
    assert not there.folder.exists()
    assert not converge(layer(present=False), check_mode=False).changed


def test_failed_build_leaves_nothing_and_reports_the_mmdebstrap_error(layer, tmp_path):
    runner = scripted(replies={("mmdebstrap", "--mode=auto"): Reply(rc=2, stderr="I: installing\nE: Unable to locate package fio\n")})
    with pytest.raises(StorageError, match="Unable to locate package fio") as caught:
        converge(layer(runner), check_mode=False)
    assert caught.value.facts["changed"] is False
    assert list((tmp_path / "scratch").iterdir()) == []
    assert [path.name for path in (tmp_path / "cache/images").iterdir()] == [".lock"]


def test_folder_without_metadata_is_not_an_image(layer):
    built = layer()
    converge(built, check_mode=False)
    (built.folder / "image.json").unlink()
    assert layer().read().present is False
    assert converge(layer(), check_mode=False).changed


def test_damaged_metadata_is_reported_in_one_sentence(layer):
    built = layer()
    converge(built, check_mode=False)
    (built.folder / "image.json").write_text("{")
    with pytest.raises(StorageError, match="is damaged"):
        layer().read()


def test_concurrent_builds_build_once(layer):
    entered = []
    started = threading.Event()

    def slowly(words):
        entered.append(words)
        started.set()
        threading.Event().wait(0.5)
        return bootstrap(words)

    layers = [layer(scripted(replies={("mmdebstrap", "--mode=auto"): slowly})) for _number in range(2)]
    threads = [threading.Thread(target=converge, args=(one,), kwargs={"check_mode": False}) for one in layers]
    threads[0].start()
    started.wait(5)
    threads[1].start()
    for thread in threads:
        thread.join(30)
    assert len(entered) == 1
    assert layer().read().present


def test_missing_commands_are_reported_with_install_command(layer):
    with pytest.raises(ToolMissing, match="mmdebstrap, qemu-img are not installed") as caught:
        converge(layer(scripted(missing=("mmdebstrap", "qemu-img"))), check_mode=False)
    assert "apt-get install mmdebstrap qemu-utils" in caught.value.message


def test_single_missing_command_is_reported_in_singular():
    with pytest.raises(ToolMissing, match="qemu-system-x86_64 is not installed on this host: run 'apt-get install qemu-system-x86' as root"):
        require_tools(ScriptedRunner({}, missing=("qemu-system-x86_64",)), ["ssh", "qemu-system-x86_64"])


def test_insufficient_disk_space_is_reported_with_required_and_free(layer, monkeypatch):
    monkeypatch.setattr(places, "free_bytes", lambda _path: 1024**3)
    with pytest.raises(Refused, match=r"building the image needs 3 GiB in .*, and 1 GiB are free"):
        converge(layer(), check_mode=False)


def test_user_without_subordinate_ids_gets_advice(layer, monkeypatch, tmp_path):
    monkeypatch.setattr(images.os, "geteuid", lambda: 65534)
    with pytest.raises(Refused, match="run this task with become, or give the user subordinate ids"):
        converge(layer(), check_mode=False)


def test_unprivileged_user_builds_in_a_user_namespace(layer, monkeypatch, tmp_path):
    monkeypatch.setattr(images.os, "geteuid", lambda: 65534)
    user = images.pwd.getpwuid(65534).pw_name
    (tmp_path / "etc").mkdir()
    for name in ("subuid", "subgid"):
        (tmp_path / "etc" / name).write_text(f"{user}:100000:65536\n")
    runner = scripted()
    converge(layer(runner), check_mode=False)
    helped = [call[2] for call in runner.calls if call[:2] == ("mmdebstrap", "--unshare-helper")]
    assert helped == ["cat", "mke2fs", "rm"]


def test_subordinate_uids_and_gids_are_required(tmp_path):
    write(tmp_path, "etc/subuid", "anna:100000:65536\n")
    assert not has_subordinate_ids(tmp_path, "anna")
    (tmp_path / "etc/subgid").write_text("anna:100000:65536\n")
    assert has_subordinate_ids(tmp_path, "anna")
    assert not has_subordinate_ids(tmp_path, "ann")


def test_apt_mirror_of_the_host_is_used(monkeypatch):
    monkeypatch.setattr(images.os.path, "exists", lambda _path: False)
    assert parse_index_targets(TARGETS, "bookworm") == [
        "deb http://mirror.example/debian/ bookworm main contrib",
        "deb http://mirror.example/debian/ bookworm-updates main",
        "deb http://mirror.example/debian-security/ bookworm-security main",
    ]


@pytest.mark.parametrize("text", ["", "http://mirror.example/ubuntu/ noble noble main Ubuntu\n", "nonsense\n"])
def test_other_distribution_uses_the_mmdebstrap_default_mirror(text):
    assert parse_index_targets(text, "bookworm") == []


def test_given_mirror_takes_precedence(layer):
    runner = scripted()
    chosen = layer(runner)
    chosen.mirror = ["http://given.example/debian"]
    converge(chosen, check_mode=False)
    (call,) = [call for call in runner.calls if call[:2] == ("mmdebstrap", "--mode=auto")]
    assert call[-1] == "http://given.example/debian"
    assert not [call for call in runner.calls if call[0] == "apt-get"]


def test_metadata_lists_the_image_contents(layer):
    built = layer()
    converge(built, check_mode=False)
    note = json.loads((built.folder / "image.json").read_text())
    assert (note["digest"], note["packages"]) == (RECIPE.digest, ["fio"])
