# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later


"""What the unit of a cache does in a shell with a sysctl that ends with 0 whatever the kernel does, as that of procps 3.3.17."""

from __future__ import annotations

import os
import subprocess

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.enhanceio import boot
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.flashcache import unit as flashcache_unit

SYSCTL = """#!/bin/sh
if [ "$1" = -n ]; then cat "{root}/$2"; exit; fi
key=${{2%%=*}}
if [ -e "{root}/refuses" ]; then echo "sysctl: setting key $key: Operation not permitted" >&2; exit 0; fi
echo "${{2#*=}}" >"{root}/$key"
[ "$key" != k.control ] || printf 'mode 2\\nflags 0x00000024\\n' >"{root}/config"
"""


@pytest.fixture
def tools(tmp_path):
    for name, text in {"sysctl": SYSCTL.format(root=tmp_path), "eio_cli": f'#!/bin/sh\necho "$@" >>"{tmp_path}/calls"\n'}.items():
        (tmp_path / name).write_text(text)
        os.chmod(tmp_path / name, 0o755)
    (tmp_path / "k.high").write_text("30\n")
    (tmp_path / "config").write_text("mode 2\nflags 0x00000020\n")
    return tmp_path


def shell(script, *words):
    return subprocess.run(["/bin/sh", "-c", script, "script", *map(str, words)], capture_output=True, text=True, check=False)


def test_setting_is_read_back(tools):
    done = shell(boot.SET, tools / "sysctl", "k.high=60")
    assert (done.returncode, done.stderr, (tools / "k.high").read_text()) == (0, "", "60\n")
    (tools / "refuses").touch()
    done = shell(boot.SET, tools / "sysctl", "k.high=70")
    assert done.returncode == 1
    assert "k.high=70 is not in effect: it is 60" in done.stderr


def test_cache_that_would_keep_its_contents_is_taken_down(tools):
    words = (tools / "sysctl", "k.control=6", tools / "config", tools / "eio_cli", "images")
    assert shell(boot.FORGET, *words).returncode == 0
    assert not (tools / "calls").exists()
    (tools / "config").write_text("mode 2\nflags 0x00000020\n")
    (tools / "refuses").touch()
    done = shell(boot.FORGET, *words)
    assert (done.returncode, (tools / "calls").read_text()) == (1, "disable -c images\n")
    assert "images would keep its contents: k.control=6 is not in effect" in done.stderr


def test_cache_without_flags_is_taken_down(tools):
    done = shell(boot.FORGET, tools / "sysctl", "k.control=6", tools / "none", tools / "eio_cli", "images")
    assert done.returncode == 1


def test_file_that_keeps_another_value(tmp_path):
    assert shell(flashcache_unit._WRITE, 5, tmp_path / "key").returncode == 0
    os.symlink("/dev/null", tmp_path / "ignores")
    done = shell(flashcache_unit._WRITE, 5, tmp_path / "ignores")
    assert done.returncode == 1
    assert "could not be set to 5" in done.stderr
    assert shell(flashcache_unit._WRITE, 5, tmp_path / "none" / "key").returncode == 1


@pytest.mark.parametrize("mode", ["writeback", "writethrough", "writearound"])
def test_late_device_starts_only_a_cache_whose_origin_is_hidden_until_then(mode):
    """In another mode the origin is in use by then, and the cache of before would be read until it is forgotten."""
    tools = {name: f"/usr/sbin/{name}" for name in boot.TOOLS}
    unit = boot.needed_files("images", "/dev/disk/by-id/a", "/dev/disk/by-id/b", mode, "lru", 4096, {}, tools, "enhanceio").unit
    wanted = "dev-disk-by\\x2did-b.device sysinit.target" if mode == "writeback" else "sysinit.target"
    assert unit.splitlines()[-1] == f"WantedBy={wanted}"


def test_late_device_starts_a_flashcache():
    places = flashcache_unit.Places({}, "flashcache")
    unit = flashcache_unit.render("images", "/dev/disk/by-id/b", "/dev/disk/by-id/a", ["/sbin/flashcache_load"], {}, places)
    assert unit.splitlines()[-1] == "WantedBy=dev-disk-by\\x2did-b.device dev-disk-by\\x2did-a.device sysinit.target"
