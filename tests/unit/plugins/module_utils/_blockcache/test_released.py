# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.released import FOLDER, is_as_left, releasing
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import CommandFailed
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import MIB

SIZE = 8 * MIB
PATH = "/dev/sdb"


@pytest.fixture
def node(tmp_path):
    node = tmp_path / PATH.lstrip("/")
    node.parent.mkdir()
    node.write_bytes(os.urandom(SIZE))
    return node


def put(node, offset, text):
    with open(node, "r+b") as device:
        device.seek(offset)
        device.write(text)


def test_device_that_a_cache_has_left_is_free_until_it_is_written(node, tmp_path):
    assert not is_as_left(node, tmp_path)
    with releasing([PATH], tmp_path):
        put(node, 0, bytes(4096))
    assert is_as_left(node, tmp_path)
    put(node, 0, bytes(MIB))
    assert is_as_left(node, tmp_path), "zeros are empty"
    put(node, SIZE - 1, b"?" if node.read_bytes()[-1:] != b"?" else b"!")
    assert not is_as_left(node, tmp_path)


def test_killed_run_leaves_a_record_of_what_lies_between_the_ends(node, tmp_path):
    class Killed(BaseException):
        pass

    with pytest.raises(Killed), releasing([PATH], tmp_path):
        put(node, 0, bytes(4096))
        raise Killed
    assert is_as_left(node, tmp_path)
    put(node, MIB, b"a file system" * (6 * MIB // 13))
    assert not is_as_left(node, tmp_path)


def test_nothing_is_wiped_that_cannot_be_recorded(node, tmp_path):
    (tmp_path / FOLDER).parent.mkdir(parents=True)
    (tmp_path / FOLDER).write_text("in the way")
    with pytest.raises(CommandFailed, match=f"{FOLDER}/.*json cannot be written: "), releasing([PATH], tmp_path):
        pytest.fail("the device is wiped")


@pytest.mark.parametrize("offset", [MIB, 3 * MIB + 12345, SIZE - MIB - 1])
def test_each_byte_of_a_small_device_counts(node, tmp_path, offset):
    with releasing([PATH], tmp_path):
        put(node, 0, bytes(4096))
    put(node, offset, bytes([node.read_bytes()[offset] ^ 1]))
    assert not is_as_left(node, tmp_path)


def test_record_of_a_part_of_a_small_device_permits_nothing(node, tmp_path):
    with releasing([PATH], tmp_path):
        pass
    file = next((tmp_path / FOLDER).iterdir())
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, "places": found["places"][::2]}))
    assert not is_as_left(node, tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"size": 8388608, "places": []}', '{"size": 8388608, "places": [[0]]}'])
def test_damaged_record_permits_nothing(node, tmp_path, text):
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "x.json").write_text(text)
    assert not is_as_left(node, tmp_path)


def test_device_that_is_gone_is_not_recorded(tmp_path):
    with releasing([PATH], tmp_path):
        pass
    assert not (tmp_path / FOLDER).exists()
