# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.facts import (
    Backing,
    CacheSet,
    judge,
    parse_superblock,
    read_registered,
    read_superblock,
)
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.bcache.sysfs import Sysfs
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed, NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._device.blockdev import BlockDevice
from ansible_collections.cachefleet.storage.tests.unit.support.scripted import Reply, ScriptedRunner

SET = "82ea1e10-2f10-4fbc-ad40-fb14055a17da"
BACKING = "b608ddc5-a95d-4405-9906-04c5cb56b7ef"
CACHE = "113c21e5-487f-49cf-804d-289d6fa47d4b"


@pytest.mark.parametrize(
    ("capture", "cache", "uuid", "cset", "state", "mode"),
    [
        ("backing", False, BACKING, SET, "dirty", "writeback"),
        ("backing-detached", False, BACKING, None, "detached", "writeback"),
        ("cache", True, CACHE, SET, None, None),
    ],
)
def test_captured_superblocks_are_parsed(shared_samples, capture, cache, uuid, cset, state, mode):
    sb = parse_superblock((shared_samples / "cache" / f"bcache-super-show-{capture}.txt").read_text(), "x")
    assert (sb.cache, sb.uuid, sb.set, sb.state, sb.mode, sb.label, sb.block_size) == (cache, uuid, cset, state, mode, "", 512)


def test_link_that_vanishes_while_read_is_treated_as_missing(tmp_path, monkeypatch):
    """The kernel removes the link to the set when it detaches; os.path.realpath raises if it goes between its lstat and its readlink."""
    (tmp_path / "set").mkdir()
    link = tmp_path / "cache"
    link.symlink_to("set")
    sysfs = Sysfs(tmp_path)
    assert sysfs.target("cache") == tmp_path / "set"

    def vanished(path, *args, **named):
        link.unlink(missing_ok=True)
        return read(path, *args, **named)

    read = os.readlink
    monkeypatch.setattr(os, "readlink", vanished)
    assert sysfs.target("cache") is None
    assert sysfs.target("cache") is None


def test_superblock_with_label():
    text = f"sb.version\t\t1 [backing device]\ndev.label\t\timages\ndev.uuid\t\t{BACKING}\ndev.sectors_per_block\t8\ncset.uuid\t\t{SET}\n"
    sb = parse_superblock(text, "x")
    assert (sb.label, sb.block_size, sb.state) == ("images", 4096, None)


@pytest.mark.parametrize("text", ["", "sb.version\t7 [what]\n", f"sb.version\t1 [backing device]\ndev.uuid\t\tnone\ncset.uuid\t\t{SET}\n"])
def test_invalid_superblock_is_rejected(text):
    with pytest.raises(NotUnderstood, match="did not report the type of the device"):
        parse_superblock(text, "x")


def test_device_without_superblock():
    assert read_superblock(ScriptedRunner({("bcache-super-show",): Reply("sb.magic\t\tbad magic\n", 2)}), "/dev/sda") is None


def _tree(root, capture):
    """The captured attributes, as the kernel lays them out for sda on sdb."""
    for line in capture.read_text().splitlines():
        path, separator, text = line.partition("=")
        if separator and path.startswith("/sys/"):
            path = path.replace("/sys/block/bcache0/bcache", "/sys/devices/sda/bcache")
            place = root / path.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text + "\n")
    (root / "sys/class/block").mkdir(parents=True)
    (root / "sys/devices/bcache0").mkdir()
    for name in ("sda", "sdb", "bcache0"):
        (root / "sys/devices" / name).mkdir(exist_ok=True)
        (root / "sys/class/block" / name).symlink_to(root / "sys/devices" / name)
    (root / "sys/devices/bcache0/bcache").symlink_to(root / "sys/devices/sda/bcache")
    (root / "sys/devices/sda/bcache/dev").symlink_to(root / "sys/devices/bcache0")
    folder = root / "sys/fs/bcache" / SET
    (root / "sys/devices/sdb/bcache").mkdir()
    (root / "sys/devices/sdb/bcache/nbuckets").write_text("2048\n")
    (root / "sys/devices/sdb/bcache/set").symlink_to(folder)
    (folder / "cache0").symlink_to(root / "sys/devices/sdb/bcache")


def test_captured_dirty_sysfs_is_parsed(shared_samples, tmp_path):
    _tree(tmp_path, shared_samples / "cache" / "bcache-sysfs.dirty.txt")
    (tmp_path / "sys/devices/sda/bcache/cache").symlink_to(tmp_path / "sys/fs/bcache" / SET)
    registered = read_registered(Sysfs(tmp_path))
    backing = registered.backings["sda"]
    assert (backing.uuid, backing.device, backing.mode, backing.state, backing.set, backing.running) == (BACKING, "bcache0", "writeback", "dirty", SET, True)
    # 19.9M, cut off by the kernel.
    assert 19.9 * 1024**2 <= backing.dirty < 20 * 1024**2
    cset = registered.sets[SET]
    assert (cset.caches, cset.bucket_size, cset.block_size, cset.size) == (("sdb",), 512 * 1024, 512, 1024**3)
    assert cset.used == 1024**3 * 3 // 100
    assert cset.texts["congested_read_threshold_us"] == "2000"
    assert registered.set_on("sdb") is cset
    assert registered.set_on("sda") is None


def test_captured_detached_sysfs_is_parsed(shared_samples, tmp_path):
    _tree(tmp_path, shared_samples / "cache" / "bcache-sysfs.detached.txt")
    backing = read_registered(Sysfs(tmp_path)).backings["sda"]
    assert (backing.state, backing.set, backing.dirty, backing.label) == ("no cache", None, 0, "")


def test_host_without_bcache(tmp_path):
    registered = read_registered(Sysfs(tmp_path))
    assert (dict(registered.backings), dict(registered.sets)) == ({}, {})


SSD = BlockDevice(name="sdb", path="/dev/sdb", number="8:16")


@pytest.mark.parametrize(
    ("fields", "caches", "state", "words"),
    [
        ({"state": "clean", "set": SET}, [SSD], "ok", ""),
        ({"state": "no cache"}, [], "ok", ""),
        ({"state": "dirty", "set": SET}, [], "cache_missing", "the newest data is only there"),
        ({"state": "clean", "set": SET}, [], "cache_missing", "name a cache device that works"),
        ({"state": "dirty", "running": False}, [], "cache_missing", "loses the newest data"),
        ({"state": "clean", "running": False}, [], "cache_missing", "loses nothing either"),
        ({"state": "clean"}, [], "failed", "serve what is old from it"),
        ({"state": "inconsistent"}, [], "inconsistent", "check its file system"),
    ],
)
def test_problems_are_reported(fields, caches, state, words):
    backing = Backing(name="sda", uuid=BACKING, **fields)
    cset = CacheSet(SET, ("sdb",)) if backing.set else None
    found, problem = judge(backing, cset, caches)
    assert found == state
    assert words in problem


def test_write_rejected_by_kernel_is_reported(tmp_path):
    with pytest.raises(CommandFailed, match=r"images: the kernel did not accept '8M' in /sys/none: No such file or directory"):
        Sysfs(tmp_path).write("sys/none", "8M", "images")
    (tmp_path / "value").write_text("old")
    Sysfs(tmp_path).write("value", "new", "images")
    assert Sysfs(tmp_path).read("value") == "new"
