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


@pytest.mark.parametrize(
    ("size", "asked", "chunk"),
    [
        (200 * MIB, None, 64 * KIB),
        (61 * GIB, None, 64 * KIB),
        # Trap: a million chunks of 64 KiB are too few.
        (62 * GIB, None, 96 * KIB),
        (250 * GIB, None, 288 * KIB),
        (4096 * GIB, None, 4320 * KIB),
        (GIB, 32 * KIB, 32 * KIB),
    ],
)
def test_chunk_size_is_requested_default_or_minimum_for_size(size, asked, chunk):
    assert choose_chunk(size, asked) == chunk


@pytest.mark.parametrize("chunk", [48 * KIB, 16 * KIB, 0, 2 * GIB])
def test_invalid_chunk_sizes_are_rejected(chunk):
    with pytest.raises(BadInput, match="multiples of 32 KiB"):
        choose_chunk(GIB, chunk, "images")


def test_too_small_chunk_size_error_names_the_minimum():
    with pytest.raises(BadInput, match=r"images: chunk_size is 64 KiB, .* write 288 KiB or more"):
        choose_chunk(250 * GIB, 64 * KIB, "images")


@given(st.integers(1, 1 << 50))
def test_chunk_count_never_exceeds_one_million(size):
    chunk = choose_chunk(size, None)
    assert -(-size // chunk) <= 1_000_000
    assert chunk % (32 * KIB) == 0


def test_migration_threshold_is_raised_to_eight_chunks():
    assert effective_migration_threshold(100, 64 * KIB) == 1024
    assert effective_migration_threshold(16384, 64 * KIB) == 16384


def layout(kind, free=128, size=None, share=1.0, spare=0, mirror=False):
    return lay_out(kind, Room(free, EXTENT, spare=spare), size=size, share=share, chunk_size=None, item="images", mirror=mirror)


@pytest.mark.parametrize(
    ("kind", "fields", "extents", "footprint"),
    [
        # Two extents of metadata, two of LVM's spare, unless one that is large enough is there; of a mirror one more for data and one for metadata.
        ("cachepool", {}, 124, 128),
        ("cachepool", {"spare": 8 * MIB}, 126, 128),
        ("cachepool", {"mirror": True}, 122, 128),
        ("cachevol", {}, 128, 128),
        ("cachevol", {"mirror": True}, 127, 128),
        ("writecache", {}, 128, 128),
        ("writecache", {"mirror": True}, 127, 128),
        # A size is rounded up to extents and a share down.
        ("cachevol", {"size": 201 * MIB}, 51, 51),
        ("cachevol", {"free": 127, "share": 0.5}, 63, 63),
        # A mirror that fits exactly.
        ("cachevol", {"free": 11, "size": 40 * MIB, "mirror": True}, 10, 11),
    ],
)
def test_space_is_reserved_for_metadata_spare_and_mirror_extents(kind, fields, extents, footprint):
    found = layout(kind, **fields)
    assert (found.extents, found.footprint) == (extents, footprint)
    assert kind != "cachepool" or found.metadata == 8 * MIB


@pytest.mark.parametrize(
    ("kind", "free", "size"), [("cachepool", 4, None), ("cachepool", 52, 208 * MIB), ("cachevol", 3, None), ("cachevol", 10, 48 * MIB), ("cachevol", 0, None)]
)
def test_insufficient_space_error_reports_required_and_free_space(kind, free, size):
    with pytest.raises(BadInput, match=rf"images: a {kind} needs .* and the cache device has .* free"):
        layout(kind, free, size)


@given(st.sampled_from(["cachevol", "cachepool"]), st.integers(1, 1 << 22), st.floats(0.01, 1.0))
def test_layout_never_exceeds_free_space(kind, free, share):
    try:
        found = layout(kind, free, share=share)
    except BadInput:
        return
    assert found.footprint <= free
    assert found.extents * EXTENT // found.chunk_size <= 1_000_000
    # LVM asks for 44 bytes a chunk and 4 MiB.
    assert kind == "cachevol" or found.metadata >= 4 * MIB + 44 * (found.extents * EXTENT // found.chunk_size)


def test_first_mebibyte_of_new_device_is_not_usable():
    assert lvm_layout.extents_of_new_device(512 * MIB, EXTENT) == 127
    assert lvm_layout.extents_of_new_device(513 * MIB, EXTENT) == 128


def test_mirror_exceeding_free_space_by_one_extent_is_rejected():
    with pytest.raises(BadInput, match="needs 44 MiB"):
        layout("cachevol", free=10, size=40 * MIB, mirror=True)


def test_writecache_has_no_chunk_limit():
    assert layout("writecache", free=1024 * 1024).chunk_size == 0
