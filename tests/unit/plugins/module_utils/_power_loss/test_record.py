# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import zlib

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._power_loss.record import SECTOR, Blocks, Record

BLOCKS = Blocks(b"r" * 16, 4096)
OLD, NEW = Record(3, 8192, 100), Record(9, 8192, 200)


def test_block_is_recognised_as_the_write_that_made_it():
    data = BLOCKS.make(NEW)
    assert (len(data), BLOCKS.read(data).record) == (4096, NEW)


def test_block_of_old_and_new_sectors_is_not_whole():
    contents = BLOCKS.read(BLOCKS.make(NEW)[:SECTOR] + BLOCKS.make(OLD)[SECTOR:])
    assert (contents.records, contents.record) == ((NEW, OLD), None)


@pytest.mark.parametrize("position", [0, 8, 60, 511, 4095])
def test_changed_bit_is_noticed(position):
    data = bytearray(BLOCKS.make(NEW))
    data[position] ^= 1
    assert not BLOCKS.read(bytes(data)).whole


def test_sectors_in_the_wrong_place_are_not_whole():
    data = BLOCKS.make(NEW)
    assert not BLOCKS.read(data[SECTOR : 2 * SECTOR] + data[:SECTOR] + data[2 * SECTOR :]).whole


@pytest.mark.parametrize("data", [b"", bytes(4096), Blocks(b"o" * 16, 4096).make(NEW)])
def test_nothing_and_blocks_of_other_runs_count_as_none(data):
    assert BLOCKS.read(data).records == ()


def test_fill_differs_from_block_to_block():
    assert BLOCKS.make(NEW)[60:464] != BLOCKS.make(OLD)[60:464]


@pytest.mark.parametrize("depth", [1, 4, 16])
def test_fill_differs_between_writes_of_one_lane(depth):
    blocks = [BLOCKS.make(Record(1 + depth * number, 8192, 100))[60:464] for number in range(16)]
    assert len(set(blocks)) > 2


@pytest.mark.parametrize("size", [512, 4096, 65536])
def test_checksums_are_those_of_the_whole_sectors(size):
    buffers = Blocks(b"r" * 16, size).buffers()
    for sequence in range(1, 9):
        data = bytes(buffers.fill(Record(sequence, 3 * size, 2**40 + sequence)))
        for start in range(0, size, SECTOR):
            assert data[start + SECTOR - 4 : start + SECTOR] == zlib.crc32(data[start : start + SECTOR - 4]).to_bytes(4, "little")
