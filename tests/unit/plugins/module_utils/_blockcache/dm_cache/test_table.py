# SPDX-FileCopyrightText: 2026 the cachefleet.storage authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of dm-cache and dm-writecache, and where on a device what lies."""

from __future__ import annotations

import pytest

from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache import table as tables
from ansible_collections.cachefleet.storage.plugins.module_utils._blockcache.dm_cache.table import CacheTable, Layout, LinearTable, parse_table
from ansible_collections.cachefleet.storage.plugins.module_utils._core.errors import NotUnderstood
from ansible_collections.cachefleet.storage.plugins.module_utils._core.units import GIB, KIB, MIB
from ansible_collections.cachefleet.storage.plugins.module_utils._device.discovery import parse_dm_table

# What Linux 6.1 printed for the tables that it was given.
CACHE = "0 8388608 cache 253:0 253:1 8:16 128 2 metadata2 writeback smq 2 migration_threshold 4096"
OLD = "0 8388608 cache 253:0 253:1 8:16 128 1 writethrough cleaner 0"
WRITECACHE = "0 1228800 writecache s 8:16 253:1 4096 6 high_watermark 60 low_watermark 50 cleaner metadata_only"


def test_cache_table_round_trip():
    table = parse_table(CACHE.split())
    assert table == CacheTable(tables.CACHE, 4 * GIB, "253:0", "253:1", "8:16", 64 * KIB, "writeback", False, {"migration_threshold": 4096})
    assert table.render() == CACHE
    assert not table.settled


def test_table_with_cleaner_policy():
    table = parse_table(OLD.split())
    assert (table.mode, table.cleaner, table.settled) == ("writethrough", True, True)
    assert table.settle().render().endswith("writethrough smq 0")
    assert table.clean() == table


def test_missing_mode_means_writeback():
    assert parse_table(["0", "8", "cache", "253:0", "253:1", "8:16", "128", "0", "mq", "0"]).mode == "writeback"


def test_writecache_table():
    table = parse_table(WRITECACHE.split())
    assert table.settings == {"high_watermark": 60, "low_watermark": 50, "metadata_only": True}
    assert (table.cleaner, table.settled, table.block_size) == (True, True, 4096)
    assert parse_table(table.render().split()) == table


def test_foreign_table_is_none_and_truncated_table_is_an_error():
    assert parse_table(["0", "8", "crypt", "aes", "0", "8:0", "0"]) is None
    assert parse_table(["0", "8", "writecache", "p", "8:0", "8:1", "4096", "0"]) is None
    for text in ("0 8 cache 253:0", "0 8 linear", "0 8 writecache s 8:0 8:1 4096 1 high_watermark", "0 8 linear 8:0 x"):
        with pytest.raises(NotUnderstood, match="could not be parsed"):
            parse_table(text.split())


def test_captured_tables_are_parsed(shared_samples):
    found = []
    for path in sorted((shared_samples / "cache").glob("dmsetup-table.*.txt")):
        for rows in parse_dm_table(path.read_text()).values():
            found += [table for table in map(parse_table, rows) if isinstance(table, CacheTable)]
    assert {table.kind for table in found} == {"cache", "writecache"}


@pytest.mark.parametrize(
    ("requested", "block", "words"),
    [
        (None, 64 * KIB, "smq 0"),
        (100, 64 * KIB, "smq 2 migration_threshold 1024"),
        (None, MIB, "smq 2 migration_threshold 16384"),
        (2048, 64 * KIB, "smq 0"),
    ],
)
def test_threshold_is_at_least_eight_blocks(requested, block, words):
    settings = {} if requested is None else {"migration_threshold": requested}
    table = CacheTable(tables.CACHE, GIB, "/m", "/d", "/o", block, "writethrough", False, settings)
    assert table.render().endswith(words)


def test_linear_table():
    table = LinearTable(GIB, "/dev/x", 5 * MIB)
    assert table.render() == "0 2097152 linear /dev/x 10240"
    assert parse_table(table.render().split()) == table


def test_metadata_size_is_sufficient():
    # Linux 6.1 used 60 blocks of 4 KiB of metadata for 1347 of 16304 blocks; lvm2 asks for 44 bytes a block with hints and bitmaps.
    assert tables.metadata_size(GIB, 64 * KIB) == 5 * MIB
    assert tables.metadata_size(1_000_000 * 64 * KIB, 64 * KIB) == 27 * MIB


@pytest.mark.parametrize(
    ("size", "share", "layout"),
    [
        (None, 1.0, Layout(5 * MIB, 1019 * MIB, 64 * KIB)),
        (None, 0.5, Layout(5 * MIB, 507 * MIB, 64 * KIB)),
        (500 * MIB, 1.0, Layout(5 * MIB, 500 * MIB, 64 * KIB)),
        (500 * MIB + 1, 1.0, Layout(5 * MIB, 500 * MIB, 64 * KIB)),
        (GIB, 1.0, None),
        (MIB, 1.0, None),
    ],
)
def test_cache_layout(size, share, layout):
    found = tables.lay_out(tables.CACHE, GIB, lambda data: 64 * KIB, size, share)
    assert found == layout
    assert found is None or found.footprint <= GIB


@pytest.mark.parametrize(("size", "layout"), [(None, Layout(0, GIB, 4096)), (500 * MIB + 5, Layout(0, 500 * MIB, 4096)), (2 * GIB, None), (4096, None)])
def test_writecache_layout(size, layout):
    assert tables.lay_out(tables.WRITECACHE, GIB, lambda data: 4096, size) == layout


def test_uuids_identify_mapping_owner_with_hyphens():
    for role in ("top", "meta", "data"):
        assert tables.parse_uuid(tables.uuid_of(role, "a-data-b")) == (role, "a-data-b")
    for uuid in (None, "", "LVM-abc", "CACHEFLEET-TOP-", "CACHEFLEET-OTHER-x"):
        assert tables.parse_uuid(uuid) is None
