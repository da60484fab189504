# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import errno
import hashlib
import os
import random

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._device import contents
from ansible_collections.cachefleet.storage.plugins.module_utils._device.contents import BLOCK, EDGE, SLICES, WHOLE, Extent, digests, first_data, places_of

GIB = 1024**3


def device(tmp_path, size, *data):
    """A sparse file with some bytes at some offsets."""
    node = tmp_path / "node"
    node.touch()
    os.truncate(node, size)
    with open(node, "r+b") as file:
        for offset, content in data:
            file.seek(offset)
            file.write(content)
    return node


@pytest.mark.parametrize(
    "size", [0, 512, EDGE - 512, EDGE, 3 * EDGE, 3 * EDGE + 512, 3 * EDGE + BLOCK, WHOLE - 512, WHOLE, WHOLE + 512, GIB + 512, 10**12 + 1536]
)
def test_sample_extents_are_in_bounds_ascending_and_include_both_ends(size):
    places = places_of(size, random.Random(1))
    assert all(place.length > 0 for place in places)
    assert all(one.offset + one.length <= other.offset for one, other in zip(places, places[1:]))
    if size:
        assert places[0].offset == 0
        assert places[-1].offset + places[-1].length == size
    assert all(place.length < EDGE + BLOCK for place in places), "what is read at once is limited"
    if size <= WHOLE:
        assert sum(place.length for place in places) == size
    else:
        assert len(places) == SLICES + 2
        assert all(place.offset % BLOCK == 0 for place in places), "direct I/O wants aligned places"


def test_every_slice_has_one_randomized_extent():
    size = 2 * EDGE + SLICES * 300 * BLOCK
    first, second = places_of(size, random.Random(1)), places_of(size, random.Random(2))
    slices = [(place.offset - EDGE) // (300 * BLOCK) for place in first[1:-1]]
    assert slices == list(range(SLICES))
    assert first != second


@pytest.mark.parametrize("size", [2 * EDGE + 512, 64 * EDGE, WHOLE])
@pytest.mark.parametrize("part", [0.0, 0.3, 0.77, 1.0])
def test_one_block_in_a_small_device_is_found_at_any_position(tmp_path, size, part):
    offset = int((size - BLOCK) * part) // 512 * 512
    node = device(tmp_path, size, (offset, b"\0" * 100 + b"x" * 3996))
    assert first_data(node, places_of(size)) == offset + 100


def test_a_single_byte_in_an_empty_device_of_256_mib_is_found(tmp_path):
    assert first_data(device(tmp_path, WHOLE), places_of(WHOLE)) is None
    assert first_data(device(tmp_path, WHOLE, (123_456_789, b"\x01")), places_of(WHOLE)) == 123_456_789


def test_unreadable_place_in_an_otherwise_empty_device_is_an_error(tmp_path, monkeypatch):
    node = device(tmp_path, WHOLE)
    really = os.preadv

    def failing(descriptor, buffers, offset):
        if offset == 200 * EDGE:
            raise OSError(errno.EIO, "Input/output error")
        return really(descriptor, buffers, offset)

    monkeypatch.setattr(contents.os, "preadv", failing)
    with pytest.raises(OSError, match="Input/output error"):
        first_data(node, places_of(WHOLE))


def test_device_that_is_too_slow_is_not_empty(tmp_path, monkeypatch):
    node = device(tmp_path, WHOLE)
    clock = iter(range(0, 10**6, 50))
    monkeypatch.setattr(contents.time, "monotonic", lambda: next(clock))
    with pytest.raises(OSError, match=r"reading did not end within 300 seconds, at byte \d+"):
        first_data(node, places_of(WHOLE))


@pytest.mark.parametrize(("size", "length", "enough"), [(WHOLE, WHOLE, True), (WHOLE, WHOLE - 512, False), (0, 0, True), (WHOLE + 512, 4096, True)])
def test_places_that_are_enough_to_know_a_device(size, length, enough):
    assert contents.are_all([Extent(0, length)], size) is enough


@pytest.mark.parametrize("offset", [0, EDGE - 1, GIB - 1, GIB - EDGE])
def test_single_byte_at_either_end_is_found(tmp_path, offset):
    assert first_data(device(tmp_path, GIB, (offset, b"x")), places_of(GIB)) is not None


def test_zeros_are_empty(tmp_path):
    assert first_data(device(tmp_path, GIB, (12345, bytes(100))), places_of(GIB)) is None


def test_data_filling_a_slice_is_found_at_any_position(tmp_path):
    size = 2 * EDGE + SLICES * 300 * BLOCK
    for number in (0, 17, SLICES - 1):
        node = device(tmp_path, size, (EDGE + number * 300 * BLOCK, b"x" * 300 * BLOCK))
        assert first_data(node, places_of(size)) is not None
        node.unlink()


def test_device_that_ends_early_raises(tmp_path):
    with pytest.raises(OSError, match="the device ends at"):
        first_data(device(tmp_path, EDGE), places_of(GIB))


def test_digests_are_per_extent(tmp_path):
    node = device(tmp_path, GIB, (8192, b"x" * 4096))
    assert digests(node, [Extent(8192, 4096), Extent(0, 512)]) == {
        Extent(8192, 4096): hashlib.sha256(b"x" * 4096).hexdigest(),
        Extent(0, 512): hashlib.sha256(bytes(512)).hexdigest(),
    }


def test_file_system_without_direct_io(tmp_path, monkeypatch):
    node = device(tmp_path, GIB, (0, b"data"))
    really = os.preadv
    tried = []

    def refused(descriptor, buffers, offset):
        tried.append(offset)
        if len(tried) == 1:
            raise OSError(22, "Invalid argument")
        return really(descriptor, buffers, offset)

    monkeypatch.setattr(contents.os, "preadv", refused)
    assert first_data(node, places_of(GIB)) == 0
    assert len(tried) == 2


@pytest.mark.parametrize("read", [first_data, digests, contents.samples])
def test_read_error_is_an_os_error(tmp_path, monkeypatch, read):
    """While the traceback of the error refers to a slice of the buffer, the buffer cannot be closed."""
    node = device(tmp_path, GIB)

    def failing(_descriptor, _buffers, _offset):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(contents.os, "preadv", failing)
    with pytest.raises(OSError, match="Input/output error"):
        read(node, places_of(GIB))
