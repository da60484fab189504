# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import socket
import threading

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._rack.volatile_disk import BLOCK, SECTOR, Gone, VolatileDisk, serve
from ansible_collections.cachefleet.storage.tests.unit.support.nbd_client import NbdClient

SIZE = 64 * BLOCK


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "d0.raw"
    path.write_bytes(b"o" * SIZE)
    return path


@pytest.fixture
def open_disk(path):
    descriptors = []

    def open_disk(behaviour, **more):
        descriptors.append(os.open(path, os.O_RDWR))
        return VolatileDisk(descriptors[-1], behaviour, seed=1, **more)

    yield open_disk
    for descriptor in descriptors:
        os.close(descriptor)


def media(path, number):
    return path.read_bytes()[number * BLOCK : (number + 1) * BLOCK]


@pytest.mark.parametrize("behaviour", ["honest", "lies"])
def test_unflushed_write_is_read_back_and_not_on_the_media(open_disk, path, behaviour):
    disk = open_disk(behaviour)
    disk.write(BLOCK, b"n" * BLOCK)
    assert disk.read(BLOCK - 1, BLOCK + 2) == b"o" + b"n" * BLOCK + b"o"
    assert media(path, 1) == b"o" * BLOCK


@pytest.mark.parametrize(("behaviour", "kept"), [("honest", True), ("torn", True), ("lies", False)])
@pytest.mark.parametrize("fua", [False, True])
def test_flushed_write_is_on_the_media_unless_the_disk_lies(open_disk, path, behaviour, kept, fua):
    disk = open_disk(behaviour)
    disk.write(BLOCK, b"n" * BLOCK, fua=fua)
    if not fua:
        disk.flush()
    assert (media(path, 1) == b"n" * BLOCK) is kept
    assert disk.cached_blocks == (0 if kept else 1)


def test_unflushed_block_of_a_torn_disk_has_old_and_new_sectors(open_disk, path):
    disk = open_disk("torn")
    disk.write(BLOCK, b"n" * BLOCK)
    sectors = [media(path, 1)[start : start + SECTOR] for start in range(0, BLOCK, SECTOR)]
    assert set(sectors) == {b"o" * SECTOR, b"n" * SECTOR}


def test_partial_writes_across_blocks_are_merged(open_disk, path):
    disk = open_disk("honest")
    disk.write(BLOCK - SECTOR, b"n" * 2 * SECTOR)
    disk.flush()
    assert path.read_bytes() == b"o" * (BLOCK - SECTOR) + b"n" * 2 * SECTOR + b"o" * (SIZE - BLOCK - SECTOR)


def test_full_cache_writes_out_its_oldest_block(open_disk, path):
    disk = open_disk("lies", capacity=2)
    for number in (3, 1, 2):
        disk.write(number * BLOCK, b"n" * BLOCK)
    assert [media(path, number)[:1] for number in (1, 2, 3)] == [b"o", b"o", b"n"]


class Client(NbdClient):
    """With a server of its own."""

    def __init__(self, disk):
        connection, other = socket.socketpair()
        self.ended = []
        self.thread = threading.Thread(target=self._serve, args=(other, disk))
        self.thread.start()
        super().__init__(connection)

    def _serve(self, connection, disk):
        with connection:
            try:
                serve(connection, disk)
                self.ended.append("orderly")
            except Gone:
                self.ended.append("cut")

    def end(self, orderly):
        super().end(orderly)
        self.thread.join(10)
        return self.ended


@pytest.mark.parametrize(("orderly", "ended", "kept"), [(True, ["orderly"], True), (False, ["cut"], False)])
def test_cache_is_written_out_after_an_orderly_end_only(open_disk, path, orderly, ended, kept):
    client = Client(open_disk("lies"))
    assert client.size == SIZE
    assert client.request(1, BLOCK, BLOCK, b"n" * BLOCK) == (0, b"")
    assert client.request(3) == (0, b"")
    assert client.request(0, BLOCK, SECTOR, answer=SECTOR) == (0, b"n" * SECTOR)
    assert client.end(orderly) == ended
    assert (media(path, 1) == b"n" * BLOCK) is kept


def test_requests_beyond_the_end_and_unknown_ones_are_refused(open_disk):
    client = Client(open_disk("honest"))
    assert client.request(0, SIZE - SECTOR, BLOCK)[0] == 22
    assert client.request(6, 0, BLOCK)[0] == 22
    client.end(orderly=True)
