# Copyright (c) 2026, the cachefleet.storage authors
# GNU General Public License v3.0 or later (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_settings import effective_migration_threshold
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm import sizes as lvm_layout
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.lvm.sizes import Room, choose_chunk, lay_out
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import BadInput
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, KIB, MIB

EXTENT = 4 * MIB


def test_trap_a_million_chunks_of_64_kib_are_too_few_for_250_gib():
    assert choose_chunk(250 * GIB, None) == 288 * KIB


@pytest.mark.parametrize(("size", "chunk"), [(200 * MIB, 64 * KIB), (61 * GIB, 64 * KIB), (62 * GIB, 96 * KIB), (4096 * GIB, 4320 * KIB)])
def test_the_default_chunk_is_64_kib_or_what_the_size_demands(size, chunk):
    assert choose_chunk(size, None) == chunk


def test_requested_chunk_is_used_if_possible():
    assert choose_chunk(GIB, 32 * KIB) == 32 * KIB


@pytest.mark.parametrize("chunk", [48 * KIB, 16 * KIB, 0, 2 * GIB])
def test_chunks_that_lvm_does_not_take(chunk):
    with pytest.raises(BadInput, match="multiples of 32 KiB"):
        choose_chunk(GIB, chunk, "images")


def test_too_small_chunk_names_the_smallest():
    with pytest.raises(BadInput, match=r"images: chunk_size is 64 KiB, .* write 288 KiB or more"):
        choose_chunk(250 * GIB, 64 * KIB, "images")


@given(st.integers(1, 1 << 50))
def test_there_are_never_more_than_a_million_chunks(size):
    chunk = choose_chunk(size, None)
    assert -(-size // chunk) <= 1_000_000
    assert chunk % (32 * KIB) == 0


def test_trap_migration_threshold_is_raised_to_eight_chunks():
    assert effective_migration_threshold(100, 64 * KIB) == 1024
    assert effective_migration_threshold(16384, 64 * KIB) == 16384


def test_a_pool_leaves_room_for_its_metadata_and_the_spare():
    layout = lay_out("cachepool", Room(128, EXTENT), size=None, share=1.0, chunk_size=None, item="images")
    assert (layout.extents, layout.metadata, layout.footprint) == (124, 8 * MIB, 128)


def test_a_spare_that_is_large_enough_already_is_not_made_again():
    layout = lay_out("cachepool", Room(128, EXTENT, spare=8 * MIB), size=None, share=1.0, chunk_size=None, item="images")
    assert layout.extents == 126


def test_a_cachevol_takes_all():
    assert lay_out("cachevol", Room(128, EXTENT), size=None, share=1.0, chunk_size=None, item="images").extents == 128


def test_a_size_is_rounded_up_to_extents_and_a_share_down():
    assert lay_out("cachevol", Room(128, EXTENT), size=201 * MIB, share=1.0, chunk_size=None, item="images").extents == 51
    assert lay_out("cachevol", Room(127, EXTENT), size=None, share=0.5, chunk_size=None, item="images").extents == 63


@pytest.mark.parametrize(
    ("kind", "free", "size"), [("cachepool", 4, None), ("cachepool", 52, 208 * MIB), ("cachevol", 3, None), ("cachevol", 10, 48 * MIB), ("cachevol", 0, None)]
)
def test_what_does_not_fit_reports_what_it_needs_and_what_there_is(kind, free, size):
    with pytest.raises(BadInput, match=rf"images: a {kind} needs .* and the cache device has .* free"):
        lay_out(kind, Room(free, EXTENT), size=size, share=1.0, chunk_size=None, item="images")


@given(st.sampled_from(["cachevol", "cachepool"]), st.integers(1, 1 << 22), st.floats(0.01, 1.0))
def test_a_layout_never_takes_more_than_there_is(kind, free, share):
    try:
        layout = lay_out(kind, Room(free, EXTENT), size=None, share=share, chunk_size=None, item="images")
    except BadInput:
        return
    assert layout.footprint <= free
    assert layout.extents * EXTENT // layout.chunk_size <= 1_000_000
    # LVM asks for 44 bytes a chunk and 4 MiB.
    assert kind == "cachevol" or layout.metadata >= 4 * MIB + 44 * (layout.extents * EXTENT // layout.chunk_size)


def test_a_new_device_loses_its_first_mebibyte():
    assert lvm_layout.extents_of_new_device(512 * MIB, EXTENT) == 127
    assert lvm_layout.extents_of_new_device(513 * MIB, EXTENT) == 128


@pytest.mark.parametrize(
    ("kind", "mirror", "extents", "footprint"),
    [
        ("cachevol", False, 128, 128),
        ("cachevol", True, 127, 128),
        ("writecache", False, 128, 128),
        ("writecache", True, 127, 128),
        # Two extents of metadata, two of LVM's spare; of a mirror one more for data and one for metadata.
        ("cachepool", False, 124, 128),
        ("cachepool", True, 122, 128),
    ],
)
def test_a_mirror_keeps_an_extent_of_each_volume_for_itself(kind, mirror, extents, footprint):
    layout = lay_out(kind, Room(128, EXTENT), size=None, share=1.0, chunk_size=None, item="c", mirror=mirror)
    assert (layout.extents, layout.footprint) == (extents, footprint)


def test_a_mirror_that_fits_by_a_hair_and_one_that_does_not():
    assert lay_out("cachevol", Room(11, EXTENT), size=40 * MIB, share=1.0, chunk_size=None, item="c", mirror=True).footprint == 11
    with pytest.raises(BadInput, match="needs 44 MiB"):
        lay_out("cachevol", Room(10, EXTENT), size=40 * MIB, share=1.0, chunk_size=None, item="c", mirror=True)


def test_a_writecache_has_no_limit_of_chunks():
    assert lay_out("writecache", Room(1024 * 1024, EXTENT), size=None, share=1.0, chunk_size=None, item="c").chunk_size == 0
