# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device import users
from ansible_collections.cachefleet.storage.plugins.module_utils._device.users import LoopBacking, Unit, unit_of
from ansible_collections.cachefleet.storage.tests.unit.support.made_files import process, write


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
    unknown = []
    found = users.mounts_of_all(tmp_path, unknown)
    assert found == {"8:1": "/here", "8:3": "/hidden place in the mount namespace of process 11"}
    assert unknown == [], "process 12 has ended"


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
    unknown = []
    assert users.swap_units(tmp_path, unknown) == {unit_of(tmp_path / "other")}
    assert unknown == ["/gone, which is swap space, cannot be found, and may be any device or file: swapoff it"]


def test_backing_file_of_loop_device(tmp_path):
    file = write(tmp_path, "images/one", "x")
    write(tmp_path, "sys/class/block/loop0/loop/backing_file", "/images/one\n")
    write(tmp_path, "sys/class/block/loop1/loop/backing_file", "/images/one (deleted)\n")
    (tmp_path / "sys/class/block/loop2").mkdir()
    assert users.loop_backing(tmp_path, "loop0") == users.loop_backing(tmp_path, "loop1") == LoopBacking(unit_of(file))
    assert users.loop_backing(tmp_path, "loop2") == LoopBacking()


def test_loop_driver_takes_precedence_over_backing_path(tmp_path, monkeypatch):
    file = write(tmp_path, "images/one", "x")
    other = write(tmp_path, "images/two", "x")
    write(tmp_path, "sys/class/block/loop0/loop/backing_file", "/images/one\n")
    status = other.stat()
    monkeypatch.setattr(users, "_ask_loop_driver", lambda root, loop: (status.st_dev, status.st_ino, status.st_dev))
    assert users.loop_backing(tmp_path, "loop0").unit == unit_of(other) != unit_of(file), "the path has another file by now"
    monkeypatch.setattr(users, "_ask_loop_driver", lambda root, loop: (6, 42, os.makedev(8, 1)))
    assert users.loop_backing(tmp_path, "loop0").unit == Unit("block", os.makedev(8, 1))


@pytest.mark.parametrize(("text", "plain"), [("a\\040b", "a b"), ("\\134", "\\"), ("plain", "plain")])
def test_octal_escapes_are_decoded(text, plain):
    assert users.unescape(text) == plain
